"""Background documents: the RDF that holds at every instant.

Place:   read once, when a program is deployed; the triples go to enrich.py.
Method:  every file is one document: Turtle, N-Triples, RDF/XML, JSON-LD (no remote contexts), `.gz` of any.
         Its blank nodes are labelled by what is said of them, so that every run agrees, two files never join
         through `_:b0`, and a line that changes leaves the labels of all others. Relative IRIs are resolved
         as in the stream (`--base`), never against a path: `<#roomA>` is one thing in background and stream.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from dotr.errors import DataError
from dotr.io.decode.documents import (
    MAX_DOCUMENT,
    STREAM_BASE,
    Format,
    content_hash,
    decode,
    format_of,
    is_named_pipe,
    read_bytes,
    unknown_format,
    unreadable,
)
from dotr.io.decode.limits import no_memory
from dotr.io.decode.parse_choices import ParseChoices
from dotr.io.decode.parsing import parse_triples
from dotr.io.files.sources import resolve
from dotr.rdf.blanks import label_background
from dotr.rdf.terms import Triple
from dotr.source import Span

_NOWHERE: Final[Mapping[str, Span]] = {}


def _files(paths: Sequence[str], named: Mapping[str, Span]) -> Iterator[str]:
    for path in paths:
        try:
            yield from resolve([path])
        except DataError as error:
            if path not in named:
                raise
            raise DataError([replace(d, span=named[path], place="") for d in error.diagnostics]) from None


def read_background(
    paths: Sequence[str],
    base: str = STREAM_BASE,
    limit: int = MAX_DOCUMENT,
    *,
    named: Mapping[str, Span] = _NOWHERE,
    choices: ParseChoices | None = None,
) -> list[Triple]:
    """The triples of all files below `paths`, canonical, without repeats, in the order of the files.

    `named`: where a program names some of the paths; one that leads nowhere is reported there. `choices`:
    what documents may say beyond RDF 1.1 and beyond themselves; None: nothing, where nobody can choose.

    Raises DataError: D2003, D2008, D2009, D2010 for a stream where a background is wanted, and what parsing
    says.
    """
    triples: dict[Triple, None] = {}
    said: dict[str, int] = {}
    read: set[tuple[str, Format]] = set()
    for path in _files(paths, named):
        format_ = format_of(path)
        if format_ is None:
            raise unknown_format(path)
        if format_ in (Format.JSONLINES, Format.PATCH, Format.PARQUET):
            raise DataError.of(
                "D2010",
                f"`{path}` is a stream, no background",
                place=path,
                hint="give it as a SOURCE; a background has no time",
            )
        if is_named_pipe(path):
            raise unreadable(path, OSError(22, "is a pipe, and a file is needed"))
        try:
            content = read_bytes(path, limit)
            known = len(read)
            read.add((content_hash(content), format_))
            if len(read) == known:
                continue  # the same document again
            if format_ is Format.JELLY:
                format_ = Format.NQUADS
            text = decode(content, path)
            del content
            parsed = _parsed(text, format_, path, base, choices)
            del text
        except MemoryError:
            raise no_memory(path) from None
        if any(s[0] == "_" or o[0] == "_" for s, _p, o in parsed):
            parsed = label_background(parsed, said)
        triples.update(dict.fromkeys(parsed))
    return list(triples)


_NO_CHOICE: Final = {
    "D2004": "write RDF 1.1: give the statement a node of its own, leave the direction out",
    "D2005": "write the context into the document, in place of its IRI",
}
"""Hints where there is no option to name."""


def _parsed(text: str, format_: Format, path: str, base: str, choices: ParseChoices | None) -> list[Triple]:
    if choices is not None:
        return parse_triples(text, format_, path, base, choices=choices)
    try:
        return parse_triples(text, format_, path, base)
    except DataError as error:
        hints = [replace(d, hint=_NO_CHOICE.get(d.code, d.hint)) for d in error.diagnostics]
        raise DataError(hints) from None


class BackgroundFiles:
    """Owns how to read a background again, as long as its files are what they were.

    What was read is not kept: where nothing lasts, the closed index of it is all that is needed.
    """

    def __init__(
        self,
        paths: Sequence[str],
        base: str = STREAM_BASE,
        limit: int = MAX_DOCUMENT,
        *,
        named: Mapping[str, Span] = _NOWHERE,
        choices: ParseChoices | None = None,
    ) -> None:
        self._paths, self._base, self._limit, self._named = list(paths), base, limit, named
        self._choices = choices
        self._seen = self._stamps()

    def _stamps(self) -> list[tuple[str, int, int]]:
        """Each file, its size, and when it was written."""
        files = _files(self._paths, self._named)
        found = [(path, os.stat(path)) for path in files if os.path.exists(path)]
        return [(path, stat.st_size, stat.st_mtime_ns) for path, stat in found]

    def __call__(self) -> list[Triple]:
        """As `read_background`. Raises DataError D2203 when a file was written since this was made."""
        triples = read_background(
            self._paths, self._base, self._limit, named=self._named, choices=self._choices
        )
        now = self._stamps()
        if now != self._seen:
            changed = min({path for path, _, _ in set(now) ^ set(self._seen)})
            raise DataError.of(
                "D2203",
                f"`{changed}` was written while a run goes on over it",
                place=changed,
                notes=("what is inserted and deleted now is so beside the background that was deployed",),
                hint="begin again, or let the new background hold from a time on",
            )
        return triples

"""A knowledge base as a file: closed and indexed, so that opening it derives nothing.

Place:   called by knowledge_base.py; the index writes itself (datalog/closing.py, rdf/background.py).
Method:  a line with the version, a hash of the rest, then four parts with their sizes: a header in JSON, the
         closed index, which rows are derived (a bit a row), the labels of blank nodes. A file is written
         beside its place and moved there, so that a reader never finds half of one. That of a large index is
         version 2: the hash leaves the index out, which is copied into memory as it is looked at, and has a
         hash for each of its blocks.
Bad input: D5103 no saved knowledge base, or a damaged one · D5104 another version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeGuard

import pyoxigraph as ox
from msgspec import Struct

from dotr.datalog.closing import Closed, load_background, saved_lists
from dotr.errors import NOT_WRITTEN, EngineError
from dotr.io.files.mapped import CopiedFile
from dotr.io.files.whole_files import write_whole
from dotr.ir import DatalogRule
from dotr.joins.graph_relations import Relation
from dotr.rdf.checked_blocks import sized
from dotr.rdf.terms import Term, Triple
from dotr.regex import regex

_NAME = b"dotr knowledge base "
_WHOLE, _MAPPED = b"1", b"2"
_DIGEST = 16
_PARTS, _CLOSED = 4, 1
"""How many parts there are, and which has the index."""


class Saved(Struct, frozen=True):
    """What a file is to have: `header` is a value that JSON can hold, `closed` the index, `marks` which rows
    are derived, `labels` the blank nodes that were handed out.
    """

    header: dict[str, Any]
    closed: Closed
    marks: Mapping[Relation, bytes]
    labels: list[Term]


class OpenedBase(Struct, frozen=True):
    """What a file has; the index lies in `data[start:end]`. The header has the keys and kinds of values that
    were saved.
    """

    header: dict[str, Any]
    data: CopiedFile
    start: int
    end: int
    marks: Mapping[Relation, bytes]
    labels: list[Term]

    def lists(self) -> tuple[Triple, ...]:
        """The OWL list axioms of the index."""
        return saved_lists(self.data, self.start, self.end)

    def closed(self, rules: Sequence[DatalogRule]) -> Closed:
        """The index, under these rules. Raises EngineError D5103."""
        try:
            return load_background(rules, self.data, None, self.start, self.end, self.marks)
        except NOT_WRITTEN:
            raise self.data.damaged() from None
        except EngineError as error:
            if error.diagnostics[0].code == "D5101":  # its parts do not know the file
                raise self.data.damaged() from None
            raise


def write(path: str, saved: Saved) -> None:
    """Write a file. Raises EngineError where the disk does not take it."""
    sizes = {relation: len(bits) for relation, bits in saved.marks.items()}
    header = json.dumps({**saved.header, "marks": sizes}, ensure_ascii=False, separators=(",", ":")).encode()
    parts = [
        [header],
        saved.closed.contents(),
        [b"".join(saved.marks.values())],
        ["\n".join(saved.labels).encode()],
    ]
    version = _MAPPED if saved.closed.index.large else _WHOLE
    digest = blake2b(digest_size=_DIGEST)
    chunks: list[Any] = []
    for number, part in enumerate(parts):
        size = b"%d\n" % sum(memoryview(piece).nbytes for piece in part)
        chunks += [size, *part]
        for piece in (size, *part) if number != _CLOSED or version == _WHOLE else (size,):
            digest.update(piece)
    write_whole(path, [_NAME, version, b"\n", digest.digest(), *chunks])


def read(path: str) -> OpenedBase:
    """Open a file. Raises EngineError D5103, D5104, DataError D2003."""
    damaged = _damaged(path)
    data = CopiedFile(path, damaged)
    end = data.find(b"\n", 0, 64)
    if data[: len(_NAME)] != _NAME or end < 0:
        raise damaged
    version = data[len(_NAME) : end]
    if version not in (_WHOLE, _MAPPED):
        raise EngineError.of(
            "D5104",
            f"`{path}` was saved in another version of the format",
            place=path,
            label=version.decode("ascii", "replace"),
            hint=f"this dotr reads versions up to {int(_MAPPED)}: make the knowledge base again from its "
            "sources",
        )
    start = end + 1 + _DIGEST
    try:
        places = sized(data, start, len(data), _PARTS)
        digest = blake2b(digest_size=_DIGEST)
        at = start
        for number, (first, last) in enumerate(places):
            digest.update(data[at : first if number == _CLOSED and version == _MAPPED else last])
            at = last
        if digest.digest() != data[end + 1 : start]:
            raise damaged
        texts = [
            b"" if number == _CLOSED else data[first:last] for number, (first, last) in enumerate(places)
        ]
        header = json.loads(texts[0])
        json.dumps(header, ensure_ascii=False).encode()  # UnicodeEncodeError: half a character
        if not _is_header(header):
            raise damaged
        labels = texts[3].decode()
    except (ValueError, RecursionError):
        raise damaged from None
    marks: dict[Relation, bytes] = {}
    at = 0
    for relation, size in header.pop("marks").items():
        marks[relation] = texts[2][at : at + size]
        at += size
    if at != len(texts[2]):
        raise damaged
    return OpenedBase(header, data, *places[_CLOSED], marks, labels.split("\n") if labels else [])


def _is_header(found: object) -> TypeGuard[dict[str, Any]]:
    """Whether this is a header with everything in it."""
    if not isinstance(found, dict):
        return False
    strings: dict[str, Any] = {key: found.get(key) for key in ("entailment", "base", "time_unit")}
    numbers = [found.get("calls"), *_values(found.get("marks"))]
    until = found.get("until")
    return (
        all(isinstance(value, str) for value in (*strings.values(), *_values(found.get("prefixes"))))
        and _is_iri(strings["base"])
        and all(map(_FITS_BRACKETS.fullmatch, found["prefixes"].values()))
        and all(map(_PREFIX.fullmatch, found["prefixes"]))
        and all(type(value) is int and value >= 0 for value in numbers)
        and all(type(found.get(key)) is bool for key in ("datatypes", "strict", "exact"))
        and found.get("integer", 0) in (None, True, False)
        and type(found.get("now", "")) in (int, type(None))
        and _are(found.get("rules"), str)
        and isinstance(until, list)
        and all(
            isinstance(row, list) and len(row) == 4 and _are(row[:3], str) and type(row[3]) is int
            for row in until
        )
    )


_FITS_BRACKETS = regex(r"[^\x00-\x20<>\"{}|^`\\]*")
"""An IRI as it stands in Turtle, be it relative."""
_PREFIX = regex(r"[^\s:<>]*")


def _is_iri(text: str) -> bool:
    """Whether a text can be the base of others."""
    try:
        ox.NamedNode(text)
    except ValueError:
        return False
    return True


def _values(found: object) -> list[object]:
    """The values of an object of JSON; None, which nothing may be, for something else."""
    return list(found.values()) if isinstance(found, dict) else [None]


def _are(found: object, kind: type) -> bool:
    return isinstance(found, list) and all(isinstance(one, kind) for one in found)


def _damaged(path: str) -> EngineError:
    return EngineError.of(
        "D5103",
        f"`{path}` is not a saved knowledge base, or a damaged one",
        place=path,
        hint="make it again from its sources, and save it again",
    )

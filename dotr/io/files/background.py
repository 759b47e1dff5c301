"""Background documents: the RDF that holds at every instant.

Place:   read once, when a program is deployed; the triples go to enrich.py.
Method:  every file is one document: Turtle, N-Triples, RDF/XML, JSON-LD (no remote contexts), `.gz` of any.
         Its blank nodes are labelled by the hash of its content and their order of appearance, so that two
         files never join through `_:b0` and every run agrees. Relative IRIs are resolved as in the stream
         (`--base`), never against a path, so that `<#roomA>` is one thing in background and stream.
"""

from __future__ import annotations

from collections.abc import Sequence

from dotr.errors import DataError, Diagnostic
from dotr.io.decode.documents import (
    MAX_DOCUMENT,
    STREAM_BASE,
    Format,
    content_hash,
    decode,
    format_of,
    parse_triples,
    read_bytes,
    unknown_format,
)
from dotr.io.files.sources import resolve
from dotr.rdf.blanks import label_background
from dotr.rdf.terms import Triple


def read_background(paths: Sequence[str], base: str = STREAM_BASE, limit: int = MAX_DOCUMENT) -> list[Triple]:
    """The triples of all files below `paths`, canonical, without repeats, in the order of the files.

    Raises DataError: D2003, D2008, D2009, D2010 for a stream where a background is wanted, and what parsing
    says.
    """
    triples: dict[Triple, None] = {}
    for path in resolve(paths):
        format_ = format_of(path)
        if format_ is None:
            raise unknown_format(path)
        if format_ in (Format.JSONLINES, Format.PARQUET):
            raise DataError(
                Diagnostic(
                    "D2010",
                    f"`{path}` is a stream, no background",
                    place=path,
                    hint="give it as a SOURCE; a background has no time",
                )
            )
        content = read_bytes(path, limit)
        parsed = parse_triples(decode(content, path), format_, path, base)
        if any(s[0] == "_" or o[0] == "_" for s, _p, o in parsed):
            parsed = label_background(parsed, content_hash(content))
        triples.update(dict.fromkeys(parsed))
    return list(triples)

"""A closed background as bytes: its index, and further rows kept beside it.

Place:   under closing.py, which defines the parts.
Method:  a line with the version, then five parts, each after a line with its size. Rows are lines; terms
         contain neither tabs nor line ends.
Bad input: D5101 damaged, or of another version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dotr.rdf.mapped_columns import Content, damaged
from dotr.rdf.terms import Term

_MAGIC = b"dotr closed 2\n"
_PARTS = 5


def contents(index: Sequence[Any], *others: Iterable[Iterable[Term]]) -> list[Any]:
    """The parts to write, in order: the bytes of an index, and rows."""
    found = [_MAGIC, b"%d\n" % sum(memoryview(part).nbytes for part in index), *index]
    for some in others:
        text = "\n".join("\t".join(row) for row in some).encode()
        found += [b"%d\n" % len(text), text]
    return found


def places(data: Content, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """The ranges of the parts in `data[start:end]`. Raises EngineError D5101."""
    found: list[tuple[int, int]] = []
    at, end = start + len(_MAGIC), len(data) if end is None else end
    try:
        if data[start:at] != _MAGIC:
            raise ValueError
        while at < end:
            first = data.find(b"\n", at, at + 20) + 1
            at = first + int(data[at:first])
            found.append((first, at))
        if len(found) != _PARTS or at != end:
            raise ValueError
    except ValueError:
        raise damaged() from None
    return found


def rows(data: Content, place: tuple[int, int]) -> list[list[Term]]:
    """The rows of a part."""
    text = data[place[0] : place[1]].decode()
    return [line.split("\t") for line in text.split("\n")] if text else []

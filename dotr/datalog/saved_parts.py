"""A closed background as bytes: its index, and further rows kept beside it.

Place:   under closing.py, which defines the parts.
Method:  a line with the version, a hash, then five parts, each after a line with its size. The hash is of all
         that but the index, which has its own. Rows are lines; terms contain neither tabs nor line ends.
Bad input: D5101 damaged, or of another version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from dotr.rdf.checked_blocks import Content, refused, sized
from dotr.rdf.terms import Term

_MAGIC = b"dotr closed 3\n"
_BEFORE = b"dotr closed 2\n"
"""The version without a hash."""

_DIGEST = 16
_PARTS = 5


def contents(index: Sequence[Any], *others: Iterable[Iterable[Term]]) -> list[Any]:
    """The parts to write, in order: the bytes of an index, and rows."""
    size = b"%d\n" % sum(memoryview(part).nbytes for part in index)
    rest = []
    for some in others:
        text = "\n".join("\t".join(row) for row in some).encode()
        rest += [b"%d\n" % len(text), text]
    return [_MAGIC, _hash([size, *rest]), size, *index, *rest]


def places(data: Content, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """The ranges of the parts in `data[start:end]`. Raises EngineError D5101."""
    at, end = start + len(_MAGIC), len(data) if end is None else end
    magic = data[start:at]
    if magic not in (_MAGIC, _BEFORE):
        raise refused(data)
    first = at + _DIGEST if magic == _MAGIC else at
    try:
        found = sized(data, first, end, _PARTS)
    except ValueError:
        raise refused(data) from None
    index = found[0]
    if magic == _MAGIC and _hash([data[first : index[0]], data[index[1] : end]]) != data[at:first]:
        raise refused(data)
    return found


def rows(data: Content, place: tuple[int, int], length: int | None = None) -> list[list[Term]]:
    """The rows of a part, of `length` terms where that is known. Raises EngineError D5101."""
    try:
        text = data[place[0] : place[1]].decode()
    except UnicodeDecodeError:
        raise refused(data) from None
    found = [line.split("\t") for line in text.split("\n")] if text else []
    if length is not None and any(len(row) != length for row in found):
        raise refused(data)
    return found


def _hash(parts: Iterable[bytes]) -> bytes:
    found = blake2b(digest_size=_DIGEST)
    for part in parts:
        found.update(part)
    return found.digest()

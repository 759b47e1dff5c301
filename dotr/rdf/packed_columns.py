"""A small background as bytes: loaded at once, into dicts.

Place:   background.py uses this format up to a size; a large one is mapped (mapped_columns.py).
Method:  a hash, the terms, and per predicate both columns as positions of terms: keys with one value and the
         values, then keys with several, their counts, and the values.
Bad input: D5101 damaged, or of another version.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from dotr.rdf.checked_blocks import damaged
from dotr.rdf.terms import Term

if TYPE_CHECKING:
    from dotr.rdf.background import Column

Loaded: TypeAlias = "tuple[Column, bool]"
"""A column, and whether a key of it has several values."""

_MAGIC = b"dotr background 1\n"


def contents(
    forward: Mapping[Term, Column], backward: Mapping[Term, Column], terms: Iterable[Term]
) -> list[bytes]:
    """The parts to write, in order."""
    numbers: dict[Term, int] = {term: i for i, term in enumerate(terms)}
    parts = [array("I", [len(forward)]).tobytes()]
    for predicate, column in forward.items():
        parts.append(array("I", [numbers[predicate]]).tobytes())
        parts += _save_column(column, numbers)
        parts += _save_column(backward[predicate], numbers)
    text = "\n".join(numbers).encode()
    body = b"%d %d\n" % (len(numbers), len(text)) + text + b"".join(parts)
    return [_MAGIC, blake2b(body, digest_size=16).digest(), body]


def columns(view: memoryview) -> Iterator[tuple[Term, Loaded, Loaded]]:
    """Each predicate with its columns, by subject and by object. Raises EngineError D5101."""
    head = len(_MAGIC) + 16
    body = view[head:]
    if (
        bytes(view[: len(_MAGIC)]) != _MAGIC
        or blake2b(body, digest_size=16).digest() != view[head - 16 : head]
    ):
        raise damaged()
    try:
        yield from _columns(body)
    except (ValueError, IndexError):  # a hash that is right, over what was never written
        raise damaged() from None


def _columns(body: memoryview) -> Iterator[tuple[Term, Loaded, Loaded]]:
    line = bytes(body[:40]).index(b"\n")
    count, size = map(int, bytes(body[:line]).split())
    text = str(body[line + 1 : line + 1 + size], "utf-8")
    terms = text.split("\n") if count else []
    reader = _SavedReader(body[line + 1 + size :], terms)
    for _ in range(reader.numbers(1)[0]):
        yield terms[reader.numbers(1)[0]], reader.column(), reader.column()


def _save_column(column: Column, numbers: Mapping[Term, int]) -> list[bytes]:
    """Single values first, then keys with several: keys, values; keys, counts, values."""
    bare = [(key, value) for key, value in column.items() if isinstance(value, str)]
    lists = [(key, value) for key, value in column.items() if not isinstance(value, str)]
    number = numbers.__getitem__
    several = array("I", (number(value) for _, values in lists for value in sorted(values)))
    return [
        array("I", [len(bare), len(lists), len(several)]).tobytes(),
        array("I", map(number, map(itemgetter(0), bare))).tobytes(),
        array("I", map(number, map(itemgetter(1), bare))).tobytes(),
        array("I", map(number, map(itemgetter(0), lists))).tobytes(),
        array("I", [len(values) for _, values in lists]).tobytes(),
        several.tobytes(),
    ]


class _SavedReader:
    """Owns a position in the saved bytes."""

    def __init__(self, data: memoryview, terms: list[Term]) -> None:
        self._data = data
        self._at = 0
        self._terms = terms

    def numbers(self, count: int) -> array[int]:
        found = array("I")
        end = self._at + count * found.itemsize
        found.frombytes(self._data[self._at : end])
        self._at = end
        return found

    def column(self) -> Loaded:
        bare, lists, several = self.numbers(3)
        term = self._terms.__getitem__
        keys = map(term, self.numbers(bare))
        column: Column = dict(zip(keys, map(term, self.numbers(bare)), strict=True))
        keys = map(term, self.numbers(lists))
        counts = self.numbers(lists)
        values = tuple(map(term, self.numbers(several)))
        if sum(counts) != several or min(counts, default=2) < 2:
            raise ValueError
        at = 0
        for key, count in zip(keys, counts, strict=True):
            column[key] = values[at : at + count]
            at += count
        return column, lists > 0

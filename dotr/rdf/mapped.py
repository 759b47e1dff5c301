"""A large background as a file of sorted arrays, mapped and shared by all processes of a machine.

Place:   written and opened by index.py, whose columns are then of this kind instead of dicts. The owner of
         the file maps it (io/rules_and_background.py); the page cache holds it once for all readers. index.py
         and enrich/closing.py refuse damaged bytes by the same blocks.
Method:  a dictionary of terms in code point order; per predicate and direction a compressed sparse matrix
         with rows in hash order of their keys, and the start of each bucket: a key is found by one hash and
         one or two comparisons. Lookups, misses included, are cached in the column, which is a dict, within a
         limit for all columns together. Changed values stay in that dict and hide those of the file.
         Blocks: one hash per block of bytes, tested when something of the block is first read. A block is
         noted as sound together with the one after it, so that whatever is shorter than a block needs the
         note of its first byte alone, whichever blocks it lies in. What is not in memory yet (`Filled`) is
         brought there before it is tested.
File:    `MAGIC`, a hash of the head, head, body. The head is `_HEAD`, for each predicate five numbers (its
         term, keys and values forward, keys and values backward), and a hash of each block of the body. The
         body: offsets of the terms, their text, and for each column offsets of its buckets, the keys, offsets
         of their values (if a key has several), the values. Numbers have the machine's format, which the head
         records. The format before this one had one hash of everything instead of those of blocks: all of it
         is read at once.
Why not: bisection: twenty comparisons for a million keys. Arrow or numpy: they are good at whole columns, but
         reading one number from a memoryview takes a fraction of the time. One hash of everything: the file
         would be read whole when it is opened. No hash: damage would become an answer.
Bad input: D5101 damaged, or of another version.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate
from mmap import mmap
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias
from zlib import crc32

from msgspec import Struct

from dotr.errors import EngineError
from dotr.rdf.terms import Term

if TYPE_CHECKING:
    from dotr.rdf.index import Column

BLOCK: Final = 14
"""The size of a block as a power of two: 16 KiB."""

_SIZE: Final = 1 << BLOCK
_SUM: Final = 8


class Filled(Protocol):
    """A file in memory of this process alone, brought there as it is read (io/rules_and_background.py).
    Slices and `find` bring what they read.
    """

    memory: mmap

    def __len__(self) -> int: ...

    def __getitem__(self, place: slice, /) -> bytes: ...

    def find(self, what: bytes, first: int, last: int, /) -> int: ...

    def fill(self, first: int, last: int) -> None:
        """Bring `memory[first:last]`. Raises EngineError."""

    def damaged(self) -> EngineError:
        """What to raise where it is not what was written."""


Content: TypeAlias = bytes | mmap | Filled
"""Saved bytes: read, mapped, or brought as they are read."""


def damaged() -> EngineError:
    return EngineError.of(
        "D5101", "a saved background is damaged or of another version", hint="close it again"
    )


def refused(content: Content) -> EngineError:
    """What to raise for this content."""
    return damaged() if isinstance(content, bytes | mmap) else content.damaged()


class CheckedBlocks:
    """Owns which blocks of `data[start:end]` were tested. `sums`: their hashes; None: all are tested already.

    `memory`: the bytes; read only what was tested. `sound`: by block, whether it and the next one are sound.
    """

    __slots__ = ("_lock", "_source", "_sums", "_tested", "memory", "sound", "start", "stop")

    def __init__(self, data: Content, start: int, end: int, sums: bytes | None) -> None:
        self._source = data
        self.memory: bytes | mmap = data if isinstance(data, bytes | mmap) else data.memory
        self.start, self.stop = start, end
        count = _blocks(end - start)
        self._sums = sums or b""
        self._tested = bytearray(b"\1" if sums is None else b"\0") * count
        self.sound = bytearray(b"\1" if sums is None else b"\0") * (count + 1)
        self.sound[count] = 1
        self._lock = Lock()

    def damaged(self) -> EngineError:
        return refused(self._source)

    def test(self, block: int) -> None:
        """Test a block and the next one. Raises EngineError D5101, IndexError where there is none."""
        with self._lock:
            self.sound[block]  # IndexError
            for number in (block, block + 1):
                if number < len(self._tested) and not self._tested[number]:
                    first = self.start + (number << BLOCK)
                    last = min(first + _SIZE, self.stop)
                    if not isinstance(self._source, bytes | mmap):
                        self._source.fill(first, last)
                    found = _sum(memoryview(self.memory)[first:last])
                    if found != self._sums[number * _SUM : (number + 1) * _SUM]:
                        raise self.damaged()
                    self._tested[number] = 1
            self.sound[block] = 1

    def need(self, first: int, last: int) -> None:
        """Test what has the bytes from `first` to `last` of the blocks. Raises EngineError D5101."""
        sound = self.sound
        block = first >> BLOCK
        if block < 0 or last > self.stop - self.start:
            raise self.damaged()
        while block <= last >> BLOCK:
            if not sound[block]:
                self.test(block)
            block += 1

    def need_all(self) -> None:
        """Test all blocks."""
        self.need(0, self.stop - self.start)


def sized(data: Content, at: int, end: int, count: int) -> list[tuple[int, int]]:
    """The ranges of so many parts in `data[at:end]`, each after a line with its size. Raises ValueError where
    there are no such parts.
    """
    found: list[tuple[int, int]] = []
    while at < end and len(found) < count:
        first = data.find(b"\n", at, min(at + 20, end)) + 1
        size = data[at : first - 1]
        if not size.isdigit():
            raise ValueError
        at = first + int(size)
        found.append((first, at))
    if len(found) != count or at != end:
        raise ValueError
    return found


def sums_size(size: int) -> int:
    """How many bytes the hashes of so many bytes take."""
    return _blocks(size) * _SUM


def sums_of(parts: Iterable[Any]) -> bytes:
    """The hashes of the blocks of these bytes, one after the other."""
    return b"".join(map(_sum, _cut(parts)))


def _cut(parts: Iterable[Any]) -> Iterator[Any]:
    """Bytes in blocks."""
    rest = bytearray()
    for part in parts:
        view = memoryview(part).cast("B") if memoryview(part).nbytes else memoryview(b"")
        at = 0
        if rest:
            at = _SIZE - len(rest)
            rest += view[:at]
            if len(rest) < _SIZE:
                continue
            yield rest
            rest = bytearray()
        while at + _SIZE <= len(view):
            yield view[at : at + _SIZE]
            at += _SIZE
        rest += view[at:]
    if rest:
        yield rest


def _sum(block: Any) -> bytes:
    return blake2b(block, digest_size=_SUM).digest()


def _blocks(size: int) -> int:
    return -(-size >> BLOCK)


MAGIC: Final = b"dotr background 3\n"
BEFORE: Final = b"dotr background 2\n"
"""The format without hashes of blocks."""

DIGEST: Final = 16

_HEAD: Final = struct.Struct("=QQQQ")  # the order of bytes, terms, bytes of their text, predicates
_ORDER: Final = 0x0102030405060708
_PREDICATE: Final = 5  # numbers in the head for each
_MOST: Final = 2**32

REMEMBERED: Final = 100_000
"""The limit of terms that lookups of one file cache: about 35 MB."""

_SPREAD: Final = 1_000
"""More values of a key are read on demand, and not cached."""

_MANY: Final = 4_096
"""So many numbers are tested at once when all are gone through."""

_WORDS: Final = BLOCK - 2
"""How many numbers a block has, as a power of two."""

_BEGINNINGS: Final = '<"_'
"""How a term begins."""


class MappedValues(Sequence[Term]):
    """Many values of one key, in code point order, read from the file on demand."""

    __slots__ = ("_file", "_first", "_last")

    def __init__(self, file: _File, first: int, last: int) -> None:
        self._file, self._first, self._last = file, first, last

    def __len__(self) -> int:
        return self._last - self._first

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return tuple(self)[at]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return self._file.at((self._first if at >= 0 else self._last) + at)

    def __iter__(self) -> Iterator[Term]:
        return self._file.terms(self._first, self._last)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # like the mutable kind of values


class _File:
    """Owns the open parts of one file, and how much its lookups may still cache.

    `begins`: the offset of each term in the text; `text`: its place in `data`; `numbers`: of all columns.
    `sound_offsets`, `sound_text` and `sound_numbers` note the blocks of each that were tested; `several`: how
    many offsets a block has, as a power of two. `room`: how many more terms may be cached.
    """

    __slots__ = (
        "_numbers",
        "_offsets",
        "_text",
        "begins",
        "columns",
        "data",
        "numbers",
        "room",
        "several",
        "sound_numbers",
        "sound_offsets",
        "sound_text",
        "text",
    )

    def __init__(
        self, offsets: CheckedBlocks, text: CheckedBlocks, numbers: CheckedBlocks, wide: bool
    ) -> None:
        self.data = text.memory
        self._offsets, self._text, self._numbers = offsets, text, numbers
        self.sound_offsets, self.sound_text, self.sound_numbers = offsets.sound, text.sound, numbers.sound
        whole = memoryview(self.data)
        self.begins = whole[offsets.start : offsets.stop].cast("Q" if wide else "I")
        self.several = BLOCK - (3 if wide else 2)
        self.text = text.start
        self.numbers = whole[numbers.start : numbers.stop].cast("I")
        self.room = REMEMBERED
        self.columns: list[MappedColumn] = []

    def term(self, number: int) -> Term:
        begins = self.begins
        try:
            if not self.sound_offsets[number >> self.several]:
                self._offsets.test(number >> self.several)
            first, last = begins[number], begins[number + 1] - 1
            if last - first >> BLOCK or not self.sound_text[first >> BLOCK]:
                self._text.need(first, last)
            at = self.text
            term = self.data[at + first : at + last].decode()
            if term[0] in _BEGINNINGS:
                return term
        except (IndexError, UnicodeDecodeError):
            pass
        raise self.damaged()

    def damaged(self) -> EngineError:
        return self._text.damaged()

    def test_offset(self, number: int) -> None:
        """Test where a term is. Raises EngineError D5101, as `test_text` and `test_number`, or IndexError."""
        self._offsets.test(number >> self.several)

    def test_text(self, first: int, last: int) -> None:
        self._text.need(first, last)

    def test_number(self, place: int) -> None:
        self._numbers.test(place >> _WORDS)

    def at(self, place: int) -> Term:
        """The term of the number at a place."""
        try:
            if not self.sound_numbers[place >> _WORDS]:
                self.test_number(place)
            return self.term(self.numbers[place])
        except IndexError:
            raise self.damaged() from None

    def terms(self, first: int, last: int) -> Iterator[Term]:
        """The terms of the numbers from one place to another, as they are asked for."""
        for begin in range(first, last, _MANY):
            end = min(begin + _MANY, last)
            self._numbers.need(4 * begin, 4 * end)
            yield from map(self.term, self.numbers[begin:end])

    def test_all(self) -> None:
        """Test all blocks. Raises EngineError D5101."""
        for blocks in (self._offsets, self._text, self._numbers):
            blocks.need_all()

    def forget(self) -> None:
        """Drop what all lookups cache, except the one that found no room."""
        self.room = REMEMBERED - 1
        for column in self.columns:
            column.forget()


class MappedColumn(dict[Term, Any]):
    """A column in a file: a dict of look-ups (None for a miss) and of changes.

    Reads like the dict of a column, except that `column[key]` is None for a missing key.
    """

    __slots__ = ("_bounds", "_file", "_keys", "_length", "_mask", "_rows", "_starts", "_values", "changed")

    def __init__(self, file: _File, at: int, keys: int, values: int) -> None:
        """`at`: the position of its first number."""
        self._file = file
        self._rows = self._length = keys
        buckets = buckets_for(keys)
        self._mask = buckets - 1
        self._starts = at
        self._keys = at + buckets + 1
        self._bounds = self._keys + keys if values != keys else 0
        self._values = self._keys + keys + (keys + 1 if self._bounds else 0)
        self.changed: dict[Term, None] = {}
        """Keys whose values are not those of the file."""
        file.columns.append(self)

    def __missing__(self, key: Term) -> Any:
        """The value in the file. (All in one function: six calls would take a third of its time.)"""
        file = self._file
        data, text, begins, numbers = file.data, file.text, file.begins, file.numbers
        sound_numbers, sound_offsets, several = file.sound_numbers, file.sound_offsets, file.several
        found: Any = None
        file.room -= 1
        try:
            term = key.encode()
            size = len(term) + 1
            at = self._starts + (crc32(term) & self._mask)
            if not sound_numbers[at >> _WORDS]:
                file.test_number(at)
            for row in range(numbers[at], numbers[at + 1]):
                at = self._keys + row
                if not sound_numbers[at >> _WORDS]:
                    file.test_number(at)
                number = numbers[at]
                if not sound_offsets[number >> several]:
                    file.test_offset(number)
                at = begins[number]
                if begins[number + 1] - at != size:
                    continue
                if size >> BLOCK or not file.sound_text[at >> BLOCK]:
                    file.test_text(at, at + size)
                at += text
                if data[at : at + size - 1] == term:
                    if self._bounds:
                        found = self._of(row)
                        if found.__class__ is not str and len(found) <= _SPREAD:
                            found = tuple(found)
                            file.room -= len(found)
                    else:
                        at = self._values + row
                        if not sound_numbers[at >> _WORDS]:
                            file.test_number(at)
                        found = file.term(numbers[at])
                    break
        except UnicodeEncodeError:  # half a surrogate pair: not in any file
            return None
        except IndexError:
            raise file.damaged() from None
        if file.room < 0:
            file.forget()
        dict.__setitem__(self, key, found)
        return found

    def _of(self, row: int) -> Any:
        file = self._file
        at = (self._bounds or self._values) + row
        if not file.sound_numbers[at >> _WORDS]:
            file.test_number(at)
        if not self._bounds:
            return file.term(file.numbers[at])
        first, last = file.numbers[at], file.numbers[at + 1]
        if last - first == 1:
            return file.at(self._values + first)
        if not 0 < last - first <= len(file.numbers):
            raise file.damaged()
        return MappedValues(file, self._values + first, self._values + last)

    def forget(self) -> None:
        """Drop cached look-ups; changes stay."""
        changed = self.changed
        if not changed:
            dict.clear(self)
            return
        for key in list(dict.keys(self)):
            if key not in changed:
                dict.pop(self, key, None)

    # -- a dict's

    def get(self, key: Term, default: Any = None) -> Any:
        found = self[key]
        return default if found is None else found

    def __contains__(self, key: object) -> bool:
        return self[key] is not None  # type: ignore[index]  # a term

    def __len__(self) -> int:
        return self._length

    def __bool__(self) -> bool:
        return self._length > 0

    def __iter__(self) -> Iterator[Term]:
        changed = self.changed
        for key in self._file_keys():
            if key not in changed:
                yield key
        for key in list(changed):
            if dict.__getitem__(self, key) is not None:
                yield key

    def _file_keys(self) -> Iterator[Term]:
        return self._file.terms(self._keys, self._keys + self._rows)

    def keys(self) -> Any:
        return iter(self)

    def values(self) -> Any:
        return (values for _, values in self.items())

    def items(self) -> Any:
        changed = self.changed
        for row, key in enumerate(self._file_keys()):
            if key not in changed:
                yield key, self._of(row)
        for key in list(changed):
            values = dict.__getitem__(self, key)
            if values is not None:
                yield key, values

    def __setitem__(self, key: Term, values: Any) -> None:
        if self[key] is None:
            self._length += 1
        self.changed[key] = None
        dict.__setitem__(self, key, values)

    def __delitem__(self, key: Term) -> None:
        if self[key] is None:
            raise KeyError(key)
        self._length -= 1
        self.changed[key] = None
        dict.__setitem__(self, key, None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return len(self) == len(other) and all(
            values == (tuple(found) if isinstance(found := other.get(key), MappedValues) else found)
            for key, values in self.items()
        )

    __hash__ = None


def buckets_for(keys: int) -> int:
    """A power of two, about the number of keys."""
    return 1 << max(0, keys - 1).bit_length()


class Opened(Struct, frozen=True):
    """The content of a file: per predicate a column forward and one backward, and the number of triples.

    `columns`: all of them; `whole`: the bytes, of which `file` knows what was tested.
    """

    forward: dict[Term, Column]
    backward: dict[Term, Column]
    sizes: dict[Term, int]
    columns: list[MappedColumn]
    file: _File
    whole: memoryview

    def content(self, forward: Mapping[Term, Column]) -> memoryview | None:
        """The bytes, if nothing has changed: no value, and no new predicate in `forward`. Raises EngineError
        D5101 if they differ from what was written.
        """
        if any(column.changed for column in self.columns) or 2 * len(forward) != len(self.columns):
            return None
        if bytes(self.whole[: len(MAGIC)]) != MAGIC:  # the format before: it is written in that of today
            return None
        self.file.test_all()
        return self.whole


def opened(data: Content, start: int = 0, end: int | None = None) -> Opened:
    """The columns in a file that `contents` wrote into `data[start:end]`. O(predicates), and a hash of each
    block of the file is read.

    Raises EngineError D5101 for bytes that are not such a file, are truncated, or were written on another
    kind of machine; later, where a block that is read for the first time is damaged.
    """
    end = len(data) if end is None else end
    magic = bytes(data[start : start + len(MAGIC)])
    before = magic == BEFORE
    at = start + len(MAGIC) + (2 if before else 1) * DIGEST
    if end < at + _HEAD.size or (magic != MAGIC and not before):
        raise refused(data)
    order, terms, text, predicates = _HEAD.unpack(data[at : at + _HEAD.size])
    size = _HEAD.size + predicates * _PREDICATE * 8
    if order != _ORDER or at + size > end:
        raise refused(data)
    head = data[at : at + size]
    rows = array("Q", head[_HEAD.size :])
    width = _width(text)
    columns = [
        (rows[i + j], rows[i + j + 1]) for i in range(0, len(rows), _PREDICATE) for j in (1, 3)
    ]  # keys, values
    parts = [(terms + 1) * width, text, 4 * sum(_numbers(keys, values) for keys, values in columns)]
    body = at + size + (0 if before else sum(map(sums_size, parts)))
    if body + sum(parts) != end:
        raise refused(data)
    sums = data[at + size : body]
    if _hash([head, sums]) != data[at - DIGEST : at]:
        raise refused(data)
    if before and _hash([data[at - DIGEST : end]]) != data[at - 2 * DIGEST : at - DIGEST]:
        raise refused(data)
    blocks = []
    begin, first = body, 0
    for length in parts:
        last = first + sums_size(length)
        blocks.append(CheckedBlocks(data, begin, begin + length, None if before else sums[first:last]))
        begin, first = begin + length, last
    file = _File(blocks[0], blocks[1], blocks[2], width == 8)
    found = Opened({}, {}, {}, file.columns, file, memoryview(blocks[0].memory)[start:end])
    place = 0
    for i in range(0, len(rows), _PREDICATE):
        number, *sizes = rows[i : i + _PREDICATE]
        predicate = file.term(number)
        found.sizes[predicate] = sizes[1]
        for direction, keys, values in (
            (found.forward, sizes[0], sizes[1]),
            (found.backward, sizes[2], sizes[3]),
        ):
            direction[predicate] = MappedColumn(file, place, keys, values)
            place += _numbers(keys, values)
    return found


def _hash(parts: Iterable[Any]) -> bytes:
    found = blake2b(digest_size=DIGEST)
    for part in parts:
        found.update(part)
    return found.digest()


def _width(text: int) -> int:
    return 4 if text < _MOST else 8


def _numbers(keys: int, values: int) -> int:
    """The size of a column in numbers."""
    return buckets_for(keys) + 1 + keys + (keys + 1 if values != keys else 0) + values


# -- writing


def contents(
    forward: Mapping[Term, Column], backward: Mapping[Term, Column], size: Callable[[Term], int]
) -> list[Any]:
    """The parts of a file, in order; equal for equal sets of triples.

    `size`: the number of triples of a predicate.
    """
    predicates = sorted(predicate for predicate, column in forward.items() if column)
    every: set[Term] = set(predicates)
    for predicate in predicates:
        every.update(iter(forward[predicate]))
        every.update(iter(backward[predicate]))
    terms = sorted(every)
    del every
    texts = [term.encode() for term in terms]
    text = b"\n".join([*texts, b""])
    begins = array("I" if _width(len(text)) == 4 else "Q", accumulate((len(t) + 1 for t in texts), initial=0))
    hashes = array("I", map(crc32, texts))
    del texts
    numbers = dict(zip(terms, range(len(terms)), strict=True))
    head = [array("Q", [])]
    body: list[Any] = [begins, text]
    for predicate in predicates:
        rows = [numbers[predicate]]
        for index in (forward, backward):
            column = index[predicate]
            rows += [len(column), size(predicate)]
            body += _column(column, size(predicate), terms, numbers, hashes)
        head.append(array("Q", rows))
    summary = _HEAD.pack(_ORDER, len(terms), len(text), len(predicates)) + b"".join(head)
    sums = sums_of([begins]) + sums_of([text]) + sums_of(body[2:])
    return [MAGIC, _hash([summary, sums]), summary, sums, *body]


def _column(
    column: Column, size: int, terms: list[Term], numbers: Mapping[Term, int], hashes: array[int]
) -> list[array[int]]:
    mask = buckets_for(len(column)) - 1
    low = _MOST - 1
    order = sorted([(hashes[number] & mask) << 32 | number for number in map(numbers.__getitem__, column)])
    starts = array("I", bytes(4 * (mask + 2)))
    for row, place in enumerate(order, 1):
        starts[(place >> 32) + 1] = row
    starts = array("I", accumulate(starts, max))
    keys = array("I", [place & low for place in order])
    del order
    found: Iterable[Any] = map(column.__getitem__, map(terms.__getitem__, keys))
    if size == len(column):
        return [starts, keys, array("I", map(numbers.__getitem__, found))]
    bounds, values = array("I", [0]), array("I")
    for several in found:
        if several.__class__ is str:
            values.append(numbers[several])
        else:
            values.extend(sorted(map(numbers.__getitem__, several)))
        bounds.append(len(values))
    return [starts, keys, bounds, values]

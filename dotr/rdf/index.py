"""The index of the background, and the overlay that each instant puts on it.

Place:   the background is the triples that hold beside those of an instant, closed and indexed: built by
         enrich/ when a program is deployed, changed only by its maintenance, never by an instant; read and
         its overlay filled by the functions that joins/ compiles; saved in a deployment as bytes under the
         hash of its content.
Method:  vertical partitioning (Abadi et al. 2007): per predicate, subject → object(s) and object →
         subject(s). A single value is stored bare, several as a sorted tuple; many values that change are the
         keys of a dict, so that one is added or removed in O(1). There is no set per key. Equal terms of
         loaded data are one string. The predicates of a subject or object are indexed on demand.
         Overlay: per relation the new rows of an instant, the rows of the background that do not hold now,
         and hash indexes for the columns that plans need. `forget` empties only what was touched, so an
         instant costs as much as its own triples, and the background needs no deletion.
         Saving: a small background is packed bytes, loaded at once into dicts: a hash, the terms, and per
         predicate both columns as positions of terms (keys with one value and the values, then keys with
         several, their counts, and the values). A large one is a file to be mapped, which the columns read
         (mapped.py): a process that loads it needs no memory for it.
Why not: a dict of sets (five times the memory), or integers (strings hash once and need no dictionary). A
         mapped file for all: a first lookup takes ten times that of a dict.
Bad input: D5101 damaged, or of another version.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import Any, TypeAlias

from dotr.rdf.mapped import (
    BEFORE,
    MAGIC,
    Content,
    MappedColumn,
    MappedValues,
    Opened,
    contents,
    damaged,
    opened,
)
from dotr.rdf.terms import Term, Triple

Loaded: TypeAlias = "tuple[Column, bool]"
"""A column, and whether a key of it has several values."""

_MAGIC = b"dotr background 1\n"


def packed_contents(
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


Many: TypeAlias = Term | tuple[Term, ...] | MappedValues | dict[Term, None]
"""One term, several distinct ones in code point order, or many that change, as the keys of a dict."""

Column: TypeAlias = dict[Term, Many]

LARGE = 200_000
"""The number of triples from which on an index is saved as a file to be mapped."""

_SCAN = 8  # up to here a linear search in a tuple beats bisection
_MOST = 16  # a tuple with more values becomes a dict
_LEAST = 8  # a dict with no more values becomes a tuple


def many(values: Many | None) -> Collection[Term]:
    """The terms, to be iterated. For many that change, the dict itself: copy it to keep it."""
    if values is None:
        return ()
    return (values,) if values.__class__ is str else values


def has(values: tuple[Term, ...] | MappedValues | dict[Term, None], term: Term) -> bool:
    """Whether the term is among several values. O(log n)."""
    if values.__class__ is dict or len(values) <= _SCAN:
        return term in values
    at = bisect_left(values, term)  # type: ignore[arg-type]  # a tuple
    return at < len(values) and values[at] == term  # type: ignore[index]  # a tuple


class Background:
    """Owns the indexes. `forward`: predicate → subject → objects, `backward`: with objects first.

    Readers may keep the inner dicts: `extend`, `insert` and `remove` change them in place.
    """

    __slots__ = (
        "_file",
        "_from",
        "_into",
        "_sizes",
        "backward",
        "count",
        "forward",
        "several_backward",
        "several_forward",
    )

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        self.forward: dict[Term, Column] = {}
        self.backward: dict[Term, Column] = {}
        self.several_forward: set[Term] = set()
        self.several_backward: set[Term] = set()
        self.count = 0
        self._file: Opened | None = None
        self._sizes: dict[Term, int] = {}
        self._from: dict[Term, tuple[Term, ...]] | None = None
        self._into: dict[Term, tuple[Term, ...]] | None = None
        self.extend(triples)

    def extend(self, triples: Iterable[Triple]) -> None:
        """Add triples (repeats are allowed). O(triples), plus sorting if a key has several values."""
        terms = self._terms()
        one = terms.setdefault
        forward: dict[Term, Any] = self.forward
        backward: dict[Term, Any] = self.backward
        open_forward: list[tuple[Term, Term]] = []  # (predicate, key) whose values are a list for now
        open_backward: list[tuple[Term, Term]] = []
        try:
            for subject, predicate, object_ in triples:
                subject, object_ = one(subject, subject), one(object_, object_)
                column = forward.get(predicate)
                if column is None:
                    predicate = one(predicate, predicate)
                    column = forward[predicate] = {}
                    backward[predicate] = {}
                values = column.get(subject)
                if values is None:
                    column[subject] = object_
                elif values.__class__ is list:
                    values.append(object_)
                elif values != object_:
                    column[subject] = [*many(values), object_]
                    open_forward.append((predicate, subject))
                column = backward[predicate]
                values = column.get(object_)
                if values is None:
                    column[object_] = subject
                elif values.__class__ is list:
                    values.append(subject)
                elif values != subject:
                    column[object_] = [*many(values), subject]
                    open_backward.append((predicate, object_))
        finally:
            _settle(forward, open_forward, self.several_forward)
            _settle(backward, open_backward, self.several_backward)
        self._from = self._into = None
        self._sizes.clear()
        self.count = sum(map(self.size, forward))

    def insert(self, subject: Term, predicate: Term, object_: Term) -> bool:
        """Add a triple; returns whether it is new. O(1)."""
        size = self.size(predicate)
        column = self.column(predicate)
        values = column.get(subject)
        if values is None:
            column[subject] = object_
            if self._from is not None:
                self._from[subject] = (*self._from.get(subject, ()), predicate)
        elif values == object_ if isinstance(values, str) else has(values, object_):
            return False
        else:
            column[subject] = _with(values, object_)
            self.several_forward.add(predicate)
        column = self.backward[predicate]
        values = column.get(object_)
        if values is None:
            column[object_] = subject
            if self._into is not None:
                self._into[object_] = (*self._into.get(object_, ()), predicate)
        else:
            column[object_] = _with(values, subject)
            self.several_backward.add(predicate)
        self._sizes[predicate] = size + 1
        self.count += 1
        return True

    def remove(self, subject: Term, predicate: Term, object_: Term) -> bool:
        """Remove a triple; returns whether it existed. O(1), plus once the number of values of a key."""
        if (subject, predicate, object_) not in self:
            return False
        self._sizes[predicate] = self.size(predicate) - 1
        for index, predicates, key, value in (
            (self.forward, self._from, subject, object_),
            (self.backward, self._into, object_, subject),
        ):
            values = index[predicate][key]
            if values.__class__ is not str:
                index[predicate][key] = _without(values, value)
                continue
            del index[predicate][key]
            if predicates is not None:
                others = tuple(other for other in predicates.pop(key) if other != predicate)
                if others:
                    predicates[key] = others
        self.count -= 1
        return True

    def insert_all(self, predicate: Term, rows: Collection[tuple[Term, Term]]) -> None:
        """Add distinct new rows (subject, object) of a predicate. O(rows)."""
        if self._from is not None or self._into is not None:
            for subject, object_ in rows:
                self.insert(subject, predicate, object_)
            return
        self._sizes[predicate] = self.size(predicate) + len(rows)
        self.count += len(rows)
        forward, backward = self.column(predicate), self.backward[predicate]
        several_forward = several_backward = False
        for subject, object_ in rows:
            values = forward.get(subject)
            if values is None:
                forward[subject] = object_
            elif values.__class__ is dict:
                values[object_] = None
            else:
                several_forward = True
                forward[subject] = _with(values, object_)
            values = backward.get(object_)
            if values is None:
                backward[object_] = subject
            elif values.__class__ is dict:
                values[subject] = None
            else:
                several_backward = True
                backward[object_] = _with(values, subject)
        if several_forward:
            self.several_forward.add(predicate)
        if several_backward:
            self.several_backward.add(predicate)

    def remove_all(self, predicate: Term, rows: Collection[tuple[Term, Term]]) -> None:
        """Remove distinct existing rows (subject, object) of a predicate. O(rows)."""
        if self._from is not None or self._into is not None:
            for subject, object_ in rows:
                self.remove(subject, predicate, object_)
            return
        self._sizes[predicate] = self.size(predicate) - len(rows)
        self.count -= len(rows)
        forward, backward = self.forward[predicate], self.backward[predicate]
        for subject, object_ in rows:
            values = forward[subject]
            if values.__class__ is str:
                del forward[subject]
            elif values.__class__ is dict and len(values) > _LEAST + 1:
                del values[object_]
            elif values.__class__ is tuple and 2 < len(values) <= _MOST:  # like `_without`, without a call
                at = values.index(object_)
                forward[subject] = values[:at] + values[at + 1 :]
            else:
                forward[subject] = _without(values, object_)
            values = backward[object_]
            if values.__class__ is str:
                del backward[object_]
            elif values.__class__ is dict and len(values) > _LEAST + 1:
                del values[subject]
            elif values.__class__ is tuple and 2 < len(values) <= _MOST:
                at = values.index(subject)
                backward[object_] = values[:at] + values[at + 1 :]
            else:
                backward[object_] = _without(values, subject)

    def column(self, predicate: Term) -> Column:
        """subject → objects of a predicate, which is created if missing, also in `backward`."""
        found = self.forward.get(predicate)
        if found is None:
            found = self.forward[predicate] = {}
            self.backward[predicate] = {}
        return found

    def _terms(self) -> dict[Term, Term]:
        """Every term → the one string that represents it."""
        terms: dict[Term, Term] = {}
        for predicate, column in self.forward.items():
            terms[predicate] = predicate
            if isinstance(column, MappedColumn):
                continue  # which holds no strings
            terms.update(zip(column, column, strict=True))
            terms.update((term, term) for term in self.backward[predicate])
        return terms

    def __len__(self) -> int:
        return self.count

    def __contains__(self, triple: Triple) -> bool:
        subject, predicate, object_ = triple
        values = self.forward.get(predicate, _EMPTY).get(subject)
        if values is None:
            return False
        return values == object_ if values.__class__ is str else has(values, object_)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Triple]:
        """All triples, by predicate and subject as first seen."""
        for predicate, column in list(self.forward.items()):  # other readers may make empty columns
            for subject, values in column.items():
                for object_ in many(values):
                    yield subject, predicate, object_

    def size(self, predicate: Term) -> int:
        """The number of triples with the predicate."""
        found = self._sizes.get(predicate)
        if found is None:
            column = self.forward.get(predicate)
            if column is None:
                return 0
            found = len(column)
            if predicate in self.several_forward:
                found = sum(1 if values.__class__ is str else len(values) for values in column.values())
            self._sizes[predicate] = found
        return found

    def predicates_from(self, subject: Term) -> tuple[Term, ...]:
        """The predicates of a subject. The first call indexes all subjects, except those of a mapped file."""
        if self.mapped:
            return tuple(predicate for predicate, column in self.forward.items() if subject in column)
        if self._from is None:
            self._from = _by_key(self.forward)
        return self._from.get(subject, ())

    def predicates_into(self, object_: Term) -> tuple[Term, ...]:
        """The predicates of an object. The first call indexes all objects, except those of a mapped file."""
        if self.mapped:
            return tuple(predicate for predicate, column in self.backward.items() if object_ in column)
        if self._into is None:
            self._into = _by_key(self.backward)
        return self._into.get(object_, ())

    @property
    def mapped(self) -> bool:
        """Whether it was opened from a file and keeps reading it."""
        return self._file is not None

    def reopened(self) -> Background:
        """The same triples in the order that loading the saved bytes would yield. If small: this object."""
        return Background.load(self.save()) if self.large else self

    @property
    def large(self) -> bool:
        """Whether `contents` is to be mapped."""
        return self.count >= LARGE

    def save(self) -> bytes:
        """The index as bytes."""
        return b"".join(self.contents())

    def contents(self) -> list[Any]:
        """The parts of `save`, in order. A large index is written to be mapped. One that is mapped and
        unchanged is the bytes of its file: raises EngineError D5101 if these are damaged.
        """
        if self._file is not None and (content := self._file.content(self.forward)) is not None:
            return [content]
        if self.large:
            return contents(self.forward, self.backward, self.size)
        terms = self._terms()
        for column in (*self.forward.values(), *self.backward.values()) if self.mapped else ():
            terms.update(zip(column, column, strict=True))  # it was large: a mapped column holds no strings
        return packed_contents(self.forward, self.backward, terms)

    @classmethod
    def load(cls, data: Content, start: int = 0, end: int | None = None) -> Background:
        """The index that `save` wrote, in `data[start:end]`. Raises EngineError D5101 for other bytes. A
        large one keeps reading `data`.
        """
        if data[start : start + len(MAGIC)] in (MAGIC, BEFORE):
            return cls._opened(data, start, end)
        found = cls()
        for predicate, forward, backward in columns(memoryview(data[start:end])):
            found.forward[predicate], several = forward
            if several:
                found.several_forward.add(predicate)
            found.backward[predicate], several = backward
            if several:
                found.several_backward.add(predicate)
        found.count = sum(map(found.size, found.forward))
        return found

    @classmethod
    def _opened(cls, data: Content, start: int, end: int | None) -> Background:
        file = opened(data, start, end)
        found = cls()
        found.forward, found.backward, found._sizes = file.forward, file.backward, file.sizes
        found.count = sum(file.sizes.values())
        found._file = file
        for predicate, size in file.sizes.items():
            if len(file.forward[predicate]) != size:
                found.several_forward.add(predicate)
            if len(file.backward[predicate]) != size:
                found.several_backward.add(predicate)
        return found


_EMPTY: Column = {}


def content_hash(triples: Collection[Triple]) -> str:
    """A name for a set of triples: 32 hexadecimal digits, independent of order and repeats."""
    total = 0
    for triple in set(triples):
        total += int.from_bytes(blake2b("\n".join(triple).encode(), digest_size=16).digest(), "little")
    return f"{total % (1 << 128):032x}"


def _with(values: Any, value: Term) -> Many:
    """The values, of any kind, with a new one. A dict is changed in place. (`__class__`: this runs for every
    changed row, and isinstance would take a third of it.)
    """
    kind = values.__class__
    if kind is str:
        return (values, value) if values < value else (value, values)
    if kind is dict:
        values[value] = None
        return values  # type: ignore[no-any-return]  # a dict of terms
    if len(values) >= _MOST:
        found = dict.fromkeys(values)
        found[value] = None
        return found
    ordered = [*values, value]
    ordered.sort()  # nearly in order: faster than to look for the place
    return tuple(ordered)


def _without(values: Any, value: Term) -> Many:
    """The values without one. A dict is changed in place."""
    left: Many
    if values.__class__ is tuple and len(values) <= _MOST:
        at = values.index(value)
        left = values[:at] + values[at + 1 :] if len(values) > 2 else values[1 - at]
    else:
        left = values if values.__class__ is dict else dict.fromkeys(values)
        del left[value]
        if len(left) <= _LEAST:
            left = tuple(sorted(left))
    return left


def _settle(index: dict[Term, Any], opened: Iterable[tuple[Term, Term]], several: set[Term]) -> None:
    """Sort values that are still a list."""
    for predicate, key in opened:
        column = index[predicate]
        several.add(predicate)
        column[key] = tuple(sorted(set(column[key])))


def _by_key(index: Mapping[Term, Column]) -> dict[Term, tuple[Term, ...]]:
    found: dict[Term, tuple[Term, ...]] = {}
    for predicate, column in index.items():
        single = (predicate,)
        for key in column:
            before = found.get(key)
            found[key] = single if before is None else before + single
    return found


Row: TypeAlias = Any
"""The key of a row: a bare term for one column, else the tuple of its columns."""

Index: TypeAlias = dict[Any, list[Any]]
"""Value of the indexed column (a tuple, if several) → the other column of two, else whole rows."""


class Changes:
    """Owns what changes in one relation at one instant.

    `added` maps new rows to their annotation (None in the plain case), `removed` holds rows of the background
    that do not hold. Readers may keep the dicts: `forget` empties them in place. `readers` are not called
    here; the code that runs queries finds in it what this relation wakes. `idle`: not touched yet.
    """

    __slots__ = ("_clear", "added", "arity", "extended", "idle", "indexes", "readers", "relation", "removed")

    def __init__(self, relation: str, arity: int) -> None:
        self.relation = relation
        self.arity = arity
        self.added: dict[Row, Any] = {}
        self.removed: dict[Row, None] = {}
        self.indexes: dict[tuple[int, ...], Index] = {}
        self.readers: list[Any] = []
        self.idle = True
        self._clear: tuple[Callable[[], None], ...] = (self.added.clear,)
        self.extended: Callable[[Changes, tuple[int, ...]], None] | None = None

    def index(self, columns: tuple[int, ...]) -> Index:
        """The index on these columns, ascending and not all of them; made on the first call.

        Existing rows are entered, and `extended` is called: code that adds rows must know of the index.
        """
        found = self.indexes.get(columns)
        if found is None:
            found = self.indexes[columns] = {}
            self._clear = (*self._clear, found.clear)
            self.fill(columns)
            if self.extended is not None:
                self.extended(self, columns)
        return found

    def fill(self, columns: tuple[int, ...]) -> None:
        """Rebuild an index from the rows added."""
        index = self.indexes[columns]
        index.clear()
        for row in self.added:
            _enter(index, columns, self.arity, (row,) if self.arity == 1 else row)

    def enter(self, row: tuple[str, ...]) -> None:
        """Put a row that is in `added` into the indexes; generated code does the same inline."""
        for columns, index in self.indexes.items():
            _enter(index, columns, self.arity, row)

    def forget(self) -> None:
        """Empty it. Code that removes rows clears `idle`; generated code that only adds does not."""
        for clear in self._clear:
            clear()
        if not self.idle:
            self.removed.clear()
            self.idle = True


def _enter(index: Index, columns: tuple[int, ...], arity: int, row: tuple[str, ...]) -> None:
    key = row[columns[0]] if len(columns) == 1 else tuple(row[i] for i in columns)
    index.setdefault(key, []).append(row[1 - columns[0]] if arity == 2 else row)


class Overlay:
    """Owns the changes of all relations; `touched` lists those that have any, in order of the first."""

    __slots__ = ("relations", "touched")

    def __init__(self) -> None:
        self.relations: dict[str, Changes] = {}
        self.touched: list[Changes] = []

    def changes(self, relation: str, arity: int) -> Changes:
        """The changes of a relation, always the same object."""
        found = self.relations.get(relation)
        if found is None:
            found = self.relations[relation] = Changes(relation, arity)
        return found

    def add(self, relation: str, row: tuple[str, ...], annotation: object = None) -> None:
        """Add a row directly (tests, small tables); it must be neither here nor in the background."""
        changes = self.changes(relation, len(row))
        if changes.idle:
            changes.idle = False
            self.touched.append(changes)
        changes.added[row[0] if len(row) == 1 else row] = annotation
        changes.enter(row)

    def remove(self, relation: str, row: Sequence[str]) -> None:
        """Remove a row of the background from this instant."""
        changes = self.changes(relation, len(row))
        if changes.idle:
            changes.idle = False
            self.touched.append(changes)
        changes.removed[row[0] if len(row) == 1 else tuple(row)] = None

    def forget(self) -> None:
        """Empty everything. O(what was touched)."""
        for changes in self.touched:
            changes.forget()
        self.touched.clear()

"""The background: the triples that hold beside those of an instant, closed and indexed.

Place:   built by datalog/ when a program is deployed, changed only by its maintenance, never by an instant;
         read by the functions that joins/ compiles; saved in a deployment as bytes under the hash of its
         content.
Method:  vertical partitioning (Abadi et al. 2007): per predicate, subject → object(s) and object →
         subject(s). A single value is stored bare, several as a sorted tuple; many values that change are the
         keys of a dict, so that one is added or removed in O(1). There is no set per key. Equal terms of
         loaded data are one string. The predicates of a subject or object are indexed on demand. A large
         background is saved as a file to be mapped, and its columns read that (mapped_columns.py): a process
         that loads it needs no memory for it.
Why not: a dict of sets (five times the memory), or integers (strings hash once and need no dictionary). A
         mapped file for all: a first lookup takes ten times that of a dict.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, TypeAlias

from dotr.rdf import packed_columns
from dotr.rdf.checked_blocks import Content
from dotr.rdf.mapped_columns import BEFORE, MAGIC, MappedColumn, MappedValues, Opened, contents, opened
from dotr.rdf.terms import Term, Triple

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
        return packed_columns.contents(self.forward, self.backward, terms)

    @classmethod
    def load(cls, data: Content, start: int = 0, end: int | None = None) -> Background:
        """The index that `save` wrote, in `data[start:end]`. Raises EngineError D5101 for other bytes. A
        large one keeps reading `data`.
        """
        if data[start : start + len(MAGIC)] in (MAGIC, BEFORE):
            return cls._opened(data, start, end)
        found = cls()
        for predicate, forward, backward in packed_columns.columns(memoryview(data[start:end])):
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

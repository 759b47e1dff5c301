"""Keys of columns: which terms `=` can equate, and how to find them.

Place:   used by detect/columns.py for keys that are typed literals; other terms are their own key.
Method:  `=` is not identity (1 = 1.0, and times with different zones) and across numeric types not even
         transitive: two different decimals can equal the same double (language.md, section 1). So facts are
         kept under their exact terms, exact terms under a class that equal terms share (for numbers the
         nearest double), and `=` itself decides.
Why not: the class as key: in a column that keeps one fact per key, the last of 2^53 + 1 would hide that of
         2^53.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable
from decimal import Decimal
from typing import Generic, TypeAlias, TypeGuard, TypeVar

from dotr.expressions.operators import times_equal as equal
from dotr.rdf.terms import XSD, Term
from dotr.rdf.values import DateTime, Duration, Opaque, Single, decode, to_double
from dotr.regex import regex

Key: TypeAlias = Term | tuple[Term, ...]
"""One key is its term, several are a tuple; no key is ()."""

PartialKey: TypeAlias = Term | tuple[Term | None, ...] | None
"""A computed key: parts may be unbound."""

B = TypeVar("B")

_TIMES = frozenset(
    XSD + name for name in ("date", "time", "gYearMonth", "gYear", "gMonthDay", "gDay", "gMonth")
)
_DATE = XSD + "date"
_OFFSET = regex(r"[+-][0-9]{2}:[0-9]{2}$")


def has_peers(term: Term) -> bool:
    """Whether `=` may equate the term with a different one: not for IRIs, blank nodes and plain strings."""
    return term[0] == '"' and term[-1] == ">"


def equality_class(term: Term, floats: bool = False) -> object:
    """A class shared by all terms that `=` may equate with this one.

    In rules a dayTimeDuration equals its seconds. `floats`: if xsd:floats occur, which equal many doubles
    each, numbers are one class.
    """
    if not has_peers(term):
        return term
    value: object = decode(term)
    if isinstance(value, bool):
        return term
    if isinstance(value, Duration):
        if value.months:
            return "duration"
        value = value.seconds
    if isinstance(value, (int, Decimal, float)):
        if floats:
            return "number"
        return to_double(value)
    if isinstance(value, DateTime):
        return ("instant", value.ticks)
    if isinstance(value, Opaque):
        if value.datatype == _DATE and not _OFFSET.search(value.lexical):
            return term  # days of UTC or without a zone start at other times than those of other zones
        if value.datatype in _TIMES:
            return value.datatype
    return term


def key_class(key: Key, floats: bool = False) -> object:
    """`equality_class` of a key, part by part."""
    if isinstance(key, str):
        return equality_class(key, floats)
    return tuple([equality_class(term, floats) for term in key])


def has_float(key: Key) -> bool:
    """Whether a part is an xsd:float, which only casts and chained rules can make."""
    terms = (key,) if isinstance(key, str) else key
    return any(has_peers(term) and isinstance(decode(term), Single) for term in terms)


def equal_terms(one: Term, other: Term) -> bool:
    """Whether `one = other` is true (an error is not)."""
    return equal(decode(one), decode(other)) is True


def equal_keys(one: Key, other: Key) -> bool:
    """Whether `=` holds part by part."""
    if isinstance(one, str):
        return isinstance(other, str) and equal_terms(one, other)
    return all(map(equal_terms, one, other))


class KeyIndex(Generic[B]):
    """Owns the buckets of a column by key.

    `table` holds every key whose class has no second one, so that a hit is the whole answer, as is a miss of
    a key without peers. Everything else needs `find`.
    """

    __slots__ = ("_floats", "_odd", "_single", "table")

    def __init__(self) -> None:
        self.table: dict[Key, B] = {}
        self._single: dict[object, Key] = {}  # class → its only key, for keys that may have peers
        self._odd: dict[object, dict[Key, B]] = {}  # class → several keys, which are not in `table`
        self._floats = False

    def __len__(self) -> int:
        return len(self.table) + sum(map(len, self._odd.values()))

    def items(self) -> ItemsView[Key, B] | list[tuple[Key, B]]:
        """All keys and buckets; do not keep it across changes."""
        if not self._odd:
            return self.table.items()
        return [*self.table.items(), *(item for bucket in self._odd.values() for item in bucket.items())]

    def exact(self, key: Key | PartialKey) -> B | None:
        """The bucket of exactly this key."""
        if not _complete(key):
            return None
        found = self.table.get(key)
        if found is None and self._odd and _peers(key):
            found = self._odd.get(key_class(key, self._floats), {}).get(key)
        return found

    def find(self, key: Key | PartialKey) -> list[B]:
        """The buckets of all keys that `=` equates with `key`; a key with an unbound part equals none."""
        if not _complete(key) or not _peers(key):
            found = self.table.get(key) if _complete(key) else None
            return [] if found is None else [found]
        if has_float(key):
            self._meet_floats()
        kind = key_class(key, self._floats)
        if kind in self._odd:
            return [bucket for other, bucket in self._odd[kind].items() if equal_keys(other, key)]
        only = self._single.get(kind)
        return [self.table[only]] if only is not None and equal_keys(only, key) else []

    def put(self, key: Key | PartialKey, bucket: B) -> bool:
        """Set the bucket of a key, new or not. Returns False for a key that equals nothing (unbound, NaN)."""
        if not _complete(key):
            return False
        if not _peers(key):
            self.table[key] = bucket
            return True
        if not equal_keys(key, key):
            return False
        if has_float(key):
            self._meet_floats()
        kind = key_class(key, self._floats)
        only = self._single.get(kind)
        if kind in self._odd:
            self._odd[kind][key] = bucket
        elif only is None or only == key:
            self._single[kind] = key
            self.table[key] = bucket
        else:
            del self._single[kind]
            self._odd[kind] = {only: self.table.pop(only), key: bucket}
        return True

    def drop(self, keys: Iterable[Key]) -> None:
        for key in keys:
            if self._single or self._odd:
                self.remove(key)
            else:  # none has peers
                del self.table[key]

    def remove(self, key: Key) -> None:
        if not _peers(key):
            del self.table[key]
            return
        kind = key_class(key, self._floats)
        if kind not in self._odd:
            del self.table[key], self._single[kind]
            return
        several = self._odd[kind]
        del several[key]
        if len(several) == 1:
            del self._odd[kind]
            self.put(*several.popitem())

    def _meet_floats(self) -> None:
        """Treat numbers as one class from now on."""
        if self._floats:
            return
        self._floats = True
        moved = [(self._single[kind], self.table.pop(self._single[kind])) for kind in self._single]
        moved += [item for several in self._odd.values() for item in several.items()]
        self._single.clear()
        self._odd.clear()
        for key, bucket in moved:
            self.put(key, bucket)


def _complete(key: Key | PartialKey) -> TypeGuard[Key]:
    return key is not None and (isinstance(key, str) or None not in key)


def _peers(key: Key) -> bool:
    return has_peers(key) if isinstance(key, str) else any(map(has_peers, key))

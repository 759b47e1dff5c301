"""One index for the comparisons of many queries: which queries want a row in which `?v` has this value.

Place:   between a shape's rows and its members (shapes.py, core/extract.py).
Method:  `<` and similar: constants of one type of value are sorted, and those that a value passes are a
         prefix or a suffix, found by bisection with the operator itself, so that its typing and rounding are
         exact. `=`: constants are hashed by a key that equal values share (for numbers the nearest single),
         and the operator decides among the few found. Types without an order (durations, unknown types) and
         `!=` are lists. A known value costs one table look-up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Final

from dotr.expressions.arithmetic import to_single
from dotr.expressions.value_operators import Truth, at_most, equal, less
from dotr.rdf.memo import Memo
from dotr.rdf.terms import Term
from dotr.rdf.values import (
    DateTime,
    Duration,
    LanguageString,
    Opaque,
    Resource,
    Single,
    Value,
    decode,
)

Members = tuple[int, ...]
"""Places of members, ascending."""


def _differs(a: Value, b: Value) -> Truth:
    same = equal(a, b)
    return None if same is None else not same


HOLDS: Final[dict[str, Callable[[Value, Value], Truth]]] = {
    "=": equal,
    "!=": _differs,
    "<": less,
    ">": lambda a, b: less(b, a),
    "<=": at_most,
    ">=": lambda a, b: at_most(b, a),
}
"""`value operator constant`: True, False, or None for an error."""


class ComparisonIndex:
    """Owns the constants of one comparison, one per member. `members`: the table of `passing` and `any`."""

    def __init__(self, operator: str, constants: Sequence[Term]) -> None:
        holds = HOLDS[operator]
        if operator == "=":
            find = _equality(constants)
        elif operator == "!=":
            find = _listed(holds, [(decode(c), i) for i, c in enumerate(constants)])
        else:
            find = _thresholds(operator, constants)
        self.members: Memo[Term, Members] = Memo(find, limit=max(256, (1 << 21) // max(1, len(constants))))

    def passing(self, term: Term | None) -> Members:
        """The members whose comparison is true of a value; empty for an unbound one."""
        return () if term is None else self.members[term]

    def any(self, term: Term) -> bool:
        """Whether there is such a member: a guard for the join."""
        return self.members[term] != ()


def _listed(
    holds: Callable[[Value, Value], Truth], constants: Iterable[tuple[Value, int]]
) -> Callable[[Term], Members]:
    pairs = list(constants)

    def find(term: Term) -> Members:
        value = decode(term)
        return tuple(member for constant, member in pairs if holds(value, constant) is True)

    return find


def _thresholds(operator: str, constants: Sequence[Term]) -> Callable[[Term], Members]:
    """Sorted constants per type. Those passed are a prefix for `>` and `>=`, a suffix for `<` and `<=`."""
    holds = HOLDS[operator]
    upward = operator in (">", ">=")
    sorted_: dict[object, list[tuple[Value, int]]] = {}
    rest: list[tuple[Value, int]] = []
    for member, constant in enumerate(constants):
        value = decode(constant)
        kind = _order(value)
        if kind is None or value != value:  # NaN has no place in the order
            rest.append((value, member))
        else:
            sorted_.setdefault(kind, []).append((value, member))
    for pairs in sorted_.values():
        pairs.sort(key=lambda pair: (_key(pair[0]), pair[1]))
    listed = _listed(holds, rest)

    def find(term: Term) -> Members:
        value = decode(term)
        found: list[int] = list(listed(term)) if rest else []
        for pairs in sorted_.values():
            if upward:
                end = bisect_left(pairs, True, key=lambda pair: holds(value, pair[0]) is not True)
                found += [member for _, member in pairs[:end]]
            else:
                start = bisect_left(pairs, True, key=lambda pair: holds(value, pair[0]) is True)
                found += [member for _, member in pairs[start:]]
        found.sort()
        return tuple(found)

    return find


def _order(value: Value) -> object:
    """What the constants of one sorted list have in common; None without an order."""
    if isinstance(value, DateTime):
        return DateTime, value.zoned
    kind = type(value)
    return kind if kind in (int, Decimal, float, Single, str) else None


def _key(value: Value) -> object:
    return value.ticks if isinstance(value, DateTime) else value


def _equality(constants: Sequence[Term]) -> Callable[[Term], Members]:
    buckets: dict[object, list[tuple[Value, int]]] = {}
    for member, constant in enumerate(constants):
        value = decode(constant)
        buckets.setdefault(_bucket(value), []).append((value, member))

    def find(term: Term) -> Members:
        value = decode(term)
        candidates = buckets.get(_bucket(value), ())
        return tuple(member for constant, member in candidates if equal(value, constant) is True)

    return find


def _bucket(value: Value) -> object:
    """Equal values have equal buckets: for numbers the nearest single, which no promotion separates."""
    if isinstance(value, (Resource, LanguageString)):
        return value.term
    if isinstance(value, DateTime):
        return DateTime, value.ticks
    if isinstance(value, Duration):
        return Duration, value.months, value.ticks
    if isinstance(value, Opaque):
        return Opaque
    if isinstance(value, (bool, str)):
        return type(value), value
    return to_single(value)

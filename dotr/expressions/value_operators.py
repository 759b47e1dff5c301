"""Operators on values: equality, order, effective boolean value, arithmetic of dates and durations.

Place:   between arithmetic.py and evaluate.py. Truth values are True, False, and None for an error.
Method:  SPARQL 1.1, sec. 17.2 to 17.4 (durations: durations.py), with the answers of the full engine where
         the standard leaves a choice or the engine differs: `=` of an ill-typed or unknown literal with
         another literal is an error, as is `<` of booleans and of a number with NaN; for any term and itself
         `<` is false and `<=` true.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from dotr.expressions import arithmetic, durations
from dotr.expressions.arithmetic import is_number, promoted
from dotr.expressions.dialect import ask
from dotr.rdf.terms import FALSE, TRUE, Term
from dotr.rdf.values import (
    DateTime,
    Duration,
    LanguageString,
    Opaque,
    Resource,
    Single,
    Value,
    decode,
    encode,
)

Truth = bool | None


def effective(value: Value | None) -> Truth:
    """The effective boolean value (sec. 17.2.2) of booleans, numbers, plain strings; else None."""
    kind = type(value)
    if kind is bool:
        return value  # type: ignore[return-value]  # a bool
    if kind is str:
        return value != ""
    if is_number(value):
        return value != 0 and value == value
    return None


_EQUAL_OTHERWISE = frozenset({Opaque, DateTime, Duration})


def equal(a: Value, b: Value) -> Truth:
    """`a = b`."""
    left, right = type(a), type(b)
    if left is right and left not in _EQUAL_OTHERWISE:
        return a == b
    if left is Resource or right is Resource:
        return False
    if left is Opaque or right is Opaque:
        return a == b or truth_of(ask("?a = ?b", encode(a), encode(b)))
    if left is Duration and right is Duration:
        return durations.equal(a, b)  # type: ignore[arg-type]  # durations
    if left is DateTime and right is DateTime:
        assert isinstance(a, DateTime)
        assert isinstance(b, DateTime)
        return a.ticks == b.ticks and a.zoned == b.zoned
    pair = promoted(a, b)
    return pair[0] == pair[1] if pair is not None else False


_PLAINLY_ORDERED = frozenset({int, str, Decimal})


def less(a: Value, b: Value) -> Truth:
    """`a < b`; `b > a` is the same."""
    left, right = type(a), type(b)
    if left is right and left in _PLAINLY_ORDERED:
        return a < b  # type: ignore[operator]  # of one ordered type
    pair = promoted(a, b)
    if pair is not None:
        x, y, _ = pair
        if x == x and y == y:
            return bool(x < y)
        return False if x != x and y != y and left is right else None
    if left is DateTime and right is DateTime:
        assert isinstance(a, DateTime)
        assert isinstance(b, DateTime)
        if a.zoned == b.zoned:
            return a.ticks < b.ticks
    if left is Duration and right is Duration:
        return durations.less(a, b)  # type: ignore[arg-type]  # durations
    return _compared("?a < ?b", a, b, False)


def at_most(a: Value, b: Value) -> Truth:
    """`a <= b`; `b >= a` is the same."""
    left, right = type(a), type(b)
    if left is right and left in _PLAINLY_ORDERED:
        return a <= b  # type: ignore[operator]  # of one ordered type
    pair = promoted(a, b)
    if pair is not None:
        x, y, _ = pair
        if x == x and y == y:
            return bool(x <= y)
        return True if x != x and y != y and left is right else None
    if left is DateTime and right is DateTime:
        assert isinstance(a, DateTime)
        assert isinstance(b, DateTime)
        if a.zoned == b.zoned:
            return a.ticks <= b.ticks
    if left is Duration and right is Duration:
        return durations.at_most(a, b)  # type: ignore[arg-type]  # durations
    return _compared("?a <= ?b", a, b, True)


def _compared(question: str, a: Value, b: Value, same: bool) -> Truth:
    """The order of dates and of what has none; `same`: the answer for equal terms."""
    if type(a) is type(b) and a == b:
        return same
    if type(a) in _ORDERED_ELSEWHERE and type(b) in _ORDERED_ELSEWHERE:
        return truth_of(ask(question, encode(a), encode(b)))
    return None


_ORDERED_ELSEWHERE = frozenset({DateTime, Opaque, LanguageString})
_TEMPORAL = frozenset({DateTime, Duration, Opaque})
_DATED = frozenset({DateTime, Duration, Opaque, int, Decimal, float, Single})


def add(a: Value, b: Value) -> Value | None:
    """`a + b`, also of dates and durations, in either order.

    (The full engine adds a duration to a dateTime but not a dateTime to a duration, and first sorts operands
    by the names of variables.)
    """
    result: Value | None = arithmetic.add(a, b)
    if result is None:
        result = _dated("?a + ?b", a, b)
    return _dated("?a + ?b", b, a) if result is None else result


def subtract(a: Value, b: Value) -> Value | None:
    """`a - b`, also of dates and durations."""
    result = arithmetic.subtract(a, b)
    return result if result is not None else _dated("?a - ?b", a, b)


def multiply(a: Value, b: Value) -> Value | None:
    """`a * b`, also of a duration and a number."""
    result: Value | None = arithmetic.multiply(a, b)
    return durations.multiply(a, b) if result is None else result


def divide(a: Value, b: Value) -> Value | None:
    """`a / b`, also of a duration by a number or a duration."""
    result: Value | None = arithmetic.divide(a, b)
    return durations.divide(a, b) if result is None else result


def negate(value: Value) -> Value | None:
    """`-value`, also of durations."""
    result = arithmetic.negate(value)
    if result is None and isinstance(value, (Duration, Opaque)):
        return value_of(ask("-(?a)", value.term))
    return result


def plus(value: Value) -> Value | None:
    """`+value`: the value itself if it is a number or a duration."""
    if is_number(value):
        return value
    return value_of(ask("+(?a)", value.term)) if isinstance(value, (Duration, Opaque)) else None


def _dated(expression: str, a: Value, b: Value) -> Value | None:
    left, right = type(a), type(b)
    if (left in _TEMPORAL or right in _TEMPORAL) and left in _DATED and right in _DATED:
        return value_of(ask(expression, encode(a), encode(b)))
    return None


def truth_of(term: Term | None) -> Truth:
    return True if term == TRUE else False if term == FALSE else None


def value_of(term: Term | None) -> Value | None:
    return None if term is None else decode(term)


def _not_equal(a: Value, b: Value) -> Truth:
    same = equal(a, b)
    return None if same is None else not same


COMPARISONS: dict[str, Callable[[Value, Value], Truth]] = {
    "=": equal,
    "!=": _not_equal,
    "<": less,
    ">": lambda a, b: less(b, a),
    "<=": at_most,
    ">=": lambda a, b: at_most(b, a),
}
ARITHMETIC: dict[str, Callable[..., Value | None]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "u-": negate,
    "u+": plus,
}

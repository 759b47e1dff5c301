"""Arithmetic and comparison of numbers as the full engine does them.

Place:   below value_operators.py and functions.py; works on decoded values (rdf/values.py) of any kind, and
         returns None if one is not a number.
Method:  SPARQL 1.1, sec. 17.3: operands are promoted to the wider type, integer < decimal < float < double.
         Integers are exact; decimals have 18 fractional digits, where a product or quotient is cut towards
         zero. A quotient of integers is a decimal; a division by an exact zero is an error (None). A result
         of more than DIGITS digits before the point raises Overlong.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from typing import Any, Final, TypeAlias

from dotr.budget import DIGITS, Overlong
from dotr.rdf.canonical import FRACTION
from dotr.rdf.values import BEYOND, EXACT, TICKS, Number, Single, single, to_double

Operation: TypeAlias = Callable[[Any, Any], Number | None]
"""Two values → the number, None if one is not a number. Raises Overlong."""


_NUMERIC = frozenset({int, Decimal, float, Single})


def is_number(value: object) -> bool:
    return type(value) in _NUMERIC


def to_single(value: Any) -> Single:
    return value if type(value) is Single else single(to_double(value))


def _operation(
    integers: Callable[[int, int], int | Decimal | None],
    decimals: Callable[[Decimal, Decimal], Decimal | None],
    doubles: Callable[[float, float], float],
) -> Operation:
    """An operation on two values of any kind, from its forms for integers, decimals and doubles."""

    def apply(a: Any, b: Any) -> Number | None:
        kind = type(a)
        if kind is not type(b):
            pair = promoted(a, b)
            if pair is None:
                return None
            a, b, kind = pair
        if kind is float:
            return doubles(a, b)
        if kind is int:
            return integers(a, b)
        if kind is Decimal:
            return decimals(a, b)
        return single(doubles(a, b)) if kind is Single else None

    return apply


def _double_quotient(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


add = _operation(lambda a, b: _integer(a + b), lambda a, b: _decimal(EXACT.add(a, b)), operator.add)
subtract = _operation(lambda a, b: _integer(a - b), lambda a, b: _decimal(EXACT.subtract(a, b)), operator.sub)
multiply = _operation(lambda a, b: _integer(a * b), lambda a, b: _product(a, b), operator.mul)
divide = _operation(
    lambda a, b: quotient(a, b),
    lambda a, b: quotient(_scaled(a), _scaled(b)),
    _double_quotient,
)


def negate(value: Any) -> Number | None:
    kind = type(value)
    if kind is int:
        return _integer(-value)
    if kind is Decimal:
        return _decimal(EXACT.minus(value))
    return _floating(-value, kind) if is_number(value) else None


def absolute(value: Any) -> Number | None:
    kind = type(value)
    if kind is int:
        return _integer(abs(value))
    if kind is Decimal:
        return _decimal(EXACT.abs(value))
    return _floating(abs(value), kind) if is_number(value) else None


def ceiling(value: Any) -> Number | None:
    kind = type(value)
    if kind is Decimal:
        return _decimal(value.to_integral_value(ROUND_CEILING))
    return _integral(value, math.ceil)


def floor(value: Any) -> Number | None:
    kind = type(value)
    if kind is Decimal:
        return _decimal(value.to_integral_value(ROUND_FLOOR))
    return _integral(value, math.floor)


def rounded(value: Any) -> Number | None:
    """Round to the nearest integer, a half towards +INF."""
    if type(value) is Decimal:
        return _decimal(EXACT.add(value, _HALF).to_integral_value(ROUND_FLOOR))
    return _integral(value, _round_half_up)


_HALF = Decimal("0.5")


def promoted(a: Any, b: Any) -> tuple[Any, Any, type] | None:
    """Two numbers in their common type, and that type; None unless both are numbers."""
    left, right = type(a), type(b)
    if left is right:
        return (a, b, left) if is_number(a) else None
    if not (is_number(a) and is_number(b)):
        return None
    if left is float or right is float:
        return to_double(a), to_double(b), float
    if left is Single or right is Single:
        return to_single(a), to_single(b), Single
    return Decimal(a), Decimal(b), Decimal


def quotient(numerator: int, denominator: int) -> Decimal | None:
    """The decimal quotient, cut (towards zero) after 18 fractional digits; None for a zero denominator."""
    if denominator == 0:
        return None
    cut = abs(numerator) * TICKS // abs(denominator)
    if (numerator < 0) != (denominator < 0):
        cut = -cut
    return _decimal(EXACT.scaleb(Decimal(cut), -18))


def _scaled(value: Decimal) -> int:
    """A decimal in units of 10⁻¹⁸."""
    return int(EXACT.scaleb(value, 18))


def _product(a: Decimal, b: Decimal) -> Decimal:
    product = EXACT.multiply(a, b)
    exponent = product.as_tuple().exponent
    assert isinstance(exponent, int)
    return _decimal(product if exponent >= -FRACTION else product.quantize(_TICK, ROUND_DOWN, EXACT))


_TICK: Final = Decimal("1E-18")


def _integer(value: int) -> int:
    if _LEAST < value < BEYOND:
        return value
    raise Overlong


def _decimal(value: Decimal) -> Decimal:
    if _LEAST_DECIMAL < value < _BEYOND_DECIMAL:
        return value
    raise Overlong


_LEAST: Final = -BEYOND
_LEAST_DECIMAL, _BEYOND_DECIMAL = Decimal(f"-1E{DIGITS}"), Decimal(f"1E{DIGITS}")


def _floating(value: float, kind: type) -> float:
    return single(value) if kind is Single else value


def _integral(value: Any, step: Callable[[float], int]) -> Number | None:
    """Apply a rounding to an integral value of the same type; the sign of a zero is kept."""
    kind = type(value)
    if kind is int:
        return int(value)
    if not is_number(value):
        return None
    if not math.isfinite(value):
        return _floating(value, kind)
    return _floating(math.copysign(float(step(value)), value), kind)


def _round_half_up(value: float) -> int:
    whole = math.floor(value)
    return whole + 1 if value - whole >= 0.5 else whole

"""Arithmetic at the edges of its types: overflow, promotion, rounding, zeros."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from dotr.expressions import arithmetic as a
from dotr.rdf.values import DECIMAL_MAX, INTEGER_MAX, INTEGER_MIN, Single, single


def test_integers_have_64_bits() -> None:
    assert a.add(INTEGER_MAX - 1, 1) == INTEGER_MAX
    assert a.add(INTEGER_MAX, 1) is None
    assert a.subtract(INTEGER_MIN, 1) is None
    assert a.multiply(2**32, 2**31) is None
    assert a.negate(INTEGER_MIN) is None
    assert a.absolute(INTEGER_MIN) is None
    assert a.absolute(INTEGER_MIN + 1) == INTEGER_MAX


def test_decimals_have_128_bits_and_18_digits() -> None:
    small = Decimal("0.000000001")
    assert a.multiply(small, small) == Decimal("1E-18")
    assert a.multiply(small, Decimal("0.0000000001")) is None
    assert a.multiply(Decimal("0.00000000010"), Decimal("0.0000000100")) == Decimal("1E-18")
    assert a.add(DECIMAL_MAX, DECIMAL_MAX) is None


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        (1, Decimal("0.5"), Decimal),
        (Decimal("0.5"), single(0.5), Single),
        (1, single(0.5), Single),
        (single(0.5), 0.5, float),
        (Decimal("0.5"), 0.5, float),
    ],
)
def test_the_wider_type_wins(left: object, right: object, found: type) -> None:
    for one, other in ((left, right), (right, left)):
        promoted = a.promoted(one, other)
        assert promoted is not None
        assert [type(value) for value in promoted[:2]] == [found, found]
        assert type(a.add(one, other)) is found


def test_what_is_no_number_has_no_sum() -> None:
    assert a.promoted(True, 1) is None
    assert a.promoted("1", 1) is None
    assert a.promoted("1", "1") is None
    assert a.add("a", "b") is None
    assert a.absolute("a") is a.negate(True) is a.rounded("a") is None


def test_a_quotient_is_a_decimal_cut_towards_zero_and_none_by_an_exact_zero() -> None:
    assert a.divide(2, 3) == Decimal("0.666666666666666666")
    assert a.divide(-2, 3) == Decimal("-0.666666666666666666")
    assert type(a.divide(4, 2)) is Decimal
    assert a.divide(1, 0) is None
    assert a.divide(Decimal(1), Decimal("0.0")) is None
    assert a.divide(1.0, 0.0) == math.inf
    assert a.divide(1.0, -0.0) == -math.inf
    nothing = a.divide(0.0, 0.0)
    assert nothing is not None
    assert math.isnan(nothing)


def test_a_half_is_rounded_up_and_the_sign_of_a_zero_stays() -> None:
    assert [a.rounded(Decimal(text)) for text in ("2.5", "-2.5", "-2.6", "2.4")] == [3, -2, -3, 2]
    assert [a.rounded(value) for value in (2.5, -2.5)] == [3.0, -2.0]
    for step, value in ((a.rounded, -0.4), (a.ceiling, -0.5)):
        zero = step(value)
        assert zero == 0
        assert math.copysign(1, float(zero)) == -1
    assert a.ceiling(Decimal("-1.2")) == -1
    assert a.floor(Decimal("-1.2")) == -2
    assert a.floor(math.inf) == math.inf
    assert type(a.floor(single(1.5))) is Single

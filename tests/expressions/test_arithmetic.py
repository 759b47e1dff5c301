"""Arithmetic at the edges of its types: overflow, promotion, rounding, zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from dotr.budget import Overlong
from dotr.expressions import operators as a
from dotr.expressions.functions import CASTS, FUNCTIONS
from dotr.rdf.terms import XSD
from dotr.rdf.values import Resource, Single, single


def test_integers_have_as_many_bits_as_they_need() -> None:
    assert a.add_values(2**63 - 1, 1) == 2**63
    assert a.subtract_values(-(2**63), 1) == -(2**63) - 1
    assert a.multiply_values(2**62, 4) == 2**64
    assert a.negate_value(-(2**63)) == a.absolute(-(2**63)) == 2**63
    assert a.divide_values(10**30 + 1, 2) == Decimal("500000000000000000000000000000.5")


def test_decimals_have_18_digits_behind_the_point_and_any_before_it() -> None:
    small = Decimal("0.000000001")
    assert a.multiply_values(small, small) == Decimal("1E-18")
    assert a.multiply_values(small, Decimal("0.0000000001")) == 0
    assert a.multiply_values(Decimal("-0.0000000015"), Decimal("0.0000000011")) == Decimal("-1E-18")
    assert a.multiply_values(Decimal("0.00000000010"), Decimal("0.0000000100")) == Decimal("1E-18")
    large = Decimal("170141183460469231731.687303715884105727")
    assert a.add_values(large, large) == Decimal("340282366920938463463.374607431768211454")
    assert a.divide_values(0, Decimal("0.5")) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: a.multiply_values(10**2048, 10**2048),
        lambda: a.add_values(10**4096 - 1, 1),
        lambda: a.divide_values(10**4095, Decimal("0.01")),
        lambda: a.multiply_values(Decimal(10**4095), 10),
        lambda: CASTS[f"<{XSD}integer>"]("1" * 5_000),
        lambda: FUNCTIONS["STRDT"].apply("1" * 5_000, Resource(f"<{XSD}decimal>")),
    ],
)
def test_a_number_of_more_than_4096_digits_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(Overlong) as refused:
        make()
    assert refused.value.made == "a number of more than 4,096 digits"
    assert a.subtract_values(10**4096 - 1, 1) == 10**4096 - 2


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("integer", 1e18, 10**18),
        ("integer", 9007199254740991.0, 9007199254740991),
        ("integer", -1e30, -1000000000000000019884624838656),
        ("integer", 2251799813685247.75, 2251799813685247),
        ("integer", math.inf, None),
        ("integer", Decimal("123456789012345678901.5"), 123456789012345678901),
        ("decimal", 1e21, Decimal(10**21)),
        ("decimal", 0.1, Decimal("0.1")),
        ("decimal", 10**30, Decimal(10**30)),
        ("double", 10**400, math.inf),
        ("double", 2**63 + 1, 2.0**63),
        ("boolean", 2**64, True),
        ("boolean", math.nan, False),
        ("integer", "+0018446744073709551616", 2**64),
        ("decimal", "-1000000000000000000000000000000.50", Decimal("-1000000000000000000000000000000.5")),
    ],
)
def test_casts_of_large_numbers(name: str, given: Any, expected: object) -> None:
    assert CASTS[f"<{XSD}{name}>"](given) == expected


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
        assert type(a.add_values(one, other)) is found


def test_what_is_no_number_has_no_sum() -> None:
    assert a.promoted(True, 1) is None
    assert a.promoted("1", 1) is None
    assert a.promoted("1", "1") is None
    assert a.add_values("a", "b") is None
    assert a.absolute("a") is a.negate_value(True) is a.rounded("a") is None


def test_a_quotient_is_a_decimal_cut_towards_zero_and_none_by_an_exact_zero() -> None:
    assert a.divide_values(2, 3) == Decimal("0.666666666666666666")
    assert a.divide_values(-2, 3) == Decimal("-0.666666666666666666")
    assert type(a.divide_values(4, 2)) is Decimal
    assert a.divide_values(1, 0) is None
    assert a.divide_values(Decimal(1), Decimal("0.0")) is None
    assert a.divide_values(1.0, 0.0) == math.inf
    assert a.divide_values(1.0, -0.0) == -math.inf
    nothing = a.divide_values(0.0, 0.0)
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

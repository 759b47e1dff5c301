"""Durations as operands: products, quotients, order, components.

Place:   below value_operators.py and functions.py; works on decoded values (rdf/values.py).
Method:  XPath and XQuery Functions and Operators 3.1, sec. 8: a dayTimeDuration is an exact number of
         seconds, a yearMonthDuration a number of months, and both can be multiplied and divided. Results are
         cut after 18 fractional digits, months rounded. Order is that of XSD 1.1, sec. 3.3.6.2: by the ends
         that two durations have from four dates; where these disagree there is no answer.
Why not: the full engine, which adds and compares durations but neither multiplies nor takes them apart.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from dotr.expressions.arithmetic import is_number
from dotr.rdf.terms import literal_parts
from dotr.rdf.values import (
    DAY_TIME,
    EXACT,
    TICKS,
    YEAR_MONTH,
    DateTime,
    Duration,
    Value,
    duration,
    encode,
)


def multiply(a: Value, b: Value) -> Duration | None:
    """A dayTimeDuration or yearMonthDuration times a number, in either order; None for everything else."""
    if isinstance(b, Duration):
        a, b = b, a
    if not isinstance(a, Duration):
        return None
    factor = exactly(b)
    return None if factor is None else scaled(a, factor)


def divide(a: Value, b: Value) -> Duration | Decimal | None:
    """A duration by a number, or by one of its own datatype: then a decimal. None for everything else."""
    if not isinstance(a, Duration):
        return None
    if isinstance(b, Duration):
        if a.datatype != b.datatype or a.datatype not in (DAY_TIME, YEAR_MONTH):
            return None
        left, right = (a.ticks, b.ticks) if a.datatype == DAY_TIME else (a.months, b.months)
        return None if right == 0 else decimal(Fraction(left, right))
    divisor = exactly(b)
    if divisor == 0:
        return None
    if divisor is None:
        infinite = isinstance(b, float) and b == b
        return scaled(a, Fraction(0)) if infinite else None
    return scaled(a, 1 / divisor)


def scaled(value: Duration, factor: Fraction) -> Duration | None:
    """A duration times a fraction: cut after 18 digits of a second; months to the nearest, a half upwards."""
    if value.datatype == DAY_TIME:
        return duration(0, int(value.ticks * factor), DAY_TIME)
    if value.datatype == YEAR_MONTH:
        return duration(_nearest(value.months * factor), 0, YEAR_MONTH)
    return None


def of_seconds(number: Value) -> Duration | None:
    """A number of seconds as a dayTimeDuration."""
    exact = exactly(number)
    return None if exact is None else duration(0, int(exact * TICKS), DAY_TIME)


def seconds_between(later: DateTime, earlier: DateTime) -> Decimal | None:
    """The exact number of seconds; None if one has a zone and the other none."""
    if later.zoned != earlier.zoned:
        return None
    return EXACT.scaleb(Decimal(later.ticks - earlier.ticks), -18)


def exactly(value: Value) -> Fraction | None:
    """A finite number; a double or float is what its shortest decimal digits say."""
    if isinstance(value, float):
        return Fraction(literal_parts(encode(value))[0]) if isfinite(value) else None
    return Fraction(value) if is_number(value) else None  # type: ignore[arg-type]  # a number


def in_seconds(value: Value) -> Decimal | None:
    """How long a duration without months is; None for everything else."""
    return value.seconds if isinstance(value, Duration) and value.months == 0 else None


def equal(a: Duration, b: Duration) -> bool:
    return a.months == b.months and a.ticks == b.ticks


def less(a: Duration, b: Duration) -> bool | None:
    """Whether `a` is shorter; None where that depends on the months meant."""
    if a.months == b.months:
        return a.ticks < b.ticks
    found = {x < y for x, y in zip(a.ends, b.ends, strict=True)}
    return found.pop() if len(found) == 1 else None


def at_most(a: Duration, b: Duration) -> bool | None:
    """Whether `a` is not longer; None where that depends on the months meant."""
    if a.months == b.months:
        return a.ticks <= b.ticks
    found = {x <= y for x, y in zip(a.ends, b.ends, strict=True)}
    return found.pop() if len(found) == 1 else None


def part(value: Duration, name: str) -> int | Decimal:
    """DAYS, HOURS, MINUTES or SECONDS of what is no months, with the sign of the duration."""
    whole = abs(value.ticks)
    found: Any = {
        "DAYS": whole // (86_400 * TICKS),
        "HOURS": whole // (3_600 * TICKS) % 24,
        "MINUTES": whole // (60 * TICKS) % 60,
        "SECONDS": EXACT.scaleb(Decimal(whole % (60 * TICKS)), -18),
    }[name]
    return -found if value.ticks < 0 and found else found  # type: ignore[no-any-return]  # int or Decimal


def _nearest(value: Fraction) -> int:
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def decimal(value: Fraction) -> Decimal:
    """A fraction as an xsd:decimal, cut after 18 digits."""
    return EXACT.scaleb(Decimal(int(value * TICKS)), -18)

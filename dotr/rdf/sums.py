"""Exact sums: totals that do not depend on order or slicing.

Place:   behind every SUM and AVG: TESLA scopes, Datalog aggregates, embedded queries.
Method:  decimals are added as integers of 10⁻¹⁸, doubles as integers of 2⁻¹⁰⁷⁴, the least positive double
         (Kulisch's long accumulator with Python's integers for a register): both are exact, so `remove` is
         the inverse of `add`, and a total is rounded once, when read (language.md, sec. 1). A mixture with
         doubles is a sum of doubles: beside the exact total there is that of the terms as doubles.
Why not: adding doubles directly, or Neumaier's compensation: the result depends on the order; fractions: a
         gcd in every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, isqrt, ldexp, nan, nextafter
from types import NoneType
from typing import Any

from dotr.budget import Overlong
from dotr.rdf.terms import XSD_DECIMAL, Memo, Term
from dotr.rdf.values import (
    BEYOND,
    DAY_TIME,
    EXACT,
    YEAR_MONTH,
    Duration,
    Single,
    duration,
    encode,
    single,
    to_double,
    values,
)

_SCALE = 10**18
_ULP = 1074
"""2⁻¹⁰⁷⁴ is the least positive double: every double is a whole number of it."""


class ExactSum:
    """Owns what determines sum and mean of a multiset of terms. Add and remove are O(1)."""

    __slots__ = (
        "_as_doubles",
        "_counts",
        "_decimal",
        "_drift",
        "_durations",
        "_integer",
        "_minus_inf",
        "_nan",
        "_plus_inf",
        "_span",
        "size",
    )

    def __init__(self) -> None:
        self.size = 0  # how many terms, errors included
        self._integer = 0  # of integers
        self._decimal = 0  # of decimals, in 10⁻¹⁸
        self._as_doubles = 0  # of all except the integers, each as a double, in 2⁻¹⁰⁷⁴
        self._drift = 0  # what integers gain when each is taken as a double
        self._counts: dict[type, int] = {}
        self._plus_inf = self._minus_inf = self._nan = 0
        self._durations = 0  # how many terms are durations
        self._span = 0  # of them, in ticks of a second or in months: there is no total of both

    def add(self, term: Term | None, times: int = 1) -> None:
        """Add a term `times` times; None is an error, and with one there is no total."""
        self.size += times
        kind, exact, as_double = _NO_NUMBER if term is None else _parts[term]
        if kind is int:
            self._integer += times * exact
            self._drift += times * as_double
        elif kind is Decimal:
            self._decimal += times * exact
            self._as_doubles += times * as_double
        elif kind is float or kind is Single:
            self._as_doubles += times * as_double
            if exact == _NAN:
                self._nan += times
            elif exact == _PLUS_INF:
                self._plus_inf += times
            elif exact == _MINUS_INF:
                self._minus_inf += times
        elif kind is _HugeInteger or kind is _HugeDecimal:  # an infinity in a sum of doubles
            self._decimal += times * exact
            if exact > 0:
                self._plus_inf += times
            else:
                self._minus_inf += times
            kind = Decimal if kind is _HugeDecimal else int
        elif kind is not NoneType:
            self._durations += times
            self._span += times * exact
        self._counts[kind] = self._counts.get(kind, 0) + times

    @classmethod
    def of(cls, terms: Iterable[Term | None]) -> ExactSum:
        """That of some terms; integers, which most are, are added together."""
        found, parts = cls(), _parts
        integers = drift = many = 0
        for term in terms:
            kind, exact, as_double = _NO_NUMBER if term is None else parts[term]
            if kind is int:
                integers += exact
                drift += as_double
                many += 1
            else:
                found.add(term)
        if many:
            found.size += many
            found._integer, found._drift = integers, drift
            found._counts[int] = found._counts.get(int, 0) + many
        return found

    def remove(self, term: Term | None, times: int = 1) -> None:
        """Remove a term that was added before."""
        self.add(term, -times)

    def include(self, other: ExactSum) -> None:
        """Add all terms of another sum."""
        self.size += other.size
        self._integer += other._integer
        self._decimal += other._decimal
        self._as_doubles += other._as_doubles
        self._drift += other._drift
        self._plus_inf += other._plus_inf
        self._minus_inf += other._minus_inf
        self._nan += other._nan
        self._durations += other._durations
        self._span += other._span
        for kind, many in other._counts.items():
            self._counts[kind] = self._counts.get(kind, 0) + many

    def dump(self) -> list[Any]:
        """All that it owns, as a JSON value."""
        numbers = [hex(getattr(self, name)) for name in _NUMBERS]  # some have hundreds of digits
        return [numbers, {kind.__name__: many for kind, many in self._counts.items() if many}]

    @classmethod
    def load(cls, state: list[Any]) -> ExactSum:
        """The inverse of `dump`."""
        made = cls()
        for name, number in zip(_NUMBERS, state[0], strict=True):
            setattr(made, name, int(number, 16))
        made._counts = {kind: state[1][kind.__name__] for kind in _KINDS if kind.__name__ in state[1]}
        return made

    def total(self) -> Term | None:
        """The sum: 0 of no terms; None if a term is not a number, unless all are dayTimeDurations or all are
        yearMonthDurations. Raises Overlong.
        """
        if self._durations:
            return self._duration(1)
        if self._has(float) or self._has(Single):
            return None if self._has(NoneType) else encode(self._floating(1))
        exact = self._exact()
        if exact is None:
            return None
        return decimal_term(exact) if self._has(Decimal) else encode(exact // _SCALE)

    def mean(self, count: int) -> Term | None:
        """The exact total over `count`: a decimal cut at 18 fractional digits, or a double rounded once.

        None of no terms, and without a total. Raises Overlong.
        """
        if count == 0:
            return None
        if self._counts.get(int) != self.size:  # most often there are integers alone
            if self._has(NoneType):
                return None
            if self._durations:
                return self._duration(count)
            if self._has(float) or self._has(Single):
                return encode(self._floating(count))
        exact = self._exact()
        if exact is None:
            return None
        return decimal_term(exact // count if exact >= 0 else -(-exact // count))

    def _has(self, kind: type) -> bool:
        return self._counts.get(kind, 0) > 0

    def _duration(self, count: int) -> Term | None:
        """The total of durations over `count`: seconds are cut, months rounded to the nearest, a half up."""
        if self._counts.get(DayTime, 0) == self._durations == self.size:
            cut = self._span // count if self._span >= 0 else -(-self._span // count)
            found = duration(0, cut, DAY_TIME)
        elif self._counts.get(YearMonth, 0) == self._durations == self.size:
            found = duration((2 * self._span + count) // (2 * count), 0, YEAR_MONTH)
        else:
            return None
        return None if found is None else found.term

    def _exact(self) -> int | None:
        """The total of integers and decimals in 10⁻¹⁸; None with an error."""
        if self._has(NoneType):
            return None
        exact = self._integer * _SCALE + self._decimal
        if _LEAST < exact < _BEYOND:
            return exact
        raise Overlong

    def _floating(self, count: int) -> float:
        """The total over `count`, rounded once: a double, or a Single if all terms are."""
        only_singles = not any(self._has(kind) for kind in (int, Decimal, float))
        if self._nan or (self._plus_inf and self._minus_inf):
            value = nan
        elif self._plus_inf or self._minus_inf:
            value = inf if self._plus_inf else -inf
        else:
            numerator = self._as_doubles + ((self._integer + self._drift) << _ULP)
            if only_singles:
                return nearest_single(numerator, count << _ULP)
            value = nearest_double(numerator, count << _ULP)
        return single(value) if only_singles else value


def sum_of(terms: Sequence[Term | None]) -> Term | None:
    """`ExactSum.total` of some terms, in any order. Small integers, which most are, need no ExactSum."""
    numbers = [_small[term] for term in terms]
    if None in numbers:
        return ExactSum.of(terms).total()
    return encode(sum(numbers))  # type: ignore[arg-type]  # none of them is None


def mean_of(terms: Sequence[Term | None]) -> Term | None:
    """`ExactSum.mean` of some terms, in any order, over their number."""
    numbers = [_small[term] for term in terms]
    if None in numbers or not numbers:
        return ExactSum.of(terms).mean(len(terms))
    return _means[sum(numbers), len(numbers)]  # type: ignore[arg-type]


class ExactMoments(ExactSum):
    """Owns what determines variance and deviation of a multiset of terms, too: sums of squares, as exact."""

    __slots__ = ("_decimal_squares", "_double_squares", "_integer_squares", "_square_drift")

    def __init__(self) -> None:
        super().__init__()
        self._integer_squares = 0
        self._square_drift = 0  # what they gain when each integer is taken as a double
        self._decimal_squares = 0  # of decimals, in 10⁻³⁶
        self._double_squares = 0  # of all except the integers, each as a double, in 2⁻²¹⁴⁸

    def add(self, term: Term | None, times: int = 1) -> None:
        small = _small[term]
        if small is not None:
            several = times * small
            self.size += times
            self._integer += several
            self._integer_squares += several * small
            self._counts[int] = self._counts.get(int, 0) + times
            return
        super().add(term, times)
        if term is not None:
            integers, drift, decimals, doubles = _squares[term]
            if times == -1:
                integers, drift, decimals, doubles = -integers, -drift, -decimals, -doubles
            elif times != 1:
                integers, drift, decimals, doubles = (times * n for n in (integers, drift, decimals, doubles))
            if decimals or doubles:
                self._decimal_squares += decimals
                self._double_squares += doubles
            else:
                self._integer_squares += integers
                self._square_drift += drift

    def include(self, other: ExactSum) -> None:
        super().include(other)
        assert isinstance(other, ExactMoments)
        self._integer_squares += other._integer_squares
        self._square_drift += other._square_drift
        self._decimal_squares += other._decimal_squares
        self._double_squares += other._double_squares

    def spread(self, *, sample: bool, root: bool) -> Term | None:
        """The variance, or its `root`, the standard deviation: of integers and decimals a decimal, cut at 18
        fractional digits, else a double rounded once. `sample`: over the count less one. None of less than
        two terms (one, if not `sample`), and if a term is not a number. Raises Overlong.
        """
        count = self.size - sample
        if count < 1 or self._durations or self._has(NoneType):
            return None
        over = self.size * count
        if self._has(float) or self._has(Single):
            return encode(self._floating_spread(over, root))
        total = self._integer * _SCALE + self._decimal
        squares = self._integer_squares * _SCALE**2 + self._decimal_squares
        exact = self.size * squares - total * total
        units = isqrt(exact // over) if root else exact // (over * _SCALE)
        if units >= _BEYOND:
            raise Overlong
        return decimal_term(units)

    def _floating_spread(self, over: int, root: bool) -> float:
        only_singles = not any(self._has(kind) for kind in (int, Decimal, float))
        if self._nan or self._plus_inf or self._minus_inf:
            return single(nan) if only_singles else nan
        total = self._as_doubles + ((self._integer + self._drift) << _ULP)
        squares = self._double_squares + ((self._integer_squares + self._square_drift) << 2 * _ULP)
        # few doubles use the last of 1074 digits: without the common zeros the numbers are short
        zeros = min(_trailing_zeros(total), _trailing_zeros(squares) // 2, _ULP)
        total, squares, unit = total >> zeros, squares >> 2 * zeros, _ULP - zeros
        numerator = self.size * squares - total * total
        if root:
            if only_singles:
                return single(_nearest_root(numerator, over, unit, 24, -149))
            return _nearest_root(numerator, over, unit, 53, -_ULP)
        if only_singles:
            return nearest_single(numerator, over << 2 * unit)
        return nearest_double(numerator, over << 2 * unit)


def _trailing_zeros(number: int) -> int:
    """Of the binary digits; of 0 as many as there can be."""
    return (number & -number).bit_length() - 1 if number else 2 * _ULP


def _nearest_root(numerator: int, denominator: int, unit: int, digits: int, least: int) -> float:
    """The square root of a fraction in 4**-`unit`, rounded once, a half to even, to so many binary digits,
    the last of which is 2**`least` or more.
    """
    if not numerator:
        return 0.0
    half = (numerator.bit_length() - denominator.bit_length()) // 2 - unit  # of the root, within one digit
    for last in (max(half - digits, least), max(half - digits + 1, least)):
        shift = -2 * (last + unit)  # in units of 4**last
        above, below = numerator << max(shift, 0), denominator << max(-shift, 0)
        whole = isqrt(above // below)
        if whole.bit_length() <= digits:
            break
    twice = (2 * whole + 1) ** 2 * below - 4 * above  # four times what a half more has over
    if twice < 0 or (twice == 0 and whole % 2):
        whole += 1
    try:
        return ldexp(whole, last)
    except OverflowError:
        return inf


class DayTime:
    """The kind of a dayTimeDuration among addends."""


class YearMonth:
    """The kind of a yearMonthDuration among addends."""


_BEYOND = BEYOND * _SCALE
_LEAST = -_BEYOND


class _HugeInteger:
    """The kind of an integer past the greatest double."""


class _HugeDecimal:
    """The kind of a decimal past the greatest double."""


def decimal_term(units: int) -> Term:
    """The term of an xsd:decimal in 10⁻¹⁸, as `encode` writes it."""
    whole, rest = divmod(abs(units), _SCALE)
    fraction = f".{rest:018}".rstrip("0") if rest else ""
    return f'"{"-" if units < 0 else ""}{whole}{fraction}"^^<{XSD_DECIMAL}>'


def _mean(parts: tuple[int, int]) -> Term:
    """A sum of integers over a count, cut at 18 fractional digits."""
    total, count = parts
    exact = total * _SCALE
    return decimal_term(exact // count if exact >= 0 else -(-exact // count))


_means: Memo[tuple[int, int], Term] = Memo(_mean, limit=1 << 13)

_NUMBERS = tuple(name for name in ExactSum.__slots__ if name != "_counts")
_KINDS: tuple[type, ...] = (
    int,
    Decimal,
    float,
    Single,
    NoneType,
    DayTime,
    YearMonth,
    _HugeInteger,
    _HugeDecimal,
)

_FINITE, _NAN, _PLUS_INF, _MINUS_INF = range(4)
_NO_NUMBER: tuple[type, int, int] = (NoneType, 0, 0)


def _summands(term: Term) -> tuple[type, int, int]:
    """What a term adds: its type; an integer, decimals and seconds in 10⁻¹⁸, months, for doubles their class;
    its double.

    The last is in 2⁻¹⁰⁷⁴; for an integer, what it gains when taken as a double (0 up to 2⁵³).
    """
    value: Any = values[term]
    kind = type(value)
    if kind is int or kind is Decimal:
        double = to_double(value)
        exact = value * _SCALE if kind is int else int(EXACT.scaleb(value, 18))
        if not isfinite(double):
            return _HugeInteger if kind is int else _HugeDecimal, exact, 1
        return (int, value, int(double) - value) if kind is int else (Decimal, exact, _in_ulps(double))
    if kind is float or kind is Single:
        if isfinite(value):
            return kind, _FINITE, _in_ulps(value)
        return kind, _NAN if value != value else _PLUS_INF if value > 0 else _MINUS_INF, 0
    if kind is Duration and value.datatype == DAY_TIME:
        return DayTime, value.ticks, 0
    if kind is Duration and value.datatype == YEAR_MONTH:
        return YearMonth, value.months, 0
    return _NO_NUMBER


_parts: Memo[Term, tuple[type, int, int]] = Memo(_summands, limit=1 << 13)


def _small_integer(term: Term | None) -> int | None:
    """An integer whose square a double has exactly."""
    kind, exact, _ = _NO_NUMBER if term is None else _parts[term]
    return exact if kind is int and -(1 << 26) < exact < 1 << 26 else None


_small: Memo[Term | None, int | None] = Memo(_small_integer, limit=1 << 13)


def _squared(term: Term) -> tuple[int, int, int, int]:
    """(of an integer its square, and what that gains when taken as a double; of a decimal in 10⁻³⁶; of all
    but integers as a double in 2⁻²¹⁴⁸)
    """
    kind, exact, as_double = _parts[term]
    if kind is int:
        return exact * exact, (exact + as_double) ** 2 - exact * exact, 0, 0
    if kind is _HugeInteger or kind is _HugeDecimal or kind is Decimal:
        return 0, 0, exact * exact, 0 if kind is not Decimal else as_double * as_double
    if kind is float or kind is Single:
        return 0, 0, 0, as_double * as_double
    return 0, 0, 0, 0


_squares: Memo[Term, tuple[int, int, int, int]] = Memo(_squared, limit=1 << 13)


def _in_ulps(value: float) -> int:
    """A finite double as a whole number of 2⁻¹⁰⁷⁴."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_ULP + 1 - denominator.bit_length())


def nearest_double(numerator: int, denominator: int) -> float:
    """The nearest double, ±INF beyond the range. Python divides integers with one rounding."""
    try:
        return numerator / denominator
    except OverflowError:
        return inf if numerator > 0 else -inf


def nearest_single(numerator: int, denominator: int) -> Single:
    """The xsd:float nearest to a fraction, from the nearest double (rounding that again may be wrong)."""
    rounded = nearest_double(numerator, denominator)
    below, above = single(nextafter(rounded, -inf)), single(nextafter(rounded, inf))
    if below == above or not isfinite(rounded):
        return single(rounded)
    exact = Fraction(numerator, denominator)
    to_below, to_above = exact - _as_if_unbounded(below), _as_if_unbounded(above) - exact
    return below if to_below < to_above else above if to_above < to_below else single(rounded)


def _as_if_unbounded(value: Single) -> Fraction:
    """The value; of an infinity, what the next 32-bit float would be."""
    return Fraction(value) if isfinite(value) else Fraction(2) ** 128 * (1 if value > 0 else -1)

"""Medians and percentiles that are kept up while values come and go.

Place:   behind MEDIAN and PERCENTILE, beside sums.py.
Method:  the values in order of size, in a list, or more than MANY in sorted lists of a bounded length
         (sortedcontainers): a value enters and leaves, and the one of a rank is found, in O(log n). Between
         two ranks it is interpolated exactly, and rounded once, as SQL's PERCENTILE_CONT: the value of rank
         p·(n − 1). Its type is that of a mean: a decimal cut at 18 fractional digits, a double if a value is
         one. −0 counts as 0, so that no order shows. Of equal values of several types any may leave for
         another: the counts know the types, and what is left is converted as it is read.
Why not: two heaps about the rank: what leaves lies in their middle.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, nan
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from dotr.rdf.sums import decimal_term, nearest_double, nearest_single
from dotr.rdf.terms import Memo, Term
from dotr.rdf.values import (
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

if TYPE_CHECKING:
    from sortedcontainers import SortedList

_SCALE = 10**18

_INTEGERS: Final = {int}

MANY: Final = 1 << 11
"""Values beyond which moving those behind a new one in a list takes longer than finding its sorted list."""


def _sorted_list(numbers: list[Any]) -> SortedList[Any]:
    from sortedcontainers import SortedList  # noqa: PLC0415  # start-up: most programs have no quantile

    return SortedList(numbers)


class Quantile:
    """Owns a multiset of terms, and the value at a share of their ranks. Add and remove are O(log n)."""

    __slots__ = ("_counts", "_numbers", "_share", "size")

    def __init__(self, share: Fraction) -> None:
        self.size = 0
        self._share = share
        self._numbers: list[Any] | SortedList[Any] = []
        self._counts: dict[Any, int] = {}  # by what `_ranked` calls a kind

    def add(self, term: Term | None, times: int = 1) -> None:
        """Add a term `times` times; None is an error, and with one there is no value."""
        if times < 0:
            self.remove(term, -times)
            return
        self.size += times
        kind, number = _NO_NUMBER if term is None else _ranked[term]
        self._counts[kind] = self._counts.get(kind, 0) + times
        if number is not None:
            numbers = self._numbers
            if not isinstance(numbers, list):
                numbers.update([number] * times)
                return
            insort(numbers, number)
            if times > 1:
                place = bisect_left(numbers, number)
                numbers[place:place] = [number] * (times - 1)
            if len(numbers) > MANY:
                self._numbers = _sorted_list(numbers)

    def remove(self, term: Term | None, times: int = 1) -> None:
        """Remove a term that was added before."""
        self.size -= times
        kind, number = _NO_NUMBER if term is None else _ranked[term]
        self._counts[kind] -= times
        if number is not None:
            numbers = self._numbers
            if isinstance(numbers, list):
                place = bisect_left(numbers, number)
                del numbers[place : place + times]
            else:
                for _ in range(times):
                    numbers.remove(number)

    def include(self, other: Quantile) -> None:
        """Add all terms of another. O(n log n)."""
        self.size += other.size
        numbers = sorted([*self._numbers, *other._numbers])
        self._numbers = numbers if len(numbers) <= MANY else _sorted_list(numbers)
        for kind, many in other._counts.items():
            self._counts[kind] = self._counts.get(kind, 0) + many

    def value(self) -> Term | None:
        """The value of the rank; None of no terms, and if a term is not a number, unless all are
        dayTimeDurations or all are yearMonthDurations. Raises Overlong.
        """
        kinds = {kind for kind, many in self._counts.items() if many}
        if kinds == _INTEGERS:  # most often
            return decimal_term(self._between(_units))
        if not kinds or NoneType in kinds:
            return None
        if kinds == {DAY_TIME} or kinds == {YEAR_MONTH}:
            return self._duration(kinds.pop())
        if DAY_TIME in kinds or YEAR_MONTH in kinds:
            return None
        if not kinds <= {int, Decimal}:
            return encode(self._floating(kinds))
        return decimal_term(self._between(_units))

    def _place(self) -> tuple[int, int, int]:
        """The rank below, and the way from there to the next, as a fraction."""
        share = self._share
        below, rest = divmod(share.numerator * (self.size - 1), share.denominator)
        return below, rest, share.denominator

    def _between(self, whole: Callable[[Any], int]) -> int:
        """Of integers that values stand for: the one of the rank, cut."""
        below, rest, of = self._place()
        low = whole(self._numbers[below])
        if not rest:
            return low
        scaled = low * (of - rest) + whole(self._numbers[below + 1]) * rest
        return scaled // of if scaled >= 0 else -(-scaled // of)

    def _floating(self, kinds: set[Any]) -> float:
        only_singles = kinds <= {Single, _NAN_OF_SINGLES}
        if _NAN in kinds or _NAN_OF_SINGLES in kinds:
            return single(nan) if only_singles else nan
        below, rest, of = self._place()
        low = to_double(self._numbers[below])
        high = to_double(self._numbers[below + 1]) if rest else low
        if low == high:
            return single(low) if only_singles else low
        if isfinite(low) and isfinite(high):
            (n, d), (m, e) = low.as_integer_ratio(), high.as_integer_ratio()
            exact = n * e * (of - rest) + m * d * rest, d * e * of
            return nearest_single(*exact) if only_singles else nearest_double(*exact)
        found = nan if low == -inf and high == inf else low if low == -inf else high
        return single(found) if only_singles else found

    def _duration(self, kind: str) -> Term | None:
        if kind == YEAR_MONTH:  # a half upwards, as means are
            below, rest, of = self._place()
            low, high = int(self._numbers[below]), int(self._numbers[below + 1]) if rest else 0
            found = duration((2 * (low * (of - rest) + high * rest) + of) // (2 * of), 0, kind)
        else:
            found = duration(0, self._between(int), kind)
        return None if found is None else found.term


def _units(value: int | Decimal | float) -> int:
    """A number in 10⁻¹⁸; a double is there for an equal integer or decimal."""
    if isinstance(value, Decimal):
        return int(EXACT.scaleb(value, 18))
    return value * _SCALE if isinstance(value, int) else int(Fraction(value) * _SCALE)


def quantile(share: Fraction, terms: Any) -> Term | None:
    """The value at a share of the ranks of some terms."""
    whole = Quantile(share)
    for term in terms:
        whole.add(term)
    return whole.value()


_NAN, _NAN_OF_SINGLES = "NaN of a double", "NaN of a float"
_NO_NUMBER: tuple[Any, Any] = (NoneType, None)


def _rank_of(term: Term) -> tuple[Any, Any]:
    """Its kind, and what it is ordered by: a number, ticks or months; None of NaN, which is a kind."""
    value: Any = values[term]
    kind = type(value)
    if kind is int or kind is Decimal:
        return kind, value
    if kind is float or kind is Single:
        if value != value:
            return _NAN if kind is float else _NAN_OF_SINGLES, None
        return kind, float(value) + 0.0
    if kind is Duration and value.datatype == DAY_TIME:
        return DAY_TIME, value.ticks
    if kind is Duration and value.datatype == YEAR_MONTH:
        return YEAR_MONTH, value.months
    return _NO_NUMBER


_ranked: Memo[Term, tuple[Any, Any]] = Memo(_rank_of, limit=1 << 13)

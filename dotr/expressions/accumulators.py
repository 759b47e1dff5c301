"""Accumulators: aggregates kept up while terms come and go, one law for each kind of aggregate.

Place:   windows and levels of TESLA (detect/totals.py), what holds for long (detect/timeline.py), totals of
         LARS (windows/windows.py). What is aggregated from all its values takes `summarise` (aggregates.py),
         as do the literal readings: they share nothing with this module.
Method:  six laws. A count; an exact sum, and one of squares, too, from which subtraction leaves no residue
         (rdf/sums.py); values in order (rdf/quantiles.py); a multiset of terms; an extremum, a multiset that
         knows its least or greatest term until that leaves. DISTINCT is a multiset in front of a law: the
         first of equal terms enters, the last one leaves. All but extremes include others, so that parts of a
         whole can be kept apart and read together.
         `add` and `remove` are O(1), `value` of counts and sums, too; of values in order O(log n).
Why not: a heap for the extremum: terms leave from its middle; where they leave in the order of time,
         detect/totals.py has a stack, and for a plain COUNT its queue alone.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Final, Protocol

from dotr.expressions.aggregates import QUANTILES, SPREADS, share_of, summarise, word_of
from dotr.rdf.quantiles import Quantile
from dotr.rdf.sums import ExactMoments, ExactSum
from dotr.rdf.terms import Memo, Term, integer
from dotr.rdf.values import TermKey, term_key

COUNTS: Final[Memo[int, Term]] = Memo(integer, 1 << 12)


class Accumulator(Protocol):
    """Owns a multiset of terms, as far as one aggregate can tell; None is an error or unbound."""

    @property
    def size(self) -> int:
        """0 if there is no term, not even None."""

    def add(self, term: Term | None, times: int = 1) -> None: ...
    def remove(self, term: Term | None, times: int = 1) -> None: ...
    def value(self) -> Term | None:
        """The aggregate; None if it has no value. Raises Overlong."""


class Mergeable(Accumulator, Protocol):
    """An accumulator that can take in all terms of another, which has the same aggregate."""

    def include(self, other: Any) -> None: ...


class Count:
    """COUNT of the terms other than None, with `star` of all."""

    __slots__ = ("_errors", "_star", "size")

    def __init__(self, star: bool) -> None:
        self.size = self._errors = 0
        self._star = star

    def add(self, term: Term | None, times: int = 1) -> None:
        self.size += times
        if term is None:
            self._errors += times

    def remove(self, term: Term | None, times: int = 1) -> None:
        self.add(term, -times)

    def include(self, other: Count) -> None:
        self.size += other.size
        self._errors += other._errors

    def value(self) -> Term | None:
        return COUNTS[self.size if self._star else self.size - self._errors]


class Sum(ExactSum):
    """SUM."""

    __slots__ = ()

    def value(self) -> Term | None:
        return self.total()


class Mean(ExactSum):
    """AVG."""

    __slots__ = ()

    def value(self) -> Term | None:
        return self.mean(self.size)


class Spread(ExactMoments):
    """STDDEV, VARIANCE, STDDEV_POP, VAR_POP."""

    __slots__ = ("_root", "_sample")

    def __init__(self, function: str) -> None:
        super().__init__()
        self._sample, self._root = SPREADS[function]

    def value(self) -> Term | None:
        return self.spread(sample=self._sample, root=self._root)


class Multiset:
    """Any aggregate, computed from all terms when it is read."""

    __slots__ = ("_function", "_times")

    def __init__(self, function: str) -> None:
        self._function = function
        self._times: dict[Term | None, int] = {}

    @property
    def size(self) -> int:
        return len(self._times)

    def add(self, term: Term | None, times: int = 1) -> None:
        self._times[term] = self._times.get(term, 0) + times

    def remove(self, term: Term | None, times: int = 1) -> None:
        left = self._times[term] - times
        if left:
            self._times[term] = left
        else:
            del self._times[term]

    def include(self, other: Multiset) -> None:
        for term, times in other._times.items():
            self.add(term, times)

    def value(self) -> Term | None:
        terms = [term for term, times in self._times.items() for _ in range(times)]
        return summarise(self._function, False, terms)


class Extremum(Multiset):
    """MIN or MAX in canonical order, without errors: searched again after it has left."""

    __slots__ = ("_best",)

    def __init__(self, function: str) -> None:
        super().__init__(function)
        self._best: tuple[TermKey, Term] | None = None  # None while not known

    def add(self, term: Term | None, times: int = 1) -> None:
        if self._best is not None and term is not None and term not in self._times:
            key = term_key(term)
            if key < self._best[0] if self._function == "MIN" else key > self._best[0]:
                self._best = key, term
        super().add(term, times)

    def remove(self, term: Term | None, times: int = 1) -> None:
        super().remove(term, times)
        if self._best is not None and term == self._best[1] and term not in self._times:
            self._best = None

    def value(self) -> Term | None:
        if self._best is None:
            found = summarise(self._function, False, self._times)
            if found is None:
                return None
            self._best = term_key(found), found
        return self._best[1]


class InOrder:
    """FIRST and LAST of terms that come with a key of their candidates: (key, term)."""

    __slots__ = ("_function", "_pairs")

    def __init__(self, function: str) -> None:
        from sortedcontainers import SortedList  # noqa: PLC0415  # start-up: most programs do not need it

        self._function = function
        self._pairs: SortedList[tuple[Any, Term | None]] = SortedList(key=itemgetter(0))

    @property
    def size(self) -> int:
        return len(self._pairs)

    def add(self, pair: tuple[Any, Term | None]) -> None:
        self._pairs.add(pair)

    def remove(self, pair: tuple[Any, Term | None]) -> None:
        self._pairs.remove(pair)

    def value(self) -> Term | None:
        """O(log n) of one end."""
        ends = [self._pairs[0], self._pairs[-1]] if self._pairs else []
        return summarise(self._function, False, [term for _, term in ends])


class Distinct:
    """An aggregate of each term, and of None, once."""

    __slots__ = ("_of", "_times")

    def __init__(self, of: Accumulator) -> None:
        self._of = of
        self._times: dict[Term | None, int] = {}

    @property
    def size(self) -> int:
        return len(self._times)

    def add(self, term: Term | None, times: int = 1) -> None:
        before = self._times.get(term, 0)
        self._times[term] = before + times
        if not before:
            self._of.add(term)

    def remove(self, term: Term | None, times: int = 1) -> None:
        left = self._times[term] - times
        if left:
            self._times[term] = left
        else:
            del self._times[term]
            self._of.remove(term)

    def value(self) -> Term | None:
        return self._of.value()


def accumulator(function: str, distinct: bool, star: bool) -> Accumulator:
    """The empty accumulator of an aggregate. DISTINCT makes no difference to `*`."""
    if function in ("MIN", "MAX"):
        return Extremum(function)
    law = mergeable(function, star)
    return Distinct(law) if distinct and not star else law


def mergeable(function: str, star: bool) -> Mergeable:
    """The empty accumulator of an aggregate without DISTINCT, of the laws that can include others."""
    if function == "COUNT":
        return Count(star)
    if function in SPREADS:
        return Spread(function)
    if word_of(function) in QUANTILES:
        return Quantile(share_of(function))
    return Sum() if function == "SUM" else Mean() if function == "AVG" else Multiset(function)

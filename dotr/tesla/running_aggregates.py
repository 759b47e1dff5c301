"""Running aggregates over a sliding window: what leaves is subtracted, nothing is counted twice.

Place:   the buckets of `RunningTotal` columns (columns.py): one per key, read with the oldest time that
         counts.
Method:  COUNT, SUM and AVG are groups: a queue of the values, and their total (sums exact, so that
         subtraction leaves no residue). MIN and MAX are not; they keep the ascending (descending) stack of
         candidates that no later one beats. DISTINCT keeps how often each term is inside. Every fact enters
         and leaves once: O(1) amortised whatever the window.
Why not: two-stack queues for everything. They need only an associative operation, but exact sums can
         subtract, and recombining them on each look-up costs more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from dotr.events import Time
from dotr.expressions.aggregates import summarise
from dotr.rdf.memo import Memo
from dotr.rdf.order import TermKey, term_key
from dotr.rdf.sums import ExactSum
from dotr.rdf.terms import Term, integer

COUNTS: Final[Memo[int, Term]] = Memo(integer, 1 << 12)


class RunningAggregate(Protocol):
    """An aggregate of what came since some time. Times never decrease, for `add` and for `value`."""

    def add(self, time: Time, term: Term | None) -> None:
        """Add a candidate's argument; None is an error or unbound."""

    def value(self, since: Time) -> Term | None:
        """Drop what is older than `since`; return the aggregate of the rest."""

    def expire(self, since: Time) -> bool:
        """Drop what is older than `since`; return whether anything is left."""

    def entries(self) -> list[tuple[Time, Term | None]]:
        """The values (for MIN and MAX: those that can still matter), oldest first."""


class RunningCount:
    """COUNT(*), and COUNT(e) where only candidates with a value are added."""

    __slots__ = ("_skips", "_times")

    def __init__(self, skips_errors: bool) -> None:
        self._times: deque[Time] = deque()
        self._skips = skips_errors

    def add(self, time: Time, term: Term | None) -> None:
        if term is not None or not self._skips:
            self._times.append(time)

    def value(self, since: Time) -> Term | None:
        times = self._times
        while times and times[0] < since:  # `expire`, in place
            times.popleft()
        return COUNTS[len(times)]

    def expire(self, since: Time) -> bool:
        times = self._times
        while times and times[0] < since:
            times.popleft()
        return bool(times)

    def entries(self) -> list[tuple[Time, Term | None]]:
        term = integer(1) if self._skips else None
        return [(time, term) for time in self._times]


class RunningSum:
    """SUM and AVG, with DISTINCT over different terms; also COUNT(DISTINCT e)."""

    __slots__ = ("_counts", "_errors", "_finish", "_inside", "_sum")

    def __init__(self, function: str, distinct: bool) -> None:
        self._inside: deque[tuple[Time, Term | None]] = deque()
        self._counts: dict[Term, int] | None = {} if distinct else None
        self._errors = 0
        self._sum = ExactSum()
        self._finish = {"COUNT": self._count, "SUM": self._total, "AVG": self._mean}[function]

    def add(self, time: Time, term: Term | None) -> None:
        self._inside.append((time, term))
        if term is None:
            self._errors += 1
            return
        if self._counts is not None:
            before = self._counts.get(term, 0)
            self._counts[term] = before + 1
            if before:
                return
        self._sum.add(term)

    def expire(self, since: Time) -> bool:
        inside = self._inside
        while inside and inside[0][0] < since:
            term = inside.popleft()[1]
            if term is None:
                self._errors -= 1
                continue
            if self._counts is not None:
                self._counts[term] -= 1
                if self._counts[term]:
                    continue
                del self._counts[term]
            self._sum.remove(term)
        return bool(inside)

    def value(self, since: Time) -> Term | None:
        self.expire(since)
        return self._finish()

    def _count(self) -> Term | None:
        return COUNTS[len(self._counts or ())]

    def _total(self) -> Term | None:
        return None if self._errors else self._sum.total()

    def _mean(self) -> Term | None:
        count = len(self._inside) if self._counts is None else len(self._counts)
        return None if self._errors or not count else self._sum.mean(count)

    def entries(self) -> list[tuple[Time, Term | None]]:
        return list(self._inside)


class RunningExtreme:
    """MIN and MAX in canonical order, without errors. DISTINCT makes no difference."""

    __slots__ = ("_least", "_stack")

    def __init__(self, function: str) -> None:
        self._stack: deque[tuple[Time, TermKey, Term]] = deque()
        self._least = function == "MIN"

    def add(self, time: Time, term: Term | None) -> None:
        if term is None:
            return
        key, stack = term_key(term), self._stack
        if self._least:
            while stack and stack[-1][1] >= key:
                stack.pop()
        else:
            while stack and stack[-1][1] <= key:
                stack.pop()
        stack.append((time, key, term))

    def expire(self, since: Time) -> bool:
        stack = self._stack
        while stack and stack[0][0] < since:
            stack.popleft()
        return bool(stack)

    def value(self, since: Time) -> Term | None:
        return self._stack[0][2] if self.expire(since) else None

    def entries(self) -> list[tuple[Time, Term | None]]:
        return [(time, term) for time, _, term in self._stack]


class Recomputed:
    """Any other aggregate: over all values, on demand. O(the window) per look-up."""

    __slots__ = ("_distinct", "_function", "_inside")

    def __init__(self, function: str, distinct: bool) -> None:
        self._inside: deque[tuple[Time, Term | None]] = deque()
        self._function, self._distinct = function, distinct

    def add(self, time: Time, term: Term | None) -> None:
        self._inside.append((time, term))

    def expire(self, since: Time) -> bool:
        inside = self._inside
        while inside and inside[0][0] < since:
            inside.popleft()
        return bool(inside)

    def value(self, since: Time) -> Term | None:
        self.expire(since)
        return summarise(self._function, self._distinct, [term for _, term in self._inside])

    def entries(self) -> list[tuple[Time, Term | None]]:
        return list(self._inside)


class JoinedTotal:
    """Several buckets read as one: a key that `=` equates with several exact ones. Computed on demand."""

    __slots__ = ("_buckets", "_finish")

    def __init__(
        self, buckets: Iterable[RunningAggregate], function: str, distinct: bool, star: bool
    ) -> None:
        self._buckets = list(buckets)

        def finish(terms: list[Term | None]) -> Term | None:
            return summarise(function, distinct, terms, star=star)

        self._finish = finish

    def __len__(self) -> int:
        return sum(len(bucket.entries()) for bucket in self._buckets)

    def value(self, since: Time) -> Term | None:
        entries = [entry for bucket in self._buckets for entry in bucket.entries()]
        return self._finish([term for time, term in entries if time >= since])


def running(function: str, distinct: bool, star: bool) -> Callable[[], RunningAggregate]:
    """The constructor of the running form of an aggregate."""
    if function in ("MIN", "MAX"):
        return lambda: RunningExtreme(function)
    if function == "COUNT" and not distinct:
        return lambda: RunningCount(not star)
    if function in ("COUNT", "SUM", "AVG"):
        return lambda: RunningSum(function, distinct)
    return lambda: Recomputed(function, distinct)

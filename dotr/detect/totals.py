"""Running aggregates over a sliding window, one per key: plain, or ranked by the thresholds of rules.

Place:   the buckets of `RunningTotal` and `RankedTotal` columns (columns.py), read with the oldest time that
         counts; operators.py reads the ranked ones. Totals of what further conditions select candidate by
         candidate are added up here, too (`summed`, `counted`).
Method:  a window is an accumulator (expressions/accumulators.py) and a queue of what it has to remove; what
         comes is added when the window is read next, for most windows are read less often than filled; of a
         plain COUNT the queue of times is enough. MIN and MAX keep the ascending (descending) stack of
         candidates that no later one beats. Every fact enters and leaves once: O(1) amortised whatever the
         window.
         Ranked: rules that differ in a threshold share one aggregate, kept by level. A fact belongs to one
         level, the highest limit that it passes; the aggregate of a rule is that of the levels from its own
         limit up. The totals of levels, from the highest down, are computed once for all rules and kept until
         a fact comes or goes. Each level has an accumulator; one of the whole includes them. With DISTINCT a
         term counts at the highest level at which it is inside, and moves down when its last fact there
         leaves. MIN and MAX have a stack for each level.
Why not: two-stack queues for everything: they need only an associative operation, but exact sums can
         subtract, and recombining them on each look-up costs more. A running aggregate for each rule: a fact
         would enter and leave as many as it passes. Prefix sums in a tree: rules ask for most of the levels
         at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Protocol, TypeAlias

from dotr.events import Time
from dotr.expressions.accumulators import COUNTS, Accumulator, Mergeable, accumulator, mergeable
from dotr.expressions.aggregates import summarise
from dotr.rdf.terms import Term, integer
from dotr.rdf.values import TermKey, term_key


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


class RunningWeight:
    """COUNT(*) of facts that may stand for several: the argument is the number, None for one."""

    __slots__ = ("_entries", "_sum")

    def __init__(self) -> None:
        self._entries: deque[tuple[Time, int]] = deque()
        self._sum = 0

    def add(self, time: Time, term: Term | None) -> None:
        many = weight_of(term)
        self._entries.append((time, many))
        self._sum += many

    def value(self, since: Time) -> Term | None:
        self.expire(since)
        return COUNTS[self._sum]

    def expire(self, since: Time) -> bool:
        entries = self._entries
        while entries and entries[0][0] < since:
            self._sum -= entries.popleft()[1]
        return bool(entries)

    def entries(self) -> list[tuple[Time, Term | None]]:
        return [(time, None if many == 1 else integer(many)) for time, many in self._entries]


def weight_of(term: Term | None) -> int:
    """For how many facts one stands."""
    return 1 if term is None else int(term[1 : term.index('"', 1)])


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


class Window:
    """Any other aggregate: an accumulator, the queue of what it has to remove, and that of what came since it
    was last read (`later`), which may be gone before it is read again.
    """

    __slots__ = ("_inside", "_total", "later")

    def __init__(self, total: Accumulator) -> None:
        self._inside: deque[tuple[Time, Term | None]] = deque()
        self.later: deque[tuple[Time, Term | None]] = deque()
        self._total = total

    def add(self, time: Time, term: Term | None) -> None:
        self.later.append((time, term))

    def expire(self, since: Time) -> bool:
        inside, later = self._inside, self.later
        while inside and inside[0][0] < since:
            self._total.remove(inside.popleft()[1])
        if not inside:
            while later and later[0][0] < since:
                later.popleft()
        return bool(inside or later)

    def value(self, since: Time) -> Term | None:
        self.expire(since)
        if self.later:
            for _, term in self.later:
                self._total.add(term)
            self._inside += self.later
            self.later.clear()
        return self._total.value()

    def entries(self) -> list[tuple[Time, Term | None]]:
        return [*self._inside, *self.later]


class JoinedTotal:
    """Several buckets read as one: a key that `=` equates with several exact ones. Computed on demand."""

    __slots__ = ("_buckets", "_finish")

    def __init__(
        self,
        buckets: Iterable[RunningAggregate],
        function: str,
        distinct: bool,
        star: bool,
        *,
        weighed: bool = False,
    ) -> None:
        self._buckets = list(buckets)

        def finish(terms: list[Term | None]) -> Term | None:
            if weighed:
                return COUNTS[sum(map(weight_of, terms))]
            return summarise(function, distinct, terms, star=star)

        self._finish = finish

    def __len__(self) -> int:
        return sum(len(bucket.entries()) for bucket in self._buckets)

    def value(self, since: Time) -> Term | None:
        entries = [entry for bucket in self._buckets for entry in bucket.entries()]
        return self._finish([term for time, term in entries if time >= since])


def is_window(function: str, distinct: bool) -> bool:
    """Whether the running form of an aggregate is a Window."""
    return function not in ("MIN", "MAX") and (function != "COUNT" or distinct)


def running(function: str, distinct: bool, star: bool) -> Callable[[], RunningAggregate]:
    """The constructor of the running form of an aggregate."""
    if function in ("MIN", "MAX"):
        return lambda: RunningExtreme(function)
    if not is_window(function, distinct):
        return lambda: RunningCount(not star)
    return lambda: Window(accumulator(function, distinct, star=False))


Entry: TypeAlias = tuple[Time, Term | None, int]
"""(time, argument, level)."""

Above: TypeAlias = list[tuple[int, Term | None]]
"""(level, aggregate of what is at it or higher), the highest level first."""

Ranges: TypeAlias = list[tuple[Term | None, int, int]]
"""(aggregate, from, to): ranges of the members of a group that it holds for."""

_FIRST: Final = itemgetter(0)


class RankedAggregate(Protocol):
    """An aggregate of what came since some time, by level. Times never decrease."""

    def add(self, time: Time, term: Term | None, level: int) -> None:
        """Add a candidate's argument; None is an error or unbound."""

    def expire(self, since: Time) -> bool:
        """Drop what is older than `since`; return whether anything is left."""

    def above(self, since: Time) -> Above:
        """Drop what is older than `since`; return what the rest comes to. Read only."""

    def entries(self) -> list[Entry]:
        """The values (for MIN and MAX: those that can still matter), oldest first."""


class RankedCount:
    """COUNT(*), and COUNT(e) where only candidates with a value are added."""

    __slots__ = ("_above", "_counts", "_inside", "_skips")

    def __init__(self, skips_errors: bool) -> None:
        self._inside: deque[tuple[Time, int]] = deque()
        self._counts: dict[int, int] = {}
        self._above: Above | None = None
        self._skips = skips_errors

    def add(self, time: Time, term: Term | None, level: int) -> None:
        if term is None and self._skips:
            return
        self._inside.append((time, level))
        self._counts[level] = self._counts.get(level, 0) + 1
        self._above = None

    def expire(self, since: Time) -> bool:
        inside, counts = self._inside, self._counts
        while inside and inside[0][0] < since:
            level = inside.popleft()[1]
            counts[level] -= 1
            if not counts[level]:
                del counts[level]
            self._above = None
        return bool(inside)

    def above(self, since: Time) -> Above:
        self.expire(since)
        if self._above is None:
            self._above, counts, count = [], self._counts, 0
            for level in sorted(counts, reverse=True):
                count += counts[level]
                self._above.append((level, COUNTS[count]))
        return self._above

    def entries(self) -> list[Entry]:
        term = COUNTS[1] if self._skips else None
        return [(time, term, level) for time, level in self._inside]


class RankedExtreme:
    """MIN and MAX in canonical order, without errors. DISTINCT makes no difference."""

    __slots__ = ("_above", "_least", "_oldest", "_stacks")

    def __init__(self, function: str) -> None:
        self._stacks: dict[int, deque[tuple[Time, TermKey, Term]]] = {}  # the extreme first, then later ones
        self._least = function == "MIN"
        self._oldest: Time = 0  # set by the first entry
        self._above: Above | None = None

    def add(self, time: Time, term: Term | None, level: int) -> None:
        if term is None:
            return
        if not self._stacks:
            self._oldest = time
        key, stack = term_key(term), self._stacks.setdefault(level, deque())
        if self._least:
            while stack and stack[-1][1] >= key:
                stack.pop()
        else:
            while stack and stack[-1][1] <= key:
                stack.pop()
        stack.append((time, key, term))
        self._above = None

    def expire(self, since: Time) -> bool:
        stacks = self._stacks
        if since > self._oldest:
            for stack in stacks.values():
                while stack and stack[0][0] < since:
                    stack.popleft()
                    self._above = None
            for level in [level for level, stack in stacks.items() if not stack]:
                del stacks[level]
            self._oldest = min((stack[0][0] for stack in stacks.values()), default=since)
        return bool(stacks)

    def above(self, since: Time) -> Above:
        self.expire(since)
        if self._above is None:
            self._above, best, value = [], None, None
            for level in sorted(self._stacks, reverse=True):
                _, key, term = self._stacks[level][0]
                if best is None or (key < best if self._least else key > best):
                    best, value = key, term
                self._above.append((level, value))
        return self._above

    def entries(self) -> list[Entry]:
        stacks = sorted(self._stacks.items())
        found = [(time, term, level) for level, stack in stacks for time, _, term in stack]
        return sorted(found, key=_FIRST)


class Levels:
    """Any other aggregate: an accumulator for each level."""

    __slots__ = ("_above", "_inside", "_levels", "_make", "_parts")

    def __init__(self, function: str, distinct: bool) -> None:
        self._inside: deque[Entry] = deque()
        self._make = partial(mergeable, function, star=False)
        self._parts: dict[int, Mergeable] = {}
        # under DISTINCT: how often a term is at each level
        self._levels: dict[Term | None, dict[int, int]] | None = {} if distinct else None
        self._above: Above | None = None

    def add(self, time: Time, term: Term | None, level: int) -> None:
        self._inside.append((time, term, level))
        self._above = None
        if self._levels is None or self._rises(term, level, self._levels):
            self._put(term, level)

    def _rises(self, term: Term | None, level: int, of_terms: dict[Term | None, dict[int, int]]) -> bool:
        """Under DISTINCT: a fact comes; whether its term counts at a higher level from now on."""
        levels = of_terms.get(term)
        if levels is None:
            of_terms[term] = {level: 1}
            return True
        if level in levels:
            levels[level] += 1
            return False
        top = max(levels)
        levels[level] = 1
        if top > level:
            return False
        self._take(term, top)
        return True

    def expire(self, since: Time) -> bool:
        inside = self._inside
        while inside and inside[0][0] < since:
            _, term, level = inside.popleft()
            self._above = None
            if self._levels is None or self._falls(term, level, self._levels):
                self._take(term, level)
        return bool(inside)

    def _falls(self, term: Term | None, level: int, of_terms: dict[Term | None, dict[int, int]]) -> bool:
        """Under DISTINCT: a fact leaves; whether its term no longer counts at its level."""
        levels = of_terms[term]
        if levels[level] > 1:
            levels[level] -= 1
            return False
        del levels[level]
        if not levels:
            del of_terms[term]
            return True
        top = max(levels)
        if top < level:
            self._put(term, top)
        return top < level

    def _put(self, term: Term | None, level: int) -> None:
        part = self._parts.get(level)
        if part is None:
            part = self._parts[level] = self._make()
        part.add(term)

    def _take(self, term: Term | None, level: int) -> None:
        part = self._parts[level]
        part.remove(term)
        if not part.size:
            del self._parts[level]

    def above(self, since: Time) -> Above:
        self.expire(since)
        if self._above is None:
            found, whole = [], self._make()
            for level in sorted(self._parts, reverse=True):
                whole.include(self._parts[level])
                found.append((level, whole.value()))
            self._above = found  # all of it, or none where a total is too long
        return self._above

    def entries(self) -> list[Entry]:
        return list(self._inside)


class JoinedRanks:
    """Several buckets read as one: a key that `=` equates with several exact ones. Made for one look-up."""

    __slots__ = ("_many", "_whole")

    def __init__(self, buckets: Iterable[RankedAggregate], whole: RankedAggregate) -> None:
        found = [entry for bucket in buckets for entry in bucket.entries()]
        for entry in sorted(found, key=_FIRST):
            whole.add(*entry)
        self._whole, self._many = whole, len(found)

    def __len__(self) -> int:
        return self._many

    def above(self, since: Time) -> Above:
        return self._whole.above(since)


def ranked(function: str, distinct: bool, star: bool) -> Callable[[], RankedAggregate]:
    """The constructor of the form of an aggregate by level."""
    if function in ("MIN", "MAX"):
        return lambda: RankedExtreme(function)
    if function == "COUNT" and not distinct:
        return lambda: RankedCount(not star)
    return lambda: Levels(function, distinct)


def value_above(
    bucket: RankedAggregate | JoinedRanks, since: Time, least: int, nothing: Term | None
) -> Term | None:
    """The aggregate of what measures `least` or more; `nothing` of nothing. O(log levels) if unchanged."""
    above = bucket.above(since)
    lo, hi = 0, len(above)  # levels fall
    while lo < hi:
        middle = (lo + hi) // 2
        if above[middle][0] >= least:
            lo = middle + 1
        else:
            hi = middle
    return above[lo - 1][1] if lo else nothing


def values_above(
    nothing: Term | None,
    bucket: RankedAggregate | JoinedRanks,
    since: Time,
    lo: int,
    hi: int,
    limits: Sequence[int],
    cut: Callable[..., int],
) -> Ranges:
    """The aggregates of the members `lo` ≤ i < `hi`, each of what passes `limits[i]`, in falling ranges.

    `limits` rise; `cut` is bisect_left, or bisect_right if equal passes.
    """
    found: Ranges = []
    value = nothing
    for level, term in bucket.above(since):
        if term == value:
            continue
        upto = cut(limits, level, lo, hi)
        if upto < hi:
            found.append((value, upto, hi))
            hi = upto
            if lo == hi:
                return found
        value = term
    found.append((value, lo, hi))
    return found


def summed(
    values: list[tuple[int, Term | None]], lo: int, hi: int, make: Callable[[], RunningAggregate]
) -> Ranges:
    """The aggregates of the members `lo` ≤ i < `hi`, given the candidates' (end, argument): those that pass
    for the members before `end` > `lo`.
    """
    found: Ranges = []
    total = make()
    values.sort(key=_FIRST, reverse=True)
    for upto, passing in groupby(values, _FIRST):
        if upto < hi:
            found.append((total.value(0), upto, hi))
            hi = upto
        for _, term in passing:
            total.add(0, term)
    found.append((total.value(0), lo, hi))
    return found


def counted(ends: list[int], lo: int, hi: int) -> Ranges:
    """`summed` for COUNT(*)."""
    found: Ranges = []
    ends.sort(reverse=True)
    for count, upto in enumerate(ends):
        if upto < hi:
            found.append((COUNTS[count], upto, hi))
            hi = upto
    found.append((COUNTS[len(ends)], lo, hi))
    return found


def united(dumps: Sequence[Sequence[Sequence[Any]]]) -> list[tuple[Any, list[Entry]]]:
    """Dumps by key, of what several rules could read of the same facts, as one.

    The level of an entry says that it passes a limit of its rule, at least. So of entries that are equal but
    for their levels, the highest is the greatest of all dumps, and so on down.
    """
    if len(dumps) == 1:
        return [(key, [(time, term, level) for time, term, level in entries]) for key, entries in dumps[0]]
    of_keys: dict[Any, dict[tuple[Time, Term | None], list[int]]] = {}
    for dump in dumps:
        for key, entries in dump:
            known = of_keys.setdefault(key if isinstance(key, str) else tuple(key), {})
            mine: dict[tuple[Time, Term | None], list[int]] = {}
            for time, term, level in entries:
                mine.setdefault((time, term), []).append(level)
            for entry, levels in mine.items():
                levels.sort(reverse=True)
                others = known.setdefault(entry, [])
                shared = [max(pair) for pair in zip(levels, others, strict=False)]
                others[:] = shared + levels[len(shared) :] + others[len(shared) :]
    return [
        (key, sorted(((*entry, level) for entry, levels in of_key.items() for level in levels), key=_FIRST))
        for key, of_key in of_keys.items()
    ]

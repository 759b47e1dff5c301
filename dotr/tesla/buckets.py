"""What a column keeps under one key: the latest fact, a monotonic stack, a log, or a running total, by level
or not.

Place:   used by columns.py; plan.py chooses the kind for a conjunct.
Method:  each kind can add a fact, drop old ones, and read several buckets as one, for keys that `=` equates
         with more than one exact key (temporal/equal_terms.py).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol, assert_never

from dotr.events import Clock, Fact, Time
from dotr.expressions.evaluate import Getter, compile_condition, compile_expression
from dotr.ir.expressions import Attribute, Call, Expression, TimeOf, Var
from dotr.rdf.order import values_key
from dotr.rdf.terms import Term
from dotr.temporal.equal_terms import B, Key
from dotr.tesla.column_spec import (
    Content,
    FactLog,
    LastValue,
    MonotonicStack,
    Ranked,
    RankedTotal,
    RunningTotal,
)
from dotr.tesla.ranked_totals import JoinedRanks, RankedAggregate, ranked
from dotr.tesla.running_aggregates import JoinedTotal, RunningAggregate, running
from dotr.tesla.stretches import HeldLog, HeldTotal, merged
from dotr.tesla.term_tables import only_attribute, term_table, truth_table
from dotr.tesla.thresholds import ThresholdStack, measured


def fact_key(fact: Fact) -> tuple[Any, ...]:
    """Canonical order of the facts of one stream: time, values, ordinal."""
    return fact[0], values_key(fact[1]), fact[2]


def in_order(facts: Iterable[Fact]) -> list[Fact]:
    """Facts of one stream in canonical order. Values are only compared where times are equal."""
    found: list[Fact] = []
    for _, at_once in groupby(sorted(facts, key=itemgetter(0)), itemgetter(0)):
        group = list(at_once)
        found += group if len(group) == 1 else sorted(group, key=fact_key)
    return found


class BucketKind(Protocol[B]):
    """A kind of bucket: its representation and operations."""

    def open(self, fact: Fact) -> B:
        """A bucket with its first fact."""

    def add(self, bucket: B, fact: Fact) -> B:
        """The bucket with one more, newer in canonical order."""

    def expired(self, buckets: Iterable[tuple[Key, B]], since: Time) -> list[Key]:
        """Drop what is older than `since`; returns the keys of empty buckets."""

    def join(self, buckets: Sequence[B], since: Time) -> Any:
        """Several buckets read as one, without what is older than `since`; None if nothing is left."""

    def size(self, buckets: Collection[tuple[Key, B]]) -> int:
        """The number of facts in all of them."""

    def dump(self, bucket: B) -> list[Any]:
        """The bucket as plain values, facts as lists in canonical order."""


class LastValueKind:
    """The bucket is the fact itself."""

    def open(self, fact: Fact) -> Fact:
        return fact

    def add(self, bucket: Fact, fact: Fact) -> Fact:
        return fact

    def expired(self, buckets: Iterable[tuple[Key, Fact]], since: Time) -> list[Key]:
        return [key for key, fact in buckets if fact[0] < since]

    def join(self, buckets: Sequence[Fact], since: Time) -> Fact:
        return max(buckets, key=fact_key)

    def size(self, buckets: Collection[tuple[Key, Fact]]) -> int:
        return len(buckets)

    def dump(self, bucket: Fact) -> list[Any]:
        return [list(bucket)]


class JoinedLog(list[Fact]):
    """Facts of several keys that `=` equates, sorted for one look-up."""


class LogKind:
    """The bucket is a list of facts in canonical order, never empty; its oldest facts may have expired."""

    def open(self, fact: Fact) -> list[Fact]:
        return [fact]

    def add(self, bucket: list[Fact], fact: Fact) -> list[Fact]:
        bucket.append(fact)
        return bucket

    def expired(self, buckets: Iterable[tuple[Key, list[Fact]]], since: Time) -> list[Key]:
        for _, facts in buckets:
            if facts[0][0] < since <= facts[-1][0]:
                del facts[: bisect_left(facts, (since,))]
        return [key for key, facts in buckets if facts[-1][0] < since]

    def join(self, buckets: Sequence[list[Fact]], since: Time) -> list[Fact] | None:
        live = [bucket for bucket in buckets if bucket[-1][0] >= since]
        if len(live) <= 1:
            return live[0] if live else None
        facts = (fact for bucket in live for fact in bucket[bisect_left(bucket, (since,)) :])
        return JoinedLog(sorted(facts, key=fact_key))

    def size(self, buckets: Collection[tuple[Key, list[Fact]]]) -> int:
        return sum([len(log) for _, log in buckets])

    def dump(self, bucket: list[Fact]) -> list[Any]:
        return [list(fact) for fact in bucket]


class HeldLogKind:
    """The bucket is what holds, as intervals of points; never empty."""

    def nothing(self) -> HeldLog:
        return HeldLog()

    def open(self, fact: Fact) -> HeldLog:
        return self.add(HeldLog(), fact)

    def add(self, bucket: HeldLog, fact: Fact) -> HeldLog:
        bucket.append(fact)
        return bucket

    def add_stretch(self, bucket: HeldLog, points: range, facts: Sequence[Fact]) -> None:
        """Facts of one point at each of `points`."""
        bucket.add_stretch(points, [fact[1] for fact in facts])

    def expired(self, buckets: Iterable[tuple[Key, HeldLog]], since: Time) -> list[Key]:
        for _, log in buckets:
            if log.oldest < since <= log.newest:
                log.forget(since)
        return [key for key, log in buckets if log.newest < since]

    def join(self, buckets: Sequence[HeldLog], since: Time) -> HeldLog | None:
        live = [bucket for bucket in buckets if bucket.newest >= since]
        if len(live) <= 1:
            return live[0] if live else None
        return merged(live, since)

    def size(self, buckets: Collection[tuple[Key, HeldLog]]) -> int:
        return sum([log.kept() for _, log in buckets])

    def dump(self, bucket: HeldLog) -> list[Any]:
        return bucket.dump()

    def load(self, blocks: Iterable[Sequence[Any]]) -> HeldLog:
        bucket = HeldLog()
        bucket.load(blocks)
        return bucket


class MonotonicStackKind:
    """The bucket is a stack of facts in which older ones measure more; sizes above `top` count as `top`."""

    def __init__(self, content: MonotonicStack) -> None:
        self.measure = measured(content.measure)
        self.top: int | None = None

    def open(self, fact: Fact) -> ThresholdStack:
        return self.add(ThresholdStack(), fact)

    def add(self, bucket: ThresholdStack, fact: Fact) -> ThresholdStack:
        measure = self.measure(fact)
        if measure is not None:
            bucket.add(fact[:4], measure if self.top is None else min(measure, self.top))
        return bucket

    def expired(self, buckets: Iterable[tuple[Key, ThresholdStack]], since: Time) -> list[Key]:
        return [key for key, stack in buckets if stack.facts[0][0] < since and not stack.expire(since)]

    def join(self, buckets: Sequence[ThresholdStack], since: Time) -> ThresholdStack | None:
        joined = ThresholdStack()
        entries = (entry for stack in buckets for entry in zip(stack.facts, stack.measures, strict=True))
        live = (entry for entry in entries if entry[0][0] >= since)
        for fact, measure in sorted(live, key=lambda entry: fact_key(entry[0])):
            joined.add(fact, measure)
        return joined if joined.facts else None

    def size(self, buckets: Collection[tuple[Key, ThresholdStack]]) -> int:
        return sum([len(stack.facts) for _, stack in buckets])

    def dump(self, bucket: ThresholdStack) -> list[Any]:
        return [[*fact, measure] for fact, measure in zip(bucket.facts, bucket.measures, strict=True)]


class TotalKind:
    """The bucket is a running aggregate."""

    def __init__(self, content: RunningTotal, clock: Clock) -> None:
        self._content = content
        self._make = running(content.function, content.distinct, content.argument is None)
        self.argument = _argument(content, clock)

    def open(self, fact: Fact) -> RunningAggregate:
        return self.add(self._make(), fact)

    def add(self, bucket: RunningAggregate, fact: Fact) -> RunningAggregate:
        bucket.add(fact[0], self.argument(fact))
        return bucket

    def expired(self, buckets: Iterable[tuple[Key, RunningAggregate]], since: Time) -> list[Key]:
        return [key for key, total in buckets if not total.expire(since)]

    def join(self, buckets: Sequence[RunningAggregate], since: Time) -> RunningAggregate | JoinedTotal | None:
        content = self._content
        live = [bucket for bucket in buckets if bucket.expire(since)]
        if len(live) <= 1:
            return live[0] if live else None
        return JoinedTotal(live, content.function, content.distinct, content.argument is None)

    def size(self, buckets: Collection[tuple[Key, RunningAggregate]]) -> int:
        return sum([len(total.entries()) for _, total in buckets])

    def dump(self, bucket: RunningAggregate) -> list[Any]:
        return [list(entry) for entry in bucket.entries()]

    def load(self, entries: Iterable[tuple[Time, Term | None]]) -> RunningAggregate:
        bucket = self._make()
        for time, term in entries:
            bucket.add(time, term)
        return bucket


class RankedTotalKind:
    """The bucket is a running aggregate by level. `levels` are the least sizes that rules take, rising; a
    fact that measures less than the first is not added.
    """

    def __init__(self, content: RankedTotal, clock: Clock) -> None:
        self._make = ranked(content.function, content.distinct, content.argument is None)
        self._measure = measured(content.measure)
        self._argument = _argument(content, clock)
        self.levels: list[int] = []

    def share(self, least: int) -> None:
        """Add a rule's least size."""
        if least not in self.levels:
            insort(self.levels, least)

    def open(self, fact: Fact) -> RankedAggregate:
        return self.add(self._make(), fact)

    def add(self, bucket: RankedAggregate, fact: Fact) -> RankedAggregate:
        size = self._measure(fact)
        if size is not None:
            self._put(bucket, fact[0], self._argument(fact), size)
        return bucket

    def _put(self, bucket: RankedAggregate, time: Time, term: Term | None, size: int) -> None:
        place = bisect_right(self.levels, size)
        if place:
            bucket.add(time, term, self.levels[place - 1])

    def expired(self, buckets: Iterable[tuple[Key, RankedAggregate]], since: Time) -> list[Key]:
        return [key for key, total in buckets if not total.expire(since)]

    def join(self, buckets: Sequence[RankedAggregate], since: Time) -> RankedAggregate | JoinedRanks | None:
        live = [bucket for bucket in buckets if bucket.expire(since)]
        if len(live) <= 1:
            return live[0] if live else None
        return JoinedRanks(live, self._make())

    def size(self, buckets: Collection[tuple[Key, RankedAggregate]]) -> int:
        return sum([len(total.entries()) for _, total in buckets])

    def dump(self, bucket: RankedAggregate) -> list[Any]:
        return [list(entry) for entry in bucket.entries()]

    def load(self, entries: Iterable[tuple[Time, Term | None, int]]) -> RankedAggregate:
        bucket = self._make()
        for time, term, size in entries:
            self._put(bucket, time, term, size)
        return bucket


class HeldTotalKind(TotalKind):
    """The bucket is a running aggregate of what holds, kept as intervals."""

    def __init__(self, content: RunningTotal, clock: Clock) -> None:
        super().__init__(content, clock)
        self._make = self.nothing

    def nothing(self) -> HeldTotal:
        return HeldTotal(self._content.function, self._content.argument is None)

    def add_stretch(self, bucket: HeldTotal, points: range, facts: Sequence[Fact]) -> None:
        """Facts of one point at each of `points`."""
        bucket.add_stretch(points, [self.argument(fact) for fact in facts])

    def join(self, buckets: Sequence[Any], since: Time) -> HeldTotal | None:
        live = [bucket for bucket in buckets if bucket.expire(since)]
        if len(live) <= 1:
            return live[0] if live else None
        return HeldTotal.joined(live, self._content.function, self._content.argument is None)

    def size(self, buckets: Collection[tuple[Key, Any]]) -> int:
        return sum([total.kept() for _, total in buckets])

    def dump(self, bucket: Any) -> list[Any]:
        return list(bucket.dump())

    def load(self, entries: Iterable[Sequence[Any]]) -> HeldTotal:
        """A running aggregate from saved blocks, or from (time, term) of older snapshots."""
        bucket = self.nothing()
        given = list(entries)
        if all(len(entry) == 4 for entry in given):
            bucket.load(given)
        else:
            for time, term in given:
                bucket.add(time, term)
        return bucket


def kind_of(content: Content, clock: Clock) -> BucketKind[Any]:
    """The kind of bucket for a content."""
    match content:
        case LastValue():
            return LastValueKind()
        case FactLog(held=True):
            return HeldLogKind()
        case FactLog() | Ranked():
            return LogKind()
        case RunningTotal(held=True):
            return HeldTotalKind(content, clock)
        case RunningTotal():
            return TotalKind(content, clock)
        case RankedTotal():
            return RankedTotalKind(content, clock)
        case MonotonicStack():
            return MonotonicStackKind(content)
        case _:
            assert_never(content)


def _argument(content: RunningTotal | RankedTotal, clock: Clock) -> Getter:
    """The argument of a fact; None for COUNT(*)."""
    return (lambda fact: None) if content.argument is None else own_getter(content.argument, clock)


def _own_leaf(clock: Clock) -> Callable[[Var | Attribute | TimeOf], Getter]:
    def leaf(node: Var | Attribute | TimeOf) -> Getter:
        if isinstance(node, Attribute):
            where = int(node.variable)
            return lambda fact: fact[1][where]
        return lambda fact: clock.term(fact[0])

    return leaf


def own_getter(expression: Expression, clock: Clock) -> Getter:
    """An expression over a fact's own attributes, as a function of the fact."""
    attribute = only_attribute(expression)
    if attribute is not None:
        table, place = term_table(expression), int(attribute.variable)
        return lambda fact: table[fact[1][place]]
    return compile_expression(expression, _own_leaf(clock), clock=clock, seconds=True)


def own_condition(condition: Expression, clock: Clock) -> Callable[[Fact], bool]:
    """A condition on a fact alone, as a function of the fact."""
    if isinstance(condition, Call) and condition.function == "&&":
        first, second = (own_condition(part, clock) for part in condition.arguments)
        return lambda fact: first(fact) and second(fact)
    attribute = only_attribute(condition)
    if attribute is not None:
        table, place = truth_table(condition), int(attribute.variable)
        return lambda fact: table[fact[1][place]]
    return compile_condition(condition, _own_leaf(clock), clock=clock, seconds=True)

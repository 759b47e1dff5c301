"""Columns: the stored facts of a position, by key, for as long as a rule can look back.

Place:   plan.py chooses the kind of a column's buckets for a conjunct. detector.py writes the code that fills
         columns into its loop over instants; elsewhere `insert` is called. Compiled rules (code.py) read
         them.
Method:  a column is an index of buckets. A bucket has what is kept under one key: the latest fact, a
         monotonic stack, a log, or a running total, by level or not. Each kind can add a fact, drop old ones,
         and read several buckets as one, for keys that `=` equates with more than one exact key
         (expressions/equal_terms.py). Filling is generated code: one loop over an instant's facts that
         filters, computes the key and appends. A stack treats sizes above the highest threshold of its rules
         as equal, and takes none below the lowest.
         Expiry is a sweep once per retention while the column is not empty, so a fact is visited about twice
         after it came, and unread facts expire too.
Why not: a timer per fact, or expiry on look-up alone: the first costs more than the work, the second keeps
         facts forever that are never read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeAlias, assert_never, cast

from dotr.codegen import CodeSource
from dotr.detect.analysis import conjunction
from dotr.detect.plan_step import (
    ColumnSpec,
    Content,
    FactLog,
    LastValue,
    LatestOfGroups,
    MonotonicStack,
    Ranked,
    RankedTotal,
    RunningTotal,
)
from dotr.detect.scope import only_attribute, term_table, truth_table
from dotr.detect.thresholds import Threshold, ThresholdStack, measured, write_size, write_test
from dotr.detect.timeline import HeldTotal, Interval, IntervalLog, merged
from dotr.detect.totals import (
    JoinedRanks,
    JoinedTotal,
    RankedAggregate,
    RunningAggregate,
    RunningWeight,
    is_window,
    ranked,
    running,
    united,
)
from dotr.events import Clock, Fact, Time
from dotr.expressions.equal_terms import B, Key, KeyIndex, PartialKey, equality_class, has_peers
from dotr.expressions.evaluate import Getter, compile_condition, compile_expression
from dotr.program.queries import Attribute, Call, Expression, TimeOf, Var
from dotr.rdf.terms import Term
from dotr.rdf.values import values_key


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


Groups: TypeAlias = dict[tuple[Term | None, ...], Fact]
"""Group → its latest fact; in order of time."""


class GroupsKind:
    """The bucket has the latest fact of each group, never none."""

    def __init__(self, content: LatestOfGroups) -> None:
        self._places = content.places

    def open(self, fact: Fact) -> Groups:
        return self.add({}, fact)

    def add(self, bucket: Groups, fact: Fact) -> Groups:
        values = fact[1]
        group = tuple([values[place] for place in self._places])
        bucket.pop(group, None)  # it becomes the last
        bucket[group] = fact
        return bucket

    def expired(self, buckets: Iterable[tuple[Key, Groups]], since: Time) -> list[Key]:
        gone: list[Key] = []
        for key, groups in buckets:
            for group in list(groups):
                if groups[group][0] >= since:
                    break
                del groups[group]
            if not groups:
                gone.append(key)
        return gone

    def join(self, buckets: Sequence[Groups], since: Time) -> Groups | None:
        joined: Groups = {}
        facts = (fact for bucket in buckets for fact in bucket.values() if fact[0] >= since)
        for fact in sorted(facts, key=fact_key):
            self.add(joined, fact)
        return joined or None

    def size(self, buckets: Collection[tuple[Key, Groups]]) -> int:
        return sum([len(groups) for _, groups in buckets])

    def dump(self, bucket: Groups) -> list[Any]:
        return [list(fact) for fact in bucket.values()]


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

    def nothing(self) -> IntervalLog:
        return IntervalLog()

    def open(self, fact: Fact) -> IntervalLog:
        return self.add(IntervalLog(), fact)

    def add(self, bucket: IntervalLog, fact: Fact) -> IntervalLog:
        bucket.append(fact)
        return bucket

    def add_stretch(self, bucket: IntervalLog, points: range, facts: Sequence[Fact]) -> None:
        """Facts of one point at each of `points`."""
        bucket.add_stretch(points, [fact[1] for fact in facts])

    def expired(self, buckets: Iterable[tuple[Key, IntervalLog]], since: Time) -> list[Key]:
        for _, log in buckets:
            if log.oldest < since <= log.newest:
                log.forget(since)
        return [key for key, log in buckets if log.newest < since]

    def join(self, buckets: Sequence[IntervalLog], since: Time) -> IntervalLog | None:
        live = [bucket for bucket in buckets if bucket.newest >= since]
        if len(live) <= 1:
            return live[0] if live else None
        return merged(live, since)

    def size(self, buckets: Collection[tuple[Key, IntervalLog]]) -> int:
        return sum([log.kept() for _, log in buckets])

    def dump(self, bucket: IntervalLog) -> list[Any]:
        return bucket.dump()

    def load(self, blocks: Iterable[Sequence[Any]]) -> IntervalLog:
        bucket = IntervalLog()
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
        star = content.argument is None
        self._make = RunningWeight if content.weighed else running(content.function, content.distinct, star)
        self.argument = _weight(content.weight) if content.weighed else _argument(content, clock)

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
        star = content.argument is None
        return JoinedTotal(live, content.function, content.distinct, star, weighed=content.weighed)

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
        case LatestOfGroups():
            return GroupsKind(content)
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


def _weight(place: int) -> Getter:
    """For how many a fact of a rule stands, if it says so."""
    return lambda fact: fact[1][place] if len(fact[1]) > place else None


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


class Column(Generic[B]):
    """Owns the facts that rules may still read at a position.

    `filled`: `on_fill` was called; the engine resets it when it finds the column empty.
    """

    def __init__(
        self,
        spec: ColumnSpec,
        kind: BucketKind[B],
        clock: Clock,
        on_fill: Callable[[Column[Any]], None],
    ) -> None:
        self.spec = spec
        self.kind = kind
        self.retention: Time = 0
        self.filled = False
        self.index: KeyIndex[B] = KeyIndex()
        self._on_fill = on_fill
        self._clock = clock
        self.levels: set[int] = set()  # the least sizes that its rules take, if they share thresholds
        self.key_of: Callable[[Fact], PartialKey] = _key_function(spec.keys, clock)
        condition = conjunction(spec.filters)
        self._passes: Callable[[Fact], bool] = (
            (lambda _: True) if condition is None else own_condition(condition, clock)
        )

    def share(self, threshold: Threshold) -> None:
        """Add a rule with this threshold. Before the first fact."""
        self.levels.add(threshold.least)
        if isinstance(self.kind, MonotonicStackKind):
            self.kind.top = max(self.levels)
        elif isinstance(self.kind, RankedTotalKind):
            self.kind.share(threshold.least)

    @property
    def table(self) -> dict[Key, B]:
        return self.index.table

    def find(self, key: PartialKey, since: Time) -> Any:
        """What rules read for a key that `table` lacks: None, a bucket, or several read as one, of which
        nothing older than `since` is needed.
        """
        buckets = self.index.find(key)
        if len(buckets) <= 1:
            return buckets[0] if buckets else None
        return self.kind.join(buckets, since)

    def reaches(self, since: Time, classes: Sequence[tuple[int, object]]) -> bool:
        """Whether it has a fact not older than `since` with attributes of these classes. O(its facts)."""
        return any(
            fact[0] >= since
            and all(
                (term := fact[1][place]) is not None and equality_class(term) == wanted
                for place, wanted in classes
            )
            for _, bucket in self.index.items()
            for fact in self.kind.dump(bucket)
        )

    def pass_over(self, stretch: Interval) -> None:
        """Take what held at skipped points. O(atoms), however many points there are."""
        facts: list[Fact] = [(stretch.points[-1], values, 0, "") for values in stretch.atoms]
        kind = self.kind
        if not isinstance(kind, HeldLogKind | HeldTotalKind):
            self.insert(facts)  # only the latest counts
            return
        found: dict[PartialKey, list[Fact]] = {}
        for fact in facts:
            if self._passes(fact):
                found.setdefault(self.key_of(fact), []).append(fact)
        for key, of_key in found.items():
            known = self.index.exact(key)
            bucket: Any = kind.nothing() if known is None else known
            kind.add_stretch(bucket, stretch.points, of_key)
            if known is None and self.index.put(key, bucket):
                self._notify_filled()

    def sweep(self, now: Time) -> None:
        """Drop what is older than the retention."""
        self.index.drop(self.kind.expired(self.index.items(), now - self.retention))

    def consume(self, facts: Collection[Fact]) -> None:
        """Remove facts from a log. Cost: a look-up and a shift each, or one pass where many share a key."""
        if isinstance(self.kind, HeldLogKind):
            for fact in facts:
                log = cast("IntervalLog", self.index.exact(self.key_of(fact)))
                log.remove(fact)
                if not log.blocks:
                    self.index.remove(cast("Key", self.key_of(fact)))
            return
        by_key: dict[PartialKey, list[Fact]] = {}
        for fact in facts:
            by_key.setdefault(self.key_of(fact), []).append(fact)
        for key, gone in by_key.items():
            bucket = cast("list[Fact]", self.index.exact(key))
            if len(gone) > 8:
                out = set(gone)
                bucket[:] = [fact for fact in bucket if fact not in out]
            else:
                for fact in gone:
                    if bucket[-1] == fact:  # as LAST stores it
                        bucket.pop()
                    else:
                        del bucket[bucket.index(fact, bisect_left(bucket, (fact[0],)))]
            if not bucket:
                self.index.remove(cast("Key", key))

    def size(self) -> int:
        """The number of facts, including expired ones not yet swept."""
        return self.kind.size(self.index.items())

    def dump(self) -> dict[str, list[Any]]:
        """The content as a plain value that shares nothing with it: facts, or totals by key."""
        if isinstance(self.kind, HeldLogKind):
            return {"held": [[_plain_key(key), self.kind.dump(b)] for key, b in self.index.items()]}
        if isinstance(self.kind, TotalKind | RankedTotalKind):
            return {"totals": [[_plain_key(key), self.kind.dump(b)] for key, b in self.index.items()]}
        return {"facts": [fact for _, bucket in self.index.items() for fact in self.kind.dump(bucket)]}

    def load(self, dumps: Sequence[Mapping[str, list[Any]]]) -> None:
        """Fill an empty column with what one or several columns of the same facts held.

        Each held what its own rules could still read: the union serves all.
        """
        kind = self.kind
        if isinstance(kind, TotalKind | HeldLogKind | RankedTotalKind):
            form = "held" if isinstance(kind, HeldLogKind) else "totals"
            saved = [dump[form] for dump in dumps if form in dump]
            whole = (united(saved) if isinstance(kind, RankedTotalKind) else saved[0]) if saved else None
            if whole is not None:
                for key, entries in whole:
                    self.index.put(key if isinstance(key, str) else tuple(key), kind.load(entries))
                self._notify_filled()
                return
        sizes: dict[Fact, tuple[int, ...]] = {}
        for dump in dumps:
            for time, values, ordinal, id_, *size in dump["facts"]:
                fact = time, tuple(values), ordinal, id_
                sizes[fact] = max(sizes.get(fact, ()), tuple(size))
        self.insert([cast("Fact", (*fact, *sizes[fact])) for fact in in_order(sizes)])

    def _miss(self, key: PartialKey, fact: Fact) -> None:
        """Insert a fact whose key `table` lacks: new, ambiguous, or one that equals nothing."""
        if key.__class__ is str and not has_peers(key):
            self.index.table[key] = self.kind.open(fact)
            if not self.filled:
                self._notify_filled()
        else:
            bucket = self.index.exact(key)
            if bucket is not None:
                self.index.put(key, self.kind.add(bucket, fact))
            elif self.index.put(key, self.kind.open(fact)):
                self._notify_filled()

    def _notify_filled(self) -> None:
        if not self.filled and len(self.index):
            self.filled = True
            self._on_fill(self)

    @cached_property
    def insert(self) -> Callable[[Sequence[Fact]], None]:
        """Take an instant's facts, in canonical order; times never decrease."""
        source = CodeSource()
        self.write_insert(source, "facts")
        return source.function("facts")

    def write_insert(self, source: CodeSource, facts: str) -> None:
        """Write the code of `insert` for the facts in a local. All rules that share the column are known."""
        spec = self.spec
        table, miss = source.name("table", self.table), source.name("miss", self._miss)
        with source.block(f"for fact in {facts}"):
            source.line("values = fact[1]")
            if spec.size is not None:
                write_test(source, spec.size, "fact", "values")
                if spec.fed_by_base:
                    source.line("fact = fact[:4]")
            condition = conjunction(spec.filters)
            if condition is not None:
                passes = source.name("passes", own_condition(condition, self._clock))
                source.line(f"if not {passes}(fact): continue")
            content = spec.content
            if isinstance(content, Ranked | MonotonicStack | RankedTotal):
                write_size(source, content.measure, "fact", "values", min(self.levels))
            source.line(f"key = {_key_code(spec.keys, source, self._clock)}")
            match content:
                case LastValue():
                    source.line(f"if key in {table}: {table}[key] = fact")
                    source.line(f"else: {miss}(key, fact)")
                case LatestOfGroups():
                    add = source.name("add", self.kind.add)
                    source.line(f"bucket = {table}.get(key)")
                    source.line(f"if bucket is None: {miss}(key, fact)")
                    source.line(f"else: {add}(bucket, fact)")
                case FactLog() | Ranked():
                    source.line(f"bucket = {table}.get(key)")
                    source.line(f"if bucket is None: {miss}(key, fact)")
                    source.line("else: bucket.append(fact)")
                case MonotonicStack():
                    source.line(f"bucket = {table}.get(key)")
                    source.line(f"if bucket is None: {miss}(key, fact)")
                    with source.block("else"):
                        self._write_push(source)
                case RankedTotal(argument=of):
                    levels, cut = source.name("levels", sorted(self.levels)), source.name("cut", bisect_right)
                    term = "None" if of is None else _own_code(of, source, self._clock)
                    source.line(f"bucket = {table}.get(key)")
                    source.line(f"if bucket is None: {miss}(key, fact)")
                    source.line(f"else: bucket.add(fact[0], {term}, {levels}[{cut}({levels}, size) - 1])")
                case RunningTotal(weighed=True):
                    add = source.name("add", self.kind.add)
                    source.line(f"bucket = {table}.get(key)")
                    source.line(f"if bucket is None: {miss}(key, fact)")
                    source.line(f"else: {add}(bucket, fact)")
                case RunningTotal(argument=of):
                    term = "None" if of is None else _own_code(of, source, self._clock)
                    in_window = is_window(content.function, content.distinct) and not content.held
                    source.line(f"bucket = {table}.get(key)")
                    source.line(f"if bucket is None: {miss}(key, fact)")
                    if in_window:  # what `add` does, without the call
                        source.line(f"else: bucket.later.append((fact[0], {term}))")
                    else:
                        source.line(f"else: bucket.add(fact[0], {term})")
                case _:
                    assert_never(content)

    def _write_push(self, source: CodeSource) -> None:
        """Write a stack's `add`; a stack in the table is never empty."""
        kept = f"fact{'[:4]' if self.spec.fed_by_base else ''}"
        top = source.name("top", max(self.levels))
        source.line(f"if size > {top}: size = {top}")
        source.line("facts_, sizes = bucket.facts, bucket.measures")
        with source.block("if sizes[-1] > size"):
            source.line("sizes.append(size)")
            source.line(f"facts_.append({kept})")
        with source.block("else"):
            with source.block("while len(sizes) > 1 and sizes[-2] <= size"):
                source.line("sizes.pop()")
                source.line("facts_.pop()")
            source.line(f"sizes[-1], facts_[-1] = size, {kept}")


def open_column(
    spec: ColumnSpec,
    clock: Clock,
    on_fill: Callable[[Column[Any]], None],
) -> Column[Any]:
    """An empty column."""
    return Column(spec, kind_of(spec.content, clock), clock, on_fill)


def _plain_key(key: Key) -> str | list[str]:
    return key if isinstance(key, str) else list(key)


def _key_code(keys: Sequence[Expression], source: CodeSource, clock: Clock) -> str:
    """Source of the key of `fact`."""
    texts = [_own_code(key, source, clock) for key in keys]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _own_code(expression: Expression, source: CodeSource, clock: Clock) -> str:
    """Source of a value of `fact`, of which `values` are the attributes."""
    if isinstance(expression, Attribute):
        return f"values[{int(expression.variable)}]"
    return f"{source.name('own', own_getter(expression, clock))}(fact)"


def _key_function(keys: Sequence[Expression], clock: Clock) -> Callable[[Fact], PartialKey]:
    source = CodeSource()
    source.line("values = fact[1]")
    source.line(f"return {_key_code(keys, source, clock)}")
    return source.function("fact")

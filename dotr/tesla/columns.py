"""Columns: the stored facts of a position, by key, for as long as a rule can look back.

Place:   batch_loop.py writes the code that fills them into its loop over instants; elsewhere `insert` is
         called. Compiled rules (compile.py) read them.
Method:  a column is an index of buckets (buckets.py). Filling is generated code: one loop over an instant's
         facts that filters, computes the key and appends. A stack treats sizes above the highest threshold
         of its rules as equal, and takes none below the lowest. Expiry is a sweep once per retention while
         the column is not empty, so a fact is visited about twice after it came, and unread facts expire too.
Why not: a timer per fact, or expiry on look-up alone: the first costs more than the work, the second keeps
         facts forever that are never read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, assert_never, cast

from dotr.codegen import CodeSource
from dotr.events import Clock, Fact, Time
from dotr.ir.expressions import Attribute, Expression
from dotr.temporal.equal_terms import B, Key, KeyIndex, PartialKey, equality_class, has_peers
from dotr.tesla.buckets import (
    BucketKind,
    HeldLogKind,
    HeldTotalKind,
    MonotonicStackKind,
    RankedTotalKind,
    TotalKind,
    in_order,
    kind_of,
    own_condition,
    own_getter,
)
from dotr.tesla.column_spec import (
    ColumnSpec,
    FactLog,
    LastValue,
    MonotonicStack,
    Ranked,
    RankedTotal,
    RunningTotal,
)
from dotr.tesla.conditions import conjunction
from dotr.tesla.ranked_totals import united
from dotr.tesla.stretches import HeldLog, Stretch
from dotr.tesla.thresholds import Threshold, write_size, write_test


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

    def pass_over(self, stretch: Stretch) -> None:
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
                log = cast("HeldLog", self.index.exact(self.key_of(fact)))
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
                case RunningTotal():
                    add = source.name("add", self.kind.add)
                    source.line(f"bucket = {table}.get(key)")
                    source.line(f"if bucket is None: {miss}(key, fact)")
                    source.line(f"else: {add}(bucket, fact)")
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

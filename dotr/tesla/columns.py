"""Columns: what is remembered of a position's facts, by key, no longer than a rule can look back.

Place:   engine.py fills them instant by instant; compiled rules (compile.py) look into them.
Method:  a column is an index of buckets (keys.py). Filling is generated code: one loop over an instant's
         facts that filters, computes the key and appends. Expiry is a sweep once per retention while anything
         is inside, so a fact is looked at about twice after it came, and what nobody asks for goes too.
Why not: a timer per fact, or expiry on look-up alone: the first costs more than the work, the second
         keeps for ever what is never asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, assert_never, cast

from dotr.events import Clock, Fact, Time
from dotr.expressions.evaluate import Getter, compile_condition, compile_expression
from dotr.ir.expressions import Attribute, Expression, TimeOf, Var
from dotr.rdf.order import values_key
from dotr.rdf.terms import Term
from dotr.tesla.conditions import conjunction
from dotr.tesla.keys import B, Key, KeyIndex, PartialKey
from dotr.tesla.plan import ColumnSpec, Content, Latest, Log, Stairs, Total
from dotr.tesla.source import Source
from dotr.tesla.thresholds import Flight, measured
from dotr.tesla.totals import Joined, Running, running


def fact_key(fact: Fact) -> tuple[Any, ...]:
    """Canonical order of the facts of one stream: time, values, ordinal."""
    return fact[0], values_key(fact[1]), fact[2]


class Kind(Protocol[B]):
    """What a bucket is and how it is kept."""

    def open(self, fact: Fact) -> B:
        """A bucket with its first fact."""

    def add(self, bucket: B, fact: Fact) -> B:
        """The bucket with one more, newer in canonical order."""

    def expired(self, buckets: Iterable[tuple[Key, B]], since: Time) -> list[Key]:
        """Forget what is older than `since`; the keys of the buckets in which nothing is left."""

    def join(self, buckets: Sequence[B]) -> Any:
        """Several buckets as one to read from."""

    def size(self, bucket: B) -> int:
        """How many facts it holds."""

    def dump(self, bucket: B) -> list[Any]:
        """The bucket as plain values, facts as lists in canonical order."""


class LatestKind:
    """The bucket is the fact itself."""

    def open(self, fact: Fact) -> Fact:
        return fact

    def add(self, bucket: Fact, fact: Fact) -> Fact:
        return fact

    def expired(self, buckets: Iterable[tuple[Key, Fact]], since: Time) -> list[Key]:
        return [key for key, fact in buckets if fact[0] < since]

    def join(self, buckets: Sequence[Fact]) -> Fact:
        return max(buckets, key=fact_key)

    def size(self, bucket: Fact) -> int:
        return 1

    def dump(self, bucket: Fact) -> list[Any]:
        return [list(bucket)]


class LogKind:
    """The bucket is a list of facts in canonical order, never empty; its older end may have expired."""

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

    def join(self, buckets: Sequence[list[Fact]]) -> list[Fact]:
        return sorted((fact for bucket in buckets for fact in bucket), key=fact_key)

    def size(self, bucket: list[Fact]) -> int:
        return len(bucket)

    def dump(self, bucket: list[Fact]) -> list[Any]:
        return [list(fact) for fact in bucket]


class StairsKind:
    """The bucket is a flight of stairs."""

    def __init__(self, content: Stairs) -> None:
        self.measure = measured(content.measure)

    def open(self, fact: Fact) -> Flight:
        return self.add(Flight(), fact)

    def add(self, bucket: Flight, fact: Fact) -> Flight:
        measure = self.measure(fact[1])
        if measure is not None:
            bucket.add(fact, measure)
        return bucket

    def expired(self, buckets: Iterable[tuple[Key, Flight]], since: Time) -> list[Key]:
        return [key for key, flight in buckets if not flight.expire(since)]

    def join(self, buckets: Sequence[Flight]) -> Flight:
        joined = Flight()
        for fact in sorted((fact for flight in buckets for fact in flight.facts), key=fact_key):
            self.add(joined, fact)
        return joined

    def size(self, bucket: Flight) -> int:
        return len(bucket.facts)

    def dump(self, bucket: Flight) -> list[Any]:
        return [list(fact) for fact in bucket.facts]


class TotalKind:
    """The bucket is a running aggregate."""

    def __init__(self, content: Total, clock: Clock) -> None:
        self._content = content
        self._make = running(content.function, content.distinct, content.argument is None)
        self.argument: Getter = (
            (lambda fact: None) if content.argument is None else own_getter(content.argument, clock)
        )

    def open(self, fact: Fact) -> Running:
        return self.add(self._make(), fact)

    def add(self, bucket: Running, fact: Fact) -> Running:
        bucket.add(fact[0], self.argument(fact))
        return bucket

    def expired(self, buckets: Iterable[tuple[Key, Running]], since: Time) -> list[Key]:
        return [key for key, total in buckets if not total.expire(since)]

    def join(self, buckets: Sequence[Running]) -> Joined:
        content = self._content
        return Joined(buckets, content.function, content.distinct, content.argument is None)

    def size(self, bucket: Running) -> int:
        return len(bucket.entries())

    def dump(self, bucket: Running) -> list[Any]:
        return [list(entry) for entry in bucket.entries()]

    def load(self, entries: Iterable[tuple[Time, Term | None]]) -> Running:
        bucket = self._make()
        for time, term in entries:
            bucket.add(time, term)
        return bucket


class Column(Generic[B]):
    """Owns the facts that one or several rules may still ask for at a position.

    `insert(facts)`: take an instant's facts, in canonical order; times never decrease. `filled` says that
    `on_fill` was told; the engine sets it back when it finds the column empty.
    """

    def __init__(
        self, spec: ColumnSpec, kind: Kind[B], clock: Clock, on_fill: Callable[[Column[Any]], None]
    ) -> None:
        self.spec = spec
        self.kind = kind
        self.retention: Time = 0
        self.filled = False
        self.index: KeyIndex[B] = KeyIndex()
        self._on_fill = on_fill
        self._clock = clock
        self.key_of: Callable[[Fact], PartialKey] = _key_function(spec.keys, clock)
        self.insert: Callable[[Sequence[Fact]], None] = self._compile_insert()

    @property
    def table(self) -> dict[Key, B]:
        return self.index.table

    def find(self, key: PartialKey) -> Any:
        """What rules read for a key that `table` does not have: None, a bucket, or several read as one."""
        buckets = self.index.find(key)
        if len(buckets) <= 1:
            return buckets[0] if buckets else None
        return self.kind.join(buckets)

    def sweep(self, now: Time) -> None:
        """Drop what lies further back than the retention."""
        for key in self.kind.expired(self.index.items(), now - self.retention):
            self.index.remove(key)

    def consume(self, facts: Collection[Fact]) -> None:
        """Take facts out of a log. Cost: a look-up and a shift each, or one pass where many share a key."""
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
                    if bucket[-1] == fact:  # as LAST leaves it
                        bucket.pop()
                    else:
                        del bucket[bucket.index(fact, bisect_left(bucket, (fact[0],)))]
            if not bucket:
                self.index.remove(cast("Key", key))

    def size(self) -> int:
        """How many facts are inside, expired ones included until they are swept."""
        return sum(self.kind.size(bucket) for _, bucket in self.index.items())

    def dump(self) -> dict[str, list[Any]]:
        """What is inside as a plain value that shares nothing with it: facts, or totals by key."""
        if isinstance(self.kind, TotalKind):
            return {"totals": [[_plain_key(key), self.kind.dump(b)] for key, b in self.index.items()]}
        return {"facts": [fact for _, bucket in self.index.items() for fact in self.kind.dump(bucket)]}

    def load(self, dumps: Sequence[Mapping[str, list[Any]]]) -> None:
        """Fill an empty column with what one or several columns of the same facts held.

        Those may have held other facts, each what its own rules could still ask for: the union serves all.
        """
        if isinstance(self.kind, TotalKind):
            for key, entries in dumps[0]["totals"]:
                self.index.put(key if isinstance(key, str) else tuple(key), self.kind.load(entries))
            self._tell()
            return
        facts = {
            (time, tuple(values), ordinal, id_)
            for dump in dumps
            for time, values, ordinal, id_ in dump["facts"]
        }
        self.insert(sorted(facts, key=fact_key))

    def _miss(self, key: PartialKey, fact: Fact) -> None:
        """A fact whose key `table` does not have: new, ambiguous, or one that equals nothing."""
        bucket = self.index.exact(key)
        if bucket is not None:
            self.index.put(key, self.kind.add(bucket, fact))
        elif self.index.put(key, self.kind.open(fact)):
            self._tell()

    def _tell(self) -> None:
        if not self.filled and len(self.index):
            self.filled = True
            self._on_fill(self)

    def _compile_insert(self) -> Callable[[Sequence[Fact]], None]:
        source = Source()
        table, miss = source.name("table", self.table), source.name("miss", self._miss)
        with source.block("for fact in facts"):
            condition = conjunction(self.spec.filters)
            if condition is not None:
                passes = source.name("passes", own_condition(condition, self._clock))
                source.line(f"if not {passes}(fact): continue")
            source.line(f"key = {_key_code(self.spec.keys, source, self._clock)}")
            match self.spec.content:
                case Latest():
                    source.line(f"if key in {table}: {table}[key] = fact")
                    source.line(f"else: {miss}(key, fact)")
                case Log():
                    source.line(f"bucket = {table}.get(key)")
                    source.line(f"if bucket is None: {miss}(key, fact)")
                    source.line("else: bucket.append(fact)")
                case Stairs(measure=measure):
                    source.line(f"size = {source.name('measure', measured(measure))}(fact[1])")
                    source.line("if size is None: continue")
                    source.line(f"bucket = {table}.get(key)")
                    source.line(f"if bucket is None: {miss}(key, fact)")
                    source.line("else: bucket.add(fact, size)")
                case Total():
                    add = source.name("add", self.kind.add)
                    source.line(f"bucket = {table}.get(key)")
                    source.line(f"if bucket is None: {miss}(key, fact)")
                    source.line(f"else: {add}(bucket, fact)")
                case _:
                    assert_never(self.spec.content)
        return source.function("facts")


def open_column(spec: ColumnSpec, clock: Clock, on_fill: Callable[[Column[Any]], None]) -> Column[Any]:
    """An empty column."""
    return Column(spec, _kind(spec.content, clock), clock, on_fill)


def _kind(content: Content, clock: Clock) -> Kind[Any]:
    match content:
        case Latest():
            return LatestKind()
        case Log():
            return LogKind()
        case Total():
            return TotalKind(content, clock)
        case Stairs():
            return StairsKind(content)
        case _:
            assert_never(content)


def _plain_key(key: Key) -> str | list[str]:
    return key if isinstance(key, str) else list(key)


def _own_leaf(clock: Clock) -> Callable[[Var | Attribute | TimeOf], Getter]:
    def leaf(node: Var | Attribute | TimeOf) -> Getter:
        if isinstance(node, Attribute):
            where = int(node.variable)
            return lambda fact: fact[1][where]
        return lambda fact: clock.term(fact[0])

    return leaf


def own_getter(expression: Expression, clock: Clock) -> Getter:
    """An expression over a fact's own attributes, as a function of the fact."""
    return compile_expression(expression, _own_leaf(clock), clock=clock, dates=False)


def own_condition(condition: Expression, clock: Clock) -> Callable[[Fact], bool]:
    """A condition on a fact alone, as a function of the fact."""
    return compile_condition(condition, _own_leaf(clock), clock=clock, dates=False)


def _key_code(keys: Sequence[Expression], source: Source, clock: Clock) -> str:
    """Source of the key of `fact`."""

    def part(expression: Expression) -> str:
        if isinstance(expression, Attribute):
            return f"fact[1][{int(expression.variable)}]"
        return f"{source.name('own', own_getter(expression, clock))}(fact)"

    texts = [part(key) for key in keys]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _key_function(keys: Sequence[Expression], clock: Clock) -> Callable[[Fact], PartialKey]:
    source = Source()
    source.line(f"return {_key_code(keys, source, clock)}")
    return source.function("fact")


__all__ = ["Column", "fact_key", "open_column"]

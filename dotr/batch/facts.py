"""Facts and graphs as rows and bundles, the form in which a shuffle moves them.

Place:   work.py writes and reads rows of facts and their bundles on both sides of a shuffle (Spark's or
         local.py's); spark/stream_bundles.py has those of a stream.
Method:  a row is (part, time, string): all facts that a part needs of an instant, since a row costs the
         shuffle more than its facts do. The string has a line per stream: its number, then the values of all
         its facts, separated by tabs, unbound ones empty; no N-Triples term contains a raw tab or newline, or
         is empty. Facts have as many values as their stream has variables; if an ordinal is not 0, or there
         are no variables, ordinals precede the values of each, marked by `!` after the number. A part is one
         number for (group, bucket of keys, slice of time), so that the shuffle uses one column. Only time
         needs sorting within a part; facts are already in canonical order.
         A bundle of facts has many instants of one part in one bytes value: a shuffle's cost is per row, and
         facts repeat (rooms, kinds, states). A task collects some ten thousand rows at a time; a bundle has
         the distinct strings, and for each row its time and the number of its string. Bundles of a part are
         sorted by their first time; those that overlap are open together, at 12 bytes per row and their
         strings.
         Where something lasts a string has the triples of a part's keys instead.
Why not: pickle (a row outlives the process that wrote it), or a column per attribute (streams differ in
         width). A dictionary of terms instead of whole strings: every value would be looked up and assembled
         again, and Spark's compression of a shuffle gains as much.
"""

from __future__ import annotations

import marshal
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias, assert_never

from msgspec import Struct

from dotr.batch.time_cuts import Slices
from dotr.detect.partitioning import Partitioning, RuleComponentGroup, StreamKeys, bucket
from dotr.events import Fact, GraphOrMessage, Time, labelled
from dotr.expressions.rhythms import is_tick
from dotr.extract.sharing import attributes
from dotr.joins.plan import is_class, relation_of
from dotr.program import Between, Position, Program, Rhythm, Tick, Window, Within
from dotr.rdf.terms import RDF_TYPE

VERSION = 2
"""The version of the text's form; part of a job's key, so that workers of different releases never mix."""

FactRow: TypeAlias = tuple[int, Time, str]

MARK: Time = -(2**63)
"""The time of a row that carries "first last", the first and last instant of the whole log, instead of facts.
It sorts before everything. Parts of groups with EVERY have one, even without other rows."""


_ORDINAL = itemgetter(2)


REFUSED = -(2**63)
"""The part of rows that carry the dead letter of a graph whose instant is in error. It sorts before
everything.
"""

LETTER = REFUSED + 3
"""The part of rows that carry the dead letter of a graph that could not be read, at an instant of others."""

FINDING = REFUSED + 1
"""The part of rows that carry warnings about an instant (work.py)."""

COUNTED = REFUSED + 2
"""The part of rows that carry a task's number of facts by query (JSON)."""

INSTANTS = ""
"""The key under which a row of COUNTED counts instants, instead of the name of a query."""

GRAPHS_READ = " "
"""The key under which it counts the graphs of a frame."""


APART = REFUSED + 1023
"""Rows of parts up to here carry no facts."""


class Cut(Struct, frozen=True):
    """How one group is partitioned: into buckets of keys (1: not by key), and by time or not."""

    buckets: int = 1
    slices: Slices | None = None


class Layout(Struct, frozen=True):
    """Owns the numbering of parts: one `Cut` for each group of the plan.

    `last`: the last instant of the log; slices after it own and read nothing.
    """

    plan: Partitioning
    cuts: tuple[Cut, ...]
    last: Time

    def part(self, group: int, bucket: int, slice_: int) -> int:
        return (slice_ * self.cuts[group].buckets + bucket) * len(self.cuts) + group

    def owner(self, part: int) -> tuple[int, int, int]:
        """(group, bucket, slice) of a part number."""
        rest, group = divmod(part, len(self.cuts))
        slice_, bucket = divmod(rest, self.cuts[group].buckets)
        return group, bucket, slice_

    @property
    def graphs(self) -> RuleComponentGroup | None:
        """The group of all rules, if graphs are divided instead of facts."""
        first = self.plan.groups[0] if self.plan.groups else None
        return None if first is None or first.relations is None else first

    def numbered(self, first: Time) -> tuple[int, list[int]]:
        """The number of parts of a log from `first` to `last`, and per group the offset to a part's number
        without its group (`part // groups`) that numbers all parts from 0 on.
        """
        total = 0
        added: list[int] = []
        for cut in self.cuts:
            slices = range(1)
            if cut.slices is not None:
                slices = range(cut.slices.seen_by(first, 0).start, cut.slices.seen_by(self.last, 0).stop)
            added.append(total - slices.start * cut.buckets)
            total += len(slices) * cut.buckets
        return total, added

    def parts_of_instant(
        self, group: RuleComponentGroup, buckets: Sequence[int], time: Time
    ) -> Iterator[tuple[int, int]]:
        """(part, bucket) for every part that reads `time` in one of `buckets`."""
        slices = self.cuts[group.number].slices
        seen = range(1)
        if slices is not None:
            # slices beyond the last instant own nothing
            seen = slices.seen_by(time, min(group.horizon or 0, self.last - time))
        for slice_ in seen:
            for number in buckets:
                yield self.part(group.number, number, slice_), number


class Router:
    """Sends the facts of an instant to the parts that need them. Stateless after construction."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self._layout = layout
        self._numbers = {name: number for number, name in enumerate(program.queries)}
        self._groups = [(group, _needs(program, group)) for group in layout.plan.groups]

    def rows(self, time: Time, facts: Mapping[str, Sequence[Fact]]) -> list[FactRow]:
        """The rows of one instant, at most one per part.

        An instant without facts for a group matters to it only on a tick, or at the beginning of a timeline:
        then the row records that a graph came, so that the tick does not take the background's own facts for
        the instant's. (When AFTER ticks is not known here: every instant may be one.)
        """
        rows: list[FactRow] = []
        layout = self._layout
        lines: dict[str, str] = {}
        for group, needs in self._groups:
            mine = [
                name
                for name, found in facts.items()
                if found and (need := needs.get(name)) is not None and (need.always or need.at(time, facts))
            ]
            ticked = group.holds or group.sees_all or any(is_tick(every, time) for every in group.ticks)
            if not mine and not ticked:
                continue
            buckets = layout.cuts[group.number].buckets
            if group.keys is None or buckets == 1:
                for name in mine:
                    if name not in lines:
                        lines[name] = fact_line(self._numbers[name], facts[name])
                texts = {0: "\n".join([lines[name] for name in mine])}
            else:
                texts = self._by_key(group.keys, buckets, mine, facts)
            if layout.cuts[group.number].slices is None:
                rows += [
                    (layout.part(group.number, number, 0), time, texts[number]) for number in sorted(texts)
                ]
                continue
            for part, number in layout.parts_of_instant(group, sorted(texts), time):
                rows.append((part, time, texts[number]))
        return rows

    def _by_key(
        self, keys: StreamKeys, buckets: int, names: Sequence[str], facts: Mapping[str, Sequence[Fact]]
    ) -> dict[int, str]:
        """The text of each bucket that gets a fact."""
        lines: dict[int, list[str]] = {}
        for name in names:
            places = keys[name]
            if not places:
                line = fact_line(self._numbers[name], facts[name])
                for number in range(buckets):
                    lines.setdefault(number, []).append(line)
                continue
            parted: dict[int, list[Fact]] = {}
            for fact in facts[name]:
                parted.setdefault(bucket(fact[1], places, buckets), []).append(fact)
            for number, found in parted.items():
                lines.setdefault(number, []).append(fact_line(self._numbers[name], found))
        return {number: "\n".join(texts) for number, texts in lines.items()}


class GraphRouter:
    """Divides graphs where what lasts is divided: triples go to the bucket of their key, or to all."""

    def __init__(self, layout: Layout, group: RuleComponentGroup) -> None:
        assert group.relations is not None, "graphs are divided"
        self._relations = group.relations
        self._rest = group.relations.get(RDF_TYPE, -1)
        self._buckets = layout.cuts[group.number].buckets
        self._parts = [layout.part(group.number, number, 0) for number in range(self._buckets)]
        self._sees_all = group.sees_all

    def rows(self, time: Time, graphs: Sequence[GraphOrMessage]) -> list[FactRow]:
        """The rows of one instant: for each part that needs it its triples, as N-Triples, whose blank nodes
        have the labels of a run.
        """
        relations, rest, buckets = self._relations, self._rest, self._buckets
        lines: list[list[str]] = [[] for _ in range(buckets)]
        for message in labelled(graphs, time):
            for triple in message.graph or ():
                relation = relation_of(*triple)
                place = relations.get(relation, rest if is_class(relation) else -1)
                if place == -1:
                    continue
                line = f"{triple[0]} {triple[1]} {triple[2]} .\n"
                if place is None:
                    for found in lines:
                        found.append(line)
                else:
                    key = attributes((triple[2 * place],))
                    lines[bucket(key, (0,), buckets)].append(line)
        return [
            (part, time, "".join(found))
            for part, found in zip(self._parts, lines, strict=True)
            if found or self._sees_all
        ]


class _Need(Struct, frozen=True):
    """When a group needs the facts of a stream: always, at `ticks` of EVERY, or beside facts of
    `streams`.
    """

    always: bool
    ticks: frozenset[Rhythm]
    streams: frozenset[str]

    def at(self, time: Time, facts: Mapping[str, Sequence[Fact]]) -> bool:
        return (
            self.always
            or any(is_tick(rhythm, time) for rhythm in self.ticks)
            or not self.streams.isdisjoint(facts)
        )


def _needs(program: Program, group: RuleComponentGroup) -> dict[str, _Need]:
    """Per stream of a group, when its facts can matter.

    A position `WITHIN 0 s FROM` the trigger only reads the trigger's own instant. Facts of the background at
    every instant are mostly used that way (`EACH Sensor WITHIN 0 s FROM Tick`), and would be most of the
    traffic.
    """
    found: dict[str, _Need] = {}
    for rule in (program.rules[i] for i in group.rules):
        trigger = rule.trigger
        momentary = {c.position.name for c in rule.conjuncts if _momentary(c.window, trigger.name)}
        for position in rule.positions:
            if position.within_instant:
                continue
            need = _Need(True, frozenset(), frozenset())
            if position.name in momentary:
                if isinstance(trigger, Tick):
                    need = _Need(False, frozenset((trigger.rhythm,)), frozenset())
                elif isinstance(trigger, Position) and not trigger.within_instant:
                    need = _Need(False, frozenset(), frozenset((trigger.stream,)))
            known = found.get(position.stream, _Need(False, frozenset(), frozenset()))
            found[position.stream] = _Need(
                known.always or need.always, known.ticks | need.ticks, known.streams | need.streams
            )
    if group.holds:
        found.update(dict.fromkeys(program.lars.reads, _Need(True, frozenset(), frozenset())))
    return found


def _momentary(window: Window, trigger: str) -> bool:
    match window:
        case Within(duration=0, reference=reference):
            return reference == trigger
        case Within() | Between():
            return False
        case _:
            assert_never(window)


def fact_line(stream: int, facts: Sequence[Fact]) -> str:
    """Facts of one stream as text, without time and end of line. Facts of queries have no id."""
    if any(map(_ORDINAL, facts)) or not facts[0][1]:
        marked = [f"{stream}!"]
        for fact in facts:
            marked.append(str(fact[2]))
            marked += [value or "" for value in fact[1]]
        return "\t".join(marked)
    return "\t".join([str(stream), *[value or "" for fact in facts for value in fact[1]]])


class FactReader:
    """Parses rows of facts. `names` and widths are those of the program's queries in order."""

    def __init__(self, program: Program) -> None:
        self._streams = {
            f"{number}{marked}": (name, len(query.variables) + bool(marked), bool(marked))
            for number, (name, query) in enumerate(program.queries.items())
            for marked in ("", "!")
        }

    def read(self, text: str, time: Time) -> dict[str, list[Fact]]:
        """The facts of a row by stream, in the order written."""
        facts: dict[str, list[Fact]] = {}
        if not text:
            return facts
        for line in text.split("\n"):
            values: list[str | None] = line.split("\t")  # type: ignore[assignment]  # unbound ones come below
            name, width, marked = self._streams[values[0] or ""]
            if "" in values:
                values = [value or None for value in values]
            rest = iter(values)
            next(rest)
            rows = zip(*[rest] * width, strict=True)
            if marked:
                facts[name] = [(time, row[1:], int(row[0] or 0), "") for row in rows]
            else:
                facts[name] = [(time, row, 0, "") for row in rows]
        return facts


def marks(layout: Layout, first: Time) -> list[FactRow]:
    """One row for every part of a group with ticks or LARS rules, without which ticks in empty parts, or
    after the last facts of one, would be lost.
    """
    rows: list[FactRow] = []
    text = f"{first} {layout.last}"
    for group in layout.plan.groups:
        if not group.ticking and not group.holds:
            continue
        cut = layout.cuts[group.number]
        slices = range(1)
        if cut.slices is not None:
            slices = range(cut.slices.seen_by(first, 0).start, cut.slices.seen_by(layout.last, 0).stop)
        for slice_ in slices:
            rows += [(layout.part(group.number, part, slice_), MARK, text) for part in range(cut.buckets)]
    return rows


BundleRow: TypeAlias = tuple[int, Time, bytes]
"""(part, the first time in it, the rest of its rows); of parts up to APART: the text of one row."""

Timed: TypeAlias = tuple[Time, str]

GATHERED = 65_536
"""The limit of collected rows."""

CHARACTERS = 8_000_000
"""The approximate limit of their characters."""

_FORMAT = 4
_PART = _TIME = itemgetter(0)


def bundled(rows: Iterable[FactRow]) -> Iterator[list[BundleRow]]:
    """Rows in any order as bundles, several per part; each list is one collection."""
    parts: dict[int, list[Timed]] = {}
    apart: list[BundleRow] = []
    count = size = 0
    for part, time, text in rows:
        if part <= APART:
            apart.append((part, time, text.encode()))
        else:
            found = parts.get(part)
            if found is None:
                found = parts[part] = []
            found.append((time, text))
        count += 1
        size += len(text)
        if count >= GATHERED or size >= CHARACTERS:
            yield [*apart, *(bundle(part, found) for part, found in parts.items())]
            parts, apart, count, size = {}, [], 0, 0
    if count:
        yield [*apart, *(bundle(part, found) for part, found in parts.items())]


def bundle(part: int, rows: list[Timed]) -> BundleRow:
    """Rows of one part, at least one; sorts them."""
    rows.sort(key=_TIME)
    texts: dict[str, int] = {}
    numbers = array("I", [texts.setdefault(text, len(texts)) for _, text in rows])
    times = array("q", [time for time, _ in rows])
    content = list(texts), times.tobytes(), numbers.tobytes()
    return part, times[0], marshal.dumps(content, _FORMAT)


def unbundled(rows: Iterable[BundleRow]) -> Iterator[FactRow]:
    """The rows of bundles that are sorted by part and first time, by part and time."""
    for part, bundles in groupby(rows, key=_PART):
        if part <= APART:
            yield from ((part, time, content.decode()) for _, time, content in bundles)
            continue
        for time, text in _in_order(bundles):
            yield part, time, text


class _Open(Struct):
    """Owns the remaining rows of a bundle, from `place` on, in order."""

    texts: list[str]
    times: array[int]
    numbers: array[int]
    place: int = 0

    def upto(self, bound: Time) -> Iterator[Timed]:
        """Remove and return the rows before `bound`."""
        start, self.place = self.place, bisect_left(self.times, bound, self.place)
        return zip(
            self.times[start : self.place],
            map(self.texts.__getitem__, self.numbers[start : self.place]),
            strict=True,
        )


def _opened(content: bytes) -> _Open:
    texts, kept_times, kept_numbers = marshal.loads(content)  # noqa: S302  # our own bytes, same release
    times, numbers = array("q"), array("I")
    times.frombytes(kept_times)
    numbers.frombytes(kept_numbers)
    return _Open(texts, times, numbers)


_Heap: TypeAlias = list[tuple[Time, int, _Open]]
"""Open bundles by the time of their next row."""


def _in_order(bundles: Iterable[BundleRow]) -> Iterator[Timed]:
    """The rows of one part. Holds the unfinished bundles that begin before the next row."""
    heap: _Heap = []
    for number, (_part, first, content) in enumerate(bundles):
        yield from _before(heap, first)
        heappush(heap, (first, number, _opened(content)))
    yield from _before(heap, 2**63)


def _before(heap: _Heap, bound: Time) -> Iterator[Timed]:
    """Remove and return the rows before `bound`; about GATHERED at a time are sorted."""
    while heap and heap[0][0] < bound:
        first = heap[0][2]
        some = max(1, GATHERED // len(heap))
        until = min(bound, first.times[min(first.place + some, len(first.times)) - 1] + 1)
        rows: list[Timed] = []
        left: list[tuple[Time, int, _Open]] = []
        while heap and heap[0][0] < until:
            _, number, found = heappop(heap)
            rows += found.upto(until)
            if found.place < len(found.times):
                left.append((found.times[found.place], number, found))
        for entry in left:
            heappush(heap, entry)
        rows.sort(key=_TIME)
        yield from rows

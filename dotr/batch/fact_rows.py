"""Facts as rows: what one part of one group needs of one instant.

Place:   extracting.py writes rows, fact_bundles.py passes them in order through a shuffle (Spark's or
         local.py's), detecting.py reads them.
Method:  a row is (part, time, text). The text has a line per stream: its number, then the values of all its
         facts, separated by tabs, unbound ones empty; no N-Triples term holds a raw tab or newline, or is
         empty. Facts have as many values as their stream has variables; if an ordinal is not 0, or there are
         no variables, ordinals precede the values of each, marked by `!` after the number. All facts that a
         part needs of an instant are one row, since a row costs the shuffle more than its facts do. A part is
         one number for (group, bucket of keys, slice of time), so that the shuffle uses one column. Time
         needs sorting only within a part; facts are already in canonical order, part by part.
Why not: pickle (a row outlives the process that wrote it), or a column per attribute (streams differ in
         width).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias, assert_never

from msgspec import Struct

from dotr.batch.time_slices import Slices
from dotr.events import Fact, Time
from dotr.ir import Between, Every, Program, Window, Within
from dotr.temporal.partitions import Partitioning, RuleComponentGroup, StreamKeys, bucket

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
"""The part of rows that carry warnings about an instant (findings_as_json.py)."""

COUNTED = REFUSED + 2
"""The part of rows that carry a task's number of facts by query (JSON)."""

INSTANTS = ""
"""The key under which a row of COUNTED counts instants, instead of the name of a query."""


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
        the instant's.
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
            if not mine and not group.holds and not any(time % duration == 0 for duration in group.ticks):
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


class _Need(Struct, frozen=True):
    """When a group needs the facts of a stream: always, at multiples of `ticks`, or beside facts of
    `streams`.
    """

    always: bool
    ticks: frozenset[Time]
    streams: frozenset[str]

    def at(self, time: Time, facts: Mapping[str, Sequence[Fact]]) -> bool:
        return (
            self.always
            or any(time % duration == 0 for duration in self.ticks)
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
                if isinstance(trigger, Every):
                    need = _Need(False, frozenset((trigger.duration,)), frozenset())
                elif not trigger.within_instant:
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
    """One row for every part of a group with EVERY or LARS rules, without which ticks in empty parts would be
    lost.
    """
    rows: list[FactRow] = []
    text = f"{first} {layout.last}"
    for group in layout.plan.groups:
        if not group.ticks and not group.holds:
            continue
        cut = layout.cuts[group.number]
        slices = range(1)
        if cut.slices is not None:
            slices = range(cut.slices.seen_by(first, 0).start, cut.slices.seen_by(layout.last, 0).stop)
        for slice_ in slices:
            rows += [(layout.part(group.number, part, slice_), MARK, text) for part in range(cut.buckets)]
    return rows

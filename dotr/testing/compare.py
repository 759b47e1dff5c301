"""Compare versions of a program over one log: how their events differ, and why.

Place:   `dotr compare`, and `dotr compare --engine spark` for the outputs of two batch runs. Shown as text,
         JSON or a self-contained page.
Method:  one reading of the log, a pipeline for each version. Events are matched by rule, time and the values
         of WITH; an instant is compared as soon as all versions have run it, so that memory does not grow
         with the log, only with what differs. Parts of a batch are each in order of time; they are merged.
         Reasons: the proof of the event that came, and how far the other version got, by explain/. Each
         difference reads the log up to its time twice.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, field

from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.errors import DataError, DotrError
from dotr.events import Clock, Composite, GraphOrMessage, Time
from dotr.explain.matches import Explainer
from dotr.explain.proofs import WhyNot
from dotr.explain.record import History, KeptEvent
from dotr.explain.solutions import Text
from dotr.explain.text import Renderer, drawn, pruned
from dotr.extract.printing import Writer
from dotr.io.events import TermFormatter, json_terms
from dotr.io.show import aligned
from dotr.io.sources import SourceOptions, Sources
from dotr.io.time import parse_text
from dotr.program import Program
from dotr.rdf.terms import Term, Triple, literal

Key: TypeAlias = tuple[str, tuple[tuple[str, Term], ...]]
"""(rule, its WITH): what an event is matched by, at its time."""

_AHEAD = 63
_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

KEPT = 1_000
"""Differences that are kept; all are counted."""


class Version(Struct, frozen=True):
    """One of the programs that are compared."""

    name: str
    program: Program
    background: Sequence[Triple]


class Difference(Struct, frozen=True):
    """Events of an instant that a version has and the first one has not (`change` > 0), or the converse."""

    version: int
    change: int
    time: Time
    rule: str
    bindings: tuple[tuple[str, Term], ...]


class RunComparison(Struct):
    """What came of a comparison. `refused`: documents, and graphs of instants in error.

    `counts`: (rule, day) → events by version; `added`, `removed`: likewise, against the first one.
    """

    versions: Sequence[Version]
    clock: Clock = field(default_factory=Clock)
    graphs: int = 0
    refused: int = 0
    counts: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    added: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    removed: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    @property
    def changed(self) -> int:
        """How many events differ."""
        return sum(map(sum, self.added.values())) + sum(map(sum, self.removed.values()))

    def total(self, rule: str) -> list[int]:
        """The events of a rule by version."""
        return self._sum(self.counts, rule)

    def _sum(self, counts: dict[tuple[str, str], list[int]], rule: str) -> list[int]:
        sums = [0] * len(self.versions)
        for (name, _), values in counts.items():
            if name == rule:
                sums = [a + b for a, b in zip(sums, values, strict=True)]
        return sums

    @property
    def rules(self) -> list[str]:
        """The rules of all versions, in the order of the first that has them."""
        names = [rule.name for v in self.versions for rule in v.program.rules if not rule.private]
        return list(dict.fromkeys(names))

    @property
    def days(self) -> list[str]:
        return sorted({day for _, day in self.counts}, key=_by_day)

    def at(self, time: Time, found: Sequence[Counter[Key]]) -> None:
        """Take the events of all versions at an instant."""
        day = day_of(time, self.clock)
        for version, events in enumerate(found):
            for (rule, _), number in events.items():
                self._slot(self.counts, rule, day)[version] += number
        first = found[0]
        for version, events in enumerate(found[1:], 1):
            if events == first:
                continue
            for key in sorted({*events, *first}):
                change = events[key] - first[key]
                if change:
                    counts = self.added if change > 0 else self.removed
                    self._slot(counts, key[0], day)[version] += abs(change)
                    if len(self.differences) < KEPT:
                        self.differences.append(Difference(version, change, time, *key))

    def _slot(self, counts: dict[tuple[str, str], list[int]], rule: str, day: str) -> list[int]:
        return counts.setdefault((rule, day), [0] * len(self.versions))


def _by_day(day: str) -> tuple[int, str]:
    """Days of integer time in order of their numbers, dates as they are written."""
    return (int(day.removeprefix("day ")), "") if day.startswith("day ") else (0, day)


def day_of(time: Time, clock: Clock) -> str:
    """The day of a time in UTC; of integer time, how many days of that unit have gone by."""
    if clock.integer:
        return f"day {time // _DAY}"
    try:
        return (_EPOCH + timedelta(microseconds=time)).strftime("%Y-%m-%d")
    except OverflowError:
        return clock.text(time)


class Comparing:
    """Owns the pipelines of the versions while they run. `lateness` as of `dotr run`; late graphs are left
    out by all versions alike, or with `fails` raise DataError D2301. `forgiving`: an instant that is in error
    for a version is left out by it, and counted.
    """

    def __init__(
        self, versions: Sequence[Version], lateness: Time = 0, fails: bool = False, forgiving: bool = False
    ) -> None:
        self.found = RunComparison(versions)
        observer = PipelineObserver(
            late=self._late if fails else None,
            refused=self._refused if forgiving else None,
            overworked=(lambda *_: None) if forgiving else None,
        )
        self._pipelines = [
            Pipeline(Deployment(v.program, v.background), observer, lateness=lateness) for v in versions
        ]
        self._waiting: list[dict[Time, Counter[Key]]] = [{} for _ in versions]

    def run(self, graphs: Iterable[tuple[Time, GraphOrMessage]], clock: Iterator[Clock]) -> RunComparison:
        """Take all graphs, in order. `clock` is asked once, at the first. Raises what a run does."""
        for count, (time, part) in enumerate(graphs):
            if not count:
                self.found.clock = next(clock)
                for pipeline in self._pipelines:
                    pipeline.begin(self.found.clock)
            for pipeline in self._pipelines:
                pipeline.take(time, part)
            if not count & _AHEAD:
                self._drain()
            self.found.graphs += 1
        for pipeline in self._pipelines:
            pipeline.close_all()
        self._drain(everything=True)
        return self.found

    def _late(self, time: Time, _part: GraphOrMessage) -> None:
        text = self.found.clock.text(time)
        message = f"this graph is for {text}, an instant that is already closed"
        hint = "allow for disorder with --lateness, or drop such graphs with --late drop"
        raise DataError.of("D2301", message, hint=hint)

    def _refused(self, _time: Time, graphs: Sequence[GraphOrMessage], _error: DotrError) -> None:
        self.found.refused += len(graphs)

    def _drain(self, everything: bool = False) -> None:
        for pipeline, waiting in zip(self._pipelines, self._waiting, strict=True):
            for emission in pipeline.drain():
                for event in emission:
                    waiting.setdefault(event.time, Counter())[key_of(event)] += 1
        settled = [pipeline.settled for pipeline in self._pipelines]
        for time in sorted({time for waiting in self._waiting for time in waiting}):
            if everything or all(one is not None and time <= one for one in settled):
                self.found.at(time, [waiting.pop(time, Counter()) for waiting in self._waiting])


def key_of(event: Composite) -> Key:
    """What an event is matched by."""
    return event.rule, tuple(sorted(event.bindings))


_SIGNS = {True: "+", False: "−"}
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Tol's bright scheme, which the colour-blind can tell apart."""


def text(
    found: RunComparison, reasons: Sequence[tuple[Difference, str]], shown: int, width: int | None = None
) -> str:
    """Tables per rule and day, then the first differences, explained. `width`: of a terminal."""
    if len(found.versions) != 2:
        return _table(_sweep(found), width)
    lines = [_table(_pair(found), width)]
    why = dict(reasons)
    terms = formatter(found)
    for difference in found.differences[:shown]:
        lines.append(difference_text(difference, found, terms))
        lines += [f"    {line}" for line in why.get(difference, "").splitlines()]
    left = found.changed - sum(abs(d.change) for d in found.differences[:shown])
    if left:
        lines.append(f"and {left} more")
    return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"


def formatter(found: RunComparison) -> TermFormatter:
    return TermFormatter(
        {k: v for version in reversed(found.versions) for k, v in version.program.prefixes.items()}
    )


def difference_text(difference: Difference, found: RunComparison, terms: TermFormatter) -> str:
    """`+ Fire @ 12  ?room :room23`."""
    values = " ; ".join(f"?{name} {terms.term(term)}" for name, term in difference.bindings)
    times = f" × {abs(difference.change)}" if abs(difference.change) > 1 else ""
    sign = _SIGNS[difference.change > 0]
    return f"{sign} {difference.rule} @ {found.clock.text(difference.time)}  {values}{times}".rstrip()


def _pair(found: RunComparison) -> list[list[str]]:
    rows = [["rule", "day", *(version.name for version in found.versions), "+", "−"]]
    for rule in found.rules:
        days = [day for day in found.days if (rule, day) in found.counts]
        for day in days or ["-"]:
            counts = found.counts.get((rule, day), [0, 0])
            added = found.added.get((rule, day), [0, 0])[1]
            removed = found.removed.get((rule, day), [0, 0])[1]
            rows.append([rule, day, *map(str, counts), str(added), str(removed)])
    return rows


def _sweep(found: RunComparison) -> list[list[str]]:
    rows = [["rule", *(version.name for version in found.versions)]]
    return rows + [[rule, *map(str, found.total(rule))] for rule in found.rules]


def _table(rows: Sequence[Sequence[str]], width: int | None) -> str:
    left = 2 if len(rows[0]) > 1 and rows[0][1] == "day" else 1
    return aligned(rows, width, left)


def as_json(found: RunComparison, reasons: Sequence[tuple[Difference, str]]) -> str:
    """One object: versions, events by rule and day, and the differences that were kept."""
    why = dict(reasons)
    days = [
        {
            "rule": rule,
            "day": day,
            "events": counts,
            "added": found.added.get((rule, day), [0] * len(counts)),
            "removed": found.removed.get((rule, day), [0] * len(counts)),
        }
        for rule in found.rules
        for day in found.days
        if (counts := found.counts.get((rule, day)))
    ]
    differences = [
        {
            "version": found.versions[one.version].name,
            "change": one.change,
            "rule": one.rule,
            "time": one.time // found.clock.unit if found.clock.integer else found.clock.text(one.time),
            "bindings": {name: json.loads(json_terms[term]) for name, term in one.bindings},
            **({"because": why[one]} if one in why else {}),
        }
        for one in found.differences
    ]
    value = {
        "versions": [version.name for version in found.versions],
        "graphs": found.graphs,
        "changed": found.changed,
        "days": days,
        "differences": differences,
    }
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def html(found: RunComparison, reasons: Sequence[tuple[Difference, str]], shown: int) -> str:
    """A page that needs nothing else: a plot of events a day and version, tables, differences."""
    why, terms = dict(reasons), formatter(found)
    rows = _pair(found) if len(found.versions) == 2 else _sweep(found)
    body = [f"<h1>{escape(' · '.join(version.name for version in found.versions))}</h1>", _plot(found)]
    body.append(
        "<table>" + "".join(_row(row, "th" if not n else "td") for n, row in enumerate(rows)) + "</table>"
    )
    for one in found.differences[:shown]:
        body.append(f"<p><code>{escape(difference_text(one, found, terms))}</code></p>")
        if why.get(one):
            body.append(f"<pre>{escape(why[one])}</pre>")
    style = (
        "body{font:15px sans-serif;margin:2em;max-width:70em}td,th{padding:.2em .8em;text-align:right}"
        "td:first-child,th:first-child{text-align:left}tr:nth-child(even){background:#f4f4f4}"
        "pre{background:#f4f4f4;padding:1em;overflow:auto}"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>dotr compare</title>'
        f"<style>{style}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _plot(found: RunComparison) -> str:
    """Events a day, a bar for each version."""
    days, versions = found.days, found.versions
    sums = [[0] * len(versions) for _ in days]
    for (_, day), counts in found.counts.items():
        place = days.index(day)
        sums[place] = [a + b for a, b in zip(sums[place], counts, strict=True)]
    most = max((n for row in sums for n in row), default=0) or 1
    bar, height = max(2, min(24, 900 // max(1, len(days) * (len(versions) + 1)))), 160
    step = bar * (len(versions) + 1)
    shapes = []
    for place, (day, row) in enumerate(zip(days, sums, strict=True)):
        for version, count in enumerate(row):
            size = round(height * count / most, 1)
            shapes.append(
                f'<rect x="{40 + place * step + version * bar}" y="{20 + height - size}" width="{bar - 1}" '
                f'height="{size}" fill="{_COLOURS[version % len(_COLOURS)]}">'
                f"<title>{escape(day)} {escape(versions[version].name)}: {count}</title></rect>"
            )
        if place % max(1, len(days) // 10) == 0:
            shapes.append(
                f'<text x="{40 + place * step}" y="{height + 36}" font-size="11">{escape(day)}</text>'
            )
    for version, one in enumerate(versions):
        x = 40 + version * 180
        shapes.append(
            f'<rect x="{x}" y="{height + 48}" width="10" height="10" fill="{_COLOURS[version % 7]}"/>'
        )
        shapes.append(f'<text x="{x + 14}" y="{height + 57}" font-size="12">{escape(one.name)}</text>')
    shapes.append(f'<text x="0" y="28" font-size="11">{most}</text>')
    wide = max(60 + len(days) * step, 40 + 180 * len(versions))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{height + 70}" role="img">'
        f"<title>events a day</title>{''.join(shapes)}</svg>"
    )


_DEPTH = 1


def reasons(
    found: RunComparison,
    differences: Sequence[Difference],
    sources: Sequence[str],
    options: SourceOptions,
    lateness: int,
) -> list[tuple[Difference, str]]:
    """Each difference with its reasons as text; what cannot be explained is left out."""
    explained = []
    for one in differences:
        old, new = found.versions[0], found.versions[one.version]
        having, lacking = (new, old) if one.change > 0 else (old, new)
        parts = [
            _of_version(having, one, sources, options, lateness, True),
            _of_version(lacking, one, sources, options, lateness, False),
        ]
        reason = "\n".join(part for part in parts if part)
        if reason:
            explained.append((one, reason))
    return explained


def _of_version(
    version: Version,
    one: Difference,
    sources: Sequence[str],
    options: SourceOptions,
    lateness: int,
    came: bool,
) -> str:
    program = version.program
    if one.rule not in [rule.name for rule in program.rules]:
        return f"{version.name} has no rule {one.rule}"

    def wanted(event: KeptEvent) -> bool:
        rule = program.rules[event.rule]
        bound = tuple(sorted(zip(rule.variables, event.bindings, strict=True)))
        return rule.name == one.rule and event.time == one.time and bound == one.bindings

    history = History(program, version.background, wanted=wanted, until=one.time, lateness=lateness)
    reader = Sources(sources, options)
    try:
        history.run(reader, lambda: reader.clock)
        writer = Writer(program.prefixes)
        explainer = Explainer(history, Text(writer.term, writer.expression, writer.path))
        shown: list[WhyNot] = []
        if came:
            shown = [] if history.wanted_event is None else [explainer.event(history.wanted_event)]
        else:
            shown = explainer.why_not(one.rule, one.time, dict(one.bindings))[:2]
    except DotrError:
        return ""
    renderer = Renderer(program.prefixes, history.clock)
    trees = [drawn(pruned(renderer.node(proof), _DEPTH)).rstrip() for proof in shown]
    return "\n".join([f"{version.name}:", *trees]) if trees else ""


def compared_batches(
    versions: Sequence[Version], outputs: Sequence[Sequence[str]], unit: Time = 1_000_000
) -> RunComparison:
    """Compare the JSON lines of batch outputs: per version its files. `unit` of integer time, in µs."""
    found = RunComparison(versions)
    streams = [heapq.merge(*(_lines(Path(file), found, unit) for file in files)) for files in outputs]
    heads = [next(stream, None) for stream in streams]
    while any(head is not None for head in heads):
        time = min(head[0] for head in heads if head is not None)
        at: list[Counter[Key]] = []
        for number, stream in enumerate(streams):
            events: Counter[Key] = Counter()
            head = heads[number]
            while head is not None and head[0] == time:
                events[head[1]] += 1
                head = next(stream, None)
            heads[number] = head
            at.append(events)
        found.at(time, at)
    return found


def _lines(part: Path, found: RunComparison, unit: Time) -> Iterator[tuple[Time, Key]]:
    with part.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            time, integer = parse_text(str(event["time"]), unit)
            found.clock = Clock(integer, unit)
            bindings = tuple(sorted((name, _term(value)) for name, value in event["bindings"].items()))
            yield time, (event["rule"], bindings)


def _term(value: dict[str, Any]) -> Term:
    if value["type"] == "uri":
        return f"<{value['value']}>"
    if value["type"] == "bnode":
        return f"_:{value['value']}"
    if "xml:lang" in value:
        return f"{literal(value['value'])}@{value['xml:lang']}"
    return literal(value["value"], value["datatype"]) if "datatype" in value else literal(value["value"])

"""How the events of two versions of a program differ, shown, and why.

Place:   `dotr compare`, and `dotr compare --engine spark` for the outputs of two batch runs. Shown as text,
         JSON or a self-contained page. service/comparison.py compares.
Method:  parts of a batch are each in order of time; they are merged.
         Reasons: the proof of the event that came, and how far the other version got, by explain/. Each
         difference reads the log up to its time twice.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dotr.errors import DotrError
from dotr.events import Clock, Time
from dotr.explain.matches import Explainer
from dotr.explain.proofs import WhyNot
from dotr.explain.record import History, KeptEvent
from dotr.explain.solutions import Text
from dotr.explain.text import Renderer, drawn, pruned
from dotr.extract.printing import Writer
from dotr.io.event_pictures import events_along_time
from dotr.io.events import TermFormatter
from dotr.io.rules_and_background import with_declared
from dotr.io.show import aligned
from dotr.io.sources import SourceOptions, Sources
from dotr.io.time import parse_text
from dotr.pictures.bars import bars
from dotr.pictures.markup import Html, element, page, section
from dotr.pictures.markup import text as text_
from dotr.pictures.table import table
from dotr.pictures.timeline import Mark
from dotr.program.names import duration_text
from dotr.rdf.terms import Term, literal
from dotr.service.comparison import Difference, Key, RunComparison, Version, compared_values, moves

_SIGNS = {True: "+", False: "−"}


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


def _of_page(found: RunComparison) -> TermFormatter:
    """With the prefixes of the backgrounds, too."""
    files = [file for version in found.versions for file in version.files]
    return TermFormatter(with_declared(formatter(found).prefixes, files))


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
    return json.dumps(compared_values(found, dict(reasons)), ensure_ascii=False, indent=1) + "\n"


def html(found: RunComparison, reasons: Sequence[tuple[Difference, str]], shown: int) -> str:
    """A page that needs nothing else: differences along time, counts, and the first differences with why."""
    title = " · ".join(version.name for version in found.versions)
    about = [element("span", text_(_about(found)), class_="note")]
    if len(found.versions) != 2:
        names = [version.name for version in found.versions]
        drawn_ = [
            Html(element("h3", text_(rule)) + bars([*zip(names, found.total(rule), strict=True)], lane))
            for lane, rule in enumerate(found.rules)
        ]
        return page(title, section("Events", _rows(_sweep(found)), *drawn_), about=about)
    moved, terms, why = moves(found.differences), _of_page(found), dict(reasons)
    came = set(moved.values())
    marks = [
        Mark(
            one.rule,
            one.time,
            difference_text(one, found, terms),
            gone=one.change < 0,
            moved_to=moved[one].time if one in moved else None,
        )
        for one in found.differences
        if one not in came
    ]
    rules = [rule.name for rule in found.versions[0].program.rules]
    rules += [name for name in found.rules if name not in rules]
    if not found.differences:
        same = element("p", text_("none: both versions have the same events"), class_="note")
        parts = section("Differences", same), section("Counts", *_counts(_pair(found)))
        return page(title, *parts, about=about)
    lines = [one for one in found.differences if one not in came][:shown]
    left = found.changed - sum(abs(one.change) + (one in moved) for one in lines)
    more = element("p", text_(f"and {left:,} more"), class_="note") if left else Html("")
    return page(
        title,
        section(
            "Differences along time",
            events_along_time(marks, found.clock, found.rules, "differences along time", rules),
            note="filled: new; hollow: gone; a line leads to where an event moved",
        ),
        section("Counts", *_counts(_pair(found))),
        section("Differences", *(_difference(one, moved.get(one), found, terms, why) for one in lines), more),
        about=about,
    )


def _about(found: RunComparison) -> str:
    """What was compared, for the line beside the title."""
    what = f"{found.graphs:,} {'graph' if found.graphs == 1 else 'graphs'}"
    if len(found.versions) != 2:
        return what
    return f"{what}, {found.changed:,} {'difference' if found.changed == 1 else 'differences'}"


def _difference(
    one: Difference,
    to: Difference | None,
    found: RunComparison,
    terms: TermFormatter,
    why: Mapping[Difference, str],
) -> Html:
    """A line, and below it why."""
    line = difference_text(one, found, terms)
    if to is not None:
        far = duration_text(abs(to.time - one.time))
        earlier = " earlier" if to.time < one.time else ""
        line = f"{line[2:]}   moved by {far}{earlier}, to {found.clock.text(to.time)}"
    reasons_ = [why[each] for each in (one, to) if each is not None and why.get(each)]
    if not reasons_:
        return element("p", element("code", text_(line)))
    below = [element("pre", text_(reason)) for reason in reasons_]
    return element("details", element("summary", element("code", text_(line))), *below, open=True)


def _counts(rows: Sequence[Sequence[str]]) -> list[Html]:
    """Rows that differ; the others are folded."""
    head, *body = rows
    differ = [row for row in body if row[-2:] != ["0", "0"]]
    same = [row for row in body if row[-2:] == ["0", "0"]]
    made = [_rows([head, *differ])] if differ else []
    if same:
        line = element(
            "summary", text_(f"{len(same):,} {'rows are' if len(same) > 1 else 'row is'} the same")
        )
        made.append(element("details", line, _rows([head, *same])))
    return made


def _rows(rows: Sequence[Sequence[str]]) -> Html:
    head, *body = rows
    numbers = [n for n, name in enumerate(head) if n and name != "day"]
    return table(head, [[text_(cell) for cell in row] for row in body], numbers)


_DEPTH = 1


def reasons(
    found: RunComparison,
    differences: Sequence[Difference],
    sources: Sequence[str],
    options: SourceOptions,
    lateness: int,
    page: bool = False,
) -> list[tuple[Difference, str]]:
    """Each difference with its reasons as text; what cannot be explained is left out. `page`: with the
    prefixes of the backgrounds, too.
    """
    explained = []
    for one in differences:
        old, new = found.versions[0], found.versions[one.version]
        having, lacking = (new, old) if one.change > 0 else (old, new)
        parts = [
            _of_version(having, one, sources, options, lateness, True, page),
            _of_version(lacking, one, sources, options, lateness, False, page),
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
    page: bool,
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
    prefixes = with_declared(program.prefixes, version.files) if page else program.prefixes
    renderer = Renderer(prefixes, history.clock)
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

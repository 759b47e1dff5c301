"""The funnel in summaries: how far the facts of rules without events came (with `-v` of all rules), and why
not further; and the summary as JSON.

Place:   run, feed, batch and status print it; core/funnel.py makes the counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from dotr.cli import render
from dotr.core.funnel import Funnel, shown
from dotr.errors import Diagnostic
from dotr.events import Clock, Time
from dotr.ir import Position, Program, Rule

_MOST = 50
"""Rules without events that are shown."""


def funnel_lines(
    program: Program,
    events: Mapping[str, int],
    funnels: Mapping[str, Funnel],
    streams: Mapping[str, int],
    why: Sequence[Diagnostic] = (),
    *,
    every: bool = False,
    width: int | None = None,
) -> list[str]:
    """A line a rule: name, events, funnel, and for one without events the queries that had no fact.

    Rules without events alone, unless `every`; of a PRIVATE rule, the matches. `why`: what a sample said.
    `width`: the columns that there are; a reason that does not fit stands below.
    """
    rows: list[tuple[str, str, str, str]] = []
    for rule in program.rules:
        funnel = funnels.get(rule.name, [])
        count = funnel[-1][1] if rule.private and funnel else events.get(rule.name, 0)
        if count and not every:
            continue
        reason = "" if count else "; ".join(_lacking(rule, streams, why))
        rows.append((rule.name, f"{count:,}", shown(funnel), reason))
    more = [f"  and {len(rows) - _MOST:,} more; -v shows all"] if len(rows) > _MOST and not every else []
    rows = rows if every else rows[:_MOST]
    name, number = (max((len(row[i]) for row in rows), default=0) for i in range(2))
    found = []
    for one in rows:
        line = f"  {one[0]:<{name}}  {one[1]:>{number}}   {one[2]}"
        if not one[3]:
            found.append(line)
        elif width is None or len(line) + 3 + len(one[3]) <= width:
            found.append(f"{line}   {one[3]}")
        else:
            indent = " " * (name + number + 7)
            below = wrap(one[3], max(width, 60), initial_indent=indent, subsequent_indent=indent)
            found += [line, *below]
    return found + more


def _lacking(rule: Rule, streams: Mapping[str, int], why: Sequence[Diagnostic]) -> list[str]:
    """What there is to say of a rule without an event, and of the queries that it needs facts of."""
    needed = [rule.trigger] if isinstance(rule.trigger, Position) else []
    needed += [choice.position for choice in rule.chosen]
    found = []
    for stream in dict.fromkeys(p.stream for p in needed if not p.chained):
        reasons = [_short(one) for one in why if f"query `{stream}`" in one.message]
        if streams.get(stream) == 0:
            found.append(f"query {stream}: 0 facts" + "".join(f"; {text}" for text in reasons))
        elif reasons:
            found.append(f"query {stream}: " + "; ".join(reasons))
    return found + [_short(one) for one in why if f"rule `{rule.name}`" in one.message]


def _short(one: Diagnostic) -> str:
    """The gist of what a sample said about a query."""
    message, _, rest = one.message.partition(" in query `")
    if one.notes and one.notes[0].startswith("it was a type error") and "never true" in message:
        what = "FILTER " if rest else ""
        return f"{what}{message.split('`')[1]} {one.notes[0].removeprefix('it ')}"
    message = re.split(r" (?:in|of) (?:query|rule) `", one.message)[0]
    return f"{message} ({one.notes[0]})" if one.notes else message


def heading(rules: str, graphs: int, first: Time | None, last: Time | None, clock: Clock | None) -> str:
    """`building.dotr: 1,882 graphs, 2026-01-05T08:00:05Z – 2026-01-05T09:59:55Z`."""
    text = f"{rules}: {render.counted(graphs, 'graph')}"
    if first is None or last is None or clock is None:
        return text
    return f"{text}, {clock.text(first)} – {clock.text(last)}"


def as_json(
    content: Mapping[str, Any], program: Program, events: Mapping[str, int], funnels: Mapping[str, Funnel]
) -> str:
    """A summary as one line of JSON: what was counted, and rules with their events and funnels."""
    rules = [
        {
            "rule": rule.name,
            "private": rule.private,
            "events": events.get(rule.name, 0),
            "funnel": funnel_as_json(funnels.get(rule.name, [])),
        }
        for rule in program.rules
    ]
    return json.dumps({**content, "rules": rules}, ensure_ascii=False)


def funnel_as_json(funnel: Funnel) -> list[dict[str, Any]]:
    return [{"step": step, "count": count} for step, count in funnel]


def time_as_json(time: Time | None, clock: Clock | None) -> int | str | None:
    """A time in the data's form."""
    if time is None or clock is None:
        return None
    return int(clock.text(time)) if clock.integer else clock.text(time)

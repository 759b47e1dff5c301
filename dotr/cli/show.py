"""What a human reads on standard error: diagnostics, notes, progress, and summaries with their funnels.

Place:   shared by the verbs; nothing here is data.
Method:  colour where the terminal or FORCE_COLOR says so, never under NO_COLOR. A funnel shows how far the
         facts of rules without events came (with `-v` of all rules) and why not further; core/funnel.py
         counts. Progress is drawn by rich, at most five times a second, when the work says how far it is;
         `ticking` work, which says little, is drawn by a thread of rich's.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO

from dotr.errors import Diagnostic, DotrError, Severity
from dotr.io.time_reading import changes, described, unchanged

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from dotr.batch.runs import Report
    from dotr.core.funnel import Funnel
    from dotr.core.pipeline import Counters, Pipeline
    from dotr.events import Clock, Time
    from dotr.program import Program, Rule


_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}
_SHOWN = 50
"""Diagnostics, and rules without events, that are shown."""

_INTERVAL = 0.2
"""Seconds between two looks at progress."""


def coloured(stream: TextIO | None = None) -> bool:
    """Whether a stream, standard error by default, takes colour.

    NO_COLOR, if it is not empty, says no; then FORCE_COLOR says yes; else a terminal that is not dumb does.
    (no-color.org, force-color.org)
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return (sys.stderr if stream is None else stream).isatty() and os.environ.get("TERM") != "dumb"


def width(stream: TextIO | None = None) -> int | None:
    """The columns of a stream, by default standard error; None where it is not a terminal: then no line is
    broken.
    """
    return terminal_columns() if (stream or sys.stderr).isatty() else None


def terminal_columns() -> int:
    """How wide a terminal is; 80 where it is unknown."""
    from shutil import get_terminal_size  # noqa: PLC0415  # start-up: few commands draw

    return get_terminal_size().columns


def painted(diagnostic: Diagnostic, stream: TextIO | None = None) -> str:
    """A diagnostic as text, in colour where the stream takes it: its severity, what is marked, its hint."""
    text = visible(diagnostic.render())
    if not coloured(stream):
        return text
    colour = _COLOURS[diagnostic.severity]
    first, *rest = text.split("\n")
    head = len(diagnostic.severity)
    lines = [f"\x1b[1;{colour}m{first[:head]}\x1b[0m\x1b[1m{first[head:]}\x1b[0m"]
    for line in rest:
        if re.fullmatch(r" *\| *\^.*", line):
            bar = line.index("^")
            line = f"{line[:bar]}\x1b[1;{colour}m{line[bar:]}\x1b[0m"
        elif found := re.match(r" *= hint:", line):
            line = f"\x1b[1;32m{found[0]}\x1b[0m{line[found.end() :]}"
        elif re.match(r" *-->", line):
            line = f"\x1b[2m{line}\x1b[0m"
        lines.append(line)
    return "\n".join(lines)


def errors(error: DotrError) -> None:
    """Print the diagnostics of an error."""
    say_all(error.diagnostics)


def say_all(diagnostics: Sequence[Diagnostic]) -> None:
    """Print diagnostics, as many as a human will read."""
    for diagnostic in diagnostics[:_SHOWN]:
        say(diagnostic)
    if len(diagnostics) > _SHOWN:
        note(f"and {len(diagnostics) - _SHOWN} more")


def say(diagnostic: Diagnostic) -> None:
    """Print one diagnostic."""
    _print(painted(diagnostic))


def note(text: str) -> None:
    """Print one line that is not data."""
    _print(visible(f"dotr: {text}"))


def plain(text: str) -> None:
    """Print one line of a table that is not data."""
    _print(visible(text))


def json_line(text: str) -> None:
    """Print one line of JSON that a program reads, as it is."""
    _print(text)


def _print(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody may be reading what went wrong
        print(text, file=sys.stderr, flush=True)


def visible(text: str) -> str:
    """Text for a terminal: control characters that data may carry are shown, not obeyed."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else ascii(c)[1:-1] for c in text)


def counted(number: int, one: str, many: str = "") -> str:
    """`1 graph`, `12,000 graphs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def by_name(counts: Mapping[str, int]) -> str:
    """`Fire 2, Drill 1`, without those that are 0."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)


def came(graphs: int, instants: int, events: Mapping[str, int]) -> list[str]:
    """What came in and went out, as parts of a summary."""
    total = sum(events.values())
    found = counted(total, "event") + (f" ({by_name(events)})" if total else "")
    return [f"{counted(graphs, 'graph')} at {counted(instants, 'instant')}", found]


def beside(
    found: Mapping[str, int], first: Mapping[str, str] = MappingProxyType({}), times: Iterable[str] = ()
) -> list[str]:
    """How times were found, what is in no graph, and what reading changed, as parts of a summary;
    none where there was nothing. `first`: where a change was made first.
    """
    places = ", ".join(times)
    parts = [f"time from {places}"] if places else []
    if found.get("all"):
        shared = f", {found['shared']:,} of them shared (--with-shared)" if found.get("shared") else ""
        parts.append(f"{counted(found['all'], 'subject')} of dumps in no graph{shared}")
    if found.get("said"):
        named = {key.removeprefix("said "): count for key, count in found.items() if key.startswith("said ")}
        said = counted(found["said"], "triple")
        parts.append(f"{said} about graphs, in a default graph, left out ({by_name(named)})")
    return [*parts, *described(found, first)]


def beside_as_json(found: Mapping[str, int]) -> dict[str, Any]:
    """What was read and is in no graph, if there is any, and what reading changed."""
    others = unchanged(found)
    return {**({"beside": others} if others else {}), "changed": changes(found)}


def losses(
    late: int = 0,
    refused: int = 0,
    useless: int = 0,
    not_held: int = 0,
    overlooked: int = 0,
    too_much: Mapping[str, int] = MappingProxyType({}),
    dropped: int = 0,
    not_stated: int = 0,
    ineffective: int = 0,
    lost: Mapping[str, int] = MappingProxyType({}),
) -> list[str]:
    """What was left out, as parts of a summary; none of what did not occur. `lost`: rule → matches that WITH
    and DEFINE dropped, `dropped` of them by DEFINE.
    """
    valueless = max(0, sum(lost.values()) - dropped)
    parts = (
        (late, f"{late:,} late"),
        (refused, f"{counted(refused, 'document')} refused"),
        (useless, f"{counted(useless, 'deletion')} of what was not stated"),
        (not_held, f"{counted(not_held, 'triple')} not held"),
        (not_stated, f"{counted(not_stated, 'triple')} of INSERT that no graph can have"),
        (ineffective, f"{counted(ineffective, 'event')} without effect"),
        (overlooked, f"{counted(overlooked, 'instant')} in error without a message"),
        (too_much, left_out(too_much)),
        (valueless, _valueless(valueless, {} if dropped else lost)),
        (dropped, f"{counted(dropped, 'match', 'matches')} without a valid graph"),
    )
    return [text for count, text in parts if count]


def _valueless(count: int, rules: Mapping[str, int]) -> str:
    """Matches without a value of WITH; by rule, where that is known."""
    text = f"{counted(count, 'match', 'matches')} without a value of WITH"
    return f"{text} ({by_name(rules)})" if rules else text


def effects_as_json(not_stated: int, ineffective: int) -> dict[str, int]:
    """What of the effects of events was left out, if anything."""
    found = {"not_stated": not_stated, "ineffective": ineffective}
    return {name: count for name, count in found.items() if count}


def left_out(counts: Mapping[str, int]) -> str:
    """Trigger facts that were too much for a rule, by rule."""
    return f"{counted(sum(counts.values()), 'fact')} left out as too much ({by_name(counts)})"


class Progress:
    """Owns the bar. Not `shown`: nothing is drawn."""

    def __init__(self, shown: bool, ticking: bool = False) -> None:
        self.shown, self.ticking = shown, ticking
        self.begun = time.monotonic()
        self._last = self._since = 0.0
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._what = ""

    def update(
        self,
        graphs: int,
        events: int,
        watermark: str,
        done: int = 0,
        of: int | None = None,
        remembered: str = "",
    ) -> None:
        """Show how far a run is, with `done` bytes of its sources read; at most five times a second.

        `events` -1: there are none to show. `remembered`: how many facts rules remember, where that is known.
        """
        if not self._due():
            return
        rate = graphs / max(self.seconds, 1e-6)
        parts = [f"{graphs:,} graphs · {rate:,.0f}/s", f"at {watermark}" if watermark else ""]
        parts += [f"{events:,} events" if events >= 0 else ""]
        parts += [f"remembered: {remembered}" if remembered else ""]
        self._draw(" · ".join(filter(None, parts)), "", done, of)

    def stage(self, name: str, done: int, of: int, graphs: int = 0) -> None:
        """Show how far a stage of the work is: `done` of its tasks, as it seems `graphs` in them."""
        if not self.shown or (name == self._what and not self._due()):
            return
        if name != self._what:
            self._since = time.monotonic()
        seconds = time.monotonic() - self._since
        parts = [f"{name}: {done:,}/{of:,} tasks" if of else f"{name} …"]
        if graphs:
            parts.append(f"{graphs:,} graphs · {graphs / max(seconds, 1e-6):,.0f}/s")
        if not self.ticking:
            parts.append(f"{seconds:.0f} s")
        self._draw(" · ".join(parts), name, done, of or None)

    def waiting(self, events: int) -> None:
        """Show that so many events have still to be delivered; at most five times a second."""
        if self._due():
            self._draw(f"to be delivered: {counted(events, 'event')}", "delivering", 0, None)

    def clear(self) -> None:
        """Take the bar away: something else is shown. It comes again with the next update."""
        if self._bar is not None:
            with suppress(OSError, ValueError):
                self._bar.stop()
            self._bar = None
            self._last = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun

    def _due(self) -> bool:
        now = time.monotonic()
        if not self.shown or now - self._last < _INTERVAL:
            return False
        self._last = now
        return True

    def _draw(self, line: str, what: str, done: int, of: int | None) -> None:
        with suppress(OSError, ValueError):  # nobody may be looking
            if self._bar is None or self._what != what:
                self.clear()
                self._bar, self._task = _begun(of is not None, self.ticking)
                self._what = what
            assert self._task is not None
            self._bar.update(self._task, description=line, completed=done, total=of)
            self._bar.refresh()


def _begun(known: bool, ticking: bool) -> tuple[Bar, TaskID]:
    """A bar; with the time left where the whole is `known`, with the time that has passed where it ticks."""
    from rich.console import Console  # noqa: PLC0415  # start-up: on terminals alone
    from rich.progress import (  # noqa: PLC0415  # likewise
        BarColumn,
        Progress,
        ProgressColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column  # noqa: PLC0415  # likewise

    said = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="crop"))
    columns: list[ProgressColumn] = [said]
    if known:
        left = [TextColumn("·"), TimeRemainingColumn(), TextColumn("left")]
        columns = [BarColumn(20), TaskProgressColumn(), said, *left]
    if ticking:
        columns.append(TimeElapsedColumn())
    console = Console(file=sys.stderr, highlight=False)
    bar = Progress(*columns, console=console, transient=True, auto_refresh=ticking, refresh_per_second=5)
    bar.start()
    return bar, bar.add_task("", total=None)


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

    Rules without events alone, unless `every`; of a PRIVATE rule, the matches. `why`: the findings of a
    sample. `width`: the columns of the terminal; a reason that does not fit is printed below.
    """
    from dotr.core.funnel import shown  # noqa: PLC0415  # start-up: the help shows no funnel

    rows: list[tuple[str, str, str, str]] = []
    for rule in program.rules:
        funnel = funnels.get(rule.name, [])
        count = funnel[-1][1] if rule.private and funnel else events.get(rule.name, 0)
        if count and not every:
            continue
        reason = "" if count else "; ".join(_lacking(rule, streams, why))
        rows.append((rule.name, f"{count:,}", shown(funnel), reason))
    more = [f"  and {len(rows) - _SHOWN:,} more; -v shows all"] if len(rows) > _SHOWN and not every else []
    rows = rows if every else rows[:_SHOWN]
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


def print_funnels(title: str, lines: Sequence[str], counts: Counters | Report, clock: Clock | None) -> None:
    """Print lines of funnels below a heading."""
    if lines:
        plain(heading(title, counts.graphs, counts.first, counts.last, clock))
    for line in lines:
        plain(line)


def funnels(title: str, pipeline: Pipeline, why: Sequence[Diagnostic], every: bool) -> None:
    """Print how far the rules of a run without events came; `every`: all rules."""
    found, columns = pipeline.counters, width()
    lines = funnel_lines(
        pipeline.program, found.events, found.funnel, found.streams, why, every=every, width=columns
    )
    print_funnels(title, lines, found, pipeline.clock)


def _lacking(rule: Rule, streams: Mapping[str, int], why: Sequence[Diagnostic]) -> list[str]:
    """What there is to say of a rule without an event, and of the queries that it needs facts of."""
    from dotr.program import Position  # noqa: PLC0415  # likewise

    needed = [t] if isinstance(t := rule.triggering, Position) else []
    needed += [choice.position for choice in rule.required]
    found = []
    for stream in dict.fromkeys(p.stream for p in needed if not p.chained):
        reasons = [_short(one) for one in why if f"query `{stream}`" in one.message]
        if streams.get(stream) == 0:
            found.append(f"query {stream}: 0 facts" + "".join(f"; {text}" for text in reasons))
        elif reasons:
            found.append(f"query {stream}: " + "; ".join(reasons))
    return found + [_short(one) for one in why if f"{rule.kind} `{rule.name}`" in one.message]


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
    text = f"{rules}: {counted(graphs, 'graph')}"
    if first is None or last is None or clock is None:
        return text
    return f"{text}, {clock.text(first)} – {clock.text(last)}"


def summary_line(
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


def corrected(done: Mapping[str, int]) -> str:
    """What corrections did, in a summary."""
    many, replayed = done["corrections"], done["replayed"]
    each = f", {replayed // many:,} for each correction" if many > 1 else ""
    waiting = f", {counted(done['waiting'], 'graph')} waiting" if done["waiting"] else ""
    return (
        f"{counted(done['late'], 'late graph')} in {counted(many, 'correction')}"
        f" (+{done['added']:,} −{done['withdrawn']:,} events, {replayed:,} graphs replayed{each}{waiting})"
    )


def corrections_of(pipeline: Pipeline) -> dict[str, int] | None:
    """What corrections did so far, by name; None of a run without."""
    done = getattr(pipeline, "corrected", None)
    return None if done is None else {name: getattr(done, name) for name in done.__struct_fields__}


def corrected_as_json(done: dict[str, int] | None) -> dict[str, Any]:
    """The same as a member of a JSON summary; nothing in a run without corrections."""
    return {} if done is None else {"corrections": done}

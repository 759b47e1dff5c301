"""Events with signs, as `--corrections` writes them, and what remains of such a log.

Place:   `dotr run --corrections` writes by it; `dotr convert --consolidate` reads JSON lines back.
Method:  each format is the one without corrections, with what a reader needs to follow them put beside:
         JSON lines begin with `"change"`, text with `+` or `−`, CSV has three columns more. In TriG and
         N-Quads an event that is taken back is invalidated (PROV-O), at the watermark, by the late graphs;
         its graph is not written again.
Bad input: D4151 a format that has no place for it · D4166 a line that is no event, or that takes back what
         is not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from json.encoder import encode_basestring as json_string
from typing import Any, Final, TypeAlias

from dotr.emit.changes import Correction
from dotr.emit.events import InstantEvents
from dotr.errors import DataError
from dotr.events import Clock, Composite
from dotr.io.events import Formatter, TermFormatter, formatter, json_time, refused, with_prov
from dotr.program import Rule

PROV: Final = "http://www.w3.org/ns/prov#"
RDFS_LABEL: Final = "<http://www.w3.org/2000/01/rdf-schema#label>"
KEYS: Final = ("change", "corrected_at", "cause")
"""What the JSON line of an event has before its own keys, the last two where a correction made it."""

Mark: TypeAlias = Callable[[str, int, Correction | None, Sequence[Composite], Clock], str]
"""(what is written without corrections, the sign, the correction, the events, the clock) → with it."""


def changes_formatter(
    name: str, prefixes: Mapping[str, str], rules: Sequence[Rule] = ()
) -> tuple[str, Formatter]:
    """(the beginning of an output, how events with signs are written). Raises UsageError D4151."""
    if name not in _MARKS:
        raise refused(f"{name} with --corrections", list(_MARKS), "dotr")
    head, write = formatter(name, prefixes, rules)
    mark = _MARKS[name](prefixes)

    def marked(events: Sequence[Composite], clock: Clock) -> str:
        return "".join(
            mark(write(run, clock), change, correction, run, clock)
            for change, correction, run in _runs(events)
        )

    return (f"{','.join(KEYS)},{head}" if name == "csv" else head), marked


def _runs(events: Sequence[Composite]) -> Iterable[tuple[int, Correction | None, Sequence[Composite]]]:
    if isinstance(events, InstantEvents):
        yield events.change, events.correction, events
        return
    for (change, _), run in groupby(events, key=lambda event: (event.change, id(event.correction))):
        some = list(run)
        yield change, some[0].correction, some


def line_head(change: int, correction: Correction | None, clock: Clock) -> str:
    """What a JSON line begins with, after its brace."""
    head = f'"change":{change},'
    if correction is not None:
        causes = ",".join(
            f'{{"time":{json_time(cause.time, clock)},"place":{json_string(cause.place)}}}'
            for cause in correction.causes
        )
        head += f'"corrected_at":{json_time(correction.at, clock)},"cause":[{causes}],'
    return head


def _lines(_prefixes: Mapping[str, str]) -> Mark:
    def mark(
        text: str, change: int, correction: Correction | None, _events: Sequence[Composite], clock: Clock
    ) -> str:
        head = f"{{{line_head(change, correction, clock)}"
        return "".join([f"{head}{line[1:]}\n" for line in text.split("\n")[:-1]])

    return mark


def _text(_prefixes: Mapping[str, str]) -> Mark:
    def mark(
        text: str, change: int, _correction: Correction | None, _events: Sequence[Composite], _clock: Clock
    ) -> str:
        sign = "+" if change > 0 else "−"
        return "".join([f"{sign} {line}\n" for line in text.split("\n")[:-1]])

    return mark


def _table(_prefixes: Mapping[str, str]) -> Mark:
    def mark(
        text: str, change: int, correction: Correction | None, events: Sequence[Composite], clock: Clock
    ) -> str:
        at, causes = "", ""
        if correction is not None:
            at = clock.text(correction.at)
            causes = " ".join(cause.place or clock.text(cause.time) for cause in correction.causes)
        if any(c in causes for c in '",\n\r'):
            causes = '"{}"'.format(causes.replace('"', '""'))
        head = f"{change},{at},{causes},"
        return "".join([f"{head}{row}" for row in _rows(text, len(events))])

    return mark


def _rows(text: str, count: int) -> list[str]:
    """The rows of a table, with their ends: a cell in quotes may have lines."""
    rows: list[str] = []
    quoted, row = False, ""
    for line in text.splitlines(keepends=True) if count > 1 else [text]:
        row += line
        quoted ^= line.count('"') % 2 == 1
        if not quoted and line.endswith("\n"):
            rows.append(row)
            row = ""
    return rows + ([row] if row else [])


def _graphs(prefixes: Mapping[str, str]) -> Mark:
    notation = TermFormatter(with_prov(prefixes))
    return _invalidated(notation.term)


def _quads(_prefixes: Mapping[str, str]) -> Mark:
    return _invalidated(str)


def _invalidated(term: Callable[[str], str]) -> Mark:
    """Statements of the default graph about what a correction took back; what it added is as any event."""
    at, by, when = (term(f"<{PROV}{name}>") for name in ("invalidatedAtTime", "wasInvalidatedBy", "atTime"))

    def mark(
        text: str, change: int, correction: Correction | None, events: Sequence[Composite], clock: Clock
    ) -> str:
        if change > 0 or correction is None:
            return text
        stamp = term(clock.term(correction.at))
        out = []
        for event in events:
            out.append(f"<{event.id}> {at} {stamp} .\n")
            for number, cause in enumerate(correction.causes):
                node = f"_:late-{event.id.rpartition(':')[2]}-{correction.at}-{number}"
                out.append(f"<{event.id}> {by} {node} .\n{node} {when} {term(clock.term(cause.time))} .\n")
                if cause.place:
                    out.append(f"{node} {RDFS_LABEL} {json.dumps(cause.place, ensure_ascii=False)} .\n")
        return "".join(out)

    return mark


_MARKS: Final[Mapping[str, Callable[[Mapping[str, str]], Mark]]] = {
    "text": _text,
    "jsonl": _lines,
    "trig": _graphs,
    "nquads": _quads,
    "csv": _table,
}
"""Formats that tell what a correction took back. A binary table or frame has no place for it yet."""


def consolidated(lines: Iterable[tuple[str, str]]) -> list[str]:
    """The events that remain of a log of changes, as lines without a change, in order of time; those of one
    instant as they came. A line without a change is one that was reported. `lines`: (place, line). Raises
    DataError D4166. Memory: the events that remain.
    """
    counts: dict[str, int] = {}
    times: dict[str, tuple[str, Any]] = {}
    for place, line in lines:
        if not line.strip():
            continue
        event = _read(line, place)
        change = event.pop("change", 1)
        for key in KEYS[1:]:
            event.pop(key, None)
        text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        if not text.isascii() and any("\ud800" <= one <= "\udfff" for one in text):
            raise _wrong(place, "this line has half a character")
        counts[text] = counts.get(text, 0) + change
        times.setdefault(text, (place, event.get("time")))
        if not counts[text]:
            del counts[text], times[text]
        elif counts[text] < 0:
            raise _wrong(place, "this line takes back an event that is not there")
    kinds = {type(time) for _, time in times.values()}
    if len(kinds) > 1 or not kinds <= {int, str}:
        raise _wrong(next(iter(times.values()))[0], "the times of these lines are of two kinds")
    order = sorted(counts, key=lambda text: comparable(times[text][1]))
    return [text for text in order for _ in range(counts[text])]


def comparable(time: Any) -> Any:
    """The time of a JSON line, to compare it: a dateTime of UTC as its day and time, then its fraction, since
    `…12.5Z` is after `…12Z`.
    """
    if isinstance(time, str):
        whole, _, rest = time.rstrip("Z").partition(".")
        return whole, rest
    return time


def _read(line: str, place: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        raise _wrong(place, "this line is no JSON") from None
    if not isinstance(event, dict) or "rule" not in event or "id" not in event:
        raise _wrong(place, "this line is no event")
    if event.get("change", 1) not in (1, -1):
        raise _wrong(place, "the change of this line is neither 1 nor -1")
    return event


def _wrong(place: str, message: str) -> DataError:
    return DataError.of(
        "D4166",
        message,
        place=place,
        hint="give it the whole log that `dotr run --corrections --format jsonl` wrote",
    )

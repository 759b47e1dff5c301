"""How a server is doing, for who watches it on a terminal.

Place:   `dotr serve` on a terminal; reads what the routes read and changes nothing. live.py draws it.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from typing import Any

from dotr.cli.live import LAST, EventLine, LiveView, Look, SourceLine, event_values
from dotr.cli.show import counted
from dotr.errors import DotrError
from dotr.events import Clock, Time
from dotr.io.events import TermFormatter
from dotr.rdf.terms import literal
from dotr.serve.app import Parts, clock_of, reasons_not_ready
from dotr.serve.metrics import source_name
from dotr.service.logs import OutboxRow


class ServerView:
    """Owns the view of a server. See `Watcher` of serve/server.py."""

    def __init__(self, folder: str) -> None:
        self._view = LiveView(True)
        self._folder, self._title = folder, ""
        self._parts: Parts | None = None
        self._upto = -1
        self._last: list[OutboxRow] = []

    def begin(self, address: str, parts: Parts) -> None:
        """It listens there."""
        self._title, self._parts = f"{self._folder}  {address}", parts

    def look(self) -> None:
        """Draw it again."""
        self._view.look(self._look)

    def aside(self) -> AbstractContextManager[None]:
        """A line of the log is written meanwhile."""
        return self._view.aside()

    def close(self) -> None:
        """Take the view away."""
        self._view.close()

    def _look(self) -> Look:
        parts = self._parts
        assert parts is not None, "it is asked for after it has begun"
        engine, clock = parts.engine, clock_of(parts)
        status, program = engine.status, engine.program
        terms = TermFormatter(program.prefixes)
        waiting = sum(one.rows for one in parts.inbox.counts().values())
        many = len(parts.deliveries.states())
        return Look(
            title=self._title,
            watermark=_text(status.get("watermark"), clock),
            graphs=int(status.get("graphs", 0)),
            events=sum(status.get("events", {}).values()),
            sources=_sources(parts, clock),
            last=[_event(row, clock, terms) for row in self._rows(parts)],
            rules=[rule.name for rule in program.rules],
            letters=dict(engine.letters),
            more=[
                f"{waiting:,} waiting",
                counted(parts.broadcast.readers, "reader"),
                *([counted(many, "output")] if many else []),
            ],
            wrong=reasons_not_ready(parts),
        )

    def _rows(self, parts: Parts) -> list[OutboxRow]:
        """The last events, read where there are new ones."""
        if (last := parts.broadcast.last) != self._upto:
            try:
                self._last = parts.broadcast.reader.page_before(last + 1, LAST).rows[::-1]
                self._upto = last
            except DotrError:  # which the next commit or the log reports
                pass
        return self._last


def _sources(parts: Parts, clock: Clock | None) -> list[SourceLine]:
    counts = parts.inbox.counts()
    states = {one.name: one for one in parts.listening.states()}
    lines = []
    for source, partition, latest, graphs, idle in parts.engine.status.get("partitions", ()):
        name = source_name(source)
        rows = counts[name].rows if name in counts else 0
        notes = [f"{rows:,} waiting"] if rows else []
        notes += ["idle"] if idle else []
        state = states.get(name)
        replayed = parts.engine.replayed.get(name)
        connected = (state is None or state.connected) and (replayed is None or replayed.connected)
        if not connected:
            why = state.why if state is not None else replayed.why if replayed is not None else ""
            notes = [f"not connected: {why}"]
        shown = name if partition in ("", name) else f"{name}/{partition}"
        lines.append(SourceLine(shown, _text(latest, clock), graphs, ", ".join(notes), not connected))
    known = {line.name.partition("/")[0] for line in lines}
    lines += [SourceLine(name, "", 0) for name in parts.configuration.sources if name not in known]
    return lines


def _text(time: Time | None, clock: Clock | None) -> str:
    return "" if time is None or clock is None else clock.text(time)


def _event(row: OutboxRow, clock: Clock | None, terms: TermFormatter) -> EventLine:
    bindings: dict[str, dict[str, Any]] = json.loads(row.line)["bindings"]
    found = [(name, _term(value)) for name, value in bindings.items()]
    sign = "−" if row.change == -1 else ""
    return EventLine(f"{sign}{_text(row.time, clock)}", row.rule, event_values(found, terms))


def _term(value: dict[str, Any]) -> str:
    """An object of SPARQL's JSON results as a term whose words are enough for people."""
    if value["type"] == "uri":
        return f"<{value['value']}>"
    return f"_:{value['value']}" if value["type"] == "bnode" else literal(value["value"])

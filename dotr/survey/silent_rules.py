"""Why rules of a run had no event: what the queries they need lacked, on the first graphs of the stream.

Place:   the end of `dotr run`, where a rule had no event; one look at a bounded sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dotr.core.deployment import Deployment
from dotr.errors import Diagnostic, Severity
from dotr.ir import Position
from dotr.survey.report import survey
from dotr.survey.sample import Sample

_CAUSES: Final = frozenset(("D2511", "D2512", "D2517"))


def why_silent(deployment: Deployment, events: Mapping[str, int], sample: Sample) -> list[Diagnostic]:
    """The reasons why queries had no fact that rules without an event need."""
    program = deployment.program
    needed: set[str] = set()
    for rule in program.rules:
        if not events.get(rule.name):
            first = [rule.trigger] if isinstance(rule.trigger, Position) else []
            needed |= {p.stream for p in (*first, *(choice.position for choice in rule.chosen))}
    streams = needed & program.written.keys()
    if not streams or not sample.graphs:
        return []
    seen = survey(
        program, deployment.background, sample, streams=streams, closed=deployment.closed_background()
    )
    return [d for d in seen.found.found if d.code in _CAUSES and d.severity is Severity.WARNING]

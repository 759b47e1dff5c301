"""Why rules of a run had no event: what their queries and conditions lacked, on the first graphs.

Place:   the end of `dotr run`, where a rule had no event; one look at a bounded sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dotr.core.deployment import Deployment
from dotr.errors import Diagnostic, Severity
from dotr.ir import Every, Position, Rule
from dotr.survey.report import survey
from dotr.survey.sample import Sample

_CAUSES: Final = frozenset(("D2511", "D2512", "D2517", "D2518", "D2519"))

_MOST_TICKS: Final = 10_000
"""Ticks of a sample up to which a rule that they trigger is looked at."""

_MOST: Final = 20
"""Rules without an event that are looked at conjunct by conjunct."""


def why_silent(deployment: Deployment, events: Mapping[str, int], sample: Sample) -> list[Diagnostic]:
    """Why rules without an event had none: what their queries and conditions lacked."""
    program = deployment.program
    silent = [rule for rule in program.rules if not events.get(rule.name) and not rule.private]
    silent = [rule for rule in silent if _ticks(rule, sample) <= _MOST_TICKS]
    needed: set[str] = set()
    for rule in silent:
        first = [rule.trigger] if isinstance(rule.trigger, Position) else []
        needed |= {p.stream for p in (*first, *(choice.position for choice in rule.chosen))}
    streams = needed & program.written.keys()
    if not silent or not sample.graphs:
        return []
    seen = survey(
        program,
        deployment.background,
        sample,
        streams=streams,
        rules=[rule.name for rule in silent[:_MOST]],
        closed=deployment.closed_background().save(),
    )
    causes = [d for d in seen.found.found if d.code in _CAUSES]
    likely = [d for d in causes if d.severity is Severity.WARNING]
    return likely or [d for d in causes if d.severity is Severity.INFO]  # of few facts, if there is no better


def _ticks(rule: Rule, sample: Sample) -> int:
    if not isinstance(rule.trigger, Every) or not sample.graphs:
        return 0
    times = [time for time, _ in sample.graphs]
    return (max(times) - min(times)) // rule.trigger.duration

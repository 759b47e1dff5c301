"""Trigger facts that take a rule too much work (D4010), from the detector to the handler.

Place:   core/pipeline.py and batch/detecting.py hold one beside their detector.
Method:  the detector continues without the matches of such a fact, and nothing is consumed. After the instant
         the error is raised, and ends the run, or the fact is counted under its rule and the first of every
         rule is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from dotr.core.findings import Finding, Findings
from dotr.errors import DotrError, ProgramError, Severity
from dotr.events import Clock, Fact, Time
from dotr.ir.rules import Rule

Overworked: TypeAlias = Callable[[str, ProgramError], None]
"""(name of a rule, D4010). What it raises ends the run after the instant."""

_KEPT = "its graphs were taken and are not dead letters: fed again, they would give other rules' events twice"


class LeftOut:
    """Owns the facts left out at the instant in progress, and their number by rule.

    Without `on_overwork` the error is raised; with it, `say` is called with the first of every rule.
    """

    def __init__(self, on_overwork: Overworked | None = None, say: Finding | None = None) -> None:
        self._on_overwork = on_overwork
        self._findings = None if say is None else Findings(say)
        self._errors: list[ProgramError] = []
        self.facts: list[tuple[int, Fact]] = []
        """(number of a rule, trigger fact), at this instant."""
        self.counts: dict[str, int] = {}

    def take(self, rule: int, fact: Fact, error: ProgramError) -> None:
        """Record that the detector leaves a fact out; see `RefusedTrigger`."""
        self.facts.append((rule, fact))
        self._errors.append(error)

    def settle(self, time: Time, rules: Sequence[Rule], clock: Clock) -> DotrError | None:
        """End the instant; returns what to raise after it, if anything."""
        failed: DotrError | None = None
        for (rule, _), error in zip(self.facts, self._errors, strict=True):
            name = rules[rule].name
            self.counts[name] = self.counts.get(name, 0) + 1
            try:
                self._report(name, error, time, clock)
            except DotrError as raised:
                failed = failed or raised
        self.forget()
        return failed

    def forget(self) -> None:
        """Drop what was left out at this instant: another caller reports it."""
        self.facts.clear()
        self._errors.clear()

    def _report(self, name: str, error: ProgramError, time: Time, clock: Clock) -> None:
        if self._on_overwork is None:
            raise error
        self._on_overwork(name, error)
        if self._findings is not None:
            found = error.diagnostics[0]
            notes = (
                *found.notes,
                "it has no match of this rule; the summary counts such facts",
                _KEPT,
            )
            self._findings.found([replace(found, severity=Severity.WARNING, notes=notes)], time, clock)

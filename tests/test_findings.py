"""What is to be said about instants that are not in error is said once."""

from __future__ import annotations

from dotr.core.instant import MOST, Findings
from dotr.errors import Diagnostic, Severity
from dotr.events import Clock

CLOCK = Clock(integer=True, unit=1)


def note(label: str) -> Diagnostic:
    return Diagnostic("D2602", "m", label=label, severity=Severity.INFO)


def test_once_and_again_only_for_an_earlier_instant() -> None:
    said: list[Diagnostic] = []
    findings = Findings(said.append)
    for time, labels in [(5, "ab"), (6, "abc"), (3, "b"), (4, "b")]:
        findings.found(map(note, labels), time, CLOCK)
    assert [(d.label, d.place) for d in said] == [("a", "@ 5"), ("b", "@ 5"), ("c", "@ 6"), ("b", "@ 3")]


def test_so_many_that_nobody_reads_them_are_not_said() -> None:
    said: list[Diagnostic] = []
    findings = Findings(said.append)
    for time in range(3 * MOST):
        findings.found([note(str(time))], time, CLOCK)
    assert len(said) == MOST + 1
    assert said[-1].notes == (f"after {MOST} of them, further ones are not reported",)

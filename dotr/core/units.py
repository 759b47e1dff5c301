"""Whether a program's lengths of time fit how a stream counts time.

Place:   core/pipeline.py asks when the first graph has said how, batch/ before it parts a log.
Method:  language.md: with integer time, EVERY and FOR are multiples of the unit. Else a tick or an end would
         lie where no time is.
"""

from __future__ import annotations

from collections.abc import Iterator

from dotr.errors import Diagnostic, ProgramError
from dotr.events import Clock, Time
from dotr.ir import Every, Program
from dotr.source import Span


def check_units(program: Program, clock: Clock) -> None:
    """Raise ProgramError D1409 with every length of time that is no multiple of the unit of integer time."""
    if not clock.integer:
        return
    found = [
        Diagnostic(
            "D1409",
            f"{what} is no multiple of the unit of this stream's time",
            span,
            f"{duration} µs",
            (f"times are integers of {clock.unit} µs",),
            "use a multiple, or a finer --time-unit",
        )
        for what, duration, span in _durations(program)
        if duration % clock.unit
    ]
    if found:
        raise ProgramError(found)


def _durations(program: Program) -> Iterator[tuple[str, Time, Span | None]]:
    for rule in program.rules:
        if isinstance(rule.trigger, Every):
            yield f"`EVERY` of rule `{rule.name}`", rule.trigger.duration, rule.trigger.span
    for hold in program.holds:
        if hold.duration is not None:
            yield "`FOR` of this HOLD", hold.duration, hold.span

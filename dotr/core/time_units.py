"""Whether a program's lengths of time fit how a stream counts time.

Place:   called by core/pipeline.py once the first graph has fixed that, and by batch/ before it splits a log.
Method:  language.md: with integer time, EVERY, FOR and STEP are multiples of the unit, else a tick or an end
         would lie between two times.
"""

from __future__ import annotations

from collections.abc import Iterator

from dotr.errors import Diagnostic, ProgramError
from dotr.events import Clock, Time
from dotr.ir import Every, Program
from dotr.source import Span


def check_units(program: Program, clock: Clock) -> None:
    """Raise ProgramError D1409 with every length of time that is not a multiple of the unit of integer time,
    D1609 where there are dates and LARS rules without a STEP.
    """
    if not clock.integer:
        _check_step(program)
        return
    found = [
        Diagnostic(
            "D1409",
            f"{what} is not a multiple of the unit of this stream's time",
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


def _check_step(program: Program) -> None:
    if program.lars.rules and program.lars.step is None:
        raise ProgramError.of(
            "D1609",
            "the times of this stream are dates, and these rules have no timeline",
            program.lars.span,
            hint="write `STEP 1 s` into a .lars file: how far apart its points are",
            notes=("with integer times a point is one unit",),
        )


def _durations(program: Program) -> Iterator[tuple[str, Time, Span | None]]:
    for rule in program.rules:
        if isinstance(rule.trigger, Every):
            yield f"`EVERY` of rule `{rule.name}`", rule.trigger.duration, rule.trigger.span
    for hold in program.holds:
        if hold.duration is not None:
            yield "`FOR` of this HOLD", hold.duration, hold.span
    if program.lars.step is not None:
        yield "STEP", program.lars.step, program.lars.span
    else:
        for lars in program.lars.rules:
            for duration, span in lars.durations:
                yield "this", duration, span

"""Times as callers of a knowledge base write them.

Place:   under knowledge_base.py; the same forms as those of `Engine` (api.py).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dotr.errors import DataError, Diagnostic, UsageError
from dotr.events import Clock, Time
from dotr.io.timestamps import TimeError, parse_datetime

_MOST = 2**63


def read_time(at: int | datetime | str, unit: int) -> tuple[Time, Clock]:
    """A time and how it was written: an int in units of `unit` µs, an aware datetime, or ISO 8601 text.

    Raises UsageError D4104, DataError D2103, D2105, and what the text is refused for.
    """
    if isinstance(at, bool) or not isinstance(at, int | datetime | str):
        raise UsageError(
            Diagnostic(
                "D4104", f"{at!r} is not a time", hint="give an int, an aware datetime or ISO 8601 text"
            )
        )
    if isinstance(at, int):
        time = at * unit
    elif isinstance(at, datetime):
        if at.tzinfo is None:
            raise DataError(
                Diagnostic("D2103", f"`{at.isoformat()}` has no time zone", hint="use an aware datetime")
            )
        time = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    else:
        try:
            time = parse_datetime(at)
        except TimeError as error:
            raise DataError(Diagnostic(error.code, error.message, hint=error.hint)) from None
    if not -_MOST <= time < _MOST:
        raise DataError(
            Diagnostic("D2105", f"`{at}` lies beyond 64 bits of microseconds", hint="check the time_unit")
        )
    return time, Clock(isinstance(at, int), unit)


def same_kind(clock: Clock | None, other: Clock) -> Clock:
    """The clock of a knowledge base that has times of one kind. Raises DataError D2102."""
    if clock is not None and clock.integer is not other.integer:
        kinds = {True: "an integer", False: "a dateTime"}
        raise DataError(
            Diagnostic(
                "D2102",
                f"this time is {kinds[other.integer]}, those before it are not",
                notes=("one knowledge base uses one kind of time",),
                hint="write all times alike",
            )
        )
    return other if clock is None else clock

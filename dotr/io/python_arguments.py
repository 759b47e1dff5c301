"""What a Python user gives as arguments: durations, times, policies; each as the engine wants it.

Place:   under api.py and dotr.spark. Raises UsageError and DataError for what is not what it should be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dotr.core.open_instants import LateGraph
from dotr.core.parts import Part
from dotr.errors import DataError, DotrError, UsageError
from dotr.events import Clock, Message, Time
from dotr.io.decode.documents import decode, read_bytes
from dotr.io.decode.parse_choices import RDF12, ParseChoices
from dotr.io.error_policy import ErrorPolicy
from dotr.io.python_graphs import IRI
from dotr.io.time_reading import EXACT, Notes, TimeReading
from dotr.io.timestamps import TimeError, parse_datetime, too_fine
from dotr.temporal.durations import duration as parse_duration

_LEAST, _MOST = -(2**63), 2**63
"""Times are at most so many microseconds away from 0."""


def duration(value: timedelta | str | None) -> int:
    """A duration of the Python API in microseconds: a timedelta, "5 min" or "PT5M". None is 0.

    Raises UsageError D4101 for anything else, and for a negative one.
    """
    if value is None:
        return 0
    if isinstance(value, timedelta) and value >= timedelta():
        return value // timedelta(microseconds=1)
    with suppress(ValueError):
        if isinstance(value, str):
            return parse_duration(value)
    raise UsageError.of(
        "D4101", f"`{value}` is not a duration", hint='write "5 min", "PT5M" or a timedelta, not negative'
    )


def checked_budget(budget: int) -> int:
    """Units of work as given. Raises UsageError D4108 for anything but a positive number."""
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise UsageError.of("D4108", f"{budget!r} is not a budget", hint="a number of units, from 1 on")
    return budget


def fits(time: Time) -> bool:
    """Whether a time is within 64 bits of microseconds."""
    return _LEAST <= time < _MOST


def time_of(
    at: int | datetime | str, unit: int, reading: TimeReading = EXACT, notes: Notes | None = None
) -> tuple[Time, bool]:
    """A stamp in microseconds, and whether it was a number, which counts `unit` µs; what `reading` changed is
    added to `notes`.

    Raises UsageError D4104 for what is not a time, DataError D2103 without a zone, D2105 beyond 64 bits, and
    what `parse_datetime` says.
    """
    if isinstance(at, bool) or not isinstance(at, int | datetime | str):
        raise UsageError.of(
            "D4104", f"{at!r} is not a time", hint="give an int, an aware datetime or ISO 8601 text"
        )
    if isinstance(at, int):
        return _fitting(at * unit, at), True
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise DataError.of("D2103", f"`{at.isoformat()}` has no time zone", hint="use an aware datetime")
        if getattr(at, "nanosecond", 0):  # of pandas
            if reading.finer == "refuse":
                raise _refused(too_fine(at.isoformat()))
            if notes is not None:
                notes.add("cut")
        return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), False
    try:
        return _fitting(parse_datetime(at, None, reading, notes), at), False
    except TimeError as error:
        raise _refused(error) from None


def _refused(error: TimeError) -> DataError:
    return DataError.of(error.code, error.message, hint=error.hint)


def _fitting(time: Time, at: object) -> Time:
    if not fits(time):
        raise DataError.of("D2105", f"`{at}` lies beyond 64 bits of microseconds", hint="check the time_unit")
    return time


def parse_choices(rdf12: str, contexts: Mapping[str, str | Path]) -> ParseChoices:
    """What documents may say, as given. Raises UsageError D4107, D4187, DataError for files."""
    if rdf12 not in RDF12:
        raise UsageError.of("D4187", f"`{rdf12}` is not a value of rdf12", hint=f"one of {', '.join(RDF12)}")
    texts = {absolute_iri(i): decode(read_bytes(str(file)), str(file)) for i, file in contexts.items()}
    return ParseChoices(rdf12, texts)


class EngineErrors(ErrorPolicy):
    """The policy of an engine for documents and instants in error; `given` may be a function to call."""

    given: Callable[[DotrError], None] | None = None

    @staticmethod
    def of(on_error: str | Callable[[DotrError], None]) -> EngineErrors:
        """As given. Raises UsageError D4109."""
        if callable(on_error):
            return EngineErrors(fail=False, given=on_error)
        if on_error not in ("fail", "skip"):
            raise UsageError.of(
                "D4109", f"`{on_error}` is not a policy for errors", hint="fail, skip or a function"
            )
        return EngineErrors(on_error == "fail")

    def take(self, error: DataError, content: bytes) -> None:
        """As `ErrorPolicy.take`."""
        if self.fail:
            raise error
        self.report(error, 1)

    def report(self, error: DotrError, count: int) -> None:
        """So many graphs are left out because of an error."""
        self.count += count
        if self.given is not None:
            self.given(error)


def absolute_iri(iri: str) -> str:
    """An IRI as given. Raises UsageError D4107."""
    if not re.fullmatch(IRI, f"<{iri}>"):
        raise UsageError.of("D4107", f"`{iri}` is not an absolute IRI", hint="give a whole IRI")
    return iri


def not_a_pair(item: object) -> UsageError:
    """D4105."""
    return UsageError.of(
        "D4105",
        f"{item!r} is not a (time, graph) pair",
        hint='push_all takes pairs like (12, "<a> <b> <c> .")',
    )


def turtle_of(value: Any) -> str:
    """A value of `why_not` as Turtle: text is that already."""
    if isinstance(value, str) and not hasattr(value, "n3"):
        return value
    return str(value.n3()) if hasattr(value, "n3") else json.dumps(value)


def late_policy(late: str | LateGraph, clock: Callable[[], Clock | None]) -> LateGraph | None:
    """What is done with a graph for an instant that is closed; None: it is counted. `clock` writes its time.

    Raises UsageError D4106; the policy "fail" raises DataError D2301.
    """
    if callable(late):
        return late
    if late == "drop":
        return None
    if late != "fail":
        raise UsageError.of("D4106", f"`{late}` is not a policy for late graphs", hint="use drop or fail")

    def fail(time: Time, part: Part) -> None:
        begun = clock()
        assert begun is not None, "only a closed instant has late graphs"
        parts = part._asdict() if isinstance(part, Message) else {"graph": part}
        counts = [
            f"{len(triples)} triples to {name}" for name, triples in parts.items() if triples is not None
        ]
        raise DataError.of(
            "D2301",
            f"this graph is for {begun.text(time)}, an instant that is already closed",
            notes=(f"it has {', '.join(counts).replace(' to graph', '')}",),
            hint="allow for disorder with a lateness, or sort the input",
        )

    return fail

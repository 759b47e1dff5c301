"""From which time on other rules may hold: not from one that is closed.

Place:   asked by core/pipeline.py in a run, and by `dotr deploy --from` of a deployment that rests.
"""

from __future__ import annotations

from dotr.errors import Diagnostic, UsageError
from dotr.events import Clock, Time


def refuse_closed(time: Time, watermark: Time | None, clock: Clock) -> None:
    """Raise UsageError D4161 for a time up to `watermark`, naming the first one that may be."""
    if watermark is None or time > watermark:
        return
    first = watermark + 1
    if clock.integer:
        first = -(-first // clock.unit) * clock.unit
    raise UsageError(
        Diagnostic(
            "D4161",
            f"{clock.text(time)} is closed: what happened until then stays as it was",
            notes=(f"the first time that is not closed is {clock.text(first)}",),
            hint=f"let the new program hold from {clock.text(first)} on",
        )
    )

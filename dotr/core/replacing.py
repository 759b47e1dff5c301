"""From which time on new rules may hold: not from a closed one.

Place:   called by core/pipeline.py in a run, and by `dotr deploy --from` for a stopped deployment.
"""

from __future__ import annotations

from dotr.errors import UsageError
from dotr.events import Clock, Time


def refuse_closed(time: Time, watermark: Time | None, clock: Clock) -> None:
    """Raise UsageError D4161 for a time up to `watermark`, naming the first possible one."""
    if watermark is None or time > watermark:
        return
    first = watermark + 1
    if clock.integer:
        first = -(-first // clock.unit) * clock.unit
    raise UsageError.of(
        "D4161",
        f"{clock.text(time)} is closed: what happened until then stays as it was",
        notes=(f"the first time that is not closed is {clock.text(first)}",),
        hint=f"let the new program hold from {clock.text(first)} on",
    )

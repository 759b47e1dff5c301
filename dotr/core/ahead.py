"""Graphs too far ahead of the last one: from which distance on they are refused, and with which error.

Place:   the pipeline refuses such a graph before it closes any instant; a batch run finds the first in a log.
Why not: taking it and running every tick up to it: one wrong clock would close every source's instants.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from dotr.errors import DataError
from dotr.events import Clock, Time
from dotr.ir import Every, Program
from dotr.temporal.durations import duration_text
from dotr.temporal.silences import ENDLESS, Silence

TICKS = 1_000_000
"""The limit of ticks between two instants that have to be stepped through."""


class Ahead(Struct, frozen=True):
    """How far ahead of an instant the next one may lie.

    `max_jump`: in µs, ENDLESS for no limit. `stride`: a distance that always passes. `later`: (time from
    which it holds, how it ticks) of later programs, in order.
    """

    silence: Silence
    max_jump: Time
    stride: Time
    later: tuple[tuple[Time, Silence], ...] = ()

    def refused(self, now: Time, latest: Time, time: Time, clock: Clock) -> DataError | None:
        """D2106 or D2107 for a graph at `time`; the last one came at `latest`, time is at `now` ≥ it."""
        if time - now <= self.stride:
            return None
        if time - now > self.max_jump:
            return _jumped(now, time, self.max_jump, clock)
        return self.ticked(now, latest, time, clock)

    def ticked(self, now: Time, latest: Time, bound: Time, clock: Clock) -> DataError | None:
        """D2107 if too many ticks of the programs that hold there lie between `now` and `bound`."""
        silence, since = self.silence, now
        for time, other in (*self.later, (bound, self.silence)):
            until = min(time, bound)
            if since < until and (error := _ticked(silence, since, latest, until, clock)):
                return error
            silence, since, latest = other, max(now, time), max(latest, time)
        return None

    def began(self, time: Time, clock: Clock) -> DataError | None:
        """D2107 if too many ticks of a program lie before the first graph, at `time`."""
        first = self.later[0][0] if self.later else time
        return self.ticked(first, first, time, clock) if first < time else None


def _ticked(silence: Silence, now: Time, latest: Time, bound: Time, clock: Clock) -> DataError | None:
    if silence.count(now, latest, bound) <= TICKS:
        return None
    worst = silence.worst(now, latest, bound)
    named = ", ".join(f"`{name}`" for name in worst.rules[:5]) + (", …" if worst.rules[5:] else "")
    return DataError.of(
        "D2107",
        f"more than {TICKS:,} ticks lie between {clock.text(now)} and {clock.text(bound)}",
        place=f"@ {clock.text(bound)}",
        notes=(f"at each tick of `EVERY {duration_text(worst.every)}` something can match: {named}",),
        hint="correct the clock of the source (--max-jump refuses such graphs), tick less often, or "
        "let the rule choose a fact of the stream from a window",
    )


def ahead(
    silence: Silence, max_jump: Time | None = None, later: Mapping[Time, Silence] | None = None
) -> Ahead:
    """The distances for a program; `max_jump` in µs, None for no limit."""
    most = ENDLESS if max_jump is None else max_jump
    others = tuple((time, (later or {})[time]) for time in sorted(later or {}))
    stride = min(most, silence.allows(TICKS), *(other.allows(TICKS) for _, other in others))
    return Ahead(silence, most, stride, others)


def _jumped(now: Time, time: Time, max_jump: Time, clock: Clock) -> DataError:
    return DataError.of(
        "D2106",
        f"this graph is for {clock.text(time)}, more than {duration_text(max_jump)} ahead",
        place=f"@ {clock.text(time)}",
        notes=(f"time is at {clock.text(now)}, set by the last graph taken",),
        hint="correct the clock of the source; or raise --max-jump, if it is right",
    )


def ticks_of(program: Program) -> list[Time]:
    """The distinct lengths of EVERY."""
    return list({rule.trigger.duration: None for rule in program.rules if isinstance(rule.trigger, Every)})

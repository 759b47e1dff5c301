"""Clauses of rules, their windows and distances in time, as explanations name them.

Place:   what the renderers of proofs (text, JSON) say about a conjunct.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from dotr.events import Time
from dotr.ir import Between, Conjunct, Within
from dotr.temporal.durations import duration_text


def apart_text(micros: Time) -> str:
    """`1 min 17 s`: a distance in time, in two units at most."""
    for unit, below in (
        (86_400_000_000, 3_600_000_000),
        (3_600_000_000, 60_000_000),
        (60_000_000, 1_000_000),
    ):
        if micros >= unit:
            rest = micros % unit // below * below
            whole = duration_text(micros - micros % unit)
            return f"{whole} {duration_text(rest)}" if rest else whole
    return duration_text(micros)


def outside_text(conjunct: Conjunct, time: Time, previous: Mapping[str, Time]) -> str:
    """`outside of the window: 6 min 30 s before Smoke`."""
    text, window = "outside of the window", conjunct.window
    if not isinstance(window, Within) or window.reference not in previous:
        return text
    apart = previous[window.reference] - time
    if apart == 0:
        return f"{text}: with {window.reference}"
    return f"{text}: {apart_text(abs(apart))} {'before' if apart > 0 else 'after'} {window.reference}"


def false_text(parts: Sequence[str]) -> str:
    """`not true: Hot.?room = Smoke.?room`, or nothing."""
    return f"not true: {' && '.join(parts)}" if parts else ""


def window_text(conjunct: Conjunct) -> str:
    """`within 5 min from Smoke`."""
    match conjunct.window:
        case Within(duration=duration, reference=reference, before=before):
            return f"within {duration_text(duration)} {'before' if before else 'from'} {reference}"
        case Between(start=start, end=end):
            return f"between {start} and {end}"
        case _:
            assert_never(conjunct.window)


def counted_text(number: int, one: str) -> str:
    """`1 fact`, `1,200 facts`."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"

"""How texts are read as instants where there is a choice, and what was changed by it.

Place:   one value for a run: options of the command line and arguments of Python make it, time.py and
         the filters of tables read by it.
Method:  each choice is a word. `refuse` is always one of them, and the default wherever an instant would have
         to be guessed. A digit that time in microseconds cannot hold is no guess: it is cut off, which is
         towards the past on both sides of 1970, so that the order of times stays (two may become one).
         What a reading changes is added to `notes` by its word, and counted by whoever reads a graph.
Why not: rounding: it may give a time after the end of a window, a second, or a day that the text lies in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from dotr.errors import UsageError

Notes: TypeAlias = set[str]
"""What reading a string changed: some of CHANGES."""

CHANGES: Final = ("cut", "earlier", "later", "forward", "triple terms", "directions")
FINER: Final = ("cut", "refuse")
AMBIGUOUS: Final = ("refuse", "earlier", "later", "infer")
NONEXISTENT: Final = ("refuse", "forward")
INTERVAL: Final = ("refuse", "begin", "end")


class TimeReading(NamedTuple):
    """The choices of one run.

    `finer`: fractions beyond a microsecond are "cut" or "refuse"d. `ambiguous`: a local time that came twice
    is the "earlier" or "later" one, what the order of the rows says ("infer"; "undecided" where it says
    nothing), or "refuse"d. `nonexistent`:
    one that never came is the instant at which clocks went "forward", or "refuse"d. `interval`: of
    `begin/end` one is taken, or it is "refuse"d.
    """

    finer: str = "cut"
    ambiguous: str = "refuse"
    nonexistent: str = "refuse"
    interval: str = "refuse"


EXACT = TimeReading()


def time_reading(
    sub_microsecond: str = "cut",
    ambiguous_time: str = "refuse",
    nonexistent_time: str = "refuse",
    interval: str = "refuse",
) -> TimeReading:
    """The choices by the names that Python's arguments have. Raises UsageError D4187."""
    given = (
        ("sub_microsecond", sub_microsecond, FINER),
        ("ambiguous_time", ambiguous_time, AMBIGUOUS),
        ("nonexistent_time", nonexistent_time, NONEXISTENT),
        ("interval", interval, INTERVAL),
    )
    for name, value, known in given:
        if value not in known:
            raise UsageError.of(
                "D4187", f"`{value}` is not a value of {name}", hint=f"one of {', '.join(known)}"
            )
    return TimeReading(sub_microsecond, ambiguous_time, nonexistent_time, interval)


def late_by_choice(counts: Mapping[str, int]) -> str:
    """What else a hint about a graph that is late says, by what was changed: an hour that came twice, read as
    one of both, goes back.
    """
    if not (counts.get("earlier") or counts.get("later")):
        return ""
    return (
        "; times of a repeated hour were read as earlier or later: --ambiguous-time infer (in a mapping "
        "# ambiguous: infer) takes the order of the rows"
    )


def changes(counts: Mapping[str, int]) -> dict[str, int]:
    """How often which change was made, as JSON summaries have it."""
    return {note: counts[note] for note in CHANGES if note in counts}


def unchanged(counts: Mapping[str, int]) -> dict[str, int]:
    """What else was counted."""
    return {note: count for note, count in counts.items() if note not in CHANGES}


def described(counts: Mapping[str, int], first: Mapping[str, str]) -> list[str]:
    """What was changed, as parts of a summary; `first`: where that was, by note."""

    def part(count: int, text: str, note: str) -> str:
        at = f", the first at {first[note]}" if note in first else ""
        return f"{count:,} time{'' if count == 1 else 's'} {text}{at}"

    parts = []
    if cut := counts.get("cut", 0):
        parts.append(part(cut, "cut to the microsecond", "cut"))
    earlier, later = counts.get("earlier", 0), counts.get("later", 0)
    if earlier or later:
        text = f"of a repeated hour ({earlier:,} earlier, {later:,} later)"
        parts.append(part(earlier + later, text, "earlier" if earlier else "later"))
    if moved := counts.get("forward", 0):
        parts.append(part(moved, "of a skipped hour moved forward", "forward"))
    for what, one in (("triple terms", "triple with a triple term"), ("directions", "base direction")):
        if left := counts.get(what, 0):
            many = "triples with triple terms" if what == "triple terms" else "base directions"
            at = f", the first in {first[what]}" if what in first else ""
            parts.append(f"{left:,} {one if left == 1 else many} of RDF 1.2 left out{at}")
    return parts

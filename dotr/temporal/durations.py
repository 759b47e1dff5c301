"""Lengths of time as rules write them: a number and a unit.

Place:   used by the parsers and printers of windows, and by options like `--lateness 5 min`.
Method:  language.md, sec. 2. A day is 24 hours; a month has no fixed length, so it is not a unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from dotr.regex import regex

UNITS: Final[Mapping[str, int]] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "sec": 1_000_000,
    "second": 1_000_000,
    "seconds": 1_000_000,
    "min": 60_000_000,
    "minute": 60_000_000,
    "minutes": 60_000_000,
    "h": 3_600_000_000,
    "hour": 3_600_000_000,
    "hours": 3_600_000_000,
    "d": 86_400_000_000,
    "day": 86_400_000_000,
    "days": 86_400_000_000,
}
"""Microseconds of each unit."""

LONGEST: Final = 366_000 * 86_400_000_000
"""A thousand years; longer ones are mistakes, and times must stay far below 64 bits."""

_TEXT: Final = regex(r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?|\.[0-9]{1,30})\s*([A-Za-z]+)\s*\Z")
_ISO: Final = regex(r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12}(?:\.\d{1,12})?)S)?)?\Z")


_NAMES: Final = ("d", "h", "min", "s", "ms", "us")


def duration_text(micros: int) -> str:
    """`5 min`: a duration in the largest unit with a whole number."""
    if micros == 0:
        return "0 s"
    unit = next(unit for unit in _NAMES if micros % UNITS[unit] == 0)
    return f"{micros // UNITS[unit]} {unit}"


def micros(number: str, unit: str) -> int | None:
    """`("1.5", "min")` in microseconds; None if that is not a whole number. `unit` is one of UNITS."""
    value = Decimal(number) * UNITS[unit.lower()]
    return int(value) if value == value.to_integral_value() else None


def duration(text: str) -> int:
    """`5 min`, `250ms` or `PT5M` in microseconds. Raises ValueError, whose text says how to fix it."""
    iso = _ISO.match(text)
    if iso is not None and any(iso.groups()):
        days, hours, minutes, seconds = (Decimal(part or 0) for part in iso.groups())
        value = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000_000
        if value == value.to_integral_value() and value <= LONGEST:
            return int(value)
        raise ValueError(f"{text!r} is not a whole number of microseconds, or too long")
    hit = _TEXT.match(text)
    if hit is None or hit.group(2).lower() not in UNITS:
        raise ValueError(
            f"{text!r} is not a duration: write a number and us, ms, s, min, h or d, as in '5 min'"
        )
    found = micros(hit.group(1), hit.group(2))
    if found is None or found > LONGEST:
        raise ValueError(f"{text!r} is not a whole number of microseconds, or too long")
    return found

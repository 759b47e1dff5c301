"""Functions of one's own that golden cases and other tests call; any process of a test can import them."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from math import hypot, nan
from typing import Any

SPACE = "http://example.org/f#"


def distance(x: float, y: float) -> float:
    return hypot(x, y)


def half(value: Any) -> Any:
    """Of a number its half, of a string its first half; raises for everything else."""
    if isinstance(value, str):
        return value[: len(value) // 2]
    return value / 2


def later(time: datetime, by: timedelta) -> datetime:
    return time + by


def kind(value: Any) -> str:
    """The type of a value, and what it is."""
    return f"{type(value).__name__} {value}"


def odd(what: str) -> Any:
    """Something that is hardly a value."""
    return {
        "NaN": nan,
        "None": None,
        "list": [1],
        "huge": 10**5000,
        "large": 10**30,
        "infinite": Decimal("Infinity"),
        "fine": Decimal("0.1234567890123456789"),
        "naive": datetime(2026, 1, 2, 3, 4, 5),  # a time without a zone
        "length": timedelta(days=1, microseconds=-1),
        "half a pair": "\ud800",
    }[what]


def leave(_value: Any) -> None:
    raise SystemExit(0)


FUNCTIONS = {SPACE + one.__name__: one for one in (distance, half, later, kind, odd, leave)}

__version__ = "1"

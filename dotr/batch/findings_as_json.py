"""Diagnostics between worker and driver: as JSON, without the text they point at.

Place:   rows of facts carry warnings about instants, and Spark's exceptions the error of a task.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from dotr.errors import Diagnostic, Severity
from dotr.events import Time


def packed(found: Diagnostic) -> dict[str, Any]:
    """Everything except the span, as a JSON value."""
    return {
        "code": found.code,
        "message": found.message,
        "label": found.label,
        "notes": list(found.notes),
        "hint": found.hint,
        "severity": str(found.severity),
        "place": found.place,
    }


def unpacked(found: Mapping[str, Any]) -> Diagnostic:
    """The inverse of `packed`."""
    return Diagnostic(**{**found, "notes": tuple(found["notes"]), "severity": Severity(found["severity"])})


def first_of_each(found: Iterable[tuple[Time, str]]) -> list[Diagnostic]:
    """Merge (time, JSON of `packed`) of workers: each finding once, at its earliest instant, by time."""
    first: dict[tuple[str, str], tuple[Time, Diagnostic]] = {}
    for time, text in found:
        one = unpacked(json.loads(text))
        about = (one.message, one.label)
        if about not in first or time < first[about][0]:
            first[about] = time, one
    return [one for _, one in sorted(first.values(), key=lambda pair: (pair[0], pair[1].label))]

"""The times of a sample: where they come from, what else looks like one, and whether the unit is right.

Place:   report.py; how a time is found says io/timestamps.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from dotr.core.parts import all_triples
from dotr.errors import Diagnostics
from dotr.rdf.terms import Term, is_literal, literal_parts
from dotr.sparql.printing import Writer
from dotr.survey.kinds import is_time
from dotr.survey.sample import Sample

_YEAR_5000: Final = 95_617_584_000 * 1_000_000
"""Microseconds from 1970: integer times beyond it are hardly seconds."""

_MILLIS: Final = re.compile(r"1[0-9]{12}")
_TEXT_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}.*")


def check_times(
    sample: Sample, rungs: Mapping[str, int], prefixes: Mapping[str, str], found: Diagnostics
) -> None:
    """Report integer times that are not what they count, D2516, and other properties of times, D2515.

    `rungs`: how the times of graphs were found, and how often.
    """
    _check_unit(sample, found)
    writer = Writer(prefixes)
    used = ", ".join(rungs)
    for predicate, count, example, kind in _like_times(sample):
        shown = writer.term(predicate)
        if predicate[1:-1] in used or any(rung.endswith(shown.split(":")[-1]) for rung in rungs):
            continue
        found.info(
            "D2515",
            f"{shown} has {kind}, in {count:,} graphs, such as {example}",
            notes=(f"the time of a graph is taken from: {used}",) if used else (),
            hint=f"--time-path {predicate[1:-1]}, if that is the time of a graph",
        )


def _check_unit(sample: Sample, found: Diagnostics) -> None:
    clock = sample.clock
    if not clock.integer or not sample.graphs:
        return
    time = sample.graphs[len(sample.graphs) // 2][0]
    if abs(time) < _YEAR_5000:
        return
    unit = {1_000_000: "seconds", 1_000: "milliseconds"}.get(clock.unit)
    if unit is None:
        return
    digits = len(str(abs(time // clock.unit)))
    better = "ms" if digits <= 14 else "us"
    found.warning(
        "D2516",
        f"times such as {clock.text(time)}, counted in {unit}, lie beyond the year 5000",
        notes=(f"they have {digits} digits",),
        hint=f"--time-unit {better}: then windows are as long as they say",
    )


def _like_times(sample: Sample) -> list[tuple[Term, int, Term, str]]:
    """(property, graphs that have it, one of its values, what that looks like), the commonest first."""
    counts: Counter[Term] = Counter()
    examples: dict[Term, tuple[Term, str]] = {}
    for _, part in sample.graphs:
        seen = set()
        for _, predicate, value in all_triples(part):
            kind = _kind(value)
            if kind and predicate not in seen:
                seen.add(predicate)
                examples.setdefault(predicate, (value, kind))
        counts.update(seen)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(predicate, count, *examples[predicate]) for predicate, count in ranked[:5]]


def _kind(value: Term) -> str:
    if not is_literal(value):
        return ""
    if is_time(value):
        return "times"
    lexical, datatype, _ = literal_parts(value)
    if _TEXT_TIME.fullmatch(lexical):
        return "texts that look like times"
    return (
        "integers of 13 digits (milliseconds?)"
        if _MILLIS.fullmatch(lexical) and "integer" in datatype
        else ""
    )

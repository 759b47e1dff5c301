"""Values that could be times, found by property or column, and what they would be.

Place:   `dotr times` shows them for documents without a time.
Method:  a value is a dateTime, a local dateTime, a day, or an integer that is an epoch of our days in
         seconds, milli-, micro- or nanoseconds. What it would be is said, nothing is applied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from dotr.events import Clock
from dotr.io.timestamps import UNITS, USUAL_PROPERTIES
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, RDF_TYPE, Term, Triple, literal_parts

_ZONED = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)")
_LOCAL = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d(Z|[+-]\d\d:\d\d)?")
_EPOCH = re.compile(r"[0-9]{9,20}")
_FROM, _TO = 946_684_800_000_000, 4_102_444_800_000_000
"""The years 2000 to 2099: epochs of other years are hardly meant."""

_OURS = 2
"""Values of a property that are kept as examples."""


class LikelyTime(Struct, frozen=True):
    """A property or column whose values could be times. `kind`: dateTime, local, day, or epoch; `unit`: of an
    epoch; `reads`: what the first example would be.
    """

    name: str
    kind: str
    examples: tuple[str, ...]
    values: int
    unit: str = ""
    reads: str = ""
    classes: tuple[str, ...] = ()
    """The classes of what has it, as IRIs, most frequent first."""


def kind_of(text: str) -> tuple[str, str] | None:
    """(kind, unit of an epoch or "") of a text that could be a time; None for any other."""
    if _ZONED.fullmatch(text):
        return "dateTime", ""
    if _LOCAL.fullmatch(text):
        return "local", ""
    if _DAY.fullmatch(text):
        return "day", ""
    if _EPOCH.fullmatch(text):
        unit = next((u for u in (*UNITS, "ns") if _FROM <= _micros(text, u) < _TO), "")
        return ("epoch", unit) if unit else None
    return None


def reads_as(text: str, unit: str) -> str:
    """An epoch as a dateTime."""
    return Clock(integer=False).text(_micros(text, unit))


def _micros(text: str, unit: str) -> int:
    """An epoch in microseconds; those of "ns", which only mappings read, rounded down."""
    return int(text) // 1000 if unit == "ns" else int(text) * UNITS[unit]


def likely_times(triples: Iterable[Triple]) -> list[LikelyTime]:
    """Properties whose values could all be times of one kind, those that are usual first."""
    rows = list(triples)
    values: dict[Term, list[str]] = {}
    subjects: dict[Term, list[Term]] = {}
    for subject, predicate, value in rows:
        if value[0] == '"':
            values.setdefault(predicate, []).append(literal_parts(value)[0])
            subjects.setdefault(predicate, []).append(subject)
    classes = _classes(rows)
    found = [
        one
        for predicate, texts in values.items()
        if (one := likely_time(predicate[1:-1], texts, lambda p=predicate: classes(subjects[p])))  # type: ignore[misc]  # mypy infers no default
    ]
    usual = [PROV_GENERATED_AT_TIME[1:-1], *(iri[1:-1] for iri in USUAL_PROPERTIES)]
    return sorted(found, key=lambda one: (usual.index(one.name) if one.name in usual else 99, one.name))


def likely_time(
    name: str, texts: Sequence[str], classes: Callable[[], tuple[str, ...]] = lambda: ()
) -> LikelyTime | None:
    """What a property or column is if all of its values could be times; None otherwise."""
    kinds = {kind_of(text) for text in texts}
    if len(kinds) != 1 or (kind := kinds.pop()) is None:
        return None
    examples = tuple(dict.fromkeys(texts))[:_OURS]
    reads = reads_as(examples[0], kind[1]) if kind[1] else ""
    return LikelyTime(name, kind[0], examples, len(texts), kind[1], reads, classes())


def _classes(triples: Iterable[Triple]) -> Callable[[Sequence[Term]], tuple[str, ...]]:
    kinds: dict[Term, list[Term]] = {}
    for subject, predicate, value in triples:
        if predicate == RDF_TYPE and value[0] == "<":
            kinds.setdefault(subject, []).append(value)

    def of(subjects: Sequence[Term]) -> tuple[str, ...]:
        counts: Mapping[str, int] = _counts([k[1:-1] for s in subjects for k in kinds.get(s, ())])
        return tuple(sorted(counts, key=lambda kind: (-counts[kind], kind)))

    return of


def _counts(values: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return counts

"""Survey the times of sources: range, order, gaps, and the values that could be times.

Place:   called by cli/convert.py; reads through io/reader.py as every run does, and continues after errors.
Method:  times are collected in the order of the documents, file by file. The disorder of a graph is how far
         it lies behind the greatest time before it; the least `--lateness` that loses nothing is the greatest
         disorder. In documents without a time, each property or column is searched for likely times: a
         dateTime, a local dateTime, a day, or an integer that is a present-day epoch in seconds, milli-,
         micro- or nanoseconds. Each reading is reported; none is applied.
Why not: guessing the unit of an epoch: a wrong guess is off by a factor of a thousand and nobody notices.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

from msgspec import Struct, field

from dotr.errors import DataError, Diagnostic
from dotr.events import Clock, Time, all_triples
from dotr.io.decode.documents import Format, decode, format_of, guess
from dotr.io.decode.rdf import parse_runs
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import ReadEvent, SourceOptions, TimedGraph
from dotr.io.reader import FileReader
from dotr.io.sources import resolve
from dotr.io.time import UNITS, USUAL_PROPERTIES
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, RDF_TYPE, Term, Triple, literal_parts

_ZONED = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)")
_LOCAL = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?")
_LIKELY_DAY = re.compile(r"\d{4}-\d\d-\d\d(Z|[+-]\d\d:\d\d)?")
_LIKELY_EPOCH = re.compile(r"[0-9]{9,20}")
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
    """(kind, unit of an epoch or "") of a string that could be a time; None for any other."""
    if _ZONED.fullmatch(text):
        return "dateTime", ""
    if _LOCAL.fullmatch(text):
        return "local", ""
    if _LIKELY_DAY.fullmatch(text):
        return "day", ""
    if _LIKELY_EPOCH.fullmatch(text):
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


GAPS = 3
"""So many of the longest gaps are shown."""

_LOOKED = 50
"""Refused documents, and graphs, that are looked through for values that could be a time."""


class Gap(Struct, frozen=True):
    """Nothing came between two times."""

    length: int
    after: Time
    until: Time


class Disorder(Struct, frozen=True):
    """Graphs behind the greatest time before them, and how far the furthest and the 99th of 100 is."""

    graphs: int
    most: int
    usual: int


class TimeSurvey(Struct):
    """Owns what was found. `first_errors`: the first diagnostic of each code; `within` is the order inside
    each file, `across` that of all files one after the other, in the order of their names.
    """

    files: int = 0
    clock: Clock | None = None
    time_sources: dict[str, int] = field(default_factory=dict)
    beside: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    times: array[int] = field(default_factory=lambda: array("q"))
    refused: Counter[str] = field(default_factory=Counter)
    first_errors: dict[str, DataError] = field(default_factory=dict)
    likely: list[LikelyTime] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)

    @property
    def graphs(self) -> int:
        return len(self.times)

    def range(self) -> tuple[Time, Time]:
        """The least and the greatest time; there is at least one graph."""
        return min(self.times), max(self.times)

    def instants(self) -> tuple[int, int]:
        """(distinct times, graphs at the time that has most of them)."""
        ordered = sorted(self.times)
        longest = run = distinct = 0
        last: int | None = None
        for time in ordered:
            run = run + 1 if time == last else 1
            distinct += time != last
            longest, last = max(longest, run), time
        return distinct, longest

    def steps(self) -> tuple[int, list[Gap]]:
        """(the median of the steps between neighbouring times, the longest of them that are exceptional)."""
        distinct = sorted(set(self.times))
        steps = [Gap(b - a, a, b) for a, b in pairwise(distinct)]
        if not steps:
            return 0, []
        lengths = sorted(step.length for step in steps)
        median = lengths[len(lengths) // 2]
        longest = sorted(steps, key=lambda step: (-step.length, step.after))[:GAPS]
        return median, [step for step in longest if step.length > 3 * median]

    def within(self) -> Disorder:
        """How far out of order graphs are inside their files."""
        ends = [*self._starts[1:], len(self.times)]
        parts = (self.times[a:b] for a, b in zip(self._starts, ends, strict=True))
        return _disorder([distance for part in parts for distance in _behind(part)])

    def across(self) -> Disorder:
        """How far out of order graphs are when one file is read after the other."""
        return _disorder(list(_behind(self.times)))

    def begin(self) -> None:
        """The next file begins."""
        self.files += 1
        self._starts.append(len(self.times))


def survey_times(files: Sequence[str], options: SourceOptions) -> TimeSurvey:
    """Read all files for their times. Raises DataError for a file that is not there or not known."""
    survey = TimeSurvey()
    extractor = options.extractor()
    survey.time_sources, survey.beside, survey.first = (
        extractor.time_sources,
        extractor.beside,
        extractor.first,
    )
    looked: list[Triple] = []
    count = 0
    for file in files:
        survey.begin()
        reader = FileReader(file, options, extractor, ErrorPolicy(fail=False))
        for item in reader.items():
            if isinstance(item, TimedGraph):
                survey.times.append(item.time)
            elif item.error is not None:
                _refused(survey, item)
                count += 1
                if count <= _LOOKED:
                    looked += _triples(item, file, options)
    survey.clock = extractor.clock
    survey.likely = likely_times(looked)
    return survey


def _refused(survey: TimeSurvey, mark: ReadEvent) -> None:
    assert mark.error is not None
    code = mark.error.diagnostics[0].code
    survey.refused[code] += 1
    survey.first_errors.setdefault(code, mark.error)


def _triples(mark: ReadEvent, file: str, options: SourceOptions) -> Iterator[Triple]:
    """What can be read of a refused document."""
    format_ = format_of(file) or guess(mark.content)
    if format_ in (Format.JSONLINES, Format.PATCH, Format.PARQUET) or not mark.content:
        return
    try:
        runs = parse_runs(decode(mark.content, file), format_, file, options.base, options.choices)
    except DataError:
        return
    yield from (triple for _graph, triples in runs for triple in all_triples(triples))


def _behind(times: Iterable[Time]) -> Iterator[int]:
    """Of each graph how far it lies behind the greatest time before it, in µs; 0 where it does not."""
    greatest: Time | None = None
    for time in times:
        if greatest is None or time >= greatest:
            greatest = time
            yield 0
        else:
            yield greatest - time


def _disorder(distances: Sequence[int]) -> Disorder:
    late = sorted(distance for distance in distances if distance)
    if not late:
        return Disorder(0, 0, 0)
    place = max(0, len(late) - 1 - len(distances) // 100)
    return Disorder(len(late), late[-1], late[place])


_ROWS = 1000
_FILES = 20
"""Files of which the first rows are read, at most."""


def columns_missing(places: Iterable[str], options: SourceOptions) -> list[Diagnostic]:
    """Warnings D2414 about tables of this machine; none about those that cannot be read, which is reported
    when they are.
    """
    extractor = options.extractor()
    try:
        files = [file for file in resolve(list(places), options.mappings) if _is_json(file, options)]
        for file in files[:_FILES]:
            items = FileReader(file, options, extractor, ErrorPolicy(fail=False)).items()
            for _ in islice(items, _ROWS):
                pass
            if isinstance(items, Generator):
                items.close()
    except DataError:
        return []
    note = f"by the first {_ROWS} rows of a table"
    return [one._replace(notes=(*one.notes, note)) for one in extractor.columns_missing.values()]


def _is_json(file: str, options: SourceOptions) -> bool:
    mapping = options.mapping_for(file)
    return mapping is not None and mapping.format_of(file) in ("json", "jsonl")

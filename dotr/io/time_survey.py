"""What the times of some sources are like: range, order, gaps, and what stands where a time could be.

Place:   asked by cli/convert.py; reads through files/reader.py as every run does, and keeps going on errors.
Method:  times are collected in the order in which documents stand, file by file. The disorder of a graph is
         how far it lies behind the greatest time before it: the least `--lateness` that loses nothing is the
         greatest disorder. Documents without a time are looked through for values that could be one.
Why not: guess a unit of epochs: a wrong guess is off by a factor of a thousand and nobody notices.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct, field

from dotr.core.parts import all_triples
from dotr.errors import DataError
from dotr.events import Clock, Time
from dotr.io.decode.documents import Format, decode, format_of
from dotr.io.decode.parsing import parse_runs
from dotr.io.decode.sniffing import guess
from dotr.io.error_policy import ErrorPolicy
from dotr.io.files.reader import FileReader
from dotr.io.graphs import Mark, SourceOptions, TimedGraph
from dotr.io.likely_times import LikelyTime, likely_times
from dotr.rdf.terms import Triple

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
    rungs: dict[str, int] = field(default_factory=dict)
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
    survey.rungs, survey.beside, survey.first = extractor.rungs, extractor.beside, extractor.first
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


def _refused(survey: TimeSurvey, mark: Mark) -> None:
    assert mark.error is not None
    code = mark.error.diagnostics[0].code
    survey.refused[code] += 1
    survey.first_errors.setdefault(code, mark.error)


def _triples(mark: Mark, file: str, options: SourceOptions) -> Iterator[Triple]:
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

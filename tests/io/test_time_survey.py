"""The times of sources: order inside and across files, gaps that stand out, and documents without a time."""

from __future__ import annotations

from array import array
from pathlib import Path

from dotr.io.graphs import SourceOptions
from dotr.io.time_survey import Disorder, Gap, TimeSurvey, survey_times


def of(*files: list[int]) -> TimeSurvey:
    survey = TimeSurvey()
    for times in files:
        survey.begin()
        survey.times.extend(times)
    return survey


def test_disorder_is_how_far_behind_the_greatest_time_before() -> None:
    survey = of([1, 5, 3, 5, 4], [2, 9])
    assert survey.within() == Disorder(2, 2, 2)
    assert survey.across() == Disorder(3, 3, 3)
    assert of([1, 1, 2]).within() == Disorder(0, 0, 0)


def test_the_usual_disorder_leaves_out_one_of_a_hundred() -> None:
    times = [1_000 * n for n in range(98)]
    found = of([*times, 0, 96_000]).within()
    assert found == Disorder(2, 97_000, 1_000)


def test_instants_are_distinct_times_and_the_fullest_of_them() -> None:
    assert of([3, 1, 3, 2, 3]).instants() == (3, 3)
    assert of([]).instants() == (0, 0)
    assert of([3, 1]).range() == (1, 3)


def test_gaps_are_steps_of_more_than_three_times_the_median_the_longest_first() -> None:
    times = [0, 1, 2, 3, 4, 7, 17, 117, 118, 128, 228, 229]
    median, gaps = of(times).steps()
    assert median == 1
    assert gaps == [Gap(100, 17, 117), Gap(100, 128, 228), Gap(10, 7, 17)], "of four, three"
    assert of([0, 1, 4]).steps() == (3, [])
    assert of([5, 5]).steps() == (0, [])


def test_refused_documents_are_counted_and_looked_through(tmp_path: Path) -> None:
    good = '{"time": 5, "graph": "<urn:s> <urn:p> 1 ."}\n'
    (tmp_path / "a.jsonl").write_text(f"{good}no json\n{good}")
    (tmp_path / "b.ttl").write_text('<urn:s> <urn:seen> "2026-01-01T08:00:00Z" .\n')
    survey = survey_times([str(tmp_path / "a.jsonl"), str(tmp_path / "b.ttl")], SourceOptions())
    assert survey.times == array("q", [5_000_000, 5_000_000])
    assert (survey.files, survey.graphs, survey.refused.total()) == (2, 2, 2)
    assert survey.refused["D2014"] == 1
    assert ":2" in survey.first_errors["D2014"].diagnostics[0].place
    assert [one.name for one in survey.likely] == ["urn:seen"]

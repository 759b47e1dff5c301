"""Proposed mappings: what a column is by its cells, and what becomes the time, the sensor, the measured."""

from __future__ import annotations

import pytest

from dotr.io.tables.mapping import parse_mapping
from dotr.io.tables.proposal import describe, missing_words, propose


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-2"], "integer"),
        (["1", "2.5"], "decimal"),
        (["1", "2e3"], "double"),
        (["true", "false"], "boolean"),
        (["0", "1"], "integer"),
        (["2026-01-01"], "date"),
        (["1", "x"], "text"),
        (["", None], "empty"),
        (["1", "NA", ""], "integer"),
        (["NA"], "empty"),
    ],
)
def test_a_column_is_what_all_of_its_cells_are(cells: list[str | None], kind: str) -> None:
    assert describe("c", cells, ["NA"]).kind == kind


def test_seconds_are_a_time_by_the_name_of_their_column_alone() -> None:
    assert describe("count", ["1700000000"], []).kind == "integer"
    found = describe("seen_at", ["1700000000"], [])
    assert (found.kind, found.time) == ("time", "epoch(s)")


def test_a_time_without_a_zone_says_so_until_it_has_one() -> None:
    local = describe("t", ["13/01/2026 08:00"], [])
    assert local.time == 'datetime("%d/%m/%Y %H:%M")'
    assert "no zone" in local.note
    assert describe("t", ["13/01/2026 08:00"], [], "Europe/Berlin").time.endswith(', "Europe/Berlin")')
    both = describe("t", ["03/01/2026 08:00"], [])
    assert "%m/%d/%Y" in both.note, "a day that could be a month"


def test_words_for_no_value() -> None:
    assert missing_words([["1", "nan"], ["NA", None]]) == ["NA", "nan"]


def test_measured_numbers_become_observations_made_by_the_sensor() -> None:
    columns = ["row", "when", "station", "temp (C)", "wet"]
    rows = [
        ["1", "2026-01-01T08:00:00Z", "s1", "20.5", "3"],
        ["2", "2026-01-01T08:01:00Z", "s1", "21.5", "4"],
    ]
    text = propose(columns, rows)
    assert text.count("a sosa:Observation") == 2
    assert "sosa:madeBySensor <http://example.org/station/{station}>" in text
    assert "sosa:observedProperty :temp_C ;" in text
    assert "sosa:hasSimpleResult {temp (C)}^^xsd:decimal ." in text
    assert "sosa:observedProperty :row" not in text, "numbers of rows are not measured"
    parse_mapping(text, "proposed")


def test_without_a_time_a_row_says_its_columns() -> None:
    text = propose(["id", "2x", "none"], [["a", "b", ""]])
    assert "sosa:Observation" not in text
    assert "<http://example.org/id/{id}> :c_2x {2x} ." in text
    assert "# Without a value in the sample: none" in text

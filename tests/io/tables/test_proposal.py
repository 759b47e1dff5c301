"""Proposed mappings: what a column is by its cells, and what becomes the time, the sensor, the measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dotr.errors import DataError
from dotr.io.tables.cells import CellError, DateFormat
from dotr.io.tables.compiled import compile_mapping
from dotr.io.tables.mapping import parse_mapping
from dotr.io.tables.proposal import ProposedColumn, describe, missing_words, propose, sample
from dotr.io.tables.rows import arrays_of
from dotr.io.time_reading import TimeReading


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


def test_nanoseconds_are_a_time_too() -> None:
    found = describe("timeUnixNano", ["1771691705000000123"], [])
    assert (found.kind, found.time) == ("time", "epoch(ns)")
    assert "as ns is 2026-02-21T16:35:05Z" in found.note


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
    assert text.count(":row {row}^^xsd:integer ;") == 2, "each has what the row says beside"
    parse_mapping(text, "proposed")


NUMBERS = {"bar": "4.1", "temp": "20.5"}
OTHERS = {"pump": "p1", "running": "true", "zone id": "3", "note": "x"}


@pytest.mark.parametrize("sensor", [{}, {"sensor": "s1"}])
@pytest.mark.parametrize("others", range(len(OTHERS) + 1))
@pytest.mark.parametrize("numbers", range(len(NUMBERS) + 1))
def test_no_column_of_the_table_is_missing_in_the_proposal(
    sensor: dict[str, str], others: int, numbers: int
) -> None:
    row = {**sensor, **dict(list(NUMBERS.items())[:numbers]), **dict(list(OTHERS.items())[:others])}
    columns = ["ts", *row]
    text = propose(columns, [["2026-03-02T08:00:00Z", *row.values()]])
    graphs = compile_mapping(parse_mapping(text), columns, 1_000_000, "", "t.csv")
    (part,) = graphs.parts([["2026-03-02T08:00:00Z", *row.values()]])
    assert not isinstance(part, CellError)
    for name in row:
        assert f"{{{name}}}" in text, text
    subjects = text.count(" a sosa:Observation ;")
    for name in OTHERS.keys() & row.keys():
        assert text.count(f"{{{name}}}") == max(1, subjects), "every observation has it"
    assert ":zone_id ;" not in text, "an id is not measured"


def test_several_numbers_of_a_pump_are_one_subject_with_the_pump() -> None:
    columns = ["ts", "pump", "bar", "temp", "running"]
    text = propose(columns, [["2026-03-02T08:00:00Z", "p1", "4.1", "20.5", "true"]])
    assert text.endswith(
        """
[] :pump {pump} ;
   :bar {bar}^^xsd:decimal ;
   :temp {temp}^^xsd:decimal ;
   :running {running}^^xsd:boolean .
"""
    )


def test_without_a_time_a_row_says_its_columns() -> None:
    text = propose(["id", "2x", "none"], [["a", "b", ""]])
    assert "sosa:Observation" not in text
    assert "<http://example.org/id/{id}> :c_2x {2x} ." in text
    assert "# Without a value in the sample: none" in text


def test_a_mapping_of_many_columns_takes_work_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = [0, 0]
    made = [0]
    equal, begin = ProposedColumn.__eq__, DateFormat.__init__

    def counted(self: ProposedColumn, other: object) -> bool:
        compared[-1] += 1
        return equal(self, other)

    def begun(self: DateFormat, *arguments: Any) -> None:
        made[0] += 1
        begin(self, *arguments)

    monkeypatch.setattr(ProposedColumn, "__eq__", counted)
    monkeypatch.setattr(DateFormat, "__init__", begun)
    columns = ["ts", *(f"c{n}" for n in range(2_000))]
    row = ["2026-01-01T00:00:00Z", *(str(n + 0.5) if n % 2 else "x" for n in range(2_000))]
    text = propose(columns, [row])
    assert text.count("xsd:decimal") == 1_000
    assert len(text) <= 100_000, "each column is said once"
    assert compared[-1] <= 4 * len(columns)
    assert made[0] <= 100, "formats are compiled once, not once a column"


def test_a_month_with_the_letter_of_a_time_of_day_is_still_a_day() -> None:
    assert describe("t", ["1 Oct 2026 12:00", "13 Aug 2026 9:30"], []).time == 'datetime("%d %b %Y %H:%M")'
    assert describe("t", ["20261001T120000"], []).time == 'datetime("%Y%m%dT%H%M%S")'


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        (["21,5", "22"], '{v|replace(",", ".")}^^xsd:decimal'),
        (["-0,25"], '{v|replace(",", ".")}^^xsd:decimal'),
        (["1.234,56", "7"], '{v|replace(".", "")|replace(",", ".")}^^xsd:decimal'),
        (["1,234"], "{v}"),
        (["21,5", "x"], "{v}"),
        (["2,5,1"], "{v}"),
    ],
)
def test_decimal_commas_are_found_where_they_are_no_thousands(cells: list[str], value: str) -> None:
    text = propose(["ts", "v"], [["2026-01-01T00:00:00Z", cell] for cell in cells])
    assert f" {value} ." in text or f" {value} ;" in text
    mapping = compile_mapping(parse_mapping(text), ["ts", "v"], 1_000_000, "", "t.csv")
    assert not any(
        isinstance(part, CellError) for part in mapping.parts([["2026-01-01T00:00:00Z", c] for c in cells])
    )


@pytest.mark.parametrize("mark", ["---", "--", "n/a", "n.a.", "#N/A"])
def test_marks_of_missing_values_are_found(mark: str) -> None:
    text = propose(["ts", "v"], [["2026-01-01T00:00:00Z", "1"], ["2026-01-01T00:00:01Z", mark]])
    assert f"# missing: {mark}\n" in text
    assert "{v}^^xsd:integer" in text
    assert mark in parse_mapping(text).missing


def test_arrays_that_are_left_out_are_named_with_what_to_write() -> None:
    arrays = arrays_of([{"tags": ["a"], "at": {"more": [{"of": {"v": [1]}}]}, "a.b": [1]}])
    text = propose(["ts"], [["2026-01-01T00:00:00Z"]], arrays=arrays)
    assert "# Left out, arrays: tags, at.more, a.b\n" in text
    assert "is a cell, {tags.0}\n" in text
    assert "{at.more.0.of.v.0}" in text
    assert text.count("# rows: ") == 1
    assert "# rows: $.at.more[*]\n" in text
    parse_mapping(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('[{"t": "2026-01-01T00:00:00Z", "m": [{"v": 1}]}]', "# rows: $[*].m[*]\n"),
        ('{"records": [{"t": "2026-01-01T00:00:00Z", "m": [{"v": 1}]}]}', "# rows: $.records[*].m[*]\n"),
    ],
)
def test_rows_of_arrays_in_rows_begin_with_the_way_to_these(tmp_path: Path, text: str, hint: str) -> None:
    (tmp_path / "a.json").write_text(text)
    found = sample(str(tmp_path / "a.json"), 10)
    assert hint in propose(found.columns, found.rows, found.settings, "", found.arrays, found.way)


def test_a_column_of_intervals_is_a_time_and_says_what_reading_it_takes() -> None:
    cells = [["2026-01-01T00:00:00Z/2026-01-01T00:05:00Z", "1"]]
    text = propose(["when", "v"], cells)
    assert '# time: when|datetime("iso")\n' in text
    assert "--interval begin" in text
    mapping = compile_mapping(
        parse_mapping(text), ["when", "v"], 1, "", "t.csv", TimeReading(interval="begin")
    )
    assert mapping.instants([cells[0][0]]) == [(1_767_225_600_000_000, False)]
    cells[0].append("2026-01-01T00:06:00Z")
    text = propose(["when", "v", "seen"], cells)
    assert "# time: seen\n" in text
    assert ":when {when} ;" in text


def test_keys_of_lists_of_pairs_are_properties() -> None:
    text = propose(["ts", "attributes[key=user.id].value.stringValue"], [["2026-01-01T00:00:00Z", "u1"]])
    assert ":user_id {attributes[key=user.id].value.stringValue}" in text
    parse_mapping(text)


def test_lines_that_are_envelopes_give_the_rows_in_them(tmp_path: Path) -> None:
    line = {
        "resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "1772438400000000000", "n": 1}]}]}]
    }
    path = tmp_path / "otlp.jsonl"
    path.write_text(json.dumps(line) + "\n" + json.dumps(line) + "\n")
    found = sample(str(path), 10)
    assert found.settings == {"format": "jsonl", "rows": "$.resourceLogs[*].scopeLogs[*].logRecords[*]"}
    assert found.rows == [["1772438400000000000", "1"]] * 2


def proposed(path: Path) -> str:
    found = sample(str(path), 10)
    text = propose(found.columns, found.rows, found.settings, "", found.arrays, found.way)
    parse_mapping(text)
    return text


def lines(path: Path, *values: Any) -> str:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return proposed(path)


def test_records_of_many_kinds_of_values_are_one_subject_each(tmp_path: Path) -> None:
    change = {
        "meta": {"request_id": "r1", "id": "a1", "dt": "2026-03-02T08:00:00.123Z", "offset": 7},
        "title": "Q42",
        "timestamp": 1772438400,
        "user": "ann",
        "wiki": "w",
        "length": {"old": 1, "new": 2},
    }
    text = lines(tmp_path / "a.jsonl", change)
    assert "# time: meta.dt\n" in text
    assert "sosa:Observation" not in text
    assert "<http://example.org/meta_id/{meta.id}> :meta_request_id" in text
    assert ":length_old {length.old}^^xsd:integer" in text
    assert ":user {user}" in text


def test_rows_in_arrays_have_cells_of_what_is_around_them(tmp_path: Path) -> None:
    def record(at: str) -> dict[str, Any]:
        return {"timeUnixNano": at, "severityNumber": 17, "flags": 1, "body": {"stringValue": "x"}}

    def logs(service: str, *times: str) -> dict[str, Any]:
        pair = {"key": "service.name", "value": {"stringValue": service}}
        scope = {"scope": {"name": "s"}, "logRecords": [record(at) for at in times]}
        return {"resource": {"attributes": [pair]}, "scopeLogs": [scope], "schemaUrl": "u"}

    path = tmp_path / "a.jsonl"
    line = {"resourceLogs": [logs("shop", "1772438400000000000"), logs("pay", "1772438401000000000")]}
    text = lines(path, line)
    cell = "{$.resourceLogs[*].resource.attributes[key=service.name].value.stringValue}"
    assert f":service_name {cell}" in text
    assert "{$.resourceLogs[*].scopeLogs[*].scope.name}" in text
    found = sample(str(path), 10)
    assert [row[found.columns.index(cell[1:-1])] for row in found.rows] == ["shop", "pay"]
    (tmp_path / "b.json").write_text(json.dumps(line))
    assert f":service_name {cell}" in proposed(tmp_path / "b.json")


def test_an_envelope_with_a_time_of_its_own_is_read_for_what_is_measured_in_it(tmp_path: Path) -> None:
    def room(number: int, **values: Any) -> dict[str, Any]:
        return {"id": f"urn:ngsi-ld:Room:{number}", "type": "Room", **values}

    def notification(*data: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": "urn:n:1",
            "type": "Notification",
            "notifiedAt": "2026-03-02T08:00:01Z",
            "data": [*data],
        }

    warm = {"value": 31, "observedAt": "2026-03-02T08:00:00Z"}
    text = lines(tmp_path / "a.jsonl", notification(room(1, temperature=warm)))
    assert "# time: temperature.observedAt\n" in text
    assert "# rows: $.data[*]\n" in text
    assert "<{id|iri}>" in text
    text = lines(
        tmp_path / "b.jsonl", notification(room(1, temperature=warm), room(2, humidity={"value": 5}))
    )
    assert "# time: $.notifiedAt\n" in text, "which every row has"
    text = lines(
        tmp_path / "c.jsonl", notification(room(1, temperature={**warm, "value": "urn:ngsi-ld:null"}, n=1))
    )
    assert "# missing: urn:ngsi-ld:null\n" in text
    text = lines(tmp_path / "d.jsonl", {"t": "2026-03-02T08:00:00Z", "v": 5, "seen": [{"w": 1}]})
    assert "# rows: $[" not in text
    assert "format: jsonl\n# rows" not in text, "a line that measures is a row"


def test_a_time_that_some_rows_lack_is_not_chosen_before_one_that_all_have() -> None:
    rows = [["2026-03-02T08:00:00Z", "2026-03-02T08:00:01Z", "1"], ["", "2026-03-02T08:00:02Z", "2"]]
    assert "# time: received\n" in propose(["seen", "received", "v"], rows)
    text = propose(["seen", "v"], [[row[0], row[2]] for row in rows])
    assert "# time: seen\n" in text
    assert "--on-error skip" in text


def test_names_around_the_rows_do_not_hide_those_of_the_rows() -> None:
    row = ["2026-03-02T08:00:00Z", "Room", "Notification", "1", "2", "a", "b"]
    text = propose(["t", "type", "$.type", "n", "m", "x", "y"], [row])
    assert ":type {type}" in text
    assert ":around_type {$.type}" in text


def test_a_line_that_measures_nothing_is_the_envelope_of_objects_that_do(tmp_path: Path) -> None:
    entity = {"id": "urn:e:1", "no2": {"value": 180, "observedAt": "2026-03-02T08:00:00Z"}}
    notification = {"id": "urn:n:1", "notifiedAt": "2026-03-02T08:00:01Z", "data": [entity, entity]}
    path = tmp_path / "notifications.jsonl"
    path.write_text(json.dumps(notification) + "\n")
    found = sample(str(path), 10)
    assert found.settings == {"format": "jsonl", "rows": "$.data[*]"}
    assert found.columns[:3] == ["id", "no2.value", "no2.observedAt"]
    assert len(found.rows) == 2


def test_a_line_with_numbers_of_its_own_is_the_row(tmp_path: Path) -> None:
    order = {"at": "2026-03-02T08:00:00Z", "total": 12.5, "items": [{"sku": "a", "price": 2.5}]}
    path = tmp_path / "orders.jsonl"
    path.write_text(json.dumps(order) + "\n")
    assert sample(str(path), 10).settings == {"format": "jsonl"}


def test_a_line_beside_objects_without_numbers_is_the_row(tmp_path: Path) -> None:
    login = {"at": "2026-03-02T08:00:00Z", "user": "ann", "groups": [{"name": "staff"}]}
    path = tmp_path / "logins.jsonl"
    path.write_text(json.dumps(login) + "\n")
    assert sample(str(path), 10).settings == {"format": "jsonl"}


@pytest.mark.parametrize("name", ["feed", "feed.log", "feed.json", "feed.jsonl"])
def test_objects_a_line_are_found_whatever_the_name(tmp_path: Path, name: str) -> None:
    text = lines(
        tmp_path / name, {"t": "2026-03-02T08:00:00Z", "v": 1}, {"t": "2026-03-02T08:00:01Z", "v": 2}
    )
    assert "# format: jsonl\n" in text
    assert "# time: t\n" in text


def test_server_sent_events_are_not_a_table(tmp_path: Path) -> None:
    (tmp_path / "stream.log").write_text(':ok\n\nevent: message\ndata: {"n": 1}\n\n')
    with pytest.raises(DataError, match="D2408") as raised:
        proposed(tmp_path / "stream.log")
    assert "sed -n" in raised.value.diagnostics[0].hint
    (tmp_path / "a.json").write_text('{"t": 1')
    with pytest.raises(DataError, match="D2408"):
        proposed(tmp_path / "a.json")


def test_lines_that_differ_in_kind_are_no_obstacle(tmp_path: Path) -> None:
    inside = {"data": [{"t": "2026-03-02T08:00:00Z", "v": 1}], "note": "x"}
    text = lines(tmp_path / "a.jsonl", inside, {"data": "none", "note": "y"})
    assert "# rows: $.data[*]\n" in text
    assert ":note {$.note}" in text
    ill = [{"a": 1, "b": {"c": 1}, "m": [{"n": 1}]}, {"a": {"x": 1}, "b": 2}]
    assert "# rows: $.m[*]\n" in lines(tmp_path / "b.jsonl", *ill)

"""Rows of JSON: cells by their paths, rows by `# rows:`, and columns that no row has."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.io.graphs import mapping_for
from dotr.io.tables.cells import CellError
from dotr.io.tables.mapping import ABSENT, TableMapping, parse_mapping, steps_of, walk
from dotr.io.tables.rows import JsonRows, arrays_of, columns_of, value_of

OTLP = """{"resourceLogs": [
  {"resource": {"attributes": [{"key": "host", "value": {"stringValue": "h1"}}]},
   "scopeLogs": [{"logRecords": [{"t": 1, "body": {"s": "a"}}, {"t": 2}]}, {"logRecords": []}, {}]},
  {"resource": {"attributes": []}, "scopeLogs": [{"logRecords": [{"t": 3}]}]}]}"""


def rows(text: str, columns: list[str], way: str | None = None, what: str = "line") -> list[Any]:
    steps = None if way is None else steps_of(way)[1:]
    return list(JsonRows(columns, steps, "x.map").of(value_of(text, what), what))


def test_numbers_are_as_written_and_a_dot_goes_into_an_object() -> None:
    line = '{"n": 1.50, "t": true, "f": false, "z": null, "at": {"lat": -1e2}, "a.b": "own", "a": {"b": 2}}'
    wanted = ["n", "t", "f", "z", "missing", "at.lat", "a.b", "n.b"]
    assert rows(line, wanted) == [["1.50", "true", "false", None, None, "-1e2", "own", None]]


@pytest.mark.parametrize(("line", "column"), [("[1]", "a"), ('{"a": [1]}', "a"), ('{"a": {"b": 1}}', "a")])
def test_what_is_not_one_value_is_refused(line: str, column: str) -> None:
    [error] = rows(line, [column])
    assert isinstance(error, CellError)
    assert error.code == "D2408"


@pytest.mark.parametrize(
    ("text", "column", "way", "what", "hint"),
    [
        ('{"v": [1]}', "v", None, "line", "name one of it: {v.0}"),
        ('{"v": [[1]]}', "v", None, "line", "name one of it: {v.0.0}"),
        ('{"v": [{"a": {"b": 1}}]}', "v", None, "line", "{v.0.a.b}; or make rows of it: # rows: $.v[*]"),
        ('[{"v": [{"a": 1}]}]', "v", None, "document", "{v.0.a}; or make rows of it: # rows: $[*].v[*]"),
        ('{"a.b": [1]}', "a.b", None, "line", ""),
        ('{"v": {"a": {"b.c": 1, "d": 2}}}', "v", None, "line", "name one of its values: {v.a.d}"),
        ('[{"v": 1}]', "v", None, "line", "# rows: $[*] takes the elements of the array as rows"),
        ('{"r": [{"v": 1}]}', "v", "$.r", "line", "# rows: $.r[*] takes the elements of the array as rows"),
        ('{"r": [1]}', "v", "$.r[*]", "line", "elements that are plain values cannot be rows with columns"),
        ("[1]", "v", None, "document", "elements that are plain values cannot be rows with columns"),
        ("1", "v", None, "document", "write an object, such as"),
    ],
)
def test_a_hint_about_what_is_no_cell_or_row_can_be_followed(
    text: str, column: str, way: str | None, what: str, hint: str
) -> None:
    [error] = rows(text, [column], way, what)
    assert isinstance(error, CellError)
    assert error.hint.startswith(hint) or (hint and error.hint.endswith(hint))
    assert ("# rows: " in error.hint) == ("# rows: " in hint or "plain values" in hint)


def test_what_is_no_json_is_refused() -> None:
    for text in ("{", "[" * 100_000, ""):
        with pytest.raises(CellError) as raised:
            value_of(text)
        assert raised.value.code == "D2408"


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("tags.0", "x"),
        ("tags[1]", "7"),
        ("tags.2", None),
        ("tags.-1", None),
        ("tags.x", None),
        ("pairs.1.v.w", "2"),
        ("pairs[k=b].v.w", "2"),
        ("pairs[k=user.id].v", "u"),
        ('pairs[k="user.id"].v', "u"),
        ('pairs[k="a]=\\"b"].v', "q"),
        ("pairs[k=none].v", None),
        ("pairs[n=5].v", "five"),
        ("pairs[t=true].v", "yes"),
        ("deep[0][1].a", "1"),
        ("deep.0.1.a", "1"),
        ("odd[name", "as it stands"),
        ("$.tags.0", "x"),
        ("$.pairs[k=user.id].v", "u"),
    ],
)
def test_a_cell_by_its_path(column: str, cell: str | None) -> None:
    value = {
        "tags": ["x", 7],
        "pairs": [
            {"k": "a", "v": 1},
            {"k": "b", "v": {"w": 2}},
            {"k": "user.id", "v": "u"},
            {"k": 'a]="b', "v": "q"},
            {"n": 5, "v": "five"},
            {"t": True, "v": "yes"},
        ],
        "deep": [[0, {"a": 1}]],
        "odd[name": "as it stands",
    }
    assert rows(json.dumps(value), [column]) == [[cell]]


def test_every_element_is_a_row_and_outer_values_are_reached_from_the_document() -> None:
    way = "$.resourceLogs[*].scopeLogs[*].logRecords[*]"
    host = "$.resourceLogs[*].resource.attributes[key=host].value.stringValue"
    assert rows(OTLP, ["t", "body.s", host], way) == [["1", "a", "h1"], ["2", None, "h1"], ["3", None, None]]
    assert rows('[{"a": 1}, {"a": 2}]', ["a"], "$[*]") == [["1"], ["2"]]
    assert rows('{"v": [1, 2], "t": 9}', ["$.v[*]", "$.t"], "$.v[*]") == [["1", "9"], ["2", "9"]]
    assert rows('{"v": {"a": 1}}', ["a", "$.v.a"], "$.v") == [["1", "1"]]


def test_a_document_that_is_an_array_has_its_elements_as_rows() -> None:
    assert rows('[{"a": 1}]', ["a"], what="document") == [["1"]]
    assert rows('{"a": 1}', ["a"], what="document") == [["1"]]


@pytest.mark.parametrize(
    ("text", "found"),
    [("{}", 0), ('{"v": null}', 0), ('{"v": []}', 0), ('{"v": 1}', 1), ('{"v": [1]}', 1), ("3", 0)],
)
def test_where_there_is_no_array_there_is_no_row_and_another_value_is_refused(text: str, found: int) -> None:
    refused = rows(text, ["a"], "$.v[*]")
    assert len(refused) == found
    assert all(isinstance(one, CellError) and one.code == "D2408" for one in refused)


@pytest.mark.parametrize(
    ("way", "hint"),
    [
        ("$.v[k=x]", "`$.v[*][k=x]` makes a row of each"),
        ("$.v[k=x].w[*]", "`$.v[*][k=x]` makes a row of each"),
        ("$.g[*].v[k=x]", "`$.g[*].v[*][k=x]` makes a row of each"),
    ],
)
def test_a_condition_that_chooses_several_elements_does_not_take_the_first(way: str, hint: str) -> None:
    v = '[{"k": "x", "a": 1, "w": [{"a": 1}]}, {"k": "y"}, {"k": "x", "a": 2}]'
    text = f'{{"v": {v}, "g": [{{"v": {v}}}]}}'
    [error] = rows(text, ["a"], way)
    assert isinstance(error, CellError)
    assert (error.code, error.hint) == ("D2408", hint)
    one = text.replace(', {"k": "x", "a": 2}', "")
    assert rows(one, ["a"], way) == [["1"]]


@pytest.mark.parametrize(
    ("column", "way"),
    [("a[*]", "$.a[*]"), ("$.b[*].c", "$.a[*]"), ("$.a[*].b[*]", "$.a[*]"), ("$.a[*]", None)],
)
def test_an_element_of_no_row_is_refused_with_the_mapping(column: str, way: str | None) -> None:
    with pytest.raises(DataError, match="D2401"):
        rows("{}", [column], way)


@pytest.mark.parametrize(
    "line",
    ["rows: records", "rows: x[*]", "rows:", "rows: $.a[*]\n# format: csv", "rows: $[*]\n# rows: $[*]"],
)
def test_a_way_to_rows_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(DataError, match="D2401"):
        parse_mapping(f"# time: t\n# {line}\n[] <urn:p> {{a}} .")


def missing(text: str, *columns: str) -> list[tuple[str, str]]:
    found = JsonRows(columns, None, "x.map")
    for line in text.splitlines():
        list(found.of(value_of(line)))
    return [(one.message, one.hint) for one in found.missing("x.jsonl")]


def test_a_column_that_no_row_has_is_a_warning_with_what_was_meant() -> None:
    [(message, hint)] = missing('{"value": 3, "id": "a"}\n{"value": 4}', "valeu", "id")
    assert "`valeu`" in message
    assert hint == "did you mean `value`?"
    [(_, hint)] = missing('{"attributes": [{"key": "host", "value": {"s": 1}}]}', "attributes.stringValue")
    assert "attributes[key=host].value.s" in hint


@pytest.mark.parametrize("text", ['{"a": null}', '{}\n{"a": 1}', "", '{"a": []}'])
def test_a_column_that_some_row_has_is_none_that_is_missing(text: str) -> None:
    assert missing(text, "a") == []


def test_columns_are_named_so_that_they_find_their_cells_and_other_arrays_are_left_out() -> None:
    value = {
        "t": 1,
        "tags": ["x"],
        "none": [],
        "at": {"lat": 2, "more": [3]},
        "attributes": [{"key": "user.id", "value": {"s": "u"}}, {"key": 'a]"', "value": 5}],
    }
    found = columns_of([value])
    assert found == ["t", "at.lat", "attributes[key=user.id].value.s", 'attributes[key="a]\\""].value']
    assert [walk(value, steps_of(column)) for column in found] == [1, 2, "u", 5]
    assert list(arrays_of([value])) == ["tags", "at.more"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab[]=."\\$*', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab[]=.$*0", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    VALUES, st.text('ab[]=."\\$*0 ', min_size=1, max_size=12), st.none() | st.just("$[*]") | st.just("$.a[*]")
)
def test_any_path_finds_a_cell_or_nothing_or_is_refused(value: Any, column: str, way: str | None) -> None:
    found: list[Any] = []
    with suppress(DataError):  # [*] of no row
        found = rows(json.dumps(value), [column], way)
    for row in found:
        assert isinstance(row, CellError) or (len(row) == 1 and (row[0] is None or isinstance(row[0], str)))


def test_nothing_is_at_a_path_through_what_is_no_object() -> None:
    assert walk("x", steps_of("a")) is ABSENT
    assert walk({"a": None}, steps_of("a.b")) is ABSENT


@pytest.mark.parametrize("written", ["resource.service", "$.logs.resource.service", "service"])
def test_a_cell_of_what_is_around_the_rows_is_named(written: str) -> None:
    rows = JsonRows([written], steps_of("$.logs[*].records[*]")[1:], "x.map")
    assert list(rows.of({"logs": [{"resource": {"service": "shop"}, "records": [{"n": "1"}]}]})) == [[None]]
    (warning,) = rows.missing("x.jsonl")
    assert (warning.code, warning.hint) == ("D2414", "did you mean `$.logs[*].resource.service`?")
    named = JsonRows(["$.logs[*].resource.service"], steps_of("$.logs[*].records[*]")[1:], "x.map")
    assert list(named.of({"logs": [{"resource": {"service": "shop"}, "records": [{"n": "1"}]}]})) == [
        ["shop"]
    ]
    assert list(named.missing("x.jsonl")) == []


def test_rows_are_those_elements_that_meet_a_condition() -> None:
    value = {"data": [{"type": "A", "n": "1"}, {"type": "B", "n": "2"}, {"type": "A", "n": "3"}, {"n": "4"}]}
    rows = JsonRows(["n"], steps_of("$.data[*][type=A]")[1:], "x.map")
    assert list(rows.of(value)) == [["1"], ["3"]]
    assert walk({"ok": True}, steps_of("$[ok=true]")[1:]) == {"ok": True}
    assert walk({"ok": True}, steps_of("$[ok=false]")[1:]) is ABSENT


@pytest.mark.parametrize("line", [":ok", "event: message", "id: [1]", 'data: {"n": 1}'])
def test_server_sent_events_are_recognised(line: str) -> None:
    with pytest.raises(CellError) as raised:
        value_of(line)
    assert "sed -n 's/^data: //p'" in raised.value.hint


def test_of_two_mappings_for_one_file_neither_is_chosen_silently() -> None:
    def mapping(name: str, files: str = "") -> TableMapping:
        return parse_mapping(f"# time: t\n{files}[] <urn:p> {{a}} .", name)

    rooms, doors = mapping("rooms.map"), mapping("doors.map")
    own = mapping("own.map", "# files: r*.csv\n")
    for several in ([rooms, doors], [rooms, rooms, doors]):
        with pytest.raises(DataError, match="D2415") as raised:
            mapping_for("r.csv", several)
        assert "`rooms.map` and `doors.map`" in str(raised.value)
    assert mapping_for("r.csv", [rooms, own]) is own
    assert mapping_for("d.csv", [rooms, own]) is rooms
    assert mapping_for("r.csv", [rooms, rooms]) is rooms

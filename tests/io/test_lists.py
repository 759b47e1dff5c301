"""Lists of COLLECT in the formats of events and as values of Python."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import rdflib

import dotr
from dotr.io.event_pictures import event_table
from dotr.io.event_tables import EventTableWriter
from dotr.io.events import TermFormatter, formatter
from dotr.rdf.terms import is_list, list_of, members, size_of_list
from dotr.rdf.values import term_key

RULES = """
PREFIX : <urn:>
QUERY Seen := { SELECT ?v WHERE { ?s :v ?v } }
QUERY Ask := { SELECT ?a WHERE { ?a a :Ask } }
RULE All DEFINE { dotr_e :all ?all } FROM Ask
AND COLLECT(Seen.?v) AS ?list OVER Seen WITHIN 9 s BEFORE Ask
WITH ?a := Ask.?a, ?all := ?list
"""
VALUES = ("1", '"a, \\"b\\"\\n\\u001F"', '"x"@en-gb', ":i", "2.50", "true")


def found(values: Iterable[str] = VALUES) -> tuple[dotr.Engine, dotr.Event]:
    engine = dotr.Engine.from_text(RULES)
    for time, value in enumerate(values):
        engine.push(f"@prefix : <urn:> . [] :v {value} .", at=time)
    engine.push("@prefix : <urn:> . :q a :Ask .", at=8)
    (event,) = engine.finish()
    return engine, event


def test_json_has_an_array() -> None:
    given = json.loads(found()[1].to_json())["bindings"]["all"]
    assert [one["value"] for one in given] == ["1", 'a, "b"\n\x1f', "x", "urn:i", "2.5", "true"]
    assert given[2] == {"type": "literal", "value": "x", "xml:lang": "en-gb"}
    assert json.loads(found(())[1].to_json())["bindings"]["all"] == []


def test_csv_has_a_cell_that_is_a_json_array() -> None:
    engine, event = found()
    head, write = formatter("csv", {}, engine.program.rules)
    assert engine.clock is not None
    _, row = csv.reader(io.StringIO(head + write([event.composite], engine.clock)))
    assert json.loads(row[4]) == ["1", 'a, "b"\n\x1f', "x", "urn:i", "2.5", "true"]


def test_parquet_has_a_column_of_lists(tmp_path: Path) -> None:
    engine, event = found()
    assert engine.clock is not None
    writer = EventTableWriter(str(tmp_path / "e.parquet"), engine.clock)
    writer.add([event.composite])
    writer.close()
    (row,) = pq.read_table(tmp_path / "e.parquet").to_pylist()
    assert row["bindings"] == [("a", "<urn:q>")]
    ((name, terms),) = row["lists"]
    assert name == "all"
    assert terms[2:4] == ['"x"@en-gb', "<urn:i>"]
    assert len(terms) == len(VALUES)


def test_python_has_a_list_of_terms() -> None:
    event = found()[1]
    assert event["all"][3] == rdflib.URIRef("urn:i")
    assert event.bindings["all"][0] == rdflib.Literal(1)
    assert event["a"] == rdflib.URIRef("urn:q")
    assert len(event.graph) == len(VALUES)
    assert found(())[1]["all"] == []


def test_a_frame_has_lists_of_python_values() -> None:
    pytest.importorskip("pandas")
    frame = dotr.Events.of([found(("1", "true", ":i"))[1]]).to_frame()
    assert frame["all"][0] == [1, True, "urn:i"]


def test_people_see_the_members() -> None:
    engine, event = found(("1", ":i"))
    assert "all=[1, :i]" in repr(event)
    assert engine.clock is not None
    assert "1, :i" in str(event_table([event.composite], engine.clock, TermFormatter({"": "urn:"})))


def test_a_list_is_its_members_in_order() -> None:
    terms = ['"a\\nb"', "<urn:i>", "_:b", '"x"@en', '""', '"1"^^<urn:t>']
    assert members(list_of(terms)) == terms
    assert size_of_list(list_of(terms)) == len(terms)
    assert (members(list_of([])), size_of_list(list_of([]))) == ([], 0)
    assert members('"a"') == ['"a"']
    assert is_list(list_of([]))
    assert not any(map(is_list, terms))


def test_lists_are_ordered_by_their_members_after_all_terms() -> None:
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    nine, ten = f'"9"^^<{integer}>', f'"10"^^<{integer}>'
    ordered = ['"z"^^<urn:t>', list_of([]), list_of([nine]), list_of([nine, nine]), list_of([ten])]
    shuffled = [ordered[place] for place in (3, 1, 4, 0, 2)]
    assert sorted(shuffled, key=term_key) == ordered

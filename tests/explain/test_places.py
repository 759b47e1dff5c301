"""Where a proof says that its triples stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from dotr.cli.main import run
from dotr.explain.text import Renderer, drawn
from dotr.io.errors import places_of
from dotr.io.sources import SourceOptions
from dotr.io.tables.mapping import read_mapping
from tests.explain.proving import explainer_of, history_of

RULES = """PREFIX : <urn:>
RULE R DEFINE { dotr_r a :R ; :room ?room } FROM Warm := { SELECT ?room ?v WHERE { ?o :room ?room ; :c ?v } }
WITH ?room := Warm.?room
"""
TABLE = "when,room,c\n2026-05-04T06:00:00Z,a,9\n2026-05-04T06:20:00Z,b,9\n2026-05-04T06:20:00Z,a,9\n"
MAPPING = "# time: when\nPREFIX : <urn:>\n[] :room :{room} ; :c {c}^^xsd:integer .\n"
LINES = (
    '{"time": 1, "graph": "[] <urn:room> <urn:a> ; <urn:c> 9 ."}\n'
    '{"time": 2, "graph": "[] <urn:room> <urn:b> ; <urn:c> 9 ."}\n'
    '{"time": 2, "graph": "[] <urn:room> <urn:a> ; <urn:c> 9 ."}\n'
)


@pytest.mark.parametrize(
    ("name", "content", "hold", "lines"),
    [
        ("t.csv", TABLE, "", [2, 4, 3]),
        ("t.csv", TABLE, "HOLD :other\n", [2, 4, 3]),
        ("t.jsonl", LINES, "", [1, 3, 2]),
    ],
)
def test_blank_nodes_of_graphs_at_one_instant_have_the_line_of_their_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, hold: str, lines: list[int]
) -> None:
    monkeypatch.chdir(tmp_path)  # places are relative
    rules, stream, mapping = Path("r.dotr"), Path(name), Path("t.map")
    rules.write_text(RULES.replace("RULE", f"{hold}RULE", 1), encoding="utf-8")
    stream.write_text(content, encoding="utf-8")
    mapping.write_text(MAPPING, encoding="utf-8")
    mappings = (read_mapping(str(mapping)),) if name.endswith("csv") else ()
    history = history_of(rules, [stream], SourceOptions(mappings=mappings))
    assert len(history.events) == len(lines)
    found = []
    for event in history.events:
        renderer = Renderer(history.program.prefixes, history.clock, places_of(history, []))
        text = drawn(renderer.node(explainer_of(history).event(event)))
        places = {line.rpartition("   ")[2] for line in text.splitlines() if "─ _:" in line}
        assert len(places) == 1, text
        (place,) = places
        assert place.startswith(f"{stream}:"), text
        found.append(int(place.rpartition(":")[2]))
    assert found == lines


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("log.trig", {"log.trig, graph 3"}),
        ("log.nq", {"log.nq:8", "log.nq:9"}),
        ("log.parquet", {"log.parquet, graph 3"}),
        ("log.jelly", {"log.jelly, line 7 as text"}),
    ],
)
def test_a_place_is_as_near_as_is_known_and_never_that_of_another_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, places: set[str]
) -> None:
    """The first and the last graph look alike, but for labels of blank nodes."""
    monkeypatch.chdir(tmp_path)
    Path("r.dotr").write_text(RULES, encoding="utf-8")
    Path("log.jsonl").write_text(
        "".join(LINES.splitlines(keepends=True)[:2]) + LINES.splitlines()[0].replace("1", "3", 1) + "\n",
        encoding="utf-8",
    )
    assert run(["convert", "log.jsonl", "-o", name, "-q"]) == 0
    history = history_of(Path("r.dotr"), [Path(name)], SourceOptions())
    renderer = Renderer(history.program.prefixes, history.clock, places_of(history, []))
    text = drawn(renderer.node(explainer_of(history).event(history.events[-1])))
    assert {line.rpartition("   ")[2] for line in text.splitlines() if "─ _:" in line} == places

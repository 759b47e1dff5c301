"""Where events go, tables of them, enriched graphs, and frames as sources."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dotr
from dotr.errors import DataError, RefusedError, UsageError
from dotr.events import Clock, Composite
from dotr.io.decode.parquet import write_solutions
from dotr.io.errors import ErrorPolicy
from dotr.io.event_tables import TABLE_ROWS as ROWS
from dotr.io.event_tables import EventBatches, EventTableWriter, event_schema
from dotr.io.events import ParquetSink, TextSink, format_jsonl, formatter, nquads
from dotr.io.graphs import SourceOptions
from dotr.io.outputs import FileOutput, StreamOutput
from dotr.io.sinks import StateFile, StatePart, refuse_name, state_line
from dotr.io.tables.mapping import parse_mapping
from dotr.io.tables.rows import FrameSource

RULES = """PREFIX : <urn:ex:>
RULE Hot DEFINE { dotr_x a :Hot ; :of ?m }
FROM Temp := { SELECT ?m WHERE { ?o :celsius ?c ; :of ?m } } WITH ?m := Temp.?m
"""
SECONDS, DATES = Clock(True, 1_000_000), Clock(False)
TRIPLES = [("<urn:s>", "<urn:p>", '"ü"')]


@pytest.fixture(scope="module")
def hot() -> Composite:
    engine = dotr.Engine.from_text(RULES)
    engine.push("<urn:ex:o> <urn:ex:celsius> 70 ; <urn:ex:of> <urn:ex:m> .", at=5)
    return engine.finish()[0].composite


def test_times_of_a_table_are_in_the_form_of_the_input(hot: Composite) -> None:
    assert event_schema(SECONDS).field("time").type == pa.int64()
    assert EventBatches(SECONDS).of([hot]).column("time").to_pylist() == [5]
    assert EventBatches(Clock(True, 1_000)).of([hot]).column("time").to_pylist() == [5_000]
    assert EventBatches(DATES).of([hot]).column("time").cast(pa.int64()).to_pylist() == [5_000_000]
    assert EventBatches(SECONDS).of([hot]).column("bindings").to_pylist() == [[("m", "<urn:ex:m>")]]


def test_a_table_has_all_events_and_is_there_without_any(hot: Composite, tmp_path: Path) -> None:
    for count in (0, 1, ROWS + 1):
        writer = EventTableWriter(str(tmp_path / "e.parquet"), SECONDS)
        writer.add([hot] * count)
        writer.close()
        table = pq.read_table(tmp_path / "e.parquet")
        assert table.num_rows == count
        assert table.schema == event_schema(SECONDS)


def test_solutions_are_columns_with_nulls_for_what_is_unbound(tmp_path: Path) -> None:
    write_solutions(str(tmp_path / "s.parquet"), ["a", "b"], [["<urn:x>", None], [None, '"1"']])
    assert pq.read_table(tmp_path / "s.parquet").to_pylist() == [
        {"a": "<urn:x>", "b": None},
        {"a": None, "b": '"1"'},
    ]
    write_solutions(str(tmp_path / "s.parquet"), ["a"], [])
    assert pq.read_table(tmp_path / "s.parquet").column_names == ["a"]


def test_a_parquet_file_has_its_name_when_it_is_finished(hot: Composite, tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    sink = ParquetSink(FileOutput(str(path), False), EventTableWriter)
    sink.write([hot], SECONDS)
    sink.flush()
    assert not path.exists()
    sink.finish()
    assert pq.read_table(path).num_rows == 1
    left = ParquetSink(FileOutput(str(tmp_path / "f.parquet"), False), EventTableWriter)
    left.write([hot], SECONDS)
    left.abandon()
    assert not (tmp_path / "f.parquet").exists()
    assert pq.read_table(left.output.part).num_rows == 1, "what was emitted can be read"
    empty = ParquetSink(FileOutput(str(tmp_path / "g.parquet"), False), EventTableWriter)
    empty.finish()
    assert pq.read_table(tmp_path / "g.parquet").num_rows == 0


def test_text_is_visible_when_it_is_flushed(hot: Composite) -> None:
    stream = io.BytesIO()
    _, write = formatter("nquads", {}, [])
    sink = TextSink(write, StreamOutput(stream))
    sink.write([hot, hot], SECONDS)
    assert stream.getvalue() == b""
    sink.flush()
    assert stream.getvalue().decode() == nquads((hot, hot), SECONDS)


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_control_characters_as_escapes_that_are_read_back() -> None:
    words = "a\x00\x1b[31m\x7f\x80\x9b2J\x9f\rb\u202e\u2066\u00a0\u00fc\ud7a3 \U0001f525"
    line = json.dumps({"words": words}, ensure_ascii=False) + "\tend\r\n"
    for stream in (Terminal(), io.BytesIO()):
        out = StreamOutput(stream)
        out.write(line)
        out.write_bytes(b"\xc2")
        out.write_bytes(b"\x9bK\n")
        out.finish()
        first, second = stream.getvalue().decode().splitlines()
        shown, *_ = first.split("\t")
        assert json.loads(shown) == {"words": words}
        if stream.isatty():
            assert all(one.isprintable() or one == "\xa0" for one in shown)
            assert second == "\\u009bK"
        else:
            assert stream.getvalue() == line.encode() + b"\xc2\x9bK\n"


def test_a_written_line_is_that_of_a_template_put_together_by_hand(hot: Composite) -> None:
    line = json.loads(format_jsonl(hot, SECONDS))
    assert list(line) == ["rule", "time", "id", "bindings", "match", "graph"]
    assert (line["time"], line["match"]["Temp"]["time"]) == (5, 5)
    assert line["graph"] == "".join(sorted(f"{s} {p} {o} .\n" for s, p, o in hot.graph))


def test_a_line_of_an_enriched_graph_is_one_of_a_stream() -> None:
    assert json.loads(state_line(5_000_000, TRIPLES, SECONDS)) == {
        "time": 5,
        "graph": '<urn:s> <urn:p> "ü" .\n',
    }
    assert "ü" in state_line(0, TRIPLES, DATES)
    assert json.loads(state_line(0, [], DATES)) == {"time": "1970-01-01T00:00:00Z", "graph": ""}
    with pytest.raises(UsageError) as raised:
        refuse_name("a.ttl", "dotr run")
    assert raised.value.diagnostics[0].code == "D4151"
    refuse_name("a.jsonl", "dotr run")


def test_a_file_of_enriched_graphs_is_not_written_over(tmp_path: Path) -> None:
    path = str(tmp_path / "k.jsonl")
    file = StateFile(path, False, lambda: SECONDS)
    file.write(1_000_000, TRIPLES)
    file.finish()
    assert Path(path).read_text(encoding="utf-8") == state_line(1_000_000, TRIPLES, SECONDS)
    with pytest.raises(RefusedError) as raised:
        StateFile(path, False, lambda: SECONDS)
    assert raised.value.diagnostics[0].code == "D5001"


def test_a_part_without_lines_makes_no_file(tmp_path: Path) -> None:
    assert StatePart(str(tmp_path), SECONDS).close() == ""
    assert list(tmp_path.iterdir()) == []
    part = StatePart(str(tmp_path), SECONDS)
    for time in range(1_001):
        part.write(time * 1_000_000, [])
    name = part.close()
    lines = (tmp_path / name).read_text().splitlines()
    assert [json.loads(line)["time"] for line in lines] == list(range(1_001))


MAPPING = """# time: {t|epoch(s)}
PREFIX : <urn:x:>
[] :v {v}^^<http://www.w3.org/2001/XMLSchema#integer> .
"""


def test_frames_of_every_kind_are_read_one_after_the_other() -> None:
    mapping = parse_mapping(MAPPING, "m.map")
    table = pa.table({"t": [1, 2], "v": ["1", "x"]})
    frames = [table, table.to_batches()[0], table.to_pandas(), table.to_reader()]
    source = FrameSource(frames, mapping, SourceOptions(), ErrorPolicy(fail=False))
    found = list(source)
    assert [graph.file for graph in found] == [f"<frame {n}>" for n in (1, 2, 3, 4)]
    assert source.refusals.count == 4, "a row each is refused"
    assert source.clock == DATES
    with pytest.raises(UsageError) as raised:
        list(FrameSource([[1]], mapping, SourceOptions()))
    assert raised.value.diagnostics[0].code == "D4153"
    with pytest.raises(DataError, match="<frame>"):
        list(FrameSource([pd.DataFrame({"t": [1], "v": ["x"]})], mapping, SourceOptions()))

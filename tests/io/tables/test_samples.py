"""Samples of tables: what settings reading them takes, and what of a text is looked at."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dotr.errors import DataError
from dotr.io.tables.proposal import TableSample, sample
from dotr.io.tables.rows import open_columns


def of(folder: Path, name: str, content: bytes, most: int = 10) -> TableSample:
    (folder / name).write_bytes(content)
    return sample(str(folder / name), most)


def test_the_delimiter_that_the_header_has_most_often_is_named_unless_it_is_usual(tmp_path: Path) -> None:
    assert of(tmp_path, "a.csv", b"a;b,x;c\n1;2;3\n") == TableSample(
        ["a", "b,x", "c"], [["1", "2", "3"]], {"delimiter": ";"}
    )
    assert of(tmp_path, "b.csv", b"a,b;c\n1,2\n").settings == {}, "a tie is for the usual one"
    assert of(tmp_path, "e.tsv", b"a,b\tc\n1\t2\n").columns == ["a,b", "c"]
    assert of(tmp_path, "c.csv", b"a\tb\n1\t2\n").settings == {"delimiter": "tab"}
    assert of(tmp_path, "d.tsv", b"a\tb\n1\t2\n").settings == {}


def test_what_is_not_utf_8_is_read_as_latin_1_and_ragged_rows_are_passed_over(tmp_path: Path) -> None:
    found = of(tmp_path, "a.csv", b"\xfcber,b\n1,2\n3\n4,5\n")
    assert found == TableSample(["über", "b"], [["1", "2"], ["4", "5"]], {"encoding": "latin-1"})
    assert of(tmp_path, "b.csv", b"a\n1\n2\n3\n", most=2).rows == [["1"], ["2"]]


def test_json_lines_have_the_columns_of_all_objects(tmp_path: Path) -> None:
    found = of(tmp_path, "a.jsonl", b'{"a": 1}\nnot json\n{"b": "x"}\n')
    assert found == TableSample(["a", "b"], [["1", None], [None, "x"]], {"format": "jsonl"})


@pytest.mark.parametrize(("name", "content"), [("a.csv", b"a,b\n"), ("a.csv", b""), ("a.jsonl", b"[1]\n")])
def test_a_table_without_rows_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(DataError) as raised:
        of(tmp_path, name, content)
    assert raised.value.diagnostics[0].code == "D2403"


@pytest.mark.parametrize("form", ["parquet", "file", "stream"])
def test_columns_are_read_from_parquet_and_both_forms_of_arrow(tmp_path: Path, form: str) -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})
    path = tmp_path / ("t.parquet" if form == "parquet" else "t.arrow")
    if form == "parquet":
        pq.write_table(table, path)
    else:
        opened = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as out, opened(out, table.schema) as writer:
            writer.write_table(table)
    assert sample(str(path), 2) == TableSample(["a", "b"], [["1", "x"], ["2", None]], {})
    schema, batches, _ = open_columns("t", path.read_bytes(), path.suffix[1:])
    assert schema.names == ["a", "b"]
    assert sum(batch.num_rows for batch in batches) == 3


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_file_that_is_no_table_is_refused(form: str) -> None:
    with pytest.raises(DataError) as raised:
        open_columns("name", b"no table at all", form)
    assert raised.value.diagnostics[0].code == "D2017"

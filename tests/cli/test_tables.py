"""Tables are streams: through every verb, from every format, to the row in error."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Dotr

HOT = """PREFIX : <http://example.org/>
RULE Hot DEFINE { dotr_e a :Hot ; :in ?s ; :celsius ?c }
FROM Reading := { SELECT ?s ?c WHERE { ?s :celsius ?c FILTER(?c > 30) } }
WITH ?s := Reading.?s, ?c := Reading.?c
"""
MAPPING = """# time: seen|datetime("%d/%m/%Y %H:%M", "Europe/Berlin")
PREFIX : <http://example.org/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
:{room} :celsius {temp}^^xsd:decimal .
"""
CSV = """seen,room,temp
01/07/2026 12:00,r1,21.5
01/07/2026 12:05,r2,35
01/07/2026 12:10,r1,41
"""
TIMES = ["2026-07-01T10:05:00Z", "2026-07-01T10:10:00Z"]


@pytest.fixture(autouse=True)
def _files(folder: Path) -> None:
    Path("hot.dotr").write_text(HOT)
    Path("r.map").write_text(MAPPING)
    Path("r.csv").write_text(CSV)


def times(out: str) -> list[object]:
    return [json.loads(line)["time"] for line in out.splitlines()]


def table() -> pa.Table:
    rows = [line.split(",") for line in CSV.splitlines()[1:]]
    return pa.table(
        {"seen": [r[0] for r in rows], "room": [r[1] for r in rows], "temp": [float(r[2]) for r in rows]}
    )


def write(name: str) -> None:
    rows = [
        dict(zip(("seen", "room", "temp"), line.split(","), strict=True)) for line in CSV.splitlines()[1:]
    ]
    if name.endswith(".parquet"):
        pq.write_table(table(), name)
    elif name.endswith((".arrow", ".feather")):
        with pa.OSFile(name, "wb") as file, pa.ipc.new_file(file, table().schema) as writer:
            writer.write_table(table())
    elif name.endswith(".jsonl"):
        Path(name).write_text("".join(json.dumps(row | {"temp": float(row["temp"])}) + "\n" for row in rows))
    elif name.endswith(".tsv"):
        Path(name).write_text(CSV.replace(",", "\t"))
    elif name.endswith(".gz"):
        Path(name).write_bytes(gzip.compress(CSV.encode()))


@pytest.mark.parametrize(
    "name", ["r.csv", "r.tsv", "x.jsonl", "r.parquet", "r.arrow", "r.feather", "r.csv.gz"]
)
def test_every_format_gives_the_same_events(dotr: Dotr, name: str) -> None:
    write(name)
    ran = dotr("run", "hot.dotr", name, "--map", "r.map")
    assert (ran.code, times(ran.out)) == (0, TIMES)
    assert "time from the mapping's time" in ran.err


def test_every_verb_reads_tables(dotr: Dotr) -> None:
    ran = dotr("run", "hot.dotr", "r.csv", "--map", "r.map")
    assert dotr("convert", "r.csv", "--map", "r.map", "-o", "c.jsonl").code == 0
    assert dotr("run", "hot.dotr", "c.jsonl").out == ran.out
    local = dotr("batch", "hot.dotr", "r.csv", "--map", "r.map", "--out", "out", "--engine", "local")
    assert local.code == 0
    parts = sorted(Path("out").glob("part-*"))
    assert "".join(part.read_text() for part in parts) == ran.out
    assert dotr("deploy", "hot.dotr").code == 0
    assert dotr("feed", "r.csv", "--map", "r.map").out == ran.out
    assert dotr("times", "r.csv", "--map", "r.map").code == 0


def test_batch_reads_a_parquet_table_through_its_mapping(dotr: Dotr) -> None:
    write("r.parquet")
    ran = dotr("batch", "hot.dotr", "r.parquet", "--map", "r.map", "--out", "out", "--engine", "local")
    assert ran.code == 0
    assert times("".join(part.read_text() for part in sorted(Path("out").glob("part-*")))) == TIMES


def test_a_file_that_grows_is_read_on_where_it_stopped(dotr: Dotr) -> None:
    assert dotr("deploy", "hot.dotr").code == 0
    lines = CSV.splitlines(keepends=True)
    Path("r.csv").write_text("".join(lines[:2]))
    assert dotr("feed", "r.csv", "--map", "r.map").out == ""
    Path("r.csv").write_text("".join(lines[:3]))
    assert times(dotr("feed", "r.csv", "--map", "r.map").out) == TIMES[:1]
    assert dotr("feed", "r.csv", "--map", "r.map").out == ""
    Path("r.csv").write_text("".join(lines) + '01/07/2026 12:15,"r\n9",50\n')
    ran = dotr("feed", "r.csv", "--map", "r.map")
    assert times(ran.out) == [TIMES[1], "2026-07-01T10:15:00Z"]
    assert "r%0A9" in ran.out


def test_a_row_in_error_is_a_dead_letter_and_the_others_are_read(dotr: Dotr) -> None:
    good = CSV.splitlines(keepends=True)
    Path("r.csv").write_bytes(
        "".join(good[:2]).encode()
        + b"01/07/2026 12:01,r1,warm\n"
        + b"25/10/2026 02:30,r1,20\n"
        + b"29/03/2026 02:30,r1,20\n"
        + b",r1,20\n"
        + b"01/07/2026 12:01,r1\n"
        + b'01/07/2026 12:01,"r1"x,20\n'
        + b'01/07/2026 12:01,"r1,20\n'
        + b"01/07/2026 12:01,r\xe91,20\n"
        + b"01/07/2026 12:01,r\x001,20\n"
        + b"\n"
        + "".join(good[2:]).encode()
    )
    ran = dotr("run", "hot.dotr", "r.csv", "--map", "r.map", "--on-error", "file=dead.jsonl")
    assert (ran.code, times(ran.out)) == (0, TIMES)
    letters = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    assert [(letter["code"], letter["place"]) for letter in letters] == [
        ("D2404", "r.csv:3, column `temp`"),
        ("D2108", "r.csv:4, column `seen`"),
        ("D2109", "r.csv:5, column `seen`"),
        ("D2406", "r.csv:6, column `seen`"),
        ("D2403", "r.csv:7"),
        ("D2405", "r.csv:8"),
        ("D2405", "r.csv:9"),
        ("D2405", "r.csv:10"),
        ("D2405", "r.csv:11"),
    ]
    assert letters[0]["document"] == "01/07/2026 12:01,r1,warm\n"
    ran = dotr("run", "hot.dotr", "r.csv", "--map", "r.map")
    assert ran.code == 3
    assert "error[D2404]: `warm` is not an xsd:decimal\n--> r.csv:3, column `temp`" in ran.err


def test_a_wrong_mapping_is_an_error_whatever_the_policy(dotr: Dotr) -> None:
    Path("r.map").write_text(MAPPING.replace('"Europe/Berlin"', '"Berlin"'))
    ran = dotr("run", "hot.dotr", "r.csv", "--map", "r.map", "--on-error", "skip")
    assert ran.code == 3
    assert "D2401" in ran.err
    ran = dotr("run", "hot.dotr", "r.csv", "--map", "none.map")
    assert ran.code == 3
    assert "D2003" in ran.err


def test_a_wrong_file_is_reported(dotr: Dotr) -> None:
    for content, code in (
        (b"\xff\xfea\x00,\x00b\x00\n\x00", "D2002"),
        (b"when;room;temp\n", "D2402"),
        (b"seen,room,temp,temp\n", "D2402"),
    ):
        Path("r.csv").write_bytes(content)
        ran = dotr("run", "hot.dotr", "r.csv", "--map", "r.map")
        assert ran.code == 3
        assert code in ran.err
    Path("r.parquet").write_bytes(b"not at all")
    ran = dotr("run", "hot.dotr", "r.parquet", "--map", "r.map")
    assert ran.code == 3
    assert "D2017" in ran.err


def test_a_table_without_a_mapping_asks_for_one(dotr: Dotr) -> None:
    ran = dotr("run", "hot.dotr", "r.csv")
    assert ran.code == 3
    assert "D2407" in ran.err
    assert "dotr map new r.csv" in ran.err


def test_several_mappings_each_for_its_files(dotr: Dotr) -> None:
    Path("folder").mkdir()
    Path("folder/a.csv").write_text(CSV)
    Path("folder/notes.txt").write_text("nothing")
    Path("folder/b.data").write_text("01/07/2026 12:07;r7;50\n")
    Path("a.map").write_text("# files: a*.csv\n" + MAPPING)
    Path("b.map").write_text("# files: *.data\n# delimiter: ;\n# columns: seen, room, temp\n" + MAPPING)
    ran = dotr("run", "hot.dotr", "folder", "--map", "a.map", "--map", "b.map")
    assert times(ran.out) == [TIMES[0], "2026-07-01T10:07:00Z", TIMES[1]]


@pytest.mark.parametrize(
    ("cell", "column"),
    [
        ("2026-03-02 06:00:00.123456789", 'seen|datetime("iso", "Europe/Berlin")'),
        ("02/03/2026 06:00", 'seen|datetime("%d/%m/%Y %H:%M", "Europe/Berlin")'),
        ("1772431200123456789", "seen|epoch(ns)"),
    ],
)
def test_a_time_that_needs_a_filter_names_one_that_reads_it(dotr: Dotr, cell: str, column: str) -> None:
    Path("r.csv").write_text(f"seen,room,temp\n{cell},r1,50\n")
    body = "\n".join(MAPPING.splitlines()[1:])
    Path("r.map").write_text(f"# time: seen\n{body}\n")
    ran = dotr("map", "check", "r.map", "r.csv")
    assert "error[D2105]" in ran.err
    assert column in ran.err or column.removeprefix("seen|") in ran.err
    Path("r.map").write_text(f"# time: {column}\n{body}\n")
    assert dotr("map", "check", "r.map", "r.csv").code == 0


def test_a_row_without_a_time_may_be_left_out(dotr: Dotr) -> None:
    Path("r.csv").write_text("seen,room,temp\n,r1,50\n01/07/2026 12:05,r2,35\n")
    ran = dotr("run", "hot.dotr", "r.csv", "--map", "r.map")
    assert "error[D2406]" in ran.err
    assert "--on-error skip" in ran.err
    assert len(times(dotr("run", "hot.dotr", "r.csv", "--map", "r.map", "--on-error", "skip").out)) == 1


@pytest.mark.parametrize("name", ["feed.log", "feed", "feed.json", "feed.log.gz"])
def test_a_declared_format_is_enough_for_a_file_of_any_name(dotr: Dotr, name: str) -> None:
    lines = b'{"t": 5, "room": "r1", "temp": 50}\n{"t": 6, "room": "r2", "temp": 51}\n'
    Path(name).write_bytes(gzip.compress(lines) if name.endswith(".gz") else lines)
    body = "\n".join(MAPPING.splitlines()[1:])
    Path("lines.map").write_text(f"# time: t\n# format: jsonl\n{body}\n")
    assert times(dotr("run", "hot.dotr", name, "--map", "lines.map").out) == [5, 6]
    assert dotr("map", "check", "lines.map", name).code == 0
    Path("bare.map").write_text(f"# time: t\n{body}\n")
    ran = dotr("run", "hot.dotr", name, "--map", "bare.map")
    assert ran.code != 0
    if "json" not in name:
        assert "error[D2008]" in ran.err
        assert "`# format: csv`" in ran.err


def test_files_of_any_name_in_a_folder_are_none_of_a_declared_format(dotr: Dotr) -> None:
    Path("folder").mkdir()
    Path("folder/notes.txt").write_text("no rows")
    Path("folder/r.csv").write_text(CSV)
    Path("c.map").write_text("# format: csv\n" + MAPPING)
    assert times(dotr("run", "hot.dotr", "folder", "--map", "c.map").out) == TIMES


def test_a_mapping_without_a_time_takes_that_of_its_graphs(dotr: Dotr) -> None:
    lines = MAPPING.splitlines()[1:-1]
    text = ":{room} :celsius {temp}^^xsd:decimal ; <http://www.w3.org/ns/sosa/resultTime> {seen|epoch(s)} ."
    Path("r.map").write_text("\n".join([*lines, text]))
    Path("r.csv").write_text("seen,room,temp\n100,r1,50\n")
    ran = dotr("run", "hot.dotr", "r.csv", "--map", "r.map")
    assert times(ran.out) == ["1970-01-01T00:01:40Z"]
    assert "sosa:resultTime" in ran.err


def test_nested_objects_are_named_with_a_dot(dotr: Dotr) -> None:
    rows = [{"t": 5, "at": {"room": "r1"}, "temp": 50}, {"t": 6, "at": [], "temp": 50}, []]
    Path("x.jsonl").write_text("\n".join(map(json.dumps, rows)).replace(": 50", ": 50.50"))
    Path("x.map").write_text("\n".join(["# time: t", *MAPPING.replace("room", "at.room").splitlines()[1:]]))
    ran = dotr("run", "hot.dotr", "x.jsonl", "--map", "x.map", "--on-error", "file=dead.jsonl")
    assert times(ran.out) == [5]
    assert '"50.5"' in ran.out
    assert [json.loads(line)["code"] for line in Path("dead.jsonl").read_text().splitlines()] == ["D2408"]


def test_types_of_parquet_columns(dotr: Dotr) -> None:
    columns = {
        "at": pa.array([datetime(2026, 1, 1, 8, tzinfo=UTC)], pa.timestamp("ms", tz="Europe/Berlin")),
        "local": pa.array([datetime(2026, 1, 1, 8, 0, 0, 5)], pa.timestamp("us")),
        "day": pa.array([date(2026, 1, 1)]),
        "n": pa.array([7], pa.int16()),
        "f": pa.array([0.1]),
        "d": pa.array([Decimal("1.50")]),
        "b": pa.array([True]),
        "c": pa.array(["x"]).dictionary_encode(),
        "s": pa.array([{"in": {"deep": 3}}]),
        "gone": pa.array([None], pa.string()),
    }
    pq.write_table(pa.table(columns), "t.parquet")
    names = ["at", "local", "day", "n", "f", "d", "b", "c", "s.in.deep", "gone"]
    Path("t.map").write_text(
        "# time: at\n" + "\n".join(f"<urn:s> <urn:{name}> {{{name}}} ." for name in names)
    )
    dotr("convert", "t.parquet", "--map", "t.map", "-o", "c.jsonl")
    line = json.loads(Path("c.jsonl").read_text())
    assert line["time"] == "2026-01-01T08:00:00Z"
    assert [part.split('"')[1] for part in line["graph"].splitlines()] == [
        "2026-01-01T08:00:00Z",
        "2026-01-01T08:00:00.000005",
        "2026-01-01",
        "7",
        "0.1",
        "1.50",
        "true",
        "x",
        "3",
    ]


def test_a_mapping_is_proposed_that_works_once_its_zone_is_said(dotr: Dotr) -> None:
    proposed = dotr("map", "new", "r.csv").out
    assert '# time: seen|datetime("%d/%m/%Y %H:%M")' in proposed
    assert "%m/%d/%Y" not in proposed or "would read it, too" in proposed
    Path("n.map").write_text(proposed)
    ran = dotr("map", "check", "n.map", "r.csv")
    assert ran.code == 3
    assert "have no zone" in ran.err
    Path("n.map").write_text(dotr("map", "new", "r.csv", "--time-zone", "Europe/Berlin").out)
    ran = dotr("map", "check", "n.map", "r.csv", "--rows", "1")
    assert ran.code == 0
    assert "# r.csv:2 @ 2026-" in ran.out
    assert "sosa:hasSimpleResult 21.5" in ran.out
    assert "3 rows as graphs of 12 triples" in ran.err


@pytest.mark.parametrize("name", ["x.jsonl", "r.parquet", "r.tsv"])
def test_a_mapping_is_proposed_for_every_format(dotr: Dotr, name: str) -> None:
    write(name)
    Path("n.map").write_text(dotr("map", "new", name, "--time-zone", "Europe/Berlin").out)
    ran = dotr("run", "hot.dotr", name, "--map", "n.map")
    assert ran.code == 0
    assert "3 graphs" in ran.err


def test_a_check_counts_what_is_refused(dotr: Dotr) -> None:
    Path("r.csv").write_text(CSV + "01/07/2026 12:10,r1,hot\n" * 5)
    ran = dotr("map", "check", "r.map", "r.csv", "--rows", "0")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.count("error[D2404]") == 3
    assert "3 rows as graphs of 3 triples, 5 refused for D2404" in ran.err
    Path("r.map").write_text("# files: other*\n" + MAPPING)
    assert dotr("map", "check", "r.map", "r.csv").code == 2


def test_a_check_without_a_time_asks_for_one_in_the_mapping(dotr: Dotr, folder: Path) -> None:
    (folder / "r.map").write_text('<urn:{id}> <urn:v> "{v}" .\n')
    (folder / "r.csv").write_text("at,id,v\n1,a,2\n")
    ran = dotr("map", "check", "r.map", "r.csv")
    assert "error[D2101]" in ran.err
    assert "hint: write `# time: COLUMN` in the mapping" in ran.err
    assert "--time-path" not in ran.err


def test_a_refused_row_is_bad_input_for_map_check(dotr: Dotr, folder: Path) -> None:
    (folder / "r.map").write_text('# files: *.csv\n# time: {at}\n<urn:{id}> <urn:v> "{v}" .\n')
    (folder / "r.csv").write_text("at,id,v\n1,a,2\nx,b,3\n")
    assert dotr("map", "check", "r.map", "r.csv").code == 3
    (folder / "r.csv").write_text("at,id,v\n1,a,2\n")
    assert dotr("map", "check", "r.map", "r.csv").code == 0
    (folder / "r.csv").write_text("at,id,v\n")
    assert dotr("map", "check", "r.map", "r.csv").code == 1


def test_no_page_names_an_option_that_no_verb_has(dotr: Dotr) -> None:
    assert "--input-format" not in dotr("help", "sources").out
    assert "insert" in (said := dotr("help", "jsonl").out)
    assert "delete" in said


TYPO = "# time: t\n[] <http://example.org/celsius> {temp}; <urn:id> {room} .\n"


def test_a_column_that_no_row_has_is_named_by_every_verb(dotr: Dotr) -> None:
    Path("t.map").write_text(TYPO)
    Path("t.jsonl").write_text('{"t": 1, "tmep": 31, "room": "a"}\n{"t": 2, "tmep": 32}\n')
    sources = ["t.jsonl", "--map", "t.map"]
    assert dotr("deploy", "hot.dotr").code == 0
    for command in (
        ["map", "check", "t.map", "t.jsonl"],
        ["map", "check", "t.map", "t.jsonl", "--of", "1"],
        ["run", "hot.dotr", *sources],
        ["feed", *sources],
        ["convert", *sources, "-o", "out.nq"],
        ["batch", "hot.dotr", *sources, "--out", "out", "--engine", "local"],
    ):
        ran = dotr(*command)
        assert ran.code == 0, ran.err
        assert "warning[D2414]" in ran.err, command
        assert "did you mean `tmep`?" in ran.err
        assert ran.err.count("D2414") == 1


@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
def test_rows_that_are_nowhere_are_named(dotr: Dotr, name: str) -> None:
    Path("t.map").write_text("# time: t\n# rows: $.data.recrods[*]\n<urn:o> <urn:v> {v} .\n")
    Path(name).write_text('{"data": {"records": [{"t": 1, "v": 31}], "tags": ["a"]}}\n')
    ran = dotr("run", "hot.dotr", name, "--map", "t.map")
    assert (ran.code, ran.err.count("warning[D2414]")) == (0, 1)
    assert "did you mean `$.data.records[*]`?" in ran.err
    Path(name).write_text('{"data": {"recrods": []}}\n')
    assert "D2414" not in dotr("run", "hot.dotr", name, "--map", "t.map").err


def test_the_hint_about_an_array_says_where_its_rows_are(dotr: Dotr) -> None:
    Path("t.json").write_text('{"records": [{"t": 1, "v": [5, 6]}, {"t": 2, "v": [7]}]}')
    Path("t.map").write_text("# time: t\n# rows: $.records[*]\n<urn:o> <urn:v> {v} .\n")
    ran = dotr("convert", "t.json", "--map", "t.map", "-o", "o.jsonl")
    assert (ran.code, "{v.0}" in ran.err, "# rows" in ran.err) == (3, True, False)
    template = "<urn:o> <urn:v> {$.records[*].v[*]} ."
    Path("t.map").write_text(f"# time: $.records[*].t\n# rows: $.records[*].v[*]\n{template}\n")
    assert dotr("convert", "t.json", "--map", "t.map", "-o", "o.jsonl").code == 0
    assert len(Path("o.jsonl").read_text().splitlines()) == 3
    Path("a.json").write_text('[{"t": 1, "v": [{"w": 5}]}]')
    Path("t.map").write_text("# time: t\n<urn:o> <urn:v> {v} .\n")
    assert "# rows: $[*].v[*]" in dotr("convert", "a.json", "--map", "t.map", "-o", "x.jsonl").err
    assert "dotr map new a.json" in dotr("run", "hot.dotr", "a.json").err


def test_a_document_of_json_is_a_table_and_a_batch_reads_it(dotr: Dotr) -> None:
    rows = [{"seen": f"0{day}/07/2026 12:00", "room": f"r{day}", "temp": 20 + 5 * day} for day in range(1, 6)]
    Path("r.json").write_text(json.dumps(rows, indent=1))
    Path("d.json").write_text(json.dumps({"page": 1, "data": {"records": rows}}))
    Path("l.jsonl").write_text(json.dumps({"data": rows[:2]}) + "\n" + json.dumps({"data": rows[2:]}) + "\n")
    expected = [f"2026-07-0{day}T10:00:00Z" for day in (3, 4, 5)]
    for name, way in (
        ("r.json", ""),
        ("r.json", "$[*]"),
        ("d.json", "$.data.records[*]"),
        ("l.jsonl", "$.data[*]"),
    ):
        Path("j.map").write_text(MAPPING.replace("# time", f"# rows: {way}\n# time" if way else "# time"))
        assert times(dotr("run", "hot.dotr", name, "--map", "j.map").out) == expected
        ran = dotr(
            "batch", "hot.dotr", name, "--map", "j.map", "--out", "out", "--engine", "local", "--overwrite"
        )
        assert ran.code == 0, ran.err
        found = "".join(part.read_text() for part in sorted(Path("out").glob("part-*")))
        assert times(found) == expected
    proposed = dotr("map", "new", "d.json").out
    assert "# rows: $.data.records[*]" in proposed


def test_rows_of_a_growing_file_of_lines_are_fed_once(dotr: Dotr) -> None:
    Path("j.map").write_text(MAPPING.replace("# time", "# rows: $.rows[*]\n# time"))
    lines = [
        json.dumps({"rows": [{"seen": f"0{n}/07/2026 {h}:00", "room": "r", "temp": 40} for h in (10, 11)]})
        + "\n"
        for n in (1, 2)
    ]
    assert dotr("deploy", "hot.dotr").code == 0
    Path("g.jsonl").write_text(lines[0])
    assert len(times(dotr("feed", "g.jsonl", "--map", "j.map").out)) == 2
    assert times(dotr("feed", "g.jsonl", "--map", "j.map").out) == []
    Path("g.jsonl").write_text("".join(lines))
    assert times(dotr("feed", "g.jsonl", "--map", "j.map").out) == [
        "2026-07-02T08:00:00Z",
        "2026-07-02T09:00:00Z",
    ]


def test_a_document_larger_than_one_may_be_is_refused_by_its_size(dotr: Dotr) -> None:
    Path("r.json").write_text(json.dumps([{"seen": "x" * 100}] * 100))
    ran = dotr("run", "hot.dotr", "r.json", "--map", "r.map", "--max-document", "1k")
    assert ran.code == 3
    assert "D2006" in ran.err


def test_lines_in_a_document_say_how_they_are_read(dotr: Dotr) -> None:
    Path("r.json").write_text('{"seen": 1}\n{"seen": 2}\n')
    assert "# format: jsonl" in dotr("run", "hot.dotr", "r.json", "--map", "r.map").err


def test_a_format_of_time_with_a_part_twice_is_a_wrong_mapping(dotr: Dotr) -> None:
    for form in ("%d/%d", "%d/%d/%Y", "%Y%", "%"):
        Path("r.map").write_text(MAPPING.replace("%d/%m/%Y %H:%M", form))
        ran = dotr("run", "hot.dotr", "r.csv", "--map", "r.map", "--on-error", "skip")
        assert (ran.code, "D2401" in ran.err) == (3, True), ran.err


@pytest.mark.parametrize(
    ("text", "form"),
    [('{"t": 1, "v": 2}\n{"t": 3}\n', "jsonl"), ('[{"t": 1, "v": 2}]', "json"), ('{\n"t": 1}', "json")],
)
def test_json_that_is_read_as_csv_is_named(dotr: Dotr, text: str, form: str) -> None:
    Path("t.map").write_text("# time: t\n<urn:o> <urn:v> {v} .\n")
    Path("a.csv").write_text(text)
    ran = dotr("convert", "a.csv", "--map", "t.map", "-o", "x.jsonl")
    assert (ran.code, f"add # format: {form}" in ran.err) == (3, True), ran.err
    Path("t.map").write_text(f"# time: t\n# format: {form}\n# files: a.csv\n<urn:o> <urn:v> {{v}} .\n")
    assert dotr("convert", "a.csv", "--map", "t.map", "-o", "x.jsonl").code == 0


@pytest.mark.parametrize("rows", ["", "# rows: $[*]\n"])
@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.jsonl"])
def test_refused_rows_of_one_document_of_json_are_bounded(dotr: Dotr, name: str, rows: str) -> None:
    if name == "a.jsonl" and not rows:
        return
    Path("t.map").write_text(f"# time: t\n{rows}<urn:o> <urn:v> {{v}} .\n")
    content = b"[" + b"{}," * 3_000 + b'{"t": 1, "v": 2}]\n'
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    given = ("convert", name, "--map", "t.map", "--on-error", "skip", "--overwrite", "-o", "x.jsonl")
    ran = dotr(*given, "--max-document", "4m")
    assert "1,026 documents refused" in ran.err
    assert "0 graphs" in ran.err
    assert "1 graph " in dotr(*given).err

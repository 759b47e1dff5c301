"""Slices that tasks read themselves: which instants they are shown, how many there are, what is in error."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.batch.archives import ArchiveSlice, instants_between, known_times, slice_of, sliced
from dotr.batch.local import LocalRunner
from dotr.batch.log import LogListing, Piece, open_log
from dotr.batch.runs import Report, Request
from dotr.core.deployment import Deployment
from dotr.core.funnel import Funnel
from dotr.detect.partitioning import By
from dotr.errors import DataError
from dotr.io.sources import SourceOptions
from dotr.lang import parse_program
from dotr.rdf.terms import XSD
from tests.batch.test_local import Serial, in_one_process, output, quiet

RULES = """PREFIX : <urn:x:>
RULE Again DEFINE { dotr_id a :Again ; :of ?o }
FROM Seen := { SELECT ?o WHERE { ?o :seen ?p } }
AND LAST Old := Seen WITHIN 20 s FROM Seen ON Old.?o = Seen.?o
WITH ?o := Seen.?o
"""
MICROS = 1_000_000


def graph(name: int) -> str:
    return f"<urn:x:o{name}> <urn:x:seen> <urn:x:p> .\n"


def archive(path: Path, rows: list[tuple[int | None, str | None]], group: int) -> None:
    schema = pa.schema([("time", pa.int64()), ("graph", pa.string())])
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], []]
    pq.write_table(pa.table(columns, schema=schema), path, row_group_size=group)


def pieces_of(log: LogListing) -> list[Piece]:
    return [piece for split in log.splits for piece in split.pieces if piece.graphs]


_LOGS = st.lists(
    st.tuples(
        st.one_of(
            st.lists(st.integers(0, 60), min_size=1, max_size=40).map(sorted),
            st.lists(st.integers(0, 60), min_size=1, max_size=40),
        ),
        st.integers(1, 12),
    ),
    min_size=1,
    max_size=3,
)


@given(_LOGS, st.integers(-2, 62), st.integers(-2, 62))
def test_the_instants_between_two_times_come_in_order(
    files: list[tuple[list[int], int]], since: int, until: int
) -> None:
    """Whatever is in order, side by side, or neither; graphs of one time in the order of the log."""
    found: dict[int, list[str]] = {}
    with TemporaryDirectory() as folder:
        for number, (times, group) in enumerate(files):
            names = [number * 100 + row for row in range(len(times))]
            archive(Path(folder, f"{number}.parquet"), [*zip(times, map(graph, names), strict=True)], group)
            for time, name in zip(times, names, strict=True):
                if since <= time < until:
                    found.setdefault(time * MICROS, []).append(graph(name))
        log = open_log([folder], SourceOptions())
        instants = [
            one
            for some in instants_between(log, pieces_of(log), since * MICROS, until * MICROS)
            for one in some
        ]
    assert [time for time, _ in instants] == sorted(found)
    for time, graphs in instants:
        texts = ["".join(f"{s} {p} {o} .\n" for s, p, o in triples) for triples in graphs]
        assert sorted(texts) == sorted(found[time])


def ran(tmp_path: Path, log: LogListing, by: By = By.AUTO, rules: str = RULES) -> tuple[Report, list[str]]:
    out = tmp_path / "out"
    out.mkdir()
    request = Request(Deployment(parse_program(rules)), log, by)
    report = LocalRunner(2, Serial).run(request, str(out), quiet)
    return report, output(out, report)


@pytest.mark.parametrize("order", ["sorted", "shuffled in row groups", "two files side by side"])
def test_slices_have_the_events_of_one_run(order: str, tmp_path: Path) -> None:
    rows: list[tuple[int | None, str | None]] = [(i * 7, graph(i * i % 5)) for i in range(600)]
    if order.startswith("shuffled"):
        rows = [rows[start + i * 7 % 60] for start in range(0, 600, 60) for i in range(60)]
    folder = tmp_path / "log"
    folder.mkdir()
    several = [rows[::2], rows[1::2]] if order.startswith("two") else [rows]
    for number, some in enumerate(several):
        archive(folder / f"{number}.parquet", some, 60)
    log = open_log([str(folder)], SourceOptions())
    report, lines = ran(tmp_path, log)
    assert lines == in_one_process(parse_program(RULES), [], [str(folder)], SourceOptions())
    assert len(lines) > 100
    assert list(report.seconds) == ["detect"]
    assert report.parts == (4 if order == "sorted" else 10), "more would see more than a 20th twice"
    assert (report.graphs, report.instants) == (600, 600)
    assert report.streams == {"Again.Seen": 600}


def test_trigger_facts_of_slices_that_have_nothing_to_choose_do_not_pass_a_step(tmp_path: Path) -> None:
    """Rules that differ in a threshold count their trigger facts themselves, also while they sleep."""
    text = """RULE High DEFINE { dotr_id a :High ; :v ?v }
        FROM V := { SELECT ?v WHERE { :s :v ?v FILTER(?v > 2) } }
        AND LAST Rare := { SELECT ?w WHERE { :s :rare ?w } } WITHIN 20 s FROM V WITH ?v := V.?v
        """
    rules = f"PREFIX : <urn:x:>\n{text}{text.replace('High', 'Higher').replace('> 2', '> 4')}"
    rows: list[tuple[int | None, str | None]] = [
        (i * 7, f'<urn:x:s> <urn:x:{"rare" if i == 304 else "v"}> "{i % 7}"^^<{XSD}integer> .\n')
        for i in range(600)
    ]
    archive(tmp_path / "log.parquet", rows, 60)
    paths = [str(tmp_path / "log.parquet")]
    report, lines = ran(tmp_path, open_log(paths, SourceOptions()), rules=rules)
    funnel: dict[str, Funnel] = {}
    program = parse_program(rules)
    assert lines == in_one_process(program, [], paths, SourceOptions(), funnel)
    assert lines
    assert list(report.seconds) == ["detect"]
    assert report.funnel(program) == funnel


def test_a_short_log_is_not_read_twice(tmp_path: Path) -> None:
    """Where a slice of each hand would see most of the log twice, facts travel; so they do by key."""
    archive(tmp_path / "log.parquet", [(i, graph(i % 5)) for i in range(60)], 5)
    log = open_log([str(tmp_path / "log.parquet")], SourceOptions())
    known = known_times(log.splits)
    assert known is not None
    request = Request(Deployment(parse_program(RULES)), log)
    assert sliced(request, known, 2) is None
    alone = sliced(request, known, 1)
    assert alone is not None
    assert len(alone[1]) == 1
    shorter = Request(Deployment(parse_program(RULES.replace("20 s", "3 s"))), log)
    several = sliced(shorter, known, 2)
    assert several is not None
    assert len(several[1]) == 2
    assert sliced(Request(shorter.deployment, log, By.KEY), known, 2) is None
    report, _ = ran(tmp_path, log, By.KEY)
    assert list(report.seconds) == ["extract", "detect"]


def test_row_groups_that_lie_side_by_side_are_not_held_in_memory_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        archive(tmp_path / f"{number}.parquet", [(i * 8 + number, graph(i % 5)) for i in range(500)], 500)
    log = open_log([str(tmp_path)], SourceOptions())
    known = known_times(log.splits)
    assert known is not None
    request = Request(Deployment(parse_program(RULES)), log)
    assert sliced(request, known, 2) is not None
    monkeypatch.setattr("dotr.batch.archives._SIDE_BY_SIDE", 4 * pieces_of(log)[0].size)
    assert sliced(request, known, 2) is None


@pytest.mark.parametrize(
    ("rows", "code", "place"),
    [
        ([(9, None)], "D2018", "log.parquet, row group 100, row 1"),
        ([(9, "<urn:x:o> nothing")], "D2001", "log.parquet, row group 100, row 1"),
    ],
)
def test_a_graph_in_error_has_its_place(
    rows: list[tuple[int | None, str | None]], code: str, place: str, tmp_path: Path
) -> None:
    good: list[tuple[int | None, str | None]] = [(i * 7, graph(i % 5)) for i in range(600)]
    last = [(600 * 7, text) for _, text in rows]
    archive(tmp_path / "log.parquet", [*good, *last], 6)
    with pytest.raises(DataError) as raised:
        ran(tmp_path, open_log([str(tmp_path / "log.parquet")], SourceOptions()))
    assert raised.value.diagnostics[0].code == code
    assert place in raised.value.diagnostics[0].place


def test_a_message_that_inserts_is_left_to_what_lasts(tmp_path: Path) -> None:
    schema = pa.schema([("time", pa.int64()), ("graph", pa.string()), ("insert", pa.string())])
    columns = [[i * 7 for i in range(600)], [graph(i % 5) for i in range(600)], [None] * 599 + [graph(9)]]
    pq.write_table(pa.table(columns, schema=schema), tmp_path / "log.parquet", row_group_size=60)
    paths = [str(tmp_path / "log.parquet")]
    _, lines = ran(tmp_path, open_log(paths, SourceOptions()))
    assert lines == in_one_process(parse_program(RULES), [], paths, SourceOptions())


def test_a_slice_travels_as_text() -> None:
    pieces = Piece("a.parquet", 0, 1, 5, 10, (3, 4)), Piece("b.parquet", 7, 8, 1, 2, (4, 4))
    one = ArchiveSlice(3, (0, 9), (1, 2), 5, pieces)
    assert slice_of(one.text()) == one
    assert json.loads(one.text())

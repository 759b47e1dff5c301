"""Parts of a batch that need no runner: output folders, scratch files, weights, slices of what lasts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dotr
from dotr.batch.archives import times_of, whole_instants
from dotr.batch.facts import MARK, Cut, FactReader, Layout
from dotr.batch.lasting import LastingContent, Slice, joined, slices, states
from dotr.batch.log import Files, LogListing, graph_columns, load, open_log
from dotr.batch.runs import RUN_FILE, UNFINISHED, OutputFolder, batched, part_name, write_events
from dotr.batch.work import HEAVY, LEAST, FactOracle, MatchOracle, Treatment, Weighing, message_text, skewed
from dotr.core.deployment import Deployment, Settings
from dotr.detect.detector import TeslaDetector
from dotr.detect.partitioning import By, Partitioning, plan_batch
from dotr.errors import DataError, EngineError, RefusedError
from dotr.events import Clock, Composite, Message
from dotr.io.event_tables import TABLE_ROWS as ROWS
from dotr.io.graphs import SourceOptions
from dotr.lang import parse_program
from dotr.rdf.terms import Triple
from tests.detect.building import CLOCK, A, B, at, each, equal, facts, program, rule, within

S = 1_000_000
RULES = """PREFIX : <urn:x:>
RULE Seen DEFINE { dotr_x a :Seen ; :of ?o }
FROM S := { SELECT ?o WHERE { ?o :seen ?v } } WITH ?o := S.?o
HOLD :seen FOR 10 s
"""
SEEN: Triple = ("<urn:x:a>", "<urn:x:seen>", "<urn:x:v>")


@pytest.fixture(scope="module")
def event() -> Composite:
    engine = dotr.Engine.from_text(RULES)
    engine.push("<urn:x:a> <urn:x:seen> <urn:x:v> .", at=1)
    return engine.finish()[0].composite


def test_a_task_without_events_writes_no_file_and_others_count_them(tmp_path: Path, event: Composite) -> None:
    of = parse_program(RULES)
    assert write_events(str(tmp_path), "jsonl", of, Clock(), []).file == ""
    assert list(tmp_path.iterdir()) == []
    written = write_events(str(tmp_path), "jsonl", of, Clock(), [event, event])
    assert written.counts == {"Seen": 2}
    assert len((tmp_path / written.file).read_text().splitlines()) == 2
    assert [len(part) for part in batched([event] * (ROWS + 1))] == [ROWS, 1]
    with pytest.raises(EngineError):
        write_events(str(tmp_path / "none"), "jsonl", of, Clock(), [event])


def test_a_folder_has_its_name_when_everything_reported_is_in_it(tmp_path: Path) -> None:
    out = OutputFolder(str(tmp_path / "out"), overwrite=False)
    folder = Path(out.open())
    assert folder == tmp_path / "out.part"
    for name in ("b.jsonl", "a.jsonl", "of-a-failed-attempt.jsonl"):
        (folder / name).write_text(name)
    out.finish(["b.jsonl", "a.jsonl"], "{}")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        RUN_FILE,
        "part-00000.jsonl",
        "part-00001.jsonl",
    ]
    assert (tmp_path / "out" / "part-00000.jsonl").read_text() == "b.jsonl"
    assert not folder.exists()
    assert part_name(7, 1_000_000, "nq") == "part-0000007.nq"


def test_a_folder_of_somebody_else_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.mkdir()
    OutputFolder(str(path), overwrite=False)
    (path / "mine").touch()
    for overwrite in (False, True):
        with pytest.raises(RefusedError) as raised:
            OutputFolder(str(path), overwrite)
        assert raised.value.diagnostics[0].code == "D5001"
    (path / RUN_FILE).touch()
    with pytest.raises(RefusedError):
        OutputFolder(str(path), overwrite=False)
    out = OutputFolder(str(path), overwrite=True)
    out.open()
    assert (path / "mine").exists(), "until the new run is done"
    out.finish([], "{}")
    assert not (path / "mine").exists()


def test_what_a_run_left_is_dotrs_own_and_a_failed_one_leaves_nothing(tmp_path: Path) -> None:
    out = OutputFolder(str(tmp_path / "out"), overwrite=False)
    assert (Path(out.open()) / UNFINISHED).exists()
    with pytest.raises(RefusedError, match="did not finish"):
        OutputFolder(str(tmp_path / "out"), overwrite=False)
    again = OutputFolder(str(tmp_path / "out"), overwrite=True)
    again.open()
    again.abandon()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RefusedError):
        OutputFolder("/", overwrite=True)


def test_rows_of_a_number_come_back_from_all_its_files(tmp_path: Path) -> None:
    for bucket in (0, 1):
        files = Files(str(tmp_path), f"slice-{{}}-{bucket}", graph_columns())
        for number in (1, 10):
            files.add(number, (bucket, f"{number}"), 3_000_000)
        files.close()
    found = load(str(tmp_path), "slice-1-", graph_columns())
    assert found.column("time").to_pylist() == [0, 1], "and not those of slice 10"
    assert load(str(tmp_path), "slice-2-", graph_columns()).num_rows == 0
    assert load(str(tmp_path), "slice-2-", graph_columns()).schema == graph_columns()


KEYED = program(rule("R", at("S"), each(at("H"), within(9, "S"), equal("H.k", "S.k"))))


def layout(buckets: int) -> Layout:
    return Layout(plan_batch(KEYED, By.KEY), (Cut(buckets),), 100)


def test_a_part_is_too_heavy_beside_the_average_of_the_others() -> None:
    four = layout(4)

    def codes(rows: list[int]) -> list[str]:
        weights = [(part, count, "?k = a", 0.5) for part, count in enumerate(rows)]
        return [found.code for found in skewed(KEYED, four, weights)]

    assert codes([LEAST * 10, LEAST, LEAST, LEAST]) == ["D4136"]
    assert codes([LEAST * HEAVY, LEAST, LEAST, LEAST]) == []
    assert codes([LEAST * HEAVY + 1, LEAST, LEAST, LEAST]) == ["D4136"]
    assert codes([LEAST * 2, LEAST]) == ["D4136"], "of four parts two had nothing"
    assert codes([LEAST - 1]) == []
    assert codes([LEAST]) == ["D4136"], "parts without rows are parts"
    assert codes([]) == []


def test_the_most_frequent_key_of_the_sampled_rows_is_named() -> None:
    keys = plan_batch(KEYED, By.KEY).groups[0].keys
    assert keys is not None
    weighing = Weighing(3, keys, FactReader(KEYED), KEYED)
    rows = [(3, time, f"0\t{A if time % 4 else B}\t") for time in range(256)]
    assert list(weighing.through([(3, MARK, "0 9"), *rows])) == [(3, MARK, "0 9"), *rows]
    part, count, key, share = weighing.weight
    assert (part, count, key, share) == (3, 256, f"?k = {B}", 1.0), "every sixteenth, from the first on"
    assert Weighing(3, keys, FactReader(KEYED), KEYED).weight == (3, 0, "", 0.0)


def content(background: list[Triple]) -> LastingContent:
    return LastingContent(parse_program(RULES), Settings(), background, Clock(), Treatment(), 0, 100 * S)


def test_a_slice_begins_with_what_holds_before_it() -> None:
    other: Triple = ("<urn:x:b>", "<urn:x:p>", "<urn:x:v>")
    rows = [
        (1 * S, message_text([SEEN])),
        (5 * S, message_text(Message(None, [other]))),
        (20 * S, message_text(Message(None, None, [other]))),
    ]
    cut = [Slice((0,)), *(Slice((0,), begin * S) for begin in (1, 2, 5, 6, 11, 12, 20, 30))]
    found = states(content([]), rows, cut, ())
    assert found[0] is None
    held = [[row[0] for row in state or ()] for state in found[1:]]
    a, b = SEEN[0], other[0]
    assert held == [[], [a], [a], [a, b], [a, b], [b], [b], []], "an end at its begin is its own"
    refused = states(content([]), rows, cut, {5 * S})
    assert [[row[0] for row in state or ()] for state in refused[1:]] == [[], [a], [a], [a], [a], [], [], []]


def test_slices_see_their_overlap_and_own_their_events() -> None:
    one = Slice((0,), 5, 10, 20)
    assert [time for time in (4, 5, 19, 20) if one.sees(time)] == [5, 19]
    assert [time for time in (9, 10, 19, 20) if one.owns(time)] == [10, 19]
    last = Slice((0,), 15, 20, None)
    assert joined(one, last) == Slice((0,), 5, 10, None)
    assert Slice((0,)).owns(-(10**9))


def test_rules_with_a_horizon_are_cut_and_the_others_see_the_whole_log() -> None:
    plan: Partitioning = plan_batch(KEYED, By.TIME)
    cut = slices(plan, list(range(0, 10_000, 500)), 9_999, None)
    assert cut[0].start is None
    assert [one.end for one in cut][:-1] == [one.start for one in cut][1:]
    assert all(one.begin == one.start - 9 for one in cut[1:] if one.start is not None)
    assert slices(plan, [0, 5_000], 9_999, None, whole=True) == [Slice((0,))]
    even = slices(plan, [120, 5_000], 1_000, 200)
    assert [one.start for one in even] == [None, 200, 400, 600, 800, 1_000]
    (nothing,) = slices(Partitioning((), ()), [0], 9, None)
    assert nothing == Slice(())


def archive(folder: Path, times: list[int]) -> LogListing:
    graphs = [f"<urn:x:{n}> <urn:x:p> <urn:x:o> .\n" for n in range(len(times))]
    pq.write_table(pa.table({"time": times, "graph": graphs}), folder / "log.parquet", row_group_size=2)
    return open_log([str(folder / "log.parquet")], SourceOptions())


def test_an_instant_of_an_archive_comes_when_all_its_graphs_are_read(tmp_path: Path) -> None:
    log = archive(tmp_path, [1, 2, 1, 3, 2, 1])
    pieces = [piece for split in log.splits for piece in split.pieces]
    assert times_of(log, pieces).to_pylist() == [t * S for t in (1, 2, 1, 3, 2, 1)]
    found = [(time // S, [graph[0][0] for graph in graphs]) for time, graphs in whole_instants(log, pieces)]
    assert found == [
        (3, ["<urn:x:3>"]),
        (2, ["<urn:x:1>", "<urn:x:4>"]),
        (1, ["<urn:x:0>", "<urn:x:2>", "<urn:x:5>"]),
    ]
    assert [time // S for time, _ in whole_instants(log, pieces, {1 * S, 3 * S})] == [2]


def test_an_archive_of_another_form_of_time_is_refused(tmp_path: Path) -> None:
    log = archive(tmp_path, [1])
    pieces = [piece for split in log.splits for piece in split.pieces]
    table = pa.table({"time": pa.array([1], pa.timestamp("us", tz="UTC")), "graph": [""]})
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(DataError):
        list(whole_instants(log, pieces))


def test_facts_and_matches_that_are_not_the_literal_ones_are_reported() -> None:
    of = parse_program(RULES.replace("HOLD :seen FOR 10 s", ""))
    facts_of = FactOracle(of, [], Clock())
    (stream,) = of.queries
    right = [(S, ("<urn:x:a>",), 0, "")]
    facts_of.check(S, [SEEN], {stream: right})
    for wrong in ({}, {stream: [*right, *right]}, {stream: right, "more": right}):
        with pytest.raises(EngineError) as raised:
            facts_of.check(S, [SEEN], wrong)
        assert raised.value.diagnostics[0].code == "D4090"
    matches = MatchOracle(Deployment(KEYED, []), CLOCK)
    detector = TeslaDetector(KEYED, CLOCK)
    came = {"S": facts(1, (A, 1)), "H": facts(1, (A, 2))}
    found = detector.detect(1, came)
    assert found
    matches.check(1, came, True, found)
    later = {"S": facts(2, (A, 1))}
    with pytest.raises(EngineError, match="rule `R` at 2"):
        matches.check(2, later, True, [])

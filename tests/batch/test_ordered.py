"""Local batch over lines, archives and tables in order of time: one round, and the events of `dotr run`."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotr.batch import local
from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Report, Request
from dotr.core.deployment import Deployment
from dotr.errors import DotrError
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions
from dotr.io.tables.mapping import read_mapping
from dotr.lang import load_program
from dotr.program import Program

from .test_local import Serial, golden_cases, in_one_process, lasts, loaded, output, quiet

RULES = """PREFIX : <urn:x:>
RULE Fire
DEFINE { dotr_id1 a :Fire ; :room ?room ; :value ?v }
FROM Smoke := { SELECT ?room WHERE { ?room :smoke ?x } }
AND LAST Heat := { SELECT ?room ?v WHERE { ?room :heat ?v FILTER(?v > 3) } }
    WITHIN 20 s FROM Smoke ON Heat.?room = Smoke.?room
WITH ?room := Smoke.?room, ?v := Heat.?v
RULE Rows
DEFINE { dotr_id2 a :Rows ; :room ?room }
FROM Again := { SELECT ?room WHERE { ?room :smoke ?x } }
AND EACH Hot := { SELECT ?room WHERE { ?room :heat ?x } } WITHIN 3 s FROM Again
WITH ?room := Again.?room
"""
MAP = """# time: time
PREFIX : <urn:x:>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
<urn:x:{room}> <urn:x:{kind}> {value}^^xsd:double .
"""

Row = tuple[int, str, str, float]


def rows(times: list[int], seed: int = 1) -> list[Row]:
    draw = random.Random(seed)
    return [
        (at, draw.choice(["heat", "smoke"]), draw.choice("abc"), draw.randrange(100) / 10) for at in times
    ]


def as_lines(found: list[Row], path: Path) -> None:
    lines = [
        {"time": at, "graph": f"<urn:x:{room}> <urn:x:{kind}> {value:e} ."} for at, kind, room, value in found
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def as_csv(found: list[Row], path: Path) -> None:
    lines = ["time,kind,room,value", *(",".join(map(str, row)) for row in found)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def as_parquet(found: list[Row], path: Path, **columns: pa.Array) -> None:
    at, kind, room, value = (list(column) for column in zip(*found, strict=True))
    table = {"time": pa.array(at), "kind": pa.array(kind), "room": pa.array(room), "value": pa.array(value)}
    pq.write_table(pa.table(table | columns), path, row_group_size=5_000)


def as_archive(found: list[Row], path: Path) -> None:
    double = "<http://www.w3.org/2001/XMLSchema#double>"
    graphs = [f'<urn:x:{room}> <urn:x:{kind}> "{value:e}"^^{double} .' for _, kind, room, value in found]
    table = {"time": pa.array([row[0] for row in found]), "graph": pa.array(graphs)}
    pq.write_table(pa.table(table), path, row_group_size=3_000)


WRITERS = {"jsonl": as_lines, "csv": as_csv, "parquet": as_parquet, "graphs.parquet": as_archive}


class Case:
    """Owns rules, mapping and log in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "rules.dotr").write_text(RULES, encoding="utf-8")
        (folder / "m.map").write_text(MAP, encoding="utf-8")
        self.program: Program = load_program([str(folder / "rules.dotr")], read_rules_text)
        self.tables = SourceOptions(mappings=(read_mapping(str(folder / "m.map")),))

    def batch(self, paths: list[str], options: SourceOptions) -> tuple[Report, list[str]]:
        out = self.folder / f"out{len(list(self.folder.iterdir()))}"
        out.mkdir()
        request = Request(Deployment(self.program), open_log(paths, options))
        report = LocalRunner(2, Serial).run(request, str(out), quiet)
        return report, output(out, report)

    def options(self, ending: str) -> SourceOptions:
        return self.tables if ending in ("csv", "parquet") else SourceOptions()


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


@pytest.mark.parametrize("ending", WRITERS)
def test_a_log_in_order_takes_one_round(case: Case, ending: str) -> None:
    log = case.folder / f"log.{ending}"
    WRITERS[ending](rows([n // 3 for n in range(20_000)]), log)
    expected = in_one_process(case.program, [], [str(log)], case.options(ending))
    report, found = case.batch([str(log)], case.options(ending))
    assert list(report.seconds) == ["detect"]
    assert report.parts == 4
    assert found == expected
    assert (report.graphs, report.instants, report.first, report.last) == (20_000, 6_667, 0, 6_666_000_000)
    assert sum(report.time_sources.values()) == 20_000


@pytest.mark.parametrize("ending", WRITERS)
def test_its_funnels_are_those_of_the_rounds(
    case: Case, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = case.folder / f"log.{ending}"
    WRITERS[ending](rows([n // 2 for n in range(12_000)]), log)
    request = Request(Deployment(case.program), open_log([str(log)], case.options(ending)))
    assert local.in_order(request, 2) is not None
    one, events = case.batch([str(log)], case.options(ending))
    monkeypatch.setattr(local, "in_order", lambda *_: None)
    monkeypatch.setattr(local, "known_times", lambda *_: None)
    other, expected = case.batch([str(log)], case.options(ending))
    assert list(other.seconds) == ["read", "extract", "detect"]
    assert events == expected
    assert one.funnel(case.program) == other.funnel(case.program)
    assert one.facts(case.program) == other.facts(case.program)
    assert (one.graphs, one.instants, one.events) == (other.graphs, other.instants, other.events)
    assert one.time_sources == other.time_sources


def test_files_that_follow_one_another_are_in_order_whatever_their_names(case: Case) -> None:
    found = rows(list(range(9_000)))
    for name, part in (("z", found[:4_000]), ("y", found[4_000:7_000]), ("a", found[7_000:])):
        as_lines(part, case.folder / f"{name}.jsonl")
    paths = [str(case.folder / f"{name}.jsonl") for name in "ayz"]
    report, events = case.batch(paths, SourceOptions())
    assert list(report.seconds) == ["detect"]
    assert events == in_one_process(case.program, [], paths, SourceOptions())


@given(
    st.lists(st.sampled_from([0, 0, 1, 1, 2, 5, 30, 100, -1, -40]), min_size=40, max_size=300),
    st.integers(0, 99),
    st.sampled_from(sorted(WRITERS)),
)
@settings(max_examples=25, deadline=None)
def test_disorder_anywhere_changes_no_event(steps: list[int], seed: int, ending: str) -> None:
    times, now = [], 1_000
    for step in steps:
        now = max(0, now + step)
        times.append(now)
    with tempfile.TemporaryDirectory() as folder:
        case = Case(Path(folder))
        log = case.folder / f"log.{ending}"
        WRITERS[ending](rows(times, seed), log)
        report, events = case.batch([str(log)], case.options(ending))
        ordered = case.folder / "ordered.jsonl"
        as_lines(sorted(rows(times, seed), key=lambda row: row[0]), ordered)
        assert events == in_one_process(case.program, [], [str(ordered)], SourceOptions())
        assert report.graphs == len(steps)
        assert report.instants == len(set(times))


def test_archives_of_two_units_are_refused_however_they_are_cut(case: Case) -> None:
    """They were taken where one followed the other, and refused where they overlapped."""
    for unit, times, name in (("s", range(3_000), "a"), ("ms", range(3_000_000, 6_000_000, 1_000), "b")):
        path = case.folder / f"{name}.parquet"
        as_archive(rows(list(times)), path)
        table = pq.read_table(path)
        pq.write_table(table.replace_schema_metadata({"dotr.unit": unit}), path)
    paths = [str(case.folder / f"{name}.parquet") for name in "ab"]
    with pytest.raises(DotrError, match="D2102"):
        case.batch(paths, SourceOptions())


def test_one_late_graph_deep_in_a_log_is_sorted_in(case: Case) -> None:
    times = list(range(10_000))
    times[6_100] = 6_050
    as_lines(rows(times), case.folder / "log.jsonl")
    report, events = case.batch([str(case.folder / "log.jsonl")], SourceOptions())
    assert "read" in report.seconds
    ordered = case.folder / "ordered.jsonl"
    as_lines(sorted(rows(times), key=lambda row: row[0]), ordered)
    assert events == in_one_process(case.program, [], [str(ordered)], SourceOptions())


@pytest.mark.parametrize(
    "value",
    [
        pa.array([None, 4.5, 2.0, 3.5] * 3_000),
        pa.array([str(n % 7) for n in range(12_000)]).dictionary_encode(),
        pa.array([n % 7 for n in range(12_000)], pa.decimal128(9, 2)),
    ],
    ids=["none", "dictionary", "decimal"],
)
def test_cells_of_all_kinds_are_as_in_a_run(case: Case, value: pa.Array) -> None:
    log = case.folder / "log.parquet"
    as_parquet(rows(list(range(12_000))), log, value=value)
    report, events = case.batch([str(log)], case.tables)
    assert list(report.seconds) == ["detect"]
    assert events == in_one_process(case.program, [], [str(log)], case.tables)


def test_an_error_is_reported_as_by_the_rounds(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    log = case.folder / "log.jsonl"
    as_lines(rows(list(range(8_000))), log)
    lines = log.read_text("utf-8").splitlines()
    lines[5_500] = '{"time": 5500, "graph": "this is no graph"}'
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(DotrError) as found:
        case.batch([str(log)], SourceOptions())
    monkeypatch.setattr(local, "in_order", lambda *_: None)
    with pytest.raises(DotrError) as expected:
        case.batch([str(log)], SourceOptions())
    assert str(found.value) == str(expected.value)
    assert "5501" in str(found.value) or "D2" in found.value.diagnostics[0].code


@pytest.mark.parametrize("case_", golden_cases(), ids=lambda case: f"{case.parent.name}/{case.name}")
def test_golden_cases_hold_where_slices_are_chosen(case_: Path, tmp_path: Path) -> None:
    if lasts(case_):
        pytest.skip("slices of what lasts are another way")
    program, background, options = loaded(case_)
    source, funnels = str(case_ / "stream.jsonl"), dict[str, Any]()
    expected = in_one_process(program, background, [source], options, funnels)
    request = Request(Deployment(program, background), open_log([source], options))
    report = LocalRunner(2, Serial).run(request, str(tmp_path), quiet)
    assert output(tmp_path, report) == expected
    assert report.funnel(program) == funnels


# ------------------------------------------------------------------ processes


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in found.read_text().split()] if found.exists() else []


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone(pids: list[int]) -> bool:
    for _ in range(100):
        if not any(map(lives, pids)):
            return True
        time.sleep(0.1)
    return False


def started(case: Case, log: Path, before: str = "") -> subprocess.Popen[bytes]:
    """`before`: a statement that the process executes first."""
    out = str(case.folder / "out")
    command = ["batch", str(case.folder / "rules.dotr"), str(log), "--engine", "local", "-q", "--out", out]
    text = (
        f"import sys\n{before}\nfrom dotr.cli.main import main\nsys.argv[1:] = {command!r}\nsys.exit(main())"
    )
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """Its processes, once there are two that are no helper of Python's."""
    for _ in range(1200):
        if len(found := children(process.pid)) >= 2:
            return found
        if process.poll() is not None:
            break
        time.sleep(0.05)
    pytest.fail("no processes were started")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("thread", [False, True])
def test_processes_are_forks_unless_a_thread_runs(case: Case, thread: bool) -> None:
    """A thread may hold a lock when the process is copied."""
    log = case.folder / "log.jsonl"
    as_lines(rows(list(range(60_000))), log)
    before = "import threading, time; threading.Thread(target=time.sleep, args=(90,), daemon=True).start()"
    process = started(case, log, before if thread else "")
    try:
        found = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in workers_of(process)]
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
        assert any(b"spawn_main" in line for line in found) is thread
        assert len(list((case.folder / "out").glob("part-*"))) == 4
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("stop", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("when", ["before", "after_in_parent"])
def test_a_request_to_end_is_not_lost_at_a_fork(case: Case, stop: str, when: str) -> None:
    """What a handler raises in a function that Python calls at a fork is printed and dropped."""
    log = case.folder / "log.jsonl"
    as_lines(rows(list(range(60_000))), log)
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # it may be ignored here
    hook = f"os.register_at_fork({when}=lambda: os.kill(os.getpid(), signal.{stop}))"
    process = started(case, log, f"import os, signal\n{heard}\n{hook}")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"Exception ignored" not in said
    assert not (case.folder / "out").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_process_outlives_a_killed_parent(case: Case) -> None:
    log = case.folder / "log.jsonl"
    as_lines(rows(list(range(150_000))), log)
    process = started(case, log)
    try:
        found = workers_of(process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(20)
        assert gone(found)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_process_outlives_an_error_in_a_worker(case: Case) -> None:
    log = case.folder / "log.jsonl"
    as_lines(rows(list(range(150_000))), log)
    with log.open("a", encoding="utf-8") as file:
        file.write('{"time": 150000, "graph": "no graph"}\n')
    process = started(case, log)
    try:
        found = workers_of(process)
        _, said = process.communicate(timeout=120)
        assert process.returncode == 3
        assert b"error[D2" in said
        assert gone(found)
        assert not (case.folder / "out").exists()
        assert not (case.folder / "out.part").exists()
    finally:
        process.kill()
        process.communicate()

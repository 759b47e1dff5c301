"""`--engine local`: the events of a batch are those of one process, byte for byte once sorted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Report, Request
from dotr.batch.work import Treatment, graph_text
from dotr.core.deployment import Deployment, Settings
from dotr.core.funnel import Funnel
from dotr.core.pipeline import Pipeline
from dotr.detect.partitioning import By
from dotr.io.decode.parquet import archive_schema
from dotr.io.events import format_jsonl
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.io.sources import SourceOptions, Sources, TimedGraph
from dotr.io.time import UNITS
from dotr.lang import load_program
from dotr.program import Program
from dotr.rdf.terms import Triple

GOLDEN = Path(__file__).parents[1] / "golden"


class Serial(Executor):
    """Runs what is submitted at once, in this process."""

    def __init__(self, processes: int) -> None:
        """However many processes are asked for."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def golden_cases() -> list[Path]:
    """The golden cases without late graphs, a clock advanced beyond the log, or rules that change."""
    cases = []
    for rules in sorted(GOLDEN.glob("*/*/rules.dotr")):
        options = options_of(rules.parent)
        if "then" in options:
            continue
        if "treatments" not in options and "lateness" not in options and "advance" not in options:
            cases.append(rules.parent)
    return cases


def lasts(case: Path) -> bool:
    """Whether something lasts in a case: by its rules, or by its messages."""
    stream = (case / "stream.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in stream.splitlines() if line.strip()]
    return loaded(case)[0].lasting or any(line.keys() & {"insert", "delete"} for line in lines)


def options_of(case: Path) -> dict[str, Any]:
    file = case / "options.yaml"
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}


def loaded(case: Path) -> tuple[Program, list[Triple], SourceOptions]:
    program = load_program([str(case / "rules.dotr")], read_rules_text)
    unit = UNITS[options_of(case).get("time-unit", "s")]
    return program, read_background(program.background), SourceOptions(unit=unit)


def in_one_process(
    program: Program,
    background: list[Triple],
    paths: list[str],
    options: SourceOptions,
    reported: dict[str, Funnel] | None = None,
) -> list[str]:
    """The sorted JSON lines of a run over sources in time order; `reported` gets the funnels."""
    pipeline = Pipeline(Deployment(program, background))
    sources = Sources(paths, options)
    graphs: list[TimedGraph] = sorted(sources, key=lambda graph: graph.time)
    lines: list[str] = []
    if not graphs:
        return lines
    assert sources.clock is not None
    pipeline.begin(sources.clock)
    events = [event for graph in graphs for event in pipeline.push_part(graph.time, graph.triples)]
    events += pipeline.finish()
    counters = pipeline.counters
    for name, count in counters.events.items():  # nothing is lost between a rule's last step and its events
        assert counters.funnel[name][-1][1] == count, counters.funnel[name]
    if reported is not None:
        reported |= counters.funnel
    return sorted(format_jsonl(event, sources.clock) for event in events)


def output(folder: Path, report: Report) -> list[str]:
    """The sorted lines of all files of a run's folder."""
    return sorted(line for file in report.files for line in (folder / file).read_text("utf-8").splitlines())


def quiet(_stage: str, _done: int, _of: int, _graphs: int) -> None:
    """No progress."""


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: f"{case.parent.name}/{case.name}")
def test_golden_cases_hold_in_batch(case: Path, tmp_path: Path) -> None:
    program, background, options = loaded(case)
    source = str(case / "stream.jsonl")
    funnels: dict[str, Funnel] = {}
    expected = in_one_process(program, background, [source], options, funnels)
    request = Request(Deployment(program, background), open_log([source], options), By.AUTO, 2 * options.unit)
    report = LocalRunner(2, Serial).run(request, str(tmp_path), quiet)
    assert output(tmp_path, report) == expected
    assert sum(report.events.values()) == len(expected)
    assert report.funnel(program) == funnels


def archived(case: Path, options: SourceOptions, path: Path) -> bool:
    """The stream of a case in time order, two instants a row group; False where it has no graph."""
    sources = Sources([str(case / "stream.jsonl")], options)
    graphs: list[TimedGraph] = sorted(sources, key=lambda graph: graph.time)
    if sources.clock is None:
        return False
    schema = archive_schema(sources.clock)
    unit = sources.clock.unit if sources.clock.integer else 1
    instants = [list(some) for _, some in groupby(graphs, key=lambda graph: graph.time)]
    with pq.ParquetWriter(path, schema) as writer:
        for i in range(0, len(instants), 2):
            some = [graph for instant in instants[i : i + 2] for graph in instant]
            times = pa.array([graph.time // unit for graph in some], schema.field("time").type)
            texts = pa.array([graph_text(graph.triples) for graph in some])
            writer.write_table(pa.Table.from_arrays([times, texts], schema=schema))
    return True


def test_instants_come_out_of_row_groups_where_statistics_suffice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Golden cases as archives, by slices that tasks sort or read in order, and where facts travel: nobody
    reads times first; where row groups share a time, somebody does, if facts travel.
    """
    ran, cut = 0, 0
    for number, case in enumerate(case for case in golden_cases() if not lasts(case)):
        program, background, options = loaded(case)
        path = tmp_path / f"{number}.parquet"
        if not archived(case, options, path):
            continue
        funnels: dict[str, Funnel] = {}
        expected = in_one_process(program, background, [str(path)], options, funnels)

        def report_of(
            way: str, length: int | None, rows: int | None = None, verify: bool = False
        ) -> tuple[Report, list[str]]:
            out, log = tmp_path / f"{number}{way}", path  # noqa: B023  # called in this turn of the loop
            out.mkdir()
            if rows is not None:
                log = tmp_path / f"{number}{way}.parquet"  # noqa: B023
                pq.write_table(pq.read_table(path), log, row_group_size=rows)  # noqa: B023
            request = Request(
                Deployment(program, background, Settings(budget=1_000_000_000)),  # noqa: B023  # verified silences
                open_log([str(log)], options),  # noqa: B023
                slice_length=length,
                treatment=Treatment(verify),
            )
            report = LocalRunner(2, Serial).run(request, str(out), quiet)
            table = pq.read_table(log, columns=["time"])
            shared = rows is not None and len(table["time"].unique()) < len(table)
            assert "read" not in report.seconds or (shared and "extract" in report.seconds), case  # noqa: B023
            assert output(out, report) == expected, (case, way)  # noqa: B023
            assert report.funnel(program) == funnels, (case, way)  # noqa: B023
            return report, [*report.seconds]

        with monkeypatch.context() as patched:
            patched.setattr("dotr.batch.local.in_order", lambda *_: None)
            if number % 3 == 0:
                report_of("slices", None)
            patched.setattr("dotr.batch.local.sliced", lambda *_: None)
            plain, stages = report_of("facts", None)
            assert "extract" in stages
        report_of("in order", None)
        with monkeypatch.context() as patched:
            patched.setattr("dotr.batch.archives._MUCH", 0)  # however much is read twice
            report, stages = report_of("short slices", 2 * options.unit, 1)
            if number % 3 == 1:
                report_of("verified", 3 * options.unit, verify=True)
        assert report.instants == plain.instants, case
        cut += "extract" not in stages and report.parts > 2
        ran += 1
    assert ran > 100
    assert cut > 40
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table, table]), path, row_group_size=2)
    request = Request(Deployment(program, background), open_log([str(path)], options))
    out = tmp_path / "shared"
    out.mkdir()
    monkeypatch.setattr("dotr.batch.local.sliced", lambda *_: None)
    assert "read" in LocalRunner(2, Serial).run(request, str(out), quiet).seconds


def test_nobody_loads_pandas_for_nothing(tmp_path: Path) -> None:
    """Arrow loads pandas when it first makes an array: 0.9 s of each process's start."""
    (tmp_path / "log.jsonl").write_text('{"time":1,"graph":"<urn:a> <urn:smoke> <urn:c> ."}\n')
    (tmp_path / "r.dotr").write_text(
        "RULE R DEFINE { dotr_id a <urn:R> } FROM S := { SELECT ?r { ?s <urn:smoke> ?r } }"
    )
    script = (
        "import sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from dotr.cli.main import run\n"
        "code = run('convert log.jsonl -o log.parquet -q'.split())\n"
        "import dotr.batch.local as local\n"
        "local._pool = ThreadPoolExecutor\n"
        "code += run('batch r.dotr --log log.parquet --out out --engine local -q'.split())\n"
        "print(code, 'pandas' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "0 False\n", done.stderr
    assert len((tmp_path / "out" / "part-00000.jsonl").read_text().splitlines()) == 1


def test_graphs_of_one_time_in_two_files_are_one_instant(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dotr"
    rules.write_text(
        """PREFIX : <urn:x:>
        RULE Both DEFINE { dotr_id a :Both ; :room ?room }
        FROM Pair := { SELECT ?room WHERE { ?a :smoke ?room . ?b :heat ?room } } WITH ?room := Pair.?room""",
        encoding="utf-8",
    )
    (tmp_path / "log").mkdir()
    for name, kind in (("1@7.ttl", "smoke"), ("2@7.ttl", "heat"), ("3@8.ttl", "heat")):
        (tmp_path / "log" / name).write_text(f"<urn:x:o> <urn:x:{kind}> <urn:x:kitchen> .", encoding="utf-8")
    program = load_program([str(rules)], read_rules_text)
    log = open_log([str(tmp_path / "log")], SourceOptions())
    (tmp_path / "out").mkdir()
    report = LocalRunner(2).run(Request(Deployment(program), log), str(tmp_path / "out"), quiet)
    events = [json.loads(line) for line in output(tmp_path / "out", report)]
    assert [(event["time"], event["bindings"]["room"]["value"]) for event in events] == [(7, "urn:x:kitchen")]
    assert (report.graphs, report.instants) == (3, 2)

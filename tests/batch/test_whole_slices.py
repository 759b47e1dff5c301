"""Whole programs over archives whose slices are read by tasks that detect: events and counts of one run."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.work import graph_text
from dotr.core.deployment import Deployment
from dotr.core.funnel import Funnel
from dotr.detect.partitioning import By
from dotr.errors import DotrError
from dotr.io.decode.documents import Format
from dotr.io.decode.rdf import parse_triples
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import load_program
from tests.batch.test_local import Serial, in_one_process, output, quiet
from tests.whole import TURTLE, triples, wholes
from tests.whole_days import HOURS, in_days, one_of

CASES = 40
SCHEMA = pa.schema([("time", pa.int64()), ("graph", pa.string())])
DATES = pa.schema([("time", pa.timestamp("us", "UTC")), ("graph", pa.string())])


def archives(r: Random, folder: Path, start: datetime | None = None) -> None:
    """A log with ties and gaps: in order, nearly, or in two files side by side. With `start` a second is
    eight hours, see `whole_days.py`.
    """
    rows: list[tuple[int, str]] = []
    time = r.choice((0, -7, 100))
    for _ in range(r.choice((10, 40, 60))):
        text = TURTLE + " ".join(triples(r, blank=True) for _ in range(r.choice((0, 1, 1, 2, 4))))
        rows.append((time, graph_text(parse_triples(text, Format.TURTLE, "<text>", None))))
        time += r.choice((1, 1, 0, 2, 5, 30))
    order = r.randint(0, 3)
    if order == 1:
        rows.sort(key=lambda row: row[0] + r.random() * 6)
    for number, some in enumerate([rows[::2], rows[1::2]] if order == 2 else [rows]):
        times, texts = zip(*some, strict=True)
        columns: list[list[Any]] = [list(times), list(texts)]
        if start is not None:
            columns[0] = [start + timedelta(hours=HOURS * time) for time in times]
        pq.write_table(
            pa.table(columns, schema=SCHEMA if start is None else DATES),
            folder / f"{number}.parquet",
            row_group_size=r.choice((1, 3, 10)),
        )


def compare(seed: int, folder: Path, days: bool = False) -> int:
    """How many events there were in slices; 0 also where the program is refused, or not cut by time."""
    r = Random(seed)
    whole = wholes(r)
    start = None
    if days:
        start = one_of(Random(seed))[1]
        whole = in_days(Random(seed), whole)
    rules = re.sub(r"CONSUMING [\w, ]+", "", whole.rules)
    given = {"a.dotr": rules, "a.dlog": whole.datalog} if whole.datalog else {"a.dotr": rules}
    background = parse_triples(whole.background, Format.TURTLE, "<text>", None)
    try:
        program = load_program(list(given), lambda path: given.get(path) or read_rules_text(path))
        deployment = Deployment(program, background)
    except DotrError:
        return 0
    (folder / "log").mkdir()
    archives(r, folder / "log", start)
    paths, options = [str(folder / "log")], SourceOptions()
    out = folder / "out"
    out.mkdir()
    length = r.choice((None, None, 3_000_000, 50_000_000))
    if length is not None and days:
        length *= HOURS * 3600
    request = Request(deployment, open_log(paths, options), By.TIME, length)
    report = LocalRunner(r.choice((1, 2, 3, 7)), Serial).run(request, str(out), quiet)
    funnel: dict[str, Funnel] = {}
    lines = output(out, report)
    assert lines == in_one_process(program, background, paths, options, funnel)
    if list(report.seconds) != ["detect"]:
        return 0
    assert report.funnel(program) == funnel
    return len(lines)


@pytest.fixture
def read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LITTLE", "_MUCH"):  # however much is read twice
        monkeypatch.setattr(f"dotr.batch.archives.{name}", 0)
    monkeypatch.setattr("dotr.batch.archives._TOUCHED", 1 << 30)


@pytest.mark.usefixtures("read_twice")
def test_slices_of_days_are_one_run() -> None:
    eventful = 0
    for seed in range(2 * CASES):
        if "EVERY" not in wholes(Random(seed)).rules:
            continue
        with TemporaryDirectory() as folder:
            try:
                eventful += bool(compare(seed, Path(folder), days=True))
            except AssertionError as error:
                pytest.fail(f"seed {seed}: {error}\n{in_days(Random(seed), wholes(Random(seed)))}")
    assert eventful > 2


@pytest.mark.usefixtures("read_twice")
def test_slices_of_whole_programs_are_one_run() -> None:
    eventful = 0
    for seed in range(CASES):
        with TemporaryDirectory() as folder:
            try:
                eventful += bool(compare(seed, Path(folder)))
            except AssertionError as error:
                pytest.fail(f"seed {seed}: {error}\n{wholes(Random(seed))}")
    assert eventful > CASES // 5

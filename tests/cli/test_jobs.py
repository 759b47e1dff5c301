"""`--jobs`: what comes out does not depend on who parses."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dotr.cli.main import run
from dotr.errors import DataError, EngineError
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import ReadEvent, SourceOptions
from dotr.io.parse_workers import GROUP, WAITING, ParseWorkers
from dotr.io.reader import FileReader
from dotr.rdf.blanks import label_stream

GOLDEN = sorted(Path(__file__).parents[1].glob("golden/**/*.jsonl"))
RULES = """
PREFIX : <urn:x:>
RULE High
DEFINE { dotr_id1 a :High ; :of ?s }
FROM Read := { SELECT ?s WHERE { ?s :reads ?v FILTER(?v > 3) } }
WITH ?s := Read.?s
"""
MANY = 64 * GROUP * WAITING * 3
"""Lines of more groups than are on their way at once."""


@pytest.fixture(scope="module")
def workers() -> Iterator[ParseWorkers]:
    with ParseWorkers(2, SourceOptions().base) as workers:
        yield workers


def read(path: Path, workers: ParseWorkers | None, fail: bool = False) -> tuple[list[Any], list[str]]:
    options = SourceOptions()
    reader = FileReader(str(path), options, options.extractor(), ErrorPolicy(fail=fail), workers=workers)
    found: list[Any] = []
    wrong: list[str] = []
    try:
        for item in reader.items():
            if isinstance(item, ReadEvent):
                wrong += [str(item.error)] if item.error else []
                found.append(item._replace(error=None))
            else:
                triples = item.triples
                labelled = label_stream([triples], 0) if isinstance(triples, list) else triples
                found.append((item._replace(triples=[]), labelled))
    except DataError as error:
        wrong.append(str(error))
    return found, wrong


def test_golden_streams_are_the_same_whoever_parses(workers: ParseWorkers) -> None:
    assert len(GOLDEN) > 50
    for path in GOLDEN:
        assert read(path, workers) == read(path, None), path


def lines(count: int) -> list[str]:
    return [
        json.dumps({"time": n, "graph": f"<urn:x:s{n % 7}> <urn:x:reads> {n % 9} ."}) for n in range(count)
    ]


def test_errors_come_in_order_and_at_their_places(tmp_path: Path, workers: ParseWorkers) -> None:
    log = tmp_path / "log.jsonl"
    written = lines(MANY)
    for place in (3, 70, 71, MANY // 2, MANY - 1):
        written[place] = ["{", '{"time":1}', '{"time":"x","graph":""}', '{"time":2,"graph":":a"}'][place % 4]
    written[MANY // 3] = json.dumps({"time": MANY // 3, "graph": "_:b <urn:p> _:c .", "insert": ""})
    log.write_text("\n".join(written))
    for fail in (False, True, False):  # behind what was stopped in the middle, too
        together, alone = read(log, workers, fail), read(log, None, fail)
        assert together == alone
        assert together[1]


def test_a_line_without_end_is_an_error_behind_the_lines_before(
    tmp_path: Path, workers: ParseWorkers
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join([*lines(MANY), "x" * 300_000]))
    options = SourceOptions(max_document=200_000)

    def found(workers: ParseWorkers | None) -> tuple[int, str]:
        reader = FileReader(str(log), options, options.extractor(), ErrorPolicy(), workers=workers)
        count = 0
        try:
            for _ in reader.items():
                count += 1
        except DataError as error:
            return count, error.diagnostics[0].code
        return count, ""

    assert found(workers) == found(None) == (MANY, "D2006")


def test_events_are_the_same_bytes_with_late_graphs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rules.dotr").write_text(RULES)
    written = lines(MANY)
    written[500], written[900] = written[900], written[500]
    written[1200] = "no line"
    (tmp_path / "log.jsonl").write_text("\n".join(written))
    results = []
    for jobs in ("1", "2", "3"):
        out, dead, late = (str(tmp_path / f"{name}{jobs}") for name in ("out", "dead", "late"))
        options = ["-o", out, "--jobs", jobs, "--on-error", f"file={dead}", "--late", f"file={late}"]
        assert (
            run(
                [
                    "run",
                    str(tmp_path / "rules.dotr"),
                    str(tmp_path / "log.jsonl"),
                    *options,
                    "--format",
                    "jsonl",
                ]
            )
            == 0
        )
        summary = capsys.readouterr().err.rpartition(";")[0]
        results.append((summary, *(Path(name).read_bytes() for name in (out, dead, late))))
    assert results[0] == results[1] == results[2]
    assert all(results[0])


def test_a_killed_worker_is_reported(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(lines(MANY)))
    with ParseWorkers(1, None) as workers:
        options = SourceOptions()
        reader = FileReader(str(log), options, options.extractor(), ErrorPolicy(), workers=workers)
        items = reader.runs()
        next(items)
        os.kill(workers._running[0].pid, signal.SIGKILL)
        with pytest.raises(EngineError, match=r"D4314(.|\n)*signal 9"):
            list(items)

"""A deployment that is fed with corrections: in pieces, killed, under other rules."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import zlib
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from time import sleep

import pytest

from dotr.core.corrections import graphs_of
from dotr.service.journal import Journal
from tests.cli.conftest import Dotr

RULES = """PREFIX : <ex:>
HOLD :state LATEST
QUERY Value := {{ SELECT ?s ?v WHERE {{ ?s :value ?v }} }}
QUERY Check := {{ SELECT ?s WHERE {{ ?s :check ?x }} }}
QUERY Lit := {{ SELECT ?s WHERE {{ ?s :state :on }} }}
RULE Quiet DEFINE {{ dotr_x a :Quiet ; :s ?s }} FROM Check
AND NOT Value WITHIN {wait} s FROM Check ON Value.?s = Check.?s WITH ?s := Check.?s
RULE Sum_ DEFINE {{ dotr_x a :Sum ; :n ?n }} FROM Check
AND SUM(Value.?v) AS ?n OVER Value WITHIN 30 s FROM Check ON Value.?s = Check.?s WITH ?n := ?n
RULE Begun DEFINE {{ dotr_x a :Begun ; :s ?s }} FROM B := ISTREAM Lit WITH ?s := B.?s
"""


def write(folder: Path, count: int, random: Random) -> None:
    """`come-N.jsonl`, as graphs come, in four pieces, and `sorted.jsonl`."""
    rows = []
    for number in range(count):
        time = number // 2
        late = random.randint(1, 60) if random.random() < 0.1 else 0
        subject = random.choice("abc")
        said = random.choice(("value 1", "value 2", "check 1", "state <ex:on>", "state <ex:off>")).split(" ")
        graph = f"<ex:{subject}> <ex:{said[0]}> {said[1]} ."
        rows.append((time + late, number, json.dumps({"time": time, "graph": graph})))
    come = sorted(rows)
    for piece in range(4):
        lines = [row[2] for row in come[piece * count // 4 : (piece + 1) * count // 4]]
        (folder / f"come-{piece}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    in_order = sorted((row for row in come), key=lambda row: json.loads(row[2])["time"])
    (folder / "sorted.jsonl").write_text("\n".join(row[2] for row in in_order) + "\n", encoding="utf-8")


@pytest.fixture
def deployed(dotr: Dotr) -> Dotr:
    Path("quiet.dotr").write_text(RULES.format(wait=10), encoding="utf-8")
    write(Path(), 600, Random(3))
    assert dotr("deploy", "quiet.dotr", "--dir", "state").code == 0
    return dotr


def remaining(dotr: Dotr, changes: str) -> Counter[str]:
    ran = dotr("convert", "--consolidate", changes, "-o", "-", "-q")
    assert ran.code == 0, ran.err
    return Counter(ran.out.splitlines())


def in_order(dotr: Dotr) -> Counter[str]:
    return Counter(dotr("run", "quiet.dotr", "sorted.jsonl", "-q").out.splitlines())


FEED = (
    "feed",
    "--dir",
    "state",
    "--corrections",
    "5min",
    "-o",
    "changes.jsonl",
    "--commit-graphs",
    "20",
)


def test_what_remains_of_feeds_in_pieces_is_the_run_in_order(deployed: Dotr) -> None:
    for piece in range(4):
        ran = deployed(*FEED, f"come-{piece}.jsonl", *(["--keep-open"] if piece < 3 else []))
        assert ran.code == 0, ran.err
    assert "late graphs in" in ran.err
    status = deployed("status", "--dir", "state")
    said = re.search(
        r"\ncorrected +(\d+) late graphs in (\d+) corrections \(\+\d+ −\d+ events,"
        r" ([\d,]+) graphs replayed, ([\d,]+) for each correction\)\n",
        status.out,
    )
    assert said is not None, status.out
    late, many, replayed, each = (int(number.replace(",", "")) for number in said.groups())
    assert replayed // many == each >= late // many
    report = json.loads(deployed("status", "--dir", "state", "--format", "json").out)
    assert report["corrections"]["replayed"] == replayed
    assert report["corrections"]["waiting"] == 0 < report["corrections"]["withdrawn"]
    assert remaining(deployed, "changes.jsonl") == in_order(deployed)
    held = deployed("query", "SELECT ?s WHERE { ?s <ex:state> <ex:on> }", "--dir", "state")
    plain = deployed("deploy", "quiet.dotr", "--dir", "plain")
    plain = deployed("feed", "--dir", "plain", "sorted.jsonl", "-o", "plain.jsonl")
    assert plain.code == 0, plain.err
    same = deployed("query", "SELECT ?s WHERE { ?s <ex:state> <ex:on> }", "--dir", "plain")
    assert (held.code, held.out) == (0, same.out)


def test_what_remains_after_kills_is_the_run_in_order(deployed: Dotr) -> None:
    random = Random(7)
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-m", "dotr.cli.main", *FEED, *(f"come-{piece}.jsonl" for piece in range(4))]
    for _ in range(6):
        with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as feeding:
            sleep(random.uniform(0.3, 1.2))
            feeding.send_signal(signal.SIGKILL)
    ran = deployed(*FEED, *(f"come-{piece}.jsonl" for piece in range(4)))
    assert ran.code == 0, ran.err
    assert remaining(deployed, "changes.jsonl") == in_order(deployed)


def test_a_commit_writes_the_graphs_that_came_since_the_one_before(deployed: Dotr) -> None:
    for piece in range(4):
        assert deployed(*FEED, f"come-{piece}.jsonl", "--keep-open").code == 0
    with closing(sqlite3.connect("state/deployment.db")) as database:
        rows = [content for (content,) in database.execute("SELECT content FROM period")]
    graphs = [sum(len(parts) for _, parts, _ in json.loads(zlib.decompress(row))) for row in rows]
    assert len(graphs) >= 4
    assert max(graphs) < 300 < sum(graphs) <= 600
    with Journal("state", exclusive=False) as journal:
        state = journal.snapshot()
    assert state is not None
    saved = state["corrections"]
    assert (saved["graphs"], len(graphs_of(saved["log"], None))) == (None, sum(graphs))
    assert deployed("deploy", "--dir", "state", "--check-upgrade").code == 0


def test_a_deployment_with_corrections_is_not_fed_without(deployed: Dotr) -> None:
    assert deployed(*FEED, "come-0.jsonl").code == 0
    ran = deployed("feed", "--dir", "state", "come-1.jsonl", "-o", "changes.jsonl")
    assert (ran.code, "D4165" in ran.err) == (2, True), ran.err


def test_other_rules_correct_nothing_of_what_those_before_reported(deployed: Dotr) -> None:
    assert deployed(*FEED, "come-0.jsonl", "come-1.jsonl", "--keep-open").code == 0
    before = Path("changes.jsonl").read_text(encoding="utf-8")
    Path("quiet.dotr").write_text(RULES.format(wait=20), encoding="utf-8")
    assert deployed("deploy", "quiet.dotr", "--dir", "state").code == 0
    ran = deployed(*FEED, "come-2.jsonl", "come-3.jsonl")
    assert ran.code == 0, ran.err
    after = Path("changes.jsonl").read_text(encoding="utf-8")
    assert after.startswith(before)
    last = max(json.loads(line)["time"] for line in before.splitlines())
    new = [json.loads(line) for line in after[len(before) :].splitlines()]
    assert new
    assert all(event["time"] >= last for event in new if event["change"] < 0)


def test_a_cause_says_where_the_late_graph_stands(deployed: Dotr) -> None:
    assert deployed(*FEED, "come-0.jsonl").code == 0
    events = [json.loads(line) for line in Path("changes.jsonl").read_text(encoding="utf-8").splitlines()]
    causes = [cause for event in events for cause in event.get("cause", ())]
    lines = Path("come-0.jsonl").read_text(encoding="utf-8").splitlines()
    assert causes
    for cause in causes:
        name, _, line = cause["place"].partition(":")
        assert name == "come-0.jsonl"
        assert json.loads(lines[int(line.partition(":")[0]) - 1])["time"] == cause["time"]


@pytest.mark.parametrize("output", ["events.parquet", "of-a-package://host/stream"])
def test_outputs_without_a_place_for_signs_are_refused(deployed: Dotr, output: str) -> None:
    ran = deployed("feed", "--dir", "state", "come-0.jsonl", "--corrections", "1h", "-o", output)
    assert (ran.code, "D4165" in ran.err or "D4151" in ran.err) == (2, True), ran.err


def test_messages_are_not_kept_beside(dotr: Dotr) -> None:
    Path("quiet.dotr").write_text(RULES.format(wait=10), encoding="utf-8")
    write(Path(), 8, Random(3))
    assert dotr("deploy", "quiet.dotr", "--dir", "state", "--keep", "1h").code == 0
    ran = dotr(*FEED, "come-0.jsonl")
    assert (ran.code, "D4165" in ran.err) == (2, True), ran.err

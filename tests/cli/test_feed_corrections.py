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
from typing import Any

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


BEATS = """PREFIX : <urn:x:>
QUERY Beat := { SELECT ?who WHERE { ?who :beat ?n } }
RULE Lost DEFINE { dotr_lost a :Lost ; :who ?who } FROM Beat AFTER 10 s AS Due
AND NOT Again := Beat WITHIN 10 s FROM Due ON Again.?who = Beat.?who && Again.time > Beat.time
WITH ?who := Beat.?who
"""


def beat(time: int) -> str:
    return json.dumps({"time": time, "graph": f"<urn:x:pump> <urn:x:beat> {time} ."}) + "\n"


@pytest.fixture
def beating(dotr: Dotr) -> Dotr:
    Path("beats.dotr").write_text(BEATS, encoding="utf-8")
    assert dotr("deploy", "beats.dotr", "--keep", "5s").code == 0
    return dotr


def fed_beats(dotr: Dotr, *times: int) -> list[dict[str, Any]]:
    """What is reported when these are fed, each by itself."""
    known = Path("beats.jsonl").read_text(encoding="utf-8") if Path("beats.jsonl").exists() else ""
    for time in times:
        known += beat(time)
        Path("beats.jsonl").write_text(known, encoding="utf-8")
        ran = dotr("feed", "beats.jsonl", "--corrections", "1min", "-o", "lost.jsonl", "--keep-open")
        assert ran.code == 0, ran.err
    return [json.loads(line) for line in Path("lost.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_withdrawn_event_is_explained_by_its_old_proof_and_what_refutes_it(beating: Dotr) -> None:
    first, gone, *_ = fed_beats(beating, 0, 20, 8, 25, 26)
    assert (first["change"], gone["change"], first["id"]) == (1, -1, gone["id"])
    ran = beating("explain", "--event", first["id"])
    assert ran.code == 1
    assert ran.out == snippet(first["id"])
    found = json.loads(beating("explain", "--event", first["id"], "--format", "json").out)
    assert (found["fired"], found["time"], found["steps"][0]["clause"]) == (False, "10", "NOT")
    assert found["corrections"] == [
        {
            "change": -1,
            "corrected_at": str(gone["corrected_at"]),
            "cause": [{"time": "8", "place": "beats.jsonl:3"}],
        }
    ]
    assert found["now"]["failed"]["clause"] == "NOT"
    (late,) = found["now"]["failed"]["blocked_by"]["because"]
    assert (late["place"], late["late"]) == ("beats.jsonl:3", True)
    assert "invalidatedAtTime" in beating("explain", "--event", first["id"], "--format", "ttl").out
    assert "withdrawn" in beating("explain", "--event", first["id"], "--format", "html").out


def snippet(event: str) -> str:
    return f"""Lost  {event}  @ 10   withdrawn
├─ withdrawn @ 19 by 1 late graph
│  └─ @ 8   beats.jsonl:3
├─ with the late graphs
│  └─ Lost did not fire @ 10
│     ├─ trigger Beat  @ 0   ?who <urn:x:pump>   Due 10 s later, @ 10
│     │  └─ <urn:x:pump> :beat 0   beats.jsonl:1
│     └─ ✗ NOT Again within 10 s from Due ON Again.?who = Beat.?who && Again.time > Beat.time
│        └─ blocked by Again  @ 8   ?who :pump
│           └─ :pump :beat 8   beats.jsonl:3, late
└─ it was reported because of
   └─ Lost  {event}  @ 10   ?who :pump
      ├─ trigger Beat  @ 0   ?who :pump   Due 10 s later, @ 10
      │  └─ :pump :beat 0   (above)
      ├─ NOT Again within 10 s from Due   1 fact in the window, none passes ON
      └─ WITH ?who := Beat.?who = :pump
""".replace("<urn:x:pump>", ":pump")


def test_the_proof_of_an_event_that_a_correction_added_marks_the_late_graph(beating: Dotr) -> None:
    added = fed_beats(beating, 0, 20, 8, 25, 26)[2]
    assert (added["change"], added["time"]) == (1, 18)
    for asked in (("--event", added["id"]), ("--rule", "Lost")):
        ran = beating("explain", *asked)
        assert ran.code == 0
        assert ":pump :beat 8   beats.jsonl:3, late" in ran.out
        assert "added @ 19 by 1 late graph" in ran.out


def test_an_event_that_came_back_has_the_proof_of_today_and_its_history(dotr: Dotr) -> None:
    rules = """PREFIX : <urn:x:>
    QUERY Check := { SELECT ?s WHERE { ?s :check ?n } }
    QUERY Broken := { SELECT ?s WHERE { ?s :off ?n } }
    QUERY Mended := { SELECT ?s WHERE { ?s :on ?n } }
    RULE Stop DEFINE { dotr_x a :Stop ; :s ?s } FROM Broken
    AND NOT Mended WITHIN 5 s FROM Broken ON Mended.?s = Broken.?s WITH ?s := Broken.?s
    RULE Fine DEFINE { dotr_x a :Fine ; :s ?s } FROM Check
    AND NOT Stop WITHIN 20 s FROM Check ON Stop.?s = Check.?s WITH ?s := Check.?s
    """
    Path("fine.dotr").write_text(rules, encoding="utf-8")
    assert dotr("deploy", "fine.dotr", "--keep", "1h").code == 0
    come = [(20, "check"), (30, "check"), (12, "off"), (31, "check"), (10, "on"), (32, "check")]
    text = ""
    for time, what in come:
        text += json.dumps({"time": time, "graph": f"<urn:x:a> <urn:x:{what}> 1 ."}) + "\n"
        Path("in.jsonl").write_text(text, encoding="utf-8")
        assert dotr("feed", "in.jsonl", "--corrections", "1h", "-o", "out.jsonl", "--keep-open").code == 0
    lines = [json.loads(line) for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]
    mine = [line for line in lines if (line["rule"], line["time"]) == ("Fine", 20)]
    assert [line["change"] for line in mine] == [1, -1, 1]
    ran = dotr("explain", "--event", mine[0]["id"])
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0].startswith("Fine  urn:dotr:Fine:")
    assert re.search(r"withdrawn @ \d+ by 1 late graph\n.* @ 12   in.jsonl:3\n", ran.out)
    assert re.search(r"added @ \d+ by 1 late graph\n.* @ 10   in.jsonl:5\n", ran.out)
    found = json.loads(dotr("explain", "--event", mine[0]["id"], "--format", "json").out)
    assert (found["fired"], [one["change"] for one in found["corrections"]]) == (True, [-1, 1])


def test_messages_are_kept_for_the_period_of_corrections_at_least(beating: Dotr) -> None:
    """They are kept for 5 s, and corrections reach back by a minute."""
    lines = fed_beats(beating, 0, 60, 30, 61)
    gone = [line["id"] for line in lines if line["change"] < 0 or line["time"] == 10]
    assert gone
    assert beating("explain", "--event", gone[0]).code in (0, 1)
    fed_beats(beating, *range(100, 1_000, 50))
    with Journal(".dotr", exclusive=False) as journal:
        rows = journal.kept()
    assert 0 < sum(len(row.messages) for row in rows) < 12, "what is older is dropped"
    assert beating("explain").code == 0, "the last event"


def test_what_was_kept_in_order_of_arrival_goes_when_corrections_begin(beating: Dotr) -> None:
    Path("beats.jsonl").write_text(beat(0) + beat(20), encoding="utf-8")
    assert beating("feed", "beats.jsonl", "-o", "plain.jsonl", "--keep-open").code == 0
    with Journal(".dotr", exclusive=False) as journal:
        assert journal.kept_summary() is not None
    lines = fed_beats(beating, 35, 28, 60)
    for line in lines:
        if line["change"] > 0 and line["time"] >= 30:
            ran = beating("explain", "--event", line["id"])
            assert "beats.jsonl" in ran.out or "D4173" in ran.err, ran.err

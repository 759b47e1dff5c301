"""A Java process that ends in the middle of a stream: a diagnostic, no traceback, and the stream goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
RULES = """PREFIX : <urn:x:>
RULE Hot DEFINE { dotr_h a :Hot ; :v ?v } FROM H := { SELECT ?v { ?o :val ?v } } WITH ?v := H.?v
"""


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _java(pid: int) -> list[int]:
    return [child for child in _children(pid) if "java" in Path(f"/proc/{child}/cmdline").read_text()]


@pytest.mark.skipif(not CHILDREN.exists(), reason="finds the Java process in /proc")
def test_java_that_ends_in_a_stream_is_named(tmp_path: Path) -> None:
    (tmp_path / "r.dotr").write_text(RULES)
    log = tmp_path / "log"
    log.mkdir()
    rows = [{"time": i, "graph": f"<urn:o{i}> <urn:x:val> {i} ."} for i in range(10)]
    (log / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["stream", "r.dotr", "--source", "files", "log", "--checkpoint", "state", "--out", "out"]
    running = subprocess.Popen(
        [sys.executable, "-m", "dotr", *command], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    for _ in range(1_800):
        if list(tmp_path.glob("out/*.jsonl")) or running.poll() is not None:
            break
        time.sleep(0.1)
    for java in _java(running.pid):
        os.kill(java, signal.SIGKILL)
    shown = running.communicate(timeout=120)[1]
    assert running.returncode == 4, shown
    assert "error[D4303]: the Spark job failed: its Java process ended" in shown
    assert "Traceback" not in shown
    assert "D4999" not in shown
    again = subprocess.run(
        [sys.executable, "-m", "dotr", *command, "--once"], cwd=tmp_path, capture_output=True, text=True
    )
    assert again.returncode == 0, again.stderr
    events = [line for path in sorted(tmp_path.glob("out/*.jsonl")) for line in path.read_text().splitlines()]
    assert [int(json.loads(event)["bindings"]["v"]["value"]) for event in events] == list(range(10))


API = """
import os, signal, sys
from pathlib import Path
import dotr.spark
from dotr.errors import EngineError

spark = dotr.spark.session("local[1]")
frame = spark.createDataFrame([(1, '<urn:o> <urn:x:val> "1" .')], "time bigint, graph string")
assert dotr.spark.detect(frame, "r.dotr").count() == 1
children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
for child in children:
    if "java" in Path(f"/proc/{child}/cmdline").read_text():
        os.kill(int(child), signal.SIGKILL)
        os.waitpid(int(child), 0)
for call in (lambda: dotr.spark.detect(frame, "r.dotr"), lambda: dotr.spark.write(frame, "log")):
    try:
        call()
    except EngineError as error:
        print(error.diagnostics[0].code)
"""


@pytest.mark.skipif(not CHILDREN.exists(), reason="finds the Java process in /proc")
def test_java_that_has_ended_is_named_by_the_api(tmp_path: Path) -> None:
    (tmp_path / "r.dotr").write_text(RULES)
    ran = subprocess.run(
        [sys.executable, "-c", API], cwd=tmp_path, capture_output=True, text=True, timeout=400, check=False
    )
    assert ran.stdout.split() == ["D4303", "D4303"], ran.stderr
    assert "Traceback" not in ran.stderr

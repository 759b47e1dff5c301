"""Verbs that are stopped by signals: a documented exit code, no traceback, nothing that goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

STOPPED = 130
RULES = """PREFIX : <urn:x:>
RULE Hot DEFINE { dotr_h a :Hot ; :v ?v } FROM H := { SELECT ?v { ?o :val ?v FILTER(?v > 3) } }
WITH ?v := H.?v
RULE Pair DEFINE { dotr_p :n ?n } FROM P := { SELECT ?v { ?o :val ?v } }
AND COUNT(*) AS ?n OVER Q := { SELECT ?v { ?o :val ?v } } WITHIN 9 s FROM P WITH ?n := ?n
"""
SLOW = """PREFIX : <urn:x:>
RULE Far DEFINE { dotr_f a :Far ; :v ?v }
FROM H := { SELECT ?v { ?o :val ?v . ?q :val ?w FILTER(STRLEN(CONCAT(STR(?v), STR(?w))) > 900) } }
WITH ?v := H.?v
"""
"""Every pair of values of an instant."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("r.dotr").write_text(RULES)
    Path("slow.dotr").write_text(SLOW)
    Path("q.rq").write_text("SELECT ?v { ?o <urn:x:val> ?v }")
    with open("long.jsonl", "w") as file:
        for n in range(200_000):
            file.write(f'{{"time":{n},"graph":"<urn:x:o> <urn:x:val> {n % 9} ."}}\n')
    return tmp_path


def started(*arguments: str, **more: object) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "dotr.cli.main", *arguments]
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True, **more)  # type: ignore[call-overload, no-any-return]


def dotr(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command, to its end."""
    return subprocess.run([sys.executable, "-m", "dotr.cli.main", *arguments], capture_output=True, text=True)


def until(holds: Callable[[], object], what: str, seconds: float = 40) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    found: list[int] = []
    for task in Path("/proc").glob("[0-9]*"):
        try:
            stat = (task / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat[1]) == pid and stat[0] != "Z":
            found += [int(task.name), *children(int(task.name))]
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: Iterable[int]) -> bool:
    """Whether all of them end soon after their parent."""
    for _ in range(50):
        if not any(map(alive, pids)):
            return True
        time.sleep(0.1)
    return False


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """A shell may have begun these tests with signals ignored, which children inherit."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGHUP, signal.SIGTERM)}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def settled(process: subprocess.Popen[bytes], seconds: float) -> tuple[int, bytes]:
    """The exit code and what was said, once it has ended; nothing of it may be a traceback."""
    try:
        _, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert b"Traceback" not in err, err
    assert b"Fatal Python error" not in err, err
    assert b"D4999" not in err, err
    return process.returncode, err


COMMANDS = {
    "run": ["run", "r.dotr", "long.jsonl", "-o", "out.jsonl"],
    "run with jobs": ["run", "r.dotr", "long.jsonl", "--jobs", "2", "-o", "out.jsonl"],
    "watch": ["watch", "q.rq", "long.jsonl"],
    "explain": ["explain", "r.dotr", "long.jsonl"],
    "convert": ["convert", "long.jsonl", "-o", "out.nq"],
    "feed": ["feed", "long.jsonl", "-o", "out.jsonl", "--dir", "site"],
    "batch": ["batch", "r.dotr", "long.jsonl", "--engine", "local", "--slice", "1h", "--out", "folder"],
}
SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"]


@pytest.fixture
def running(here: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Starts a command, and waits until it has come to its work."""
    begun: list[subprocess.Popen[bytes]] = []

    def start(name: str) -> subprocess.Popen[bytes]:
        if name == "feed":
            assert dotr("deploy", "r.dotr", "--dir", "site").returncode == 0
        begun.append(started(*COMMANDS[name], stdin=subprocess.DEVNULL))
        busy = {"batch": 2.5, "convert": 0.5}.get(name, 2.0)
        until(lambda: cpu(begun[-1].pid) > busy or begun[-1].poll() is not None, f"{name} does not begin")
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()


def cpu(pid: int) -> float:
    """Seconds of a process and those it has started."""
    total = 0.0
    for one in (pid, *children(pid)):
        try:
            stat = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    return total


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("name", ["run", "run with jobs", "watch", "explain", "convert", "feed", "batch"])
@pytest.mark.parametrize("number", SIGNALS)
def test_whoever_is_stopped_says_so_and_leaves_no_process_behind(
    running: Callable[[str], subprocess.Popen[bytes]], name: str, number: str
) -> None:
    process = running(name)
    assert process.poll() is None, process.communicate()
    below = children(process.pid)
    assert bool(below) == (name in ("run with jobs", "batch"))
    process.send_signal(getattr(signal, number))
    code, err = settled(process, 15)
    assert code == STOPPED, err
    assert err.rstrip().endswith(b"stopped")
    assert gone(below)
    assert not Path("folder.part").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("name", ["run with jobs", "batch"])
def test_processes_end_with_the_one_that_was_killed(
    running: Callable[[str], subprocess.Popen[bytes]], name: str
) -> None:
    process = running(name)
    below = children(process.pid)
    assert below
    process.kill()
    _, err = process.communicate()
    until(lambda: not any(map(alive, below)), "processes live on", 10)
    assert b"Fatal Python error" not in err
    assert b"Traceback" not in err


@pytest.mark.parametrize("number", SIGNALS)
def test_a_feed_ends_in_the_middle_of_an_instant_and_the_next_one_does_it_again(
    here: Path, number: str
) -> None:
    Path("before.jsonl").write_text('{"time":1,"graph":"<urn:x:o> <urn:x:val> 1 ."}\n')
    graph = " ".join(f"<urn:x:o{n}> <urn:x:val> {n} ." for n in range(3_000))
    Path("heavy.jsonl").write_text(json.dumps({"time": 2, "graph": graph}) + '\n{"time":3,"graph":""}\n')
    assert dotr("deploy", "slow.dotr", "--dir", "site").returncode == 0
    fed = ("feed", "before.jsonl", "heavy.jsonl", "-o", "out.jsonl", "--dir", "site", "--commit-graphs", "1",
           "--budget", "100m")  # fmt: skip
    process = started(*fed)
    until(lambda: cpu(process.pid) > 3, "the feed does not begin")
    assert process.poll() is None, process.communicate()
    begun = time.monotonic()
    process.send_signal(getattr(signal, number))
    code, err = settled(process, 60)
    assert code == STOPPED, err
    assert time.monotonic() - begun < 15
    status = dotr("status", "--dir", "site", "--format", "json")
    assert (status.returncode, json.loads(status.stdout)["latest"]) == (0, 1)

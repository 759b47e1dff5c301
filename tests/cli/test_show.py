"""What a human reads on standard error: colour where it is wanted, the progress bar, funnels in summaries."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from dotr.cli import show
from dotr.cli.show import funnel_lines
from dotr.errors import Diagnostic, Severity
from dotr.io.graphs import ReadSoFar
from dotr.io.sources import Sources
from dotr.lang import parse_program
from tests.batch.test_local import Serial
from tests.cli.conftest import Dotr, folder

RULE = "RULE R DEFINE { dotr_x a <urn:R> } FROM S := { SELECT ?x { ?x <urn:b> ?y } }"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "terminal", "pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_the_terminal_and_the_environment_decide(
    environment: dict[str, str], terminal: bool, pipe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    for name in {"NO_COLOR", "FORCE_COLOR"} - environment.keys():
        monkeypatch.delenv(name, raising=False)
    assert (show.coloured(Terminal()), show.coloured(io.StringIO())) == (terminal, pipe)


def test_the_text_of_a_diagnostic_is_the_same_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    one = Diagnostic("D2512", "never `true`", severity=Severity.WARNING, hint="look", notes=("so",))
    monkeypatch.setenv("FORCE_COLOR", "1")
    painted = show.painted(one)
    assert painted.startswith("\x1b[1;33mwarning\x1b[0m")
    assert "\x1b[1;32m = hint:\x1b[0m look" in painted
    monkeypatch.setenv("NO_COLOR", "1")
    plain = show.painted(one)
    for code in ("\x1b[1;33m", "\x1b[1;32m", "\x1b[1m", "\x1b[0m"):
        painted = painted.replace(code, "")
    assert painted == plain == one.render()


def test_check_paints_what_it_finds_when_asked(dotr: Dotr, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("wrong.dotr").write_text("RULE R DEFINE {} FROM Nothing", encoding="utf-8")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;31merror\x1b[0m" in dotr("check", "wrong.dotr").out
    monkeypatch.delenv("FORCE_COLOR")
    assert "\x1b" not in dotr("check", "wrong.dotr").out


def test_a_reason_that_does_not_fit_stands_below() -> None:
    program = parse_program(RULE)
    why = Diagnostic("D2517", "nothing matches `?x <urn:b> ?y` in query `R.S`")
    wide = funnel_lines(program, {}, {"R": [("S", 0)]}, {"R.S": 0}, [why])
    assert wide == ["  R  0   S 0   query R.S: 0 facts; nothing matches `?x <urn:b> ?y`"]
    narrow = funnel_lines(program, {}, {"R": [("S", 0)]}, {"R.S": 0}, [why], width=40)
    assert narrow == [
        "  R  0   S 0",
        "         query R.S: 0 facts; nothing matches `?x <urn:b> ?y`",
    ]


__all__ = ["folder"]

GRAPHS = 30_000
RULES = """PREFIX : <urn:>
BACKGROUND <background.nt>
QUERY Q := { SELECT ?v WHERE { ?o :v ?v } }
RULE R DEFINE { dotr_x a :R } FROM Q WHERE Q.?v > 29990
"""


@pytest.fixture
def log(folder: Path) -> Path:
    graphs = ({"time": n, "graph": f"<urn:o{n}> <urn:v> {n} ."} for n in range(GRAPHS))
    (folder / "log.jsonl").write_text("".join(f"{json.dumps(graph)}\n" for graph in graphs))
    (folder / "rules.dotr").write_text(RULES)
    (folder / "background.nt").write_text("".join(f"<urn:a{n}> <urn:p> <urn:b> .\n" for n in range(200_000)))
    return folder


def on_a_terminal(*arguments: str, columns: int = 100) -> tuple[int, str]:
    """Exit code, and all that came to a terminal that is standard error."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-m", "dotr", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**environment, "TERM": "xterm"},
    ) as ran:
        os.close(theirs)
        reported = b""
        end = time.monotonic() + 300
        while time.monotonic() < end:
            if not select.select([ours], [], [], 1)[0]:
                continue
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            if not piece:
                break
            reported += piece
        os.close(ours)
        return ran.wait(30), reported.decode(errors="replace")


def plain(reported: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", reported)


BAR = r"\d+% [\d,]+ graphs · [\d,]+/s · at \d+"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "rules.dotr", "log.jsonl", "-o", "out.jsonl"], BAR + r" · \d+ events · [\d:-]+ left"),
        (["convert", "log.jsonl", "-o", "out.nq"], BAR + r" · [\d:-]+ left"),
        (["batch", "rules.dotr", "log.jsonl", "--engine", "local", "--out", "out"], r"\w+: \d+/\d+ tasks"),
        (["deploy", "rules.dotr", "--dir", "d"], r"read the background … 0:00:0\d"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_long_work_shows_how_far_it_is(log: Path, arguments: list[str], words: str) -> None:
    code, reported = on_a_terminal(*arguments)
    assert code == 0, reported
    assert re.search(words, plain(reported)), reported[:3000]


def test_a_feed_shows_how_far_it_is(log: Path) -> None:
    assert on_a_terminal("deploy", "rules.dotr", "--dir", "d")[0] == 0
    code, reported = on_a_terminal("feed", "log.jsonl", "--dir", "d", "-o", "out.jsonl")
    assert code == 0, reported
    assert re.search(BAR + r" · \d+ events · [\d:-]+ left", plain(reported)), reported[:3000]


def test_a_narrow_terminal_has_one_line_of_it(log: Path) -> None:
    _, reported = on_a_terminal("convert", "log.jsonl", "-o", "out.nq", columns=40)
    drawn = [line for line in plain(reported).split("\r") if "graphs ·" in line]
    assert drawn
    assert all(len(line.rstrip("\n")) <= 40 for line in drawn)


def test_nothing_is_drawn_where_nobody_looks(log: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dotr", "convert", "log.jsonl", "-o", "out.nq"],
        capture_output=True,
        check=True,
    )
    assert b"\x1b" not in done.stderr
    assert b"%" not in done.stderr
    assert "%" not in plain(on_a_terminal("convert", "log.jsonl", "-o", "b.nq", "--quiet")[1])


def test_bytes_behind_grow_to_the_whole(log: Path) -> None:
    (log / "0.ttl").write_text("<urn:a> <urn:v> 1 .")
    files = [str(log / "0.ttl"), str(log / "log.jsonl")]
    behind = ReadSoFar(files)
    done = [0]
    for item in Sources(files).items():
        behind.passed(item)
        done.append(behind.done)
    assert done == sorted(done)
    assert done[-1] == behind.total == sum(os.path.getsize(file) for file in files)
    assert ReadSoFar(["-"]).total is None


LINE = "  Fire  0   Smoke 1 → LAST HighTemp 0   query Fire.HighTemp: 0 facts"


@pytest.fixture
def cold(folder: Path) -> Path:
    """The paper's example with a temperature that is no reason for an alarm."""
    (folder / "events" / "10.ttl").write_text(
        (folder / "events" / "10.ttl").read_text(encoding="utf-8").replace("70", "20"), encoding="utf-8"
    )
    return folder


def test_a_run_without_events_says_how_far_it_came_and_why(cold: Path, dotr: Dotr) -> None:
    done = dotr("run", "fire.dotr", "events")
    assert "fire.dotr: 2 graphs, 10 – 12\n" in done.err
    assert LINE in done.err


def test_a_run_with_events_shows_its_funnels_when_asked(folder: Path, dotr: Dotr) -> None:
    assert "→" not in dotr("run", "fire.dotr", "events").err
    assert "  Fire  1   Smoke 1 → LAST HighTemp 1\n" in dotr("run", "fire.dotr", "events", "-v").err
    assert "→" not in dotr("run", "fire.dotr", "events", "-v", "-q").err


def test_a_summary_as_json_is_the_last_line_of_standard_error(folder: Path, dotr: Dotr) -> None:
    reported = json.loads(dotr("run", "fire.dotr", "events", "--summary", "json").err.splitlines()[-1])
    assert (reported["graphs"], reported["first"], reported["last"]) == (2, 10, 12)
    assert reported["queries"] == {"Fire.Smoke": 1, "Fire.HighTemp": 1}
    (rule,) = reported["rules"]
    assert rule["funnel"] == [{"step": "Smoke", "count": 1}, {"step": "LAST HighTemp", "count": 1}]
    assert rule["events"] == 1


def test_a_deployment_counts_across_feeds(cold: Path, dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    dotr("feed", "events/10.ttl")
    assert LINE in dotr("feed", "events/12.ttl").err
    assert LINE in dotr("status").out
    (rule,) = json.loads(dotr("status", "--format", "json").out)["rules"]
    assert rule["funnel"] == [{"step": "Smoke", "count": 1}, {"step": "LAST HighTemp", "count": 0}]
    reported = json.loads(dotr("feed", "events/12.ttl", "--summary", "json").err.splitlines()[-1])
    assert (reported["graphs"], reported["rules"][0]["funnel"]) == (0, rule["funnel"])


def test_a_batch_has_the_funnel_of_a_run(cold: Path, dotr: Dotr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.batch.local._pool", Serial)
    batch = ("batch", "fire.dotr", "events", "--engine", "local")
    assert LINE in dotr(*batch, "--out", "out").err
    reported = json.loads(dotr(*batch, "--out", "again", "--summary", "json").err.splitlines()[-1])
    run = json.loads(dotr("run", "fire.dotr", "events", "--summary", "json").err.splitlines()[-1])
    assert reported["rules"] == run["rules"]
    written = json.loads((cold / "out" / "_dotr_run.json").read_text("utf-8"))
    assert written["funnel"]["Fire"] == [["Smoke", 1], ["LAST HighTemp", 0]]

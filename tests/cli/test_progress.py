"""The progress bar of long work: on a terminal, and nowhere else."""

from __future__ import annotations

import fcntl
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

from dotr.io.files.read_so_far import ReadSoFar
from dotr.io.files.sources import Sources
from tests.cli.conftest import folder

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
        end = time.monotonic() + 120
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

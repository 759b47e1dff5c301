"""The command itself: help, version, exit codes, quick start, the demo."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from dotr import __version__
from dotr.cli.main import VERBS, exit_code, group
from dotr.errors import DataError, Diagnostic, EngineError, ProgramError, RefusedError, UsageError
from tests.cli.conftest import Dotr


def test_version_and_help(dotr: Dotr) -> None:
    assert dotr("--version").out == f"dotr {__version__}\n"
    ran = dotr("--help")
    assert ran.code == 0
    for verb in ("demo", "run", "query"):
        assert VERBS[verb] in " ".join(ran.out.split())


def test_help_loads_no_engine() -> None:
    code = "import sys; from dotr.cli.main import run; run(['--help']); print('pyoxigraph' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("False\n")


@pytest.mark.parametrize("verb", ["run", "query", "demo", "deploy", "feed", "status", "undeploy"])
def test_every_verb_has_help(dotr: Dotr, verb: str) -> None:
    assert dotr(verb, "--help").code == 0


def test_a_mistyped_verb_gets_a_suggestion(dotr: Dotr) -> None:
    assert "Did you mean `query`" in dotr("qurey").err


def test_exit_codes_follow_who_can_mend_the_error() -> None:
    one = Diagnostic("D1", "x")
    found = [
        exit_code(kind(one)) for kind in (ProgramError, DataError, UsageError, EngineError, RefusedError)
    ]
    assert found == [3, 3, 2, 4, 5]


def test_a_fault_of_ours_is_no_traceback(dotr: Dotr, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("inside")

    monkeypatch.setattr(group, "invoke", broken)
    ran = dotr("run", "fire.dotr", "events")
    assert ran.code == 4
    assert "this is a bug" in ran.err
    assert "Traceback" not in ran.err


def test_the_demo_ends_with_composite_events_and_what_to_try(dotr: Dotr) -> None:
    ran = dotr("demo")
    assert ran.code == 0
    assert " a :Fire ;" in ran.out
    assert all(line.startswith("{ urn:dotr:") for line in ran.out.splitlines())
    assert "Try next" in ran.err


def test_the_demo_can_be_taken_along(dotr: Dotr) -> None:
    assert dotr("demo", "--copy", "mine").code == 0
    assert Path("mine/building.dotr").is_file()
    assert dotr("run", "mine/building.dotr", "mine/morning.ttl", "-q").out
    assert dotr("demo", "--copy", "mine").code == 5


def test_ctrl_c_inside_of_an_import_ends_with_130_too(folder: Path) -> None:
    """What dataclasses and named tuples execute as text would turn the code into death by the signal."""
    (folder / "interrupted.py").write_text(
        "import dotr.cli.main as m\n"
        "m.group.main = lambda *_, **__: exec('raise KeyboardInterrupt')\n"
        "m.main(['doctor'])\n"
    )
    command = [sys.executable, "-m", "interrupted"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (130, "dotr: stopped\n")


def test_ctrl_c_ends_in_order_with_130(folder: Path) -> None:
    command = [sys.executable, "-m", "dotr.cli.main", "run", "fire.dotr", "-", "-o", "found.jsonl"]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.default_int_handler
        ),  # who runs us may ignore it
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"time":1,"graph":""}\n')
        process.stdin.flush()
        until = time.monotonic() + 60
        while not list(folder.glob("found.jsonl*")) and time.monotonic() < until:
            time.sleep(0.02)  # the output is opened when the rules are loaded and reading begins
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in err


def test_memory_that_runs_out_is_reported_as_that(dotr: Dotr, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> NoReturn:
        raise MemoryError

    monkeypatch.setattr("dotr.lang.load_program", exhausted)
    ran = dotr("run", "fire.dotr", "events")
    assert ran.code == 4
    assert "error[D4204]: memory ran out" in ran.err
    assert "Traceback" not in ran.err

"""Standard streams that are full, closed, or of another encoding, as a shell hands them over."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dotr.cli.process import cannot_be_written

DOTR = f"{sys.executable} -m dotr"
VERBS = (
    "--help",
    "--version",
    "check fire.dotr none.dotr",
    "check --explain D1310",
    "plan fire.dotr",
    "run fire.dotr events",
    "run fire.dotr events --format text",
    "query fire.dotr ask.rq",
    "fmt --stdout fire.dotr",
    "demo",
)


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A command line in an environment of PATH and HOME alone."""
    bare = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environment}
    return subprocess.run(["bash", "-c", command], env=bare, capture_output=True, check=False, timeout=60)


@pytest.fixture
def asked(folder: Path) -> Path:
    (folder / "ask.rq").write_text("SELECT ?s WHERE { ?s ?p ?o }")
    return folder


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("asked")
def test_a_full_disk_is_no_fault_of_ours(verb: str, unbuffered: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    ran = shell(f"{DOTR} {verb} >/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert ran.returncode == 4
    assert ran.stderr.count(b"D4201") == 1
    assert b"Exception ignored" not in ran.stderr


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("asked")
def test_a_closed_output_is_reported(verb: str) -> None:
    ran = shell(f"{DOTR} {verb} >&-")
    assert ran.returncode == 4
    assert ran.stderr.count(b"D4201") == 1
    assert b"Traceback" not in ran.stderr


@pytest.mark.usefixtures("folder")
def test_a_closed_output_is_of_no_matter_where_nothing_goes_there() -> None:
    ran = shell(f"{DOTR} run fire.dotr events -o out.jsonl -q >&-")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert Path("out.jsonl").read_bytes().count(b"\n") == 1


@pytest.mark.usefixtures("folder")
def test_what_is_said_to_a_closed_standard_error_is_not_taken_for_data() -> None:
    ran = shell(f"{DOTR} run fire.dotr events 2>&-")
    assert ran.returncode == 0
    assert ran.stdout.count(b"\n") == 1
    assert shell(f"{DOTR} run fire.dotr none 2>&-").returncode == 3
    assert shell(f"{DOTR} run fire.dotr none >&- 2>&-").returncode == 3
    assert shell(f"{DOTR} run fire.dotr none 2>/dev/full").returncode == 3


@pytest.mark.usefixtures("folder")
def test_a_closed_input_cannot_be_read() -> None:
    for command in ("run fire.dotr -", "query fire.dotr -", "fmt -"):
        ran = shell(f"{DOTR} {command} <&-")
        assert ran.returncode == 3, command
        assert b"D2003" in ran.stderr


@pytest.mark.usefixtures("folder")
def test_findings_are_utf_8_in_every_locale() -> None:
    Path("näme.dotr").write_text("RULE Fire → é")
    for environment in ({"PYTHONIOENCODING": "ascii"}, {"LANG": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}):
        ran = shell(f"{DOTR} check *.dotr", **environment)
        assert ran.returncode == 1
        assert "é".encode() in ran.stdout


def test_an_output_that_is_full_and_a_file_that_is_not_there() -> None:
    assert cannot_be_written(OSError(errno.ENOSPC, "full"))
    assert not cannot_be_written(OSError(errno.ENOSPC, "full", "a.txt"))
    assert not cannot_be_written(OSError(errno.ENOENT, "none"))
    assert not cannot_be_written(ValueError())

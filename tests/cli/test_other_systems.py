"""What needs POSIX is imported where it is used: other commands work on a system without its modules.

Method:  a process of its own in which these modules cannot be imported, signals of POSIX are not there, and
         the encoding of the console is that of an old one of Windows.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FIRE = Path(__file__).resolve().parents[2] / "examples" / "fire"

ELSEWHERE = """
import os, signal, sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

import email, random, socket, subprocess, tempfile  # the library's own, which know the system

sys.meta_path.insert(0, Without())
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules.pop(name, None)
for name in ("SIGHUP", "SIGKILL", "SIGALRM", "SIGUSR1", "SIGWINCH", "SIGQUIT"):
    delattr(signal, name)
for name in ("fork", "forkpty", "mkfifo", "geteuid", "getuid", "killpg", "sysconf", "statvfs"):
    delattr(os, name)
from dotr.cli.main import main
main(sys.argv[1:])
"""


def elsewhere(*arguments: object, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", ELSEWHERE, *map(str, arguments)],
        cwd=folder, capture_output=True, timeout=120, env={**os.environ, "PYTHONIOENCODING": "cp437"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", FIRE / "fire.dotr"),
        ("plan", FIRE / "fire.dotr"),
        ("test", FIRE / "fire.test.yaml"),
        ("doctor",),
        ("serve", "--help"),
        ("lsp", "--help"),
        ("kb", "shell", "--help"),
        ("show", FIRE / "fire.dotr", FIRE / "events", "-o", "page.html"),
        ("batch", FIRE / "fire.dotr", FIRE / "events", "--out", "found", "--engine", "local"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_works_without_posix(arguments: tuple[object, ...], tmp_path: Path) -> None:
    done = elsewhere(*arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr.decode()


def test_events_are_utf_8_whatever_the_console_is(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(
        '{"time": 1, "graph": "<urn:x> <urn:says> \\"čaj\\" ."}\n', "utf-8"
    )
    (tmp_path / "said.dotr").write_text(
        "RULE Said DEFINE { dotr_s a <urn:Said> ; <urn:what> ?w }\n"
        "FROM Word := { SELECT ?w WHERE { ?x <urn:says> ?w } } WITH ?w := Word.?w\n",
        "utf-8",
    )
    done = elsewhere("run", "said.dotr", "events.jsonl", folder=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert "čaj" in done.stdout.decode("utf-8")


def test_a_deployment_is_fed_without_posix(tmp_path: Path) -> None:
    assert elsewhere("deploy", FIRE / "fire.dotr", "--dir", "here", folder=tmp_path).returncode == 0
    done = elsewhere("feed", FIRE / "events", "--dir", "here", folder=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert b'"rule":"Fire"' in done.stdout


def test_a_server_can_be_made_without_posix(tmp_path: Path) -> None:
    text = ELSEWHERE.replace("from dotr.cli.main import main\nmain(sys.argv[1:])", (
        "from dotr.serve.server import _connections\nprint(*_connections())"
    ))  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    connections, burst = map(int, done.stdout.split())
    assert connections > burst > 0

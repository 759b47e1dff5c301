"""Pipes with a name where a file is needed: refused, for opening one waits until somebody writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dotr.errors import DataError
from dotr.io.decode.documents import is_named_pipe
from dotr.io.rules_and_background import read_background, read_rules_text


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    for name in ("pipe.dotr", "pipe.ttl"):
        os.mkfifo(name)
    return str(tmp_path)


def test_a_rule_file_and_a_background_are_files(pipe: str) -> None:
    with pytest.raises(OSError, match="is a pipe"):
        read_rules_text("pipe.dotr")
    with pytest.raises(DataError, match="D2003"):
        read_background(["pipe.ttl"])
    assert not is_named_pipe(pipe)
    assert not is_named_pipe("nowhere")


@pytest.mark.parametrize(
    ("rules", "code"),
    [("IMPORT <pipe.dotr>", "D1000"), ("RULES <pipe.dotr>", "D1"), ("BACKGROUND <pipe.ttl>", "D2003")],
)
def test_what_a_program_names_is_no_pipe(pipe: str, rules: str, code: str) -> None:
    rule = "RULE R DEFINE { dotr_r a :R } FROM Q := { SELECT ?x { ?x a :T } }"
    Path("a.dotr").write_text(f"PREFIX : <urn:x:>\n{rules}\n{rule}\n")
    Path("s.jsonl").write_text('{"time":1,"graph":""}\n')
    command = [sys.executable, "-m", "dotr", "run", "a.dotr", "s.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, f"[{code}" in done.stderr) == (3, True), done.stderr
    assert "Errno" not in done.stderr
    assert code != "D1000" or "`pipe.dotr` is a pipe; a file is needed" in done.stderr


def test_what_a_shell_makes_of_a_process_is_read(pipe: str) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"PREFIX : <urn:x:>\n")
    os.close(writing)
    assert read_rules_text(f"/dev/fd/{reading}") == "PREFIX : <urn:x:>\n"
    os.close(reading)

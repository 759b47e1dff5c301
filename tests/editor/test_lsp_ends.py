"""A language server that is stopped, or hears what no editor says: it ends, or goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")


def message(content: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **content}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def started() -> subprocess.Popen[bytes]:
    """A server that has answered, and whose standard input is open."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-m", "dotr", "lsp"], stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    params = {"processId": None, "rootUri": None, "capabilities": {}}
    process.stdin.write(message({"id": 1, "method": "initialize", "params": params}))
    process.stdin.flush()
    assert answer(process)["id"] == 1
    return process


def answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    size = 0
    while line := process.stdout.readline().strip():
        if line.lower().startswith(b"content-length:"):
            size = int(line.partition(b":")[2])
    found: dict[str, Any] = json.loads(process.stdout.read(size))
    return found


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_it_though_the_editor_says_nothing(number: str) -> None:
    with started() as process:
        process.send_signal(getattr(signal, number))
        assert process.wait(timeout=20) == 130
        assert process.stderr is not None
        assert process.stderr.read().strip() == b"dotr: stopped"


@pytest.mark.parametrize("size", [b"99999999999", b"99999999999999999999"])
def test_a_message_of_any_length_is_refused_before_it_is_read(size: bytes) -> None:
    with started() as process:
        assert process.stdin is not None
        process.stdin.write(b"Content-Length: " + size + b"\r\n\r\n{}")
        process.stdin.flush()
        assert process.wait(timeout=20) == 3
        assert process.stderr is not None
        assert b"[D2006]" in process.stderr.read()


def test_an_import_of_a_pipe_is_reported(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.dotr")
    os.mkfifo(tmp_path / "pipe.dlog")
    text = "PREFIX : <urn:x:>\nIMPORT <pipe.dotr>\nRULES <pipe.dlog>\n"
    uri = (tmp_path / "a.dotr").as_uri()
    document = {"uri": uri, "languageId": "dotr", "version": 1, "text": text}
    with started() as process:
        assert process.stdin is not None
        opened = {"method": "textDocument/didOpen", "params": {"textDocument": document}}
        process.stdin.write(message({"method": "initialized", "params": {}}) + message(opened))
        process.stdin.flush()
        while (found := answer(process)).get("method") != "textDocument/publishDiagnostics":
            pass
        process.kill()
    assert [one["code"] for one in found["params"]["diagnostics"]] == ["D1000", "D1000"]

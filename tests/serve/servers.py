"""A server in a process of its own, and a client of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

RULES = """PREFIX : <urn:x:>
RULE Fire
DEFINE { dotr_f a :Fire ; :in ?room ; :peak ?v }
FROM Smoke := { SELECT ?room { ?o a :Smoke ; :room ?room } }
AND LAST Hot := { SELECT ?room ?v { ?o :celsius ?v ; :room ?room FILTER(?v > 60) } }
    WITHIN 20 s FROM Smoke ON Hot.?room = Smoke.?room
WITH ?room := Smoke.?room, ?v := Hot.?v
"""

LINES = {"content-type": "application/x-ndjson"}


class Server:
    """Owns the process. `url`: where it is; `log`: the lines it wrote."""

    def __init__(self, folder: Path, rules: Sequence[str] = ("rules.dotr",), *more: str) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "dotr.cli.main", "serve", *rules, "--listen", "127.0.0.1:0", *more]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            command, cwd=folder, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.log: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))
            if "dotr serves" in line:  # sources and outputs have addresses, too
                break
        else:
            raise AssertionError("\n".join(self.log))
        self.url = "http://" + line.strip().rpartition("http://")[2].split('"')[0]
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))

    def post(self, lines: Sequence[str], stream: str = "input", **query: str) -> httpx.Response:
        """Post JSON lines."""
        content = "".join(f"{line}\n" for line in lines)
        return self.client.post(f"/v1/streams/{stream}", content=content, params=query, headers=LINES)

    def events(self, **query: str) -> list[dict[str, object]]:
        """All events, page by page."""
        found: list[dict[str, object]] = []
        after: str | None = f"/v1/events?after=0&{httpx.QueryParams(query)}"
        while after is not None:
            page = self.client.get(after).json()
            found += page["events"]
            after = page["next"]
        return found

    def said(self, text: str, seconds: float = 10) -> None:
        """Wait for a line of the log that has this."""
        until = time.monotonic() + seconds
        while not any(text in line for line in self.log):
            assert time.monotonic() < until, self.log
            time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self._ended()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it in good order; its exit code."""
        self.process.send_signal(number)
        return self._ended()

    def _ended(self) -> int:
        self.client.close()
        code = self.process.wait(20)
        self._reader.join(5)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@contextmanager
def serving(folder: Path, rules: str = RULES, *more: str) -> Iterator[Server]:
    """A server of some rules."""
    folder.mkdir(exist_ok=True)
    (folder / "rules.dotr").write_text(rules)
    server = Server(folder, ("rules.dotr",), *more)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            assert server.stop() == 0, server.log
        assert not any("Traceback" in line for line in server.log), server.log


def hot(time: int, room: str = "a", value: int = 70) -> str:
    """A line: a room is so hot."""
    graph = f"[] <urn:x:celsius> {value} ; <urn:x:room> <urn:x:{room}> ."
    return json.dumps({"time": time, "graph": graph})


def smoke(time: int, room: str = "a") -> str:
    """A line: there is smoke in a room."""
    return json.dumps({"time": time, "graph": f"[] a <urn:x:Smoke> ; <urn:x:room> <urn:x:{room}> ."})

"""A server is killed at any moment, and its readers get the events of one run: in order, each once.

DOTR_KILLS=50 asks for so many kills; without it there are a few.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from .servers import LINES, RULES, Server, hot, smoke

KILLS = int(os.environ.get("DOTR_KILLS", "6"))

PHASES = ("posts", "posts", "rules", "start", "reader")
"""What is going on when the server is killed; posts come all the time."""

GIVE_UP = 30.0
"""Seconds after which whoever waits for the server fails."""


class Deployment:
    """Owns a folder whose server is killed and started again, and says where it is now."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)  # moments of kills
        (folder / "rules.dotr").write_text(RULES)
        (folder / "dotr.yaml").write_text(
            "rules: [rules.dotr]\noutputs: {log: {file: log.jsonl}}\nsources: {input: {http: {}}}\n"
        )
        self.server: Server | None = None
        self.ended = threading.Event()
        self.failures: list[BaseException] = []
        self.client = httpx.Client(timeout=20, trust_env=False, verify=False)  # noqa: S501  # no TLS
        self.log: list[str] = []

    @property
    def url(self) -> str:
        """Of the server that was started last; it may be dead."""
        server = self.server
        return "http://127.0.0.1:9" if server is None else server.url

    def start(self) -> None:
        self.server = Server(self.folder, ())

    def kill(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.log += self.server.log

    def kill_at_start(self) -> None:
        """Kill one that has perhaps not come so far as to listen."""
        command = [sys.executable, "-m", "dotr.cli.main", "serve", "--listen", "127.0.0.1:0"]
        one = subprocess.Popen(command, cwd=self.folder, stderr=subprocess.DEVNULL)
        time.sleep(self.random.uniform(0.2, 1.0))
        one.kill()
        one.wait()

    def thread(self, work: Callable[[], None]) -> threading.Thread:
        """Something that goes on beside; what it raises is kept."""

        def run() -> None:
            try:
                work()
            except BaseException as error:
                self.failures.append(error)

        made = threading.Thread(target=run, daemon=True)
        made.start()
        return made


class Poster:
    """Owns the lines that were posted, each document with a key until it is accepted."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.lines = deployment, [hot(0)]
        self.documents = self.repeated = 0
        self.random = random.Random(1)  # what is posted

    def run(self) -> None:
        """Post until the end is asked for."""
        self._post(list(self.lines))
        at = 1
        while not self.deployment.ended.is_set():
            made = []
            for _ in range(self.random.randint(1, 30)):
                at += self.random.choice((0, 1, 1, 2))
                room = self.random.choice("abc")
                made.append(smoke(at, room) if self.random.random() < 0.5 else hot(at, room, 55 + at % 20))
            self._post(made)
            self.lines += made
            time.sleep(0.003)
        self.last = at

    def _post(self, lines: list[str]) -> None:
        self.documents += 1
        content = "".join(f"{line}\n" for line in lines)
        headers = {**LINES, "idempotency-key": f"document {self.documents}"}
        until = time.monotonic() + GIVE_UP
        while True:
            try:
                url = f"{self.deployment.url}/v1/streams/input"
                answer = self.deployment.client.post(url, content=content, headers=headers)
                assert answer.status_code == 202, answer.text
                self.repeated += answer.json()["duplicate"]
                return
            except httpx.TransportError:
                assert time.monotonic() < until, "the server does not come back"
                time.sleep(0.02)


class Reader:
    """Owns what a browser's EventSource would have: the events of a stream, and the id of the last one."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.ids, self.events = deployment, [0], [""]
        self.connected = 0

    def run(self) -> None:
        """Read until the end is asked for; come back with the last id after each loss."""
        while not self.deployment.ended.is_set():
            headers = {"accept": "text/event-stream", "last-event-id": str(self.ids[-1])}
            try:
                url = f"{self.deployment.url}/v1/events"
                with self.deployment.client.stream("GET", url, headers=headers) as answer:
                    assert answer.status_code == 200
                    self.connected += 1
                    self._read(answer)
            except httpx.TransportError:
                time.sleep(0.02)

    def _read(self, answer: httpx.Response) -> None:
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            if self.deployment.ended.is_set():
                return
            if line.startswith(":"):
                continue
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                self.ids.append(int(fields["id"]))
                self.events.append(fields["data"])
                fields = {}


def _change_rules(deployment: Deployment) -> None:
    """Other text, the same rules: what is remembered stays."""
    changed = f"# {deployment.random.random()}\n{RULES}"

    def put() -> None:
        try:
            url = f"{deployment.url}/v1/rules?name=rules.dotr"
            answer = deployment.client.put(url, content=changed)
            assert answer.status_code in (200, 503), answer.text
        except httpx.TransportError:
            pass

    putting = deployment.thread(put)
    time.sleep(deployment.random.uniform(0, 0.08))
    deployment.kill()
    putting.join()


def _kill_in(phase: str, deployment: Deployment) -> None:
    deployment.start()
    time.sleep(deployment.random.uniform(0, 0.6))
    if phase == "rules":
        _change_rules(deployment)
    else:
        deployment.kill()
    if phase == "start":
        for _ in range(2):
            deployment.kill_at_start()


def test_kills_lose_repeat_and_reorder_nothing(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, seed=37)
    poster, reader = Poster(deployment), Reader(deployment)
    deployment.start()
    threads = [deployment.thread(poster.run), deployment.thread(reader.run)]
    time.sleep(0.3)
    deployment.kill()
    for number in range(KILLS - 1):
        _kill_in(PHASES[number % len(PHASES)], deployment)
        assert not deployment.failures, deployment.failures
    deployment.start()
    server = deployment.server
    assert server is not None
    time.sleep(0.3)
    deployment.ended.set()
    threads[0].join(GIVE_UP)
    assert not deployment.failures, deployment.failures
    server.post([hot(poster.last)], wait="committed")
    assert server.client.post(f"/v1/advance?to={poster.last}").status_code == 200

    lines = [*poster.lines, hot(poster.last)]
    (tmp_path / "all.jsonl").write_text("".join(f"{line}\n" for line in lines))
    command = [sys.executable, "-m", "dotr.cli.main", "run", "rules.dotr", "all.jsonl", "--format", "jsonl"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    expected = run.stdout.splitlines()
    deployment.ended.clear()
    threads[1].join(1)
    if not threads[1].is_alive():
        threads[1] = deployment.thread(reader.run)
    until = time.monotonic() + GIVE_UP
    while len(reader.events) <= len(expected) and time.monotonic() < until:
        time.sleep(0.05)
    deployment.ended.set()
    assert server.stop() == 0, server.log
    threads[1].join(GIVE_UP)

    deployment.client.close()

    assert not deployment.failures, deployment.failures
    assert reader.events[1:] == expected
    assert reader.ids == list(range(len(expected) + 1))
    assert (tmp_path / "log.jsonl").read_text() == run.stdout
    assert not any("Traceback" in line or "error" in line for line in deployment.log + server.log)
    print(f"{KILLS} kills, {poster.documents} documents, {poster.repeated} repeated, {len(expected)} events")

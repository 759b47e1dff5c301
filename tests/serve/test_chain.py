"""Two deployments in a chain, by their events and by their LDES: kills of either lose and repeat nothing.

DOTR_KILLS=20 asks for so many kills; without it there are a few.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dotr.serve.security import new_token

from .servers import RULES, Server, hot, smoke
from .test_kills import Deployment, Poster

KILLS = int(os.environ.get("DOTR_KILLS", "4"))

ALARMS = """PREFIX : <urn:x:>
RULE Alarm
DEFINE { dotr_a a :Alarm ; :in ?room ; :peak ?v ; :before ?u }
FROM Fresh := { SELECT ?room ?v { ?e a :Fire ; :in ?room ; :peak ?v } }
AND LAST Earlier := { SELECT ?room ?v { ?e a :Fire ; :in ?room ; :peak ?v } }
    WITHIN 50 s FROM Fresh ON Earlier.?room = Fresh.?room
WITH ?room := Fresh.?room, ?v := Fresh.?v, ?u := Earlier.?v
"""

SOURCES = {
    "dotr": "{dotr: URL, rules: [Fire]}",
    "ldes": "{ldes: URL/v1/ldes, poll: 50ms}",
}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


links: list[Link] = []
"""Those of a test."""


@pytest.fixture(autouse=True)
def _end() -> Iterator[None]:
    yield
    for link in links:
        link.client.close()
        if link.server is not None and link.server.process.poll() is None:
            link.kill()
    links.clear()


class Link(Deployment):
    """One of the two, always at the same address."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir()
        super().__init__(folder, seed)
        self.port = free_port()
        links.append(self)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.server = Server(self.folder, (), "--listen", f"127.0.0.1:{self.port}")


def upper(folder: Path) -> Link:
    made = Link(folder, 5)
    (folder / "dotr.yaml").write_text("rules: [rules.dotr]\nsources: {input: {http: {}}}\n")
    return made


def lower(folder: Path, source: str, more: str = "") -> Link:
    made = Link(folder, 6)
    (folder / "rules.dotr").write_text(ALARMS)
    (folder / "dotr.yaml").write_text(f"rules: [rules.dotr]\nsources: {{up: {source}}}\n{more}")
    return made


def events(link: Link) -> list[dict[str, Any]]:
    assert link.server is not None
    return link.server.events(limit="1000")


def until_events(link: Link, count: int, seconds: float = 60) -> list[dict[str, Any]]:
    """Wait for so many."""
    assert link.server is not None
    until = time.monotonic() + seconds
    while (found := link.server.client.get("/v1/status").json()["outbox"]) < count:
        assert time.monotonic() < until, (found, count, link.server.log)
        time.sleep(0.05)
    return events(link)


def one_run(folder: Path, rules: str, lines: Iterable[str]) -> list[dict[str, Any]]:
    """The events of rules over a file, up to the instant that nothing has closed."""
    folder.mkdir()
    (folder / "rules.dotr").write_text(rules)
    (folder / "lines.jsonl").write_text("".join(f"{line}\n" for line in lines))
    command = [sys.executable, "-m", "dotr.cli.main", "run", "rules.dotr", "lines.jsonl", "-o", "out.jsonl"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    last = json.loads((folder / "lines.jsonl").read_text().splitlines()[-1])["time"]
    found = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    return [event for event in found if event["time"] < last]


class SlowPoster(Poster):
    """One that leaves time for the second deployment."""

    def _post(self, lines: list[str]) -> None:
        super()._post(lines)
        time.sleep(0.05)


@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_kills_of_either_lose_and_repeat_nothing(kind: str, tmp_path: Path) -> None:
    up = upper(tmp_path / "up")
    down = lower(tmp_path / "down", SOURCES[kind].replace("URL", up.url))
    up.start()
    down.start()
    poster = SlowPoster(up)
    posting = up.thread(poster.run)
    moments = random.Random(9)  # of kills
    time.sleep(0.5)
    for number in range(KILLS):
        one = (up, down)[number % 2]
        time.sleep(moments.uniform(0.1, 1.0))
        one.kill()
        one.start()
        assert not up.failures, up.failures
    time.sleep(0.3)
    up.ended.set()
    posting.join(30)
    assert not up.failures, up.failures
    fires = one_run(tmp_path / "fires", RULES, poster.lines)
    graphs = [json.dumps({"time": fire["time"], "graph": fire["graph"]}) for fire in fires]
    alarms = one_run(tmp_path / "alarms", ALARMS, graphs)
    assert len(alarms) > 30
    for link, expected in ((up, fires), (down, alarms)):
        until_events(link, len(expected))
        time.sleep(0.3)  # for what should not be there
        found = [{name: of for name, of in event.items() if name != "number"} for event in events(link)]
        assert found == expected
    assert down.server is not None
    assert up.server is not None
    assert down.server.stop() == up.server.stop() == 0
    for line in [*up.log, *down.log, *up.server.log, *down.server.log]:
        assert "Traceback" not in line


@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_a_source_that_is_away_is_seen_and_comes_back(kind: str, tmp_path: Path) -> None:
    up = upper(tmp_path / "up")
    down = lower(tmp_path / "down", SOURCES[kind].replace("URL", up.url))
    down.start()
    server = down.server
    assert server is not None
    try:
        server.said("D4222")
        answer = server.client.get("/readyz")
        assert answer.status_code == 503
        assert "the source `up` is not connected" in answer.text
        (state,) = server.client.get("/v1/status").json()["subscriptions"]
        assert (state["name"], state["connected"]) == ("up", False)
        assert "refused" in state["why"]
        up.start()
        assert up.server is not None
        up.server.post([hot(1), smoke(2), smoke(3), smoke(4), hot(5)], wait="committed")
        assert len(until_events(down, 2)) == 2
        server.said("is connected again")
        assert server.client.get("/readyz").status_code == 200
        (state,) = server.client.get("/v1/status").json()["subscriptions"]
        assert (state["connected"], state["received"], state["why"]) == (True, 3, "")
        up.kill()
        server.said("is connected again")
        until = time.monotonic() + 10
        while server.client.get("/readyz").status_code == 200:
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        assert server.stop() == 0


def test_events_that_are_gone_are_counted_and_said(tmp_path: Path) -> None:
    up = upper(tmp_path / "up")
    (up.folder / "dotr.yaml").write_text("rules: [rules.dotr]\nkeep: {events: 100s}\n")
    down = lower(tmp_path / "down", "{dotr: URL}".replace("URL", up.url))
    up.start()
    down.start()
    assert up.server is not None
    up.server.post([hot(1), smoke(2), smoke(3), smoke(4), hot(5)], wait="committed")
    until_events(down, 2)
    assert down.server is not None
    down.server.stop()
    for at in range(200, 800, 100):
        up.server.post([hot(at), smoke(at + 1), hot(at + 2)], wait="committed")
    up.server.stop()  # it has the last events in memory, too
    up.start()
    down.start()
    server = down.server
    try:
        server.said("D4223")
        until_events(down, 2)
        first = up.server.client.get("/v1/events?after=1").json()["missed"]["first"]
        gone = first - 4
        assert gone > 2
        assert any(f"{gone} events after number 3 are not kept" in line for line in server.log), server.log
        (state,) = server.client.get("/v1/status").json()["subscriptions"]
        assert state["missed"] == gone
    finally:
        assert server.stop() == 0
        assert up.server.stop() == 0


def test_another_deployment_in_its_place_is_refused(tmp_path: Path) -> None:
    up = upper(tmp_path / "up")
    down = lower(tmp_path / "down", "{dotr: URL}".replace("URL", up.url))
    up.start()
    down.start()
    assert up.server is not None
    assert down.server is not None
    try:
        up.server.post([hot(1), smoke(2), smoke(3), smoke(4), hot(5)], wait="committed")
        until_events(down, 2)
        up.server.stop()
        (up.folder / ".dotr").rename(up.folder / "old")
        up.start()
        assert up.server is not None
        down.server.said("it is another deployment", 20)
        assert down.server.client.get("/readyz").status_code == 503
    finally:
        assert down.server.stop() == 0
        assert up.server is not None
        assert up.server.stop() == 0


def test_a_token_opens_the_other_deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    token = new_token(str(tmp_path / "tokens"), "down", ["read"])
    writer = new_token(str(tmp_path / "tokens"), "writer", ["write"])
    up = upper(tmp_path / "up")
    (up.folder / "dotr.yaml").write_text("rules: [rules.dotr]\ntokens: ../tokens\n")
    (tmp_path / "secret").write_text(token + "\n")
    up.start()
    assert up.server is not None
    up.server.client.headers["authorization"] = f"Bearer {writer}"
    up.server.post([hot(1), smoke(2), smoke(3), smoke(4), hot(5)], wait="committed")
    without = lower(tmp_path / "without", "{dotr: URL}".replace("URL", up.url))
    within = lower(tmp_path / "within", "{dotr: URL, token: 'file:../secret'}".replace("URL", up.url))
    try:
        for link in (without, within):
            link.start()
        assert without.server is not None
        assert within.server is not None
        without.server.said("it answers 401")
        assert len(until_events(within, 2)) == 2
        assert not any(token in line for line in within.server.log)
    finally:
        for link in (without, within, up):
            if link.server is not None:
                assert link.server.stop() == 0

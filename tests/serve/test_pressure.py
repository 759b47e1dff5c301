"""More than a server can take: slow readers, a full inbox, a full disk, much work, clocks, signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from dotr.service.inbox import Inbox

from .servers import RULES, Server, hot, serving, smoke


def configured(folder: Path, text: str, rules: str = RULES) -> Server:
    """A server of a configuration."""
    (folder / "rules.dotr").write_text(rules)
    (folder / "dotr.yaml").write_text(f"rules: [rules.dotr]\n{text}")
    return Server(folder, ())


def of_run(folder: Path, lines: Sequence[str]) -> list[str]:
    """The events of `dotr run` over lines."""
    (folder / "all.jsonl").write_text("".join(f"{line}\n" for line in lines))
    command = [sys.executable, "-m", "dotr.cli.main", "run", "rules.dotr", "all.jsonl", "--format", "jsonl"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def memory(server: Server) -> int:
    """MiB that the process has."""
    (line,) = [
        line
        for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    ]
    return int(line.split()[1]) >> 10


class Reader:
    """Owns a connection with a small buffer that follows events by SSE, and their numbers."""

    def __init__(self, server: Server, after: int = 0) -> None:
        host, _, port = server.url.removeprefix("http://").partition(":")
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect((host, int(port)))
        head = f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {after}\r\n"
        self.socket.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
        self.seen = b""

    def numbers(self) -> list[int]:
        """Of the events that have come whole."""
        whole = self.seen.rpartition(b"\n\n")[0] + b"\n"
        return [int(line[4:]) for line in whole.split(b"\n") if line.startswith(b"id: ")]

    def read(self, size: int, seconds: float = 5) -> bool:
        """Take what is there, at most so much; False where the connection has ended."""
        self.socket.settimeout(seconds)
        try:
            part = self.socket.recv(size)
        except TimeoutError:
            return True
        except ConnectionError:
            return False
        self.seen += part
        return bool(part)


def test_readers_that_do_not_read_are_disconnected_and_miss_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.post([hot(0)], wait="committed")
        silent, before, at = [Reader(server) for _ in range(10)], memory(server), 1
        for _ in range(60):
            server.post([*(smoke(at + n // 5) for n in range(100)), hot(at + 20)], wait="committed")
            at += 21
        last = server.client.get("/v1/status").json()["outbox"]
        until = time.monotonic() + 35
        while server.client.get("/v1/status").json()["readers"] and time.monotonic() < until:
            time.sleep(0.2)
        assert server.client.get("/v1/status").json()["readers"] == 0
        assert memory(server) - before < 100
        one = silent[0]
        while one.read(65_536):
            pass
        numbers = one.numbers()
        assert 0 < numbers[-1] < last
        again = Reader(server, numbers[-1])
        while len(numbers) + len(again.numbers()) < last:
            assert again.read(65_536)
        assert numbers + again.numbers() == list(range(1, last + 1))
        for reader in (*silent, again):
            reader.socket.close()


def test_a_full_inbox_refuses_and_loses_nothing(tmp_path: Path) -> None:
    server = configured(tmp_path, "inbox: {max: 5}\n")
    try:
        server.client.post("/v1/pause")
        answers = [server.post([hot(at), smoke(at)]) for at in range(8)]
        assert [answer.status_code for answer in answers] == [202] * 5 + [429] * 3
        assert answers[-1].headers["retry-after"] == "1"
        assert "more than half full" in server.client.get("/readyz").text
        server.client.post("/v1/resume")
        for at in (5, 6, 7):
            until = time.monotonic() + 10
            while server.post([hot(at), smoke(at)]).status_code == 429 and time.monotonic() < until:
                time.sleep(0.05)
        server.post([hot(9)], wait="committed")
        assert [event["time"] for event in server.events()] == list(range(8))
    finally:
        assert server.stop() == 0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 6 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs to mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_said_and_goes_by_itself(small: Path) -> None:
    server = configured(small, "outputs: {log: {file: log.jsonl}}\n")
    try:
        accepted, at = [hot(0)], 1
        server.post(accepted, wait="committed")
        for _ in range(500):
            lines = [hot(at), smoke(at), *(hot(at, "b") for _ in range(20))]
            answer = server.post(lines)
            if answer.status_code != 202:
                break
            accepted += lines
            at += 1
        assert (answer.status_code, answer.json()["code"]) == (503, "D4201")
        assert answer.headers["retry-after"]
        assert "full" in server.client.get("/readyz").text
        assert server.client.get("/livez").status_code == 200
        subprocess.run(["mount", "-o", "remount,size=100m", str(small)], check=True)
        until = time.monotonic() + 40
        while server.client.get("/readyz").status_code != 200 and time.monotonic() < until:
            time.sleep(0.2)
        last = [hot(at + 1), hot(at + 2)]
        assert server.post(last, wait="committed").json()["state"] == "committed"
        expected = of_run(small, [*accepted, *last])
        assert (small / "log.jsonl").read_text().splitlines() == expected
        assert [event["id"] for event in server.events()] == [json.loads(line)["id"] for line in expected]
    finally:
        assert server.stop() == 0


def test_a_second_server_of_a_deployment_or_port_ends(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        for more, code in ((["--listen", "127.0.0.1:0"], "D5204"), (["--listen", server.url[7:]], "D4212")):
            command = [sys.executable, "-m", "dotr.cli.main", "serve", "rules.dotr", *more]
            ended = subprocess.run(
                command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
            )
            assert ended.returncode not in (0, 1)
            assert code in ended.stderr
            assert "Traceback" not in ended.stderr
        assert server.post([hot(1)], wait="committed").status_code == 200


def test_arrivals_do_not_go_back_with_the_clock(tmp_path: Path) -> None:
    now = [100.0]
    with Inbox(str(tmp_path), clock=lambda: now[0]) as inbox:
        for time_ in (100.0, 50.0, 101.0):
            now[0] = time_
            inbox.append("a", b"", format="").result(10)
    now[0] = 10.0
    with Inbox(str(tmp_path), clock=lambda: now[0]) as inbox:
        inbox.append("a", b"", format="").result(10)
        assert [row.arrival for row in inbox.read("a", 0)] == [100_000_000] * 2 + [101_000_000] * 2


def test_large_documents_are_read_in_bounded_memory(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        before = memory(server)
        lines = [hot(n // 100, "abcdefgh"[n % 8]) for n in range(100_000)]
        assert server.post(lines, wait="committed", timeout="60s").json()["graphs"] == 100_000
        server.post(["no line"] * 20_000, wait="committed", timeout="60s")
        assert memory(server) - before < 400


def test_time_goes_on_in_silence(tmp_path: Path) -> None:
    server = configured(tmp_path, "tick: 500ms\n")
    try:
        server.post([hot(1), smoke(2)], wait="committed")
        until = time.monotonic() + 10
        while not server.events() and time.monotonic() < until:
            time.sleep(0.1)
        assert len(server.events()) == 1
    finally:
        assert server.stop() == 0


def test_a_silent_source_does_not_hold_the_others_for_ever(tmp_path: Path) -> None:
    server = configured(tmp_path, "sources: {a: {http: {}, idle: 1s}, b: {http: {}, idle: 1s}}\n")
    try:
        server.post([hot(0)], "b")
        server.post([hot(1), smoke(2), hot(3)], "a")
        until = time.monotonic() + 15
        while not server.events() and time.monotonic() < until:
            time.sleep(0.1)
        assert [event["time"] for event in server.events()] == [2]
        server.post([hot(4)], "b", wait="committed")
    finally:
        assert server.stop() == 0


WORK = """PREFIX : <urn:x:>
RULE Much
DEFINE { dotr_f a :Much }
FROM Go := { SELECT ?go { ?go a :Go } }
AND EACH A := { SELECT ?a { ?a a :P } } WITHIN 9 s FROM Go
AND EACH B := { SELECT ?b { ?b a :P } } WITHIN 9 s FROM Go ON STRLEN(STR(A.?a)) + STRLEN(STR(B.?b)) < 0
RULE Little
DEFINE { dotr_f a :Little }
FROM Go := { SELECT ?go { ?go a :Go } }
"""


def test_a_fact_that_takes_a_rule_too_much_work_ends_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, WORK) as server:
        many = " ".join(f"<urn:x:{n}> a <urn:x:P> ." for n in range(4_000))
        for at, graph in ((1, many), (2, "<urn:x:go> a <urn:x:Go> ."), (3, "<urn:x:go> a <urn:x:Go> .")):
            server.post([json.dumps({"time": at, "graph": graph})])
        later = json.dumps({"time": 99, "graph": "<urn:x:go> a <urn:x:Go> ."})
        assert server.post([later], wait="committed", timeout="60s").json()["state"] == "committed"
        assert {event["rule"] for event in server.events()} == {"Little"}
        assert server.client.get("/readyz").status_code == 200


def test_a_signal_ends_it_with_a_hundred_readers_and_long_queries(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.post([hot(1), smoke(2), hot(3)], wait="committed")
        readers = [Reader(server) for _ in range(100)]
        query = "SELECT * { VALUES ?x {" + " 1" * 8_000 + "} VALUES ?y {" + " 1" * 8_000 + "} }"
        content = "POST /v1/sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\n"
        host, _, port = server.url.removeprefix("http://").partition(":")
        asked = socket.create_connection((host, int(port)))
        asked.sendall(f"{content}Content-Length: {len(query)}\r\n\r\n{query}".encode())
        until = time.monotonic() + 10
        while server.client.get("/v1/status").json()["readers"] < 100 and time.monotonic() < until:
            time.sleep(0.1)
        begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < 10
        for reader in readers:
            while reader.read(65_536):
                pass
            assert reader.numbers() == [1]
            reader.socket.close()
        asked.close()
        assert not any("error" in line for line in server.log), server.log


def test_reading_the_configuration_again_loses_nothing(tmp_path: Path) -> None:
    server = configured(tmp_path, "outputs: {log: {file: log.jsonl}}\n")
    try:
        lines: list[str] = []
        over = threading.Event()

        def signals() -> None:
            while not over.wait(0.1):
                server.process.send_signal(signal.SIGHUP)

        thread = threading.Thread(target=signals)
        thread.start()
        for at in range(0, 120, 2):
            more = [hot(at), smoke(at + 1)]
            assert server.post(more).status_code == 202
            lines += more
            time.sleep(0.02)
        over.set()
        thread.join()
        lines.append(hot(200))
        assert server.post(lines[-1:], wait="committed").json()["state"] == "committed"
        assert (tmp_path / "log.jsonl").read_text().splitlines() == of_run(tmp_path, lines)
        assert sum("read again" in line for line in server.log) > 1
    finally:
        assert server.stop() == 0

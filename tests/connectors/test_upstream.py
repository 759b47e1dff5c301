"""A deployment as a source that sends what none does: it is reported; nothing is lost or repeated."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from dotr.connectors import upstream
from dotr.connectors.upstream import UpstreamTransport
from dotr.errors import Diagnostic

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def event(number: int | str) -> bytes:
    data = {"rule": "R", "time": number, "graph": f'<urn:a> <urn:n> "{number}" .'}
    return f"id: {number}\nevent: R\ndata: {json.dumps(data)}\n\n".encode()


class Impostor:
    """Owns a server whose `/v1/status` is `status` and whose events are the next of `streams`."""

    def __init__(self) -> None:
        self.status = b'{"outbox": 1000}'
        self.streams: list[bytes] = []
        self.drips = False
        self.head = HEAD
        self.asked: list[str] = []
        self._ended = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._answer, args=self._listening.accept()[:1], daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            target = connection.recv(65_536).split(b" ")[1].decode()
            if target == "/v1/status":
                length = f"HTTP/1.1 200 OK\r\nContent-Length: {len(self.status)}\r\n\r\n".encode()
                connection.sendall(length + self.status)
                return
            self.asked.append(target)
            connection.sendall(self.head + (self.streams.pop(0) if self.streams else b": dotr\n\n"))
            while self.drips and not self._ended.wait(0.02):
                connection.sendall(b"x")

    def close(self) -> None:
        self._ended.set()
        self._listening.close()


@pytest.fixture
def impostor() -> Iterator[Impostor]:
    made = Impostor()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.connectors.read_ahead.wait_of", lambda *_: 0.02)


class Reading:
    """Owns the transport. `numbers`: of the events that came."""

    def __init__(self, url: str, silence: float = 5.0) -> None:
        self.said: list[Diagnostic] = []
        self.numbers: list[int] = []
        self.transport = UpstreamTransport("up", url, say=self.said.append, silence=silence)

    def until(self, enough: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not enough():
            assert time.monotonic() < deadline, (self.numbers, self.messages())
            for documents in self.transport.open("", None):
                self.numbers += [one.mark for one in documents]
            time.sleep(0.005)

    def messages(self) -> list[str]:
        return [f"{one.code} {one.message}" for one in self.said]

    def has_said(self, message: str) -> bool:
        return any(message in one for one in self.messages())


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"id: 2\ndata: {}\n\n", "`{}` is no event of `dotr serve`"),
        (b"id: 2\ndata: this is it\n\n", "`this is it` is no event"),
        (b'id: two\ndata: {"graph": "", "time": 1}\n\n', "is no event"),
        (b"id: 2\ndata: " + b"[" * 100_000 + b"\n\n", "is no event"),
        (b"event: dotr-missed\ndata: {}\n\n", "is no event"),
        (b'event: dotr-missed\ndata: {"first": 1, "after": 0}\n\n', "no events before number 1"),
        (b"\xff\xfe\n\n", "is no text"),
        (event(9), "event 9 came after event 1"),
        (event("99999999999999999999"), "came after event 1"),
        (event(2).replace(b'{"rule"', b'{"change": -1, "rule"'), "it makes corrections"),
    ],
)
def test_what_is_no_event_is_said_and_reading_goes_on_before_it(
    impostor: Impostor, sent: bytes, message: str
) -> None:
    impostor.streams = [event(1) + sent + event(2), event(1) + event(2) + event(3)]
    reading = Reading(impostor.url)
    try:
        reading.until(lambda: len(reading.numbers) >= 3)
        assert reading.numbers == [1, 2, 3]
        assert reading.has_said(message), reading.messages()
        assert {one.code for one in reading.said} == {"D4222"}
        assert impostor.asked[:2] == ["/v1/events?after=0", "/v1/events?after=1"]
    finally:
        reading.transport.close()


def test_a_deployment_that_takes_events_back_is_not_read(impostor: Impostor) -> None:
    impostor.status = b'{"outbox": 1000, "corrections": {"withdrawn": 0}}'
    reading = Reading(impostor.url)
    try:
        reading.until(lambda: reading.has_said("it makes corrections"))
        assert impostor.asked == []
    finally:
        reading.transport.close()


@pytest.mark.parametrize("status", [b'{"outbox": "many"}', b'{"outbox": true}', b"[]", b"<html>"])
def test_what_is_no_deployment_is_said(impostor: Impostor, status: bytes) -> None:
    impostor.status = status
    reading = Reading(impostor.url)
    try:
        reading.until(lambda: reading.has_said("D4222 the source `up`, http"))
        assert reading.has_said("is not `dotr serve`")
        assert impostor.asked == []
    finally:
        reading.transport.close()


def test_fields_without_end_are_bounded(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "MOST", 10_000)
    impostor.streams = [b"".join(b"f%d: x\n" % number for number in range(5_000))]
    reading = Reading(impostor.url)
    try:
        reading.until(lambda: reading.has_said("more than 10,000 bytes"))
    finally:
        reading.transport.close()


def test_a_line_that_drips_ends_the_connection(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte begins the time limit of the socket again."""
    monkeypatch.setattr(upstream, "WHOLE", 0.0)
    impostor.drips = True
    reading = Reading(impostor.url, silence=0.5)
    try:
        reading.until(lambda: reading.has_said("takes more than 0.5 s"))
    finally:
        reading.transport.close()


def test_a_refusal_that_drips_ends_the_connection(
    impostor: Impostor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "WHOLE", 0.5)
    impostor.head = b"HTTP/1.1 503 Service Unavailable\r\n\r\n"
    impostor.drips = True
    reading = Reading(impostor.url)
    try:
        reading.until(lambda: reading.has_said("takes more than 0.5 s"))
    finally:
        reading.transport.close()

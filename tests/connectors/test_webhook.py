"""Webhooks against a receiver that fails, is slow, redirects, wants no more."""

from __future__ import annotations

import base64
import hmac
import json
import os
import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from dotr.connectors import outgoing
from dotr.connectors.outgoing import is_forbidden
from dotr.connectors.webhook import Webhook, body_of, secret_of
from dotr.errors import EngineError
from dotr.service.cursors import Delivery, NotDeliveredError, wait_of
from dotr.service.logs import OutboxRow
from dotr.service.outbox import Cursors, Outbox, OutboxReader
from tests.service.deployments import deploy, feed, stream


class Receiver:
    """Owns a web server that gives `answers` in turn. `came`: headers and body of each whole post."""

    def __init__(self) -> None:
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # its name
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) < length:  # the sender was killed
                    self.close_connection = True
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                status, more = outer.answers.pop(0) if outer.answers else (204, {})
                outer.came.append((headers, body))
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.close()


def row(number: int = 1, room: str = "a") -> OutboxRow:
    bindings = {"room": {"type": "uri", "value": f"urn:x:{room}"}}
    line = json.dumps({"rule": "Fire", "time": 2, "id": f"urn:dotr:Fire:{number}", "bindings": bindings})
    return OutboxRow(number, 2_000_000, "Fire", f"urn:dotr:Fire:{number}", line)


def test_a_post_is_signed_over_id_time_and_body(receiver: Receiver) -> None:
    key = b"0123456789abcdef01234567"
    hook = Webhook(receiver.url, secret_of("whsec_" + base64.b64encode(key).decode()), clock=lambda: 99.5)
    assert hook.give([row()]) == 1
    ((headers, body),) = receiver.came
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("urn:dotr:Fire:1", "99")
    mac = hmac.new(key, b"urn:dotr:Fire:1.99." + body, sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(mac).decode()
    found = json.loads(body)
    assert (found["type"], found["timestamp"], found["data"]["number"]) == ("Fire", 2, 1)


def test_a_body_of_ones_own_is_filled_and_not_evaluated() -> None:
    template = '{"text": "Fire in {room} at {time}: {{}} {0} {unknown} {room.__class__}"}'
    found = json.loads(body_of(row(room='"}<script>'), template))
    assert found["text"] == 'Fire in urn:x:"}<script> at 2: {{}} {0} {unknown} {room.__class__}'


@pytest.mark.parametrize(
    ("answer", "after", "gone"),
    [
        ((500, {}), None, False),
        ((503, {"retry-after": "7"}), 7.0, False),
        ((302, {"location": "http://127.0.0.1:1/"}), None, False),
        ((410, {}), None, True),
        ((404, {}), None, False),
    ],
)
def test_everything_but_2xx_is_a_failure(
    receiver: Receiver, answer: tuple[int, dict[str, str]], after: float | None, gone: bool
) -> None:
    receiver.answers = [answer]
    with pytest.raises(NotDeliveredError) as raised:
        Webhook(receiver.url).give([row()])
    assert (raised.value.after, raised.value.gone) == (after, gone)
    assert len(receiver.came) == 1, "a redirect is followed nowhere"


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "0.0.0.0", "224.0.0.1"],  # noqa: S104
)
def test_a_link_local_address_is_not_connected_to(receiver: Receiver, address: str) -> None:
    assert is_forbidden(address)
    with pytest.raises(NotDeliveredError, match="link-local"):
        Webhook(receiver.url, resolve=lambda _host, _port: [address]).give([row()])
    assert receiver.came == []


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".example"])
def test_what_is_not_the_name_of_a_host_is_a_failure(host: str) -> None:
    with pytest.raises(NotDeliveredError, match=r"is not the name of a host"):
        Webhook(f"http://{host}/hook").give([row()])


def test_waits_double_up_to_five_minutes_and_heed_the_other_side() -> None:
    noise = random.Random(1)
    for failures in range(1, 40):
        usual = min(300.0, 2.0 ** (failures - 1))
        assert usual / 2 <= wait_of(failures, None, noise) <= usual
    assert wait_of(1, 30.0, noise) == 30.0
    assert wait_of(1, 1e9, noise) == 3600.0


def fed(folder: Path) -> str:
    """A deployment with events in its outbox."""
    state = deploy(folder)
    (folder / "in.jsonl").write_text("".join(f"{line}\n" for line in stream(90, bad=False)))
    feed(state, [str(folder / "in.jsonl")], others=[Outbox()])
    return state


def until(what: Any, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert what()


@pytest.mark.parametrize("order", ["strict", "any"])
def test_every_event_is_delivered_whatever_fails(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Any
) -> None:
    monkeypatch.setattr("dotr.service.cursors.FIRST_WAIT", 0.001)
    monkeypatch.setattr("dotr.service.cursors.LONGEST_WAIT", 0.01)
    state = fed(tmp_path)
    noise = random.Random(3)
    receiver.answers = [(noise.choice((204, 204, 500, 503)), {}) for _ in range(150)]
    with OutboxReader(state) as reader, Cursors(state) as cursors:
        last = reader.last()
        delivery = Delivery("hook", Webhook(receiver.url, order=order), reader, cursors)
        delivery.start()
        until(lambda: delivery.state.delivered == last)
        delivery.stop()
        assert cursors.all()["hook"].number == last
        ids = [event.id for event in reader.after(0)]
    came = list(dict.fromkeys(headers["webhook-id"] for headers, _ in receiver.came))
    assert sorted(came) == sorted(ids)
    if order == "strict":
        assert came == ids
    assert delivery.state.errors > 3


def test_a_delivery_goes_on_from_its_cursor_and_takes_some_rules_alone(
    receiver: Receiver, tmp_path: Path
) -> None:
    state = fed(tmp_path)
    with OutboxReader(state) as reader, Cursors(state) as cursors:
        wanted = [event for event in reader.after(0) if event.rule == "Fire"]
        cursors.begin("hook", wanted[2].number)
        delivery = Delivery("hook", Webhook(receiver.url), reader, cursors, ["Fire"])
        delivery.start()
        until(lambda: delivery.state.delivered == reader.last())
        delivery.stop()
    assert [headers["webhook-id"] for headers, _ in receiver.came] == [event.id for event in wanted[3:]]


def test_a_receiver_that_wants_no_more_is_left_alone_until_it_is_another(
    receiver: Receiver, tmp_path: Path
) -> None:
    state = fed(tmp_path)
    receiver.answers = [(410, {})]
    said: list[str] = []
    with OutboxReader(state) as reader, Cursors(state) as cursors:
        delivery = Delivery(
            "hook", Webhook(receiver.url), reader, cursors, say=lambda found: said.append(found.message)
        )
        delivery.start()
        until(lambda: delivery.state.gone)
        delivery.stop()
        assert len(said) == 1
        cursor = cursors.all()["hook"]
        assert (cursor.word, cursor.error) == ("gone", f"{urlsplit(receiver.url).netloc} answers 410")
        again = Delivery("hook", Webhook(receiver.url), reader, cursors)
        assert again.state.gone
        other = Delivery("hook", Webhook(receiver.url + "2"), reader, cursors)
        assert not other.state.gone
        assert not cursors.all()["hook"].gone, "events are kept for it again"
    assert len(receiver.came) == 1


@pytest.mark.parametrize("state", ["ended\nanother has the name", "failing\nit answers 503"])
def test_what_an_output_was_before_a_start_is_not_its_state(
    receiver: Receiver, tmp_path: Path, state: str
) -> None:
    """Also where nothing is left to deliver."""
    folder = fed(tmp_path)
    with OutboxReader(folder) as reader, Cursors(folder) as cursors:
        cursors.move("hook", reader.last(), state)
        Delivery("hook", Webhook(receiver.url), reader, cursors)
        assert cursors.all()["hook"] == ("hook", reader.last(), "")


def test_an_outbox_that_could_not_be_read_once_is_not_a_failure_for_ever(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing is left to deliver."""
    folder = fed(tmp_path)
    with OutboxReader(folder) as reader, Cursors(folder) as cursors:
        cursors.begin("hook", reader.last())
        errors, page = [EngineError.of("D4201", "it is locked")], reader.page

        def read(*asked: Any) -> Any:
            if errors:
                raise errors.pop()
            return page(*asked)

        monkeypatch.setattr(reader, "page", read)
        delivery = Delivery("hook", Webhook(receiver.url), reader, cursors, wait=lambda _: None)
        delivery.start()
        until(lambda: delivery.state.errors == 1 and not delivery.state.failures)
        delivery.stop()
        assert cursors.all()["hook"] == ("hook", reader.last(), "")


def test_an_output_that_is_stopped_on_its_way_does_not_fail(tmp_path: Path) -> None:
    folder = fed(tmp_path)
    said: list[str] = []
    giving, closed = threading.Event(), threading.Event()

    class Held:
        identity = "held"

        def give(self, rows: Sequence[OutboxRow]) -> int:
            giving.set()
            closed.wait(10)
            raise NotDeliveredError("the output has ended")

        def close(self) -> None:
            closed.set()

    with OutboxReader(folder) as reader, Cursors(folder) as cursors:
        delivery = Delivery("held", Held(), reader, cursors, say=lambda found: said.append(found.message))
        delivery.start()
        assert giving.wait(10)
        delivery.stop(0.05)
        delivery._thread.join(10)
        assert cursors.all()["held"] == ("held", 0, "")
    assert not said


class Hour:
    """Owns a receiver that is down until an hour has passed by a clock of its own. `numbers`: what it got."""

    def __init__(self) -> None:
        self.now, self.noticed, self.waits = 0.0, 0.0, 0
        self.numbers: list[int] = []
        self.grown = 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = free.getsockname()
        self.url = f"http://127.0.0.1:{self.address[1]}/hook"
        self.server: ThreadingHTTPServer | None = None
        self._resident = _resident()

    def wait(self, seconds: float) -> None:
        self.now, self.waits = self.now + seconds, self.waits + 1
        if self.now >= 3600 and self.server is None:
            self._begin()

    def _begin(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # its name
                found = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.noticed = outer.noticed or outer.now
                outer.numbers.append(found["data"]["number"])
                if not len(outer.numbers) % 1_000:
                    outer.grown = max(outer.grown, _resident() - outer._resident)
                self.send_response(204)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name
                return

        self.server = ThreadingHTTPServer(self.address, Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()


def _resident() -> int:
    """Bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Timed:
    """A receiver that says how much CPU the thread has used that gives to it."""

    def __init__(self, hook: Webhook) -> None:
        self.identity, self._hook, self.seconds = hook.identity, hook, 0.0

    def give(self, rows: Sequence[OutboxRow]) -> int:
        count = self._hook.give(rows)
        self.seconds = time.thread_time()
        return count

    def close(self) -> None:
        self._hook.close()


def test_a_receiver_that_was_dead_for_an_hour_gets_an_hour_of_events(tmp_path: Path) -> None:
    """Ten events a second for an hour; then it is there again, and has them all in order."""
    rules = (
        "PREFIX : <urn:x:>\nRULE Seen DEFINE { dotr_s :number ?n } FROM S := { SELECT ?n { ?o :number ?n } }"
    )
    state = deploy(tmp_path, f"{rules} WITH ?n := S.?n\n")
    count = 36_000
    with (tmp_path / "in.jsonl").open("w") as file:
        for number in range(count):
            line = {"time": number // 10, "graph": f"[] <urn:x:number> {number} ."}
            file.write(json.dumps(line) + "\n")
    feed(state, [str(tmp_path / "in.jsonl")], others=[Outbox()], every=10_000)
    hour = Hour()
    try:
        with OutboxReader(state) as reader, Cursors(state) as cursors:
            assert reader.last() == count
            hook = Timed(Webhook(hour.url))
            delivery = Delivery("hook", hook, reader, cursors, noise=random.Random(4), wait=hour.wait)
            delivery.start()
            until(lambda: delivery.state.delivered == count, 240)
            delivery.stop()
    finally:
        hour.close()
    print(f"{hook.seconds / count * 1e6:.0f} µs CPU an event, {hour.grown >> 20} MiB, {hour.waits} waits")
    assert hour.numbers == list(range(1, count + 1))
    assert hour.noticed - 3600 <= 300, "it is noticed within five minutes"
    assert hour.waits < 40, "nobody who is not there is asked all the time"
    assert hour.grown < 24 << 20
    assert hook.seconds / count < 0.002


def test_a_connection_is_used_again_and_one_that_was_closed_is_not() -> None:
    hour = Hour()
    hour.wait(3600)
    hook = Webhook(hour.url)
    assert hook.give([row(1)]) == 1
    kept = set(hook._connections)
    assert hook.give([row(2)]) == 1
    assert set(hook._connections) == kept
    assert len(kept) == 1
    (one,) = kept
    one.sock.shutdown(socket.SHUT_RDWR)  # as a proxy does that has waited long enough
    assert hook.give([row(3)]) == 1
    assert set(hook._connections) != kept
    assert hour.numbers == [1, 2, 3]
    hook.close()
    hour.close()


def test_an_answer_that_drips_does_not_hold_up_the_end() -> None:
    """A byte a second, and each begins the time limit of the socket again."""
    listening = socket.create_server(("127.0.0.1", 0))
    answered = threading.Event()

    def drip() -> None:
        with suppress(OSError), listening.accept()[0] as connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n")
            while True:
                connection.sendall(b"x")
                answered.set()
                time.sleep(0.05)

    dripping = threading.Thread(target=drip)
    dripping.start()
    hook = Webhook(f"http://127.0.0.1:{listening.getsockname()[1]}/")
    failed: list[NotDeliveredError] = []

    def give() -> None:
        try:
            hook.give([row(1)])
        except NotDeliveredError as error:
            failed.append(error)

    giving = threading.Thread(target=give)
    giving.start()
    assert answered.wait(10)
    begun = time.monotonic()
    hook.close()
    giving.join(5)
    assert time.monotonic() - begun < 4
    assert not giving.is_alive()
    dripping.join(5)
    listening.close()


@pytest.mark.parametrize(
    "first", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 100 Continue\r\n\r\n"], ids=["status", "head", "100"]
)
def test_a_head_that_drips_is_a_failure_in_time(first: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "WHOLE", 0.5)
    listening = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        with suppress(OSError), listening.accept()[0] as connection:
            connection.recv(65_536)
            while True:
                connection.sendall(first if b"100" in first else first + b"H")
                time.sleep(0.02)

    threading.Thread(target=drip, daemon=True).start()
    hook = Webhook(f"http://127.0.0.1:{listening.getsockname()[1]}/")
    with pytest.raises(NotDeliveredError, match=r"takes more than 0\.5 s"):
        hook.give([row(1)])
    hook.close()
    listening.close()


@pytest.mark.parametrize("drips", [False, True])
def test_the_body_of_an_answer_is_read_no_further_than_it_has_to_be(
    drips: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any length, or in chunks whose sizes drip: 2xx is an acknowledgement."""
    monkeypatch.setattr("dotr.connectors.webhook.TIMEOUT", 0.5)
    listening = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        with suppress(OSError), listening.accept()[0] as connection:
            connection.recv(65_536)
            length = b"Transfer-Encoding: chunked" if drips else b"Content-Length: 100000000000"
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n\r\n")
            while True:
                connection.sendall(b"0" if drips else b"x" * 65_536)
                if drips:
                    time.sleep(0.02)

    threading.Thread(target=answer, daemon=True).start()
    hook = Webhook(f"http://127.0.0.1:{listening.getsockname()[1]}/")
    assert hook.give([row(1)]) == 1
    hook.close()
    listening.close()

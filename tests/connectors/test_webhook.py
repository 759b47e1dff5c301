"""Webhooks against a receiver that fails, is slow, redirects, wants no more."""

from __future__ import annotations

import base64
import hmac
import json
import random
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dotr.connectors.webhook import Webhook, body_of, is_forbidden, secret_of
from dotr.service.cursors import Delivery, NotDeliveredError, wait_of
from dotr.service.logs import OutboxRow
from dotr.service.outbox import Cursors, Outbox, OutboxReader
from tests.service.deployments import deploy, feed, stream


class Receiver:
    """Owns a web server that answers as it is told. `came`: headers and body of each post."""

    def __init__(self) -> None:
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # its name
                body = self.rfile.read(int(self.headers["content-length"]))
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


def test_waits_double_up_to_an_hour_and_heed_the_other_side() -> None:
    noise = random.Random(1)
    for failures in range(1, 40):
        usual = min(3600.0, 2.0 ** (failures - 1))
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
        again = Delivery("hook", Webhook(receiver.url), reader, cursors)
        assert again.state.gone
        other = Delivery("hook", Webhook(receiver.url + "2"), reader, cursors)
        assert not other.state.gone
    assert len(receiver.came) == 1

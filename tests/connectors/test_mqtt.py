"""MQTT against mosquitto: in by the inbox, out by a cursor; whoever is killed."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from dotr.connectors.mqtt import Subscription, broker_of, payload_of, topic_of
from dotr.errors import DataError
from dotr.service.inbox import Inbox
from tests.serve.servers import RULES, Server, hot, smoke

from .brokers import Mosquitto, needs_mosquitto


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    one = Mosquitto(tmp_path)
    yield one
    one.stop()


def until(what: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert what()


def configured(folder: Path, text: str) -> Path:
    home = folder / "server"
    home.mkdir(exist_ok=True)
    (home / "rules.dotr").write_text(RULES)
    (home / "dotr.yaml").write_text(f"rules: [rules.dotr]\n{text}")
    return home


def test_levels_of_a_topic_are_columns_of_json() -> None:
    assert json.loads(payload_of(b'{"t": 21}', "home/room1/temp")) == {
        "t": 21,
        "topic": {"1": "home", "2": "room1", "3": "temp"},
    }
    assert json.loads(payload_of(b"21.5", "a"))["value"] == 21.5
    assert payload_of(b"not json", "a") == b"not json"


def test_a_topic_is_made_of_rule_and_bindings_without_new_levels() -> None:
    room = {"type": "uri", "value": "urn:x#room14"}
    name = {"type": "literal", "value": "a/b+#"}
    assert topic_of("e/{rule}/{room}/{name}/{none}", "Fire", {"room": room, "name": name, "none": None}) == (
        "e/Fire/room14/ab/_"
    )


def test_what_is_not_a_broker_is_refused() -> None:
    for url in ("tcp://x", "mqtt://", "mqtt://x:99999"):
        with pytest.raises(DataError):
            broker_of(url, "c", "5", None, "")


@needs_mosquitto
@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_messages_come_in_and_events_go_out(tmp_path: Path, broker: Mosquitto, protocol: str) -> None:
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / "temp.map").write_text(
        "# time: at\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
        '[] <urn:x:celsius> "{value}"^^xsd:decimal ; <urn:x:room> <urn:x:{topic.2}> .\n'
    )
    home = configured(
        tmp_path,
        f"""
sources:
  temps: {{mqtt: '{broker.url}', topics: [home/+/temp], map: temp.map, protocol: '{protocol}'}}
  lines: {{mqtt: '{broker.url}', topics: [lines], format: jsonl, protocol: '{protocol}', client: other}}
outputs:
  board: {{mqtt: '{broker.url}', topic: 'events/{{rule}}/{{room}}', retain: [Fire], protocol: '{protocol}'}}
""",
    )
    came: list[Any] = []
    listener = broker.client()
    listener.on_message = lambda _c, _d, message: came.append(message)
    listener.subscribe("events/#", 1)
    sender = broker.client()
    server = Server(home, ())
    try:
        until(lambda: all(s["connected"] for s in server.client.get("/v1/status").json()["subscriptions"]))
        sender.publish("home/a/temp", json.dumps({"at": 1, "value": 71}), 1)
        sender.publish("lines", f"{smoke(2)}\n{hot(9)}\n", 1)
        sender.publish("home/a/temp", json.dumps({"at": 9, "value": 20}), 1)
        until(lambda: len(came) == 1)
    finally:
        assert server.stop() == 0, server.log
        listener.loop_stop()
        sender.loop_stop()
    (message,) = came
    assert message.topic == "events/Fire/a"
    assert json.loads(message.payload)["time"] == 2
    if protocol == "5":
        pairs = dict(message.properties.UserProperty)
        assert (pairs["rule"], pairs["time"]) == ("Fire", "2")
    late: list[Any] = []
    again = broker.client()
    again.on_message = lambda _c, _d, message: late.append(message)
    again.subscribe("events/#", 1)
    until(lambda: len(late) == 1)
    assert late[0].retain, "the last state is kept"
    again.loop_stop()


@needs_mosquitto
def test_a_content_type_of_a_message_says_how_it_is_written(tmp_path: Path, broker: Mosquitto) -> None:
    home = configured(tmp_path, f"sources: {{in: {{mqtt: '{broker.url}', topics: ['#']}}}}\n")
    server, sender = Server(home, ()), broker.client()
    try:
        until(lambda: server.client.get("/v1/status").json()["subscriptions"][0]["connected"])
        properties = Properties(PacketTypes.PUBLISH)
        properties.ContentType = "application/x-ndjson"
        sender.publish("a", hot(1) + "\n" + hot(2), 1, properties=properties)
        until(lambda: server.client.get("/v1/status").json()["graphs"] == 2)
        sender.publish("a", b"nonsense", 1)
        until(lambda: len(server.client.get("/v1/dead-letters").json()["letters"]) == 1)
    finally:
        assert server.stop() == 0, server.log
        sender.loop_stop()


@needs_mosquitto
def test_a_broker_that_asks_for_a_password(tmp_path: Path) -> None:
    passwords = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), "ann", "hush"], check=True)
    broker = Mosquitto(tmp_path, f"password_file {passwords}\n")
    text = "sources: {{in: {{mqtt: '{}', topics: [a], user: ann, password: 'file:pw'}}}}\n"
    home = configured(tmp_path, text.format(broker.url))
    try:
        for password, connected in (("wrong", False), ("hush", True)):
            (home / "pw").write_text(password)
            server = Server(home, ())
            try:
                until(
                    lambda server=server: (
                        (found := server.client.get("/v1/status").json()["subscriptions"][0])["connected"]
                        or "refuses" in found["why"]
                    )
                )
                state = server.client.get("/v1/status").json()["subscriptions"][0]
                assert state["connected"] is connected
                assert not any("hush" in line or "wrong" in line for line in server.log)
            finally:
                assert server.stop() == 0
    finally:
        broker.stop()


NUMBERS = """PREFIX : <urn:x:>
RULE Seen DEFINE { dotr_s :number ?n } FROM S := { SELECT ?n { ?o :number ?n } } WITH ?n := S.?n
"""


def numbers_seen(tmp_path: Path, broker: Mosquitto, disturb: Callable[[Server], Server]) -> list[int]:
    """The numbers that a server has seen, by arrival, of 1,500 messages of one sender, with six disturbances
    in between.
    """
    count, noise = 1_500, random.Random(5)
    home = configured(
        tmp_path, f"sources: {{in: {{mqtt: '{broker.url}', topics: [t], time: arrival}}}}\ntick: 300ms\n"
    )
    (home / "rules.dotr").write_text(NUMBERS)
    server = Server(home, ())
    until(lambda: server.client.get("/v1/status").json()["subscriptions"][0]["connected"])
    sender = broker.client(client_id="sender")

    def send() -> None:
        for number in range(count):
            sender.publish("t", f"[] <urn:x:number> {number} .", 1)
            time.sleep(0.001)

    thread = threading.Thread(target=send)
    thread.start()
    for _ in range(6):
        time.sleep(noise.uniform(0.1, 0.6))
        server = disturb(server)
    thread.join()

    def seen() -> list[int]:
        return [int(event["bindings"]["n"]["value"]) for event in server.events()]  # type: ignore[index]

    try:
        until(lambda: len(set(seen())) == count, 60)
        time.sleep(1)
        assert server.client.get("/v1/status").json()["refused"] == 0
        return seen()
    finally:
        assert server.stop() == 0
        sender.loop_stop()


@needs_mosquitto
def test_kills_lose_and_repeat_nothing(tmp_path: Path, broker: Mosquitto) -> None:
    """Every message once, in the order of its sender."""

    def kill(server: Server) -> Server:
        server.kill()
        return Server(server.folder, ())

    assert sorted(numbers_seen(tmp_path, broker, kill)) == list(range(1_500))


@needs_mosquitto
def test_a_broker_that_begins_again_loses_nothing(tmp_path: Path, broker: Mosquitto) -> None:
    """What its senders repeat, because they do not know whether it came, it has twice."""

    def restart(server: Server) -> Server:
        broker.stop()
        broker.start()
        return server

    assert set(numbers_seen(tmp_path, broker, restart)) == set(range(1_500))


@needs_mosquitto
def test_a_full_inbox_leaves_messages_at_the_broker(tmp_path: Path, broker: Mosquitto) -> None:
    where = broker_of(broker.url, "c", "5", None, "")
    with Inbox(str(tmp_path / "inbox"), max_rows=10) as inbox:
        subscription = Subscription("in", where, ["t"], inbox)
        subscription.start()
        until(lambda: subscription.connected)
        sender = broker.client()
        for number in range(25):
            sender.publish("t", str(number), 1)
        until(lambda: inbox.full)
        rows = inbox.read("in", 0, 100)
        assert len(rows) == 10
        found = [row.content for row in rows]
        while len(found) < 25:
            inbox.forget({"in": rows[-1].number})
            rows = inbox.read("in", rows[-1].number, 100) or rows
            found += [row.content for row in rows if row.content not in found]
            time.sleep(0.02)
        assert found == [str(number).encode() for number in range(25)]
        subscription.stop()
        sender.loop_stop()

"""MQTT against mosquitto: in by the inbox, out by a cursor; whoever is killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from dotr.connectors.mqtt import Subscription, broker_of, payload_of, topic_of
from dotr.connectors.mqtt_session import BrokenError, Message, Said, Session
from dotr.errors import DataError, Diagnostic
from dotr.service.inbox import Inbox
from tests.serve.servers import RULES, Server, hot, smoke
from tests.service.deployments import deploy

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


def certificates(folder: Path) -> Path:
    """An authority of its own, and a certificate of it for 127.0.0.1; where they are."""
    made = folder / "tls"
    made.mkdir()
    made.chmod(0o755)
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=ours -days 2",
        "req -newkey rsa:2048 -nodes -keyout key.pem -out ask.pem -subj /CN=127.0.0.1",
        "x509 -req -in ask.pem -CA ca.pem -CAkey ca.key -out cert.pem -days 2 -extfile names",
        "req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -subj /CN=theirs -days 2",
    ):
        (made / "names").write_text("subjectAltName=IP:127.0.0.1\n")
        subprocess.run(["openssl", *command.split()], cwd=made, check=True, capture_output=True)
    return made


@needs_mosquitto
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_an_encrypted_broker_is_known_by_its_authority(tmp_path: Path) -> None:
    """In and out, with user and password; one that another authority certifies gets nothing."""
    tls = certificates(tmp_path)
    passwords = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), "ann", "hush"], check=True)
    more = f"password_file {passwords}\ncafile {tls}/ca.pem\ncertfile {tls}/cert.pem\nkeyfile {tls}/key.pem\n"
    broker = Mosquitto(tmp_path, more)
    where = f"mqtts://127.0.0.1:{broker.port}"
    text = """
sources: {{in: {{mqtt: '{where}', topics: [a], format: jsonl, user: ann, password: 'file:pw', ca: '{ca}'}}}}
outputs: {{out: {{mqtt: '{where}', topic: 'b/{{rule}}', user: ann, password: 'file:pw', ca: '{ca}'}}}}
"""
    home = configured(tmp_path, text.format(where=where, ca=tls / "other.pem"))
    (home / "pw").write_text("hush\n")
    came: list[Any] = []
    client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    client.username_pw_set("ann", "hush")
    client.tls_set(str(tls / "ca.pem"))
    client.on_message = lambda _c, _d, message: came.append(json.loads(message.payload))
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    client.subscribe("b/#", 1)
    try:
        server = Server(home, ())
        try:
            server.said("there is no connection")
            assert not server.client.get("/v1/status").json()["subscriptions"][0]["connected"]
        finally:
            assert server.stop() == 0
        (home / "dotr.yaml").write_text(
            (home / "dotr.yaml").read_text().replace(str(tls / "other.pem"), str(tls / "ca.pem"))
        )
        server = Server(home, ())
        try:
            until(lambda: server.client.get("/v1/status").json()["subscriptions"][0]["connected"])
            client.publish("a", f"{hot(1)}\n{smoke(2)}\n{hot(9)}\n", 1)
            until(lambda: len(came) == 1)
            assert not any("hush" in line for line in server.log)
        finally:
            assert server.stop() == 0, server.log
    finally:
        client.loop_stop()
        broker.stop()


def test_an_authority_that_cannot_be_read_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    for url, ca in (
        ("mqtts://x", tmp_path / "empty.pem"),
        ("mqtts://x", tmp_path / "none.pem"),
        ("mqtt://x", tmp_path / "empty.pem"),
    ):
        with pytest.raises(DataError) as raised:
            broker_of(url, "c", "5", None, "", str(ca))
        assert raised.value.diagnostics[0].code == "D4215"


DYING = """
import sys, time
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
client.will_set("alive/s1", '{"time": 5, "graph": "[] a <urn:x:Smoke> ; <urn:x:room> <urn:x:a> ."}', 1)
client.connect("127.0.0.1", int(sys.argv[1]))
client.loop_start()
client.publish("alive/s1", '{"time": 4, "graph": "[] <urn:x:celsius> 70 ; <urn:x:room> <urn:x:a> ."}', 1)
time.sleep(0.2)
print("alive", flush=True)
time.sleep(60)
"""


@needs_mosquitto
def test_the_last_will_of_a_sender_that_dies_is_a_document(tmp_path: Path, broker: Mosquitto) -> None:
    home = configured(
        tmp_path, f"sources: {{in: {{mqtt: '{broker.url}', topics: ['alive/+'], format: jsonl}}}}\n"
    )
    server = Server(home, ())
    sensor = None
    try:
        until(lambda: server.client.get("/v1/status").json()["subscriptions"][0]["connected"])
        sensor = subprocess.Popen(
            [sys.executable, "-c", DYING, str(broker.port)], stdout=subprocess.PIPE, text=True
        )
        assert sensor.stdout is not None
        assert sensor.stdout.readline() == "alive\n"
        assert server.client.get("/v1/status").json()["subscriptions"][0]["received"] == 1
        sensor.kill()
        until(lambda: server.client.get("/v1/status").json()["graphs"] == 2)
        server.client.post("/v1/advance?to=9")
        until(lambda: len(server.events()) == 1)
        assert server.events()[0]["time"] == 5
    finally:
        if sensor is not None:
            sensor.kill()
            sensor.communicate()
        assert server.stop() == 0, server.log


KILLS = int(os.environ.get("DOTR_MQTT_KILLS", "6"))
"""How often the server, and how often the broker, is disturbed."""


NUMBERS = """PREFIX : <urn:x:>
RULE Seen DEFINE { dotr_s :number ?n } FROM S := { SELECT ?n { ?o :number ?n } } WITH ?n := S.?n
"""


def numbers_seen(tmp_path: Path, broker: Mosquitto, disturb: Callable[[Server], Server]) -> list[int]:
    """The numbers that a server has seen, by arrival, of messages of one sender, 250 for each of `KILLS`
    disturbances.
    """
    count, noise = 250 * KILLS, random.Random(5)
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
    for _ in range(KILLS):
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

    assert sorted(numbers_seen(tmp_path, broker, kill)) == list(range(250 * KILLS))


@needs_mosquitto
def test_a_broker_that_begins_again_loses_nothing(tmp_path: Path, broker: Mosquitto) -> None:
    """What its senders repeat, because they do not know whether it came, it has twice."""

    def restart(server: Server) -> Server:
        broker.stop()
        broker.start()
        return server

    assert set(numbers_seen(tmp_path, broker, restart)) == set(range(250 * KILLS))


class Numbering:
    """Owns a sender of numbers, which goes on until it is stopped, and waits while a hundred are on their
    way.
    """

    def __init__(self, broker: Mosquitto) -> None:
        self.sent, self.acknowledged = 0, set[int]()
        self._numbers: dict[int, int] = {}
        self._stopping = threading.Event()
        self._client = broker.client(client_id="sender")
        self._client.reconnect_delay_set(1, 1)
        self._client.on_publish = lambda _c, _d, id_, _code, _more: self._on_publish(id_)
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _on_publish(self, id_: int) -> None:
        until(lambda: id_ in self._numbers)  # it may be acknowledged before `publish` returns
        self.acknowledged.add(self._numbers.pop(id_))

    def _send(self) -> None:
        while not self._stopping.wait(0.002):
            if len(self._numbers) >= 100:
                continue  # while nobody acknowledges
            info = self._client.publish("t", f"[] <urn:x:number> {self.sent} .", 1)
            self._numbers[info.mid] = self.sent
            self.sent += 1

    def open(self) -> set[int]:
        """What is not acknowledged, and may be sent again."""
        return set(range(self.sent)) - self.acknowledged

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        until(lambda: not self.open(), 60)

    def close(self) -> None:
        self._stopping.set()
        self._client.loop_stop()


@needs_mosquitto
def test_kills_of_the_broker_lose_and_repeat_nothing_that_it_had_written(
    tmp_path: Path, broker: Mosquitto
) -> None:
    """It writes once a second, and is asked to before every other kill. Of what it acknowledged and had not
    written, what it had given stays; what its sender repeats may come twice.
    """
    home = configured(
        tmp_path, f"sources: {{in: {{mqtt: '{broker.url}', topics: [t], time: arrival}}}}\ntick: 300ms\n"
    )
    (home / "rules.dotr").write_text(NUMBERS)
    server, noise = Server(home, ()), random.Random(7)

    def connected() -> bool:
        return bool(server.client.get("/v1/status").json()["subscriptions"][0]["connected"])

    def seen() -> list[int]:
        return [int(event["bindings"]["n"]["value"]) for event in server.events()]  # type: ignore[index]

    written, sent_again, given, unwritten = set[int](), set[int](), set[int](), set[int]()
    sender = None
    try:
        until(connected)
        broker.save()  # the session
        sender = Numbering(broker)
        for kill in range(KILLS):
            time.sleep(noise.uniform(0.2, 1.2))
            if kill % 2:
                saved = set(sender.acknowledged)
                broker.save()
                written |= saved - unwritten
            given |= set(seen())
            broker.kill()
            until(lambda: not connected())
            sent_again |= sender.open()
            unwritten |= sender.acknowledged - written
            broker.start()
            until(connected, 60)
        sender.stop()
        last = set(range(sender.sent)) - unwritten
        until(lambda: last <= set(seen()), 60)
        time.sleep(1)
        came = seen()
        twice = {number for number, count in Counter(came).items() if count > 1}
        lost = set(range(sender.sent)) - set(came)
        print(f"{KILLS} kills, {sender.sent} messages, {len(written)} written, {len(given)} given: ", end="")
        print(f"{len(lost)} lost, {len(lost & written)} of those written; ", end="")
        print(f"{len(twice)} twice, {len(twice - sent_again)} of those not sent again")
        assert written <= set(came)
        assert given <= set(came)
        assert twice <= sent_again
        assert sum("is connected again" in line for line in server.log) == KILLS
        assert server.client.get("/v1/status").json()["refused"] == 0
    finally:
        if sender is not None:
            sender.close()
        assert server.stop() == 0, server.log


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
        until(lambda: inbox.full and len(inbox.read("in", 0, 100)) == 10)
        rows = inbox.read("in", 0, 100)
        found = [row.content for row in rows]
        while len(found) < 25:
            inbox.forget({"in": rows[-1].number})
            rows = inbox.read("in", rows[-1].number, 100) or rows
            found += [row.content for row in rows if row.content not in found]
            time.sleep(0.02)
        assert found == [str(number).encode() for number in range(25)]
        subscription.stop()
        sender.loop_stop()


def test_half_a_surrogate_pair_is_left_to_who_reads_the_payload() -> None:
    assert json.loads(payload_of(b'{"v": "\\ud800"}', "a/b"))["v"] == "\ud800"


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 100])
def test_what_answers_as_no_broker_does_is_reported(tmp_path: Path, answer: bytes) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                with listening.accept()[0] as connection:
                    connection.recv(65_536)
                    connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    said: list[Diagnostic] = []
    url = f"mqtt://127.0.0.1:{listening.getsockname()[1]}"
    with Inbox(deploy(tmp_path)) as inbox:
        source = Subscription("temps", broker_of(url, "c", "5", None, ""), ["t"], inbox, say=said.append)
        source.start()
        until(lambda: bool(said))
        source.stop()
    listening.close()
    assert [one.code for one in said] == ["D4215"]
    assert url in said[0].message
    assert "as a broker does" in source.why


@needs_mosquitto
@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_messages_of_qos_0_and_large_ones_are_taken(
    tmp_path: Path, broker: Mosquitto, version: Literal["5", "3.1.1"]
) -> None:
    """An acknowledgement of a message without a packet id ended the connection."""
    where = broker_of(broker.url, "c", version, None, "")
    contents = [b"a", b"", b"b" * 200, b"c" * 20_000, b"d" * 5_000_000, b"e"]
    with Inbox(str(tmp_path / "inbox")) as inbox:
        subscription = Subscription("in", where, ["t/+", "u"], inbox)
        subscription.start()
        until(lambda: subscription.connected)
        sender = broker.client()
        for number, content in enumerate(contents):
            sender.publish(f"t/{number}", content, number % 2)
        until(lambda: inbox.last == len(contents))
        time.sleep(0.3)
        assert subscription.connected
        rows = [row for after in range(len(contents)) for row in inbox.read("in", after, 1)]
        assert [row.content for row in rows] == contents
        subscription.stop()
        sender.loop_stop()


@needs_mosquitto
def test_what_is_retained_comes_once(tmp_path: Path, broker: Mosquitto) -> None:
    """It came with each connection again."""
    where = broker_of(broker.url, "c", "5", None, "")
    sender = broker.client()
    sender.publish("t", b"kept", 1, retain=True).wait_for_publish(10)
    with Inbox(str(tmp_path / "inbox")) as inbox:
        for number in range(3):
            subscription = Subscription("in", where, ["t"], inbox)
            subscription.start()
            until(lambda: subscription.connected)  # noqa: B023  # used at once
            sender.publish("t", b"%d" % number, 1)
            until(lambda: inbox.last == number + 2)  # noqa: B023  # as above
            subscription.stop()
        assert [row.content for row in inbox.read("in", 0)] == [b"kept", b"0", b"1", b"2"]
    sender.loop_stop()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_packets_are_found_however_they_are_cut(size: int) -> None:
    """What a broker sends, in pieces of so many bytes."""
    messages = [(0, b"a" * 3), (7, b"b" * 300), (8, b""), (65_535, b"c" * 20_000)]
    stream = b"\x20\x03\0\0\0\x90\x04\0\x01\0\x01"
    for id_, content in messages:
        body = b"\0\x01t" + (id_.to_bytes(2, "big") if id_ else b"") + b"\x07\x03\0\x04a/b;" + content
        length = bytes([len(body) % 128 | 128, len(body) // 128 % 128 | 128, len(body) // 128**2])
        stream += bytes([0x3A if id_ else 0x30]) + length + body
    stream += b"\xd0\0\xe0\x01\x8e"
    listening = socket.create_server(("127.0.0.1", 0))
    listening.listen()

    def serve() -> None:
        with listening.accept()[0] as connection, suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for start in range(0, len(stream), size):
                connection.sendall(stream[start : start + size])
            connection.recv(65_536)
            time.sleep(0.5)

    threading.Thread(target=serve, daemon=True).start()
    session = Session(broker_of(f"mqtt://127.0.0.1:{listening.getsockname()[1]}", "c", "5", None, ""))
    assert session.subscribe(["t"]) == []
    came: list[Message] = []
    while len(came) < len(messages):
        came += session.receive(5)
    with pytest.raises(BrokenError, match="session taken over"):
        _ = [session.receive(0.2) for _ in range(20)]
    assert [(one.id, one.content) for one in came] == messages
    assert {(one.topic, one.again, one.said) for one in came[1:]} == {(b"t", True, Said("a/b;"))}
    session.close()
    listening.close()


@needs_mosquitto
def test_a_message_that_comes_again_after_thousands_of_others_is_dropped(
    tmp_path: Path, broker: Mosquitto
) -> None:
    """mosquitto was seen to send again what had come 2,000 messages before."""

    def message(id_: int, content: bytes, again: bool) -> Message:
        return Message(id_, again, b"t", content)

    def received(subscription: Subscription, messages: Sequence[Message]) -> None:
        session = Session(where)
        for start in range(0, len(messages), 500):
            assert not subscription._append(messages[start : start + 500], session)
        session.close()

    where, count = broker_of(broker.url, "c", "5", None, ""), 5_000
    with Inbox(str(tmp_path / "inbox")) as inbox:
        subscription = Subscription("in", where, ["t"], inbox)
        received(subscription, [message(n, b"%d" % n, False) for n in range(1, count + 1)])
        received(subscription, [message(n, b"%d" % n, True) for n in range(1, count + 1)])
        assert inbox.last == count
    with Inbox(str(tmp_path / "inbox")) as inbox:
        subscription = Subscription("in", where, ["t"], inbox)
        received(subscription, [message(1, b"1", True), message(2, b"other", True)])
        assert inbox.last == count + 1, "packet id 2 is free: what it came with last is another message"
        received(subscription, [message(3, b"3", False), message(2, b"other", True)])
        assert inbox.last == count + 2, "without the flag it is a new message"


@needs_mosquitto
def test_a_broker_that_is_killed_gives_all_that_it_had_written(tmp_path: Path) -> None:
    """What it acknowledged and had not written is lost, whoever reads it; nothing else is."""
    broker = Mosquitto(tmp_path, saves=False)
    where = broker_of(broker.url, "c", "5", None, "")
    try:
        with Inbox(str(tmp_path / "inbox")) as inbox:
            first = Subscription("in", where, ["t"], inbox)
            first.start()
            until(lambda: first.connected)
            first.stop()
            sender = broker.client()
            for number in range(20):
                sender.publish("t", str(number), 1).wait_for_publish(10)
            sender.loop_stop()
            broker.save()
            broker.kill()
            broker.start()
            second = Subscription("in", where, ["t"], inbox)
            second.start()
            until(lambda: inbox.last == 20)
            second.stop()
            assert [row.content for row in inbox.read("in", 0)] == [b"%d" % number for number in range(20)]
    finally:
        broker.stop()

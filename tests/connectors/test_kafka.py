"""Kafka against a broker: in by the journal's offsets, out by transactions; whoever is killed.

DOTR_KILLS=30 asks for so many kills; without it there are a few.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from msgspec.structs import replace

from dotr.connectors.kafka import (
    Cluster,
    KafkaReceiver,
    KafkaTransport,
    Mechanism,
    cluster_of,
    key_of,
    settings_of,
    topic_of,
    try_cluster,
    with_columns,
)
from dotr.errors import DataError, Diagnostic
from dotr.io.decode.documents import Format
from dotr.io.feeds import Document, DocumentSource, together
from dotr.io.graphs import TimedGraph
from dotr.io.tables.mapping import read_mapping
from dotr.service.cursors import NotDeliveredError
from dotr.service.logs import OutboxRow
from tests.serve.servers import RULES, Server, hot, smoke

from .kafka_broker import Broker, running

KILLS = int(os.environ.get("DOTR_KILLS", "4"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running(tmp_path_factory.mktemp("kafka")) as one:
        yield one


@pytest.fixture(scope="module")
def scram_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required "
    login += 'username="dotr" password="right";'
    settings = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": login,
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": login,
    }
    folder = tmp_path_factory.mktemp("scram")
    with running(folder, settings, "SASL_PLAINTEXT", {"dotr": "right"}) as one:
        yield one


_numbers = count(1)


class Topic:
    """Owns a topic of a test, and a producer."""

    def __init__(self, broker: Broker, partitions: int = 1, name: str = "") -> None:
        self.broker, self.name = broker, name or f"t{next(_numbers)}"
        self.admin = AdminClient({"bootstrap.servers": broker.servers})
        self.make(partitions)
        self.producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 5})

    def make(self, partitions: int = 1) -> None:
        self.admin.create_topics([NewTopic(self.name, partitions, 1)])[self.name].result(20)

    def send(self, value: str | bytes | None, partition: int = 0, key: str = "", **headers: str) -> None:
        self.producer.produce(
            self.name,
            value,
            key or None,
            partition,
            headers=[(name.replace("_", "-"), text) for name, text in headers.items()],
        )

    def flush(self) -> None:
        assert self.producer.flush(20) == 0


def messages(
    broker: Broker, topic: str, wanted: int, partitions: int = 1, seconds: float = 30
) -> list[Message]:
    """What those see who read what is committed: so many at least, and nothing for half a second after."""
    consumer = Consumer(
        {"bootstrap.servers": broker.servers, "group.id": "reader", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
    found: list[Message] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        some = consumer.consume(10_000, 0.5)
        found += [one for one in some if one.error() is None]
        if not some and len(found) >= wanted:
            break
    consumer.close()
    return found


def until(what: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def configured(folder: Path, text: str) -> Path:
    home = folder / "server"
    home.mkdir(exist_ok=True)
    (home / "rules.dotr").write_text(RULES)
    (home / "dotr.yaml").write_text(f"rules: [rules.dotr]\n{text}")
    return home


def status(server: Server) -> dict[str, Any]:
    found: dict[str, Any] = server.client.get("/v1/status").json()
    return found


def state(server: Server) -> dict[str, Any]:
    found: dict[str, Any] = status(server)["subscriptions"][0]
    return found


def stopped(server: Server) -> None:
    begun = time.monotonic()
    assert server.stop() == 0, server.log
    assert time.monotonic() - begun < 10
    assert not any("Traceback" in line for line in server.log), server.log


def test_messages_come_in_and_events_go_out(tmp_path: Path, broker: Broker) -> None:
    temps, lines, out = Topic(broker), Topic(broker), Topic(broker, name="out.Fire")
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / "temp.map").write_text(
        "# time: at\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
        '[] <urn:x:celsius> "{value}"^^xsd:decimal ; <urn:x:room> <urn:x:{kafka.key}> .\n'
    )
    home = configured(
        tmp_path,
        f"""
sources:
  temps: {{kafka: '{broker.servers}', topics: [{temps.name}], map: temp.map}}
  lines: {{kafka: '{broker.servers}', topics: [{lines.name}]}}
outputs:
  board: {{kafka: '{broker.servers}', topic: 'out.{{rule}}', key: '{{room}}/{{rule}}'}}
""",
    )
    server = Server(home, ())
    try:
        until(lambda: server.client.get("/readyz").status_code == 200)
        temps.send(json.dumps({"at": 1, "value": 71}), key="a")
        temps.send(None, key="a")
        temps.send(json.dumps({"at": 9, "value": 20}), key="a")
        lines.send(f"{smoke(2)}\n{hot(9)}\n", content_type="application/x-ndjson")
        temps.flush()
        lines.flush()
        (message,) = messages(broker, out.name, 1)
        assert (server.events()[0]["id"], 1) == (dict(message.headers())["id"].decode(), len(server.events()))
        until(lambda: status(server)["outputs"][0]["delivered"] == 1)
        assert {
            one["name"]: (one["received"], one["tombstones"]) for one in status(server)["subscriptions"]
        } == {
            "temps": (3, 1),
            "lines": (1, 0),
        }
    finally:
        stopped(server)
    assert message.key() == b"urn:x:a/Fire"
    event = json.loads(message.value())
    assert (event["rule"], event["time"]) == ("Fire", 2)
    headers = {name: value.decode() for name, value in message.headers()}
    assert headers == {"id": event["id"], "rule": "Fire", "time": "2", "content-type": "application/json"}


class Writer:
    """Owns what is written to the partitions of a topic: times rise in each."""

    def __init__(self, topic: Topic, partitions: int) -> None:
        self.topic, self.partitions, self.random = topic, partitions, random.Random(3)  # what is written
        self.lines: list[tuple[int, int, str]] = []
        self.at, self.ended = 0, threading.Event()

    def run(self) -> None:
        while not self.ended.is_set():
            for _ in range(20):
                self.at += self.random.choice((0, 1))
                self.write(self.random.randrange(self.partitions))
            self.topic.flush()
            time.sleep(0.1)

    def write(self, partition: int) -> None:
        room = self.random.choice("abc")
        line = smoke(self.at, room) if self.random.random() < 0.5 else hot(self.at, room, 55 + self.at % 20)
        self.lines.append((self.at, partition, line))
        self.topic.send(line, partition)

    def end(self) -> None:
        """A last message in each partition."""
        self.at += 1
        for partition in range(self.partitions):
            self.write(partition)
        self.topic.flush()


def test_kills_lose_repeat_and_reorder_nothing(tmp_path: Path, broker: Broker) -> None:
    moments = random.Random(5)  # of kills
    topic, out = Topic(broker, 3), Topic(broker)
    home = configured(
        tmp_path,
        f"""
sources: {{lines: {{kafka: '{broker.servers}', topics: [{topic.name}], format: jsonl}}}}
outputs: {{archive: {{kafka: '{broker.servers}', topic: {out.name}, client: '{out.name}'}}}}
""",
    )
    writer = Writer(topic, 3)
    writing = threading.Thread(target=writer.run, daemon=True)
    writing.start()
    for _ in range(KILLS):
        server = Server(home, ())
        time.sleep(moments.uniform(0.1, 1.5))
        server.kill()
        assert not any("Traceback" in line or "error" in line for line in server.log), server.log
    writer.ended.set()
    writing.join()
    writer.end()
    server = Server(home, ())
    try:
        # what is last waits for the other partitions, for as long as they are not idle
        until(lambda: status(server)["graphs"] > len(writer.lines) - writer.partitions, 150)
        whole = sorted(writer.lines, key=lambda line: line[:2])
        (tmp_path / "all.jsonl").write_text("".join(f"{line}\n" for _, _, line in whole))
        command = [sys.executable, "-m", "dotr.cli.main", "run", "server/rules.dotr", "all.jsonl"]
        run = subprocess.run(
            [*command, "--format", "jsonl"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        expected = [line for line in run.stdout.splitlines() if json.loads(line)["time"] < writer.at]
        found = [one.value().decode() for one in messages(broker, out.name, len(expected), seconds=60)]
        assert status(server)["late"] == 0
    finally:
        stopped(server)
    assert len(expected) > 10
    assert found == expected
    print(f"{KILLS} kills, {len(writer.lines)} messages of 3 partitions, {len(expected)} events")


def test_partitions_that_are_added_are_read_from_their_beginning(tmp_path: Path, broker: Broker) -> None:
    topic = Topic(broker)
    topic.send(hot(1))
    topic.flush()
    transport = KafkaTransport("s", Cluster(broker.servers), [topic.name], begin="latest", look=0.2)
    try:
        until(lambda: len(transport.partitions()) == 1)
        (first,) = transport.partitions()
        begun = [one for batch in transport.open(first, None) for one in batch]
        assert [(one.content, one.mark) for one in begun] == [(b"", 1)], "the journal gets where it begins"
        topic.admin.create_partitions([NewPartitions(topic.name, 2)])[topic.name].result(20)
        until(lambda: _reaches(topic, 1))
        until(lambda: len(transport.partitions()) == 2)
        found: list[Any] = []
        position = None
        deadline = time.monotonic() + 20
        while not found and time.monotonic() < deadline:
            transport.partitions()
            list(transport.open(first, 1))
            found += [one for batch in transport.open(f"{topic.name}/1", position) for one in batch]
            time.sleep(0.05)
        assert [(one.content, one.mark, one.place) for one in found] == [
            (b"added", 1, f"s/{topic.name}/1@0")
        ], "what came before it was found is not left out"
    finally:
        transport.close()


def _reaches(topic: Topic, partition: int) -> bool:
    """Write to a partition, once it is there."""
    try:
        topic.producer = Producer({"bootstrap.servers": topic.broker.servers})
        topic.send("added", partition)
    except KafkaException:
        return False
    return topic.producer.flush(5) == 0


def read(transport: KafkaTransport, partition: str, position: int | None, wanted: int) -> list[Any]:
    """So many documents of a partition, as a feed reads them."""
    found: list[Any] = []
    deadline = time.monotonic() + 20
    while len(found) < wanted and time.monotonic() < deadline:
        if partition in transport.partitions():
            for batch in transport.open(partition, position):
                found += batch
                position = found[-1].mark if found else position
        time.sleep(0.02)
    return found


def test_messages_that_are_gone_are_counted_once_and_reading_goes_on(broker: Broker) -> None:
    topic = Topic(broker)
    for number in range(10):
        topic.send(str(number))
    topic.flush()
    topic.admin.delete_records([TopicPartition(topic.name, 0, 7)])
    said: list[Diagnostic] = []
    name = f"{topic.name}/0"
    transport = KafkaTransport("s", Cluster(broker.servers), [topic.name], say=said.append)
    try:
        until(lambda: bool(transport.partitions()))
        deadline = time.monotonic() + 20
        while _first_offset(broker, topic.name) < 7:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        found = read(transport, name, 2, 4)
        assert [(one.content, one.mark) for one in found] == [(b"", 7), (b"7", 8), (b"8", 9), (b"9", 10)]
        assert transport.counts["gone"] == 5
        (one,) = said
        assert (one.code, "5 messages" in one.message, "offsets 2 to 6" in one.message) == (
            "D4221",
            True,
            True,
        )
    finally:
        transport.close()


def _first_offset(broker: Broker, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": "g"})
    low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    consumer.close()
    return int(low)


def test_a_topic_that_ends_before_what_was_read_is_left_alone(broker: Broker) -> None:
    topic = Topic(broker)
    topic.send("new")
    topic.flush()
    said: list[Diagnostic] = []
    transport = KafkaTransport("s", Cluster(broker.servers), [topic.name], say=said.append)
    try:
        until(lambda: bool(transport.partitions()))
        deadline = time.monotonic() + 20
        while not said and time.monotonic() < deadline:
            transport.partitions()
            assert list(transport.open(f"{topic.name}/0", 40)) == []
            time.sleep(0.02)
        (one,) = said
        assert "ends at offset 1, and 40 was read before" in one.message
        assert "ends at offset 1" in transport.why
        assert not transport.connected
    finally:
        transport.close()


def test_a_group_of_the_same_name_disturbs_nothing(broker: Broker) -> None:
    topic = Topic(broker, 2)
    other = Consumer(
        {"bootstrap.servers": broker.servers, "group.id": "dotr-s", "auto.offset.reset": "earliest"}
    )
    other.subscribe([topic.name])
    transport = KafkaTransport("s", Cluster(broker.servers), [topic.name])
    try:
        for number in range(100):
            topic.send(str(number), number % 2)
        topic.flush()
        taken = 0
        deadline = time.monotonic() + 20
        while taken < 100 and time.monotonic() < deadline:
            taken += len([one for one in other.consume(100, 0.5) if one.error() is None])
        assert taken == 100
        for partition in (0, 1):
            found = read(transport, f"{topic.name}/{partition}", None, 50)
            assert [int(one.content) for one in found] == list(range(partition, 100, 2))
    finally:
        transport.close()
        other.close()


def test_times_and_formats_are_beside_the_bytes(broker: Broker) -> None:
    topic = Topic(broker)
    topic.producer.produce(
        topic.name, "a", headers={"time": "7", "content-type": "text/turtle"}, timestamp=1_500
    )
    topic.producer.produce(topic.name, "b", timestamp=2_000)
    topic.flush()
    given = {}
    for mode in ("event", "header", "arrival", "event-or-arrival"):
        transport = KafkaTransport("s", Cluster(broker.servers), [topic.name], mode=mode)
        try:
            found = read(transport, f"{topic.name}/0", None, 2)
            given[mode] = [(one.time, one.arrival, one.format and one.format.value) for one in found]
            origin = transport.origin(f"s/{topic.name}/0@0:1")
            assert origin is not None
            assert (origin.number, origin.format, origin.source) == (0, "text/turtle", "s")
        finally:
            transport.close()
    assert given == {
        "event": [("", None, "Turtle"), ("", None, None)],
        "header": [("7", None, "Turtle"), ("no header `time`", None, None)],
        "arrival": [("1970-01-01T00:00:01.5Z", None, "Turtle"), ("1970-01-01T00:00:02Z", None, None)],
        "event-or-arrival": [("", 1_500_000, "Turtle"), ("", 2_000_000, None)],
    }


def row(number: int, room: str = "a") -> OutboxRow:
    binding = {"type": "uri", "value": f"urn:x:{room}"}
    event = {"rule": "Fire", "time": number, "id": f"id{number}", "bindings": {"room": binding}}
    return OutboxRow(number, number, "Fire", f"id{number}", json.dumps(event))


DELIVERED = """
import sys
import time
from dotr.connectors.kafka import Cluster, KafkaReceiver
from dotr.service.cursors import NotDeliveredError
receiver = KafkaReceiver(Cluster(sys.argv[1]), "events", "{room}", "fresh")
for _ in range(100):  # as an output does: again, until the broker is in charge of the group
    try:
        print(receiver.delivered())
        break
    except NotDeliveredError as error:
        print(error, file=sys.stderr)
        time.sleep(0.2)
receiver.close()
"""


def test_a_broker_that_has_just_begun_does_not_end_the_process(tmp_path: Path) -> None:
    """It answers, and is not in charge of the group yet: librdkafka died of that in every third trial."""
    with running(tmp_path / "fresh") as fresh:
        found = subprocess.run(
            [sys.executable, "-c", DELIVERED, fresh.servers],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (found.returncode, found.stdout) == (0, "None\n"), found.stderr


def test_a_twin_is_fenced_and_what_is_delivered_is_known(broker: Broker) -> None:
    topic = Topic(broker)
    first = KafkaReceiver(Cluster(broker.servers), topic.name, "{room}", topic.name)
    second = KafkaReceiver(Cluster(broker.servers), topic.name, "{room}", topic.name)
    try:
        assert first.delivered() is None
        assert first.give([row(1), row(2)]) == 2
        assert second.delivered() == (2, "id2")
        with pytest.raises(NotDeliveredError, match="another producer has the name") as found:
            first.give([row(3)])
        assert found.value.ended
        assert second.give([row(3)]) == 1
        assert [one.value().decode() for one in messages(broker, topic.name, 3)] == [
            row(1).line,
            row(2).line,
            row(3).line,
        ]
    finally:
        first.close()
        second.close()


def test_a_server_whose_twin_began_later_ends_its_output(tmp_path: Path, broker: Broker) -> None:
    topic = Topic(broker)
    home = configured(tmp_path, f"outputs: {{o: {{kafka: '{broker.servers}', topic: {topic.name}}}}}\n")
    server = Server(home, ())
    twin = KafkaReceiver(Cluster(broker.servers), topic.name, None, "dotr-o")
    try:
        server.post([hot(1), smoke(2), hot(3)], wait="committed")
        until(lambda: status(server)["outputs"][0]["delivered"] == 1)
        assert twin.delivered() is not None
        server.post([smoke(4), hot(5)], wait="committed")
        server.said("another producer has the name `dotr-o`", 20)
        assert status(server)["outputs"][0]["gone"]
    finally:
        stopped(server)
        twin.close()
    again = Server(home, ())
    try:
        found = messages(broker, topic.name, 2)
        assert [json.loads(one.value())["time"] for one in found] == [2, 4], "a start mends it"
    finally:
        stopped(again)


def test_another_deployment_of_the_same_name_is_reported_and_skips_nothing(
    tmp_path: Path, broker: Broker
) -> None:
    topic = Topic(broker)
    other = KafkaReceiver(Cluster(broker.servers), topic.name, None, topic.name)
    other.delivered()
    other.give([row(number) for number in range(1, 10)])
    other.close()
    text = f"outputs: {{o: {{kafka: '{broker.servers}', topic: {topic.name}, client: {topic.name}}}}}\n"
    server = Server(configured(tmp_path, text), ())
    try:
        server.post([hot(1), smoke(2), hot(3)], wait="committed")
        server.said("another deployment has delivered event 9", 20)
        assert status(server)["outputs"][0]["delivered"] == 0
    finally:
        stopped(server)


def test_a_broker_that_is_killed_comes_back_and_nothing_hangs_meanwhile(tmp_path: Path) -> None:
    with running(tmp_path / "broker") as broker:
        topic, out = Topic(broker), Topic(broker)
        home = configured(
            tmp_path,
            f"sources: {{s: {{kafka: '{broker.servers}', topics: [{topic.name}], format: jsonl}}}}\n"
            f"outputs: {{o: {{kafka: '{broker.servers}', topic: {out.name}}}}}\n",
        )
        for line in (hot(1), smoke(2), hot(3)):
            topic.send(line)
        topic.flush()
        server = Server(home, ())
        until(lambda: status(server)["outputs"][0]["delivered"] == 1)
        broker.kill()
        until(lambda: not state(server)["connected"])
        assert "the source `s` is not connected: there is no connection" in server.client.get("/readyz").text
        stopped(server)
        server = Server(home, ())
        assert not state(server)["connected"]
        broker.start()
        until(lambda: bool(state(server)["connected"]), 60)
        topic.send(smoke(4))
        topic.send(hot(5))
        topic.flush()
        found = messages(broker, out.name, 2, seconds=60)
        assert [json.loads(one.value())["time"] for one in found] == [2, 4]
        stopped(server)


def test_passwords_and_certificates_are_checked_by_both_sides(tmp_path: Path) -> None:
    keytool = shutil.which("keytool")
    if keytool is None:
        pytest.skip("keytool is not installed")
    store, ca = tmp_path / "broker.jks", tmp_path / "ca.pem"
    secret = ["-keystore", str(store), "-storepass", "changeit", "-alias", "broker"]
    name = ["-dname", "CN=localhost", "-ext", "SAN=IP:127.0.0.1", "-storetype", "PKCS12"]
    make = [keytool, "-genkeypair", *secret, "-keypass", "changeit", "-keyalg", "RSA", *name]
    subprocess.run(make, check=True, capture_output=True)
    subprocess.run(
        [keytool, "-exportcert", "-rfc", *secret, "-file", str(ca)], check=True, capture_output=True
    )
    login = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="admin" password="a" user_admin="a" user_dotr="right";'
    )
    settings = {
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": login,
        "ssl.keystore.location": store,
        "ssl.keystore.password": "changeit",
        "ssl.truststore.location": store,
        "ssl.truststore.password": "changeit",
    }
    with running(tmp_path / "broker", settings, "SASL_SSL") as broker:
        good = cluster_of(broker.servers, "dotr", "right", "PLAIN", True, str(ca))
        assert "lets us in" in try_cluster(good, [])
        for bad in (
            cluster_of(broker.servers, "dotr", "wrong", "PLAIN", True, str(ca)),
            cluster_of(broker.servers, "dotr", "right", "PLAIN", True, None),
        ):
            with pytest.raises(DataError, match="D4220") as found:
                try_cluster(bad, [])
            assert "right" not in str(found.value)
            assert "wrong" not in str(found.value)
        said: list[Diagnostic] = []
        transport = KafkaTransport("s", good, ["none"], say=said.append)
        try:
            transport.partitions()
            until(lambda: "there is no topic `none`" in transport.why)
        finally:
            transport.close()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_logs_in_by_scram_and_reads_and_writes(scram_broker: Broker, mechanism: Mechanism) -> None:
    """Each mechanism in and out; a wrong password gets nothing."""
    good = cluster_of(scram_broker.servers, "dotr", "right", mechanism, False, None)
    assert "lets us in" in try_cluster(good, [])
    bad = cluster_of(scram_broker.servers, "dotr", "wrong", mechanism, False, None)
    with pytest.raises(DataError, match="D4220") as found:
        try_cluster(bad, [])
    assert "wrong" not in str(found.value)
    topic = f"t-{mechanism}"
    admin = AdminClient(settings_of(good))
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    receiver = KafkaReceiver(good, topic, None, f"client-{mechanism}")
    try:
        assert receiver.delivered() is None
        assert receiver.give([OutboxRow(1, 1, "Fire", "urn:1", '{"time":1,"bindings":{}}')]) == 1
    finally:
        receiver.close()
    transport = KafkaTransport("s", good, [topic])
    try:
        until(lambda: bool(transport.partitions()))
        came: list[Document] = []

        def read() -> bool:
            for partition in transport.partitions():
                for batch in transport.open(partition, came[-1].mark if came else None):
                    came.extend(batch)
            return bool(came)

        until(read)
        assert came[0].content == b'{"time":1,"bindings":{}}'
    finally:
        transport.close()


def test_feed_reads_topics_and_writes_to_one_without_a_server(tmp_path: Path, broker: Broker) -> None:
    """Exactly once over two calls, the first of which is interrupted after it has written."""
    lines, out = Topic(broker), Topic(broker)
    (tmp_path / "rules.dotr").write_text(RULES)
    dotr = [sys.executable, "-m", "dotr.cli.main"]
    subprocess.run([*dotr, "deploy", "rules.dotr", "--dir", "d"], cwd=tmp_path, check=True)
    command = [*dotr, "feed", f"kafka://{broker.servers}/{lines.name}?format=jsonl", "--dir", "d"]
    command += ["-o", f"kafka://{broker.servers}/{out.name}?key={{room}}"]
    for start, count_ in ((0, 1), (100, 2)):
        for line in (hot(start + 1), smoke(start + 2), hot(start + 9)):
            lines.send(line)
        lines.flush()
        feed = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        try:
            found = messages(broker, out.name, count_)
        finally:
            feed.send_signal(signal.SIGINT)
            _, said = feed.communicate(timeout=30)
        assert feed.returncode in (0, 130), said
    assert [json.loads(message.value() or b"")["time"] for message in found] == [2, 102]
    assert [message.key() for message in found] == [b"urn:x:a", b"urn:x:a"]


def test_a_message_that_cannot_be_read_is_a_dead_letter_that_a_stream_takes(
    tmp_path: Path, broker: Broker
) -> None:
    topic = Topic(broker)
    text = f"""
sources:
  s: {{kafka: '{broker.servers}', topics: [{topic.name}], time: header}}
  input: {{http: {{}}}}
"""
    topic.send("[] a <urn:x:Smoke>", time="1", content_type="text/turtle")
    topic.send("[] a <urn:x:Smoke> .", time="2")
    topic.send("[] a <urn:x:Smoke> .")
    topic.flush()
    server = Server(configured(tmp_path, text), ())
    try:
        until(lambda: len(server.client.get("/v1/dead-letters").json()["letters"]) == 2)
        first, second = server.client.get("/v1/dead-letters").json()["letters"]
        assert first["place"].startswith(f"s/{topic.name}/0@0")
        assert "no header `time`" in json.dumps(second, ensure_ascii=False)
        refused = server.client.post(f"/v1/dead-letters/{first['number']}/retry")
        assert refused.status_code == 404
        assert "`s` takes nothing back" in refused.text
        assert "?stream=; streams: input" in refused.text
        taken = server.client.post(f"/v1/dead-letters/{first['number']}/retry?stream=input")
        assert taken.status_code == 202
    finally:
        stopped(server)


def test_columns_of_a_message_are_members_of_its_json() -> None:
    columns = b'"kafka":{"key":"k"}}'
    for content, expected in (
        (b'{"a": 1, "kafka": 2}', {"a": 1, "kafka": {"key": "k"}}),
        (b" {} ", {"kafka": {"key": "k"}}),
        (b"21.5", {"value": 21.5, "kafka": {"key": "k"}}),
        (b'[{"a": 1}, 2]', [{"a": 1, "kafka": {"key": "k"}}, {"value": 2, "kafka": {"key": "k"}}]),
    ):
        assert json.loads(with_columns(content, columns, "json")) == expected
    lines = with_columns(b'{"a":1}\n\n{"a":2}\n', columns, "jsonl").splitlines()
    assert [json.loads(line)["a"] for line in lines] == [1, 2]
    assert with_columns(b"not json", columns, "json") == b"not json"


def test_a_topic_and_a_key_are_made_of_rule_and_bindings() -> None:
    room = {"type": "uri", "value": "urn:x#room 14"}
    name = {"type": "literal", "value": "a/b{rule}"}
    bindings = {"room": room, "name": name, "none": None}
    assert topic_of("e.{rule}.{room}.{name}.{none}", "Fire", bindings) == "e.Fire.room_14.a_b_rule_._"
    assert key_of("{rule}/{room}/{name}/{none}", "Fire", bindings) == "Fire/urn:x#room 14/a/b{rule}/"


def test_a_password_is_never_sent_in_clear() -> None:
    with pytest.raises(DataError, match="in clear"):
        cluster_of("k:9092", "dotr", "s", "PLAIN", False, None)
    assert cluster_of("k:9092", "dotr", "s", "PLAIN", True, None).tls


def test_a_trial_says_what_is_missing(broker: Broker) -> None:
    topic = Topic(broker)
    assert "lets us in" in try_cluster(Cluster(broker.servers), [topic.name])
    with pytest.raises(DataError, match="no topic `missing`"):
        try_cluster(Cluster(broker.servers), ["missing"])


class Held:
    """A transport of documents that are there."""

    name = "t"

    def __init__(self, documents: list[Document]) -> None:
        self.documents = documents

    def partitions(self) -> list[str]:
        return ["0"]

    def open(self, partition: str, position: Any) -> Iterator[list[Document]]:
        yield self.documents

    def position(self, partition: str, mark: Any) -> Any:
        return mark

    def committed(self, positions: Any) -> None:
        pass


@pytest.mark.parametrize("mapped", [False, True])
def test_lines_that_are_taken_together_are_what_each_is_alone(tmp_path: Path, mapped: bool) -> None:
    """Graphs, places, what is refused, and the position after each."""
    mapping = None
    if mapped:
        (tmp_path / "a.map").write_text('# time: time\n<urn:x:o> <urn:x:celsius> "{v}" .\n')
        mapping = replace(read_mapping(str(tmp_path / "a.map")), format="jsonl")
    made = random.Random(11)  # what lines there are
    graph = '{"time":%d,"v":%d}' if mapped else '{"time":%d,"graph":"<urn:x:o> <urn:x:celsius> %d ."}'
    lines = {
        "bad": "{",
        "two": f"{graph % (1, 1)}\n{graph % (2, 2)}",
        "blank": "",
        "text": "nonsense",
        "none": '{"time":7}',
    }
    texts = [made.choice([*lines.values(), *(graph % (n, n) for n in range(40))]) for n in range(300)]
    alone = [Document(text.encode(), n + 1, f"s/t/0@{n}", mapping=mapping) for n, text in enumerate(texts)]
    joined = together(alone)
    assert len(joined) < 0.7 * len(alone)
    found = []
    for documents in (alone, joined):
        source = DocumentSource(Held(documents), Format.JSONLINES, fail=False)
        items = []
        for item in source.items(lambda _source, _partition: None):
            source.consumed(item)
            shown = (item.time, item.triples, item.place) if isinstance(item, TimedGraph) else str(item.error)
            items.append((shown, item.file, source.changes()))
        found.append(items)
    assert found[0] == found[1]
    assert sum("None" not in str(one[0]) for one in found[0]) > 100

"""What a server takes from Kafka and gives to it, beside the client library alone.

Method:  a broker of one node on this machine, one topic of three partitions, a JSON line a message; `dotr
         serve` in a process of its own. CPU is that of a process, without the broker's; of what comes in, the
         cost of a message more: of all messages less that of a quarter of them, so that what a process takes
         to begin counts nowhere.
           in      messages that are there when the server starts, until all are processed and committed;
                   beside it the same messages through `Consumer.consume` alone, and the same lines as a file
                   that such a server reads: the engine, with decoding, commits and the messages that are
                   kept; and through `dotr feed`, which keeps none and commits less often
           mapped  the same as JSON rows through a mapping, which are decoded one by one
           out     events of an outbox through `Delivery`, until the cursor has the last; beside it the same
                   lines, with headers as long, through a transactional `Producer` alone
Skipped where no broker can be had: no Java, no jars.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.connectors.kafka_broker import Broker, NoBrokerError

from .serve import RULES, Server, lines

if TYPE_CHECKING:
    from dotr.connectors.kafka import KafkaReceiver

PARTITIONS = 3

LIMIT = 120
"""Seconds for one of the figures, after which the bench fails."""

MAP = """# time: time
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
<urn:x:o> <urn:x:room> <urn:x:{room}> ; <urn:x:celsius> "{value}"^^xsd:integer .
"""


def make(servers: str, topic: str, partitions: int) -> None:
    """A topic."""
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415  # an extra

    client = AdminClient({"bootstrap.servers": servers})
    client.create_topics([NewTopic(topic, partitions, 1)])[topic].result()


def fill(servers: str, topic: str, messages: list[bytes]) -> None:
    """Messages, in turn to the partitions, in order in each: a producer without `enable.idempotence` puts a
    batch that it had to send again behind later ones.
    """
    from confluent_kafka import Producer  # noqa: PLC0415  # an extra

    producer = Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 50,
            "queue.buffering.max.messages": 2**21,
            "enable.idempotence": True,
        }
    )
    for number, message in enumerate(messages):
        producer.produce(topic, message, None, number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


def bare_in(servers: str, topic: str, count: int) -> float:
    """Seconds of CPU of the library's own loop."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition  # noqa: PLC0415  # an extra

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bare"})
    begun, found = time.process_time(), 0
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    while found < count:
        for message in consumer.consume(500, 1.0):
            if message.error() is None:
                message.value(), message.offset()
                found += 1
    consumer.close()
    return time.process_time() - begun


def server_in(servers: str, topic: str, count: int, more: str) -> dict[str, float]:
    """Graphs a second, and seconds of CPU, of a server from its start on."""
    return _served(f"{{kafka: '{servers}', topics: [{topic}], {more}}}", count)


def served_file(content: bytes) -> float:
    """Seconds of CPU of a server whose source is a file."""
    return _served("{files: [all.jsonl], format: jsonl}", content.count(b"\n"), content)["cpu"]


def _served(source: str, count: int, content: bytes = b"") -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "temp.map").write_text(MAP)
        Path(folder, "all.jsonl").write_bytes(content)
        source = f"sources.lines={source}"
        with Server(folder, "--set", source, "--set", "keep.messages=1h") as server:
            begun, cpu, deadline = time.perf_counter(), server.cpu(), time.monotonic() + LIMIT
            while True:
                with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/v1/status") as answer:
                    done = json.load(answer)["graphs"]
                if done > count - PARTITIONS:  # the last of the others wait for the first
                    break
                assert time.monotonic() < deadline, f"{done:,} of {count:,} came in {LIMIT} s"
                time.sleep(0.1)
            return {
                "per_s": count / (time.perf_counter() - begun),
                "cpu": server.cpu() - cpu,
            }


def engine(content: bytes) -> float:
    """Seconds of CPU of `dotr feed` on a file."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rules.dotr").write_text(RULES)
        Path(folder, "all.jsonl").write_bytes(content)
        dotr = [sys.executable, "-m", "dotr.cli.main"]
        quiet = {"cwd": folder, "check": True, "capture_output": True}
        subprocess.run([*dotr, "deploy", "rules.dotr", "--dir", "d"], **quiet)  # type: ignore[call-overload]
        before = _children()
        subprocess.run(  # type: ignore[call-overload]
            [*dotr, "feed", "all.jsonl", "--dir", "d", "-o", "events.jsonl"], **quiet
        )
        return _children() - before


def _children() -> float:
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def out(servers: str, count: int) -> dict[str, float]:
    """Events a second and microseconds of CPU an event of a delivery, and of the library alone."""
    from confluent_kafka import Producer  # noqa: PLC0415  # an extra

    from dotr.connectors.kafka import Cluster, KafkaReceiver  # noqa: PLC0415  # an extra
    from dotr.service.cursors import Delivery  # noqa: PLC0415  # as those
    from dotr.service.outbox import Cursors, OutboxReader  # noqa: PLC0415  # as those

    make(servers, "out", PARTITIONS)
    with tempfile.TemporaryDirectory() as folder:
        with Server(folder) as server:
            for start in range(0, count + 1, 500):
                request = urllib.request.Request(
                    f"http://127.0.0.1:{server.port}/v1/streams/input?wait=committed",
                    lines(start, 500, 1),
                    {"content-type": "application/x-ndjson"},
                )
                urllib.request.urlopen(request).close()  # noqa: S310  # our own
        dir_ = os.path.join(folder, ".dotr")
        with OutboxReader(dir_, look=None) as reader, Cursors(dir_) as cursors:
            last = reader.last()
            receiver = KafkaReceiver(Cluster(servers), "out", "{room}", "bench")
            _begin(receiver)
            delivery = Delivery("o", receiver, reader, cursors)
            begun, cpu = time.perf_counter(), time.process_time()
            delivery.start()
            deadline = time.monotonic() + LIMIT
            while delivery.state.delivered < last and not delivery.state.failures:
                assert time.monotonic() < deadline, f"{delivery.state.delivered:,} of {last:,} were delivered"
                time.sleep(0.02)
            assert not delivery.state.failures, delivery.state.why
            taken = {
                "out_per_s": last / (time.perf_counter() - begun),
                "out_us": (time.process_time() - cpu) / last * 1e6,
            }
            delivery.stop()
            rows = reader.page(0, 2_000).rows
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "bare", "linger.ms": 5})
    producer.init_transactions(30)
    rounds = max(1, last // len(rows))
    cpu = time.process_time()
    for _ in range(rounds):
        producer.begin_transaction()
        for row in rows:
            headers = [
                ("id", row.id),
                ("rule", row.rule),
                ("time", "0"),
                ("content-type", "application/json"),
            ]
            producer.produce("out", row.line, "room", headers=headers)
        producer.commit_transaction(30)
    taken["bare_out_us"] = (time.process_time() - cpu) / (rounds * len(rows)) * 1e6
    return taken


def _begin(receiver: KafkaReceiver) -> None:
    """Make the producer, which a broker that has just begun refuses for a moment."""
    from dotr.service.cursors import NotDeliveredError  # noqa: PLC0415  # as those

    deadline = time.monotonic() + LIMIT
    while True:
        try:
            receiver.delivered()
        except NotDeliveredError:
            assert time.monotonic() < deadline, "the broker takes no transactions"
            time.sleep(0.2)
        else:
            return


def figures(graphs: int) -> tuple[list[dict[str, Any]], dict[str, float], dict[str, bool]]:
    """The table, the figures, and what must hold; nothing of it, and why, where there is no broker."""
    try:
        import confluent_kafka  # noqa: F401, PLC0415  # an extra

        with tempfile.TemporaryDirectory() as folder:
            broker = Broker(Path(folder, "broker"))
            try:
                found = _measured(broker.servers, graphs)
            finally:
                broker.kill()
    except (ImportError, NoBrokerError) as error:
        return [{"skipped": str(error)}], {}, {}
    rows = [
        {"what": "in", "a second": round(found["per_s"]), "µs CPU": round(found["us"], 1)},
        {"what": "  library alone", "a second": "", "µs CPU": round(found["bare_in_us"], 1)},
        {"what": "  dotr serve, a file", "a second": "", "µs CPU": round(found["served_us"], 1)},
        {"what": "  dotr feed, a file", "a second": "", "µs CPU": round(found["engine_us"], 1)},
        {
            "what": "in, mapped",
            "a second": round(found["mapped_per_s"]),
            "µs CPU": round(found["mapped_us"], 1),
        },
        {"what": "out", "a second": round(found["out_per_s"]), "µs CPU": round(found["out_us"], 1)},
        {"what": "  library alone", "a second": "", "µs CPU": round(found["bare_out_us"], 1)},
    ]
    checks = {
        "at least 40,000 graphs/s come in": found["per_s"] >= 40_000,
        "at least 20,000 events/s go out": found["out_per_s"] >= 20_000,
        "in: at most twice the library's own CPU, and the engine's": found["us"]
        <= 2 * found["bare_in_us"] + found["served_us"],
        "out: at most twice the library's own CPU": found["out_us"] <= 2 * found["bare_out_us"],
    }
    return rows, {name: round(value, 1) for name, value in found.items()}, checks


def _measured(servers: str, graphs: int) -> dict[str, float]:
    few, tenth = graphs // 4, graphs // 10
    content = {name: lines(0, count) for name, count in (("in", graphs), ("few", few))}
    for name, these in content.items():
        make(servers, name, PARTITIONS)
        fill(servers, name, these.splitlines())
    make(servers, "mapped", PARTITIONS)
    mapped = [b'{"time":%d,"room":"r%d","value":%d}' % (n, n % 100, 20 + n % 50) for n in range(tenth)]
    fill(servers, "mapped", mapped)
    less = server_in(servers, "few", few, "format: jsonl")
    found = server_in(servers, "in", graphs, "format: jsonl")
    more = graphs - few
    found["us"] = (found.pop("cpu") - less["cpu"]) / more * 1e6
    bare = bare_in(servers, "in", graphs) - bare_in(servers, "few", few)
    found["bare_in_us"] = bare / more * 1e6
    found["served_us"] = (served_file(content["in"]) - served_file(content["few"])) / more * 1e6
    found["engine_us"] = (engine(content["in"]) - engine(content["few"])) / more * 1e6
    rows = server_in(servers, "mapped", tenth, "map: temp.map")
    found |= {"mapped_per_s": rows["per_s"], "mapped_us": rows["cpu"] / tenth * 1e6}
    return found | out(servers, graphs // 4)

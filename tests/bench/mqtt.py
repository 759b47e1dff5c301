"""What a server takes in from a broker, and what that costs beside a bare client.

Method:  mosquitto, a sender and `dotr serve` are processes of their own; every message is one graph, QoS 1,
         commits every 20 ms. CPU time is that of the process. The sender writes packets that it made before:
         with paho it takes more of the machine than the server, and 3,300 messages a second are all it sends.
           bare     paho alone: it gets the messages, acknowledges each by hand, and does nothing else
           whole    the server: from the first message until all are processed and committed
           parts    once more with the engine paused until all are in the inbox: what receiving costs, then
                    what the engine costs
         The broker writes its store at its end alone: one that writes all that it has queued again and again
         (`autosave_on_changes`) takes 200 messages a second, whoever reads them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.connectors.brokers import Mosquitto

from .serve import Server

_LOOK = 1.0
"""Seconds between two questions, which cost the server something, too."""

LIMIT = 120
"""Seconds for the messages of one figure, after which the bench fails."""

SENDER = """
import socket, struct, sys
port, topic, count = int(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3])
AHEAD = 4_000

def packet(kind, content):
    low, high = len(content) % 128, len(content) // 128
    return bytes([kind, low | 128, high] if high else [kind, low]) + content

def text(content):
    return struct.pack("!H", len(content)) + content

def message(n):
    line = b'{"time":%d,"graph":"<urn:x:o> <urn:x:room> <urn:x:r%d> ; <urn:x:celsius> %d ."}'
    line %= (n, n % 100, 20 + 50 * (n % 10 == 0))
    return packet(0x32, text(topic) + struct.pack("!H", n % 65_535 + 1) + line)

parts = [b"".join(map(message, range(start, min(start + 500, count)))) for start in range(0, count, 500)]
broker = socket.create_connection(("127.0.0.1", port))
broker.sendall(packet(0x10, text(b"MQTT") + bytes([4, 2, 0, 0]) + text(b"")))
assert broker.recv(4) == bytes([0x20, 2, 0, 0])
came = 0  # bytes of acknowledgements, four each
for number, part in enumerate(parts):
    while number * 500 - came // 4 > AHEAD:
        came += len(broker.recv(65_536))
    broker.sendall(part)
while came < 4 * count:
    came += len(broker.recv(65_536))
"""

BARE = """
import sys, time
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
port, count = int(sys.argv[1]), int(sys.argv[2])
client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5, manual_ack=True)
came = 0
begun = since = 0.0
def on_message(client, _data, message):
    global came, begun, since
    begun, since = begun or time.process_time(), since or time.perf_counter()
    came += 1
    client.ack(message.mid, 1)
    if came == count:
        client.disconnect()
def on_subscribe(*_):
    print("ready", flush=True)
client.on_message, client.on_subscribe = on_message, on_subscribe
properties = Properties(PacketTypes.CONNECT)
properties.ReceiveMaximum = 1000
client.connect("127.0.0.1", port, properties=properties)
client.subscribe("bare", 1)
client.loop_forever()
print((time.process_time() - begun) / count, count / (time.perf_counter() - since), flush=True)
"""


def _send(broker: Mosquitto, topic: str, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SENDER, str(broker.port), topic, str(count)])


def bare(broker: Mosquitto, count: int) -> tuple[float, float]:
    """Seconds of CPU that paho takes for a message; messages a second."""
    client = subprocess.Popen(
        [sys.executable, "-c", BARE, str(broker.port), str(count)], stdout=subprocess.PIPE, text=True
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n"
    sender = _send(broker, "bare", count)
    cost, rate = map(float, client.stdout.readline().split())
    assert client.wait() == sender.wait() == 0
    return cost, rate


def _ask(server: Server, path: str, method: str = "GET") -> Any:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  # of this machine
        return json.load(answer)


def _until(server: Server, graphs: int, name: str = "graphs") -> None:
    deadline = time.monotonic() + LIMIT
    while _count(_ask(server, "/v1/status"), name) < graphs:
        assert time.monotonic() < deadline, f"{graphs:,} messages do not come in {LIMIT} s"
        time.sleep(_LOOK)


def _count(status: Any, name: str) -> int:
    return int(status["inbox"].get("in", 0) if name == "inbox" else status[name])


def _configured(folder: str, broker: Mosquitto, topic: str) -> None:
    Path(folder, "dotr.yaml").write_text(
        f"sources: {{in: {{mqtt: '{broker.url}', topics: [{topic}], format: jsonl, client: {topic}}}}}\n"
        "inbox: {max: 10000000}\nkeep: {messages: 1h}\n"
    )


def _listening(server: Server) -> None:
    deadline = time.monotonic() + 30
    while not _ask(server, "/v1/status")["subscriptions"][0]["connected"]:
        assert time.monotonic() < deadline, "the server does not subscribe"
        time.sleep(0.05)


def whole(broker: Mosquitto, count: int) -> tuple[float, float]:
    """Messages a second until all are processed and committed; seconds of CPU for each."""
    with tempfile.TemporaryDirectory() as folder:
        _configured(folder, broker, "whole")
        with Server(folder) as server:
            _listening(server)
            begun, cpu = time.perf_counter(), server.cpu()
            sender = _send(broker, "whole", count)
            _until(server, count)
            taken = time.perf_counter() - begun
            assert sender.wait() == 0
            return count / taken, (server.cpu() - cpu) / count


def parts(broker: Mosquitto, count: int) -> tuple[float, float]:
    """Seconds of CPU for a message: to receive it, and to process it."""
    with tempfile.TemporaryDirectory() as folder:
        _configured(folder, broker, "parts")
        with Server(folder) as server:
            _listening(server)
            _ask(server, "/v1/pause", "POST")
            begun = server.cpu()
            assert _send(broker, "parts", count).wait() == 0
            _until(server, count, "inbox")
            received = server.cpu()
            _ask(server, "/v1/resume", "POST")
            _until(server, count)
            return (received - begun) / count, (server.cpu() - received) / count


def figures(count: int) -> tuple[list[dict[str, Any]], dict[str, float], dict[str, bool]]:
    """The table of costs, the rate, and what must hold."""
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        broker = Mosquitto(Path(folder), saves=False)
        try:
            alone, most = bare(broker, count)
            received, processed = parts(broker, count)
            rate, cost = whole(broker, count)
        finally:
            broker.stop()
    rows = [
        {"what": "paho alone", "us/message": round(alone * 1e6, 1)},
        {"what": "received, on disk, acknowledged", "us/message": round(received * 1e6, 1)},
        {"what": "processed and committed", "us/message": round(processed * 1e6, 1)},
        {"what": "all of it at once", "us/message": round(cost * 1e6, 1)},
    ]
    checks = {
        "at least 5,000 messages/s are received, processed and committed": rate >= 5_000,
        "CPU is at most twice that of paho alone, and the engine": cost <= 2 * alone + processed,
    }
    figures = {
        "messages_per_s": round(rate),
        "paho_messages_per_s": round(most),
        "paho_ratio": round(received / alone, 2),
        "whole_ratio": round((cost - processed) / alone, 2),
    }
    return rows, figures, checks

"""MQTT in and out, by paho: messages are in the inbox before they are acknowledged.

Place:   a source and an output of `dotr serve` (the extra `mqtt`). In: `Subscription` appends to the inbox,
         from which the feed reads. Out: `Publisher` is a `Receiver` (service/cursors.py).
Method:  In: QoS 1, acknowledged by hand after the inbox's commit, in a session that outlives connections
         (clean start off). The broker sends again what was not acknowledged: with the flag DUP and the same
         packet id. Such a message is dropped where a row that may not be acknowledged yet has the same id and
         bytes: that is the row's key. Nobody knows when an acknowledgement has arrived, but a broker has at
         most 1,000 messages on their way (`Receive Maximum`), so a key goes when there are as many newer
         ones. With a full inbox nothing is acknowledged, and the broker stops.
         Levels of the topic are columns of a mapping, `{topic.1}` the first; a JSON payload that is no object
         is `{value}`.
         Out: QoS 1, in order; what the broker has acknowledged moves the cursor.
Why not: QoS 2: paho answers PUBREC before a program has the message, so a kill loses what was acknowledged.
         An asyncio client: none acknowledges by hand.
Bad input: D4215 a broker that cannot be had.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import paho.mqtt.client as paho
from msgspec import Struct
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from dotr.errors import DataError, Diagnostic, DotrError, RefusedError, Severity
from dotr.service.cursors import NotDeliveredError
from dotr.service.inbox import Inbox, Received
from dotr.service.logs import OutboxRow

Version: TypeAlias = Literal["5", "3.1.1"]

PORTS: Final = {"mqtt": 1883, "mqtts": 8883}

IN_FLIGHT: Final = 1_000
"""Messages that a broker may send before the first of them is acknowledged."""

SESSION: Final = 7 * 24 * 3600
"""Seconds for which a broker keeps what comes while nobody is connected."""

TIMEOUT: Final = 15.0
"""Seconds for an acknowledgement of a broker."""


class Broker(Struct, frozen=True):
    """Where a broker is, and as whom to talk to it. `client`: the name of the session; one at a time may use
    it.
    """

    url: str
    client: str
    version: Version = "5"
    user: str | None = None
    password: str = ""


def client_of(broker: Broker) -> paho.Client:
    """A client that is not connected yet."""
    protocol = paho.MQTTv5 if broker.version == "5" else paho.MQTTv311
    more: dict[str, Any] = {} if broker.version == "5" else {"clean_session": False}
    client = paho.Client(
        CallbackAPIVersion.VERSION2, broker.client, protocol=protocol, manual_ack=True, **more
    )
    if broker.user is not None:
        client.username_pw_set(broker.user, broker.password)
    if urlsplit(broker.url).scheme == "mqtts":
        client.tls_set()
    client.reconnect_delay_set(1, 60)
    client.max_queued_messages_set(0)
    return client


def connect(client: paho.Client, broker: Broker) -> None:
    """Connect in the thread of the client, and again whenever that fails."""
    parts = urlsplit(broker.url)
    port = parts.port or PORTS[parts.scheme]
    more: dict[str, Any] = {}
    if broker.version == "5":
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho
        properties.SessionExpiryInterval = SESSION
        properties.ReceiveMaximum = IN_FLIGHT
        more = {"clean_start": False, "properties": properties}
    client.connect_async(parts.hostname or "", port, 30, **more)
    client.loop_start()


def payload_of(content: bytes, topic: str) -> bytes:
    """A JSON payload with the levels of its topic, for a mapping; what is not JSON as it came."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return content
    rows = value if isinstance(value, list) else [value]
    levels = {str(number): level for number, level in enumerate(topic.split("/"), 1)}
    made = [{**(row if isinstance(row, dict) else {"value": row}), "topic": levels} for row in rows]
    return json.dumps(made if isinstance(value, list) else made[0], ensure_ascii=False).encode()


class _Message(Struct):
    """A message that is not acknowledged. `connection`: the number of the one that it came by."""

    id: int
    topic: str
    content: bytes
    format: str
    repeated: bool
    connection: int


class Subscription:
    """Owns the client of one source, and the thread that appends to the inbox. `format`: of messages that do
    not say it; `mapping`: the name of what makes graphs of JSON, "" for none.
    """

    def __init__(
        self,
        name: str,
        broker: Broker,
        topics: Sequence[str],
        inbox: Inbox,
        format_: str = "",
        mapping: str = "",
        say: Callable[[Diagnostic], None] = lambda _found: None,
    ) -> None:
        self.name, self.connected, self.received, self.why = name, False, 0, "not connected yet"
        self._broker, self._topics, self._inbox = broker, list(topics), inbox
        self._format, self._mapping, self._say = format_, mapping, say
        self._connection = 0
        self._keys = deque(inbox.keys_of(name))
        self._came: queue.SimpleQueue[_Message | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._client = client_of(broker)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_connect_fail = self._on_connect_fail
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message
        self._thread = threading.Thread(target=self._append_all, name=f"dotr-mqtt-{name}", daemon=True)

    def start(self) -> None:
        """Connect, and go on with the session."""
        self._thread.start()
        connect(self._client, self._broker)

    def stop(self) -> None:
        """End after what came; the session stays."""
        self._stopping.set()
        self._came.put(None)
        self._thread.join(10)
        self._client.disconnect()
        self._client.loop_stop()

    # ------------------------------------------------------------------ in the client's thread

    def _on_connect(self, client: paho.Client, _data: Any, _flags: Any, code: Any, _properties: Any) -> None:
        if code.is_failure:
            self._fails(f"the broker refuses: {str(code).lower()}")
            return
        self._connection += 1
        client.subscribe([(topic, 1) for topic in self._topics])

    def _on_subscribe(self, _client: Any, _data: Any, _id: int, codes: Sequence[Any], _more: Any) -> None:
        refused = [topic for topic, code in zip(self._topics, codes, strict=False) if code.is_failure]
        if refused:
            self._fails(f"the broker refuses `{refused[0]}`")
            return
        if self.why and self.why != "not connected yet":
            self._say(_finding(f"the source `{self.name}` is connected again"))
        self.connected, self.why = True, ""

    def _on_disconnect(self, _client: Any, _data: Any, _flags: Any, code: Any, _properties: Any) -> None:
        was, self.connected = self.connected, False
        if was and not self._stopping.is_set():  # else it is known why
            self._fails(f"the connection ended: {str(code).lower()}")

    def _on_connect_fail(self, _client: Any, _data: Any) -> None:
        self._fails("there is no connection")

    def _fails(self, why: str) -> None:
        self.connected = False
        if not self.why or self.why == "not connected yet":
            self._say(_finding(f"the source `{self.name}`, {self._broker.url}: {why}"))
        self.why = why

    def _on_message(self, _client: Any, _data: Any, message: paho.MQTTMessage) -> None:
        properties = message.properties
        said = getattr(properties, "ContentType", "") if properties is not None else ""
        pairs = getattr(properties, "UserProperty", ()) if properties is not None else ()
        format_ = said or dict(pairs).get("content-type", "") or self._format
        content = bytes(message.payload)
        if self._mapping and (not said or "json" in said):
            content = payload_of(content, message.topic)
        self.received += 1
        self._came.put(_Message(message.mid, message.topic, content, format_, message.dup, self._connection))

    # ------------------------------------------------------------------ in the thread of its own

    def _append_all(self) -> None:
        while (message := self._came.get()) is not None:
            while not self._stopping.is_set():
                try:
                    self._append(message)
                    break
                except RefusedError:  # full: what is not acknowledged stays at the broker
                    self._stopping.wait(0.2)
                except DotrError as error:
                    self._say(error.diagnostics[0])
                    self._stopping.wait(1.0)

    def _append(self, message: _Message) -> None:
        hashed = blake2b(message.content + message.topic.encode(), digest_size=16).hexdigest()
        key = f"{message.id} {hashed}"
        future = self._inbox.append(
            self.name,
            message.content,
            format=message.format,
            key=key,
            mapping=self._mapping,
            renew=not message.repeated,
        )
        future.add_done_callback(lambda done: self._appended(done, message, key))

    def _appended(self, done: Future[Received], message: _Message, key: str) -> None:
        """The row is on disk: acknowledge, unless the connection is another one now."""
        if done.cancelled() or done.exception() is not None:
            self._came.put(message)  # the disk is full, perhaps: once more
            return
        if message.connection == self._connection:
            self._client.ack(message.id, 1)
        if not done.result().duplicate:
            self._keys.append(key)
        if len(self._keys) > 2 * IN_FLIGHT:
            self._inbox.release(self.name, [self._keys.popleft() for _ in range(IN_FLIGHT)])


def _finding(message: str) -> Diagnostic:
    return Diagnostic("D4215", message, severity=Severity.WARNING)


class Publisher:
    """Owns a client that publishes. `topic`: `{rule}` and variables of the rule are put in; `retain`: rules
    whose last event the broker keeps.
    """

    def __init__(self, broker: Broker, topic: str, retain: Sequence[str] = ()) -> None:
        self.identity = f"{broker.url} {topic}"
        self._broker, self._topic, self._retain = broker, topic, frozenset(retain)
        self._client: paho.Client | None = None
        self._is_connected = threading.Event()
        self._why = ""

    def close(self) -> None:
        """Let go of the connection."""
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()

    def give(self, rows: Sequence[OutboxRow]) -> int:
        """See `Receiver`."""
        client = self._connected()
        asked = [(row, self._publish(client, row)) for row in rows]
        until, count = time.monotonic() + TIMEOUT, 0
        for _, info in asked:
            try:
                info.wait_for_publish(max(0.0, until - time.monotonic()))
            except (RuntimeError, ValueError) as error:
                self._why = str(error)
                break
            if not info.is_published():
                break
            count += 1
        if not count:
            raise NotDeliveredError(self._why or f"{self._broker.url} does not acknowledge")
        return count

    def _connected(self) -> paho.Client:
        client = self._client
        if client is None:
            client = self._client = client_of(self._broker)
            client.on_connect = self._on_connect
            client.on_disconnect = lambda *_: self._is_connected.clear()
            connect(client, self._broker)
        if not self._is_connected.wait(TIMEOUT):
            raise NotDeliveredError(self._why or f"{self._broker.url} cannot be connected to")
        return client

    def _on_connect(self, _client: Any, _data: Any, _flags: Any, code: Any, _properties: Any) -> None:
        if code.is_failure:
            self._why = f"{self._broker.url} refuses: {str(code).lower()}"
        else:
            self._is_connected.set()

    def _publish(self, client: paho.Client, row: OutboxRow) -> paho.MQTTMessageInfo:
        more: dict[str, Any] = {}
        event = json.loads(row.line)
        if self._broker.version == "5":
            properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # paho
            properties.ContentType = "application/json"
            properties.UserProperty = [("id", row.id), ("rule", row.rule), ("time", str(event["time"]))]
            more["properties"] = properties
        topic = topic_of(self._topic, row.rule, event["bindings"])
        return client.publish(topic, row.line, 1, row.rule in self._retain, **more)


def topic_of(template: str, rule: str, bindings: Mapping[str, Any]) -> str:
    """A topic with the rule and its variables put in. An IRI gives its last part; what would be another level
    or a wildcard is left out of a value.
    """
    topic = template.replace("{rule}", rule)
    for name, term in bindings.items():
        value = str(term["value"]) if term else ""
        last = value.replace("#", "/").rstrip("/").rpartition("/")[2].rpartition(":")[2]
        plain = "".join(c for c in (last if term and term["type"] == "uri" else value) if c not in "/#+\0")
        topic = topic.replace(f"{{{name}}}", plain or "_")
    return topic


def broker_of(url: str, client: str, version: Version, user: str | None, password: str) -> Broker:
    """A broker by its URL. Raises DataError D4215."""
    parts = urlsplit(url)
    try:
        known = parts.scheme in PORTS and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        known = False
    if not known:
        raise DataError.of("D4215", f"`{url}` is not a broker", hint="mqtt://HOST:1883 or mqtts://HOST:8883")
    return Broker(url, client, version, user, password)

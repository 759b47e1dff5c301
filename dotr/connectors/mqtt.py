"""MQTT in and out: messages are in the inbox before they are acknowledged.

Place:   a source and an output of `dotr serve` (the extra `mqtt`). In: `Subscription` appends to the inbox,
         from which the feed reads. Out: `Publisher`, by paho, is a `Receiver` (service/cursors.py).
Method:  In: QoS 1, acknowledged by hand after the inbox's commit, in a session that outlives connections
         (clean start off). The broker sends again what was not acknowledged: with the flag DUP and the same
         packet id. Such a message is dropped where the last row with that packet id has the same bytes and
         topic: that is the row's key. Nobody knows when an acknowledgement has arrived, but a packet id that
         comes with another message is free, so the one before was acknowledged: then its key goes. At most
         65,535 are kept. (To count newer messages instead is not enough: mosquitto was seen to have 2,000 on
         their way, with a `Receive Maximum` of 1,000.) With a full inbox nothing is acknowledged, and the
         broker stops.
         One thread receives, appends and acknowledges by turns (mqtt_session.py). While more than one message
         comes at a time, those of 10 ms go into one commit, and their acknowledgements are one write after
         it. A message of QoS 0 is appended, too; nobody sends it again.
         Levels of the topic are columns of a mapping, `{topic.1}` the first; a JSON payload that is no object
         is `{value}`.
         Out: QoS 1, in order; what the broker has acknowledged moves the cursor.
Why not: QoS 2: its PUBREC goes out before a program has the message, so a kill loses what was acknowledged.
         An asyncio client: none acknowledges by hand. A thread that receives while another appends: messages
         go from hand to hand one by one, and the broker sends no faster than it gets acknowledgements.
Bad input: D4215 a broker that cannot be had.
"""

from __future__ import annotations

import json
import queue
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from dotr.connectors.bound_values import last_part, values_of
from dotr.connectors.mqtt_session import (
    IN_FLIGHT,
    PORTS,
    SESSION,
    TIMEOUT,
    BrokenError,
    Broker,
    Message,
    NotLetInError,
    Session,
    Version,
)
from dotr.errors import DataError, Diagnostic, DotrError, EngineError, RefusedError, Severity
from dotr.io.changes import comparable
from dotr.service.cursors import NotDeliveredError
from dotr.service.inbox import Inbox, Incoming
from dotr.service.logs import OutboxRow

TOGETHER: Final = 0.01
"""Seconds in which messages come together to one commit, while more than one comes."""

_LOOK: Final = 0.1
"""Seconds after which a thread that waits for messages sees that it is to end."""

_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 60.0
"""Seconds before it connects again, at first and at last."""

_NOT_YET: Final = "not connected yet"


def client_of(broker: Broker) -> paho.Client:
    """A client that is not connected yet; one without a name has no session."""
    protocol = paho.MQTTv5 if broker.version == "5" else paho.MQTTv311
    more: dict[str, Any] = {} if broker.version == "5" else {"clean_session": not broker.client}
    client = paho.Client(
        CallbackAPIVersion.VERSION2, broker.client, protocol=protocol, manual_ack=True, **more
    )
    if broker.user is not None:
        client.username_pw_set(broker.user, broker.password)
    if urlsplit(broker.url).scheme == "mqtts":
        client.tls_set(broker.ca)
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


def try_broker(broker: Broker) -> None:
    """Connect, without a session, and let go. Raises EngineError D4215."""
    client, codes = client_of(broker), queue.SimpleQueue[Any]()
    client.on_connect = lambda _client, _data, _flags, code, _properties: codes.put(code)
    parts = urlsplit(broker.url)
    try:
        client.connect(parts.hostname or "", parts.port or PORTS[parts.scheme], 30)
        client.loop_start()
        code = codes.get(timeout=TIMEOUT)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise EngineError.of("D4215", f"{broker.url}: {why}", hint="see that the broker runs") from None
    except queue.Empty:
        raise EngineError.of("D4215", f"{broker.url} does not answer as a broker does") from None
    finally:
        client.disconnect()
        client.loop_stop()
    if code.is_failure:
        raise EngineError.of(
            "D4215", f"{broker.url} refuses: {str(code).lower()}", hint="check `user` and `password`"
        )


def payload_of(content: bytes, topic: str) -> bytes:
    """A JSON payload with the levels of its topic, for a mapping; what is not JSON as it came."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return content
    rows = value if isinstance(value, list) else [value]
    levels = {str(number): level for number, level in enumerate(topic.split("/"), 1)}
    made = [{**(row if isinstance(row, dict) else {"value": row}), "topic": levels} for row in rows]
    return json.dumps(made if isinstance(value, list) else made[0]).encode()


class Subscription:
    """Owns the thread that receives what one source subscribes to, and appends it to the inbox. `format`: of
    messages that do not say it; `mapping`: the name of what makes graphs of JSON, "" for none.
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
        self.name, self.connected, self.received, self.why = name, False, 0, _NOT_YET
        self._broker, self._topics, self._inbox = broker, list(topics), inbox
        self._format, self._mapping, self._say = format_, mapping, say
        self._keys: dict[str, str] = {}
        """Packet id → the key of the last row with it."""
        self._free: dict[str, None] = {}
        """Keys whose packet ids have come with other messages since."""
        for key in inbox.keys_of(name):
            self._keep(key)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"dotr-mqtt-{name}", daemon=True)

    def start(self) -> None:
        """Connect, and go on with the session."""
        self._thread.start()

    def stop(self) -> None:
        """End after what came; the session stays."""
        self._stopping.set()
        self._thread.join(10)

    # ------------------------------------------------------------------ in the thread

    def _run(self) -> None:
        """Session after session."""
        wait = _FIRST_WAIT
        while not self._stopping.is_set():
            try:
                session = Session(self._broker)
            except NotLetInError as error:
                self._fails(f"the broker refuses: {error}")
            except BrokenError as error:
                self._fails(f"what answers there does not let us in as a broker does: {error}")
            except OSError:
                self._fails("there is no connection")
            else:
                wait = _FIRST_WAIT
                try:
                    self._subscribed(session.subscribe(self._topics))
                    self._receive_all(session)
                except BrokenError as error:
                    self._fails(f"the connection ended: {error}")
                finally:
                    session.close()
            self._stopping.wait(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        self.connected = False

    def _subscribed(self, refused: Sequence[str]) -> None:
        if refused:
            self._fails(f"the broker refuses `{refused[0]}`")
            return
        if self.why and self.why != _NOT_YET:
            self._say(_finding(f"the source `{self.name}` is connected again"))
        self.connected, self.why = True, ""

    def _fails(self, why: str) -> None:
        self.connected = False
        if not self.why or self.why == _NOT_YET:
            self._say(_finding(f"the source `{self.name}`, {self._broker.url}: {why}"))
        self.why = why

    def _receive_all(self, session: Session) -> None:
        """Append what comes, until the end. Raises BrokenError."""
        while not self._stopping.is_set():
            came = session.receive(_LOOK)
            broken: BrokenError | None = None
            if len(came) > 1:
                try:
                    self._stopping.wait(TOGETHER)
                    while len(came) < IN_FLIGHT and (more := session.receive(0)):
                        came += more
                except BrokenError as error:
                    broken = error
            self.received += len(came)
            self._append_all(came, session)
            if broken is not None:
                raise broken

    def _append_all(self, batch: Sequence[Message], session: Session) -> None:
        while batch and not self._stopping.is_set():
            try:
                batch = self._append(batch, session)
            except RefusedError:  # full: what is not acknowledged stays at the broker
                self._stopping.wait(0.2)
            except DotrError as error:
                self._say(error.diagnostics[0])
                self._stopping.wait(1.0)
            session.keep_alive()

    def _append(self, batch: Sequence[Message], session: Session) -> Sequence[Message]:
        """Acknowledge messages that are on disk. Returns those for which there was no room. Raises
        DotrError.
        """
        rows = [self._row(message) for message in batch]
        answers = self._inbox.append_all(self.name, rows).result()
        left = list(batch[len(answers) :])
        kept: list[int] = []
        for message, row, answer in zip(batch, rows, answers, strict=False):
            if isinstance(answer, DotrError):
                left.append(message)
                self._say(answer.diagnostics[0])
            elif message.id:
                kept.append(message.id)
                if not answer.duplicate:
                    self._keep(row.key)
        session.acknowledge(kept)
        if len(self._free) >= IN_FLIGHT:
            self._inbox.release(self.name, self._free)
            self._free = {}
        return left

    def _row(self, message: Message) -> Incoming:
        id_, again, topic, content, (said, beside) = message
        if self._mapping and (not said or "json" in said):
            content = payload_of(content, topic.decode("utf-8", "replace"))
        key = f"{id_} {blake2b(content + topic, digest_size=16).hexdigest()}" if id_ else ""
        return Incoming(
            content, said or beside or self._format, "", key, self._mapping, bool(id_) and not again
        )

    def _keep(self, key: str) -> None:
        """A packet id has come with a message, whose key it is from now on."""
        id_ = key.partition(" ")[0]
        before, self._keys[id_] = self._keys.get(id_, key), key
        if before != key:
            self._free[before] = None
            self._free.pop(key, None)


def _finding(message: str) -> Diagnostic:
    return Diagnostic("D4215", message, severity=Severity.WARNING)


class Publisher:
    """Owns a client that publishes. `topic`: `{rule}` and variables of the rule are put in; `retain`: rules
    whose last event the broker keeps.

    A broker does not keep what a correction took back: then it keeps nothing until the next event of that
    topic.
    """

    def __init__(self, broker: Broker, topic: str, retain: Sequence[str] = ()) -> None:
        self.identity = f"{broker.url} {topic}"
        self._broker, self._topic, self._retain = broker, topic, frozenset(retain)
        self._client: paho.Client | None = None
        self._is_connected = threading.Event()
        self._kept: dict[str, _Kept] = {}
        self._why = ""

    def close(self) -> None:
        """Let go of the connection."""
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()

    def give(self, rows: Sequence[OutboxRow]) -> int:
        """See `Receiver`."""
        client = self._connected()
        asked = [self._publish(client, row) for row in rows]
        until, count = time.monotonic() + TIMEOUT, 0
        for infos in asked:
            try:
                for info in infos:
                    info.wait_for_publish(max(0.0, until - time.monotonic()))
            except (RuntimeError, ValueError) as error:
                self._why = str(error)
                break
            if not all(info.is_published() for info in infos):
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

    def _publish(self, client: paho.Client, row: OutboxRow) -> list[paho.MQTTMessageInfo]:
        more: dict[str, Any] = {}
        event = json.loads(row.line)
        if self._broker.version == "5":
            properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # paho
            properties.ContentType = "application/json"
            said = [("id", row.id), ("rule", row.rule), ("time", str(event["time"]))]
            properties.UserProperty = said if row.change is None else [*said, ("change", str(row.change))]
            more["properties"] = properties
        topic = topic_of(self._topic, row.rule, event["bindings"])
        retains = row.rule in self._retain
        if row.change is None:
            return [client.publish(topic, row.line, 1, retains, **more)]
        kept, at = self._kept.get(topic), comparable(event["time"])
        if row.change > 0:
            newest = not row.corrected or kept is None or kept.at <= at
            if retains and newest:
                self._kept[topic] = _Kept(row.id, at)
            return [client.publish(topic, row.line, 1, retains and newest, **more)]
        sent = [client.publish(topic, row.line, 1, False, **more)]
        if retains and (kept is None or kept.id == row.id):
            self._kept.pop(topic, None)
            sent.append(client.publish(topic, b"", 1, True))
        return sent


class _Kept(NamedTuple):
    """The event that a broker keeps of a topic. `at`: its time, as `comparable` has it."""

    id: str
    at: Any


_LONGEST_TOPIC: Final = 65_535


def refuse_filter(filter_: str) -> None:
    """Raise DataError D4215 for what nobody can subscribe to (MQTT 5, 4.7)."""
    levels = filter_.split("/")
    wild = [level for level in levels if "#" in level or "+" in level]
    if _is_text(filter_) and not set(wild) - {"+", "#"} and "#" not in levels[:-1]:
        return
    raise DataError.of(
        "D4215",
        f"{filter_[:80]!r} is no topic to subscribe to",
        hint="`+` stands for a whole level, and `#` for all that follow: home/+/temp, home/#",
    )


def refuse_topic(template: str) -> None:
    """Raise DataError D4215 for what nobody can publish to."""
    if not _is_text(template) or "#" in template or "+" in template:
        raise DataError.of(
            "D4215",
            f"{template[:80]!r} is no topic to publish to",
            hint="a topic has no wildcards: events/{rule}",
        )


def _is_text(topic: str) -> bool:
    return "\0" not in topic and 0 < len(topic.encode("utf-8", "replace")) <= _LONGEST_TOPIC


def topic_of(template: str, rule: str, bindings: Mapping[str, Any]) -> str:
    """A topic with the rule and its variables put in. An IRI gives its last part; what would be another level
    or a wildcard is left out of a value.
    """
    topic = template.replace("{rule}", rule)
    for name, term in bindings.items():
        value = ",".join(map(last_part, values_of(term)))
        plain = "".join(c for c in value if c not in "/#+\0")
        topic = topic.replace(f"{{{name}}}", plain or "_")
    return topic


def broker_of(
    url: str, client: str, version: Version, user: str | None, password: str, ca: str | None = None
) -> Broker:
    """A broker by its URL. Raises DataError D4215."""
    parts = urlsplit(url)
    try:
        known = parts.scheme in PORTS and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        known = False
    if not known:
        raise DataError.of("D4215", f"`{url}` is not a broker", hint="mqtt://HOST:1883 or mqtts://HOST:8883")
    if ca is not None:
        if parts.scheme != "mqtts":
            raise DataError.of("D4215", f"`{url}` is not encrypted: it needs no `ca`", hint="write mqtts://")
        try:
            ssl.create_default_context(cafile=ca)
        except OSError as error:
            why = (error.strerror or "no certificate in it").lower()
            raise DataError.of(
                "D4215", f"`{ca}` cannot be read: {why}", hint="`ca` is a file of certificates, PEM"
            ) from None
    if "\0" in client:
        raise DataError.of(
            "D4215", "the name of a session (`client`) has no null character", hint="client: board"
        )
    return Broker(url, client, version, user, password, ca)

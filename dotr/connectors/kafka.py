"""Kafka in and out, by confluent-kafka: exactly once, in order within a partition.

Place:   a source and an output of `dotr serve` (the extra `kafka`). In: `KafkaTransport` (io/feeds.py), whose
         positions the journal has. Out: `KafkaReceiver` (service/cursors.py).
Method:  In: a partition is assigned from the offset of the journal on, so there is no group, nothing to
         rebalance, and nobody else is disturbed. Each partition has a consumer: its queue is bounded, so one
         that waits for others (by time) is not fetched any further. Nothing blocks: a consumer is asked for
         what it has. A thread asks for metadata: it finds new partitions, and whether the cluster is there.
         A message is a document; its position is the offset after it. `read_committed`: what a transaction
         has not committed is not there. A tombstone is a document without graphs, which moves the position.
         Offsets that are gone are reported with their number, and reading goes on with what is there; a
         position after the end (a topic that was made again) is reported, and the partition is left alone.
         Out: one transaction has the events and, as the offset of a group, the number of the last one with
         its id as metadata (KIP-98). That number is read back at the start and after whatever failed, so
         nothing is repeated and nothing left out. The transactional id lets one producer live: who began
         before is fenced, and stops.
Why not: a group: its rebalances would take partitions away, and its offsets are not in the journal's commit.
         One consumer of all partitions: its queue mixes them, and to hold one back throws away what was
         fetched. A two-phase sink: a kill between the phases aborts what the journal has. A schema registry:
         messages say how they are written by `content-type`.
Bad input: D4220 a cluster that cannot be had · D4221 messages that are gone.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from msgspec import Struct
from msgspec.structs import astuple, replace

from dotr.connectors.bound_values import Bound, bound_text, last_part, values_of
from dotr.errors import DataError, Diagnostic, Severity
from dotr.events import Clock
from dotr.io.decode.documents import Format
from dotr.io.feeds import Document, Position, is_line, together
from dotr.io.tables.mapping import TableMapping
from dotr.service.cursors import Delivered, NotDeliveredError
from dotr.service.inbox import TABLE_TYPES, TimeMode, format_called
from dotr.service.logs import OutboxRow
from dotr.service.outbox import Origin

From: TypeAlias = Literal["earliest", "latest"]
Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

TIMEOUT: Final = 15.0
"""Seconds for an answer of a cluster, of what is delivered."""

LOOK: Final = 10.0
"""Seconds between two looks for new partitions."""

_AGAIN: Final = 1.0
"""Seconds before the next look at a cluster that did not answer."""

_ASKED: Final = 5.0
"""Seconds for metadata, and for the offsets that a partition has."""

_BATCH: Final = 500
_ROUND: Final = 2.0
"""Seconds after which every partition is asked again, however much one of them has."""

_QUEUE: Final = 8 << 10
"""KiB that are fetched ahead, a partition."""

_BESIDE: Final = 20_000
"""Messages whose headers are remembered."""

_WALL: Final = Clock(integer=False)
_NO_TIME: Final = "no header `time`"
_KAFKA: Final = re.compile(r"[^A-Za-z0-9._-]")

_LOGGER: Final = logging.getLogger("dotr.kafka")
_LOGGER.propagate = False
_LOGGER.addHandler(logging.NullHandler())  # else the library writes to standard error


class Cluster(Struct, frozen=True):
    """Where a cluster is, and as whom to talk to it. `servers`: HOST:PORT, with commas; `ca`: a file."""

    servers: str
    user: str | None = None
    password: str = ""
    mechanism: Mechanism = "SCRAM-SHA-512"
    tls: bool = False
    ca: str | None = None


def cluster_of(
    servers: str, user: str | None, password: str, mechanism: Mechanism, tls: bool, ca: str | None
) -> Cluster:
    """A cluster. Raises DataError D4220 for a password that would be sent in clear."""
    if user is not None and mechanism == "PLAIN" and not tls:
        raise DataError.of(
            "D4220",
            f"the password of `{user}` would be sent to {servers} in clear",
            hint="tls: true, or sasl: SCRAM-SHA-512",
        )
    if user is not None and not password:
        raise DataError.of(
            "D4220", f"the user `{user}` has no password", hint='password: "env:KAFKA_PASSWORD"'
        )
    if ca is not None and not os.access(ca, os.R_OK):
        raise DataError.of(
            "D4220", f"`{ca}`, who certifies {servers}, cannot be read", hint="ca: FILE, as PEM"
        )
    return Cluster(servers, user, password, mechanism, tls or ca is not None, ca)


def settings_of(cluster: Cluster, **more: Any) -> dict[str, Any]:
    """What a client of a cluster is made of."""
    settings: dict[str, Any] = {
        "bootstrap.servers": cluster.servers,
        "client.id": "dotr",
        "logger": _LOGGER,
        "log.connection.close": False,
        "reconnect.backoff.max.ms": 2_000,
        "allow.auto.create.topics": False,
        "security.protocol": ("SASL_" if cluster.user is not None else "")
        + ("SSL" if cluster.tls else "PLAINTEXT"),
    }
    if cluster.user is not None:
        settings |= {
            "sasl.mechanism": cluster.mechanism,
            "sasl.username": cluster.user,
            "sasl.password": cluster.password,
        }
    if cluster.ca is not None:
        settings["ssl.ca.location"] = cluster.ca
    return settings | {name.replace("_", "."): value for name, value in more.items()}


def try_cluster(cluster: Cluster, topics: Sequence[str]) -> str:
    """List topics, and let go; what was found. Raises DataError D4220."""
    client = AdminClient(settings_of(cluster))
    try:
        found = client.list_topics(timeout=_ASKED).topics
    except KafkaException as error:
        raise DataError.of("D4220", f"{cluster.servers}: {_why(error)}", hint=_HINT) from None
    missing = [topic for topic in topics if topic not in found]
    if missing:
        raise DataError.of("D4220", f"{cluster.servers} has no topic `{missing[0]}`", hint="make it first")
    return f"{cluster.servers} lets us in"


_HINT: Final = "see that it runs, and the address, user and `tls`"


def _why(error: KafkaException | KafkaError) -> str:
    """What an error of the library says, for people."""
    found = error.args[0] if isinstance(error, KafkaException) else error
    if not isinstance(found, KafkaError):
        return str(found)
    if found.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT):
        return "there is no connection"
    return str(found.str()).rstrip(".").partition(" (after ")[0]


def _finding(code: str, message: str, hint: str = "") -> Diagnostic:
    return Diagnostic(code, message, severity=Severity.WARNING, hint=hint)


# ---------------------------------------------------------------------- in


class _Partition:
    """Owns the consumer of one partition. `next`: the offset after what was given, None before the first;
    `standing`: why nothing is read of it.
    """

    def __init__(self, topic: str, number: int, consumer: Consumer) -> None:
        self.topic, self.number, self.consumer = topic, number, consumer
        self.next: int | None = None
        self.standing = ""
        self.error = ""

    def begin(self, offset: int) -> None:
        """Read from an offset on."""
        self.consumer.assign([TopicPartition(self.topic, self.number, offset)])
        self.next = max(0, offset)

    def bounds(self) -> tuple[int, int]:
        """The first offset that is there, and that of the next message. Raises KafkaException."""
        found = self.consumer.get_watermark_offsets(
            TopicPartition(self.topic, self.number), timeout=_ASKED, cached=False
        )
        if found is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        low, high = found
        return low, high

    def lag(self) -> int:
        """How many messages are not read yet, as far as that is known."""
        with suppress(KafkaException, RuntimeError):
            _, high = self.consumer.get_watermark_offsets(
                TopicPartition(self.topic, self.number), cached=True
            )
            return max(0, high - (self.next or 0)) if high > 0 else 0
        return 0


class KafkaTransport:
    """The partitions of some topics, as `topic/0`. A position is the offset of the next message. See
    `Transport`, and `Replayed` of serve/replayed.py.

    `mapping`: what makes graphs of a message; `mode`: where times are (`TIME_MODES`); `begin`: where reading
    begins without a position; `lines`: messages are JSON lines, one each as a rule. A partition that appears
    later is read from its first message on.
    """

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        topics: Sequence[str],
        *,
        mapping: TableMapping | None = None,
        mode: TimeMode = "event",
        begin: From = "earliest",
        lines: bool = False,
        say: Callable[[Diagnostic], None] = lambda _found: None,
        look: float = LOOK,
    ) -> None:
        self.name, self.received = f"kafka/{name}", 0
        self._name, self._cluster, self._topics = name, cluster, list(topics)
        self._mapping, self._mode, self._begin, self._say = mapping, mode, begin, say
        self._columns = mapping is not None and _needs_columns(mapping)
        self._lines, self._together = lines, (lines or mapping is not None) and mode == "event"
        self._mappings: dict[str, TableMapping] = {}
        self._look, self._why = look, "not connected yet"
        self._tombstones = self._gone = 0
        self._names: tuple[str, ...] = ()
        """Partitions that were found."""
        self._first: frozenset[str] = frozenset()
        """Those of the first answer, which `latest` is for."""
        self._fresh: set[str] = set()
        """Topics that were never read before."""
        self._open: dict[str, _Partition] = {}
        self._origins: dict[str, tuple[str, str]] = {}
        self._places: deque[str] = deque()
        self._until = 0.0
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None

    # ------------------------------------------------------------------ how it is

    @property
    def connected(self) -> bool:
        """Whether the cluster answers, and every partition is read."""
        return not self.why

    @property
    def why(self) -> str:
        """Why it does not work; "" where it does."""
        if self._why:
            return self._why
        found = (one.standing or one.error for one in list(self._open.values()))
        return next((why for why in found if why), "")

    @property
    def counts(self) -> Mapping[str, int]:
        """Tombstones, messages that were gone before they were read, and those to be read."""
        lag = sum(one.lag() for one in list(self._open.values()))
        return {"tombstones": self._tombstones, "gone": self._gone, "lag": lag}

    def close(self) -> None:
        """See `Replayed`."""
        self._stopping.set()
        opened, self._open = self._open, {}
        for one in opened.values():
            with suppress(KafkaException, RuntimeError):
                one.consumer.close()
        if self._watcher is not None:
            self._watcher.join(1.0)  # it may be asking a cluster that does not answer

    # ------------------------------------------------------------------ the thread that asks for metadata

    def _watch(self) -> None:
        client: AdminClient | None = None
        while not self._stopping.is_set():
            try:
                client = client or AdminClient(settings_of(self._cluster))
                well = self._looked(client)
            except KafkaException as error:
                self._fails(_why(error))
                well = False
            self._stopping.wait(self._look if well else _AGAIN)

    def _looked(self, client: AdminClient) -> bool:
        """Ask once; whether all is well."""
        names: list[str] = []
        failed = ""
        try:
            for topic in self._topics:
                found = client.list_topics(topic, timeout=_ASKED).topics[topic]
                if found.error is not None:
                    missing = found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                    failed = f"there is no topic `{topic}`" if missing else f"`{topic}`: {_why(found.error)}"
                names += [f"{topic}/{number}" for number in sorted(found.partitions)]
        except KafkaException as error:
            failed = _why(error)
        if self._stopping.is_set():
            return False
        if failed:
            self._fails(failed)
        if names and len(names) >= len(self._names):
            if not self._names:
                self._first = frozenset(names)
            self._names = tuple(names)
        if not failed:
            self._works()
        return not failed

    def _fails(self, why: str) -> None:
        if self._why in ("", "not connected yet"):
            self._say(_finding("D4220", f"the source `{self._name}`, {self._cluster.servers}: {why}"))
        self._why = why

    def _works(self) -> None:
        if self._why not in ("", "not connected yet"):
            self._say(_finding("D4220", f"the source `{self._name}` is connected again"))
        self._why = ""

    # ------------------------------------------------------------------ Transport

    def partitions(self) -> Sequence[str]:
        """See `Transport`. None is known before the cluster has answered."""
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name=f"dotr-kafka-{self._name}", daemon=True)
            self._watcher.start()
        self._until = time.monotonic() + _ROUND
        return self._names

    def open(self, partition: str, position: Position | None) -> Iterator[Sequence[Document]]:
        """See `Transport`. What there is now; the rest of a round, where there is more than that."""
        one = self._open.get(partition) or self._opened(partition)
        if one.standing:
            return
        if one.next is None or (position is not None and one.next != position):
            if (first := self._started(one, partition, position)) is None:
                return
            yield from first
        while time.monotonic() < self._until and (messages := one.consumer.consume(_BATCH, 0)):
            made, errors = self._documents(one, messages)
            if made:
                yield together(made, self._lines) if self._together else made
            if sum(self._failed(one, error) for error in errors):
                if one.next is not None and not one.standing:  # what is gone is not reported again
                    yield [self._nothing(one, one.next)]
                return

    def _opened(self, partition: str) -> _Partition:
        topic, _, number = partition.rpartition("/")
        consumer = Consumer(
            settings_of(
                self._cluster,
                group_id=f"dotr-{self._name}",
                isolation_level="read_committed",
                auto_offset_reset="error",
                enable_auto_commit=False,
                enable_auto_offset_store=False,
                queued_max_messages_kbytes=_QUEUE,
                fetch_error_backoff_ms=200,
            )
        )
        self._open[partition] = one = _Partition(topic, int(number), consumer)
        return one

    def _started(
        self, one: _Partition, partition: str, position: Position | None
    ) -> Sequence[Sequence[Document]] | None:
        """Begin to read a partition, with batches that come first; None: the cluster does not say where."""
        if one.number == 0 and position is None:
            self._fresh.add(one.topic)  # else what has no position is a partition that was added
        if position is not None:
            one.begin(int(position))
            return ()
        if self._begin == "earliest" or one.topic not in self._fresh or partition not in self._first:
            one.begin(OFFSET_BEGINNING)
            return ()
        try:
            _, high = one.bounds()
        except KafkaException as error:
            one.error = _why(error)
            return None
        one.begin(high)
        return ([self._nothing(one, high)],)  # so that the journal has where it began

    def _nothing(self, one: _Partition, mark: int) -> Document:
        """A document without graphs, before an offset."""
        return Document(b"", mark, f"{self._name}/{one.topic}/{one.number}@{mark - 1}", Format.NTRIPLES)

    def _documents(
        self, one: _Partition, messages: Sequence[Message]
    ) -> tuple[list[Document], list[KafkaError]]:
        made: list[Document] = []
        errors: list[KafkaError] = []
        place = f"{self._name}/{one.topic}/{one.number}@"
        plain = self._mapping is None and self._mode == "event"
        for message in messages:
            error = message.error()
            if error is not None:
                errors.append(error)
                continue
            offset = message.offset() or 0
            content = message.value()
            if content is None:
                self._tombstones += 1
                made.append(self._nothing(one, offset + 1))
            elif plain and not message.headers():
                made.append(Document(content, offset + 1, f"{place}{offset}"))
            else:
                made.append(self._document(message, content, offset, f"{place}{offset}"))
        if made:
            one.next, one.error = made[-1].mark, ""
            self.received += len(made)
        return made, errors

    def _document(self, message: Message, content: bytes, offset: int, place: str) -> Document:
        headers = {name: _text(value) for name, value in _pairs(message)}
        said = headers.get("content-type", "").partition(";")[0].strip().lower()
        kind, at = message.timestamp()
        arrival = None if kind == TIMESTAMP_NOT_AVAILABLE else at * 1_000
        stamp = ""
        if self._mode == "header":
            stamp = headers.get("time", "") or _NO_TIME
        elif self._mode == "arrival":
            stamp = _NO_TIME if arrival is None else _WALL.text(arrival)
        mapping = self._mapping if not said or said in TABLE_TYPES else None
        if mapping is not None:
            written = mapping.format or TABLE_TYPES.get(said, "json")
            if self._columns and written in ("json", "jsonl"):
                content = with_columns(content, _columns(message, headers, at), written)
            if written == "json" and mapping.rows is None and is_line(content):
                written = "jsonl"  # the same row, which may be taken together with others
            mapping = self._written(mapping, written)
        if said or stamp:
            self._remember(place, said, stamp)
        return Document(
            content,
            offset + 1,
            place,
            format_called(said) if said and mapping is None else None,
            stamp,
            arrival if self._mode == "event-or-arrival" else None,
            mapping,
        )

    def _written(self, mapping: TableMapping, written: str) -> TableMapping:
        """The mapping for tables that are written so, each time the same object."""
        return self._mappings.setdefault(written, replace(mapping, format=written))

    def _remember(self, place: str, said: str, stamp: str) -> None:
        """For dead letters."""
        self._origins[place] = (said, stamp if stamp != _NO_TIME else "")
        self._places.append(place)
        if len(self._places) > _BESIDE:
            self._origins.pop(self._places.popleft(), None)

    def _failed(self, one: _Partition, error: KafkaError) -> bool:
        """Whether nothing more is to be read of a partition in this round."""
        code = error.code()
        if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            self._out_of_range(one)
            return True
        if code != KafkaError._PARTITION_EOF and not error.retriable():
            one.error = f"{one.topic}/{one.number}: {_why(error)}"
        return False

    def _out_of_range(self, one: _Partition) -> None:
        """The next message is not there."""
        wanted = one.next or 0
        name = f"{one.topic}/{one.number}"
        try:
            low, high = one.bounds()
        except KafkaException as error:
            one.error, one.next = _why(error), None  # it is asked for again in the next round
            return
        if wanted < low:
            self._gone += low - wanted
            self._say(
                _finding(
                    "D4221",
                    f"the source `{self._name}`: {low - wanted:,} messages of {name} are gone, unread: "
                    f"offsets {wanted} to {low - 1}",
                    "let the topic keep messages for longer than the server may be away",
                )
            )
            one.begin(low)
        elif wanted > high:
            one.standing = f"{name} ends at offset {high}, and {wanted} was read before: it was made again"
            self._say(
                _finding(
                    "D4221",
                    f"the source `{self._name}`: {one.standing}",
                    "give the source another name: then the topic is read from where `from` says",
                )
            )
        else:
            one.begin(wanted)

    def position(self, partition: str, mark: Position) -> Position:
        """See `Transport`."""
        return mark

    def committed(self, positions: Mapping[str, Position | None]) -> None:
        """See `Transport`. The cluster keeps messages by its own rules."""

    def origin(self, place: str) -> Origin | None:
        """See `Replayed`."""
        head, at, rest = place.rpartition("@")
        number = rest.partition(":")[0].partition(",")[0]
        if not at or not number.isdecimal() or not head.startswith(f"{self._name}/"):
            return None
        format_, stamp = self._origins.get(f"{head}@{number}", ("", ""))
        return Origin(
            self._name, int(number), format_, stamp, self._name if self._mapping is not None else ""
        )


def _text(value: bytes | str | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _pairs(message: Message) -> list[tuple[str, bytes | str | None]]:
    found = message.headers()
    return list(found.items()) if isinstance(found, dict) else list(found or ())


def _needs_columns(mapping: TableMapping) -> bool:
    """Whether a mapping uses what is beside a message, or values that are no objects."""
    used = repr(mapping.used())
    return "kafka." in used or "value" in used


def _columns(message: Message, headers: Mapping[str, str], at: int) -> bytes:
    """What is beside a message, as a member of a JSON object."""
    value = {
        "key": _text(message.key()),
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": at,
        "headers": dict(headers),
    }
    return b'"kafka":' + json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"}"


def with_columns(content: bytes, columns: bytes, written: str) -> bytes:
    """JSON with a member more in each object: of a document, of an array, of each line. What is no object
    is the member `value`; what is not JSON stays as it came.
    """
    if written == "jsonl":
        return b"\n".join(
            with_columns(line, columns, "json") for line in content.splitlines() if line.strip()
        )
    text = content.strip()
    if text.startswith(b"{") and text.endswith(b"}"):
        return text[:-1] + (b"," if text[1:-1].strip() else b"") + columns
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return content
    if isinstance(value, list):
        each = [with_columns(json.dumps(one).encode(), columns, "json") for one in value]
        return b"[" + b",".join(each) + b"]"
    return b'{"value":' + text + b"," + columns


# ---------------------------------------------------------------------- out


_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_JSON: Final = ("content-type", "application/json")
_PLACE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def refuse_topic(topic: str) -> None:
    """Raise DataError D4220 for what is not the name of a topic."""
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise DataError.of(
            "D4220",
            f"{topic[:80]!r} is not the name of a topic",
            hint="a name has letters, digits, `.`, `_` and `-`, at most 249",
        )


def refuse_template(template: str) -> None:
    """Raise DataError D4220 for what cannot be the name of a topic, whatever is put in."""
    refuse_topic(_PLACE.sub("_", template))


def topic_of(template: str, rule: str, bindings: Mapping[str, Any]) -> str:
    """A topic with the rule and its variables put in. An IRI gives its last part; what a topic cannot have is
    `_`.
    """

    def put(name: str) -> str:
        if name == "rule":
            return _KAFKA.sub("_", rule)
        value = ",".join(map(last_part, values_of(bindings.get(name))))
        return _KAFKA.sub("_", value) or "_"

    return _filled(template, put)[:249]


def key_of(template: str, rule: str, bindings: Mapping[str, Any]) -> str:
    """The key of an event, with the rule and its variables put in, whole."""

    def put(name: str) -> str:
        return rule if name == "rule" else bound_text(bindings.get(name))

    return _filled(template, put)


def _filled(template: str, put: Callable[[str], str]) -> str:
    """A template with what `put` has for each name."""
    parts = [*_parts(template)]
    parts[1::2] = map(put, parts[1::2])
    return "".join(parts)


@cache
def _parts(template: str) -> Sequence[str]:
    """What stands around names, and names, by turns: to search each time takes twice as long."""
    return _PLACE.split(template)


class _Event(Struct):
    """What is read of a JSON line: of the variables those that are put in somewhere."""

    time: int | str
    bindings: Any


def _reader(names: Sequence[str]) -> Callable[[str], _Event]:
    """What reads of lines the time and these variables. What is not read takes no time: half of all of it."""
    fields = [(f"v{number}", Bound, None) for number, _ in enumerate(names)]
    known = {f"v{number}": name for number, name in enumerate(names)}
    bindings = msgspec.defstruct("Bindings", fields, rename=known)
    event = msgspec.defstruct("Event", [("bindings", bindings)], bases=(_Event,), kw_only=True)
    return cast("Callable[[str], _Event]", msgspec.json.Decoder(event).decode)


class KafkaReceiver:
    """Owns a producer. `topic` and `key` are templates; `client`: the transactional id, and the group whose
    offset is the number of the last event. One at a time may use it. See `Receiver`.
    """

    page = 2_000

    def __init__(self, cluster: Cluster, topic: str, key: str | None, client: str) -> None:
        self.identity = f"{cluster.servers} {topic}"
        self._cluster, self._topic, self._key, self._client = cluster, topic, key, client
        self._names = [
            *dict.fromkeys(name for name in _PLACE.findall(f"{topic}{key or ''}") if name != "rule")
        ]
        self._read = _reader(self._names)
        self._producer: Producer | None = None
        self._group: Any = None
        self._consumer: Consumer | None = None
        self._using = threading.Lock()

    def close(self) -> None:
        """See `Receiver`. What is on its way elsewhere is left to the transaction's timeout."""
        if self._using.acquire(timeout=0.5):
            try:
                self._let_go()
            finally:
                self._using.release()

    def _let_go(self) -> None:
        producer, self._producer = self._producer, None
        consumer, self._consumer = self._consumer, None
        if producer is not None:
            with suppress(KafkaException, RuntimeError):
                producer.purge()
        if consumer is not None:
            with suppress(KafkaException, RuntimeError):
                consumer.close()

    def delivered(self) -> Delivered | None:
        """See `Receiver`: what the group's offset says. Who had this name before is fenced, and its
        transaction ended. Raises NotDeliveredError.
        """
        with self._using:
            self._begun()
            admin = AdminClient(settings_of(self._cluster))
            try:
                self._wait_for_coordinator()
                asked = admin.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(self._client)], require_stable=True, request_timeout=TIMEOUT
                )
                found = asked[self._client].result(TIMEOUT).topic_partitions
            except KafkaException as error:
                raise self._not(error) from None
            marks = [one for one in found if one.error is None and one.offset >= 0]
            last = max(marks, key=lambda one: int(one.offset), default=None)
            return None if last is None else Delivered(last.offset, last.metadata or "")

    def _wait_for_coordinator(self) -> None:
        """Return when the broker that has the group answers: a consumer asks until it does. A broker that is
        not in charge yet, asked by an admin client, ends the process by a signal (librdkafka 2.16, its issue
        5040). Raises KafkaException.
        """
        assert self._consumer is not None, "it has begun"
        self._consumer.committed([TopicPartition(_PLACE.sub("_", self._topic), 0)], TIMEOUT)

    def give(self, rows: Sequence[OutboxRow]) -> int:
        """See `Receiver`. All of them, or none."""
        with self._using:
            producer = self._begun()
            failures: list[KafkaError] = []

            def failed(error: KafkaError | None, _message: Any) -> None:
                if error is not None:
                    failures.append(error)

            try:
                producer.begin_transaction()
                topic = ""
                for row in rows:
                    topic = self._produce(producer, row, failed)
                mark = TopicPartition(topic, 0, rows[-1].number, rows[-1].id)
                producer.send_offsets_to_transaction([mark], self._group, TIMEOUT)
                producer.commit_transaction(TIMEOUT)
            except KafkaException as error:
                raise self._not(failures[0] if failures else error) from None
            except BufferError:
                raise self._not(KafkaError(KafkaError._TIMED_OUT)) from None
            return len(rows)

    def _produce(
        self, producer: Producer, row: OutboxRow, failed: Callable[[KafkaError | None, Any], None]
    ) -> str:
        event = self._read(row.line)
        bindings = dict(zip(self._names, astuple(event.bindings), strict=True))
        topic = topic_of(self._topic, row.rule, bindings) if "{" in self._topic else self._topic
        key = None if self._key is None else key_of(self._key, row.rule, bindings)
        headers: list[tuple[str, str | bytes | None]] = [
            ("id", row.id),
            ("rule", row.rule),
            ("time", str(event.time)),
            _JSON,
        ]
        if row.change is not None:
            headers.append(("change", str(row.change)))
        producer.produce(topic, row.line, key, on_delivery=failed, headers=headers)
        return topic

    def _begun(self) -> Producer:
        """The producer, which has fenced those before it."""
        if self._producer is not None:
            return self._producer
        producer = Producer(
            settings_of(
                self._cluster,
                transactional_id=self._client,
                transaction_timeout_ms=int(2_000 * TIMEOUT),
                queue_buffering_max_messages=100_000,
                linger_ms=5,
                delivery_report_only_error=True,
                message_timeout_ms=int(1_000 * TIMEOUT),
            )
        )
        try:
            producer.init_transactions(TIMEOUT)
            self._consumer = Consumer(settings_of(self._cluster, group_id=self._client))
            self._group = self._consumer.consumer_group_metadata()
        except KafkaException as error:
            raise self._not(error) from None
        self._producer = producer
        return producer

    def _not(self, error: KafkaException | KafkaError) -> NotDeliveredError:
        """What failed. The producer goes with its transaction: the next one asks what is delivered."""
        self._let_go()
        found = error.args[0] if isinstance(error, KafkaException) else error
        if isinstance(found, KafkaError) and found.code() in _FENCED:
            return NotDeliveredError(
                f"another producer has the name `{self._client}` at {self._cluster.servers}: stop one of the "
                "two servers, or give this output another `client`, and start again",
                ended=True,
            )
        return NotDeliveredError(f"{self._cluster.servers}: {_why(error)}")


_FENCED: Final = (
    KafkaError._FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
)

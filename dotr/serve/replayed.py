"""The sources of a server that can be asked again: what makes the transport of each kind.

Place:   engine.py makes the transports of a feed here, each time one begins, and closes them when it ends;
         the position is in the journal, so nothing goes through the inbox. `dotr feed` makes those of its
         URIs here, too, of the same `Source`. /v1/status and /readyz show how each is.
Method:  `REPLAYED` has a function for each kind; extras are imported when a source of the kind is made.
         A transport connects, and connects again, by itself: `partitions` and `open` return what is there and
         wait for nobody, since the thread of the engine calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from dotr.connectors.ldes import LdesTransport
from dotr.connectors.upstream import UpstreamTransport
from dotr.errors import DataError, Diagnostic, EngineError
from dotr.io.decode.documents import Format, format_of
from dotr.io.feeds import Transport
from dotr.io.tables.mapping import TableMapping
from dotr.serve.configuration import Output, Source, read_secret
from dotr.service.cursors import Receiver
from dotr.service.outbox import Origin

if TYPE_CHECKING:
    from dotr.connectors.kafka import Cluster

Say: TypeAlias = Callable[[Diagnostic], None]


class Replayed(Transport, Protocol):
    """A transport to another machine. `connected`: whether it answers; `why`: why not, "" where it does;
    `received`: documents since it began; `counts`: what else there is to say, by name.
    """

    @property
    def connected(self) -> bool: ...

    @property
    def received(self) -> int: ...

    @property
    def why(self) -> str: ...

    @property
    def counts(self) -> Mapping[str, int]: ...

    def origin(self, place: str) -> Origin | None:
        """The document that a place is in, with its format and time; None for another place."""

    def close(self) -> None:
        """Let go, within a second or so, also where the other side does not answer."""


Maker: TypeAlias = Callable[[str, Source, TableMapping | None, Say], Replayed]
"""Name of a source, what the configuration has of it, the mapping of its documents, who gets to know that it
fails and works again → its transport. Raises DataError for what cannot be, EngineError D4205 where a package
is missing; whether the other side is there is found out later.
"""


def _cluster(settings: Source | Output) -> Cluster:
    """The cluster of a source or an output. Raises EngineError D4205, DataError D4192, D4220."""
    if find_spec("confluent_kafka") is None:
        raise EngineError.of("D4205", "Kafka needs confluent-kafka", hint="pip install 'dotr[kafka]'")
    from dotr.connectors.kafka import cluster_of  # noqa: PLC0415  # an extra

    assert settings.kafka is not None, "it is of that kind"
    password = "" if settings.password is None else read_secret(settings.password)
    return cluster_of(settings.kafka, settings.user, password, settings.sasl, settings.tls, settings.ca)


def _kafka(name: str, source: Source, mapping: TableMapping | None, say: Say) -> Replayed:
    cluster = _cluster(source)
    if not source.topics:
        raise DataError.of("D4220", f"the source `{name}` has no topics", hint="topics: [readings]")
    from dotr.connectors.kafka import KafkaTransport, refuse_topic  # noqa: PLC0415  # an extra

    for topic in source.topics:
        refuse_topic(topic)

    lines = source.format is not None and format_of(f"x.{source.format}") is Format.JSONLINES
    return KafkaTransport(
        name,
        cluster,
        source.topics,
        mapping=mapping,
        mode=source.time,
        begin=source.from_,
        lines=lines,
        say=say,
    )


def kafka_receiver(name: str, output: Output) -> Receiver:
    """The receiver of an output that is a topic of Kafka. Raises EngineError D4205, DataError."""
    cluster = _cluster(output)
    from dotr.connectors.kafka import KafkaReceiver, refuse_template  # noqa: PLC0415  # an extra

    topic = output.topic or "dotr"
    refuse_template(topic)
    return KafkaReceiver(cluster, topic, output.key, output.client or f"dotr-{name}")


def kafka_trial(settings: Source | Output) -> str:
    """Connect to a cluster and let go; what was found. Raises DotrError."""
    cluster = _cluster(settings)
    from dotr.connectors.kafka import try_cluster  # noqa: PLC0415  # an extra

    return try_cluster(cluster, settings.topics if isinstance(settings, Source) else ())


def _ldes(name: str, source: Source, _mapping: TableMapping | None, say: Say) -> Replayed:
    assert source.ldes is not None, "it is of that kind"
    _refuse_other_times(name, source)
    return LdesTransport(name, source.ldes, source.poll / 1_000_000, say, source.time_path is not None)


def _dotr(name: str, source: Source, _mapping: TableMapping | None, say: Say) -> Replayed:
    assert source.dotr is not None, "it is of that kind"
    _refuse_other_times(name, source)
    token = "" if source.token is None else read_secret(source.token)
    return UpstreamTransport(name, source.dotr, source.rules, token, say)


def _refuse_other_times(name: str, source: Source) -> None:
    """Raise DataError D4222: what is read again must have the same times again."""
    if source.time != "event":
        message = f"the source `{name}` says itself when things are; `time: {source.time}` is not for it"
        raise DataError.of("D4222", message, hint="leave `time` out")


REPLAYED: Final[Mapping[str, Maker]] = {
    "ldes": _ldes,
    "dotr": _dotr,
    "kafka": _kafka,
}
"""Kind of a source → what makes its transport."""


def state_of(name: str, one: Replayed) -> dict[str, Any]:
    """How a source is, for /v1/status."""
    return {
        "name": name,
        "connected": one.connected,
        "received": one.received,
        "why": one.why,
        **one.counts,
    }


def check_replayed(name: str, source: Source) -> None:
    """Raise what `Maker` raises."""
    if source.kind in REPLAYED:
        REPLAYED[source.kind](name, source, None, lambda _found: None).close()

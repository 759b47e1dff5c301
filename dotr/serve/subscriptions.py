"""The sources of a server that others push into without HTTP: connections to brokers, and how they are.

Place:   server.py owns it; each is a `Subscription` (connectors/mqtt.py) that appends to the inbox.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from dotr.errors import DataError, Diagnostic, EngineError
from dotr.io.tables.mapping import TableMapping
from dotr.serve.configuration import Configuration, Output, Source, read_secret
from dotr.service import schemes
from dotr.service.cursors import Receiver
from dotr.service.inbox import Inbox

if TYPE_CHECKING:
    from dotr.connectors.mqtt import Subscription
    from dotr.connectors.mqtt_session import Broker


class SubscriptionState(NamedTuple):
    """How a source is: connected, or why not."""

    name: str
    connected: bool
    received: int
    why: str


def _required() -> None:
    """Raise EngineError D4205 where the package of MQTT is missing."""
    if find_spec("paho") is None:
        raise EngineError.of("D4205", "MQTT needs paho-mqtt", hint="pip install 'dotr[mqtt]'")


def _broker(settings: Source | Output, client: str) -> Broker:
    """The broker of a source or an output. Raises DataError D4192, D4215."""
    from dotr.connectors.mqtt import broker_of  # noqa: PLC0415  # an extra

    assert settings.mqtt is not None, "it is of that kind"
    password = "" if settings.password is None else read_secret(settings.password)
    return broker_of(settings.mqtt, client, settings.protocol, settings.user, password, settings.ca)


def publisher(name: str, output: Output) -> Receiver:
    """The receiver of an output that is a topic. Raises EngineError D4205, DataError."""
    _required()
    from dotr.connectors.mqtt import Publisher, refuse_topic  # noqa: PLC0415  # an extra

    topic = output.topic or "dotr/{rule}"
    refuse_topic(topic)
    broker = _broker(output, output.client or f"dotr-output-{name}")
    return Publisher(broker, topic, output.retain)


def broker_trial(url: str, settings: Source | Output) -> str:
    """Connect to a broker and let go. Raises DotrError."""
    _required()
    from dotr.connectors.mqtt import try_broker  # noqa: PLC0415  # an extra

    try_broker(_broker(settings, ""))
    return f"{url} lets us in"


def check_source(name: str, source: Source) -> None:
    """Raise DataError D4215 for a source without topics, or with what is none, EngineError D4205 where its
    package is missing, UsageError D4213 where no package reads its URI.
    """
    if source.uri is not None:
        schemes.check_source(source.uri)
    if source.mqtt is None:
        return
    _required()
    if not source.topics:
        raise DataError.of("D4215", f"the source `{name}` has no topics", hint="topics: [home/+/temp]")
    from dotr.connectors.mqtt import refuse_filter  # noqa: PLC0415  # an extra

    for topic in source.topics:
        refuse_filter(topic)
    _broker(source, "")


def _subscription(
    name: str, source: Source, mapped: bool, inbox: Inbox, say: Callable[[Diagnostic], None]
) -> Subscription:
    check_source(name, source)
    from dotr.connectors.mqtt import Subscription  # noqa: PLC0415  # an extra

    broker = _broker(source, source.client or f"dotr-{name}")
    return Subscription(name, broker, source.topics, inbox, source.format or "", name if mapped else "", say)


def subscriptions(
    configuration: Configuration,
    mappings: Mapping[str, TableMapping],
    inbox: Inbox,
    say: Callable[[Diagnostic], None],
) -> list[Subscription]:
    """What the configuration subscribes to, not connected yet. Raises DataError, EngineError D4205."""
    return [
        _subscription(name, source, name in mappings, inbox, say)
        for name, source in configuration.sources.items()
        if source.mqtt is not None
    ]


class Subscriptions:
    """Owns the connections."""

    def __init__(self) -> None:
        self._running: Sequence[Subscription] = ()

    def begin(self, made: Sequence[Subscription]) -> None:
        """Listen to these, and to no others any more."""
        self.close()
        self._running = made
        for one in made:
            one.start()

    def states(self) -> list[SubscriptionState]:
        """How each is."""
        return [SubscriptionState(one.name, one.connected, one.received, one.why) for one in self._running]

    def close(self) -> None:
        """End them; their sessions stay."""
        for one in self._running:
            one.stop()
        self._running = ()

"""The kept outputs of a server: which there are, and how they are.

Place:   server.py owns it; each output is a `Delivery` (service/cursors.py) to a connector.
Method:  `CONNECTORS` says what makes the receiver of a kind. A new output begins with the events to come; one
         that is not configured any more loses its cursor, so that nothing is kept for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from dotr.connectors.webhook import Webhook, secret_of
from dotr.errors import Diagnostic
from dotr.serve import subscriptions
from dotr.serve.configuration import Configuration, Output, read_secret
from dotr.service.cursors import Delivery, DeliveryState, Receiver
from dotr.service.outbox import Cursors, OutboxReader

Make: TypeAlias = Callable[[str, Output], Receiver]


def _webhook(_name: str, output: Output) -> Receiver:
    assert output.webhook is not None, "it is of that kind"
    secret = b"" if output.secret is None else secret_of(read_secret(output.secret))
    return Webhook(output.webhook, secret, output.order, output.body)


CONNECTORS: Final[Mapping[str, Make]] = {"webhook": _webhook, "mqtt": subscriptions.publisher}
"""Kind of an output → what makes its receiver. Kinds that commit with the feed are not here."""


def receivers(configuration: Configuration) -> dict[str, Receiver]:
    """The receivers of the kept outputs, by name. Raises DataError D4192."""
    made: dict[str, Receiver] = {}
    for name, output in configuration.outputs.items():
        if output.kind in CONNECTORS:
            made[name] = CONNECTORS[output.kind](name, output)
    return made


PATIENCE: Final = 3.0
"""Seconds for what is on its way when they end, all together."""


class Deliveries:
    """Owns the threads of the kept outputs."""

    def __init__(self, reader: OutboxReader, cursors: Cursors, say: Callable[[Diagnostic], None]) -> None:
        self._reader, self._cursors, self._say = reader, cursors, say
        self._running: list[Delivery] = []

    def begin(self, configuration: Configuration, made: Mapping[str, Receiver]) -> None:
        """Deliver to these outputs, and to no others any more."""
        self.close()
        for name in self._cursors.all():
            if name not in made:
                self._cursors.drop(name)
        last = self._reader.last()
        for name, receiver in made.items():
            self._cursors.begin(name, last)
            rules = configuration.outputs[name].rules or None
            self._running.append(Delivery(name, receiver, self._reader, self._cursors, rules, self._say))
        for delivery in self._running:
            delivery.start()

    def states(self) -> Sequence[DeliveryState]:
        """How each is."""
        return [delivery.state for delivery in self._running]

    def wake(self) -> None:
        """There was a commit."""
        if self._running:
            self._reader.notify()

    def close(self) -> None:
        """End them."""
        for delivery in self._running:
            delivery.end()
        until = time.monotonic() + PATIENCE
        for delivery in self._running:
            delivery.stop(max(0.1, until - time.monotonic()))
        self._running = []

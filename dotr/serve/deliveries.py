"""The kept outputs of a server: which there are, and how they are.

Place:   server.py owns it, and feeding.py for a feed; each output is a `Delivery` (service/cursors.py) to a
         connector.
Method:  `CONNECTORS` says what makes the receiver of a kind. A new output begins with the events to come; one
         that is not configured any more loses its cursor, so that nothing is kept for it: that is reported
         where it had not got everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final, TypeAlias

from dotr.connectors.webhook import Webhook, secret_of
from dotr.core.corrections import too_short
from dotr.errors import Diagnostic, Severity, UsageError
from dotr.program import Program
from dotr.serve import replayed, subscriptions
from dotr.serve.configuration import Configuration, Output, read_secret
from dotr.service import schemes
from dotr.service.cursors import Delivery, DeliveryState, Receiver
from dotr.service.outbox import Cursors, OutboxReader

Make: TypeAlias = Callable[[str, Output], Receiver]


def _webhook(_name: str, output: Output) -> Receiver:
    assert output.webhook is not None, "it is of that kind"
    secret = b"" if output.secret is None else secret_of(read_secret(output.secret))
    return Webhook(output.webhook, secret, output.order, output.body)


CONNECTORS: Final[Mapping[str, Make]] = {
    "webhook": _webhook,
    "mqtt": subscriptions.publisher,
    "kafka": replayed.kafka_receiver,
}
"""Kind of an output → what makes its receiver. Kinds that commit with the feed are not here."""


def receivers(configuration: Configuration) -> dict[str, Receiver]:
    """The receivers of the kept outputs, by name. Raises DataError D4192, UsageError D4213
    for a URI that no package writes to, and as `refuse_uncorrected`.
    """
    refuse_uncorrected(configuration)
    made: dict[str, Receiver] = {}
    for name, output in configuration.outputs.items():
        if output.uri is not None:
            schemes.check_output(output.uri)
        if output.kind in CONNECTORS:
            made[name] = CONNECTORS[output.kind](name, output)
    return made


def refuse_uncorrected(configuration: Configuration) -> None:
    """Raise UsageError D4165, D4167 for what a server with corrections does not do."""
    period = configuration.corrections
    if period is None:
        return
    if period <= configuration.lateness:
        raise too_short(period, configuration.lateness)
    for name, output in configuration.outputs.items():
        if output.uri is not None:
            raise schemes.without_changes(output.uri)
        if output.body is not None and "{change}" not in output.body:
            raise UsageError.of(
                "D4165",
                f"what is posted to `{name}` does not tell whether an event is reported or taken back",
                hint="put {change} into its `body`: 1, or -1 for an event that is taken back",
            )


def unknown_rules(outputs: Mapping[str, Output], program: Program) -> list[Diagnostic]:
    """A warning for each rule of an output that is not deployed; none where no rule is."""
    known = [rule.name for rule in program.rules]
    have = ", ".join(f"`{rule}`" for rule in known)
    return [
        Diagnostic(
            "D5209",
            f"no rule `{rule}` is deployed: the output `{name}` gets no events of it",
            notes=(f"deployed: {have}",),
            hint="write `rules` as the rules are called, or deploy that rule",
            severity=Severity.WARNING,
        )
        for name, output in outputs.items()
        for rule in output.rules
        if known and rule not in known
    ]


def drop_others(
    cursors: Cursors,
    kept: Container[str],
    last: int,
    say: Callable[[Diagnostic], None],
    owned: Callable[[str], bool] = lambda _name: True,
) -> None:
    """Forget the outputs that are owned and not kept. `last`: the number of the last event."""
    for name, cursor in cursors.all().items():
        if name in kept or not owned(name):
            continue
        if cursor.number < last and not cursor.gone:
            say(dropped_output(name, last - cursor.number))
        cursors.drop(name)


def dropped_output(name: str, events: int) -> Diagnostic:
    """A warning: an output is forgotten that did not get so many events."""
    return Diagnostic(
        "D4214",
        f"the output `{name}` is not named any more: {events:,} event{'s' * (events != 1)} it did not get",
        hint="name it to deliver what comes; those events stay in the outbox as long as `keep.events` says",
        severity=Severity.WARNING,
    )


PATIENCE: Final = 3.0
"""Seconds for what is on its way when they end, all together."""


class Deliveries:
    """Owns the threads of the kept outputs. `owned`: whether a cursor of that name may be dropped."""

    def __init__(
        self,
        reader: OutboxReader,
        cursors: Cursors,
        say: Callable[[Diagnostic], None],
        owned: Callable[[str], bool] = lambda _name: True,
    ) -> None:
        self._reader, self._cursors, self._say, self._owned = reader, cursors, say, owned
        self._running: list[Delivery] = []

    def begin(self, configuration: Configuration, made: Mapping[str, Receiver]) -> None:
        """Deliver to these outputs, and to no others any more."""
        self.close()
        last = self._reader.last()
        drop_others(self._cursors, made, last, self._say, self._owned)
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

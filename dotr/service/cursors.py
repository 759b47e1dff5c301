"""Kept outputs: each gets the events of the outbox in a thread of its own, from its cursor on.

Place:   between the outbox and a connector (a webhook, a broker): the connector gives events away, this moves
         the cursor and repeats what failed. A server has one `Delivery` an output.
Method:  the cursor moves behind what the other side has acknowledged, so a crash repeats at most what was on
         its way: at least once, with the same ids. What fails is tried again after a second first, after
         five minutes at last, each time twice as long, by chance up to half of it less (so that many do not
         come back at once): a receiver that comes back after an hour has its events within minutes. The other
         side may say how long (`Retry-After`), up to an hour. One that wants no more (410) is left
         alone until its configuration changes.
         Where the other side keeps the number in one transaction with the events (a Kafka group's offset), it
         is asked for it first, and after whatever failed: the cursor follows it, exactly once.
         Waiting costs nothing but rows of the outbox, which are kept for the slowest cursor; beyond
         `outbox.max` the engine waits (serve/engine.py).
Why not: a queue in memory: gone after a crash. A thread for several outputs: a dead one would hold up others.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from dotr.errors import Diagnostic, DotrError, Severity
from dotr.service.logs import ENDED, FAILING, GONE, OutboxRow
from dotr.service.outbox import Cursors, OutboxReader

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 300.0
"""Seconds before something is tried again, at first and at last."""

LONGEST_ASKED: Final = 3600.0
"""Seconds that the other side may ask for at most."""

_PAGE: Final = 100
_LOOK: Final = 0.5


class NotDeliveredError(Exception):
    """Events that were not taken. `after`: seconds after which to try again, None: as usual; `gone`: the
    output wants no more; `ended`: nothing can be given away before the next start.
    """

    def __init__(
        self, why: str, after: float | None = None, gone: bool = False, *, ended: bool = False
    ) -> None:
        super().__init__(why)
        self.why, self.after, self.gone, self.ended = why, after, gone, ended


class Receiver(Protocol):
    """What takes events. `identity`: another one of the same name is another output."""

    identity: str

    def give(self, rows: Sequence[OutboxRow]) -> int:
        """Give events away in order; how many of the first were acknowledged. Raises NotDeliveredError where
        it was none.
        """

    def close(self) -> None:
        """Let go."""


class Delivered(NamedTuple):
    """What the other side has: the number and the id of the last event."""

    number: int
    id: str


@runtime_checkable
class CountingReceiver(Receiver, Protocol):
    """A receiver whose other side keeps the number in one transaction with the events, so that the cursor
    follows it. `page`: so many events are given at once.
    """

    page: int

    def delivered(self) -> Delivered | None:
        """What the other side has, None: nothing yet. Asked at the start, and after whatever failed. Raises
        NotDeliveredError.
        """


class DeliveryState(Struct, frozen=True):
    """How an output is. `delivered`: the number of the last event that it has; `failures`: how often it
    failed in a row; `errors`: in all; `why`: the last of them, "" where it works.
    """

    name: str
    delivered: int
    failures: int = 0
    errors: int = 0
    why: str = ""
    gone: bool = False


class Delivery:
    """Owns the thread. `rules`: events of these alone, None: all; `say` gets to know that it fails, and that
    it works again; `wait` lets so many seconds pass, None: until they did or it is to end.
    """

    def __init__(
        self,
        name: str,
        receiver: Receiver,
        reader: OutboxReader,
        cursors: Cursors,
        rules: Sequence[str] | None = None,
        say: Callable[[Diagnostic], None] = lambda _found: None,
        noise: random.Random | None = None,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        self.name = name
        self._rows: list[OutboxRow] = []
        """Rows that were read and not delivered, up to the number `_upto`."""
        self._upto = 0
        self._receiver, self._reader, self._cursors = receiver, reader, cursors
        self._rules, self._say = rules, say
        self._noise = noise or random.Random()  # noqa: S311  # when something is tried again
        self._counting = receiver if isinstance(receiver, CountingReceiver) else None
        self._page = _PAGE if self._counting is None else self._counting.page
        self._unsure = self._counting is not None
        self._stopping = threading.Event()
        self._wait = wait or self._stopping.wait
        cursor = cursors.begin(name, 0)
        gone = cursor.state.partition("\n")[0] == f"{GONE} {receiver.identity}"
        if cursor.state and not gone:  # of another receiver, or of what ended before
            cursors.move(name, cursor.number)
        self.state = DeliveryState(name, cursor.number, gone=gone)
        self._thread = threading.Thread(target=self._run, name=f"dotr-output-{name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Begin nothing more."""
        self._stopping.set()

    def stop(self, seconds: float = 5.0) -> None:
        """End after what is on its way."""
        self._stopping.set()
        self._thread.join(seconds)
        self._receiver.close()

    def _run(self) -> None:
        while not self._stopping.is_set() and not self.state.gone:
            try:
                self._step()
            except NotDeliveredError as error:
                self._failed(error)
            except DotrError as error:
                self._failed(NotDeliveredError(error.diagnostics[0].message))
            except Exception as error:  # of a connector: it must not end the output
                self._failed(NotDeliveredError(f"{type(error).__name__}: {error}"[:300]))

    def _step(self) -> None:
        """Give the next events away, or wait for some."""
        if self._unsure and self._counting is not None:
            self._follow(self._counting.delivered())
            self._rows = []
        if not self._rows:
            page = self._reader.page(self.state.delivered, self._page, self._rules)
            if not page.rows:
                if self.state.failures:
                    self._works()  # nothing is left to give
                if page.upto > self.state.delivered:
                    self._move(page.upto)
                    return
                self._reader.wait(_LOOK, self.state.delivered)
                return
            self._rows, self._upto = page.rows, page.upto
        count = self._receiver.give(self._rows)
        if count:
            last = self._rows[count - 1].number
            del self._rows[:count]
            self._move(last if self._rows else self._upto)
            if self.state.failures:
                self._works()

    def _works(self) -> None:
        """It works again."""
        self._move(self.state.delivered)
        self._say(_finding(f"the output `{self.name}` works again", Severity.WARNING))
        self.state = DeliveryState(self.name, self.state.delivered, 0, self.state.errors)

    def _note(self, state: str, error: NotDeliveredError) -> None:
        """Keep for who reads the deployment how the output is. Where that cannot be written, the next event
        shows it.
        """
        with suppress(DotrError):
            self._cursors.move(self.name, self.state.delivered, f"{state}\n{error.why}")

    def _follow(self, found: Delivered | None) -> None:
        """Move the cursor to what the other side has. Raises NotDeliveredError where that is not of ours."""
        if found is not None and found.number > self.state.delivered:
            rows = self._reader.page(found.number - 1, 1).rows
            if not rows or rows[0].number != found.number or rows[0].id != found.id:
                raise NotDeliveredError(
                    f"another deployment has delivered event {found.number} under the same name: give this "
                    "output another `client`"
                )
            self._move(found.number)
        self._unsure = False

    def _move(self, number: int) -> None:
        state = self.state
        self._cursors.move(self.name, number)
        self.state = DeliveryState(self.name, number, state.failures, state.errors, state.why)

    def _failed(self, error: NotDeliveredError) -> None:
        state = self.state
        failures = state.failures + 1
        self._unsure = self._counting is not None
        self._rows = []
        self.state = DeliveryState(
            self.name, state.delivered, failures, state.errors + 1, error.why, error.gone or error.ended
        )
        if error.gone:
            self._note(f"{GONE} {self._receiver.identity}", error)
            self._say(_finding(f"the output `{self.name}` wants no more: {error.why}", Severity.WARNING))
            return
        if error.ended:
            self._note(ENDED, error)
            self._say(_finding(f"the output `{self.name}` has ended: {error.why}", Severity.ERROR))
            return
        if self._stopping.is_set():
            return  # what was on its way was cut off
        if failures == 1 or error.why != state.why:
            self._note(FAILING, error)
        if failures == 1:
            self._say(_finding(f"the output `{self.name}` fails: {error.why}", Severity.WARNING))
        self._wait(wait_of(failures, error.after, self._noise))


def wait_of(failures: int, after: float | None, noise: random.Random) -> float:
    """Seconds to wait after so many failures in a row; `after`: what the other side said."""
    usual = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures - 1, 20))
    usual *= 1.0 - noise.random() / 2
    return usual if after is None else min(LONGEST_ASKED, max(usual, after))


def _finding(message: str, severity: Severity) -> Diagnostic:
    return Diagnostic("D4214", message, severity=severity)

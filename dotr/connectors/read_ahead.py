"""A source that a thread reads ahead of the feed, no further than the feed wants.

Place:   ldes.py and upstream.py are transports (io/feeds.py) over it: `work` reads and calls `put`; the feed
         calls `take`, and waits for nobody.
Method:  at most so many documents, or bytes of them, are ready; then `put` waits. `wait_until_asked` waits,
         too, until the feed takes again, so that nothing is polled while the feed stands still. What fails is
         tried again after a second first and after a minute at last, by chance up to half of it less.
Why not: reading in the thread of the feed: an answer that does not come would hold up all sources.
"""

from __future__ import annotations

import http.client
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from dotr.errors import Diagnostic, DotrError, Severity
from dotr.io.feeds import Document
from dotr.service.cursors import wait_of

_DOCUMENTS: Final = 1_000
_BYTES: Final = 16 << 20
"""What may be ready."""

_LONGEST_WAIT: Final = 60.0
_PATIENCE: Final = 1.0


class NotReadError(Exception):
    """The other side did not give what it should have. `after`: seconds after which it wants to be asked
    again, None: it does not say.
    """

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


class EndedError(Exception):
    """The source is closed."""


class ReadAhead:
    """Owns the thread and what is ready. `what` is the source as messages call it; `work` reads until it
    raises, and says `works` whenever the other side answered; `let_go` is called at its end; `say` gets to
    know that it fails, and that it works again.
    """

    def __init__(
        self,
        what: str,
        work: Callable[[], None],
        say: Callable[[Diagnostic], None],
        let_go: Callable[[], None] = lambda: None,
    ) -> None:
        self.connected, self.why, self.received = False, _NOT_YET, 0
        self._what, self._work, self._say, self._let_go = what, work, say, let_go
        self._ready: deque[Document] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self._asked = self._ended = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"dotr-{self._what}", daemon=True)
            self._thread.start()

    def take(self) -> list[Document]:
        """What is ready."""
        with self._changed:
            found = list(self._ready)
            self._ready.clear()
            self._size, self._asked = 0, True
            self._changed.notify_all()
        return found

    def close(self, wake: Callable[[], None]) -> None:
        """End. `wake` lets a thread that waits for the other side go on; it is not waited for much longer."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        wake()
        if self._thread is not None:
            self._thread.join(_PATIENCE)

    # ------------------------------------------------------------------ in its thread

    def put(self, document: Document) -> None:
        """A document is ready. Raises EndedError."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._ended or (len(self._ready) < _DOCUMENTS and self._size < _BYTES)
            )
            self._go_on()
            self._ready.append(document)
            self._size += len(document.content)
            self.received += 1

    def wait_until_asked(self) -> None:
        """Return when the feed has taken what was ready since the last time. Raises EndedError."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._asked)
            self._go_on()
            self._asked = False

    def sleep(self, seconds: float) -> None:
        """Raises EndedError, also in the middle."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended, seconds)
            self._go_on()

    def _go_on(self) -> None:
        if self._ended:
            raise EndedError

    def works(self) -> None:
        """The other side answered."""
        if self.why not in ("", _NOT_YET):
            self.say(f"{self._what} is connected again")
        self.connected, self.why = True, ""

    def say(self, message: str, code: str = "D4222", hint: str = "") -> None:
        """Something to know."""
        self._say(Diagnostic(code, message, severity=Severity.WARNING, hint=hint))

    def _run(self) -> None:
        try:
            self._repeat()
        finally:
            self._let_go()

    def _repeat(self) -> None:
        noise, failures = random.Random(), 0  # noqa: S311  # when something is tried again
        while True:
            before = self.received
            try:
                self._work()
                return
            except EndedError:
                return
            except NotReadError as error:
                why, after = str(error), error.after
            except DotrError as error:
                why, after = error.diagnostics[0].message, None
            except (OSError, http.client.HTTPException) as error:
                why, after = _told(error), None
            except Exception as error:  # whatever the other side sent
                why, after = f"{type(error).__name__}: {error}", None
            failures = 1 if self.connected or self.received > before else failures + 1
            self._failed(why[:300])
            try:
                self.sleep(min(_LONGEST_WAIT, wait_of(failures, after, noise)))
            except EndedError:
                return

    def _failed(self, why: str) -> None:
        if self._ended:
            return
        if why != self.why:
            self.say(f"{self._what}: {why}")
        self.connected, self.why = False, why


_NOT_YET: Final = "not connected yet"


def _told(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(reason).lower() if isinstance(error, ConnectionError) else str(reason)


class ReadAheadTransport:
    """What transports over a `ReadAhead` have in common: how they are, and one partition."""

    _ahead: ReadAhead

    @property
    def connected(self) -> bool:
        return self._ahead.connected

    @property
    def received(self) -> int:
        return self._ahead.received

    @property
    def why(self) -> str:
        return self._ahead.why

    def partitions(self) -> Sequence[str]:
        """See `Transport`."""
        return [""]

    def _documents(self) -> Iterator[Sequence[Document]]:
        """What is ready now."""
        self._ahead.start()
        while documents := self._ahead.take():
            yield documents

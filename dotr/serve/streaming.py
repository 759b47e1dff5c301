"""Events as they are committed, to any number of readers: server-sent events, lines, pages.

Place:   routes of app.py give a reader to `Broadcast`; rows come from the outbox (service/outbox.py).
Method:  after a commit its rows are read once and written once as the bytes that every reader gets, which are
         kept in a ring of a few MiB. A reader is a number, that of the event it got last. One that is within
         the ring gets its bytes; one that comes later, or has fallen behind, reads pages of the outbox until
         it is. So a reader costs no memory but what the transport holds, and a slow one holds up nobody.
         A reader of some rules, or of some bindings, reads pages as well: a page is filtered for it.
         A reader whose number is older than what is kept is told from where on there are events
         (`dotr-missed`), one whose stream cannot go on why not (`dotr-problem`); names of rules have no
         hyphens.
         Slow: a reader that takes nothing while 1 MiB comes, or for half a minute, is disconnected; it comes
         back with its number (`Last-Event-ID`) and misses nothing.
Why not: sse-starlette: it makes the bytes of each event for each reader, which costs most. A queue a reader:
         its memory grows with the slowest.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from dotr.errors import Diagnostic, DotrError
from dotr.serve.security import Problem, Receive, Scope, Send
from dotr.service.logs import OutboxRow
from dotr.service.outbox import OutboxPage, OutboxReader

RING: Final = 4 << 20
"""Bytes of events that are kept ready."""

PAGE: Final = 1_000
"""Events that are read at once for a reader that is behind."""

UNSENT: Final = 1 << 20
PATIENCE: Final = 30.0
"""Bytes that may come, and seconds that may pass, while a reader takes nothing."""

PULSE: Final = 15.0
"""Seconds of silence after which a comment is sent, so that nobody on the way ends the connection."""

_RETRY: Final = 1.0
"""Seconds after which an outbox that could not be read is read again."""

Write: TypeAlias = Callable[[Sequence[OutboxRow]], bytes]


def as_events(rows: Sequence[OutboxRow]) -> bytes:
    """Server-sent events: number, rule and JSON line of each."""
    return "".join(f"id: {row.number}\nevent: {row.rule}\ndata: {row.line}\n\n" for row in rows).encode()


def as_lines(rows: Sequence[OutboxRow]) -> bytes:
    """JSON lines."""
    return "".join(f"{row.line}\n" for row in rows).encode()


def missed(after: int, page: OutboxPage) -> dict[str, int] | None:
    """What a reader that knew an event gets whose next ones are not kept any more."""
    return {"after": after, "first": page.first} if 0 < after < page.first - 1 else None


def notice(name: str, value: str, lines: bool) -> bytes:
    """What is no event of a rule, in one line of JSON."""
    return f'{{"{name}":{value}}}\n'.encode() if lines else f"event: {name}\ndata: {value}\n\n".encode()


class _Piece(NamedTuple):
    """What one commit brought."""

    first: int
    last: int
    events: bytes
    lines: bytes


class Wanted(Struct, frozen=True):
    """Which events a reader wants: of some rules (None: of all), that pass a test (None: all do)."""

    rules: Sequence[str] | None = None
    passes: Callable[[OutboxRow], bool] | None = None

    @property
    def everything(self) -> bool:
        return self.rules is None and self.passes is None

    def of(self, rows: Sequence[OutboxRow]) -> list[OutboxRow]:
        """Those of the rows that it wants."""
        return [
            row
            for row in rows
            if (self.rules is None or row.rule in self.rules) and (self.passes is None or self.passes(row))
        ]


ALL: Final = Wanted()


class Broadcast:
    """Owns the ring, and wakes the readers. All of it runs in the event loop; `changed` is for other threads.

    `bytes` counts what came since the server began; `say` gets to know that the outbox cannot be read.
    """

    def __init__(self, reader: OutboxReader, say: Callable[[Diagnostic], None] = lambda _found: None) -> None:
        """Raises EngineError."""
        self.reader, self._say = reader, say
        self.readers = 0
        self.bytes = 0
        self.commits = 0
        self._ring: deque[_Piece] = deque()
        self._size = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._commit: asyncio.Event = asyncio.Event()
        self._more: asyncio.Event = asyncio.Event()
        self._last = reader.last()
        self.closing = False

    @property
    def last(self) -> int:
        """The number of the last event that readers may have."""
        return self._last

    async def run(self) -> None:
        """Read what commits bring, until the server stops. What cannot be read is tried again."""
        self._loop = asyncio.get_running_loop()
        failed = False
        while not self.closing:
            try:
                rows = await asyncio.to_thread(self.reader.after, self._last, PAGE)
            except DotrError as error:
                if not failed:
                    self._say(error.diagnostics[0])
                failed = True
                await asyncio.sleep(_RETRY)
                continue
            failed = False
            if rows:
                self._take(rows)
            if len(rows) < PAGE:
                await self._commit.wait()
                self._commit.clear()

    def _take(self, rows: Sequence[OutboxRow]) -> None:
        piece = _Piece(rows[0].number, rows[-1].number, as_events(rows), as_lines(rows))
        self._ring.append(piece)
        size = len(piece.events) + len(piece.lines)
        self._size += size
        self.bytes += size
        while self._size > RING and len(self._ring) > 1:
            gone = self._ring.popleft()
            self._size -= len(gone.events) + len(gone.lines)
        self._last = piece.last
        self._wake()

    def _wake(self) -> None:
        more, self._more = self._more, asyncio.Event()
        more.set()

    def changed(self) -> None:
        """There was a commit; for any thread."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._committed)

    def _committed(self) -> None:
        self.commits += 1
        self._commit.set()
        self._wake()

    def close(self) -> None:
        """End every reader."""
        self.closing = True
        self._commit.set()
        self._wake()

    async def changes(self, seconds: float) -> bool:
        """Wait for the next commit or event, at most so long; whether one came."""
        more = self._more
        try:
            async with asyncio.timeout(seconds):
                await more.wait()
        except TimeoutError:
            return False
        return True

    async def pieces(
        self, after: int, wanted: Wanted, lines: bool, follow: bool = True
    ) -> AsyncIterator[bytes]:
        """The bytes of the events behind a number that a reader wants; b"" for a silence."""
        write: Write = as_lines if lines else as_events
        while not self.closing:
            more = self._more
            if after >= self._last:
                if not follow:
                    return
                try:
                    async with asyncio.timeout(PULSE):
                        await more.wait()
                except TimeoutError:
                    yield b""
                continue
            if wanted.everything and self._ring and after + 1 >= self._ring[0].first:
                ready = [piece for piece in self._ring if piece.last > after]
                if ready[0].first == after + 1:
                    after = ready[-1].last
                    yield b"".join(piece.lines if lines else piece.events for piece in ready)
                    continue
            page, content = await asyncio.to_thread(self._page, after, wanted, write)
            if page.upto <= after:
                return  # the outbox has gone back: there is nothing right to say
            if (gap := missed(after, page)) is not None:
                yield notice("dotr-missed", json.dumps(gap), lines)
            after = page.upto
            if content:
                yield content

    def _page(self, after: int, wanted: Wanted, write: Write) -> tuple[OutboxPage, bytes]:
        page = self.reader.page(after, PAGE, wanted.rules)
        return page, write(wanted.of(page.rows))


async def stream(
    broadcast: Broadcast, scope: Scope, receive: Receive, send: Send, pieces: AsyncIterator[bytes], media: str
) -> None:
    """Answer with pieces until the reader goes away, or is too slow."""
    sse = media == "text/event-stream"
    headers = [
        (b"content-type", f"{media}; charset=utf-8".encode()),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    gone = asyncio.ensure_future(_disconnected(receive))
    broadcast.readers += 1
    try:
        if sse and not await _sent(broadcast, scope, send, b": dotr\n\n", gone):
            return
        async for piece in pieces:
            content = piece or (b": \n\n" if sse else b"\n")
            if gone.done() or not await _sent(broadcast, scope, send, content, gone):
                return
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except DotrError as error:
        content = notice("dotr-problem", Problem(503, error).body().decode(), not sse)
        if await _sent(broadcast, scope, send, content, gone):
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        broadcast.readers -= 1
        gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _sent(
    broadcast: Broadcast, scope: Scope, send: Send, content: bytes, gone: asyncio.Future[None]
) -> bool:
    """Send a piece; whether the reader took it."""
    sending = asyncio.ensure_future(send({"type": "http.response.body", "body": content, "more_body": True}))
    await asyncio.sleep(0)
    if sending.done():  # nearly always
        return not gone.done()
    before, until = broadcast.bytes, asyncio.get_running_loop().time() + PATIENCE
    while True:
        await asyncio.wait((sending, gone), timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            return True
        late = asyncio.get_running_loop().time() > until or broadcast.bytes - before > UNSENT
        if gone.done() or late or broadcast.closing:
            sending.cancel()
            if not gone.done() and (abort := scope.get("dotr.abort")) is not None:
                abort()
                await asyncio.sleep(0)  # it is lost before this answer ends in the middle
            return False

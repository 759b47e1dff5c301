"""Readers of events: what fell behind is told so, and nothing ends them silently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from dotr.errors import Diagnostic, EngineError
from dotr.serve.streaming import ALL, Broadcast, Wanted, stream
from dotr.service.logs import OutboxRow
from dotr.service.outbox import OutboxPage, OutboxReader


def row(number: int) -> OutboxRow:
    return OutboxRow(number, number, "Fire", f"urn:x:{number}", f'{{"time":{number}}}')


class Rows:
    """An outbox in memory from `first` on, which cannot be read so often as `fails` says."""

    def __init__(self, last: int, first: int = 1, fails: int = 0) -> None:
        self.first, self.count, self.fails = first, last, fails

    def last(self) -> int:
        return self.count

    def after(self, number: int, limit: int = 1_000, rules: Sequence[str] | None = None) -> list[OutboxRow]:
        return self.page(number, limit, rules).rows

    def page(self, number: int, limit: int = 1_000, rules: Sequence[str] | None = None) -> OutboxPage:
        if self.fails:
            self.fails -= 1
            raise EngineError.of("D4201", "cannot use the deployment")
        numbers = range(max(number + 1, self.first), self.count + 1)
        return OutboxPage([row(n) for n in numbers][:limit], self.count, self.first)


def broadcast_of(rows: Rows, said: list[Diagnostic] | None = None) -> Broadcast:
    return Broadcast(cast(OutboxReader, rows), (said if said is not None else []).append)


def read(rows: Rows, after: int, lines: bool = False, wanted: Wanted = ALL) -> bytes:
    """What is there for a reader that knows an event."""

    async def run() -> bytes:
        return b"".join([piece async for piece in broadcast_of(rows).pieces(after, wanted, lines, False)])

    return asyncio.run(run())


def test_a_reader_whose_next_events_are_gone_is_told_where_there_are_some() -> None:
    gap = b'event: dotr-missed\ndata: {"after": 3, "first": 9}\n\n'
    assert read(Rows(10, 9), 3).startswith(gap + b"id: 9\n")
    told = b'{"dotr-missed":{"after": 3, "first": 9}}\n{"time":9}'
    assert read(Rows(10, 9), 3, lines=True).startswith(told)
    assert read(Rows(10, 9), 3, wanted=Wanted(None, lambda one: one.number > 9)).startswith(gap + b"id: 10\n")
    assert read(Rows(10, 11), 3) == b'event: dotr-missed\ndata: {"after": 3, "first": 11}\n\n'
    for after in (0, 8, 9):
        assert b"missed" not in read(Rows(10, 9), after)


def test_readers_go_on_when_the_outbox_can_be_read_again() -> None:
    rows, said = Rows(1), list[Diagnostic]()

    async def run() -> bytes:
        broadcast = broadcast_of(rows, said)
        rows.count, rows.fails = 2, 2
        running = asyncio.ensure_future(broadcast.run())
        async with asyncio.timeout(10):
            piece = await anext(broadcast.pieces(1, ALL, True))
        broadcast.close()
        await running
        return piece

    assert asyncio.run(run()) == b'{"time":2}\n'
    assert [one.code for one in said] == ["D4201"]


def test_a_stream_that_cannot_go_on_says_why() -> None:
    sent: list[bytes] = []

    async def run() -> None:
        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))

        async def receive() -> Any:
            await asyncio.sleep(60)

        async def pieces() -> AsyncIterator[bytes]:
            yield b"data: 1\n\n"
            raise EngineError.of("D5202", "the deployment is damaged")

        await stream(broadcast_of(Rows(0)), {}, receive, send, pieces(), "text/event-stream")

    asyncio.run(run())
    assert sent[2] == b"data: 1\n\n"
    assert sent[3].startswith(b"event: dotr-problem\ndata: {")
    assert b"D5202" in sent[3]
    assert sent[4] == b"", "it ends in good order"

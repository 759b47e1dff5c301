"""An engine for programs of asyncio: graphs are pushed by coroutines, events are an async iterator.

Place:   public, over api.py, whose `Engine` does the work; imported where it is used.
Method:  one thread an engine runs its calls in order of arrival, so that the loop never waits for one. Its
         events are queued in the loop; while `unread` of them wait there, the next call waits, too.
Why not: calling the engine in the loop is quicker for small graphs, but closing an instant can take long.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from dotr.api import Engine
from dotr.errors import UsageError
from dotr.io.python_events import Event
from dotr.io.python_values import GraphLike

T = TypeVar("T")


class AsyncEngine(AsyncIterator[Event]):
    """Owns an `Engine`, a thread in which its calls run, and the events that nobody has read yet.

    `async for event in engine` gives the events in output order, each to one reader, until `finish` or
    `aclose`. `unread`: how many events may wait for readers; while they do, `push`, `advance` and `finish`
    wait, so that a slow reader slows the source. Read in another task than the one that pushes. Errors are
    those of `Engine`, raised by the call that caused them; functions given to the engine (`late`, `on_error`)
    run in its thread. Do not call the engine itself meanwhile: `run` does that in turn. Raises UsageError
    D4187 for an `unread` that is not a positive number.
    """

    def __init__(self, engine: Engine, *, unread: int = 1024) -> None:
        if isinstance(unread, bool) or not isinstance(unread, int) or unread < 1:
            raise UsageError.of(
                "D4187", f"{unread!r} is not a number of events", hint="unread: a number, from 1 on"
            )
        self._engine = engine
        self._most = unread
        self._events: deque[Event] = deque()
        self._some, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._finished = self._closed = self._ended = False  # `finish` is done, `aclose` began, it is done
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dotr")
        self._job: asyncio.Future[Any] | None = None  # what the thread began last
        self._error: BaseException | None = None  # of a call that was cancelled

    async def push(
        self,
        graph: GraphLike | None,
        at: int | datetime | str,
        *,
        insert: GraphLike | None = None,
        delete: GraphLike | None = None,
    ) -> None:
        """Take one graph stamped `at`, as `Engine.push` does; readers get the events.

        A push that is cancelled while its graph is in work has taken it; its error, if any, is raised by
        the next call. Raises UsageError D4164 after the end.
        """
        await self._feed(lambda engine: engine.push(graph, at, insert=insert, delete=delete))

    async def advance(self, to: int | datetime | str) -> None:
        """Close everything up to and including `to`, as `Engine.advance` does."""
        await self._feed(lambda engine: engine.advance(to))

    async def finish(self) -> None:
        """The end of input: close the last instant. Readers end after its events."""
        await self._feed(lambda engine: engine.finish(), last=True)

    async def run(self, function: Callable[[Engine], T]) -> T:
        """What `function` returns for the engine, called in its thread when the calls before it are done.

        For everything that asks or changes the engine: `await engine.run(Engine.snapshot)`,
        `await engine.run(lambda engine: engine.query(…))`. Possible after `finish`, too, until `aclose`.
        """
        async with self._turn:
            self._check(self._closed)
            return await self._call(function, lambda _found: None)

    async def aclose(self) -> None:
        """End without closing the last instant: calls that wait raise D4164, readers end after what is there.

        A call in work is completed first. Leaving `async with` does this.
        """
        self._closed = True
        self._room.set()
        try:
            async with self._turn:
                if self._job is not None:
                    await asyncio.wait([self._job])
        finally:
            self._ended = True
            self._some.set()
            self._thread.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def __anext__(self) -> Event:
        while not self._events:
            if self._finished or self._ended:
                raise StopAsyncIteration
            self._some.clear()
            await self._some.wait()
        event = self._events.popleft()
        if len(self._events) < self._most:
            self._room.set()
        return event

    async def _feed(self, function: Callable[[Engine], Sequence[Event]], last: bool = False) -> None:
        """Call `function` when there is room for events, and queue what it finds."""

        def deliver(found: list[Event]) -> None:
            self._finished = last
            self._events.extend(found)
            self._some.set()

        async with self._turn:
            while len(self._events) >= self._most and not self._closed:
                self._room.clear()
                await self._room.wait()
            self._check(self._closed or self._finished)
            await self._call(lambda engine: list(function(engine)), deliver)

    async def _call(self, function: Callable[[Engine], T], deliver: Callable[[T], None]) -> T:
        """Run `function` in the thread; `deliver` its result in the loop, also to a cancelled caller."""
        job = asyncio.get_running_loop().run_in_executor(self._thread, function, self._engine)
        self._job = job
        cancelled = False

        def done(job: asyncio.Future[T]) -> None:
            if (error := job.exception()) is None:
                deliver(job.result())
            elif cancelled:
                self._error = error

        job.add_done_callback(done)
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            if job.done():
                self._error = job.exception()
            else:
                cancelled = True
            raise

    def _check(self, ended: bool) -> None:
        """Raise the error of a call that was cancelled, or UsageError D4164 after the end."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if ended:
            raise UsageError.of(
                "D4164", "this engine has ended", hint="push before `finish`, inside of `async with`"
            )

"""An engine in asyncio finds the events of an engine; readers slow the source; callers get their errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

import dotr

RULES = """
PREFIX : <urn:ex:>
RULE Hit DEFINE { dotr_x :v ?v } FROM Seen := { SELECT ?v WHERE { ?s :p ?v } } WITH ?v := Seen.?v
"""


def made(unread: int = 1024, **options: Any) -> dotr.AsyncEngine:
    return dotr.AsyncEngine(dotr.Engine.from_text(RULES, **options), unread=unread)


def graph(*values: int) -> str:
    return f"<urn:ex:s> <urn:ex:p> {', '.join(map(str, values))} ."


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 30))


async def idle() -> None:
    """Until every task waits, also for the thread of an engine."""
    for _ in range(20):
        await asyncio.sleep(0.002)


def test_readers_get_the_events_of_an_engine() -> None:
    graphs = [(at, graph(*range(1 + at % 4))) for at in range(50)]
    engine = dotr.Engine.from_text(RULES)
    expected = [event for events in engine.push_all(graphs) for event in events] + engine.finish()

    async def main() -> None:
        async with made(unread=3) as engine:

            async def push() -> None:
                for at, triples in graphs:
                    await engine.push(triples, at=at)
                await engine.finish()

            pushing = asyncio.create_task(push())
            assert [event.id async for event in engine] == [event.id for event in expected]
            await pushing

    run(main())


def test_a_push_waits_while_too_many_events_are_unread() -> None:
    async def main() -> None:
        async with made(unread=2) as engine:
            await engine.push(graph(1, 2, 3), at=1)
            await engine.push(graph(4), at=2)  # its three events are unread now
            third = asyncio.create_task(engine.push(graph(5), at=3))
            await idle()
            assert not third.done()
            assert (await anext(engine))["v"].toPython() == 1
            await idle()
            assert not third.done()
            assert (await anext(engine))["v"].toPython() == 2
            await third

    run(main())


def test_calls_that_wait_together_run_in_their_order() -> None:
    async def main() -> None:
        async with made() as engine:
            await asyncio.gather(*(engine.push(graph(at), at=at) for at in range(100)))
            await engine.finish()
            assert [event.time async for event in engine] == list(range(100))

    run(main())


def test_advance_closes_instants_and_the_engine_is_asked_in_turn() -> None:
    async def main() -> None:
        async with made() as engine:
            await engine.push(graph(1), at=1)
            await engine.advance(5)
            assert (await anext(engine)).time == 1
            assert await engine.run(lambda engine: engine.counters.graphs) == 1
            blob = await engine.run(dotr.Engine.snapshot)
            await engine.push(graph(2), at=6)
            await engine.finish()
            assert (await anext(engine)).time == 6
        engine = made(snapshot=blob)
        await engine.push(graph(3), at=7)
        await engine.finish()
        assert [event.time async for event in engine] == [7]
        await engine.aclose()

    run(main())


def test_the_loop_goes_on_while_the_engine_works() -> None:
    async def main() -> None:
        released = threading.Event()
        async with made() as engine:
            asking = asyncio.create_task(engine.run(lambda _engine: released.wait(20)))
            await idle()
            assert not asking.done()
            released.set()
            assert await asking

    run(main())


def test_errors_are_raised_by_the_call_that_caused_them() -> None:
    async def main() -> None:
        async with made(late="fail") as engine:
            with pytest.raises(dotr.DataError, match="D2001") as raised:
                await engine.push("<urn:ex:s> <urn:ex:p>", at=1)
            assert raised.value.diagnostics[0].code == "D2001"
            await engine.push(graph(1), at=2)
            await engine.advance(2)
            with pytest.raises(dotr.DataError, match="D2301"):
                await engine.push(graph(1), at=1)
            await engine.finish()
            assert [event.time async for event in engine] == [2]

    run(main())


def test_after_the_end_there_are_no_calls() -> None:
    async def main() -> None:
        async with made() as engine:
            await engine.push(graph(1), at=1)
            await engine.finish()
            for call in (engine.push(graph(1), at=2), engine.advance(3), engine.finish()):
                with pytest.raises(dotr.UsageError, match="D4164"):
                    await call
            assert await engine.run(lambda engine: engine.counters.graphs) == 1
        with pytest.raises(dotr.UsageError, match="D4164"):
            await engine.run(dotr.Engine.snapshot)
        await engine.aclose()

    run(main())


def test_leaving_ends_readers_and_calls_that_wait() -> None:
    """The last instant stays open; what was found before can still be read."""

    async def main() -> None:
        async with made(unread=1) as engine:
            await engine.push(graph(1), at=1)
            await engine.push(graph(2), at=2)
            waiting = asyncio.create_task(engine.push(graph(3), at=3))
            await idle()
        with pytest.raises(dotr.UsageError, match="D4164"):
            await waiting
        assert [event.time async for event in engine] == [1]
        async with made() as engine:
            reading = asyncio.create_task(anext(engine, None))
            await idle()
        assert await reading is None

    run(main())


def test_a_push_that_is_cancelled_in_work_is_taken() -> None:
    async def main() -> None:
        released = threading.Event()
        async with made(late=lambda _time, _graph: bool(released.wait(20)) and None) as engine:
            await engine.push(graph(1), at=5)
            await engine.advance(5)
            slow = asyncio.create_task(engine.push(graph(9), at=4))  # late, which takes until `released`
            await idle()
            slow.cancel()
            after = asyncio.create_task(engine.push(graph(2), at=6))
            await idle()
            assert not after.done()
            released.set()
            await after
            await engine.finish()
            assert [event.time async for event in engine] == [5, 6]
            assert await engine.run(lambda engine: engine.counters.late) == 1

    run(main())


def test_the_error_of_a_cancelled_call_is_raised_by_the_next() -> None:
    async def main() -> None:
        released = threading.Event()

        def fail(_engine: dotr.Engine) -> None:
            released.wait(20)
            raise dotr.DataError.of("D2001", "unreadable")

        async with made() as engine:
            failing = asyncio.create_task(engine.run(fail))
            await idle()
            failing.cancel()
            await idle()
            released.set()
            await idle()
            with pytest.raises(dotr.DataError, match="D2001"):
                await engine.push(graph(1), at=1)
            await engine.push(graph(1), at=1)
            await engine.finish()
            assert [event.time async for event in engine] == [1]

    run(main())


@pytest.mark.parametrize("unread", [0, -1, True, 1.5, "many"])
def test_what_is_no_number_of_unread_events_is_refused(unread: Any) -> None:
    with pytest.raises(dotr.UsageError, match="D4187"):
        made(unread=unread)

"""Parts that continue from batch to batch: detectors that stay alive, and their saved states.

Place:   used by spark/part_processor.py, the stateful operator of a distributed stream; independent of Spark.
Method:  a part has a detector of its group's rules, as in detecting.py, fed with all rows of an instant when
         the instant is closed. After a batch its state is written as one bytes value, with a token; a process
         that holds the live part with the same token need not read it. Python's marshal is the codec: it
         holds plain values only, executes nothing, and is several times as fast as JSON; its version is fixed
         and recorded in the head.
Why not: a row of state for every fact: Spark's state protocol handles 10,000 of them per second.
Bad input: D5221 a state of another version.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct

from dotr.batch.detecting import Detecting
from dotr.batch.fact_rows import MARK, FactRow, Layout
from dotr.batch.job import Shipped
from dotr.batch.stream_folder import damaged
from dotr.core.ahead import ahead
from dotr.core.overwork import LeftOut
from dotr.errors import Diagnostic
from dotr.events import Clock, Composite, Fact, RawMatch, Time

_HEAD = b"dotr part 1\n"
_MARSHAL = 4
"""The codec's version: every Python since 3.4 reads it."""

_NEVER: Time = 2**61
"""From here on there are no ticks."""

KEPT = 256
"""The limit of parts that a process keeps alive."""

Row = tuple[Time, str]


class LivePart:
    """Owns the detector of one part, and its current time. Rows of a time come once, in any order within a
    batch; batches come in time order.
    """

    def __init__(self, detecting: Detecting, layout: Layout, clock: Clock, number: int) -> None:
        group, self._bucket, _ = layout.owner(number)
        self._group = layout.plan.groups[group]
        self._detecting, self._clock = detecting, clock
        self._rules = detecting.deployments[group].program.rules
        self._emitter = detecting.emitters[group]
        self._silence = detecting.silences[group]
        self._ahead = ahead(self._silence)
        self._left_out = LeftOut(None, _unsaid)
        self._detector = detecting.deployments[group].detector(clock, self._left_out.take)
        self._tick_facts = detecting.tick_facts_of(self._group, self._bucket)
        self._done: Time | None = None  # ticks and instants up to here have run; None before the first
        self._heard: Time | None = None  # the last instant with a row
        self._seen: Time | None = None  # the last known instant of the stream

    def take(self, rows: Iterable[Row], bound: Time | None) -> list[Composite]:
        """The events of a batch's rows, in order; then of the ticks up to and including `bound`, None: up to
        the last instant that the rows mention.

        Raises ProgramError D4010, DataError D2107; then the part must not be used again.
        """
        events: list[Composite] = []
        plain: list[Row] = []
        for time, text in rows:
            if time == MARK:
                first, last = map(int, text.split(" "))
                self._done = first - 1 if self._done is None else min(self._done, first - 1)
                self._seen = last if self._seen is None else max(self._seen, last)
            else:
                plain.append((time, text))
        plain.sort(key=itemgetter(0))
        read, ticks = self._detecting.reader.read, bool(self._group.ticks)
        for time, text in plain:
            if ticks:
                self._tick(time, events)
            self._run(time, read(text, time), True, events)
            self._done = self._heard = time
        until = self._seen if bound is None else bound
        if ticks and until is not None and self._done is not None and until > self._done:
            self._tick(until + 1, events)
            self._done = until
        return events

    def _tick(self, bound: Time, events: list[Composite]) -> None:
        """Run the ticks before `bound` that can matter."""
        done = self._done
        if done is None:
            return
        error = self._ahead.ticked(done, done if self._heard is None else self._heard, bound, self._clock)
        if error is not None:
            raise error
        silent = self._detecting.silent(
            self._group, self._detector, done, self._heard, bound, self._tick_facts
        )
        for time, _, facts, graph in silent:
            self._run(time, facts, graph, events)

    def _run(
        self, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool, events: list[Composite]
    ) -> None:
        matches: Sequence[RawMatch] = self._detector.detect(time, facts, graph)
        if self._left_out.facts:
            failed = self._left_out.settle(time, self._rules, self._clock)
            if failed is not None:
                raise failed
        if matches and self._emitter.hides:
            matches = self._emitter.public(matches)
        if matches:
            events += self._emitter.composites(matches)

    def due(self) -> Time | None:
        """The next tick that matters although no graph comes, or None."""
        if self._done is None or not self._group.ticks:
            return None
        found = self._silence.next(self._done, self._heard, _NEVER)
        return None if found is None or found >= _NEVER // 2 else found

    def sizes(self) -> dict[str, int]:
        """Rule → how many facts are stored for it."""
        return self._detector.sizes()

    def snapshot(self) -> bytes:
        """Everything that the next batch depends on."""
        times = [self._done, self._heard, self._seen]
        return _HEAD + marshal.dumps([times, self._detector.snapshot()], _MARSHAL)

    def restore(self, content: bytes) -> None:
        """Continue where a snapshot was taken; the part is new. Raises EngineError D5221."""
        if not content.startswith(_HEAD):
            raise damaged("", f"a part begins with {content[: len(_HEAD)]!r}, not with {_HEAD!r}")
        try:
            times, state = marshal.loads(content[len(_HEAD) :])  # noqa: S302  # plain values; nothing is run
        except (EOFError, ValueError, TypeError) as error:
            raise damaged("", f"a part is truncated: {error}") from None
        self._done, self._heard, self._seen = times
        self._detector.restore(state)


def _unsaid(_finding: Diagnostic) -> None:
    """The engine's warnings are not reported here."""


class _Held(Struct):
    """A live part, and the token of its state."""

    token: int
    part: LivePart


class LiveParts:
    """Owns the live parts of this process for one stream, by number."""

    def __init__(self, shipped: Shipped) -> None:
        worker = shipped.worker()
        self._layout, self._clock = worker.job.layout, worker.job.clock
        self._detecting = worker.detecting()
        self._held: dict[int, _Held] = {}

    def taken(self, number: int, token: int | None) -> LivePart | None:
        """Take out the part with the state of `token`; the caller returns it on success. A new part if there
        is no state; None if the state must be restored first.
        """
        held = self._held.pop(number, None)
        if token is None:
            return self.fresh(number)
        return held.part if held is not None and held.token == token else None

    def fresh(self, number: int) -> LivePart:
        return LivePart(self._detecting, self._layout, self._clock, number)

    def give_back(self, number: int, token: int, part: LivePart) -> None:
        while len(self._held) >= KEPT:
            del self._held[next(iter(self._held))]
        self._held[number] = _Held(token, part)


_STREAMS: dict[str, LiveParts] = {}
_STREAMS_KEPT = 2


def live_parts(stream: str, shipped: Shipped) -> LiveParts:
    """The live parts of this process for a stream, which has a unique name."""
    name = f"{stream} {shipped.key}"
    found = _STREAMS.pop(name, None)
    if found is None:
        while len(_STREAMS) >= _STREAMS_KEPT:
            del _STREAMS[next(iter(_STREAMS))]
        found = LiveParts(shipped)
    _STREAMS[name] = found
    return found


def marks_of(parts: Iterable[int], first: Time, last: Time) -> list[FactRow]:
    """A row for every part with the first and last instant of a task's graphs, so that every part is called
    with every batch, runs ticks without other rows, and reports the size of its state.
    """
    text = f"{first} {last}"
    return [(part, MARK, text) for part in parts]


def merged(sizes: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Rule → how many facts all parts store for it."""
    total: dict[str, int] = {}
    for found in sizes:
        for rule, count in found.items():
            total[rule] = total.get(rule, 0) + count
    return total

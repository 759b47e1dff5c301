"""A stream in numbered batches, each delivered at least once: events in order, exactly once.

Place:   spark/streams.py calls it with every micro-batch, on the driver; independent of Spark.
         stream_folder.py owns the files.
Method:  the engine of `dotr run` takes the batches in order. For batch n the events are written first, to a
         file named by n, then the state after it; each is complete or absent. A batch that is repeated, after
         a kill before its end was recorded, starts from the state before it and writes the same bytes. The
         files, in the order of their names, concatenate to what `dotr run` prints.
Why not: append to one file: what a killed attempt appended would have to be found and cut off.
Bad input: D5220 a checkpoint of other rules or options · D5221 a damaged or missing state.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path

from msgspec import Struct, field

from dotr.batch.stream_folder import StreamFolder, StreamOptions, Taken, batch_name, damaged
from dotr.core.deployment import Deployment
from dotr.core.parts import Part
from dotr.core.pipeline import Pipeline
from dotr.errors import NOT_WRITTEN, DataError, DotrError
from dotr.events import Clock, Time
from dotr.io.error_policy import dead_letter
from dotr.io.event_formats import formatter, late_line
from dotr.rdf.terms import Triple

_KEPT = 3
_STATE = ".state"
_LAST = ".last"
"""Suffix of the number of the batch after which the last instant was closed; its files sort after those of
the batch itself.
"""


class _Written(Struct):
    """Lines of one batch, by folder."""

    events: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    letters: list[str] = field(default_factory=list)


class MicroBatches:
    """Owns the engine of a stream, the folder of its events, and `checkpoint`, the folder of its states.

    Raises RefusedError D5001 for a folder of events that is not this checkpoint's, D5220.
    """

    def __init__(
        self,
        deployment: Deployment,
        out: str,
        checkpoint: str,
        options: StreamOptions | None = None,
        send: Callable[[str], None] | None = None,
    ) -> None:
        self._deployment = deployment
        self._options = options or StreamOptions()
        self._states = Path(checkpoint)
        head, self._format = formatter(
            self._options.format_, deployment.program.prefixes, deployment.program.rules
        )
        assert not head, "formats with a head cannot be concatenated"
        self._folder = StreamFolder(deployment, out, checkpoint, self._options, send=send)
        self._at: str | None = None  # the engine's state; None: undefined after an error
        self._lines = _Written()
        self._taken = Taken(-1)
        self.pipeline = self._fresh()

    # -- the stream

    @property
    def clock(self) -> Clock | None:
        """How the stream writes time, as far as known; restores the last state if needed."""
        if self._at is None:
            self._go_behind(None)
        return self.pipeline.clock

    def take(
        self,
        number: int,
        clock: Clock | None,
        rows: Iterable[tuple[Time, list[Triple]]],
        letters: Sequence[str] = (),
    ) -> Taken:
        """Batch `number`: graphs in any order, times in µs; dead letters of refused documents. Writes its
        events, then its state. Without graphs `clock` may be None.

        Raises DataError for graphs in error under the policy `fail`, D2102 for another kind of time; then
        nothing of the batch is written.
        """
        self._go_behind(number)
        self._at = None  # until everything is done
        known = self.pipeline.clock
        if known is None and clock is not None:
            self.pipeline.begin(clock)
        elif clock is not None and known != clock:
            raise DataError.of(
                "D2102", "this batch writes time differently from those before", hint="--time-unit"
            )
        self._lines, self._taken = _Written(), Taken(number, refused=len(letters))
        if self._options.on_error == "keep":
            self._lines.letters += letters
        for time, graph in sorted(rows, key=itemgetter(0)):
            self._taken.graphs += 1
            self.pipeline.take(time, graph)
        self._done(batch_name(number))
        return self._taken

    def close(self) -> Taken | None:
        """The end of the stream for now: close its last instant. None if there is nothing to close."""
        self._go_behind(None)
        at = self._at
        if not at or at.endswith(_LAST) or self.pipeline.clock is None:
            return None
        self._at = None
        self._lines, self._taken = _Written(), Taken(_number(at))
        self.pipeline.close_all()
        self._done(at + _LAST)
        return self._taken

    def _done(self, name: str) -> None:
        """Run what is closed; write events, then state."""
        for events in self.pipeline.drain():
            clock = self.pipeline.clock
            assert clock is not None
            self._taken.events += len(events)
            self._lines.events.append(self._format(events, clock))
        lines = self._lines
        self._folder.write_batch(name, "".join(lines.events), lines.late, lines.letters)
        state = zlib.compress(json.dumps(self.pipeline.snapshot()).encode(), 1)
        self._folder.write_state(f"{name}{_STATE}", state)
        self._at = name
        for old in self._names()[:-_KEPT]:
            with suppress(OSError):
                (self._states / f"{old}{_STATE}").unlink()

    # -- states

    def _names(self) -> list[str]:
        """The existing states, in order."""
        if not self._states.is_dir():
            return []
        found = [path.name.removesuffix(_STATE) for path in self._states.glob(f"*{_STATE}")]
        return sorted(found, key=lambda name: (_number(name), name.endswith(_LAST)))

    def _go_behind(self, number: int | None) -> None:
        """Restore the last state before batch `number`; None: the last of all."""
        names = [name for name in self._names() if number is None or _number(name) < number]
        last = names[-1] if names else ""
        if self._at == last:
            return
        if number and not last and self._names():
            raise damaged(str(self._states), f"no state before batch {number} is left")
        self.pipeline = self._fresh()
        if last:
            path = self._states / f"{last}{_STATE}"
            try:
                state = json.loads(zlib.decompress(path.read_bytes()))
                self.pipeline.restore(state)
            except (OSError, zlib.error, *NOT_WRITTEN) as error:
                raise damaged(str(path), str(error)) from None
        self._at = last

    def _fresh(self) -> Pipeline:
        options = self._options
        return Pipeline(
            self._deployment,
            lateness=options.lateness,
            on_late=self._late,
            on_refused=None if options.on_error == "fail" else self._refused,
            max_jump=options.max_jump,
        )

    def _late(self, time: Time, part: Part) -> None:
        clock = self.pipeline.clock
        assert clock is not None
        if self._options.late == "fail":
            raise DataError.of(
                "D2301",
                f"a graph is for {clock.text(time)}, an instant that is already closed",
                hint="allow for disorder with a lateness, or drop such graphs",
            )
        self._taken.late += 1
        if self._options.late == "keep":
            self._lines.late.append(late_line(time, part, clock))

    def _refused(self, time: Time, parts: Sequence[Part], error: DotrError) -> None:
        clock = self.pipeline.clock
        assert clock is not None
        self._taken.refused += len(parts)
        if self._options.on_error == "keep":
            for part in parts:
                more = json.loads(late_line(time, part, clock))
                self._lines.letters.append(dead_letter(error, None, "", more))


def _number(name: str) -> int:
    return int(name.removesuffix(_LAST))

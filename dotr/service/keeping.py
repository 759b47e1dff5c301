"""Keep what a feed takes, so that `dotr explain --dir` can say why.

Place:   a Feed has one where the deployment keeps something; the journal commits what it gives.
Method:  the messages as they came, and the engine's state before the first of them and at every quarter of
         what is kept since: a run from such a state over the messages behind it is the run that was.
Why not: the sources, read again: they change and go; nor the events alone: what they consumed, and what held,
         would have to be kept with each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dotr.core.parts import Part, plain
from dotr.core.pipeline import Pipeline
from dotr.events import Time
from dotr.service.kept_tables import KeptChange, KeptMessage, KeptRow

_STRETCHES = 4
"""Into so many stretches what is kept is parted, about."""

_LOOK = 63
"""So many messages, and one more, come between two looks at the time: a mask."""


@dataclass(slots=True)
class Keeping:
    """Owns what came since the last commit. `length`: how long messages are kept, in µs; `begun`: whether the
    journal has a state to begin with; `since`: the time of the last state that is kept.
    """

    pipeline: Pipeline
    length: Time
    begun: bool = False
    since: Time | None = None
    _rows: list[KeptRow] = field(default_factory=list)
    _came: list[tuple[Time, Part, str, bool]] = field(default_factory=list)
    _count: int = 0
    _replaces: bool = False

    def begin(self) -> None:
        """A feed begins; its state is the first to be kept where none is."""
        if not self.begun:
            self._replaces = True
            self._keep_state(self.pipeline.settled)

    def came(self, time: Time, part: Part, place: str) -> None:
        """A message comes, and is not taken yet."""
        if not self._count & _LOOK:
            self._look()
        self._count += 1
        self._came.append((time, part, place, False))

    def leave_out(self, parts: Sequence[Part]) -> None:
        """The message that came last is not taken."""
        if self._came and any(part is self._came[-1][1] for part in parts):
            self._came[-1] = (*self._came[-1][:3], True)

    def _look(self) -> None:
        """Begin another stretch where the last one is long enough; forget those that are too old."""
        settled = self.pipeline.settled
        if settled is None or (self.since is not None and settled - self.since <= self.length // _STRETCHES):
            return
        self._keep_messages(settled)
        self._keep_state(settled)
        low = settled - self.length
        old = [n for n, row in enumerate(self._rows) if row.state is not None and _before(row, low)]
        if old and old[-1]:
            del self._rows[: old[-1]]
            self._replaces = True  # whatever the journal has is older

    def _keep_state(self, settled: Time | None) -> None:
        self._rows.append(KeptRow(settled, self.pipeline.snapshot()))
        self.since = settled

    def _keep_messages(self, settled: Time | None) -> None:
        if self._came:
            came = [KeptMessage(time, plain(part), place, out) for time, part, place, out in self._came]
            self._rows.append(KeptRow(settled, None, came))
            self._came = []

    def changes(self, adopted: bool) -> KeptChange:
        """What the next commit changes. `adopted`: other rules hold now, and what came before goes."""
        settled = self.pipeline.settled
        if adopted:
            self._rows, self._came, self._replaces = [], [], True
            self._keep_state(settled)
        self._keep_messages(settled)
        return KeptChange(
            self._replaces, list(self._rows), None if settled is None else settled - self.length
        )

    def committed(self) -> None:
        """The changes are in the journal."""
        self._rows, self._replaces, self.begun = [], False, True


def _before(row: KeptRow, low: Time) -> bool:
    return row.time is not None and row.time < low

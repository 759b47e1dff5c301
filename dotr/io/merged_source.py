"""Several streams of graphs as one, by time: what is late does not depend on how they arrive.

Place:   DocumentSource of feeds.py merges the partitions of a transport.
Method:  the earliest head of all streams is given next; of equal ones that of the first stream. A stream that
         has no head holds the others back until one comes, it ends, or it was silent for a while (`idle`);
         then it joins again with what it brings, which is late if time has passed it. So a graph is never
         later in the merged stream than in its own: whatever was given before it lies at or before some
         graph of its stream. A lateness that suffices for every stream suffices for all, and any cut into
         batches gives the same order.
Why not: streams in turn, with one watermark that follows the fastest: three partitions of 1,200 graphs lost
         588 of them as late, and 1,315 of 1,803 events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from dotr.io.graphs import Item, TimedGraph

IDLE: Final = 30.0
"""Seconds of silence after which others do not wait for a stream."""

_ROUND: Final = 64
"""Items after which streams that nobody waits for are asked again."""


class Silences:
    """Owns since when streams are silent. `idle`: seconds; None: others always wait for a silent one."""

    def __init__(self, idle: float | None = IDLE, clock: Callable[[], float] | None = None) -> None:
        self._idle, self._clock = idle, clock or time.monotonic
        self._since: dict[str, float] = {}

    def came(self, name: str) -> None:
        """A stream has a head."""
        self._since.pop(name, None)

    def waits(self, name: str) -> bool:
        """Whether others wait for a stream that has no head now."""
        now = self._clock()
        since = self._since.setdefault(name, now)
        return self._idle is None or now - since < self._idle


def merged(
    streams: dict[str, Iterator[Item | None]], heads: dict[str, Item], silences: Silences, ends: bool = True
) -> Iterator[tuple[str, Item] | None]:
    """The items of several streams, each with the name of its stream; None: none can be given for a while.

    `streams`: those that have ended are taken out. `heads`: the item of each that was read and not given. A
    stream is asked for its next item only after the one before was given. Not `ends`: a stream that has ended
    may go on later, and is waited for as a silent one; what waits for it stays in `heads`.
    """
    names, given = list(streams), 0
    while True:
        for name in [name for name in streams if name not in heads]:
            if heads and given % _ROUND and not silences.waits(name):
                continue
            item = next(streams[name], _END)
            if isinstance(item, _End):
                del streams[name]
            elif item is not None:
                heads[name] = item
                silences.came(name)
        lacking = [name for name in names if name not in heads and (name in streams or not ends)]
        waited_for = [name for name in lacking if silences.waits(name)]
        untimed = next((n for n in heads if not isinstance(heads[n], TimedGraph)), None)
        if untimed is not None:
            yield untimed, heads.pop(untimed)
        elif heads and not waited_for:
            first = min((item.time, names.index(name), name) for name, item in heads.items())[2]
            yield first, heads.pop(first)
        elif any(name in streams for name in lacking):
            yield None
        else:
            return
        given += 1


class _End:
    """After the last item."""


_END: Final = _End()

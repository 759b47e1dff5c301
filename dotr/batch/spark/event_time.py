"""How the stream's time is written as Spark's event time.

Place:   distributed.py makes it; instant_processor.py and part_processor.py read watermarks by it.
"""

from __future__ import annotations

from dotr.events import Time
from dotr.late import dataclass


@dataclass(frozen=True, slots=True)
class EventTime:
    """How the stream's time, in µs, is written as Spark's event time: `shift` µs later, since Spark drops
    what is not after 1970.
    """

    shift: Time

    def closed(self, watermark: int) -> Time:
        """The last of our times that a watermark of Spark's, in ms, closes."""
        return watermark * 1000 - self.shift

    def timer(self, time: Time) -> int:
        """The first watermark, in ms, that closes `time`."""
        return -((-time - self.shift) // 1000)

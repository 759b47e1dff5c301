"""The stream's time as Spark's event time.

Place:   made by distributed.py; instant_processor.py and part_processor.py read watermarks with it.
"""

from __future__ import annotations

from msgspec import Struct

from dotr.events import Time


class EventTime(Struct, frozen=True):
    """The stream's time, in µs, as Spark's event time: `shift` µs later, as Spark drops times up to 1970."""

    shift: Time

    def closed(self, watermark: int) -> Time:
        """The last of the stream's times that a watermark of Spark, in ms, closes."""
        return watermark * 1000 - self.shift

    def timer(self, time: Time) -> int:
        """The first watermark, in ms, that closes `time`."""
        return -((-time - self.shift) // 1000)

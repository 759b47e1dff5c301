"""The progress bar of long work, on standard error where that is a terminal.

Place:   run, feed, stream, convert and deploy show how far they are by graphs, batch by the tasks of a stage.
Method:  rich draws it, at most five times a second, when the work says how far it is; `ticking` work, which
         says little, is drawn by a thread of rich's. A bar and the time left stand where the whole is known.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_INTERVAL = 0.2


class Progress(Struct):
    """Owns the bar. Not `shown`: nothing is drawn."""

    shown: bool
    ticking: bool = False
    begun: float = field(default_factory=time.monotonic)
    _last: float = 0.0
    _bar: Bar | None = None
    _task: TaskID | None = None
    _what: str = ""
    _since: float = 0.0

    def update(
        self,
        graphs: int,
        events: int,
        watermark: str,
        done: int = 0,
        of: int | None = None,
        remembered: str = "",
    ) -> None:
        """Show how far a run is, `done` of the bytes of its sources behind it; at most five times a second.

        `events` -1: there are none to show. `remembered`: how many facts rules remember, where that is known.
        """
        if not self._due():
            return
        rate = graphs / max(self.seconds, 1e-6)
        parts = [f"{graphs:,} graphs · {rate:,.0f}/s", f"at {watermark}" if watermark else ""]
        parts += [f"{events:,} events" if events >= 0 else ""]
        parts += [f"remembered: {remembered}" if remembered else ""]
        self._draw(" · ".join(filter(None, parts)), "", done, of)

    def stage(self, name: str, done: int, of: int, graphs: int = 0) -> None:
        """Show how far a stage of the work is: `done` of its tasks, as it seems `graphs` in them."""
        if not self.shown or (name == self._what and not self._due()):
            return
        if name != self._what:
            self._since = time.monotonic()
        seconds = time.monotonic() - self._since
        parts = [f"{name}: {done:,}/{of:,} tasks" if of else f"{name} …"]
        if graphs:
            parts.append(f"{graphs:,} graphs · {graphs / max(seconds, 1e-6):,.0f}/s")
        if not self.ticking:
            parts.append(f"{seconds:.0f} s")
        self._draw(" · ".join(parts), name, done, of or None)

    def clear(self) -> None:
        """Take the bar away: something else is shown. It comes again with the next update."""
        if self._bar is not None:
            with suppress(OSError, ValueError):
                self._bar.stop()
            self._bar = None
            self._last = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun

    def _due(self) -> bool:
        now = time.monotonic()
        if not self.shown or now - self._last < _INTERVAL:
            return False
        self._last = now
        return True

    def _draw(self, line: str, what: str, done: int, of: int | None) -> None:
        with suppress(OSError, ValueError):  # nobody may be looking
            if self._bar is None or self._what != what:
                self.clear()
                self._bar, self._task = _begun(of is not None, self.ticking)
                self._what = what
            assert self._task is not None
            self._bar.update(self._task, description=line, completed=done, total=of)
            self._bar.refresh()


def _begun(known: bool, ticking: bool) -> tuple[Bar, TaskID]:
    """A bar; with the time left where the whole is `known`, with the time that has passed where it ticks."""
    from rich.console import Console  # noqa: PLC0415  # start-up: on terminals alone
    from rich.progress import (  # noqa: PLC0415  # likewise
        BarColumn,
        Progress,
        ProgressColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column  # noqa: PLC0415  # likewise

    said = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="crop"))
    columns: list[ProgressColumn] = [said]
    if known:
        left = [TextColumn("·"), TimeRemainingColumn(), TextColumn("left")]
        columns = [BarColumn(20), TaskProgressColumn(), said, *left]
    if ticking:
        columns.append(TimeElapsedColumn())
    console = Console(file=sys.stderr, highlight=False)
    bar = Progress(*columns, console=console, transient=True, auto_refresh=ticking, refresh_per_second=5)
    bar.start()
    return bar, bar.add_task("", total=None)

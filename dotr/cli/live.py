"""How a feed or a server is doing, while somebody watches it on a terminal.

Place:   `dotr feed --follow` and `dotr serve` give what there is to see, as a `Look`; all else that they
         print comes above it. Not data: it is drawn on standard error.
Method:  a few lines that rich draws over those of before, at most four times a second, and takes away at the
         end. What comes from data is shown, not obeyed (`show.visible`), and cut to the width of the
         terminal. A process in the background draws nothing: its terminal is another's.
Why not: the whole screen: what was printed before, and what is reported meanwhile, could not be read.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from msgspec import Struct

from dotr.cli.show import coloured, counted, visible
from dotr.events import Clock, Composite
from dotr.io.event_pictures import plain, values_text
from dotr.io.events import TermFormatter
from dotr.service.journal import Prepared

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text

LAST: Final = 8
"""Events that are shown."""

SOURCES: Final = 8
"""Sources, and partitions of sources, that are shown."""

_EVERY: Final = 0.25
"""Seconds between two drawings."""

_SPAN: Final = 10.0
"""Seconds over which rates are counted."""

_WIDEST: Final = 200
_WIDE: Final = 72
"""Columns from which on times have their day, and sources a line each with all that is known."""

_ECHO: Final = 3
"""Columns that are left for what the terminal shows of Ctrl-C, and for the cursor: no line breaks."""

Piece: TypeAlias = tuple[str, str]
"""A string and its style."""

_COLOURS: Final = ("blue", "yellow", "green", "magenta", "cyan", "red")
"""Of rules, in their order."""


class SourceLine(NamedTuple):
    """A source: how far it is, and how many graphs it gave."""

    name: str
    latest: str
    graphs: int
    note: str = ""
    wrong: bool = False


class EventLine(NamedTuple):
    """An event: its time, its rule and its values, as text."""

    time: str
    rule: str
    values: str


class Look(Struct, frozen=True):
    """What there is to see. Times are as the data write them; of the counts rates are made. `rules`: in the
    order of their colours; `letters`: what was refused or late, by diagnostic or reason; `wrong`: why nothing
    is done now.
    """

    title: str
    watermark: str
    graphs: int
    events: int
    sources: Sequence[SourceLine]
    last: Sequence[EventLine]
    rules: Sequence[str]
    letters: Mapping[str, int]
    more: Sequence[str] = ()
    wrong: Sequence[str] = ()


def watched(plain_lines: bool) -> bool:
    """Whether there is a terminal to draw on: one that moves its cursor, whose user wants no plain lines."""
    return not plain_lines and sys.stderr.isatty() and bool(os.environ.get("TERM")) and coloured()


class LiveView:
    """Owns the lines at the bottom of the terminal. Not `shown`: nothing is drawn. `fresh`: what is counted
    began with the command. For any thread.
    """

    def __init__(self, shown: bool, fresh: bool = False) -> None:
        self.shown = shown
        self.begun = time.monotonic()
        self._last = float("-inf")
        self._live: Live | None = None
        self._counts: deque[tuple[float, int, int]] = deque([(self.begun, 0, 0)] if fresh else [])
        self._mutex = threading.RLock()

    def look(self, make: Callable[[], Look]) -> None:
        """Draw what there is, unless that was done just now."""
        with self._mutex:
            now = time.monotonic()
            if not self.shown or now - self._last < _EVERY:
                return
            self._last = now
            if not _in_front():
                self._take_away()
                return
            look = make()
            self._draw(look, self._rates(now, look))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Something else is printed; the view comes again with the next look."""
        with self._mutex:
            self._take_away()
            yield
            self._last = time.monotonic()

    def clear(self) -> None:
        """Take the view away."""
        with self._mutex:
            self._take_away()

    def close(self) -> None:
        """Take it away, for good."""
        with self._mutex:
            self.shown = False
            self._take_away()

    def _rates(self, now: float, look: Look) -> tuple[float, float]:
        """Graphs and events a second, lately."""
        counts = self._counts
        if not counts or look.graphs < counts[-1][1] or look.events < counts[-1][2]:
            counts.clear()
        counts.append((now, look.graphs, look.events))
        while len(counts) > 2 and counts[1][0] <= now - _SPAN:
            counts.popleft()
        began, graphs, events = counts[0]
        seconds = max(now - began, _EVERY)
        return (look.graphs - graphs) / seconds, (look.events - events) / seconds

    def _draw(self, look: Look, rates: tuple[float, float]) -> None:
        from rich.console import Console  # noqa: PLC0415  # start-up: on terminals alone
        from rich.live import Live  # noqa: PLC0415  # likewise

        with suppress(OSError, ValueError):  # nobody may be looking
            if self._live is None:
                console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
                self._live = Live(
                    console=console,
                    auto_refresh=False,
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                    vertical_overflow="crop",
                )
                self._live.start()
            self._live.update(drawn(look, rates, time.monotonic() - self.begun, self._live.console))
            self._live.refresh()

    def _take_away(self) -> None:
        if self._live is not None:
            with suppress(OSError, ValueError):
                self._live.stop()
            self._live = None


def _in_front() -> bool:
    """Whether the terminal listens to this process."""
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except (OSError, ValueError):  # another's terminal, of which nobody says
        return True


def drawn(look: Look, rates: tuple[float, float], seconds: float, console: Console) -> RenderableType:
    """The lines: no wider than the console and _WIDEST, no more than it is high."""
    from rich.console import Group  # noqa: PLC0415  # start-up: on terminals alone
    from rich.constrain import Constrain  # noqa: PLC0415  # likewise

    width = max(1, min(console.width - _ECHO, _WIDEST))
    narrow = width < _WIDE
    lines = [*_head(look, seconds, width), *_totals(look, rates, narrow)]
    lines += [_line((reason, "bold red")) for reason in look.wrong]
    digits = max((len(f"{one.graphs:,}") for one in look.sources), default=0)
    lines += _columns([_source(one, narrow, digits) for one in look.sources[:SOURCES]], width)
    if more := look.sources[SOURCES:]:
        lines.append(_line((f"and {counted(len(more), 'more source', 'more sources')}", "dim")))
    if look.letters:
        total = sum(look.letters.values())
        found = ", ".join(f"{name} {count:,}" for name, count in look.letters.items() if count)
        lines.append(_line(("dead letters  ", "yellow"), (f"{total:,}", "bold yellow"), (f"  {found}", "")))
    many = max(1, min(LAST, console.height - len(lines) - 1))
    colours = {name: _COLOURS[n % len(_COLOURS)] for n, name in enumerate(look.rules)}
    lines += _columns([_event(one, colours, narrow) for one in look.last[-many:]], width)
    if not look.last:
        lines.append(_line(("no event yet", "dim")))
    return Constrain(Group(*lines), width)


def _line(*pieces: Piece) -> Text:
    """Styled pieces on one line that is cut where the terminal ends."""
    from rich.text import Text  # noqa: PLC0415  # start-up: on terminals alone

    text = Text(no_wrap=True, overflow="ellipsis")
    for piece, style in pieces:
        text.append(_shown(piece), style or None)
    return text


def _columns(rows: Sequence[Sequence[Piece]], width: int) -> list[Text]:
    """Rows whose cells stand below each other; all but the last take half the width at most."""
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415  # start-up: on terminals alone

    most = max(8, width // 2)
    cells = [[(_shown(text), style) for text, style in row] for row in rows]
    widths = [
        min(most, max(map(cell_len, column)))
        for column in zip(*([t for t, _ in c] for c in cells), strict=True)
    ]
    lines = []
    for row in cells:
        pieces: list[Piece] = []
        for (text, style), room in zip(row[:-1], widths, strict=False):
            cut = text if cell_len(text) <= room else set_cell_size(text, room - 1) + "…"
            pieces.append((set_cell_size(cut, room) + "  " if room else "", style))
        lines.append(_line(*pieces, row[-1]))
    return lines


def _shown(text: str) -> str:
    """Of a string that data may hold: what fits on a line, nothing that a terminal obeys."""
    return visible(text[: 4 * _WIDEST]).replace("\n", "\\n").replace("\t", "\\t")


def _head(look: Look, seconds: float, width: int) -> list[Text]:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    head = _line((look.title, "bold"), (f"  {hours}:{minutes:02}:{rest:02}", "dim"))
    reached = _line(("closed up to ", "dim"), (look.watermark, ""))
    if not look.watermark:
        reached = _line(("nothing is closed yet", "dim"))
    if head.cell_len + reached.cell_len + 3 > width:
        return [head, reached]
    return [head.append("   ").append_text(reached)]


def _totals(look: Look, rates: tuple[float, float], narrow: bool) -> list[Text]:
    graphs = (counted(look.graphs, "graph"), ""), (f" {rates[0]:,.{_places(rates[0])}f}/s", "dim")
    events = (counted(look.events, "event"), ""), (f" {rates[1]:,.{_places(rates[1])}f}/s", "dim")
    more = " · ".join(look.more)
    if narrow:
        return [_line(*graphs, ("  ", ""), *events), *([_line((more, "dim"))] if more else [])]
    return [_line(*graphs, ("   ", ""), *events, ("   ", ""), (more, "dim"))]


def _places(rate: float) -> int:
    return 1 if 0 < rate < 10 else 0


def _source(one: SourceLine, narrow: bool, digits: int) -> list[Piece]:
    graphs = f"{one.graphs:>{digits},} {'graph' if one.graphs == 1 else 'graphs'}"
    note = (one.note, "red" if one.wrong else "dim")
    if narrow:
        return [(one.name, "bold"), (graphs, ""), note]
    reached = f"up to {one.latest}" if one.latest else "no graph yet"
    return [(one.name, "bold"), (graphs, ""), (reached, "dim"), note]


def _event(one: EventLine, colours: Mapping[str, str], narrow: bool) -> list[Piece]:
    when = (one.time.partition("T")[2] or one.time) if narrow else one.time
    return [(when, "dim"), (f"● {one.rule}", colours.get(one.rule, "")), (one.values, "")]


class LastEvents:
    """Owns the last events of a feed; a `Sink` that writes nothing."""

    exactly_once = True

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._terms = TermFormatter(prefixes)
        self._kept: deque[tuple[Composite, Clock]] = deque(maxlen=LAST)

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        """See `Sink`."""
        self._kept.extend((event, clock) for event in events[-LAST:])

    def lines(self) -> list[EventLine]:
        """The latest last."""
        return [
            EventLine(
                f"{'−' if one.change < 0 else ''}{clock.text(one.time)}",
                one.rule,
                event_values(one.bindings, self._terms),
            )
            for one, clock in self._kept
        ]

    def resume(self, commit: int) -> None:
        """See `Sink`."""

    def prepare(self, commit: int) -> Prepared:
        """Nothing for the journal."""
        return Prepared()

    def confirm(self, commit: int) -> None:
        """See `Sink`."""

    def close(self) -> None:
        """See `Sink`."""


def event_values(bindings: Sequence[tuple[str, str]], terms: TermFormatter) -> str:
    """`?room :room14  ?celsius 71`, with literals as people read them."""
    return values_text(bindings, lambda term: plain(term, terms))

"""Marks along time, a lane for each kind of event.

Method:  SVG of a fixed width that shrinks with its page. Where a lane has more marks than fit beside each
         other, columns of five pixels are drawn as high as they have marks. Times are integers; their text is
         made by whoever has a clock, and so is the unit in which ticks are round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from dotr.pictures.markup import Html, element, joined, text

WIDTH: Final = 960
"""Pixels of a picture, before it shrinks."""

_LEFT, _RIGHT, _TOP = 150, 24, 8
_LANE = 30
_COLUMN = 5
_TICKS = 6
_FEW = 40

ROUND: Final = tuple(
    n * unit
    for unit, values in (
        (1, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (1_000, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (1_000_000, (1, 2, 5, 10, 15, 30)),
        (60_000_000, (1, 2, 5, 10, 15, 30)),
        (3_600_000_000, (1, 2, 3, 6, 12)),
        (86_400_000_000, (1, 2, 7, 14, 30, 91, 182, 365, 730, 1_825, 3_650, 36_500)),
    )
    for n in values
)
"""Microseconds between ticks of a calendar's time."""


class Mark(NamedTuple):
    """An event. `says`: what is shown where the pointer rests; `link`: where a click leads, "" for nowhere;
    `gone`: it is drawn hollow; `moved_to`: the time to which it moved.
    """

    lane: str
    time: int
    says: str
    link: str = ""
    gone: bool = False
    moved_to: int | None = None


def timeline(
    marks: Sequence[Mark],
    time_text: Callable[[int], str],
    lanes: Sequence[str] = (),
    steps: Sequence[int] = ROUND,
    label: str = "",
    colours: Sequence[str] = (),
) -> Html:
    """The marks, in lanes of the order given, others after them. `steps`: distances of ticks that are round
    in the unit of time. `colours`: names in the order of their colours; of other lanes the place counts.
    Cost: linear.
    """
    names = list(dict.fromkeys([*lanes, *(mark.lane for mark in marks)]))
    if not marks:
        return element("p", text("no events"), class_="note")
    times = [mark.time for mark in marks] + [m.moved_to for m in marks if m.moved_to is not None]
    first, last = min(times), max(times)
    span = max(1, last - first)
    first, last = first - span // 40, last + span // 40
    width = WIDTH - _LEFT - _RIGHT

    def x(time: int) -> float:
        if first == last:
            return _LEFT + width // 8  # in sight on a narrow screen
        return round(_LEFT + width * (time - first) / (last - first), 1)

    shapes: list[Html] = []
    bottom = _TOP + _LANE * len(names)
    for tick in _ticks(first, last, steps):
        shapes.append(element("line", x1=x(tick), x2=x(tick), y1=_TOP, y2=bottom, class_="rule"))
        anchor = "end" if x(tick) > WIDTH - 90 else "middle" if x(tick) > _LEFT + 40 else "start"
        shapes.append(element("text", text(time_text(tick)), x=x(tick), y=bottom + 18, text_anchor=anchor))
    coloured = {name: number for number, name in enumerate(colours)}
    by_lane: dict[str, list[Mark]] = {name: [] for name in names}
    for mark in marks:
        by_lane[mark.lane].append(mark)
    for number, (name, own) in enumerate(by_lane.items()):
        middle = _TOP + _LANE * number + _LANE // 2
        shapes.append(element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=middle, y2=middle, class_="rule"))
        shapes.append(
            element("text", text(_cut(name)), element("title", text(name)), x=0, y=middle + 4, class_="name")
        )
        places = {int(x(mark.time) / _COLUMN) for mark in own}
        crowded = len(own) > _FEW and len(places) * 4 < len(own) * 3
        drawn = _columns(own, x, middle) if crowded else _dots(own, x, middle)
        shapes.append(element("g", joined(drawn), class_=f"lane{coloured.get(name, number) % 8}"))
    picture = element(
        "svg",
        element("title", text(label or f"{len(marks):,} events along time")),
        *shapes,
        viewBox=f"0 0 {WIDTH} {bottom + 26}",
        width=WIDTH,
        role="img",
        class_="along",
        xmlns="http://www.w3.org/2000/svg",
    )
    return element("div", picture, class_="rows")


def _cut(name: str) -> str:
    return name if len(name) <= 20 else f"{name[:19]}…"


def _dots(marks: Sequence[Mark], x: Callable[[int], float], y: int) -> Iterator[Html]:
    for mark in marks:
        if mark.moved_to is not None:
            yield element("line", x1=x(mark.time), x2=x(mark.moved_to), y1=y, y2=y, class_="move")
            yield element("circle", cx=x(mark.moved_to), cy=y, r=5, class_="mark")
        dot = element(
            "circle",
            element("title", text(mark.says)),
            cx=x(mark.time),
            cy=y,
            r=5,
            class_="gone" if mark.gone or mark.moved_to is not None else "mark",
        )
        yield element("a", dot, href=mark.link) if mark.link else dot


def _columns(marks: Sequence[Mark], x: Callable[[int], float], y: int) -> Iterator[Html]:
    """Above the middle of the lane, or, of what is gone, hollow below it."""
    counts: dict[tuple[int, bool], int] = {}
    for mark in marks:
        key = int(x(mark.time) / _COLUMN), mark.gone
        counts[key] = counts.get(key, 0) + 1
    most, room = max(counts.values()), _LANE - 6
    both = any(gone for _, gone in counts)
    for (place, gone), count in sorted(counts.items()):
        height = max(2.0, round((room / 2 if both else room) * count / most, 1))
        bottom = y if both else y + room / 2
        yield element(
            "rect",
            element("title", text(f"{count:,} events")),
            x=place * _COLUMN,
            y=bottom if gone else bottom - height,
            width=_COLUMN - 1,
            height=height,
            class_="gone" if gone else "mark",
        )


def _ticks(first: int, last: int, steps: Sequence[int]) -> Iterator[int]:
    step = next((one for one in steps if (last - first) <= one * _TICKS), max(1, (last - first) // _TICKS))
    tick = -(-first // step) * step
    while tick <= last:
        yield tick
        tick += step

"""Boxes and arrows from left to right, in layers.

Method:  a box stands one layer to the right of the last of those that lead to it; arrows that close a circle
         are left out for that. In a layer boxes are ordered by the middle of those that lead to them, twice
         forth and back, which takes most crossings away. An arrow over several layers has a point in each of
         them, which is ordered among the boxes and takes room, so that it passes between them; an arrow back
         goes below all boxes. (Sugiyama, Tagawa, Toda 1981: layers, dummy vertices, barycentres.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from dotr.pictures.markup import Html, element, text

_HIGH, _GAP, _ACROSS = 40, 18, 90
_LETTER = 7.4
_LOOP = 30
"""Pixels from a box to the label of the arrow from it to itself."""


class Box(NamedTuple):
    """A box: `name` in messages, the lines that it shows, and whether it stands out."""

    name: str
    lines: Sequence[str]
    strong: bool = False


class Arrow(NamedTuple):
    """From one box to another one."""

    start: str
    end: str
    says: str = ""
    dashed: bool = False


def graph(boxes: Sequence[Box], arrows: Sequence[Arrow], label: str = "plan") -> Html:
    """The boxes in layers. Cost: linear in boxes and arrows, but for sorting."""
    known = {box.name: box for box in boxes}
    arrows = [arrow for arrow in arrows if arrow.start in known and arrow.end in known]
    layers, through = _layers(list(known), arrows)
    widths = {box.name: max(64.0, *(len(line) * _LETTER + 20 for line in box.lines)) for box in boxes}
    words = _words(one for one in arrows if one.start != one.end)
    loops = _words(one for one in arrows if one.start == one.end)
    places: dict[str, _Place] = {}
    left, high = 4.0, 0.0
    for layer in layers:
        own = [widths[name] + _beside(name, words, loops) for name in layer if name in known]
        wide, top = max(own, default=0.0) + 8, 4.0
        for name in layer:
            room = _HIGH if name in known else 0
            places[name] = _Place(left, top, widths.get(name, wide), left + wide)
            top += room + _GAP
        high = max(high, top)
        left += wide + _ACROSS
    back = any(places[one.end].left <= places[one.start].left for one in arrows if one.start != one.end)
    shapes = [
        _arrow(arrow, places, [places[one] for one in through[n]], high + 6) for n, arrow in enumerate(arrows)
    ]
    shapes += _labels(words, places, 5, -5)
    shapes += _labels(loops, places, _LOOP, 15)
    shapes += [_box(box, places[name].left, places[name].top, widths[name]) for name, box in known.items()]
    wide, high = left - _ACROSS + 8, high + 18 if back else high
    return element(
        "div",
        element(
            "svg",
            element("title", text(label)),
            _head(),
            *shapes,
            viewBox=f"0 0 {wide:.0f} {high + 8:.0f}",
            width=f"{wide:.0f}",
            role="img",
            xmlns="http://www.w3.org/2000/svg",
        ),
        class_="rows",
    )


def _head() -> Html:
    return element(
        "defs",
        element(
            "marker",
            element("path", d="M0 0 8 4 0 8z", class_="head"),
            id="dotr-head",
            viewBox="0 0 8 8",
            refX=8,
            refY=4,
            markerWidth=8,
            markerHeight=8,
            orient="auto",
        ),
    )


def _box(box: Box, x: float, y: float, width: float) -> Html:
    lines = [
        element(
            "text",
            text(line),
            x=round(x + 10, 1),
            y=round(y + (24 if len(box.lines) == 1 else 17 + 15 * number), 1),
            class_="name" if not number else False,
        )
        for number, line in enumerate(box.lines[:2])
    ]
    frame = element(
        "rect",
        x=x,
        y=y,
        width=round(width, 1),
        height=_HIGH,
        rx=6,
        class_=f"box{' strong' if box.strong else ''}",
    )
    return element("g", element("title", text("\n".join(box.lines))), frame, *lines)


class _Place(NamedTuple):
    """Where a box is, or a point through which an arrow goes; `edge`: where its layer ends."""

    left: float
    top: float
    width: float
    edge: float


def _arrow(arrow: Arrow, places: Mapping[str, _Place], through: Sequence[_Place], below: float) -> Html:
    """From the side of a box to the side of another one; `below`: under all boxes."""
    start, end = places[arrow.start], places[arrow.end]
    x, y, y2 = start.left + start.width, start.top + _HIGH / 2, end.top + _HIGH / 2
    if arrow.start == arrow.end:
        path = f"M{x:.1f} {y + 4:.1f} c34 0 34 14 0 12"
    elif end.left <= start.left:
        path = f"M{x:.1f} {y:.1f} H{start.edge:.1f} " + _bend(start.edge, y, start.edge + 30, below)
        path += f" H{end.left - 30:.1f} " + _bend(end.left - 30, below, end.left, y2)
    else:
        path = f"M{x:.1f} {y:.1f} H{start.edge:.1f}"
        x = start.edge
        for point in through:
            path += f" {_bend(x, y, point.left, point.top)} H{point.edge:.1f}"
            x, y = point.edge, point.top
        path += f" {_bend(x, y, end.left, y2)}"
    kind = "arrow dashed" if arrow.dashed else "arrow"
    return element("path", d=path, class_=kind, marker_end="url(#dotr-head)")


def _bend(x1: float, y1: float, x2: float, y2: float) -> str:
    """A curve that begins and ends level."""
    half = (x1 + x2) / 2
    return f"C{half:.1f} {y1:.1f} {half:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"


def _words(arrows: Iterable[Arrow]) -> dict[str, str]:
    """What the arrows of a box say, by its name."""
    said: dict[str, dict[str, None]] = {}
    for arrow in arrows:
        if arrow.says:
            said.setdefault(arrow.start, {})[arrow.says] = None
    return {name: ", ".join(words) for name, words in said.items()}


def _beside(name: str, words: Mapping[str, str], loops: Mapping[str, str]) -> float:
    """The room that labels take on the right of a box."""
    loop = _LOOP + len(loops[name]) * _LETTER if name in loops else 0
    return max(len(words.get(name, "")) * _LETTER, loop)


def _labels(
    words: Mapping[str, str], places: Mapping[str, _Place], right: float, below: float
) -> Iterator[Html]:
    """What arrows say, so far from the middle of the side where they leave a box."""
    for name, said in words.items():
        place = places[name]
        x, y = place.left + place.width + right, place.top + _HIGH / 2 + below
        yield element("text", text(said), x=round(x, 1), y=round(y, 1))


def _layers(names: Sequence[str], arrows: Sequence[Arrow]) -> tuple[list[list[str]], list[list[str]]]:
    """The boxes, and the points of arrows, by layer; and the points of each arrow."""
    before: dict[str, list[str]] = {name: [] for name in names}
    back = _back(names, arrows)
    for arrow in arrows:
        if (arrow.start, arrow.end) not in back:
            before[arrow.end].append(arrow.start)
    depth: dict[str, int] = {}
    for name in names:
        _deepen(name, before, depth)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in names:
        layers[depth[name]].append(name)
    through: list[list[str]] = []
    before = {name: [] for name in names}
    after: dict[str, list[str]] = {name: [] for name in names}
    for number, arrow in enumerate(arrows):
        points = [f"\0{number} {layer}" for layer in range(depth[arrow.start] + 1, depth[arrow.end])]
        for layer, point in enumerate(points, depth[arrow.start] + 1):
            layers[layer].append(point)
        through.append(points)
        for start, end in pairwise([arrow.start, *points, arrow.end]):
            before.setdefault(end, []).append(start)
            after.setdefault(start, []).append(end)
    for _ in range(2):
        _order(layers, before)
        _order(layers[::-1], after)
    _order(layers, before)
    return layers, through


def _back(names: Sequence[str], arrows: Sequence[Arrow]) -> set[tuple[str, str]]:
    """The arrows that close a circle, seen from the boxes to which none leads, and then from the others."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for arrow in arrows:
        after[arrow.start].append(arrow.end)
    reached = {arrow.end for arrow in arrows if arrow.start != arrow.end}
    done: set[str] = set()
    found: set[tuple[str, str]] = set()
    for first in sorted(names, key=reached.__contains__):
        path, on = [(first, iter(after[first]))], {first}
        while path and first not in done:
            at, ends = path[-1]
            end = next(ends, None)
            if end is None:
                path.pop()
                on.discard(at)
                done.add(at)
            elif end in on:
                found.add((at, end))
            elif end not in done:
                path.append((end, iter(after[end])))
                on.add(end)
    return found


def _deepen(name: str, before: Mapping[str, Sequence[str]], depth: dict[str, int]) -> None:
    """The layer of a box, and of all that lead to it."""
    path = [name]
    while path:
        at = path[-1]
        missing = [one for one in before[at] if one not in depth]
        if missing:
            path += missing
            continue
        depth[at] = 1 + max((depth[one] for one in before[at]), default=-1)
        path.pop()


def _order(layers: Sequence[list[str]], near: Mapping[str, Sequence[str]]) -> None:
    for one, layer in pairwise(layers):
        places = {name: number for number, name in enumerate(one)}

        def middle(name: str, places: Mapping[str, int] = places, layer: list[str] = layer) -> float:
            found = [places[other] for other in near[name] if other in places]
            return sum(found) / len(found) if found else layer.index(name)

        layer[:] = [name for _, _, name in sorted((middle(name), n, name) for n, name in enumerate(layer))]

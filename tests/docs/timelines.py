"""The pictures of the tutorial: timelines as SVG. `python -m tests.docs.timelines` writes them to dotr/docs.

A picture is rows over one axis of time; a row has points (facts) and bars (windows, what lasts). Colours
are named by what they mean and work on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "dotr" / "docs"
LEFT, WIDTH, ROW, TOP = 190, 520, 34, 16
FACT, CHOSEN, WINDOW, TEXT = "#7a7f87", "#c2410c", "#2563eb", "#7a7f87"


@dataclass(frozen=True, slots=True)
class Point:
    """A fact: when, what is written above it, whether a match has it."""

    at: float
    label: str = ""
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of time; an end that does not belong to it is drawn hollow."""

    start: float
    end: float
    closed: tuple[bool, bool] = (True, True)


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    points: tuple[Point, ...] = ()
    bars: tuple[Bar, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """Rows from 0 to `end` seconds, with a tick each `tick`."""

    title: str
    end: int
    tick: int
    rows: tuple[Row, ...]


def _points(*times: float, chosen: tuple[float, ...] = ()) -> tuple[Point, ...]:
    return tuple(Point(at, chosen=at in chosen) for at in times)


PICTURES = {
    "windows": Picture(
        "Windows that look back from a trigger at 300",
        420,
        60,
        (
            Row("Smoke (trigger)", (Point(300, "R", chosen=True),)),
            Row("Hot", _points(0, 100, 200, 300, chosen=(0, 100, 300))),
            Row("WITHIN 5 min FROM R", bars=(Bar(0, 300),)),
            Row("WITHIN 5 min BEFORE R", bars=(Bar(0, 300, (True, False)),)),
            Row("BETWEEN A AND R", (Point(100, "A"),), (Bar(100, 300, (False, False)),)),
        ),
    ),
    "choices": Picture(
        "What LAST, FIRST and EACH choose",
        360,
        60,
        (
            Row("Smoke (trigger)", (Point(300, chosen=True),)),
            Row("Temp", (Point(0, "40"), Point(100, "65"), Point(200, "55"))),
            Row("LAST", _points(0, 100, 200, chosen=(200,)), (Bar(0, 300),)),
            Row("FIRST", _points(0, 100, 200, chosen=(0,)), (Bar(0, 300),)),
            Row("EACH", _points(0, 100, 200, chosen=(0, 100, 200)), (Bar(0, 300),)),
        ),
    ),
    "not": Picture(
        "What stops a match: an all-clear between Hot and Smoke",
        180,
        30,
        (
            Row("Smoke (trigger)", _points(60, 120, chosen=(60,))),
            Row("Hot", (Point(0, "70"),)),
            Row("Clear", _points(100)),
            Row("BETWEEN Hot AND Smoke @ 60", bars=(Bar(0, 60, (False, False)),)),
            Row("BETWEEN Hot AND Smoke @ 120", bars=(Bar(0, 120, (False, False)),)),
        ),
    ),
    "aggregates": Picture(
        "A mean over the last ten minutes: now is part of it",
        900,
        120,
        (
            Row("Air (ppm)", (Point(0, "900"), Point(240, "1300"), Point(480, "1100"), Point(720, "400"))),
            Row("window of 480: mean 1100", _points(0, 240, 480, chosen=(0, 240, 480)), (Bar(0, 480),)),
            Row("window of 720: mean 933", _points(240, 480, 720, chosen=(240, 480, 720)), (Bar(120, 720),)),
        ),
    ),
    "consuming": Picture(
        "A badge opens the gate once: Paid consumes, Reused does not",
        21,
        3,
        (
            Row("Badge", (Point(0, "b1"), Point(5, "b2"))),
            Row("Pass", (Point(10, "p1"), Point(12, "p2"), Point(14, "p3"))),
            Row("Reused: LAST", (Point(10, "b2", True), Point(12, "b2", True), Point(14, "b2", True))),
            Row("Paid: FIRST, CONSUMING", (Point(10, "b1", True), Point(12, "b2", True), Point(14, "none"))),
        ),
    ),
    "chaining": Picture(
        "Events of one rule are facts of others, at the same instant",
        240,
        60,
        (
            Row("Reading", (Point(0, "lab"), Point(60, "attic"), Point(120, "hall"), Point(180, "lab"))),
            Row("Hot (private)", _points(0, 60, 120, 180)),
            Row("Spreading: Hot, Hot before", _points(120, 180, chosen=(120, 180)), (Bar(0, 120),)),
            Row("Evacuate: once an hour", _points(120, chosen=(120,))),
        ),
    ),
    "lars": Picture(
        "What holds, point by point, and where it begins and ends",
        300,
        30,
        (
            Row(
                "temp", (Point(0, "27"), Point(30, "28"), Point(60, "26"), Point(90, "20"), Point(300, "20"))
            ),
            Row("warm: above 25, 30 s", bars=(Bar(0, 90),)),
            Row("muggy: 7 points of 1 min", bars=(Bar(60, 90),)),
            Row("Begins, Ends", _points(60, 100, chosen=(60, 100))),
        ),
    ),
    "sequences": Picture(
        "Rows of two doors, and what the sequences find",
        60,
        5,
        (
            Row("Refused at the lab", _points(0, 5, 10, 40, chosen=(0, 5, 10))),
            Row("Opened at the lab", _points(15, chosen=(15,))),
            Row("Opened at the hall", _points(8)),
            Row("Guess: Refused{3,} Opened", _points(15, chosen=(15,)), (Bar(0, 15),)),
            Row("Visit at the hall, GAP 20 s", _points(28, chosen=(28,)), (Bar(8, 28),)),
            Row("Visit at the lab, GAP 20 s", _points(35, 60, chosen=(35, 60)), (Bar(0, 35), Bar(40, 60))),
        ),
    ),
    "every": Picture(
        "A clock that looks back two minutes at every minute",
        360,
        60,
        (
            Row("Beat", _points(0, 70, 300)),
            Row("EVERY 1 min", tuple(Point(at, chosen=at in (240,)) for at in range(0, 301, 60))),
            Row("window of the tick 180", bars=(Bar(60, 180),)),
            Row("window of the tick 240", bars=(Bar(120, 240),)),
        ),
    ),
    "lasting": Picture(
        "What lasts, and for how long",
        420,
        60,
        (
            Row("stated", (Point(0, "ann in hall"), Point(240, "ann in lab"))),
            Row("at its instant alone", _points(0, 240, chosen=(0, 240))),
            Row("HOLD :in LATEST", bars=(Bar(0, 240, (True, False)), Bar(240, 420, (True, False)))),
            Row("HOLD :in FOR 1 min", bars=(Bar(0, 60, (True, False)), Bar(240, 300, (True, False)))),
        ),
    ),
}


def svg(picture: Picture) -> str:
    """The picture as a document of SVG."""
    height = TOP + ROW * len(picture.rows) + 40
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 30} {height}" role="img" '
        f'aria-label="{escape(picture.title)}" font-family="sans-serif" font-size="12" fill="{TEXT}">'
    )
    body = [f"<title>{escape(picture.title)}</title>", *_axis(picture, height - 34)]
    for number, row in enumerate(picture.rows):
        body += _row(picture, row, TOP + ROW * number + ROW // 2)
    return "\n".join([head, *body, "</svg>", ""])


def _x(picture: Picture, at: float) -> float:
    return round(LEFT + WIDTH * at / picture.end, 1)


def _axis(picture: Picture, y: int) -> Iterator[str]:
    yield f'<path d="M{LEFT} {y}H{LEFT + WIDTH}" stroke="{TEXT}"/>'
    for at in range(0, picture.end + 1, picture.tick):
        x = _x(picture, at)
        yield f'<path d="M{x} {TOP}V{y + 5}" stroke="{TEXT}" stroke-opacity="0.25"/>'
        yield f'<text x="{x}" y="{y + 20}" text-anchor="middle">{at}</text>'


def _row(picture: Picture, row: Row, y: int) -> Iterator[str]:
    yield f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(row.name)}</text>'
    for bar in row.bars:
        first, last = _x(picture, bar.start), _x(picture, bar.end)
        yield f'<path d="M{first} {y}H{last}" stroke="{WINDOW}" stroke-width="7" stroke-opacity="0.35"/>'
        for x, closed in zip((first, last), bar.closed, strict=True):
            fill = WINDOW if closed else "white"
            yield f'<circle cx="{x}" cy="{y}" r="5" fill="{fill}" stroke="{WINDOW}"/>'
    for point in row.points:
        x = _x(picture, point.at)
        yield f'<circle cx="{x}" cy="{y}" r="6" fill="{CHOSEN if point.chosen else FACT}"/>'
        if point.label:
            yield f'<text x="{x}" y="{y - 9}" text-anchor="middle">{escape(point.label)}</text>'


def main() -> None:
    for name, picture in PICTURES.items():
        (DOCS / f"tutorial-{name}.svg").write_text(svg(picture), encoding="utf-8")


if __name__ == "__main__":
    main()

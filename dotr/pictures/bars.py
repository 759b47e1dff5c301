"""Counts as bars: the steps of a funnel."""

from __future__ import annotations

from collections.abc import Sequence

from dotr.pictures.markup import Html, element, text


def bars(counts: Sequence[tuple[str, int]], lane: int = 0) -> Html:
    """A bar for each count, as long as its part of the largest."""
    most = max((count for _, count in counts), default=0) or 1
    cells: list[Html] = []
    for name, count in counts:
        width = f"width:{100 * count / most:.1f}%"
        cells += [
            element("span", text(name)),
            element("div", element("div", style=width, class_="fill") if count else "", class_="bar"),
            element("span", text(f"{count:,}"), class_="n" if count else "n zero"),
        ]
    return element("div", *cells, class_=f"bars lane{lane % 8}")

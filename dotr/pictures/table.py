"""Rows under a head."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from dotr.pictures.markup import Html, element, joined, text


def table(
    head: Sequence[str], rows: Iterable[Sequence[str | Html]], numbers: Collection[int] = (), more: int = 0
) -> Html:
    """A table; cells that are strings are escaped by `text` before. `numbers`: columns that stand to the
    right; `more`: rows that are not shown.
    """

    def row(cells: Sequence[str | Html], tag: str) -> Html:
        return element(
            "tr",
            *(element(tag, cell, class_="n" if n in numbers else False) for n, cell in enumerate(cells)),
        )

    made = element(
        "table",
        element("thead", row([text(name) for name in head], "th")),
        element("tbody", joined(row(one, "td") for one in rows)),
    )
    left = element("p", text(f"and {more:,} more"), class_="note") if more else Html("")
    return element("div", made, left, class_="rows")

"""Tables as aligned text, no wider than the terminal they are read on.

Place:   what `status`, `query` and `compare` print; where no width is known, nothing is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_LEAST: Final = 6
"""Columns are not made narrower than this."""

_GAP: Final = "  "


def aligned(rows: Sequence[Sequence[str]], width: int | None = None, left: int | None = None) -> str:
    """Rows of equal length as lines; the first `left` columns are aligned to the left (None: all), the others
    to the right. Where they are wider than `width`, the widest columns are cut, which `…` shows.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if width is not None:
        widths = _narrow(widths, width - len(_GAP) * (len(widths) - 1))
    lines = []
    for row in rows:
        cells = [_cut(cell, size) for cell, size in zip(row, widths, strict=True)]
        placed = (
            cell.ljust(size) if left is None or place < left else cell.rjust(size)
            for place, (cell, size) in enumerate(zip(cells, widths, strict=True))
        )
        lines.append(_GAP.join(placed).rstrip())
    return "".join(f"{line}\n" for line in lines)


def _narrow(widths: Sequence[int], most: int) -> list[int]:
    """The widest columns made narrower, so that all fit if they can."""
    longest = min(max(widths), max(most, _LEAST))
    while longest > _LEAST and sum(min(width, longest) for width in widths) > most:
        longest -= 1
    return [min(width, longest) for width in widths]


def _cut(cell: str, size: int) -> str:
    return cell if len(cell) <= size else f"{cell[: size - 1]}…"

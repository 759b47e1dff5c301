"""A chart of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def plot(title: str, x: str, rows: Sequence[Mapping[str, Any]], file: str) -> None:
    """Write a PNG: a line for every figure in µs or MB, per value of the columns that are text."""
    import matplotlib  # noqa: PLC0415  # only --plot needs it

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415  # see above

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    kinds = [name for name in rows[0] if isinstance(rows[0][name], str)]
    figures = [name for name in rows[0] if name.endswith(("µs", "MB"))]
    groups = list(dict.fromkeys(tuple(str(row[name]) for name in kinds) for row in rows))
    for group in groups:
        own = [row for row in rows if tuple(str(row[name]) for name in kinds) == group]
        for name in figures:
            points = [(row[x], row[name]) for row in own if row.get(name) is not None]
            if points:
                label = " ".join((*group, name.removesuffix(" µs").removesuffix(" MB")))
                style = "-" if name.startswith(("dotr", "resident")) else "--"
                axes.plot(*zip(*points, strict=True), marker="o", markersize=3, linestyle=style, label=label)
    values = [row[x] for row in rows]
    if max(values) > 50 * max(1, min(values)):
        axes.set_xscale("log")
    if "µs" in figures[0]:
        axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel("MB" if figures[0].endswith("MB") else "µs a graph")
    axes.set_title(title)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=130)
    pyplot.close(figure)

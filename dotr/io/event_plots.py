"""Events and funnels drawn by matplotlib, where it is installed.

Place:   `Events.plot` and the funnel of an engine; nothing else imports matplotlib.
Bad input: D4205 it is not installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any

from dotr.core.funnel import Funnel
from dotr.errors import EngineError
from dotr.events import Clock, Composite


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    if find_spec("matplotlib") is None:
        raise EngineError.of("D4205", "plots need matplotlib", hint="pip install matplotlib")
    from matplotlib import pyplot  # noqa: PLC0415  # where it is installed

    return pyplot.subplots(layout="constrained")[1]


def plot_events(composites: Sequence[Composite], clock: Clock, ax: Any = None) -> Any:
    """A row a rule in order of first events, a mark an event; the axes. Raises EngineError D4205."""
    ax = _axes(ax)
    rows = {rule: row for row, rule in enumerate(dict.fromkeys(one.rule for one in composites))}
    for rule, row in rows.items():
        own = [one.time for one in composites if one.rule == rule]
        times = (
            [time / clock.unit for time in own]
            if clock.integer
            else [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time) for time in own]
        )
        ax.plot(times, [row] * len(own), "|", markersize=14, markeredgewidth=1.5)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel("time")
    return ax


def plot_funnels(funnels: Mapping[str, Funnel], events: Mapping[str, int], ax: Any = None) -> Any:
    """A bar for each step of each rule, the last its events; the axes. Raises EngineError D4205."""
    ax = _axes(ax)
    names: list[str] = []
    counts: list[int] = []
    for rule, funnel in funnels.items():
        steps = [*funnel, ("events", events.get(rule, 0))]
        names += [f"{rule}: {name}" for name, _ in steps]
        counts += [count for _, count in steps]
    ax.barh(range(len(names)), counts)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel("facts")
    return ax

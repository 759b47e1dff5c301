"""Timing, comparing and printing.

Method:  every runner is prepared anew for each repeat, warmed up with the head of the stream (which fills
         windows and compiles what compiles lazily) and timed over the rest; runners take turns, so that a
         machine that is busy for a while is busy for all of them. Times are the process's own CPU time: every
         runner is one thread that waits for nothing. The best of the repeats is reported (noise only adds),
         with the median beside it. Outputs are compared as text.
"""

from __future__ import annotations

import gc
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from .runners import Documents, Run

STAMP = " <http://www.w3.org/ns/prov#generatedAtTime> "


class DifferenceError(Exception):
    """Two runners disagree about the events of one stream."""


@dataclass
class Timing:
    """Seconds of each repeat over `graphs` graphs, and the output, that of the warm-up first."""

    graphs: int
    seconds: list[float] = field(default_factory=list)
    output: list[str] = field(default_factory=list)

    @property
    def events(self) -> float:
        """Composite events a graph, of the part that was timed: each has one stamp."""
        return sum(text.count(STAMP) for text in self.output[1:]) / self.graphs

    @property
    def best(self) -> float:
        """Microseconds a graph."""
        return min(self.seconds) / self.graphs * 1e6

    @property
    def typical(self) -> float:
        return median(self.seconds) / self.graphs * 1e6


def once(prepare: Callable[[], Run], documents: Documents, warm_up: int = 0) -> tuple[float, list[str]]:
    """(seconds of all documents but the first `warm_up`, output: that of the warm-up as one text first)."""
    run = prepare()
    head = "".join(run(documents[:warm_up])) if warm_up else ""
    rest = documents[warm_up:]
    gc.collect()
    start = process_time()
    output = run(rest)
    return process_time() - start, [head, *output]


def compare(
    runners: Mapping[str, Callable[[], Run]], documents: Documents, repeats: int, warm_up: int = 1_000
) -> dict[str, Timing]:
    """Time runners in turns. Raises DifferenceError unless all that print anything print the same."""
    warm_up = min(warm_up, len(documents) // 2)
    timings = {name: Timing(len(documents) - warm_up) for name in runners}
    for _ in range(repeats):
        for name, prepare in runners.items():
            seconds, output = once(prepare, documents, warm_up)
            timings[name].seconds.append(seconds)
            timings[name].output = output
    printing = [name for name in runners if name != "parse"]
    for name in printing[1:]:
        same(printing[0], timings[printing[0]].output, name, timings[name].output)
    return timings


def same(first: str, left: Sequence[str], second: str, right: Sequence[str], prefix: bool = False) -> None:
    """Raise DifferenceError unless both are one text; `prefix`: unless the left begins with the right."""
    a, b = "".join(left), "".join(right)
    if a == b or (prefix and a.startswith(b)):
        return
    lines, others = a.splitlines(), b.splitlines()
    for number, (line, other) in enumerate(zip(lines, others, strict=False), start=1):
        if line != other:
            raise DifferenceError(f"line {number}\n  {first}: {line}\n  {second}: {other}")
    raise DifferenceError(f"{first} has {len(lines)} lines, {second} {len(others)}")


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = models[0].partition(":")[2].strip() if models else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with equal keys as aligned text; figures to the right, with as many digits as they deserve."""
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([shown(row.get(name)) for name in names] for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(names))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def json_line(result: Mapping[str, Any]) -> str:
    return json.dumps(result, separators=(",", ":"))

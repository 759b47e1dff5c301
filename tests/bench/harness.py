"""Timing, comparing and printing.

Method:  every runner is prepared anew for each repeat, warmed up with the head of the stream (which fills
         windows and compiles what compiles lazily) and timed over the rest, in turns with the others after
         every few graphs, so that a machine that is busy for a while is busy for all of them. Times are the
         process's own CPU time: every runner is one thread that waits for nothing. What is written is thrown
         away outside of the time, after its hash was taken. The best of the repeats is reported (noise only
         adds), with the median beside it.
"""

from __future__ import annotations

import gc
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from .runners import Documents, Run

STAMP = " <http://www.w3.org/ns/prov#generatedAtTime> "


SILENT = ("parse", "silent")
"""Runners that write no events."""


class DifferenceError(Exception):
    """Two runners disagree about the events of one stream."""


@dataclass
class Timing:
    """Seconds of each repeat over `graphs` graphs, stamps (one an event) and hash of what each turn wrote."""

    graphs: int
    seconds: list[float] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)

    @property
    def events(self) -> float:
        """Composite events a graph, of the part that was timed."""
        return sum(self.stamps[1:]) / self.graphs

    @property
    def best(self) -> float:
        """Microseconds a graph."""
        return min(self.seconds) / self.graphs * 1e6

    @property
    def typical(self) -> float:
        return median(self.seconds) / self.graphs * 1e6

    def turn(self, run: Run, documents: Documents) -> float:
        """Run some documents; the seconds it took."""
        start = process_time()
        output = run(documents)
        seconds = process_time() - start
        text = "".join(output)
        self.stamps.append(text.count(STAMP))
        self.hashes.append(blake2b(text.encode()).digest())
        return seconds


def once(prepare: Callable[[], Run], documents: Documents) -> tuple[float, list[str]]:
    """(seconds, output) of all documents."""
    run = prepare()
    gc.collect()
    start = process_time()
    output = run(documents)
    return process_time() - start, output


def compare(
    runners: Mapping[str, Callable[[], Run]],
    documents: Documents,
    repeats: int,
    *,
    warm_up: int = 1_000,
    turn: int = 500,
) -> dict[str, Timing]:
    """Time runners in turns. Raises DifferenceError unless all that print anything print the same."""
    warm_up = min(warm_up, len(documents) // 2)
    turns = [documents[place : place + turn] for place in range(warm_up, len(documents), turn)]
    timings = {name: Timing(len(documents) - warm_up) for name in runners}
    for _ in range(repeats):
        running = {name: prepare() for name, prepare in runners.items()}
        for name, timing in timings.items():
            timing.stamps, timing.hashes = [], []
            timing.turn(running[name], documents[:warm_up])
            timing.seconds.append(0.0)
        gc.collect()
        for part in turns:
            for name, timing in timings.items():
                timing.seconds[-1] += timing.turn(running[name], part)
    first, *others = [name for name in runners if name not in SILENT] or [""]
    for name in others:
        for place, (ours, theirs) in enumerate(zip(timings[first].hashes, timings[name].hashes, strict=True)):
            if ours != theirs:
                raise DifferenceError(f"turn {place}: {first} and {name} write different events")
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

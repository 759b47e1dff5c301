"""A day of event time in one feed: memory must stay flat, the database as small as the state.

    python -m tests.soak.day --graphs 1000000

Place:   started by hand, its line is in LOG.md.
Method:  a million graphs over 24 hours, every one with terms never seen before, some unreadable, some late,
         one instant in ten thousand in error; rules that remember, consume, aggregate, chain and tick. The
         feed's resident memory and its database are looked at fifty times a second; each tenth of the run is
         compared with the second one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.service.deployments import RULES, deploy
from tests.soak.processes import dotr

DAY = 24 * 60 * 60 * 1000
LOG = 8 << 20
SCHEMA = "<urn:x:Smoke> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:x:Event> ."


def lines(graphs: int, seed: int = 5) -> Iterator[str]:
    """JSON lines in milliseconds; observations are named, and no name comes twice."""
    noise = random.Random(seed)
    for number in range(graphs):
        at = number * DAY // graphs
        room = f"<urn:x:room> <urn:x:room-{noise.randrange(50)}>"
        name = f"<urn:x:observation-{number}-{noise.getrandbits(64):x}>"
        if number % 10_000 == 5000:
            yield json.dumps({"time": at, "graph": SCHEMA})
        elif number % 1000 == 500:
            yield "not json"
        elif number % 1000 == 700:
            yield json.dumps({"time": max(0, at - 600_000), "graph": f"{name} {room} ."})
        elif noise.random() < 0.02:
            yield json.dumps({"time": at, "graph": f"{name} a <urn:x:Smoke> ; {room} ."})
        else:
            yield json.dumps(
                {"time": at, "graph": f"{name} <urn:x:celsius> {noise.randrange(40, 90)} ; {room} ."}
            )


@dataclass(slots=True)
class Samples:
    """Owns what was seen of one feed: (bytes read of the source, MiB resident, bytes of the database)."""

    seen: list[tuple[int, float, int]] = field(default_factory=list)
    log: int = 0
    """The most bytes of the write-ahead log, which SQLite begins again after some 1000 pages."""

    def take(self, process: int, source: Path, state: Path) -> None:
        try:
            pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
            at = next(
                int(Path(f"/proc/{process}/fdinfo/{number}").read_text().split()[1])
                for number in os.listdir(f"/proc/{process}/fd")
                if os.path.realpath(f"/proc/{process}/fd/{number}") == str(source)
            )
        except (OSError, StopIteration, IndexError):
            return
        size = (state / "deployment.db").stat().st_size
        log = state / "deployment.db-wal"
        self.log = max(self.log, log.stat().st_size if log.exists() else 0)
        self.seen.append((at, pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20), size))

    def tenths(self, whole: int) -> list[tuple[float, float]]:
        """The most memory (MiB) and the largest database (kB) of every tenth of the source."""
        found: list[tuple[float, float]] = [(0.0, 0.0)]
        for tenth in range(10):
            rows = [row for row in self.seen if tenth * whole <= 10 * row[0] < (tenth + 1) * whole]
            found.append(
                (max(row[1] for row in rows), max(row[2] for row in rows) / 1e3) if rows else found[-1]
            )
        return found[1:]


def trial(folder: Path, graphs: int) -> str:
    """Feed the day; a line of figures. Raises AssertionError where memory or database grow."""
    source = (folder / "day.jsonl").resolve()
    with source.open("w") as file:
        file.writelines(f"{line}\n" for line in lines(graphs))
    state = Path(deploy(folder, RULES.replace("PREFIX", "ENTAILMENT rdfs PREFIX", 1)))
    outputs = [
        "-o",
        "out.nq",
        "--commit-graphs",
        "1000",
        "--on-error",
        "file=dead.jsonl",
        "--late",
        "file=late.jsonl",
    ]
    arguments = ["day.jsonl", "--dir", str(state), "--time-unit", "ms", *outputs]
    samples, begun = Samples(), time.monotonic()
    with subprocess.Popen(dotr("feed", arguments), cwd=folder, stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            samples.take(process.pid, source, state)
            time.sleep(0.02)
        assert process.stderr is not None
        reported = process.stderr.read().decode().strip()
    assert process.returncode == 0, reported
    tenths = samples.tenths(source.stat().st_size)
    memory, database = [m for m, _ in tenths], [d for _, d in tenths]
    line = (
        f"{graphs:,} graphs in {time.monotonic() - begun:.0f} s; MiB in each tenth "
        f"{' '.join(f'{m:.0f}' for m in memory)}; kB of the database "
        f"{' '.join(f'{d:.0f}' for d in database)}, of its log at most {samples.log / 1e3:.0f}; {reported}"
    )
    assert max(memory[1:]) < 1.1 * memory[1], line
    assert max(database[1:]) < 1.5 * database[1], line
    assert samples.log < LOG, line
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(trial(Path(folder), given.graphs))


if __name__ == "__main__":
    main()

"""Corrections, measured: a log in order beside the same log in which a twentieth of the graphs comes late.

Place:   the scenario `corrections` of __main__.py.
Method:  readings of 51 sensors, four a second; a graph in twenty comes between a minute and half an hour
         late. Each log is run, and fed to a deployment, by a process of its own, with corrections of an hour,
         in turns, processor time with the start; what remains of the events must be what the log in order
         has. Memory is that of a log of five times as many graphs: a million.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from .peers_environment import measured

RULES = """PREFIX : <urn:x:>
QUERY Reading := { SELECT ?s ?c WHERE { ?s :celsius ?c } }
RULE Hot DEFINE { dotr_x a :Hot ; :s ?s } FROM Reading
AND LAST Earlier := Reading WITHIN 5 min BEFORE Reading ON Earlier.?s = Reading.?s && Earlier.?c > 95
WHERE Reading.?c > 95 WITH ?s := Reading.?s
"""
A_SECOND, LATE, SENSORS, LONGER = 4, 0.05, 51, 5


def write(folder: Path, graphs: int) -> None:
    """`sorted-N.jsonl` and `late-N.jsonl`: the same graphs, in order of time and as they come."""
    dice = random.Random(1)
    rows = []
    for number in range(graphs):
        time = number // A_SECOND
        delay = dice.randint(60, 1_800) if dice.random() < LATE else 0
        sensor, celsius = dice.randrange(SENSORS), number * 7_919 % 100
        line = f'{{"time":{time},"graph":"<urn:x:s{sensor}> <urn:x:celsius> {celsius} ."}}\n'
        rows.append((time + delay, number, line))
    (folder / f"sorted-{graphs}.jsonl").write_text("".join(row[2] for row in rows), encoding="utf-8")
    (folder / f"late-{graphs}.jsonl").write_text("".join(row[2] for row in sorted(rows)), encoding="utf-8")


def dotr(folder: Path, *arguments: str) -> tuple[float, float]:
    """(processor seconds, MB) of one run."""
    command = [sys.executable, "-m", "dotr.cli.main", *arguments]
    return measured(command, folder)


def feed(folder: Path, log: str, *arguments: str) -> tuple[float, float]:
    """(processor seconds, MB) of feeding a log to a new deployment."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        dotr(folder, "deploy", "hot.dotr", "--dir", name, "-q")
        return dotr(folder, "feed", log, "--dir", name, *arguments, "-o", f"{name}/fed.jsonl", "-q")


def measure(graphs: int, repeats: int) -> tuple[list[dict[str, Any]], bool]:
    """Rows of seconds and memory, and whether what remains are the events of the log in order."""
    best: dict[str, float] = {}
    most: dict[str, float] = {}
    corrected = ("--corrections", "1h")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "hot.dotr").write_text(RULES, encoding="utf-8")
        for count in (graphs, LONGER * graphs):
            write(folder, count)
        in_order, late, longer = f"sorted-{graphs}.jsonl", f"late-{graphs}.jsonl", LONGER * graphs

        def run(log: str, events: str, *arguments: str) -> tuple[float, float]:
            return dotr(folder, "run", "hot.dotr", log, *arguments, "-o", events, "--overwrite", "-q")

        ways = {
            "in order, no corrections": lambda: run(in_order, "plain.jsonl"),
            "in order": lambda: run(in_order, "a.jsonl", *corrected),
            "1 in 20 late": lambda: run(late, "b.jsonl", *corrected),
            "fed in order, no corrections": lambda: feed(folder, in_order),
            "fed in order": lambda: feed(folder, in_order, *corrected),
            "fed, 1 in 20 late": lambda: feed(folder, late, *corrected),
        }
        once = {"five times as long": lambda: run(f"late-{longer}.jsonl", "c.jsonl", *corrected)}
        for turn in range(repeats):
            for way, measured_ in (ways if turn else ways | once).items():
                seconds, megabytes = measured_()
                best[way] = min(best.get(way, seconds), seconds)
                most[way] = max(most.get(way, 0.0), megabytes)
        dotr(folder, "convert", "--consolidate", "b.jsonl", "-o", "remain.jsonl", "-q")
        remain, plain = (
            sorted((folder / f).read_text().splitlines()) for f in ("remain.jsonl", "plain.jsonl")
        )
    rows = [{"log": way, "s": round(best[way], 2), "MB": round(most[way])} for way in best]
    return rows, remain == plain

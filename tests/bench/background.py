"""A large background in dicts and mapped from its file: lookups, opening, bytes, what a worker holds.

Place:   the scenario `background` of __main__.py.
Method:  a building of sensors, five triples each; a reading is one triple, and rules look it up in the
         background five times. `hot`: nine readings of ten come from a fiftieth of the sensors, as readings
         do; `uniform`: every sensor as often as any other, so that nearly every lookup is of something new.
         Both kinds of background run over the same stream in turns and must write the same events. What a
         worker holds is measured in two processes at once, each after the same lookups: what is its own, and
         with its share of what both map (/proc/PID/smaps_rollup).
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any
from unittest import mock

from msgspec.structs import replace

from dotr.enrich import materialiser
from dotr.enrich.closing import Closed, close_background
from dotr.io.outputs import write_whole
from dotr.io.rules_and_background import mapped
from dotr.rdf import index as indexes
from dotr.rdf.index import Background

from . import runners
from .harness import compare
from .workloads import NAMESPACE, Workload, iri

HERE = "tests.bench.background"
MOST = 1.3
"""As many times as long as over dicts, at most."""

RULES = f"""PREFIX : <{NAMESPACE}>
RULE Alarm
DEFINE {{ dotr_id1 a :Alarm ; :in ?wing }}
FROM Hot := {{ SELECT ?room ?wing WHERE {{ ?s :hot ?v ; a :Trusted ; :inRoom ?room . ?room :wing ?wing }} }}
AND LAST Smoke := {{ SELECT ?room WHERE {{ ?s :smoke ?v ; :inRoom ?room }} }}
    WITHIN 5 min FROM Hot ON Smoke.?room = Hot.?room
WITH ?wing := Hot.?wing
"""  # noqa: S608  # no SQL
DATALOG = f"""PREFIX : <{NAMESPACE}>
:inRoom(?s, ?r) :- :hot(?s, ?v), :equips(?s, ?o), :placedIn(?o, ?r) .
:inRoom(?s, ?r) :- :smoke(?s, ?v), :equips(?s, ?o), :placedIn(?o, ?r) .
"""


def building(sensors: int, graphs: int, hot: bool) -> Workload:
    """Sensors in rooms of ten, rooms in wings of a hundred; one reading a second."""
    type_ = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    lines = []
    for n in range(sensors):
        sensor, thing, room = iri(f"sensor{n}"), iri(f"object{n}"), iri(f"room{n // 10}")
        lines.append(f"{sensor} {iri('equips')} {thing} .")
        lines.append(f"{thing} {iri('placedIn')} {room} .")
        lines.append(f"{sensor} {type_} {iri('Trusted' if n % 8 else 'New')} .")
        lines.append(f"{thing} {type_} {iri('Radiator' if n % 3 else 'Lamp')} .")
        lines.append(f'{sensor} {iri("serial")} "{n:08}" .')
        if n % 10 == 0:
            lines.append(f"{room} {iri('wing')} {iri(f'wing{n // 1000}')} .")
    choice = random.Random(7)
    few = max(1, sensors // 50)
    documents = []
    for time in range(graphs):
        sensor = choice.randrange(few if hot and choice.random() < 0.9 else sensors)
        documents.append((time, f'{iri(f"sensor{sensor}")} {iri(("hot", "smoke")[time % 2])} "{time}" .'))
    return Workload("building", RULES, DATALOG, "\n".join(lines) + "\n", documents)


def _closer(folder: str) -> Callable[..., Closed]:
    """Closes a background and opens it again from a file."""

    def close(*args: Any, **more: Any) -> Closed:
        closed = close_background(*args, **more)
        path = str(Path(folder, "index"))
        with mock.patch.object(indexes, "LARGE", 0):
            write_whole(path, closed.index.contents())
        return replace(closed, index=Background.load(mapped(path)))

    return close


def prepare_mapped(workload: Workload, folder: str) -> runners.Run:
    """As a worker has it that opened a file."""
    with mock.patch.object(materialiser, "close_background", _closer(folder)):
        return runners.prepare_dotr(workload)


def lookups(sensors: int, graphs: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Microseconds a graph over both, hot and uniform."""
    for hot in (True, False):
        workload = building(sensors, graphs, hot)
        with tempfile.TemporaryDirectory() as folder:
            timings = compare(
                {
                    "dicts": partial(runners.prepare_dotr, workload),
                    "mapped": partial(prepare_mapped, workload, folder),
                },
                workload.documents,
                repeats,
            )
        dicts, file = timings["dicts"].typical, timings["mapped"].typical
        yield {
            "readings": "hot" if hot else "uniform",
            "triples": workload.background.count("\n"),
            "events a graph": timings["dicts"].events,
            "dicts µs": dicts,
            "mapped µs": file,
            "ratio": file / dicts,
        }


def opening(sensors: int) -> dict[str, Any]:
    """Milliseconds to have an index from its bytes, and how many there are, by kind."""
    triples = [tuple(line[:-2].split(" ", 2)) for line in building(sensors, 0, True).background.splitlines()]
    index = Background(triples)  # type: ignore[arg-type]  # three terms
    found: dict[str, Any] = {"triples": len(index)}
    for name, large in (("dicts", len(index) + 1), ("mapped", 0)):
        with mock.patch.object(indexes, "LARGE", large), tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, name))
            start = process_time()
            write_whole(path, index.contents())
            found[f"{name}: saving ms"] = (process_time() - start) * 1e3
            best = []
            for _ in range(5):
                start = process_time()
                opened = Background.load(mapped(path))
                best.append((process_time() - start) * 1e3)
                del opened
            found[f"{name}: opening ms"] = min(best)
            found[f"{name}: bytes a triple"] = Path(path).stat().st_size / len(index)
    return found


def workers(sensors: int, graphs: int) -> dict[str, Any]:
    """Megabytes that the background costs each of two workers at once: their own, and with their share."""
    found: dict[str, Any] = {}
    index = Background(
        tuple(line[:-2].split(" ", 2)) for line in building(sensors, 0, True).background.splitlines()
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, large in (("dicts", len(index) + 1), ("mapped", 0)):
            path = str(Path(folder, name))
            with mock.patch.object(indexes, "LARGE", large):
                write_whole(path, index.contents())
            line = [sys.executable, "-m", HERE, path, str(sensors), str(graphs)]
            two = [
                subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                for _ in range(2)
            ]
            for one in two:  # both have it before either measures
                assert one.stdout is not None
                one.stdout.readline()
            held = [json.loads(one.communicate("measure\n")[0]) for one in two]
            for what in held[0]:
                found[f"{name}: {what} MB"] = sum(one[what] for one in held) / 2
    return found


def _hold(path: str, sensors: int, graphs: int) -> None:
    """A worker: opens, looks up what readings of `graphs` sensors need, says what it holds."""
    before = _held()
    index = Background.load(mapped(path))
    choice = random.Random(3)
    equips, placed = index.forward[iri("equips")], index.forward[iri("placedIn")]
    found = 0
    for _ in range(graphs):
        sensor = iri(f"sensor{choice.randrange(sensors)}")
        found += placed.get(equips.get(sensor)) is not None
    assert found == graphs
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps({what: size - before[what] for what, size in _held().items()}))


def _held() -> dict[str, float]:
    """Megabytes of this process: its own, and with its share of what several map."""
    lines = Path("/proc/self/smaps_rollup").read_text("utf-8").splitlines()[1:]
    sizes = {line.split(":")[0]: int(line.split()[1]) / 1e3 for line in lines}
    return {"own": sizes["Private_Clean"] + sizes["Private_Dirty"], "share": sizes["Pss"]}


def run(quick: bool, repeats: int) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, bool]]:
    """Rows, figures, and what must hold."""
    sensors, graphs = (20_000, 6_000) if quick else (200_000, 30_000)
    rows = list(lookups(sensors, graphs, repeats))
    figures = {"opening": opening(sensors), "workers": workers(sensors, graphs)}
    checks = {f"{row['readings']}: at most {MOST} × dicts": row["ratio"] <= MOST for row in rows[:1]}
    checks["opened in 10 ms"] = figures["opening"]["mapped: opening ms"] <= 10
    share = figures["workers"]["mapped: share MB"] / figures["workers"]["dicts: share MB"]
    figures["share of a worker's memory"] = share
    checks["a worker holds a third at most"] = share <= 1 / 3
    return rows, figures, checks


if __name__ == "__main__":
    _hold(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

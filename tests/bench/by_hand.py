"""From file to file: `dotr run` over JSON lines beside a loop by hand that writes the same bytes.

Run:     python -m tests.bench.by_hand [--graphs N] [--rules N] [--repeats N] [--json]
Method:  one rule, or several that differ in a threshold: smoke in a room, and the last reading of that room
         above it at most five minutes before. The loop is what a competent user would write for these very
         rules: json and pyoxigraph read a line, a dictionary keeps the last reading of each room, json
         writes. Both are processes of their own, starts included; processor time, best of the repeats in
         turn. The outputs are compared byte by byte.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from base64 import b32encode
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyoxigraph as ox

ROOT = Path(__file__).resolve().parents[2]
E = "http://example.org/"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
WITHIN = 300
RULE = """
RULE Fire{n}
DEFINE {{ dotr_id1 a :Fire{n} ; :room ?room ; :temperature ?t }}
FROM Smoke{n} := {{ SELECT ?room WHERE {{ ?room :smoke true }} }}
AND LAST Hot{n} := {{ SELECT ?room ?t WHERE {{ ?room :temperature ?t FILTER(?t > {above}) }} }}
    WITHIN 5 min FROM Smoke{n} ON Hot{n}.?room = Smoke{n}.?room
WITH ?room := Smoke{n}.?room, ?t := Hot{n}.?t
"""


def thresholds(rules: int) -> list[int]:
    return [60] if rules == 1 else [45 + 5 * number for number in range(rules)]


def write_rules(path: Path, rules: int) -> None:
    texts = [RULE.format(n=number, above=above) for number, above in enumerate(thresholds(rules))]
    path.write_text(f"PREFIX : <{E}>\n{''.join(texts)}", encoding="utf-8")


def write_stream(path: Path, graphs: int) -> None:
    """A hundred rooms; one graph in ten says smoke, the others a temperature below a hundred."""
    draw = random.Random(7)
    with path.open("w", encoding="utf-8") as file:
        for time in range(graphs):
            room = f"<{E}room{draw.randrange(100)}>"
            smoke = draw.random() >= 0.9
            said = f"<{E}smoke> true" if smoke else f"<{E}temperature> {draw.randrange(100)}"
            file.write(json.dumps({"time": time, "graph": f"{room} {said} ."}) + "\n")


def by_hand(source: str, target: str, rules: int) -> None:
    """The loop: everything that is said here about dotr's output is in dotr's manual."""
    above = thresholds(rules)
    last: list[dict[str, tuple[int, str]]] = [{} for _ in above]
    with open(source, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as out:
        for line in lines:
            said = json.loads(line)
            time = said["time"]
            for quad in ox.parse(said["graph"], format=ox.RdfFormat.TURTLE):
                room, value = str(quad.subject), quad.object.value  # type: ignore[union-attr]  # a literal
                if quad.predicate.value == f"{E}temperature":
                    number = int(value)
                    for rule, threshold in enumerate(above):
                        if number > threshold:
                            last[rule][room] = time, value
                elif quad.predicate.value == f"{E}smoke":
                    for rule, readings in enumerate(last):
                        if room in readings and time - readings[room][0] <= WITHIN:
                            out.write(_line(rule, time, room, *readings[room]))


def _line(rule: int, time: int, room: str, when: int, value: str) -> str:
    literal = f'"{value}"^^<{INTEGER}>'
    now, then = time * 1_000_000, when * 1_000_000
    text = f"{now}\n{now} 0\n{room}\n{then} 0\n{room}\n{literal}"
    id_ = f"urn:dotr:Fire{rule}:{b32encode(blake2b(text.encode(), digest_size=15).digest()).decode().lower()}"
    uri = {"type": "uri", "value": room[1:-1]}
    number = {"type": "literal", "value": value, "datatype": INTEGER}
    properties = [f"<{TYPE}> <{E}Fire{rule}>", f"<{E}room> {room}", f"<{E}temperature> {literal}"]
    event = {
        "rule": f"Fire{rule}",
        "time": time,
        "id": id_,
        "bindings": {"room": uri, "t": number},
        "match": {
            f"Smoke{rule}": {"time": time, "values": {"room": uri}},
            f"Hot{rule}": {"time": when, "values": {"room": uri, "t": number}},
        },
        "graph": "".join(sorted(f"<{id_}> {property_} .\n" for property_ in properties)),
    }
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False) + "\n"


def installed() -> dict[str, str]:
    """The environment of a process whose modules are compiled once, as those of an installed program are."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _seconds(command: Sequence[str]) -> float:
    """Processor time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, cwd=ROOT, env=installed(), check=True, capture_output=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def measure(graphs: int, rules: int, repeats: int) -> dict[str, Any]:
    """Seconds of both, their ratio, and whether the outputs are the same."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        source, program = where / "in.jsonl", where / "rules.dotr"
        mine, theirs = where / "dotr.jsonl", where / "hand.jsonl"
        write_stream(source, graphs)
        write_rules(program, rules)
        run = ["-m", "dotr.cli.main", "run", str(program), str(source), "-o", str(mine), "--overwrite"]
        loop = ["-m", "tests.bench.by_hand", "--loop", str(source), str(theirs), "--rules", str(rules)]
        best: dict[str, float] = {}
        commands: dict[str, Callable[[], float]] = {
            "hand": lambda: _seconds([sys.executable, *loop]),
            "dotr": lambda: _seconds([sys.executable, *run]),
        }
        for _ in range(repeats):
            for name, command in commands.items():
                best[name] = min(best.get(name, 1e9), command())
        same = mine.read_bytes() == theirs.read_bytes()
        events = mine.read_bytes().count(b"\n")
    ratio = best["dotr"] / best["hand"]
    return {"rules": rules, "graphs": graphs, "events": events, "same": same, **best, "ratio": ratio}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.by_hand", description=__doc__)
    parser.add_argument("--graphs", type=int, default=300_000)
    parser.add_argument("--rules", type=int, default=0, help="instead of 1, then 10")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="JSON lines")
    parser.add_argument("--loop", nargs=2, metavar=("IN", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.loop:
        by_hand(*options.loop, options.rules)
        return 0
    rows = [
        measure(options.graphs, n, options.repeats) for n in ([options.rules] if options.rules else [1, 10])
    ]
    for row in rows:
        text = (
            "{rules} rules, {graphs:,} graphs, {events:,} events: {dotr:.2f} s / {hand:.2f} s = {ratio:.2f}"
        )
        different = "" if row["same"] else ", NOT THE SAME"
        print(json.dumps(row) if options.json else text.format(**row) + different)
    return 0 if all(row["same"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

"""A small factory: 1,882 graphs of two hours, temperatures and vibrations of ten machines, and its rule.

`python -m tests.survey.factory FOLDER` writes it.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

GRAPHS = 1_882
PREFIX = "@prefix : <http://example.org/factory#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
BACKGROUND = """@prefix : <http://example.org/factory#> .
:m0 :in :hall1 . :m1 :in :hall1 . :m2 :in :hall1 . :m3 :in :hall1 . :m4 :in :hall1 .
:m5 :in :hall2 . :m6 :in :hall2 . :m7 :in :hall2 . :m8 :in :hall2 . :m9 :in :hall2 .
"""
HEAD = """PREFIX : <http://example.org/factory#>
BACKGROUND <factory.ttl>
"""
TEMP = "QUERY Temp := { SELECT ?m ?c WHERE { ?o a :Temperature ; :machine ?m ; :value ?c } }\n"
SPIKE = "QUERY Spike := { SELECT ?m ?v WHERE { ?o a :Vibration ; :machine ?m ; :value ?v FILTER(?v > 8) } }\n"
RULE = """RULE Overheat
DEFINE   { dotr_x a :Overheat ; :machine ?m ; :celsius ?c }
FROM     Temp
AND LAST Spike WITHIN 5 min FROM Temp ON Spike.?m = Temp.?m
WHERE    Temp.?c > 80
WITH     ?m := Temp.?m, ?c := Temp.?c
"""
RIGHT = HEAD + TEMP + SPIKE + RULE


def graphs() -> list[tuple[str, str]]:
    """(time, Turtle) of every graph, in order; the same on every machine."""
    dice = random.Random(11)  # no secrets
    begin = datetime(2026, 3, 2, 8, 0, 5, tzinfo=UTC)
    found = []
    for number in range(GRAPHS):
        time = begin + timedelta(milliseconds=number * 7_190_000 // (GRAPHS - 1))
        machine = dice.randrange(10)
        kind, value = (
            ("Temperature", f"{dice.gauss(60, 12):.1f}")
            if number % 2
            else ("Vibration", f"{dice.expovariate(0.25):.1f}")
        )
        text = f"{PREFIX}:o{number} a :{kind} ; :machine :m{machine} ; :value {value} ."
        found.append((time.isoformat(timespec="milliseconds").replace("+00:00", "Z"), text))
    return found


def write(folder: Path) -> None:
    """The background, the stream and the right rules."""
    (folder / "factory.ttl").write_text(BACKGROUND, encoding="utf-8")
    lines = [json.dumps({"time": time, "graph": graph}) for time, graph in graphs()]
    (folder / "stream.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "factory.dotr").write_text(RIGHT, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))

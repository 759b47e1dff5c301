"""What a further condition in ON costs ten rules that share: the temporal engine with it and without.

Run:     python -m tests.bench.residuals [--facts N] [--json]
Place:   beside detect.py, whose stream it takes; the rules differ in a threshold of the second event.
Method:  per operator, ten rules as they are, with `Smoke.time - Heat.time < 30`, with a difference of
         readings and with functions of both; in turns, processor time, best of three. The ratio to the rules
         as they are is what counts: 1.3 at most, where the candidates are as many. (A condition over both
         events goes from candidate to candidate: over long windows it costs aggregates more than a total that
         is kept up.)
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Mapping, Sequence
from time import process_time
from typing import Final

from dotr.detect.detector import TeslaDetector
from dotr.events import Clock, Fact
from dotr.lang import parse_program
from dotr.program import Program
from dotr.rdf.terms import integer

from . import detect
from .detect import Instants

QUERIES = detect.QUERIES.replace(
    "?room WHERE { ?room a <urn:x:Smoke>",
    "?room ?density WHERE { ?room a <urn:x:Smoke> ; <urn:x:density> ?density",
)

OPERATORS: Final[Mapping[str, str]] = {
    "LAST": "LAST",
    "LAST 3": "LAST 3",
    "FIRST": "FIRST",
    "EACH": "EACH",
    "NOT": "NOT",
    "COUNT": "COUNT(*) AS ?n OVER",
    "AVG": "AVG(Heat.?val) AS ?n OVER",
    "MAX": "MAX(Heat.?val) AS ?n OVER",
}
CONDITIONS: Final[Mapping[str, str]] = {
    "": "",
    "times": " && Smoke.time - Heat.time < 30",
    "difference": " && Heat.?val - Smoke.?density < 30",
    "functions": " && Heat.?room != <urn:x:none> && STR(Heat.?room) = STR(Smoke.?room)",
}


def ten(operator: str, condition: str, seconds: int = 60) -> Program:
    texts = [
        f"RULE Fire{i} DEFINE {{ dotr_id a <urn:x:Fire{i}> }} FROM Smoke "
        f"AND {OPERATORS[operator]} Heat WITHIN {seconds} s FROM Smoke "
        f"ON Heat.?room = Smoke.?room && Heat.?val > {5 * i}{CONDITIONS[condition]}"
        for i in range(10)
    ]
    return parse_program(QUERIES + "\n".join(texts))


def stream(facts: int) -> Instants:
    """That of detect.py, where smoke has a density."""
    instants: list[tuple[int, Mapping[str, Sequence[Fact]]]] = []
    for time, found in detect.stream(facts):
        if "Smoke" in found:
            ((_, (room,), _, _),) = found["Smoke"]
            density = integer(time // detect.SECOND * 13 % 101)
            found = {"Smoke": [(time, (room, density), 0, "")]}
        instants.append((time, found))
    return instants


def measure(operator: str, instants: Instants, repeats: int) -> dict[str, float]:
    """Condition → best µs a fact."""
    best = dict.fromkeys(CONDITIONS, float("inf"))
    programs = {name: ten(operator, name) for name in CONDITIONS}
    for _ in range(repeats):
        for name, program in programs.items():
            detect = TeslaDetector(program, Clock()).detect
            gc.collect()
            start = process_time()
            for time, facts in instants:
                detect(time, facts)
            best[name] = min(best[name], (process_time() - start) / len(instants) * 1e6)
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--facts", type=int, default=50_000)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--json", action="store_true")
    given = options.parse_args(arguments)
    instants = stream(given.facts)
    rows = {operator: measure(operator, instants, given.repeats) for operator in OPERATORS}
    if given.json:
        print(json.dumps(rows))
        return
    for operator, row in rows.items():
        more = "  ".join(f"{name} {cost / row['']:5.2f} x" for name, cost in row.items() if name)
        print(f"{operator:8} {row['']:7.2f} us a fact   {more}")


if __name__ == "__main__":
    main()

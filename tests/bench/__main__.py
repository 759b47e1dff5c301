"""python -m tests.bench SCENARIO [--json] [--quick] [--plot FILE.png] [--graphs N] [--repeats N]

Prints a table, what must hold and whether it does, and one JSON line last (--json: that line alone). Ends
with 1 when something does not hold, with 3 when two runners disagree about the events.
`python -m tests.bench.peers owlrl|reasonable|flink` compares with programs that pip fetches: see PEERS.md.
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter

from .charts import plot
from .harness import DifferenceError, json_line, machine, table
from .scenarios import SCENARIOS, Size


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="The paper's evaluation.")
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument("--json", action="store_true", help="only the JSON line")
    parser.add_argument("--quick", action="store_true", help="small sizes; ends within 40 s")
    parser.add_argument("--plot", metavar="FILE.png", help="a chart of the sweep")
    parser.add_argument("--graphs", type=int, help="how many graphs instead of the scenario's own number")
    parser.add_argument("--repeats", type=int, help="how many repeats instead of 5 (2 with --quick)")
    options = parser.parse_args()
    size = Size(options.quick, options.graphs, options.repeats)
    start = perf_counter()
    try:
        result = SCENARIOS[options.scenario](size)
    except DifferenceError as difference:
        print(f"{options.scenario}: the outputs differ at {difference}", file=sys.stderr)
        return 3
    if options.plot:
        if not result.x:
            parser.error(f"{options.scenario} is no sweep")
        plot(f"{result.scenario}: {result.x}", result.x, result.rows, options.plot)
    if not options.json:
        print(table(result.rows), end="\n\n")
        for check, holds in result.checks.items():
            print(f"{'holds' if holds else 'FAILS'}  {check}")
        print()
    line = {
        "scenario": result.scenario,
        "quick": options.quick,
        **result.figures,
        "checks": result.checks,
        "rows": result.rows,
        "machine": machine(),
        "seconds": round(perf_counter() - start, 1),
    }
    print(json_line(line))
    return 0 if all(result.checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

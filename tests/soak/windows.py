"""A day of graphs under `HOLD * FOR 10 s`: memory must stay flat.

    python -m tests.soak.windows --graphs 1000000

Place:   started by hand, its line is in LOG.md.
Method:  graphs of one or two triples with terms never seen before, evenly over 24 hours; rules derive from
         what is held, and a query reports what begins. Resident memory is looked at after each tenth of the
         run, behind a collection, and compared with the second.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
from pathlib import Path
from time import process_time

from dotr import Engine

DAY = 24 * 60 * 60 * 1000
RULES = """PREFIX : <urn:>
RULES <near.dlog>
HOLD * FOR 10 s
QUERY Near := { SELECT ?x ?r WHERE { ?x :near ?r } }
RULE Came DEFINE { dotr_c a :Came ; :who ?x } FROM N := ISTREAM Near WITH ?x := N.?x
"""
NEAR = """
[?x, <urn:near>, ?r] :- [?x, <urn:in>, ?r] .
[?x, <urn:near>, ?s] :- [?x, <urn:near>, ?r], [?r, <urn:beside>, ?s] .
"""
_FLAT = 1.1


def resident() -> float:
    """MiB of this process."""
    line = next(line for line in Path("/proc/self/status").read_text("utf-8").splitlines() if "VmRSS" in line)
    return int(line.split()[1]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.windows", description=__doc__)
    parser.add_argument("--graphs", type=int, default=1_000_000)
    graphs = parser.parse_args().graphs
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "near.dlog").write_text(NEAR, encoding="utf-8")
        Path(folder, "near.dotr").write_text(RULES, encoding="utf-8")
        engine = Engine(str(Path(folder, "near.dotr")), time_unit="ms")
    events, start = 0, process_time()
    sizes: list[float] = []
    for number in range(graphs):
        room = f"<urn:room{number}>"
        graph = [(f"<urn:p{number}>", "<urn:in>", room)]
        if number % 5:  # five rooms in a row
            graph.append((room, "<urn:beside>", f"<urn:room{number - 1}>"))
        events += len(engine.push(graph, at=number * DAY // graphs))
        if (number + 1) * 10 % graphs == 0:
            gc.collect()
            sizes.append(resident())
    took = process_time() - start
    print(
        f"{graphs:,} graphs in {took:.0f} s of CPU; MiB after each tenth "
        f"{' '.join(f'{size:.0f}' for size in sizes)}; {events:,} events"
    )
    return 0 if max(sizes[1:]) <= _FLAT * sizes[1] else 1


if __name__ == "__main__":
    raise SystemExit(main())

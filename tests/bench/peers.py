"""Peers that pip or Maven offer, beside dotr: the same work, each in a throw-away environment of its own.

    python -m tests.bench.peers PEER [--json] [--facts N] [--repeats N] [--cache]

Place:   on request only, for it fetches packages (flink: 500 MB); never part of the test suite. What runs
         inside a peer's environment is peer_*.py beside this file. Prints a table, what must hold, and one
         JSON line last. Ends with 1 when results differ, with 3 when a peer cannot be had (and says why).
Method:  a virtual environment or a folder of jars in a temporary directory, the peer installed by pip or
         Maven, its script run there; the directory goes away whatever happens, and without --cache neither
         keeps a copy of what it fetched.
         owlrl, reasonable: the OWL 2 RL closure of LUBM (from DOTR_DATA), blank nodes made IRIs so that
         results can be compared as sets. flink: one rule of the paper's default scenario; see peers_flink.py.
         esper: rules of two events, in memory and from file to file; see peers_esper.py.
         esper-windows: aggregates of windows by key; see peers_windows.py.
         esper-sequences, flink-sequences: patterns of rows; see peers_sequences.py.
         columns: as-of joins of Polars and DuckDB over a table; see columns.py.
         spark: one rule by plain PySpark, which is here already; see peers_spark.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

from . import columns
from .harness import json_line, machine, table
from .peers_closure import closure
from .peers_environment import Environment, Peer, PeerError, Result
from .peers_esper import two_events
from .peers_flink import detection
from .peers_sequences import matched, recognised
from .peers_spark import rules_on_spark
from .peers_windows import windows

ESPER = Peer(
    "com.espertech:esper-compiler:8.9.0 com.espertech:esper-runtime:8.9.0",
    "PeerEsper.java",
    needs=("mvn", "java", "javac"),
)
PEERS = {
    "owlrl": Peer("owlrl==7.6.2", "peer_owlrl.py"),
    "reasonable": Peer("reasonable==0.4.4", "peer_reasonable.py"),
    "flink": Peer("apache-flink==2.3.0", "peer_flink.py", needs=("java",)),
    "esper": ESPER,
    "esper-windows": ESPER,
    "esper-sequences": Peer(ESPER.requirement, "PeerSequences.java", ESPER.needs),
    "flink-sequences": Peer("apache-flink==2.3.0", "peer_sequences.py", needs=("java",)),
    "columns": columns.PEERS,
    "spark": Peer("", "peer_spark.py"),
}
COMPARISONS: dict[str, Callable[[Environment, int, int], Result]] = {
    "owlrl": partial(closure, "owlrl", "Department0.", False, 50),
    "reasonable": partial(closure, "reasonable", "", True, 1.8),
    "flink": detection,
    "esper": two_events,
    "esper-windows": windows,
    "esper-sequences": recognised,
    "flink-sequences": matched,
    "columns": columns.compared,
    "spark": rules_on_spark,
}
FACTS = {
    "flink": 30_000,
    "esper": 300_000,
    "esper-windows": 300_000,
    "esper-sequences": 300_000,
    "flink-sequences": 300_000,
    "columns": 1_000_000,
    "spark": 300_000,
}


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.peers",
        description="The same work by a peer, in a throw-away environment.",
    )
    parser.add_argument("peer", choices=sorted(PEERS))
    parser.add_argument("--json", action="store_true", help="only the JSON line")
    parser.add_argument(
        "--facts", type=int, help="how many facts (flink: 30,000; columns: 1,000,000; others: 300,000)"
    )
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--cache", action="store_true", help="keep and reuse what is fetched")
    return parser


def main(given: Sequence[str] | None = None) -> int:
    options = arguments().parse_args(given)
    start = perf_counter()
    try:
        with Environment(PEERS[options.peer], options.cache) as environment:
            ready = perf_counter() - start
            facts = options.facts or FACTS.get(options.peer, 0)
            result = COMPARISONS[options.peer](environment, facts, options.repeats)
    except PeerError as error:
        print(f"{options.peer}: {error}", file=sys.stderr)
        return 3
    if not options.json:
        print(table(result.rows), end="\n\n")
        print("\n".join(result.notes), end="\n\n")
        for check, holds in result.checks.items():
            print(f"{'holds' if holds else 'FAILS'}  {check}")
        print()
    line = {
        "scenario": f"peer {options.peer}",
        **result.figures,
        "checks": result.checks,
        "rows": result.rows,
        "machine": machine(),
        "install_seconds": round(ready, 1),
        "seconds": round(perf_counter() - start, 1),
    }
    print(json_line(line))
    return 0 if all(result.checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

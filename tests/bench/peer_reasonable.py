"""Runs in a throw-away environment that has reasonable: close a graph, write it down, say how long it took.

    python peer_reasonable.py GRAPH.ttl CLOSED.nt

Place:   started by peers.py; imports nothing of dotr. One line of JSON on standard output.
Method:  `reason()` closes the graph and hands every triple over as terms of rdflib. What the handing over
         takes can be seen from that of the given triples alone (`hand_given`), by another method.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from time import process_time

import rdflib
import reasonable  # type: ignore[import-not-found]  # installed where this runs


def main(source: str, target: str) -> None:
    reasoner = reasonable.PyReasoner()
    start = process_time()
    reasoner.load_file(source)
    load = process_time() - start
    start = process_time()
    closed = reasoner.reason()
    seconds = process_time() - start
    start = process_time()
    reasoner.get_base_triples()
    hand_given = process_time() - start
    literals = 0
    with open(target, "w", encoding="utf-8") as out:
        for subject, predicate, object_ in closed:
            if isinstance(subject, rdflib.Literal):
                literals += 1
            else:
                out.write(f"{subject.n3()} {predicate.n3()} {object_.n3()} .\n")
    figures = {"seconds": seconds, "load": load, "hand_given": hand_given, "literals": literals}
    print(json.dumps({"version": version("reasonable"), **figures}))


if __name__ == "__main__":
    main(*sys.argv[1:])

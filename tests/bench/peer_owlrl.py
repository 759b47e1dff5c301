"""Runs in a throw-away environment that has owlrl: close a graph, write it down, report how long it took.

    python peer_owlrl.py GRAPH.ttl CLOSED.nt

Place:   started by peers.py; imports nothing of dotr. One line of JSON on standard output.
Method:  the closure alone is timed; reading and writing are not. Triples whose subject is a literal, which
         owlrl derives and RDF does not have, are counted and not written.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from time import process_time

import owlrl
import rdflib


def main(source: str, target: str) -> None:
    graph = rdflib.Graph()
    start = process_time()
    graph.parse(source, format="nt")
    load = process_time() - start
    start = process_time()
    owlrl.DeductiveClosure(
        owlrl.OWLRL_Semantics, rdfs_closure=False, axiomatic_triples=False, datatype_axioms=False
    ).expand(graph)
    seconds = process_time() - start
    literals = 0
    with open(target, "w", encoding="utf-8") as out:
        for subject, predicate, object_ in graph:
            if isinstance(subject, rdflib.Literal):
                literals += 1
            else:
                out.write(f"{subject.n3()} {predicate.n3()} {object_.n3()} .\n")
    figures = {"seconds": seconds, "load": load, "literals": literals}
    print(json.dumps({"version": version("owlrl"), **figures}))


if __name__ == "__main__":
    main(*sys.argv[1:])

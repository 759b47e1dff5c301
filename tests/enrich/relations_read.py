"""What the materialiser reaches, as ratios of one run: `DOTR_DATA=… python -m tests.enrich.relations_read`.

LUBM closed under OWL 2 RL and RDFS, Department 0 beside owlrl, a million triples loaded and indexed, and
the cost of a one-triple instant over growing backgrounds and rule sets. Times are of the processor, so that
a busy machine disturbs them little.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pyoxigraph as ox

from dotr.enrich.materialiser import Materialiser
from dotr.program import DatalogRule
from dotr.rdf.index import Background
from dotr.rdf.terms import Triple, canonical
from tests.enrich import entailment
from tests.enrich.programs import rule, term


def lubm(data: Path, department: str = "") -> list[Triple]:
    """The ontology and University 0, or the subjects that mention one department."""
    quads = list(ox.parse((data / "lubm/univ-bench.owl").read_bytes(), format=ox.RdfFormat.RDF_XML))
    lines = gzip.decompress((data / "lubm/University0.nt.gz").read_bytes()).decode().splitlines()
    chosen = "\n".join(line for line in lines if department in line.split(" ", 1)[0])
    quads += ox.parse(chosen, format=ox.RdfFormat.N_TRIPLES)
    triples = [(str(q.subject), str(q.predicate), canonical(str(q.object))) for q in quads]
    return list(dict.fromkeys(triples))


def seconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


def entailments(data: Path) -> None:
    whole, part = lubm(data), lubm(data, "Department0.")
    for name, most in (("owl2rl", 40), ("rdfs", 10)):
        took = seconds(lambda name=name: entailment.materialise(name, whole))  # type: ignore[misc]  # a default
        print(f"LUBM under {name}: {took:.2f} s for {len(whole)} triples (to reach: {most} s)")
    graph = entailment.graph_of(part)
    theirs = seconds(lambda: entailment.expand("owl2rl", graph))
    ours = seconds(lambda: entailment.materialise("owl2rl", part))
    state = set(entailment.materialise("owl2rl", part).background)
    same = entailment.comparable(state) == entailment.comparable(entailment.triples_of(graph))
    print(f"Department 0: {theirs / ours:.0f} x owlrl (to reach: 50 x), same triples: {same}")


def million() -> None:
    """Parse N-Triples and index them."""
    lines = []
    for n in range(250_000):
        thing, place = f"<http://example.org/thing{n}>", f"<http://example.org/place{n // 3}>"
        lines.append(f"{thing} <http://example.org/at> {place} .")
        lines.append(
            f"{thing} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/Thing> ."
        )
        lines.append(f'{thing} <http://example.org/label> "thing {n}" .')
        lines.append(f"{thing} <http://example.org/near> <http://example.org/thing{n * 7919 % 250_000}> .")
    text = "\n".join(lines)
    found: list[Background] = []

    def load() -> None:
        quads = ox.parse(text, format=ox.RdfFormat.N_TRIPLES)
        found.append(Background((str(q.subject), str(q.predicate), str(q.object)) for q in quads))

    took = seconds(load)
    print(f"{len(found[0])} triples loaded and indexed: {took:.1f} s (to reach: 30 s)")


def flatness() -> None:
    """One-triple instants over small and large surroundings, taken in turns."""
    rules = [rule("?a in ?b", "?a at ?c", "?c in ?b"), rule("?o hot ?r", "?o reading ?s", "?s in ?r")]
    others = [rule(f"?a r{n} ?b", f"?a s{n} ?c", f"?c t{n} ?b") for n in range(100_000)]
    small, large = _house(1_000), _house(1_000_000)
    _compare("background 1k → 1M", Materialiser(rules, small), Materialiser(rules, large))
    many: list[DatalogRule] = [*rules, *others]
    needed = [term("hot")]
    _compare(
        "rules 2 → 100k, pruned",
        Materialiser(rules, small, needed=needed),
        Materialiser(many, small, needed=needed),
    )
    _compare("rules 2 → 100k, all kept", Materialiser(rules, small), Materialiser(many, small))


def _house(padding: int) -> list[Triple]:
    found = [(term(f"sensor{n}"), term("at"), term(f"object{n % 5}")) for n in range(10)]
    found += [(term(f"object{n}"), term("in"), term(f"room{n // 2}")) for n in range(5)]
    found += [(term(f"x{n}"), term("pad"), term(f"y{n % 97}")) for n in range(padding)]
    return found


def _compare(name: str, first: Materialiser, second: Materialiser) -> None:
    graphs = [[(term(f"o{n}"), term("reading"), term(f"sensor{n % 10}"))] for n in range(4_000)]

    def run(materialiser: Materialiser) -> None:
        for graph in graphs:
            materialiser.instant(graph)
            materialiser.forget()

    best = [9.0, 9.0]
    for _ in range(6):
        for i, materialiser in enumerate((first, second)):
            best[i] = min(best[i], seconds(lambda m=materialiser: run(m)))  # type: ignore[misc]  # a default
    before, after = (1e6 * took / len(graphs) for took in best)
    print(f"{name}: {before:.2f} → {after:.2f} µs a graph, {after / before:.2f} x (to reach: 1.3 x)")


if __name__ == "__main__":
    entailments(Path(os.environ["DOTR_DATA"]))
    million()
    flatness()

"""The OWL 2 RL closure of LUBM, by a peer and by dotr.

Place:   called by peers.py; peer_owlrl.py and peer_reasonable.py are the other half.
Method:  both get the same canonical triples, blank nodes made IRIs, so that results can be compared as sets.
         Processor time, the best of the repeats. Peers have their graph indexed when the clock of `closing`
         starts, dotr has not: it parses its rules, writes lists out, indexes the graph and closes it.
         Compared are all triples but what dotr leaves out by design (tests/enrich/entailment.py).
         owlrl derives the same. reasonable has none of the rules that derive domains, ranges and subclasses
         from restrictions, from intersections, or from each other (scm-int, scm-svf, scm-dom, scm-rng ...);
         what it therefore misses is shown as counts and examples, and so is what it has more. What must hold:
         dotr without those rules derives the same about all individuals.
"""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from time import process_time
from typing import Any

import pyoxigraph as ox

from dotr import KnowledgeBase
from dotr.enrich.materialiser import Materialiser
from dotr.enrich.owl import list_rules
from dotr.program import Atom, DatalogRule
from dotr.rdf.terms import RDF_TYPE, RDFS, Triple, canonical
from tests.enrich import entailment

from .peers_environment import Environment, PeerError, Result

SCHEMA = {f"<{RDFS}{name}>" for name in ("subClassOf", "subPropertyOf", "domain", "range")}


def lubm(department: str = "") -> tuple[list[Triple], list[Triple]]:
    """The ontology; University 0, or the subjects that mention one department. No blank nodes."""
    if "DOTR_DATA" not in os.environ:
        raise PeerError("LUBM is read from the folder that DOTR_DATA names; it is not set")
    data = Path(os.environ["DOTR_DATA"], "lubm")
    ontology = ox.parse((data / "univ-bench.owl").read_bytes(), format=ox.RdfFormat.RDF_XML)
    lines = gzip.decompress((data / "University0.nt.gz").read_bytes()).decode().splitlines()
    chosen = "\n".join(line for line in lines if department in line.split(" ", 1)[0])
    named: dict[str, str] = {}

    def term(node: object) -> str:
        text = str(node)
        return named.setdefault(text, f"<urn:blank:{len(named)}>") if text[0] == "_" else canonical(text)

    def triples(quads: Iterable[ox.Quad]) -> list[Triple]:
        return list(dict.fromkeys((term(q.subject), term(q.predicate), term(q.object)) for q in quads))

    return triples(ontology), triples(ox.parse(chosen, format=ox.RdfFormat.N_TRIPLES))


def read(closed: Path) -> set[Triple]:
    quads = ox.parse(closed.read_bytes(), format=ox.RdfFormat.N_TRIPLES)
    return {(canonical(str(q.subject)), canonical(str(q.predicate)), canonical(str(q.object))) for q in quads}


def kinds(triples: Iterable[Triple]) -> dict[str, int]:
    """How many of each predicate, of each class for rdf:type, the most frequent first."""
    return dict(Counter(f"a {o}" if p == RDF_TYPE else p for _, p, o in sorted(triples)).most_common(8))


def derives_schema(rule: DatalogRule) -> bool:
    """Whether a rule says something of classes or properties that depends on two kinds of statements."""
    said = {head.predicate for head in rule.heads}
    return bool(said & SCHEMA) and len({atom.predicate for atom in rule.body if isinstance(atom, Atom)}) != 1


def of_individuals(triples: Iterable[Triple], ontology: Collection[Triple]) -> set[Triple]:
    terms = {subject for subject, _, _ in ontology}
    return {triple for triple in triples if triple[0] not in terms}


def difference(ours: Collection[Triple], theirs: Collection[Triple]) -> dict[str, Any]:
    """What one side alone has: counts, by predicate, examples."""
    only_ours, only_theirs = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
    return {
        "shared": len(set(ours) & set(theirs)),
        "only_dotr": {"triples": len(only_ours), "by": kinds(only_ours), "such_as": only_ours[:3]},
        "only_peer": {"triples": len(only_theirs), "by": kinds(only_theirs), "such_as": only_theirs[:3]},
    }


def closure(
    name: str, part: str, narrow: bool, least: float, environment: Environment, facts: int, repeats: int
) -> Result:
    """LUBM under OWL 2 RL, by a peer and by dotr. `narrow`: the peer has no rules that derive schema.
    `least`: how many times as long the peer has to take.
    """
    ontology, individuals = lubm(part)
    given = list(dict.fromkeys([*ontology, *individuals]))
    graph, closed = environment.folder / "graph.ttl", environment.folder / "closed.nt"
    graph.write_text("".join(f"{s} {p} {o} .\n" for s, p, o in given), encoding="utf-8")
    found = [environment.run(str(graph), str(closed)) for _ in range(repeats)]
    peer = {what: min(figures[what] for figures in found) for what in found[0]}
    rules = [*entailment.rule_set("owl2rl"), *list_rules(given)]
    few = [rule for rule in rules if not derives_schema(rule)]
    loads, seconds, shorter, library = [], [], [], []
    for _ in range(repeats):
        start = process_time()
        read(graph)
        loads.append(process_time() - start)
        start = process_time()
        materialiser = entailment.materialise("owl2rl", given)
        seconds.append(process_time() - start)
        start = process_time()
        KnowledgeBase(graph, entailment="owl2rl", terms="canonical")
        library.append(process_time() - start)
        start = process_time()
        less = Materialiser(few, given)
        shorter.append(process_time() - start)
    closures = {"dotr": set(materialiser.background), name: read(closed)}
    load = {"dotr": min(loads), name: peer["load"]}
    took = {"dotr": min(seconds), name: peer["seconds"]}
    if narrow:
        closures["dotr, fewer rules"] = set(less.background)
        load["dotr, fewer rules"], took["dotr, fewer rules"] = load["dotr"], min(shorter)
    comparable = {who: entailment.comparable(triples) for who, triples in closures.items()}
    same = difference(comparable["dotr"], comparable[name])
    result = Result()
    result.rows = [
        {
            "what": who,
            "load s": load[who],
            "closing s": took[who],
            "µs a given triple": took[who] / len(given) * 1e6,
            "ratio of closing": took[who] / took["dotr"],
            "ratio of both": (load[who] + took[who]) / (load["dotr"] + took["dotr"]),
            "triples": len(closures[who]),
            "comparable": len(comparable[who]),
        }
        for who in closures
    ]
    ratio = (load[name] + took[name]) / min(library)
    result.notes.append(
        f"dotr.KnowledgeBase, loaded and closed: {min(library):.2f} s, {ratio:.1f} times as quick as {name}"
    )
    result.figures = {"given": len(given), "part": part or "University 0", "peer": peer, "difference": same}
    if "hand_given" in peer:
        result.notes.append(
            f"{name}: much of its closing is the handing over of triples to Python: that of the given "
            f"triples alone takes {peer['hand_given']:.2f} s"
        )
    result.notes.append(f"{name} has {peer['literals']} triples besides whose subject is a literal")
    for side, who in (("only_dotr", "dotr"), ("only_peer", name)):
        some = same[side]
        result.notes.append(f"only {who} has {some['triples']}")
        result.notes += [f"    {count} x {kind}" for kind, count in some["by"].items()]
        result.notes += ["    such as " + " ".join(example) for example in some["such_as"]]
    if narrow:
        left, right = (of_individuals(comparable[who], ontology) for who in ("dotr, fewer rules", name))
        claim = "without the schema rules that the peer has not, dotr derives the same about individuals"
        result.checks = {claim: left == right}
    else:
        result.checks = {"the closures are the same": comparable["dotr"] == comparable[name]}
    closing = took[name] / took["dotr"]
    result.checks[f"dotr closes at least {least} times as quickly"] = closing >= least
    return result

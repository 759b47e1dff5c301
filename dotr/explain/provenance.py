"""Explanations as RDF in PROV-O: what was derived from what, by which rule.

Place:   `dotr explain --format ttl`, and `.to_rdf()` in Python.
Method:  an event, a fact and a triple are prov:Entity; each step is a prov:Activity that used its premises
         and generated its conclusion. Triples are rdf:Statement, so that they are named and not stated.
"""

from __future__ import annotations

from collections.abc import Sequence

import rdflib
from rdflib.namespace import PROV, RDF, RDFS, XSD
from rdflib.util import from_n3

from dotr.events import Clock
from dotr.explain import proofs
from dotr.explain.held_checker import facts_below
from dotr.explain.held_proofs import Holding
from dotr.explain.proofs import Sharing, parts_of
from dotr.rdf.terms import Term

DOTR = rdflib.Namespace("urn:dotr:explain:")


def provenance(found: Sequence[proofs.WhyNot | proofs.TripleProof | proofs.Missing], clock: Clock) -> str:
    """Explanations as Turtle."""
    return to_rdf(found, clock).serialize(format="turtle")


def to_rdf(
    found: Sequence[proofs.WhyNot | proofs.TripleProof | proofs.Missing], clock: Clock
) -> rdflib.Graph:
    """Explanations as a graph. What did not happen has no provenance: only its reason is said."""
    writer = _ProvenanceWriter(clock)
    for number, one in enumerate(found):
        writer.explanation(one, number)
    return writer.graph


class _ProvenanceWriter:
    """Owns the graph under construction; entities are named in the order in which they are met."""

    def __init__(self, clock: Clock) -> None:
        self.graph = rdflib.Graph()
        self.graph.bind("prov", PROV)
        self.graph.bind("explain", DOTR)
        self._clock = clock
        self._names: dict[object, rdflib.URIRef] = {}
        self._sharing = Sharing()
        self._open: list[tuple[proofs.Derived, rdflib.URIRef]] = []

    def explanation(self, found: proofs.WhyNot | proofs.TripleProof | proofs.Missing, number: int) -> None:
        match found:
            case proofs.EventProof():
                self._event(found)
            case (
                proofs.InStream()
                | proofs.InBackground()
                | proofs.Lasting()
                | proofs.Derived()
                | proofs.Unopened()
            ):
                self._triple(found)
            case proofs.Blocked(rule=rule, reason=reason):
                self._absence(number, f"{rule.name}: {reason}")
            case proofs.NoTrigger(rule=rule):
                self._absence(number, f"{rule.name}: no trigger")
            case proofs.Missing():
                self._absence(number, "the triple does not hold")

    def _absence(self, number: int, text: str) -> None:
        node = DOTR[f"absence{number}"]
        self.graph.add((node, RDF.type, DOTR.Absence))
        self.graph.add((node, RDFS.comment, rdflib.Literal(text)))

    def _event(self, proof: proofs.EventProof) -> rdflib.URIRef:
        node = rdflib.URIRef(proof.id)
        if proof.id in self._names:
            return node
        self._names[proof.id] = node
        self.graph.add((node, RDF.type, PROV.Entity))
        self.graph.add((node, PROV.generatedAtTime, self._term(self._clock.term(proof.time))))
        activity = self._activity(node, proof.rule.name)
        self.graph.add((activity, PROV.used, self._fact(proof.trigger)))
        for step in proof.steps:
            if isinstance(step, proofs.Chosen):
                self.graph.add((activity, PROV.used, self._fact(step.fact)))
        return node

    def _fact(self, proof: proofs.FactProof) -> rdflib.URIRef:
        if isinstance(proof.why, proofs.EventProof):
            return self._event(proof.why)
        if isinstance(proof.why, proofs.EventLeaf):
            return rdflib.URIRef(proof.why.id)
        key = ("fact", proof.stream, proof.fact)
        if key not in self._names:
            node = self._names[key] = DOTR[f"fact{len(self._names)}"]
            self.graph.add((node, RDF.type, PROV.Entity))
            self.graph.add((node, RDFS.label, rdflib.Literal(f"{proof.position}")))
            self.graph.add((node, PROV.generatedAtTime, self._term(self._clock.term(proof.fact[0]))))
            activity = self._activity(node, proof.stream or "tick")
            why = proof.why.solution if isinstance(proof.why, proofs.Changed) else proof.why
            if isinstance(why, Holding):
                for _, leaf in facts_below(why):
                    self.graph.add((activity, PROV.used, self._fact(leaf)))
            if isinstance(why, proofs.SolutionProof):
                for premise in why.premises:
                    self.graph.add((activity, PROV.used, self._triple(premise)))
        return self._names[key]

    def _triple(self, proof: proofs.TripleProof) -> rdflib.URIRef:
        todo = [proof]
        while todo:
            one = todo.pop()
            if self._sharing.number(one) in self._names:
                continue
            self._statement(one)
            todo += reversed(list(parts_of(one)))
        for one, activity in self._open:
            for part in parts_of(one):
                self.graph.add((activity, PROV.used, self._names[self._sharing.number(part)]))
        self._open.clear()
        return self._names[self._sharing.number(proof)]

    def _statement(self, proof: proofs.TripleProof) -> None:
        """A triple as an entity, with the step that gave it."""
        key = self._sharing.number(proof)
        node = self._names[key] = DOTR[f"triple{len(self._names)}"]
        subject, predicate, object_ = map(self._term, proof.triple)
        self.graph.add((node, RDF.type, RDF.Statement))
        self.graph.add((node, RDF.type, PROV.Entity))
        self.graph.add((node, RDF.subject, subject))
        self.graph.add((node, RDF.predicate, predicate))
        self.graph.add((node, RDF.object, object_))
        if isinstance(proof, proofs.InStream):
            self.graph.add((node, PROV.generatedAtTime, self._term(self._clock.term(proof.time))))
        if isinstance(proof, proofs.Lasting) and proof.start is not None:
            self.graph.add((node, PROV.generatedAtTime, self._term(self._clock.term(proof.start))))
        if isinstance(proof, proofs.Lasting | proofs.InBackground) and proof.until is not None:
            self.graph.add((node, PROV.invalidatedAtTime, self._term(self._clock.term(proof.until))))
        if isinstance(proof, proofs.Derived):
            label = proof.name or str(proof.rule.span or "rule")
            self._open.append((proof, self._activity(node, label)))

    def _activity(self, generated: rdflib.URIRef, label: str) -> rdflib.URIRef:
        node = DOTR[f"step{len(self._names)}"]
        self._names["activity", generated] = node
        self.graph.add((node, RDF.type, PROV.Activity))
        self.graph.add((node, RDFS.label, rdflib.Literal(label)))
        self.graph.add((generated, PROV.wasGeneratedBy, node))
        return node

    def _term(self, term: Term) -> rdflib.term.Node:
        if term[0] == "_":
            return rdflib.BNode(term[2:])
        found = from_n3(term)
        return found if isinstance(found, rdflib.term.Node) else rdflib.Literal(term, datatype=XSD.string)

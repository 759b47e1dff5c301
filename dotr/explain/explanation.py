"""Explanations as Python objects: text, values, RDF, and a page for notebooks.

Place:   made by `Engine.why_not` and `Event.explain`, through an `Explaining` that accompanies a run.
Method:  RDF is PROV-O, also written by `dotr explain --format ttl`: an event, a fact and a triple are
         prov:Entity; each step is a prov:Activity that used its premises and generated its conclusion.
         Triples are rdf:Statement, so that they are named and not asserted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import rdflib
from rdflib.namespace import PROV, RDF, RDFS, XSD
from rdflib.util import from_n3

from dotr.errors import UsageError
from dotr.events import Clock, Time
from dotr.explain import proofs
from dotr.explain.checker import facts_below
from dotr.explain.formats import PlainProofs, mermaid
from dotr.explain.matches import Explainer
from dotr.explain.proofs import Holding, Missing, Sharing, TripleProof, WhyNot, parts_of
from dotr.explain.record import KeptInstants, Record
from dotr.explain.solutions import Text
from dotr.explain.text import Node, Places, Renderer, drawn
from dotr.explain.verify import checker_of, refuse_wrong
from dotr.extract.printing import Writer
from dotr.pictures.markup import fragment
from dotr.pictures.tree import tree
from dotr.rdf.terms import Term


class Explanation:
    """Why something happened, or how far it came. `str()` is a tree of text; notebooks show a page."""

    def __init__(
        self,
        found: Sequence[WhyNot | TripleProof | Missing],
        prefixes: Mapping[str, str],
        clock: Clock,
        places: Places,
    ) -> None:
        self.found = tuple(found)
        """The proofs themselves, as dotr.explain.proofs has them."""
        self._prefixes, self._clock, self._places = dict(prefixes), clock, places

    def _renderer(self) -> Renderer:
        return Renderer(self._prefixes, self._clock, self._places)

    def trees(self) -> list[Node]:
        """What it shows, as lines below lines."""
        renderer = self._renderer()
        return [renderer.node(one) for one in self.found]

    def __str__(self) -> str:
        return "\n".join(map(drawn, self.trees()))

    def __repr__(self) -> str:
        lines = [str(node.text) for node in self.trees()]
        return f"<Explanation {'; '.join(lines)}>"

    def _repr_html_(self) -> str:
        return fragment(tree(self.trees()))

    def to_mermaid(self) -> str:
        """A Mermaid flow chart."""
        return mermaid(self.trees())

    def to_dict(self) -> dict[str, Any]:
        """As `dotr explain --format json` has it; several (one for each trigger fact) under "all"."""
        values = PlainProofs(self._clock, self._places, self._renderer().rule_text)
        found = [values.of(one) for one in self.found]
        return found[0] if len(found) == 1 else {"all": found}

    def to_rdf(self) -> rdflib.Graph:
        """PROV-O, as an rdflib.Graph."""

        return to_rdf(self.found, self._clock)


class Explaining:
    """Owns the explanations of a run that goes on. `places`: where triples stand. `verify`: every proof of
    an event goes through the checker, for which the record must have kept everything. `prefixes`: more than
    the program's, which count before them.
    """

    def __init__(
        self,
        record: Record,
        places: Places,
        verify: bool = False,
        prefixes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._record, self._places, self._verify, self._prefixes = record, places, verify, prefixes
        self._instants = KeptInstants(record)

    @property
    def record(self) -> Record:
        """What is kept."""
        return self._record

    def _explainer(self) -> Explainer:
        writer = Writer(self._record.program.prefixes)
        low = min(self._record.times(), default=0)
        self._instants.forget(low)
        return Explainer(self._record, Text(writer.term, writer.expression, writer.path), self._instants)

    def _explanation(self, found: Sequence[WhyNot]) -> Explanation:
        prefixes = {**self._prefixes, **self._record.program.prefixes}
        return Explanation(found, prefixes, self._record.clock, self._places)

    def event(self, name: str) -> Explanation:
        """Why an event happened. Raises UsageError D4173 where it is not kept any more, and EngineError D4090
        where a proof that is checked does not follow.
        """
        event = self._record.event(name)
        if event is None:
            raise UsageError.of(
                "D4173",
                f"the event `{name}` is not kept any more",
                hint="explain events as they come, or keep more: keep='7 d'",
            )
        found = self._explainer().event(event)
        if self._verify:
            refuse_wrong(checker_of(self._record, self._instants), [found], None)
        return self._explanation([found])

    def why_not(self, rule: str, time: Time, where: Mapping[str, Term]) -> Explanation:
        """How far a rule came at an instant. Raises UsageError D4172."""
        self._refuse_unknown(rule)
        return self._explanation(self._explainer().why_not(rule, time, where))

    def _refuse_unknown(self, rule: str) -> None:
        rules = [one.name for one in self._record.program.rules]
        if rule not in rules:
            raise UsageError.of(
                "D4172", f"there is no rule `{rule}`", hint=f"its rules are {', '.join(rules)}"
            )

    def because(self, name: str) -> dict[str, Any]:
        """The proof of an event as plain values: its trigger, and a step for each conjunct."""
        found = self.event(name).to_dict()
        return {"trigger": found["trigger"], "steps": found["steps"]}


DOTR = rdflib.Namespace("urn:dotr:explain:")


def provenance(found: Sequence[proofs.WhyNot | proofs.TripleProof | proofs.Missing], clock: Clock) -> str:
    """Explanations as Turtle."""
    return to_rdf(found, clock).serialize(format="turtle")


def to_rdf(
    found: Sequence[proofs.WhyNot | proofs.TripleProof | proofs.Missing], clock: Clock
) -> rdflib.Graph:
    """Explanations as a graph. What did not happen has no provenance: only its reason is given."""
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
        self._statements: list[tuple[proofs.Lasting | proofs.InBackground, rdflib.URIRef]] = []

    def explanation(self, found: proofs.WhyNot | proofs.TripleProof | proofs.Missing, number: int) -> None:
        match found:
            case proofs.EventProof():
                self._event(found)
            case proofs.Corrected(event=event, changes=changes, now=now):
                node = self._event(event)
                if now is not None:
                    when = self._term(self._clock.term(changes[-1].at))
                    self.graph.add((node, PROV.invalidatedAtTime, when))
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
            case proofs.Unmatched(rule=rule):
                self._absence(number, f"{rule.name}: no match")
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
        for row in proof.rows:
            self.graph.add((activity, PROV.used, self._fact(row.fact)))
        for step in proof.steps:
            if isinstance(step, proofs.Chosen):
                self.graph.add((activity, PROV.used, self._fact(step.fact)))
        return node

    def _maker(self, event: proofs.EventProof | proofs.EventLeaf) -> rdflib.URIRef:
        return self._event(event) if isinstance(event, proofs.EventProof) else rdflib.URIRef(event.id)

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
        statements, self._statements = self._statements, []
        for stated, node in statements:
            if isinstance(stated, proofs.Lasting) and stated.stated_by is not None:
                self.graph.add((node, PROV.wasDerivedFrom, self._maker(stated.stated_by)))
            if stated.ended_by is not None:
                self.graph.add((node, DOTR.endedBy, self._maker(stated.ended_by)))
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
        if isinstance(proof, proofs.Lasting | proofs.InBackground):
            self._statements.append((proof, node))
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

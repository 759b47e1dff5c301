"""The rule sets as deployments use them, and owlrl as their oracle."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import owlrl
import rdflib

from dotr.enrich.materialiser import Materialiser
from dotr.enrich.owl import is_schema_predicate, list_rules
from dotr.joins.plan import Relation
from dotr.lang import parse_datalog
from dotr.program import DatalogRule
from dotr.rdf.terms import (
    OWL,
    RDF,
    RDFS,
    XSD,
    XSD_STRING,
    Term,
    Triple,
    is_blank,
    is_literal,
    literal,
    literal_parts,
)

_RULES = Path(__file__).parents[2] / "rules"


def rule_set(name: str) -> tuple[DatalogRule, ...]:
    """The rules of `rdfs` or `owl2rl`."""
    path = _RULES / f"{name}.dlog"
    return parse_datalog(path.read_text(encoding="utf-8"), path.name)


def rules_for(name: str, triples: Collection[Triple]) -> tuple[DatalogRule, ...]:
    """The rule set, and the rules for the lists of a background."""
    return rule_set(name) + (list_rules(triples) if name == "owl2rl" else ())


def materialise(
    name: str, triples: Collection[Triple], *more: DatalogRule, needed: Collection[Relation] | None = None
) -> Materialiser:
    return Materialiser([*rules_for(name, triples), *more], triples, needed=needed)


def graph_of(triples: Collection[Triple]) -> rdflib.Graph:
    graph = rdflib.Graph()
    for subject, predicate, object_ in triples:
        graph.add((_node(subject), _node(predicate), _node(object_)))
    return graph


def expand(name: str, graph: rdflib.Graph) -> None:
    """Close a graph with owlrl, without axiomatic triples."""
    semantics = owlrl.OWLRL_Semantics if name == "owl2rl" else owlrl.RDFS_Semantics
    closure = owlrl.DeductiveClosure(
        semantics, rdfs_closure=False, axiomatic_triples=False, datatype_axioms=False
    )
    closure.expand(graph)


def triples_of(graph: rdflib.Graph) -> set[Triple]:
    return {(_term(s), _term(p), _term(o)) for s, p, o in graph}


def comparable(triples: Collection[Triple]) -> set[Triple]:
    """As RDF, without what the rule sets document as left out, and owlrl's own reports of errors.

    Reflexive sameAs (and what else says that something is itself: owlrl has some of it, by chance of order),
    literals as subjects, statements about the vocabulary itself (owlrl adds axioms even when told not to).
    """
    return {
        (s, p, o)
        for s, p, o in triples
        if not is_literal(s)
        and not is_blank(p)
        and not (s == o and is_schema_predicate(p))
        and not s.startswith((f"<{OWL}", f"<{RDF}", f"<{RDFS}", f"<{XSD}"))
        and "owlrl" not in p
        and "http://www.daml.org" not in p + o
    }


def _node(term: Term) -> rdflib.term.Node:
    if term[0] == "<":
        return rdflib.URIRef(term[1:-1])
    if term[0] == "_":
        return rdflib.BNode(term[2:])
    lexical, datatype, language = literal_parts(term)
    if language:
        return rdflib.Literal(lexical, lang=language)
    return rdflib.Literal(lexical, datatype=None if datatype == XSD_STRING else rdflib.URIRef(datatype))


def _term(node: rdflib.term.Node) -> Term:
    if isinstance(node, rdflib.Literal):
        return literal(str(node), str(node.datatype or XSD_STRING), node.language or "")
    return str(node.n3())  # type: ignore[attr-defined]  # every node has one

"""What `dotr plan` says about what lasts: what bounds it, and which queries have all answers at every graph.

Place:   under planning.py.
Method:  language.md, "What lasts". A query reads what lasts when one of its relations is declared, or follows
         by rules from one that is.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dotr.core.deployment import Deployment
from dotr.ir import Hold, Select
from dotr.joins.body import BodyPattern
from dotr.joins.graph_relations import ALL, Relation, class_relation, is_class
from dotr.rdf.terms import RDF_TYPE
from dotr.sparql.printing import Writer
from dotr.sparql.queried_relations import relations_of
from dotr.temporal.durations import duration_text

EVERY_GRAPH = "over held triples it has all its answers at every graph: ISTREAM has each once"


def lasting(deployment: Deployment, writer: Writer) -> list[dict[str, Any]]:
    """One entry for each HOLD line and each stream of changes."""
    program = deployment.program
    held = [{"what": hold_text(hold, writer), "bound": bound(hold)} for hold in program.holds]
    changes = [
        {"what": name, "bound": "its answers are maintained by signed changes, never asked again"}
        for name in program.standing
    ]
    if held or changes:
        held.append({"what": "what messages insert", "bound": "grows until deleted"})
    return held + changes


def hold_text(hold: Hold, writer: Writer) -> str:
    """`HOLD :in LATEST FOR 1 h`."""
    if hold.class_ is not None:
        what = f"a {writer.term(hold.class_)}"
    else:
        what = "*" if hold.predicate is None else writer.term(hold.predicate)
    latest = " LATEST" if hold.latest else ""
    return f"HOLD {what}{latest}" + ("" if hold.duration is None else f" FOR {duration_text(hold.duration)}")


def bound(hold: Hold) -> str:
    """What bounds the statements that a line makes."""
    if hold.duration == 0:
        return "nothing is held"
    bounds = []
    if hold.latest:
        bounds.append("by the subjects: of each the values stated last")
    if hold.duration is not None:
        bounds.append(f"by what comes in {duration_text(hold.duration)}")
    return " and ".join(bounds) or "grows until deleted"


def reads_what_lasts(select: Select, relations: Collection[Relation]) -> bool:
    """Whether a query reads one of the relations that last."""
    read = relations_of(select)
    if ALL in read or ALL in relations:
        return bool(relations)
    return any(relation in read or (RDF_TYPE in read and is_class(relation)) for relation in relations)


def lasting_relations(deployment: Deployment) -> frozenset[Relation]:
    """The relations of HOLD lines, and what follows from them."""
    found: set[Relation] = set()
    for hold in deployment.program.holds:
        if hold.duration == 0:
            continue
        if hold.predicate is None:
            return frozenset({ALL})
        found.add(str(hold.predicate) if hold.class_ is None else class_relation(hold.class_))
    clauses = deployment.enrich.closed.clauses.all
    grown = True
    while grown:
        grown = False
        for clause in clauses:
            body = {item.relation for item in clause.items if isinstance(item, BodyPattern)}
            heads = {head.pattern.relation for head in clause.heads} - found
            if heads and not body.isdisjoint(found | ({ALL} if found else set())):
                found |= heads
                grown = True
    return frozenset(found)

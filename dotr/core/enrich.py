"""Step 1: enrich. The triples of one instant become K(t), the least model over background and instant.

Place:   called by pipeline.py once per instant; extract.py reads what it opens; knows no other time.
Method:  paper, sec. 4, "knowledge inference", without its deletions: the background is closed and indexed
         once, an instant is an overlay over it that is dropped afterwards (datalog/materialiser.py). The
         literal reading closes the rules over everything that holds at t, again at each t.
"""

from __future__ import annotations

from collections.abc import Collection

from dotr.budget import BUDGET
from dotr.core.extract import needed
from dotr.datalog.closing import load_background, saved_lists
from dotr.datalog.materialiser import Limits, Materialiser
from dotr.datalog.owl_lists import rules_over
from dotr.errors import DataError
from dotr.ir import Program
from dotr.joins.graph_relations import ALL, Relation
from dotr.rdf.checked_blocks import Content
from dotr.rdf.terms import Triple


def enricher(
    program: Program, background: Collection[Triple], materialize_all: bool = False, budget: int = BUDGET
) -> Materialiser:
    """The program's rules over its background, closed and indexed: `instant` opens K(t), `forget` drops it.

    Unless `materialize_all`, what no query can reach is neither derived nor kept.
    Raises ProgramError for the rules, DataError D3101 for a background that contradicts its ontology.
    """
    relations = wanted(program, materialize_all)
    rules, limits = rules_over(program, background), Limits(budget=budget)
    materialiser = Materialiser(rules, background, needed=relations, limits=limits)
    clashes = materialiser.clashes()
    if clashes:
        raise DataError(clashes)
    return materialiser


def reopened(
    program: Program, saved: Content, materialize_all: bool = False, budget: int = BUDGET
) -> Materialiser:
    """The enricher whose `closed.save()` returned these bytes, for the same program: nothing is closed again.

    Raises EngineError D5101 for bytes that are damaged or of another version.
    """
    relations = wanted(program, materialize_all)
    rules = rules_over(program, saved_lists(saved))
    return Materialiser(
        rules, (), closed=load_background(rules, saved, relations), limits=Limits(budget=budget)
    )


def wanted(program: Program, materialize_all: bool) -> frozenset[Relation]:
    """The relations that the program's queries read; with `materialize_all`, all."""
    relations = needed(program.selects)
    return relations | {ALL} if materialize_all else relations

"""Contradictions: what inconsistency rules find, each with its proof, and literals that are not well formed.

Place:   raised by model.py, reported by knowledge_base.py.
Method:  a clash is a row of a relation that belongs to no state (datalog/); its proof is that of any triple.
         dt-not-type (OWL 2 Profiles, table 8) needs no rule: of every triple that comes, its literal is
         looked at, and of every one that goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from dotr.errors import DataError, Diagnostic
from dotr.joins.graph_relations import CLASH
from dotr.rdf.memo import Memo
from dotr.rdf.terms import Term, Triple
from dotr.rdf.well_typed import is_well_typed

if TYPE_CHECKING:
    from dotr.knowledge_base.triple_proofs import Proof

NOT_TYPE: Term = f"{CLASH}dt-not-type>"


class Contradiction(Struct, frozen=True):
    """What one inconsistency rule found, in canonical terms: `rule` is its name in OWL 2 Profiles.

    `proof`: why, down to what is stated. What is found about one node has it as subject and as object.
    """

    rule: str
    subject: Term
    object: Term
    proof: Proof

    def __str__(self) -> str:
        about = self.subject if self.subject == self.object else f"{self.subject} and {self.object}"
        return f"{self.rule}: {about}\n{self.proof}"


class ContradictionError(DataError):
    """What was to hold contradicts itself. Nothing has changed. `contradictions` has them with proofs."""

    def __init__(
        self, diagnostics: Sequence[Diagnostic], contradictions: Sequence[Contradiction] = ()
    ) -> None:
        super().__init__(diagnostics)
        self.contradictions = tuple(contradictions)

    def __reduce__(self) -> tuple[type[ContradictionError], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.diagnostics,)


def is_ill_typed(triple: Triple) -> bool:
    """Whether the object is a literal outside of its datatype."""
    return triple[2][0] == '"' and _ill_typed[triple[2]]


def rule_name(clash: Term) -> str:
    return clash[len(CLASH) : -1]


_ill_typed: Memo[Term, bool] = Memo(lambda term: not is_well_typed(term))

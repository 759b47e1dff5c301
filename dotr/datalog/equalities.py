"""How a materialiser handles equalities of its instants.

Place:   between equality.py, which has the rules, and materialiser.py, which runs them.
Method:  every owl:sameAs that an instant adds, stated or derived, is checked as it is added. Dormant rules
         join the program when the first is stated; they are expanded for known relations, and join again when
         a stream brings an unknown relation, if anything reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from dotr.datalog.clauses import Clauses
from dotr.datalog.closing import Closed, with_equality
from dotr.datalog.equality import (
    beside_schema,
    between_vocabulary,
    is_data,
    is_vocabulary,
    mentioned,
    vocabulary,
)
from dotr.datalog.schema import SAME_AS
from dotr.errors import DataError, Diagnostic
from dotr.joins.graph_relations import ALL, Relation
from dotr.joins.store import TripleIndex
from dotr.rdf.terms import RDF_TYPE, Term


class JoiningError(Exception):
    """The open instant has triples that dormant rules read: the rules must join the program first."""


class Equalities:
    """Owns what is known of possible equalities at instants, and whether the dormant rules run.

    Only for rules that were instantiated over a schema.
    """

    def __init__(self, closed: Closed, store: TripleIndex) -> None:
        self._closed = closed
        self._store = store
        self._added = store.changes(SAME_AS).added
        self._awake = not closed.instantiated.dormant
        self.joined = False
        self._met: set[Relation] = set()

    @cached_property
    def _vocabulary(self) -> frozenset[Term]:
        return vocabulary(self._closed.instantiated, self._closed.needed or ())

    @cached_property
    def _mentioned(self) -> frozenset[Term]:
        return mentioned(self._closed.instantiated)

    def state(self, subject: Term, object_: Term) -> None:
        """Handle an equality stated by a stream. Raises as `check`, JoiningError if dormant rules wait."""
        self.check(subject, object_)
        if not self._awake:
            raise JoiningError

    def check(self, subject: Term, object_: Term) -> None:
        """Raise DataError D2601 for an equality of a class or property that is not in the background."""
        known = self._vocabulary
        if not (is_vocabulary(subject, known) or is_vocabulary(object_, known)):
            return
        if subject != object_ and (subject, SAME_AS, object_) not in self._store.background:
            raise DataError(between_vocabulary(subject, object_))

    def meet(self, relation: Relation) -> None:
        """Handle the first row of an unknown relation. Raises JoiningError if rules need expanding."""
        if self._awake and relation not in self._met and is_data(relation):
            self._met.add(relation)
            raise JoiningError

    def widen(self, relations: Iterable[Relation]) -> bool:
        """The background has got rows of these relations. Returns whether the rules must join again."""
        if self._closed.reach.relations.isdisjoint((ALL, RDF_TYPE)):
            return False
        new = {relation for relation in relations if relation not in self._met and is_data(relation)}
        self._met |= new
        return self._awake and bool(new)

    def join(self) -> Clauses:
        """Set the program that runs from now on."""
        self._awake = self.joined = True
        clauses = with_equality(self._closed, self._met)
        self._store.arities.update({a.relation: a.arity for a in clauses.all_aggregations})
        return clauses

    def concerns(self, subject: Term, object_: Term) -> bool:
        """Whether an equality is one of a class or property, or of an individual that the schema mentions."""
        known, named = self._vocabulary, self._mentioned
        return any(is_vocabulary(term, known) or term in named for term in (subject, object_))

    def findings(self) -> list[Diagnostic]:
        """D2602 for the open instant's equalities of individuals that the schema mentions."""
        pairs = {(min(pair), max(pair)) for pair in self._added if not self._mentioned.isdisjoint(pair)}
        return [beside_schema(*pair) for pair in sorted(pairs)]

"""What one materialiser does about equalities of its instants.

Place:   between equality.py, which has the rules, and materialiser.py, which runs them.
Method:  every owl:sameAs that an instant adds, stated or derived, is checked as it is added. Dormant rules
         join when the first is stated; they are written out for known relations, and join again when a stream
         brings one that nobody knew, if anything reads it.
"""

from __future__ import annotations

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
from dotr.joins.graph_relations import Relation
from dotr.joins.store import TripleIndex
from dotr.rdf.terms import Term


class JoiningError(Exception):
    """The open instant has what dormant rules are about: they have to join the program first."""


class Equalities:
    """Owns what is known of equalities that instants may have, and whether the dormant rules run.

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
        """A stream states that two are equal. Raises as `check`, JoiningError where dormant rules wait."""
        self.check(subject, object_)
        if not self._awake:
            raise JoiningError

    def check(self, subject: Term, object_: Term) -> None:
        """Raise DataError D2601 for an equality of a class or property that the background does not have."""
        known = self._vocabulary
        if not (is_vocabulary(subject, known) or is_vocabulary(object_, known)):
            return
        if subject != object_ and (subject, SAME_AS, object_) not in self._store.background:
            raise DataError(between_vocabulary(subject, object_))

    def meet(self, relation: Relation) -> None:
        """A relation that nobody knew got a row. Raises JoiningError where rules are to be written for it."""
        if self._awake and relation not in self._met and is_data(relation):
            self._met.add(relation)
            raise JoiningError

    def join(self) -> Clauses:
        """What is to run from now on."""
        self._awake = self.joined = True
        clauses = with_equality(self._closed, self._met)
        self._store.arities.update({a.relation: a.arity for a in clauses.all_aggregations})
        return clauses

    def findings(self) -> list[Diagnostic]:
        """What to say of the open instant's equalities of individuals that the schema mentions: D2602."""
        pairs = {(min(pair), max(pair)) for pair in self._added if not self._mentioned.isdisjoint(pair)}
        return [beside_schema(*pair) for pair in sorted(pairs)]

"""What a transaction did, as a Python program gets it, and the queries that are watched.

Place:   made by knowledge_base.py from an Outcome of model.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dotr.io.python_graphs import rdflib_term
from dotr.ir import Select
from dotr.knowledge_base.model import Outcome
from dotr.knowledge_base.prepared_queries import Answers, Solution, shown
from dotr.rdf.order import values_key
from dotr.rdf.terms import Triple
from dotr.sparql.solution_operators import Row

if TYPE_CHECKING:
    from dotr.knowledge_base.knowledge_base import KnowledgeBase


class Change:
    """The net change of one transaction: stated and derived triples, each once, in canonical order.

    True if anything changed. `useless_deletes`: deletions of what was not stated; `useless_removals`: rules
    to be removed that were not there.
    """

    def __init__(self, outcome: Outcome, useless_removals: int, as_rdflib: bool) -> None:
        self._outcome = outcome
        self._as_rdflib = as_rdflib
        self.useless_deletes = outcome.useless
        self.useless_removals = useless_removals

    def __bool__(self) -> bool:
        return bool(self._outcome.net)

    @cached_property
    def added(self) -> tuple[Any, ...]:
        """The triples that hold now and did not before."""
        return self._triples(self._outcome.net.added)

    @cached_property
    def removed(self) -> tuple[Any, ...]:
        """The triples that hold no more."""
        return self._triples(self._outcome.net.removed)

    def _triples(self, triples: Iterable[Triple]) -> tuple[Any, ...]:
        return tuple(as_user_has(triple, self._as_rdflib) for triple in triples)

    def of(self, watch: Watch) -> list[tuple[Solution, int]]:
        """How the answers of a watched query changed: (row, +n or −n), in canonical order of rows, of one row
        what went before what came.
        """
        changes = self._outcome.differences.get(watch.select, ())
        pairs = sorted(
            ((watch.own(row), n) for row, n in changes), key=lambda pair: (values_key(pair[0]), pair[1])
        )
        return [(shown(row, watch.variables, self._as_rdflib), n) for row, n in pairs]

    def __repr__(self) -> str:
        net = self._outcome.net
        return f"<change: {len(net.added)} added, {len(net.removed)} removed>"


class Watch:
    """A query whose answers are followed: `change.of(watch)`. Made by `KnowledgeBase.watch`."""

    def __init__(self, owner: KnowledgeBase, select: Select, variables: tuple[str, ...]) -> None:
        self._owner = owner
        self.select = select
        self.variables = variables

    def own(self, row: Row) -> Row:
        """A row over the query's own variables: of an ASK over none."""
        return row if self.variables else ()

    @property
    def answers(self) -> Answers:
        """All answers of now."""
        return self._owner.answers_of(self)

    def close(self) -> None:
        """Follow the query no more."""
        self._owner.unwatch(self)


def as_user_has(triple: Triple, as_rdflib: bool) -> tuple[Any, Any, Any]:
    """A triple of canonical terms, or of rdflib's."""
    if not as_rdflib:
        return triple
    subject, predicate, object_ = triple
    return rdflib_term(subject), rdflib_term(predicate), rdflib_term(object_)

"""Which rows are stated, and which a change states and takes back.

Place:   used by maintenance.py, and asked by retraction.py row by row.
Method:  per relation the rows of the index that are only derived, so that what is stated and not derived by
         any rule costs nothing; and the statements that the open change brings and ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dotr.joins.relations import Relation, class_relation, is_class
from dotr.rdf.overlay import Row
from dotr.rdf.terms import RDF_TYPE, Term, Triple


@dataclass(slots=True, eq=False)
class Statements:
    """Owns what is known of the statements of one relation, by keys of rows.

    `derived`: rows of the index that nobody states; `begun` and `ended`: statements of the open change.
    """

    relation: Relation
    derived: set[Row] = field(default_factory=set)
    begun: dict[Row, None] = field(default_factory=dict)
    ended: dict[Row, None] = field(default_factory=dict)

    def test(self) -> Callable[[Row], bool]:
        """Whether a row of the index is stated, with the open change."""
        derived, begun, ended = self.derived, self.begun, self.ended
        return lambda key: (key not in derived and key not in ended) or key in begun


def place_of(triple: Triple) -> tuple[Relation, Row]:
    """The narrowest relation of a triple, and the key of its row there."""
    subject, predicate, object_ = triple
    if predicate == RDF_TYPE:
        return class_relation(object_), subject
    return predicate, (subject, object_)


def triple_of(relation: Relation, key: Row) -> Triple:
    if is_class(relation):
        return key, RDF_TYPE, relation[2:]
    return key[0], relation, key[1]


def row_of(key: Row) -> tuple[Term, ...]:
    """The columns of a row from its key."""
    return key if isinstance(key, tuple) else (key,)

"""Which rows are stated, and which a change states and deletes.

Place:   used by maintenance.py, and by retraction.py row by row.
Method:  per relation the rows of the index that are only derived, so that stated rows that no rule derives
         cost nothing; and the statements that the open change begins and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from dotr.joins.graph_relations import Relation, class_relation, is_class
from dotr.rdf.background import Background, many
from dotr.rdf.checked_blocks import damaged
from dotr.rdf.overlay import Row
from dotr.rdf.terms import RDF_TYPE, Term, Triple

if TYPE_CHECKING:
    from dotr.datalog.expiration import UndoBounds


class Statements(Struct, eq=False):
    """Owns the statements of one relation, by keys of rows.

    `derived`: rows of the index that are not stated; `begun` and `ended`: statements of the open change.
    """

    relation: Relation
    derived: set[Row] = field(default_factory=set)
    begun: dict[Row, None] = field(default_factory=dict)
    ended: dict[Row, None] = field(default_factory=dict)

    def test(self) -> Callable[[Row], bool]:
        """Whether a row of the index is stated, with the open change."""
        derived, begun, ended = self.derived, self.begun, self.ended
        return lambda key: (key not in derived and key not in ended) or key in begun


class Step(NamedTuple):
    """What a change did to one relation, by keys of rows: rows added and removed, and rows that are only
    derived since then (`marked`) or were before (`unmarked`).
    """

    relation: Relation
    added: Collection[Row]
    removed: Collection[Row]
    marked: Collection[Row] = ()
    unmarked: Collection[Row] = ()


class Undo(NamedTuple):
    """How to undo a change of the index, and the bounds of its rows."""

    steps: list[Step]
    bounds: UndoBounds | None = None


def place_of(triple: Triple) -> tuple[Relation, Row]:
    """The narrowest relation of a triple, and the key of its row."""
    subject, predicate, object_ = triple
    if predicate == RDF_TYPE:
        return class_relation(object_), subject
    return predicate, (subject, object_)


def row_of(key: Row) -> tuple[Term, ...]:
    """The columns of a row from its key."""
    return key if isinstance(key, tuple) else (key,)


def triples_in(index: Background, of: Callable[[Relation], bool]) -> Iterator[Triple]:
    """The triples of an index that are in some relations."""
    for predicate, column in list(index.forward.items()):
        if predicate == RDF_TYPE:
            for class_, members in list(index.backward.get(RDF_TYPE, {}).items()):
                if of(class_relation(class_)):
                    yield from ((member, RDF_TYPE, class_) for member in many(members))
        elif of(predicate):
            yield from ((s, predicate, o) for s, objects in column.items() for o in many(objects))


class Marks:
    """Owns the statements of every relation of an index; those saved are read on first use of a relation.

    `saved`: relation → a bit for each of its rows, in the order of `rows_in_order`: whether it is derived.
    """

    def __init__(self, index: Background, saved: Mapping[Relation, bytes] | None = None) -> None:
        self._index = index
        self._known: dict[Relation, Statements] = {}
        self._saved = dict(saved or {})

    def get(self, relation: Relation) -> Statements | None:
        """The statements of a relation, if any are known; before its rows change."""
        found = self._known.get(relation)
        if found is None and relation in self._saved:
            return self.of(relation)
        return found

    def of(self, relation: Relation) -> Statements:
        """The statements of a relation, always the same object; before its rows change. Raises EngineError
        D5101 where what was saved is of other rows.
        """
        found = self._known.get(relation)
        if found is None:
            found = self._known[relation] = Statements(relation)
            bits = self._saved.pop(relation, None)
            if bits is not None:
                rows = rows_in_order(self._index, relation)
                if len(bits) != len(rows) + 7 >> 3:
                    raise damaged()
                found.derived.update(row for i, row in enumerate(rows) if bits[i >> 3] >> (i & 7) & 1)
        return found

    def states(self, triple: Triple) -> bool:
        """Whether a triple of the index is stated, before its rows change."""
        relation, key = place_of(triple)
        known = self.get(relation)
        return known is None or key not in known.derived

    def derived(self) -> int:
        """The number of only derived rows of the index. O(relations)."""
        saved = sum(int.from_bytes(bits, "little").bit_count() for bits in self._saved.values())
        return saved + sum(len(statements.derived) for statements in self._known.values())

    def save(self, order: Background) -> dict[Relation, bytes]:
        """The value of `saved` for `order`: the same index as its next owner will have it."""
        if order is not self._index and not self._index.mapped:
            for relation in list(self._saved):
                self.of(relation)  # in another order
        found = dict(self._saved)
        for relation, statements in self._known.items():
            if statements.derived:
                derived = statements.derived
                found[relation] = _bits(row in derived for row in rows_in_order(order, relation))
        return found


def rows_in_order(index: Background, relation: Relation) -> list[Row]:
    """The keys of a relation's rows, in an order that saving and loading the index keeps: subjects with one
    value in order of insertion (in a file: of position), then those with several.
    """
    if is_class(relation):
        return sorted(many(index.backward.get(RDF_TYPE, {}).get(relation[2:])))
    column = index.forward.get(relation, {})
    found: list[Row] = [(key, value) for key, value in column.items() if value.__class__ is str]
    for key, values in column.items():
        if values.__class__ is not str:
            found += [(key, value) for value in sorted(values)]
    return found


def _bits(flags: Iterable[bool]) -> bytes:
    text = "".join("1" if flag else "0" for flag in flags)
    return int(text[::-1] or "0", 2).to_bytes((len(text) + 7) // 8, "little")

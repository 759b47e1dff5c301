"""The data of plans: a closed background, the overlay of an instant, and tables of what is no triple.

Place:   one per materialiser; plans are compiled against it (code.py) or interpreted
         (explain/derivations.py).
Method:  a relation is found in the background by predicate, for classes through rdf:type, and for the union
         of everything through the index that fits the bound columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Sequence

from dotr.budget import Meter
from dotr.expressions.geometry import RTree
from dotr.joins.filters import Moment
from dotr.joins.nearby import NearbyRelation, tree_of
from dotr.joins.paths import Automaton, PathRelation
from dotr.joins.plan import (
    ALL,
    AntiJoin,
    JoinPlan,
    Probe,
    Relation,
    View,
    is_aggregate,
    is_apart,
    is_class,
    is_path,
    path_relation,
)
from dotr.rdf.index import Background, Changes, Column, Overlay, many
from dotr.rdf.terms import RDF_TYPE, Term

Columns = tuple[Term, ...]
Matcher = Callable[..., Sequence[Columns]]


class Everything:
    """All relations, present and future."""

    def __contains__(self, relation: object) -> bool:
        return True


EVERYTHING = Everything()


class Table:
    """Owns the rows of an aggregate, a clash, or an anonymous property, in the background."""

    def __init__(self, rows: Iterable[Columns] = ()) -> None:
        self.rows: dict[Columns, None] = dict.fromkeys(rows)
        self._indexes: dict[tuple[int, ...], dict[Columns, list[Columns]]] = {}

    def find(self, values: Sequence[Term | None]) -> Iterable[Columns]:
        """Rows with these values (None: any). The first call for a set of columns indexes them."""
        columns = tuple(i for i, value in enumerate(values) if value is not None)
        if not columns:
            return self.rows
        index = self._indexes.get(columns)
        if index is None:
            index = self._indexes[columns] = {}
            for row in self.rows:
                index.setdefault(tuple(row[i] for i in columns), []).append(row)
        return index.get(tuple(values[i] for i in columns), ())  # type: ignore[misc]  # none of these is None

    def insert(self, row: Columns) -> None:
        self.rows[row] = None
        for columns, index in self._indexes.items():
            index.setdefault(tuple(row[i] for i in columns), []).append(row)

    def remove(self, row: Columns) -> None:
        del self.rows[row]
        for columns, index in self._indexes.items():
            index[tuple(row[i] for i in columns)].remove(row)


class TripleIndex:
    """Owns the overlay and the tables; shares the background.

    `arities` must name every aggregate. `volatile`: relations that may lose rows of the background at an
    instant. `static`: relations that no instant changes. `general`: relations whose background rows change
    between instants, each with its unions; code for them assumes nothing about their rows. `visits` counts
    rows when functions are compiled with `counting`. `moment` is read by NOW(); `meter` is charged by
    functions without their own.
    """

    def __init__(
        self,
        background: Background,
        *,
        volatile: Container[Relation] = frozenset(),
        static: Iterable[Relation] = (),
        general: Container[Relation] = frozenset(),
        arities: dict[Relation, int] | None = None,
        counting: bool = False,
    ) -> None:
        self.background = background
        self.overlay = Overlay()
        self.tables: dict[Relation, Table] = {}
        self.paths: dict[Relation, PathRelation | NearbyRelation] = {}
        self._nearby: dict[tuple[Term, str, bool, int], NearbyRelation] = {}
        self._trees: dict[Term, RTree] = {}
        self._paths: dict[tuple[str, tuple[Term | None, Term | None], int], PathRelation] = {}
        self.volatile = volatile
        self.static = frozenset(static)
        self.general = general
        self.arities = arities or {}
        self.counting = counting
        self.moment = Moment()
        self.visits = [0]
        self.meter = Meter()

    def arity(self, relation: Relation) -> int:
        if relation == ALL:
            return 3
        if is_class(relation):
            return 1
        return self.arities[relation] if is_aggregate(relation) else 2

    def path(
        self,
        text: str,
        automaton: Automaton,
        ends: tuple[Term | None, Term | None] = (None, None),
        meter: Meter | None = None,
    ) -> PathRelation:
        """The relation of a property path, a new one for each meter. `text` identifies the path."""
        meter = self.meter if meter is None else meter
        found = self._paths.get((text, ends, id(meter)))
        if found is None:
            relation = path_relation(len(self.paths), text)
            found = self.paths[relation] = PathRelation(relation, automaton, ends, self, meter)
            self._paths[text, ends, id(meter)] = found  # which keeps the meter alive
        return found

    def nearby(self, predicate: Term, function: str, turned: bool, meter: Meter) -> Relation:
        """The relation of geometries and the objects of a predicate of which a function holds; `turned`: of
        the object and the geometry.
        """
        key = predicate, function, turned, id(meter)
        found = self._nearby.get(key)
        if found is None:
            relation = path_relation(len(self.paths), f"near an object of {predicate}:")
            found = NearbyRelation(relation, predicate, function, turned, self, meter)
            self.paths[relation] = self._nearby[key] = found  # which keeps the meter alive
        return found.relation

    def tree(self, predicate: Term) -> RTree:
        """The R-tree of the geometries that are objects of a predicate in the background."""
        found = self._trees.get(predicate)
        if found is None:
            found = self._trees[predicate] = tree_of(self.column(predicate, 1) or ())
        return found

    def sources(self, relation: Relation) -> tuple[Relation, ...]:
        """The relations from whose rows this one is computed."""
        return self.paths[relation].sources if relation in self.paths else (relation,)

    def may_lose(self, relation: Relation) -> bool:
        """Whether an instant may remove rows of the background."""
        return any(source in self.volatile for source in self.sources(relation))

    def changing(self, relation: Relation) -> bool:
        """Whether rows of the background change between instants."""
        return any(source in self.general for source in self.sources(relation))

    def is_static(self, relation: Relation) -> bool:
        """Whether no instant changes it."""
        return all(source in self.static for source in self.sources(relation))

    def changes(self, relation: Relation) -> Changes:
        found = self.overlay.relations.get(relation)
        return found if found is not None else self.overlay.changes(relation, self.arity(relation))

    def column(self, predicate: Term, key: int) -> Column | None:
        """The background of a predicate by subject (0) or object (1), None if it has none."""
        if predicate in self.general:
            self.background.column(predicate)
            return self.background.backward[predicate] if key else self.background.forward[predicate]
        index = self.background.backward if key else self.background.forward
        return index.get(predicate) or None

    def single(self, predicate: Term, key: int) -> bool:
        """Whether every key of `column` has one value."""
        if predicate in self.general:
            return False
        several = self.background.several_backward if key else self.background.several_forward
        return predicate not in several

    def filled(self, relation: Relation) -> bool:
        """Whether the background has a row, or may get one."""
        if relation in self.general:
            return True
        if is_class(relation):
            return relation[2:] in self.background.backward.get(RDF_TYPE, ())
        if is_apart(relation):
            return relation in self.tables and bool(self.tables[relation].rows)
        if is_path(relation):
            return self.changing(relation) or self.paths[relation].rows() > 0
        return bool(self.background.forward) if relation == ALL else relation in self.background.forward

    def members(self, relation: Relation) -> Collection[Term]:
        """The members of a class in the background."""
        return many((self.column(RDF_TYPE, 1) or {}).get(relation[2:]))

    def prepare(self, plan: JoinPlan) -> None:
        """Create the overlay's indexes that a plan reads. Before the first instant."""
        for step in plan.steps:
            if not isinstance(step, Probe | AntiJoin) or step.view not in (View.ADDED, View.NEW):
                continue
            relation, bound = step.pattern.relation, step.bound
            columns = tuple(i for i, is_bound in enumerate(bound) if is_bound)
            if relation in self.static or len(bound) == 1 or len(columns) == len(bound) or is_path(relation):
                continue
            if columns:
                self.changes(relation).index(columns)
            elif len(bound) == 2 and step.view is View.NEW:
                self.changes(relation).index((0,))  # a scan goes along subjects

    def rows(self, relation: Relation) -> int:
        """The number of rows of the background (the planner's `Sizes`)."""
        if relation == ALL:
            return len(self.background)
        if is_class(relation):
            return len(self.members(relation))
        if is_apart(relation):
            table = self.tables.get(relation)
            return len(table.rows) if table else 0
        if is_path(relation):
            return self.paths[relation].rows()
        return self.background.size(relation)

    def values(self, relation: Relation, column: int) -> int:
        """Roughly the number of distinct values of a column (the planner's `Sizes`)."""
        if is_class(relation) or is_apart(relation):
            return self.rows(relation)
        if is_path(relation):
            return self.paths[relation].values(column)
        if relation == ALL:
            forward = self.background.forward
            return len(forward) if column == 1 else max(map(len, list(forward.values())), default=0)
        return len(self.column(relation, column) or ())

    def find(self, relation: Relation, values: Sequence[Term | None], view: View) -> list[Columns]:
        """Rows of a view with these values (None: any), in a fixed order."""
        if relation in self.paths:
            return list(self.paths[relation].find(values, view))
        changes = self.changes(relation)
        found: list[Columns] = []
        if view in (View.OLD, View.KEPT, View.NEW):
            base = self.background_rows(relation, values)
            if view is not View.OLD and changes.removed:
                found = [row for row in base if _key(row) not in changes.removed]
            else:
                found = list(base)
        if view is View.REMOVED:
            found = [row for row in _spread(changes.removed, changes.arity) if _agrees(row, values)]
        elif view in (View.ADDED, View.NEW) and changes.added:
            found += added_rows(changes, values)
        return found

    def matcher(self, relation: Relation, bound: Sequence[bool], view: View) -> Matcher:
        """`find` for one set of bound columns, as a function of their values."""
        places = [i for i, is_bound in enumerate(bound) if is_bound]
        width = len(bound)
        path = self.paths.get(relation)
        if isinstance(path, NearbyRelation) and places == [0]:
            return path.near

        def match(*values: Term) -> list[Columns]:
            asked: list[Term | None] = [None] * width
            for place, value in zip(places, values, strict=True):
                asked[place] = value
            return self.find(relation, asked, view)

        return match

    def background_rows(self, relation: Relation, values: Sequence[Term | None]) -> Iterable[Columns]:
        if is_apart(relation):
            table = self.tables.get(relation)
            return table.find(values) if table else ()
        if is_class(relation):
            if values[0] is None:
                return [(member,) for member in self.members(relation)]
            triple = (values[0], RDF_TYPE, relation[2:])
            return [(values[0],)] if triple in self.background else ()
        if relation == ALL:
            return self._everything(*values)
        subject, object_ = values
        return [(s, o) for s, o in _pairs(self, relation, subject, object_)]

    def _everything(
        self, subject: Term | None, predicate: Term | None, object_: Term | None
    ) -> Iterable[Columns]:
        predicates: Iterable[Term]
        if predicate is not None:
            predicates = (predicate,)
        elif subject is not None:
            predicates = self.background.predicates_from(subject)
        elif object_ is not None:
            predicates = self.background.predicates_into(object_)
        else:
            predicates = list(self.background.forward)  # other readers may make empty columns
        return [(s, p, o) for p in predicates for s, o in _pairs(self, p, subject, object_)]


def _pairs(
    store: TripleIndex, predicate: Term, subject: Term | None, object_: Term | None
) -> Iterable[tuple[Term, Term]]:
    forward = store.column(predicate, 0)
    if forward is None:
        return []
    if subject is not None:
        if object_ is None:
            return [(subject, o) for o in many(forward.get(subject))]
        return [(subject, object_)] if (subject, predicate, object_) in store.background else []
    if object_ is not None:
        backward = store.column(predicate, 1) or {}
        return [(s, object_) for s in many(backward.get(object_))]
    return [(s, o) for s, objects in forward.items() for o in many(objects)]


def added_rows(changes: Changes, values: Sequence[Term | None]) -> list[Columns]:
    """Added rows with these values, through an index if there is one for exactly these columns."""
    columns = tuple(i for i, value in enumerate(values) if value is not None)
    if len(columns) == changes.arity:
        row = tuple(values)
        return [row] if _key(row) in changes.added else []  # type: ignore[list-item]  # none is None here
    index = changes.indexes.get(columns)
    if index is None:
        return [row for row in _spread(changes.added, changes.arity) if _agrees(row, values)]
    key = values[columns[0]] if len(columns) == 1 else tuple(values[i] for i in columns)
    if changes.arity != 2:
        return list(index.get(key, ()))
    if columns[0] == 0:
        return [(key, value) for value in index.get(key, ())]  # type: ignore[misc]  # a bound value
    return [(value, key) for value in index.get(key, ())]  # type: ignore[misc]  # a bound value


def _key(row: Sequence[object]) -> object:
    return row[0] if len(row) == 1 else tuple(row)


def _spread(rows: Iterable[object], arity: int) -> Iterable[Columns]:
    return [(row,) for row in rows] if arity == 1 else list(rows)  # type: ignore[misc,arg-type]  # row keys


def _agrees(row: Columns, values: Sequence[Term | None]) -> bool:
    return all(value is None or value == term for term, value in zip(row, values, strict=True))

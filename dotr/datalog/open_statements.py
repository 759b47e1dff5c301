"""Which statements the open change begins and ends.

Place:   under maintenance.py, which opens a change with them and commits or abandons it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from dotr.datalog.statements import Marks, Statements, place_of
from dotr.datalog.stratum_evaluation import StratumEvaluator
from dotr.events import Time
from dotr.joins.graph_relations import Relation, class_relation, is_class
from dotr.rdf.background import Background, has
from dotr.rdf.overlay import Row
from dotr.rdf.terms import RDF_TYPE, Triple

_REMEMBERED = 10_000


class OpenStatements:
    """Owns which relations have statements that begin or end.

    `keeps`: whether anything reads a triple; others are not recorded.
    """

    def __init__(self, index: Background, marks: Marks, keeps: Callable[[Triple], bool]) -> None:
        self._index, self._marks, self._keeps = index, marks, keeps
        self.relations: dict[Relation, Statements] = {}
        """Relations in which the change begins or ends statements."""
        self._keeping: dict[Relation, bool] = {}

    def note(self, insert: Iterable[Triple], delete: Iterable[Triple]) -> tuple[int, int, bool]:
        """Record statements that begin and end; returns useless deletions, the size, whether any ends."""
        useless = size = 0
        of, opened, forward = self._marks.of, self.relations, self._index.forward
        for subject, predicate, object_ in delete:
            values = forward[predicate].get(subject) if predicate in forward else None
            if values is not None and (
                values == object_ if values.__class__ is str else has(values, object_)  # type: ignore[arg-type]  # several
            ):
                relation, key = place_of((subject, predicate, object_))
                statements = of(relation)
                if key not in statements.derived:
                    opened[relation] = statements
                    statements.ended[key] = None
                    size += 1
                    continue
            useless += 1
        mixed = bool(opened)
        for triple in insert:
            subject, predicate, object_ = triple
            if predicate == RDF_TYPE:
                relation, key = class_relation(object_), subject
            else:
                relation, key = predicate, (subject, object_)
            statements = opened.get(relation) or of(relation)
            if key in statements.ended:
                del statements.ended[key]
            elif key in statements.derived:
                opened[relation] = statements
                statements.begun[key] = None
            elif self.kept(relation):
                values = forward[predicate].get(subject) if predicate in forward else None
                if values is None or not (
                    values == object_ if values.__class__ is str else has(values, object_)  # type: ignore[arg-type]  # several
                ):
                    opened[relation] = statements
                    statements.begun[key] = None
            size += 1
        return useless, size, mixed

    def of(self, relation: Relation) -> Statements:
        """The statements of a relation in which the open change begins or ends some."""
        found = self.relations[relation] = self._marks.of(relation)
        return found

    def ends_by_relation(self, begun: Mapping[Triple, Time]) -> dict[Relation, dict[Row, Time]]:
        """The ends of statements that something reads, by the keys of their rows."""
        found: dict[Relation, dict[Row, Time]] = {}
        rows: dict[Row, Time] = {}
        last = None
        for (subject, predicate, object_), end in begun.items():
            if predicate is not last:  # few predicates, with many statements each
                if predicate == RDF_TYPE:
                    found.setdefault(class_relation(object_), {})[subject] = end
                    continue
                last, rows = predicate, found.setdefault(predicate, {})
            rows[subject, object_] = end
        return {relation: rows for relation, rows in found.items() if self.kept(relation)}

    def by_relation(self, triples: Iterable[Triple]) -> dict[Relation, list[Row]]:
        """The keys of the rows of triples that something reads."""
        found: dict[Relation, list[Row]] = {}
        for subject, predicate, object_ in triples:
            relation: Relation = predicate
            key: Row = (subject, object_)
            if predicate == RDF_TYPE:
                relation, key = class_relation(object_), subject
            try:
                found[relation].append(key)
            except KeyError:
                found[relation] = [key]
        return {relation: keys for relation, keys in found.items() if self.kept(relation)}

    def kept(self, relation: Relation) -> bool:
        """Whether anything reads rows of the relation."""
        found = self._keeping.get(relation)
        if found is None:
            triple: Triple = ("", RDF_TYPE, relation[2:]) if is_class(relation) else ("", relation, "")
            found = self._keeps(triple)
            if len(self._keeping) < _REMEMBERED:
                self._keeping[relation] = found
        return found

    def insert(self, layers: StratumEvaluator) -> None:
        """Close a change of new statements only."""
        for statements in self.relations.values():
            add = layers.inserters.adder(statements.relation)
            if is_class(statements.relation):
                for key in statements.begun:
                    add(key)
            else:
                for subject, object_ in statements.begun:
                    add(subject, object_)
        layers.run()

    def enter(self, layers: StratumEvaluator) -> None:
        """Enter new statements and doubt ended ones, before anything is joined. What no rule derives falls
        when it ends.
        """
        for statements in self.relations.values():
            if statements.begun:
                enter, derived = layers.inserters.enterer(statements.relation), statements.derived
                if rows := [key for key in statements.begun if key not in derived]:
                    enter(rows)
        for statements in self.relations.values():
            if statements.ended:
                if not layers.retraction.derivable(statements.relation):
                    layers.retraction.fall(statements.relation, statements.ended)
                    continue
                doubt = layers.retraction.doubter(statements.relation)
                if is_class(statements.relation):
                    for key in statements.ended:
                        doubt(key)
                else:
                    for subject, object_ in statements.ended:
                        doubt(subject, object_)

    def forget(self) -> None:
        for statements in self.relations.values():
            statements.begun.clear()
            statements.ended.clear()
        self.relations.clear()

"""Source lines about one row of a relation: its presence, bound, indexes and unions.

Place:   inserters.py and suspects.py write their functions with these. A row is `s` or `s, o`.
"""

from __future__ import annotations

from collections.abc import Sequence

from dotr.codegen import Names
from dotr.datalog.bounds import Bounds
from dotr.events import FOREVER
from dotr.joins.access import lookup
from dotr.joins.graph_relations import ALL, Relation, is_apart, is_class
from dotr.joins.store import TripleIndex
from dotr.rdf.background import has
from dotr.rdf.overlay import Changes
from dotr.rdf.terms import RDF_TYPE


class RowCode:
    """What the lines depend on: the store, which of ALL and RDF_TYPE are kept, whether rows have bounds."""

    def __init__(self, store: TripleIndex, unions: frozenset[Relation], bounds: Bounds | None) -> None:
        self._store = store
        self._unions = unions
        self._bounds = bounds

    def present(self, relation: Relation, names: Names) -> list[str]:
        """Lines of a function of (s) or (s, o), the last one an expression: whether the background has the
        row. Empty if it never has.
        """
        store = self._store
        one = is_class(relation)
        predicate = RDF_TYPE if one else relation
        if is_apart(relation):
            table = store.tables.get(relation)
            return [] if table is None else [f"(s, o) in {names.bind(table.rows, 'B')}"]
        column = store.column(predicate, 0) if not one or store.filled(relation) else None
        if column is None or store.changes(relation).arity > 2:
            return []
        found = lookup(column, names.bind(column, "B"), "s")
        value = names.bind(relation[2:], "K") if one else "o"
        if store.single(predicate, 0):
            return [f"{found} == {value}"]
        names.namespace["HAS"] = has
        test = f"t is not None and (t == {value} if t.__class__ is STR else HAS(t, {value}))"
        return [f"    t = {found}", test]

    def index_lines(self, relation: Relation, names: Names) -> list[str]:
        """Enter a new row of (s) or (s, o) into the relation's indexes, and into the unions that are kept."""
        lines = _enter_lines(self._store.changes(relation), ["s", "o"], "", names)
        for union in self.unions_of(relation):
            changes = self._store.changes(union)
            subject, predicate, object_ = self.triple(relation, names)
            row = [subject, object_] if union == RDF_TYPE else [subject, predicate, object_]
            whole = names.bind(changes, "CH")
            touch = names.bind(self._store.overlay.touched.append, "TOUCH")
            lines += [
                f"    if {whole}.idle:",
                f"        {whole}.idle = False",
                f"        {touch}({whole})",
                f"    w = ({', '.join(row)})",
                f"    {names.bind(changes.added, 'A')}[w] = None",
                *_enter_lines(changes, row, "w", names),
            ]
        return lines

    def triple(self, relation: Relation, names: Names) -> tuple[str, str, str]:
        """Source names of subject, predicate, object in a function of (s) or (s, o)."""
        if is_class(relation):
            return "s", names.bind(RDF_TYPE, "K"), names.bind(relation[2:], "K")
        return "s", names.bind(relation, "K"), "o"

    def unions_of(self, relation: Relation) -> list[Relation]:
        if is_apart(relation):
            return []
        return [u for u in ((RDF_TYPE, ALL) if is_class(relation) else (ALL,)) if u in self._unions]

    def bound_lines(self, relation: Relation, key: str, names: Names) -> list[str]:
        """Record how long a new row holds."""
        if self._bounds is None:
            return []
        queue, ends = (
            names.bind(self._bounds.queue(relation), "DUE"),
            names.bind(self._bounds.of(relation), "U"),
        )
        return [
            f"    if e0 != {names.bind(FOREVER, 'ONE')}:",
            f"        {ends}[{key}] = e0",
            f"        x = {queue}.get(e0)",
            f"        if x is None: {names.bind(self._bounds.opener(relation), 'BEGIN')}(e0, {key})",
            f"        else: x.append({key})",
        ]

    def waiting(self, relation: Relation) -> str:
        """What a row puts onto a worklist after its function: its columns, or its key and its bound (possibly
        an older one: if the bound is raised before the row is joined, its consequences keep lower bounds).
        """
        one = self._store.arity(relation) == 1
        if self._bounds is None:
            return f"s, {'None' if one else 'o'}"
        return f"{'s' if one else 'k'}, e0"

    def header(self, relation: Relation) -> list[str]:
        """The first lines of a function `run` for entries of a worklist."""
        if self._bounds is None:
            return ["def run(s, o):"]
        return (
            ["def run(s, e0):"] if self._store.arity(relation) == 1 else ["def run(k, e0):", "    s, o = k"]
        )


def _enter_lines(changes: Changes, columns: Sequence[str], row: str, names: Names) -> list[str]:
    """Source that puts a row into every index; `row` names the whole row, for indexes that hold it."""
    lines = []
    for places, index in changes.indexes.items():
        bound = names.bind(index, "I")
        keys = [columns[place] for place in places]
        key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
        value = columns[1 - places[0]] if changes.arity == 2 else row
        lines += [
            f"    x = {bound}.get({key})",
            f"    if x is None: {bound}[{key}] = [{value}]",
            f"    else: x.append({value})",
        ]
    return lines

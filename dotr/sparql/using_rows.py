"""The solutions of a conjunction that use given rows of a relation, in the background alone.

Place:   core/plain_changes.py asks before it removes rows and after it adds rows. Made from leaves.py.
Method:  the joins that a row starts, one for each pattern over its relation, are one generated function. It
         may find a solution several times, if several patterns match given rows: the caller makes a set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from dotr.codegen import Names, make
from dotr.joins.body import BodyPattern, View
from dotr.joins.charging import Spent
from dotr.joins.graph_relations import ALL, Relation, is_path
from dotr.joins.join_code import CodeBlock, Rows
from dotr.joins.planner import plan
from dotr.rdf.terms import RDF_TYPE
from dotr.sparql.leaves import NO_LIMIT, Leaf
from dotr.sparql.solution_operators import Row


class UsingRows:
    """Owns the generated function for one leaf and one relation."""

    def __init__(self, leaf: Leaf, relation: Relation) -> None:
        self._finish = leaf.finish
        store, items = leaf.store, leaf.items
        names, lines = Names(), []
        columns = [f"r{i}" for i in range(store.arity(relation))]
        triggers = [
            (i, p) for i, p in enumerate(items) if isinstance(p, BodyPattern) and p.relation == relation
        ]
        for place, trigger in triggers:
            rest = (*items[:place], *items[place + 1 :])
            made = plan(rest, leaf.outputs, store, trigger=trigger, view=View.OLD)
            block = CodeBlock(store, names, Rows(), indent=2, stable=True, meter=leaf.meter)
            block.write(made, columns)
            lines += block.lines
        left = f"{names.bind(leaf.meter.left, 'W')}[0]"
        spent = names.bind(Spent(leaf.meter, [pattern for _, pattern in triggers], None), "SPENT")
        head = [
            "def run(out, rows):",
            f"    {left} -= LEN(rows) * {len(triggers)}",
            f"    if {left} < 0: {spent}(0, LEN(rows))",
            f"    for {', '.join(columns)} in rows:",
        ]
        self._run: Callable[[Callable[[Row], None], Collection[Any]], None] = make(
            "run", "\n".join([*head, *(lines or ["        pass"])]) + "\n", names
        )

    def __call__(self, rows: Collection[Any]) -> list[Row]:
        """The solutions that use one of the rows (keys), some more than once. Raises Exhausted."""
        found: list[Row] = []
        self._run(found.append, rows)
        return self._finish(found) if found and self._finish is not None else found


def may_use(leaf: Leaf) -> bool:
    """Whether solutions are a set, and every triple that they use is a row of one relation."""
    relations = {pattern.relation for pattern in leaf.patterns}
    special = relations & {ALL, RDF_TYPE} or any(map(is_path, relations))
    return leaf.limit >= NO_LIMIT and not special

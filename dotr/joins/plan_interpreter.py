"""The plain executor: interpret a plan, row by row.

Place:   beside code.py, which must yield the same rows; a baseline for generated code.
Method:  recursion over the steps with the store's generic lookup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from dotr.joins.filters import FilterRow as Row
from dotr.joins.filters import condition_of, value_of
from dotr.joins.plan import AntiJoin, Assign, BodyPattern, Check, JoinPlan, Probe, RowFilter, Step
from dotr.joins.store import Columns, TripleIndex
from dotr.program import Node, Var
from dotr.rdf.terms import Term


def walk(plan: JoinPlan, store: TripleIndex, values: Sequence[Term] = ()) -> list[Columns]:
    """Solutions of a plan, with repeats, as values of its outputs.

    `values` are the columns of the triggering row, or the values of the `given` variables.
    """
    row: dict[str, Term] | None = dict(zip(plan.given, values, strict=plan.trigger is None))
    if plan.trigger is not None:
        row = _extend(plan.trigger, values, {})
    if row is None:
        return []
    return [
        tuple(solution[n.name] if isinstance(n, Var) else n for n in plan.outputs)
        for solution in _solutions(plan.steps, row, store)
    ]


def _solutions(steps: Sequence[Step], row: dict[str, Term], store: TripleIndex) -> Iterator[dict[str, Term]]:
    if not steps:
        yield row
        return
    step, rest = steps[0], steps[1:]
    match step:
        case Probe():
            for extended in _matches(step, row, store):
                yield from _solutions(rest, extended, store)
                if step.exists:
                    return
        case AntiJoin():
            if not _matches(step, row, store):
                yield from _solutions(rest, row, store)
        case RowFilter():
            if condition_of(step, store.moment)(row):
                yield from _solutions(rest, row, store)
        case Check():
            if step.function(*(row[name] for name in step.variables)):
                yield from _solutions(rest, row, store)
        case Assign():
            value = value_of(step, store.moment)(row)
            if value is not None and row.get(step.variable, value) == value:
                yield from _solutions(rest, {**row, step.variable: value}, store)
        case _:
            assert_never(step)


def _matches(step: Probe | AntiJoin, row: Row, store: TripleIndex) -> list[dict[str, Term]]:
    asked = [_value(node, row) for node in step.pattern.columns]
    found = []
    for columns in store.find(step.pattern.relation, asked, step.view):
        store.visits[0] += 1
        extended = _extend(step.pattern, columns, row)
        if extended is not None:
            found.append(extended)
    return found


def _value(node: Node, row: Row) -> Term | None:
    return row.get(node.name) if isinstance(node, Var) else node


def _extend(pattern: BodyPattern, columns: Sequence[Term], row: Row) -> dict[str, Term] | None:
    extended = dict(row)
    for node, term in zip(pattern.columns, columns, strict=True):
        if isinstance(node, Var):
            if extended.setdefault(node.name, term) != term:
                return None
        elif node != term:
            return None
    return extended

"""A plan as text, for `dotr plan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from dotr.ir import Call, Const, Expression, Node, Var
from dotr.joins.body import Assign, BodyPattern, Check, RowFilter, View, node_text
from dotr.joins.graph_relations import ALL, is_aggregate, is_class, is_path, relation_name
from dotr.joins.planner import AntiJoin, JoinPlan, Probe, Step
from dotr.rdf.terms import Term

Shorten = Callable[[Term], str]

_INFIX = frozenset({"||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"})


def describe(plan: JoinPlan, shorten: Shorten = str) -> str:
    """One line per step, in execution order; `shorten` writes constants (for example with prefixes)."""
    lines: list[str] = []
    if plan.trigger is not None:
        lines.append(f"when {pattern_text(plan.trigger, shorten)}")
    elif plan.given:
        lines.append("given " + " ".join(f"?{name}" for name in plan.given))
    lines += ["  " + step_text(step, shorten) for step in plan.steps]
    lines.append("  → " + " ".join(_node(node, shorten) for node in plan.outputs))
    return "\n".join(lines)


def pattern_text(pattern: BodyPattern, shorten: Shorten = str) -> str:
    columns = [_node(node, shorten) for node in pattern.columns]
    if pattern.relation == ALL:
        return " ".join(columns)
    if is_class(pattern.relation):
        return f"{columns[0]} a {shorten(pattern.relation[2:])}"
    if is_aggregate(pattern.relation):
        return f"{pattern.relation}({', '.join(columns)})"
    relation = pattern.relation
    name = relation_name(relation) if is_path(relation) else shorten(relation)
    return f"{columns[0]} {name} {columns[1]}"


def step_text(step: Step, shorten: Shorten = str) -> str:
    match step:
        case Probe():
            how = "some" if step.exists else "test" if all(step.bound) else "find"
            return f"{how} {pattern_text(step.pattern, shorten)}   [{_access(step)}]"
        case AntiJoin():
            return f"not {pattern_text(step.pattern, shorten)}   [{_access(step)}]"
        case RowFilter():
            return f"filter {expression_text(step.condition, shorten)}"
        case Check():
            return f"filter {step.label}({', '.join('?' + name for name in step.variables)})"
        case Assign():
            return f"bind {expression_text(step.expression, shorten)} as ?{step.variable}"
        case _:
            assert_never(step)


def expression_text(expression: Expression, shorten: Shorten = str) -> str:
    match expression:
        case Const():
            return shorten(expression.term)
        case Var():
            return f"?{expression.name}"
        case Call():
            arguments = [expression_text(a, shorten) for a in expression.arguments]
            if expression.function in _INFIX:
                return f"({f' {expression.function} '.join(arguments)})"
            return f"{expression.function}({', '.join(arguments)})"
        case _:
            return type(expression).__name__.lower()


def _access(step: Probe | AntiJoin) -> str:
    names: tuple[str, ...] = (
        ("subject", "predicate", "object") if len(step.bound) == 3 else ("subject", "object")
    )
    if is_aggregate(step.pattern.relation):
        names = tuple(f"column {i + 1}" for i in range(len(step.bound)))
    by = [name for name, bound in zip(names, step.bound, strict=False) if bound]
    return f"{'by ' + ' and '.join(by) if by else 'scan'}, {View(step.view).value}"


def _node(node: Node, shorten: Shorten) -> str:
    return node_text(node) if isinstance(node, Var) else shorten(node)

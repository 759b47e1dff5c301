"""The variables of an expression or a Datalog atom, and their substitution by constants.

Place:   used by the planner (a guard runs as soon as its variables are bound), by Datalog's checks and by the
         instantiation of rules over a schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from dotr.ir import (
    Aggregate,
    AggregateAtom,
    Atom,
    Attribute,
    BindAtom,
    BodyAtom,
    Call,
    Const,
    Exists,
    Expression,
    FilterAtom,
    Node,
    NotAtom,
    TimeOf,
    Var,
)
from dotr.late import replace
from dotr.rdf.terms import Term


def nodes_variables(nodes: Iterable[Node]) -> list[str]:
    """Distinct names of the variables among nodes, in order of first appearance."""
    return list(dict.fromkeys(node.name for node in nodes if isinstance(node, Var)))


def atom_variables(atom: Atom) -> list[str]:
    return nodes_variables((atom.subject, atom.predicate, atom.object))


def expression_variables(expression: Expression) -> list[str]:
    """Names of the variables an expression mentions outside EXISTS, in order of first appearance."""
    found: dict[str, None] = {}
    todo: list[Expression] = [expression]
    while todo:
        part = todo.pop()
        match part:
            case Var():
                found[part.name] = None
            case Call():
                todo.extend(reversed(part.arguments))
            case Aggregate():
                if part.argument is not None:
                    todo.append(part.argument)
            case Const() | Attribute() | TimeOf() | Exists():
                pass
            case _:
                assert_never(part)
    return list(found)


def substitute_node(node: Node, values: Mapping[str, Term]) -> Node:
    return values.get(node.name, node) if isinstance(node, Var) else node


def substitute_atom(atom: Atom, values: Mapping[str, Term]) -> Atom:
    return Atom(
        substitute_node(atom.subject, values),
        substitute_node(atom.predicate, values),
        substitute_node(atom.object, values),
        atom.span,
    )


def substitute_expression(expression: Expression, values: Mapping[str, Term]) -> Expression:
    """The expression with constants for the variables of `values` (EXISTS and aggregates stay)."""
    match expression:
        case Var():
            term = values.get(expression.name)
            return expression if term is None else Const(term, expression.span)
        case Call():
            arguments = tuple(substitute_expression(a, values) for a in expression.arguments)
            return replace(expression, arguments=arguments)
        case Const() | Attribute() | TimeOf() | Exists() | Aggregate():
            return expression
        case _:
            assert_never(expression)


def substitute_body(item: BodyAtom, values: Mapping[str, Term]) -> BodyAtom:
    """A body atom with constants substituted, except variables that an aggregate groups by or a BIND sets."""
    match item:
        case Atom():
            return substitute_atom(item, values)
        case NotAtom():
            return NotAtom(substitute_atom(item.atom, values), item.span)
        case FilterAtom():
            return FilterAtom(substitute_expression(item.condition, values), item.span)
        case BindAtom():
            return BindAtom(substitute_expression(item.expression, values), item.variable, item.span)
        case AggregateAtom():
            return item
        case _:
            assert_never(item)

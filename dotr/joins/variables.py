"""The variables of an expression or a Datalog atom, and their substitution by constants.

Place:   used by the planner (a guard runs as soon as its variables are bound), by Datalog's checks and by the
         instantiation of rules over a schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from msgspec.structs import replace

from dotr import ir
from dotr.rdf.terms import Term


def nodes_variables(nodes: Iterable[ir.Node]) -> list[str]:
    """Distinct names of the variables among nodes, in order of first appearance."""
    return list(dict.fromkeys(node.name for node in nodes if isinstance(node, ir.Var)))


def atom_variables(atom: ir.Atom) -> list[str]:
    return nodes_variables((atom.subject, atom.predicate, atom.object))


def expression_variables(expression: ir.Expression) -> list[str]:
    """Names of the variables an expression mentions outside EXISTS, in order of first appearance."""
    found: dict[str, None] = {}
    todo: list[ir.Expression] = [expression]
    while todo:
        part = todo.pop()
        match part:
            case ir.Var():
                found[part.name] = None
            case ir.Call():
                todo.extend(reversed(part.arguments))
            case ir.Aggregate():
                if part.argument is not None:
                    todo.append(part.argument)
            case ir.Const() | ir.Attribute() | ir.TimeOf() | ir.Exists():
                pass
            case _:
                assert_never(part)
    return list(found)


def substitute_node(node: ir.Node, values: Mapping[str, Term]) -> ir.Node:
    return values.get(node.name, node) if isinstance(node, ir.Var) else node


def substitute_atom(atom: ir.Atom, values: Mapping[str, Term]) -> ir.Atom:
    return ir.Atom(
        substitute_node(atom.subject, values),
        substitute_node(atom.predicate, values),
        substitute_node(atom.object, values),
        atom.span,
    )


def substitute_expression(expression: ir.Expression, values: Mapping[str, Term]) -> ir.Expression:
    """The expression with constants for the variables of `values` (EXISTS and aggregates stay)."""
    match expression:
        case ir.Var():
            term = values.get(expression.name)
            return expression if term is None else ir.Const(term, expression.span)
        case ir.Call():
            arguments = tuple(substitute_expression(a, values) for a in expression.arguments)
            return replace(expression, arguments=arguments)
        case ir.Const() | ir.Attribute() | ir.TimeOf() | ir.Exists() | ir.Aggregate():
            return expression
        case _:
            assert_never(expression)


def substitute_body(item: ir.BodyAtom, values: Mapping[str, Term]) -> ir.BodyAtom:
    """A body atom with constants substituted, except variables that an aggregate groups by or a BIND sets."""
    match item:
        case ir.Atom():
            return substitute_atom(item, values)
        case ir.NotAtom():
            return ir.NotAtom(substitute_atom(item.atom, values), item.span)
        case ir.FilterAtom():
            return ir.FilterAtom(substitute_expression(item.condition, values), item.span)
        case ir.BindAtom():
            return ir.BindAtom(substitute_expression(item.expression, values), item.variable, item.span)
        case ir.AggregateAtom():
            return item
        case _:
            assert_never(item)

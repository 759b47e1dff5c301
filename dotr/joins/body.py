"""What can be joined: patterns over relations, absences, filters and assignments.

Place:   Datalog bodies and basic graph patterns are translated to this; planner.py orders it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TypeAlias, assert_never

from msgspec import Struct

from dotr.ir import Atom, BindAtom, Expression, FilterAtom, Node, NotAtom, Var
from dotr.joins.graph_relations import Relation, columns_of, relation_of
from dotr.joins.variables import expression_variables, nodes_variables
from dotr.rdf.terms import Term


class View(StrEnum):
    """The rows of a relation over which a pattern ranges."""

    OLD = "background"
    """The closed background alone."""
    KEPT = "background that still holds"
    """The background without what the instant removed."""
    ADDED = "overlay"
    """What the instant added."""
    REMOVED = "withdrawn"
    """What the instant removed from the background."""
    NEW = "now"
    """KEPT and ADDED: what holds at the instant."""


class BodyPattern(Struct, frozen=True):
    """Rows of a relation; equal variables must have equal values."""

    relation: Relation
    columns: tuple[Node, ...]

    @property
    def variables(self) -> list[str]:
        return nodes_variables(self.columns)


class AbsentPattern(Struct, frozen=True):
    """No such row; variables that nothing else binds are existential."""

    pattern: BodyPattern


class RowFilter(Struct, frozen=True):
    """A filter: an effective boolean value, errors are false."""

    condition: Expression


class Assign(Struct, frozen=True):
    """Bind `variable` to the value of the expression; an error ends the row, as does a different value."""

    expression: Expression
    variable: str


class Check(Struct, frozen=True):
    """A condition of the caller: a function of the values of `variables`. `label` describes it.

    `table`, for one variable: a self-filling table whose value is truthy where the function is true.
    """

    function: Callable[..., bool]
    variables: tuple[str, ...]
    label: str = "test"
    table: Mapping[Term, object] | None = None


Item: TypeAlias = BodyPattern | AbsentPattern | RowFilter | Assign | Check


def triple_pattern(subject: Node, predicate: Node, object_: Node) -> BodyPattern:
    """The pattern over the narrowest relation."""
    return BodyPattern(
        relation_of(subject, predicate, object_), tuple(columns_of(subject, predicate, object_))
    )


def from_atom(atom: Atom) -> BodyPattern:
    return triple_pattern(atom.subject, atom.predicate, atom.object)


def from_body(item: Atom | NotAtom | FilterAtom | BindAtom) -> Item:
    """A Datalog body atom (except an aggregate) as an item."""
    match item:
        case Atom():
            return from_atom(item)
        case NotAtom():
            return AbsentPattern(from_atom(item.atom))
        case FilterAtom():
            return RowFilter(item.condition)
        case BindAtom():
            return Assign(item.expression, item.variable.name)
        case _:
            assert_never(item)


def item_variables(item: Item) -> list[str]:
    """Variables an item mentions, including those it binds."""
    match item:
        case BodyPattern():
            return item.variables
        case AbsentPattern():
            return item.pattern.variables
        case RowFilter():
            return expression_variables(item.condition)
        case Assign():
            return [*expression_variables(item.expression), item.variable]
        case Check():
            return list(item.variables)
        case _:
            assert_never(item)


def bound_by(items: Iterable[Item]) -> set[str]:
    """Variables that positive patterns and assignments bind."""
    found: set[str] = set()
    for item in items:
        if isinstance(item, BodyPattern):
            found.update(item.variables)
        elif isinstance(item, Assign):
            found.add(item.variable)
    return found


def node_text(node: Node) -> str:
    return f"?{node.name}" if isinstance(node, Var) else node

"""What the literal reading asks of an operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from dotr.events import Fact
from dotr.ir.expressions import Expression
from dotr.ir.rules import Choose
from dotr.rdf.terms import Term

Row: TypeAlias = dict[str, Any]
"""One partial match: position name → fact, "?v" → the value of an aggregate or None."""

Value: TypeAlias = Callable[[Expression, Row], Term | None]
"""(expression, partial match) → its value; None for unbound or an error."""


class LiteralOperator(NamedTuple):
    """One operator. `extend`: (conjunct, partial match, its candidates in canonical order, values) → the ways
    in which it goes on, in canonical order. `counts_reference`: under FROM the reference's own fact is a
    candidate. `sees_consumed`: facts that the rule consumed are candidates.
    """

    extend: Callable[[Any, Row, list[Fact], Value], list[Row]]
    counts_reference: bool = False
    sees_consumed: bool = False


def with_each(conjunct: Choose, row: Row, facts: Sequence[Fact]) -> list[Row]:
    """The partial match, once with each of these facts."""
    return [{**row, conjunct.position.name: fact} for fact in facts]

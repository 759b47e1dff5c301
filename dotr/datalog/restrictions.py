"""What an instant may not add, as wrappers of the functions that add rows.

Place:   under inserters.py; the materialiser sets restrictions, the background is closed without any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct, field

from dotr.joins.graph_relations import Relation
from dotr.rdf.terms import Term

Adder: TypeAlias = Callable[..., None]


class Restrictions(Struct, frozen=True):
    """`refuse` is called instead of adding a row to a relation, `check` before.

    `met` is called with a relation of neither program nor background when it gets a row.
    """

    refuse: Mapping[Relation, Adder] = field(default_factory=dict)
    check: Mapping[Relation, Adder] = field(default_factory=dict)
    met: Callable[[Relation], None] = lambda relation: None


UNRESTRICTED = Restrictions()


def checked(check: Adder, add: Adder) -> Adder:
    """An adder that calls `check` first."""

    def both(*row: Term) -> None:
        check(*row)
        add(*row)

    return both

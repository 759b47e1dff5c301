"""Aggregates of SPARQL 1.1, over the exact sums and the order of the contract.

Place:   used by the compiled groups and, inside custom aggregate functions, by the full engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dotr.expressions.aggregates import summarise
from dotr.rdf.terms import Term, integer


def total(
    function: str,
    distinct: bool,
    values: Sequence[Term | None],
    summary: Callable[..., Term | None] = summarise,
) -> Term | None:
    """The aggregate of a group's values, None for an error; AVG of no values is 0 (sec. 18.5.1.4).

    `summary`: `summarise`, or its literal reading.
    """
    if function == "AVG" and not values:
        return integer(0)
    return summary(function, distinct, values)

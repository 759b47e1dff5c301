"""Aggregates: COUNT, SUM, AVG, MIN, MAX of the values of an expression; a new one is a row of AGGREGATES.

Place:   TESLA scopes, Datalog AGGREGATE, LARS windows and embedded queries read the table, as do their
         grammars and checks. accumulators.py maintains aggregates while values come and go.
Method:  language.md, sec. 3: sums are exact (rdf/sums.py), MIN and MAX use the canonical order.
Why not: SPARQL's own `<` for MIN and MAX: it is not a total order, so the result would depend on arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from dotr.rdf.sums import ExactSum
from dotr.rdf.terms import Term, integer
from dotr.rdf.values import term_key


class Aggregator(Struct, frozen=True):
    """An aggregate. `of`: its value from the candidates' values in any order, where None is an error or
    unbound; None if it has no value. `number`: whether its value is a number (of
    durations a duration).
    """

    of: Callable[[Sequence[Term | None]], Term | None]
    number: bool = False


def _count(terms: Sequence[Term | None]) -> Term | None:
    return integer(sum(1 for term in terms if term is not None))


def _sum(terms: Sequence[Term | None]) -> Term | None:
    return _exact(terms).total()


def _mean(terms: Sequence[Term | None]) -> Term | None:
    return _exact(terms).mean(len(terms))


def _exact(terms: Sequence[Term | None]) -> ExactSum:
    total = ExactSum()
    for term in terms:
        total.add(term)
    return total


def _least(terms: Sequence[Term | None]) -> Term | None:
    return min([term for term in terms if term is not None], key=term_key, default=None)


def _greatest(terms: Sequence[Term | None]) -> Term | None:
    return max([term for term in terms if term is not None], key=term_key, default=None)


AGGREGATES: Final[dict[str, Aggregator]] = {
    "COUNT": Aggregator(_count, number=True),
    "SUM": Aggregator(_sum, number=True),
    "AVG": Aggregator(_mean, number=True),
    "MIN": Aggregator(_least),
    "MAX": Aggregator(_greatest),
}
"""By keyword. Only `COUNT` may have `*` as its argument."""


def listed() -> str:
    """The keywords, for messages: COUNT, SUM, AVG, MIN or MAX."""
    *others, last = AGGREGATES
    return f"{', '.join(others)} or {last}"


def summarise(
    function: str, distinct: bool, values: Iterable[Term | None], *, star: bool = False
) -> Term | None:
    """The aggregate of one value per candidate; None among `values` is an error or unbound.

    COUNT counts the values other than None, with `star` all candidates. SUM of no values is 0; AVG, MIN, MAX
    are None (in SPARQL AVG is 0: the caller for embedded queries handles that). A None leaves SUM and AVG
    without a value; MIN and MAX skip it. `distinct` takes each term, and None, once.
    """
    taken = list(dict.fromkeys(values)) if distinct else list(values)
    return integer(len(taken)) if star else AGGREGATES[function].of(taken)

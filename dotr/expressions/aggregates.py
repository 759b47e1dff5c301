"""Aggregates: COUNT, SUM, AVG, MIN, MAX of the values an expression takes.

Place:   TESLA scopes, Datalog AGGREGATE and, as custom aggregate functions, embedded queries.
Method:  language.md, sec. 3: sums are exact (rdf/sums.py), MIN and MAX use the canonical order.
Why not: SPARQL's own `<` for MIN and MAX: it is not a total order, so the result would depend on arrival.
"""

from __future__ import annotations

from collections.abc import Iterable

from dotr.rdf.order import term_key
from dotr.rdf.sums import ExactSum
from dotr.rdf.terms import Term, integer


def summarise(
    function: str, distinct: bool, values: Iterable[Term | None], *, star: bool = False
) -> Term | None:
    """The aggregate of one value a candidate; None among `values` is an error or unbound there.

    COUNT counts the values that are there, with `star` all candidates. SUM of nothing is 0; AVG, MIN, MAX of
    nothing are None (SPARQL's AVG of nothing is 0: the caller of an embedded query says so). A None leaves
    SUM and AVG without a value and is skipped by MIN and MAX. `distinct` takes each term, and None, once.
    """
    taken = list(dict.fromkeys(values)) if distinct else list(values)
    if function == "COUNT":
        return integer(len(taken) if star else sum(1 for term in taken if term is not None))
    if function in ("MIN", "MAX"):
        present = [term for term in taken if term is not None]
        if not present:
            return None
        return min(present, key=term_key) if function == "MIN" else max(present, key=term_key)
    if function not in ("SUM", "AVG"):
        raise AssertionError(f"there is no aggregate {function}")
    total = ExactSum()
    for term in taken:
        total.add(term)
    return total.total() if function == "SUM" else total.mean(len(taken))

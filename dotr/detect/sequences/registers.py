"""What a mapping carries for ON and WITH: what can still be asked of the rows that it has given to elements.

Place:   code.py writes what a row of an element does to them, and reads them.
Method:  one register for each thing that is asked: the first rows of an element, its last rows, a count, a
         sum. Mappings fork, so a register is a value that never changes; a row makes a new one. Sums and
         means are exact sums, copied; MIN and MAX are their terms; what needs all its terms (DISTINCT,
         percentiles, COLLECT) has them as a chain of pairs, which mappings share.
Why not: the rows: `Click+` over a day would keep its clicks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from dotr.events import Fact
from dotr.expressions.accumulators import COUNTS
from dotr.expressions.aggregates import summarise
from dotr.program.sequences import Place
from dotr.rdf.sums import ExactSum
from dotr.rdf.terms import Term, integer
from dotr.rdf.values import term_key

Chain: TypeAlias = "tuple[Chain | None, Any, int] | None"
"""(what came before, an item, how many there are); or (what comes behind, an item, minus how many)."""


class Register(Struct, frozen=True):
    """One value that a mapping carries. `element`: whose rows change it, `*` for all. `start`: its value
    before any row. `dump` and `load`: as a JSON value and back.

    Rows: `place`, with room for `depth`. Totals: `add` of (value, term of the argument, or for `keeps_rows`
    the row) → value, `value` is its term.
    """

    element: str
    start: Any
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]
    place: Place | None = None
    depth: int = 0
    add: Callable[[Any, Any], Any] | None = None
    value: Callable[[Any], Term | None] | None = None
    counts: bool = False
    keeps_rows: bool = False
    is_chain: bool = False


def _same(value: Any) -> Any:
    return value


def dump_row(row: Any) -> Any:
    """A row as a JSON value."""
    return None if row is None else [row[0], list(row[1]), *row[2:]]


def row_of(plain: Any) -> Any:
    """A row from what a snapshot has of it."""
    return None if plain is None else (plain[0], tuple(plain[1]), *plain[2:])


def of_rows(element: str, place: Place, depth: int) -> Register:
    """The first or last `depth` rows of an element; of one row that itself, or None."""
    if depth == 1:
        return Register(element, None, dump_row, row_of, place, 1)
    return Register(
        element,
        (),
        lambda rows: [dump_row(row) for row in rows],
        lambda plain: tuple([row_of(row) for row in plain]),
        place,
        depth,
    )


def of_total(element: str, function: str, *, distinct: bool, star: bool, keeps_rows: bool) -> Register:
    """An aggregate."""
    if keeps_rows:
        return Register(
            element,
            None,
            lambda chain: [dump_row(row) for row in listed(chain)],
            lambda plain: _chained([row_of(row) for row in plain]),
            keeps_rows=True,
            is_chain=True,
        )
    if star:
        return Register(element, 0, _same, _same, value=_count, counts=True)
    if not distinct and function == "COUNT":
        return Register(element, 0, _same, _same, add=_count_bound, value=_count)
    if not distinct and function in ("SUM", "AVG"):
        return Register(element, ExactSum(), ExactSum.dump, ExactSum.load, add=_summed, value=_READ[function])
    if not distinct and function in ("MIN", "MAX"):
        return Register(
            element, None, _same, _same, add=_least if function == "MIN" else _greatest, value=_same
        )

    def value(chain: Chain) -> Term | None:
        return summarise(function, distinct, listed(chain))

    return Register(element, None, listed, _chained, add=chained, value=value, is_chain=True)


def listed(chain: Chain) -> list[Any]:
    """What is in a chain, the first first."""
    found = []
    grows = chain is not None and chain[2] > 0
    while chain is not None:
        chain, one, _ = chain
        found.append(one)
    if grows:
        found.reverse()
    return found


def _chained(items: list[Any]) -> Chain:
    chain: Chain = None
    for item in items:
        chain = chained(chain, item)
    return chain


def chained(chain: Chain, item: Any) -> Chain:
    """A chain with one more item."""
    return chain, item, 1 if chain is None else chain[2] + 1


def preceded(chain: Chain, item: Any) -> Chain:
    """A chain with one more item before it."""
    return chain, item, -1 if chain is None else chain[2] - 1


def _count(count: int) -> Term:
    return COUNTS[count] if count < 1 << 12 else integer(count)


def _count_bound(count: int, term: Term | None) -> int:
    return count if term is None else count + 1


def _summed(total: ExactSum, term: Term | None) -> ExactSum:
    more = ExactSum()
    more.include(total)
    more.add(term)
    return more


_READ: dict[str, Callable[[ExactSum], Term | None]] = {
    "SUM": lambda total: total.total(),
    "AVG": lambda total: total.mean(total.size),
}


def _least(best: Term | None, term: Term | None) -> Term | None:
    if best is None or term is None:
        return best or term
    return term if term_key(term) < term_key(best) else best


def _greatest(best: Term | None, term: Term | None) -> Term | None:
    if best is None or term is None:
        return best or term
    return term if term_key(term) > term_key(best) else best


def first_of(row: Any) -> Fact:
    """The fact that a row is."""
    fact: Fact = row[:4]
    return fact

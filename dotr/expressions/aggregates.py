"""Aggregates of the values of an expression: COUNT, SUM, AVG and others; a new one is a row of AGGREGATES.

Place:   TESLA scopes, Datalog AGGREGATE, LARS windows and embedded queries read the table, as do their
         grammars and checks. accumulators.py maintains aggregates while values come and go.
Method:  language.md, sec. 3: sums and moments are exact (rdf/sums.py), MIN and MAX use the canonical order;
         medians and percentiles: rdf/quantiles.py.
Why not: SPARQL's own `<` for MIN and MAX: it is not a total order, so the result would depend on arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Final

from msgspec import Struct

from dotr.rdf.quantiles import quantile
from dotr.rdf.sums import ExactMoments, mean_of, sum_of
from dotr.rdf.terms import Term, integer, list_of
from dotr.rdf.values import term_key


class Aggregator(Struct, frozen=True):
    """An aggregate. `of`: its value from the candidates' values in any order, where None is an error or
    unbound; None if it has no value. `number`: whether its value is a number (of
    durations a duration). `ordered`: `of` needs the values in the canonical order of the candidates.
    """

    of: Callable[[Sequence[Term | None]], Term | None]
    number: bool = False
    ordered: bool = False


def _count(terms: Sequence[Term | None]) -> Term | None:
    return integer(sum(1 for term in terms if term is not None))


def _collected(terms: Sequence[Term | None]) -> Term | None:
    return list_of([term for term in terms if term is not None])


def _least(terms: Sequence[Term | None]) -> Term | None:
    return min([term for term in terms if term is not None], key=term_key, default=None)


def _greatest(terms: Sequence[Term | None]) -> Term | None:
    return max([term for term in terms if term is not None], key=term_key, default=None)


SPREADS: Final = {
    "STDDEV": (True, True),
    "VARIANCE": (True, False),
    "STDDEV_POP": (False, True),
    "VAR_POP": (False, False),
}
"""Whether an aggregate is that of a sample, and whether it is the root."""

QUANTILES: Final = ("MEDIAN", "PERCENTILE")


def _spread(sample: bool, root: bool) -> Callable[[Sequence[Term | None]], Term | None]:
    def spread(terms: Sequence[Term | None]) -> Term | None:
        moments = ExactMoments()
        for term in terms:
            moments.add(term)
        return moments.spread(sample=sample, root=root)

    return spread


HALF: Final = Fraction(1, 2)


AGGREGATES: Final[dict[str, Aggregator]] = {
    "COUNT": Aggregator(_count, number=True),
    "SUM": Aggregator(sum_of, number=True),
    "AVG": Aggregator(mean_of, number=True),
    "MIN": Aggregator(_least),
    "MAX": Aggregator(_greatest),
    **{name: Aggregator(_spread(*kind), number=True) for name, kind in SPREADS.items()},
    "MEDIAN": Aggregator(partial(quantile, HALF), number=True),
    "PERCENTILE": Aggregator(partial(quantile, HALF), number=True),
    "FIRST": Aggregator(lambda terms: terms[0] if terms else None, ordered=True),
    "LAST": Aggregator(lambda terms: terms[-1] if terms else None, ordered=True),
    "COLLECT": Aggregator(_collected, ordered=True),
}
"""By keyword. Only `COUNT` may have `*` as its argument. PERCENTILE has a number, its share: the function of
an aggregate is `PERCENTILE 0.95`, which `aggregator` finds.
"""

KEYWORDS: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX")
"""Those that are no names in rule files; the others are words only where a bracket follows."""

WITH_SHARE: Final = "PERCENTILE"


def word_of(function: str) -> str:
    """The keyword of an aggregate's function."""
    return function.partition(" ")[0]


def share_of(function: str) -> Fraction:
    """The share of ranks that MEDIAN and PERCENTILE ask for."""
    return Fraction(function.partition(" ")[2] or HALF)


def aggregator(function: str) -> Aggregator:
    """The aggregate of a function."""
    word = word_of(function)
    found = AGGREGATES[word]
    return found if word == function else Aggregator(partial(quantile, share_of(function)), found.number)


def written(function: str, argument: str) -> str:
    """An aggregate as it is written: `AVG(?x)`, `PERCENTILE(?x, 0.95)`."""
    word, _, share = function.partition(" ")
    return f"{word}({argument}, {share})" if share else f"{word}({argument})"


def listed() -> str:
    """The keywords, for messages."""
    *others, last = AGGREGATES
    return f"{', '.join(others)} or {last}"


def summarise(
    function: str, distinct: bool, values: Iterable[Term | None], *, star: bool = False
) -> Term | None:
    """The aggregate of one value per candidate; None among `values` is an error or unbound.

    COUNT counts the values other than None, with `star` all candidates. SUM of no values is 0, COLLECT the
    empty list, of the others there is none (in SPARQL AVG is 0: the caller for embedded queries handles
    that). A None leaves all without a value but COUNT, COLLECT, MIN and MAX, which skip it, and FIRST and
    LAST, which take one. `distinct` takes each term, and None, once. The order of `values` matters to ordered
    aggregates alone.
    """
    taken = list(dict.fromkeys(values)) if distinct else list(values)
    return integer(len(taken)) if star else aggregator(function).of(taken)

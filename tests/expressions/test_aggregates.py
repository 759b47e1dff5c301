"""COUNT, SUM, AVG, MIN and MAX as the contract has them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dotr.expressions.aggregates import summarise
from dotr.rdf.terms import XSD, Term, canonical, integer, literal
from dotr.rdf.values import term_key
from tests.rdf import terms_strategies as t

maybe_terms = st.lists(st.none() | t.terms.map(canonical), max_size=8)
FUNCTIONS = ["COUNT", "SUM", "AVG", "MIN", "MAX"]


def decimal(text: str) -> Term:
    return literal(text, XSD + "decimal")


@given(maybe_terms, st.sampled_from(FUNCTIONS), st.booleans(), st.randoms())
def test_the_order_of_candidates_never_matters(
    values: list[Term | None], function: str, distinct: bool, random: object
) -> None:
    expected = summarise(function, distinct, values)
    random.shuffle(values)  # type: ignore[attr-defined]  # hypothesis types its Random as object here
    assert summarise(function, distinct, values) == expected


@given(maybe_terms)
def test_minimum_and_maximum_follow_the_canonical_order(values: list[Term | None]) -> None:
    present = sorted((v for v in values if v is not None), key=term_key)
    assert summarise("MIN", False, values) == (present[0] if present else None)
    assert summarise("MAX", False, values) == (present[-1] if present else None)


def test_aggregates_of_nothing() -> None:
    assert [summarise(f, False, []) for f in FUNCTIONS] == [integer(0), integer(0), None, None, None]


def test_an_error_leaves_sum_and_mean_without_a_value_and_is_not_counted() -> None:
    values = [integer(3), None, integer(1)]
    assert [summarise(f, False, values) for f in FUNCTIONS] == [
        integer(2),
        None,
        None,
        integer(1),
        integer(3),
    ]
    assert summarise("COUNT", False, values, star=True) == integer(3)


def test_distinct_takes_each_term_once() -> None:
    values = [integer(2), integer(2), decimal("2")]
    assert summarise("COUNT", True, values) == integer(2)
    assert summarise("SUM", True, values) == decimal("4")
    assert summarise("AVG", False, [integer(2), integer(2), integer(5)]) == decimal("3")
    assert summarise("AVG", True, [integer(2), integer(2), integer(5)]) == decimal("3.5")

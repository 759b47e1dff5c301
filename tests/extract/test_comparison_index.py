"""The index of constants gives each value to just the members whose comparison is true of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.extract.sharing import HOLDS, ComparisonIndex
from dotr.rdf.terms import XSD, Term, canonical, literal
from dotr.rdf.values import decode
from tests.extract.strategies import LITERALS, RESOURCES

NEAR = [
    canonical(literal(lexical, XSD + datatype))
    for datatype, lexicals in {
        "integer": ["16777216", "16777217", "9007199254740992", "9007199254740993", "-1"],
        "decimal": ["0.1", "0.3", "16777217.0", "9007199254740993.5", "0.100000001490116119"],
        "double": ["0.1", "0.30000000000000004", "9007199254740992", "-0.0", "INF", "-INF", "NaN"],
        "float": ["0.1", "16777216", "3.4e38", "INF", "NaN", "0.3"],
        "dateTime": ["2026-01-01T00:00:00Z", "2026-01-01T12:00:00", "2026-01-02T00:00:00-01:00"],
        "duration": ["P1D", "PT24H", "P1M"],
    }.items()
    for lexical in lexicals
]  # fmt: skip
terms = st.sampled_from([*NEAR, *LITERALS, *RESOURCES, "_:x"])


@pytest.mark.parametrize("operator", sorted(HOLDS))
@given(constants=st.lists(terms, min_size=1, max_size=12), values=st.lists(terms, min_size=1, max_size=6))
def test_index_passes_what_the_operator_passes(
    operator: str, constants: list[Term], values: list[Term]
) -> None:
    index = ComparisonIndex(operator, constants)
    holds = HOLDS[operator]
    for term in values:
        wanted = tuple(i for i, c in enumerate(constants) if holds(decode(term), decode(c)) is True)
        assert index.passing(term) == wanted
        assert index.any(term) is (wanted != ())
    assert index.passing(None) == ()

"""An index finds every key that `=` equates, and no other, in whatever order keys come and go."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dotr.detect.analysis import equality
from dotr.expressions.equal_terms import KeyIndex, equal_terms, equality_class, has_peers
from dotr.rdf.terms import XSD, Term, canonical
from tests.detect.building import attribute, call, equal
from tests.detect.worlds import ODD_KEYS


def typed(lexical: str, name: str) -> Term:
    return canonical(f'"{lexical}"^^<{XSD}{name}>')


TERMS: tuple[Term, ...] = (
    *(key for key in ODD_KEYS if key is not None),
    "_:b0",
    '"x"@en',
    typed("0.1", "decimal"),
    typed("0.1", "double"),
    typed("0.100000000000000001", "decimal"),
    typed("9007199254740993", "decimal"),
    typed("1", "float"),
    typed("0.1", "float"),
    typed("16777217", "integer"),
    typed("16777216", "float"),
    typed("NaN", "float"),
    typed("INF", "double"),
    typed("-INF", "float"),
    typed("INF", "float"),
    typed("-0.0", "double"),
    typed("0", "integer"),
    typed("2020-01-01", "date"),
    typed("2020-01-01Z", "date"),
    typed("2020-01-01+14:00", "date"),
    typed("2019-12-31-10:00", "date"),
    typed("2019-12-31", "date"),
    typed("12:00:00Z", "time"),
    typed("13:00:00+01:00", "time"),
    typed("P1D", "duration"),
    typed("PT24H", "dayTimeDuration"),
    typed("P0M", "yearMonthDuration"),
    typed("PT0S", "dayTimeDuration"),
    typed("2020-01-01T12:00:00", "dateTime"),
    typed("2020-01-01T12:00:00Z", "dateTimeStamp"),
    typed("x", "integer"),
    '"x"^^<urn:x:type>',
    '"y"^^<urn:x:type>',
)


def test_equal_terms_share_their_class() -> None:
    for one in TERMS:
        for other in TERMS:
            if equal_terms(one, other):
                assert equality_class(one, floats=True) == equality_class(other, floats=True), (one, other)
                if not (one.endswith("#float>") or other.endswith("#float>")):
                    assert equality_class(one) == equality_class(other), (one, other)
                assert one == other or (has_peers(one) and has_peers(other))


@given(st.lists(st.tuples(st.sampled_from(("put", "put", "put", "remove", "find")), st.sampled_from(TERMS))))
def test_an_index_is_a_search_by_equality(steps: list[tuple[str, Term]]) -> None:
    index: KeyIndex[Term] = KeyIndex()
    model: set[Term] = set()
    for action, term in steps:
        if action == "put":
            assert index.put(term, term) == equal_terms(term, term)
            model |= {term} if equal_terms(term, term) else set()
        elif action == "remove" and term in model:
            index.remove(term)
            model.remove(term)
        expected = {key for key in model if equal_terms(key, term)}
        quick = index.table.get(term)
        assert (set(index.find(term)) if quick is None else {quick}) == expected
        assert index.exact(term) == (term if term in model else None)
    assert {key for key, _ in index.items()} == model
    assert len(index) == len(model)


@given(
    st.lists(st.tuples(st.sampled_from(TERMS), st.sampled_from(TERMS)), max_size=8),
    st.tuples(st.sampled_from(TERMS), st.sampled_from(TERMS)),
)
@settings(max_examples=50)
def test_several_keys_are_equal_part_by_part(keys: list[tuple[Term, Term]], probe: tuple[Term, Term]) -> None:
    index: KeyIndex[tuple[Term, Term]] = KeyIndex()
    for key in keys:
        index.put(key, key)
    found = index.table.get(probe)
    expected = {k for k in keys if equal_terms(k[0], probe[0]) and equal_terms(k[1], probe[1])}
    assert (set(index.find(probe)) if found is None else {found}) == expected


def test_an_unbound_part_equals_nothing() -> None:
    index: KeyIndex[int] = KeyIndex()
    assert not index.put(None, 1)
    assert not index.put((TERMS[0], None), 1)
    assert index.find(None) == []
    assert index.find((TERMS[0], None)) == []
    assert len(index) == 0


def test_only_an_equation_with_the_candidate_alone_on_one_side_is_a_key() -> None:
    sides = attribute("A.k"), attribute("T.k")
    assert equality(equal("A.k", "T.k"), "A") == sides
    assert equality(equal("T.k", "A.k"), "A") == sides
    assert equality(equal("T.k", "U.k"), "A") is None
    assert equality(equal(call("+", "A.v", "T.v"), "T.k"), "A") is None
    assert equality(equal("T.k", call("+", "A.v", "T.v")), "A") is None

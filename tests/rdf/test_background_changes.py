"""The index after insertions and removals is the one made of what is left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dotr.rdf.index import Background, many
from dotr.rdf.terms import Triple

_names = st.integers(0, 30).map(lambda n: f"<http://example.org/n{n}>")
_few = st.integers(0, 2).map(lambda n: f"<http://example.org/p{n}>")
_triples = st.one_of(
    st.tuples(_names, _few, st.just("<http://example.org/hub>")), st.tuples(_names, _few, _names)
)


def same(changed: Background, anew: Background) -> None:
    assert set(changed) == set(anew)
    assert len(changed) == len(anew) == changed.count
    for predicate, column in changed.forward.items():
        assert changed.size(predicate) == anew.size(predicate)
        for key, values in column.items():
            assert sorted(many(values)) == sorted(many(anew.forward[predicate][key]))
        for key, values in changed.backward[predicate].items():
            assert sorted(many(values)) == sorted(many(anew.backward[predicate][key]))
        assert set(changed.backward[predicate]) == set(anew.backward.get(predicate, ()))
    for subject, predicate, object_ in anew:
        assert predicate in changed.predicates_from(subject)
        assert predicate in changed.predicates_into(object_)
        assert sorted(changed.predicates_from(subject)) == sorted(anew.predicates_from(subject))
        assert sorted(changed.predicates_into(object_)) == sorted(anew.predicates_into(object_))


@given(
    st.lists(_triples, max_size=60), st.lists(st.tuples(st.booleans(), _triples), max_size=120), st.booleans()
)
def test_changes_leave_the_index_of_what_is_left(
    start: list[Triple], changes: list[tuple[bool, Triple]], asked: bool
) -> None:
    index = Background(start)
    left = set(start)
    if asked:
        index.predicates_from("<x>")
        index.predicates_into("<x>")
    for insert, triple in changes:
        if insert:
            assert index.insert(*triple) == (triple not in left)
            left.add(triple)
        else:
            assert index.remove(*triple) == (triple in left)
            left.discard(triple)
        assert triple not in index or insert
    same(index, Background(left))
    same(Background.load(index.save()), Background(left))


def test_a_key_with_many_values_gets_and_loses_one_without_a_look_at_the_others() -> None:
    index = Background((f"<s{n}>", "<p>", "<hub>") for n in range(50))
    assert index.insert("<new>", "<p>", "<hub>")
    values = index.backward["<p>"]["<hub>"]
    assert isinstance(values, dict)
    assert index.remove("<s7>", "<p>", "<hub>")
    assert index.backward["<p>"]["<hub>"] is values
    assert "<s7>" not in values

"""Shortest walks along property paths: which nodes are reached, and by which triples."""

from hypothesis import given
from hypothesis import strategies as st

from dotr.explain.solutions import nodes, walks
from dotr.joins.store import TripleIndex
from dotr.program import Alternative, Inverse, NegatedSet, Path, Repeat
from dotr.program import Sequence as SequencePath
from dotr.rdf.index import Background
from dotr.rdf.terms import Triple

P, Q = "<p>", "<q>"
CHAIN = [("<a>", P, "<b>"), ("<b>", P, "<c>"), ("<c>", P, "<a>"), ("<a>", Q, "<c>")]


def store_of(triples: list[Triple]) -> TripleIndex:
    return TripleIndex(Background(triples))


def test_a_predicate_leads_along_its_triples_and_backwards_against_them() -> None:
    store = store_of(CHAIN)
    assert walks(P, "<a>", store) == {"<b>": (("<a>", P, "<b>"),)}
    assert walks(P, "<a>", store, backwards=True) == {"<c>": (("<c>", P, "<a>"),)}
    assert walks(Inverse(P), "<a>", store) == walks(P, "<a>", store, backwards=True)
    assert walks(Inverse(Inverse(P)), "<a>", store) == walks(P, "<a>", store)


def test_a_sequence_takes_its_steps_in_the_order_of_the_walk() -> None:
    store = store_of(CHAIN)
    path = SequencePath((Q, P))
    assert walks(path, "<a>", store) == {"<a>": (("<a>", Q, "<c>"), ("<c>", P, "<a>"))}
    assert walks(path, "<a>", store, backwards=True) == {"<a>": (("<c>", P, "<a>"), ("<a>", Q, "<c>"))}


def test_of_two_walks_to_a_node_the_shorter_one_is_kept() -> None:
    store = store_of(CHAIN)
    found = walks(Alternative((SequencePath((P, P)), Q)), "<a>", store)
    assert found == {"<c>": (("<a>", Q, "<c>"),)}
    both = walks(Repeat(Alternative((P, Q)), 1, unbounded=True), "<a>", store)
    assert {node: len(walk) for node, walk in both.items()} == {"<b>": 1, "<c>": 1, "<a>": 2}


def test_repetition_ends_in_a_cycle_and_may_be_of_length_zero() -> None:
    store = store_of(CHAIN)
    star = walks(Repeat(P, 0, unbounded=True), "<a>", store)
    assert {node: len(walk) for node, walk in star.items()} == {"<a>": 0, "<b>": 1, "<c>": 2}
    plus = walks(Repeat(P, 1, unbounded=True), "<a>", store)
    assert len(plus["<a>"]) == 3, "around the cycle"
    assert set(walks(Repeat(P, 0, unbounded=False), "<a>", store)) == {"<a>", "<b>"}
    assert walks(Repeat(P, 0, unbounded=True), "<nowhere>", store) == {"<nowhere>": ()}


def test_a_negated_set_takes_one_triple_of_any_other_predicate() -> None:
    store = store_of(CHAIN)
    assert walks(NegatedSet((P,), ()), "<a>", store) == {"<c>": (("<a>", Q, "<c>"),)}
    assert walks(NegatedSet((), (Q,)), "<a>", store) == {"<c>": (("<c>", P, "<a>"),)}
    assert set(walks(NegatedSet((P,), (P,)), "<c>", store)) == {"<a>"}
    assert walks(NegatedSet((), ()), "<c>", store) == {"<a>": (("<c>", P, "<a>"),)}
    assert walks(NegatedSet((Q,), ()), "<a>", store, backwards=True) == {"<c>": (("<c>", P, "<a>"),)}


def test_nodes_are_subjects_and_objects_in_order() -> None:
    assert nodes(store_of(CHAIN)) == ["<a>", "<b>", "<c>"]
    assert nodes(store_of([])) == []


NAMES = st.sampled_from(["<a>", "<b>", "<c>", "<d>"])
TRIPLES = st.lists(st.tuples(NAMES, st.sampled_from([P, Q]), NAMES), max_size=8, unique=True)
PATHS: st.SearchStrategy[Path] = st.recursive(
    st.sampled_from([P, Q]),
    lambda inner: st.one_of(
        st.builds(Inverse, inner),
        st.builds(SequencePath, st.tuples(inner, inner)),
        st.builds(Alternative, st.tuples(inner, inner)),
        st.builds(Repeat, inner, st.sampled_from([0, 1]), st.booleans()).filter(
            lambda path: path.unbounded or path.minimum == 0
        ),
    ),
    max_leaves=4,
)


@given(TRIPLES, PATHS)
def test_forwards_and_backwards_agree_and_every_walk_is_made_of_triples_that_hold(
    triples: list[Triple], path: Path
) -> None:
    store = store_of(triples)
    there = {(start, node) for start in nodes(store) for node in walks(path, start, store)}
    back = {(node, end) for end in nodes(store) for node in walks(path, end, store, backwards=True)}
    assert there == back
    for start in nodes(store):
        assert all(triple in triples for walk in walks(path, start, store).values() for triple in walk)

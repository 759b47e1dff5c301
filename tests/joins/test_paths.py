"""Pairs that property paths join, against the standard's definition, in every view of an instant."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.budget import Exhausted
from dotr.extract.rewriting import may_be_empty
from dotr.joins.paths import PathRelation, StrongComponents, automaton
from dotr.joins.plan import View
from dotr.joins.store import TripleIndex
from dotr.program import Alternative, Inverse, NegatedSet, Path, Repeat, Sequence
from dotr.rdf.index import Background
from dotr.rdf.terms import Term, Triple
from tests.extract.states import closed, enter
from tests.extract.strategies import PREDICATES, RESOURCES, SUBJECTS, ex, paths

Pairs = set[tuple[Term, Term]]

_LINKS = [(s, p, o) for s in SUBJECTS for p in PREDICATES for o in [*SUBJECTS, '"1"']]
links = st.lists(st.sampled_from(_LINKS), max_size=12, unique=True)
ends = st.sampled_from([None, None, RESOURCES[0], '"1"', ex("nowhere")])
repeated = paths().filter(lambda path: not isinstance(path, Inverse | Sequence | Alternative | NegatedSet))


def by_definition(path: Path, graph: Collection[Triple], nodes: Collection[Term]) -> Pairs:
    """SPARQL 1.1, sec. 18.4, over the nodes that zero-length paths join with themselves."""
    match path:
        case str():
            return {(s, o) for s, p, o in graph if p == path}
        case Inverse(inner):
            return {(o, s) for s, o in by_definition(inner, graph, nodes)}
        case Sequence(steps):
            found = by_definition(steps[0], graph, nodes)
            for step in steps[1:]:
                found = after(found, by_definition(step, graph, nodes))
            return found
        case Alternative(steps):
            return set().union(*(by_definition(step, graph, nodes) for step in steps))
        case NegatedSet(forward, inverse):
            ahead = {(s, o) for s, p, o in graph if p not in forward} if forward or not inverse else set()
            return ahead | ({(o, s) for s, p, o in graph if p not in inverse} if inverse else set())
        case Repeat(inner, minimum, unbounded):
            step = by_definition(inner, graph, nodes)
            found = set(step)
            while unbounded and not after(found, step) <= found:
                found |= after(found, step)
            return found if minimum else found | {(node, node) for node in nodes}
    raise AssertionError(path)


def after(first: Pairs, second: Pairs) -> Pairs:
    return {(a, d) for a, b in first for c, d in second if b == c}


def wanted(path: Path, graph: Collection[Triple], subject: Term | None, object_: Term | None) -> Pairs:
    constants = {end for end in (subject, object_) if end is not None}
    nodes = {node for s, _, o in graph for node in (s, o)}
    pairs = by_definition(path, graph, nodes | constants)
    if constants:
        zero = {(end, end) for end in constants} if may_be_empty(path) else set()
        pairs = {p for p in pairs if p[0] != p[1] or p in zero or p in by_definition(path, graph, nodes)}
    return {(s, o) for s, o in pairs if subject in (None, s) and object_ in (None, o)}


@given(repeated, ends, ends, links, links, st.integers(0, 6))
def test_pairs_are_those_of_the_standard_in_every_view(
    path: Path,
    subject: Term | None,
    object_: Term | None,
    background: list[Triple],
    more: list[Triple],
    cut: int,
) -> None:
    store = closed(background)
    relation = store.path("p", automaton(path), (subject, object_))
    added = [triple for triple in more if triple not in background]
    removed = [triple for triple in background[:cut] if triple not in more]
    old = wanted(path, background, subject, object_)
    new = wanted(path, (set(background) - set(removed)) | set(added), subject, object_)
    for _ in range(2):  # the second instant finds nothing of the first
        enter(store, added, removed)
        assert by_view(relation, View.ADDED) == new - old
        assert by_view(relation, View.REMOVED) == old - new
        assert by_view(relation, View.OLD) == old
        assert by_view(relation, View.KEPT) == old & new
        assert by_view(relation, View.NEW) == new
    enter(store, [])
    assert by_view(relation, View.NEW) == old


def by_view(relation: PathRelation, view: View) -> Pairs:
    """All pairs, found from either end, from both, and without any."""
    nodes = [*SUBJECTS, '"1"', ex("nowhere")]
    subjects = [end for end in nodes if relation.ends[0] in (None, end)]
    objects = [end for end in nodes if relation.ends[1] in (None, end)]
    found = [
        [pair for s in subjects for o in objects for pair in relation.find((s, o), view)],
        [pair for s in subjects for pair in relation.find((s, relation.ends[1]), view)],
        [pair for o in objects for pair in relation.find((relation.ends[0], o), view)],
        relation.find(relation.ends, view),
    ]
    pairs = set(found[0])
    for each in found:
        assert len(each) == len(pairs), "a pair is there twice, or not from everywhere"
        assert set(each) == pairs
    return pairs


def clique(size: int) -> list[Triple]:
    return [(ex(f"n{i}"), ex("e"), ex(f"n{j}")) for i in range(size) for j in range(size) if i != j]


def chain(size: int) -> list[Triple]:
    return [(ex(f"n{i}"), ex("e"), ex(f"n{i + 1}")) for i in range(size)]


def nested(depth: int) -> Path:
    return ex("e") if depth == 0 else Repeat(nested(depth - 1), 0, True)


def units(path: Path, graph: Collection[Triple], ends: tuple[Term | None, Term | None]) -> int:
    """What it costs to find the pairs in the background."""
    store = TripleIndex(Background(graph))
    relation = store.path("p", automaton(path), ends)
    before = store.meter.used
    relation.find(ends, View.OLD)
    return store.meter.used - before


def test_nested_stars_cost_what_one_star_costs() -> None:
    graph = clique(30)
    assert units(nested(4), graph, (None, None)) == units(nested(1), graph, (None, None))


def test_all_pairs_of_a_clique_cost_its_edges_and_its_pairs() -> None:
    assert units(Repeat(ex("e"), 1, True), clique(100), (None, None)) < 15 * 100 * 100


def test_one_end_of_a_chain_costs_its_length() -> None:
    assert units(Repeat(ex("e"), 1, True), chain(1_000), (ex("n0"), None)) < 12_000


def test_a_pair_is_found_without_walking_further() -> None:
    assert units(Repeat(ex("e"), 1, True), chain(1_000), (ex("n0"), ex("n3"))) < 50


def test_an_edge_at_the_end_of_a_chain_costs_its_length_and_not_its_square() -> None:
    store = closed(chain(1_000))
    relation = store.path("p", automaton(Repeat(ex("e"), 1, True)), (None, None))
    enter(store, [(ex("n1000"), ex("e"), ex("n1001"))])
    before = store.meter.used
    assert len(relation.find((None, None), View.ADDED)) == 1_001
    assert store.meter.used - before < 150_000


@pytest.mark.parametrize(
    "ends", [(None, None), (ex("n0"), None), (None, ex("n0")), (ex("n0"), ex("nowhere"))]
)
def test_a_walk_that_is_too_long_is_stopped(ends: tuple[Term | None, Term | None]) -> None:
    store = closed(clique(100))
    store.meter.open(2_000)
    relation = store.path("p", automaton(Repeat(Sequence((ex("e"), ex("e"))), 1, True)), ends)
    with pytest.raises(Exhausted):
        relation.find(ends, View.OLD)


def test_components_come_with_what_they_lead_to() -> None:
    edges = {0: [1], 1: [2, 3], 2: [0], 3: [4], 4: [3, 5], 5: []}
    components = StrongComponents(lambda vertex: edges[vertex])
    first = components.of(4)
    assert [sorted(members) for members in components.members] == [[5], [3, 4]]
    assert sorted(components.members[components.of(0)]) == [0, 1, 2]
    assert list(components.below([components.of(2)])) == [2, first, components.of(5)]


def test_a_path_as_long_as_a_program_may_be_has_a_small_automaton() -> None:
    wide = Repeat(Alternative(tuple(ex(f"p{i}") for i in range(3_000))), 0, True)
    assert len(automaton(wide).forward.moves) == 2
    long = Repeat(Sequence(tuple(ex(f"p{i}") for i in range(3_000))), 1, True)
    assert len(automaton(long).forward.moves) == 3_001

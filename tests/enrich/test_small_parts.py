"""Parts of Datalog alone: triples by pattern, components of a graph and the way from one node to another."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dotr.enrich.analysis import components, path
from dotr.enrich.owl import TripleSet
from dotr.program import Atom, Var

A, B, P = "<urn:a>", "<urn:b>", "<urn:p>"
X, Y = Var("x"), Var("y")


def test_a_pattern_finds_every_triple_that_agrees_with_what_is_bound() -> None:
    known = TripleSet([(A, P, B), (B, P, B), (A, "<urn:q>", A)])
    assert list(known.matches(Atom(X, P, Y), {})) == [{"x": A, "y": B}, {"x": B, "y": B}]
    assert list(known.matches(Atom(X, P, X), {})) == [{"x": B}]
    assert list(known.matches(Atom(X, P, Y), {"x": A})) == [{"x": A, "y": B}]
    assert list(known.matches(Atom(A, Y, A), {})) == [{"y": "<urn:q>"}]
    assert not known.holds(Atom(B, "<urn:q>", Y), {})
    assert not known.add((A, P, B))
    assert known.add((B, "<urn:q>", A))
    assert known.holds(Atom(B, "<urn:q>", Y), {})


GRAPHS = st.dictionaries(st.integers(0, 6), st.lists(st.integers(0, 6), max_size=4), max_size=7)


def reached(graph: dict[int, list[int]], start: int) -> set[int]:
    found, todo = set[int](), [start]
    while todo:
        for target in graph.get(todo.pop(), []):
            if target not in found:
                found.add(target)
                todo.append(target)
    return found


@given(GRAPHS)
def test_components_are_who_reach_each_other_successors_first(graph: dict[int, list[int]]) -> None:
    found = components(graph)
    place = {node: number for number, component in enumerate(found) for node in component}
    assert sorted(place) == sorted({*graph, *(t for ts in graph.values() for t in ts)})
    for one in place:
        for other in place:
            together = one == other or (other in reached(graph, one) and one in reached(graph, other))
            assert (place[one] == place[other]) == together
        assert all(place[target] <= place[one] for target in graph.get(one, []))


@given(GRAPHS, st.integers(0, 6), st.integers(0, 6))
def test_a_path_is_a_shortest_one_or_none(graph: dict[int, list[int]], start: int, end: int) -> None:
    found = path(graph, start, end, set(range(7)))
    if not found:
        assert start != end
        assert end not in reached(graph, start)
        return
    assert (found[0], found[-1]) == (start, end)
    assert all(b in graph.get(a, []) for a, b in pairwise(found))
    near, steps = {start}, 0
    while end not in near:
        near |= {target for node in near for target in graph.get(node, [])}
        steps += 1
    assert len(found) == steps + 1


def test_a_path_stays_inside() -> None:
    graph = {1: [2, 3], 2: [4], 3: [5], 5: [4]}
    assert path(graph, 1, 4, {1, 2, 3, 4, 5}) == [1, 2, 4]
    assert path(graph, 1, 4, {1, 3, 4, 5}) == [1, 3, 5, 4]
    assert path(graph, 1, 4, {1, 3, 4}) == []

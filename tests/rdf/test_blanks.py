"""Labels of stream blank nodes come from content, and graphs never join through them."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.rdf import blanks
from dotr.rdf.blanks import _refine, label_background, label_stream
from dotr.rdf.terms import Triple

LABEL = re.compile(r"_:[A-Za-z0-9][A-Za-z0-9_]*")

nodes = st.sampled_from(["_:a", "_:b", "_:c", "_:d", "_:e", "<urn:x>", "<urn:y>"])
triples = st.tuples(nodes, st.sampled_from(["<urn:p>", "<urn:q>"]), nodes | st.sampled_from(['"1"', '"2"']))
graphs = st.lists(triples, min_size=1, max_size=7)


def rename(graph: list[Triple], seed: int) -> list[Triple]:
    """Another document of the same graph: other labels, other order, a repeat."""
    rng = random.Random(seed)
    names = sorted({t for s, _, o in graph for t in (s, o) if t[0] == "_"})
    fresh = dict(zip(names, rng.sample([f"_:n{i}" for i in range(20)], len(names)), strict=True))
    copy = [(fresh.get(s, s), p, fresh.get(o, o)) for s, p, o in graph]
    rng.shuffle(copy)
    return [*copy, copy[0]]


def isomorphic(a: list[Triple], b: list[Triple]) -> bool:
    """By trying every renaming; for a handful of blank nodes."""
    left = sorted({t for s, _, o in a for t in (s, o) if t[0] == "_"})
    right = sorted({t for s, _, o in b for t in (s, o) if t[0] == "_"})
    if len(left) != len(right):
        return False
    wanted = set(b)
    for choice in permutations(right):
        to = dict(zip(left, choice, strict=True))
        if {(to.get(s, s), p, to.get(o, o)) for s, p, o in a} == wanted:
            return True
    return False


def symmetric(graph: list[Triple]) -> bool:
    """Whether plain rounds of refinement leave two blank nodes equal."""
    colours = {t: "" for s, _, o in graph for t in (s, o) if t[0] == "_"}
    for _ in colours:
        seen: dict[str, list[str]] = {node: [] for node in colours}
        for s, p, o in set(graph):
            if s in colours:
                seen[s].append(f"out {p} {colours.get(o, o)} {s == o}")
            if o in colours:
                seen[o].append(f"in {p} {colours.get(s, s)} {s == o}")
        keys = {node: f"{colours[node]}|{sorted(seen[node])}" for node in colours}
        ranks = {key: str(i) for i, key in enumerate(sorted(set(keys.values())))}
        colours = {node: ranks[keys[node]] for node in colours}
    return len(set(colours.values())) < len(colours)


@given(graphs, st.integers(0, 1000))
def test_labels_do_not_depend_on_names_or_order_unless_nodes_are_indistinguishable(
    graph: list[Triple], seed: int
) -> None:
    [one] = label_stream([graph], 10)
    [other] = label_stream([rename(graph, seed)], 10)
    if not symmetric(graph):
        assert set(one) == set(other)


@given(graphs, st.integers(0, 1000))
def test_renaming_alone_never_changes_a_label(graph: list[Triple], seed: int) -> None:
    names = sorted({t for s, _, o in graph for t in (s, o) if t[0] == "_"})
    fresh = dict(
        zip(names, random.Random(seed).sample([f"_:n{i}" for i in range(9)], len(names)), strict=True)
    )
    copy = [(fresh.get(s, s), p, fresh.get(o, o)) for s, p, o in graph]
    assert label_stream([graph], 10) == label_stream([copy], 10)


@given(graphs)
def test_a_labelled_graph_is_the_graph_renamed(graph: list[Triple]) -> None:
    [labelled] = label_stream([graph], 10)
    assert len(labelled) == len(graph)
    assert isomorphic(graph, labelled)
    for s, _, o in labelled:
        assert all(LABEL.fullmatch(t) for t in (s, o) if t[0] == "_")


@given(graphs, graphs)
def test_graphs_share_labels_only_if_one_is_the_other_renamed_at_another_push(
    a: list[Triple], b: list[Triple]
) -> None:
    def labels(graph: list[Triple]) -> set[str]:
        return {t for s, _, o in graph for t in (s, o) if t[0] == "_"}

    together = label_stream([a, b, a], 10)
    assert all(not labels(together[i]) & labels(together[j]) for i in range(3) for j in range(3) if i != j)
    assert not labels(label_stream([a], 10)[0]) & labels(label_stream([a], 11)[0])
    if labels(label_stream([a], 10)[0]) & labels(label_stream([b], 10)[0]):
        assert isomorphic(a, b)


@given(graphs)
def test_equal_graphs_of_one_instant_are_numbered(graph: list[Triple]) -> None:
    first, second = label_stream([graph, graph], 10)
    assert first == label_stream([graph], 10)[0]
    assert (first == second) == all(s[0] != "_" and o[0] != "_" for s, _, o in graph)


@given(
    st.integers(2, 12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 3), st.integers(0, 11)), max_size=30),
)
def test_refinement_reaches_the_coarsest_stable_partition(n: int, arcs: list[tuple[int, int, int]]) -> None:
    edges: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for a, label, b in arcs:
        if a % n != b % n:
            edges[a % n].append((2 * label, b % n))
            edges[b % n].append((2 * label + 1, a % n))
    cells = _refine([dict.fromkeys(range(n))], edges)
    colour = [0] * n
    for _ in range(n):
        keys = [
            (colour[v], tuple(sorted(Counter((label, colour[w]) for label, w in edges[v]).items())))
            for v in range(n)
        ]
        rank = {key: i for i, key in enumerate(sorted(set(keys)))}
        colour = [rank[key] for key in keys]
    coarsest = {frozenset(v for v in range(n) if colour[v] == c) for c in set(colour)}
    assert {frozenset(cell) for cell in cells} == coarsest


class Counted(list[list[tuple[int, int]]]):
    """Edges that count how often a node's are looked at."""

    looks = 0

    def __getitem__(self, node: Any) -> Any:
        self.looks += 1
        return super().__getitem__(node)


def chain(n: int) -> list[Triple]:
    return [(f"_:l{i}", "<urn:rest>", f"_:l{i + 1}") for i in range(n)]


def star(n: int) -> list[Triple]:
    arms = [("_:hub", "<urn:has>", f"_:m{i}") for i in range(n)]
    return arms + [(f"_:m{i}", "<urn:value>", f'"{i % 100}"') for i in range(n)]


def tree(n: int) -> list[Triple]:
    return [(f"_:t{i}", "<urn:child>", f"_:t{c}") for i in range(n // 2) for c in (2 * i + 1, 2 * i + 2)]


def tangle(n: int) -> list[Triple]:
    return [(f"_:r{i}", p, f"_:r{(i * 7 + 1) % n}") for i in range(n) for p in ("<urn:p>", "<urn:q>")]


@pytest.mark.parametrize("shape", [chain, star, tree, tangle])
def test_refinement_looks_at_each_node_a_logarithmic_number_of_times(
    shape: Callable[[int], list[Triple]], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[Counted] = []

    def refine(cells: list[dict[int, None]], edges: list[list[tuple[int, int]]]) -> list[dict[int, None]]:
        counted.append(Counted(edges))
        return _refine(cells, counted[0])

    monkeypatch.setattr(blanks, "_refine", refine)
    n = 20_000
    label_stream([shape(n)], 0)
    assert counted[0].looks < n * (n.bit_length() + 1)


def test_a_list_of_fifty_thousand_blank_nodes_is_labelled() -> None:
    [labelled] = label_stream([chain(50_000)], 0)
    assert len({s for s, _, _ in labelled}) == 50_000


def test_background_labels_follow_what_is_said_and_how_often_it_was_said_before() -> None:
    document = [("_:x", "<urn:p>", "_:y"), ("_:y", "<urn:p>", "_:x")]
    seen: dict[str, int] = {}
    [first, second] = label_background(document, seen)
    assert first[0] == second[2]
    assert first[2] == second[0]
    assert first[0].endswith("_0")
    assert first[2].endswith("_1")
    assert label_background(document, {}) == [first, second]
    assert not {first[0], first[2]} & {t for triple in label_background(document, seen) for t in triple}
    assert all(LABEL.fullmatch(t) for t in (first[0], first[2]))


@given(graphs, graphs, st.integers(0, 2**32))
def test_a_background_that_says_more_keeps_the_labels_of_what_it_said(
    graph: list[Triple], more: list[Triple], seed: int
) -> None:
    labelled = label_background(graph, {})
    assert isomorphic(graph, labelled)
    if not symmetric(graph):
        assert set(label_background(rename(graph, seed), {})) == set(labelled)
    other = [(_apart(s), p, _apart(o)) for s, p, o in more]
    assert label_background([*graph, *other], {})[: len(graph)] == labelled


def _apart(node: str) -> str:
    return node.replace("_:", "_:z")


def test_one_restriction_that_changes_leaves_the_others() -> None:
    document = [
        triple
        for n in range(50)
        for triple in (
            (f"<urn:C{n}>", "<urn:sub>", f"_:r{n}"),
            (f"_:r{n}", "<urn:onProperty>", f"<urn:p{n}>"),
            (f"_:r{n}", "<urn:someValuesFrom>", "<urn:D>"),
        )
    ]
    before = set(label_background(document, {}))
    document[1] = ("_:r0", "<urn:onProperty>", "<urn:q>")
    assert len(before - set(label_background(document, {}))) == 3

"""Split text has the terms that pyoxigraph has, whatever stands in its literals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.io.decode.documents import Format
from dotr.io.decode.rdf import distinct_triples, parse_quads, parse_triples, quad_runs, split_triples
from dotr.rdf.terms import canonical

INTEGER = ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer")
IRIS = [ox.NamedNode(iri) for iri in ("urn:a", "urn:b", "http://x/é#")]
TEXTS = st.one_of(
    st.sampled_from(['" <urn:a> .\n', " ", "<<( a b c )>>", 'x "y" <urn:a>', "--ltr", "\\", "\u2028 \x85"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
LITERALS = st.one_of(
    TEXTS.map(ox.Literal),
    TEXTS.map(lambda text: ox.Literal(text, language="en-GB")),
    TEXTS.map(lambda text: ox.Literal(text, datatype=IRIS[0])),
    st.integers().map(lambda n: ox.Literal(f"0{n}" if n >= 0 else str(n), datatype=INTEGER)),
)
NODES = st.sampled_from([*IRIS, ox.BlankNode("b1"), ox.BlankNode("b2")])
QUADS = st.lists(
    st.builds(
        ox.Quad,
        NODES,
        st.sampled_from(IRIS),
        NODES | LITERALS,
        st.sampled_from([*IRIS, ox.BlankNode("g"), ox.DefaultGraph()]),
    ),
    max_size=8,
)


def terms(quad: ox.Quad) -> tuple[str, str, str, str]:
    graph = "" if quad.graph_name == ox.DefaultGraph() else str(quad.graph_name)
    return str(quad.subject), str(quad.predicate), canonical(str(quad.object)), graph


def written(statements: Sequence[ox.Quad] | Sequence[ox.Triple], format_: ox.RdfFormat) -> str:
    content = ox.serialize(statements, format=format_)
    assert content is not None
    return content.decode()


@given(QUADS)
def test_quads_are_what_was_written_and_neighbours_of_a_graph_are_one_run(quads: list[ox.Quad]) -> None:
    text = written(quads, ox.RdfFormat.N_QUADS)
    runs = quad_runs(text, "x")
    assert [(*triple, graph) for graph, triples in runs for triple in triples] == list(map(terms, quads))
    assert all(one[0] != other[0] or not one[0] for one, other in pairwise(runs))
    assert all(graph or len(triples) == 1 for graph, triples in runs)
    assert parse_quads(text, Format.NQUADS) == list(map(terms, quads))


@given(QUADS)
def test_triples_are_what_was_written_once_each(quads: list[ox.Quad]) -> None:
    triples = [terms(quad)[:3] for quad in quads]
    text = written([quad.triple for quad in quads], ox.RdfFormat.N_TRIPLES)
    assert distinct_triples(text, "x") == parse_triples(text) == list(dict.fromkeys(triples))
    assert split_triples(text) == triples


@pytest.mark.parametrize(
    "term", ["<<( <urn:a> <urn:b> <urn:c> )>>", '<<( <urn:a> <urn:b> "x" )>>', '"x"@en--rtl']
)
@pytest.mark.parametrize("graph", ["", " <urn:g>", " _:g"])
def test_rdf_12_is_refused_behind_any_quad_of_the_same_graph(term: str, graph: str) -> None:
    first = "".join(f"<urn:a> <urn:b> {o}{graph} .\n" for o in ("<urn:c>", '"x y"'))
    with pytest.raises(DataError):
        quad_runs(f"{first}<urn:a> <urn:b> {term}{graph} .\n", "x")

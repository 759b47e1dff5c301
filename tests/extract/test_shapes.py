"""Which queries share a shape, and which of their filters are taken out of it."""

from __future__ import annotations

import pytest

from dotr.extract.printing import query_text
from dotr.extract.rewriting import spell_out, with_known_functions
from dotr.extract.sharing import Comparison, shape_of
from dotr.lang import parse_query
from dotr.program import Call, Const, Var
from dotr.rdf.terms import integer

HEAD = "PREFIX : <urn:> "


def test_queries_that_differ_in_names_and_thresholds_have_one_shape() -> None:
    one, ours = shape_of(parse_query(HEAD + "SELECT ?s { ?s :val ?v FILTER(?v > 60) }"))
    other, theirs = shape_of(parse_query(HEAD + "SELECT ?a { ?a :val ?b FILTER(90 < ?b) }"))
    assert one == other
    assert (ours, theirs) == ((integer(60),), (integer(90),))
    assert one.comparisons == (Comparison("v1", ">"),)
    assert (one.width, one.query.variables) == (1, ("v0", "v1"))


def test_a_compared_variable_that_is_selected_is_not_selected_again() -> None:
    shape, _ = shape_of(parse_query(HEAD + "SELECT ?v { ?s :val ?v FILTER(?v > 6 && ?v <= 9) }"))
    assert shape.width == len(shape.query.variables) == 1
    assert [c.operator for c in shape.comparisons] == [">", "<="]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (COUNT(?v) AS ?n) { ?s :val ?v FILTER(?v > 60) }",
        "SELECT ?v { ?s :val ?v FILTER(?v > 60) } ORDER BY ?v LIMIT 1",
        "SELECT ?v { ?s :val ?v FILTER(?v > 60) } VALUES ?s { :a }",
        "SELECT ?v { ?s :val ?v FILTER(?w > 60) }",
        "SELECT ?v { ?s :val ?v FILTER(?v > ?s) }",
        "SELECT ?v { ?s :val ?v FILTER(?v > 60 || ?v < 6) }",
    ],
)
def test_a_filter_whose_rows_are_not_the_answers_stays(text: str) -> None:
    shape, constants = shape_of(parse_query(HEAD + text))
    assert (shape.comparisons, constants) == ((), ())
    assert "FILTER" in query_text(shape.query)


def test_an_alias_is_spelled_out_where_a_later_expression_uses_it() -> None:
    select = parse_query(HEAD + "SELECT (?v + 1 AS ?a) (?a * 2 AS ?b) { ?s :val ?v } ORDER BY ?a (?b + ?a)")
    found = spell_out(select)
    one, two = (Const(integer(number)) for number in (1, 2))
    first = Call("+", (Var("v"), one))
    second = Call("*", (first, two))
    assert [p.expression for p in found.projection] == [first, second]
    assert [key.expression for key in found.order_by] == [Var("a"), Call("+", (second, first))]


def test_a_call_of_an_unknown_function_is_an_error_and_a_cast_is_not() -> None:
    xsd = "<http://www.w3.org/2001/XMLSchema#integer>"
    text = (
        f"SELECT ?v {{ ?s :val ?v {{ SELECT ?v {{ ?s :val ?v FILTER(:odd(?v)) }} }} FILTER({xsd}(?v) > 1) }}"
    )
    found = query_text(with_known_functions(parse_query(HEAD + text)))
    assert "COALESCE()" in found
    assert "odd" not in found
    assert f"{xsd}(?v)" in found

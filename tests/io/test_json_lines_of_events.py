"""JSON lines of events by a function for each rule: what stands ready, and what is left to others."""

from __future__ import annotations

import json

import pytest

from dotr.emit.templates import RuleTemplate
from dotr.events import Clock, Composite, Fact
from dotr.io.events import TimeTexts, line_writer
from dotr.program import Fresh, Rule, TemplateVar
from dotr.rdf.terms import RDF_TYPE, integer, literal
from tests.detect.building import A, at, last, rule, within

X, Y, V = Fresh("dotr_x"), Fresh("dotr_y"), TemplateVar("v")
P, Q = "<urn:x:p>", "<urn:x:q>"
GIVE = {"v": "S.v", 'w"': "S.k"}


def of(*triples: object) -> Rule:
    return rule("R", at("S"), last(at("H"), within(9, "S")), give=GIVE, template=triples)  # type: ignore[arg-type]  # tests


def line(of: Rule, facts: tuple[Fact, ...], clock: Clock) -> tuple[dict[str, object], list[str]]:
    """The line of an event, and what was left to others."""
    left: list[str] = []

    def fact(names: tuple[str, ...], fact: Fact, clock: Clock) -> str:
        left.append("fact")
        return '"general"'

    def graph(event: Composite) -> str:
        left.append("graph")
        return '"general"'

    template = RuleTemplate(of)
    match = (0,), facts[0][0], facts, (facts[0][1][1] or "", A)
    text = line_writer(template, clock, fact, graph, TimeTexts(clock))("1", match)
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    found: dict[str, object] = json.loads(text)
    return found, left


def pair(value: str | None) -> tuple[Fact, Fact]:
    return (5_000_000, (A, literal('"q"\n{}')), 0, ""), (4_000_000, (A, value), 0, "")


def test_a_line_is_the_event_with_its_graph_sorted() -> None:
    found, left = line(of((X, Q, V), (X, P, Y), (X, RDF_TYPE, A)), pair(integer(1)), Clock())
    assert left == []
    assert list(found) == ["rule", "time", "id", "bindings", "match", "graph"]
    assert (found["rule"], found["time"], found["id"]) == ("R", 5, "urn:dotr:R:1")
    assert list(found["bindings"]) == ["v", 'w"']  # type: ignore[call-overload]
    match = found["match"]
    assert isinstance(match, dict)
    assert (match["H"]["time"], list(match["H"]["values"])) == (4, ["k", "v"])
    graph = found["graph"]
    assert isinstance(graph, str)
    lines = graph.splitlines(keepends=True)
    assert lines == sorted(lines)
    assert '<urn:dotr:R:1> <urn:x:q> "\\"q\\"\\n{}" .\n' in lines
    assert "<urn:dotr:R:1> <urn:x:p> <urn:dotr:R:1-y> .\n" in lines


@pytest.mark.parametrize(
    "triples",
    [
        [(X, P, V), (X, P, A)],
        [(X, P, V), (Y, P, A)],
        [(X, V, A)],
        [(A, P, X)],
    ],
)
def test_a_graph_whose_order_depends_on_values_is_left(triples: list[object]) -> None:
    found, left = line(of(*triples), pair(integer(1)), Clock())
    assert (found["graph"], left) == ("general", ["graph"])


def test_a_fact_that_is_an_event_or_has_no_value_somewhere_is_left() -> None:
    found, left = line(of((X, P, V)), pair(None), Clock())
    assert left == ["fact"]
    assert isinstance(found["match"], dict)
    assert found["match"]["H"] == "general"
    trigger, chosen = pair(integer(1))
    _, left = line(of((X, P, V)), (trigger, (*chosen[:3], "urn:dotr:Q:1")), Clock())
    assert left == ["fact"]


def test_times_are_in_the_form_of_the_input() -> None:
    times = [line(of((X, P, V)), pair(A), clock)[0]["time"] for clock in (Clock(True, 1_000), Clock(False))]
    assert times == [5_000, "1970-01-01T00:00:05Z"]

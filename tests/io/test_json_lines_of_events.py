"""JSON lines of events by a function for rules of one form: their parts, and what is shared."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from dotr.emit.templates import Row, RuleTemplate
from dotr.events import Clock, Composite, Fact, no_fact
from dotr.io.events import LineWriters, TimeTexts, format_jsonl
from dotr.program import Fresh, Rule, TemplateVar
from dotr.rdf.terms import RDF_TYPE, integer, literal
from tests.detect.building import A, B, at, last, rule, within

X, Y, V = Fresh("dotr_x"), Fresh("dotr_y"), TemplateVar("v")
P, Q = "<urn:x:p>", "<urn:x:q>"
GIVE = {"v": "S.v", 'w"': "S.k"}


def of(*triples: object) -> Rule:
    return rule("R", at("S"), last(at("H"), within(9, "S")), give=GIVE, template=triples)  # type: ignore[arg-type]  # tests


def line(of: Rule, facts: tuple[Fact, ...], clock: Clock) -> dict[str, object]:
    """The line of an event, which is also what is written by hand."""
    template = RuleTemplate(of)
    values = facts[0][1][1] or "", A
    write, constants = LineWriters([template], clock, TimeTexts(clock)).of(0)
    stamp = TimeTexts(clock).stamp(facts[0][0])
    (text,) = write([constants], [("1", stamp, facts, values)])
    event = Composite(template, "urn:dotr:R:1", ((0,), facts[0][0], facts, values))
    assert text == f"{format_jsonl(event, clock)}\n"
    found: dict[str, object] = json.loads(text)
    return found


def pair(value: str | None) -> tuple[Fact, Fact]:
    return (5_000_000, (A, literal('"q"\n{}')), 0, ""), (4_000_000, (A, value), 0, "")


def test_a_line_is_the_event_with_its_graph_sorted() -> None:
    found = line(of((X, Q, V), (X, P, Y), (X, RDF_TYPE, A)), pair(integer(1)), Clock())
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
def test_a_graph_whose_order_depends_on_values_is_sorted(triples: list[object]) -> None:
    found = line(of(*triples), pair(integer(1)), Clock())
    assert isinstance(found["graph"], str)
    lines = found["graph"].splitlines()
    assert lines == sorted(lines)


def test_a_fact_that_is_an_event_or_has_no_value_somewhere_says_so() -> None:
    found = line(of((X, P, V)), pair(None), Clock())
    assert isinstance(found["match"], dict)
    assert list(found["match"]["H"]["values"]) == ["k"]
    trigger, chosen = pair(integer(1))
    found = line(of((X, P, V)), (trigger, (*chosen[:3], "urn:dotr:Q:1")), Clock())
    assert isinstance(found["match"], dict)
    assert found["match"]["H"]["id"] == "urn:dotr:Q:1"


def named(name: str, chosen: str, *triples: object, optional: bool = False, give: object = None) -> Rule:
    conjunct = replace(last(at(chosen), within(9, f"S{name}")), optional=optional)
    given = {"v": f"S{name}.v"} if give is None else give
    return rule(name, at(f"S{name}"), conjunct, give=given, template=triples)  # type: ignore[arg-type]  # tests


WIDE = {"v": "SD.v", "w": "SD.k"}
"""Of a rule of another form."""


@pytest.mark.parametrize(
    ("rules", "writers"),
    [
        ([named("A", "H", (X, P, V)), named("B", "L", (X, Q, V)), named("C", "H", (X, P, A))], 2),
        ([named("A", "H", (X, P, V), optional=True), named("B", "H", (X, P, V), optional=True)], 1),
        ([named("A", "H", (X, P, V), optional=True), named("B", "L", (X, P, V), optional=True)], 2),
        ([named("A", "H", (X, P, V), optional=True), named("B", "H", (X, P, V))], 2),
        ([named("A", "H", (X, P, V), (X, P, A)), named("B", "H", (X, P, V), (X, P, A))], 2),
        ([named("A", "H", (X, P, V)), named("D", "H", (X, P, V), give=WIDE)], 2),
    ],
)
@pytest.mark.parametrize("fact", [(4_000_000, (A, B), 0, ""), no_fact(2)], ids=["a fact", "none"])
def test_rules_of_one_form_have_one_function(rules: list[Rule], writers: int, fact: Fact) -> None:
    templates, clock = list(map(RuleTemplate, rules)), Clock(False)
    made, stamp = LineWriters(templates, clock, times := TimeTexts(clock)), times.stamp(5_000_000)
    found = [made.of(number) for number in range(len(rules))]
    assert len({id(write) for write, _ in found}) == writers
    facts = (5_000_000, (A, literal("x")), 0, ""), fact
    for write, _ in found:
        alike = [n for n, (other, _) in enumerate(found) if other is write]
        if fact == no_fact(2) and not all(templates[n].optional for n in alike):
            continue  # they always have one
        values = (literal("x"), A)[: len(templates[alike[0]].variables)]
        rows: list[Row] = [(name, stamp, facts, values) for name in "12"]
        events = [
            Composite(templates[n], templates[n].prefix + name, ((n,), 5_000_000, facts, values))
            for name in "12"
            for n in alike
        ]
        written = write([found[n][1] for n in alike], rows)
        assert written == [f"{format_jsonl(event, clock)}\n" for event in events]


def test_times_are_in_the_form_of_the_input() -> None:
    times = [line(of((X, P, V)), pair(A), clock)["time"] for clock in (Clock(True, 1_000), Clock(False))]
    assert times == [5_000, "1970-01-01T00:00:05Z"]

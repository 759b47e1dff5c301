"""What lasts, maintained and recomputed: the same facts, the same instants refused, and both go on alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dotr.enrich import maintenance
from dotr.enrich.owl import rules_over
from dotr.enrich.rules import check_rules
from dotr.errors import DotrError, Severity
from dotr.events import Clock, Message, Time
from dotr.lang import parse_datalog, parse_program, parse_query
from dotr.lasting.instants import LastingRun, Maintenance
from dotr.program import DatalogRule, Entailment, Program, RelationToStream, Select, StandingQuery
from dotr.rdf.terms import OWL, RDFS, Triple
from dotr.reference.enrich import closure, contradictions
from tests.lasting.histories import UNIT, histories, holds, triples
from tests.lasting.recomputation import RecomputedJumps

History = list[tuple[Time, list[Message]]]
Change = tuple[int, Program, list[Triple]] | None
Schema = list[tuple[int, Triple, bool]]

RULES = [
    "",
    "<ex:p>(?x, ?z) :- <ex:p>(?x, ?y), <ex:p>(?y, ?z) .",
    "<ex:q>(?y, ?x) :- <ex:p>(?x, ?y) . <ex:C>(?x) :- <ex:q>(?x, ?x) .",
    "<ex:D>(?x) :- <ex:C>(?x), NOT <ex:p>(?x, ?y) .",
    """<ex:s>(?x, ?y) :- <ex:p>(?x, ?y), NOT <ex:q>(?y, ?x) .
    <ex:s>(?x, ?z) :- <ex:s>(?x, ?y), <ex:r>(?y, ?z) . <ex:D>(?x) :- <ex:s>(?x, ?x) .""",
    "<ex:n>(?x, ?n) :- AGGREGATE(<ex:p>(?x, ?y) ON ?x BIND COUNT(?y) AS ?n) . <ex:C>(?x) :- <ex:n>(?x, 2) .",
    "[?y, ?p, ?x] :- [?x, ?p, ?y], <ex:C>(?x) .",
]
SCHEMA: list[Triple] = [
    ("<ex:C>", f"<{RDFS}subClassOf>", "<ex:D>"),
    ("<ex:p>", f"<{RDFS}domain>", "<ex:C>"),
    ("<ex:C>", f"<{OWL}disjointWith>", "<ex:D>"),
    ("<ex:p>", f"<{OWL}inverseOf>", "<ex:q>"),
    ("<ex:a>", f"<{OWL}sameAs>", "<ex:b>"),
]
QUERIES = [
    "SELECT ?x ?y { ?x <ex:p> ?y }",
    "SELECT ?x { ?x <ex:p> ?y }",
    "SELECT DISTINCT ?x { ?x <ex:p> ?y }",
    "SELECT ?x ?y ?z { ?x <ex:p> ?y . ?y <ex:q> ?z }",
    "SELECT ?x ?z { ?x a <ex:C> OPTIONAL { ?x <ex:r> ?z } }",
    "SELECT ?x { ?x a <ex:D> MINUS { ?x <ex:q> ?y } }",
    "SELECT ?x { ?x a <ex:C> FILTER NOT EXISTS { ?x <ex:p> ?x } }",
    "SELECT (COUNT(*) AS ?n) { ?x <ex:p> ?y }",
    "SELECT ?x (COUNT(?y) AS ?n) { ?x <ex:s> ?y } GROUP BY ?x",
    "SELECT ?s ?p { ?s ?p <ex:a> }",
    "SELECT ?x ?y { ?x <ex:p>+ ?y }",
    "SELECT ?x ?n { ?x <ex:n> ?n }",
    "SELECT ?y { { SELECT DISTINCT ?y { ?x <ex:p> ?y } } }",
    "SELECT ?x { ?x <ex:p> ?y } ORDER BY ?x LIMIT 1",
]
_ENTAILED: dict[Entailment, list[DatalogRule]] = {
    Entailment.NONE: [],
    **{
        kind: list(parse_datalog(Path(f"rules/{kind}.dlog").read_text()))
        for kind in (Entailment.RDFS, Entailment.OWL2RL)
    },
}
_selects: list[Select] = [parse_query(text, prefixes={}) for text in QUERIES]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Some rules, plain queries, and changes of answers."""
    rules = [
        rule for text in draw(st.sets(st.sampled_from(RULES), max_size=2)) for rule in parse_datalog(text)
    ]
    entailment = draw(st.sampled_from([Entailment.NONE] * 6 + [Entailment.RDFS, Entailment.OWL2RL]))
    rules += _ENTAILED[entailment]
    if any(finding.severity is Severity.ERROR for finding in check_rules(rules)):
        rules = _ENTAILED[entailment]
    plain = draw(st.lists(st.sampled_from(_selects), max_size=2))
    moving = draw(st.lists(st.sampled_from(_selects), min_size=1, max_size=3))
    standing = {
        f"S{i}{operator.name}": StandingQuery(operator, select, "")
        for i, select in enumerate(moving)
        for operator in RelationToStream
    }
    queries = {f"Q{i}": select for i, select in enumerate(plain)}
    return Program(
        queries, datalog=tuple(rules), entailment=entailment, holds=draw(holds()), standing=standing
    )


_background = st.lists(st.one_of(triples, triples, st.sampled_from(SCHEMA)), max_size=6, unique=True)
_changed = st.one_of(st.none(), st.none(), st.tuples(st.integers(0, 14), programs(), _background))


def _with_schema(history: History, schema: Sequence[tuple[int, Triple, bool]]) -> History:
    """Some schema inserted and deleted by messages of their own."""
    found = dict(history)
    for time, triple, insert in schema:
        message = Message(insert=[triple]) if insert else Message(delete=[triple])
        found[time * UNIT] = [*found.get(time * UNIT, []), message]
    return sorted(found.items())


def _gone(jumps: LastingRun, time: Time, parts: Sequence[Message]) -> tuple[object, ...]:
    """What happens at one instant: facts, or what is wrong with it and what happens without its messages."""
    try:
        return (jumps.at(time, parts, False).facts,)
    except DotrError as error:
        code = error.diagnostics[0].code
    if parts:
        return code, *_gone(jumps, time, ())
    return code, jumps.overlook(time, False).facts


def _reported(
    engine: type[LastingRun],
    program: Program,
    background: list[Triple],
    history: History,
    change: Change,
    saved: set[int],
) -> list[object]:
    jumps = engine(program, background, Clock())
    came, reported = dict(history), []
    if change is not None:
        jumps.replace(change[0] * UNIT, change[1], change[2])
    for time in range(0, 22 * UNIT, UNIT):
        if time in came or jumps.next() == time:
            reported.append((time // UNIT, *_gone(jumps, time, came.get(time, ()))))
            if time // UNIT in saved and not (change is not None and time < change[0] * UNIT):
                state = json.loads(json.dumps(jumps.snapshot()))
                jumps = engine(jumps.program, change[2] if change is not None else background, Clock())
                jumps.restore(state)
    return reported


_schema = st.lists(st.tuples(st.integers(0, 14), st.sampled_from(SCHEMA), st.booleans()), max_size=1)
_saved = st.sets(st.integers(0, 14), max_size=2)


@given(programs(), _background, histories(), _schema, _changed, _saved)
def test_maintenance_and_recomputation_give_the_same(
    program: Program,
    background: list[Triple],
    history: History,
    schema: Schema,
    change: Change,
    saved: set[int],
) -> None:
    _give_the_same(program, background, history, schema, change, saved)


@given(programs(), _background, histories(), _schema, _changed, _saved)
def test_the_end_of_most_of_what_is_stated_gives_the_same_closed_again(
    program: Program,
    background: list[Triple],
    history: History,
    schema: Schema,
    change: Change,
    saved: set[int],
) -> None:
    with patch.multiple(maintenance, _FEW=-1, _OF_A_RULE=0):  # however few statements that are
        _give_the_same(program, background, history, schema, change, saved)


def _give_the_same(
    program: Program,
    background: list[Triple],
    history: History,
    schema: Schema,
    change: Change,
    saved: set[int],
) -> None:
    history = _with_schema(history, schema)
    rules = rules_over(program, background)
    try:
        state = closure(rules, background)
    except DotrError:
        return
    if contradictions(rules, state):
        return  # refused when it is deployed
    maintained = _reported(LastingRun, program, background, history, change, saved)
    assert maintained == _reported(RecomputedJumps, program, background, history, change, saved)


WINDOW = """QUERY P := { SELECT ?x ?z { ?x <ex:p> ?y . ?y <ex:p> ?z } }
RULE R DEFINE { dotr_r a <ex:R> } FROM B := ISTREAM P"""


@pytest.mark.parametrize(("share", "anew"), [(0.5, False), (0.6, True), (1.0, True)])
@pytest.mark.parametrize("latest", ["", "HOLD <ex:q> LATEST"])
def test_a_window_of_which_more_than_half_is_replaced_is_closed_anew(
    share: float, anew: bool, latest: str
) -> None:
    """However much comes instead: what ends is counted against what was stated, and nothing is timed."""
    program = parse_program(f"HOLD <ex:p> FOR 2 s {latest} {WINDOW}")
    program = replace(program, datalog=tuple(parse_datalog("[?y, <ex:q>, ?x] :- [?x, <ex:p>, ?y] .")))
    edges = [(f"<ex:n{i}>", "<ex:p>", f"<ex:n{i + 1}>") for i in range(3_000)]
    first, later = edges[: int(1_500 * share)], edges[int(1_500 * share) : 1_500]
    with patch.object(
        Maintenance, "_close_anew", autospec=True, side_effect=Maintenance._close_anew
    ) as closed:
        jumps = LastingRun(program, [], Clock())
        jumps.at(0, [Message(first)], False)
        jumps.at(UNIT, [Message(later)], False)
        jumps.at(2 * UNIT, [Message(edges[1_500:])], False)
    assert closed.called == anew
    assert set(jumps.stated()) == {*later, *edges[1_500:]}

"""Rules that differ in a threshold are answered together, whatever else their ON asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.detect.detector import TeslaDetector
from dotr.events import Clock
from dotr.lang import parse_program
from dotr.program import Within
from dotr.rdf.terms import XSD

RULE = """
RULE Fire{n} DEFINE {{ dotr_id1 a :Fire ; :room ?room ; :v ?v }}
FROM Smoke{n} := {{ SELECT ?room ?s WHERE {{ ?room :smoke ?s }} }}
AND {select} Hot{n} := {{ SELECT ?room ?v ?w WHERE {{ ?room :hot ?v ; :by ?w {filter} }} }}
    WITHIN 9 s FROM Smoke{n} ON Hot{n}.?room = Smoke{n}.?room{on} && {residual}
WITH ?room := Smoke{n}.?room , ?v := {value}
"""
RESIDUALS = {
    "up to": "3.5 >= Smoke{n}.time - Hot{n}.time",
    "times": "Smoke{n}.time - Hot{n}.time < 4",
    "values": "Hot{n}.?w < Smoke{n}.?s",
    "both": "Smoke{n}.time - Hot{n}.time > 1 && Hot{n}.?w != Smoke{n}.?s",
}

BOUNDED = """PREFIX : <urn:x:>
RULE R DEFINE { dotr_id1 a :R } FROM A := { SELECT ?x WHERE { ?x a :A } }
AND LAST B := { SELECT ?x WHERE { ?x a :B } } WITHIN 5 min FROM A ON B.?x = A.?x && CONDITION
"""
SELECTIONS = ["LAST", "EACH", "FIRST", "LAST 2", "FIRST 2", "NOT"]
AGGREGATES = ["COUNT(*) AS ?a OVER", "MAX(Hot{n}.?v) AS ?a OVER", "SUM(Smoke{n}.?s + Hot{n}.?w) AS ?a OVER"]
VALUES = {"NOT": "Smoke{n}.?s", **dict.fromkeys(AGGREGATES, "?a")}


def _pipeline(select: str, residual: str, in_query: bool, rules: int = 4) -> Pipeline:
    texts = []
    value = VALUES.get(select, "Hot{n}.?v")
    for n, threshold in enumerate((3, 1, 2, 1)[:rules]):
        filter_ = f"FILTER(?v > {threshold})" if in_query else ""
        on = "" if in_query else f" && Hot{n}.?v > {threshold}"
        rest = RESIDUALS[residual].replace("{n}", str(n))
        given = value.replace("{n}", str(n))
        texts.append(
            RULE.format(
                n=n, select=select.replace("{n}", str(n)), filter=filter_, on=on, residual=rest, value=given
            )
        )
    pipeline = Pipeline(Deployment(parse_program("PREFIX : <urn:x:>\n" + "".join(texts))), verify=True)
    pipeline.begin(Clock())
    return pipeline


@pytest.mark.parametrize("select", SELECTIONS)
@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("in_query", [True, False], ids=["filter", "on"])
def test_a_further_condition_does_not_part_rules(select: str, residual: str, in_query: bool) -> None:
    detector = _pipeline(select, residual, in_query)._detect
    assert isinstance(detector, TeslaDetector)
    assert len(detector.network.groups) == 1


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("in_query", [True, False], ids=["filter", "on"])
def test_each_rule_gets_the_newest_fact_above_its_own_threshold(residual: str, in_query: bool) -> None:
    pipeline = _pipeline("LAST", residual, in_query)

    def value(number: int) -> str:
        return f'"{number}"^^<{XSD}integer>'

    for time, hot in [(0, 4), (1, 2)]:
        triples = [("<urn:x:a>", "<urn:x:hot>", value(hot)), ("<urn:x:a>", "<urn:x:by>", value(0))]
        assert not list(pipeline.push(time * 1_000_000, triples))
    smoke = [("<urn:x:a>", "<urn:x:smoke>", value(3))]
    found = [*pipeline.push(3_000_000, smoke), *pipeline.finish()]
    values = {event.rule: event.bound[1] for event in found}
    assert values == {"Fire0": value(4), "Fire1": value(2), "Fire2": value(4), "Fire3": value(2)}


number = st.integers(0, 4).map(lambda value: f'"{value}"^^<{XSD}integer>')
room = st.sampled_from(["<urn:x:a>", "<urn:x:b>"])
graph = st.one_of(
    st.tuples(room, number).map(lambda g: [(g[0], "<urn:x:smoke>", g[1])]),
    st.tuples(room, number, number).map(lambda g: [(g[0], "<urn:x:hot>", g[1]), (g[0], "<urn:x:by>", g[2])]),
)


@given(
    st.sampled_from([*SELECTIONS, *AGGREGATES]),
    st.sampled_from(list(RESIDUALS)),
    st.booleans(),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 3), graph), max_size=25),
)
def test_rules_answered_together_find_what_the_literal_reading_finds(
    select: str,
    residual: str,
    in_query: bool,
    rules: int,
    stream: list[tuple[int, list[tuple[str, str, str]]]],
) -> None:
    pipeline = _pipeline(select, residual, in_query, rules)
    time = 0
    for step, triples in stream:
        time += step * 1_000_000
        pipeline.push(time, triples)
    pipeline.finish()


@pytest.mark.parametrize(
    ("condition", "micros"),
    [
        ("A.time - B.time < 30", 29_999_999),
        ("30 > A.time - B.time", 29_999_999),
        ("A.time - B.time <= 0.0000015", 1),
        ("A.time - B.time < 0.0000015", 1),
        ("A.time - B.time < 0.000002", 1),
        ("A.time - B.time <= 0", 0),
        ("A.time - B.time < 0", None),
        ("A.time - B.time < 3e1", None),
        ("A.time - B.time > 30", None),
        ("B.time - A.time < 30", None),
        ("A.time - B.time < 30 || true", None),
    ],
)
def test_what_bounds_how_far_back_a_fact_lies_is_a_narrower_window(
    condition: str, micros: int | None
) -> None:
    program = parse_program(BOUNDED.replace("CONDITION", condition))
    (step,) = TeslaDetector(program, Clock()).network.plans[0].steps
    assert isinstance(step.conjunct.window, Within)
    assert step.conjunct.window.duration == (300_000_000 if micros is None else micros)
    assert (step.residual is None) == (micros is not None)
    assert step.retention == 300_000_000

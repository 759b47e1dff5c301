"""Equalities of individuals that the schema mentions, where something lasts: applied while they last, noted,
and gone with what they follow from.
"""

from __future__ import annotations

import re

import pytest

from dotr.enrich.materialiser import Materialiser
from dotr.enrich.owl import rules_over
from dotr.errors import DataError
from dotr.events import Clock, Message
from dotr.joins.plan import ALL
from dotr.lasting.instants import LastingInstant, LastingRun
from dotr.rdf.terms import Triple
from dotr.reference.lasting import LiteralLasting, LiteralStatements
from tests.enrich.test_entailment import turtle
from tests.equality.streams import SECOND, program
from tests.lasting.recomputation import RecomputedJumps

SCHEMA = (
    ":p a owl:InverseFunctionalProperty ; owl:inverseOf :p ."
    " :C owl:equivalentClass :r . :r owl:onProperty :p ; owl:hasValue :b"
)


class Run:
    """Owns an engine and the literal reading, which must refuse the same, and what is stated."""

    def __init__(self, holds: str, background: str, engine: type[LastingRun] = LastingRun) -> None:
        self.program = program(re.sub(r":(\w+)", r"<http://example.org/\1>", holds))
        stated = turtle(background)
        self.jumps = engine(self.program, stated, Clock(), materialize_all=True)
        self.literal = LiteralLasting(self.program, stated, Clock())
        self.statements = LiteralStatements.of(stated)
        self.time = 0

    def go(self, **parts: str) -> LastingInstant:
        """The next second, with a message. K(t) and M(t) are those of a new deployment."""
        self.time += SECOND
        message = Message(**{name: turtle(text) for name, text in parts.items()})  # type: ignore[arg-type]
        jump = self.jumps.at(self.time, [message], False)
        facts = self.literal.at(self.time, [message])
        assert {name: sorted(found) for name, found in jump.facts.items()} == {
            name: sorted(found) for name, found in facts.items()
        }
        self.statements, _ = self.statements.after(self.time, [message], self.program.holds)
        if message.graph is not None:
            stated = sorted(self.statements.at(self.time))
            fresh = Materialiser(rules_over(self.program, stated), stated, needed={ALL})
            fresh.instant(dict.fromkeys(message.graph))
            assert {fact[1] for fact in jump.facts["All"]} == set(fresh.state())
        return jump

    def refused(self, text: str) -> str:
        """The code with which a graph is refused, by both."""
        message = Message(graph=turtle(text))
        with pytest.raises(DataError) as raised:
            self.jumps.at(self.time + SECOND, [message], False)
        with pytest.raises(DataError):
            self.literal.at(self.time + SECOND, [message])
        return raised.value.diagnostics[0].code


def changed(jump: LastingInstant, stream: str) -> set[Triple]:
    return {fact[1] for fact in jump.facts.get(stream, ())}  # type: ignore[misc]  # three values each


@pytest.mark.parametrize("engine", [LastingRun, RecomputedJumps])
@pytest.mark.parametrize("holds", ["HOLD :p", "HOLD *", "HOLD :p FOR 9 s", "HOLD * FOR 9 s"])
def test_a_held_equality_of_what_the_schema_mentions_is_a_note_and_ends(
    holds: str, engine: type[LastingRun]
) -> None:
    run = Run(holds, SCHEMA, engine)
    noted = run.go(graph=":a :p :a, :b")
    assert [one.code for one in noted.findings] == ["D2602"]
    assert "sameAs" in noted.findings[0].label
    schema = turtle(":r owl:hasValue :a")
    names = {standing.operator.name: name for name, standing in run.program.standing.items()}
    assert set(schema) <= changed(noted, names["ISTREAM"])
    over = run.go(delete=":a :p :b")
    assert set(schema) | set(turtle(":a owl:sameAs :b . :a :p :b . :a a :C")) <= changed(
        over, names["DSTREAM"]
    )
    assert not over.findings


def test_an_equality_of_a_graph_that_is_not_held_is_the_instants_and_leaves_the_schema() -> None:
    run = Run("HOLD :other", SCHEMA)
    jump = run.go(graph=":a :p :a, :b")
    assert [one.code for one in jump.findings] == ["D2602"]
    assert not set(turtle(":r owl:hasValue :a")) & changed(jump, "All")
    assert set(turtle(":a owl:sameAs :b . :b a :C")) <= changed(jump, "All")
    assert not run.go(graph=":x :q :y").findings


def test_an_equality_that_an_insertion_makes_is_no_note() -> None:
    run = Run("HOLD :p", SCHEMA)
    assert not run.go(insert=":a :p :a, :b").findings
    assert not run.go(delete=":a :p :b").findings


@pytest.mark.parametrize("holds", ["HOLD :q", "HOLD *", "HOLD :other"])
def test_a_graph_that_makes_a_class_or_property_equal_is_refused_held_or_not(holds: str) -> None:
    run = Run(holds, ":q a owl:FunctionalProperty . :C rdfs:subClassOf :D . :P owl:inverseOf :R")
    run.go(graph=":z :q :y")
    assert run.refused(":a :q :C, :y") == "D2601"
    assert run.refused(":a :q :P, :R") == "D2601"
    assert run.refused(":C rdfs:subClassOf :E") == "D2601"


def test_what_is_stated_for_a_time_may_be_an_equality() -> None:
    run = Run("HOLD * FOR 2 s", SCHEMA)
    run.go(graph=":a owl:sameAs :c . :a :q :x")
    run.go(graph=":d :q :y")
    run.go(graph=":d :q :z")


@pytest.mark.parametrize("holds", ["HOLD :other", "HOLD :q"])
def test_equals_share_what_a_graph_says_of_one_in_a_class_that_nobody_knew(holds: str) -> None:
    run = Run(holds, ":p a owl:InverseFunctionalProperty")
    run.go(insert=":a :p :c . :b :p :c")
    run.go(graph=":a a :New ; :new :d")


def test_equals_of_an_instant_share_what_was_inserted_in_relations_that_nobody_knew() -> None:
    run = Run("HOLD :other", ":p a owl:InverseFunctionalProperty")
    run.go(insert=":a a :New ; :new :d")
    run.go(graph=":a :p :c . :b :p :c")

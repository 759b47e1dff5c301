"""Whole runs of programs where something lasts: against the literal reading, however the stream is cut, in
whatever order it comes, with rules that change on the way.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.errors import DotrError
from dotr.events import Clock, GraphOrMessage, Message, Time
from dotr.program import (
    Absent,
    Binding,
    Call,
    Choose,
    Const,
    Every,
    Fresh,
    Position,
    Program,
    Rule,
    Selection,
    Summarise,
    TemplateTriple,
    TimeOf,
    Var,
    Within,
)
from dotr.rdf.terms import RDF_TYPE, Triple
from tests.lasting.histories import UNIT, histories
from tests.lasting.test_engines import SCHEMA, _background, _with_schema, programs

History = list[tuple[Time, list[Message]]]
Change = tuple[int, Program, list[Triple]] | None
Schema = list[tuple[int, Triple, bool]]

_TEMPLATE = (TemplateTriple(Fresh("dotr_x"), RDF_TYPE, "<ex:Event>"),)


def _position(program: Program, name: str, stream: str) -> Position:
    chained = next((rule for rule in program.rules if rule.name == stream), None)
    variables = program.selects[stream].variables if chained is None else chained.variables
    return Position(name, stream, variables, chained is not None)


@st.composite
def _rules(draw: st.DrawFn, program: Program) -> Program:
    """The program with a rule for each stream, and some that choose, count, miss and tick."""
    streams = list(program.selects)
    rules = [
        Rule(f"R{i}", _TEMPLATE, _position(program, "T", stream), (), None, (), ())
        for i, stream in enumerate(streams)
    ]
    program = replace(program, rules=tuple(rules))
    for number in range(draw(st.integers(0, 3))):
        known = [*streams, *(rule.name for rule in program.rules)]
        trigger: Position | Every = _position(program, "T", draw(st.sampled_from(known)))
        if draw(st.booleans()):
            trigger = Every(draw(st.sampled_from([2, 3])) * UNIT, "T")
        window = Within(draw(st.integers(0, 5)) * UNIT, "T", draw(st.booleans()))
        other = _position(program, "O", draw(st.sampled_from(known)))
        conjunct: Any = draw(
            st.sampled_from(
                [
                    Choose(Selection.EACH, other, window),
                    Choose(Selection.LAST, other, window),
                    Absent(other, window),
                    Summarise("COUNT", None, False, "n", other, window),
                ]
            )
        )
        bindings = (Binding("t", TimeOf("T")),)
        if isinstance(conjunct, Summarise):
            bindings += (Binding("n", Var("n")),)
        where = None
        if isinstance(conjunct, Summarise) and draw(st.booleans()):
            where = Call(">", (Var("n"), Const('"1"^^<http://www.w3.org/2001/XMLSchema#integer>')))
        consuming = ("O",) if isinstance(conjunct, Choose) and draw(st.booleans()) else ()
        rule = Rule(f"S{number}", _TEMPLATE, trigger, (conjunct,), where, bindings, consuming)
        program = replace(program, rules=(*program.rules, rule))
    return program


@st.composite
def whole_programs(draw: st.DrawFn) -> Program:
    return draw(_rules(draw(programs())))


_schema = st.lists(st.tuples(st.integers(0, 14), st.sampled_from(SCHEMA), st.booleans()), max_size=1)
_changes = st.one_of(st.none(), st.none(), st.tuples(st.integers(1, 14), whole_programs(), _background))


class Run:
    """Owns one run and what it reported: events, and refused instants, which come as soon as they run."""

    def __init__(self, program: Program, background: list[Triple], change: Change, **options: Any) -> None:
        self.events: list[Any] = []
        self.refused: list[Any] = []
        self._program, self._background, self._change, self._options = program, background, change, options
        observer = PipelineObserver(refused=self._refused)
        self.pipeline = Pipeline(Deployment(program, background), observer, **options)
        self.pipeline.begin(Clock())
        if change is not None:
            self.pipeline.replace(change[0] * UNIT, *change[1:])

    def _refused(self, time: Time, parts: Sequence[GraphOrMessage], error: DotrError) -> None:
        self.refused.append((time // UNIT, error.diagnostics[0].code, len(parts)))

    def take(self, time: Time, part: GraphOrMessage) -> None:
        self._report(self.pipeline.push_part(time, part))

    def finish(self) -> list[Any]:
        self._report(self.pipeline.advance(22 * UNIT))
        self._report(self.pipeline.finish())
        counters = self.pipeline.counters
        return [self.refused, self.events, counters.useless_deletes, counters.overlooked]

    def _report(self, events: Sequence[Any]) -> None:
        self.events += [(event.time // UNIT, event.rule, event.id) for event in events]

    def restart(self) -> None:
        """Go on in another pipeline, from what this one saved."""
        state = json.loads(json.dumps(self.pipeline.snapshot()))
        old = self.pipeline
        program, background = self._program, self._background
        if old.replaced and self._change is not None:
            _, program, background = self._change
        observer = PipelineObserver(refused=self._refused)
        self.pipeline = Pipeline(Deployment(program, background), observer, **self._options)
        self.pipeline.replaced = old.replaced
        self.pipeline.restore(state)
        if self.pipeline.clock is None:
            self.pipeline.begin(Clock())
        if self._change is not None and not old.replaced:
            self.pipeline.replace(self._change[0] * UNIT, *self._change[1:])


def _parts(history: History) -> list[tuple[Time, GraphOrMessage]]:
    """Each message as it comes: a graph alone is a plain one."""
    return [
        (time, message.graph if message.graph is not None and message[1:] == (None, None) else message)
        for time, messages in history
        for message in messages
    ]


def _started(program: Program, background: list[Triple], change: Change, **options: Any) -> Run | None:
    """None for a program, or a change to one, that is refused where it is deployed."""
    try:
        return Run(program, background, change, **options)
    except DotrError:
        return None


@given(whole_programs(), _background, histories(), _schema, _changes)
def test_a_run_is_what_the_literal_reading_says(
    program: Program, background: list[Triple], history: History, schema: Schema, change: Change
) -> None:
    run = _started(program, background, change, verify=True)
    if run is None:
        return
    for time, part in _parts(_with_schema(history, schema)):
        run.take(time, part)
    run.finish()


@given(whole_programs(), _background, histories(), _schema, _changes, st.sets(st.integers(0, 10), max_size=4))
def test_a_run_may_be_cut_anywhere(
    program: Program,
    background: list[Triple],
    history: History,
    schema: Schema,
    change: Change,
    cuts: set[int],
) -> None:
    whole, cut = (_started(program, background, change) for _ in range(2))
    if whole is None or cut is None:
        return
    for number, (time, part) in enumerate(_parts(_with_schema(history, schema))):
        whole.take(time, part)
        cut.take(time, part)
        if number in cuts:
            cut.restart()
    assert cut.finish() == whole.finish()


@given(whole_programs(), _background, histories(), _schema, _changes, st.integers(0, 10**6))
def test_order_inside_the_lateness_does_not_matter(
    program: Program,
    background: list[Triple],
    history: History,
    schema: Schema,
    change: Change,
    order: int,
) -> None:
    """Blank nodes apart, of which there are none here."""
    whole, disordered = (
        _started(program, background, change, lateness=lateness) for lateness in (0, 30 * UNIT)
    )
    if whole is None or disordered is None:
        return
    parts = _parts(_with_schema(history, schema))
    for time, part in parts:
        whole.take(time, part)
    Random(order).shuffle(parts)
    for time, part in parts:
        disordered.take(time, part)
    assert disordered.finish() == whole.finish()

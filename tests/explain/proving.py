"""Histories of golden cases and examples, and a checker over them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dotr.core.parts import labelled
from dotr.events import Fact
from dotr.explain.checker import Checker
from dotr.explain.history import History
from dotr.explain.matches import Explainer
from dotr.explain.record import Graph, KeptEvent
from dotr.explain.solutions import Text
from dotr.io.files.background import read_background
from dotr.io.files.rule_texts import RuleTexts
from dotr.io.files.sources import SourceOptions, Sources
from dotr.lang import load_program
from dotr.rdf.terms import Triple
from dotr.reference.lasting import LiteralStatements
from dotr.sparql.printing import Writer


def history_of(
    rules: Path,
    sources: Sequence[Path],
    options: SourceOptions | None = None,
    lateness: int = 0,
    advance: int | None = None,
) -> History:
    """A run in which nothing is forgotten."""
    program = load_program([str(rules)], RuleTexts())
    history = History(program, read_background(program.background), lateness=lateness, until=advance)
    history.reach = 2**62
    reader = Sources([str(source) for source in sources], options or SourceOptions())
    history.run((Graph(g.time, g.triples, g.place) for g in reader), lambda: reader.clock)
    return history


def explainer_of(history: History) -> Explainer:
    writer = Writer(history.program.prefixes)
    return Explainer(history, Text(writer.term, writer.expression, writer.path))


def checker_of(history: History, explainer: Explainer) -> Checker:
    program = history.program
    composites = {
        rule.name: [event.fact for event in history.events if event.rule == index]
        for index, rule in enumerate(program.rules)
    }
    consumed = {
        (rule.name, name): _consumed(
            history.events, index, [c.position.name for c in rule.chosen].index(name) + 1
        )
        for index, rule in enumerate(program.rules)
        for name in rule.consuming
    }
    if history.statements is not None:
        return _over_what_lasts(history, composites, consumed)
    stated = {time: explainer.instants.triples(time) for time in history.times()}
    return Checker(program, history.background, stated, history.clock, composites, consumed)


def _over_what_lasts(
    history: History,
    composites: dict[str, list[Fact]],
    consumed: dict[tuple[str, str], list[tuple[Fact, Fact]]],
) -> Checker:
    """With every statement that was ever made, and the graphs, from the messages alone."""
    program = history.program
    stated: dict[int, list[Triple]] = {}
    statements = LiteralStatements.of(history.background)
    for time in history.times():
        messages = labelled([graph.part for graph in history.graphs(time)], time)
        statements, _ = statements.after(time, messages, program.holds)
        if any(message.graph is not None for message in messages):
            stated[time] = [triple for message in messages for triple in message.graph or ()]
    return Checker(
        program, history.background, stated, history.clock, composites, consumed, statements=statements
    )


def _consumed(events: Sequence[KeptEvent], rule: int, place: int) -> list[tuple[Fact, Fact]]:
    return [(event.facts[0], event.facts[place]) for event in events if event.rule == rule]

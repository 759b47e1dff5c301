"""A sequence by itself is the literal reading: random patterns, rows, states saved and loaded."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dotr.budget import UNLIMITED
from dotr.detect.sequences.sequence import SequenceRun
from dotr.events import Fact, Time, Values
from dotr.expressions.literal_numbers import row_key
from dotr.program.rules import Rule
from dotr.program.sequences import RowPattern
from dotr.reference.sequences import LiteralSequence, PatternRow
from tests.detect.building import CLOCK
from tests.detect.sequences.patterns import random_instants, random_sequence

Instants = list[tuple[Time, list[tuple[int, list[Fact]]]]]
Found = list[tuple[Time, Fact, Values]]


def literally(rule: Rule, instants: Instants) -> Found:
    """(time, first row, attributes) of each match, in output order."""
    assert isinstance(rule.trigger, RowPattern)
    reading = LiteralSequence(rule.trigger, rule.bindings, CLOCK)
    parts: dict[Any, list[PatternRow]] = {}
    for _, rows in instants:
        for source, facts in rows:
            for fact in facts:
                row = PatternRow(source, fact)
                key = reading.key(row)
                if key is not None:
                    parts.setdefault(key, []).append(row)
    found = []
    for rows in parts.values():
        for match in reading.matches(rows):
            values, first = reading.values(rows, match), rows[match.first]
            order = match.time, row_key(values), first.fact[0], first.source, row_key(first.fact[1])
            found.append((order, (match.time, first.fact, values)))
    return [match for _, match in sorted(found, key=lambda one: one[0])]


def open_run(rule: Rule) -> SequenceRun:
    return SequenceRun(0, rule, CLOCK, UNLIMITED, lambda _fact, _exhausted: None)


def by_engine(rule: Rule, instants: Instants, cuts: Random | None = None) -> Found:
    """The same of the engine, with all deadlines after the last row."""
    run = open_run(rule)
    found: Found = []

    def step(time: Time, rows: list[tuple[int, list[Fact]]]) -> None:
        nonlocal run
        found.extend((match[1], match[2][0], match[3]) for match in run.run(time, rows))
        if cuts is not None and cuts.random() < 0.3:
            state = json.loads(json.dumps(run.dump(time)))
            run = open_run(rule)
            run.load(state, time)

    for time, rows in instants:
        while (due := run.next()) is not None and due < time:
            before = len(found)
            step(due, [])
            assert len(found) > before, "a deadline has a match"
        step(time, rows)
    while (due := run.next()) is not None:
        step(due, [])
    return found


def check(seed: int) -> int:
    """How many matches there are."""
    random = Random(seed)
    rule = random_sequence(random)
    instants = random_instants(random, rule, random.choice([4, 8, 14]))
    literal = literally(rule, instants)
    assert by_engine(rule, instants) == literal
    assert by_engine(rule, instants, random) == literal
    return len(literal)


@given(st.integers(0, 2**40))
def test_random_patterns(seed: int) -> None:
    check(seed)

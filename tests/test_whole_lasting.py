"""Whole programs where something lasts, end to end: the engines against the literal reading, however the run
is cut, in whatever order messages come within the lateness, with everything materialised or what is needed.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any, NamedTuple

import pytest

import dotr
from dotr.events import Clock
from dotr.io.rules_and_background import read_rules_text
from dotr.lang import load_program
from dotr.program import Program
from tests.whole_lasting import HOLDS, Lasting, lastings

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SECOND = 1_000_000


class Outcome(NamedTuple):
    """Events as JSON lines in order, codes of refused instants sorted, deletions without effect, triples
    that do not last.
    """

    events: list[str]
    refused: list[str]
    useless: int
    not_held: int


def loaded(rules: tuple[str, str]) -> Program:
    given = {"a.dotr": rules[0], "a.dlog": rules[1]} if rules[1] else {"a.dotr": rules[0]}
    known = {**given, "h.lars": HOLDS}
    return load_program(list(given), lambda path: known[path] if path in known else read_rules_text(path))


class Run:
    """Owns an engine that skips instants in error, and the rules that are still to come."""

    def __init__(self, whole: Lasting, **options: Any) -> None:
        self.whole, self._options = whole, options
        self._refused: list[str] = []
        self._go_on(None)

    def _go_on(self, state: bytes | None) -> None:
        """A new engine, from a state: under the rules that hold by then."""
        rules, settled = self.whole.rules, None if state is None else self.engine.pipeline.settled
        ahead = []
        for time, then in sorted(self.whole.then, key=lambda one: one[0]):
            if settled is not None and time * SECOND <= settled:
                rules = then
            else:
                ahead.append((time, then))
        self.engine = dotr.Engine(
            loaded(rules),
            background=self.whole.background,
            on_error=lambda error: self._refused.append(error.diagnostics[0].code),
            late="fail",
            **self._options,
        )
        if state is not None:
            self.engine.restore(state)
        if self.engine.clock is None:
            self.engine.pipeline.begin(Clock())
        for time, then in ahead:
            self.engine.pipeline.replace(
                time * SECOND, loaded(then), self.engine.pipeline.deployment.background
            )

    def outcome(self, order: int | None = None, cut: bool = False) -> Outcome:
        stream = list(self.whole.stream)
        if order is not None:
            Random(order).shuffle(stream)
        events: list[dotr.Event] = []
        try:
            for sent in stream:
                if cut and sent.cut:
                    self._go_on(self.engine.snapshot())
                events += self.engine.push(sent.graph, at=sent.time, insert=sent.insert, delete=sent.delete)
            events += self.engine.advance(60)
            events += self.engine.finish()
        except dotr.ProgramError as error:
            if error.diagnostics[0].code != "D4013":
                raise
            return Outcome([], ["D4013"], 0, 0)
        lines = [event.to_json() for event in events]
        counters = self.engine.counters
        return Outcome(lines, sorted(self._refused), counters.useless_deletes, counters.not_held)


def compare(whole: Lasting, seed: int) -> int | None:
    """Run it every way. How many events it had; None if it is refused where it is deployed."""
    try:
        Run(whole)
    except (dotr.ProgramError, dotr.DataError):
        return None
    expected = Run(whole, verify=True).outcome()
    assert Run(whole).outcome() == expected
    assert Run(whole).outcome(cut=True) == expected
    assert Run(whole, materialize="all").outcome() == expected
    if not any("_:" in (text or "") for sent in whole.stream for text in (sent.graph, sent.insert)):
        assert Run(whole, lateness="1 d").outcome(order=seed) == expected
    return len(expected.events)


def test_engines_are_the_literal_reading_on_whole_programs_where_something_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dotr.lasting.instants.DEEPEST", 12)  # effects that follow one another without an end
    eventful = 0
    seeds = range(10_000 if DEEP else 25)
    for seed in seeds:
        try:
            eventful += bool(compare(lastings(Random(seed)), seed))
        except (AssertionError, dotr.DotrError) as error:
            pytest.fail(f"seed {seed}: {error}\n{lastings(Random(seed))}")
    assert eventful >= len(seeds) // 5

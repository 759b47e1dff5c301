"""The literal reading beside the engines: `--verify`.

Place:   driven by pipeline.py with the same instants; the tests' oracle is this one too.
Method:  K(t) closed naively, every query asked of the full SPARQL engine, TESLA by enumeration over the whole
         history. What comes out must be the engines' matches, one for one, in order.
Why not: comparing printed events: a difference of two matches that print alike would be missed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from dotr.datalog.owl_lists import rules_over
from dotr.errors import Diagnostic, EngineError
from dotr.events import Clock, Match, RawMatch, Time, in_order
from dotr.ir import Program
from dotr.rdf.terms import Triple
from dotr.reference.enrich import LiteralEnricher
from dotr.reference.extract import LiteralExtractor
from dotr.reference.tesla import LiteralDetector


class Oracle:
    """Owns a literal run: its memory is everything it ever saw."""

    def __init__(self, program: Program, background: Collection[Triple]) -> None:
        self.program = program
        self._enrich = LiteralEnricher(rules_over(program, background), background)
        self._extract = LiteralExtractor(program.queries)
        self._detect: LiteralDetector | None = None
        self._clock = Clock()

    def begin(self, clock: Clock) -> None:
        self._clock = clock
        self._detect = LiteralDetector(self.program, clock)

    def matches(self, time: Time, triples: Sequence[Triple], graph: bool) -> list[Match]:
        """What the contract says happens at `time`; `graph` False is a tick at which no graph came."""
        assert self._detect is not None, "begin() comes first"
        store = self._enrich.open(triples)
        try:
            facts = self._extract.facts(store, time, self._clock.term(time))
        finally:
            self._enrich.close()
        return self._detect.at(time, facts, graph)

    def check(self, time: Time, triples: Sequence[Triple], graph: bool, found: Sequence[RawMatch]) -> None:
        """Raise EngineError D4090 unless `found` is what the literal reading finds at `time`."""
        expected = self.matches(time, triples, graph)
        engine = [(rule, *match[1:]) for rule, match in in_order(found)]
        for number, (right, ours) in enumerate(zip_longest(expected, engine)):
            if right != ours:
                rule = self.program.rules[(right or ours)[0]].name
                raise EngineError(
                    Diagnostic(
                        "D4090",
                        f"rule `{rule}` at {self._clock.text(time)}: engine and literal reading differ",
                        notes=(
                            f"event {number + 1} of the instant, literally: {right}",
                            f"event {number + 1} of the instant, engine:    {ours}",
                        ),
                        hint="this is a bug of dotr: please report rules and input",
                    )
                )

    def snapshot(self) -> Any:
        return None if self._detect is None else self._detect.snapshot()

    def restore(self, state: Mapping[str, Any]) -> None:
        assert self._detect is not None, "begin() comes first"
        self._detect.restore(state)

"""`--verify` in a batch: each half of the work beside its literal reading.

Place:   extracting.py and detecting.py hold one each on request.
Method:  what reference/oracle.py does for a run, split like a batch: facts against the full SPARQL engine
         over the naive closure, instant by instant; matches against enumeration over the input of a part.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from dotr.core.deployment import Deployment
from dotr.datalog.owl_lists import rules_over
from dotr.errors import EngineError
from dotr.events import Clock, Fact, RawMatch, Time, in_order
from dotr.ir import Program
from dotr.rdf.terms import Triple
from dotr.reference.enrich import LiteralEnricher
from dotr.reference.extract import LiteralExtractor


class FactOracle:
    """Owns the literal reading of enrich and extract."""

    def __init__(self, program: Program, background: Collection[Triple], clock: Clock) -> None:
        self._clock = clock
        self._enrich = LiteralEnricher(rules_over(program, background), background)
        self._extract = LiteralExtractor(program.queries)

    def check(self, time: Time, triples: Sequence[Triple], found: Mapping[str, Sequence[Fact]]) -> None:
        """Raise EngineError D4090 unless `found` are the facts of the instant."""
        store = self._enrich.open(triples)
        try:
            expected = self._extract.facts(store, time, self._clock.term(time))
        finally:
            self._enrich.close()
        for stream in sorted({*expected, *found}):
            pairs = zip_longest(expected.get(stream, ()), found.get(stream, ()))
            for right, ours in pairs:
                if right != ours:
                    raise _difference(f"query `{stream}` at {self._clock.text(time)}", "fact", right, ours)


class MatchOracle:
    """Owns the literal reading of one part's rules."""

    def __init__(self, deployment: Deployment, clock: Clock) -> None:
        self._program, self._clock = deployment.program, clock
        self._detect = deployment.literal_detector(clock)

    def check(
        self,
        time: Time,
        facts: Mapping[str, Sequence[Fact]],
        graph: bool,
        found: Sequence[RawMatch],
        left_out: Collection[tuple[int, Fact]] = (),
    ) -> None:
        """Raise EngineError D4090 unless `found` are the matches of the instant. `left_out`: (number of a
        rule, trigger fact) that take too much work.
        """
        engine = [(rule, *match[1:]) for rule, match in in_order(found)]
        for right, ours in zip_longest(self._detect.at(time, facts, graph, left_out), engine):
            if right != ours:
                rule = self._program.rules[(right or ours)[0]].name
                raise _difference(f"rule `{rule}` at {self._clock.text(time)}", "match", right, ours)


def _difference(where: str, what: str, right: Any, ours: Any) -> EngineError:
    return EngineError.of(
        "D4090",
        f"{where}: engine and literal reading differ",
        notes=(f"{what}, literally: {right}", f"{what}, engine:    {ours}"),
        hint="this is a bug of dotr: please report rules and input",
    )

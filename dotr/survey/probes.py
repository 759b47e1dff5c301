"""A program run beside probes of itself: rules of one event each whose matches are looked at, not told.

Place:   queries.py, conditions.py and pairs.py say what to probe; the pipeline does the rest, so that what
         lasts, what is derived and what is refused are as in a run.
Method:  a probe is a rule without a template; its matches come to an observer. Names begin with `_`, which
         no name of a program does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dotr.core.deployment import Background, Deployment
from dotr.core.pipeline import Pipeline
from dotr.errors import DotrError
from dotr.events import Fact, RawMatch, Time
from dotr.ir import Binding, Conjunct, Every, Position, Program, Rule, Select
from dotr.rdf.terms import Term
from dotr.survey.sample import Sample

KEPT = 5_000
"""Matches of a probe that are kept; all are counted."""

_TOGETHER = 63


@dataclass(slots=True)
class Observed:
    """What a probe saw: how many matches, and of the first ones the facts and the values of WITH."""

    count: int = 0
    matches: list[tuple[tuple[Fact, ...], tuple[Term, ...]]] = field(default_factory=list)

    def add(self, facts: tuple[Fact, ...], values: tuple[Term, ...]) -> None:
        self.count += 1
        if len(self.matches) < KEPT:
            self.matches.append((facts, values))


class Probes:
    """Owns the probes of a program, and what they saw once they have run."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._queries: dict[str, Select] = {}
        self._rules: list[Rule] = []
        self._seen: list[Observed] = []

    def query(self, select: Select) -> Observed:
        """Look at the answers of a query; what is given is filled by `run`."""
        name = f"_q{len(self._queries)}"
        self._queries[name] = select
        return self.rule(Position(name, name, select.variables))

    def rule(
        self, trigger: Position | Every, conjuncts: Sequence[Conjunct] = (), bindings: Sequence[Binding] = ()
    ) -> Observed:
        """Look at the matches of a rule without WHERE."""
        name = f"_r{len(self._rules)}"
        self._rules.append(Rule(name, (), trigger, tuple(conjuncts), None, tuple(bindings), ()))
        self._seen.append(Observed())
        return self._seen[-1]

    def run(self, background: Background, sample: Sample, closed: bytes | None = None) -> DotrError | None:
        """Run the program and its probes over the sample. What ends it early is returned: what was seen until
        then stands.
        """
        program = self._program
        first = len(program.rules)
        order = program.dependencies or tuple(range(first))
        probed = replace(
            program,
            queries={**program.queries, **self._queries},
            rules=(*program.rules, *self._rules),
            dependencies=(*order, *range(first, first + len(self._rules))),
        )
        seen = self._seen

        def observe(_time: Time, matches: Sequence[RawMatch]) -> None:
            for rules, _, facts, values in matches:
                for rule in rules:
                    if rule >= first:
                        seen[rule - first].add(facts, values)

        try:
            pipeline = Pipeline(
                Deployment(probed, background, closed=closed),
                on_refused=lambda *_: None,
                on_overworked=lambda *_: None,
                on_matches=observe,
            )
            pipeline.begin(sample.clock)
            for number, (time, part) in enumerate(sample.graphs):
                pipeline.take(time, part)
                if not number & _TOGETHER:
                    _drain(pipeline)
            pipeline.close_all()
            _drain(pipeline)
        except DotrError as error:
            return error
        return None


def _drain(pipeline: Pipeline) -> None:
    for _ in pipeline.drain():
        pass

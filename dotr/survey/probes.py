"""A program run beside probes of itself: rules of one event each whose matches are looked at, not reported.

Place:   query_survey.py, decided_conditions.py and pairs.py say what to probe; the pipeline does the rest, so
         that what lasts, what is derived and what is refused are as in a run.
Method:  a probe is a rule without a template; its matches come to an observer. Names begin with `_`, which
         no name of a program does. A look is an aside: it has budgets of its own, smaller than those of a
         run, and ends once it took more than WORK in all.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.budget import KEPT as MATCH
from dotr.core.deployment import Background, Deployment, Settings
from dotr.core.parts import Part
from dotr.core.pipeline import Pipeline
from dotr.errors import DotrError, ProgramError
from dotr.events import Fact, RawMatch, Time
from dotr.ir import Binding, Conjunct, Every, Position, Program, Rule, Select
from dotr.rdf.terms import Term
from dotr.survey.sample import Sample

KEPT = 5_000
"""Matches of a probe that are kept; all are counted."""

WORK = 20_000_000
"""Units of work (budget.py) after which a look ends, in all: some seconds."""

_INSTANT, _TRIGGER = 3_000_000, 20_000
"""Units of an instant's Datalog and of a query at it, and of a rule or probe at one trigger fact."""

_HOLDING = 3_000_000
"""Units of all that holds, at all points together: some seconds, too."""

_HELD = "D4011"
"""Why a look ends that has no units left for what holds."""

_COSTLY = frozenset(("D4003", "D4130", "D4132"))
"""Why instants are set aside that cost the look a whole budget."""

_TOGETHER, _FIRST = 63, 4


class Observed(Struct):
    """What a probe saw: how many matches, and of the first ones the facts and the values of WITH.

    `partial`: there are more, of which nothing is known: to find them took too much work.
    """

    count: int = 0
    partial: bool = False
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

        look = _ProbeLook(seen, first)
        settings = Settings(budget=_INSTANT, trigger_budget=_TRIGGER, holding_budget=_HOLDING)
        try:
            pipeline = Pipeline(
                Deployment(probed, background, settings, closed=closed),
                on_refused=look.refused,
                on_overworked=look.overworked,
                on_matches=look.matched,
            )
            pipeline.begin(sample.clock)
            for number, (time, part) in enumerate(sample.graphs):
                pipeline.take(time, part)
                if look.dear(number) or not number & _TOGETHER:
                    _drain(pipeline)
                    if look.spent > WORK:
                        look.cut()
                        return None
            pipeline.close_all()
            _drain(pipeline)
        except DotrError as error:
            if any(found.code == _HELD for found in error.diagnostics):
                look.cut()
                return None
            return error
        return None


class _ProbeLook(Struct):
    """What happens while probes run. `spent`: units of work so far, about. `first`: number of the first
    probe's rule.
    """

    seen: Sequence[Observed]
    first: int
    spent: int = 0

    def dear(self, graphs: int) -> bool:
        """Whether graphs take so much that the next one is not to wait for others."""
        return self.spent > graphs * (WORK // 1_000) or graphs < _FIRST

    def matched(self, _time: Time, matches: Sequence[RawMatch]) -> None:
        self.spent += MATCH * len(matches)
        for rules, _, facts, values in matches:
            for rule in rules:
                if rule >= self.first:
                    self.seen[rule - self.first].add(facts, values)

    def refused(self, _time: Time, _parts: Sequence[Part], error: DotrError) -> None:
        if any(d.code in _COSTLY for d in error.diagnostics):
            self.spent += _INSTANT
            self.cut()

    def overworked(self, rule: str, _error: ProgramError) -> None:
        self.spent += _TRIGGER
        if rule.startswith("_r"):
            self.seen[int(rule.removeprefix("_r"))].partial = True

    def cut(self) -> None:
        """Of the rest of the sample nothing is known."""
        for observed in self.seen:
            observed.partial = True


def _drain(pipeline: Pipeline) -> None:
    for _ in pipeline.drain():
        pass

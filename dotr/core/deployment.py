"""A program compiled over its background: what every runner runs and `dotr plan` shows.

Place:   made once, from a checked program and the triples that hold at every instant; held by a pipeline
         (run, feed, an Engine), by the driver and the workers of a batch, and by `dotr plan`. It holds no
         state of a run.
Method:  the background is closed and indexed, the queries are planned, and detection gets what extraction
         shares: a deployment's detector fits its extraction. Parts are made on demand: a batch's driver needs
         no queries, a plan no oracle. The detector (step 3: facts of this and earlier instants become matches
         of the rules) sees facts only, never a triple: DOTR paper, sec. 3, TESLA; every case is spelled out
         in language.md, sec. 3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import BUDGET, UNLIMITED, Allowance
from dotr.collecting import uncollected
from dotr.core.funnel import FactCounts
from dotr.core.instant import Instants, enricher, reopened
from dotr.core.instants import JumpLimit, ahead
from dotr.detect.analysis import IdleTicks, RuleReach, idle_ticks, rule_reaches
from dotr.detect.detector import TeslaDetector, waking
from dotr.detect.digest import rule_digests
from dotr.detect.partitioning import By, Partitioning, RuleComponentGroup, plan_batch
from dotr.detect.plan import RulePlan
from dotr.detect.thresholds import Filtered, sizes
from dotr.detect.timeline import opened
from dotr.emit.events import Emitter
from dotr.enrich.closing import Closed
from dotr.enrich.materialiser import Materialiser
from dotr.events import Clock, Time
from dotr.program import Position, Program
from dotr.program.names import RefusedTrigger, fail
from dotr.rdf.mapped import Content
from dotr.rdf.terms import Term, Triple

if TYPE_CHECKING:
    from dotr.extract.forms import Form
    from dotr.lasting.instants import LastingRun, OnRefused
    from dotr.reference.oracle import Oracle
    from dotr.reference.tesla import LiteralTesla


def open_detector(
    program: Program,
    clock: Clock,
    same: Mapping[str, str],
    filtered: Mapping[str, tuple[str, str, Term]],
    budget: int,
    on_refused: RefusedTrigger,
    holding: tuple[int, int, int],
    *,
    listed: bool = False,
) -> TeslaDetector:
    """A detector of `program`, with the engine of its LARS rules if it has any.

    `same`: stream → the one whose facts it has; `filtered`: stream → its base, operator and constant;
    `budget`: units of work of a rule at one trigger fact, `on_refused` gets the facts that take more;
    `holding`: (units of work of what holds at one point, the number of parts of keys that share them, units
    of what holds at all points); `listed`: see TeslaDetector.
    """
    timeline = None
    if program.lars.rules:
        from dotr.windows.engine import LarsEngine  # noqa: PLC0415  # start-up: most programs have no such rules

        units, parts, in_all = holding
        engine = partial(LarsEngine, budget=units, parts=parts, in_all=in_all)
        timeline = opened(program, clock, engine, allowance=Allowance(units // parts))
    return TeslaDetector(
        program,
        clock,
        budget=budget,
        on_refused=on_refused,
        same=same,
        filtered={stream: Filtered(*filter_) for stream, filter_ in filtered.items()},
        timeline=timeline,
        listed=listed,
    )


class Settings(Struct, frozen=True):
    """How a program is compiled; no setting changes an event.

    `materialize_all`: also derive and keep what no query can reach.
    `apart`: facts travel between extraction and detection, as in a batch: each stream has its own facts.
    `budget`: units of work (budget.py) of an instant's Datalog, of a query at it, of what holds at a point,
    of a rule at a trigger fact; `trigger_budget`: replaces `budget` for the last; `holding_budget`: of what
    holds at all points together.
    """

    materialize_all: bool = False
    apart: bool = False
    budget: int = BUDGET
    trigger_budget: int | None = None
    holding_budget: int = UNLIMITED


PLAIN = Settings()

Background: TypeAlias = Collection[Triple] | Callable[[], Collection[Triple]]
"""What a program's BACKGROUND states, or a function that reads it again, so that it is not kept."""


class Deployment:
    """Owns the compiled parts of a program. One run at a time: `instants` has an overlay of its own.

    `background` is the content of the program's BACKGROUND: canonical, blank nodes labelled. `closed` is what
    `closed_background` saved for the same program, background and settings: nothing is closed again, and only
    the oracle reads `background`. Making a part may raise ProgramError and DataError.
    """

    def __init__(
        self,
        program: Program,
        background: Background = (),
        settings: Settings = PLAIN,
        *,
        closed: Content | None = None,
    ) -> None:
        self.program = program
        self._stated = background
        self.settings = settings
        self._closed = closed

    @property
    def background(self) -> Collection[Triple]:
        """What holds at every instant, as stated; may be read again."""
        return self._stated() if callable(self._stated) else self._stated

    def compile(self) -> None:
        """Make every part that can raise. Raises ProgramError, DataError."""
        _ = self.instants

    def load(self) -> None:
        """Close the background, or load it from `closed`. Raises EngineError D5101 for bytes that are damaged
        or of another version.
        """
        _ = self.enrich

    @cached_property
    def enrich(self) -> Materialiser:
        """The rules over the background, closed and indexed."""
        everything, budget = self.settings.materialize_all, self.settings.budget
        with uncollected():
            if self._closed is None:
                return enricher(self.program, self.background, everything, budget)
            return reopened(self.program, self._closed, everything, budget)

    @cached_property
    def instants(self) -> Instants:
        """Finds the facts of an instant, where nothing lasts."""
        shares = None if self.settings.apart or self.program.lars.rules else sizes
        with uncollected():
            return Instants(self.program, self.enrich, shares=shares, budget=self.settings.budget)

    @cached_property
    def without_graph(self) -> frozenset[str]:
        """Queries that may have facts while no graph comes, since the background alone answers them; computed
        if a rule ticks.
        """
        ticks = any(not isinstance(rule.trigger, Position) for rule in self.program.rules)
        return self.instants.extract.without_graph() if ticks else frozenset()

    @cached_property
    def idle_ticks(self) -> IdleTicks:
        """Which ticks matter while no graph comes; what lasts may answer any query."""
        program = self.program
        return idle_ticks(program, program.selects if program.lasting else self.without_graph)

    def ahead(self, max_jump: Time | None) -> JumpLimit:
        """How far apart instants may lie; `max_jump` in µs, None for no limit."""
        return ahead(self.idle_ticks, max_jump)

    @cached_property
    def reaches(self) -> list[RuleReach]:
        """Per rule, what it keeps and what can influence it."""
        return rule_reaches(self.program)

    @property
    def emitter(self) -> Emitter:
        with uncollected():
            return Emitter(self.program)

    def detector(
        self, clock: Clock, on_refused: RefusedTrigger = fail, parts: int = 1, *, listed: bool = False
    ) -> TeslaDetector:
        """A new detector for the facts that `instants` finds. `on_refused` gets trigger facts that take a
        rule more than the budget. `parts`: the detector has the keys of one of that many parts. `listed`: all
        matches are wanted.
        """
        settings = self.settings
        budget = settings.budget if settings.trigger_budget is None else settings.trigger_budget
        holding = settings.budget, parts, settings.holding_budget
        none = settings.apart or self.program.lars.rules  # which read each stream's own facts
        extract = None if none else self.instants.extract
        same, filtered = ({}, {}) if extract is None else (extract.same, extract.filtered)
        with uncollected():
            return open_detector(
                self.program, clock, same, filtered, budget, on_refused, holding, listed=listed
            )

    def fact_counts(self) -> FactCounts:
        """Counts the facts that `instants` finds."""
        extract = self.instants.extract
        bases = {stream: base for stream, (base, _, _) in extract.filtered.items()}
        return FactCounts(extract.same, bases, self.program.standing)

    def rule_plans(self) -> Sequence[RulePlan]:
        """How each rule is detected, in program order."""
        return sorted(self.detector(Clock()).network.plans, key=lambda plan: plan.index)

    def literal_detector(self, clock: Clock) -> LiteralTesla:
        """The literal reading of detection alone."""
        from dotr.reference.tesla import LiteralTesla  # noqa: PLC0415  # start-up: few runs verify

        return LiteralTesla(self.program, clock, self.settings.budget)

    def digests(self) -> Sequence[str]:
        """The digest that identifies the state of each rule, in program order."""
        return rule_digests(self.program)

    def oracle(self) -> Oracle:
        """The literal reading of the same program over the same background."""
        from dotr.reference.oracle import Oracle  # noqa: PLC0415  # start-up: few runs verify

        return Oracle(self.program, self.background, self.settings.budget)

    def lasting_run(
        self,
        program: Program,
        clock: Clock,
        on_refused: OnRefused,
        oracle: Oracle | None,
        *,
        states: bool = False,
    ) -> LastingRun:
        """The instants of what lasts, from now on, by `program`. `states`: each reports what holds."""
        from dotr.lasting.instants import LastingRun  # noqa: PLC0415  # start-up: in most programs nothing lasts

        everything, budget = self.settings.materialize_all, self.settings.budget
        return LastingRun(
            program,
            self.background,
            clock,
            materialize_all=everything,
            budget=budget,
            states=states,
            on_refused=on_refused,
            oracle=oracle,
        )

    def partitioning(self, by: By = By.AUTO, *, together: bool = False) -> Partitioning:
        """How detection can be cut, by key and by time. `together`: one task computes what holds."""
        return plan_batch(self.program, by, together, lambda: self.without_graph)

    @cached_property
    def divided(self) -> RuleComponentGroup | str:
        """How what lasts is divided by key, with all rules; or why it is not (lasting/keys.py)."""
        from dotr.lasting.keys import divided  # noqa: PLC0415  # start-up: few programs are divided so

        return divided(self.program, lambda: self.background)

    def why_graphs(self, form: Form) -> str:
        """Why graphs of a form are not taken as columns of terms by `dotr run`; "" where they are."""
        program = self.program
        if program.lasting:
            return "something lasts"
        if program.lars.rules or any(not isinstance(rule.trigger, Position) for rule in program.rules):
            return "a rule is evaluated while no graph comes"
        if waking(self.detector(Clock()).network) is None:
            return "rules read each other's events, or very many streams"
        found = self.instants.of_form(form)
        return found if isinstance(found, str) else ""

    def part(self, rules: Iterable[int]) -> Deployment:
        """A program of some of the rules, which refer to no others; for detection alone."""
        return self.detecting(self.program.only(rules))

    def detecting(self, program: Program) -> Deployment:
        """Another program, for detection alone: its facts are found elsewhere."""
        return Deployment(program, (), replace(self.settings, apart=True))

    def closed_background(self) -> Closed:
        """The closed, indexed background, which can be saved; the stream never changes it."""
        return self.enrich.closed

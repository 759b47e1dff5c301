"""A group of planned rules as one Python function: trigger facts in, matches out.

Place:   engine.py calls it when a rule first wakes; operators/ write the code of a conjunct.
Method:  one loop over the trigger facts; every conjunct, part of WHERE and binding is done as soon as what it
         looks at is known, so that what depends on the trigger alone is done once, whatever EACH multiplies.
         EACH, LAST k and FIRST k nest as loops in the order written, which is the output order; a conjunct
         that fails is a `continue`.
Why not: walking the plan per trigger fact, which costs 3 to 10 times as much; or rows of partial matches from
         conjunct to conjunct, which cost memory where few survive.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dotr.budget import Exhausted
from dotr.codegen import CodeSource
from dotr.events import Clock, Fact, RawMatch, Time
from dotr.expressions.functions import makes_text
from dotr.ir.expressions import Const, Expression
from dotr.ir.rules import Between, Binding, Choose, Rule, Summarise
from dotr.rdf.terms import Term
from dotr.tesla.column_spec import LastValue, MonotonicStack, RunningTotal
from dotr.tesla.columns import Column
from dotr.tesla.conditions import NOW, names, parts
from dotr.tesla.detection_stages import StageCounts, StageWriter, label
from dotr.tesla.fact_scope import Scope
from dotr.tesla.operators import DETECTED
from dotr.tesla.operators.detected import CodeItem, StepCode
from dotr.tesla.plan import RulePlan
from dotr.tesla.plan_step import PlanStep
from dotr.tesla.template_faults import faults
from dotr.tesla.thresholds import write_size
from dotr.tesla.work import RuleWork, computed

Run: TypeAlias = Callable[[Time, Sequence[Fact], list[RawMatch]], None]
"""(instant, trigger facts in canonical order, where matches are appended in output order)."""

Exceeded: TypeAlias = Callable[[Time, Fact, Exhausted, list[RawMatch], int, int], None]
"""(instant, trigger fact, what was too much, where matches are appended, from, to): the members in this range
have no match of the fact yet."""

LOOPS = 12
"""How many loops nest before a further function goes on: CPython refuses twenty."""


def compile_group(
    plans: Sequence[RulePlan],
    columns: Sequence[Column[Any]],
    clock: Clock,
    *,
    budget: int,
    drop: Callable[[Sequence[int]], None],
    exceeded: Exceeded,
    stages: StageCounts | None = None,
) -> Run:
    """The function of rules of one shape (sharing.py), most often of one.

    `columns` serve their conjuncts; `drop` gets the rules of matches that have no graph. What several
    rules match alike is one entry. A trigger fact that takes more than `budget` units of work leaves no match
    here; `exceeded` is called instead. `stages`: what counts how far trigger facts come.
    """
    return _RuleWriter(plans, columns, clock, budget, drop, exceeded, stages).function()


class _RuleWriter:
    """Owns one function under construction. `plan` stands for all members."""

    def __init__(
        self,
        plans: Sequence[RulePlan],
        columns: Sequence[Column[Any]],
        clock: Clock,
        budget: int,
        drop: Callable[[Sequence[int]], None],
        exceeded: Exceeded,
        stages: StageCounts | None,
    ) -> None:
        self.plans, self.plan = plans, plans[0]
        self.rule, self.columns, self.clock = self.plan.rule, columns, clock
        self.drop, self.exceeded = drop, exceeded
        self.ranged = ranged(plans)
        variables = {position.name: position.variables for position in self.rule.positions}
        self.source = CodeSource()
        works = _loops(self.plan, self.ranged) or _makes_text(self.rule)
        self.work = RuleWork(self.source, budget) if works else None
        self.scope = Scope(self.source, clock, self.rule.trigger.name, variables, self.work)
        self.bound: dict[int, str] = {}  # number of a WITH binding → its source
        self.limits = _limits(plans) if self.ranged else {}
        self.triggered = "lo0", "hi0"  # locals that bound the members whose trigger it is
        self.faults = ""
        self.counts = stages
        self.stages = None if stages is None else StageWriter(self.source, stages, _needed(self.plan))
        self.waiting: list[CodeItem] = []  # loops whose candidates are listed, but that are not open yet

    def function(self) -> Run:
        source, rule, work = self.source, self.rule, self.work
        items = [self._step(number, step) for number, step in enumerate(self.plan.steps, 1)]
        items += [self._part(part) for part in parts(rule.where)]
        items += [self._binding(i, binding) for i, binding in enumerate(rule.bindings)]
        loops = [item for item in items if item.loop]
        self.faults = " or ".join(self._faults())
        with source.block("for f0 in facts"):
            outer = source.depth
            if rule.consuming or work is not None:
                source.line("start = len(out)")
            kept: list[str] = []
            self._write_trigger(kept)
            if work is not None:
                work.begin()
                if self.faults and loops:
                    source.line("lost = []")
                    kept.append("lost")
                source.open("try")
            inner = source.depth
            self._write_ready(items, kept)
            for number, item in enumerate(loops):
                if number and number % LOOPS == 0:
                    self._new_function(number // LOOPS, kept)
                if work is not None and number == len(loops) - 1:
                    work.count_matches()
                self._open(item, kept)
                self._write_ready(items, kept)
            self._write_match(bool(loops))
            source.resume(inner)
            if work is not None:
                if loops:
                    work.count_matches()
                source.resume(outer)
                self._write_exceeded(work)
                if self.faults and loops:
                    source.line(f"for members in lost: {source.name('drop', self.drop)}(members)")
            if rule.consuming:
                source.line(f"if len(out) > start: {source.name('consume', self._consume())}(out, start)")
        if self.stages is not None:
            self.stages.settle()
        return source.function("time, facts, out")

    def _write_trigger(self, kept: list[str]) -> None:
        """The trigger fact's own tests; how many members it passes for."""
        source, scope, plan = self.source, self.scope, self.plan
        scope.locals[self.rule.trigger.name] = "f0"
        if plan.threshold is None and self.counts is not None and self.counts.triggers is not None:
            source.line(f"{source.name('triggers', self.counts.triggers)}[{len(self.plans)}] += 1")
        if not self.ranged:
            if plan.threshold is not None:
                write_size(source, plan.threshold.measure, "f0")
                source.line(f"if size < {source.name('least', plan.threshold.least)}: continue")
                if self.counts is not None and self.counts.triggers is not None:
                    source.line(f"{source.name('triggers', self.counts.triggers)}[{len(self.plans)}] += 1")
                source.line("f0 = f0[:4]")
            return
        scope.range = self.triggered
        kept += scope.range
        source.line("lo0 = 0")
        if plan.threshold is None:
            source.line(f"hi0 = {source.name('count', len(self.plans))}")
            return
        cut = source.name("cut", bisect_right if plan.threshold.measure.inclusive else bisect_left)
        write_size(source, plan.threshold.measure, "f0")
        source.line(f"hi0 = {cut}({source.name('limits', self.limits[0])}, size)")
        source.line("if not hi0: continue")
        if self.counts is not None and self.counts.triggers is not None:
            source.line(f"{source.name('triggers', self.counts.triggers)}[hi0] += 1")
        source.line("f0 = f0[:4]")

    def _write_exceeded(self, work: RuleWork) -> None:
        """What happens if the trigger fact's loops are too much."""
        source = self.source
        range_ = ", ".join(self.triggered) if self.ranged else f"0, {len(self.plans)}"
        with source.block(f"except {source.name('exhausted', Exhausted)} as spent"):
            source.line("del out[start:]")
            source.line(f"{source.name('exceeded', self.exceeded)}(time, f0, spent, out, {range_})")
            source.line("continue")
        work.settle()

    def _open(self, item: CodeItem, kept: list[str]) -> None:
        """The loop over a conjunct's choices."""
        assert self.work is not None, "a conjunct with several choices is work"
        self.work.loop(item.what, item.loop, choice=item.choice)
        self.source.open(f"for {item.target or item.local} in {item.loop}")
        self.scope.locals[item.gives] = item.local
        kept.append(item.local)
        self.waiting.remove(item)
        if not item.target:
            self._opened()
            return
        lo, hi = self.scope.range
        own = f"lo_{item.local}", f"hi_{item.local}"
        self.source.line(f"if {own[0]} < {lo}: {own[0]} = {lo}")
        self.source.line(f"if {own[1]} > {hi}: {own[1]} = {hi}")
        self.source.line(f"if {own[0]} >= {own[1]}: continue")
        self.scope.range = own
        kept += own
        self._opened()

    def _passed(self, item: CodeItem) -> None:
        """Count what is left after an item that is written."""
        if self.stages is not None and item.stage:
            loops, range_ = self._left()
            self.stages.passed(item.stage, loops, range_, may_fail=item.may_fail)

    def _opened(self) -> None:
        if self.stages is not None:
            self.stages.opened(*self._left())

    def _left(self) -> tuple[list[str], tuple[str, str] | None]:
        """The lists that are not looped over yet, and the members in range, if that is known without them."""
        known = not any(item.target for item in self.waiting)
        return [item.loop for item in self.waiting], self.scope.range if known and self.ranged else None

    def _write_ready(self, items: list[CodeItem], kept: list[str]) -> None:
        """Write, in order, everything not yet written whose needs are known."""
        progress = True
        while progress:
            progress = False
            for item in list(items):
                if item.needs <= self.scope.locals.keys():
                    items.remove(item)
                    item.write()
                    kept += item.keeps
                    if item.loop:
                        self.waiting.append(item)
                    self._passed(item)
                    if item.gives and not item.loop:
                        self.scope.locals[item.gives] = item.local
                    progress = True

    def _new_function(self, number: int, kept: Sequence[str]) -> None:
        """Go on in a function of its own, given all that is known."""
        self.source.call(f"further{number}", ", ".join(("time", "out", "start", "f0", *kept)))
        self.source.open("for _ in (0,)")  # what fails is a `continue`

    def _step(self, number: int, step: PlanStep) -> CodeItem:
        conjunct, column = step.conjunct, self.columns[number - 1]
        window = conjunct.window
        looked_at = [*step.probe, *([] if step.residual is None else [step.residual])]
        if isinstance(conjunct, Summarise) and conjunct.argument is not None:
            looked_at.append(conjunct.argument)
        needs = frozenset[str]().union(*map(names, looked_at)) - {conjunct.position.name, NOW}
        needs |= {window.start, window.end} if isinstance(window, Between) else {window.reference}
        least = None if self.ranged or step.threshold is None else step.threshold.least
        code = StepCode(self.source, self.scope, step, column, self.limits.get(number, ()), least, number)
        return DETECTED[conjunct.operator].item(conjunct, needs, code)

    def _part(self, part: Expression) -> CodeItem:
        def write() -> None:
            self._count()
            self.source.line(f"if not {self.scope.test(part)}: continue")

        return CodeItem(self._needs(part), write, stage="WHERE")

    def _binding(self, number: int, binding: Binding) -> CodeItem:
        """WITH: an error or an unbound value drops the match."""
        if isinstance(binding.expression, Const):
            same = len({_constant(plan, number) for plan in self.plans}) == 1
            known = self.source.name("constant", binding.expression.term)
            self.bound[number] = known if same else f"w{number}"
            return CodeItem(frozenset(), lambda: None)
        self.bound[number] = local = f"b{number}"

        def write() -> None:
            if computed(binding.expression):
                self._count()
            self.source.line(f"{local} = {self.scope.value(binding.expression)}")
            self.source.line(f"if {local} is None: continue")

        return CodeItem(self._needs(binding.expression), write, keeps=(local,))

    def _count(self) -> None:
        """An expression is evaluated here."""
        if self.work is not None:
            self.work.expression()

    def _needs(self, expression: Expression) -> frozenset[str]:
        return frozenset(self.rule.trigger.name if name == NOW else name for name in names(expression))

    def _write_match(self, loops: bool) -> None:
        """The end of the innermost loop: drop what has no graph, append the rest."""
        source, rule = self.source, self.rule
        rules = source.name("rules", tuple(plan.index for plan in self.plans))
        lo, hi = self.scope.range
        members = f"{rules}[{lo}:{hi}]" if self.ranged else rules
        if self.faults:
            drop = "lost.append" if loops else source.name("drop", self.drop)
            with source.block(f"if {self.faults}"):
                source.line(f"{drop}({members})")
                source.line("continue")
        if self.plan.referred or any(plan.rule.private for plan in self.plans):  # nobody else counts matches
            self._passed(CodeItem(frozenset(), lambda: None, stage="WITH"))
        facts = "f0, " + "".join(f"{self.scope.locals[c.position.name]}, " for c in rule.chosen)
        values = "".join(f"{self.bound[i]}, " for i in range(len(rule.bindings)))
        own = [i for i in range(len(rule.bindings)) if self.bound[i] == f"w{i}"]
        if not own:
            source.line(f"out.append(({members}, time, ({facts}), ({values})))")
            return
        source.line(f"facts_ = ({facts})")
        rows = [((plan.index,), *(_constant(plan, i) for i in own)) for plan in self.plans]
        names_ = ", ".join(["rule", *(f"w{i}" for i in own)])
        each = source.name("members", rows) + (f"[{lo}:{hi}]" if self.ranged else "")
        source.line(f"out += [(rule, time, facts_, ({values})) for {names_} in {each}]")

    def _faults(self) -> list[str]:
        """Tests for a literal as subject or anything but an IRI as predicate."""
        subjects, predicates, never = faults(self.rule)
        tests = [f"{self.bound[i]}[0] == '\"'" for i in sorted(subjects)]
        tests += [f"{self.bound[i]}[0] != '<'" for i in sorted(predicates)]
        return ["True"] if never else tests

    def _consume(self) -> Callable[[list[RawMatch], int], None]:
        """What happens after the matches of one trigger fact to the facts they consumed."""
        chosen = [c.position.name for c in self.rule.chosen]
        served = {
            step.conjunct.position.name: column
            for step, column in zip(self.plan.steps, self.columns, strict=True)
        }
        consumed = [(chosen.index(name) + 1, served[name]) for name in dict.fromkeys(self.rule.consuming)]

        def consume(out: list[RawMatch], start: int) -> None:
            for place, column in consumed:
                column.consume({match[2][place] for match in out[start:]})

        return consume


def ranged(plans: Sequence[RulePlan]) -> bool:
    """Whether rules of one shape differ in limits, so that a partial match carries a range of them."""
    return any(plan.limits != plans[0].limits for plan in plans)


def _loops(plan: RulePlan, ranged: bool) -> bool:
    """Whether it looks at more than one fact of some conjunct."""
    single = (LastValue, RunningTotal) if ranged else (LastValue, RunningTotal, MonotonicStack)
    return any(not isinstance(step.column.content, single) for step in plan.steps)


def _makes_text(rule: Rule) -> bool:
    """Whether an expression may make a text that is too long."""
    on = [conjunct.on for conjunct in rule.conjuncts]
    arguments = [c.argument for c in rule.conjuncts if isinstance(c, Summarise)]
    given = [binding.expression for binding in rule.bindings]
    return any(map(makes_text, [rule.where, *on, *arguments, *given]))


def _needed(plan: RulePlan) -> list[str]:
    """The steps without whose facts the rule is not looked at at all (network.py)."""
    return [
        label(step.conjunct)
        for step in plan.steps
        if isinstance(step.conjunct, Choose) and not step.column.chained
    ]


def _limits(plans: Sequence[RulePlan]) -> dict[int, list[int]]:
    """Limits of the members, in order: of the trigger under 0, of conjuncts under their number."""
    found: dict[int, list[int]] = {}
    for plan in plans:
        for number, threshold in plan.thresholds.items():
            found.setdefault(number, []).append(threshold.limit)
    return found


def _constant(plan: RulePlan, number: int) -> Term:
    expression = plan.rule.bindings[number].expression
    if not isinstance(expression, Const):
        raise AssertionError("members of a group have constants in the same places")
    return expression.term

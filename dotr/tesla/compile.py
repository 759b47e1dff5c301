"""A planned rule as one Python function: trigger facts in, matches out.

Place:   engine.py calls it when a rule first wakes; the parts of the language have their own files beside it:
         selection.py, negation.py, aggregation.py write the code of a conjunct.
Method:  one loop over the trigger facts; every conjunct, part of WHERE and binding is done as soon as what it
         looks at is known, so that what depends on the trigger alone is done once, whatever EACH multiplies.
         EACH, LAST k and FIRST k nest as loops in the order written, which is the output order; a conjunct
         that fails is a `continue`.
Why not: walking the plan per trigger fact, which costs 3 to 10 times as much; or rows of partial matches from
         conjunct to conjunct, which cost memory where few survive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from dotr.errors import Diagnostic, ProgramError
from dotr.events import Clock, Fact, RawMatch, Time
from dotr.ir.expressions import Const, Expression
from dotr.ir.rules import Absent, Between, Binding, Choose, Selection, Summarise, TemplateVar
from dotr.rdf.terms import is_iri, is_literal
from dotr.tesla import aggregation, negation, selection
from dotr.tesla.columns import Column
from dotr.tesla.conditions import NOW, names, parts
from dotr.tesla.plan import RulePlan, Step
from dotr.tesla.scope import Scope
from dotr.tesla.source import Source

Run: TypeAlias = Callable[[Time, Sequence[Fact], list[RawMatch]], None]
"""(instant, trigger facts in canonical order, where matches are appended in output order)."""

LOOPS = 12
"""How many loops nest before a further function goes on: CPython refuses twenty."""


@dataclass(slots=True)
class _Item:
    """Something to write as soon as `needs` are known: a conjunct, a part of WHERE, or a binding."""

    needs: frozenset[str]
    write: Callable[[], None]
    gives: str = ""
    local: str = ""
    loop: str = ""  # the list to loop over, for a conjunct with several choices
    keeps: tuple[str, ...] = ()


def compile_rule(
    plan: RulePlan,
    columns: Sequence[Column[Any]],
    clock: Clock,
    *,
    limit: int,
    drop: Callable[[], None],
) -> Run:
    """The function of one rule; `columns` serve its conjuncts, `drop` counts matches without a graph.

    The function raises ProgramError D4001 when one instant has more than `limit` matches.
    """
    return _RuleWriter(plan, columns, clock, limit, drop).function()


class _RuleWriter:
    """Owns one function under construction."""

    def __init__(
        self,
        plan: RulePlan,
        columns: Sequence[Column[Any]],
        clock: Clock,
        limit: int,
        drop: Callable[[], None],
    ) -> None:
        self.plan, self.rule, self.limit, self.drop = plan, plan.rule, limit, drop
        self.columns = columns
        variables = {position.name: position.variables for position in plan.rule.positions}
        self.source = Source()
        self.scope = Scope(self.source, clock, plan.rule.trigger.name, variables)
        self.bound: dict[int, str] = {}  # number of a WITH binding → its source
        self.explode = self.source.name("explode", _explosion(plan, clock, limit))

    def function(self) -> Run:
        source, rule = self.source, self.rule
        source.line("base = len(out)")
        items = [self._step(number, step) for number, step in enumerate(self.plan.steps, 1)]
        items += [self._part(part) for part in parts(rule.where)]
        items += [self._binding(i, binding) for i, binding in enumerate(rule.bindings)]
        loops = [item for item in items if item.loop]
        limit = source.name("limit", self.limit)
        with source.block("for f0 in facts"):
            outer = source.depth
            if rule.consuming:
                source.line("start = len(out)")
            self.scope.locals[rule.trigger.name] = "f0"
            kept: list[str] = []
            self._write_ready(items, kept)
            for number, item in enumerate(loops):
                if number and number % LOOPS == 0:
                    self._new_function(number // LOOPS, kept)
                if number == len(loops) - 1:
                    source.line(f"if len(out) - base > {limit}: {self.explode}(time)")
                source.open(f"for {item.local} in {item.loop}")
                self.scope.locals[item.gives] = item.local
                kept.append(item.local)
                self._write_ready(items, kept)
            self._write_match()
            source.resume(outer)
            if rule.consuming:
                source.line(f"if len(out) > start: {source.name('consume', self._consume())}(out, start)")
        source.line(f"if len(out) - base > {limit}: {self.explode}(time)")
        return source.function("time, facts, out")

    def _write_ready(self, items: list[_Item], kept: list[str]) -> None:
        """Write, in order, everything not yet written whose needs are known."""
        progress = True
        while progress:
            progress = False
            for item in list(items):
                if item.needs <= self.scope.locals.keys():
                    items.remove(item)
                    item.write()
                    kept += item.keeps
                    if item.gives and not item.loop:
                        self.scope.locals[item.gives] = item.local
                    progress = True

    def _new_function(self, number: int, kept: Sequence[str]) -> None:
        """Go on in a function of its own, given all that is known."""
        self.source.call(f"further{number}", ", ".join(("time", "out", "base", "f0", *kept)))
        self.source.open("for _ in (0,)")  # what fails is a `continue`

    def _step(self, number: int, step: Step) -> _Item:
        conjunct, column = step.conjunct, self.columns[number - 1]
        window = conjunct.window
        looked_at = [*step.probe, *([] if step.residual is None else [step.residual])]
        if isinstance(conjunct, Summarise) and conjunct.argument is not None:
            looked_at.append(conjunct.argument)
        needs = frozenset[str]().union(*map(names, looked_at)) - {conjunct.position.name, NOW}
        needs |= {window.start, window.end} if isinstance(window, Between) else {window.reference}
        source, scope = self.source, self.scope
        match conjunct:
            case Choose(selection=chosen, k=k):
                single = k == 1 and chosen is not Selection.EACH
                return _Item(
                    needs,
                    lambda: selection.write(source, scope, step, conjunct, column, number),
                    gives=conjunct.position.name,
                    local=f"f{number}",
                    loop="" if single else f"c{number}",
                    keeps=(f"f{number}",) if single else (f"c{number}",),
                )
            case Absent():
                return _Item(needs, lambda: negation.write(source, scope, step, column, number))
            case Summarise(variable=variable):
                return _Item(
                    needs,
                    lambda: aggregation.write(source, scope, step, conjunct, column, number),
                    gives="?" + variable,
                    local=f"a{number}",
                    keeps=(f"a{number}",),
                )
            case _:
                assert_never(conjunct)

    def _part(self, part: Expression) -> _Item:
        def write() -> None:
            self.source.line(f"if not {self.scope.test(part)}: continue")

        return _Item(self._needs(part), write)

    def _binding(self, number: int, binding: Binding) -> _Item:
        """WITH: an error or an unbound value drops the match."""
        if isinstance(binding.expression, Const):
            self.bound[number] = self.source.name("constant", binding.expression.term)
            return _Item(frozenset(), lambda: None)
        self.bound[number] = local = f"b{number}"

        def write() -> None:
            self.source.line(f"{local} = {self.scope.value(binding.expression)}")
            self.source.line(f"if {local} is None: continue")

        return _Item(self._needs(binding.expression), write, keeps=(local,))

    def _needs(self, expression: Expression) -> frozenset[str]:
        return frozenset(self.rule.trigger.name if name == NOW else name for name in names(expression))

    def _write_match(self) -> None:
        """The end of the innermost loop: drop what has no graph, append the rest."""
        source, rule = self.source, self.rule
        test = " or ".join(self._faults())
        if test:
            with source.block(f"if {test}"):
                source.line(f"{source.name('drop', self.drop)}()")
                source.line("continue")
        facts = "".join(f"{self.scope.locals[c.position.name]}, " for c in rule.chosen)
        values = "".join(f"{self.bound[i]}, " for i in range(len(rule.bindings)))
        index = source.name("rule", self.plan.index)
        source.line(f"out.append(({index}, time, (f0, {facts}), ({values})))")

    def _faults(self) -> list[str]:
        """Tests for a literal as subject or anything but an IRI as predicate."""
        numbers = {variable: i for i, variable in enumerate(self.rule.variables)}
        faults: dict[str, None] = {}
        for triple in self.rule.template:
            subject, predicate = triple.subject, triple.predicate
            if isinstance(subject, TemplateVar):
                faults[f"{self.bound[numbers[subject.name]]}[0] == '\"'"] = None
            elif isinstance(subject, str) and is_literal(subject):
                faults["True"] = None
            if isinstance(predicate, TemplateVar):
                faults[f"{self.bound[numbers[predicate.name]]}[0] != '<'"] = None
            elif isinstance(predicate, str) and not is_iri(predicate):
                faults["True"] = None
        return list(faults)

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


def _explosion(plan: RulePlan, clock: Clock, limit: int) -> Callable[[Time], None]:
    def explode(time: Time) -> None:
        raise ProgramError(
            Diagnostic(
                "D4001",
                f"rule `{plan.rule.name}` has more than {limit} matches at {clock.text(time)}",
                plan.rule.span,
                notes=("every EACH multiplies the matches by its candidates",),
                hint="narrow a window, equate a variable in ON, use LAST, or raise the limit",
            )
        )

    return explode

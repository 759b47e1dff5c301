"""Planned rules as one Python function: trigger facts in, matches out.

Place:   network.py calls it when rules first wake; operators.py writes the code of a conjunct.
Method:  one loop over the trigger facts; every conjunct, part of WHERE and binding is evaluated as soon as
         its inputs are known, so that what depends on the trigger alone is evaluated once, whatever EACH
         multiplies. Rules with a common beginning are one function: the beginning is written once, as in a
         Rete network (Forgy 1982), and each branch after it is a one-turn loop, which `continue` leaves. A
         branch starts with the units of work left where it begins: each rule is charged as if alone.
         RuleWriter writes the rules of one shape. Items before any loop are a list (`before_loops`), which
         are written one by one, or by another rule's writer; then follow the loops of this rule and the
         match. EACH, LAST k and FIRST k nest as loops in the order written, which is the output order; a
         conjunct that fails is a `continue`. With thresholds a loop over ranges of members, each with its
         choice or total, stands as far out as it can.
Why not: a function per rule: a thousand rules of different shapes would look up one fact a thousand times.
         Interpreting the plan per trigger fact costs 3 to 10 times as much; passing partial matches from
         conjunct to conjunct costs memory where few survive.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from dotr.budget import Exhausted
from dotr.codegen import CodeSource, Reserved
from dotr.detect.analysis import NOW, names, parts
from dotr.detect.columns import Column
from dotr.detect.dead_ends import Completable, Completion, completions, needed, parts_of
from dotr.detect.operators import DETECTED, CodeItem, StepCode, beyond, bisecting, find, newest_one, oldest
from dotr.detect.plan import Numbered, RulePlan
from dotr.detect.plan_step import FactLog, LastValue, MonotonicStack, PlanStep, RankedTotal, RunningTotal
from dotr.detect.scope import RuleWork, Scope, StageCounts, StageWriter, breaks, computed, faults
from dotr.detect.thresholds import write_size
from dotr.events import NEVER, Clock, Fact, RawMatch, Time
from dotr.expressions.functions import may_be_overlong
from dotr.program.names import label
from dotr.program.queries import Attribute, Const, Expression
from dotr.program.rules import Binding, Choose, Operator, Rule, Summarise, Within
from dotr.rdf.terms import Term, integer, size_of_list

Exceeded: TypeAlias = Callable[[Time, Fact, Exhausted, list[RawMatch], int, int], None]
"""(instant, trigger fact, what was too much, where matches are appended, from, to): the members in this range
have no match of the fact."""

LOOPS = 12
"""How many loops nest before another function continues: CPython refuses twenty."""


class SharedRules(NamedTuple):
    """Rules of one shape (sharing.py), usually one: `columns` serve their conjuncts; `exceeded` is called for
    a trigger fact that takes too much work; `stages` counts how far trigger facts get.
    """

    plans: Sequence[RulePlan]
    columns: Sequence[Column[Any]]
    exceeded: Exceeded
    stages: StageCounts | None = None


class RuleWriter:
    """Owns the part of one shape in a function under construction. `plan` represents all members."""

    def __init__(
        self,
        rules: SharedRules,
        source: CodeSource,
        clock: Clock,
        work: RuleWork | None,
        drop: Callable[..., None],
    ) -> None:
        self.plans, self.columns, self.exceeded, self.counts = rules
        self.plan = self.plans[0]
        self.rule, self.source, self.work, self.drop = self.plan.rule, source, work, drop
        self.ranged = ranged(self.plans)
        variables = {position.name: position.variables for position in self.rule.positions}
        optional = frozenset(c.position.name for c in self.rule.chosen if c.optional)
        self.scope = Scope(source, clock, self.rule.trigger.name, variables, optional, work)
        self.bound: dict[int, str] = {}  # number of a WITH binding → its source
        self.limits = _limits(self.plans) if self.ranged else {}
        self.triggered = "lo0", "hi0"  # locals that delimit the members it triggers
        counts = self.counts
        self.stages = None if counts is None else StageWriter(source, counts, _needed(self.plan))
        self.waiting: list[CodeItem] = []  # loops with listed candidates that are not open yet
        self._counted: set[int] = set()  # ids of the items after which matches are counted
        self.kept: list[str] = []  # locals with known values
        self.gathers = ""  # the list that collects its rules, if others may match equally
        self._numbered = Numbered(self.plan)
        self._items = [self._step(number, step) for number, step in enumerate(self.plan.steps, 1)]
        self._items += [self._part(part) for part in parts(self.rule.where)]
        self._items += [self._binding(i, binding) for i, binding in enumerate(self.rule.bindings)]
        self.parts = list(self._items)  # with dead_ends.py, by place: conjuncts, parts of WHERE, bindings
        self.counting = self.plan.counted is not None
        self.loops = [] if self.counting else [item for item in self._items if item.loop]
        self._filters = _Counts(self) if self.counting else _Filters(self)
        self.faults = " or ".join(self._faults())

    @property
    def loses(self) -> bool:
        """Whether loops drop matches: those of a fact that is too much work are not counted."""
        return bool(self.faults and self.loops)

    def before_loops(self) -> list[CodeItem]:
        """The items that can be written before any loop is open, in order.

        Bindings that only read a value are not, if a loop parts the members: what an unbound value drops has
        passed the steps that are counted in that loop. (Computed ones are counted with them.)
        """
        known = {self.rule.trigger.name, self.rule.triggering.name}
        found: list[CodeItem] = []
        progress, parted = True, False
        while progress:
            left: list[CodeItem] = []
            for item in self._items:
                if item.needs <= known and (item.stage or item.may_fail or not parted):
                    parted = parted or bool(item.target)
                    found.append(item)
                    if item.gives and not item.loop:
                        known.add(item.gives)
                else:
                    left.append(item)
            progress = len(left) < len(self._items)
            self._items = left
        self._filters.plan(frozenset(known))
        found.sort(key=self._filters.has)  # they may read what all others find
        return found

    def write_loops(self) -> None:
        """Write the loops, the items inside them, and the match; restores the depth."""
        source, work, loops, depth = self.source, self.work, self._in_order(), self.source.depth
        self._filters.begin()
        for number, item in enumerate(loops):
            if number and number % LOOPS == 0:
                self._new_function(number // LOOPS)
            if work is not None and number == len(loops) - 1:
                work.count_matches()
            if not number:
                self._filters.open_first(item)
            self._open(item)
            self._write_ready()
        self._write_match(bool(loops))
        source.resume(depth)
        if work is not None:
            if loops:
                work.count_matches()
            work.leave()

    def _in_order(self) -> list[CodeItem]:
        """The loops, outermost first: as written, but after those that part the members by what is known.
        Each member runs the body of such a loop once, so that moving it outwards changes no order of its
        matches.
        """
        known = {id(item) for item in self.waiting if item.choice}
        return sorted(self.loops, key=lambda item: id(item) not in known)

    def write_trigger(self) -> None:
        """Write the trigger fact's own tests, and how many members it passes for."""
        source, plan = self.source, self.plan
        self.begin()
        if plan.threshold is None:
            self._count_trigger(str(len(self.plans)))
        if self.ranged:
            source.line("lo0 = 0")
            if plan.threshold is None:
                source.line(f"hi0 = {source.name('count', len(self.plans))}")
        if plan.threshold is None:
            return
        write_size(source, plan.threshold.measure, "f0", "f0[1]")
        if self.ranged:
            cut = source.name("cut", bisect_right if plan.threshold.measure.inclusive else bisect_left)
            source.line(f"hi0 = {cut}({source.name('limits', self.limits[0])}, size)")
            source.line("if not hi0: continue")
            self._count_trigger("hi0")
        else:
            source.line(f"if size < {source.name('least', plan.threshold.least)}: continue")
            self._count_trigger(str(len(self.plans)))
        source.line("f0 = f0[:4]")

    def begin(self) -> None:
        """Make the trigger fact known, and the tick of an AFTER."""
        self.scope.locals[self.rule.triggering.name] = "f0"
        if self.plan.awaited is not None:
            self.scope.locals[self.rule.trigger.name] = "due"
            self.kept.append("due")
        if self.ranged:
            self.scope.range = self.triggered
            self.kept += self.triggered

    def _count_trigger(self, members: str) -> None:
        counts = self.counts
        if counts is not None and counts.triggers is not None:
            place = members if members == "hi0" else str(len(counts.triggers) - 1)
            self.source.line(f"{self.source.name('triggers', counts.triggers)}[{place}] += 1")

    def write_exceeded(self) -> None:
        """Write what happens if a trigger fact is too much work."""
        range_ = ", ".join(self.triggered) if self.ranged else f"0, {len(self.plans)}"
        self.source.line(f"{self.source.name('exceeded', self.exceeded)}(time, f0, spent, out, {range_})")

    def write_dropped(self) -> None:
        """Count what was lost."""
        self.source.line(f"for members in lost: {self.source.name('drop', self.drop)}(members)")

    def write_consumed(self) -> None:
        """Remove what was chosen from the candidates."""
        self.source.line(f"if len(out) > start: {self.source.name('consume', self._consume())}(out, start)")

    def advance(self, item: CodeItem, line: Reserved | None, like: RuleWriter | None = None) -> None:
        """An item, or an equal one of another writer, is written; a passed step is counted at `line`."""
        if like is not None:
            self.scope.range = like.scope.range
        self.kept += item.keeps
        if item.loop and self.counting:
            return
        if item.loop:
            self.waiting.append(item)
        self._passed(item, line)
        self._counted.add(id(item))
        if item.gives and not item.loop:
            self.scope.locals[item.gives] = item.local

    def _open(self, item: CodeItem) -> None:
        """The loop over a conjunct's choices."""
        if self.work is not None:
            self.work.loop(item.what, item.loop, choice=item.choice)
        self.source.open(f"for {item.target or item.local} in {item.loop}")
        self.scope.locals[item.gives] = item.local
        self.kept.append(item.local)
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
        self.kept += own
        self._opened()

    def _passed(self, item: CodeItem, line: Reserved | None) -> None:
        """Count what is left after a written item."""
        self._filters.lines[id(item)] = line
        if self.stages is not None and line is not None:
            loops, range_ = self._left()
            self.stages.passed(item.stage, loops, range_, line, may_fail=item.may_fail)
        elif self.stages is not None and not item.stage and item.may_fail:
            self.stages.bound()

    def _opened(self) -> None:
        if self.stages is not None:
            self.stages.opened(*self._left(), self.source.reserve())

    def _left(self) -> tuple[list[str], tuple[str, str] | None]:
        """The lists not looped over yet, and the members in range, if known without them."""
        known = not any(item.target for item in self.waiting)
        return [item.loop for item in self.waiting], self.scope.range if known and self.ranged else None

    def _write_ready(self) -> None:
        """Write, in order, every remaining item whose needs are known."""
        progress = True
        while progress:
            progress = False
            for item in list(self._items):
                if item.needs <= self.scope.locals.keys():
                    self._items.remove(item)
                    if not self._filters.tested(item):
                        item.write()
                    self.advance(item, self.source.reserve() if item.stage else None)
                    progress = True

    def _new_function(self, number: int) -> None:
        """Continue in a new function that takes all known values."""
        start = () if self.work is None else (self.work.start,)
        given = dict.fromkeys(("time", "out", *start, "f0", *self.kept))
        self.source.call(f"further{self.plan.index}_{number}", ", ".join(given))
        self.source.open("for _ in (0,)")  # a failure is a `continue`

    def _step(self, number: int, step: PlanStep) -> CodeItem:
        conjunct, least = step.conjunct, self._least(step)
        item = DETECTED[conjunct.operator].item(conjunct, needed(step), self.code_of(number, step))
        item.key = number, self._numbered.step(step), least
        return item

    def _least(self, step: PlanStep) -> int | None:
        return None if self.ranged or step.threshold is None else step.threshold.least

    def code_of(self, number: int, step: PlanStep) -> StepCode:
        """What the code of a conjunct reads."""
        limits, column = self.limits.get(number, ()), self.columns[number - 1]
        return StepCode(self.source, self.scope, step, column, limits, self._least(step), number)

    def _part(self, part: Expression) -> CodeItem:
        def write() -> None:
            self._count(part)
            self.source.line(f"if not {self.scope.test(part)}: continue")

        return CodeItem(self._needs(part), write, stage="WHERE", key=self._numbered.expression(part))

    def _binding(self, number: int, binding: Binding) -> CodeItem:
        """WITH: an error or an unbound value drops the match."""
        if isinstance(binding.expression, Const):
            same = len({_constant(plan, number) for plan in self.plans}) == 1
            known = self.source.name("constant", binding.expression.term)
            self.bound[number] = known if same else f"w{number}"
            return CodeItem(frozenset(), lambda: None, key=(), may_fail=False)
        self.bound[number] = local = f"b{number}"
        may_fail = computed(binding.expression)

        def write() -> None:
            if may_fail:
                self._count(binding.expression)
            self.source.line(f"{local} = {self.scope.value(binding.expression)}")
            self.source.line(f"if {local} is None: continue")

        key = number, self._numbered.expression(binding.expression)
        return CodeItem(self._needs(binding.expression), write, keeps=(local,), key=key, may_fail=may_fail)

    def _count(self, expression: Expression) -> None:
        """Charge an expression evaluated here."""
        if self.work is not None:
            self.work.expression(expression)

    def _needs(self, expression: Expression) -> frozenset[str]:
        return frozenset(self.rule.trigger.name if name == NOW else name for name in names(expression))

    def settle_filters(self, counted: Mapping[int, list[int]]) -> None:
        """The function is written: count dead ends, too. `counted`: the counts by line."""
        self._filters.settle(counted)

    def _write_match(self, loops: bool) -> None:
        """The end of the innermost loop: drop matches without a valid graph, append the rest."""
        source, rule = self.source, self.rule
        rules = source.name("rules", tuple(plan.index for plan in self.plans))
        lo, hi = self.scope.range
        members = f"{rules}[{lo}:{hi}]" if self.ranged else rules
        if self.counting:
            self._write_count(rules)
            return
        for number, binding in enumerate(rule.bindings):
            if self.work is not None and binding.variable in rule.lists:  # as many triples as it has members
                of = f"{source.name('size', size_of_list)}({self.bound[number]})"
                self.work.listed(f"the list ?{binding.variable}", of)
        if self.faults:
            drop = "lost.append" if loops and self.work is not None else source.name("drop", self.drop)
            with source.block(f"if {self.faults}"):
                source.line(f"{drop}({members})")
                source.line("continue")
        if self.plan.referred or any(plan.rule.private for plan in self.plans):  # not counted elsewhere
            self._passed(CodeItem(frozenset(), lambda: None, stage="WITH"), source.reserve())
        if self.gathers:
            source.line(f"{self.gathers} += {members}")
            source.line(f"{self.gathers}_ = ({self._values()})")  # another branch may bind these locals
            return
        facts, values = self._facts(), self._values()
        own = [i for i in range(len(rule.bindings)) if self.bound[i] == f"w{i}"]
        if not own:
            source.line(f"out.append(({members}, time, ({facts}), ({values})))")
            return
        source.line(f"facts_ = ({facts})")
        rows = [((plan.index,), *(_constant(plan, i) for i in own)) for plan in self.plans]
        names_ = ", ".join(["rule", *(f"w{i}" for i in own)])
        each = source.name("members", rows) + (f"[{lo}:{hi}]" if self.ranged else "")
        source.line(f"out += [(rule, time, facts_, ({values})) for {names_} in {each}]")

    def _write_count(self, rules: str) -> None:
        """All matches of the trigger fact as one, with their number as its last value."""
        source, rule, read = self.source, self.rule, self.plan.counted
        assert read is not None
        source.line(f"many = {self._filters.ways()}")
        if self.faults:
            with source.block(f"if {self.faults}"):
                source.line(f"{source.name('drop', self.drop)}({rules}, many)")
                source.line("continue")
        if self.stages is not None:
            line = source.reserve()
            rest = [item.stage for item in self.parts if item.stage and id(item) not in self._counted]
            for stage in [*rest, "WITH"]:
                self.stages.passed(stage, (), None, line, many="many")
        values = [self.bound[i] if b.variable in read else "None" for i, b in enumerate(rule.bindings)]
        values.append(f"{source.name('integer', integer)}(many)")
        source.line(f"out.append(({rules}, time, (f0,), ({', '.join(values)},)))")

    def match_here(self) -> Hashable:
        """Its match as a value, if all its parts are known; else None, also if it may have several."""
        if self.loops or self.faults or self.gathers or self.ranged:
            return None
        if any(self.bound[i] == f"w{i}" for i in range(len(self.rule.bindings))):
            return None
        if any(c.position.name not in self.scope.locals for c in self.rule.chosen):
            return None
        given: list[Hashable] = []
        for binding in self.rule.bindings:
            if not self._needs(binding.expression) <= self.scope.locals.keys():
                return None
            given.append(self._numbered.expression(binding.expression))
        return self._facts(), tuple(given)

    def write_gathered(self, name: str) -> None:
        """The match of all rules in a list, with the bindings of one of them."""
        whole = self.source.name("tuple", tuple)
        self.source.line(f"out.append(({whole}({name}), time, ({self._facts()}), {name}_))")

    def _facts(self) -> str:
        return "f0, " + "".join(f"{self.scope.locals[c.position.name]}, " for c in self.rule.chosen)

    def _values(self) -> str:
        return "".join(f"{self.bound[i]}, " for i in range(len(self.rule.bindings)))

    def _faults(self) -> list[str]:
        """Tests for a literal as subject or anything but an IRI as predicate."""
        subjects, predicates, never, spread = faults(self.rule)
        tests = [f"{self.bound[i]}[0] == '\"'" for i in sorted(subjects)]
        tests += [f"{self.bound[i]}[0] != '<'" for i in sorted(predicates)]
        for triple in spread:
            nodes = [self.bound[n] if isinstance(n, int) else self.source.name("node", n) for n in triple]
            tests.append(f"{self.source.name('breaks', breaks)}({', '.join(nodes)})")
        return ["True"] if never else tests

    def _consume(self) -> Callable[[list[RawMatch], int], None]:
        """Write what happens to consumed facts after the matches of one trigger fact."""
        chosen = [c.position.name for c in self.rule.chosen]
        served = {
            step.conjunct.position.name: column
            for step, column in zip(self.plan.steps, self.columns, strict=True)
        }
        consumed = [(chosen.index(name) + 1, served[name]) for name in dict.fromkeys(self.rule.consuming)]

        def consume(out: list[RawMatch], start: int) -> None:
            for place, column in consumed:
                taken = {match[2][place] for match in out[start:]}
                column.consume({fact for fact in taken if fact[0] != NEVER})

        return consume


class _Filters:
    """Owns what the function of a rule has to leave dead ends out (dead_ends.py): for each filtered loop a
    local `m<n>`, which keeps what one trigger fact's search found, and a function beside the rule's own,
    `completed<n>`: (instant, what is known before all loops, candidates, carried facts) → those that pass.
    """

    def __init__(self, rule: RuleWriter) -> None:
        self.lines: dict[int, Reserved | None] = {}  # of an item, by id: where it is counted
        self._rule = rule
        self._all: dict[int, Completion] = {}  # loops, by place
        self._found: dict[int, Completion] = {}  # those that are filtered
        self._places: dict[int, int] = {}  # of items, by id
        self._writes: dict[int, Callable[[], None]] = {}  # their candidates, by place
        self._tested: set[int] = set()  # ids of items that candidates have passed when a loop begins
        self._dead: list[tuple[int, Reserved, str]] = []  # (id of an item, where it is counted, how)
        self._tested_before: set[int] = set()  # loops whose candidates are known where they are listed next
        self._begun = False
        self._results: tuple[str, ...] = ("passing",)  # of the functions
        self._any = False  # whether one candidate is enough

    def plan(self, known: frozenset[str]) -> None:
        """Choose the loops. `known`: before any is open."""
        rule = self._rule
        if len(rule.loops) < 2 or rule.limits.keys() - {0}:  # what members choose differs
            return
        items = rule.parts
        found = completions(parts_of(rule.rule, rule.plan.steps), known)
        self._all = found
        self._found = {place: one for place, one in found.items() if one.filtered}
        self._places = {id(item): place for place, item in enumerate(items)}
        for place, one in self._found.items():
            item = items[place]
            self._writes[place] = item.write
            item.write = partial(self._write, place)
            item.key = id(rule), place  # other rules may go on in another way
            item.needs |= {position for position, _ in one.carried}
            self._tested |= {id(items[i]) for i in one.parts if not (items[i].gives or items[i].loop)}

    def has(self, item: CodeItem) -> bool:
        """Whether it is a filtered loop."""
        return self._places.get(id(item)) in self._found

    def tested(self, item: CodeItem) -> bool:
        """Whether nothing is left to be written of an item."""
        return id(item) in self._tested

    def begin(self) -> None:
        """All that is known before loops is known: begin what is kept of a trigger fact's search."""
        if not self._found or self._begun:
            return
        self._begun = True
        rule, source, keyed = self._rule, self._rule.source, self._keyed()
        memos = [f"m{place + 1}" for place in sorted(self._found)]
        for place in sorted(self._found):
            made = "{}" if keyed[place] or not self._sliced(place) else self._new()
            source.line(f"m{place + 1} = {made}")
        given = [*dict.fromkeys(rule.scope.locals.values()), *memos, *(rule.triggered if rule.ranged else ())]
        source.line(f"known = ({', '.join(given)},)")
        rule.kept += ["known", *memos]
        for place in sorted(self._found):
            self._write_function(place, given)
        self._tested_before = {child for one in self._found.values() for child in one.parts}

    def ways(self) -> str:
        """Source of the number of matches; only where they are counted."""
        raise AssertionError("matches are listed")

    def _new(self) -> str:
        return f"{self._rule.source.name('completable', Completable)}()"

    def _keyed(self) -> dict[int, bool]:
        """Whether candidates are kept by key, for each loop."""
        steps = self._rule.plan.steps
        return {
            place: bool(one.carried or (self._sliced(place) and steps[place].probe))
            for place, one in self._found.items()
        }

    def _sliced(self, place: int) -> bool:
        """Whether its candidates are a range of a bucket, but for the reference's own fact."""
        step = self._rule.plan.steps[place]
        each = isinstance(step.conjunct, Choose) and step.conjunct.operator is Operator.EACH
        plain = isinstance(step.column.content, FactLog) and step.residual is None
        return each and plain and not step.conjunct.per  # type: ignore[union-attr]  # an EACH is a Choose

    def _write(self, place: int) -> None:
        """`c<n>`: the candidates that pass; `continue` without one."""
        self.begin()
        if self._sliced(place):
            self._write_slice(place)
        else:
            self._write_filter(place)

    def _kept(self, place: int, made: str) -> str:
        """Write the look-up of what is kept for a bucket, and for what is carried; its local."""
        rule, number = self._rule, place + 1
        if not self._keyed()[place]:
            return f"m{number}"
        source, step = rule.source, rule.plan.steps[place]
        keys = [f"k{number}_{i}" for i in range(len(step.probe))] if self._sliced(place) else []
        for position, variable in self._found[place].carried:
            keys.append(rule.scope.value(Attribute(position, variable)))
        key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
        source.line(f"v{number} = m{number}.get({key})")
        source.line(f"if v{number} is None: v{number} = m{number}[{key}] = {made}")
        return f"v{number}"

    def _call(self, place: int, candidates: str) -> str:
        rule = self._rule
        carried = dict.fromkeys(rule.scope.locals[p] for p, _ in self._found[place].carried)
        given = ", ".join(["time", "known", candidates, *carried])
        return f"{self._name(place)}({given})"

    def _name(self, place: int) -> str:
        return f"completed{self._rule.plan.index}_{place + 1}"

    def _tell(self, place: int) -> tuple[str, str, str]:
        """Write what makes the candidates of a window known: (what keeps them, from, up to before)."""
        rule, number = self._rule, place + 1
        source, scope, step = rule.source, rule.scope, rule.plan.steps[place]
        if step.probe or place not in self._tested_before:
            bucket = find(source, scope, step, rule.columns[place], number)
            source.line(f"if {bucket} is None: continue")
        since, until = f"lo{number}", f"hi{number}"
        source.line(f"{since} = {oldest(source, scope, step)}")
        source.line(f"{until} = {beyond(scope, step) or 'time + 1'}")
        window = step.conjunct.window
        if isinstance(window, Within) and not window.duration:
            source.line(f"if {since} >= {until}: continue")
        kept = self._kept(place, self._new())
        if place not in self._tested_before:
            with source.block(f"if {since} < {kept}.since or {until} > {kept}.until"):
                self._extend(place, kept, since, until)
        return kept, since, until

    def _write_slice(self, place: int) -> None:
        rule, number, bisect = self._rule, place + 1, bisecting(self._rule.source)
        source, scope, step = rule.source, rule.scope, rule.plan.steps[place]
        kept, since, until = self._tell(place)
        source.line(f"known{number} = {kept}.facts")
        source.line(f"i = {bisect}(known{number}, ({since},))")
        if self._any and step.itself is None:
            many = f"{source.name('length', len)}(known{number})"
            source.line(f"if i == {many} or known{number}[i][0] >= {until}: continue")
            return
        source.line(f"c{number} = known{number}[i:{bisect}(known{number}, ({until},), i)]")
        if step.itself is not None:
            source.line(f"c{number} = [x for x in c{number} if x != {scope.locals[step.itself]}]")
        source.line(f"if not c{number}: continue")

    def _extend(self, place: int, kept: str, since: str, until: str) -> None:
        """Write the test of the candidates between two times, where it is not known yet who passes."""
        source, bucket = self._rule.source, f"q{place + 1}"
        bisect = bisecting(source)
        with source.block(f"for since, until in {kept}.gaps({since}, {until})"):
            part = f"{bucket}[{bisect}({bucket}, (since,)):{bisect}({bucket}, (until,))]"
            source.line(f"{kept}.put({self._call(place, part)})")

    def open_first(self, item: CodeItem) -> None:
        """The first loop is opened next."""
        if self._found and id(item) in self._places:
            self._tested_before |= self._ahead(item, item.loop)

    def _ahead(self, item: CodeItem, candidates: str) -> set[int]:
        """Write, before the loop over `candidates` of an item, the test of all that is measured from them,
        where that is the same bucket for all and nothing else is tested before: one call instead of one a
        candidate. Returns the loops for which that was done.
        """
        done: set[int] = set()
        place = self._places[id(item)]
        rule, source = self._rule, self._rule.source
        known = rule.scope.locals.keys()
        for child in self._all[place].parts:
            part, step = rule.parts[child], rule.plan.steps[child] if child < len(rule.plan.steps) else None
            window = None if step is None else step.conjunct.window
            if not (part.loop and isinstance(window, Within) and window.reference == item.gives):
                if part.may_fail:
                    break
                continue
            if step is None or child not in self._found or not (self._sliced(child) and window.duration):
                continue
            read = frozenset[str]().union(*map(names, step.probe)) - {step.conjunct.position.name, NOW}
            if not read | {position for position, _ in self._found[child].carried} <= known:
                continue
            source.line(f"{item.local} = {candidates}[0]")
            rule.scope.locals[item.gives] = item.local
            bucket = find(source, rule.scope, step, rule.columns[child], child + 1)
            del rule.scope.locals[item.gives]
            with source.block(f"if {bucket} is not None"):
                kept = self._kept(child, self._new())
                width = source.name("width", window.duration)
                beyond_ = int(not window.before)
                source.line(f"ahead = {kept}.ahead({bucket}, {candidates}, {width}, {beyond_})")
                source.line(f"if ahead: {kept}.put({self._call(child, 'ahead')})")
            done.add(child)
        return done

    def _write_filter(self, place: int) -> None:
        rule, number = self._rule, place + 1
        source, listed = rule.source, f"c{number}"
        self._writes[place]()
        if rule.work is not None:
            rule.work.listed(rule.plan.steps[place].title, f"len({listed})")
        kept = self._kept(place, "{}")
        every = source.name("every", dict.fromkeys)
        source.line(f"new{number} = [x for x in {listed} if x not in {kept}]")
        with source.block(f"if new{number}"):
            source.line(f"{kept}.update({every}(new{number}, False))")
            source.line(f"{kept}.update({every}({self._call(place, f'new{number}')}, True))")
        source.line(f"{listed} = [x for x in {listed} if {kept}[x]]")
        source.line(f"if not {listed}: continue")

    def _write_function(self, place: int, given: Sequence[str]) -> None:
        """Write the function that tests candidates."""
        rule, completion, item = self._rule, self._found[place], self._rule.parts[place]
        source, scope, work = rule.source, rule.scope, rule.work
        before, scope.locals = scope.locals, dict(scope.locals)
        for position, _ in completion.carried:
            scope.locals[position] = f"carried_{position}"
        carried = dict.fromkeys(scope.locals[position] for position, _ in completion.carried)
        with source.aside(self._name(place), ", ".join(["time", "known", "new", *carried])) as body:
            unpacked = source.reserve()
            results = self._results
            source.line(f"if not new: return {', '.join('new' for _ in results)}")
            self._count_dead(item, "len(new)")
            for result in results:
                source.line(f"{result} = []")
            self._tested_before = self._ahead(item, "new")
            passed: list[CodeItem] = [item]
            if work is not None:
                work.loop(item.what, "new")
            with source.block(f"for {item.local} in new"):
                scope.locals[item.gives] = item.local
                for other in completion.parts:
                    self._write_test(other, completion)
                    passed.append(rule.parts[other])
                    self._count_dead(rule.parts[other], "1")
                self._write_pass(item, completion)
            if work is not None:
                work.leave()
            for one in passed:
                self._count_dead(one, "-len(passing)")
            source.line(f"return {', '.join(results)}")
            text = "\n".join(map(str, body))
            read = [f"{name} = known[{i}]" for i, name in enumerate(given) if re.search(rf"\b{name}\b", text)]
            unpacked.text = "; ".join(read) or "pass"
        scope.locals = before

    def _write_pass(self, item: CodeItem, completion: Completion) -> None:
        """A candidate passes."""
        self._rule.source.line(f"passing.append({item.local})")

    def _write_test(self, place: int, completion: Completion) -> None:
        """A part of what must be found for a candidate; `continue` where it is not."""
        rule, item = self._rule, self._rule.parts[place]
        source, scope, work = rule.source, rule.scope, rule.work
        if not item.loop:
            item.write()
            if item.gives:
                scope.locals[item.gives] = item.local
            return
        tests = completion.pairs.get(place)
        if tests is None:
            self._write_any(place)
            return
        item.write()
        if work is not None:
            work.loop(item.what, item.loop)
        before = dict(scope.locals)
        with source.block(f"for {item.local} in {item.loop}"):
            scope.locals[item.gives] = item.local
            for test in tests:
                if rule.parts[test].loop:
                    self._write_any(test)
                else:
                    rule.parts[test].write()
                    scope.locals[rule.parts[test].gives] = rule.parts[test].local
            source.line("break")
        source.line("else: continue")
        scope.locals = before
        if work is not None:
            work.leave(1)

    def _write_any(self, place: int) -> None:
        """`continue` if a loop has no candidate."""
        rule, number = self._rule, place + 1
        step = rule.plan.steps[place]
        conjunct = step.conjunct
        if place in self._found or (isinstance(conjunct, Choose) and conjunct.per):
            before, self._any = self._any, True
            rule.parts[place].write()
            self._any = before
            return
        code = rule.code_of(number, step)
        bucket = find(rule.source, rule.scope, step, code.column, number)
        rule.source.line(f"if {bucket} is None: continue")
        newest_one(code)
        rule.source.line(f"if f{number} is None: continue")

    def _count_dead(self, item: CodeItem, many: str) -> None:
        """What a candidate passed is counted; where it passes all, when it is enumerated."""
        self._dead.append((id(item), self._rule.source.reserve(), many))

    def settle(self, counted: Mapping[int, list[int]]) -> None:
        """Fill the reserved lines."""
        for item, line, many in self._dead:
            counts = counted.get(id(self.lines.get(item)))
            if counts is None:
                continue
            passed = self._rule.source.name("passed", counts)
            lo, hi = self._rule.triggered
            ranged_ = f"{passed}[{lo}] += {many}; {passed}[{hi}] -= {many}"
            line.text = ranged_ if self._rule.ranged else f"{passed}[0] += {many}"


class _Counts(_Filters):
    """Owns what the function of a rule whose matches are counted needs (counting.py): each loop is a number,
    `n<n>`, of ways to go on from what is known. Its functions return, beside the candidates that pass, the
    ways from each.
    """

    def __init__(self, rule: RuleWriter) -> None:
        from dotr.detect import counting  # noqa: PLC0415  # start-up: few rules are counted

        super().__init__(rule)
        self._counting = counting
        self._results = ("passing", "ways")
        self._first: list[int] = []  # the loops that are measured from what is known before all

    def plan(self, known: frozenset[str]) -> None:
        """All loops are counted. `known`: before any would be open."""
        rule, items = self._rule, self._rule.parts
        self._all = completions(self._counting.counted_parts(rule.rule, rule.plan.steps), known, counted=True)
        self._found = {place: one for place, one in self._all.items() if one.filtered}
        self._places = {id(item): place for place, item in enumerate(items)}
        for place in self._all:
            item = items[place]
            if item.needs <= known:
                self._first.append(place)
            self._writes[place] = item.write
            item.write = partial(self._write, place)
            item.key = id(rule), place

    def ways(self) -> str:
        """Source of the number of matches."""
        return " * ".join(f"n{place + 1}" for place in self._first)

    def settle(self, counted: Mapping[int, list[int]]) -> None:
        """Candidates are not counted one by one."""

    def _count_dead(self, item: CodeItem, many: str) -> None:
        pass

    def _new(self) -> str:
        return f"{self._rule.source.name('counts', self._counting.Counts)}()"

    def _write(self, place: int) -> None:
        """`n<n>`; `continue` if it is 0."""
        self.begin()
        rule, number = self._rule, place + 1
        source, scope, step = rule.source, rule.scope, rule.plan.steps[place]
        many = f"n{number}"
        if place in self._found and self._sliced(place):
            kept, since, until = self._tell(place)
            source.line(f"{many} = {kept}.many({since}, {until})")
            if step.itself is not None:
                source.line(f"{many} -= {kept}.of({scope.locals[step.itself]})")
        elif place in self._found:
            kept = self._write_listed(place)
            source.line(f"{many} = sum([{kept}[x] for x in c{number}])")
        elif self._sliced(place):
            self._write_window(place)
        else:
            self._writes[place]()
            source.line(f"{many} = len(c{number})")
        source.line(f"if {many} <= 0: continue")

    def _write_window(self, place: int) -> None:
        """`n<n>`, where all in a window are candidates."""
        rule, number = self._rule, place + 1
        source, scope, step = rule.source, rule.scope, rule.plan.steps[place]
        bucket, bisect = find(source, scope, step, rule.columns[place], number), bisecting(source)
        source.line(f"if {bucket} is None: continue")
        source.line(f"lo{number} = {bisect}({bucket}, ({oldest(source, scope, step)},))")
        end = beyond(scope, step)
        upper = f"len({bucket})" if end is None else f"{bisect}({bucket}, ({end},))"
        source.line(f"n{number} = {upper} - lo{number}")
        if step.itself is not None:
            itself = f"{source.name('holds', self._counting.holds)}({bucket}, {scope.locals[step.itself]})"
            source.line(f"if {itself}: n{number} -= 1")

    def _write_listed(self, place: int) -> str:
        """`c<n>`: the candidates of a loop that is not a range of a bucket; what keeps the ways from each."""
        rule, number = self._rule, place + 1
        source, listed = rule.source, f"c{number}"
        self._writes[place]()
        if rule.work is not None:
            rule.work.listed(rule.plan.steps[place].title, f"len({listed})")
        kept = self._kept(place, "{}")
        source.line(f"new{number} = [x for x in {listed} if x not in {kept}]")
        with source.block(f"if new{number}"):
            source.line(f"{kept}.update({source.name('every', dict.fromkeys)}(new{number}, 0))")
            source.line(f"{kept}.update(zip(*{self._call(place, f'new{number}')}))")
        return kept

    def _write_pass(self, item: CodeItem, completion: Completion) -> None:
        source, parts = self._rule.source, self._rule.parts
        source.line(f"passing.append({item.local})")
        ways = " * ".join(f"n{other + 1}" for other in completion.parts if parts[other].loop)
        source.line(f"ways.append({ways or 1})")

    def _write_any(self, place: int) -> None:
        self._write(place)

    def _write_test(self, place: int, completion: Completion) -> None:
        rule, number, tests = self._rule, place + 1, completion.pairs.get(place)
        if tests is None:
            super()._write_test(place, completion)
            return
        item, source, scope, work = rule.parts[place], rule.source, rule.scope, rule.work
        self._write_pairs(place)
        if work is not None:
            work.loop(item.what, item.loop)
        before = dict(scope.locals)
        source.line(f"n{number} = 0")
        ways = [f"way{number}"]
        with source.block(f"for {item.local}, way{number} in zip({item.loop}, ways{number})"):
            scope.locals[item.gives] = item.local
            for test in tests:
                rule.parts[test].write()
                if rule.parts[test].loop:
                    ways.append(f"n{test + 1}")
                elif rule.parts[test].gives:
                    scope.locals[rule.parts[test].gives] = rule.parts[test].local
            source.line(f"n{number} += {' * '.join(ways)}")
        source.line(f"if not n{number}: continue")
        scope.locals = before
        if work is not None:
            work.leave(1)

    def _write_pairs(self, place: int) -> None:
        """`c<n>`: the candidates of a loop, `ways<n>`: the ways from each."""
        rule, number = self._rule, place + 1
        source, step = rule.source, rule.plan.steps[place]
        if place in self._found and self._sliced(place):
            kept, since, until = self._tell(place)
            itself = "None" if step.itself is None else rule.scope.locals[step.itself]
            source.line(f"c{number}, ways{number} = {kept}.between({since}, {until}, {itself})")
        elif place in self._found:
            kept = self._write_listed(place)
            source.line(f"ways{number} = [{kept}[x] for x in c{number}]")
        else:
            self._writes[place]()
            source.line(f"ways{number} = (1,) * len(c{number})")


def ranged(plans: Sequence[RulePlan]) -> bool:
    """Whether rules of one shape differ in limits, so that a partial match carries a range of them."""
    return any(plan.limits != plans[0].limits for plan in plans)


def works(plans: Sequence[RulePlan]) -> bool:
    """Whether a trigger fact may take rules of one shape too much work: one of them reads more than one fact
    of some conjunct, or may make a string or number that is too long.
    """
    plan = plans[0]
    single = (LastValue, RunningTotal, MonotonicStack, RankedTotal)
    loops = any(not isinstance(step.column.content, single) for step in plan.steps)
    return loops or _may_be_overlong(plan.rule)


def _may_be_overlong(rule: Rule) -> bool:
    """Whether an expression may make a string or number that is too long."""
    on = [conjunct.on for conjunct in rule.conjuncts]
    arguments = [c.argument for c in rule.conjuncts if isinstance(c, Summarise)]
    given = [binding.expression for binding in rule.bindings]
    return any(map(may_be_overlong, [rule.where, *on, *arguments, *given]))


def _needed(plan: RulePlan) -> list[str]:
    """The steps without whose facts the rule is not evaluated (network.py)."""
    return [
        label(step.conjunct)
        for step in plan.steps
        if isinstance(c := step.conjunct, Choose) and not c.optional and not step.column.chained
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


Run: TypeAlias = Callable[[Time, Sequence[Fact], list[RawMatch]], None]
"""(instant, trigger facts in canonical order, where matches are appended in output order)."""

BRANCHES = 4
"""How deep branches of rules with a common beginning nest; loops nest inside, and CPython refuses twenty."""


def compile_rules(
    shapes: Sequence[SharedRules],
    clock: Clock,
    *,
    budget: int,
    drop: Callable[..., None],
    spent: list[int] | None = None,
) -> Run:
    """The function of rules of one trigger, by shape (sharing.py); usually of one rule.

    `drop` gets the rules of matches that have no graph. A match shared by several rules of a shape is one
    entry. A trigger fact that takes more than `budget` units of work yields no match; `exceeded` of its shape
    is called instead. `spent`: see RuleWork.
    """
    source = CodeSource()
    work = RuleWork(source, budget, spent) if any(works(shape.plans) for shape in shapes) else None
    writers = [RuleWriter(shape, source, clock, work, drop) for shape in shapes]
    return _FunctionWriter(source, work).function(writers)


class _Branch:
    """Owns what remains to be written of one shape before its loops."""

    __slots__ = ("items", "writer")

    def __init__(self, writer: RuleWriter) -> None:
        self.writer = writer
        self.items = writer.before_loops()
        self.items.reverse()

    @property
    def next(self) -> CodeItem | None:
        return self.items[-1] if self.items else None


class _FunctionWriter:
    """Owns one function under construction."""

    def __init__(self, source: CodeSource, work: RuleWork | None) -> None:
        self._source = source
        self._work = work

    def function(self, writers: Sequence[RuleWriter]) -> Run:
        source = self._source
        branches = [_Branch(writer) for writer in writers]
        if writers[0].plan.awaited is not None:
            source.line('due = (time, (), 0, "")')
        with source.block("for f0 in facts"):
            first, *others = writers
            if first.rule.consuming and self._work is None:
                source.line("start = len(out)")
            first.write_trigger()
            for other in others:
                other.begin()
            if self._work is not None:
                self._work.begin()
            self._limited(branches, 0)
            if first.rule.consuming:  # then it is alone
                first.write_consumed()
        if self._work is not None:
            self._work.settle()
        counted: dict[int, list[int]] = {}
        for writer in writers:
            if writer.stages is not None:
                writer.stages.settle(counted)
                writer.settle_filters(counted)
        return source.function("time, facts, out")

    def _limited(self, branches: list[_Branch], depth: int) -> None:
        """Write rules that are equal so far; too much work of theirs ends here."""
        source, work = self._source, self._work
        if work is None:
            self._alike(branches, depth)
            return
        outer, before = source.depth, work.start
        work.start = start = f"start{depth}" if depth else "start"
        source.line(f"{start} = len(out)")
        loses = [branch.writer for branch in branches if branch.writer.loses]
        alone = len(branches) == 1 and bool(loses)
        if alone:
            source.line("lost = []")
            loses[0].kept.append("lost")
        source.open("try")
        self._alike(branches, depth)
        source.resume(outer)
        with source.block(f"except {source.name('exhausted', Exhausted)} as spent"):
            source.line(f"del out[{start}:]")
            for branch in branches:
                branch.writer.write_exceeded()
            source.line("continue")
        if alone:
            loses[0].write_dropped()
        work.start = before

    def _alike(self, branches: list[_Branch], depth: int) -> None:
        """Write what all have next in common, then each branch."""
        while True:
            ways: dict[object, list[_Branch]] = {}
            for number, branch in enumerate(branches):
                item = branch.next
                apart = item is None or depth == BRANCHES  # branches are independent
                ways.setdefault(("alone", number) if apart or item is None else item.key, []).append(branch)
            if len(ways) > 1:
                break
            if branches[0].next is None:
                branches[0].writer.write_loops()
                return
            self._item(branches)
        local = f"left{depth}_"
        if self._work is not None:
            self._work.save(local)
        gathered = self._gathered(branches, depth)
        for number, way in enumerate(ways.values()):
            with self._source.block("for _ in (0,)"):
                if number and self._work is not None:
                    self._work.restore(local)
                self._limited(way, depth + 1)
        for name, writer in gathered.items():
            with self._source.block(f"if {name}"):
                writer.write_gathered(name)

    def _gathered(self, branches: Sequence[_Branch], depth: int) -> dict[str, RuleWriter]:
        """Rules that branch here with equal matches, if any, are collected in a list: (its local, one of
        them).
        """
        alike: dict[object, list[RuleWriter]] = {}
        for branch in branches:
            match = branch.writer.match_here()
            if match is not None:
                alike.setdefault(match, []).append(branch.writer)
        found: dict[str, RuleWriter] = {}
        for writers in alike.values():
            if len(writers) > 1:
                name = f"same{depth}_{len(found)}"
                self._source.line(f"{name} = []")
                found[name] = writers[0]
                for writer in writers:
                    writer.gathers = name
        return found

    def _item(self, branches: Sequence[_Branch]) -> None:
        """Write the next item of all, once."""
        first, *others = [(branch.writer, branch.items.pop()) for branch in branches]
        writer, item = first
        item.write()
        line = self._source.reserve() if item.stage else None
        writer.advance(item, line)
        for other, same in others:
            other.advance(same, line, writer)

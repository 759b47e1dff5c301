"""LARS rules that are evaluated together: components, their order, and their differences.

Place:   building.py makes components, engine.py evaluates them in order at each point; engine.py splits the
         strata it is given into components; callers with no order (tests, plans of .lars files alone) take
         `strata`.
Method:  strongly connected components of names, dependencies first. NOT and aggregates inside one have no
         stratified meaning (Apt, Blair, Walker 1988); positive recursion, through windows or not, is fine. A
         component is bounded or open-ended (engine.py).
         Differences: what a rule of an open-ended, non-recursive component gains and may lose when the tables
         that it reads change. A new solution has a row that began under a positive atom, or one that ended
         under NOT: the body is joined from there over what holds now. A lost head had a row that ended under
         a positive atom, or meets one that began under NOT: the heads that hold and agree with it in the
         variables that both have are checked again, and kept if any rule still derives them.
Limits:  where a row shares no variable with the head, or a head leaves a table of the body open, all heads
         would be checked each time: such a component is derived as a whole instead.
Why not: counting derivations: it needs joins over what held before, too, and state for every head.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.budget import Meter
from dotr.joins.plan import AbsentPattern, BodyPattern, Item, bound_by
from dotr.program.program import (
    Argument,
    FactWindow,
    LarsProgram,
    LarsRule,
    Modality,
    TimeWindow,
    WindowAggregate,
    WindowAtom,
)
from dotr.program.queries import Var
from dotr.windows.body_code import (
    HeadSink,
    WindowTables,
    compile_body,
    compile_check,
    pattern,
)
from dotr.windows.tables import Relation, SolutionBuffer
from dotr.windows.window_tables import Agenda, AtomTable, Index, Row
from dotr.windows.windows import FactView, Totals


class SolutionDelta(Struct, frozen=True, eq=False):
    """A join from rows that began (`ended`: that ended) in a table at this point."""

    table: AtomTable
    ended: bool
    run: Callable[[list[Row]], None]
    sink: SolutionBuffer

    def find(self) -> None:
        assert self.table.net is not None
        rows = self.table.net.ended if self.ended else self.table.net.began
        if rows:
            self.run(list(rows))
            self.sink.empty()


class Loss(Struct, frozen=True, eq=False):
    """Which heads may be lost by rows that ended (`began`: that began) in a table. `key` reads what a row
    shares with heads, `index` has the heads by that; None: all of them.
    """

    table: AtomTable
    began: bool
    key: Callable[[Row], Any]
    index: Index | None
    single: bool

    def candidates(self, open_ended: Iterable[Row]) -> Iterable[Row]:
        assert self.table.net is not None
        found: dict[Row, None] = {}
        for row in list(self.table.net.began if self.began else self.table.net.ended):
            read = self.key(row)
            if read is None:
                continue
            if self.index is None:
                return open_ended
            shared, _ = read
            found.update(dict.fromkeys(self.index.get(shared[0] if self.single else shared, ())))
        return found


class Differences(Struct, frozen=True, eq=False):
    """One rule. `check`: whether it derives a head now; None for heads AT, which are never lost."""

    gains: Sequence[SolutionDelta]
    losses: Sequence[Loss] = ()
    check: Callable[..., bool] | None = None


def differences(
    items: Sequence[Item],
    rule: LarsRule,
    sink: HeadSink,
    relation: Relation,
    tables: WindowTables,
    carried: bool = False,
) -> Differences | None:
    """How a rule is kept up; None where it had better be derived as a whole. `carried`: it is the rest of a
    rule of `inertia`, which makes nothing begin.
    """
    bindable, columns = bound_by(items), rule.head.atom.arguments
    if carried:
        bindable = bindable | {column.name for column in columns if isinstance(column, Var)}
    gains = []
    for place, item in enumerate(() if carried else items):
        first, rest = item, [*items[:place], *items[place + 1 :]]
        if isinstance(item, AbsentPattern):  # it must be absent still: of what NOT ranges over, a row is gone
            renamed = tuple(_renamed(column, bindable) for column in item.pattern.columns)
            first = BodyPattern(item.pattern.relation, renamed)
            rest.append(item)
        if isinstance(first, BodyPattern):
            run = compile_body([first, *rest], sink, tables, rule, 0)
            ended = isinstance(item, AbsentPattern)
            gains.append(SolutionDelta(tables.table(first), ended, run, sink.target))
    if sink.at is not None:
        return Differences(gains)
    losses = []
    for item in items:
        if isinstance(item, BodyPattern | AbsentPattern):
            loss = _loss(item, columns, bindable, relation, tables)
            if loss is None:
                return None
            losses.append(loss)
    check = compile_check(items, columns, tables, rule)
    return None if check is None else Differences(gains, losses, check)


def _loss(
    item: BodyPattern | AbsentPattern,
    columns: Sequence[Argument],
    bindable: set[str],
    relation: Relation,
    tables: WindowTables,
) -> Loss | None:
    began = isinstance(item, AbsentPattern)
    atom = item.pattern if isinstance(item, AbsentPattern) else item
    shared: dict[str, int] = {}
    for place, column in enumerate(columns):
        if isinstance(column, Var) and column.name in bindable.intersection(atom.variables):
            shared.setdefault(column.name, place)
    if columns and not shared:
        return None
    key = pattern(atom.columns, [Var(name) for name in shared], None, tables.moment)
    if not shared:
        return Loss(tables.table(atom), began, key, None, False)
    assert relation.present is not None
    index = relation.present.table.index(tuple(shared.values()))
    return Loss(tables.table(atom), began, key, index, len(shared) == 1)


def _renamed(column: Argument, bindable: set[str]) -> Argument:
    """A variable that is local to a NOT, by a name that nothing else has."""
    return Var(f"{column.name} of NOT") if isinstance(column, Var) and column.name not in bindable else column


class TableTrigger(Struct, eq=False):
    """A rule's join from what is new in one of its tables. `done`: how much of that it has seen."""

    table: AtomTable
    run: Callable[[list[Row]], None]
    sink: SolutionBuffer
    done: int = 0


class BoundedHeads:
    """Owns the triggers of a component whose heads are only ever prolonged.

    `recursive`: its joins may make something new for each other.
    """

    def __init__(
        self,
        heads: Sequence[Relation],
        triggers: Sequence[TableTrigger],
        recursive: bool,
        watched: Sequence[Relation],
    ) -> None:
        self.heads = heads
        self._triggers, self._recursive = triggers, recursive
        self.watched = watched
        self.evaluated = True

    def evaluate(self, now: int) -> None:
        if self._recursive:
            for trigger in self._triggers:
                trigger.done = 0
            run_all(self._triggers)
            return
        for trigger in self._triggers:
            delta = trigger.table.delta
            if delta:
                trigger.run(delta)
                trigger.sink.empty()


def run_all(triggers: Sequence[TableTrigger]) -> None:
    """Run triggers until none has anything new."""
    moved = True
    while moved:
        moved = False
        for trigger in triggers:
            delta = trigger.table.delta
            if len(delta) > trigger.done:
                new = delta[trigger.done :]
                trigger.done = len(delta)
                trigger.run(new)
                trigger.sink.empty()
                moved = True


class Reads(Struct, eq=False):
    """What the rules of an open-ended component read."""

    tables: dict[AtomTable, None] = field(default_factory=dict)
    fact_views: dict[FactView, None] = field(default_factory=dict)
    totals: dict[Totals, None] = field(default_factory=dict)

    def refresh(self, now: int) -> None:
        """Bring up to date what is computed from other tables."""
        for view in self.fact_views:
            view.refresh(now)
        for total in self.totals:
            total.refresh()

    @property
    def changed(self) -> bool:
        """Whether a row began or ended at this point."""
        return any(table.changed for table in self.tables)


class OpenEndedHead(Struct, eq=False):
    """Owns the rules of one head that holds until something that they read changes.

    `whole`: every rule over all that holds, into `found`. `differences`: the same rules from what changed;
    None where they are derived as a whole each time.
    """

    relation: Relation
    reads: Reads
    whole: Sequence[tuple[Callable[[], None], SolutionBuffer]]
    found: dict[Row, None]
    differences: Sequence[Differences] | None
    meter: Meter
    watched: Sequence[Relation] = ()
    evaluated: bool = field(default=False)

    def evaluate(self, now: int) -> None:
        self.reads.refresh(now)
        if self.evaluated and self.reads.changed and self.differences is not None:
            self._keep_up(self.differences)
        elif self.reads.changed or not self.evaluated:
            self._derive()
        self.evaluated = True
        self.relation.settle()

    @property
    def heads(self) -> Sequence[Relation]:
        return (self.relation,)

    def _derive(self) -> None:
        relation, found = self.relation, self.found
        found.clear()
        for run, sink in self.whole:
            run()
            sink.empty()
        for values in [values for values in relation.open_ended if values not in found]:
            relation.stop(values)
        relation.start(found)

    def _keep_up(self, rules: Sequence[Differences]) -> None:
        relation, found = self.relation, self.found
        found.clear()
        for rule in rules:
            for gain in rule.gains:
                gain.find()
        open_ended = relation.open_ended
        doubtful: dict[Row, None] = {}
        for rule in rules:
            for loss in rule.losses:
                doubtful.update((row, None) for row in loss.candidates(open_ended) if row not in found)
        self.meter.charge(len(doubtful), f"{relation.name}() that may have ended")
        for row in doubtful:
            if row in open_ended and not any(rule.check is not None and rule.check(*row) for rule in rules):
                relation.stop(row)
        relation.start(found)


class Recursive(Struct, eq=False):
    """Owns the rules of heads that depend on each other and hold until something that they read changes.

    `whole`: every rule over all that holds. `triggers`: over the component's own tables. `carried`: what the
    last derivation cost is charged where it is not repeated, too, as it would be beside other keys.
    """

    heads: Sequence[Relation]
    reads: Reads
    whole: Sequence[tuple[Callable[[], None], SolutionBuffer]]
    triggers: Sequence[TableTrigger]
    meter: Meter
    agenda: Agenda
    carried: bool = False
    watched: Sequence[Relation] = ()
    evaluated: bool = field(default=False)
    cost: int = 0

    def evaluate(self, now: int) -> None:
        self.reads.refresh(now)
        if not self.evaluated or self.reads.changed or self._goes_on():
            left = self.meter.left[0]
            self._derive()
            self.cost = left - self.meter.left[0]
            # what rests on atoms that are put at this point alone has to be found again at the next
            self.evaluated = not any(relation.put_now for relation in self.heads)
            if not self.evaluated:
                self.agenda.add(now + 1)
        elif self.carried:
            self.meter.charge(self.cost, "what stands")
        for relation in self.heads:
            relation.settle()

    def _goes_on(self) -> bool:
        """Whether a rule sees each point at which a head of its own holds."""
        return any(view.ends for head in self.heads for view in head.each_point)

    def _derive(self) -> None:
        """What held is stopped first, so that nothing supports itself."""
        for relation in self.heads:
            for values in list(relation.open_ended):
                relation.stop(values)
        for trigger in self.triggers:
            trigger.done = len(trigger.table.delta)
        for run, sink in self.whole:
            run()
            sink.empty()
        run_all(self.triggers)


Component = BoundedHeads | OpenEndedHead | Recursive


def inertia(rule: LarsRule, step: int) -> LarsRule | None:
    """What a rule needs beside an atom of its head at the point before, where it does nothing but carry that
    on unless an atom of a NOT holds: `p(?x) :- p(?x) WITHIN 1 s, NOT q(?x)` with STEP 1 s (inertia of the
    event calculus, RTEC). None for other rules. `step` in µs.
    """
    own = [literal for literal in rule.body if isinstance(literal, WindowAtom) and not literal.negated]
    rest = tuple(literal for literal in rule.body if literal not in own)
    if rule.head.at is not None or len(own) != 1:
        return None
    sometime = (None, Modality.SOMETIME)
    carried = own[0].atom == rule.head.atom and own[0].modality in sometime
    unless = all(
        isinstance(literal, WindowAtom)
        and literal.modality in sometime
        and not isinstance(literal.window, FactWindow)
        and literal.atom.name != rule.head.atom.name
        for literal in rest
    )
    return replace(rule, body=rest) if carried and unless and own[0].window == TimeWindow(step) else None


def reads(rule: LarsRule) -> Iterator[tuple[str, str]]:
    """(name, "NOT" | "AGGREGATE" | "") of every atom of a body."""
    for literal in rule.body:
        if isinstance(literal, WindowAtom | WindowAggregate):
            negated = isinstance(literal, WindowAtom) and literal.negated
            strict = "NOT" if negated else "AGGREGATE" if isinstance(literal, WindowAggregate) else ""
            yield literal.atom.name, strict
            if isinstance(literal.window, FactWindow):
                yield from ((name, strict) for name in literal.window.streams if name != literal.atom.name)


def strata(program: LarsProgram) -> list[list[int]]:
    """Numbers of rules by component of their heads, dependencies first; program order within one."""
    return components(program.rules, range(len(program.rules)))


def components(rules: Sequence[LarsRule], numbers: Collection[int]) -> list[list[int]]:
    """Some of the rules by component of their heads, dependencies first."""
    reached = _reached(_graph(rules, numbers))
    found: list[list[int]] = []
    placed: set[str] = set()
    heads = list(dict.fromkeys(rules[number].head.atom.name for number in numbers))
    while heads:
        ready = next(h for h in heads if all(b in placed or h in reached.get(b, ()) for b in reached[h]))
        members = {ready, *(b for b in reached[ready] if ready in reached.get(b, ()))}
        placed |= members
        heads = [head for head in heads if head not in members]
        found.append([number for number in numbers if rules[number].head.atom.name in members])
    return found


def recursive(rules: Sequence[LarsRule]) -> bool:
    """Whether a head of these rules, which are one component, depends on one."""
    heads = {rule.head.atom.name for rule in rules}
    return any(name in heads for rule in rules for name, _ in reads(rule))


def _graph(rules: Sequence[LarsRule], numbers: Collection[int]) -> dict[str, dict[str, None]]:
    """Head → the heads among these rules that it reads."""
    heads = {rules[number].head.atom.name for number in numbers}
    graph: dict[str, dict[str, None]] = {}
    for number in numbers:
        found = graph.setdefault(rules[number].head.atom.name, {})
        found.update((name, None) for name, _ in reads(rules[number]) if name in heads)
    return graph


def _reached(graph: Mapping[str, Mapping[str, None]]) -> dict[str, set[str]]:
    """Head → every head that it depends on, by whatever way."""
    found = {}
    for start in graph:
        seen: set[str] = set()
        todo = list(graph[start])
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += graph[name]
        found[start] = seen
    return found

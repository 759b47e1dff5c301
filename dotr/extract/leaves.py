"""Executable conjunctions: the leaves of every query, run by the join kernel.

Place:   between algebra.py and joins/: patterns and the filters over them become plans; binds, and filters
         that read them, are closures after the plan.
Method:  one plan for every set of variables that callers bind, made on demand; for changes one plan per
         pattern, started by an added or withdrawn row of its relation (old/all split, so that every solution
         is found once).
Why not: the kernel's assignments: there an error ends the row, in SPARQL it leaves the variable unbound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

from dotr.budget import KEPT, Meter
from dotr.expressions.evaluate import compile_condition, compile_expression, own_calls, units
from dotr.expressions.geometry import TOUCHING
from dotr.extract.algebra import (
    BasicGraphPattern,
    Pattern,
    Step,
    constants_of,
    mentioned,
    pattern_names,
    possible,
)
from dotr.extract.full import Explosion
from dotr.extract.operators import Change, Compute, Lookup, Row, Seed, Test, Watched, agrees, picker, seeded
from dotr.extract.printing import Writer
from dotr.extract.rewriting import Rewriter
from dotr.joins.code import AnySolution, RowSink, compile_plan
from dotr.joins.paths import automaton
from dotr.joins.plan import (
    ALL,
    BodyPattern,
    Check,
    Item,
    JoinPlan,
    Probe,
    Relation,
    RowFilter,
    View,
    delta_views,
    is_class,
    is_path,
    plan,
    substitute_expression,
    triple_pattern,
    withdrawn_views,
)
from dotr.joins.store import TripleIndex
from dotr.program import Attribute, Bind, Call, Const, Expression, Node, TimeOf, Var
from dotr.rdf.terms import Term

_UNBOUND = Call("COALESCE", ())


def without(expression: Expression, known: Iterable[str]) -> Expression:
    """The expression with an error in place of every unknown variable."""
    names = frozenset(known)

    def node(part: Expression) -> Expression:
        return _UNBOUND if isinstance(part, Var) and part.name not in names else part

    return Rewriter(node, lambda nested: nested).expression(expression)


class Scalars:
    """Compiles expressions over rows of a schema; `NOW()` is the store's moment."""

    def __init__(self, store: TripleIndex) -> None:
        self._moment = store.moment

    def compute(self, expression: Expression, schema: Sequence[str]) -> Compute:
        """The value of an expression; None for an error."""
        moment = self._moment
        return compile_expression(expression, _places(schema), clock=moment.clock, now=moment.read)

    def test(self, conditions: Sequence[Expression], schema: Sequence[str]) -> Test:
        """Whether all conditions hold."""
        moment = self._moment
        tests = [
            compile_condition(condition, _places(schema), clock=moment.clock, now=moment.read)
            for condition in conditions
        ]
        if len(tests) == 1:
            return tests[0]
        return lambda row: all(test(row) for test in tests)


def _places(schema: Sequence[str]) -> Callable[[Var | Attribute | TimeOf], Compute]:
    places = {name: i for i, name in enumerate(schema)}

    def leaf(variable: Var | Attribute | TimeOf) -> Compute:
        place = places.get(variable.name) if isinstance(variable, Var) else None
        return _nothing if place is None else lambda row: row[place]

    return leaf


def _nothing(row: Row) -> None:
    return None


def in_order(
    evaluate: Callable[[Any], object], calls: int, *, all_rows: bool = False
) -> Callable[[Sequence[Any]], None]:
    """Calls what rows need of functions of one's own, in canonical order; see `call_in_order`."""
    from dotr.expressions.own_functions import call_in_order  # noqa: PLC0415  # start-up: few runs call one

    return lambda rows: call_in_order(evaluate, rows, calls, all_rows=all_rows)


NO_LIMIT = 2**62


def bounded(rows: list[Row], limit: int) -> Callable[[Row], None]:
    """A consumer that appends to `rows`. Raises Explosion for more than `limit`."""
    append = rows.append
    if limit == NO_LIMIT:
        return append

    def out(row: Row) -> None:
        append(row)
        if len(rows) > limit:
            raise Explosion

    return out


class Leaf:
    """One conjunction. Rows are over its variables in alphabetical order, or over `columns`.

    `checks` are further conditions. Raises Explosion for more than `limit` rows. Plans are made, and their
    indexes declared, when the leaf is built; functions on their first run.
    """

    def __init__(
        self,
        conjunction: BasicGraphPattern,
        store: TripleIndex,
        checks: Sequence[Check] = (),
        *,
        columns: Sequence[str] | None = None,
        limit: int = NO_LIMIT,
        meter: Meter | None = None,
    ) -> None:
        self.store = store
        self.meter = store.meter if meter is None else meter
        self.limit = limit
        self._bound = pattern_names(conjunction.patterns)
        constants = constants_of(conjunction.steps)
        items, later = _items(conjunction, constants, store, self.meter)
        self.items: tuple[Item, ...] = (*sorted(items, key=self._rank), *checks)
        self.schema = tuple(sorted(possible(conjunction)) if columns is None else columns)
        wide = tuple(dict.fromkeys((*self.schema, *sorted(_touched(later)))))
        self.outputs = tuple(_output(name, self._bound, constants) for name in wide)
        blank = [i for i, name in enumerate(wide) if name not in self._bound and name not in constants]
        self.finish = _behind(later, wide, blank, len(self.schema), Scalars(store), self.meter)
        self._finders: dict[tuple[View, tuple[str, ...]], Lazy] = {}
        self._any: Lazy | None = None
        self.certain = self._bound.union(constants).intersection(self.schema)
        self.statically_empty = not self._fruitful()
        self.calls = calls_of(conjunction.steps)
        self.deltas = [*self._plans(View.ADDED, delta_views), *self._plans(View.REMOVED, withdrawn_views)]

    def _rank(self, item: Item) -> tuple[int, int]:
        """Patterns that only a stream can match come first, so that plans started elsewhere vanish."""
        if not isinstance(item, BodyPattern):
            return 2, 0
        bound = sum(not isinstance(node, Var) for node in item.columns)
        filled = item.relation == ALL or self.store.filled(item.relation)
        if is_path(item.relation):
            return (1 if filled else 0), 3
        return (1 if filled else 0), (0 if is_class(item.relation) else 1 if bound else 2)

    def _plans(self, view: View, views: Callable[[Sequence[Item], int], dict[int, View]]) -> Iterator[Delta]:
        for place, item in enumerate(self.items):
            if not isinstance(item, BodyPattern) or self.store.is_static(item.relation):
                continue
            if view is View.REMOVED and (self.statically_empty or not self.store.may_lose(item.relation)):
                continue
            made = plan(self.items, self.outputs, self.store, views=views(self.items, place), first=place)
            self.store.changes(item.relation)
            if not self._dead(made):
                self.store.prepare(made)
                yield Delta(item.relation, view, made, self.store, self.meter)

    def _dead(self, made: JoinPlan) -> bool:
        """Whether a step reads a relation that the background lacks."""
        return any(
            isinstance(step, Probe)
            and step.view in (View.OLD, View.KEPT)
            and step.pattern.relation != ALL
            and not self.store.filled(step.pattern.relation)
            for step in made.steps
        )

    @property
    def patterns(self) -> list[BodyPattern]:
        return [item for item in self.items if isinstance(item, BodyPattern)]

    @property
    def single(self) -> bool:
        """Whether it has no more answers than one relation has rows: a single pattern that is not a path."""
        return len(self.patterns) == 1 and not is_path(self.patterns[0].relation)

    def follows(self, relation: Relation) -> bool:
        """Whether a path of a pattern may use rows of the relation."""
        paths = [self.store.paths[p.relation] for p in self.patterns if is_path(p.relation)]
        return any(relation in path.sources or ALL in path.sources for path in paths)

    @property
    def additive(self) -> bool:
        """Whether no instant removes an answer."""
        return all(delta.view is View.ADDED for delta in self.deltas)

    def _fruitful(self) -> bool:
        """Whether the background alone has an answer, or may get one, as far as the kernel knows."""
        made = plan(self.items, (), self.store, view=View.OLD, as_set=True)
        if self._dead(made):
            return False
        changing = any(self.store.changing(pattern.relation) for pattern in self.patterns)
        return changing or bool(compile_plan(made, self.store, AnySolution(), meter=self.meter)())

    def watch(self) -> list[Watched]:
        return list(self.deltas)

    def lookup(self, names: Sequence[str]) -> Lookup:
        given = tuple(sorted(self._bound.intersection(names)))
        if len(given) < len(names):  # some are constants
            return seeded(self, names)
        finders = {view: self._finder(view, given) for view in (View.OLD, View.NEW)}
        order = [names.index(name) for name in given]
        same = order == list(range(len(order)))
        limit = self.limit

        def look(view: View, values: Sequence[Term]) -> list[Row]:
            found: list[Row] = []
            finders[view].run(bounded(found, limit), *(values if same else [values[i] for i in order]))
            return found if self.finish is None else self.finish(found)

        return look

    def _finder(self, view: View, given: tuple[str, ...]) -> Lazy:
        finder = self._finders.get((view, given))
        if finder is None:
            made = plan(self.items, self.outputs, self.store, given=given, view=view)
            if view is View.NEW:
                self.store.prepare(made)
            finder = self._finders[view, given] = Lazy(made, self.store, meter=self.meter)
        return finder

    def rows(self, view: View, seed: Seed) -> list[Row]:
        given = tuple(sorted(self._bound.intersection(seed)))
        found: list[Row] = []
        self._finder(view, given).run(bounded(found, self.limit), *[seed[name] for name in given])
        if self.finish is not None:
            found = self.finish(found)
        if len(given) < len(seed):
            columns = [(i, n) for i, n in enumerate(self.schema) if n in seed and n not in self._bound]
            if columns:
                found = [row for row in found if agrees(row, columns, seed)]
        return found

    def binds(self, names: Iterable[str]) -> bool:
        """Whether its patterns bind all of these."""
        return self._bound.issuperset(names)

    def any(self) -> bool:
        """Whether the background has a solution. Stops at the first."""
        if self.finish is not None:
            return bool(self.rows(View.OLD, {}))
        if self._any is None:
            made = plan(self.items, (), self.store, view=View.OLD, as_set=True)
            self._any = Lazy(made, self.store, AnySolution(), self.meter)
        return bool(self._any.run())

    def changes(self) -> list[Change]:
        found: list[Change] = []
        limit = self.limit
        for delta in self.deltas:
            if delta.path is not None:
                delta.path.run()
            if delta.moving:
                rows: list[Row] = []
                delta.run(rows.append if limit >= NO_LIMIT else bounded(rows, limit))
                if rows:
                    if self.finish is not None:
                        rows = self.finish(rows)
                    sign = 1 if delta.view is View.ADDED else -1
                    found += [(row, sign) for row in rows]
        return found


class Lazy:
    """A plan that is compiled on its first run."""

    __slots__ = ("_meter", "_sink", "plan", "run", "store")

    def __init__(
        self, made: JoinPlan, store: TripleIndex, sink: RowSink | None = None, meter: Meter | None = None
    ) -> None:
        self.plan = made
        self._meter = meter
        self.store = store
        self._sink = sink
        self.run: Callable[..., Any] = self._first

    def _first(self, *arguments: Any) -> Any:
        self.run = compile_plan(self.plan, self.store, self._sink, meter=self._meter)
        return self.run(*arguments)


class Delta(Lazy):
    """The plan that rows of one relation start, added or withdrawn."""

    __slots__ = ("moving", "path", "sources", "view")

    def __init__(
        self, relation: Relation, view: View, made: JoinPlan, store: TripleIndex, meter: Meter
    ) -> None:
        super().__init__(made, store, meter=meter)
        self.sources = store.sources(relation)
        self.path = store.paths.get(relation)
        self.view = view
        changes = store.changes(relation)
        self.moving = changes.added if view is View.ADDED else changes.removed
        """The rows that start it; for a path, after it has run."""


def body_pattern(pattern: Pattern, store: TripleIndex, meter: Meter) -> BodyPattern:
    """A query's pattern for the kernel; the relation of a path is made in the store."""
    subject, predicate, object_ = pattern.subject, pattern.predicate, pattern.object
    if isinstance(predicate, (str, Var)):
        return triple_pattern(subject, predicate, object_)
    ends = None if isinstance(subject, Var) else subject, None if isinstance(object_, Var) else object_
    path = store.path(Writer().path(predicate), automaton(predicate), ends, meter)
    return BodyPattern(path.relation, (subject, object_))


def _items(
    conjunction: BasicGraphPattern, constants: dict[str, Term], store: TripleIndex, meter: Meter
) -> tuple[list[Item], list[Step]]:
    """Patterns first, then the filters that the kernel runs; and the steps after it, in order."""
    bound = pattern_names(conjunction.patterns)
    items: list[Item] = [body_pattern(pattern, store, meter) for pattern in conjunction.patterns]
    assigned = {
        s.variable.name for s in conjunction.steps if isinstance(s, Bind) and s.variable.name not in constants
    }
    later: list[Step] = []
    for step in conjunction.steps:
        if isinstance(step, Bind):
            if step.variable.name not in constants:
                later.append(step)
        elif mentioned(step.condition) & assigned:
            later.append(step)
        else:
            known = substitute_expression(step.condition, constants)
            items.append(RowFilter(without(known, bound)))
    return [*items, *_nearby(items, store, meter)], later


def _nearby(items: Sequence[Item], store: TripleIndex, meter: Meter) -> Iterator[BodyPattern]:
    """Patterns that stand for filters over geometries where one of the two is an object of a predicate."""
    conditions = [item.condition for item in items if isinstance(item, RowFilter)]
    tests = [test for test in conditions if isinstance(test, Call) and test.function in TOUCHING]
    if not tests:
        return
    objects = {
        pattern.columns[1].name: pattern.relation
        for pattern in items
        if isinstance(pattern, BodyPattern)
        and len(pattern.columns) == 2
        and isinstance(pattern.columns[1], Var)
        and pattern.relation not in store.general
        and not is_path(pattern.relation)
        and store.filled(pattern.relation)
    }
    for test in tests:
        for turned in (False, True):
            place, object_ = test.arguments[::-1] if turned else test.arguments
            match place, object_:
                case (Var() | Const(), Var(name)) if name in objects and place != object_:
                    node = place.term if isinstance(place, Const) else place
                    relation = store.nearby(objects[name], test.function, turned, meter)
                    yield BodyPattern(relation, (node, object_))


def _output(name: str, bound: Iterable[str], constants: dict[str, Term]) -> Node:
    """What the kernel puts into a column; arbitrary for a column that a bind fills later."""
    return Var(name) if name in bound else constants.get(name, '""')


def units_of_steps(steps: Iterable[Step]) -> int:
    """Units of work of the steps for a row."""
    return units(*(step.expression if isinstance(step, Bind) else step.condition for step in steps))


def calls_of(steps: Iterable[Step]) -> int:
    """How many calls of functions of one's own they have."""
    return sum(own_calls(s.expression if isinstance(s, Bind) else s.condition) for s in steps)


def _touched(steps: Iterable[Step]) -> set[str]:
    """Variables that steps read or set."""
    found: set[str] = set()
    for step in steps:
        if isinstance(step, Bind):
            found |= mentioned(step.expression) | {step.variable.name}
        else:
            found |= mentioned(step.condition)
    return found


def _behind(
    steps: Sequence[Step],
    columns: Sequence[str],
    blank: Sequence[int],
    width: int,
    scalars: Scalars,
    meter: Meter,
) -> Callable[[list[Row]], list[Row]] | None:
    """The steps after the plan, as a function of its rows; None if rows stay as they are.

    Columns at `blank` are unbound before; only the first `width` columns remain.
    """
    if not steps and not blank:
        return None
    work: list[tuple[int, Any]] = []
    each = KEPT + units_of_steps(steps)
    calls = calls_of(steps)
    for step in steps:
        if isinstance(step, Bind):
            work.append((columns.index(step.variable.name), scalars.compute(step.expression, columns)))
        else:
            work.append((-1, scalars.test([step.condition], columns)))

    def finish(rows: list[Row]) -> list[Row]:
        meter.charge(len(rows), "rows that BIND and FILTER are computed for", each)
        if call is not None:
            call(rows)
        return [one for row in rows if (one := finished(row)) is not None]

    def finished(row: Row) -> Row | None:
        values = list(row)
        for place in blank:
            values[place] = None
        for place, function in work:
            if place >= 0:
                values[place] = function(values)
            elif not function(values):
                return None
        return tuple(values[:width])

    call = in_order(finished, calls) if calls else None
    return finish


class ExistsLeaf:
    """The pattern of an EXISTS: a union of conjunctions in which the row's variables are constants.

    `schema` are the row's variables, `certain` those that every row binds.
    """

    def __init__(
        self,
        branches: Sequence[BasicGraphPattern],
        store: TripleIndex,
        schema: Sequence[str],
        certain: frozenset[str],
        meter: Meter,
    ) -> None:
        self.store = store
        self._meter = meter
        self._branches = branches
        read = {name for branch in branches for name in _all_names(branch)}
        self._read = [(name, i) for i, name in enumerate(schema) if name in read]
        self._finders: dict[tuple[View, tuple[str, ...]], list[Lazy]] = {}
        names = tuple(name for name, _ in self._read)
        for view in (View.OLD, View.NEW):
            self._finders[view, names] = [self._lazy(branch, view, names) for branch in branches]
        self._key = picker([place for _, place in self._read])
        self._plain = certain.issuperset(names)
        self._usual = {view: self._finders[view, names] for view in (View.OLD, View.NEW)}

    def found(self, view: View, row: Row) -> bool:
        """Whether the pattern has a solution for this row."""
        if self._plain:
            values = self._key(row)
            return any(finder.run(*values) for finder in self._usual[view])
        bound = [(name, row[i]) for name, i in self._read if row[i] is not None]
        given = tuple(name for name, _ in bound)
        known = [value for _, value in bound if value is not None]
        finders = self._finders.get((view, given))
        if finders is None:
            finders = self._finders[view, given] = [self._lazy(b, view, given) for b in self._branches]
        return any(finder.run(*known) for finder in finders)

    def _lazy(self, branch: BasicGraphPattern, view: View, given: Sequence[str]) -> Lazy:
        made = self._plan(branch, view, given)
        if view is View.NEW:
            self.store.prepare(made)
        return Lazy(made, self.store, AnySolution(), self._meter)

    def _plan(self, branch: BasicGraphPattern, view: View, given: Sequence[str]) -> JoinPlan:
        known = pattern_names(branch.patterns).union(given)
        items: list[Item] = [body_pattern(pattern, self.store, self._meter) for pattern in branch.patterns]
        tests = [without(step.condition, known) for step in branch.steps if not isinstance(step, Bind)]
        items += [RowFilter(test) for test in tests if not own_calls(test)]
        if calling := [test for test in tests if own_calls(test)]:  # together: each round sees all of them
            items.append(RowFilter(reduce(lambda left, right: Call("&&", (left, right)), calling)))
        items += _nearby(items, self.store, self._meter)
        return plan(items, (), self.store, given=given, view=view, as_set=True)


def _all_names(branch: BasicGraphPattern) -> frozenset[str]:
    conditions = (step.condition for step in branch.steps if not isinstance(step, Bind))
    return pattern_names(branch.patterns).union(*map(mentioned, conditions))

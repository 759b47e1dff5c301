"""Conjunctions executable: the leaves of every query, run by the join kernel.

Place:   between algebra.py and joins/: patterns and the filters over them become plans; binds, and filters
         that read them, are closures behind the plan.
Method:  one plan for every set of variables that a caller has values for, made when first asked; for changes
         one plan a pattern, started by an added or withdrawn row of its relation (old/all split, so that
         every solution is found once).
Why not: the kernel's own assignments: an error ends their row, in SPARQL it leaves the variable unbound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.ir import Attribute, Bind, Call, Expression, Node, TimeOf, Var
from dotr.joins.body import Guard, Item, Pattern, View, triple_pattern
from dotr.joins.emit import compile_plan
from dotr.joins.planner import Plan, delta_views, plan, withdrawn_views
from dotr.joins.store import Store
from dotr.joins.variables import substitute_expression
from dotr.rdf.terms import Term
from dotr.sparql.algebra import Conjunction, Step, constants_of, mentioned, pattern_names, possible
from dotr.sparql.operators import Change, Compute, Row, Seed, Test
from dotr.sparql.rewriting import Rewriter

Finder = Callable[..., None]
"""Called with a consumer of rows and the given values or the triggering row."""

_UNBOUND = Call("COALESCE", ())


def without(expression: Expression, known: Iterable[str]) -> Expression:
    """The expression with an error in place of every variable that is not known."""
    names = frozenset(known)

    def node(part: Expression) -> Expression:
        return _UNBOUND if isinstance(part, Var) and part.name not in names else part

    return Rewriter(node, lambda nested: nested).expression(expression)


class Scalars:
    """Owns how expressions over rows of a schema are compiled; `NOW()` is the store's moment."""

    def __init__(self, store: Store) -> None:
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


class Leaf:
    """One conjunction. Rows are over its variables in alphabetical order."""

    def __init__(self, conjunction: Conjunction, store: Store) -> None:
        self._store = store
        self._bound = pattern_names(conjunction.patterns)
        constants = constants_of(conjunction.steps)
        self._items, later = _items(conjunction, constants)
        self.patterns = [item for item in self._items if isinstance(item, Pattern)]
        self.schema = tuple(sorted(possible(conjunction)))
        self._outputs = tuple(_output(name, self._bound, constants) for name in self.schema)
        self._finish = _behind(later, self.schema, Scalars(store))
        self._finders: dict[tuple[View, tuple[str, ...]], Finder] = {}
        self._deltas: dict[tuple[View, int], Finder] = {}

    def rows(self, view: View, seed: Seed) -> list[Row]:
        given = tuple(sorted(self._bound.intersection(seed)))
        finder = self._finders.get((view, given))
        if finder is None:
            finder = self._finders[view, given] = compile_plan(self.plan(view, given), self._store)
        found: list[Row] = []
        finder(found.append, *[seed[name] for name in given])
        return found if self._finish is None else self._finish(found)

    def changes(self, _: object = None) -> list[Change]:
        """What the instant adds and withdraws."""
        found: list[Change] = []
        for sign, view in ((1, View.ADDED), (-1, View.REMOVED)):
            rows: list[Row] = []
            for place, pattern in enumerate(self.patterns):
                changes = self._store.changes(pattern.relation)
                triggers = changes.added if sign == 1 else changes.removed
                if triggers:
                    finder = self._delta(view, place)
                    for row in tuple(triggers):
                        finder(rows.append, *((row,) if changes.arity == 1 else row))
            if self._finish is not None:
                rows = self._finish(rows)
            found += [(row, sign) for row in rows]
        return found

    def plan(self, view: View, given: Sequence[str] = ()) -> Plan:
        """The plan that lists all solutions of a view."""
        return plan(self._items, self._outputs, self._store, given=given, view=view)

    def delta_plan(self, view: View, place: int) -> Plan:
        """The plan that a row of the pattern at `place` starts."""
        views = delta_views if view is View.ADDED else withdrawn_views
        return started(self._items, self._outputs, self._store, place, views(self._items, place))

    def _delta(self, view: View, place: int) -> Finder:
        finder = self._deltas.get((view, place))
        if finder is None:
            finder = self._deltas[view, place] = compile_plan(self.delta_plan(view, place), self._store)
        return finder


def started(
    items: Sequence[Item], outputs: Sequence[Node], store: Store, place: int, views: dict[int, View]
) -> Plan:
    """The plan for all items but one, a pattern, whose rows start it."""
    trigger = items[place]
    if not isinstance(trigger, Pattern):
        raise AssertionError("only a pattern starts a plan")
    rest = [*items[:place], *items[place + 1 :]]
    shifted = {i if i < place else i - 1: view for i, view in views.items() if i != place}
    return plan(rest, outputs, store, trigger=trigger, views=shifted)


def _items(conjunction: Conjunction, constants: dict[str, Term]) -> tuple[list[Item], list[Step]]:
    """Patterns first, then the filters that the kernel runs; and the steps behind it, in order."""
    bound = pattern_names(conjunction.patterns)
    items: list[Item] = [triple_pattern(*pattern.nodes) for pattern in conjunction.patterns]
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
            items.append(Guard(without(known, bound)))
    return items, later


def _output(name: str, bound: Iterable[str], constants: dict[str, Term]) -> Node:
    """What the kernel puts into a column; a column that a bind fills later holds anything."""
    return Var(name) if name in bound else constants.get(name, '""')


def _behind(
    steps: Sequence[Step], schema: Sequence[str], scalars: Scalars
) -> Callable[[list[Row]], list[Row]] | None:
    """The binds and filters behind the plan, as a function of its rows."""
    if not steps:
        return None
    assigned = {step.variable.name for step in steps if isinstance(step, Bind)}
    blanks = [schema.index(name) for name in sorted(assigned)]
    work: list[tuple[int, Any]] = []
    for step in steps:
        if isinstance(step, Bind):
            work.append((schema.index(step.variable.name), scalars.compute(step.expression, schema)))
        else:
            work.append((-1, scalars.test([step.condition], schema)))

    def finish(rows: list[Row]) -> list[Row]:
        found: list[Row] = []
        for row in rows:
            values = list(row)
            for place in blanks:
                values[place] = None
            for place, function in work:
                if place >= 0:
                    values[place] = function(values)
                elif not function(values):
                    break
            else:
                found.append(tuple(values))
        return found

    return finish


class ExistsLeaf:
    """The pattern of an EXISTS: a union of conjunctions in which the row's variables are constants."""

    def __init__(self, branches: Sequence[Conjunction], store: Store) -> None:
        self._store = store
        self._branches = branches
        self._read = sorted({name for branch in branches for name in _all_names(branch)})
        self._finders: dict[tuple[View, tuple[str, ...]], list[Finder]] = {}

    def found(self, view: View, row: Row, schema: Sequence[str]) -> bool:
        """Whether the pattern has a solution for this row."""
        values = dict(zip(schema, row, strict=True))
        given = tuple(name for name in self._read if values.get(name) is not None)
        finders = self._finders.get((view, given))
        if finders is None:
            finders = self._finders[view, given] = [
                self._compiled(branch, view, given) for branch in self._branches
            ]
        found: list[Row] = []
        for finder in finders:
            finder(found.append, *[values[name] for name in given])
            if found:
                return True
        return False

    def _compiled(self, branch: Conjunction, view: View, given: Sequence[str]) -> Finder:
        known = pattern_names(branch.patterns).union(given)
        items: list[Item] = [triple_pattern(*pattern.nodes) for pattern in branch.patterns]
        items += [
            Guard(without(step.condition, known)) for step in branch.steps if not isinstance(step, Bind)
        ]
        return compile_plan(plan(items, (), self._store, given=given, view=view, as_set=True), self._store)


def _all_names(branch: Conjunction) -> frozenset[str]:
    conditions = (step.condition for step in branch.steps if not isinstance(step, Bind))
    return pattern_names(branch.patterns).union(*map(mentioned, conditions))

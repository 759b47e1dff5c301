"""Order the items of a body: which pattern is looked up first, and how.

Place:   between body.py and the two executors (join_code.py, plan_interpreter.py), which run the same
         `JoinPlan`.
Method:  greedy: the triggering row first, then the pattern with the fewest expected rows given the bound
         variables, by the sizes of the closed background; guards, assignments and absences as soon as their
         variables are bound. Semi-naive by the old/all split (Bancilhon 1986): `delta_views`.
Why not: dynamic programming. Bodies are short, and a trigger binds most variables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Protocol, TypeAlias, assert_never

from msgspec import Struct

from dotr.ir import Node, Var
from dotr.joins.body import (
    AbsentPattern,
    Assign,
    BodyPattern,
    Check,
    Item,
    RowFilter,
    View,
    bound_by,
    item_variables,
)
from dotr.joins.graph_relations import Relation
from dotr.joins.variables import nodes_variables


class Sizes(Protocol):
    """What the planner needs to know of the background."""

    def rows(self, relation: Relation) -> int:
        """The number of rows, 0 if only an instant can have any."""
        ...

    def values(self, relation: Relation, column: int) -> int:
        """The number of distinct values of a column."""
        ...


class Probe(Struct, frozen=True):
    """Find the rows of a pattern. `bound[i]`: column i is bound before. `exists`: one row is enough."""

    pattern: BodyPattern
    view: View
    bound: tuple[bool, ...]
    exists: bool = False


class AntiJoin(Struct, frozen=True):
    """Continue only if the pattern has no row; unbound columns are existential."""

    pattern: BodyPattern
    view: View
    bound: tuple[bool, ...]


Step: TypeAlias = Probe | AntiJoin | RowFilter | Assign | Check


class JoinPlan(Struct, frozen=True):
    """An ordered join. It starts from a row of `trigger`, from values for `given`, or from nothing.

    `outputs` are the nodes of a solution; all variables among them are bound at the end.
    """

    trigger: BodyPattern | None
    given: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Node, ...]


def plan(
    items: Sequence[Item],
    outputs: Sequence[Node],
    sizes: Sizes,
    *,
    trigger: BodyPattern | None = None,
    given: Sequence[str] = (),
    views: Mapping[int, View] | None = None,
    view: View = View.NEW,
    absent_view: View | None = None,
    first: int | None = None,
    as_set: bool = False,
) -> JoinPlan:
    """The plan for `items`, from which the caller has already removed the trigger.

    `views`: the views of single patterns by their place in `items`; `view`: of the others; `absent_view`: of
    absences (default `view`). `first` forces one item to be first. `as_set`: a solution needs to be found
    only once, so patterns whose new variables are not read become existence tests.
    """
    choice = _Choice(items, sizes, set(given) | set(trigger.variables if trigger is not None else ()))
    steps: list[Step] = []
    views = views or {}
    if first is not None:
        item = choice.left.pop(first)
        if not isinstance(item, BodyPattern):
            raise AssertionError("only a pattern can stand first")
        steps.append(_probe(item, views.get(first, view), choice.known))
        choice.know(item.variables)
    while choice.left:
        place = choice.next()
        item = choice.left.pop(place)
        match item:
            case BodyPattern():
                steps.append(_probe(item, views.get(place, view), choice.known))
                choice.know(item.variables)
            case AbsentPattern():
                steps.append(AntiJoin(item.pattern, absent_view or view, _mask(item.pattern, choice.known)))
            case RowFilter() | Check():
                steps.append(item)
            case Assign():
                steps.append(item)
                choice.know([item.variable])
            case _:
                assert_never(item)
    if as_set:
        steps = _with_existence(steps, outputs)
    return JoinPlan(trigger, tuple(given), tuple(steps), tuple(outputs))


def delta_views(items: Sequence[Item], place: int) -> dict[int, View]:
    """Views for "item `place` matches an added row" such that no solution is found twice.

    Patterns before it range over the old rows, those after it over everything.
    """
    found: dict[int, View] = {}
    for i, item in enumerate(items):
        if isinstance(item, BodyPattern):
            found[i] = View.KEPT if i < place else View.ADDED if i == place else View.NEW
    return found


def withdrawn_views(items: Sequence[Item], place: int) -> dict[int, View]:
    """Views for "item `place` matched a withdrawn row of the background", each old solution once."""
    found: dict[int, View] = {}
    for i, item in enumerate(items):
        if isinstance(item, BodyPattern):
            found[i] = View.KEPT if i < place else View.REMOVED if i == place else View.OLD
    return found


def _mask(pattern: BodyPattern, known: Collection[str]) -> tuple[bool, ...]:
    return tuple(not isinstance(node, Var) or node.name in known for node in pattern.columns)


def _probe(pattern: BodyPattern, view: View, known: Collection[str]) -> Probe:
    return Probe(pattern, view, _mask(pattern, known))


class _Choice:
    """Owns the items still to be ordered: those that only test or compute first, then the cheapest pattern.

    Only an item with a newly bound variable can have become ready, or cheaper.
    """

    def __init__(self, items: Sequence[Item], sizes: Sizes, known: set[str]) -> None:
        self.left: dict[int, Item] = dict(enumerate(items))
        self.known = known
        self._sizes = sizes
        self._binders = bound_by(items) | known
        self._users: dict[str, list[int]] = {}
        for place, item in self.left.items():
            for name in set(item_variables(item)):
                self._users.setdefault(name, []).append(place)
        self._ready: list[int] = []
        self._costs: dict[int, float] = {}
        self._cheapest: list[tuple[float, int]] = []  # a heap; outdated entries are skipped
        self._look_at(self.left)

    def know(self, names: Iterable[str]) -> None:
        new = {name for name in names if name not in self.known}
        self.known |= new
        self._look_at({place for name in new for place in self._users.get(name, ())})

    def next(self) -> int:
        """The place of the next item."""
        while self._ready:
            place = heappop(self._ready)
            if place in self.left:
                return place
        while True:
            cost, place = heappop(self._cheapest)
            if place in self.left and self._costs[place] == cost:
                return place

    def _look_at(self, places: Iterable[int]) -> None:
        for place in places:
            item = self.left.get(place)
            if item is None:
                continue
            if self._is_ready(item):
                heappush(self._ready, place)
            elif isinstance(item, BodyPattern):
                cost = self._costs[place] = _cost(item, self.known, self._sizes)
                heappush(self._cheapest, (cost, place))

    def _is_ready(self, item: Item) -> bool:
        """Whether it only tests or computes, and is ready."""
        match item:
            case RowFilter() | Check():
                return self.known.issuperset(item_variables(item))
            case Assign():
                return self.known.issuperset(item_variables(item)[:-1])
            case AbsentPattern():
                return self.known.issuperset(self._binders.intersection(item.pattern.variables))
            case BodyPattern():
                return all(_mask(item, self.known))
            case _:
                assert_never(item)


def _cost(item: Item, known: Collection[str], sizes: Sizes) -> float:
    """Expected rows. Relations that only a stream has are assumed to be small."""
    if not isinstance(item, BodyPattern):
        raise AssertionError("only patterns cost")
    mask = _mask(item, known)
    rows = sizes.rows(item.relation)
    if rows == 0:
        return 0.5 if any(mask) else 4.0
    expected = float(rows)
    for column, bound in enumerate(mask):
        if bound:
            expected /= max(1, sizes.values(item.relation, column))
    return max(expected, 0.1) if any(mask) else max(expected, 4.0)


def _with_existence(steps: Sequence[Step], outputs: Sequence[Node]) -> list[Step]:
    """Turn probes whose new variables are not read afterwards into existence tests."""
    read = set(nodes_variables(outputs))
    found: list[Step] = []
    for step in reversed(steps):
        if isinstance(step, Probe):
            free = [n for n, bound in zip(step.pattern.columns, step.bound, strict=True) if not bound]
            if free and read.isdisjoint(nodes_variables(free)):
                step = Probe(step.pattern, step.view, step.bound, True)
            read.update(step.pattern.variables)
        elif isinstance(step, AntiJoin):
            read.update(step.pattern.variables)
        else:
            read.update(item_variables(step))
        found.append(step)
    return found[::-1]

"""Join plans: bodies of patterns, absences, filters and assignments, and the order of their items.

Place:   Datalog bodies and basic graph patterns are translated to bodies; the `JoinPlan` of a body is run by
         code.py or the walk of explain/derivations.py. `describe` prints a plan for `dotr plan`.
Method:  greedy order: the triggering row first, then the pattern with the fewest expected rows given the
         bound variables, by the sizes of the closed background; guards, assignments and absences as soon as
         their variables are bound. Semi-naive by the old/all split (Bancilhon 1986): `delta_views`.
         Relations: vertical partitioning. A triple (s, p, o) is a row (s, o) of relation p; (s, rdf:type, C)
         is a row (s,) of the relation of class C. Two relations are unions: `RDF_TYPE`, rows (s, C) of all
         classes, and `ALL`, rows (s, p, o) of everything. An aggregate of a Datalog rule is its own relation,
         and so are the pairs of nodes that a property path joins. An anonymous property (a blank node that
         the schema uses as one) is a relation, too, outside of the unions, since no triple of RDF has it.
Why not: dynamic programming: bodies are short, and a trigger binds most variables. One ternary relation:
         every rule would be woken by every triple, and recursion through negation would be found everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from heapq import heappop, heappush
from typing import Protocol, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from dotr import program
from dotr.expressions.evaluate import own_calls
from dotr.program import Atom, BindAtom, Call, Const, Expression, FilterAtom, Node, NotAtom, Var
from dotr.rdf.terms import RDF_TYPE, Term, Triple


def nodes_variables(nodes: Iterable[program.Node]) -> list[str]:
    """Distinct names of the variables among nodes, in order of first appearance."""
    return list(dict.fromkeys(node.name for node in nodes if isinstance(node, program.Var)))


def atom_variables(atom: program.Atom) -> list[str]:
    return nodes_variables((atom.subject, atom.predicate, atom.object))


def expression_variables(expression: program.Expression) -> list[str]:
    """Names of the variables an expression mentions outside EXISTS, in order of first appearance."""
    found: dict[str, None] = {}
    todo: list[program.Expression] = [expression]
    while todo:
        part = todo.pop()
        match part:
            case program.Var():
                found[part.name] = None
            case program.Call():
                todo.extend(reversed(part.arguments))
            case program.Aggregate():
                if part.argument is not None:
                    todo.append(part.argument)
            case program.Const() | program.Attribute() | program.TimeOf() | program.Exists():
                pass
            case _:
                assert_never(part)
    return list(found)


def substitute_node(node: program.Node, values: Mapping[str, Term]) -> program.Node:
    return values.get(node.name, node) if isinstance(node, program.Var) else node


def substitute_atom(atom: program.Atom, values: Mapping[str, Term]) -> program.Atom:
    return program.Atom(
        substitute_node(atom.subject, values),
        substitute_node(atom.predicate, values),
        substitute_node(atom.object, values),
        atom.span,
    )


def substitute_expression(expression: program.Expression, values: Mapping[str, Term]) -> program.Expression:
    """The expression with constants for the variables of `values` (EXISTS and aggregates stay)."""
    match expression:
        case program.Var():
            term = values.get(expression.name)
            return expression if term is None else program.Const(term, expression.span)
        case program.Call():
            arguments = tuple(substitute_expression(a, values) for a in expression.arguments)
            return replace(expression, arguments=arguments)
        case (
            program.Const() | program.Attribute() | program.TimeOf() | program.Exists() | program.Aggregate()
        ):
            return expression
        case _:
            assert_never(expression)


def substitute_body(item: program.BodyAtom, values: Mapping[str, Term]) -> program.BodyAtom:
    """A body atom with constants substituted, except variables that an aggregate groups by or a BIND sets."""
    match item:
        case program.Atom():
            return substitute_atom(item, values)
        case program.NotAtom():
            return program.NotAtom(substitute_atom(item.atom, values), item.span)
        case program.FilterAtom():
            return program.FilterAtom(substitute_expression(item.condition, values), item.span)
        case program.BindAtom():
            return program.BindAtom(substitute_expression(item.expression, values), item.variable, item.span)
        case program.AggregateAtom():
            return item
        case _:
            assert_never(item)


Relation: TypeAlias = str
"""A predicate's term, `"a " + class`, `ALL`, `"agg …"` for an aggregate, `"path …"` for a path, or
`"table …"` for a table of window atoms.
"""

ALL: Relation = "*"
CLASH = "<urn:dotr:clash:"


def class_relation(term: Term) -> Relation:
    """The relation of a class's members."""
    return "a " + term


def is_class(relation: Relation) -> bool:
    return relation.startswith("a ")


def is_clash(relation: Relation) -> bool:
    """Whether rows are findings of an inconsistency rule: `<urn:dotr:clash:cax-dw>`.

    Such rows belong to no state and to no union.
    """
    return relation.startswith(CLASH)


def is_aggregate(relation: Relation) -> bool:
    return relation.startswith("agg ")


def is_anonymous(relation: Relation) -> bool:
    """Whether rows are triples of a blank node as predicate (OWL 2 Profiles, sec. 4.3: the rules are over
    generalized RDF). They hold inside of a closure; subjects may be literals.
    """
    return relation.startswith("_:")


def is_apart(relation: Relation) -> bool:
    """Whether rows are no triples of RDF: they belong to no state and no union, and are kept in tables."""
    return is_aggregate(relation) or is_clash(relation) or is_anonymous(relation)


def path_relation(number: int, text: str) -> Relation:
    """The relation of a property path with this text; one path may have several."""
    return f"path {number} {text}"


def is_path(relation: Relation) -> bool:
    """Whether rows are pairs of nodes that a property path joins: computed, never stored."""
    return relation.startswith("path ")


def table_relation(number: int, name: str) -> Relation:
    """The relation of a table of window atoms of this name."""
    return f"table {number} {name}"


def is_table(relation: Relation) -> bool:
    """Whether rows are window atoms (windows/body_code.py)."""
    return relation.startswith("table ")


def relation_of(subject: Node, predicate: Node, object_: Node) -> Relation:
    """The narrowest relation that holds every triple the pattern matches."""
    if isinstance(predicate, Var):
        return ALL
    if predicate == RDF_TYPE and not isinstance(object_, Var):
        return class_relation(object_)
    return predicate


def columns_of(subject: Node, predicate: Node, object_: Node) -> tuple[Node, ...]:
    """The pattern's nodes as columns of `relation_of` the same pattern."""
    if isinstance(predicate, Var):
        return (subject, predicate, object_)
    if predicate == RDF_TYPE and not isinstance(object_, Var):
        return (subject,)
    return (subject, object_)


def holding(triple: Triple) -> tuple[Relation, ...]:
    """The relations a triple is in, narrowest first."""
    _, predicate, object_ = triple
    if predicate == RDF_TYPE:
        return (class_relation(object_), RDF_TYPE, ALL)
    return (predicate,) if is_anonymous(predicate) else (predicate, ALL)


def overlap(first: Relation, second: Relation) -> bool:
    """Whether one triple can be in both relations."""
    if first == second:
        return True
    if ALL in (first, second):
        return not (is_apart(first) or is_apart(second))
    return (first == RDF_TYPE and is_class(second)) or (second == RDF_TYPE and is_class(first))


def relation_name(relation: Relation) -> str:
    """For messages: the predicate, the class, or what the union ranges over."""
    if relation == ALL:
        return "every predicate"
    if relation == RDF_TYPE:
        return "every class"
    if is_aggregate(relation):
        return "an aggregate"
    if is_anonymous(relation):
        return "an anonymous property"
    if is_path(relation) or is_table(relation):
        return relation.split(" ", 2)[2]
    return relation[2:] if is_class(relation) else relation


class View(StrEnum):
    """The rows of a relation over which a pattern ranges."""

    OLD = "background"
    """The closed background alone."""
    KEPT = "background that still holds"
    """The background without what the instant removed."""
    ADDED = "overlay"
    """What the instant added."""
    REMOVED = "withdrawn"
    """What the instant removed from the background."""
    NEW = "now"
    """KEPT and ADDED: what holds at the instant."""


class BodyPattern(Struct, frozen=True):
    """Rows of a relation; equal variables must have equal values."""

    relation: Relation
    columns: tuple[Node, ...]

    @property
    def variables(self) -> list[str]:
        return nodes_variables(self.columns)


class AbsentPattern(Struct, frozen=True):
    """No such row; variables that nothing else binds are existential."""

    pattern: BodyPattern


class RowFilter(Struct, frozen=True):
    """A filter: an effective boolean value, errors are false."""

    condition: Expression


class Assign(Struct, frozen=True):
    """Bind `variable` to the value of the expression; an error ends the row, as does a different value."""

    expression: Expression
    variable: str


class Check(Struct, frozen=True):
    """A condition of the caller: a function of the values of `variables`. `label` describes it.

    `table`, for one variable: a self-filling table whose value is truthy where the function is true.
    """

    function: Callable[..., bool]
    variables: tuple[str, ...]
    label: str = "test"
    table: Mapping[Term, object] | None = None


Item: TypeAlias = BodyPattern | AbsentPattern | RowFilter | Assign | Check


def triple_pattern(subject: Node, predicate: Node, object_: Node) -> BodyPattern:
    """The pattern over the narrowest relation."""
    return BodyPattern(
        relation_of(subject, predicate, object_), tuple(columns_of(subject, predicate, object_))
    )


def from_atom(atom: Atom) -> BodyPattern:
    return triple_pattern(atom.subject, atom.predicate, atom.object)


def from_body(item: Atom | NotAtom | FilterAtom | BindAtom) -> Item:
    """A Datalog body atom (except an aggregate) as an item."""
    match item:
        case Atom():
            return from_atom(item)
        case NotAtom():
            return AbsentPattern(from_atom(item.atom))
        case FilterAtom():
            return RowFilter(item.condition)
        case BindAtom():
            return Assign(item.expression, item.variable.name)
        case _:
            assert_never(item)


def item_variables(item: Item) -> list[str]:
    """Variables an item mentions, including those it binds."""
    match item:
        case BodyPattern():
            return item.variables
        case AbsentPattern():
            return item.pattern.variables
        case RowFilter():
            return expression_variables(item.condition)
        case Assign():
            return [*expression_variables(item.expression), item.variable]
        case Check():
            return list(item.variables)
        case _:
            assert_never(item)


def bound_by(items: Iterable[Item]) -> set[str]:
    """Variables that positive patterns and assignments bind."""
    found: set[str] = set()
    for item in items:
        if isinstance(item, BodyPattern):
            found.update(item.variables)
        elif isinstance(item, Assign):
            found.add(item.variable)
    return found


def node_text(node: Node) -> str:
    return f"?{node.name}" if isinstance(node, Var) else node


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
    """Owns the items still to be ordered: those that only test or compute first, then the cheapest pattern;
    last those that call functions of one's own, so that no order of patterns decides what they are called
    with. Of these, one comes after those whose values it needs, values before tests, then by their texts: the
    order in which they are written does not decide, either.

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
        self._last: list[tuple[int, bool, str, int]] = []
        self._depths = _depths(items)
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
        while self._cheapest:
            cost, place = heappop(self._cheapest)
            if place in self.left and self._costs[place] == cost:
                return place
        while True:
            *_, place = heappop(self._last)
            if place in self.left:
                return place

    def _look_at(self, places: Iterable[int]) -> None:
        for place in places:
            item = self.left.get(place)
            if item is None:
                continue
            if self._is_ready(item):
                depth = self._depths.get(place)
                if depth is None or isinstance(item, BodyPattern | AbsentPattern | Check):
                    heappush(self._ready, place)
                else:
                    heappush(self._last, (depth, isinstance(item, RowFilter), step_text(item), place))
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


def _depths(items: Sequence[Item]) -> dict[int, int]:
    """Place of an item that calls functions of one's own → how many calls one after another it waits for."""
    calling: dict[int, RowFilter | Assign] = {}
    for place, item in enumerate(items):
        match item:
            case RowFilter(condition=expression) | Assign(expression=expression) if own_calls(expression):
                calling[place] = item
            case _:
                pass
    if not calling:
        return {}
    assigns = [item for item in items if isinstance(item, Assign)]
    depths: dict[str, int] = {}
    for _ in assigns:  # as often as there may be one after another
        for item in assigns:
            depth = max((depths.get(name, 0) for name in expression_variables(item.expression)), default=0)
            depths[item.variable] = depth + (item in calling.values())
    return {
        place: max((depths.get(name, 0) for name in item_variables(item)), default=0)
        for place, item in calling.items()
    }


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


Shorten = Callable[[Term], str]

_INFIX = frozenset({"||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"})


def describe(plan: JoinPlan, shorten: Shorten = str) -> str:
    """One line per step, in execution order; `shorten` writes constants (for example with prefixes)."""
    lines: list[str] = []
    if plan.trigger is not None:
        lines.append(f"when {pattern_text(plan.trigger, shorten)}")
    elif plan.given:
        lines.append("given " + " ".join(f"?{name}" for name in plan.given))
    lines += ["  " + step_text(step, shorten) for step in plan.steps]
    lines.append("  → " + " ".join(_node(node, shorten) for node in plan.outputs))
    return "\n".join(lines)


def pattern_text(pattern: BodyPattern, shorten: Shorten = str) -> str:
    columns = [_node(node, shorten) for node in pattern.columns]
    if pattern.relation == ALL:
        return " ".join(columns)
    if is_class(pattern.relation):
        return f"{columns[0]} a {shorten(pattern.relation[2:])}"
    if is_aggregate(pattern.relation):
        return f"{pattern.relation}({', '.join(columns)})"
    if is_table(pattern.relation):
        return f"{relation_name(pattern.relation)}({', '.join(columns)})"
    relation = pattern.relation
    name = relation_name(relation) if is_path(relation) else shorten(relation)
    return f"{columns[0]} {name} {columns[1]}"


def step_text(step: Step, shorten: Shorten = str) -> str:
    match step:
        case Probe():
            how = "some" if step.exists else "test" if all(step.bound) else "find"
            return f"{how} {pattern_text(step.pattern, shorten)}   [{_access(step)}]"
        case AntiJoin():
            return f"not {pattern_text(step.pattern, shorten)}   [{_access(step)}]"
        case RowFilter():
            return f"filter {expression_text(step.condition, shorten)}"
        case Check():
            return f"filter {step.label}({', '.join('?' + name for name in step.variables)})"
        case Assign():
            return f"bind {expression_text(step.expression, shorten)} as ?{step.variable}"
        case _:
            assert_never(step)


def expression_text(expression: Expression, shorten: Shorten = str) -> str:
    match expression:
        case Const():
            return shorten(expression.term)
        case Var():
            return f"?{expression.name}"
        case Call():
            arguments = [expression_text(a, shorten) for a in expression.arguments]
            if expression.function in _INFIX:
                return f"({f' {expression.function} '.join(arguments)})"
            function = expression.function
            return f"{shorten(function) if function[0] == '<' else function}({', '.join(arguments)})"
        case _:
            return type(expression).__name__.lower()


def _access(step: Probe | AntiJoin) -> str:
    names: tuple[str, ...] = (
        ("subject", "predicate", "object") if len(step.bound) == 3 else ("subject", "object")
    )
    if is_aggregate(step.pattern.relation):
        names = tuple(f"column {i + 1}" for i in range(len(step.bound)))
    by = [name for name, bound in zip(names, step.bound, strict=False) if bound]
    return f"{'by ' + ' and '.join(by) if by else 'scan'}, {View(step.view).value}"


def _node(node: Node, shorten: Shorten) -> str:
    return node_text(node) if isinstance(node, Var) else shorten(node)

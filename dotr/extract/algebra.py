"""Typed algebra of queries, the translation of query trees into it, and the relations read.

Method:  SPARQL 1.1, sec. 18.2 (18.2.2 groups and paths; 18.2.4 grouping, HAVING, VALUES, SELECT expressions),
         with two equivalent changes. Paths of sequences, inverses and alternatives are expanded to joins and
         unions; repetitions are patterns. Joins, filters and binds over basic graph patterns, inline data and
         unions of them are merged into `BasicGraphPattern`s, one for each combination of union branches,
         wherever no variable changes its scope. `Refused` names what is not translated; interpreter.py
         evaluates such a query.
         `relations_of` lists the relations that a query reads: what no query reaches is pruned from rules and
         background, and an interpreted query is evaluated again only when an instant touched one of its
         relations.
Why not: one operator per SPARQL clause: the join kernel plans a conjunction as a whole, so that a filter runs
         as soon as its variables are bound, and a delta starts from any of its patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Many
from dataclasses import dataclass, field
from itertools import product
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from dotr import program
from dotr.expressions.evaluate import own_calls
from dotr.extract.full import base_of
from dotr.extract.rewriting import (
    Rewriter,
    is_grouped,
    may_be_empty,
    names_of_group,
    spell_out,
    spelled_out,
    subexpressions,
    visible,
    with_known_functions,
)
from dotr.joins.plan import ALL, Relation, relation_of
from dotr.program import Aggregate, Bind, Call, Const, Exists, Expression, Filter, Node, Path, Var
from dotr.rdf.terms import Term

MOST_BRANCHES: Final = 64
"""The limit of conjunctions into which one union is expanded."""


class Pattern(Struct, frozen=True):
    """A triple pattern, or two ends of a repeated path (`*`, `+`, `?`)."""

    subject: Node
    predicate: Node | Path
    object: Node

    @property
    def variables(self) -> Iterator[str]:
        nodes = (self.subject, self.predicate, self.object)
        return (node.name for node in nodes if isinstance(node, Var))

    @property
    def nullable(self) -> bool:
        """Whether a path of length zero matches: a constant then matches more than a variable does."""
        return not isinstance(self.predicate, (str, Var)) and may_be_empty(self.predicate)


Step: TypeAlias = Filter | Bind


class BasicGraphPattern(Struct, frozen=True):
    """All patterns match, then the steps from left to right: a filter holds, a bind sets its variable.

    No step has an EXISTS or an aggregate. Binds of constants come first (inline data). Without patterns and
    steps: one empty solution.
    """

    patterns: tuple[Pattern, ...] = ()
    steps: tuple[Step, ...] = ()


class Join(Struct, frozen=True):
    left: Algebra
    right: Algebra


class LeftJoin(Struct, frozen=True):
    """OPTIONAL; `conditions` are the filters of its group, which see both sides."""

    left: Algebra
    right: Algebra
    conditions: tuple[Expression, ...] = ()


class MinusOf(Struct, frozen=True):
    """MINUS."""

    left: Algebra
    right: Algebra


class UnionOf(Struct, frozen=True):
    """UNION; without branches: no solution."""

    branches: tuple[Algebra, ...]


class FilterOf(Struct, frozen=True):
    """FILTER. `patterns` holds the algebra of each Exists of the condition, in order of appearance.

    In these patterns the variables of `inner` are constants (SPARQL 1.1, sec. 18.6): each is a union of
    conjunctions whose steps are filters only.
    """

    inner: Algebra
    condition: Expression
    patterns: tuple[tuple[BasicGraphPattern, ...], ...] = ()


class Extend(Struct, frozen=True):
    """BIND, or a SELECT expression."""

    inner: Algebra
    variable: str
    expression: Expression


class Aggregation(Struct, frozen=True):
    """GROUP BY with aggregates. `keys`: (variable, expression); `totals`: (variable, aggregate).

    Without keys there is one group even if there is no solution. `scope`: the variables of a whole solution.
    """

    inner: Algebra
    keys: tuple[tuple[str, Expression], ...]
    totals: tuple[tuple[str, Aggregate], ...]
    scope: tuple[str, ...] = ()


Algebra: TypeAlias = BasicGraphPattern | Join | LeftJoin | MinusOf | UnionOf | FilterOf | Extend | Aggregation

UNIT: Final = BasicGraphPattern()
NOTHING: Final = UnionOf(())


def possible(node: Algebra) -> frozenset[str]:
    """Variables that some solution binds, blank nodes (names with a dot) included."""
    match node:
        case BasicGraphPattern(patterns, steps):
            return pattern_names(patterns) | {s.variable.name for s in steps if isinstance(s, Bind)}
        case Join(left, right) | LeftJoin(left, right):
            return possible(left) | possible(right)
        case MinusOf(left, _):
            return possible(left)
        case UnionOf(branches):
            return frozenset().union(*map(possible, branches))
        case FilterOf(inner):
            return possible(inner)
        case Extend(inner, variable, _):
            return possible(inner) | {variable}
        case Aggregation(_, keys, totals):
            return frozenset(name for name, _ in keys) | frozenset(name for name, _ in totals)
        case _:
            assert_never(node)


def certain(node: Algebra) -> frozenset[str]:
    """Variables that every solution binds."""
    match node:
        case BasicGraphPattern(patterns, steps):
            return pattern_names(patterns) | frozenset(constants_of(steps))
        case Join(left, right):
            return certain(left) | certain(right)
        case LeftJoin(left, _) | MinusOf(left, _):
            return certain(left)
        case UnionOf(branches):
            sets = [certain(branch) for branch in branches]
            return frozenset.intersection(*sets) if sets else frozenset()
        case FilterOf(inner) | Extend(inner):
            return certain(inner)
        case Aggregation(inner, keys):
            known = certain(inner)
            return frozenset(name for name, e in keys if isinstance(e, Var) and e.name in known)
        case _:
            assert_never(node)


def patterns_of(node: Algebra) -> Iterator[Pattern]:
    """Every triple pattern, including those of EXISTS."""
    match node:
        case BasicGraphPattern(patterns):
            yield from patterns
        case Join(left, right) | LeftJoin(left, right) | MinusOf(left, right):
            yield from patterns_of(left)
            yield from patterns_of(right)
        case UnionOf(branches):
            for branch in branches:
                yield from patterns_of(branch)
        case FilterOf(inner, _, exists):
            yield from patterns_of(inner)
            for branches in exists:
                for branch in branches:
                    yield from branch.patterns
        case Extend(inner) | Aggregation(inner):
            yield from patterns_of(inner)
        case _:
            assert_never(node)


def pattern_names(patterns: Iterable[Pattern]) -> frozenset[str]:
    return frozenset(name for pattern in patterns for name in pattern.variables)


def constants_of(steps: Iterable[Step]) -> dict[str, Term]:
    """The variables that inline data fix."""
    return {
        step.variable.name: step.expression.term
        for step in steps
        if isinstance(step, Bind) and isinstance(step.expression, Const)
    }


def mentioned(expression: Expression) -> frozenset[str]:
    """Variables of an expression outside EXISTS."""
    return frozenset(part.name for part in subexpressions(expression) if isinstance(part, Var))


def existences(expression: Expression) -> list[Exists]:
    """The EXISTS of an expression, in order of appearance."""
    return [part for part in subexpressions(expression) if isinstance(part, Exists)]


def asks_time(expression: Expression) -> bool:
    """Whether NOW() occurs in it (outside EXISTS)."""
    return any(isinstance(part, Call) and part.function == "NOW" for part in subexpressions(expression))


def branches_of(node: Algebra) -> tuple[BasicGraphPattern, ...] | None:
    """The conjunctions whose union the node is, or None."""
    if isinstance(node, BasicGraphPattern):
        return (node,)
    if isinstance(node, UnionOf):
        found = tuple(branch for branch in node.branches if isinstance(branch, BasicGraphPattern))
        return found if len(found) == len(node.branches) else None
    return None


# constructors that merge conjunctions where allowed


def union(nodes: Iterable[Algebra]) -> Algebra:
    """UNION, flattened; a single branch is itself."""
    flat: list[Algebra] = []
    for node in nodes:
        flat.extend(node.branches if isinstance(node, UnionOf) else (node,))
    return flat[0] if len(flat) == 1 else UnionOf(tuple(flat))


def join(left: Algebra, right: Algebra) -> Algebra:
    """Join; conjunctions and their unions become conjunctions again, if that changes no scope."""
    if left == UNIT:
        return right
    if right == UNIT:
        return left
    ours, theirs = branches_of(left), branches_of(right)
    if ours is not None and theirs is not None and len(ours) * len(theirs) <= MOST_BRANCHES:
        merged = [_merge(a, b) for a, b in product(ours, theirs)]
        if all(branch is not None for branch in merged):
            return union(branch for branch in merged if branch is not None and branch != NOTHING)
    return Join(left, right)


def _merge(left: BasicGraphPattern, right: BasicGraphPattern) -> Algebra | None:
    """Two conjunctions as one; NOTHING if inline data contradict; None if a variable would change scope."""
    if not (_steps_may_move(left, right) and _steps_may_move(right, left)):
        return None
    fixed = constants_of(left.steps)
    theirs = constants_of(right.steps)
    if any(theirs.get(name, term) != term for name, term in fixed.items()):
        return NOTHING
    everything = fixed | theirs
    both = (*left.patterns, *right.patterns)
    if any(pattern.nullable and not everything.keys().isdisjoint(pattern.variables) for pattern in both):
        return None
    patterns = tuple(_with_constants(pattern, everything) for pattern in both)
    steps = (*left.steps, *(s for s in right.steps if not (isinstance(s, Bind) and s.variable.name in fixed)))
    return BasicGraphPattern(tuple(dict.fromkeys(patterns)), _constants_first(steps))


def _steps_may_move(own: BasicGraphPattern, other: BasicGraphPattern) -> bool:
    """Whether the steps of `own` mean the same when the variables of `other` are bound, too."""
    known, foreign = certain(own), possible(other)
    fixed = constants_of(own.steps)
    for step in own.steps:
        if isinstance(step, Bind):
            if step.variable.name in fixed:
                if step.variable.name in foreign and step.variable.name not in certain(other):
                    return False
                continue
            if step.variable.name in foreign or (mentioned(step.expression) & foreign) - known:
                return False
        elif (mentioned(step.condition) & foreign) - known:
            return False
    return True


def _with_constants(pattern: Pattern, values: dict[str, Term]) -> Pattern:
    if not values:
        return pattern
    nodes = (pattern.subject, pattern.predicate, pattern.object)
    s, p, o = (values.get(node.name, node) if isinstance(node, Var) else node for node in nodes)
    return Pattern(s, p, o)  # type: ignore[arg-type]  # only the predicate may be a path


def _constants_first(steps: Many[Step]) -> tuple[Step, ...]:
    first = [s for s in steps if isinstance(s, Bind) and isinstance(s.expression, Const)]
    return (*first, *(s for s in steps if s not in first))


def select(inner: Algebra, condition: Expression) -> Algebra:
    """FILTER without EXISTS; inside the conjunctions, if any."""
    branches = branches_of(inner)
    if branches is None:
        return FilterOf(inner, condition)
    parts = tuple(Filter(part) for part in conjuncts(condition))
    return union(BasicGraphPattern(b.patterns, (*b.steps, *parts)) for b in branches)


def extend(inner: Algebra, variable: str, expression: Expression) -> Algebra:
    """BIND without EXISTS; inside the conjunctions, if any, that lack the variable."""
    branches = branches_of(inner)
    if branches is None or any(variable in _names(branch) for branch in branches):
        return Extend(inner, variable, expression)
    step = Bind(expression, Var(variable))
    if isinstance(expression, Const):
        return union(BasicGraphPattern(b.patterns, _constants_first((*b.steps, step))) for b in branches)
    return union(BasicGraphPattern(b.patterns, (*b.steps, step)) for b in branches)


def _names(conjunction: BasicGraphPattern) -> frozenset[str]:
    """Variables bound or mentioned; a filter that mentions a variable bound later sees it unbound."""
    expressions = (s.expression if isinstance(s, Bind) else s.condition for s in conjunction.steps)
    return possible(conjunction).union(*map(mentioned, expressions))


def conjuncts(condition: Expression) -> list[Expression]:
    """`a && b && c` as [a, b, c]: a filter of all is a filter of each."""
    if isinstance(condition, Call) and condition.function == "&&":
        return [part for argument in condition.arguments for part in conjuncts(argument)]
    return [condition]


class Refused(Exception):  # noqa: N818  # not an error: the interpreter takes the query
    """Why a query is not compiled, in a few words. Does not leave `translate`."""


class Uncompiled(Struct, frozen=True):
    """The pattern of a query that the interpreter evaluates as a whole, for a `reason`."""

    reason: str


@dataclass(slots=True)
class Translator:
    """Owns the names of new variables: `.path0` between steps of a path, `.total0` of aggregates. Functions
    of one's own are called outside of conjunctions: by operators that see all their rows, in canonical order.
    """

    _made: int = field(default=0, init=False)
    _inside_exists: bool = field(default=False, init=False)

    def fresh(self, word: str) -> str:
        self._made += 1
        return f".{word}{self._made - 1}"

    # groups

    def group(self, group: program.GroupPattern) -> Algebra:
        """A group graph pattern; its filters see all of it."""
        inner, filters = self.parts(group)
        for condition in sorted(filters, key=lambda one: own_calls(one) > 0):
            inner = self.where(inner, condition)
        return inner

    def parts(self, group: program.GroupPattern) -> tuple[Algebra, list[program.Expression]]:
        """A group without its filters, and the filters."""
        inner: Algebra = UNIT
        filters: list[program.Expression] = []
        for element in group.elements:
            if isinstance(element, program.Filter):
                filters.append(element.condition)
            else:
                inner = self._and(inner, element)
        return inner, filters

    def _and(self, inner: Algebra, element: program.Element) -> Algebra:
        match element:
            case program.Triples(patterns):
                for pattern in patterns:
                    inner = join(inner, self.triple(pattern))
                return inner
            case program.Bind(expression, variable):
                return self.bound(inner, variable.name, expression)
            case program.Values():
                return join(inner, self.values(element))
            case program.Union(branches):
                return join(inner, union(map(self.group, branches)))
            case program.OptionalGroup(group):
                right, filters = self.parts(group)
                if any(asks_time(f) or existences(f) for f in filters):
                    raise Refused("NOW() or EXISTS in the filter of an OPTIONAL")
                return LeftJoin(inner, right, tuple(filters))
            case program.Minus(group):
                return MinusOf(inner, self.group(group))
            case program.GroupPattern():
                return join(inner, self.group(element))
            case program.SubSelect():
                raise Refused("a subquery")
            case program.Filter():
                raise AssertionError(element)
            case _:
                assert_never(element)

    def values(self, values: program.Values) -> Algebra:
        """Inline data as a union of constants; an UNDEF binds nothing."""
        names = [variable.name for variable in values.variables]
        rows = (
            BasicGraphPattern(
                (),
                tuple(
                    program.Bind(program.Const(t), program.Var(n))
                    for n, t in zip(names, row, strict=True)
                    if t is not None
                ),
            )
            for row in values.rows
        )
        return union(rows)

    # triples and paths

    def triple(self, pattern: program.TriplePattern) -> Algebra:
        """A pattern, its path expanded."""
        match pattern.predicate:
            case str() | program.Var() | program.Repeat() as predicate:
                return BasicGraphPattern((Pattern(pattern.subject, predicate, pattern.object),))
            case _:
                result: Algebra = UNIT
                for element in spelled_out(pattern, lambda: program.Var(self.fresh("path"))):
                    result = self._and(result, element)
                return result

    # queries

    def exists(self, pattern: program.GroupPattern) -> tuple[BasicGraphPattern, ...]:
        """The pattern of an EXISTS as a union of conjunctions with filters only."""
        inside, self._inside_exists = self._inside_exists, True
        branches = branches_of(self.group(pattern))
        self._inside_exists = inside
        if branches is None:
            raise Refused("an EXISTS with more than patterns and filters in it")
        if any(isinstance(step, program.Bind) for branch in branches for step in branch.steps):
            raise Refused("an EXISTS with BIND or VALUES in it")
        return branches

    def where(self, inner: Algebra, condition: program.Expression) -> Algebra:
        """FILTER, with or without EXISTS; never with NOW()."""
        if asks_time(condition):
            raise Refused("NOW() inside a nested group")
        for part in conjuncts(condition):
            found = existences(part)
            if found:
                inner = FilterOf(inner, part, tuple(self.exists(e.pattern) for e in found))
            elif own_calls(part) and not self._inside_exists:
                inner = FilterOf(inner, part)
            else:
                inner = select(inner, part)
        return inner

    def bound(self, inner: Algebra, variable: str, expression: program.Expression) -> Algebra:
        """BIND or a SELECT expression; never with NOW()."""
        if asks_time(expression):
            raise Refused("NOW() inside a nested group")
        if existences(expression):
            raise Refused("an EXISTS outside a FILTER")
        if own_calls(expression) and not self._inside_exists:
            return Extend(inner, variable, expression)
        return extend(inner, variable, expression)

    def grouped(self, inner: Algebra, query: program.Select) -> tuple[Algebra, program.Select]:
        """The groups, and the query with variables in place of its aggregates."""
        scope = visible(query.where)
        keys: list[tuple[str, program.Expression]] = []
        for key in query.group_by:
            expression = key.expression
            self._plain(expression)
            if key.variable is not None:
                keys.append((key.variable.name, expression))
            else:
                keys.append(
                    (
                        expression.name if isinstance(expression, program.Var) else self.fresh("key"),
                        expression,
                    )
                )
        totals: dict[program.Aggregate, str] = {}

        def swap(expression: program.Expression) -> program.Expression:
            if not isinstance(expression, program.Aggregate):
                return expression
            if expression.argument is not None:
                self._plain(expression.argument)
            if expression not in totals:
                totals[expression] = self.fresh("total")
            return program.Var(totals[expression])

        query = Rewriter(swap, lambda nested: nested).select(query)
        named = tuple((name, total) for total, name in totals.items())
        return Aggregation(inner, tuple(dict.fromkeys(keys)), named, scope), query

    def _plain(self, expression: program.Expression) -> None:
        if asks_time(expression) or existences(expression):
            raise Refused("NOW() or EXISTS inside a group's key or aggregate")


class Translated(Struct, frozen=True):
    """A query as algebra. `core` has no NOW() if it is compiled; `late` steps, which do, run at every
    instant.

    `outputs`: the projected variables; `order`: (variable, descending). `kept`: the variables of `core` that
    late steps, outputs and order read.
    """

    select: program.Select
    core: Algebra | Uncompiled
    late: tuple[Step, ...]
    kept: tuple[str, ...]
    outputs: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    distinct: bool
    limit: int | None
    offset: int


def translate(query: program.Select) -> Translated:
    """The algebra of a SELECT or ASK; its core is `Uncompiled` where it is interpreted."""
    try:
        return _translated(query)
    except Refused as refused:
        order = tuple((f".key{i}", key.descending) for i, key in enumerate(query.order_by))
        kept = (*query.variables, *(name for name, _ in order))
        return _whole(query, Uncompiled(str(refused)), (), kept, order)


def _whole(
    query: program.Select,
    core: Algebra | Uncompiled,
    late: Iterable[Step],
    kept: tuple[str, ...],
    order: Iterable[tuple[str, bool]],
) -> Translated:
    return Translated(
        query,
        core,
        tuple(late),
        kept,
        query.variables,
        tuple(order),
        query.distinct,
        query.limit,
        query.offset,
    )


def _translated(query: program.Select) -> Translated:
    """Raises Refused."""
    asked = query
    if base_of(query) is not None:
        raise Refused("IRI() under a BASE")
    query = with_known_functions(query)
    translator = Translator()
    outputs = query.variables
    grouped = is_grouped(query)
    if grouped:
        query = spell_out(query)
    elements, late = _split_time(query.where, grouped)
    core = translator.group(program.GroupPattern(elements))
    if grouped:
        core, query = translator.grouped(core, query)
    for condition in query.having:
        core, late = _step(translator, core, late, program.Filter(condition))
    if query.values is not None:
        if late:
            raise Refused("NOW() beside a trailing VALUES")
        core = join(core, translator.values(query.values))
    for p in query.projection:
        if p.expression is not None:
            core, late = _step(translator, core, late, program.Bind(p.expression, p.variable))
    order: list[tuple[str, bool]] = []
    for key in query.order_by:
        if isinstance(key.expression, program.Var):
            order.append((key.expression.name, key.descending))
            continue
        name = translator.fresh("order")
        core, late = _step(translator, core, late, program.Bind(key.expression, program.Var(name)))
        order.append((name, key.descending))
    made = {step.variable.name for step in late if isinstance(step, program.Bind)}
    read = set(outputs).union(name for name, _ in order).union(*map(_reads, late))
    kept = tuple(sorted((read - made) & possible(core)))
    return _whole(asked, core, late, kept, order)


def _step(translator: Translator, core: Algebra, late: list[Step], step: Step) -> tuple[Algebra, list[Step]]:
    """Append a step: to the core, or to the late steps once one of them needs the time."""
    expression = step.expression if isinstance(step, program.Bind) else step.condition
    made = {s.variable.name for s in late if isinstance(s, program.Bind)}
    if asks_time(expression) or mentioned(expression) & made:
        if existences(expression):
            raise Refused("an EXISTS beside NOW()")
        return core, [*late, step]
    if isinstance(step, program.Bind):
        return translator.bound(core, step.variable.name, expression), late
    return translator.where(core, expression), late


def _reads(step: Step) -> frozenset[str]:
    return mentioned(step.expression if isinstance(step, program.Bind) else step.condition)


def _filtered_only(where: program.GroupPattern, place: int) -> set[str]:
    """Variables that the elements after a place read in filters but do not bind."""
    behind = [e for e in where.elements[place + 1 :] if not isinstance(e, program.Filter)]
    filters = [e for e in where.elements[place + 1 :] if isinstance(e, program.Filter)]
    return names_of_group(program.GroupPattern(tuple(filters))) - names_of_group(
        program.GroupPattern(tuple(behind))
    )


def _split_time(where: program.GroupPattern, grouped: bool) -> tuple[tuple[program.Element, ...], list[Step]]:
    """The outermost group without what depends on NOW(): binds that only filters read, and filters."""
    binds: list[Step] = []
    rest: list[program.Element] = []
    made: set[str] = set()
    sure: set[str] = set()  # bound by patterns before, so that nothing later can change them
    for place, element in enumerate(where.elements):
        if isinstance(element, program.Bind) and (
            asks_time(element.expression) or mentioned(element.expression) & made
        ):
            behind = names_of_group(program.GroupPattern(where.elements[place + 1 :]))
            if (mentioned(element.expression) & behind) - sure - made - _filtered_only(where, place):
                raise Refused("NOW() in a BIND that reads a variable bound after it")
            binds.append(element)
            made.add(element.variable.name)
        else:
            if isinstance(element, program.Triples):
                sure |= names_of_group(program.GroupPattern((element,)))
            rest.append(element)
    filters: list[Step] = []
    early: list[program.Element] = []
    for element in rest:
        if not isinstance(element, program.Filter):
            early.append(element)
            continue
        for part in conjuncts(element.condition):
            if asks_time(part) or mentioned(part) & made:
                filters.append(program.Filter(part))
            else:
                early.append(program.Filter(part, element.span))
    late = [*binds, *filters]
    if late and grouped:
        raise Refused("NOW() inside a grouped pattern")
    if any(existences(s.expression if isinstance(s, program.Bind) else s.condition) for s in late):
        raise Refused("an EXISTS beside NOW()")
    if made & names_of_group(program.GroupPattern(tuple(early))):
        raise Refused("a variable that NOW() sets is joined")
    return tuple(early), late


def reached(select: program.Select) -> frozenset[Relation]:
    """The relations that the engine of a query reads."""
    core = translate(select).core
    if isinstance(core, Uncompiled):
        return relations_of(select)
    return frozenset(relation for pattern in patterns_of(core) for relation in read_by(pattern))


def relations_of(select: program.Select) -> frozenset[Relation]:
    """The relations of all patterns, including nested queries and EXISTS; `ALL` if any triple may matter."""
    found: set[Relation] = set()

    def look(triples: program.Triples) -> list[program.Element]:
        for pattern in triples.patterns:
            found.update(read_by(pattern))
        return [triples]

    def same(expression: program.Expression) -> program.Expression:
        return expression

    walk = Rewriter(same, lambda nested: walk.select(nested), look)
    walk.select(select)
    return frozenset(found)


def read_by(pattern: program.TriplePattern | Pattern) -> Iterator[Relation]:
    """The relations that one pattern reads."""
    predicate = pattern.predicate
    if isinstance(predicate, (str, program.Var)):
        yield relation_of(pattern.subject, predicate, pattern.object)
        return
    yield from _of_path(predicate)
    both = isinstance(pattern.subject, program.Var) and isinstance(pattern.object, program.Var)
    if both and may_be_empty(predicate):
        yield ALL  # a path of length zero joins every node of the graph with itself


def _of_path(path: program.Path) -> Iterator[Relation]:
    match path:
        case str():
            yield path
        case program.Inverse(inner):
            yield from _of_path(inner)
        case program.Sequence(paths) | program.Alternative(paths):
            for step in paths:
                yield from _of_path(step)
                if len(paths) > 1 and may_be_empty(step):
                    yield ALL  # its ends are new variables
        case program.Repeat(inner):
            yield from _of_path(inner)
        case program.NegatedSet():
            yield ALL
        case _:
            assert_never(path)

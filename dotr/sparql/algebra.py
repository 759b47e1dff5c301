"""Typed algebra of queries, and the translation of trees into it.

Place:   between the tree (ir/queries.py) and the compiler, which makes plans from it.
Method:  SPARQL 1.1, sec. 18.2, with two equivalent changes. Paths of sequences, inverses and alternatives are
         expanded to joins and unions, repetitions are patterns. Joins, filters and binds over basic graph
         patterns, inline data and unions of them are merged into `BasicGraphPattern`s, one for each
         combination of union branches, wherever no variable changes its scope.
Why not: one operator per SPARQL clause: the join kernel plans a conjunction as a whole, so that a filter runs
         as soon as its variables are bound, and a delta starts from any of its patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Many
from itertools import product
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from dotr.ir import (
    Aggregate,
    Bind,
    Call,
    Const,
    Exists,
    Expression,
    Filter,
    Node,
    Path,
    Var,
)
from dotr.rdf.terms import Term
from dotr.sparql.bound_variables import subexpressions
from dotr.sparql.path_expansion import may_be_empty

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

"""Algebra into operators over one store.

Place:   last step of compilation; one `Builder` per deployment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from dotr.budget import Meter
from dotr.expressions.evaluate import compile_condition
from dotr.ir import Attribute, Exists, Expression, TimeOf, Var
from dotr.joins.body import Check, View
from dotr.joins.store import TripleIndex
from dotr.rdf.terms import Term
from dotr.sparql import algebra
from dotr.sparql.leaves import NO_LIMIT, ExistsLeaf, Leaf, Scalars
from dotr.sparql.solution_operators import (
    Compute,
    DifferenceOperator,
    ExistsOperator,
    JoinOperator,
    LeftJoinOperator,
    Row,
    SolutionOperator,
    Test,
)
from dotr.sparql.unary_operators import (
    AggregateState,
    ExtendOperator,
    FilterOperator,
    GroupOperator,
    UnionOperator,
)


class Builder:
    """Owns the store that operators run over, the compiler of expressions for it, and the leaves.

    `checks`: further conditions of the root's conjunctions. Operators raise Explosion when a leaf has more
    than `limit` rows, and charge their work to `meter`.
    """

    def __init__(
        self,
        store: TripleIndex,
        limit: int = NO_LIMIT,
        checks: Callable[[algebra.BasicGraphPattern], Sequence[Check]] = lambda conjunction: (),
        meter: Meter | None = None,
    ) -> None:
        self.store = store
        self.meter = store.meter if meter is None else meter
        self.scalars = Scalars(store)
        self.leaves: list[Leaf] = []
        self._limit = limit
        self._checks = checks

    def root(self, node: algebra.Algebra) -> SolutionOperator:
        """The operator of a whole query."""
        branches = algebra.branches_of(node)
        if branches is None:
            return self.operator(node)
        leaves = [self._leaf(branch, self._checks(branch)) for branch in branches]
        return leaves[0] if len(leaves) == 1 else UnionOperator(leaves, self.meter)

    def _leaf(self, node: algebra.BasicGraphPattern, checks: Sequence[Check] = ()) -> Leaf:
        leaf = Leaf(node, self.store, checks, limit=self._limit, meter=self.meter)
        self.leaves.append(leaf)
        return leaf

    def operator(self, node: algebra.Algebra) -> SolutionOperator:
        """The operator of an algebra node and its descendants."""
        meter = self.meter
        match node:
            case algebra.BasicGraphPattern():
                return self._leaf(node)
            case algebra.Join(left, right):
                return JoinOperator(self.operator(left), self.operator(right), meter)
            case algebra.LeftJoin(left, right, conditions):
                tests = self._tests(conditions) if conditions else None
                return LeftJoinOperator(self.operator(left), self.operator(right), tests, meter)
            case algebra.MinusOf(left, right):
                return DifferenceOperator(self.operator(left), self.operator(right), meter)
            case algebra.UnionOf(branches):
                return UnionOperator([self.operator(branch) for branch in branches], meter)
            case algebra.FilterOf(inner, condition, ()):
                return FilterOperator(self.operator(inner), self._tests((condition,)), meter)
            case algebra.FilterOf(inner, condition, patterns):
                return self._exists(self.operator(inner), condition, patterns)
            case algebra.Extend(inner, variable, expression):
                compute = self.scalars.compute
                return ExtendOperator(
                    self.operator(inner), variable, lambda schema: compute(expression, schema), meter
                )
            case algebra.Aggregation():
                return self._groups(node)
            case _:
                assert_never(node)

    def _tests(self, conditions: Sequence[Expression]) -> Callable[[tuple[str, ...]], Test]:
        return lambda schema: self.scalars.test(conditions, schema)

    def _groups(self, node: algebra.Aggregation) -> SolutionOperator:
        inner = self.operator(node.inner)
        keys: list[tuple[str, str | None, Compute]] = []
        for name, expression in node.keys:
            source = expression.name if isinstance(expression, Var) else None
            keys.append((name, source, self.scalars.compute(expression, inner.schema)))
        totals = [
            (
                name,
                AggregateState(
                    total.function,
                    total.distinct,
                    None if total.argument is None else self.scalars.compute(total.argument, inner.schema),
                ),
            )
            for name, total in node.totals
        ]
        return GroupOperator(inner, keys, totals, node.scope, self.meter)

    def _exists(
        self,
        inner: SolutionOperator,
        condition: Expression,
        patterns: Sequence[tuple[algebra.BasicGraphPattern, ...]],
    ) -> SolutionOperator:
        """A filter whose condition tests, for every row, whether patterns have a solution."""
        schema = inner.schema
        places = {name: i for i, name in enumerate(schema)}
        tests = [ExistsLeaf(branches, self.store, schema, inner.certain, self.meter) for branches in patterns]
        unused = iter(tests)

        def leaf(variable: Var | Attribute | TimeOf) -> Callable[[tuple[View, Row]], Term | None]:
            place = places.get(variable.name) if isinstance(variable, Var) else None
            return (lambda asked: None) if place is None else (lambda asked: asked[1][place])

        def exists(_: Exists) -> Callable[[tuple[View, Row]], bool]:
            test = next(unused)
            return lambda asked: test.found(asked[0], asked[1])

        moment = self.store.moment
        holds = compile_condition(condition, leaf, clock=moment.clock, now=moment.read, exists=exists)
        bare = [
            self.operator(
                algebra.UnionOf(tuple(algebra.BasicGraphPattern(branch.patterns) for branch in branches))
            )
            for branches in patterns
        ]
        return ExistsOperator(inner, lambda view, row: holds((view, row)), bare, self.meter)

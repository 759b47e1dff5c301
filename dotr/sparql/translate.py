"""Trees into algebra.

Place:   first step of compilation; the constructors of algebra.py push together what may be.
Method:  SPARQL 1.1, sec. 18.2.2 (groups, paths), 18.2.4 (grouping, HAVING, VALUES, SELECT expressions).
         What is not translated is named by `Refused`; the full engine runs such a query.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from dotr.ir import (
    Aggregate,
    Alternative,
    Bind,
    Const,
    Element,
    Expression,
    Filter,
    Group,
    Inverse,
    Minus,
    NegatedSet,
    Node,
    OptionalGroup,
    Path,
    Repeat,
    Select,
    Sequence,
    SubSelect,
    TriplePattern,
    Triples,
    Union,
    Values,
    Var,
)
from dotr.sparql.algebra import (
    UNIT,
    Algebra,
    Conjunction,
    Difference,
    Grouping,
    LeftJoin,
    Pattern,
    extend,
    join,
    select,
    union,
)
from dotr.sparql.rewriting import Rewriter
from dotr.sparql.scope import is_grouped, visible


class Refused(Exception):  # noqa: N818  # not an error: the full engine takes the query
    """Why a query is not compiled, in a few words."""


@dataclass(slots=True)
class Translator:
    """Owns the names of the variables it makes: `.path0` between steps of a path, `.total0` of aggregates."""

    _made: int = field(default=0, init=False)

    def fresh(self, word: str) -> str:
        self._made += 1
        return f".{word}{self._made - 1}"

    # groups

    def group(self, group: Group) -> Algebra:
        """A group graph pattern; its filters see all of it."""
        inner, filters = self.parts(group)
        for condition in filters:
            inner = select(inner, condition)
        return inner

    def parts(self, group: Group) -> tuple[Algebra, list[Expression]]:
        """A group without its filters, and the filters."""
        inner: Algebra = UNIT
        filters: list[Expression] = []
        for element in group.elements:
            if isinstance(element, Filter):
                filters.append(element.condition)
            else:
                inner = self._and(inner, element)
        return inner, filters

    def _and(self, inner: Algebra, element: Element) -> Algebra:
        match element:
            case Triples(patterns):
                for pattern in patterns:
                    inner = join(inner, self.triple(pattern))
                return inner
            case Bind(expression, variable):
                return extend(inner, variable.name, expression)
            case Values():
                return join(inner, self.values(element))
            case Union(branches):
                return join(inner, union(map(self.group, branches)))
            case OptionalGroup(group):
                right, filters = self.parts(group)
                return LeftJoin(inner, right, tuple(filters))
            case Minus(group):
                return Difference(inner, self.group(group))
            case Group():
                return join(inner, self.group(element))
            case SubSelect(nested):
                return join(inner, self.subquery(nested))
            case Filter():
                raise AssertionError(element)
            case _:
                assert_never(element)

    def values(self, values: Values) -> Algebra:
        """Inline data as a union of constants; an UNDEF binds nothing."""
        names = [variable.name for variable in values.variables]
        rows = (
            Conjunction(
                (), tuple(Bind(Const(t), Var(n)) for n, t in zip(names, row, strict=True) if t is not None)
            )
            for row in values.rows
        )
        return union(rows)

    # triples and paths

    def triple(self, pattern: TriplePattern) -> Algebra:
        predicate = pattern.predicate
        if isinstance(predicate, (str, Var)):
            return Conjunction((Pattern(pattern.subject, predicate, pattern.object),))
        return self.path(pattern.subject, predicate, pattern.object)

    def path(self, subject: Node, path: Path, object_: Node) -> Algebra:
        """A property path between two nodes, as joins and unions."""
        match path:
            case str():
                return Conjunction((Pattern(subject, path, object_),))
            case Inverse(inner):
                return self.path(object_, inner, subject)
            case Sequence(paths):
                nodes = [subject, *(Var(self.fresh("path")) for _ in paths[1:]), object_]
                result: Algebra = UNIT
                for step, start, end in zip(paths, nodes, nodes[1:], strict=True):
                    result = join(result, self.path(start, step, end))
                return result
            case Alternative(paths):
                return union(self.path(subject, step, object_) for step in paths)
            case Repeat(_, minimum, unbounded):
                sign = "?" if not unbounded else "+" if minimum else "*"
                raise Refused(f"a property path with `{sign}`")
            case NegatedSet():
                raise Refused("a negated property set `!(…)`")
            case _:
                assert_never(path)

    # queries

    def subquery(self, nested: Select) -> Algebra:
        """A nested query. Its ORDER BY cannot be seen; it has no LIMIT."""
        raise Refused("a subquery")

    def query(self, query: Select) -> Algebra:
        """WHERE, grouping, HAVING, trailing VALUES, SELECT expressions; ORDER BY keys as variables."""
        inner = self.group(query.where)
        if is_grouped(query):
            inner, query = self._grouped(inner, query)
        for condition in query.having:
            inner = select(inner, condition)
        if query.values is not None:
            inner = join(inner, self.values(query.values))
        for projection in query.projection:
            if projection.expression is not None:
                inner = extend(inner, projection.variable.name, projection.expression)
        return inner

    def _grouped(self, inner: Algebra, query: Select) -> tuple[Algebra, Select]:
        """The groups, and the query with variables in place of its aggregates."""
        scope = visible(query.where)
        keys: list[tuple[str, Expression]] = []
        for key in query.group_by:
            name = key.variable.name if key.variable is not None else None
            if name is None:
                name = key.expression.name if isinstance(key.expression, Var) else self.fresh("key")
            elif name in scope:
                raise Refused("a GROUP BY variable that the pattern has too")
            keys.append((name, key.expression))
        totals: dict[Aggregate, str] = {}

        def swap(expression: Expression) -> Expression:
            if not isinstance(expression, Aggregate):
                return expression
            if expression not in totals:
                totals[expression] = self.fresh("total")
            return Var(totals[expression])

        swapped = Rewriter(swap, lambda nested: nested)
        query = swapped.select(query)
        return Grouping(inner, tuple(dict.fromkeys(keys)), tuple((n, a) for a, n in totals.items())), query

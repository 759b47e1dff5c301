"""Trees into algebra.

Place:   first step of compilation; the constructors of algebra.py merge conjunctions.
Method:  SPARQL 1.1, sec. 18.2.2 (groups, paths), 18.2.4 (grouping, HAVING, VALUES, SELECT expressions).
         `Refused` names what is not translated; interpreter.py runs such a query.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from msgspec import Struct

from dotr import ir
from dotr.sparql import algebra
from dotr.sparql.bound_variables import is_grouped, names_of_group, visible
from dotr.sparql.oxigraph import base_of
from dotr.sparql.path_expansion import spelled_out
from dotr.sparql.rewriting import Rewriter, spell_out, with_known_functions


class Refused(Exception):  # noqa: N818  # not an error: the interpreter takes the query
    """Why a query is not compiled, in a few words."""


@dataclass(slots=True)
class Translator:
    """Owns the names of new variables: `.path0` between steps of a path, `.total0` of aggregates."""

    _made: int = field(default=0, init=False)

    def fresh(self, word: str) -> str:
        self._made += 1
        return f".{word}{self._made - 1}"

    # groups

    def group(self, group: ir.GroupPattern) -> algebra.Algebra:
        """A group graph pattern; its filters see all of it."""
        inner, filters = self.parts(group)
        for condition in filters:
            inner = self.where(inner, condition)
        return inner

    def parts(self, group: ir.GroupPattern) -> tuple[algebra.Algebra, list[ir.Expression]]:
        """A group without its filters, and the filters."""
        inner: algebra.Algebra = algebra.UNIT
        filters: list[ir.Expression] = []
        for element in group.elements:
            if isinstance(element, ir.Filter):
                filters.append(element.condition)
            else:
                inner = self._and(inner, element)
        return inner, filters

    def _and(self, inner: algebra.Algebra, element: ir.Element) -> algebra.Algebra:
        match element:
            case ir.Triples(patterns):
                for pattern in patterns:
                    inner = algebra.join(inner, self.triple(pattern))
                return inner
            case ir.Bind(expression, variable):
                return self.bound(inner, variable.name, expression)
            case ir.Values():
                return algebra.join(inner, self.values(element))
            case ir.Union(branches):
                return algebra.join(inner, algebra.union(map(self.group, branches)))
            case ir.OptionalGroup(group):
                right, filters = self.parts(group)
                if any(algebra.asks_time(f) or algebra.existences(f) for f in filters):
                    raise Refused("NOW() or EXISTS in the filter of an OPTIONAL")
                return algebra.LeftJoin(inner, right, tuple(filters))
            case ir.Minus(group):
                return algebra.MinusOf(inner, self.group(group))
            case ir.GroupPattern():
                return algebra.join(inner, self.group(element))
            case ir.SubSelect():
                raise Refused("a subquery")
            case ir.Filter():
                raise AssertionError(element)
            case _:
                assert_never(element)

    def values(self, values: ir.Values) -> algebra.Algebra:
        """Inline data as a union of constants; an UNDEF binds nothing."""
        names = [variable.name for variable in values.variables]
        rows = (
            algebra.BasicGraphPattern(
                (),
                tuple(
                    ir.Bind(ir.Const(t), ir.Var(n)) for n, t in zip(names, row, strict=True) if t is not None
                ),
            )
            for row in values.rows
        )
        return algebra.union(rows)

    # triples and paths

    def triple(self, pattern: ir.TriplePattern) -> algebra.Algebra:
        """A pattern, its path expanded."""
        match pattern.predicate:
            case str() | ir.Var() | ir.Repeat() as predicate:
                return algebra.BasicGraphPattern(
                    (algebra.Pattern(pattern.subject, predicate, pattern.object),)
                )
            case _:
                result: algebra.Algebra = algebra.UNIT
                for element in spelled_out(pattern, lambda: ir.Var(self.fresh("path"))):
                    result = self._and(result, element)
                return result

    # queries

    def exists(self, pattern: ir.GroupPattern) -> tuple[algebra.BasicGraphPattern, ...]:
        """The pattern of an EXISTS as a union of conjunctions with filters only."""
        branches = algebra.branches_of(self.group(pattern))
        if branches is None:
            raise Refused("an EXISTS with more than patterns and filters in it")
        if any(isinstance(step, ir.Bind) for branch in branches for step in branch.steps):
            raise Refused("an EXISTS with BIND or VALUES in it")
        return branches

    def where(self, inner: algebra.Algebra, condition: ir.Expression) -> algebra.Algebra:
        """FILTER, with or without EXISTS; never with NOW()."""
        if algebra.asks_time(condition):
            raise Refused("NOW() inside a nested group")
        for part in algebra.conjuncts(condition):
            found = algebra.existences(part)
            if found:
                inner = algebra.FilterOf(inner, part, tuple(self.exists(e.pattern) for e in found))
            else:
                inner = algebra.select(inner, part)
        return inner

    def bound(self, inner: algebra.Algebra, variable: str, expression: ir.Expression) -> algebra.Algebra:
        """BIND or a SELECT expression; never with NOW()."""
        if algebra.asks_time(expression):
            raise Refused("NOW() inside a nested group")
        if algebra.existences(expression):
            raise Refused("an EXISTS outside a FILTER")
        return algebra.extend(inner, variable, expression)

    def grouped(self, inner: algebra.Algebra, query: ir.Select) -> tuple[algebra.Algebra, ir.Select]:
        """The groups, and the query with variables in place of its aggregates."""
        scope = visible(query.where)
        keys: list[tuple[str, ir.Expression]] = []
        for key in query.group_by:
            expression = key.expression
            self._plain(expression)
            if key.variable is not None:
                keys.append((key.variable.name, expression))
            else:
                keys.append(
                    (expression.name if isinstance(expression, ir.Var) else self.fresh("key"), expression)
                )
        totals: dict[ir.Aggregate, str] = {}

        def swap(expression: ir.Expression) -> ir.Expression:
            if not isinstance(expression, ir.Aggregate):
                return expression
            if expression.argument is not None:
                self._plain(expression.argument)
            if expression not in totals:
                totals[expression] = self.fresh("total")
            return ir.Var(totals[expression])

        query = Rewriter(swap, lambda nested: nested).select(query)
        named = tuple((name, total) for total, name in totals.items())
        return algebra.Aggregation(inner, tuple(dict.fromkeys(keys)), named, scope), query

    def _plain(self, expression: ir.Expression) -> None:
        if algebra.asks_time(expression) or algebra.existences(expression):
            raise Refused("NOW() or EXISTS inside a group's key or aggregate")


class Translated(Struct, frozen=True):
    """A query as algebra. `core` has no NOW(); `late` steps, which have, run at every instant.

    `outputs`: the projected variables; `order`: (variable, descending). `kept`: the variables of `core` that
    late steps, outputs and order read.
    """

    core: algebra.Algebra
    late: tuple[algebra.Step, ...]
    kept: tuple[str, ...]
    outputs: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    distinct: bool
    limit: int | None
    offset: int


def translate(query: ir.Select) -> Translated:
    """The algebra of a SELECT or ASK. Raises Refused with the reason why it is interpreted."""
    if base_of(query) is not None:
        raise Refused("IRI() under a BASE")
    query = with_known_functions(query)
    translator = Translator()
    outputs = query.variables
    grouped = is_grouped(query)
    if grouped:
        query = spell_out(query)
    elements, late = _split_time(query.where, grouped)
    core = translator.group(ir.GroupPattern(elements))
    if grouped:
        core, query = translator.grouped(core, query)
    for condition in query.having:
        core, late = _step(translator, core, late, ir.Filter(condition))
    if query.values is not None:
        if late:
            raise Refused("NOW() beside a trailing VALUES")
        core = algebra.join(core, translator.values(query.values))
    for p in query.projection:
        if p.expression is not None:
            core, late = _step(translator, core, late, ir.Bind(p.expression, p.variable))
    order: list[tuple[str, bool]] = []
    for key in query.order_by:
        if isinstance(key.expression, ir.Var):
            order.append((key.expression.name, key.descending))
            continue
        name = translator.fresh("order")
        core, late = _step(translator, core, late, ir.Bind(key.expression, ir.Var(name)))
        order.append((name, key.descending))
    made = {step.variable.name for step in late if isinstance(step, ir.Bind)}
    read = set(outputs).union(name for name, _ in order).union(*map(_reads, late))
    kept = tuple(sorted((read - made) & algebra.possible(core)))
    return Translated(
        core, tuple(late), kept, outputs, tuple(order), query.distinct, query.limit, query.offset
    )


def _step(
    translator: Translator, core: algebra.Algebra, late: list[algebra.Step], step: algebra.Step
) -> tuple[algebra.Algebra, list[algebra.Step]]:
    """Append a step: to the core, or to the late steps once one of them needs the time."""
    expression = step.expression if isinstance(step, ir.Bind) else step.condition
    made = {s.variable.name for s in late if isinstance(s, ir.Bind)}
    if algebra.asks_time(expression) or algebra.mentioned(expression) & made:
        if algebra.existences(expression):
            raise Refused("an EXISTS beside NOW()")
        return core, [*late, step]
    if isinstance(step, ir.Bind):
        return translator.bound(core, step.variable.name, expression), late
    return translator.where(core, expression), late


def _reads(step: algebra.Step) -> frozenset[str]:
    return algebra.mentioned(step.expression if isinstance(step, ir.Bind) else step.condition)


def _filtered_only(where: ir.GroupPattern, place: int) -> set[str]:
    """Variables that the elements after a place read in filters but do not bind."""
    behind = [e for e in where.elements[place + 1 :] if not isinstance(e, ir.Filter)]
    filters = [e for e in where.elements[place + 1 :] if isinstance(e, ir.Filter)]
    return names_of_group(ir.GroupPattern(tuple(filters))) - names_of_group(ir.GroupPattern(tuple(behind)))


def _split_time(where: ir.GroupPattern, grouped: bool) -> tuple[tuple[ir.Element, ...], list[algebra.Step]]:
    """The outermost group without what depends on NOW(): binds that only filters read, and filters."""
    binds: list[algebra.Step] = []
    rest: list[ir.Element] = []
    made: set[str] = set()
    sure: set[str] = set()  # bound by patterns before, so that nothing later can change them
    for place, element in enumerate(where.elements):
        if isinstance(element, ir.Bind) and (
            algebra.asks_time(element.expression) or algebra.mentioned(element.expression) & made
        ):
            behind = names_of_group(ir.GroupPattern(where.elements[place + 1 :]))
            if (algebra.mentioned(element.expression) & behind) - sure - made - _filtered_only(where, place):
                raise Refused("NOW() in a BIND that reads a variable bound behind it")
            binds.append(element)
            made.add(element.variable.name)
        else:
            if isinstance(element, ir.Triples):
                sure |= names_of_group(ir.GroupPattern((element,)))
            rest.append(element)
    filters: list[algebra.Step] = []
    early: list[ir.Element] = []
    for element in rest:
        if not isinstance(element, ir.Filter):
            early.append(element)
            continue
        for part in algebra.conjuncts(element.condition):
            if algebra.asks_time(part) or algebra.mentioned(part) & made:
                filters.append(ir.Filter(part))
            else:
                early.append(ir.Filter(part, element.span))
    late = [*binds, *filters]
    if late and grouped:
        raise Refused("NOW() inside a grouped pattern")
    if any(algebra.existences(s.expression if isinstance(s, ir.Bind) else s.condition) for s in late):
        raise Refused("an EXISTS beside NOW()")
    if made & names_of_group(ir.GroupPattern(tuple(early))):
        raise Refused("a variable that NOW() sets is joined")
    return tuple(early), late

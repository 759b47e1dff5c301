"""Trees into algebra.

Place:   first step of compilation; the constructors of algebra.py merge conjunctions.
Method:  SPARQL 1.1, sec. 18.2.2 (groups, paths), 18.2.4 (grouping, HAVING, VALUES, SELECT expressions).
         `Refused` names what is not translated; interpreter.py runs such a query.
"""

from __future__ import annotations

from dataclasses import field
from typing import assert_never

from dotr.ir import (
    Aggregate,
    Bind,
    Const,
    Element,
    Expression,
    Filter,
    GroupPattern,
    Minus,
    OptionalGroup,
    Repeat,
    Select,
    SubSelect,
    TriplePattern,
    Triples,
    Union,
    Values,
    Var,
)
from dotr.late import dataclass
from dotr.sparql.algebra import (
    UNIT,
    Aggregation,
    Algebra,
    BasicGraphPattern,
    FilterOf,
    LeftJoin,
    MinusOf,
    Pattern,
    Step,
    asks_time,
    branches_of,
    conjuncts,
    existences,
    extend,
    join,
    mentioned,
    possible,
    select,
    union,
)
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

    def group(self, group: GroupPattern) -> Algebra:
        """A group graph pattern; its filters see all of it."""
        inner, filters = self.parts(group)
        for condition in filters:
            inner = self.where(inner, condition)
        return inner

    def parts(self, group: GroupPattern) -> tuple[Algebra, list[Expression]]:
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
                return self.bound(inner, variable.name, expression)
            case Values():
                return join(inner, self.values(element))
            case Union(branches):
                return join(inner, union(map(self.group, branches)))
            case OptionalGroup(group):
                right, filters = self.parts(group)
                if any(asks_time(f) or existences(f) for f in filters):
                    raise Refused("NOW() or EXISTS in the filter of an OPTIONAL")
                return LeftJoin(inner, right, tuple(filters))
            case Minus(group):
                return MinusOf(inner, self.group(group))
            case GroupPattern():
                return join(inner, self.group(element))
            case SubSelect():
                raise Refused("a subquery")
            case Filter():
                raise AssertionError(element)
            case _:
                assert_never(element)

    def values(self, values: Values) -> Algebra:
        """Inline data as a union of constants; an UNDEF binds nothing."""
        names = [variable.name for variable in values.variables]
        rows = (
            BasicGraphPattern(
                (), tuple(Bind(Const(t), Var(n)) for n, t in zip(names, row, strict=True) if t is not None)
            )
            for row in values.rows
        )
        return union(rows)

    # triples and paths

    def triple(self, pattern: TriplePattern) -> Algebra:
        """A pattern, its path expanded."""
        match pattern.predicate:
            case str() | Var() | Repeat() as predicate:
                return BasicGraphPattern((Pattern(pattern.subject, predicate, pattern.object),))
            case _:
                result: Algebra = UNIT
                for element in spelled_out(pattern, lambda: Var(self.fresh("path"))):
                    result = self._and(result, element)
                return result

    # queries

    def exists(self, pattern: GroupPattern) -> tuple[BasicGraphPattern, ...]:
        """The pattern of an EXISTS as a union of conjunctions with filters only."""
        branches = branches_of(self.group(pattern))
        if branches is None:
            raise Refused("an EXISTS with more than patterns and filters in it")
        if any(isinstance(step, Bind) for branch in branches for step in branch.steps):
            raise Refused("an EXISTS with BIND or VALUES in it")
        return branches

    def where(self, inner: Algebra, condition: Expression) -> Algebra:
        """FILTER, with or without EXISTS; never with NOW()."""
        if asks_time(condition):
            raise Refused("NOW() inside a nested group")
        for part in conjuncts(condition):
            found = existences(part)
            if found:
                inner = FilterOf(inner, part, tuple(self.exists(e.pattern) for e in found))
            else:
                inner = select(inner, part)
        return inner

    def bound(self, inner: Algebra, variable: str, expression: Expression) -> Algebra:
        """BIND or a SELECT expression; never with NOW()."""
        if asks_time(expression):
            raise Refused("NOW() inside a nested group")
        if existences(expression):
            raise Refused("an EXISTS outside a FILTER")
        return extend(inner, variable, expression)

    def grouped(self, inner: Algebra, query: Select) -> tuple[Algebra, Select]:
        """The groups, and the query with variables in place of its aggregates."""
        scope = visible(query.where)
        keys: list[tuple[str, Expression]] = []
        for key in query.group_by:
            expression = key.expression
            self._plain(expression)
            if key.variable is not None:
                keys.append((key.variable.name, expression))
            else:
                keys.append(
                    (expression.name if isinstance(expression, Var) else self.fresh("key"), expression)
                )
        totals: dict[Aggregate, str] = {}

        def swap(expression: Expression) -> Expression:
            if not isinstance(expression, Aggregate):
                return expression
            if expression.argument is not None:
                self._plain(expression.argument)
            if expression not in totals:
                totals[expression] = self.fresh("total")
            return Var(totals[expression])

        query = Rewriter(swap, lambda nested: nested).select(query)
        named = tuple((name, total) for total, name in totals.items())
        return Aggregation(inner, tuple(dict.fromkeys(keys)), named, scope), query

    def _plain(self, expression: Expression) -> None:
        if asks_time(expression) or existences(expression):
            raise Refused("NOW() or EXISTS inside a group's key or aggregate")


@dataclass(frozen=True, slots=True)
class Translated:
    """A query as algebra. `core` has no NOW(); `late` steps, which have, run at every instant.

    `outputs`: the projected variables; `order`: (variable, descending). `kept`: the variables of `core` that
    late steps, outputs and order read.
    """

    core: Algebra
    late: tuple[Step, ...]
    kept: tuple[str, ...]
    outputs: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    distinct: bool
    limit: int | None
    offset: int


def translate(query: Select) -> Translated:
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
    core = translator.group(GroupPattern(elements))
    if grouped:
        core, query = translator.grouped(core, query)
    for condition in query.having:
        core, late = _step(translator, core, late, Filter(condition))
    if query.values is not None:
        if late:
            raise Refused("NOW() beside a trailing VALUES")
        core = join(core, translator.values(query.values))
    for p in query.projection:
        if p.expression is not None:
            core, late = _step(translator, core, late, Bind(p.expression, p.variable))
    order: list[tuple[str, bool]] = []
    for key in query.order_by:
        if isinstance(key.expression, Var):
            order.append((key.expression.name, key.descending))
            continue
        name = translator.fresh("order")
        core, late = _step(translator, core, late, Bind(key.expression, Var(name)))
        order.append((name, key.descending))
    made = {step.variable.name for step in late if isinstance(step, Bind)}
    read = set(outputs).union(name for name, _ in order).union(*map(_reads, late))
    kept = tuple(sorted((read - made) & possible(core)))
    return Translated(
        core, tuple(late), kept, outputs, tuple(order), query.distinct, query.limit, query.offset
    )


def _step(translator: Translator, core: Algebra, late: list[Step], step: Step) -> tuple[Algebra, list[Step]]:
    """Append a step: to the core, or to the late steps once one of them needs the time."""
    expression = step.expression if isinstance(step, Bind) else step.condition
    made = {s.variable.name for s in late if isinstance(s, Bind)}
    if asks_time(expression) or mentioned(expression) & made:
        if existences(expression):
            raise Refused("an EXISTS beside NOW()")
        return core, [*late, step]
    if isinstance(step, Bind):
        return translator.bound(core, step.variable.name, expression), late
    return translator.where(core, expression), late


def _reads(step: Step) -> frozenset[str]:
    return mentioned(step.expression if isinstance(step, Bind) else step.condition)


def _filtered_only(where: GroupPattern, place: int) -> set[str]:
    """Variables that the elements after a place read in filters but do not bind."""
    behind = [e for e in where.elements[place + 1 :] if not isinstance(e, Filter)]
    filters = [e for e in where.elements[place + 1 :] if isinstance(e, Filter)]
    return names_of_group(GroupPattern(tuple(filters))) - names_of_group(GroupPattern(tuple(behind)))


def _split_time(where: GroupPattern, grouped: bool) -> tuple[tuple[Element, ...], list[Step]]:
    """The outermost group without what depends on NOW(): binds that only filters read, and filters."""
    binds: list[Step] = []
    rest: list[Element] = []
    made: set[str] = set()
    sure: set[str] = set()  # bound by patterns before, so that nothing later can change them
    for place, element in enumerate(where.elements):
        if isinstance(element, Bind) and (
            asks_time(element.expression) or mentioned(element.expression) & made
        ):
            behind = names_of_group(GroupPattern(where.elements[place + 1 :]))
            if (mentioned(element.expression) & behind) - sure - made - _filtered_only(where, place):
                raise Refused("NOW() in a BIND that reads a variable bound behind it")
            binds.append(element)
            made.add(element.variable.name)
        else:
            if isinstance(element, Triples):
                sure |= names_of_group(GroupPattern((element,)))
            rest.append(element)
    filters: list[Step] = []
    early: list[Element] = []
    for element in rest:
        if not isinstance(element, Filter):
            early.append(element)
            continue
        for part in conjuncts(element.condition):
            if asks_time(part) or mentioned(part) & made:
                filters.append(Filter(part))
            else:
                early.append(Filter(part, element.span))
    late = [*binds, *filters]
    if late and grouped:
        raise Refused("NOW() inside a grouped pattern")
    if any(existences(s.expression if isinstance(s, Bind) else s.condition) for s in late):
        raise Refused("an EXISTS beside NOW()")
    if made & names_of_group(GroupPattern(tuple(early))):
        raise Refused("a variable that NOW() sets is joined")
    return tuple(early), late

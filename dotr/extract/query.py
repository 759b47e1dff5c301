"""A query over one store: its answers, and how they change at an instant.

Builder           algebra into operators over one store; one for each query
Query             answers over the background once, changes at an instant; answers with given values
MaintainedQuery   answers over a maintained state (enrich/maintenance.py), changed by signed deltas
UsingRows         the solutions of a conjunction that use given rows, in the background alone

Place:   whoever asks a SELECT asks it here: instants (units.py), what lasts (lasting/), knowledge bases,
         `dotr query`. Proofs (explain/solutions.py) and literal readings (full.py) have evaluators of their
         own.
Method:  answers(K(t)) = answers(background) + Δ, with Δ from the operators; projection, DISTINCT, order and
         limit are applied here, on multisets of rows. A query that is not compiled (interpreter.py) is one
         operator, whose Δ is the difference of two evaluations.
         Maintained queries: answers of a continuous query change by the joins of added and removed triples
         with everything else (Gergatsoulis, Damigos 2021; here bags, consolidated). DISTINCT counts; groups
         and non-monotone operators evaluate again what the change touched. ORDER BY with a cut keeps the
         answers.
         `UsingRows`: the joins that a given row starts, one for each pattern over its relation, are one
         generated function. It may find a solution several times, if several patterns match given rows: the
         caller makes a set.
Why not: evaluating a maintained query again and comparing: every change would cost all answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, assert_never

from msgspec.structs import replace

from dotr.budget import CHANGED, EXPRESSION, Meter
from dotr.codegen import Names, make
from dotr.expressions.evaluate import compile_condition, own_calls, units
from dotr.extract import algebra
from dotr.extract.algebra import Translated, Uncompiled, relations_of, translate
from dotr.extract.full import widened
from dotr.extract.interpreter import InterpretedQuery
from dotr.extract.leaves import NO_LIMIT, ExistsLeaf, Leaf, Scalars, calls_of, in_order, units_of_steps
from dotr.extract.operators import (
    AggregateState,
    CallsInOrder,
    Change,
    Compute,
    DifferenceOperator,
    ExistsOperator,
    ExtendOperator,
    FilterOperator,
    GroupOperator,
    JoinOperator,
    LeftJoinOperator,
    Row,
    SolutionOperator,
    Test,
    UnionOperator,
    consolidated,
    counted,
    gained,
)
from dotr.extract.sharing import attributes
from dotr.joins.code import CodeBlock, Rows
from dotr.joins.filters import Spent
from dotr.joins.plan import ALL, BodyPattern, Check, Relation, View, is_path, plan
from dotr.joins.store import TripleIndex
from dotr.program import (
    Attribute,
    Bind,
    Exists,
    Expression,
    GroupPattern,
    Select,
    TimeOf,
    Values,
    Var,
)
from dotr.rdf.terms import RDF_TYPE, Term
from dotr.rdf.values import term_key, values_key


class UsingRows:
    """Owns the generated function for one leaf and one relation."""

    def __init__(self, leaf: Leaf, relation: Relation) -> None:
        self._finish = leaf.finish
        store, items = leaf.store, leaf.items
        names, lines = Names(), []
        columns = [f"r{i}" for i in range(store.arity(relation))]
        triggers = [
            (i, p) for i, p in enumerate(items) if isinstance(p, BodyPattern) and p.relation == relation
        ]
        for place, trigger in triggers:
            rest = (*items[:place], *items[place + 1 :])
            made = plan(rest, leaf.outputs, store, trigger=trigger, view=View.OLD)
            block = CodeBlock(store, names, Rows(), indent=2, stable=True, meter=leaf.meter)
            block.write(made, columns)
            lines += block.lines
        left = f"{names.bind(leaf.meter.left, 'W')}[0]"
        spent = names.bind(Spent(leaf.meter, [pattern for _, pattern in triggers], None), "SPENT")
        head = [
            "def run(out, rows):",
            f"    {left} -= LEN(rows) * {len(triggers)}",
            f"    if {left} < 0: {spent}(0, LEN(rows))",
            f"    for {', '.join(columns)} in rows:",
        ]
        self._run: Callable[[Callable[[Row], None], Collection[Any]], None] = make(
            "run", "\n".join([*head, *(lines or ["        pass"])]) + "\n", names
        )

    def __call__(self, rows: Collection[Any]) -> list[Row]:
        """The solutions that use one of the rows (keys), some more than once. Raises Exhausted."""
        found: list[Row] = []
        self._run(found.append, rows)
        return self._finish(found) if found and self._finish is not None else found


def may_use(leaf: Leaf) -> bool:
    """Whether solutions are a set, and every triple that they use is a row of one relation."""
    relations = {pattern.relation for pattern in leaf.patterns}
    special = relations & {ALL, RDF_TYPE} or any(map(is_path, relations))
    return leaf.limit >= NO_LIMIT and not special


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

    def root(self, query: Translated) -> SolutionOperator | InterpretedQuery:
        """The operator of a whole query."""
        if isinstance(query.core, Uncompiled):
            return InterpretedQuery(query.select, self.store, self.meter, self._limit)
        branches = algebra.branches_of(query.core)
        if branches is None:
            return self.operator(query.core)
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
                calls = sum(map(own_calls, conditions))
                order = partial(self._ordered, conditions, calls) if calls else None
                return LeftJoinOperator(
                    self.operator(left), self.operator(right), tests, meter, units(*conditions), order, calls
                )
            case algebra.MinusOf(left, right):
                return DifferenceOperator(self.operator(left), self.operator(right), meter)
            case algebra.UnionOf(branches):
                return UnionOperator([self.operator(branch) for branch in branches], meter)
            case algebra.FilterOf(inner, condition, ()):
                rows = self._calling(self.operator(inner), (condition,))
                return FilterOperator(rows, self._tests((condition,)), meter, units(condition))
            case algebra.FilterOf(inner, condition, patterns):
                return self._exists(self.operator(inner), condition, patterns)
            case algebra.Extend(inner, variable, expression):
                compute = self.scalars.compute
                return ExtendOperator(
                    self._calling(self.operator(inner), (expression,)),
                    variable,
                    lambda schema: compute(expression, schema),
                    meter,
                    units(expression),
                )
            case algebra.Aggregation():
                return self._groups(node)
            case _:
                assert_never(node)

    def _calling(self, inner: SolutionOperator, expressions: Sequence[Expression]) -> SolutionOperator:
        """An operator whose rows have called functions of one's own, where the expressions have any."""
        for expression in expressions:
            if calls := own_calls(expression):
                call = in_order(self.scalars.compute(expression, inner.schema), calls)
                inner = CallsInOrder(inner, call, calls)
        return inner

    def _ordered(
        self, conditions: Sequence[Expression], calls: int, schema: Sequence[str]
    ) -> Callable[[Sequence[Row]], None]:
        """Calls what rows of a schema need for conditions."""
        return in_order(self.scalars.test(conditions, schema), calls)

    def _tests(self, conditions: Sequence[Expression]) -> Callable[[tuple[str, ...]], Test]:
        return lambda schema: self.scalars.test(conditions, schema)

    def _groups(self, node: algebra.Aggregation) -> SolutionOperator:
        inner = self.operator(node.inner)
        arguments = [total.argument for _, total in node.totals if total.argument is not None]
        inner = self._calling(inner, [*(expression for _, expression in node.keys), *arguments])
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
        work = units(*(e for _, e in node.keys)) + sum(
            EXPRESSION if total.argument is None else units(total.argument) for _, total in node.totals
        )
        return GroupOperator(inner, keys, totals, node.scope, self.meter, work)

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
        calls = own_calls(condition) + sum(calls_of(b.steps) for branches in patterns for b in branches)
        call = in_order(holds, calls, all_rows=True) if calls else None
        return ExistsOperator(
            inner, lambda view, row: holds((view, row)), bare, self.meter, units(condition), call, calls
        )


class Query:
    """Owns the plans of one query and its static answers; `answers` and `changes` are asked while the store
    is at an instant.

    `relations`: those whose changes may change its answers. `timeless`: whether it has no NOW().
    `interpreted`: why it is not compiled, else "". `leaves`: its conjunctions. The other arguments are those
    of `Builder`.
    """

    def __init__(
        self,
        asked: Select | Translated,
        store: TripleIndex,
        limit: int = NO_LIMIT,
        meter: Meter | None = None,
        checks: Callable[[algebra.BasicGraphPattern], Sequence[Check]] = lambda conjunction: (),
    ) -> None:
        translated = translate(asked) if isinstance(asked, Select) else asked
        builder = Builder(store, limit, checks, meter)
        self._store, self._limit = store, limit
        self.meter = builder.meter
        root = self._root = builder.root(translated)
        self.leaves = builder.leaves
        if isinstance(root, Leaf) and may_use(root) and set(root.schema) <= set(translated.outputs):
            translated = replace(translated, distinct=False)  # no two are equal
        self.translated = translated
        self.interpreted = translated.core.reason if isinstance(translated.core, Uncompiled) else ""
        if isinstance(root, InterpretedQuery):
            self.timeless = root.timeless
            self.relations = tuple(sorted(relations_of(translated.select)))
        else:
            self.timeless = not translated.late
            self.relations = tuple(dict.fromkeys(r for watched in root.watch() for r in watched.sources))
        self._keep = _picker(root.schema, translated.kept)
        made = [step.variable.name for step in translated.late if isinstance(step, Bind)]
        wide = (*translated.kept, *made)
        self._late = _late(translated, builder, wide) if translated.late else None
        order = [name for name, _ in translated.order]
        self._output = _picker(wide, (*translated.outputs, *order))
        self._width = len(translated.outputs)
        self._static: Counter[Row] | None = None
        self._changes: list[Change] | None = None
        self._outputs: Counter[Row] | None = None

    def static(self) -> Counter[Row]:
        """The answers over the background, before steps that depend on the time; computed once."""
        if self._static is None:
            root = self._root
            if isinstance(root, InterpretedQuery):
                self._static = Counter(root.rows(View.OLD))
            else:
                rows = () if root.statically_empty else root.rows(View.OLD, {})
                self._static = Counter(map(self._keep, rows))
        return self._static

    def changes(self) -> list[Change]:
        """What the instant adds to and removes from the static answers, consolidated; until `forget`."""
        if self._changes is None:
            if isinstance(self._root, InterpretedQuery):
                now = Counter(self._root.rows(View.NEW))
                now.subtract(self.static())
                self._changes = consolidated(now.items())
            else:
                found = self._root.changes()
                self._changes = consolidated((self._keep(row), n) for row, n in found) if found else []
        return self._changes

    def using(self, relation: Relation) -> UsingRows | None:
        """Finds the solutions over the background that use rows of a relation, before projection; None if the
        change of the answers does not follow from those.
        """
        root = self._root
        return UsingRows(root, relation) if isinstance(root, Leaf) and may_use(root) else None

    def take(self, lost: Iterable[Row], gained: Iterable[Row]) -> None:
        """Until `forget`, `changes` are these solutions, which `using` found."""
        keep = self._keep
        changes = [(keep(row), -1) for row in lost]
        changes += [(keep(row), 1) for row in gained]
        self._changes = consolidated(changes)

    def forget(self) -> None:
        """The instant is over."""
        self._changes = None

    def settle(self, changes: Iterable[Change]) -> None:
        """The background has changed, and its answers by these, consolidated. O(the changes)."""
        changes = list(changes)
        if self._static is not None:
            _settle(self._static, changes)
        if self._outputs is not None:
            _settle(self._outputs, self._of_outputs(changes))

    def renew(self) -> None:
        """The background has changed in an unknown way."""
        self._static = self._changes = self._outputs = None

    def with_values(self, values: Mapping[str, Term]) -> list[Row]:
        """`solutions` of the background alone with these values of variables: looked up, where the query is
        one conjunction that binds them; else they join it.
        """
        root = self._root
        if self._late is None and isinstance(root, Leaf) and root.binds(values):
            return self._ordered(list(map(self._output, map(self._keep, root.rows(View.OLD, values)))))
        select = self.translated.select
        given = Values(tuple(map(Var, values)), (tuple(values.values()),))
        where = GroupPattern((given, *select.where.elements))
        return Query(replace(select, where=where), self._store, self._limit, self.meter).solutions()

    def any(self) -> bool:
        """Whether the background alone has an answer."""
        if self._late is None and isinstance(self._root, Leaf):
            return self._root.any()
        return bool(self.solutions())

    def moved(self) -> list[Change]:
        """`changes` of a timeless query over its outputs, after DISTINCT if it has it."""
        moved = self._of_outputs(self.changes())
        if not self.translated.distinct:
            return moved
        if self._outputs is None:
            self._outputs = Counter()
            for row, n in self.static().items():
                self._outputs[self._output(row)] += n
        before = self._outputs
        flips = ((row, (before[row] + n > 0) - (before[row] > 0)) for row, n in moved)
        return [(row, flip) for row, flip in flips if flip]

    def _of_outputs(self, changes: list[Change]) -> list[Change]:
        """Changes of the answers as those of the outputs, consolidated."""
        if self._output is _same:
            return changes
        return consolidated((self._output(row), n) for row, n in changes)

    def static_answers(self) -> list[Row]:
        """The answers of a timeless query over the background alone, in the form of `answers`."""
        rows = list(map(self._output, self.static().elements()))
        return self._ordered(rows) if self.translated.order else rows

    def answers(self) -> list[Row]:
        """The answers at this instant over `outputs`, with repeats; ordered and cut by the query."""
        if self.translated.order:
            return self.solutions()
        return list(map(self._output, self._rows()))

    def solutions(self) -> list[Row]:
        """All answers at this instant, in ORDER BY order if the query has that, else canonical; cut by it."""
        return self._ordered(list(map(self._output, self._rows())))

    def rows(self) -> list[Row]:
        """The answers as attributes of facts."""
        return widened(self.solutions())

    def _rows(self) -> Iterable[Row]:
        if isinstance(self._root, InterpretedQuery) and self._changes is None:
            return self._root.rows(View.NEW)
        counts = self.static()
        rows: Iterable[Row]
        if changes := self.changes():
            if counts:
                counts = counts.copy()
                for row, count in changes:
                    counts[row] += count
                rows = counts.elements()
            else:
                rows = gained(changes)
        else:
            rows = counts.elements()
        if self._late is None:
            return rows
        each = 1 + units_of_steps(self.translated.late)
        return self._late(counted(rows, self.meter, "rows that NOW() is evaluated for", each))

    def _ordered(self, rows: list[Row]) -> list[Row]:
        width, order = self._width, self.translated.order
        if self.translated.distinct:
            rows = list(dict.fromkeys(rows))
        rows.sort(key=lambda row: values_key(row[:width]))
        for column, (_, descending) in reversed(list(enumerate(order, start=width))):
            rows.sort(key=lambda row: term_key(row[column]), reverse=descending)
        if order:
            rows = [row[:width] for row in rows]
            if self.translated.distinct:
                rows = list(dict.fromkeys(rows))
        limit, offset = self.translated.limit, self.translated.offset
        return rows[offset : None if limit is None else offset + limit]


def _settle(counts: Counter[Row], changes: Iterable[Change]) -> None:
    for row, n in changes:
        left = counts[row] + n
        if left:
            counts[row] = left
        else:
            del counts[row]


def _picker(have: tuple[str, ...], want: tuple[str, ...]) -> Callable[[Row], Row]:
    """A function that maps a row to other columns, None for missing ones."""
    if have == want:
        return _same
    places = [have.index(name) if name in have else None for name in want]
    return lambda row: tuple([None if i is None else row[i] for i in places])


def _same(row: Row) -> Row:
    return row


def _late(
    translated: Translated, builder: Builder, schema: tuple[str, ...]
) -> Callable[[Iterable[Row]], Iterable[Row]]:
    """The steps that depend on the time, as a function of `kept` rows."""
    work = [
        (schema.index(step.variable.name), builder.scalars.compute(step.expression, schema))
        if isinstance(step, Bind)
        else (-1, builder.scalars.test([step.condition], schema))
        for step in translated.late
    ]
    blank = [None] * (len(schema) - len(translated.kept))

    def applied(row: Row) -> Row | None:
        values = [*row, *blank]
        for place, function in work:
            if place >= 0:
                values[place] = function(values)  # type: ignore[assignment,arg-type]  # a bind's value
            elif not function(values):  # type: ignore[arg-type]  # rows are read by place only
                return None
        return tuple(values)

    def apply(rows: Iterable[Row]) -> Iterable[Row]:
        if call is not None:
            rows = list(rows)
            call(rows)
        return (one for row in rows if (one := applied(row)) is not None)

    calls = calls_of(translated.late)
    call = in_order(applied, calls) if calls else None
    return apply


Shown: TypeAlias = Callable[[Row], Row]


def as_it_is(row: Row) -> Row:
    """The answer itself; `attributes` would make it the attributes of a fact."""
    return row


def _nothing() -> None:
    """Nothing to undo: no answer has changed."""


class MaintainedQuery:
    """Owns the changes of one query without NOW() over a state; its answers only if DISTINCT, a cut or the
    interpreter needs them.

    `relations`: those whose changes may change its answers. Work is charged to `meter`, which the caller
    opens, or to the store's. `shown` maps an answer.
    """

    def __init__(
        self,
        select: Select,
        store: TripleIndex,
        limit: int = NO_LIMIT,
        meter: Meter | None = None,
        *,
        shown: Shown = attributes,
    ) -> None:
        translated = translate(select)
        self._shown = shown
        self._cut = bool(translated.order) and (translated.limit is not None or translated.offset > 0)
        self._query = Query(translated if self._cut else replace(translated, order=()), store, limit, meter)
        self.relations = frozenset(self._query.relations)
        for relation in self._query.relations if self._query.interpreted else ():
            store.changes(relation)
        self._moved: list[Change] | None = None

    @property
    def _remembers(self) -> bool:
        return self._cut or self._query.translated.distinct or bool(self._query.interpreted)

    def prime(self) -> None:
        """Find what `moved` has to know of the answers over the last committed state; no change is open."""
        if self._remembers:
            self._query.static()

    def moved(self) -> list[Change]:
        """How the answers, mapped by `shown`, change by the open change; consolidated."""
        if self._moved is None:
            found = self._query.changes()
            self._query.meter.charge(len(found), "answers that change", CHANGED)
            changes = self._differences() if found else ()
            self._moved = consolidated([(self._shown(row), n) for row, n in changes])
        return self._moved

    def using(self, relation: Relation) -> UsingRows | None:
        """Finds the answers over the index that use given rows of a relation; None if the change of `answers`
        does not follow from those. Only while no change is open.
        """
        found = self._query.using(relation)
        if found is not None:
            self.prime()  # as they are before anything changes
        return found

    def take(self, lost: Iterable[Row], gained: Iterable[Row]) -> None:
        """The change loses and gains these answers, which `using` found: for `moved` and `settle`."""
        self._query.take(lost, gained)

    def _differences(self) -> Collection[Change]:
        query = self._query
        if not self._cut:
            return query.moved()
        before, now = Counter(query.static_answers()), Counter(query.solutions())
        now.subtract(before)
        return now.items()

    def settle(self) -> Callable[[], None]:
        """The open change is committed. Returns how to undo that."""
        query = self._query
        changes = query.changes()
        self.forget()
        if not changes:
            return _nothing
        query.settle(changes)
        return lambda: query.settle((row, -n) for row, n in changes)

    def forget(self) -> None:
        """The open change is abandoned."""
        self._moved = None
        self._query.forget()

    def answers(self) -> list[Row]:
        """All answers over the last committed state, mapped by `shown`."""
        rows = self._query.static_answers()
        return list(map(self._shown, dict.fromkeys(rows) if self._query.translated.distinct else rows))

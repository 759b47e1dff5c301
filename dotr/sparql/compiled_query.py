"""A compiled query: its answers over the background once, and their changes at an instant.

Place:   evaluated by core/extract.py; made from a translated query and one store.
Method:  answers(K(t)) = answers(background) + Δ, Δ from the operators; projection, DISTINCT, order and limit
         are applied here, on multisets of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from dotr.budget import EXPRESSION
from dotr.ir import Bind
from dotr.joins.body import View
from dotr.joins.graph_relations import Relation
from dotr.rdf.order import term_key, values_key
from dotr.rdf.terms import Term
from dotr.sparql.full import widened
from dotr.sparql.leaves import Leaf
from dotr.sparql.operator_building import Builder
from dotr.sparql.solution_operators import Change, Row, consolidated, counted, gained
from dotr.sparql.translate import Translated
from dotr.sparql.using_rows import UsingRows, may_use


class CompiledQuery:
    """Owns the static answers of one query; `rows()` is called while the store is at an instant."""

    def __init__(self, translated: Translated, builder: Builder) -> None:
        self.meter = builder.meter
        root = self._root = builder.root(translated.core)
        if isinstance(root, Leaf) and may_use(root) and set(root.schema) <= set(translated.outputs):
            translated = replace(translated, distinct=False)  # no two are equal
        self.translated = translated
        self.watched = self._root.watch()
        self._keep = _picker(self._root.schema, translated.kept)
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
            rows = () if self._root.statically_empty else self._root.rows(View.OLD, {})
            self._static = Counter(map(self._keep, rows))
        return self._static

    def changes(self) -> list[Change]:
        """What the instant adds to and removes from the static answers, consolidated; until `forget`."""
        if self._changes is None:
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
        changes = [*((row, -1) for row in lost), *((row, 1) for row in gained)]
        self._changes = consolidated((self._keep(row), n) for row, n in changes)

    def forget(self) -> None:
        """The instant is over."""
        self._changes = None

    def settle(self, changes: Iterable[Change]) -> None:
        """The background has changed, and its answers by these, consolidated. O(the changes)."""
        changes = list(changes)
        if self._static is not None:
            _settle(self._static, changes)
        if self._outputs is not None:
            _settle(self._outputs, consolidated((self._output(row), n) for row, n in changes))

    def renew(self) -> None:
        """The background has changed in an unknown way."""
        self._static = self._changes = self._outputs = None

    def looked_up(self, values: Mapping[str, Term]) -> list[Row] | None:
        """`solutions` of the background alone with these values; None if that is not a look-up."""
        root = self._root
        if self._late is not None or not isinstance(root, Leaf) or not root.binds(values):
            return None
        return self._ordered(list(map(self._output, map(self._keep, root.rows(View.OLD, values)))))

    def any(self) -> bool:
        """Whether the background alone has an answer."""
        if self._late is None and isinstance(self._root, Leaf):
            return self._root.any()
        return bool(self.solutions())

    @property
    def timeless(self) -> bool:
        """Whether the static answers are the same at every instant."""
        return self._late is None

    def moved(self) -> list[Change]:
        """`changes` of a timeless query over its outputs, after DISTINCT if it has it."""
        moved = consolidated((self._output(row), n) for row, n in self.changes())
        if not self.translated.distinct:
            return moved
        if self._outputs is None:
            self._outputs = Counter()
            for row, n in self.static().items():
                self._outputs[self._output(row)] += n
        before = self._outputs
        flips = ((row, (before[row] + n > 0) - (before[row] > 0)) for row, n in moved)
        return [(row, flip) for row, flip in flips if flip]

    def standing(self) -> list[Row]:
        """The answers of a timeless query over the background alone, in the form of `answers`."""
        rows = list(map(self._output, self.static().elements()))
        return self._ordered(rows) if self.translated.order else rows

    def answers(self) -> list[Row]:
        """The answers at this instant over `outputs`, with repeats; ordered and cut by the query."""
        if self.translated.order:
            return self.solutions()
        return list(map(self._output, self._rows()))

    def solutions(self) -> list[Row]:
        """All answers at this instant, in ORDER BY order and cut if the query has that, else canonical."""
        return self._ordered(list(map(self._output, self._rows())))

    def rows(self) -> list[Row]:
        """The answers as attributes of facts."""
        return widened(self.solutions())

    def _rows(self) -> Iterable[Row]:
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
        units = 1 + EXPRESSION * len(self.translated.late)
        return self._late(counted(rows, self.meter, "rows that NOW() is looked at for", units))

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
        return rows[offset : None if limit is None else offset + limit] if order else rows


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
        return lambda row: row
    places = [have.index(name) if name in have else None for name in want]
    return lambda row: tuple([None if i is None else row[i] for i in places])


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

    def apply(rows: Iterable[Row]) -> Iterable[Row]:
        for row in rows:
            values = [*row, *blank]
            for place, function in work:
                if place >= 0:
                    values[place] = function(values)  # type: ignore[assignment,arg-type]  # a bind's value
                elif not function(values):  # type: ignore[arg-type]  # rows are read by place only
                    break
            else:
                yield tuple(values)

    return apply

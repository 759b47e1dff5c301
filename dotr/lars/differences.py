"""What a rule gains and may lose when the tables that it reads change: only that is looked at again.

Place:   table_building.py makes these for rules of standing components that are not recursive.
Method:  a solution that is new has a row that began under a positive atom, or one that ended under NOT: the
         body is joined from there over what holds now. A head that is lost had a row that ended under a
         positive atom, or meets one that began under NOT: the heads that stand and agree with it in the
         variables that both have are looked at, and kept if any rule still derives them.
Limits:  where a row shares no variable with the head, or a head leaves a table of the body open, all would be
         looked at each time: such a component is derived as a whole instead.
Why not: counting derivations: it needs joins over what held before, too, and state for every head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from dotr.ir.datalog import BindAtom
from dotr.ir.expressions import Var
from dotr.ir.lars import Argument
from dotr.joins.filters import Moment
from dotr.lars.body_code import (
    HeadSink,
    Item,
    TableProbe,
    Work,
    compile_body,
    compile_check,
    is_selective,
    pattern,
)
from dotr.lars.remembered_atoms import Relation
from dotr.lars.solution_sinks import Pile
from dotr.lars.window_tables import AtomTable, Index, Row


class Gain(Struct, frozen=True, eq=False):
    """A join from rows that began (`ended`: that ended) in a table at this point."""

    table: AtomTable
    ended: bool
    run: Callable[[list[Row]], None]
    sink: Pile

    def find(self) -> None:
        assert self.table.net is not None
        rows = self.table.net.ended if self.ended else self.table.net.began
        if rows:
            self.run(list(rows))
            self.sink.empty()


class Loss(Struct, frozen=True, eq=False):
    """Which heads may be lost by rows that ended (`began`: that began) in a table. `key` reads what a row
    shares with heads, `index` has the heads by that; None: all of them.
    """

    table: AtomTable
    began: bool
    key: Callable[[Row], Any]
    index: Index | None
    single: bool

    def candidates(self, standing: Iterable[Row]) -> Iterable[Row]:
        assert self.table.net is not None
        found: dict[Row, None] = {}
        for row in list(self.table.net.began if self.began else self.table.net.ended):
            read = self.key(row)
            if read is None:
                continue
            if self.index is None:
                return standing
            shared, _ = read
            found.update(dict.fromkeys(self.index.get(shared[0] if self.single else shared, ())))
        return found


class Differences(Struct, frozen=True, eq=False):
    """One rule. `check`: whether it derives a head now; None for heads AT, which are never lost."""

    gains: Sequence[Gain]
    losses: Sequence[Loss] = ()
    check: Callable[[Row], bool] | None = None


def differences(
    items: Sequence[Item],
    columns: Sequence[Argument],
    sink: HeadSink,
    relation: Relation,
    moment: Moment,
    work: Work,
) -> Differences | None:
    """How a rule with the head `columns` is kept up; None where it had better be derived as a whole."""
    gains = []
    for place, item in enumerate(items):
        if isinstance(item, TableProbe):
            rest = [*items[:place], *items[place + 1 :]]
            first = item
            if item.negated:  # it must be absent still: of what NOT ranges over, one row is gone
                renamed = tuple(_renamed(c, _bindable(items)) for c in item.columns)
                first = TableProbe(item.table, renamed, name=item.name)
                rest.append(item)
            run = compile_body([first, *rest], sink, moment, work, 0)
            gains.append(Gain(item.table, item.negated, run, sink.target))
    if sink.at is not None:
        return Differences(gains)
    losses = []
    for item in items:
        if isinstance(item, TableProbe):
            loss = _loss(item, columns, _bindable(items), relation, moment)
            if loss is None:
                return None
            losses.append(loss)
    if not is_selective(items, columns):
        return None
    return Differences(gains, losses, compile_check(items, columns, moment, work))


def _loss(
    item: TableProbe, columns: Sequence[Argument], bindable: set[str], relation: Relation, moment: Moment
) -> Loss | None:
    shared: dict[str, int] = {}
    for place, column in enumerate(columns):
        if isinstance(column, Var) and column.name in item.variables & bindable:
            shared.setdefault(column.name, place)
    if columns and not shared:
        return None
    key = pattern(item.columns, [Var(name) for name in shared], None, moment)
    if not shared:
        return Loss(item.table, item.negated, key, None, False)
    assert relation.present is not None
    index = relation.present.table.index(tuple(shared.values()))
    return Loss(item.table, item.negated, key, index, len(shared) == 1)


def _bindable(items: Sequence[Item]) -> set[str]:
    """The variables of a body that are not local to a NOT."""
    found = {item.variable.name for item in items if isinstance(item, BindAtom)}
    return found.union(
        *(item.variables for item in items if isinstance(item, TableProbe) and not item.negated)
    )


def _renamed(column: Argument, bindable: set[str]) -> Argument:
    """A variable that is local to a NOT, by a name that nothing else has."""
    return Var(f"{column.name} of NOT") if isinstance(column, Var) and column.name not in bindable else column

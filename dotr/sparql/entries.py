"""Entries: the facts of single triples over the background alone, as generated functions per predicate.

Place:   core/extract.py makes them; core/instant.py calls them for instants of one triple that no rule reads.
Method:  the queries that read a predicate are known beforehand: a triple starts the plan of each, over the
         background (joins/join_code.py). Facts are written where they are found,
         unless the plan can find several rows.
Why not: filling an overlay, finding what was touched, and emptying it: nothing else reads it, and it is two
         thirds of the cost of a small graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from dotr.codegen import Names, make, row_of
from dotr.events import Fact, Time
from dotr.ir import Node, Var
from dotr.joins.body import BodyPattern, Check, View
from dotr.joins.filters import Moment
from dotr.joins.graph_relations import Relation
from dotr.joins.join_code import CodeBlock, RowSink, Value
from dotr.joins.planner import JoinPlan, plan
from dotr.rdf.terms import Term
from dotr.sparql.full import Explosion
from dotr.sparql.leaves import Leaf
from dotr.sparql.units import MonotoneDelta

Entry: TypeAlias = Callable[[Term, Term, Time, defaultdict[str, list[Fact]]], None]
"""(subject, object, time) of the only triple of an instant, and where to add its facts, by stream. If it
raises Exhausted or Explosion, some may have been added.
"""


class _Start(Struct, frozen=True):
    """A plan that the triple starts."""

    leaf: Leaf
    plan: JoinPlan

    @property
    def subjects(self) -> frozenset[str]:
        """Variables that are never literals."""
        nodes = [pattern.columns[0] for pattern in self.leaf.patterns]
        return frozenset(node.name for node in nodes if isinstance(node, Var))


class _FactLines(Struct, frozen=True):
    """Write the facts of a query's only row into `result`."""

    unit: MonotoneDelta
    subjects: frozenset[str]
    parameters: tuple[str, ...] = ()
    found: bool = False

    def lines(self, outputs: Sequence[Node], annotation: str, value: Value, names: Names) -> list[str]:
        literal = [not (isinstance(node, Var) and node.name in self.subjects) for node in outputs]
        columns = [value(node) for node in outputs]
        return self.unit.distribution.lines_of_one(columns, literal, names)

    def tail(self, names: Names) -> list[str]:
        return []


class _RowLines(Struct, frozen=True):
    """Write every row into the list of this name; `most`: its limit."""

    rows: str
    most: int
    parameters: tuple[str, ...] = ()
    found: bool = False

    def lines(self, outputs: Sequence[Node], annotation: str, value: Value, names: Names) -> list[str]:
        row = row_of([value(node) for node in outputs])
        most = names.bind(self.most, "MOST")
        return [
            f"{self.rows}.append({row})",
            f"if LEN({self.rows}) > {most}: {names.bind(_explode, 'EXPLODE')}()",
        ]

    def tail(self, names: Names) -> list[str]:
        return []


def _explode() -> None:
    raise Explosion


def entry(units: Iterable[MonotoneDelta], predicate: Relation, moment: Moment) -> Entry | None:
    """The function for an instant of one triple of this predicate, which no rule and no union reads, over the
    units that read it. None if a query takes more than the triple and the background.

    Cost of a call: the plans. It raises Exhausted and Explosion if a query takes too much; then nothing is
    left behind but facts in the result.
    """
    names = Names()
    lines = ["def entry(r0, r1, time, result):", f"    {names.bind(moment, 'MOMENT')}.time = time"]
    for number, unit in enumerate(units):
        starts = _starts(unit, predicate)
        if starts is None:
            return None
        rows = f"rows{number}"
        lines += _one_row(unit, predicate, names) or _rows(unit, starts, rows, names)
    return make("entry", "\n".join([*lines, "    return", ""]), names)


def _starts(unit: MonotoneDelta, relation: Relation, *, checked: bool = True) -> list[_Start] | None:
    """The plans that a row of the relation starts; None if it may start others, too. With `checked` they test
    early whether any member wants a row.
    """
    found: list[_Start] = []
    for leaf in unit.leaves:
        places = [i for i, item in enumerate(leaf.items) if getattr(item, "relation", "") == relation]
        if len(places) > 1 or leaf.finish is not None or leaf.follows(relation):
            return None
        for place in places:
            item, rest = leaf.items[place], leaf.items[:place] + leaf.items[place + 1 :]
            assert isinstance(item, BodyPattern)
            if not checked:
                rest = tuple(other for other in rest if not isinstance(other, Check))
            made = plan(rest, leaf.outputs, leaf.store, trigger=item, view=View.OLD)
            leaf.store.prepare(made)
            found.append(_Start(leaf, made))
    return found


def _one_row(unit: MonotoneDelta, predicate: Relation, names: Names) -> list[str]:
    """The lines of a unit that finds at most one row; empty if it may find more. Whether any member wants the
    row is tested where its facts are made.
    """
    starts = _starts(unit, predicate, checked=False)
    if starts is None or len(starts) != 1:
        return []
    block = _block(unit, starts[0], _FactLines(unit, starts[0].subjects), names)
    return [] if block.looping else block.lines


def _rows(unit: MonotoneDelta, starts: Sequence[_Start], rows: str, names: Names) -> list[str]:
    """The lines of a unit whose rows are collected first."""
    lines = [f"    {rows} = []"]
    for start in starts:
        lines += _block(unit, start, _RowLines(rows, unit.limit), names).lines
    return [*lines, f"    if {rows}: {names.bind(unit.distribution.add, 'FACTS')}({rows}, time, result)"]


def _block(unit: MonotoneDelta, start: _Start, sink: RowSink, names: Names) -> CodeBlock:
    block = CodeBlock(start.leaf.store, names, sink, stable=True, meter=unit.meter)
    block.write(start.plan, ("r0", "r1"))
    return block

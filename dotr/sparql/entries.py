"""Entries: what facts one triple gives over the background alone, as one generated function a predicate.

Place:   core/extract.py makes them; core/instant.py calls one for an instant of a triple that no rule reads.
Method:  who asks for the predicate is known beforehand: the triple starts the plan of each query that does,
         over the background (joins/join_code.py), and what it finds is written as facts where it is found.
Why not: filling an overlay, asking what was touched, and emptying it: nobody else looks into it, and it is
         two thirds of what a small graph costs here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from dotr.codegen import Names, make, row_of
from dotr.events import Fact, Time
from dotr.ir import Node, Var
from dotr.joins.body import BodyPattern, View
from dotr.joins.filters import Moment
from dotr.joins.graph_relations import Relation
from dotr.joins.join_code import CodeBlock, Value
from dotr.joins.planner import JoinPlan, plan
from dotr.late import dataclass
from dotr.rdf.terms import Term
from dotr.sparql.full import Explosion
from dotr.sparql.leaves import Leaf
from dotr.sparql.units import MonotoneDelta

Entry: TypeAlias = Callable[[Term, Term, Time], dict[str, list[Fact]]]
"""(subject, object, time) of the only triple of an instant → facts by stream. Raises Exhausted, Explosion."""


@dataclass(frozen=True, slots=True)
class _Start:
    """A plan that the triple starts."""

    leaf: Leaf
    plan: JoinPlan

    @property
    def subjects(self) -> frozenset[str]:
        """Variables that are never literals."""
        nodes = [pattern.columns[0] for pattern in self.leaf.patterns]
        return frozenset(node.name for node in nodes if isinstance(node, Var))


@dataclass(frozen=True, slots=True)
class _FactLines:
    """Write the facts of a query's only row into `result`."""

    unit: MonotoneDelta
    subjects: frozenset[str]
    parameters: tuple[str, ...] = ()
    found: bool = False

    def lines(self, outputs: Sequence[Node], annotation: str, value: Value, names: Names) -> list[str]:
        literal = [not (isinstance(node, Var) and node.name in self.subjects) for node in outputs]
        return self.unit.distribution.lines_of_one([value(node) for node in outputs], literal, names)

    def tail(self, names: Names) -> list[str]:
        return []


@dataclass(frozen=True, slots=True)
class _RowLines:
    """Write every row into the list of this name; `most`: how many it may hold."""

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
    units that ask for it. None where a query takes more than the triple and the background.

    Cost of a call: the plans. It raises Exhausted and Explosion where a query takes too much; nothing is left
    of it then.
    """
    names = Names()
    lines = ["def entry(r0, r1, time):", f"    {names.bind(moment, 'MOMENT')}.time = time", "    result = {}"]
    for number, unit in enumerate(units):
        starts = _starts(unit, predicate)
        if starts is None:
            return None
        lines += _one_row(unit, starts, names) or _rows(unit, starts, f"rows{number}", names)
    return make("entry", "\n".join([*lines, "    return result", ""]), names)


def _starts(unit: MonotoneDelta, relation: Relation) -> list[_Start] | None:
    """The plans that a row of the relation starts; None where it is not known that nothing else does."""
    found: list[_Start] = []
    for leaf in unit.leaves:
        places = [i for i, item in enumerate(leaf.items) if getattr(item, "relation", "") == relation]
        if len(places) > 1 or leaf.finish is not None or leaf.follows(relation):
            return None
        for place in places:
            item, rest = leaf.items[place], leaf.items[:place] + leaf.items[place + 1 :]
            assert isinstance(item, BodyPattern)
            made = plan(rest, leaf.outputs, leaf.store, trigger=item, view=View.OLD)
            leaf.store.prepare(made)
            found.append(_Start(leaf, made))
    return found


def _one_row(unit: MonotoneDelta, starts: Sequence[_Start], names: Names) -> list[str]:
    """The lines of a unit that finds one row at most; none where it may find more."""
    if len(starts) != 1:
        return []
    block = _block(unit, starts[0], _FactLines(unit, starts[0].subjects), names)
    return [] if block.looping else block.lines


def _rows(unit: MonotoneDelta, starts: Sequence[_Start], rows: str, names: Names) -> list[str]:
    """The lines of a unit whose rows are collected first."""
    lines = [f"    {rows} = []"]
    for start in starts:
        lines += _block(unit, start, _RowLines(rows, unit.limit), names).lines
    return [*lines, f"    if {rows}: {names.bind(unit.distribution.facts, 'FACTS')}({rows}, time, result)"]


def _block(unit: MonotoneDelta, start: _Start, sink: _FactLines | _RowLines, names: Names) -> CodeBlock:
    block = CodeBlock(start.leaf.store, names, sink, stable=True, meter=unit.meter)
    block.write(start.plan, ("r0", "r1"))
    return block

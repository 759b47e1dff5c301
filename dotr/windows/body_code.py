"""Bodies of LARS rules as joins of tables: what windows show as relations, the access to them, their sink.

Place:   building.py and rules.py compile bodies with it; the generator is joins/code.py, and window_tables.py
         has what it reads.
Method:  a table is a relation of the join kernel. The rows of its batch of changes, `delta`, are the view
         ADDED, and all that hold now the view NEW. The annotation of a row is its last point: a join has the
         least (all of its rows hold now). A solution goes to the pile of its head, in batches, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import KEPT, Meter
from dotr.codegen import Names, row_of
from dotr.joins.code import Annotation, AnySolution, CodeBlock, any_agreeing, compile_plan
from dotr.joins.filters import Moment, positional_value
from dotr.joins.plan import (
    AntiJoin,
    BodyPattern,
    Item,
    JoinPlan,
    Probe,
    Relation,
    View,
    expression_variables,
    plan,
    table_relation,
)
from dotr.program import Node
from dotr.program.program import Argument
from dotr.program.queries import Expression, Var
from dotr.windows.tables import SolutionBuffer
from dotr.windows.window_tables import FOREVER, AtomTable

_LAST_POINT = Annotation(one=FOREVER, join=min, merge=max)
_ROWS = 10**12


class WindowTables:
    """Owns the relations of tables, and the meter and moment of joins over them.

    To the planner (its `Sizes`) all tables are alike: the pattern with the largest share of bound columns is
    next.
    """

    def __init__(self, meter: Meter, moment: Moment) -> None:
        self.meter, self.moment = meter, moment
        self.counting, self.visits = False, [0]
        self._tables: dict[Relation, AtomTable] = {}
        self._widths: dict[Relation, int] = {}
        self._relations: dict[AtomTable, Relation] = {}

    def pattern(self, table: AtomTable, name: str, columns: tuple[Argument, ...]) -> BodyPattern:
        """Rows of a table. `name`: for diagnostics."""
        relation = self._relations.get(table)
        if relation is None:
            relation = self._relations[table] = table_relation(len(self._tables), name)
            self._tables[relation] = table
            self._widths[relation] = len(columns)
        return BodyPattern(relation, columns)

    def table(self, pattern: BodyPattern) -> AtomTable:
        return self._tables[pattern.relation]

    def rows(self, relation: Relation) -> int:
        return _ROWS

    def values(self, relation: Relation, column: int) -> int:
        return round(math.pow(_ROWS, 1 / self._widths[relation]))

    def prepare(self, plan: JoinPlan) -> None:
        """Make the indexes that the plan reads; before there are rows."""
        for step in plan.steps:
            if isinstance(step, Probe | AntiJoin) and any(step.bound) and not all(step.bound):
                self.table(step.pattern).index(_places(step.bound))


def _places(bound: Sequence[bool]) -> tuple[int, ...]:
    return tuple(place for place, is_bound in enumerate(bound) if is_bound)


class TableAccess:
    """Writes the code for one pattern over a table."""

    def __init__(self, block: CodeBlock, pattern: BodyPattern, view: View, bound: Sequence[bool]) -> None:
        assert isinstance(block.store, WindowTables)
        self._block, self._pattern, self._bound = block, pattern, bound
        self._batch = view is View.ADDED
        self._table = block.store.table(pattern)
        self._all = block.names.bind(self._table.rows, "ROWS")

    def probe(self, exists: bool) -> bool:
        block = self._block
        if self._batch:
            self._note(block.scan("delta", self._pattern, [False] * len(self._bound)))
        elif not all(self._bound):
            self._note(block.scan(self._found(), self._pattern, self._bound))
        elif block.annotated:
            last = block.note(f"{self._all}.get({block.row(self._pattern.columns)})")
            block.guard(f"{last} is None")
        else:
            block.guard(f"{block.row(self._pattern.columns)} not in {self._all}")
        return True

    def lacks(self) -> bool:
        block, pattern = self._block, self._pattern
        if all(self._bound):
            block.guard(f"{block.row(pattern.columns)} in {self._all}")
            return True
        found = self._found()
        free = [node for node, is_bound in zip(pattern.columns, self._bound, strict=True) if not is_bound]
        if len(set(free)) == len(free):
            block.guard(found)
            return True
        block.listed(pattern, f"LEN({found})")
        block.guard(f"{block.names.bind(any_agreeing(pattern, self._bound), 'SAME')}({found})")
        return True

    def _note(self, row: str) -> None:
        if self._block.annotated:
            self._block.note(f"{self._all}[{row}]")

    def _found(self) -> str:
        """The name of the rows that have the bound values."""
        block, places = self._block, _places(self._bound)
        if not places:
            return self._all
        index = block.names.bind(self._table.indexes[places], "INDEX")
        values = [block.value(self._pattern.columns[place]) for place in places]
        found = block.local()
        block.line(f"{found} = {index}.get({values[0] if len(values) == 1 else row_of(values)}, ())")
        return found


class HeadSink(Struct, frozen=True):
    """What becomes of a solution, the row `columns`: it goes to the pile of `target`, under its last point if
    `annotated`, under the term of a point for a head AT `at`, else as a key.
    """

    columns: tuple[Argument, ...]
    target: SolutionBuffer
    annotated: bool = False
    at: str | None = None
    parameters: tuple[str, ...] = ()
    found: bool = False

    def lines(self, outputs: Sequence[Node], annotation: str, block: CodeBlock) -> list[str]:
        block.spend(KEPT)
        pile, row = block.names.bind(self.target.pile, "PILE"), block.row(self.columns)
        if self.at is None and not annotation:
            return [f"{pile}[{row}] = None"]
        key = annotation if self.at is None else block.value(Var(self.at))
        rows = block.local()
        return [
            f"{rows} = {pile}.get({key})",
            f"if {rows} is None: {pile}[{key}] = [{row}]",
            f"else: {rows}.append({row})",
        ]

    def tail(self, names: Names) -> list[str]:
        return []


def compile_body(
    items: Sequence[Item], sink: HeadSink, tables: WindowTables, rule: object, batch: int | None = None
) -> Callable[..., None]:
    """A function over a batch of rows of the `batch`-th item, or without one over everything that holds.

    What it charges for the rule is exact once it returns. It raises Exhausted.
    """
    outputs = sink.columns if sink.at is None else (*sink.columns, Var(sink.at))
    if batch is None:
        made = plan(items, outputs, tables)
    else:
        made = plan(items, outputs, tables, views={batch: View.ADDED}, first=batch)
        sink = replace(sink, parameters=("delta",))
    annotation = _LAST_POINT if sink.annotated else None
    return compile_plan(made, tables, sink, annotation, source=rule, access=TableAccess)


def compile_check(
    items: Sequence[Item], columns: Sequence[Argument], tables: WindowTables, rule: object
) -> Callable[..., bool] | None:
    """Whether a body has a solution with these values of the head's `columns`. It raises Exhausted.

    None if a table would be read as a whole.
    """
    made = plan(items, (), tables, trigger=BodyPattern("", tuple(columns)))
    if any(isinstance(step, Probe) and step.bound and not any(step.bound) for step in made.steps):
        return None
    return compile_plan(made, tables, AnySolution(), source=rule, access=TableAccess)


def pattern(
    columns: Sequence[Argument], group: Sequence[Var], argument: Expression | None, moment: Moment
) -> Callable[[Any], tuple[Any, Any] | None]:
    """How a row under a pattern is read: (values of `group`, value of `argument`); None where it fits not."""
    places: dict[str, int] = {}
    constants: list[tuple[int, str]] = []
    same: list[tuple[int, int]] = []
    for place, column in enumerate(columns):
        if not isinstance(column, Var):
            constants.append((place, column))
        elif column.name in places:
            same.append((place, places[column.name]))
        else:
            places[column.name] = place
    key = [places[variable.name] for variable in group]
    used = [] if argument is None else expression_variables(argument)
    get = None if argument is None else positional_value(argument, used, moment)

    def read(row: Any) -> tuple[Any, Any] | None:
        for place, constant in constants:
            if row[place] != constant:
                return None
        for place, other in same:
            if row[place] != row[other]:
                return None
        value = None
        if get is not None:
            values = [row[places[name]] if name in places else None for name in used]
            value = get(values[0] if len(values) == 1 else tuple(values))
        return tuple([row[place] for place in key]), value

    return read

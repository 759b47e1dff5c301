"""A rule's body as one Python function: a join over tables, flat guards, a sink.

Place:   engine.py makes one function a trigger; window_tables.py has what it reads.
Method:  nested loops over hash indexes, as in joins/code.py for triples: the atom with most bound
         columns is next, guards stand where their variables are bound. The joined annotation is the least of
         the last points of the rows (they all hold now). Work is charged as in joins/filters.py: the length
         of a loop where it is entered, with the expressions inside it. Everything, constants, tables,
         conditions, comes in through the namespace: no text of a user is part of the source. Limits:  CPython
         refuses 20 nested blocks, so a long body goes on in a second function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from dotr.budget import EXPRESSION, KEPT, Factor, Meter
from dotr.codegen import Names, make
from dotr.joins.filters import Moment, positional_condition, positional_value
from dotr.joins.plan import expression_variables
from dotr.program.program import Argument
from dotr.program.queries import BindAtom, Expression, FilterAtom, Var
from dotr.windows.tables import SolutionBuffer
from dotr.windows.window_tables import AtomTable

_DEEPEST = 15


class Work(Struct, frozen=True, eq=False):
    """Where the work of a rule is charged; `rule`: whose it is."""

    meter: Meter
    rule: object = None


class _SpentNames:
    """What generated code calls to take units off the meter: (units, the length of each loop it is in)."""

    __slots__ = ("_whats", "_work")

    def __init__(self, work: Work, whats: Sequence[str]) -> None:
        self._work, self._whats = work, tuple(whats)

    def __call__(self, units: int, *sizes: int) -> int:
        meter = self._work.meter
        meter.left[0] -= units
        if meter.left[0] < 0:
            factors = [Factor(what, size) for what, size in zip(self._whats, sizes, strict=False)]
            meter.stop(factors, self._work.rule)
        return 0


class TableProbe(Struct, frozen=True, eq=False):
    """Rows of a table that fit. `own`: of a head of the rule's component. `name`: for diagnostics."""

    table: AtomTable
    columns: tuple[Argument, ...]
    negated: bool = False
    own: bool = False
    name: str = ""

    @property
    def variables(self) -> set[str]:
        return {column.name for column in self.columns if isinstance(column, Var)}

    @property
    def text(self) -> str:
        shown = (f"?{column.name}" if isinstance(column, Var) else column for column in self.columns)
        return f"{self.name}({', '.join(shown)})"


Item: TypeAlias = TableProbe | FilterAtom | BindAtom


class HeadSink(Struct, frozen=True):
    """What becomes of a solution, the row `columns`: it goes to the pile of `target`, under its last point if
    `annotated`, under the term of a point for a head AT `at`, else as a key.
    """

    columns: tuple[Argument, ...]
    target: SolutionBuffer
    annotated: bool = False
    at: str | None = None


def compile_body(
    items: Sequence[Item], sink: HeadSink, moment: Moment, work: Work, trigger: int | None = None
) -> Callable[..., None]:
    """A function over the rows of the `trigger`-th item, or without one over everything that holds.

    What it charges is exact once it returns. It raises Exhausted.
    """
    names = Names()
    code = _Code(items, sink, moment, names, work)
    if trigger is None:
        code.write({}, None)
        return make("run", "def run():\n" + code.text(), names)
    code.write({}, trigger)
    return make("run", "def run(delta):\n" + code.text(), names)


def compile_check(
    items: Sequence[Item], columns: Sequence[Argument], moment: Moment, work: Work
) -> Callable[[Any], bool]:
    """Whether a body has a solution with these values of the head's `columns`. It raises Exhausted."""
    names = Names()
    code = _Code(items, None, moment, names, work)
    code.given_row(columns)
    return make("run", f"def run(row):\n{code.text()}\n    return False", names)


def is_selective(items: Sequence[Item], columns: Sequence[Argument]) -> bool:
    """Whether no table need be read as a whole once the values of `columns` are known."""
    known = {column.name for column in columns if isinstance(column, Var)}
    left = [item for item in items if isinstance(item, TableProbe) and not item.negated and item.columns]
    while left:
        bound = [p for p in left if any(not isinstance(c, Var) or c.name in known for c in p.columns)]
        if not bound:
            return False
        known |= bound[0].variables
        left.remove(bound[0])
    return True


class _Code:
    """Owns the lines of one function, and what each variable is called in it."""

    def __init__(
        self, items: Sequence[Item], sink: HeadSink | None, moment: Moment, names: Names, work: Work
    ) -> None:
        self._left = list(items)
        self._sink, self._moment, self._names, self._work = sink, moment, names, work
        self._annotated = sink is not None and sink.annotated
        self._lines: list[str] = []
        self._depth = 1
        self._loops = 0
        self._fresh = 0
        self._env: dict[str, str] = {}
        self._horizon = ""
        self._whole: dict[tuple[Argument, ...], str] = {}  # columns → the name of a row that has them
        self._charges: list[_Charge] = []
        self._open: list[tuple[str, str]] = []  # what each loop in progress is over, and its length

    def text(self) -> str:
        """The function's body; loops charge for the expressions inside them, which are known by now."""
        lines = list(self._lines)
        for charge in self._charges:
            lines[charge.line] += charge.text()
        left = self._left_name()
        return "\n".join([*lines, f"    {left} -= n", f"    if {left} < 0: {self._spent(1).format('0')}"])

    def write(self, env: dict[str, str], trigger: int | None, horizon: str = "") -> None:
        self._begin(env)
        self._horizon = horizon
        if trigger is not None:
            first = self._left.pop(trigger)
            assert isinstance(first, TableProbe)
            self._loop("delta", first, set())
        else:
            self._once()
        self._go_on()

    def given_row(self, columns: Sequence[Argument]) -> None:
        """Write the body for one row of the head, `row`."""
        self._begin({column.name: "" for column in columns if isinstance(column, Var)})
        self._env = {}
        self._once()
        self._match("row", columns, set())
        self._go_on()

    def _begin(self, env: dict[str, str]) -> None:
        self._env = dict(env)
        bindable = set(env)
        for item in self._left:
            if isinstance(item, TableProbe) and not item.negated:
                bindable |= item.variables
            elif isinstance(item, BindAtom):
                bindable.add(item.variable.name)
        self._bindable = bindable

    def _once(self) -> None:
        """A loop of one round, which a guard can leave."""
        self._charges.append(_Charge(len(self._lines), "1", 0, None))
        self._line("")
        self._line(f"for _ in {self._names.bind(((),), 'ONCE')}:")
        self._depth += 1

    # -- work

    def _enter(self, what: str, length: str) -> None:
        """The next line is a loop."""
        first = not self._charges
        self._open.append((what, length))
        spent = None if first else self._spent(len(self._open))
        self._charges.append(_Charge(len(self._lines), length, 1, spent))
        self._line("")

    def _expression(self) -> None:
        """An expression is evaluated in the innermost loop."""
        self._charges[-1].units += EXPRESSION

    def _spent(self, depth: int) -> str:
        """A call, given the units, that names the loops in progress."""
        loops = self._open[:depth]
        call = self._names.bind(_SpentNames(self._work, [what for what, _ in loops]), "SPENT")
        return f"{call}({{}}{''.join(f', {length}' for _, length in loops)})"

    def _left_name(self) -> str:
        return f"{self._names.bind(self._work.meter.left, 'W')}[0]"

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def _local(self) -> str:
        self._fresh += 1
        return f"v{self._fresh}"

    def _go_on(self) -> None:
        """Write what is left, guards as early as they can stand, then the sink."""
        while self._left:
            ready = next((item for item in self._left if self._is_ready(item)), None)
            if ready is not None:
                self._left.remove(ready)
                self._guard(ready)
                continue
            probes = [item for item in self._left if isinstance(item, TableProbe) and not item.negated]
            assert probes, "checked: every variable of a guard can be bound"
            if self._loops >= _DEEPEST:
                self._second_function()
                return
            best = max(probes, key=lambda probe: len(self._bound(probe)) / (len(probe.columns) or 1))
            self._left.remove(best)
            self._probe(best)
        self._finish()

    def _is_ready(self, item: Item) -> bool:
        match item:
            case TableProbe(negated=False):
                return len(self._bound(item)) == len(item.columns)
            case TableProbe():
                needed = item.variables
            case FilterAtom():
                needed = set(expression_variables(item.condition))
            case BindAtom():
                needed = set(expression_variables(item.expression))
        return needed & self._bindable <= self._env.keys()

    def _bound(self, probe: TableProbe) -> list[int]:
        """The columns that are known before the table is read."""
        return [
            place
            for place, column in enumerate(probe.columns)
            if not isinstance(column, Var) or column.name in self._env
        ]

    def _value(self, node: Argument) -> str:
        return self._env[node.name] if isinstance(node, Var) else self._names.constant(node)

    def _guard(self, item: Item) -> None:
        match item:
            case TableProbe(negated=True):
                self._line(f"if {self._absence(item)}: continue")
            case TableProbe():
                row = self._key([self._value(column) for column in item.columns], always=True)
                rows = self._names.bind(item.table.rows, "ROWS")
                if self._annotated:
                    local = self._local()
                    self._line(f"{local} = {rows}.get({row})")
                    self._line(f"if {local} is None: continue")
                    self._join(local)
                else:
                    self._line(f"if {row} not in {rows}: continue")
            case FilterAtom():
                used = expression_variables(item.condition)
                self._expression()
                test = self._names.bind(positional_condition(item.condition, used, self._moment), "G")
                self._line(f"if not {test}({self._arguments(used)}): continue")
            case BindAtom():
                used = expression_variables(item.expression)
                self._expression()
                get = self._names.bind(positional_value(item.expression, used, self._moment), "F")
                call = f"{get}({self._arguments(used)})"
                if item.variable.name in self._env:
                    self._line(f"if {call} != {self._env[item.variable.name]}: continue")
                else:
                    local = self._env[item.variable.name] = self._local()
                    self._line(f"{local} = {call}")
                    self._line(f"if {local} is None: continue")

    def _arguments(self, names: Sequence[str]) -> str:
        values = [self._env.get(name, "None") for name in names]
        return values[0] if len(values) == 1 else f"({', '.join(values)})"

    def _key(self, values: Sequence[str], always: bool = False) -> str:
        """A key of an index, or (`always`) a row."""
        if len(values) == 1 and not always:
            return values[0]
        return f"({', '.join(values)}{',' if len(values) == 1 else ''})"

    def _rows(self, probe: TableProbe, bound: Sequence[int]) -> str:
        """The rows that have the known values in the columns `bound`."""
        if not bound:
            return self._names.bind(probe.table.rows, "ROWS")
        index = self._names.bind(probe.table.index(tuple(bound)), "INDEX")
        key = self._key([self._value(probe.columns[place]) for place in bound])
        return f"{index}.get({key}, ())"

    def _absence(self, probe: TableProbe) -> str:
        """Whether what is negated holds; variables that nothing binds stand for any value."""
        bound = self._bound(probe)
        if len(bound) == len(probe.columns):
            row = self._key([self._value(column) for column in probe.columns], always=True)
            return f"{row} in {self._names.bind(probe.table.rows, 'ROWS')}"
        rows = self._local()
        self._line(f"{rows} = {self._rows(probe, bound)}")
        places: dict[str, int] = {}
        same = []
        for place, column in enumerate(probe.columns):
            if isinstance(column, Var) and column.name not in self._env:
                first = places.setdefault(column.name, place)
                if first != place:
                    same.append(f"r[{first}] == r[{place}]")
        if not same:
            return rows
        self._line(f"n += LEN({rows})")
        return f"{self._names.bind(any, 'ANY')}({' and '.join(same)} for r in {rows})"

    def _probe(self, probe: TableProbe) -> None:
        bound = self._bound(probe)
        rows = self._rows(probe, bound)
        self._loop(rows, probe, set(bound))

    def _loop(self, rows: str, probe: TableProbe, known: set[int]) -> None:
        """A loop over rows whose columns `known` need no look."""
        if "." in rows:
            listed = self._local()
            self._line(f"{listed} = {rows}")
            rows = listed
        row = self._local()
        self._enter(probe.text, f"LEN({rows})")
        self._line(f"for {row} in {rows}:")
        self._depth += 1
        self._loops += 1
        self._whole[probe.columns] = row
        if self._annotated:
            local = self._local()
            self._line(f"{local} = {self._names.bind(probe.table.rows, 'ROWS')}[{row}]")
        self._match(row, probe.columns, known)
        if self._annotated:
            self._join(local)

    def _match(self, row: str, columns: Sequence[Argument], known: set[int]) -> None:
        """Names for the columns of a row; those that have one already, and constants, must be equal."""
        for place, column in enumerate(columns):
            if place in known:
                continue
            if isinstance(column, Var) and column.name not in self._env:
                value = self._env[column.name] = self._local()
                self._line(f"{value} = {row}[{place}]")
            else:
                self._line(f"if {row}[{place}] != {self._value(column)}: continue")

    def _join(self, last: str) -> None:
        """The least of the last points so far."""
        if self._horizon:
            joined = self._local()
            self._line(f"{joined} = {last} if {last} < {self._horizon} else {self._horizon}")
            self._horizon = joined
        else:
            self._horizon = last

    def _finish(self) -> None:
        sink = self._sink
        if sink is None:
            self._line(f"{self._left_name()} -= n")
            self._line("return True")
            return
        spent = self._spent(len(self._open)).format("n")
        self._line(f"if (n := n + {KEPT}) > CHUNK: n = {spent}")
        pile = self._names.bind(sink.target.pile, "PILE")
        row = self._whole.get(sink.columns) or self._key([self._value(c) for c in sink.columns], always=True)
        if sink.at is None and not sink.annotated:
            self._line(f"{pile}[{row}] = None")
            return
        key = self._horizon if sink.at is None else self._env[sink.at]
        rows = self._local()
        self._line(f"{rows} = {pile}.get({key})")
        self._line(f"if {rows} is None: {pile}[{key}] = [{row}]")
        self._line(f"else: {rows}.append({row})")

    def _second_function(self) -> None:
        """Go on in a function of everything known: this one is nested as deeply as is allowed."""
        names = Names()
        rest = _Code(self._left, self._sink, self._moment, names, self._work)
        given = {name: f"g{place}" for place, name in enumerate(self._env)}
        parameters = [*given.values(), *(["h"] if self._horizon else [])]
        rest.write(given, None, "h" if self._horizon else "")
        source = f"def rest({', '.join(parameters)}):\n{rest.text()}\n    return False"
        function = make("rest", source, names)
        values = [*self._env.values(), *([self._horizon] if self._horizon else [])]
        call = f"{self._names.bind(function, 'REST')}({', '.join(values)})"
        if self._sink is not None:
            self._line(call)
            return
        self._line(f"if {call}:")
        self._line(f"    {self._left_name()} -= n")
        self._line("    return True")


class _Charge(Struct):
    """The line kept free before a loop of `length`. `spent`: the call once much has added up; None: first."""

    line: int
    length: str
    units: int
    spent: str | None

    def text(self) -> str:
        if self.spent is None:
            return f"n = {self.units}" if self.length == "1" else f"n = {self.length} * {self.units}"
        return f"if (n := n + {self.length} * {self.units}) > CHUNK: n = {self.spent.format('n')}"


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

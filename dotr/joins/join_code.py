"""Generate Python source for a plan: one function, flat guards, specialised to the store.

Place:   beside plan_interpreter.py, which runs the same plan without generating anything; datalog/ and
         sparql/ pass sinks.
Method:  a probe becomes a dict lookup and, where a key may have several values, a loop; a guard becomes `if
         …: continue`. Whether the background has a relation, has one value per key, and can lose rows is
         known when code is generated, so plans that cannot match vanish, and so do most loops. All constants,
         dicts and closures enter through the namespace: no user text is part of the source. Loops charge
         their work on entry (charging.py).
Limits:  CPython refuses 20 nested blocks, so a long plan continues in a second function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, assert_never

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import Meter
from dotr.codegen import Names, make, row_of
from dotr.ir import Node, Var
from dotr.joins.access import Access
from dotr.joins.body import Assign, BodyPattern, Check, RowFilter, item_variables
from dotr.joins.charging import Charges
from dotr.joins.filters import positional_condition, positional_value
from dotr.joins.graph_relations import Relation
from dotr.joins.planner import AntiJoin, JoinPlan, Probe, Step
from dotr.joins.store import TripleIndex
from dotr.joins.variables import expression_variables, nodes_variables

_DEEPEST = 15  # nested loops in one function

Value = Callable[[Node], str]


class Annotation(Struct, frozen=True):
    """The extension point for other semirings: the annotation of a row.

    `one` annotates the background and is neutral for `join`, which combines the rows of a body; `merge`
    combines derivations of one row. Plain triples have no annotation, and their code no trace of it. `rows`:
    a relation's annotations by row key, for background and added rows alike, without `one`; a row in it
    holds. Without `rows` the overlay has those of added rows.
    """

    one: object
    join: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    rows: Callable[[Relation], dict[Any, Any]] | None = None


class Wakeable(Protocol):
    """A callback at an instant, called if woken."""

    woken: bool


class RowSink(Protocol):
    """What to do with a solution."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the function's parameters before its own."""
        ...

    @property
    def found(self) -> bool:
        """Whether the function returns True at the first solution (and False without one)."""
        ...

    def lines(self, outputs: Sequence[Node], annotation: str, value: Value, names: Names) -> list[str]:
        """Source lines; `annotation` is the name that holds a solution's annotation, or "".

        `value` gives the source name of a bound variable or constant, `names` one for anything else.
        """
        ...

    def tail(self, names: Names) -> list[str]:
        """Source lines at the end of the function."""
        ...


class Rows(Struct, frozen=True):
    """Call the first argument with every solution as a tuple."""

    parameters: tuple[str, ...] = ("out",)
    found: bool = False

    def lines(self, outputs: Sequence[Node], annotation: str, value: Value, names: Names) -> list[str]:
        columns = [value(node) for node in outputs] + ([annotation] if annotation else [])
        return [f"out({row_of(columns)})"]

    def tail(self, names: Names) -> list[str]:
        return []


class Collect(Struct, frozen=True):
    """Append every solution to `rows` as a tuple; if there is any, append `reader` to `woken`, once.

    `most`: how many rows `rows` may hold before `explode` is called, which raises; None for no limit.
    """

    rows: list[Any]
    reader: Wakeable
    woken: list[Any]
    most: int | None
    explode: Callable[[], object]
    parameters: tuple[str, ...] = ()
    found: bool = False

    def lines(self, outputs: Sequence[Node], annotation: str, value: Value, names: Names) -> list[str]:
        lines = [f"{names.bind(self.rows.append, 'OUT')}({row_of([value(node) for node in outputs])})"]
        if self.most is not None:
            size = f"{names.bind(len, 'LEN')}({names.bind(self.rows, 'ROWS')})"
            explode = f"{names.bind(self.explode, 'EXPLODE')}()"
            lines.append(f"if {size} > {names.bind(self.most, 'MOST')}: {explode}")
        return lines

    def tail(self, names: Names) -> list[str]:
        reader = names.bind(self.reader, "READER")
        return [
            f"if {names.bind(self.rows, 'ROWS')} and not {reader}.woken:",
            f"    {reader}.woken = True",
            f"    {names.bind(self.woken.append, 'WAKE')}({reader})",
        ]


class AnySolution(Struct, frozen=True):
    """Return whether there is a solution."""

    parameters: tuple[str, ...] = ()
    found: bool = True

    def lines(self, outputs: Sequence[Node], annotation: str, value: Value, names: Names) -> list[str]:
        return ["return True"]

    def tail(self, names: Names) -> list[str]:
        return ["return False"]


def compile_plan(
    plan: JoinPlan,
    store: TripleIndex,
    sink: RowSink | None = None,
    annotation: Annotation | None = None,
    meter: Meter | None = None,
) -> Callable[..., Any]:
    """A function of (sink's parameters, columns of the triggering row or `given` values[, its annotation]).

    With `Rows` (the default) it calls its first argument with every solution; with `AnySolution` it returns a
    bool. No rows may be added while it runs. Work is charged to `meter`, or else to the store's: the function
    raises Exhausted when no units are left.
    """
    sink = sink if sink is not None else Rows()
    store.prepare(plan)
    names = Names()
    if plan.trigger is not None:
        columns = tuple(f"r{i}" for i in range(len(plan.trigger.columns)))
    else:
        columns = tuple(f"g{i}" for i in range(len(plan.given)))
    noted = ("e0",) if annotation is not None and plan.trigger is not None else ()
    block = CodeBlock(store, names, sink, annotation, 1, stable=True, meter=meter)
    block.write(plan, columns)
    head = f"def run({', '.join((*sink.parameters, *columns, *noted))}):\n"
    body = "\n".join(block.lines) or "    pass"
    tail = "".join(f"\n    {line}" for line in sink.tail(names))
    return make("run", f"{head}{body}{tail}\n", names)


class CodeBlock:
    """Owns the lines of one plan inside a function, and the local of each variable."""

    def __init__(
        self,
        store: TripleIndex,
        names: Names,
        sink: RowSink,
        annotation: Annotation | None = None,
        indent: int = 1,
        *,
        stable: bool = False,
        meter: Meter | None = None,
        source: object = None,
    ) -> None:
        self.store = store
        self._meter = store.meter if meter is None else meter
        self.stable = stable  # nothing is added while this runs, so dicts may be iterated directly
        self.names = names
        self.lines: list[str] = []
        self._charges = Charges(self._meter, names, self.lines, source)
        self._sink = sink
        self._annotation = annotation
        self._indent = indent
        self._loops = 0
        self._leaves = False  # a guard is outside every loop
        self._env: dict[str, str] = {}
        self._fresh = 0
        self._notes: list[str] = []  # annotations to be joined, by local name

    def write(self, plan: JoinPlan, columns: Sequence[str]) -> None:
        """Write the plan; `given` names the columns of the triggering row or the given values."""
        base = self._indent
        self._indent += 1
        if plan.trigger is None:
            self._env.update(zip(plan.given, columns, strict=True))
        else:
            if self._annotation is not None:
                self._notes.append("e0")
            for node, column in zip(plan.trigger.columns, columns, strict=True):
                if not isinstance(node, Var):
                    self.guard(f"{column} != {self.names.constant(node)}")
                elif node.name in self._env:
                    self.guard(f"{column} != {self._env[node.name]}")
                else:
                    self._env[node.name] = column
        alive = self._steps(plan.steps, plan)
        if not alive:
            self.lines.clear()
            return
        self._charges.settle("    " * (base + 1))
        if self._leaves:
            # Guards outside loops leave the block with `break`; nothing repeats.
            self.lines.insert(0, "    " * base + "while True:")
            self.lines.append("    " * (base + 1) + "break")
        else:
            self.lines[:] = [line[4:] for line in self.lines]

    # -- for access.py and sinks

    def value(self, node: Node) -> str:
        """The source name of a constant or bound variable."""
        return self._env[node.name] if isinstance(node, Var) else self.names.constant(node)

    def local(self) -> str:
        self._fresh += 1
        return f"v{self._fresh}"

    def let(self, node: Node) -> str:
        """A local for a column: of a new variable, or to be compared with the variable's value."""
        local = self.local()
        if isinstance(node, Var) and node.name not in self._env:
            self._env[node.name] = local
        return local

    def line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)

    def leave(self) -> str:
        """The statement that skips this row."""
        if self._loops:
            return "continue"
        self._leaves = True
        return "break"

    def guard(self, condition: str) -> None:
        self.line(f"if {condition}: {self.leave()}")

    def loop(self, header: str, pattern: BodyPattern, length: str = "", *, spared: bool = False) -> None:
        """A loop over rows of a pattern. `length` is "" if an outer loop is charged with its rows."""
        if length:
            self._charges.enter("    " * self._indent, pattern, length, spared=spared)
        self.line(f"for {header}:")
        self._indent += 1
        self._loops += 1

    def listed(self, pattern: BodyPattern, length: str) -> None:
        """A call has returned a list of rows, to be charged."""
        self._charges.listed("    " * self._indent, pattern, length)

    @property
    def looping(self) -> bool:
        """Whether the code so far may find more than one row."""
        return self._loops > 0

    def visit(self) -> None:
        if self.store.counting:
            self.line(f"{self.names.bind(self.store.visits, 'N')}[0] += 1")

    def note(self, expression: str) -> str:
        """Keep the annotation of the row just found in a local; returns its name, "" in the plain case."""
        if self._annotation is None:
            return ""
        local = self.local()
        self.line(f"{local} = {expression}")
        self._notes.append(local)
        return local

    @property
    def annotated(self) -> bool:
        return self._annotation is not None

    def kept(self, relation: Relation) -> str:
        """The name of the dict of a relation's annotations; "" if the overlay has them."""
        rows = None if self._annotation is None else self._annotation.rows
        return "" if rows is None else self.names.bind(rows(relation), "U")

    @property
    def one(self) -> str:
        if self._annotation is None:
            raise AssertionError("plain rows have no annotation")
        return self.names.bind(self._annotation.one, "ONE")

    # -- steps

    def _steps(self, steps: Sequence[Step], plan: JoinPlan) -> bool:
        """Write the steps and the sink; False if nothing can match."""
        for i, step in enumerate(steps):
            if isinstance(step, Probe) and self._loops >= _DEEPEST:
                self._go_on(steps[i:], plan)
                return True
            match step:
                case Probe() | AntiJoin():
                    access = Access(self, step.pattern, step.view, step.bound)
                    if not (access.lacks() if isinstance(step, AntiJoin) else access.probe(step.exists)):
                        return False
                case RowFilter():
                    self._charges.expression()
                    self.guard(f"not {self._condition(step)}")
                case Check():
                    self._charges.expression()
                    values = ", ".join(self._env[name] for name in step.variables)
                    if step.table is None:
                        self.guard(f"not {self.names.bind(step.function, 'G')}({values})")
                    else:
                        self.guard(f"not {self.names.bind(step.table, 'T')}[{values}]")
                case Assign():
                    self._assign(step)
                case _:
                    assert_never(step)
        self._finish(plan)
        return True

    def _condition(self, step: RowFilter) -> str:
        names = list(dict.fromkeys(item_variables(step)))
        test = positional_condition(step.condition, names, self.store.moment)
        return f"{self.names.bind(test, 'G')}({self._arguments(names)})"

    def _assign(self, step: Assign) -> None:
        names = expression_variables(step.expression)
        function = positional_value(step.expression, names, self.store.moment)
        call = f"{self.names.bind(function, 'F')}({self._arguments(names)})"
        self._charges.expression()
        if step.variable in self._env:
            self.guard(f"{call} != {self._env[step.variable]}")
            return
        local = self.local()
        self._env[step.variable] = local
        self.line(f"{local} = {call}")
        self.guard(f"{local} is None")

    def _arguments(self, names: Sequence[str]) -> str:
        """How positional guards take their row: a bare value, or a tuple."""
        values = [self._env[name] for name in names]
        return values[0] if len(values) == 1 else f"({', '.join(values)})"

    def _joined(self) -> str:
        """The name of the joined annotation, "" in the plain case."""
        if self._annotation is None:
            return ""
        if not self._notes:
            return self.one
        join = self.names.bind(self._annotation.join, "JOIN")
        local = self._notes[0]
        for note in self._notes[1:]:
            joined = self.local()
            least = f"{note} if {note} < {local} else {local}"
            self.line(f"{joined} = {least if self._annotation.join is min else f'{join}({local}, {note})'}")
            local = joined
        return local

    def _finish(self, plan: JoinPlan) -> None:
        annotation = self._joined()
        if self._sink.found:
            self._charges.early("    " * self._indent)
        for line in self._sink.lines(plan.outputs, annotation, self.value, self.names):
            self.line(line)

    def _go_on(self, steps: Sequence[Step], plan: JoinPlan) -> None:
        """Continue in a second function: this one is nested as deeply as CPython allows."""
        read = set(nodes_variables(plan.outputs))
        for step in steps:
            read.update(
                step.pattern.variables if isinstance(step, Probe | AntiJoin) else item_variables(step)
            )
        given = tuple(name for name in self._env if name in read)
        noted = self._joined()
        rest = replace(plan, trigger=None, given=given, steps=tuple(steps))
        names = Names()
        block = CodeBlock(
            self.store, names, self._sink, self._annotation, 1, stable=self.stable, meter=self._meter
        )
        if noted:
            block._notes.append("e0")
        columns = tuple(f"g{i}" for i in range(len(given)))
        block.write(rest, columns)
        parameters = (*self._sink.parameters, *columns, *(("e0",) if noted else ()))
        body = "\n".join(block.lines) or "    pass"
        tail = "\n    return False\n" if self._sink.found else "\n"
        function = make("rest", f"def rest({', '.join(parameters)}):\n{body}{tail}", names)
        values = (*self._sink.parameters, *(self._env[name] for name in given), *((noted,) if noted else ()))
        call = f"{self.names.bind(function, 'REST')}({', '.join(values)})"
        if self._sink.found:
            self.line(f"if {call}:")
            self._indent += 1
            self._charges.early("    " * self._indent)
            self.line("return True")
            self._indent -= 1
        else:
            self.line(call)

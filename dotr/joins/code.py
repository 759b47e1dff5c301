"""Generate Python source for a join plan: one function with flat guards, specialised to the store.

Place:   enrich/, extract/ and windows/ pass sinks, windows/ its own access to its tables, too. Proofs walk
         the same plans without code (explain/derivations.py).
Method:  a probe becomes a dict lookup and, where a key may have several values, a loop; a guard becomes
         `if …: continue`. Whether the background has a relation, has one value per key, and can lose rows is
         known when code is generated, so plans that cannot match vanish, and so do most loops. All constants,
         dicts and closures enter through the namespace: no user text is part of the source. Loops charge
         their work on entry (filters.py).
Access:  one access path per arity, bound columns and view; store.py has the equivalent generic lookup. In the
         source `t` is the background's value for a key (None, one term, or a tuple) and `u` the overlay's
         (None or a list). A relation without background, or with one value per key, gets shorter code; one
         that may lose rows at an instant gets a test of the removed rows.
Limits:  CPython refuses 20 nested blocks, so a long plan continues in a second function.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Protocol, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import Meter
from dotr.codegen import Names, make, row_of
from dotr.expressions.evaluate import units
from dotr.joins.filters import Charges, Moment, positional_condition, positional_value
from dotr.joins.nearby import NearbyRelation
from dotr.joins.plan import (
    ALL,
    AntiJoin,
    Assign,
    BodyPattern,
    Check,
    JoinPlan,
    Probe,
    Relation,
    RowFilter,
    Step,
    View,
    expression_variables,
    is_aggregate,
    is_anonymous,
    is_clash,
    is_path,
    item_variables,
    nodes_variables,
)
from dotr.joins.store import TripleIndex
from dotr.program import Call, Const, Node, Var
from dotr.rdf.index import Changes, Column, Many, Row
from dotr.rdf.mapped import MappedColumn
from dotr.rdf.terms import RDF_TYPE, Term


class RowStore(Protocol):
    """What a block knows of the store that its plan runs over."""

    meter: Meter
    moment: Moment
    counting: bool
    visits: list[int]

    def prepare(self, plan: JoinPlan) -> None:
        """Make the indexes that the plan reads."""
        ...


class PatternAccess(Protocol):
    """Writes the code for one pattern. Both methods return False when no row can ever match."""

    def probe(self, exists: bool) -> bool:
        """Find the rows of the pattern; `exists`: one is enough."""
        ...

    def lacks(self) -> bool:
        """Go on only if the pattern has no row."""
        ...


class Access:
    """Writes the code for one pattern over a background and an overlay."""

    def __init__(self, block: CodeBlock, pattern: BodyPattern, view: View, bound: Sequence[bool]) -> None:
        store = block.store
        assert isinstance(store, TripleIndex)
        self.block, self.store = block, store
        self.pattern = pattern
        self.view = view
        self.bound = tuple(bound)
        self.changes: Changes = store.changes(pattern.relation)
        relation = pattern.relation
        self.base = view in (View.OLD, View.KEPT, View.NEW) and store.filled(relation)
        self.over = view in (View.ADDED, View.NEW) and not store.is_static(relation)
        self.tabled = self.base and is_anonymous(relation)
        wide = relation == ALL or is_aggregate(relation) or is_clash(relation) or is_path(relation)
        self.narrow = not wide and (not self.tabled or all(bound))
        self.volatile = view in (View.KEPT, View.NEW) and store.may_lose(relation)
        free = [node for node, is_bound in zip(pattern.columns, bound, strict=True) if not is_bound]
        self.repeats = len(set(free)) < len(free)

    # -- entry points

    def probe(self, exists: bool) -> bool:
        if self.view is View.REMOVED:
            return self._scan_removed()
        if not self.base and not self.over:
            return False
        if all(self.bound) and self.narrow:
            self._test()
            return True
        simple = self.narrow and not self.repeats
        if exists and not self.block.annotated:
            self._some(simple)
            return True
        if not simple:
            self._match()
        elif self.changes.arity == 1:
            self._members()
        elif any(self.bound):
            self._values()
        else:
            self._pairs()
        return True

    def lacks(self) -> bool:
        if not self.base and not self.over:
            return True
        block = self.block
        block.visit()
        if all(self.bound) and self.narrow:
            if self.over:
                block.guard(f"{self._row()} in {self._added()}")
            if self.base:
                missing = self._missing_in_background()
                kept = f" and {self._row()} not in {self._removed()}" if self.volatile else ""
                block.guard(f"not ({missing}){kept}")
        elif self.narrow and any(self.bound) and not self.repeats:
            block.guard(f"not ({self._nothing()})")
        else:
            block.guard(self._match_any())
        return True

    # -- pieces of source

    def _bind(self, value: object, prefix: str) -> str:
        return self.block.names.bind(value, prefix)

    def _added(self) -> str:
        return self._bind(self.changes.added, "A")

    def _all_added(self) -> str:
        """Added rows to loop over; a copy if the loop may add rows."""
        return self._added() if self.block.stable else f"TUPLE({self._added()})"

    def _removed(self) -> str:
        return self._bind(self.changes.removed, "R")

    def _side(self) -> int:
        """The bound column of a two-column pattern with one column bound."""
        return 0 if self.bound[0] else 1

    def _key(self) -> str:
        return self.block.value(self.pattern.columns[self._side()])

    def _found(self) -> str:
        """An expression: the background's value for the bound column of two."""
        column = self.store.column(self.pattern.relation, self._side())
        return lookup(column, self._bind(column, "B"), self._key())

    def _index(self) -> str:
        return self._bind(self.changes.index((self._side(),)), "I")

    def _row(self) -> str:
        """The key of a row whose columns are all bound."""
        values = [self.block.value(node) for node in self.pattern.columns]
        return values[0] if len(values) == 1 else f"({', '.join(values)})"

    def _missing_in_background(self) -> str:
        """An expression: the bound row is not in the background. Writes the lookup it needs."""
        block, store = self.block, self.store
        subject = block.value(self.pattern.columns[0])
        predicate = RDF_TYPE if self.changes.arity == 1 else self.pattern.relation
        if self.changes.arity == 1:
            object_ = self._bind(self.pattern.relation[2:], "K")
        else:
            object_ = block.value(self.pattern.columns[1])
        if self.tabled:
            table = store.tables.get(predicate)
            return "True" if table is None else f"{self._row()} not in {self._bind(table.rows, 'B')}"
        column = store.column(predicate, 0)
        found = lookup(column, self._bind(column, "B"), subject)
        if store.single(predicate, 0):
            return f"{found} != {object_}"
        local = block.local()
        block.line(f"{local} = {found}")
        return (
            f"{local} is None or "
            f"({local} != {object_} if {local}.__class__ is STR else not HAS({local}, {object_}))"
        )

    def _note_added(self, row: str) -> None:
        """The annotation of a row of the overlay or the background."""
        if not self.block.annotated:
            return
        kept = self.block.kept(self.pattern.relation)
        if kept:
            if self.store.changing(self.pattern.relation):
                self.block.note(f"{kept}.get({row}, {self.block.one})")
            return
        if self.over and self.base:
            self.block.note(f"{self._added()}.get({row}, {self.block.one})")
        elif self.over:
            self.block.note(f"{self._added()}[{row}]")

    def _check_found(self, row: str) -> None:
        """A row was found that holds, with its annotation; if it is kept, removed rows are not tested."""
        block = self.block
        removed = self._removed() if self.volatile else ""
        kept = block.kept(self.pattern.relation) if block.annotated else ""
        if not (kept and removed):
            if removed:
                block.guard(f"{removed} and {row} in {removed}")
            self._note_added(row)
            return
        noted = block.note(f"{kept}.get({row})")
        block.line(f"if {noted} is None:")
        block.line(f"    if {removed} and {row} in {removed}: {block.leave()}")
        block.line(f"    {noted} = {block.one}")

    # -- access paths

    def _test(self) -> None:
        """All columns bound: whether the row exists."""
        block = self.block
        block.visit()
        row = self._row()
        if not self.base:
            block.guard(f"{row} not in {self._added()}")
        elif not self.over:
            block.guard(self._missing_in_background())
            self._check_found(row)
            return
        elif self.volatile:
            missing = self._missing_in_background()
            block.guard(f"{row} not in {self._added()} and (({missing}) or {row} in {self._removed()})")
        else:
            missing = self._missing_in_background()
            block.guard(f"({missing}) and {row} not in {self._added()}")
        self._note_added(row)

    def _some(self, simple: bool) -> None:
        """Whether there is any row."""
        block = self.block
        block.visit()
        if not simple or not any(self.bound):
            block.guard(f"not {self._match_any()}")
            return
        block.guard(self._nothing())

    def _nothing(self) -> str:
        """An expression: no row of two columns has the bound one. Writes the lookup it needs."""
        key = self._key()
        tests = [f"{key} not in {self._index()}"] if self.over else []
        if self.base and self.volatile:
            local, removed = self.block.local(), self._removed()
            self.block.line(f"{local} = {self._found()}")
            left = self._bind(_stays_forward if self._side() == 0 else _stays_backward, "STAYS")
            tests.append(f"({local} is None or ({removed} and not {left}({local}, {key}, {removed})))")
        elif self.base:
            column = self.store.column(self.pattern.relation, self._side())
            name = self._bind(column, "B")
            mapped = isinstance(column, MappedColumn)
            tests.append(f"{name}[{key}] is None" if mapped else f"{key} not in {name}")
        return " and ".join(tests)

    def _values(self) -> None:
        """Two columns, one bound: the other columns of its rows."""
        block, store = self.block, self.store
        side = self._side()
        key = self._key()
        single = self.base and store.single(self.pattern.relation, side)
        other = self.pattern.columns[1 - side]
        local = block.let(other)
        if not self.over:
            found = self._found()
            if single:
                block.line(f"{local} = {found}")
                block.guard(f"{local} is None")
            else:
                t = block.local()
                block.line(f"{t} = {found}")
                block.guard(f"{t} is None")
                block.line(f"if {t}.__class__ is STR: {t} = ({t},)")
                block.loop(f"{local} in {t}", self.pattern, f"LEN({t})", spared=True)
        elif not self.base:
            t = block.local()
            block.line(f"{t} = {self._index()}.get({key})")
            block.guard(f"{t} is None")
            block.loop(f"{local} in {t}", self.pattern, f"LEN({t})")
        else:
            self._both_values(key, local, single)
        block.visit()
        row = f"({key}, {local})" if side == 0 else f"({local}, {key})"
        self._check_found(row)

    def _both_values(self, key: str, local: str, single: bool) -> None:
        block = self.block
        t, u = block.local(), block.local()
        block.line(f"{t} = {self._found()}")
        block.line(f"{u} = {self._index()}.get({key})")
        if not single:
            block.line(f"if {t}.__class__ is STR: {t} = ({t},)")
        block.line(f"if {u} is None:")
        block.line(f"    if {t} is None: {block.leave()}")
        block.line(f"    {u} = ({t},)" if single else f"    {u} = {t}")
        block.line(f"elif {t} is not None: {u} = ({t if single else '*' + t}, *{u})")
        block.loop(f"{local} in {u}", self.pattern, f"LEN({u})")

    def _members(self) -> None:
        """A class: its members."""
        block = self.block
        local = block.let(self.pattern.columns[0])
        members = self._all_members() if self.base else ""
        if not self.over:
            block.loop(f"{local} in {members}", self.pattern, f"LEN({members})")
        elif not self.base:
            block.loop(f"{local} in {self._all_added()}", self.pattern, f"LEN({self._added()})")
        else:
            length = f"LEN({members}) + LEN({self._added()})"
            block.loop(f"{local} in CHAIN({members}, {self._all_added()})", self.pattern, length)
        block.visit()
        self._check_found(local)

    def _all_members(self) -> str:
        """The name of the container of the class's members in the background."""
        store, relation = self.store, self.pattern.relation
        if relation not in store.general:
            return self._bind(store.members(relation), "M")
        column = self._bind(store.column(RDF_TYPE, 1), "B")
        t = self.block.local()
        self.block.line(f"{t} = {column}.get({self._bind(relation[2:], 'K')}, ())")
        self.block.line(f"if {t}.__class__ is STR: {t} = ({t},)")
        return t

    def _pairs(self) -> None:
        """Two columns, none bound: everything."""
        block, store = self.block, self.store
        relation = self.pattern.relation
        subject, object_ = (block.let(node) for node in self.pattern.columns)
        if not self.base:
            block.loop(f"{subject}, {object_} in {self._all_added()}", self.pattern, f"LEN({self._added()})")
        else:
            column = self._bind(store.column(relation, 0), "B")
            general = relation in store.general
            length = f"LEN({column})" if general else self._bind(store.rows(relation), "ROWS")
            length += f" + LEN({self._added()})" if self.over else ""
            if self.over:
                index = self._bind(self.changes.index((0,)), "I")
                items = f"CHAIN({column}.items(), {index}.items())"
            else:
                items = f"{column}.items()"
            if store.single(relation, 0) and not self.over:
                block.loop(f"{subject}, {object_} in {items}", self.pattern, length)
            else:
                t = block.local()
                block.loop(f"{subject}, {t} in {items}", self.pattern, length)
                block.loop(f"{object_} in ({t},) if {t}.__class__ is STR else {t}", self.pattern)
        block.visit()
        self._check_found(f"({subject}, {object_})")

    def _scan_removed(self) -> bool:
        """Withdrawn rows, for any bound columns."""
        if not self.store.may_lose(self.pattern.relation):
            return False
        self._rows(self._removed(), self.changes.arity == 1, all_columns=True)
        return True

    def _match(self) -> None:
        """Everything else: the store's generic lookup."""
        rows = self.block.local()
        self.block.line(f"{rows} = {self._match_call()}")
        self._rows(rows, False, all_columns=False)
        relation = self.store.paths.get(self.pattern.relation)
        if isinstance(relation, NearbyRelation):
            self.block.implied.add(relation.implied(*self.pattern.columns))

    def _match_call(self) -> str:
        columns = tuple(i for i, is_bound in enumerate(self.bound) if is_bound)
        if self.over and columns and len(columns) < len(self.bound) and not is_path(self.pattern.relation):
            self.changes.index(columns)
        function = self.store.matcher(self.pattern.relation, self.bound, self.view)
        keys = [self.block.value(self.pattern.columns[i]) for i in columns]
        return f"{self._bind(function, 'MATCH')}({', '.join(keys)})"

    def _rows(self, source: str, bare: bool, all_columns: bool) -> None:
        known = [False] * len(self.bound) if all_columns else self.bound
        row = self.block.scan(source, self.pattern, known, bare=bare)
        if self.block.annotated and self.view is not View.REMOVED:
            self._note_added(f"{row}[0]" if self.changes.arity == 1 else row)

    def _match_any(self) -> str:
        """An expression that is true if the store has found a row in which equal variables agree."""
        block = self.block
        found = block.local()
        block.line(f"{found} = {self._match_call()}")
        block.listed(self.pattern, f"LEN({found})")
        if not self.repeats:
            return found
        return f"{self._bind(any_agreeing(self.pattern, self.bound), 'SAME')}({found})"


AccessWriter: TypeAlias = "Callable[[CodeBlock, BodyPattern, View, Sequence[bool]], PatternAccess]"


def any_agreeing(pattern: BodyPattern, bound: Sequence[bool]) -> Callable[[Iterable[Sequence[str]]], bool]:
    """Whether equal variables of a pattern, apart from bound ones, agree in one of some rows."""
    groups: dict[str, list[int]] = {}
    for i, (node, is_bound) in enumerate(zip(pattern.columns, bound, strict=True)):
        if not is_bound and isinstance(node, Var):
            groups.setdefault(node.name, []).append(i)
    same = [places for places in groups.values() if len(places) > 1]

    def test(rows: Iterable[Sequence[str]]) -> bool:
        return any(all(len({row[i] for i in places}) == 1 for places in same) for row in rows)

    return test


def lookup(column: Column | None, name: str, key: str) -> str:
    """An expression: the value of a column of this name for a key, or None."""
    return f"{name}[{key}]" if isinstance(column, MappedColumn) else f"{name}.get({key})"


def _arguments(step: RowFilter) -> object:
    """A filter by a function of nodes: its name, and these; None for others."""
    match step.condition:
        case Call(function, (Var() | Const() as a, Var() | Const() as b)):
            return function, *(node.term if isinstance(node, Const) else node for node in (a, b))
        case _:
            return None


def _stays_forward(values: Many, subject: Term, removed: Container[Row]) -> bool:
    """Whether one of the objects of a subject is not removed."""
    if isinstance(values, str):
        return (subject, values) not in removed
    return any((subject, value) not in removed for value in values)


def _stays_backward(values: Many, object_: Term, removed: Container[Row]) -> bool:
    """Whether one of the subjects of an object is not removed."""
    if isinstance(values, str):
        return (values, object_) not in removed
    return any((value, object_) not in removed for value in values)


_DEEPEST = 15  # nested loops in one function


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

    def lines(self, outputs: Sequence[Node], annotation: str, block: CodeBlock) -> list[str]:
        """Source lines; `annotation` is the name that holds a solution's annotation, or "".

        The block has a source name of each bound variable and constant, and of anything else.
        """
        ...

    def tail(self, names: Names) -> list[str]:
        """Source lines at the end of the function."""
        ...


class Rows(Struct, frozen=True):
    """Call the first argument with every solution as a tuple."""

    parameters: tuple[str, ...] = ("out",)
    found: bool = False

    def lines(self, outputs: Sequence[Node], annotation: str, block: CodeBlock) -> list[str]:
        columns = [block.value(node) for node in outputs] + ([annotation] if annotation else [])
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

    def lines(self, outputs: Sequence[Node], annotation: str, block: CodeBlock) -> list[str]:
        names, row = block.names, row_of([block.value(node) for node in outputs])
        lines = [f"{names.bind(self.rows.append, 'OUT')}({row})"]
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

    def lines(self, outputs: Sequence[Node], annotation: str, block: CodeBlock) -> list[str]:
        return ["return True"]

    def tail(self, names: Names) -> list[str]:
        return ["return False"]


def compile_plan(
    plan: JoinPlan,
    store: RowStore,
    sink: RowSink | None = None,
    annotation: Annotation | None = None,
    meter: Meter | None = None,
    source: object = None,
    access: AccessWriter = Access,
    *,
    stable: bool = True,
) -> Callable[..., Any]:
    """A function of (sink's parameters, columns of the triggering row or `given` values[, its annotation]).

    With `Rows` (the default) it calls its first argument with every solution; with `AnySolution` it returns a
    bool. No rows may be added while it runs, if it is `stable`. Work is charged to `meter`, or else to the
    store's, as that of `source`: the function raises Exhausted when no units are left. `access` writes the
    code for a pattern.
    """
    sink = sink if sink is not None else Rows()
    store.prepare(plan)
    names = Names()
    if plan.trigger is not None:
        columns = tuple(f"r{i}" for i in range(len(plan.trigger.columns)))
    else:
        columns = tuple(f"g{i}" for i in range(len(plan.given)))
    noted = ("e0",) if annotation is not None and plan.trigger is not None else ()
    block = CodeBlock(
        store, names, sink, annotation, 1, stable=stable, meter=meter, source=source, access=access
    )
    block.write(plan, columns)
    head = f"def run({', '.join((*sink.parameters, *columns, *noted))}):\n"
    body = "\n".join(block.lines) or "    pass"
    tail = "".join(f"\n    {line}" for line in sink.tail(names))
    return make("run", f"{head}{body}{tail}\n", names)


class CodeBlock:
    """Owns the lines of one plan inside a function, and the local of each variable."""

    def __init__(
        self,
        store: RowStore,
        names: Names,
        sink: RowSink,
        annotation: Annotation | None = None,
        indent: int = 1,
        *,
        stable: bool = False,
        meter: Meter | None = None,
        source: object = None,
        access: AccessWriter = Access,
    ) -> None:
        self.store = store
        self._meter = store.meter if meter is None else meter
        self.stable = stable  # nothing is added while this runs, so dicts may be iterated directly
        self.names = names
        self.lines: list[str] = []
        self._source = source
        self._charges = Charges(self._meter, names, self.lines, source)
        self._sink = sink
        self._access = access
        self._annotation = annotation
        self._indent = indent
        self._loops = 0
        self._leaves = False  # a guard is outside every loop
        self._env: dict[str, str] = {}
        self._fresh = 0
        self._notes: list[str] = []  # annotations to be joined, by local name
        self.implied: set[object] = set()  # functions of nodes that hold of every row so far
        self._wholes: dict[tuple[Node, ...], str] = {}  # columns → the local of a row that has them

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

    # -- for code.py and sinks

    def value(self, node: Node) -> str:
        """The source name of a constant or bound variable."""
        return self._env[node.name] if isinstance(node, Var) else self.names.constant(node)

    def row(self, columns: tuple[Node, ...]) -> str:
        """The source of a row of bound columns: one that was found, or a new tuple."""
        return self._wholes.get(columns) or row_of([self.value(node) for node in columns])

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
        self._join()
        if length:
            self._charges.enter("    " * self._indent, pattern, length, spared=spared)
        self.line(f"for {header}:")
        self._indent += 1
        self._loops += 1

    def scan(self, source: str, pattern: BodyPattern, known: Sequence[bool], *, bare: bool = False) -> str:
        """A loop over rows of a pattern; returns the local of a row. `known[i]`: column i has its value.
        `bare`: a row is its only column.
        """
        row = self.local()
        self.loop(f"{row} in {source}", pattern, f"LEN({source})")
        self.visit()
        again = []
        for i, (node, is_known) in enumerate(zip(pattern.columns, known, strict=True)):
            place = row if bare else f"{row}[{i}]"
            if isinstance(node, Var) and node.name not in self._env:
                local = self.let(node)
                self.line(f"{local} = {place}")
            elif not is_known:
                again.append(f"{place} != {self.value(node)}")
        for test in again:
            self.guard(test)
        if not bare:
            self._wholes[pattern.columns] = row
        return row

    def listed(self, pattern: BodyPattern, length: str) -> None:
        """A call has returned a list of rows, to be charged."""
        self._charges.listed("    " * self._indent, pattern, length)

    def spend(self, units: int) -> None:
        """Something is done that is to be charged."""
        self._charges.spend("    " * self._indent, units)

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
                    access = self._access(self, step.pattern, step.view, step.bound)
                    if not (access.lacks() if isinstance(step, AntiJoin) else access.probe(step.exists)):
                        return False
                case RowFilter():
                    if _arguments(step) not in self.implied:
                        self._charges.expression(units(step.condition))
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
        self._charges.expression(units(step.expression))
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

    def _join(self) -> None:
        """Join the annotations so far into one."""
        while len(self._notes) > 1:
            assert self._annotation is not None
            first, second = self._notes[:2]
            least = f"{second} if {second} < {first} else {first}"
            join = self._annotation.join
            call = least if join is min else f"{self.names.bind(join, 'JOIN')}({first}, {second})"
            joined = self.local()
            self.line(f"{joined} = {call}")
            self._notes[:2] = [joined]

    def _joined(self) -> str:
        """The name of the joined annotation, "" in the plain case."""
        self._join()
        return self._notes[0] if self._notes else self.one if self.annotated else ""

    def _finish(self, plan: JoinPlan) -> None:
        annotation = self._joined()
        if self._sink.found:
            self._charges.early("    " * self._indent)
        for line in self._sink.lines(plan.outputs, annotation, self):
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
            self.store,
            names,
            self._sink,
            self._annotation,
            1,
            stable=self.stable,
            meter=self._meter,
            source=self._source,
            access=self._access,
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

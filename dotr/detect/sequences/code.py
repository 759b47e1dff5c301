"""The conditions and values of a sequence as generated functions.

Place:   the partitions of a sequence call them for each row; compiled when its first row comes.
Method:  a row is a fact; of several sources, with the number of its source behind it. What a condition reads
         of the row and of those before it is source text; comparisons of numbers and equations are tested in
         place, other expressions are closures over the terms that they read. Elements whose conditions look
         at the row and PREV only are tested once a row, for all mappings (`bits`); the others once a mapping,
         with the row in its registers (`tests`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from dotr.budget import EXPRESSION, Overlong
from dotr.codegen import CodeSource, row_of
from dotr.detect.analysis import NOW, names
from dotr.detect.scope import (
    COMPARISONS,
    NO_NUMBERS,
    SumComparison,
    only_attribute,
    small,
    term_table,
    truth_table,
)
from dotr.detect.sequences.registers import Register, chained, listed, of_rows, of_total, preceded
from dotr.events import Clock, Time
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.expressions.functions import may_be_overlong
from dotr.program.queries import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.program.rules import Binding
from dotr.program.sequences import Place, RowElement, RowName, RowPattern, RowTotal
from dotr.rdf.terms import Term

Row: TypeAlias = Any
"""A fact, of a pattern of several sources with the number of its source behind it."""

Registers: TypeAlias = tuple[Any, ...]


class PatternCode(Struct):
    """Functions of a pattern.

    `bits`: (row, rows before it, elements that are asked for) → those that it satisfies, both as bits; the
    elements in `tests` if it is of their source. `tests`: element → whether its condition is true of (row,
    rows before it, registers with the row). `updates`: for each element (registers, row) → registers.
    `prepends`: the same for the row before those that were given, and `turn` makes of such registers those
    of `updates`; of patterns without `tests`. `values`: (registers, time) → the attributes. `start`: the
    registers before any row. `failed`: for each element how many of the tested rows it has refused.
    """

    registers: tuple[Register, ...]
    start: Registers
    before: int
    bits: Callable[[Row, Any, int], int]
    tests: dict[int, Callable[[Row, Any, Registers], bool]]
    updates: list[Callable[[Registers, Row], Registers]]
    prepends: list[Callable[[Registers, Row], Registers]]
    turn: Callable[[Registers], Registers]
    values: Callable[[Registers, Time], tuple[Term | None, ...]]
    failed: list[int]


class PatternShape:
    """What a pattern's names refer to. Owns its registers."""

    def __init__(self, pattern: RowPattern, bindings: Iterable[Binding]) -> None:
        self.pattern = pattern
        self.bindings = tuple(bindings)
        self.rows = dict(pattern.rows)
        self.totals = dict(pattern.totals)
        self.names = tuple(element.name for element in pattern.elements)
        self.many = len(pattern.sources) > 1
        used = [leaf for element in pattern.elements for leaf in leaves(element.on)]
        self.before = max((name.n for leaf in used if (name := self._prev(leaf)) is not None), default=0)
        self.apart = frozenset(
            place
            for place, element in enumerate(pattern.elements)
            if any(self._carried(leaf, element) for leaf in leaves(element.on))
        )
        self.registers: list[Register] = []
        self._places: dict[Any, int] = {}
        depths: dict[tuple[Place, str], int] = {}
        asked = [*used, *(leaf for binding in self.bindings for leaf in leaves(binding.expression))]
        for leaf in asked:
            name = self.row_name(leaf)
            if name is not None and name.place is not Place.PREV:
                key = name.place, name.element
                depths[key] = max(depths.get(key, 0), name.n + 1)
        for (where, of), depth in depths.items():
            self._add((where, of), of_rows(of, where, depth))
        for leaf in asked:
            if isinstance(leaf, Var):
                self._add(leaf.name, self._total(self.totals[leaf.name]))

    def _add(self, key: Any, register: Register) -> None:
        if key not in self._places:
            self._places[key] = len(self.registers)
            self.registers.append(register)

    def _total(self, total: RowTotal) -> Register:
        keeps_rows = total.argument is not None and NOW in names(total.argument)
        star = total.argument is None
        return of_total(
            total.element, total.function, distinct=total.distinct, star=star, keeps_rows=keeps_rows
        )

    def row_name(self, leaf: Expression) -> RowName | None:
        """The row that a leaf is read of; None for totals."""
        if not isinstance(leaf, Attribute | TimeOf):
            return None
        return self.rows.get(leaf.position) or RowName(Place.LAST, leaf.position, 0)

    def _prev(self, leaf: Expression) -> RowName | None:
        name = self.row_name(leaf)
        return name if name is not None and name.place is Place.PREV else None

    def _carried(self, leaf: Expression, element: RowElement) -> bool:
        """Whether a condition reads more than the tested row and those before it."""
        name = self.row_name(leaf)
        if name is None:
            return isinstance(leaf, Var)
        return name.place is not Place.PREV and not self.is_tested(name, element.name)

    @staticmethod
    def is_tested(name: RowName, element: str) -> bool:
        """Whether a row is the tested one in the condition of an element."""
        return name.place is Place.LAST and name.n == 0 and name.element in (element, "*")

    def keeps(self) -> str:
        """What is kept of a partition, for people."""
        pattern = self.pattern
        prev = (
            ""
            if not self.before
            else ", the last row"
            if self.before == 1
            else f", the last {self.before} rows"
        )
        names = [name for name in self._places if isinstance(name, str)]
        rows = [f"{where.value}({of})" for where, of in (k for k in self._places if not isinstance(k, str))]
        totals = [f"{self.totals[name].function}({self.totals[name].element})" for name in names]
        asked = ", ".join([*rows, *totals]) or "nothing"
        if self.apart:
            return f"each mapping by itself: its state, {asked}{prev}"
        if pattern.overlapping or pattern.skip_to is not None:
            return f"lists of states, the rows of open mappings{prev}"
        return f"lists of states, rows until a mapping is complete, then {asked}{prev}"

    def chains(self, *, of_values: bool = False) -> tuple[tuple[int, int], ...]:
        """(place, units of a row) of the registers that are chains which conditions, or values, read."""
        of = [one.expression for one in self.bindings] if of_values else [e.on for e in self.pattern.elements]
        read = [leaf.name for expression in of for leaf in leaves(expression) if isinstance(leaf, Var)]
        places = dict.fromkeys(map(self.place, read))
        registers = [(place, self.registers[place]) for place in places]
        return tuple((n, EXPRESSION if one.keeps_rows else 1) for n, one in registers if one.is_chain)

    def place(self, key: Any) -> int:
        """The place of a register: of (where, element), or of a total's name."""
        return self._places[key]


def leaves(expression: Expression | None) -> Iterator[Expression]:
    """The attributes, times and variables in an expression."""
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from leaves(argument)
    elif isinstance(expression, Attribute | TimeOf | Var):
        yield expression


class _Reader:
    """Owns the text of what one function reads: the tested row is the local `r`, those before it `p1`, …,
    the registers `g`. `tested`: the element whose condition it is; None in WITH. `own`: the element whose
    rows an aggregate's argument is of. `numbers`: see SumComparison.
    """

    def __init__(
        self,
        shape: PatternShape,
        source: CodeSource,
        clock: Clock,
        tested: str | None,
        own: str | None = None,
        numbers: Mapping[str, str] = NO_NUMBERS,
    ) -> None:
        self.shape, self.source, self.clock = shape, source, clock
        self.tested, self.own, self.numbers = tested, own, numbers

    def test(self, condition: Expression) -> str:
        """Source of whether a condition is true."""
        if isinstance(condition, Call) and condition.function == "&&":
            return f"({' and '.join(map(self.test, condition.arguments))})"
        attribute = only_attribute(condition)
        if attribute is not None and not may_be_overlong(condition):
            general = f"{self.source.name('test', truth_table(condition))}[{self.term(attribute)}]"
        else:
            general = self._general(condition, test=True)
        optional = {
            leaf.position
            for leaf in leaves(condition)
            if isinstance(leaf, TimeOf) and not self._is_certain(leaf)
        }
        sums = SumComparison(self.source, self._read, optional, self.numbers)
        return sums.test(condition, general) or general

    def value(self, expression: Expression) -> str:
        """Source of the term of an expression, None for unbound or an error."""
        if isinstance(expression, Attribute | TimeOf | Var):
            return self.term(expression)
        if isinstance(expression, Const):
            return self.source.name("constant", expression.term)
        attribute = only_attribute(expression)
        if attribute is not None and not may_be_overlong(expression):
            return f"{self.source.name('value', term_table(expression))}[{self.term(attribute)}]"
        return self._general(expression, test=False)

    def _general(self, expression: Expression, *, test: bool) -> str:
        """A call of a closure over the terms that it reads."""
        read = list(dict.fromkeys(leaves(expression)))
        place = {leaf: number for number, leaf in enumerate(read)}
        texts = [self.term(leaf) for leaf in read]
        if NOW in names(expression):
            texts.append(f"{self.source.name('clock', self.clock.term)}({self._now})")

        def leaf(node: Var | Attribute | TimeOf) -> Callable[[Any], Term | None]:
            number = place[node]
            return lambda terms: terms[number]

        def now(terms: Any) -> Term:
            return terms[-1]  # type: ignore[no-any-return]  # made above

        options: dict[str, Any] = {"clock": self.clock, "now": now, "seconds": True}
        compiled: Callable[[Any], Any]
        if test:
            compiled = compile_condition(expression, leaf, **options)
        else:
            compiled = compile_expression(expression, leaf, **options)
        if may_be_overlong(expression):
            compiled = _guarded(compiled)
        return (
            f"{self.source.name('test' if test else 'value', compiled)}({row_of(texts) if texts else '()'})"
        )

    @property
    def _now(self) -> str:
        return "time" if self.tested is None and self.own is None else "r[0]"

    def _is_certain(self, leaf: TimeOf) -> bool:
        name = self.shape.row_name(leaf)
        assert name is not None, "a time is of a row"
        return self._row(name) == "r"

    def _read(self, leaf: Attribute | Var | TimeOf) -> str:
        if isinstance(leaf, TimeOf):
            name = self.shape.row_name(leaf)
            assert name is not None, "a time is of a row"
            return f"{self._row(name)}[0]"
        return self.term(leaf)

    def term(self, leaf: Expression) -> str:
        """Source of the term of a leaf."""
        if isinstance(leaf, Var):
            return self._total(leaf.name)
        name = self.shape.row_name(leaf)
        assert name is not None, "a leaf is of a row, or a total"
        row = self._row(name)
        if isinstance(leaf, TimeOf):
            text = f"{self.source.name('clock', self.clock.term)}({{}}[0])"
        else:
            assert isinstance(leaf, Attribute), "what is no time is an attribute"
            text = self._attribute(name, leaf.variable)
        if row == "r":
            return text.format("r")
        if row.isidentifier():
            return f"(None if {row} is None else {text.format(row)})"
        local = f"x{len(row)}"  # distinct texts of one length do not nest
        return f"(None if ({local} := {row}) is None else {text.format(local)})"

    def _attribute(self, name: RowName, variable: str) -> str:
        """A format of the source of an attribute of a row that is there."""
        sources = self.shape.pattern.sources
        possible = range(len(sources))
        if name.place is not Place.PREV and name.element != "*":
            element = next(e for e in self.shape.pattern.elements if e.name == name.element)
            possible = element.sources  # type: ignore[assignment]  # numbers
        places = [
            source.variables.index(variable) if variable in source.variables else None for source in sources
        ]
        if len({places[number] for number in possible}) == 1:
            place = places[possible[0]]
            return "None" if place is None else f"{{}}[1][{place}]"
        return f"{self.source.name('attribute', _varying(places))}({{}})"

    def _row(self, name: RowName) -> str:
        """Source of a row, None where there is none; `r` is the tested one."""
        if self.own is not None:
            return "r"
        if name.place is Place.PREV:
            return f"p{name.n}"
        if self.tested is not None and self.shape.is_tested(name, self.tested):
            return "r"
        place = self.shape.place((name.place, name.element))
        register = self.shape.registers[place]
        if register.depth == 1:
            return f"g[{place}]"
        number = name.n if name.place is Place.FIRST else -1 - name.n
        return f"{self.source.name('at', _at)}(g[{place}], {number})"

    def _total(self, name: str) -> str:
        place = self.shape.place(name)
        register = self.shape.registers[place]
        if register.keeps_rows:
            total = self.shape.totals[name]
            evaluated = _with_now(self.shape, total, self.clock)
            return f"{self.source.name('total', evaluated)}(g[{place}], {self._now})"
        read: Any = register.value
        if name_may_be_overlong(self.shape.totals[name]):
            read = _guarded(read)
        return f"{self.source.name('total', read)}(g[{place}])"


def name_may_be_overlong(total: RowTotal) -> bool:
    """Whether reading an aggregate may raise Overlong."""
    return total.function != "COUNT"


def _guarded(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What is too long is an error."""

    def guarded(given: Any) -> Any:
        try:
            return function(given)
        except Overlong:
            return None

    return guarded


def _at(rows: tuple[Row, ...], number: int) -> Row | None:
    """A row from the front, or the back (-1 is the last)."""
    return rows[number] if -len(rows) <= number < len(rows) else None


def _varying(places: list[int | None]) -> Callable[[Row], Term | None]:
    """An attribute that sources have at different places."""

    def attribute(row: Row) -> Term | None:
        place = places[row[4]]
        return None if place is None else row[1][place]

    return attribute


def _with_now(shape: PatternShape, total: RowTotal, clock: Clock) -> Callable[[Any, Time], Term | None]:
    """An aggregate of what depends on when it is evaluated."""
    assert total.argument is not None, "`*` does not depend on it"
    source = CodeSource()
    reader = _Reader(shape, source, clock, None, total.element)
    reader_now = _NowReader(reader)
    source.line(f"return {reader_now.value(total.argument)}")
    argument = source.function("r, time")
    law = of_total(total.element, total.function, distinct=total.distinct, star=False, keeps_rows=False)
    assert law.add is not None and law.value is not None, "a total"  # noqa: PT018
    add, value = law.add, _guarded(law.value)

    def evaluated(chain: Any, time: Time) -> Term | None:
        found = law.start
        for row in listed(chain):
            found = add(found, argument(row, time))
        return value(found)  # type: ignore[no-any-return]  # a term

    return evaluated


class _NowReader(_Reader):
    """Reads an aggregate's argument at a time other than the row's."""

    def __init__(self, other: _Reader) -> None:
        super().__init__(other.shape, other.source, other.clock, None, other.own)

    @property
    def _now(self) -> str:
        return "time"


def write(shape: PatternShape, clock: Clock) -> PatternCode:
    """Write and compile the functions of a pattern."""
    elements = shape.pattern.elements
    failed = [0] * len(elements)
    return PatternCode(
        tuple(shape.registers),
        tuple(register.start for register in shape.registers),
        shape.before,
        _bits(shape, clock, failed),
        {place: _test(shape, clock, elements[place]) for place in sorted(shape.apart)},
        [_update(shape, clock, element) for element in elements],
        [] if shape.apart else [_update(shape, clock, element, backwards=True) for element in elements],
        _turn(shape),
        _values(shape, clock),
        failed,
    )


def write_before(source: CodeSource, shape: PatternShape, used: Iterable[int]) -> None:
    """The rows before the tested one, as locals; `before` is the last row, or the last ones, newest first."""
    within = source.name("within", shape.pattern.within)
    for number in sorted(set(used)):
        if shape.before == 1:
            source.line("p1 = before")
        else:
            source.line(
                f"p{number} = before[{number - 1}] if LEN(before) >= {number} else None".replace(
                    "LEN", source.name("len", len)
                )
            )
        source.line(f"if p{number} is not None and p{number}[0] < r[0] - {within}: p{number} = None")


def write_bits(
    source: CodeSource, shape: PatternShape, clock: Clock, failed: list[int], number: int | None = None
) -> None:
    """Which of the elements in the local `need` the row `r` satisfies, as `bits`; `number`: of its source."""
    elements = [(place, element) for place, element in enumerate(shape.pattern.elements)]
    if number is not None:
        elements = [(place, element) for place, element in elements if number in element.sources]
    inside = [element for place, element in elements if place not in shape.apart]
    write_before(source, shape, previous(shape, inside))
    always = sum(1 << place for place, element in elements if element.on is None) if number is not None else 0
    one_source = number is not None or not shape.many  # of each row that comes here
    numbers = _write_numbers(source, shape, clock, inside) if one_source else {}
    source.line(f"bits = need & {always}" if always else "bits = 0")
    for place, element in elements:
        if number is not None and element.on is None:
            continue
        tests = []
        if number is None and len(element.sources) < len(shape.pattern.sources):
            if len(element.sources) == 1:
                tests.append(f"r[4] == {element.sources[0]}")
            else:
                tests.append(f"r[4] in {element.sources}")
        on = element.on if place not in shape.apart else None
        reader = _Reader(shape, source, clock, element.name, None, numbers)
        condition = None if on is None else reader.test(on)
        head = " and ".join([f"need & {1 << place}", *tests])
        if condition is None:
            source.line(f"if {head}: bits |= {1 << place}")
            continue
        with source.block(f"if {head}"):
            source.line(f"if {condition}: bits |= {1 << place}")
            source.line(f"else: {source.name('failed', failed)}[{place}] += 1")


def _write_numbers(
    source: CodeSource, shape: PatternShape, clock: Clock, elements: Iterable[RowElement]
) -> dict[str, str]:
    """Numbers that the conditions of several elements compare, as locals: source of a term → its local."""
    read: list[str] = []
    for element in elements:
        reader = _Reader(shape, source, clock, element.name)
        read += dict.fromkeys([reader.term(leaf) for leaf in _compared(element.on)])
    numbers = {text: f"n{place}" for place, text in enumerate(dict.fromkeys(read)) if read.count(text) > 1}
    for text, local in numbers.items():
        source.line(f"{local} = {source.name('small', small)}[{text}]")
    return numbers


def _compared(condition: Expression | None) -> Iterator[Attribute]:
    """The attributes in those comparisons of a condition that read several."""
    if not isinstance(condition, Call):
        return
    if condition.function == "&&":
        for argument in condition.arguments:
            yield from _compared(argument)
    elif condition.function in COMPARISONS and only_attribute(condition) is None:
        yield from (leaf for leaf in leaves(condition) if isinstance(leaf, Attribute))


def previous(shape: PatternShape, elements: Iterable[RowElement]) -> set[int]:
    """The n of PREV(n) in the conditions of elements."""
    named = [shape.row_name(leaf) for element in elements for leaf in leaves(element.on)]
    return {name.n for name in named if name is not None and name.place is Place.PREV}


def _bits(shape: PatternShape, clock: Clock, failed: list[int]) -> Callable[[Row, Any, int], int]:
    source = CodeSource()
    write_bits(source, shape, clock, failed)
    source.line("return bits")
    return source.function("r, before, need")


def _test(shape: PatternShape, clock: Clock, element: RowElement) -> Callable[[Row, Any, Registers], bool]:
    source = CodeSource()
    write_before(source, shape, previous(shape, [element]))
    assert element.on is not None, "it reads more than the row"
    source.line(f"return {_Reader(shape, source, clock, element.name).test(element.on)}")
    return source.function("r, before, g")


def _update(
    shape: PatternShape, clock: Clock, element: RowElement, *, backwards: bool = False
) -> Callable[[Registers, Row], Registers]:
    source = CodeSource()
    texts = []
    latest, chain = (Place.FIRST, preceded) if backwards else (Place.LAST, chained)
    for place, register in enumerate(shape.registers):
        here = f"g[{place}]"
        if register.element not in ("*", element.name):
            texts.append(here)
        elif register.place is latest:
            texts.append("r" if register.depth == 1 else f"({here} + (r,))[{-register.depth}:]")
        elif register.place is not None and register.depth == 1:
            texts.append(f"(r if {here} is None else {here})")
        elif register.place is not None:
            length = source.name("len", len)
            texts.append(f"({here} if {length}({here}) == {register.depth} else {here} + (r,))")
        elif register.keeps_rows:
            texts.append(f"{source.name('chained', chain)}({here}, r)")
        elif register.counts:
            texts.append(f"{here} + 1")
        else:
            name = next(n for n, total in shape.totals.items() if _place_of(shape, n) == place and total)
            argument = shape.totals[name].argument
            assert argument is not None, "only COUNT takes `*`"
            reader = _Reader(shape, source, clock, None, element.name)
            add = chain if register.is_chain else register.add
            texts.append(f"{source.name('add', add)}({here}, {reader.value(argument)})")
    source.line(f"return {row_of(texts) if texts else '()'}")
    return source.function("g, r")


def _turn(shape: PatternShape) -> Callable[[Registers], Registers]:
    """What makes of registers from back to front those from front to back: rows are in the other order."""
    turned = [place for place, register in enumerate(shape.registers) if register.depth > 1]
    if not turned:
        return lambda registers: registers

    def turn(registers: Registers) -> Registers:
        found = list(registers)
        for place in turned:
            found[place] = found[place][::-1]
        return tuple(found)

    return turn


def _place_of(shape: PatternShape, name: str) -> int | None:
    try:
        return shape.place(name)
    except KeyError:
        return None


def _values(shape: PatternShape, clock: Clock) -> Callable[[Registers, Time], tuple[Term | None, ...]]:
    source = CodeSource()
    reader = _Reader(shape, source, clock, None)
    texts = [reader.value(binding.expression) for binding in shape.bindings]
    source.line(f"return {row_of(texts) if texts else '()'}")
    return source.function("g, time")

"""Guards and assignments as functions of a row, and the work that generated code charges.

Place:   the interpreter passes dicts to guards; generated code passes bare values (one variable) or tuples
         (several). The blocks of code.py report where loops begin and where expressions are evaluated.
Method:  the work of generated code is the lengths of the loops it enters plus the expressions inside them.
         Work units add up in the local `n`, which is charged to the meter when it is large, and once after
         the outermost loop. The expressions inside a loop are charged with its rows, so the line of a charge
         is reserved and stays open until the next loop begins.
Why not: subtracting from the meter in every loop: for lists of one row that costs a third of the join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol

from msgspec import Struct

from dotr.budget import EXPRESSION, Factor, Meter
from dotr.events import Clock, Time
from dotr.expressions.evaluate import compile_condition, compile_expression, own_calls
from dotr.joins.plan import Assign, BodyPattern, RowFilter, pattern_text
from dotr.program import Attribute, Expression, TimeOf, Var
from dotr.rdf.terms import Term

FilterRow = Mapping[str, Term]
Leaf = Callable[[Var | Attribute | TimeOf], Callable[[Any], Term | None]]


class Moment:
    """Owns the value of `NOW()` in filters: `time` as `clock` writes it, unless a caller sets `now`."""

    __slots__ = ("_now", "clock", "time")

    def __init__(self) -> None:
        self._now: Term | None = None
        self.clock = Clock()
        self.time: Time = 0

    @property
    def now(self) -> Term | None:
        return self.clock.term(self.time) if self._now is None else self._now

    @now.setter
    def now(self, term: Term | None) -> None:
        self._now = term

    def read(self, _: object) -> Term | None:
        return self.now


def condition_of(filter_: RowFilter, moment: Moment) -> Callable[[FilterRow], bool]:
    """Over a dict of variables."""
    return compile_condition(filter_.condition, _from_dict, clock=moment.clock, now=moment.read)


def value_of(assign: Assign, moment: Moment) -> Callable[[FilterRow], Term | None]:
    """Over a dict of variables."""
    return compile_expression(assign.expression, _from_dict, clock=moment.clock, now=moment.read)


def positional_condition(
    condition: Expression, variables: Sequence[str], moment: Moment
) -> Callable[[Any], bool]:
    """Over the bare value of a single variable, or a tuple of the values of several in this order."""
    test = compile_condition(condition, _from_tuple(variables), clock=moment.clock, now=moment.read)
    return _patient(test, False) if own_calls(condition) else test


def positional_value(
    expression: Expression, variables: Sequence[str], moment: Moment
) -> Callable[[Any], Term | None]:
    """Over the bare value of a single variable, or a tuple of the values of several in this order."""
    value = compile_expression(expression, _from_tuple(variables), clock=moment.clock, now=moment.read)
    return _patient(value, None) if own_calls(expression) else value


def _patient(evaluate: Callable[[Any], Any], absent: Any) -> Callable[[Any], Any]:
    from dotr.expressions.own_functions import patient  # noqa: PLC0415  # start-up: few runs call one

    return patient(evaluate, absent)


def _from_dict(leaf: Var | Attribute | TimeOf) -> Callable[[FilterRow], Term | None]:
    if not isinstance(leaf, Var):
        raise AssertionError("joins know variables only")
    name = leaf.name
    return lambda row: row.get(name)


def _from_tuple(variables: Sequence[str]) -> Leaf:
    places = {name: i for i, name in enumerate(variables)}

    def leaf(variable: Var | Attribute | TimeOf) -> Callable[[Any], Term | None]:
        if not isinstance(variable, Var):
            raise AssertionError("joins know variables only")
        if len(places) == 1:
            return _itself
        return itemgetter(places[variable.name])

    return leaf


def _itself(row: Term) -> Term:
    return row


class Spent:
    """Generated code calls it to charge a meter: (units, the length of each loop it is in)."""

    __slots__ = ("_meter", "_patterns", "_source")

    def __init__(self, meter: Meter, patterns: Sequence[BodyPattern], source: object) -> None:
        self._meter = meter
        self._source = source
        self._patterns = tuple(patterns)

    def __call__(self, units: int, *sizes: int) -> int:
        """Charge the units; returns 0, the units left to charge. Raises Exhausted."""
        left = self._meter.left
        left[0] -= units
        if left[0] < 0:
            texts = map(pattern_text, self._patterns)
            factors = [Factor(text, size) for text, size in zip(texts, sizes, strict=False)]
            self._meter.spent(factors, self._source)
        return 0


class _Entry(Struct):
    """A loop that is entered at a reserved line: `first` if nothing is in `n` yet.

    `spared`: it follows an `if` for a single row, which need not be charged.
    """

    line: int
    length: str
    first: bool
    spared: bool
    spent: str  # a call of Spent, without the units
    units: int = 1

    def text(self) -> str:
        units = self.length if self.units == 1 else f"({self.length}) * {self.units}"
        if self.first:
            return f"if (n := {units}) > CHUNK: n = {self.spent.format('n')}"
        start = "elif" if self.spared and self.units == 1 else "if"
        return f"{start} (n := n + {units}) > CHUNK: n = {self.spent.format('n')}"


class Binder(Protocol):
    def bind(self, value: object, prefix: str) -> str: ...


class Charges:
    """Owns the charges of one block. `lines` are the block's, without a loop or an expression yet.

    `source`: whose work it is, if not the meter's.
    """

    def __init__(self, meter: Meter, names: Binder, lines: list[str], source: object = None) -> None:
        self._meter = meter
        self._source = source
        self._names = names
        self._lines = lines
        self._entries: list[_Entry] = []
        self._loops: list[tuple[BodyPattern, str]] = []  # open loops, each with the source of its length
        self._before = 0  # units of expressions before every loop

    def enter(self, indent: str, pattern: BodyPattern, length: str, *, spared: bool = False) -> None:
        """The next line is a loop over `length` rows of a pattern."""
        first = not self._loops
        self._loops.append((pattern, length))
        self._entries.append(_Entry(len(self._lines), length, first, spared, self._spent()))
        self._lines.append(indent)

    def listed(self, indent: str, pattern: BodyPattern, length: str) -> None:
        """A call has returned a list of rows."""
        self._loops.append((pattern, length))
        spent = self._spent()
        self._loops.pop()
        self._add(indent, length, spent)

    def spend(self, indent: str, units: int) -> None:
        """Something is done in the innermost loop."""
        self._add(indent, str(units), self._spent())

    def _add(self, indent: str, units: str, spent: str) -> None:
        if self._loops:
            self._lines.append(f"{indent}if (n := n + {units}) > CHUNK: n = {spent.format('n')}")
        else:
            self._lines.append(indent + spent.format(units))

    def expression(self, units: int = EXPRESSION) -> None:
        """An expression is evaluated in the innermost loop."""
        if self._entries:
            self._entries[-1].units += units
        else:
            self._before += units

    def early(self, indent: str) -> None:
        """The function returns from inside its loops."""
        if self._loops:
            self._lines.append(f"{indent}{self._left()} -= n")

    def settle(self, indent: str) -> None:
        """The block is written: fill the reserved lines, charge the rest after the outermost loop."""
        for entry in self._entries:
            self._lines[entry.line] += entry.text()
        left = self._left()
        if self._loops:
            pattern, length = self._loops[0]
            spent = self._bound([pattern])
            self._lines += [f"{indent}{left} -= n", f"{indent}if {left} < 0: {spent}(0, {length})"]
        if self._before:
            spent = self._bound([])
            self._lines[:0] = [f"{indent}{left} -= {self._before}", f"{indent}if {left} < 0: {spent}(0)"]

    def _left(self) -> str:
        return f"{self._names.bind(self._meter.left, 'W')}[0]"

    def _spent(self) -> str:
        name = self._bound([pattern for pattern, _ in self._loops])
        return f"{name}({{}}{''.join(f', {length}' for _, length in self._loops)})"

    def _bound(self, patterns: Sequence[BodyPattern]) -> str:
        return self._names.bind(Spent(self._meter, patterns, self._source), "SPENT")

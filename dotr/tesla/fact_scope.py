"""The scope of a function under construction: where each position's fact is, and how to read expressions.

Place:   compile.py and the files that write conjuncts share one per rule.
Method:  an attribute, an aggregate's value or a constant is read in place; what reads one attribute is looked
         up, and comparisons of sums are written in place (term_tables.py); any other expression is compiled
         by expressions/ over a small tuple of the facts it reads, and called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from msgspec import Struct, field

from dotr.codegen import CodeSource
from dotr.events import Clock
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.ir.expressions import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.rdf.terms import Term
from dotr.tesla.conditions import NOW, names
from dotr.tesla.term_tables import SumComparison, only_attribute, term_table, truth_table
from dotr.tesla.work import RuleWork


class Scope(Struct):
    """Owns the scope of the function under construction: the source, and the local of each position."""

    source: CodeSource
    clock: Clock
    trigger: str
    variables: dict[str, tuple[str, ...]]
    work: RuleWork | None = None
    """The charges; None if nothing is searched for."""
    locals: dict[str, str] = field(default_factory=dict)
    range: tuple[str, str] = ("", "")
    """Locals that delimit the members of the group to which a partial match belongs; empty for one rule."""

    def value(self, expression: Expression) -> str:
        """Source of an expression's value; None at run time if it is an error or unbound."""
        match expression:
            case Attribute(position=position, variable=variable):
                return f"{self.locals[position]}[1][{self.variables[position].index(variable)}]"
            case Var(name=name):
                return self.locals["?" + name]
            case Const(term=term):
                return self.source.name("constant", term)
            case _:
                attribute = only_attribute(expression)
                if attribute is not None:
                    return f"{self.source.name('value', term_table(expression))}[{self.value(attribute)}]"
                row, leaf, now = self._row(expression)
                getter = compile_expression(expression, leaf, clock=self.clock, now=now, seconds=True)
                return f"{self.source.name('value', getter)}({row})"

    def test(self, condition: Expression) -> str:
        """Source of whether a condition holds."""
        if isinstance(condition, Call) and condition.function == "&&":
            return f"({' and '.join(map(self.test, condition.arguments))})"
        attribute = only_attribute(condition)
        if attribute is not None:
            general = f"{self.source.name('test', truth_table(condition))}[{self.value(attribute)}]"
        else:
            row, leaf, now = self._row(condition)
            holds = compile_condition(condition, leaf, clock=self.clock, now=now, seconds=True)
            general = f"{self.source.name('test', holds)}({row})"
        return SumComparison(self.source, self._read).test(condition, general) or general

    def _read(self, leaf: Attribute | Var | TimeOf) -> str:
        return f"{self.locals[leaf.position]}[0]" if isinstance(leaf, TimeOf) else self.value(leaf)

    def _row(self, expression: Expression) -> tuple[str, Any, Any]:
        """(source of a tuple of the expression's inputs, its leaves, its NOW) over that tuple."""
        needed = sorted(self.trigger if name == NOW else name for name in names(expression))
        place = {name: i for i, name in enumerate(dict.fromkeys(needed))}
        variables, clock = self.variables, self.clock

        def leaf(node: Var | Attribute | TimeOf) -> Callable[[Any], Term | None]:
            match node:
                case Var(name=name):
                    where = place["?" + name]
                    return lambda row: row[where]
                case Attribute(position=position, variable=variable):
                    where, column = place[position], variables[position].index(variable)
                    return lambda row: row[where][1][column]
                case TimeOf(position=position):
                    where = place[position]
                    return lambda row: clock.term(row[where][0])
                case _:
                    assert_never(node)

        def now(row: Any) -> Term:
            return clock.term(row[place[self.trigger]][0])

        row = "".join(f"{self.locals[name]}, " for name in place)
        return f"({row})", leaf, now

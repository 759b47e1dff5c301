"""Expressions of ON, WHERE and WITH that need no call: tables of one term, comparisons of sums in place.

Place:   fact_scope.py and buckets.py try this first; all other expressions are compiled by expressions/.
Method:  an expression that reads one attribute is a function of one term, and its results are kept. A
         comparison of sums is computed in place if all its numbers are small: as integers in units of 10⁻⁶,
         for which sums and order are exact; no sum that fits into a rule exceeds the limits of its type.
Why not: tables of pairs of terms: readings of two sensors rarely come together twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

from dotr.codegen import CodeSource
from dotr.events import Clock
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.expressions.functions import makes_text
from dotr.ir.expressions import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.rdf.memo import Memo
from dotr.rdf.terms import Term
from dotr.rdf.values import EXACT, decode

_MANY: Final = 1 << 10
"""Results that are kept of one expression."""
_SMALL: Final = 10**12
_PLACES: Final = 6
_COMPARISONS: Final = {"=": "==", "!=": "!=", "<": "<", ">": ">", "<=": "<=", ">=": ">="}


def only_attribute(expression: Expression) -> Attribute | None:
    """The attribute that is all an expression reads, if a table is worth it: not for an attribute itself, nor
    for a comparison as it stands.
    """
    if not isinstance(expression, Call) or makes_text(expression):
        return None
    if expression.function in _COMPARISONS and not any(isinstance(a, Call) for a in expression.arguments):
        return None
    found = set(_leaves(expression))
    one = found.pop() if len(found) == 1 else None
    return one if isinstance(one, Attribute) else None


def term_table(expression: Expression) -> Memo[Any, Term | None]:
    """Term of the only attribute → the expression's."""
    return Memo(compile_expression(expression, _itself, clock=Clock(), seconds=True), _MANY)


def truth_table(condition: Expression) -> Memo[Any, bool]:
    """Term of the only attribute → whether the condition holds."""
    return Memo(compile_condition(condition, _itself, clock=Clock(), seconds=True), _MANY)


def _itself(_: Expression) -> Callable[[Any], Term | None]:
    return lambda term: term


def _leaves(expression: Expression) -> Iterator[Expression]:
    match expression:
        case Const():
            pass
        case Call(function=function, arguments=arguments) if function != "NOW":
            for argument in arguments:
                yield from _leaves(argument)
        case _:
            yield expression


def _small(term: Term | None) -> int | None:
    value = None if term is None else decode(term)
    if type(value) is int:
        return value * 10**_PLACES if -_SMALL < value < _SMALL else None
    if type(value) is not Decimal or not -_SMALL < value < _SMALL:
        return None
    scaled = EXACT.scaleb(value, _PLACES)
    whole = int(scaled)
    return whole if whole == scaled else None


small: Final[Memo[Any, int | None]] = Memo(_small)
"""An integer or decimal in units of 10⁻⁶; None for a large one, a finer one, and all other terms."""


class SumComparison:
    """Owns the source of one comparison of sums under construction. `read` gives the source of the term of an
    attribute or variable, and of the time of a position in µs.
    """

    def __init__(self, source: CodeSource, read: Callable[[Attribute | Var | TimeOf], str]) -> None:
        self._source = source
        self._read = read
        self._terms: list[str] = []

    def test(self, condition: Expression, general: str) -> str | None:
        """Source of whether the condition holds; `general` decides where a number is not small. None for any
        other condition.
        """
        if not (isinstance(condition, Call) and condition.function in _COMPARISONS):
            return None
        left, right = map(self._sum, condition.arguments)
        if left is None or right is None or not self._terms:
            return None
        table = self._source.name("small", small)
        known = [f"(u{i} := {table}[{term}]) is not None" for i, term in enumerate(self._terms)]
        test = f"{left} {_COMPARISONS[condition.function]} {right}"
        return f"({test} if {' and '.join(known)} else {general})"

    def _sum(self, expression: Expression) -> str | None:
        match expression:
            case Attribute() | Var():
                text = self._read(expression)
                if text not in self._terms:
                    self._terms.append(text)
                return f"u{self._terms.index(text)}"
            case Const(term):
                number = small[term]
                return None if number is None else self._source.name("number", number)
            case Call("-", (TimeOf() as later, TimeOf() as earlier)):
                return f"({self._read(later)} - {self._read(earlier)})"
            case Call("+" | "-" as sign, (a, b)):
                left, right = self._sum(a), self._sum(b)
                return None if left is None or right is None else f"({left} {sign} {right})"
            case _:
                return None

"""Analysis of conditions: what an ON or WHERE reads, and which of its parts can be an index.

Place:   by it plan.py decides how a position is stored, compile.py when a condition is tested.
Method:  a condition holds iff every part of its `&&` holds (an error counts as false there), so the parts are
         tested separately, each as soon as its inputs are known. A part that bounds how far back a candidate
         lies is a narrower window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce

from msgspec.structs import replace

from dotr.events import Time
from dotr.expressions.functions import makes_text
from dotr.ir.expressions import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.ir.rules import Rule, Summarise
from dotr.rdf.terms import TRUE, XSD_FLOAT
from dotr.rdf.values import EXACT, decode

NOW = "NOW()"
"""The name for the trigger's time; no position has parentheses in its name."""

_TRUE = Const(TRUE)
_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}

OWN = ""
"""The name of a column's own fact, so that columns of different rules compare equal."""


def parts(condition: Expression | None) -> list[Expression]:
    """The operands of the outermost `&&`s, from left to right; none for no condition and for `true`."""
    if condition is None or condition == _TRUE:
        return []
    if isinstance(condition, Call) and condition.function == "&&":
        return [part for argument in condition.arguments for part in parts(argument)]
    return [condition]


def conjunction(conditions: Sequence[Expression]) -> Expression | None:
    """The parts as one condition again."""
    if not conditions:
        return None
    return reduce(lambda left, right: Call("&&", (left, right)), conditions)


def names(expression: Expression) -> frozenset[str]:
    """The positions, `?variables` and NOW that an expression reads."""
    match expression:
        case Attribute(position=position) | TimeOf(position=position):
            return frozenset((position,))
        case Var(name=name):
            return frozenset(("?" + name,))
        case Call(function=function, arguments=arguments):
            found = frozenset().union(*map(names, arguments)) if arguments else frozenset[str]()
            return found | {NOW} if function == "NOW" else found
        case _:
            return frozenset()


def looks_at_time(expression: Expression, own: str) -> bool:
    """Whether it reads `own.time`."""
    match expression:
        case TimeOf(position=position):
            return position == own
        case Call(arguments=arguments):
            return any(looks_at_time(argument, own) for argument in arguments)
        case _:
            return False


def reads_time(rule: Rule) -> bool:
    """Whether it reads `X.time`, its own or another's, or NOW()."""
    on = [conjunct.on for conjunct in rule.conjuncts]
    arguments = [c.argument for c in rule.conjuncts if isinstance(c, Summarise)]
    given = [binding.expression for binding in rule.bindings]
    positions = [rule.trigger.name, *(c.position.name for c in rule.conjuncts)]
    return any(
        NOW in names(expression) or any(looks_at_time(expression, name) for name in positions)
        for expression in (rule.where, *on, *arguments, *given)
        if expression is not None
    )


def reach(part: Expression, own: str, reference: str) -> Time | None:
    """How many µs before `reference` a fact of `own` may lie, if the part has the form `R.time - X.time <
    30`. None for any other form, or if it may not even lie at the same time.
    """
    if not (isinstance(part, Call) and part.function in _MIRRORED and len(part.arguments) == 2):
        return None
    operator, (between, most) = part.function, part.arguments
    if isinstance(between, Const):
        operator, between, most = _MIRRORED[operator], most, between
    if not (isinstance(between, Call) and between.function == "-" and isinstance(most, Const)):
        return None
    if between.arguments != (TimeOf(reference), TimeOf(own)) or operator not in ("<", "<="):
        return None
    seconds = decode(most.term)
    if isinstance(seconds, bool) or not isinstance(seconds, int | Decimal):
        return None
    micros = EXACT.scaleb(Decimal(seconds), 6)
    whole = int(micros.to_integral_value(ROUND_CEILING if operator == "<" else ROUND_FLOOR))
    width = whole - 1 if operator == "<" else whole
    return width if width >= 0 else None


def equality(part: Expression, own: str) -> tuple[Expression, Expression] | None:
    """(the candidate's side, the other side) of an equation that can be a key of the column of `own`.

    None if a side mixes both, or can be an xsd:float: a float equals many doubles, and no common key of equal
    values is known (language.md, section 1). Also None if the candidate's side makes a text, which may be too
    long: that error belongs to the trigger fact.
    """
    if not (isinstance(part, Call) and part.function == "=" and len(part.arguments) == 2):
        return None
    left, right = part.arguments
    if makes_text(left if names(left) == {own} else right) or _casts_to_float(left) or _casts_to_float(right):
        return None
    in_left, in_right = names(left), names(right)
    if in_left == {own} and own not in in_right:
        return left, right
    if in_right == {own} and own not in in_left:
        return right, left
    return None


def _casts_to_float(expression: Expression) -> bool:
    if isinstance(expression, Const):
        return expression.term.endswith(f"^^<{XSD_FLOAT}>")
    if not isinstance(expression, Call):
        return False
    return expression.function == f"<{XSD_FLOAT}>" or any(map(_casts_to_float, expression.arguments))


def as_own(expression: Expression, own: str, variables: Mapping[str, int]) -> Expression:
    """The expression with attributes of `own` by number, not name, so that equal columns compare equal."""
    match expression:
        case Attribute(position=position, variable=variable) if position == own:
            return Attribute(OWN, str(variables[variable]))
        case TimeOf(position=position) if position == own:
            return TimeOf(OWN)
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(as_own(a, own, variables) for a in arguments))
        case _:
            return expression

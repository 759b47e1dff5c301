"""Kinds of values, and which of them go together in a sum, a product or a comparison.

Place:   under sorts.py, which finds the kind of an expression, and survey/, which has terms.
Method:  SPARQL 1.1, sec. 17.3, and XPath's functions and operators for dates and durations; in rules
         language.md, "Times and durations". A kind that is not known goes with everything.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Sort(Enum):
    RESOURCE = "an IRI or blank node"
    NUMBER = "a number"
    TEXT = "a text"
    BOOLEAN = "true or false"
    TIME = "a dateTime"
    DATE = "a date"
    CLOCK = "a time of day"
    STAMP = "a time"
    """`X.time` and NOW() in rules: a dateTime, or an integer where the stream has those."""
    SECONDS = "a dayTimeDuration"
    MONTHS = "a yearMonthDuration"
    DURATION = "a duration"
    AMOUNT = "a number or a duration"


ARITHMETIC: Final = frozenset(("+", "-", "*", "/", "u-", "u+"))
_TIMES: Final = frozenset((Sort.TIME, Sort.DATE, Sort.CLOCK, Sort.STAMP))
_LENGTHS: Final = frozenset((Sort.SECONDS, Sort.MONTHS, Sort.DURATION))
_COUNTED: Final = frozenset((Sort.SECONDS, Sort.MONTHS))
"""Durations that can be multiplied and divided."""
_NEVER: Final = frozenset((Sort.RESOURCE, Sort.TEXT, Sort.BOOLEAN))
_OPEN: Final = frozenset((Sort.AMOUNT, None))


class NoValueError(Exception):
    """Operands of these kinds have no sum, difference, product or quotient."""


def result(function: str, operands: tuple[Sort | None, ...], *, rule: bool) -> Sort | None:
    """The kind of what an operator of ARITHMETIC gives, None where it is not known. `rule`: in ON, WHERE or
    WITH. Raises NoValueError where it is an error for all values of these kinds.
    """
    if not _NEVER.isdisjoint(operands):
        raise NoValueError
    if len(operands) == 1:
        if operands[0] in (Sort.TIME, Sort.DATE, Sort.CLOCK):
            raise NoValueError
        return operands[0] if operands[0] in (Sort.NUMBER, *_LENGTHS) else Sort.AMOUNT
    left, right = operands
    if left is right is Sort.NUMBER:
        return Sort.NUMBER
    if function in ("*", "/"):
        return _product(function, left, right)
    if function == "+" and right in _TIMES and left not in _TIMES:
        left, right = right, left
    if left in _TIMES:
        return _from_time(function, left, right, rule)
    if right in _TIMES:
        return _to_time(left, right)
    if left in _OPEN or right in _OPEN:
        return None
    if left is Sort.NUMBER or right is Sort.NUMBER:
        raise NoValueError
    return left if left is right else Sort.DURATION


def _product(function: str, left: Sort | None, right: Sort | None) -> Sort | None:
    """A product or quotient that is not one of two numbers."""
    known = {left, right} - {Sort.AMOUNT, None}
    if known & {Sort.TIME, Sort.DATE, Sort.CLOCK, Sort.DURATION}:
        raise NoValueError
    if left in _COUNTED and right in _COUNTED:
        if function == "*" or left is not right:
            raise NoValueError
        return Sort.NUMBER
    if right in _COUNTED and left is Sort.NUMBER:
        if function == "/":
            raise NoValueError
        return right
    if left in _COUNTED and right is Sort.NUMBER:
        return left
    return Sort.AMOUNT


def _from_time(function: str, left: Sort | None, right: Sort | None, rule: bool) -> Sort | None:
    """A time, and what is added to it or taken from it."""
    if right in _TIMES:
        if function == "+":
            raise NoValueError
        if left is not right and {left, right} != {Sort.TIME, Sort.STAMP}:
            raise NoValueError
        return Sort.NUMBER if rule else Sort.SECONDS
    if right is None:
        return None
    if right is Sort.NUMBER and not rule:
        raise NoValueError
    if left is Sort.CLOCK and right is Sort.MONTHS:
        raise NoValueError
    return left


def _to_time(left: Sort | None, right: Sort | None) -> Sort | None:
    """The difference of what is no time, as far as is known, and a time."""
    if left is None:
        return None
    if left is Sort.NUMBER and right is Sort.STAMP:
        return None  # a time of the stream's, where these are integers
    raise NoValueError


def comparable(left: Sort | None, right: Sort | None, *, rule: bool) -> bool:
    """Whether values of these kinds can be equal, or one less than the other."""
    if left is None or right is None or left is right:
        return True
    both = {left, right}
    if both <= _LENGTHS or (Sort.AMOUNT in both and both <= {Sort.AMOUNT, Sort.NUMBER, *_LENGTHS}):
        return True
    if both == {Sort.NUMBER, Sort.SECONDS}:
        return rule
    return Sort.STAMP in both and bool(both & {Sort.TIME, Sort.NUMBER, Sort.AMOUNT, Sort.TEXT})


def remedy(function: str, left: Sort | None, right: Sort | None, *, rule: bool) -> str:
    """What would be right instead of operands of these kinds; empty where that is not known."""
    both = {left, right}
    if Sort.TEXT in both:
        return "make a value of the text: xsd:decimal(…), or xsd:dateTime(…)"
    if Sort.RESOURCE in both:
        return "follow a property of the resource to its value: `?x :value ?v`"
    if function in ("+", "-") and Sort.NUMBER in both and both & _TIMES and not rule:
        return 'add a duration: "PT5S"^^xsd:dayTimeDuration'
    if Sort.DATE in both and both & {Sort.TIME, Sort.STAMP}:
        return 'a date without a zone begins at xsd:dateTime(CONCAT(STR(…), "T00:00:00Z"))'
    if both == {Sort.NUMBER, Sort.SECONDS}:
        return "take the seconds of the duration: xsd:decimal(…)"
    if function == "-" and right in _TIMES and left not in _TIMES:
        return "write the time first"
    if Sort.DURATION in both and function in ("*", "/"):
        return "make a dayTimeDuration of it: xsd:dayTimeDuration(STR(…))"
    return ""

"""Comparisons with a constant, as numbers on a line: who passes a filter whose constant differs by rule.

Place:   plan.py finds them in ON and in filters handed over by extract.py (`Filtered`); columns.py keeps
         stairs over them; sharing.py orders rules by them.
Method:  a threshold is normalised to "greater passes": `<` by a change of sign. Only constants whose
         comparison with every number is exact are thresholds, so that values and limits sort together.
Why not: any constant. 0.1 as a decimal is not the double 0.1, and `<` between a double and a decimal
         rounds the decimal first: sorting them exactly would answer differently in the last place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dotr.events import Fact, Time
from dotr.ir.expressions import Attribute, Call, Const, Expression
from dotr.rdf.terms import Term
from dotr.rdf.values import Number, decode
from dotr.tesla.conditions import OWN

_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}
_EXACT = 2**53
"""Below it every integer is a double, so that `=` and `<` are exact whatever the other number's type."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """A stream that has the facts of `base` whose attribute number `place` passes `operator constant`.

    `operator` is one of > >= < <=; `constant` such that `is_threshold` holds. A fact that passes is the same
    fact in both: same values, same ordinal.
    """

    base: str
    place: int
    operator: str
    constant: Term


@dataclass(frozen=True, slots=True)
class Measure:
    """How an attribute is measured against thresholds: `sign` −1 where less passes more easily."""

    place: int
    sign: int


@dataclass(frozen=True, slots=True)
class Threshold:
    """A value passes if it is greater than `limit` after multiplication by the measure's sign, or equal and
    `inclusive`."""

    measure: Measure
    limit: Number
    inclusive: bool


def is_threshold(operator: str, constant: Term) -> bool:
    """Whether comparisons with it can be shared: an integer or decimal that a double holds exactly."""
    value = decode(constant)
    if operator not in _MIRRORED or isinstance(value, bool):
        return False
    if isinstance(value, int):
        return abs(value) <= _EXACT
    return isinstance(value, Decimal) and abs(value) <= _EXACT and Decimal(float(value)) == value


def comparison(place: int, operator: str, constant: Term) -> Expression:
    """The condition of a `Filtered` on the own fact."""
    return Call(operator, (Attribute(OWN, str(place)), Const(constant)))


def threshold_of(part: Expression) -> Threshold | None:
    """A condition on the own fact (see conditions.OWN) as a threshold, None where it is none."""
    if not (isinstance(part, Call) and len(part.arguments) == 2 and part.function in _MIRRORED):
        return None
    operator, (left, right) = part.function, part.arguments
    if isinstance(left, Const) and isinstance(right, Attribute):
        operator, left, right = _MIRRORED[operator], right, left
    if not (isinstance(left, Attribute) and left.position == OWN and isinstance(right, Const)):
        return None
    return threshold(int(left.variable), operator, right.term)


def threshold(place: int, operator: str, constant: Term) -> Threshold | None:
    """Attribute number `place` compared with a constant, None where `is_threshold` does not hold."""
    if not is_threshold(operator, constant):
        return None
    value: Any = decode(constant)
    greater = operator[0] == ">"
    limit = value if greater else _negated(value)
    return Threshold(Measure(place, 1 if greater else -1), limit, operator[-1] == "=")


def _negated(number: Any) -> Number:
    """−number, exactly: Decimal's own minus rounds to 28 digits."""
    return number.copy_negate() if type(number) is Decimal else -number


def measured(measure: Measure) -> Callable[[Sequence[Term | None]], Number | None]:
    """A function from a fact's values to what thresholds are compared with; None passes none."""
    place, sign = measure.place, measure.sign

    def value(values: Sequence[Term | None]) -> Number | None:
        term = values[place]
        if term is None or term[-1] != ">":
            return None
        number: Any = decode(term)
        kind = type(number)
        if (kind is int or kind is float or kind is Decimal) and number == number:
            return number if sign == 1 else _negated(number)
        return None

    return value


class Flight:
    """Owns the facts of one key that are the latest above some limit: later ones measure less.

    `facts` are in canonical order, `measures` fall from one to the next.
    """

    __slots__ = ("facts", "measures")

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.measures: list[Number] = []

    def add(self, fact: Fact, measure: Number) -> None:
        """A later fact; what it measures up to is forgotten. O(1) amortised."""
        measures, facts = self.measures, self.facts
        while measures and measures[-1] <= measure:
            measures.pop()
            facts.pop()
        measures.append(measure)
        facts.append(fact)

    def expire(self, since: Time) -> bool:
        """Forget what is older; whether anything is left."""
        gone = bisect_left(self.facts, (since,))
        del self.facts[:gone], self.measures[:gone]
        return bool(self.facts)


def latest_above(
    flight: Flight, since: Time, lo: int, hi: int, limits: Sequence[Number], cut: Callable[..., int]
) -> list[tuple[Fact, int, int]]:
    """For the members `lo` ≤ i < `hi`: (their latest fact above `limits[i]`, from, to), in ranges.

    `limits` rise; `cut` is bisect_left, or bisect_right where equal passes. Members without a fact are in no
    range.
    """
    found: list[tuple[Fact, int, int]] = []
    facts, measures = flight.facts, flight.measures
    for i in range(len(facts) - 1, -1, -1):
        fact = facts[i]
        if fact[0] < since:
            break
        upto = cut(limits, measures[i], lo, hi)
        if upto > lo:
            found.append((fact, lo, upto))
            lo = upto
            if lo == hi:
                break
    return found


def none_above(
    flight: Flight, since: Time, lo: int, hi: int, limits: Sequence[Number], cut: Callable[..., int]
) -> int:
    """The first of the members `lo` ≤ i < `hi` that has no fact above its limit; `hi` if all have."""
    oldest = bisect_left(flight.facts, (since,))
    if oldest == len(flight.facts):
        return lo
    return cut(limits, flight.measures[oldest], lo, hi)

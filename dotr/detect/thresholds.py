"""Comparisons with a constant, as numbers on a line: which rules' filters a value passes.

Place:   plan.py finds them in ON and in filters from extract.py (`Filtered`); columns.py keeps monotonic
         stacks, and totals by level, over them; sharing.py orders rules by them.
Method:  a threshold is normalised to "greater passes": `<` by a change of sign. Limits are integers of 10⁻¹⁸,
         and so is the measure of a value: for an integer or decimal its own size; for a double the boundary
         between limits that round to doubles it passes and the others. So one bisection finds the passed
         limits, exactly as `<` does, which rounds a decimal before comparing it with a double. A fact of a
         base carries its size, since its query compared it before an xsd:float became an xsd:double.
Why not: comparing Python's numbers, which is exact: the double 0.1 is greater than the decimal 0.1, but must
         not pass `> 0.1`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter, neg
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct

from dotr.codegen import CodeSource
from dotr.detect.analysis import OWN
from dotr.events import Fact, Time
from dotr.expressions.operators import at_most, less
from dotr.program.queries import Attribute, Call, Const, Expression
from dotr.rdf.terms import Memo, Term
from dotr.rdf.values import BEYOND, DAY_TIME, EXACT, Duration, Single, decode, to_double

_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}
_SCALE = 10**18
_BEYOND: int = BEYOND * 10**20
"""Greater than every limit."""


class Filtered(Struct, frozen=True):
    """A stream with the facts of `base` whose size passes `operator constant`.

    `operator` is one of > >= < <=; `is_threshold` holds for `constant`. A passing fact is the same in both:
    same values, same ordinal. In the base it is `(*fact, size)`; see `sizes`.
    """

    base: str
    operator: str
    constant: Term

    @property
    def threshold(self) -> Threshold:
        """The threshold for the size that a fact of the base carries."""
        found = threshold(CARRIED, self.operator, self.constant)
        assert found is not None
        return found


TABLES = 8
"""For how many thresholds in use the terms that pass are kept: a thousand tables could hold tens of millions
of terms. With other thresholds sizes are compared, which takes a tenth longer a fact."""

CARRIED = -1
"""The place of a measure that a fact of a base carries as its fifth part."""


class Measure(Struct, frozen=True):
    """How a fact is measured against thresholds: by attribute number `place`, or by the size it carries
    (CARRIED); `sign` −1 if less passes more easily; `inclusive` if equal passes.
    """

    place: int
    sign: int
    inclusive: bool


class Threshold(Struct, frozen=True):
    """A value passes if its measure is greater than `limit`, or equal if inclusive."""

    measure: Measure
    limit: int

    @property
    def least(self) -> int:
        """The least size that passes."""
        return self.limit if self.measure.inclusive else self.limit + 1


def is_threshold(operator: str, constant: Term) -> bool:
    """Whether comparisons with it can be shared: an integer, or a decimal of at most 15 digits.

    (Those round to the nearest double; the full engine may round longer ones differently.)
    """
    value = decode(constant)
    if operator not in _MIRRORED or isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, Decimal) and len(str(value)) <= 16)


def sizes(operator: str, constants: Sequence[Term]) -> Callable[[Term | None], int | None] | None:
    """The measures of terms when compared with these constants; None for a term that passes none.

    Returns None unless `is_threshold` holds for all. A term is compared unconverted (an xsd:float as one) by
    the operator itself; a known term costs one look-up.
    """
    found = [threshold(CARRIED, operator, constant) for constant in constants]
    thresholds = [one for one in found if one is not None]
    if len(thresholds) < len(constants):
        return None
    by_limit = {one.limit: (one.least, decode(c)) for one, c in zip(thresholds, constants, strict=True)}
    rising = [by_limit[limit] for limit in sorted(by_limit)]
    fails = _FAILS[operator]

    def size(term: Term | None) -> int | None:
        if term is None:
            return None
        value = decode(term)
        passed = bisect_left(rising, True, key=lambda one: fails(value, one[1]))
        return rising[passed - 1][0] if passed else None

    return Memo(size).__getitem__


_FAILS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">": lambda value, constant: less(constant, value) is not True,
    ">=": lambda value, constant: at_most(constant, value) is not True,
    "<": lambda value, constant: less(value, constant) is not True,
    "<=": lambda value, constant: at_most(value, constant) is not True,
}


def threshold_of(part: Expression) -> Threshold | None:
    """A condition on the own fact (see conditions.OWN) as a threshold, or None."""
    if not (isinstance(part, Call) and len(part.arguments) == 2 and part.function in _MIRRORED):
        return None
    operator, (left, right) = part.function, part.arguments
    if isinstance(left, Const) and isinstance(right, Attribute):
        operator, left, right = _MIRRORED[operator], right, left
    if not (isinstance(left, Attribute) and left.position == OWN and isinstance(right, Const)):
        return None
    return threshold(int(left.variable), operator, right.term)


def threshold(place: int, operator: str, constant: Term) -> Threshold | None:
    """Attribute number `place` compared with a constant, None if `is_threshold` does not hold."""
    if not is_threshold(operator, constant):
        return None
    sign = 1 if operator[0] == ">" else -1
    return Threshold(Measure(place, sign, operator[-1] == "="), sign * _scaled(decode(constant)))


def _scaled(value: Any) -> int:
    """An integer or decimal in units of 10⁻¹⁸."""
    return int(EXACT.scaleb(value, 18)) if type(value) is Decimal else int(value) * _SCALE


def table_of(measure: Measure) -> Memo[Term | None, int | None]:
    """The measures of terms: a self-filling table. See `measured`."""
    return _table(measure.sign, measure.inclusive)


def measured(measure: Measure) -> Callable[[Sequence[Any]], int | None]:
    """A function from a fact to its measure; None passes no limit."""
    if measure.place == CARRIED:
        return itemgetter(4)
    place, table = measure.place, table_of(measure)

    return lambda fact: table[fact[1][place]]


def write_size(
    source: CodeSource, measure: Measure, fact: str, values: str, least: int | None = None
) -> None:
    """`size`: the measure of a fact, of which `values` are the attributes; `continue` if it passes nothing,
    or is less than `least`.
    """
    test = "" if least is None else f"size < {source.name('least', least)}"
    if measure.place == CARRIED:
        source.line(f"size = {fact}[4]")
    else:
        source.line(f"size = {source.name('size', table_of(measure))}[{values}[{measure.place}]]")
        test = f"size is None or {test}" if test else "size is None"
    if test:
        source.line(f"if {test}: continue")


def write_test(source: CodeSource, limit: Threshold, fact: str, values: str) -> None:
    """`continue` if a fact, of which `values` are the attributes, does not pass."""
    answers = None if limit.measure.place == CARRIED else _answers(limit)
    if answers is None:
        write_size(source, limit.measure, fact, values, limit.least)
        return
    term = f"{values}[{limit.measure.place}]"
    source.line(f"passes = {source.name('known', answers.get)}({term})")
    with source.block("if not passes"):
        source.line(f"if passes is not None or not {source.name('answers', answers)}[{term}]: continue")


def _answers(limit: Threshold) -> Memo[Term | None, bool] | None:
    """Whether terms pass a threshold; None if as many tables are in use as there may be."""
    key = limit.measure.sign, limit.measure.inclusive, limit.least
    found = _ANSWERS.get(key)
    if found is None and len(_ANSWERS) < TABLES:
        sign, inclusive, least = key

        def passes(term: Term | None) -> bool:
            size = _size(term, sign, inclusive)
            return size is not None and size >= least

        found = _ANSWERS[key] = Memo(passes)
    return found


_ANSWERS: WeakValueDictionary[tuple[int, bool, int], Memo[Term | None, bool]] = WeakValueDictionary()


@lru_cache(maxsize=4)
def _table(sign: int, inclusive: bool) -> Memo[Term | None, int | None]:
    """The measures of terms."""
    return Memo(lambda term: _size(term, sign, inclusive))


def _size(term: Term | None, sign: int, inclusive: bool) -> int | None:
    """The measure of a term."""
    value = None if term is None else decode(term)
    match value:
        case bool():
            return None
        case int() | Decimal():
            return sign * _scaled(value)
        case Single():
            raise AssertionError("facts of queries hold doubles, no floats")
        case float() if value == value:
            return _edge(sign * value, inclusive)
        case Duration() if value.datatype == DAY_TIME:
            return sign * value.ticks
        case _:
            return None


def _edge(value: float, inclusive: bool) -> int:
    """The measure of a double: it passes the limits below it (or equal, if inclusive).

    It passes a limit if the double nearest to that is less (not greater, if inclusive).
    """
    other = math.nextafter(value, math.inf if inclusive else -math.inf)
    if other == value:  # INF, or −INF that passes nothing
        return _BEYOND if value > 0 else -_BEYOND
    (a, b), (c, d) = _ratio(value), _ratio(other)
    middle = (a * d + c * b) * _SCALE // (2 * b * d)
    nearest = to_double(middle // _SCALE) if abs(middle) >= _SCALE << 1000 else middle / _SCALE
    if inclusive:
        return middle if nearest <= value else middle - 1
    return middle + 1 if nearest < value else middle


def _ratio(value: float) -> tuple[int, int]:
    """A double as a fraction; an infinity is what the next double would be."""
    if math.isinf(value):
        return (1 << 1024, 1) if value > 0 else (-1 << 1024, 1)
    numerator, denominator = value.as_integer_ratio()
    return numerator, denominator


class ThresholdStack:
    """Owns the facts of one key that are the latest above some limit: later facts measure less.

    `facts` are in canonical order, `measures` fall from one to the next.
    """

    __slots__ = ("facts", "measures")

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.measures: list[int] = []

    def add(self, fact: Fact, measure: int) -> None:
        """Add a later fact, and drop those that measure no more. O(1) amortised."""
        measures, facts = self.measures, self.facts
        while measures and measures[-1] <= measure:
            measures.pop()
            facts.pop()
        measures.append(measure)
        facts.append(fact)

    def expire(self, since: Time) -> bool:
        """Drop what is older; return whether anything is left."""
        gone = bisect_left(self.facts, (since,))
        del self.facts[:gone], self.measures[:gone]
        return bool(self.facts)


def latest_above(
    stack: ThresholdStack, since: Time, lo: int, hi: int, limits: Sequence[int], cut: Callable[..., int]
) -> list[tuple[Fact, int, int]]:
    """For the members `lo` ≤ i < `hi`: (their latest fact above `limits[i]`, from, to), in ranges.

    `limits` rise; `cut` is bisect_left, or bisect_right if equal passes. Members without a fact are in no
    range.
    """
    found: list[tuple[Fact, int, int]] = []
    facts, measures = stack.facts, stack.measures
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
    stack: ThresholdStack, since: Time, lo: int, hi: int, limits: Sequence[int], cut: Callable[..., int]
) -> int:
    """The first of the members `lo` ≤ i < `hi` without a fact above its limit; `hi` if all have one."""
    oldest = bisect_left(stack.facts, (since,))
    if oldest == len(stack.facts):
        return lo
    return cut(limits, stack.measures[oldest], lo, hi)


def latest_of(stack: ThresholdStack, least: int) -> Fact | None:
    """The latest fact that measures `least` or more. O(log facts)."""
    above = bisect_right(stack.measures, -least, key=neg)
    return stack.facts[above - 1] if above else None


def any_of(stack: ThresholdStack, since: Time, least: int) -> bool:
    """Whether it has a fact not older than `since` that measures `least` or more. O(log facts)."""
    facts = stack.facts
    if facts[0][0] >= since:
        return stack.measures[0] >= least
    oldest = bisect_left(facts, (since,))
    return oldest < len(facts) and stack.measures[oldest] >= least

"""Operators on values: equality, order, truth values, arithmetic of numbers, dates, durations.

Method:  SPARQL 1.1, sec. 17.2 to 17.4, on decoded values (rdf/values.py), with the answers of the full engine
         where the standard leaves a choice or the engine differs: `=` of an ill-typed or unknown literal with
         another literal is an error, as is `<` of booleans and of a number with NaN; for any term and itself
         `<` is false and `<=` true. Truth values are True, False, and None for an error.
         Numbers (sec. 17.3): operands are promoted to the wider type, integer < decimal < float < double.
         Integers are exact; decimals have 18 fractional digits, and a product or quotient is cut towards zero
         there. A quotient of integers is a decimal; a division by an exact zero is an error. A result of more
         than DIGITS digits before the point raises Overlong.
         Durations (XPath and XQuery Functions and Operators 3.1, sec. 8): a dayTimeDuration is an exact
         number of seconds, a yearMonthDuration a number of months; both can be multiplied and divided.
         Results are cut after 18 fractional digits, months are rounded. The order is that of XSD 1.1, sec.
         3.3.6.2: by the ends that two durations have from four dates; where these disagree there is no
         answer.
         Times in ON, WHERE and WITH (language.md, "Times and durations"): the difference of two times is an
         xsd:decimal of seconds; a number added to or taken from a time counts as seconds, as a
         dayTimeDuration does; a dayTimeDuration compares with a number as its seconds. All else is as in
         queries. In a stream with integer times `X.time` is an integer of the stream's unit, which only the
         expression can distinguish from other integers: `compile_expression` calls `IntegerTimes` for it.
         `ask`: the full engine defines REGEX and REPLACE (language.md, sec. 1), and casts, comparison and
         arithmetic of dates. A fixed query text runs with the arguments in its VALUES; they are written from
         their parts, so that no user text can become query text. A new call costs 40 µs, a repeated one a
         table look-up.
Why not: the full engine for durations: it adds and compares them, but neither multiplies them nor takes them
         apart. SPARQL's meaning of times in rules, too: a difference of integer times would then have another
         unit than one of dateTimes, and every comparison with it a datatype. Variable substitution in `ask`:
         pyoxigraph 0.5 then answers `=` by identity ("00:00:00Z" = "14:00:00+14:00" is false by substitution,
         true by VALUES).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, Final, TypeAlias

import pyoxigraph as ox
from msgspec import Struct

from dotr.budget import DIGITS, Overlong
from dotr.rdf.terms import FALSE, FRACTION, TRUE, Memo, Term, literal, literal_parts
from dotr.rdf.values import (
    BEYOND,
    DAY_TIME,
    EXACT,
    TICKS,
    YEAR_MONTH,
    DateTime,
    Duration,
    LanguageString,
    Number,
    Opaque,
    Resource,
    Single,
    Value,
    decode,
    duration,
    encode,
    single,
    to_double,
)
from dotr.regex import regex

_STORE = ox.Store()
_NAMES = ("?a", "?b", "?c", "?d")
_IRI = regex(r"<[^\x00-\x20<>\"{}|^`\\]*>")


def ask(expression: str, *terms: Term, base: Term = "") -> Term | None:
    """The term of `expression` over ?a, ?b, ?c, ?d bound to the given terms; None for an error.

    `expression` is a string of this package, never a user's. Blank nodes cannot be in VALUES: None. `base`:
    for IRI(), an IRI of a program.
    """
    if base:
        return _answer((expression, *terms), base)
    if sum(map(len, terms)) > 1_000:
        return _answer((expression, *terms))
    return _memo[(expression, *terms)]


def _answer(question: tuple[str, ...], base: Term = "") -> Term | None:
    expression, *terms = question
    written = [_written(term) for term in terms]
    if None in written:
        return None
    names = " ".join(_NAMES[: len(terms)])
    head = f"BASE {base} " if base else ""
    row = " ".join(w for w in written if w)
    rows = _STORE.query(f"{head}SELECT ({expression} AS ?r) {{ VALUES ({names}) {{ ({row}) }} }}")
    assert isinstance(rows, ox.QuerySolutions)
    found = next(rows)["r"]
    return None if found is None else str(found)


def _written(term: Term) -> str | None:
    """The term as SPARQL text, built from its parts; None if it cannot be written."""
    if term[0] != '"':
        return term if _IRI.fullmatch(term) else None
    lexical, datatype, language = literal_parts(term)
    text = literal(lexical, datatype, language)
    suffix = text[text.rindex('"') + 1 :]
    well_formed = not suffix or _IRI.fullmatch(suffix[2:]) or re.fullmatch(r"@[A-Za-z0-9-]+", suffix)
    return text if well_formed else None


_memo: Memo[tuple[str, ...], Term | None] = Memo(_answer, limit=1 << 13)


Operation: TypeAlias = Callable[[Any, Any], Number | None]
"""Two values → the number, None if one is not a number. Raises Overlong."""


_NUMERIC = frozenset({int, Decimal, float, Single})


def is_number(value: object) -> bool:
    return type(value) in _NUMERIC


def to_single(value: Any) -> Single:
    return value if type(value) is Single else single(to_double(value))


def _operation(
    integers: Callable[[int, int], int | Decimal | None],
    decimals: Callable[[Decimal, Decimal], Decimal | None],
    doubles: Callable[[float, float], float],
) -> Operation:
    """An operation on two values of any kind, from its forms for integers, decimals and doubles."""

    def apply(a: Any, b: Any) -> Number | None:
        kind = type(a)
        if kind is not type(b):
            pair = promoted(a, b)
            if pair is None:
                return None
            a, b, kind = pair
        if kind is float:
            return doubles(a, b)
        if kind is int:
            return integers(a, b)
        if kind is Decimal:
            return decimals(a, b)
        return single(doubles(a, b)) if kind is Single else None

    return apply


def _double_quotient(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


add_values = _operation(lambda a, b: _integer(a + b), lambda a, b: _decimal(EXACT.add(a, b)), operator.add)
subtract_values = _operation(
    lambda a, b: _integer(a - b), lambda a, b: _decimal(EXACT.subtract(a, b)), operator.sub
)
multiply_values = _operation(lambda a, b: _integer(a * b), lambda a, b: _product(a, b), operator.mul)
divide_values = _operation(
    lambda a, b: quotient(a, b),
    lambda a, b: quotient(_scaled(a), _scaled(b)),
    _double_quotient,
)


def negate_value(value: Any) -> Number | None:
    kind = type(value)
    if kind is int:
        return _integer(-value)
    if kind is Decimal:
        return _decimal(EXACT.minus(value))
    return _floating(-value, kind) if is_number(value) else None


def absolute(value: Any) -> Number | None:
    kind = type(value)
    if kind is int:
        return _integer(abs(value))
    if kind is Decimal:
        return _decimal(EXACT.abs(value))
    return _floating(abs(value), kind) if is_number(value) else None


def ceiling(value: Any) -> Number | None:
    kind = type(value)
    if kind is Decimal:
        return _decimal(value.to_integral_value(ROUND_CEILING))
    return _integral(value, math.ceil)


def floor(value: Any) -> Number | None:
    kind = type(value)
    if kind is Decimal:
        return _decimal(value.to_integral_value(ROUND_FLOOR))
    return _integral(value, math.floor)


def rounded(value: Any) -> Number | None:
    """Round to the nearest integer, a half towards +INF."""
    if type(value) is Decimal:
        return _decimal(EXACT.add(value, _HALF).to_integral_value(ROUND_FLOOR))
    return _integral(value, _round_half_up)


_HALF = Decimal("0.5")


def promoted(a: Any, b: Any) -> tuple[Any, Any, type] | None:
    """Two numbers in their common type, and that type; None unless both are numbers."""
    left, right = type(a), type(b)
    if left is right:
        return (a, b, left) if is_number(a) else None
    if not (is_number(a) and is_number(b)):
        return None
    if left is float or right is float:
        return to_double(a), to_double(b), float
    if left is Single or right is Single:
        return to_single(a), to_single(b), Single
    return Decimal(a), Decimal(b), Decimal


def quotient(numerator: int, denominator: int) -> Decimal | None:
    """The decimal quotient, cut (towards zero) after 18 fractional digits; None for a zero denominator."""
    if denominator == 0:
        return None
    cut = abs(numerator) * TICKS // abs(denominator)
    if (numerator < 0) != (denominator < 0):
        cut = -cut
    return _decimal(EXACT.scaleb(Decimal(cut), -18))


def _scaled(value: Decimal) -> int:
    """A decimal in units of 10⁻¹⁸."""
    return int(EXACT.scaleb(value, 18))


def _product(a: Decimal, b: Decimal) -> Decimal:
    product = EXACT.multiply(a, b)
    exponent = product.as_tuple().exponent
    assert isinstance(exponent, int)
    return _decimal(product if exponent >= -FRACTION else product.quantize(_TICK, ROUND_DOWN, EXACT))


_TICK: Final = Decimal("1E-18")


def _integer(value: int) -> int:
    if _LEAST < value < BEYOND:
        return value
    raise Overlong


def _decimal(value: Decimal) -> Decimal:
    if _LEAST_DECIMAL < value < _BEYOND_DECIMAL:
        return value
    raise Overlong


_LEAST: Final = -BEYOND
_LEAST_DECIMAL, _BEYOND_DECIMAL = Decimal(f"-1E{DIGITS}"), Decimal(f"1E{DIGITS}")


def _floating(value: float, kind: type) -> float:
    return single(value) if kind is Single else value


def _integral(value: Any, step: Callable[[float], int]) -> Number | None:
    """Apply a rounding to an integral value of the same type; the sign of a zero is kept."""
    kind = type(value)
    if kind is int:
        return int(value)
    if not is_number(value):
        return None
    if not math.isfinite(value):
        return _floating(value, kind)
    return _floating(math.copysign(float(step(value)), value), kind)


def _round_half_up(value: float) -> int:
    whole = math.floor(value)
    return whole + 1 if value - whole >= 0.5 else whole


def multiply_duration(a: Value, b: Value) -> Duration | None:
    """A dayTimeDuration or yearMonthDuration times a number, in either order; None for everything else."""
    if isinstance(b, Duration):
        a, b = b, a
    if not isinstance(a, Duration):
        return None
    factor = exactly(b)
    return None if factor is None else scaled(a, factor)


def divide_duration(a: Value, b: Value) -> Duration | Decimal | None:
    """A duration by a number, or by one of its own datatype: then a decimal. None for everything else."""
    if not isinstance(a, Duration):
        return None
    if isinstance(b, Duration):
        if a.datatype != b.datatype or a.datatype not in (DAY_TIME, YEAR_MONTH):
            return None
        left, right = (a.ticks, b.ticks) if a.datatype == DAY_TIME else (a.months, b.months)
        return None if right == 0 else decimal(Fraction(left, right))
    divisor = exactly(b)
    if divisor == 0:
        return None
    if divisor is None:
        infinite = isinstance(b, float) and b == b
        return scaled(a, Fraction(0)) if infinite else None
    return scaled(a, 1 / divisor)


def scaled(value: Duration, factor: Fraction) -> Duration | None:
    """A duration times a fraction: cut after 18 digits of a second; months to the nearest, a half upwards."""
    if value.datatype == DAY_TIME:
        return duration(0, int(value.ticks * factor), DAY_TIME)
    if value.datatype == YEAR_MONTH:
        return duration(_nearest(value.months * factor), 0, YEAR_MONTH)
    return None


def of_seconds(number: Value) -> Duration | None:
    """A number of seconds as a dayTimeDuration."""
    exact = exactly(number)
    return None if exact is None else duration(0, int(exact * TICKS), DAY_TIME)


def seconds_between(later: DateTime, earlier: DateTime) -> Decimal | None:
    """The exact number of seconds; None if one has a zone and the other none."""
    if later.zoned != earlier.zoned:
        return None
    return EXACT.scaleb(Decimal(later.ticks - earlier.ticks), -18)


def exactly(value: Value) -> Fraction | None:
    """A finite number; a double or float is what its shortest decimal digits say."""
    if isinstance(value, float):
        return Fraction(literal_parts(encode(value))[0]) if isfinite(value) else None
    return Fraction(value) if is_number(value) else None  # type: ignore[arg-type]  # a number


def in_seconds(value: Value) -> Decimal | None:
    """How long a duration without months is; None for everything else."""
    return value.seconds if isinstance(value, Duration) and value.months == 0 else None


def durations_equal(a: Duration, b: Duration) -> bool:
    return a.months == b.months and a.ticks == b.ticks


def duration_less(a: Duration, b: Duration) -> bool | None:
    """Whether `a` is shorter; None where that depends on the months meant."""
    if a.months == b.months:
        return a.ticks < b.ticks
    found = {x < y for x, y in zip(a.ends, b.ends, strict=True)}
    return found.pop() if len(found) == 1 else None


def duration_at_most(a: Duration, b: Duration) -> bool | None:
    """Whether `a` is not longer; None where that depends on the months meant."""
    if a.months == b.months:
        return a.ticks <= b.ticks
    found = {x <= y for x, y in zip(a.ends, b.ends, strict=True)}
    return found.pop() if len(found) == 1 else None


def part(value: Duration, name: str) -> int | Decimal:
    """DAYS, HOURS, MINUTES or SECONDS of what is no months, with the sign of the duration."""
    whole = abs(value.ticks)
    found: Any = {
        "DAYS": whole // (86_400 * TICKS),
        "HOURS": whole // (3_600 * TICKS) % 24,
        "MINUTES": whole // (60 * TICKS) % 60,
        "SECONDS": EXACT.scaleb(Decimal(whole % (60 * TICKS)), -18),
    }[name]
    return -found if value.ticks < 0 and found else found  # type: ignore[no-any-return]  # int or Decimal


def _nearest(value: Fraction) -> int:
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def decimal(value: Fraction) -> Decimal:
    """A fraction as an xsd:decimal, cut after 18 digits."""
    return EXACT.scaleb(Decimal(int(value * TICKS)), -18)


Truth = bool | None


def effective(value: Value | None) -> Truth:
    """The effective boolean value (sec. 17.2.2) of booleans, numbers, plain strings; else None."""
    kind = type(value)
    if kind is bool:
        return value  # type: ignore[return-value]  # a bool
    if kind is str:
        return value != ""
    if is_number(value):
        return value != 0 and value == value
    return None


_EQUAL_OTHERWISE = frozenset({Opaque, DateTime, Duration})


def equal(a: Value, b: Value) -> Truth:
    """`a = b`."""
    left, right = type(a), type(b)
    if left is right and left not in _EQUAL_OTHERWISE:
        return a == b
    if left is Resource or right is Resource:
        return False
    if left is Opaque or right is Opaque:
        return a == b or truth_of(ask("?a = ?b", encode(a), encode(b)))
    if left is Duration and right is Duration:
        return durations_equal(a, b)  # type: ignore[arg-type]  # durations
    if left is DateTime and right is DateTime:
        assert isinstance(a, DateTime)
        assert isinstance(b, DateTime)
        return a.ticks == b.ticks and a.zoned == b.zoned
    pair = promoted(a, b)
    return pair[0] == pair[1] if pair is not None else False


_PLAINLY_ORDERED = frozenset({int, str, Decimal})


def less(a: Value, b: Value) -> Truth:
    """`a < b`; `b > a` is the same."""
    left, right = type(a), type(b)
    if left is right and left in _PLAINLY_ORDERED:
        return a < b  # type: ignore[operator]  # of one ordered type
    pair = promoted(a, b)
    if pair is not None:
        x, y, _ = pair
        if x == x and y == y:
            return bool(x < y)
        return False if x != x and y != y and left is right else None
    if left is DateTime and right is DateTime:
        assert isinstance(a, DateTime)
        assert isinstance(b, DateTime)
        if a.zoned == b.zoned:
            return a.ticks < b.ticks
    if left is Duration and right is Duration:
        return duration_less(a, b)  # type: ignore[arg-type]  # durations
    return _compared("?a < ?b", a, b, False)


def at_most(a: Value, b: Value) -> Truth:
    """`a <= b`; `b >= a` is the same."""
    left, right = type(a), type(b)
    if left is right and left in _PLAINLY_ORDERED:
        return a <= b  # type: ignore[operator]  # of one ordered type
    pair = promoted(a, b)
    if pair is not None:
        x, y, _ = pair
        if x == x and y == y:
            return bool(x <= y)
        return True if x != x and y != y and left is right else None
    if left is DateTime and right is DateTime:
        assert isinstance(a, DateTime)
        assert isinstance(b, DateTime)
        if a.zoned == b.zoned:
            return a.ticks <= b.ticks
    if left is Duration and right is Duration:
        return duration_at_most(a, b)  # type: ignore[arg-type]  # durations
    return _compared("?a <= ?b", a, b, True)


def _compared(question: str, a: Value, b: Value, same: bool) -> Truth:
    """The order of dates and of what has none; `same`: the answer for equal terms."""
    if type(a) is type(b) and a == b:
        return same
    if type(a) in _ORDERED_ELSEWHERE and type(b) in _ORDERED_ELSEWHERE:
        return truth_of(ask(question, encode(a), encode(b)))
    return None


_ORDERED_ELSEWHERE = frozenset({DateTime, Opaque, LanguageString})
_TEMPORAL = frozenset({DateTime, Duration, Opaque})
_DATED = frozenset({DateTime, Duration, Opaque, int, Decimal, float, Single})


def add(a: Value, b: Value) -> Value | None:
    """`a + b`, also of dates and durations, in either order.

    (The full engine adds a duration to a dateTime but not a dateTime to a duration, and first sorts operands
    by the names of variables.)
    """
    result: Value | None = add_values(a, b)
    if result is None:
        result = _dated("?a + ?b", a, b)
    return _dated("?a + ?b", b, a) if result is None else result


def subtract(a: Value, b: Value) -> Value | None:
    """`a - b`, also of dates and durations."""
    result = subtract_values(a, b)
    return result if result is not None else _dated("?a - ?b", a, b)


def multiply(a: Value, b: Value) -> Value | None:
    """`a * b`, also of a duration and a number."""
    result: Value | None = multiply_values(a, b)
    return multiply_duration(a, b) if result is None else result


def divide(a: Value, b: Value) -> Value | None:
    """`a / b`, also of a duration by a number or a duration."""
    result: Value | None = divide_values(a, b)
    return divide_duration(a, b) if result is None else result


def negate(value: Value) -> Value | None:
    """`-value`, also of durations."""
    result = negate_value(value)
    if result is None and isinstance(value, (Duration, Opaque)):
        return value_of(ask("-(?a)", value.term))
    return result


def plus(value: Value) -> Value | None:
    """`+value`: the value itself if it is a number or a duration."""
    if is_number(value):
        return value
    return value_of(ask("+(?a)", value.term)) if isinstance(value, (Duration, Opaque)) else None


def _dated(expression: str, a: Value, b: Value) -> Value | None:
    left, right = type(a), type(b)
    if (left in _TEMPORAL or right in _TEMPORAL) and left in _DATED and right in _DATED:
        return value_of(ask(expression, encode(a), encode(b)))
    return None


def truth_of(term: Term | None) -> Truth:
    return True if term == TRUE else False if term == FALSE else None


def value_of(term: Term | None) -> Value | None:
    return None if term is None else decode(term)


def _not_equal(a: Value, b: Value) -> Truth:
    same = equal(a, b)
    return None if same is None else not same


COMPARISONS: dict[str, Callable[[Value, Value], Truth]] = {
    "=": equal,
    "!=": _not_equal,
    "<": less,
    ">": lambda a, b: less(b, a),
    "<=": at_most,
    ">=": lambda a, b: at_most(b, a),
}
ARITHMETIC: dict[str, Callable[..., Value | None]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "u-": negate,
    "u+": plus,
}


_TIMES = frozenset((DateTime, Opaque))
"""What can be a time: of the others (dates, times of day) the datatype says which."""


def add_times(a: Value, b: Value) -> Value | None:
    """`a + b`: numbers, durations, a time and a duration or a number of seconds, in either order."""
    if type(b) in _TIMES and type(a) not in _TIMES:
        a, b = b, a
    return add(a, _as_duration(b) if type(a) in _TIMES else b)


def subtract_times(a: Value, b: Value) -> Value | None:
    """`a - b`: the same; of two times of one datatype the seconds between them."""
    if type(a) is DateTime and type(b) is DateTime:
        return seconds_between(a, b)
    if type(a) not in _TIMES:
        return subtract(a, b)
    found = subtract(a, _as_duration(b))
    return found.seconds if type(b) in _TIMES and isinstance(found, Duration) else found


def times_equal(a: Value, b: Value) -> Truth:
    """`a = b`."""
    return equal(*_in_seconds(a, b))


def time_less(a: Value, b: Value) -> Truth:
    """`a < b`."""
    return less(*_in_seconds(a, b))


def time_at_most(a: Value, b: Value) -> Truth:
    """`a <= b`."""
    return at_most(*_in_seconds(a, b))


def _as_duration(value: Value) -> Value:
    """A number as a dayTimeDuration of so many seconds; what cannot be one, and all else, as it is."""
    return (of_seconds(value) or value) if is_number(value) else value


def _in_seconds(a: Value, b: Value) -> tuple[Value, Value]:
    """Two operands; a dayTimeDuration beside a number as its seconds."""
    if isinstance(a, Duration) and a.datatype == DAY_TIME and is_number(b):
        return a.seconds, b
    if isinstance(b, Duration) and b.datatype == DAY_TIME and is_number(a):
        return a, b.seconds
    return a, b


def _times_not_equal(a: Value, b: Value) -> Truth:
    same = times_equal(a, b)
    return None if same is None else not same


TIME_COMPARISONS: dict[str, Callable[[Value, Value], Truth]] = {
    "=": times_equal,
    "!=": _times_not_equal,
    "<": time_less,
    ">": lambda a, b: time_less(b, a),
    "<=": time_at_most,
    ">=": lambda a, b: time_at_most(b, a),
}
TIME_ARITHMETIC: dict[str, Callable[..., Value | None]] = {**ARITHMETIC, "+": add_times, "-": subtract_times}


class IntegerTimes(Struct, frozen=True):
    """Arithmetic of `X.time` where it is an integer that counts `unit` microseconds."""

    unit: int

    def between(self, later: Value, earlier: Value) -> Value | None:
        """The seconds between two times."""
        a, b = exactly(later), exactly(earlier)
        return None if a is None or b is None else decimal((a - b) * self.unit / 1_000_000)

    def later(self, time: Value, by: Value) -> Value | None:
        """A time and so many seconds, or a duration without months; in either order."""
        return self._moved(by, time, 1) if isinstance(time, Duration) else self._moved(time, by, 1)

    def earlier(self, time: Value, by: Value) -> Value | None:
        """A time less so many seconds, or a duration without months."""
        return self._moved(time, by, -1)

    def _moved(self, time: Value, by: Value, sign: int) -> Value | None:
        start = exactly(time)
        length = in_seconds(by) if isinstance(by, Duration) else by
        seconds = None if length is None else exactly(length)
        if start is None or seconds is None:
            return None
        moved = start + sign * seconds * 1_000_000 / self.unit
        return int(moved) if moved.denominator == 1 else decimal(moved)

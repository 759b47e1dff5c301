"""Numbers read literally from a literal's text, computed exactly, written as text.

Place:   literal readings: `--verify`, the checker of proofs, tests. The full engine calls these functions for
         every operator on numbers (extract/called_operators.py), since its own integers end at 64 bits;
         `literally` gives rules in a literal reading (reference/) these operators instead of the evaluator's.
Method:  language.md: an integer is an int, a decimal an int of 10⁻¹⁸, both exact; a double or float is a
         Python float. Nothing is shared with the engines: no decoding, arithmetic, sums or order. An operator
         whose arguments are all numbers is computed here, over their text; any other is None here and falls
         to the caller's operator, in `literally` the evaluator's own.
Why not: a faster version: this file is what is read against the contract when the evaluator is in doubt.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from dotr.budget import DIGITS, Overlong
from dotr.expressions.aggregates import summarise
from dotr.expressions.evaluate import Operators
from dotr.expressions.functions import Signature
from dotr.expressions.literal_calendars import CALENDARS
from dotr.expressions.literal_geometry import GEOMETRY
from dotr.expressions.mathematics import MATH
from dotr.expressions.operators import Truth, effective
from dotr.rdf.terms import XSD, Memo, Term, canonical, double_text, literal, literal_parts
from dotr.rdf.values import TermKey, Value, decode, encode, term_key

INTEGER, DECIMAL, FLOAT, DOUBLE = "integer", "decimal", "float", "double"
_RANKS: Final = {INTEGER: 0, DECIMAL: 1, FLOAT: 2, DOUBLE: 3}
_ONE: Final = 10**18
"""A decimal's 1."""
_PATTERNS: Final = {
    INTEGER: re.compile(r"[+-]?[0-9]+"),
    DECIMAL: re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"),
    DOUBLE: re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|INF)|NaN"),
}
_PATTERNS[FLOAT] = _PATTERNS[DOUBLE]


class Number(NamedTuple):
    """`value`: of an integer itself, of a decimal in 10⁻¹⁸, of the others a float."""

    kind: str
    value: Any

    @property
    def exact(self) -> Fraction | float:
        """Its value; a float only for INF, -INF and NaN."""
        if self.kind == DECIMAL:
            return Fraction(self.value, _ONE)
        return (
            self.value
            if isinstance(self.value, float) and not math.isfinite(self.value)
            else Fraction(self.value)
        )


def read(term: Term) -> Number | None:
    """The number of a canonical term; None of every other term."""
    head, mark, tail = term.rpartition(f'"^^<{XSD}')
    kind = tail[:-1]
    return read_text(head[1:], kind) if mark and kind in _RANKS else None


def read_text(text: str, kind: str) -> Number | None:
    """The number that a string is in the lexical space of a datatype. Raises Overlong."""
    if not _PATTERNS[kind].fullmatch(text):
        return None
    if kind in (DOUBLE, FLOAT):
        value = float(text.replace("INF", "inf"))
        return Number(kind, value if kind == DOUBLE else _single(value))
    sign = -1 if text[0] == "-" else 1
    whole, _, fraction = text.lstrip("+-").partition(".")
    if len(whole := whole.lstrip("0")) > DIGITS:
        raise Overlong
    if kind == INTEGER:
        return Number(kind, sign * int(whole or "0"))
    return Number(kind, sign * (int(whole or "0") * _ONE + int(fraction[:18].ljust(18, "0"))))


def write(number: Number) -> Term:
    """Its canonical term. Raises Overlong."""
    kind, value = number
    if kind == DOUBLE:
        return f'"{double_text(value)}"^^<{XSD}double>'
    if kind == FLOAT:
        return canonical(f'"{double_text(value)}"^^<{XSD}float>')
    if abs(value) // (_ONE if kind == DECIMAL else 1) >= 10**DIGITS:
        raise Overlong
    if kind == INTEGER:
        return f'"{value}"^^<{XSD}integer>'
    whole, rest = divmod(abs(value), _ONE)
    fraction = f".{rest:018}".rstrip("0") if rest else ""
    return f'"{"-" if value < 0 else ""}{whole}{fraction}"^^<{XSD}decimal>'


# -- promotion ---------------------------------------------------------------------------------------


def as_double(number: Number) -> float:
    """The nearest double of an integer; a decimal is its digits over a power of ten, as in the full engine,
    where that has it.
    """
    kind, value = number
    if kind in (DOUBLE, FLOAT):
        return float(value)
    if kind == INTEGER:
        return _nearest(value, 1)
    if not -(2**127) <= value < 2**127:
        return _nearest(value, _ONE)
    places = 18
    while places and value % 10 == 0:
        value, places = value // 10, places - 1
    return float(value) / float(10**places)


def _nearest(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def _promoted(a: Number, b: Number) -> tuple[str, Any, Any]:
    """The wider kind of both, and their values in it."""
    kind = a.kind if _RANKS[a.kind] >= _RANKS[b.kind] else b.kind
    return kind, _value_as(kind, a), _value_as(kind, b)


def _value_as(kind: str, number: Number) -> Any:
    if number.kind == kind:
        return number.value
    if kind == DECIMAL:
        return number.value * _ONE
    return as_double(number) if kind == DOUBLE else _single(as_double(number))


# -- operators ---------------------------------------------------------------------------------------


def add(a: Number, b: Number) -> Number:
    kind, x, y = _promoted(a, b)
    return _made(kind, x + y)


def subtract(a: Number, b: Number) -> Number:
    kind, x, y = _promoted(a, b)
    return _made(kind, x - y)


def multiply(a: Number, b: Number) -> Number:
    kind, x, y = _promoted(a, b)
    return _made(kind, _cut(x * y, _ONE) if kind == DECIMAL else x * y)


def divide(a: Number, b: Number) -> Number | None:
    kind, x, y = _promoted(a, b)
    if kind in (INTEGER, DECIMAL):
        return None if y == 0 else _made(DECIMAL, _cut(x * _ONE, y))
    if y == 0:
        positive = math.copysign(1.0, x) == math.copysign(1.0, y)
        return _made(kind, math.nan if x == 0 or x != x else math.inf if positive else -math.inf)
    return _made(kind, x / y)


def _cut(numerator: int, denominator: int) -> int:
    """A quotient cut towards zero."""
    whole = abs(numerator) // abs(denominator)
    return whole if (numerator < 0) == (denominator < 0) else -whole


def _single(value: float) -> float:
    """A double as a 32-bit float; what is too large is infinite."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _made(kind: str, value: Any) -> Number:
    if kind == FLOAT:
        return Number(kind, _single(value))
    if kind != DOUBLE and abs(value) >= 10**DIGITS * (_ONE if kind == DECIMAL else 1):
        raise Overlong
    return Number(kind, value)


def negate(a: Number) -> Number:
    return Number(a.kind, -a.value)


def absolute(a: Number) -> Number:
    return Number(a.kind, abs(a.value))


def floor(a: Number) -> Number:
    return _rounded(a, 0)


def ceiling(a: Number) -> Number:
    """The negative of the floor of the negative."""
    return negate(_rounded(negate(a), 0))


def rounded(a: Number) -> Number:
    """To the nearest whole number, a half upwards."""
    return _rounded(a, 1)


def _rounded(a: Number, halves: int) -> Number:
    """The greatest whole number that is not more than the value and so many halves."""
    if a.kind == INTEGER or (a.kind != DECIMAL and not math.isfinite(a.value)):
        return a
    whole = math.floor(a.exact + Fraction(halves, 2))
    if a.kind == DECIMAL:
        return _made(DECIMAL, whole * _ONE)
    return Number(a.kind, math.copysign(float(whole), a.value))


def equal(a: Number, b: Number) -> bool:
    _, x, y = _promoted(a, b)
    return bool(x == y)


def less(a: Number, b: Number) -> bool | None:
    """None beside NaN; of NaN and NaN of one kind false, as of any value and itself in the full engine."""
    _, x, y = _promoted(a, b)
    if x != x or y != y:
        return False if x != x and y != y and a.kind == b.kind else None
    return bool(x < y)


def at_most(a: Number, b: Number) -> bool | None:
    smaller = less(b, a)
    return None if smaller is None else not smaller


def truth(a: Number) -> bool:
    """The effective boolean value."""
    return bool(a.value == a.value and a.value != 0)


# -- mathematics -------------------------------------------------------------------------------------


def _of_doubles(compute: Callable[..., float], *numbers: Number) -> Number | None:
    """As Python's `math` computes it; None outside the domain and past the greatest double."""
    try:
        return Number(DOUBLE, compute(*map(as_double, numbers)))
    except (ValueError, OverflowError):
        return None


MATHEMATICS: Final[dict[str, Callable[..., Number | None]]] = {
    **{
        f"<{MATH}{name}>": partial(_of_doubles, getattr(math, name))
        for name in (
            *("exp", "log", "log10", "pow", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
        )
    },
    f"<{MATH}pi>": lambda: Number(DOUBLE, math.pi),
    f"<{MATH}exp10>": lambda x: _of_doubles(math.pow, Number(INTEGER, 10), x),
}


# -- casts -------------------------------------------------------------------------------------------


def cast(kind: str, a: Number) -> Number | None:
    """As another kind of number; None where there is no such number."""
    if kind == a.kind:
        return a
    if kind in (DOUBLE, FLOAT):
        return Number(kind, _value_as(kind, a))
    if a.kind in (DOUBLE, FLOAT) and not math.isfinite(a.value):
        return None
    if kind == INTEGER:
        return Number(INTEGER, math.trunc(a.exact))
    if a.kind == INTEGER or a.value.is_integer():
        return Number(DECIMAL, int(a.value) * _ONE)
    return Number(DECIMAL, int(a.value * 1e18))  # as the full engine does


# -- aggregates and order ----------------------------------------------------------------------------


def order_key(term: Term | None) -> TermKey:
    """The place of a term in the canonical order: numbers by exact value, whatever their kind."""
    return _KEYS[term]


def row_key(row: Sequence[Term | None]) -> tuple[TermKey, ...]:
    """The place of a row among rows of the same width."""
    return tuple(map(order_key, row))


def _key(term: Term | None) -> TermKey:
    number = None if term is None else read(term)
    if term is None or number is None:
        return term_key(term)
    exact = number.exact
    return (3, 1, 0, term) if exact != exact else (3, 0, exact, term)


_KEYS: Final[Memo[Term | None, TermKey]] = Memo(_key)


def total(terms: Sequence[Term | None]) -> Term | None:
    """SUM: exact, of doubles rounded once; None if one is not a number."""
    return _summed(terms, None)


def mean(terms: Sequence[Term | None]) -> Term | None:
    """AVG: the exact total over the count, a decimal cut after 18 digits or a double rounded once."""
    return _summed(terms, len(terms)) if terms else None


def _summed(terms: Sequence[Term | None], divisor: int | None) -> Term | None:
    numbers: list[Number] = []
    for term in terms:
        number = None if term is None else read(term)
        if number is None:
            return None
        numbers.append(number)
    kinds, count = {number.kind for number in numbers}, divisor or 1
    if kinds <= {INTEGER, DECIMAL}:
        units = sum(n.value * (_ONE if n.kind == INTEGER else 1) for n in numbers)
        if divisor is None and DECIMAL not in kinds:
            return write(Number(INTEGER, units // _ONE))
        return write(Number(DECIMAL, _cut(units, count)))
    doubles = [as_double(n) for n in numbers]
    odd = {d for d in doubles if math.isinf(d)}
    if any(d != d for d in doubles) or len(odd) == 2:
        return write(Number(DOUBLE if kinds != {FLOAT} else FLOAT, math.nan))
    if kinds == {FLOAT}:
        return write(
            Number(FLOAT, odd.pop() if odd else _nearest_float(sum(map(Fraction, doubles)) / Fraction(count)))
        )
    if odd:
        return write(Number(DOUBLE, odd.pop()))
    exact = sum(map(Fraction, doubles)) / Fraction(count)
    return write(Number(DOUBLE, _nearest(exact.numerator, exact.denominator)))


def _nearest_float(exact: Fraction) -> float:
    """The nearest 32-bit float, of two equally near ones the even: that of the nearest double or its
    neighbour.
    """
    near = _single(_nearest(exact.numerator, exact.denominator))
    (bits,) = struct.unpack("<I", struct.pack("<f", abs(near)))
    around = [n for n in (bits - 1, bits, bits + 1) if 0 <= n <= _INFINITE]
    best = min(around, key=lambda n: (abs(_of_bits(n) - abs(exact)), n & 1))
    return math.copysign(struct.unpack("<f", struct.pack("<I", best))[0], near)


_INFINITE: Final = 0x7F80_0000


def _of_bits(bits: int) -> Fraction:
    """The value of a positive float; of INF what the next float would be."""
    if bits == _INFINITE:
        return Fraction(2) ** 128
    return Fraction(struct.unpack("<f", struct.pack("<I", bits))[0])


def _numbers(terms: Sequence[Term | None]) -> list[Number] | None:
    found = [None if term is None else read(term) for term in terms]
    return None if None in found else [number for number in found if number is not None]


def spread(terms: Sequence[Term | None], *, less: int, root: bool) -> Term | None:
    """The mean square of the distances from the mean, over the count less `less`, or its root: a decimal cut
    after 18 digits or a double rounded once; None if one is not a number.
    """
    numbers = _numbers(terms)
    if numbers is None or len(numbers) <= less:
        return None
    kinds = {number.kind for number in numbers}
    exactly = kinds <= {INTEGER, DECIMAL}
    values: list[Any] = [number.exact if exactly else as_double(number) for number in numbers]
    kind = DECIMAL if exactly else FLOAT if kinds == {FLOAT} else DOUBLE
    if not all(map(math.isfinite, values) if not exactly else ()):
        return write(Number(kind, math.nan))
    mean_value = sum(map(Fraction, values)) / Fraction(len(values))
    variance = sum((Fraction(v) - mean_value) ** 2 for v in values) / Fraction(len(values) - less)
    if exactly:
        scaled = variance * _ONE * (_ONE if root else 1)
        whole = scaled.numerator // scaled.denominator
        return write(Number(DECIMAL, math.isqrt(whole) if root else whole))
    if root:
        return write(Number(kind, _near_root(variance, kind)))
    if kind == FLOAT:
        return write(Number(FLOAT, _nearest_float(variance)))
    return write(Number(DOUBLE, _nearest(variance.numerator, variance.denominator)))


def _near_root(square: Fraction, kind: str) -> float:
    """The double or float nearest to a square root, of two equally near ones the even."""
    with localcontext(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN):
        guess = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
        near = float(guess)
    if kind == FLOAT:
        near = _single(near)
        (bits,) = struct.unpack("<I", struct.pack("<f", near))
        around = [_of_bits(n) for n in (bits - 1, bits, bits + 1) if 0 <= n <= _INFINITE]
        made = [_float_of_bits(n) for n in (bits - 1, bits, bits + 1) if 0 <= n <= _INFINITE]
    else:
        if math.isinf(near):
            return near
        made = [n for n in (math.nextafter(near, 0), near, math.nextafter(near, math.inf)) if n < math.inf]
        around = [Fraction(n) for n in made]
    best = made[0]
    for place in range(1, len(around)):
        half = (around[place - 1] + around[place]) / 2
        if half * half < square or (half * half == square and _is_even(made[place], kind)):
            best = made[place]
    return best


def _float_of_bits(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def _is_even(value: float, kind: str) -> bool:
    return struct.pack("<f" if kind == FLOAT else "<d", value)[0] % 2 == 0


def percentile(share: Fraction, terms: Sequence[Term | None]) -> Term | None:
    """The value at a share of the ranks of the numbers, interpolated: a decimal cut after 18 digits or a
    double rounded once; None if one is not a number.
    """
    numbers = _numbers(terms)
    if not numbers:
        return None
    kinds = {number.kind for number in numbers}
    exactly = kinds <= {INTEGER, DECIMAL}
    kind = DECIMAL if exactly else FLOAT if kinds == {FLOAT} else DOUBLE
    values: list[Any] = [number.exact if exactly else as_double(number) + 0.0 for number in numbers]
    if any(value != value for value in values):
        return write(Number(kind, math.nan))
    values.sort()
    rank = share * (len(values) - 1)
    low, high = values[math.floor(rank)], values[math.ceil(rank)]
    if low == high:
        exact = low
    elif not exactly and (math.isinf(low) or math.isinf(high)):
        odd = math.nan if math.isinf(low) and math.isinf(high) else low if math.isinf(low) else high
        return write(Number(kind, odd))
    else:
        exact = Fraction(low) + (rank - math.floor(rank)) * (Fraction(high) - Fraction(low))
    if exactly:
        return write(Number(DECIMAL, _cut((exact * _ONE).numerator, (exact * _ONE).denominator)))
    if not isinstance(exact, Fraction) and math.isinf(exact):
        return write(Number(kind, exact))
    if kind == FLOAT:
        return write(Number(FLOAT, _nearest_float(Fraction(exact))))
    return write(Number(DOUBLE, _nearest(*Fraction(exact).as_integer_ratio())))


AGGREGATES: Final[dict[str, Callable[[Sequence[Term | None]], Term | None]]] = {
    "SUM": total,
    "AVG": mean,
    "MIN": lambda terms: min([t for t in terms if t is not None], key=order_key, default=None),
    "MAX": lambda terms: max([t for t in terms if t is not None], key=order_key, default=None),
    "STDDEV": partial(spread, less=1, root=True),
    "VARIANCE": partial(spread, less=1, root=False),
    "STDDEV_POP": partial(spread, less=0, root=True),
    "VAR_POP": partial(spread, less=0, root=False),
    "MEDIAN": partial(percentile, Fraction(1, 2)),
    "COLLECT": lambda terms: "[" + "\x1f".join(t for t in terms if t is not None) + "]",
}
"""Those whose value depends on numbers, and the list of all, whose form rdf/terms.py has."""


def summarised(
    function: str, distinct: bool, values: Iterable[Term | None], *, star: bool = False
) -> Term | None:
    """`summarise` of expressions/aggregates.py, literally."""
    taken = list(values)
    own = AGGREGATES.get(function)
    if function.startswith("PERCENTILE "):
        own = partial(percentile, Fraction(function.split()[1]))
    if star or own is None:
        return summarise(function, distinct, taken, star=star)
    if distinct:
        taken = list(dict.fromkeys(taken))
    lengths = [None if term is None else _length(term) for term in taken]
    if lengths and None not in lengths and function.split()[0] in _OF_LENGTHS:
        return _of_lengths(function, [length for length in lengths if length is not None])
    return own(taken)


# -- aggregates of durations -------------------------------------------------------------------------

_OF_LENGTHS: Final = ("SUM", "AVG", "MEDIAN", "PERCENTILE")
_DAY_TIME, _YEAR_MONTH = f"{XSD}dayTimeDuration", f"{XSD}yearMonthDuration"
_UNITS: Final = {
    _DAY_TIME: {"D": 86_400, "TH": 3_600, "TM": 60, "TS": 1},
    _YEAR_MONTH: {"Y": 12, "M": 1},
}
_PARTS: Final = {
    _DAY_TIME: re.compile(
        r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,18})?)S)?)?", re.ASCII
    ),
    _YEAR_MONTH: re.compile(r"(-?)P(?:(\d+)Y)?(?:(\d+)M)?", re.ASCII),
}


def _length(term: Term) -> tuple[str, Fraction] | None:
    """The datatype and the seconds or months of a well-typed dayTimeDuration or yearMonthDuration."""
    if term[0] != '"':
        return None
    text, datatype, _ = literal_parts(term)
    found = _PARTS[datatype].fullmatch(text) if datatype in _PARTS else None
    if found is None or text[-1] in "PT":
        return None
    amounts = (Fraction(part or 0) for part in found.groups()[1:])
    size = Fraction(sum(n * unit for n, unit in zip(amounts, _UNITS[datatype].values(), strict=True)))
    return (datatype, -size if found[1] else size) if size <= _MOST[datatype] else None


_MOST: Final = {_DAY_TIME: Fraction(2**127 - 1, _ONE), _YEAR_MONTH: Fraction(2**63 - 1)}


def _of_lengths(function: str, lengths: Sequence[tuple[str, Fraction]]) -> Term | None:
    """The sum, mean or rank of durations of one datatype: seconds cut after 18 digits, months rounded, a half
    upwards; None of several datatypes, and past the largest duration.
    """
    datatypes = {datatype for datatype, _ in lengths}
    if len(datatypes) > 1:
        return None
    (datatype,) = datatypes
    sizes = sorted(size for _, size in lengths)
    if function in ("SUM", "AVG"):
        found = sum(sizes) / Fraction(1 if function == "SUM" else len(sizes))
    else:
        share = Fraction(1, 2) if function == "MEDIAN" else Fraction(function.split()[1])
        rank = share * (len(sizes) - 1)
        low, high = sizes[math.floor(rank)], sizes[math.ceil(rank)]
        found = low + (rank - math.floor(rank)) * (high - low)
    if datatype == _YEAR_MONTH:
        whole = math.floor(found + Fraction(1, 2))
        text = f"P{abs(whole)}M"
    else:
        whole = math.trunc(found * _ONE)
        text = f"PT{abs(whole) // _ONE}.{abs(whole) % _ONE:018}S"
    if abs(whole) > _MOST[datatype] * (1 if datatype == _YEAR_MONTH else _ONE):
        return None
    return canonical(literal(f"-{text}" if whole < 0 else text, datatype))


# -- by name -----------------------------------------------------------------------------------------

TRUTH: Final = "truth"
"""The name of the effective boolean value."""

CASTS: Final = {f"<{XSD}{kind}>": kind for kind in _RANKS}

OPERATORS: Final[dict[str, Callable[..., Number | bool | None]]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "u-": negate,
    "u+": lambda a: a,
    "=": equal,
    "!=": lambda a, b: not equal(a, b),
    "<": less,
    ">": lambda a, b: less(b, a),
    "<=": at_most,
    ">=": lambda a, b: at_most(b, a),
    "ABS": absolute,
    "CEIL": ceiling,
    "FLOOR": floor,
    "ROUND": rounded,
    "ISNUMERIC": lambda a: True,
    TRUTH: truth,
    f"<{XSD}boolean>": truth,
    **{name: partial(cast, kind) for name, kind in CASTS.items()},
    **MATHEMATICS,
}
"""What takes numbers, by its name in `Call`."""


def operands(function: str, terms: Sequence[Term]) -> list[Number] | None:
    """The numbers of an operator's arguments, those of strings in an exact cast; None if one is none.

    Raises Overlong.
    """
    found: list[Number] = []
    for term in terms:
        number = read(term)
        if number is None and term[0] == term[-1] == '"' and CASTS.get(function) in (INTEGER, DECIMAL):
            number = read_text(literal_parts(term)[0], CASTS[function])
        if number is None:
            return None
        found.append(number)
    return found


_Function = Callable[..., Any]


def _literal(name: str, shared: _Function) -> _Function:
    own = OPERATORS[name]

    def apply(*values: Any) -> Any:
        numbers = operands(name, [encode(value) for value in values])
        if numbers is None:
            return shared(*values)
        found = own(*numbers)
        return found if found is None or isinstance(found, bool) else decode(write(found))

    return apply


def _all(table: Mapping[str, _Function]) -> dict[str, _Function]:
    return {name: _literal(name, shared) if name in OPERATORS else shared for name, shared in table.items()}


_OF_TEXT: Final = {**CALENDARS, **GEOMETRY}


def _signatures(table: Mapping[str, Signature]) -> dict[str, Signature]:
    return {
        name: replace(one, apply=_of_text(_OF_TEXT[name]))
        if name in _OF_TEXT
        else replace(one, apply=_literal(name, one.apply))
        if name in OPERATORS
        else one
        for name, one in table.items()
    }


def _of_text(own: Callable[..., Term | None]) -> _Function:
    def apply(*values: Any) -> Any:
        found = own(*map(encode, values))
        return None if found is None else decode(found)

    return apply


@lru_cache(maxsize=4)
def literally(shared: Operators) -> Operators:
    """The operators with numbers, calendars, geometries and calls of one's own functions literal."""
    from dotr.expressions.literal_functions import called_literally  # noqa: PLC0415  # it reads numbers here

    return Operators(
        arithmetic=_all(shared.arithmetic),
        comparisons=_all(shared.comparisons),
        functions=_signatures(shared.functions),
        casts=_all(shared.casts),
        effective=_effective,
        called=called_literally,
    )


def _effective(value: Value | None) -> Truth:
    return None if value is None else _of_numbers(value)


_of_numbers: Final[Callable[[Any], Truth]] = _literal(TRUTH, effective)

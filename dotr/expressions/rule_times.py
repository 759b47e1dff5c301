"""Times in ON, WHERE and WITH: differences are seconds, and seconds are added to times.

Place:   beside value_operators.py, whose operators hold everywhere else; evaluate.py takes one set or the
         other. Below: durations.py.
Method:  language.md, "Times and durations". The difference of two times is an xsd:decimal of seconds; a
         number added to a time, or taken from it, counts as seconds, as a dayTimeDuration does; a
         dayTimeDuration compares with a number as its seconds. All else is as in queries. Of a stream whose
         times are integers `X.time` is an integer of the stream's unit, which only the expression can tell
         from other integers: `compile_expression` calls `IntegerTimes` for it.
Why not: SPARQL's meaning in rules, too: a difference of integer times would then have another unit than one
         of dateTimes, and every comparison with it a datatype.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from dotr.expressions import durations
from dotr.expressions import value_operators as plain
from dotr.expressions.arithmetic import is_number
from dotr.expressions.value_operators import Truth
from dotr.rdf.values import DAY_TIME, DateTime, Duration, Opaque, Value

_TIMES = frozenset((DateTime, Opaque))
"""What can be a time: of the others (dates, times of day) the datatype says which."""


def add(a: Value, b: Value) -> Value | None:
    """`a + b`: numbers, durations, a time and a duration or a number of seconds, in either order."""
    if type(b) in _TIMES and type(a) not in _TIMES:
        a, b = b, a
    return plain.add(a, _as_duration(b) if type(a) in _TIMES else b)


def subtract(a: Value, b: Value) -> Value | None:
    """`a - b`: the same; of two times of one datatype the seconds between them."""
    if type(a) is DateTime and type(b) is DateTime:
        return durations.seconds_between(a, b)
    if type(a) not in _TIMES:
        return plain.subtract(a, b)
    found = plain.subtract(a, _as_duration(b))
    return found.seconds if type(b) in _TIMES and isinstance(found, Duration) else found


def equal(a: Value, b: Value) -> Truth:
    """`a = b`."""
    return plain.equal(*_in_seconds(a, b))


def less(a: Value, b: Value) -> Truth:
    """`a < b`."""
    return plain.less(*_in_seconds(a, b))


def at_most(a: Value, b: Value) -> Truth:
    """`a <= b`."""
    return plain.at_most(*_in_seconds(a, b))


def _as_duration(value: Value) -> Value:
    """A number as a dayTimeDuration of so many seconds; what cannot be one, and all else, as it is."""
    return (durations.of_seconds(value) or value) if is_number(value) else value


def _in_seconds(a: Value, b: Value) -> tuple[Value, Value]:
    """Two operands; a dayTimeDuration beside a number as its seconds."""
    if isinstance(a, Duration) and a.datatype == DAY_TIME and is_number(b):
        return a.seconds, b
    if isinstance(b, Duration) and b.datatype == DAY_TIME and is_number(a):
        return a, b.seconds
    return a, b


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
ARITHMETIC: dict[str, Callable[..., Value | None]] = {**plain.ARITHMETIC, "+": add, "-": subtract}


class IntegerTimes(Struct, frozen=True):
    """Arithmetic of `X.time` where it is an integer that counts `unit` microseconds."""

    unit: int

    def between(self, later: Value, earlier: Value) -> Value | None:
        """The seconds between two times."""
        a, b = durations.exactly(later), durations.exactly(earlier)
        return None if a is None or b is None else durations.decimal((a - b) * self.unit / 1_000_000)

    def later(self, time: Value, by: Value) -> Value | None:
        """A time and so many seconds, or a duration without months; in either order."""
        return self._moved(by, time, 1) if isinstance(time, Duration) else self._moved(time, by, 1)

    def earlier(self, time: Value, by: Value) -> Value | None:
        """A time less so many seconds, or a duration without months."""
        return self._moved(time, by, -1)

    def _moved(self, time: Value, by: Value, sign: int) -> Value | None:
        start = durations.exactly(time)
        length = durations.in_seconds(by) if isinstance(by, Duration) else by
        seconds = None if length is None else durations.exactly(length)
        if start is None or seconds is None:
            return None
        moved = start + sign * seconds * 1_000_000 / self.unit
        return int(moved) if moved.denominator == 1 else durations.decimal(moved)

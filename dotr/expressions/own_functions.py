"""Calls of functions of one's own: arguments as values of Python, and what they return as a value.

Place:   evaluate.py calls by `called`; literal_functions.py does so independently, for literal readings.
Method:  integers, decimals, doubles and floats, strings and booleans are int, Decimal, float, str, bool; a
         dateTime is a datetime (without tzinfo if it has no zone), a duration without months a timedelta,
         where Python's types can hold them exactly; everything else is a term of rdflib. What a function
         raises, and what it returns that is none of these, is an error of the expression, as is a blank node
         that no argument is. SystemExit is such an error, too: no function ends the process; others that are
         no Exception pass. Calls come in canonical order of the arguments, though rows come in the order of
         joins. Operators of queries have their rows first (`call_in_order`): each row asks for what it needs
         and stops there; then the calls are made. An operator that looks up another one row by row has all
         of these calls made before (`ahead` of operators.py). Inside a join, that of an EXISTS or of a
         Datalog rule, a row that needs a call is left out while calls are collected (`patient`), and the
         join is done again once they are made (`in_rounds`); there plans make calls after all patterns, so
         that no join order decides about them. Results are kept: a function is pure, so it is called once
         for each distinct tuple of arguments, unless more than KEPT others, or others of more than KEPT_TEXT
         characters, came since it was asked for last. Results that are kept cost the units of a call: work is
         the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone
from decimal import ROUND_DOWN, Context, Decimal
from functools import lru_cache
from threading import local
from typing import Any, Final, TypeVar

from dotr.budget import DIGITS, TEXT
from dotr.program.own_functions import OwnFunction
from dotr.rdf.rdflib_terms import is_rdflib, of_rdflib, rdflib_term
from dotr.rdf.terms import FRACTION, XSD_DATETIME, Term, canonical, literal
from dotr.rdf.values import (
    BEYOND,
    DAY_TIME,
    TICKS,
    YEAR_MONTH,
    DateTime,
    Duration,
    Value,
    decode,
    duration,
    encode,
    values_key,
)

KEPT: Final = 1 << 16
"""Results of a function after which those that were not asked for meanwhile are forgotten."""

KEPT_TEXT: Final = 1 << 24
"""Characters of arguments and results after which they are, too."""

_NOTHING: Final = object()


@lru_cache(maxsize=1 << 12)
def called(own: OwnFunction) -> Callable[..., Value | None]:
    """The function on values; None is an error."""
    results = _Results()

    def call(*values: Value) -> Value | None:
        terms = tuple(map(encode, values))
        found: Any = results.newer.get(terms, _NOTHING)
        if found is not _NOTHING:
            return found  # type: ignore[no-any-return]  # a value
        value = results.older.get(terms, _NOTHING)
        if value is _NOTHING:
            if _THREAD.wanted is not None:
                _THREAD.wanted[own.term, terms] = lambda: call(*values)
                raise _Wanted
            value = _computed(own, terms)
        results.keep(terms, value)
        return value  # type: ignore[no-any-return]  # a value

    return call


class _Wanted(Exception):  # noqa: N818  # no error: the row is evaluated again
    """A call whose result is not kept, while calls are collected."""


class _Thread(local):
    wanted: dict[tuple[str, tuple[Term, ...]], Callable[[], object]] | None = None
    """The calls that rows of this thread need, while they are collected."""
    missed: bool = False
    """Whether a row of a join was left out for a call."""
    all_rows: bool = False
    """Whether joins go over all rows, as if none passed."""
    settled: bool = False
    """Whether what is evaluated was evaluated just before, with all calls that it needs."""


_THREAD = _Thread()
Row = TypeVar("Row")


_Wants = dict[tuple[str, tuple[Term, ...]], Callable[[], object]]
"""Calls, by function and arguments."""


def patient(evaluate: Callable[[Any], Any], absent: Any) -> Callable[[Any], Any]:
    """A condition or value inside a join: `absent` for a row that needs a call, while calls are collected."""

    def run(row: Any) -> Any:
        try:
            found = evaluate(row)
        except _Wanted:
            _THREAD.missed = True
            return absent
        return absent if _THREAD.all_rows else found

    return run


def settled(evaluate: Callable[[], Row]) -> Row:
    """What `evaluate` returns, all of whose calls were made: nothing in it calls ahead again, which would
    take twice the time for each level.
    """
    before, _THREAD.settled = _THREAD.settled, True
    try:
        return evaluate()
    finally:
        _THREAD.settled = before


def is_settled() -> bool:
    """Whether `settled` evaluates."""
    return _THREAD.settled


def waits() -> bool:
    """Whether calls are waiting: what depends on everything that holds must wait, too."""
    return bool(_THREAD.wanted)


def in_rounds(attempt: Callable[[], Row], undo: Callable[[], None]) -> Row:
    """What `attempt` returns when all calls that its joins need are made, in canonical order of those that
    become known together. It is repeated, after `undo`, until it needs none. Costs an attempt for each round:
    one if it needs no call that is not kept.
    """
    if _THREAD.wanted is not None:  # part of another collection
        return attempt()
    asked: set[tuple[str, tuple[Term, ...]]] = set()
    while True:
        wanted: _Wants = {}
        _THREAD.wanted = wanted
        try:
            found = attempt()
        finally:
            _THREAD.wanted = None
        if not wanted:
            return found
        undo()
        _make(wanted)
        if asked.issuperset(wanted):  # too many to be kept
            return attempt()
        asked.update(wanted)


def _make(wanted: _Wants) -> None:
    for key in sorted(wanted, key=_canonical):
        wanted[key]()


def call_in_order(
    evaluate: Callable[[Row], object], rows: Iterable[Row], calls: int, *, all_rows: bool = False
) -> None:
    """Call what the evaluation of `rows` needs, once for each tuple of arguments, in canonical order of
    these; `calls`: how many calls are nested in one another at most. Afterwards the results are kept, so that
    rows can be evaluated in any order. Costs an evaluation of each row that needs a call not kept, for each
    of them. `all_rows`: joins inside an evaluation do not end at their first solution.
    """
    waiting = list(rows)
    if _THREAD.wanted is not None:  # the calls of an outer row, which waits for them
        if _missing(evaluate, waiting):
            raise _Wanted
        return
    for _ in range(calls):
        wanted: _Wants = {}
        _THREAD.wanted, _THREAD.all_rows = wanted, all_rows
        try:
            waiting = _missing(evaluate, waiting)
        finally:
            _THREAD.wanted, _THREAD.all_rows = None, False
        if not wanted:
            return
        _make(wanted)


def _missing(evaluate: Callable[[Row], object], rows: Iterable[Row]) -> list[Row]:
    """The rows that need a call, which is noted."""
    found: list[Row] = []
    for row in rows:
        _THREAD.missed = False
        try:
            evaluate(row)
        except _Wanted:
            found.append(row)
        else:
            if _THREAD.missed:
                found.append(row)
    return found


def _canonical(call: tuple[str, tuple[Term, ...]]) -> tuple[str, Any]:
    function, terms = call
    return function, values_key(terms)


class _Results:
    """Owns results of one function: those asked for since `newer` was begun, and those of the time before."""

    __slots__ = ("_characters", "newer", "older")

    def __init__(self) -> None:
        self.newer: dict[tuple[Term, ...], Any] = {}
        self.older: dict[tuple[Term, ...], Any] = {}
        self._characters = 0

    def keep(self, terms: tuple[Term, ...], value: Value | None) -> None:
        if len(self.newer) >= KEPT or self._characters > KEPT_TEXT:
            self.newer, self.older, self._characters = {}, self.newer, 0
        self.newer[terms] = value
        self._characters += sum(map(len, terms)) + (0 if value is None else len(encode(value)))


def _computed(own: OwnFunction, terms: tuple[Term, ...]) -> Value | None:
    arguments = [_argument(term) for term in terms]
    try:
        return _value(own.function(*arguments), terms)
    except (Exception, SystemExit):  # code of others: an error of the expression
        return None


_MICRO: Final = TICKS // 1_000_000
_EPOCH: Final = datetime(1970, 1, 1)  # local times are counted from it


def _argument(term: Term) -> Any:
    """A term as a value of Python."""
    value = decode(term)
    if isinstance(value, bool | str | int | Decimal):
        return value
    if isinstance(value, float):
        return float(value)  # of an xsd:float, too
    if isinstance(value, DateTime):
        return _datetime(value) or rdflib_term(term)
    if isinstance(value, Duration) and value.datatype != YEAR_MONTH:
        length = _timedelta(value)
        return rdflib_term(term) if length is None else length
    return rdflib_term(term)


def _datetime(value: DateTime) -> datetime | None:
    """The same time; None beyond the years or the microseconds of Python."""
    micros, rest = divmod(value.ticks, _MICRO)
    text = value.term[: value.term.index('"', 1)]
    offset = timedelta()
    if value.zoned and text[-1] != "Z":
        minutes = int(text[-5:-3]) * 60 + int(text[-2:])
        offset = timedelta(minutes=-minutes if text[-6] == "-" else minutes)
    if rest:
        return None
    try:
        local = _EPOCH + timedelta(microseconds=micros) if not offset else _moved(micros, offset)
    except OverflowError:
        return None
    return local.replace(tzinfo=timezone(offset) if offset else UTC) if value.zoned else local


def _moved(micros: int, offset: timedelta) -> datetime:
    return _EPOCH + timedelta(microseconds=micros + offset // timedelta(microseconds=1))


def _timedelta(value: Duration) -> timedelta | None:
    micros, rest = divmod(value.ticks, _MICRO)
    if value.months or rest:
        return None
    try:
        return timedelta(microseconds=micros)
    except OverflowError:
        return None


_DOWN: Final = Context(
    prec=2 * (DIGITS + 2 * FRACTION), rounding=ROUND_DOWN, Emin=-4 * DIGITS, Emax=4 * DIGITS, traps=[]
)


def _value(found: Any, terms: tuple[Term, ...]) -> Value | None:
    """What a function returned, as a value; None if it is none. Raises anything that its methods raise."""
    if found is True or found is False:
        return bool(found)
    if is_rdflib(found):
        return _of_term(of_rdflib(found), terms)
    if isinstance(found, str):
        text = str.__str__(found)
        text.encode()  # no half of a surrogate pair
        return text if len(text) <= TEXT else None
    if isinstance(found, int):
        whole = int.__int__(found)
        return whole if -BEYOND < whole < BEYOND else None
    if isinstance(found, float):
        return float.__float__(found)
    if isinstance(found, Decimal):
        return _decimal(found)
    if isinstance(found, datetime):
        return _of_datetime(found)
    if isinstance(found, timedelta):
        micros = (found.days * 86_400 + found.seconds) * 1_000_000 + found.microseconds
        return duration(0, micros * _MICRO, DAY_TIME)
    return None


def _of_term(term: Term, terms: tuple[Term, ...]) -> Value | None:
    term.encode()
    if len(term) > TEXT or (term[0] == "_" and term not in terms):
        return None
    return decode(term)


def _decimal(found: Decimal) -> Decimal | None:
    """Cut after 18 digits."""
    if not found.is_finite() or (found and found.adjusted() >= DIGITS):
        return None
    if not found or found.adjusted() < -FRACTION:
        return Decimal(0)
    return _DOWN.scaleb(Decimal(int(_DOWN.scaleb(found, FRACTION))), -FRACTION)


def _of_datetime(found: datetime) -> Value | None:
    """A dateTime with the offset of its zone, if that is one of whole minutes up to 14 hours; else in UTC."""
    offset = found.utcoffset()
    if offset is not None and (offset % timedelta(minutes=1) or abs(offset) > timedelta(hours=14)):
        found, offset = found.astimezone(UTC), timedelta()
    text = (
        f"{found.year:04}-{found.month:02}-{found.day:02}T{found.hour:02}:{found.minute:02}:{found.second:02}"
    )
    if found.microsecond:
        text += f".{found.microsecond:06}".rstrip("0")
    if offset is not None:
        minutes = offset // timedelta(minutes=1)
        sign = "-" if minutes < 0 else "+"
        text += f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}" if minutes else "Z"
    value = decode(canonical(literal(text, XSD_DATETIME)))
    return value if isinstance(value, DateTime) else None

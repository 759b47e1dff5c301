"""Composite events as tables of pandas, Arrow and polars: a row an event.

Place:   python_events.py (`Events.to_frame`, `to_arrow`, `to_polars`); none of the three is imported before.
Method:  every table has the columns `time`, `rule`, `id`, then the WITH variables in order of their first
         event. pandas takes any values in a column; Arrow and polars have one type a column: the type that
         all values of it have, else their lexical forms as strings. No value is rounded to fit a type.
Bad input: D4205 polars is not installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from dotr.errors import EngineError
from dotr.io.arrow import pa
from dotr.rdf.rdflib_terms import rdflib_term
from dotr.rdf.terms import Term, is_list, members

if TYPE_CHECKING:
    import pandas
    import polars

    from dotr.io.python_events import Event

_FIRST: Final = ("time", "rule", "id")
_EXACT: Final = 2**53
"""Integers up to here are doubles without loss."""
_DIGITS: Final = 38
"""Digits of a decimal128."""


def frame_of(events: Iterable[Event]) -> pandas.DataFrame:
    """Events, of any run, as `Events.to_frame` gives them. Raises EngineError D4205."""
    _need("to_frame", "pandas")
    import pandas  # noqa: PLC0415  # a second of start-up that many runs do not need

    found = list(events)
    names = _names(found)
    rows = [
        [event.time, event.rule, event.id, *(_python(dict(event.composite.bindings).get(n)) for n in names)]
        for event in found
    ]
    return pandas.DataFrame(rows, columns=[*_FIRST, *names])


def arrow_of(events: Iterable[Event]) -> pa.Table:
    """Events, of any run, as `Events.to_arrow` gives them. Raises EngineError D4205."""
    _need("to_arrow", "pyarrow")
    found = list(events)
    names = _names(found)
    bindings = [dict(event.composite.bindings) for event in found]
    times = [event.time for event in found]
    integer = all(isinstance(time, int) for time in times)
    arrays = [
        pa.array(times, pa.int64() if integer else pa.timestamp("us", "UTC")),
        pa.array([event.rule for event in found], pa.string()),
        pa.array([event.id for event in found], pa.string()),
        *(_array([one.get(name) for one in bindings]) for name in names),
    ]
    return pa.table(arrays, names=[*_FIRST, *names])


def polars_of(events: Iterable[Event]) -> polars.DataFrame:
    """Events, of any run, as `Events.to_polars` gives them. Raises EngineError D4205."""
    _need("to_polars", "polars")
    import polars  # noqa: PLC0415  # where it is installed

    frame = polars.from_arrow(arrow_of(events))
    assert isinstance(frame, polars.DataFrame)
    return frame


def _need(what: str, package: str) -> None:
    if find_spec(package) is None:
        raise EngineError.of("D4205", f"{what} needs {package}", hint=f"pip install {package}")


def _names(events: Iterable[Event]) -> list[str]:
    """The WITH variables of all events, in order of their first event."""
    return list(dict.fromkeys(name for event in events for name, _ in event.composite.bindings))


def _array(terms: Sequence[Term | None]) -> pa.Array:
    """A column of one type. Values of several types become their lexical forms."""
    values = [_python(term) for term in terms]
    lists = any(isinstance(value, list) for value in values)
    if lists and not all(value is None or isinstance(value, list) for value in values):
        return pa.array([None if term is None else _text(term) for term in terms], pa.string())
    flat = [member for value in values if value is not None for member in value] if lists else values
    kind = _kind(flat)
    if kind is None:
        kind = pa.string()
        values = [None if term is None else _texts(term) for term in terms]
    elif pa.types.is_decimal(kind):
        values = [_decimals(value) for value in values]
    return pa.array(values, pa.list_(kind) if lists else kind)


def _kind(values: Iterable[Any]) -> pa.DataType | None:
    """The Arrow type that holds each of `values` (None aside) as it is; None if there is no such type."""
    there = [value for value in values if value is not None]
    kinds = {type(value) for value in there}
    if not kinds <= {int, float, Decimal}:
        if kinds == {datetime}:
            zoned = {value.tzinfo is not None for value in there}
            return None if len(zoned) > 1 else pa.timestamp("us", "UTC" if zoned == {True} else None)
        return {
            frozenset({bool}): pa.bool_(),
            frozenset({date}): pa.date32(),
            frozenset({str}): pa.string(),
        }.get(frozenset(kinds))
    if not kinds:
        return pa.string()
    if kinds == {int}:
        return pa.int64() if all(-(2**63) <= value < 2**63 for value in there) else None
    if Decimal not in kinds:
        fits = all(type(value) is float or abs(value) <= _EXACT for value in there)
        return pa.float64() if fits else None
    return None if float in kinds else _decimal(list(map(Decimal, there)))


def _decimals(value: Any) -> Any:
    """A number, None, or a list of these, with decimals for integers."""
    if isinstance(value, list):
        return [_decimals(member) for member in value]
    return None if value is None else Decimal(value)


def _decimal(values: Sequence[Decimal]) -> pa.DataType | None:
    """The decimal128 that holds each of `values`; None if 38 digits are too few."""
    scale = max(0, *(-int(value.as_tuple().exponent) for value in values))
    whole = max(1, *(value.adjusted() + 1 for value in values))
    return pa.decimal128(whole + scale, scale) if whole + scale <= _DIGITS else None


def _texts(term: Term) -> str | list[str]:
    """Lexical forms."""
    return [str(rdflib_term(member)) for member in members(term)] if is_list(term) else str(rdflib_term(term))


def _text(term: Term) -> str:
    """The lexical form of a term, those of a list with spaces between."""
    texts = _texts(term)
    return texts if isinstance(texts, str) else " ".join(texts)


def _python(term: Term | None) -> Any:
    if term is None:
        return None
    if is_list(term):
        return [_python(member) for member in members(term)]
    node = rdflib_term(term)
    value: object = node.toPython()  # type: ignore[attr-defined]  # every node of ours has it
    return str(value) if isinstance(value, str) else value

"""Composite events as columns of Arrow: Parquet files, and batches for Spark.

EventBatches      events as rows of `event_schema`: bindings are N-Triples, match and graph as in a JSON line
EventTableWriter  a Parquet file of such rows
TypedTableWriter  a Parquet file with a column of its own type for each WITH variable (`--schema typed`)

Method:  the text of a rule's cells is written by a generated function (events.py), columns are laid out
         here (decode/parquet.py). A typed column has the kind of its values: each distinct term is decoded
         once, and becomes a value only if that value gives the very term back. A column in which
         another kind comes is widened, and the file written again: to decimals from integers, else to
         N-Triples. The metadata of a column names its kind (`dotr.kind`), so that terms can be had again.
Why not: types by the program: what a query binds has whatever type the data have. One type for all numbers:
         `21` and `21.0` of doubles and decimals would be the same, and 2⁵³ + 1 another integer.
Cost:    a file is written again once for each kind that a column had not: seldom, and early.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from itertools import accumulate, chain
from typing import Any, Final, TypeAlias

from dotr.emit.events import Named
from dotr.emit.templates import RuleTemplate
from dotr.errors import DotrError
from dotr.events import Clock, Composite, Time
from dotr.io.arrow import pa, pc, pq
from dotr.io.decode.parquet import column, integers, texts
from dotr.io.events import Cells, TimeTexts, cell_writer, csv_columns, named
from dotr.io.time import TimeError, parse_datetime
from dotr.program import Rule
from dotr.rdf.terms import (
    XSD_BOOLEAN,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    XSD_STRING,
    Memo,
    Term,
    canonical_literal,
    escape,
    is_list,
    list_of,
    literal_parts,
    members,
)

TABLE_ROWS = 1 << 13
"""Events that are written together: a row group."""


def event_schema(clock: Clock) -> pa.Schema:
    """The columns of an event: time in the form of the input, terms of `bindings`, and of `lists`, as
    N-Triples. They do not depend on the rules, so the files of a feed whose rules change fit together.
    """
    return pa.schema(
        [
            ("time", time_type(clock)),
            ("rule", pa.string()),
            ("id", pa.string()),
            ("bindings", pa.map_(pa.string(), pa.string())),
            ("match", pa.string()),
            ("graph", pa.string()),
            ("lists", pa.map_(pa.string(), pa.list_(pa.string()))),
        ]
    )


def time_type(clock: Clock) -> Any:
    """The type of a column of times: integers, or timestamps."""
    return pa.int64() if clock.integer else pa.timestamp("us", tz="UTC")


def time_array(times: Sequence[Time], clock: Clock) -> Any:
    """A column of times, as the clock counts them."""
    unit = clock.unit if clock.integer else 1
    return integers(times if unit == 1 else [time // unit for time in times], time_type(clock))


class EventBatches:
    """Owns the functions that write the cells of rules."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._schema = event_schema(clock)
        self._cells: dict[RuleTemplate, Cells] = {}
        self._texts = TimeTexts(clock)

    def of(self, events: Sequence[Composite]) -> pa.RecordBatch:
        """Events as rows of `event_schema`. Integer times are in the clock's unit."""
        return self.of_named(named(events))

    def of_named(self, events: Sequence[Named]) -> pa.RecordBatch:
        """Likewise, of what events are made of."""
        written = self._cells
        cells = [(written.get(of) or self._written(of))(name, match) for of, name, match in events]
        counts, keys, values = [0], list[str](), list[Term]()
        listed: list[list[tuple[str, Term]]] = []
        for of, _, match in events:
            if of.lists:
                pairs = list(zip(of.variables, match[3], strict=True))
                plain = [pair for pair in pairs if not is_list(pair[1])]
                keys += [name for name, _ in plain]
                values += [term for _, term in plain]
                listed.append([pair for pair in pairs if is_list(pair[1])])
            else:
                keys += of.variables
                values += match[3]
                listed.append([])
            counts.append(len(keys))
        arrays = [
            time_array([match[1] for _, _, match in events], self._clock),
            texts([of.rule for of, _, _ in events]),
            texts([of.prefix + name for of, name, _ in events]),
            pa.MapArray.from_arrays(_offsets(counts), texts(keys), texts(values)),
            texts([match for match, _ in cells]),
            texts([graph for _, graph in cells]),
            _lists(listed),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _written(self, template: RuleTemplate) -> Cells:
        made = self._cells[template] = cell_writer(template, self._clock, self._texts)
        return made


def _offsets(counts: Sequence[int]) -> Any:
    """Where the values of rows begin, and where those of the last end."""
    return pa.Array.from_buffers(pa.int32(), len(counts), [None, pa.py_buffer(array("i", counts))])


def _lists(rows: Sequence[Sequence[tuple[str, Term]]]) -> Any:
    """A column of maps from variables to lists of terms."""
    pairs = list(chain.from_iterable(rows))
    terms = [members(term) for _, term in pairs]
    ends = list(accumulate(map(len, terms), initial=0))
    values = pa.ListArray.from_arrays(_offsets(ends), texts(list(chain.from_iterable(terms))))
    names = texts([name for name, _ in pairs])
    return pa.MapArray.from_arrays(_offsets(list(accumulate(map(len, rows), initial=0))), names, values)


class _TableWriter:
    """Owns events that wait to be written together."""

    def __init__(self) -> None:
        self._waiting: list[Named] = []

    def add(self, events: Sequence[Composite]) -> None:
        self._waiting += named(events)
        while len(self._waiting) >= TABLE_ROWS:
            rows, self._waiting = self._waiting[:TABLE_ROWS], self._waiting[TABLE_ROWS:]
            self._write(rows)

    def close(self) -> None:
        if self._waiting:
            self._write(self._waiting)
            self._waiting = []
        self._end()

    def _write(self, events: Sequence[Named]) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError


class EventTableWriter(_TableWriter):
    """Owns one Parquet file of events that is being written; `close` completes it. Raises OSError."""

    def __init__(self, path: str, clock: Clock) -> None:
        super().__init__()
        self._batches = EventBatches(clock)
        self._writer = pq.ParquetWriter(path, event_schema(clock), compression="zstd")

    def _write(self, events: Sequence[Named]) -> None:
        self._writer.write_batch(self._batches.of_named(events))

    def _end(self) -> None:
        self._writer.close()


# ------------------------------------------------------------------ typed columns

Kind: TypeAlias = str
"""What a column holds: a key of `kind_types`."""

_DIGITS, _PLACES = 20, 18
"""Digits before and after the point of a decimal that a column takes."""


@cache
def kind_types() -> Mapping[str, Any]:
    """Kind → the type of a column; "" of one without a value."""
    return {
        "": pa.string(),
        "iri": pa.string(),
        "string": pa.string(),
        "integer": pa.int64(),
        "decimal": pa.decimal128(_DIGITS + _PLACES, _PLACES),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "dateTime": pa.timestamp("us", tz="UTC"),
        "list": pa.list_(pa.string()),
        "term": pa.string(),
    }


_UTC = Clock(integer=False)


def _text(value: float) -> str:
    return {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(found := repr(value), found)


_READ: Final[dict[str, tuple[Kind, Callable[[str], Any]]]] = {
    XSD_STRING: ("string", str),
    XSD_INTEGER: ("integer", int),
    XSD_DECIMAL: ("decimal", Decimal),
    XSD_DOUBLE: ("double", float),
    XSD_BOOLEAN: ("boolean", lambda text: text == "true"),
    XSD_DATETIME: ("dateTime", parse_datetime),
}
_WRITTEN: Final[dict[Kind, Callable[[Any], Term]]] = {
    "iri": lambda value: f"<{value}>",
    "string": lambda value: f'"{escape(value)}"',
    "integer": lambda value: f'"{value}"^^<{XSD_INTEGER}>',
    "decimal": lambda value: canonical_literal(f'"{value:f}"^^<{XSD_DECIMAL}>'),
    "double": lambda value: canonical_literal(f'"{_text(value)}"^^<{XSD_DOUBLE}>'),
    "boolean": lambda value: f'"{"true" if value else "false"}"^^<{XSD_BOOLEAN}>',
    "dateTime": _UTC.term,
}


def decoded(term: Term) -> tuple[Kind, Any]:
    """The kind and value of a term, which the value alone gives again; else the term itself."""
    if term[0] == "<":
        return "iri", term[1:-1]
    if term[0] == "[":
        return "list", members(term)
    if term[0] == '"':
        lexical, datatype, language = literal_parts(term)
        kind, read = ("term", str) if language else _READ.get(datatype, ("term", str))
        try:
            value = read(lexical)
            if kind != "term" and _fits(kind, value) and _WRITTEN[kind](value) == term:
                return kind, value
        except (ValueError, ArithmeticError, TimeError, DotrError):
            pass  # it is ill-typed
    return "term", term


def _fits(kind: Kind, value: Any) -> bool:
    if kind == "integer":
        return bool(-(2**63) <= value < 2**63)
    if kind == "decimal":
        return bool(value.adjusted() < _DIGITS and value.as_tuple().exponent >= -_PLACES)
    return True


def joined_kinds(one: Kind, other: Kind) -> Kind:
    """The kind of a column with values of both."""
    if one == other or not other:
        return one
    if not one:
        return other
    return "decimal" if {one, other} == {"integer", "decimal"} else "term"


class TypedTableWriter(_TableWriter):
    """Owns one Parquet file of events: time, rule, id, and a column for each variable of WITH, as in CSV.
    Raises OSError.
    """

    def __init__(self, path: str, clock: Clock, rules: Iterable[Rule]) -> None:
        super().__init__()
        self._path, self._clock = path, clock
        public = [rule for rule in rules if not rule.private]
        self._names = csv_columns(public)[3:]
        places = {name.removeprefix("?"): at for at, name in enumerate(self._names)}
        self._places: Memo[tuple[str, ...], list[int]] = Memo(lambda names: [places[name] for name in names])
        self._kinds: list[Kind] = [""] * len(self._names)
        self._values: Memo[Term, tuple[Kind, Any]] = Memo(decoded)
        self._open()

    def _open(self) -> None:
        own = [("time", time_type(self._clock)), ("rule", pa.string()), ("id", pa.string())]
        columns = [
            pa.field(name, kind_types()[kind], metadata={"dotr.kind": kind} if kind else None)
            for name, kind in zip(self._names, self._kinds, strict=True)
        ]
        self._schema = pa.schema([*own, *columns])
        self._writer = pq.ParquetWriter(self._path, self._schema, compression="zstd")
        self._groups = 0

    def _write(self, events: Sequence[Named]) -> None:
        columns = self._columns(events)
        found = [self._of(cells) for cells in columns]
        kinds = [joined_kinds(kind, own) for kind, (own, _) in zip(self._kinds, found, strict=True)]
        if kinds != self._kinds:
            self._widen(kinds)
        arrays = [
            time_array([match[1] for _, _, match in events], self._clock),
            texts([of.rule for of, _, _ in events]),
            texts([of.prefix + name for of, name, _ in events]),
            *(
                kind_array(cells if kind == "term" != own else values, kind)
                for cells, (own, values), kind in zip(columns, found, kinds, strict=True)
            ),
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._groups += 1

    def _columns(self, events: Sequence[Named]) -> list[Sequence[Term | None]]:
        """The values of each variable."""
        columns: list[Sequence[Term | None]] = [[None] * len(events) for _ in self._names]
        if len({of.variables for of in {of for of, _, _ in events}}) == 1:  # most often
            places = self._places[events[0][0].variables]
            bound = [match[3] for _, _, match in events]
            for at, cells in zip(places, zip(*bound, strict=True), strict=True):
                columns[at] = cells
            return columns
        for row, (of, _, match) in enumerate(events):
            for at, term in zip(self._places[of.variables], match[3], strict=True):
                columns[at][row] = term  # type: ignore[index]  # a list
        return columns

    def _of(self, cells: Sequence[Term | None]) -> tuple[Kind, list[Any]]:
        """(kind, values) of a column; the values of different kinds are those of `cells`."""
        distinct = {term: self._values[term] for term in set(cells) if term is not None}
        kind = ""
        for found, _ in distinct.values():
            kind = joined_kinds(kind, found)
        if kind == "term":
            return kind, list(cells)
        values: dict[Term | None, Any] = {term: value for term, (_, value) in distinct.items()}
        return kind, list(map((values | {None: None}).__getitem__, cells))

    def _widen(self, kinds: list[Kind]) -> None:
        """Write the file again with other kinds of columns."""
        self._writer.close()
        before, groups, self._kinds = self._kinds, self._groups, kinds
        narrow = f"{self._path}~"
        os.replace(self._path, narrow)
        self._open()
        file = pq.ParquetFile(narrow)
        for group in range(groups):
            table = file.read_row_group(group)
            arrays = [column.combine_chunks() for column in table.columns[:3]]
            for one, old, new in zip(table.columns[3:], before, kinds, strict=True):
                arrays.append(_widened(one.combine_chunks(), old, new))
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._groups = groups
        file.close()
        os.remove(narrow)

    def _end(self) -> None:
        self._writer.close()


def kind_array(values: Sequence[Any], kind: Kind) -> Any:
    """A column of one kind. (`pa.array` would load pandas.)"""
    if kind == "decimal":
        return texts([None if value is None else str(value) for value in values]).cast(kind_types()[kind])
    if kind == "boolean":
        return integers(values).cast(kind_types()[kind])
    if kind == "list":
        ends = list(accumulate((len(value or ()) for value in values), initial=0))
        found = pa.ListArray.from_arrays(
            _offsets(ends), texts(list(chain.from_iterable(filter(None, values))))
        )
        missing = integers([int(value is None) for value in values]).cast(pa.bool_())
        return pc.if_else(missing, pa.nulls(len(values), kind_types()[kind]), found)
    return column(values, kind_types()[kind])


def _widened(values: Any, old: Kind, new: Kind) -> Any:
    if old == new:
        return values
    if not old:
        return pa.nulls(len(values), kind_types()[new])
    if new == "decimal":
        return kind_array(values.to_pylist(), new)
    if old == "list":
        return texts([None if value is None else list_of(value) for value in values.to_pylist()])
    if old == "dateTime":
        values = values.cast(pa.int64())
    return texts([None if value is None else _WRITTEN[old](value) for value in values.to_pylist()])

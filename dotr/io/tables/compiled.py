"""Mappings as generated functions, row by row or column by column, without a parser.

CompiledMapping   the functions of one mapping: one call per row, or one for many rows
TermColumn        a column of cells to a column of terms, one for every place of a cell in a template

Place:   rows.py and the tables of Python programs call them.
Method:  a function is generated from the shape of the template: which cell goes into which term, which
         triples need which cells. Its source has only names and numbers of this module; every constant of the
         mapping comes through its namespace. A cell is converted through a bounded table of earlier
         conversions, so a value that repeats costs a look-up. Many rows are made together; where a cell of
         them is in error they are split until it is found.
         Columns: the cells of a column are joined by line ends and matched by one regular expression. A term
         is its content between two fixed strings, so joining by those strings makes all terms at once;
         characters that must be encoded are found in the joined text. A column of few values, and one with a
         cell not in its usual form, goes through the table of single cells, which decides what is an error.
Why not: interpreting the template for every row: it is the hot path of tables. A call per cell: 1 to 3 µs
         where values do not repeat; numpy or Arrow: their strings are as slow to make.
Bad input: D2402 a column that is not there · D2406 no time · CellError as in cells.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations_with_replacement
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msgspec import Struct

from dotr.codegen import execute
from dotr.errors import DataError
from dotr.events import GraphOrMessage, Message, Time
from dotr.extract.forms import Form, Place
from dotr.io.tables.cells import (
    PLAIN,
    UNRESERVED,
    UNRESERVED_CHARACTERS,
    CellError,
    DateTimes,
    RepeatedCellError,
    check_filters,
    checked,
    default_of,
    excerpt,
    in_iri,
    in_literal,
    instants_of,
    kind_of,
    lexical_space,
    text_filter,
    texts_filter,
    time_error,
    whole_iri,
)
from dotr.io.tables.mapping import (
    PARTS,
    BareSlot,
    Cell,
    IriSlot,
    LiteralSlot,
    Slot,
    TableMapping,
    TemplateTriple,
    wrong,
)
from dotr.io.time import TimeError, is_day, parse_text, plain_datetimes, zone_of
from dotr.io.time_reading import EXACT, Notes, TimeReading
from dotr.lang.grammar.cursor import nearest
from dotr.rdf.terms import (
    USUAL_DATETIME,
    XSD,
    XSD_DATETIME,
    XSD_DOUBLE,
    Memo,
    Term,
    canonical_literal,
    escape,
)
from dotr.regex import regex

Lines: TypeAlias = Callable[[str], str | None]
"""Joined cells to what stands for them in terms, line by line; None where a cell is not in its usual form."""

_FEW = 4
"""Cells a distinct value has on average in a column of few values, at least."""


class TermColumn:
    """How a column becomes terms. `one`: the table of single cells, None where one is missing.

    `usual` is asked of the cells after their filters; None: every cell goes through `one`.
    """

    __slots__ = ("_after", "_before", "_filtered", "_missing", "_one", "_usual")

    def __init__(
        self,
        one: Memo[str | None, Term | None],
        missing: Collection[str],
        filtered: Callable[[Sequence[str]], Sequence[str]] | None = None,
        usual: Lines | None = None,
        ends: tuple[str, str] = ("", ""),
    ) -> None:
        self._one, self._missing = one, frozenset(missing)
        self._filtered, self._usual = filtered, usual
        self._before, self._after = ends

    def __call__(self, cells: Sequence[str | None]) -> list[Term | None]:
        """The terms of a column; None where a value is missing. Raises CellError for some cell of it."""
        values = set(cells)
        if self._usual is None or len(values) * _FEW <= len(cells):
            table = {value: self._one[value] for value in values}
            return [table[cell] for cell in cells]
        missing = self._missing
        if None not in values and missing.isdisjoint(values):
            return self._terms(cells)  # type: ignore[arg-type]  # there is no None in it
        present = iter(self._terms([cell for cell in cells if cell is not None and cell not in missing]))
        return [None if cell is None or cell in missing else next(present) for cell in cells]

    def _terms(self, cells: Sequence[str]) -> list[Term | None]:
        texts = cells if self._filtered is None else self._filtered(cells)
        joined = "\n".join(texts)
        assert self._usual is not None
        if joined.count("\n") == len(cells) - 1 and (made := self._usual(joined)) is not None:
            between = f"{self._after}\n{self._before}"
            terms: list[Term | None] = [
                *(f"{self._before}{made.replace(chr(10), between)}{self._after}".split("\n"))
            ]
            return terms
        return list(map(self._one.__getitem__, cells))


# ------------------------------------------------------------------ usual cells


def _lines_of(pattern: str) -> re.Pattern[str]:
    return regex(rf"(?:(?:{pattern})\n)*+(?:{pattern})", re.ASCII)


_PLAIN_IRIS = regex(r"[A-Za-z0-9._~\-\n]*")
_RESERVED = regex(rf"[^{UNRESERVED_CHARACTERS}\n]")
_PLAIN_TEXTS = regex(r"[ !#-\[\]-~\n]*")
_ESCAPED = regex('["\\\\\x00-\x09\x0b-\x1f\x7f]')
_percent: Memo[str, str] = Memo(lambda char: "".join(f"%{byte:02X}" for byte in char.encode()))


def in_iris(joined: str) -> str | None:
    """Lines as parts of IRIs; None where one has half a character."""
    if _PLAIN_IRIS.fullmatch(joined):
        return joined
    try:
        return _RESERVED.sub(lambda found: _percent[found[0]], joined)
    except UnicodeEncodeError:
        return None


def in_literals(joined: str) -> str | None:
    """Lines as parts of literals; None where one has half a character."""
    if _PLAIN_TEXTS.fullmatch(joined):
        return joined
    if not joined.isascii():
        try:
            joined.encode()
        except UnicodeEncodeError:
            return None
    return _ESCAPED.sub(lambda found: escape(found[0]), joined)


def as_they_are(joined: str) -> str | None:
    """Lines that were written here."""
    return joined


def _canonical_column(pattern: str) -> Lines:
    """Lines that are canonical literals as they stand."""
    fits = _lines_of(pattern).fullmatch
    return lambda joined: joined if fits(joined) else None


def _numbers(whole: int, fraction: int) -> Lines:
    """Decimals of at most so many digits before and after the point whose canonical text differs in zeros at
    the end, if at all. Of at most 15 digits together such a string is that of an xsd:double, too.
    """
    digits = rf"-?+(?:0|[1-9][0-9]{{0,{whole - 1}}}+)(?:\.[0-9]{{0,{fraction - 1}}}[1-9])?"
    fits = _lines_of(rf"(?!-0(?![0-9.])){digits}").fullmatch

    def lines(joined: str) -> str | None:
        if fits(joined):
            return joined
        joined = "\n".join([text if text[-1:] != "0" else _shortened(text) for text in joined.split("\n")])
        return joined if fits(joined) else None

    return lines


def _shortened(text: str) -> str:
    """A decimal without the zeros at its end, and what is not one as it is."""
    whole, point, fraction = text.partition(".")
    if not point or not whole or not fraction.isdigit():
        return text
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


USUAL: Final[Mapping[str, Lines]] = {
    f"{XSD}integer": _canonical_column(r"-?+[1-9][0-9]{0,17}+|0"),
    f"{XSD}decimal": _numbers(18, 18),
    f"{XSD}double": _numbers(8, 7),
    f"{XSD}boolean": _canonical_column("true|false"),
    f"{XSD}dateTime": _canonical_column(
        rf"{USUAL_DATETIME}(?:\.[0-9]{{0,17}}[1-9])?(?:Z|[+-](?!00:00)(?:0[0-9]|1[0-3]):[0-5][0-9])?"
    ),
}
"""Datatype → what says of lines that all of them are in its lexical space, and makes them canonical."""


Row: TypeAlias = Sequence[str | None]
"""The cells of a row by position; None, and what the mapping declares so, is a missing value."""

Columns: TypeAlias = Sequence[Sequence[str | None]]

Fits: TypeAlias = Callable[[str], object]

_REMEMBERED = 1 << 14
_TOGETHER = 16
"""Rows that are made one by one where one of them is in error."""

_DATATYPES = {"dateTime": XSD_DATETIME, "double": XSD_DOUBLE}


class TermOfCells(Struct, frozen=True):
    """A term of the template: the places of its cells, and what makes a column of terms of theirs. Raises
    CellError.
    """

    places: tuple[int, ...]
    make: Callable[..., list[Term | None]]


class CompiledMapping(Struct, frozen=True):
    """A mapping for the columns of one table.

    `part` gives the graph of a row, `times` the time of a raw cell and whether it is an integer, `time_at`
    the place of that cell (-1: the graphs have their times themselves). All raise CellError.
    """

    part: Callable[[Row], GraphOrMessage]
    times: Mapping[str | None, tuple[Time, bool]]
    time_at: int
    columns: Callable[[Columns], Iterator[GraphOrMessage]]
    """The graphs of rows, from their columns."""
    usual: Callable[[Sequence[str]], list[Time] | None]
    """The times of raw cells that are all written in the usual way; None of others."""
    local: Sequence[TimeCell] = ()
    """The cells that hold times, each once."""
    form: Form = ()
    """Of rows that are a graph each: the template, cells as numbers of `terms`; () where two triples of a row
    can be the same, or there is more than a graph."""
    terms: Sequence[TermOfCells] = ()

    def parts(self, rows: Sequence[Row]) -> Iterator[GraphOrMessage | CellError]:
        """The graph of each row; at most 3 µs a row of five triples, whether or not values repeat."""
        columns = list(zip(*rows, strict=True))
        try:
            if columns:
                return self.columns(columns)
        except CellError:
            pass
        if len(rows) > _TOGETHER:
            half = len(rows) // 2
            return chain(self.parts(rows[:half]), self.parts(rows[half:]))
        return map(self._one, rows)

    def _one(self, row: Row) -> GraphOrMessage | CellError:
        try:
            return self.part(row)
        except CellError as error:
            return error

    def repeated(self, row: Row) -> dict[str, Time]:
        """The local times of a row that came twice, in µs as if they were UTC, by what they are called in
        `passes` of `compile_mapping`.
        """
        found: dict[str, Time] = {}
        for cell in self.local:
            text = cell.text(row)
            try:
                cell.read.one[text] if text is not None else None
            except RepeatedCellError as error:
                found[cell.key] = error.local
            except CellError:
                pass  # said when the row is made
        return found

    def notes(self, row: Row) -> Notes:
        """What reading the times of a row changed."""
        found: Notes = set()
        for cell in self.local:
            text = cell.text(row)
            if text is not None and cell.read.changes:
                cell.read.note(text, found)
        return found

    @property
    def changes(self) -> bool:
        """Whether some text that was read so far as a time was changed by it."""
        return any(cell.read.changes for cell in self.local)

    def instants(self, cells: Sequence[str | None]) -> list[tuple[Time, bool] | CellError]:
        """The times of a column of raw cells."""
        if None not in cells:
            found = self.usual(cells)  # type: ignore[arg-type]  # there is no None in it
            if found is not None:
                return [(time, False) for time in found]
        return [self._instant(cell) for cell in cells]

    def times_alike(self, cells: Sequence[str | None]) -> tuple[Sequence[Time], bool] | None:
        """The times of a column of raw cells, and whether they are integers; None where they differ in that,
        or one is in error.
        """
        if None not in cells:
            found = self.usual(cells)  # type: ignore[arg-type]  # there is no None in it
            if found is not None:
                return found, False
        return times_alike([self._instant(cell) for cell in cells])

    def _instant(self, cell: str | None) -> tuple[Time, bool] | CellError:
        try:
            return self.times[cell]
        except CellError as error:
            return error


def times_alike(
    instants: Sequence[tuple[Time, bool] | CellError],
) -> tuple[Sequence[Time], bool] | None:
    """Times, and whether they are integers; None where they differ in that, or one is in error."""
    if not instants or any(type(instant) is not tuple for instant in instants):
        return None
    times, kinds = zip(*instants, strict=True)
    return (times, kinds[0]) if len(set(kinds)) == 1 else None


class TimeCell(Struct, frozen=True):
    """A cell that holds a time: its name, its place, the value for a missing one, and how it is read."""

    key: str
    at: int
    missing: frozenset[str]
    default: str | None
    read: DateTimes

    def text(self, row: Row) -> str | None:
        """Its text in a row; None where it is missing."""
        raw = row[self.at]
        return self.default if raw is None or raw in self.missing else raw


def compile_mapping(
    mapping: TableMapping,
    columns: Sequence[str],
    unit: int,
    zone: str,
    place: str,
    reading: TimeReading = EXACT,
    passes: Mapping[str, str] = MappingProxyType({}),
) -> CompiledMapping:
    """A mapping for rows whose cells are those of `columns`. Raises DataError D2401, D2402 at `place`.

    `reading`: what is done about times that are no instant as they stand, unless the mapping says it.
    `passes`: what of it holds for repeated local times of single cells, by their keys (`TimeCell`).
    """
    readings = _readings(mapping, reading, passes)
    positions = _positions(mapping, columns, place)
    writer = _MappingWriter(mapping, positions, zone, readings)
    parts = {name: triples for name in PARTS if (triples := getattr(mapping, name)) is not None}
    for triple in mapping.delete or ():
        if any(isinstance(slot, str) and slot[0] == "_" for slot in triple):
            raise wrong("a deletion with a blank node", mapping.name, "name what is deleted by an IRI")
    texts = {name: writer.triples(triples) for name, triples in parts.items()}
    if list(texts) == ["graph"]:
        result = texts["graph"]
    else:
        result = f"Message({', '.join(f'{name}={text}' for name, text in texts.items())})"
    part, together = writer.functions(result)
    alone = list(texts) == ["graph"] and not may_repeat(parts["graph"])
    form = writer.form(parts["graph"]) if alone else ()
    if mapping.time is None:
        local = _time_cells(mapping, positions, zone, readings, {})
        return CompiledMapping(part, {}, -1, together, lambda _cells: None, local)
    reading = readings[mapping.time]
    own = instants_of(mapping.time, zone, mapping.name, reading)
    if own is None:
        own = _bare_times(mapping.time, unit, zone, mapping.name, reading)
    times = Memo(_time(mapping, mapping.time, unit, zone, reading, own), limit=_REMEMBERED)
    at, usual = positions[mapping.time.column], _usual_times(mapping, mapping.time, zone, reading)
    local = _time_cells(mapping, positions, zone, readings, {mapping.time: own})
    return CompiledMapping(part, times, at, together, usual, local, form, writer.made)


def _readings(
    mapping: TableMapping, reading: TimeReading, passes: Mapping[str, str]
) -> dict[Cell, TimeReading]:
    """How the times of each cell are read."""
    whole = mapping.reading(reading)
    used = {str(number): cell for number, cell in enumerate(mapping.used())}
    words = {key: passes.get(key, whole.ambiguous) for key in used}
    return {cell: whole._replace(ambiguous=words[key]) for key, cell in used.items()}


def _time_cells(
    mapping: TableMapping,
    positions: Mapping[str, int],
    zone: str,
    readings: Mapping[Cell, TimeReading],
    known: Mapping[Cell, DateTimes],
) -> tuple[TimeCell, ...]:
    missing, found = frozenset(mapping.missing), []
    for number, cell in enumerate(mapping.used()):
        read = known.get(cell) or instants_of(cell, zone, mapping.name, readings[cell])
        if read is not None:
            found.append(TimeCell(str(number), positions[cell.column], missing, default_of(cell), read))
    return tuple(found)


def _bare_times(cell: Cell, unit: int, zone: str, place: str, reading: TimeReading) -> DateTimes:
    """How the cell of the time is read where no filter says it: as a dateTime or an integer."""
    local = zone_of(zone) if zone else None
    text_of = text_filter(cell, zone, place, reading)

    def noting(text: str, notes: Notes) -> int:
        try:
            return parse_text(text_of(text), unit, local, reading, notes)[0]
        except TimeError as error:
            raise time_error(error) from None

    return DateTimes(Memo(lambda text: noting(text, set())), None, lambda _texts: None, noting)


def _positions(mapping: TableMapping, columns: Sequence[str], place: str) -> dict[str, int]:
    positions = {column: number for number, column in reversed(list(enumerate(columns)))}
    counts = Counter(columns)
    for cell in mapping.used():
        check_filters(cell, mapping.name)
        if counts[cell.column] == 1:
            continue
        twice = cell.column in positions
        hint = nearest(cell.column, columns)
        if len(columns) == 1 and (found := next((d for d in ";\t|," if d in columns[0]), "")):
            hint = f"add to the mapping: # delimiter: {'tab' if found == chr(9) else found}"
        raise DataError.of(
            "D2402",
            f"{'two columns are' if twice else 'no column is'} called `{cell.column}`",
            place=place,
            label=", ".join(map(excerpt, columns[:20])) or "no columns",
            notes=(f"`{mapping.name}` uses it",),
            hint=hint or "check the names in the mapping, or add # columns: a, b, c",
        )
    return positions


def _time(
    mapping: TableMapping, cell: Cell, unit: int, zone: str, reading: TimeReading, own: DateTimes
) -> Callable[[str | None], tuple[Time, bool]]:
    missing, default, local = frozenset(mapping.missing), default_of(cell), zone_of(zone) if zone else None
    instants = instants_of(cell, zone, mapping.name, reading)
    text_of = text_filter(cell, zone, mapping.name, reading)

    def time(raw: str | None) -> tuple[Time, bool]:
        text = default if raw is None or raw in missing else raw
        try:
            if text is None:
                raise CellError("this row has no time", _NO_TIME, "D2406")
            if instants is not None:
                return instants.one[text], False
            notes: Notes = set()
            found = parse_text(text_of(text), unit, local, reading, notes)
            own.changes = own.changes or bool(notes)
            return found
        except TimeError as error:
            plain = error.code == "D2105" and ("--" not in error.hint or (text or "").isdigit())
            raise _of(time_error(error, _how_written(cell.column, text) if plain else None), cell) from None
        except CellError as error:
            raise _of(error, cell) from None

    return time


def _how_written(column: str, text: str | None) -> str:
    if text is not None and is_day(text):
        return f'choose: its beginning is # time: {column}|datetime("%Y-%m-%d", "Europe/Berlin")'
    if text is not None and text.isdigit():
        return f"name its unit, as in # time: {column}|epoch(ms), or epoch(ns)"
    form = "iso" if text is not None and _SPACED.match(text) else "%d/%m/%Y %H:%M"
    return f'give its format: # time: {column}|datetime("{form}", "Europe/Berlin")'


_NO_TIME = (
    "a row without a time is not an instant: name another column, or leave such rows out by --on-error skip"
)
_SPACED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
"""A dateTime with a space in place of the T, as pandas and databases write it."""


def _usual_times(
    mapping: TableMapping, cell: Cell, zone: str, reading: TimeReading
) -> Callable[[Sequence[str]], list[Time] | None]:
    instants, missing = instants_of(cell, zone, mapping.name, reading), frozenset(mapping.missing)
    if instants is None:
        return plain_datetimes if not cell.filters else lambda _cells: None
    if instants.before is not None:
        return lambda _cells: None
    usual = instants.usual
    return lambda cells: usual(cells) if missing.isdisjoint(cells) else None


def _of(error: CellError, cell: Cell) -> CellError:
    error.column = error.column or cell.column
    return error


class _MappingWriter:
    """Owns the lines of one generated function, and the names in it."""

    def __init__(
        self,
        mapping: TableMapping,
        positions: Mapping[str, int],
        zone: str,
        readings: Mapping[Cell, TimeReading],
    ) -> None:
        self._mapping, self._positions, self._zone, self._readings = mapping, positions, zone, readings
        self._missing = frozenset(mapping.missing)
        self._lines: list[str] = []
        self._columns: list[str] = []
        self._names: dict[str, Any] = {"Message": Message, "repeated": _without_repeats}
        self._terms: dict[Slot, tuple[str, bool]] = {}
        self._numbers: dict[Slot, int] = {}
        self.made: list[TermOfCells] = []

    def form(self, template: Sequence[TemplateTriple]) -> Form:
        """A template, its terms as numbers of `made`."""

        def place(slot: Slot) -> Place:
            return slot if isinstance(slot, str) else self._numbers[slot]

        return tuple((place(s), place(p), place(o)) for s, p, o in template)

    def _name(self, stem: str, value: object) -> str:
        name = f"{stem}{len(self._names)}"
        self._names[name] = value
        return name

    def triples(self, template: Sequence[TemplateTriple]) -> str:
        """The expression that is the triples of a template in a row."""
        written: list[tuple[str, list[str]]] = []
        for triple in template:
            terms = [self._term(slot) for slot in triple]
            optional = [name for name, may_miss in terms if may_miss]
            whole = all(isinstance(slot, str) for slot in triple)
            text = self._name("k", triple) if whole else f"({', '.join(name for name, _ in terms)})"
            written.append((text, list(dict.fromkeys(optional))))
        full = f"[{', '.join(text for text, _ in written)}]"
        needed = list(dict.fromkeys(name for _, names in written for name in names))
        if needed:
            some = ", ".join(
                f"*([{text}] if {' and '.join(f'{name} is not None' for name in names)} else ())"
                if names
                else text
                for text, names in written
            )
            full = f"({full} if {' and '.join(f'{n} is not None' for n in needed)} else [{some}])"
        return f"repeated({full})" if may_repeat(template) else full

    def functions(
        self, result: str
    ) -> tuple[Callable[[Row], GraphOrMessage], Callable[[Columns], Iterator[GraphOrMessage]]]:
        """The function of a row that gives `result`, and that of columns that gives it for every row."""
        body = "\n".join(f"    {line}" for line in [*self._lines, f"return {result}"])
        names = [line.split(" ", 1)[0] for line in self._columns]
        terms = [name for name in names if "_" not in name]
        rows = f"for {', '.join(terms)}, in zip({', '.join(terms)})" if terms else "for _ in columns[0]"
        many = "\n".join(f"    {line}" for line in [*self._columns, f"return ({result} {rows})"])
        text = f"def part(cells):\n{body}\n\ndef parts(columns):\n{many}\n"
        scope = execute(text, f"<{len(self._lines)} cells>", dict(self._names))
        return scope["part"], scope["parts"]

    def _term(self, slot: Slot) -> tuple[str, bool]:
        """(the name of a term in the function, whether it may be missing)."""
        if slot not in self._terms:
            self._terms[slot] = self._new_term(slot)
        return self._terms[slot]

    def _new_term(self, slot: Slot) -> tuple[str, bool]:
        if isinstance(slot, str):
            return self._name("k", slot), False
        parts = (slot.cell,) if isinstance(slot, BareSlot) else slot.parts
        cells = [part for part in parts if isinstance(part, Cell)]
        finish = _finish(slot)
        name = f"t{len(self._terms)}"
        if len(cells) == 1:
            before, after = _around(parts)
            quick = None if cells[0].filters else _quick(slot)
            ends = (f"<{before}", f"{after}>") if _is_iri(slot) else (f'"{before}', after + _tail(slot))
            slow = lambda text: finish(before + text + after)  # noqa: E731  # used once
            one = self._memo(cells[0], _inside(slot, cells[0]), slow, quick, ends)
            column = self._cell(name, cells[0], one, _usual(slot), ends)
            self._made(slot, cells, column)
            return name, True
        pieces, needed, columns = [], [], []
        for number, part in enumerate(parts):
            if isinstance(part, str):
                pieces.append(self._name("k", part))
                continue
            piece = f"{name}_{number}"
            columns.append(self._cell(piece, part, self._memo(part, _inside(slot, part))))
            pieces.append(piece)
            needed.append(piece)
        ended = self._name("f", finish)
        missing = " or ".join(f"{piece} is None" for piece in needed)
        joined = "".join(f"{{{piece}}}" for piece in pieces)
        whole = f"None if {missing} else {ended}(f'{joined}')"
        self._lines.append(f"{name} = {whole}")
        self._made(slot, cells, _joining(parts, columns, finish))
        among = ", ".join(needed)
        self._columns.append(f"{name} = [{whole} for {among} in zip({among})]")
        return name, True

    def _cell(
        self,
        name: str,
        cell: Cell,
        one: Memo[str | None, str | None],
        usual: Lines | None = None,
        ends: tuple[str, str] = ("", ""),
    ) -> TermColumn:
        """The line that makes a term, or a part of one, of a cell, and that which makes those of a column."""
        at = self._positions[cell.column]
        filtered = texts_filter(cell, self._zone, self._mapping.name, self._readings[cell])
        if default_of(cell) is not None:
            usual = None
        column = TermColumn(one, self._missing, filtered, usual, ends)
        self._lines.append(f"{name} = {self._name('m', one)}[cells[{at}]]")
        self._columns.append(f"{name} = {self._name('c', column)}(columns[{at}])")
        return column

    def _made(self, slot: Slot, cells: Sequence[Cell], make: Callable[..., list[Term | None]]) -> None:
        self._numbers[slot] = len(self.made)
        self.made.append(TermOfCells(tuple(self._positions[cell.column] for cell in cells), make))

    def _memo(
        self,
        cell: Cell,
        escape: Callable[[str], str],
        finish: Callable[[str], str] | None = None,
        quick: Fits | None = None,
        ends: tuple[str, str] = ("", ""),
    ) -> Memo[str | None, str | None]:
        """The table that has what a raw cell becomes; None where it is missing.

        What `quick` finds to be what it should be stands between the `ends` as it is.
        """
        filtered = text_filter(cell, self._zone, self._mapping.name, self._readings[cell])
        missing, default = self._missing, default_of(cell)

        before, after = ends
        typed = "^^" in after

        def convert(raw: str | None) -> str | None:
            if quick is not None and raw is not None and raw not in missing and quick(raw):
                term = f"{before}{raw}{after}"
                return _canonical(term) if typed else term
            text = default if raw is None or raw in missing else raw
            if text is None:
                return None
            try:
                text = escape(filtered(text))
                return text if finish is None else finish(text)
            except CellError as error:
                raise _of(error, cell) from None

        return Memo(convert, limit=_REMEMBERED)


def _joining(
    parts: Sequence[str | Cell], columns: Sequence[TermColumn], finish: Callable[[str], str]
) -> Callable[..., list[Term | None]]:
    """What makes the terms of several columns of cells."""
    form = "".join(
        "{}" if isinstance(part, Cell) else part.replace("{", "{{").replace("}", "}}") for part in parts
    )

    def make(*cells: Sequence[str | None]) -> list[Term | None]:
        made = [column(own) for column, own in zip(columns, cells, strict=True)]
        return [None if None in texts else finish(form.format(*texts)) for texts in zip(*made, strict=True)]

    return make


def _around(parts: Sequence[str | Cell]) -> tuple[str, str]:
    """The texts before and after the one cell."""
    at = next(number for number, part in enumerate(parts) if isinstance(part, Cell))
    return "".join(map(str, parts[:at])), "".join(map(str, parts[at + 1 :]))


def _is_iri(slot: Slot) -> bool:
    return isinstance(slot, IriSlot) or (isinstance(slot, BareSlot) and kind_of(slot.cell) == "iri")


def _inside(slot: Slot, cell: Cell) -> Callable[[str], str]:
    """How a cell is escaped in a term."""
    if not _is_iri(slot):
        return _kept
    return _kept if kind_of(cell) == "iri" else in_iri


def _kept(text: str) -> str:
    return text


def _finish(slot: IriSlot | LiteralSlot | BareSlot) -> Callable[[str], str]:
    """A term from its text: literals are checked, then escaped; IRIs are whole."""
    if _is_iri(slot):
        sure = isinstance(slot, IriSlot) and _is_sure(slot)
        return (lambda text: f"<{text}>") if sure else (lambda text: f"<{whole_iri(text)}>")
    tail = _tail(slot)
    own = isinstance(slot, BareSlot) and kind_of(slot.cell) == "dateTime"  # written here, hence well
    if own:
        return lambda text: f'"{text}{tail}'
    check = checked(_datatype(slot))
    if not _datatype(slot):
        return lambda text: f'"{in_literal(text)}{tail}'
    if check is None:
        return lambda text: _canonical(f'"{in_literal(text)}{tail}')
    return lambda text: _canonical(f'"{in_literal(check(text))}{tail}')


def _canonical(term: str) -> str:
    """A literal with a datatype in canonical form. Raises CellError."""
    try:
        return canonical_literal(term)
    except DataError as error:
        (one,) = error.diagnostics
        raise CellError(f"{one.message}: {one.label.strip('`')}", one.hint, one.code) from None


def _datatype(slot: Slot) -> str:
    if isinstance(slot, LiteralSlot):
        return slot.datatype
    return _DATATYPES.get(kind_of(slot.cell), "") if isinstance(slot, BareSlot) else ""


def _tail(slot: Slot) -> str:
    """What follows the text of a literal."""
    if isinstance(slot, LiteralSlot) and slot.language:
        return f'"@{slot.language}'
    datatype = _datatype(slot)
    return f'"^^<{datatype}>' if datatype else '"'


def _quick(slot: IriSlot | LiteralSlot | BareSlot) -> Fits | None:
    """Which cells are themselves what stands in the term, where that is quickly seen."""
    if isinstance(slot, IriSlot):
        return UNRESERVED.fullmatch if _is_sure(slot) else None
    if _is_iri(slot) or (len(slot.parts) > 1 if isinstance(slot, LiteralSlot) else False):
        return None
    datatype = _datatype(slot)
    return PLAIN.fullmatch if not datatype else lexical_space(datatype)


def _usual(slot: IriSlot | LiteralSlot | BareSlot) -> Lines | None:
    """What makes columns of usual cells, after their filters, into what stands in the term."""
    if isinstance(slot, IriSlot):
        return in_iris if _is_sure(slot) else None
    if _is_iri(slot) or (len(slot.parts) > 1 if isinstance(slot, LiteralSlot) else False):
        return None
    if isinstance(slot, BareSlot) and kind_of(slot.cell) == "dateTime":
        return as_they_are
    datatype = _datatype(slot)
    return USUAL.get(datatype) if datatype else in_literals


def _is_sure(slot: IriSlot) -> bool:
    """Whether any encoded cells make a valid IRI: none is in its scheme or authority, or taken as it is."""
    first = slot.parts[0]
    if any(isinstance(part, Cell) and kind_of(part) == "iri" for part in slot.parts):
        return False
    if not isinstance(first, str):
        return False
    scheme, _, rest = first.partition(":")
    return bool(scheme) and ("/" in rest[2:] or "#" in rest) if rest.startswith("//") else bool(rest)


def may_repeat(template: Sequence[TemplateTriple]) -> bool:
    """Whether two triples of a template can be the same in some row: where neither has a cell they have the
    same term, elsewhere terms of one sort. Linear, since templates of wide tables have many triples.
    """
    groups: dict[tuple[bool, ...], list[TemplateTriple]] = {}
    for triple in template:
        groups.setdefault(tuple(not isinstance(slot, str) for slot in triple), []).append(triple)
    for one, other in combinations_with_replacement(groups, 2):
        filled = [a or b for a, b in zip(one, other, strict=True)]
        ones = [_likeness(triple, filled) for triple in groups[one]]
        others = ones if one == other else [_likeness(triple, filled) for triple in groups[other]]
        if len(set(ones)) < len(ones) or (one != other and not set(ones).isdisjoint(others)):
            return True
    return False


def _likeness(triple: TemplateTriple, filled: Sequence[bool]) -> tuple[Slot, ...]:
    """What triples share that can be the same, where some of their places have cells."""
    return tuple(_sort(slot) if cell else slot for slot, cell in zip(triple, filled, strict=True))


def _sort(slot: Slot) -> str:
    if isinstance(slot, str):
        return slot[0]
    return "<" if _is_iri(slot) else '"'


def _without_repeats(triples: list[Any]) -> list[Any]:
    return triples if len(set(triples)) == len(triples) else list(dict.fromkeys(triples))


def cell_error(error: CellError, place: str, raw: str = "") -> DataError:
    """The diagnostic of a row."""
    where = f"{place}, column `{error.column}`" if error.column else place
    return DataError.of(error.code, error.message, place=where, label=raw and excerpt(raw), hint=error.hint)


def cells_used(mapping: TableMapping) -> Iterator[str]:
    """The columns that a mapping uses, each once."""
    yield from dict.fromkeys(cell.column for cell in mapping.used())

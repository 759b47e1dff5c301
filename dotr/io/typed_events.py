"""Composite events as rows of typed columns: `bindings` and `match` as structs.

Place:   tasks of `dotr.spark.detect` and of `dotr batch --schema typed` make such rows; event_tables.py has
         the kinds, and what a term of each is, batch/spark/typed.py the frames.
Method:  a frame has its schema before anything runs, so the kind of a column is what the program tells
         (times, counts, casts, conditions, constants, attributes of rules), what the caller declares, or,
         if asked for, what one run over the data finds. Everything else is a struct (value, type, lang).
         `terms` of a row has each term, as N-Triples, that its column does not give again: nothing is lost,
         and a column without an entry there is exact.
         Files: a folder for each rule and day, as Spark's `partitionBy("rule", "date")` makes them and
         readers find them again.
Why not: the widening of a Parquet file (event_tables.py): a frame cannot change its schema while it is read,
         nor can the files of several tasks. One column for each kind of a variable: nearly all of them would
         be null.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache, reduce
from itertools import accumulate, chain
from typing import Any, Final

from msgspec import Struct

from dotr.emit.templates import RuleTemplate
from dotr.errors import DataError, UsageError
from dotr.events import NEVER, Clock, Composite
from dotr.io.arrow import pa, pc, pq
from dotr.io.decode.parquet import integers, texts
from dotr.io.event_tables import (
    TABLE_ROWS,
    Kind,
    decoded,
    joined_kinds,
    kind_array,
    kind_types,
    time_array,
    time_type,
)
from dotr.io.events import Cells, TimeTexts, cell_writer, named
from dotr.lang.checks.comparisons import result_kind
from dotr.lang.grammar.cursor import nearest
from dotr.program import Program, Rule
from dotr.program.positions import Position
from dotr.program.queries import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.program.rules import Summarise
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import (
    RDF,
    XSD_STRING,
    Memo,
    Term,
    canonical,
    escape,
    is_list,
    literal_parts,
    members,
)

Types = Mapping[str, str]
"""Variable, or `Name.variable` of a rule or a position → kind."""

Kinds = Mapping[tuple[str, str], Kind]
"""(Position or "", variable) → the kind of its values."""

DECLARED: Final = ("integer", "decimal", "double", "boolean", "dateTime", "iri", "string", "term")
"""The kinds that a caller may declare."""

TRIGGER: Final = "_trigger"
"""The column of the time of an event's trigger, which frames use and drop."""

_DAY = 86_400_000_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MANY, _OPEN = 1 << 16, 64
"""Events that wait to be written, and files that are open."""

_FIRST, _END = -62_135_596_800_000_000, 253_402_300_800_000_000
"""µs: 0001-01-01 and 10000-01-01; Python's datetimes, in which Spark collects timestamps, lie between."""

_IRI, _BLANK, _LANGUAGE = "iri", "bnode", f"{RDF}langString"


@cache
def term_type() -> Any:
    """A term of any kind. `type`: "iri", "bnode", or the datatype; `value`: IRI, label, or lexical form."""
    return pa.struct([("value", pa.string()), ("type", pa.string()), ("lang", pa.string())])


class Cell(Struct, frozen=True):
    """A term in a column of some kind: its value, None without one, and whether that gives the term again."""

    value: Any
    exact: bool


def found_kind(term: Term) -> Kind:
    """The kind of the column that holds the value of a term."""
    kind, value = decoded(_same(term))
    return kind if _spark_takes(kind, value) else "term"


def cell(term: Term, kind: Kind) -> Cell:
    """A term in a column of a kind."""
    if kind == "term":
        value = parts(term)
        return Cell(value, value is not None)
    if kind == "list":
        if not is_list(term):
            return Cell(None, False)
        found = [parts(member) for member in members(term)]
        return Cell(None, False) if None in found else Cell(found, True)
    same = _same(term)
    own, value = decoded(same)
    if not _spark_takes(own, value):
        return Cell(None, False)
    if own == kind:
        return Cell(value, same == term)
    if kind == "double" and own in ("integer", "decimal"):
        return Cell(float(value), False)
    return Cell(value if (own, kind) == ("integer", "decimal") else None, False)


def parts(term: Term) -> dict[str, str | None] | None:
    """A term as (value, type, lang); None of a list."""
    if is_list(term):
        return None
    if term[0] == "<":
        return {"value": term[1:-1], "type": _IRI, "lang": None}
    if term[0] == "_":
        return {"value": term[2:], "type": _BLANK, "lang": None}
    lexical, datatype, language = literal_parts(term)
    made = {"value": lexical, "type": _LANGUAGE if language else datatype, "lang": language or None}
    return made if of_parts(made) == term else None


def of_parts(found: Mapping[str, str | None]) -> Term:
    """The term of (value, type, lang)."""
    value, type_, language = found["value"], found["type"], found["lang"]
    assert value is not None
    if type_ == _IRI:
        return f"<{value}>"
    if type_ == _BLANK:
        return f"_:{value}"
    text = f'"{escape(value)}"'
    if language:
        return f"{text}@{language}"
    return text if type_ == XSD_STRING else f"{text}^^<{type_}>"


def _same(term: Term) -> Term:
    """The canonical form; the term itself, if its number has too many digits for one."""
    try:
        return canonical(term)
    except DataError:
        return term


def _spark_takes(kind: Kind, value: Any) -> bool:
    return kind != "dateTime" or _FIRST <= value < _END


class TypedColumns(Struct, frozen=True):
    """The columns of a program's events. `bindings`: variable → kind; `match`: position → variable → kind."""

    clock: Clock
    bindings: dict[str, Kind]
    match: dict[str, dict[str, Kind]]

    @property
    def dated(self) -> bool:
        """Whether rows have a `date`: integer times have none."""
        return not self.clock.integer

    def schema(self) -> pa.Schema:
        """Structs without a field are left out: Parquet has none."""
        fields = [pa.field("time", time_type(self.clock))]
        if self.dated:
            fields.append(pa.field("date", pa.date32()))
        fields += [pa.field("rule", pa.string()), pa.field("id", pa.string())]
        if self.bindings:
            fields.append(pa.field("bindings", _struct(self.bindings)))
        if self.match:
            fields.append(pa.field("match", pa.struct(list(map(self._position, self.match)))))
        fields += [pa.field("terms", pa.map_(pa.string(), pa.string())), pa.field("graph", pa.string())]
        fields.append(pa.field(TRIGGER, pa.int64()))
        return pa.schema(fields)

    def _position(self, name: str) -> pa.Field:
        of = self.match[name]
        fields = [pa.field("time", time_type(self.clock)), *([pa.field("values", _struct(of))] if of else [])]
        return pa.field(name, pa.struct([*fields, pa.field("id", pa.string())]))

    def with_kinds(self, found: Kinds) -> TypedColumns:
        """With the kinds of (position or "", variable) instead of unknown ones."""

        def chosen(owner: str, kinds: Mapping[str, Kind]) -> dict[str, Kind]:
            return {
                name: (found.get((owner, name)) or "term") if kind == "" else kind
                for name, kind in kinds.items()
            }

        match = {name: chosen(name, kinds) for name, kinds in self.match.items()}
        return TypedColumns(self.clock, chosen("", self.bindings), match)


def _struct(kinds: Mapping[str, Kind]) -> Any:
    return pa.struct([(name, _type(kind)) for name, kind in kinds.items()])


def _type(kind: Kind) -> Any:
    if kind in ("term", ""):
        return term_type()
    return pa.list_(term_type()) if kind == "list" else kind_types()[kind]


def refuse_alike(columns: TypedColumns) -> None:
    """Raise UsageError D4123 for names that differ only in case, which Spark takes for one field of a struct
    (unless `spark.sql.caseSensitive` is set).
    """
    several: list[Iterable[str]] = [columns.bindings, columns.match, *columns.match.values()]
    for names in several:
        known: dict[str, str] = {}
        for name in names:
            if known.setdefault(name.lower(), name) != name:
                raise UsageError.of(
                    "D4123",
                    f"`{known[name.lower()]}` and `{name}` would be one field for Spark",
                    hint='rename one, or schema="terms"',
                )


# ------------------------------------------------------------------ kinds by the program


def columns_of(program: Program, clock: Clock, declared: Types | None = None) -> TypedColumns:
    """The columns by the program and what is declared; the kind "" of what neither tells.

    Raises UsageError D4123 for a name that no rule has, or a kind that does not exist.
    """
    kinds = _Kinds(program, clock)
    declared = dict(declared or {})
    unused = set(declared)

    def known(owner: str, name: str, found: Callable[[], Kind]) -> Kind:
        for key in (f"{owner}.{name}", name):
            if key in declared:
                unused.discard(key)
                unused.discard(name)
                return declared[key]
        return found()

    for name, kind in declared.items():
        if kind not in DECLARED:
            raise UsageError.of(
                "D4123",
                f"`{kind}` is not a type of values",
                label=name,
                hint=nearest(kind, DECLARED) or f"one of {', '.join(DECLARED)}",
            )
    bindings: dict[str, list[Kind]] = {}
    match: dict[str, dict[str, list[Kind]]] = {}
    for rule in program.rules:
        if rule.private:
            continue
        for name in rule.variables:
            kind = known(rule.name, name, lambda r=rule, n=name: kinds.of(r, n))  # type: ignore[misc]
            bindings.setdefault(name, []).append(kind)
        positions = {position.name: position for position in rule.positions}
        for at, variables in RuleTemplate(rule).positions:
            of = match.setdefault(at, {})
            for name in variables:
                position = positions.get(at)
                kind = known(at, name, lambda p=position, n=name: kinds.of_position(p, n))  # type: ignore[misc]
                of.setdefault(name, []).append(kind)
    if unused:
        names = [*bindings, *(f"{at}.{name}" for at, of in match.items() for name in of)]
        wrong = min(unused)
        raise UsageError.of(
            "D4123",
            f"no rule has the variable `{wrong}`",
            hint=nearest(wrong, names) or f"variables are {', '.join(dict.fromkeys(names))}",
        )
    return TypedColumns(
        clock, _together(bindings), {position: _together(kinds) for position, kinds in match.items()}
    )


def _together(kinds: Mapping[str, Sequence[Kind]]) -> dict[str, Kind]:
    """Of a variable of several rules; unknown if one of them is."""
    return {name: "" if "" in of else reduce(joined_kinds, of) for name, of in kinds.items()}


class _Kinds:
    """Owns what is known of the values of rules."""

    def __init__(self, program: Program, clock: Clock) -> None:
        self._rules = {rule.name: rule for rule in program.rules}
        self._time: Kind = "integer" if clock.integer else "dateTime"
        self._known: dict[tuple[str, str], Kind] = {}

    def of(self, rule: Rule, variable: str) -> Kind:
        """Of a variable of WITH; "" if unknown. A rule that reads itself through others is unknown."""
        key = rule.name, variable
        if key not in self._known:
            self._known[key] = ""
            self._known[key] = next(
                self._expression(rule, b.expression) for b in rule.bindings if b.variable == variable
            )
        return self._known[key]

    def of_position(self, position: Position | None, variable: str) -> Kind:
        """Of an attribute."""
        rule = self._rules.get(position.stream) if position is not None and position.chained else None
        return "" if rule is None or variable not in rule.variables else self.of(rule, variable)

    def _expression(self, rule: Rule, expression: Expression) -> Kind:
        match expression:
            case Const(term=term):
                return found_kind(term)
            case TimeOf():
                return self._time
            case Attribute(position=position, variable=variable):
                several = [p for p in rule.positions if p.name == position]
                kinds = {self.of_position(p, variable) for p in several}
                return kinds.pop() if len(kinds) == 1 else ""
            case Var(name=name):
                return self._total(rule, name)
            case Call(function=function, arguments=arguments):
                kind = result_kind(function)
                return kind if kind in DECLARED else self._operation(rule, function, arguments)
            case _:
                return ""

    def _operation(self, rule: Rule, function: str, arguments: Sequence[Expression]) -> Kind:
        """Integers stay integers under most arithmetic; a choice has the kind of what it chooses from."""
        if function not in ("+", "-", "*", "u-", "u+", "ABS", "IF", "COALESCE"):
            return ""
        kinds = {self._expression(rule, one) for one in (arguments[1:] if function == "IF" else arguments)}
        kind = kinds.pop() if len(kinds) == 1 else ""
        return kind if function in ("IF", "COALESCE") or kind == "integer" else ""

    def _total(self, rule: Rule, name: str) -> Kind:
        """Of the variable of an aggregate."""
        if isinstance(rule.trigger, RowPattern):
            totals: dict[str, tuple[str, Expression | None]] = {
                variable: (total.function, None) for variable, total in rule.trigger.totals
            }
        else:
            aggregates = [c for c in rule.conjuncts if isinstance(c, Summarise)]
            totals = {c.variable: (c.function, c.argument) for c in aggregates}
        function, argument = totals.get(name, ("", None))
        if function == "COUNT":
            return "integer"
        if function == "COLLECT":
            return "list"
        return self._expression(rule, argument) if argument and function in ("MIN", "MAX", "SAMPLE") else ""


# ------------------------------------------------------------------ rows


class TypedBatches:
    """Owns the functions that write the cells of rules. `of`: events as rows of `TypedColumns.schema`."""

    def __init__(self, columns: TypedColumns) -> None:
        self._columns, self._clock = columns, columns.clock
        self._schema = columns.schema()
        self._graphs: dict[RuleTemplate, Cells] = {}
        self._texts = TimeTexts(columns.clock)
        kinds = {*columns.bindings.values(), *(k for of in columns.match.values() for k in of.values())}
        self._cells = {kind: Memo[Term, Cell](lambda t, k=kind: cell(t, k)) for kind in kinds}  # type: ignore[misc]

    def of(self, events: Sequence[Composite]) -> pa.RecordBatch:
        """`events` is not empty."""
        rows = named(events)
        odd: list[list[tuple[str, Term]]] = [[] for _ in rows]
        bound: dict[str, list[Term | None]] = {n: [None] * len(rows) for n in self._columns.bindings}
        facts: dict[str, list[Any]] = {n: [None] * len(rows) for n in self._columns.match}
        for at, (template, _, match) in enumerate(rows):
            for name, term in zip(template.variables, match[3], strict=True):
                bound[name][at] = term
            for (name, variables), fact in zip(template.positions, match[2], strict=True):
                if fact[0] != NEVER:
                    facts[name][at] = (variables, fact)
        times = [match[1] for _, _, match in rows]
        arrays = [time_array(times, self._clock)]
        if self._columns.dated:
            arrays.append(integers([time // _DAY for time in times]).cast(pa.int32()).cast(pa.date32()))
        arrays += [texts([of.rule for of, _, _ in rows]), texts([of.prefix + name for of, name, _ in rows])]
        if bound:
            arrays.append(self._structs(self._columns.bindings, bound, "", odd))
        if facts:
            arrays.append(self._matches(facts, len(rows), odd))
        arrays += [_map(odd), texts([self._graph(of, name, match) for of, name, match in rows])]
        unit = self._clock.unit if self._clock.integer else 1
        arrays.append(integers([match[2][0][0] // unit for _, _, match in rows]))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _graph(self, template: RuleTemplate, name: str, match: Any) -> str:
        if template not in self._graphs:
            self._graphs[template] = cell_writer(template, self._clock, self._texts)
        return self._graphs[template](name, match)[1]

    def _matches(
        self, facts: Mapping[str, Sequence[Any]], count: int, odd: Sequence[list[tuple[str, Term]]]
    ) -> Any:
        found = []
        unit = self._clock.unit if self._clock.integer else 1
        for position, kinds in self._columns.match.items():
            cells = facts[position]
            values: dict[str, list[Term | None]] = {name: [None] * count for name in kinds}
            for at, one in enumerate(cells):
                if one is not None:
                    variables, fact = one
                    for name, term in zip(variables, fact[1], strict=True):
                        values[name][at] = term
            absent = _booleans([one is None for one in cells])
            times = [None if one is None else one[1][0] // unit for one in cells]
            arrays = [integers(times, time_type(self._clock))]
            if kinds:
                arrays.append(self._structs(kinds, values, f"{position}.", odd, absent))
            arrays.append(texts([None if one is None else one[1][3] or None for one in cells]))
            type_ = self._schema.field("match").type.field(position).type
            found.append(pa.StructArray.from_arrays(arrays, fields=list(type_), mask=absent))
        return pa.StructArray.from_arrays(found, fields=list(self._schema.field("match").type))

    def _structs(
        self,
        kinds: Mapping[str, Kind],
        terms: Mapping[str, Sequence[Term | None]],
        prefix: str,
        odd: Sequence[list[tuple[str, Term]]],
        absent: Any = None,
    ) -> Any:
        """A column of structs of variables; `odd` gets, by row, what is not given again."""
        arrays = []
        for name, kind in kinds.items():
            of = self._cells[kind]
            cells = [None if term is None else of[term] for term in terms[name]]
            for at, one in enumerate(cells):
                if one is not None and not one.exact:
                    term = terms[name][at]
                    assert term is not None
                    odd[at].append((prefix + name, term))
            arrays.append(_array([None if one is None else one.value for one in cells], kind))
        return pa.StructArray.from_arrays(arrays, fields=list(_struct(kinds)), mask=absent)


def _array(values: Sequence[Any], kind: Kind) -> Any:
    if kind in ("term", ""):
        return _terms(values)
    if kind == "list":
        flat = list(chain.from_iterable(filter(None, values)))
        ends = list(accumulate((len(value or ()) for value in values), initial=0))
        made = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), _terms(flat))
        return pc.if_else(
            _booleans([value is None for value in values]), pa.nulls(len(values), made.type), made
        )
    return kind_array(values, kind)


def _terms(values: Sequence[Mapping[str, str | None] | None]) -> Any:
    """A column of `term_type`."""
    arrays = [texts([None if one is None else one[name] for one in values]) for name in term_type().names]
    return pa.StructArray.from_arrays(
        arrays, fields=list(term_type()), mask=_booleans([v is None for v in values])
    )


def _booleans(values: Sequence[bool]) -> Any:
    return integers([int(value) for value in values]).cast(pa.bool_())


def _map(rows: Sequence[Sequence[tuple[str, Term]]]) -> Any:
    pairs = list(chain.from_iterable(rows))
    ends = list(accumulate(map(len, rows), initial=0))
    names, terms = texts([name for name, _ in pairs]), texts([term for _, term in pairs])
    return pa.MapArray.from_arrays(pa.array(ends, pa.int32()), names, terms)


# ------------------------------------------------------------------ kinds by the data


def kinds_in(events: Iterable[Composite]) -> dict[tuple[str, str], Kind]:
    """(position or "", variable) → the kind of the column that holds all of its values."""
    kinds: dict[tuple[str, str], Kind] = {}
    of: Memo[Term, Kind] = Memo(found_kind)
    for event in events:
        pairs: Iterator[tuple[tuple[str, str], Term]] = ((("", name), term) for name, term in event.bindings)
        for key, term in pairs:
            kinds[key] = joined_kinds(kinds.get(key, ""), of[term])
        for position, variables, fact in event.match:
            for name, value in zip(variables, fact[1], strict=True):
                if value is not None:
                    key = position, name
                    kinds[key] = joined_kinds(kinds.get(key, ""), of[value])
    return kinds


# ------------------------------------------------------------------ files


class TypedEventFolder:
    """Owns Parquet files of typed events below the folder `path`: `rule=Fire/date=2026-01-31/00000.parquet`,
    or `rule=Fire/00000.parquet` where times are integers. `close` completes them. Raises OSError.
    """

    def __init__(self, path: str, program: Program, clock: Clock) -> None:
        self._path = path
        columns = columns_of(program, clock).with_kinds({})
        self._batches, self._dated = TypedBatches(columns), columns.dated
        self._names = [name for name in columns.schema().names if name not in ("rule", "date", TRIGGER)]
        self._waiting: dict[str, list[Composite]] = {}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._rows = self._files = 0

    def add(self, events: Sequence[Composite]) -> None:
        for event in events:
            self._waiting.setdefault(self._folder(event), []).append(event)
        self._rows += len(events)
        if self._rows >= _MANY:
            self._flush()

    def close(self) -> None:
        self._flush()
        while self._writers:
            self._writers.popitem()[1].close()

    def _folder(self, event: Composite) -> str:
        if not self._dated:
            return f"rule={event.rule}"
        return f"rule={event.rule}/date={date.fromordinal(_EPOCH_DAY + event.time // _DAY)}"

    def _flush(self) -> None:
        for folder, events in self._waiting.items():
            for start in range(0, len(events), TABLE_ROWS):
                rows = self._batches.of(events[start : start + TABLE_ROWS]).select(self._names)
                self._writer(folder, rows.schema).write_batch(rows)
        self._waiting, self._rows = {}, 0

    def _writer(self, folder: str, schema: pa.Schema) -> pq.ParquetWriter:
        """The open file of a folder; of those least recently opened, all but some are complete."""
        if folder not in self._writers:
            if len(self._writers) >= _OPEN:
                self._writers.pop(next(iter(self._writers))).close()
            os.makedirs(os.path.join(self._path, folder), exist_ok=True)
            path = os.path.join(self._path, folder, f"{self._files:05}.parquet")
            self._writers[folder] = pq.ParquetWriter(path, schema, compression="zstd")
            self._files += 1
        return self._writers[folder]

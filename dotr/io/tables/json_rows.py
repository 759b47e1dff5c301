"""Rows of JSON: lines of plain objects, documents, and what `# rows:` says that the rows of each are.

Place:   files/table_reader.py and samples.py.
Method:  numbers stay as they are written; a cell is found by its path (json_paths.py). Columns that no row
         had are known when all rows were read: a name that is mistyped would otherwise drop its triples from
         every row without a word, since what is missing in JSON is not written.
Bad input: D2408 what is not JSON or not an object, and a value that is an array or object where a cell is
           wanted · D2414, a warning, a column that no row has · D2401 `[*]` in a cell of another array.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from dotr.errors import Diagnostic, Severity
from dotr.io.tables.cells import CellError, excerpt
from dotr.io.tables.graph_template import wrong
from dotr.io.tables.json_paths import ABSENT, EVERY, Step, steps_of, walk
from dotr.lang.grammar.base import nearest

_VALUES = {True: "true", False: "false", None: None}
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
_SAMPLED = 20
"""Rows whose columns are what a mistyped one may have meant."""

DEEPEST = 50
"""Levels of objects in which columns are looked for."""

JsonRow: TypeAlias = list[str | None] | CellError


def value_of(text: str, what: str = "line") -> Any:
    """The value that a line or document is, its numbers as texts. Raises CellError."""
    try:
        return _DECODER.decode(text)
    except ValueError as error:
        hint = str(error)
        if what == "document" and "Extra data" in hint:
            hint = f"{hint}; if every line is an object: # format: jsonl"
        raise CellError(f"this {what} is not JSON", hint, "D2408") from None
    except RecursionError:
        raise CellError(f"this {what} is nested too deep", "", "D2408") from None


def object_of(text: str) -> dict[str, Any]:
    """The object that a line is. Raises CellError."""
    value = value_of(text)
    if not isinstance(value, dict):
        raise _no_object("line", value)
    return value


def _no_object(what: str, value: Any, way: str = "$") -> CellError:
    """`way`: to the value, as `# rows:` has it."""
    hint = 'write an object, such as {"time": 12, "temperature": 21.5}'
    while isinstance(value, list) and value:
        way, value = f"{way}[*]", next((one for one in value if isinstance(one, dict | list)), value[0])
        if isinstance(value, dict):
            hint = f"# rows: {way} takes the elements of the array as rows"
    if "[*]" in way and not isinstance(value, dict | list):
        hint = f"elements that are plain values cannot be rows with columns; with # rows: {way} "
        hint += f"one is the cell {{{way}}}"
    return CellError(f"this {what} is not an object", hint, "D2408")


def _text(value: Any, column: str, rows: str = "$", row: Any = None) -> str | None:
    """`rows`: the way to the rows; `row`: the one that the value is of. Raises CellError."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return _VALUES[value]
    if value is ABSENT:
        return None
    if isinstance(value, list):
        path = column if column.startswith("$") else f"{rows}.{column}"
        kind, hint = "an array", _name_one(value, column, row)
        if hint and any(isinstance(one, dict) for one in value):
            hint += f"; or make rows of it: # rows: {path}[*]"
    else:
        kind, hint = "an object", _name_one(value, column, row)
    error = CellError(f"`{column}` is {kind}: {_shown(value)}", hint, "D2408")
    error.column = column
    raise error


def _name_one(value: Any, column: str, row: Any) -> str:
    """How to name one of what is in an array or object, as a hint; "" where no path leads there."""
    if isinstance(row, dict) and column in row and walk(row, steps_of(column)) is not value:
        return ""  # a key that looks like a path
    found = cell_in(value)
    return (
        f"name one of {'it' if isinstance(value, list) else 'its values'}: {{{column}{found}}}"
        if found
        else ""
    )


def cell_in(value: Any) -> str:
    """The path from an array or object to a plain value in it; "" where there is none that can be written."""
    for step in _steps_in(value):
        inner = walk(value, steps_of(f"$.{step}")[1:])
        if inner is ABSENT:
            continue
        if not isinstance(inner, dict | list):
            return f".{step}"
        if found := cell_in(inner):
            return f".{step}{found}"
    return ""


def _steps_in(value: Any) -> list[str]:
    """The next steps that can be written into an array, of which all are tried up to some, or an object."""
    if isinstance(value, list):
        return [str(n) for n in range(min(len(value), 1))]
    return [key for key in value if steps_of(f"$.{key}") == ("$", key)][:_SAMPLED]


def _shown(value: Any) -> str:
    try:
        return excerpt(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return "nested deep"


def cell_of(row: dict[str, Any], column: str) -> str | None:
    """The value of a key, or at a path; None where it is missing. Raises CellError."""
    return _text(row[column] if column in row else walk(row, steps_of(column)), column)


class JsonRows:
    """Owns how values of JSON become rows of some columns, and which of these no row had yet.

    `rows`: the steps behind `$` to the rows of a value; None: a value is a row, and so is each element of a
    document that is an array. Raises DataError D2401.
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Step] | None, mapping: str) -> None:
        self._columns, self._rows, self._mapping = columns, rows, mapping
        self._places = [self._place(column) for column in columns]
        self._named = any(place[0] < 0 for place in self._places)
        self.count = 0
        self._way = _written(rows or ())
        self._astray: list[Any] = []  # values that `rows` leads nowhere in, until it leads somewhere
        self._led = rows is None
        self._unseen = dict.fromkeys(range(len(columns)))
        self._sample: list[dict[str, Any]] = []

    def _place(self, column: str) -> tuple[int, str, tuple[Step, ...]]:
        """(-1 and the name and steps in a row, or which of the values around it and the steps from there)."""
        steps = steps_of(column)
        if steps[0] != "$":
            if EVERY in steps:
                hint = "a cell is one value; # rows: $.records[*] makes a row of every element"
                raise wrong(f"`{column}` has [*]", self._mapping, hint)
            return -1, column, steps
        inner = steps[1:]
        depth = inner.count(EVERY)
        last = len(inner) - inner[::-1].index(EVERY) if depth else 0
        if inner[:last] != tuple((self._rows or ())[:last]):
            hint = "[*] in a cell is the element that the row is of: begin as # rows: does"
            raise wrong(f"`{column}` is not on the way to a row", self._mapping, hint)
        return depth, column, inner[last:]

    def of(self, value: Any, what: str = "line") -> Iterator[JsonRow]:
        """The rows of a value, those in error as what is wrong with them."""
        way = self._rows
        if way is None and what == "document" and isinstance(value, list):
            way = (EVERY,)
            self._way = _written(way)
        if way is None:
            if isinstance(value, dict):
                yield self._row((value,))
            else:
                yield _no_object(what, value)
            return
        try:
            for around in _expanded(value, way, (value,), "$"):
                if self._named and not isinstance(around[-1], dict):
                    yield _no_object("row", around[-1], self._way)
                else:
                    yield self._row(around)
        except CellError as error:
            yield error
        if not self._led:
            self._led = self.count > 0 or _leads(value, way)
            if not self._led and len(self._astray) < _SAMPLED:
                self._astray.append(value)

    def _row(self, around: tuple[Any, ...]) -> JsonRow:
        row = around[-1]
        self.count += 1
        values = [
            walk(around[depth], steps) if depth >= 0 else row[name] if name in row else walk(row, steps)
            for depth, name, steps in self._places
        ]
        if self._unseen:
            self._look(values, row)
        try:
            return [
                _text(value, name, self._way, row) for value, name in zip(values, self._columns, strict=True)
            ]
        except CellError as error:
            return error

    def _look(self, values: Sequence[Any], row: Any) -> None:
        for number in [n for n in self._unseen if values[n] is not ABSENT]:
            del self._unseen[number]
        if len(self._sample) < _SAMPLED and isinstance(row, dict):
            self._sample.append(row)

    def missing(self, place: str) -> Iterator[Diagnostic]:
        """A warning for every column that no row had, if there was a row; and if no value had the rows."""
        if not self._led and self._astray:
            known = _array_paths(self._astray)
            yield Diagnostic(
                "D2414",
                f"nothing has rows at `{self._way}`, where `{self._mapping}` looks for them",
                place=place,
                label=", ".join(map(excerpt, known[:20])),
                hint=nearest(self._way, known) or "# rows: names the array whose elements are rows",
                severity=Severity.WARNING,
            )
        if not self.count or not self._unseen:
            return
        known = columns_of(self._sample)
        for number in self._unseen:
            column = self._columns[number]
            head = column.split(".")[0].split("[")[0]
            others = [one for one in known if one.startswith((f"{head}.", f"{head}["))]
            hint = nearest(column, known) or (f"write {{{others[0]}}}" if others else "")
            yield Diagnostic(
                "D2414",
                f"no row has `{column}`, which `{self._mapping}` uses",
                place=place,
                label=", ".join(map(excerpt, known[:20])),
                hint=hint or "a column that only some other tables have can stay",
                severity=Severity.WARNING,
            )


def _expanded(
    value: Any, steps: Sequence[Step], around: tuple[Any, ...], path: str
) -> Iterator[tuple[Any, ...]]:
    """Of every row: the document, and the element of each `[*]`, the row being the last."""
    if EVERY not in steps:
        found = walk(value, steps)
        if found is not ABSENT and found is not None:
            yield (*around, found) if steps else around
        return
    at = steps.index(EVERY)
    inner = walk(value, steps[:at])
    if inner is ABSENT or inner is None:
        return
    if not isinstance(inner, list):
        keys = "".join(f".{step}" for step in steps[:at])
        raise CellError(f"`{path}{keys}` is not an array", "# rows: $ is the document itself", "D2408")
    for element in inner:
        yield from _expanded(element, steps[at + 1 :], (*around, element), f"{path}[*]")


def _written(steps: Sequence[Step]) -> str:
    """A path as `# rows:` has it."""
    return "$" + "".join(
        "[*]" if step == EVERY else f"[{step[0]}={_word(step[1])}]" if isinstance(step, tuple) else f".{step}"
        for step in steps
    )


def _leads(value: Any, steps: Sequence[Step]) -> bool:
    """Whether a path leads somewhere in a value, be it to an array without elements."""
    at = steps.index(EVERY) if EVERY in steps else len(steps)
    inner = walk(value, steps[:at])
    if inner is ABSENT or at == len(steps):
        return inner is not ABSENT
    return not isinstance(inner, list) or not inner or any(_leads(one, steps[at + 1 :]) for one in inner)


def _array_paths(values: Iterable[Any], path: str = "$", depth: int = 0) -> list[str]:
    """The paths to the arrays of objects in values, as `# rows:` has them."""
    found: dict[str, None] = {}
    for value in values:
        if isinstance(value, list):
            if not value or any(isinstance(one, dict) for one in value):
                found[f"{path}[*]"] = None
            found.update(dict.fromkeys(_array_paths(value[:_SAMPLED], f"{path}[*]", depth + 1)))
        elif isinstance(value, dict) and depth < DEEPEST:
            for key, inner in value.items():
                found.update(dict.fromkeys(_array_paths([inner], f"{path}.{key}", depth + 1)))
    return list(found)


def columns_of(rows: Iterable[Any], prefix: str = "") -> list[str]:
    """The columns of objects in the order in which they come: nested ones as paths, lists of keys and values
    by their keys.
    """
    found: dict[str, None] = {}
    for row in rows:
        for key, value in row.items():
            if isinstance(value, dict) and value and prefix.count(".") < DEEPEST:
                found.update(dict.fromkeys(columns_of([value], f"{prefix}{key}.")))
            elif isinstance(value, list):
                found.update(dict.fromkeys(_of_pairs(value, f"{prefix}{key}")))
            else:
                found[f"{prefix}{key}"] = None
    return list(found)


def named(values: list[Any]) -> bool:
    """Whether a list has objects that name themselves, of which columns are made."""
    return next(_of_pairs(values[:1], ""), None) is not None


def _of_pairs(values: list[Any], name: str) -> Iterator[str]:
    """The columns of a list of objects that name themselves: `key` or `name` beside what it is."""
    for one in values:
        said = next((k for k in ("key", "name") if isinstance(one, dict) and isinstance(one.get(k), str)), "")
        if not said or "value" not in one:
            return
        yield from columns_of([{"value": one["value"]}], f"{name}[{said}={_word(one[said])}].")


def _word(word: str) -> str:
    """A value as it stands behind `=`."""
    return json.dumps(word, ensure_ascii=False) if _is_quoted(word) else word


def _is_quoted(word: str) -> bool:
    """Whether a value is written in quotes behind `=`."""
    return not word or any(char in word for char in '[]"=\\') or word != word.strip()


def arrays_of(rows: Iterable[Any], prefix: str = "") -> dict[str, tuple[str, bool]]:
    """The arrays that `columns_of` leaves out, each with the path from it to a value (`cell_in`), and whether
    its elements are objects.
    """
    found: dict[str, tuple[str, bool]] = {}
    for row in rows:
        for key, value in row.items():
            if isinstance(value, dict) and prefix.count(".") < DEEPEST:
                found.update(arrays_of([value], f"{prefix}{key}."))
            elif isinstance(value, list) and value and not named(value):
                cell = cell_in(value) if steps_of(f"$.{key}") == ("$", key) else ""
                found.setdefault(f"{prefix}{key}", (cell, all(isinstance(one, dict) for one in value)))
    return found

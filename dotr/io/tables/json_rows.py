"""Rows of JSON lines of plain objects: numbers as they are written, `a.b` for what is nested.

Place:   files/table_reader.py.
Bad input: D2408 a line that is not an object, and a value that is an array or object where a cell is wanted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from dotr.io.tables.cells import CellError, excerpt

_VALUES = {True: "true", False: "false", None: None}


_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)


def row_of(text: str, columns: Sequence[str]) -> list[str | None]:
    """The values of some keys in one line. Raises CellError."""
    value = object_of(text)
    return [cell_of(value, column) for column in columns]


def object_of(text: str) -> dict[str, Any]:
    """The object that a line is. Raises CellError."""
    try:
        value = _DECODER.decode(text)
    except ValueError as error:
        raise CellError("this line is not JSON", str(error), "D2408") from None
    except RecursionError:
        raise CellError("this line is nested too deep", "", "D2408") from None
    if not isinstance(value, dict):
        raise CellError("this line is not an object", 'write {"time": 12, "temperature": 21.5}', "D2408")
    return value


def cell_of(row: dict[str, Any], column: str) -> str | None:
    """The value of a key, or of a path `a.b`; None where it is missing. Raises CellError."""
    value: Any = row
    if column in row:
        value = row[column]
    else:
        for key in column.split("."):
            value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return _VALUES[value]
    kind = "an array" if isinstance(value, list) else "an object"
    hint = "name what is in it: {a.b}" if isinstance(value, dict) else "a cell is one value"
    error = CellError(f"`{excerpt(json.dumps(value))}` is {kind}", hint, "D2408")
    error.column = column
    raise error


def columns_of(rows: Iterable[dict[str, Any]], prefix: str = "") -> list[str]:
    """The keys of objects, nested ones as paths, in the order in which they come."""
    found: dict[str, None] = {}
    for row in rows:
        for key, value in row.items():
            if isinstance(value, dict) and value:
                found.update(dict.fromkeys(columns_of([value], f"{prefix}{key}.")))
            elif not isinstance(value, list):
                found[f"{prefix}{key}"] = None
    return list(found)

"""Columns of mappings that no row has, by the first rows of each table of JSON, before a batch reads them.

Place:   cli/batch.py asks; run, feed and convert know it of all rows when they have read them.
Method:  as `dotr map check`, which reads so many rows and shows them.
Why not: ask the tasks: each reads a piece, and what no row of a piece has another may have.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import islice

from msgspec.structs import replace

from dotr.errors import DataError, Diagnostic
from dotr.io.error_policy import ErrorPolicy
from dotr.io.files.reader import FileReader
from dotr.io.files.sources import resolve
from dotr.io.graphs import SourceOptions

_ROWS = 1000
_FILES = 20
"""Files of which the first rows are read, at most."""


def columns_missing(places: Iterable[str], options: SourceOptions) -> list[Diagnostic]:
    """Warnings D2414 about tables of this machine; none about those that cannot be read, which is reported
    when they are.
    """
    extractor = options.extractor()
    try:
        files = [file for file in resolve(list(places), options.mappings) if _is_json(file, options)]
        for file in files[:_FILES]:
            items = FileReader(file, options, extractor, ErrorPolicy(fail=False)).items()
            for _ in islice(items, _ROWS):
                pass
            if isinstance(items, Generator):
                items.close()
    except DataError:
        return []
    note = f"by the first {_ROWS} rows of a table"
    return [replace(one, notes=(*one.notes, note)) for one in extractor.columns_missing.values()]


def _is_json(file: str, options: SourceOptions) -> bool:
    mapping = options.mapping_for(file)
    return mapping is not None and mapping.format_of(file) in ("json", "jsonl")

"""What the name of a file says about tables, and which mapping is for it.

Place:   apart from mapping.py, whose parser only runs with tables have to load.
"""

from __future__ import annotations

from collections.abc import Iterable
from os.path import splitext
from typing import TYPE_CHECKING

from dotr.io.decode.compression import plain_name

if TYPE_CHECKING:
    from dotr.io.tables.mapping import TableMapping

TABLES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
"""Ending of a name → format of the table."""


def table_format(file: str) -> str:
    """How the name of a file says that its table is written; CSV where it says nothing."""
    return TABLES.get(splitext(plain_name(file))[1].lower(), "csv")


def is_table(file: str) -> bool:
    """Whether a name says that a file is a table, and no other thing dotr reads."""
    return TABLES.get(splitext(plain_name(file))[1].lower()) in ("csv", "tsv", "arrow")


def mapping_for(file: str, mappings: Iterable[TableMapping]) -> TableMapping | None:
    """The first mapping that is for a file."""
    return next((mapping for mapping in mappings if mapping.fits(file)), None)

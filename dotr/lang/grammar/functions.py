"""The functions of SPARQL 1.1: how many arguments each takes, and which no rule may use.

Place:   read by expressions.py while it parses, and by the pages of explain.py.
Method:  SPARQL 1.1, sec. 17.4, and DAYS of a duration; casts are those of expressions/casts.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dotr.expressions.aggregates import AGGREGATES

MANY: Final = 1_000_000

_ONE: Final = (
    "STR LANG DATATYPE BOUND IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI YEAR MONTH DAY "
    "DAYS HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ISIRI ISURI ISBLANK ISLITERAL "
    "ISNUMERIC"
)
_TWO: Final = "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM"
_NONE: Final = "NOW RAND UUID STRUUID"

ARGUMENTS: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys(_ONE.split(), (1, 1)),
    **dict.fromkeys(_TWO.split(), (2, 2)),
    "SUBSTR": (2, 3),
    "REGEX": (2, 3),
    "REPLACE": (3, 4),
    "IF": (3, 3),
    "CONCAT": (0, MANY),
    "COALESCE": (0, MANY),
    **dict.fromkeys(_NONE.split(), (0, 0)),
    "BNODE": (0, 1),
}
"""Least and greatest number of arguments, by keyword."""

QUERY_AGGREGATES: Final = frozenset((*AGGREGATES, "SAMPLE", "GROUP_CONCAT"))

SYNONYMS: Final[Mapping[str, str]] = {"URI": "IRI", "ISURI": "ISIRI"}

FORBIDDEN: Final[Mapping[str, tuple[str, str]]] = {
    "RAND": ("a replay would give another answer", "take a number from the data"),
    **dict.fromkeys(
        ("UUID", "STRUUID"),
        (
            "a replay would give another answer",
            "in a template a fresh name `dotr_x` gives every event its IRI",
        ),
    ),
    "BNODE": ("blank nodes are scoped to their graph", 'build an IRI: IRI(CONCAT("urn:…", STR(?x)))'),
    "SAMPLE": ("which value it takes depends on an order that nobody fixed", "use MIN or MAX"),
    "GROUP_CONCAT": ("its text depends on an order that nobody fixed", "project the values, one fact each"),
}
"""Why a rule may not use it, and what to write instead."""

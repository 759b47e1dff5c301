"""What flows: time, facts, matches, composite events.

Place:   the values that the four steps hand to each other; no behaviour beyond naming.
Method:  hot values are plain tuples (44 ns to build; a frozen dataclass takes ten times that).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from dotr.rdf.terms import XSD_DATETIME, XSD_INTEGER, Term, Triple

Time: TypeAlias = int
"""Microseconds since 1970-01-01T00:00:00Z, or since 0 where data use integers."""

Values: TypeAlias = tuple[Term | None, ...]
"""Attributes in projection order; None where unbound."""

Fact: TypeAlias = tuple[Time, Values, int, str]
"""(time, values, ordinal among equals of its stream and time from 0, id of the composite it is or "").

A fact's identity is its stream's name (a query, or a rule under chaining) with the first three."""

TIME, VALUES, ORDINAL, ID = 0, 1, 2, 3

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """How a run writes time: kind "dateTime", or integers of `unit` microseconds (1, 1000 or 1 000 000)."""

    integer: bool = True
    unit: int = 1_000_000

    def text(self, time: Time) -> str:
        """A timestamp in the data's form: `12`, or `2026-01-01T08:00:12Z` (fraction only if there is one)."""
        if self.integer:
            return str(time // self.unit)
        try:
            whole = (_EPOCH + timedelta(seconds=time // 1_000_000)).strftime("%Y-%m-%dT%H:%M:%S")
        except OverflowError:
            return f"{time}us"
        if whole[0] != "0" and len(whole) < 19:
            whole = whole.rjust(19, "0")
        fraction = f".{time % 1_000_000:06d}".rstrip("0") if time % 1_000_000 else ""
        return f"{whole}{fraction}Z"

    def term(self, time: Time) -> Term:
        """A timestamp as a literal: what `Name.time` and `NOW()` are."""
        datatype = XSD_INTEGER if self.integer else XSD_DATETIME
        return f'"{self.text(time)}"^^<{datatype}>'


@dataclass(frozen=True, slots=True)
class Match:
    """One way a rule matched. `facts`: trigger first, then the EACH/LAST/FIRST conjuncts as written.

    `bindings` are the values of WITH in order. `rule` is the rule's place in the program.
    """

    rule: int
    time: Time
    facts: tuple[Fact, ...]
    bindings: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Composite:
    """A composite event as it leaves: everything any sink prints.

    `match` pairs position names with (stream's variables, fact); `graph` holds the template's triples in
    template order, without repeats.
    """

    rule: str
    time: Time
    id: str
    bindings: tuple[tuple[str, Term], ...]
    match: tuple[tuple[str, tuple[str, ...], Fact], ...]
    graph: tuple[Triple, ...]

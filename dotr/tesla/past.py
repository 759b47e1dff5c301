"""The facts of a rule's position in a shared column, as facts for another column.

Place:   state.py fills the columns of a restored detector with it, alone.py those of a rule evaluated alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from dotr.tesla.column_spec import ColumnSpec, RankedTotal
from dotr.tesla.thresholds import CARRIED, Threshold, measured

BY_LEVEL = 3
"""Parts of an entry of a total by level."""


class Past(Struct, frozen=True):
    """The past of a rule's position: the number of its column, and which facts were its own (None: all).

    `wanted`: what the position now takes of facts that carry their size, or of a total by level. `by_level`:
    the column was a total by level.
    """

    column: int
    own: Threshold | None
    wanted: Threshold | None
    by_level: bool = False

    def facts(self, dump: Mapping[str, list[Any]], spec: ColumnSpec) -> dict[str, list[Any]]:
        """Its facts in the form that a column of this kind takes."""
        if "totals" in dump:
            totals = ((key, self._entries(entries, spec)) for key, entries in dump["totals"])
            return {"totals": [[key, entries] for key, entries in totals if entries]}
        if "facts" not in dump:
            return dict(dump)
        found: list[list[Any]] = []
        for fact in dump["facts"]:
            size = self._size(fact)
            if self.own is not None and size is not None and size < self.own.least:
                continue
            if spec.fed_by_base and self.wanted is not None:  # its own facts passed, with their former size
                found.append([*fact[:4], self.wanted.least if size is None else max(size, self.wanted.least)])
            else:
                found.append(fact[:4])
        return {"facts": found}

    def _entries(self, entries: Sequence[Sequence[Any]], spec: ColumnSpec) -> list[Sequence[Any]]:
        """What it may read of a running total (time, argument), or of one by level (time, argument, level):
        in the other form, if the column now has that.
        """
        content, own = spec.content, self.own
        if own is not None:
            entries = [entry for entry in entries if len(entry) != BY_LEVEL or entry[2] >= own.least]
        if not isinstance(content, RankedTotal):
            return [entry[:2] if len(entry) == BY_LEVEL else entry for entry in entries]
        if self.keeps_levels(spec):
            return list(entries)
        assert self.wanted is not None
        return [[*entry[:2], self.wanted.least] for entry in entries]

    @property
    def least(self) -> int:
        """The least size of its own facts."""
        assert self.own is not None
        return self.own.least

    def keeps_levels(self, spec: ColumnSpec) -> bool:
        """Whether it is the past of a total by level, and the column is one by the same measure."""
        content = spec.content
        return (
            self.by_level
            and isinstance(content, RankedTotal)
            and self.own is not None
            and self.own.measure == content.measure
        )

    def _size(self, fact: Sequence[Any]) -> int | None:
        """Its measure; None if all facts of its column passed (then a size is by a threshold in ON)."""
        if self.own is None:
            return None
        if len(fact) > 4:
            size: int = fact[4]
            return size
        if self.own.measure.place == CARRIED:
            return None
        return measured(self.own.measure)(fact)  # version 1


def without_repeats(pasts: Iterable[Past], spec: ColumnSpec) -> list[Past]:
    """The pasts of a column's rules, without those that another one includes, level by level."""
    found: list[Past] = []
    lowest: dict[int, Past] = {}
    for past in pasts:
        if not past.keeps_levels(spec):
            found.append(past)
        elif past.column not in lowest or past.least < lowest[past.column].least:
            lowest[past.column] = past
    return [*found, *lowest.values()]

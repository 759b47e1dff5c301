"""The facts of a rule's position in a shared column, as facts for another column.

Place:   state.py fills the columns of a restored detector with it, alone.py those of a rule evaluated alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dotr.late import dataclass
from dotr.tesla.column_spec import ColumnSpec, RankedTotal
from dotr.tesla.thresholds import CARRIED, Threshold, measured

BY_LEVEL = 3
"""Parts of an entry of a total by level."""


@dataclass(frozen=True, slots=True)
class Past:
    """The past of a rule's position: the number of its column, and which facts were its own (None: all).

    `wanted`: what the position now takes of facts that carry their size, or of a total by level.
    """

    column: int
    own: Threshold | None
    wanted: Threshold | None

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
        if own is not None and own.measure == content.measure:
            return list(entries)
        assert self.wanted is not None
        return [[*entry[:2], self.wanted.least] for entry in entries]

    def _size(self, fact: Sequence[Any]) -> int | None:
        """Its measure; None if all facts of its column passed."""
        if len(fact) > 4:
            size: int = fact[4]
            return size
        if self.own is None or self.own.measure.place == CARRIED:
            return None
        return measured(self.own.measure)(fact)  # version 1

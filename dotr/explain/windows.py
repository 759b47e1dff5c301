"""What the window of a conjunct shows, and from when to when it lasts.

Place:   asked by matches.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct

from dotr.events import Fact, Time
from dotr.ir import Between, Conjunct, Rule, Within
from dotr.reference.operators import LITERAL, Row


class Shown(Struct, frozen=True):
    """The facts of a conjunct's stream around its window. `inside` are in it; `passing` are candidates.
    `opened`: False where a head holds over more points than are gone through; nothing is known of it then.
    """

    inside: tuple[Fact, ...]
    passing: tuple[Fact, ...]
    opened: bool = True

    @property
    def count(self) -> int | None:
        return len(self.inside) if self.opened else None


def bounds(rule: Rule, conjunct: Conjunct, row: Row) -> tuple[Time, Time, Fact | None]:
    """(first and last time of the window, inclusive, the reference itself where it is not a candidate)."""
    match conjunct.window:
        case Within(duration=duration, reference=reference, before=before):
            end: Time = row[reference][0]
            stream = next((p.stream for p in rule.positions if p.name == reference), None)
            same = stream == conjunct.position.stream and not LITERAL[conjunct.operator].counts_reference
            itself = row[reference] if same and not before else None
            return end - duration, end - 1 if before else end, itself
        case Between(start=start, end=end_name):
            return row[start][0] + 1, row[end_name][0] - 1, None
        case _:
            assert_never(conjunct.window)


def neighbours(rule: Rule, conjunct: Conjunct, row: Row, facts: Sequence[Fact]) -> list[Fact]:
    """Those of the facts of a conjunct's stream that the match has not in another position: a fact is no
    neighbour of its own.
    """
    taken = [row[p.name] for p in rule.positions if p.stream == conjunct.position.stream and p.name in row]
    return [fact for fact in facts if fact not in taken]

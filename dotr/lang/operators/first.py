"""FIRST [k]: the earliest events of a window. checks/single_choices.py warns where EACH is meant."""

from __future__ import annotations

from dotr.ir import Choose, Selection
from dotr.lang.operators.choosing import choosing


def _effect(conjunct: Choose) -> str:
    return f"FIRST chooses among all `{conjunct.position.name}`"


FIRST = choosing(Selection.FIRST, _effect)

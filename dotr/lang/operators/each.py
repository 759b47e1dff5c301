"""EACH: a match for every event in a window."""

from __future__ import annotations

from dotr.ir import Choose, Selection
from dotr.lang.operators.choosing import choosing


def _effect(conjunct: Choose) -> str:
    return f"every `{conjunct.position.name}` matches"


EACH = choosing(Selection.EACH, _effect)

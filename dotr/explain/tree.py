"""A line of an explanation with what stands below it.

Place:   below text.py and held_text.py, which make such trees.
"""

from __future__ import annotations

from dataclasses import field

from dotr.late import dataclass


@dataclass(slots=True)
class Node:
    """A line with what stands below it. `right` is shown at the right margin where it fits."""

    text: str
    children: list[Node] = field(default_factory=list)
    right: str = ""

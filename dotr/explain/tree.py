"""A line of an explanation with what stands below it, and how such a tree is drawn.

Place:   below text.py and held_text.py, which make such trees.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field
from msgspec.structs import replace

WIDTH = 100
NARROW = 40
"""Columns that a line has at least, however deep it stands."""


class Node(Struct):
    """A line with what stands below it. `right` is shown at the right margin where it fits."""

    text: str
    children: list[Node] = field(default_factory=list)
    right: str = ""


def pruned(node: Node, depth: int) -> Node:
    """A tree without what lies deeper than `depth` levels below its root."""
    if not node.children or depth > 0:
        return replace(node, children=[pruned(child, depth - 1) for child in node.children])
    return replace(node, children=[], right="; ".join(filter(None, (node.right, "…"))))


def drawn(node: Node, width: int = WIDTH) -> str:
    """A tree as text, each line with its end."""
    return "".join(f"{line}\n" for line in _lines(node, "", "", width))


def _lines(node: Node, first: str, rest: str, width: int) -> Iterator[str]:
    text = first + node.text
    width = max(width, len(rest) + NARROW)
    right = len(text) + 3 + len(node.right) <= width
    bar = "│" if node.children else " "
    yield from _wrapped(f"{text}   {node.right}" if right and node.right else text, f"{rest}{bar}    ", width)
    if node.right and not right:
        margin = f"{rest}{bar}       "
        yield from _wrapped(margin + node.right, f"{margin}  ", width)
    for place, child in enumerate(node.children):
        last = place == len(node.children) - 1
        yield from _lines(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), width)


def _wrapped(line: str, margin: str, width: int) -> Iterator[str]:
    """A line broken between words; what is longer than a line stands by itself."""
    while len(line) > width:
        cut = line.rfind(" ", len(margin) + 1, width + 1)
        if cut < 0:
            cut = line.find(" ", width)
        if cut < 0:
            break
        yield line[:cut].rstrip()
        line = margin + line[cut + 1 :].lstrip()
    yield line

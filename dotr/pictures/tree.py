"""Lines below lines, which open and close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dotr.pictures.markup import Html, element, text


class Line(Protocol):
    """A line with the lines below it, and a remark beside it."""

    @property
    def text(self) -> str: ...
    @property
    def right(self) -> str: ...
    @property
    def children(self) -> Sequence[Line]: ...


def tree(lines: Sequence[Line], opened: int = 3) -> Html:
    """The lines; so many levels are open at first. Recursive, as their text is (`explain/text.py`)."""
    return element("div", *(_part(line, opened) for line in lines), class_="tree")


def _part(line: Line, opened: int) -> Html:
    remark = element("span", text(line.right), class_="note") if line.right else Html("")
    says = element("span", element("code", text(line.text)), remark, class_="says")
    if not line.children:
        return element("div", says, class_="leaf")
    below = [_part(child, opened - 1) for child in line.children]
    return element("details", element("summary", says), *below, open=opened > 0)

"""Where comments go when a text is printed again.

Place:   under printer.py; knows places in the old text and lines of the new one, no grammar.
Method:  a text is a row of units (a prologue line, a query, a clause, a Datalog rule), each with its place. A
         comment behind a unit on its line belongs to it, one inside a unit or before it stands above it, what
         is left stands at the end. So no comment is ever lost, whatever the printer makes of the unit.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from dotr.lang.grammar.tokens import comments
from dotr.source import Source


class LayoutUnit(Struct):
    """A part of a text. `lines`: how it is printed, none if left out. `gap`: an empty line comes before."""

    start: int
    end: int
    lines: list[str]
    gap: bool = False
    above: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)


def attach(source: Source, units: Sequence[LayoutUnit]) -> list[str]:
    """Give every comment of the text to a unit; return those behind the last one. `units` in source order."""
    footer: list[str] = []
    index = 0
    previous_end = 0
    for start, end in comments(source):
        text = source.text[start:end].rstrip()
        while index < len(units) and units[index].end <= start:
            index += 1
        before = units[index - 1] if index else None
        if before is not None and "\n" not in source.text[before.end : start]:
            before.behind.append(text)
        else:
            following = units[index] if index < len(units) else None
            goal = following.above if following is not None else footer
            outside = following is None or start < following.start
            if outside and goal and goal[-1] and source.text[previous_end:start].count("\n") > 1:
                goal.append("")
            goal.append(text)
            if following is not None and outside and _gap_below(source, end, following.start):
                goal.append("")
        previous_end = end
    return footer


def _gap_below(source: Source, end: int, start: int) -> bool:
    """Whether an empty line, and no other comment, stands between a comment and its unit."""
    between = source.text[end:start]
    return "#" not in between and between.count("\n") > 1


def render(units: Sequence[LayoutUnit], footer: Sequence[str]) -> str:
    """The units in the order given, as one text that ends with a newline (unless it is empty)."""
    out: list[str] = []
    held: list[str] = []  # comments of units that are left out
    for unit in units:
        above = [*held, *unit.above]
        if not unit.lines:
            held = [*above, *unit.behind]
            continue
        held = []
        if len(unit.lines) > 1 or unit.lines[0].startswith("#"):
            above += unit.behind
            behind = ""
        else:
            behind = f"  {'  '.join(unit.behind)}" if unit.behind else ""
        if unit.gap and out and out[-1]:
            out.append("")
        out += above
        out += [unit.lines[0] + behind, *unit.lines[1:]]
    rest = [*held, *footer]
    if rest and out:
        out.append("")
    out += rest
    while out and not out[-1]:
        out.pop()
    return "\n".join(out) + "\n" if out else ""

"""What notebooks show of an engine.

Place:   under api.py.
"""

from __future__ import annotations

from html import escape

from dotr.core.counters import Counters
from dotr.core.funnel import shown
from dotr.ir import Program


def engine_table(title: str, program: Program, counters: Counters) -> str:
    """A table of the rules, with how many events each had and how far it came, under a title."""
    rows = [
        (rule.name, f"{counters.events.get(rule.name, 0):,}", shown(counters.funnel.get(rule.name, ())))
        for rule in program.rules
    ]
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return (
        f"<p>{escape(title)}</p><table><thead><tr><th>rule</th><th>events</th><th>how far</th></tr></thead>"
        f"<tbody>{''.join(f'<tr>{row}</tr>' for row in cells)}</tbody></table>"
    )

"""A comparison as text, JSON or a self-contained page.

Place:   `dotr compare`; comparing.py has found it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from dotr.io.term_formatting import TermFormatter, json_terms
from dotr.io.text_tables import aligned
from dotr.testing.comparing import Difference, RunComparison

_SIGNS = {True: "+", False: "−"}
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Tol's bright scheme, which the colour-blind can tell apart."""


def text(
    found: RunComparison, reasons: Sequence[tuple[Difference, str]], shown: int, width: int | None = None
) -> str:
    """Tables per rule and day, then the first differences, explained. `width`: of a terminal."""
    if len(found.versions) != 2:
        return _table(_sweep(found), width)
    lines = [_table(_pair(found), width)]
    why = dict(reasons)
    terms = formatter(found)
    for difference in found.differences[:shown]:
        lines.append(difference_text(difference, found, terms))
        lines += [f"    {line}" for line in why.get(difference, "").splitlines()]
    left = found.changed - sum(abs(d.change) for d in found.differences[:shown])
    if left:
        lines.append(f"and {left} more")
    return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"


def formatter(found: RunComparison) -> TermFormatter:
    return TermFormatter(
        {k: v for version in reversed(found.versions) for k, v in version.program.prefixes.items()}
    )


def difference_text(difference: Difference, found: RunComparison, terms: TermFormatter) -> str:
    """`+ Fire @ 12  ?room :room23`."""
    values = " ; ".join(f"?{name} {terms.term(term)}" for name, term in difference.bindings)
    times = f" × {abs(difference.change)}" if abs(difference.change) > 1 else ""
    sign = _SIGNS[difference.change > 0]
    return f"{sign} {difference.rule} @ {found.clock.text(difference.time)}  {values}{times}".rstrip()


def _pair(found: RunComparison) -> list[list[str]]:
    rows = [["rule", "day", *(version.name for version in found.versions), "+", "−"]]
    for rule in found.rules:
        days = [day for day in found.days if (rule, day) in found.counts]
        for day in days or ["-"]:
            counts = found.counts.get((rule, day), [0, 0])
            added = found.added.get((rule, day), [0, 0])[1]
            removed = found.removed.get((rule, day), [0, 0])[1]
            rows.append([rule, day, *map(str, counts), str(added), str(removed)])
    return rows


def _sweep(found: RunComparison) -> list[list[str]]:
    rows = [["rule", *(version.name for version in found.versions)]]
    return rows + [[rule, *map(str, found.total(rule))] for rule in found.rules]


def _table(rows: Sequence[Sequence[str]], width: int | None) -> str:
    left = 2 if len(rows[0]) > 1 and rows[0][1] == "day" else 1
    return aligned(rows, width, left)


def as_json(found: RunComparison, reasons: Sequence[tuple[Difference, str]]) -> str:
    """One object: versions, events by rule and day, and the differences that were kept."""
    why = dict(reasons)
    days = [
        {
            "rule": rule,
            "day": day,
            "events": counts,
            "added": found.added.get((rule, day), [0] * len(counts)),
            "removed": found.removed.get((rule, day), [0] * len(counts)),
        }
        for rule in found.rules
        for day in found.days
        if (counts := found.counts.get((rule, day)))
    ]
    differences = [
        {
            "version": found.versions[one.version].name,
            "change": one.change,
            "rule": one.rule,
            "time": one.time // found.clock.unit if found.clock.integer else found.clock.text(one.time),
            "bindings": {name: json.loads(json_terms[term]) for name, term in one.bindings},
            **({"because": why[one]} if one in why else {}),
        }
        for one in found.differences
    ]
    value = {
        "versions": [version.name for version in found.versions],
        "graphs": found.graphs,
        "changed": found.changed,
        "days": days,
        "differences": differences,
    }
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def html(found: RunComparison, reasons: Sequence[tuple[Difference, str]], shown: int) -> str:
    """A page that needs nothing else: a plot of events a day and version, tables, differences."""
    why, terms = dict(reasons), formatter(found)
    rows = _pair(found) if len(found.versions) == 2 else _sweep(found)
    body = [f"<h1>{escape(' · '.join(version.name for version in found.versions))}</h1>", _plot(found)]
    body.append(
        "<table>" + "".join(_row(row, "th" if not n else "td") for n, row in enumerate(rows)) + "</table>"
    )
    for one in found.differences[:shown]:
        body.append(f"<p><code>{escape(difference_text(one, found, terms))}</code></p>")
        if why.get(one):
            body.append(f"<pre>{escape(why[one])}</pre>")
    style = (
        "body{font:15px sans-serif;margin:2em;max-width:70em}td,th{padding:.2em .8em;text-align:right}"
        "td:first-child,th:first-child{text-align:left}tr:nth-child(even){background:#f4f4f4}"
        "pre{background:#f4f4f4;padding:1em;overflow:auto}"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>dotr compare</title>'
        f"<style>{style}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _plot(found: RunComparison) -> str:
    """Events a day, a bar for each version."""
    days, versions = found.days, found.versions
    sums = [[0] * len(versions) for _ in days]
    for (_, day), counts in found.counts.items():
        place = days.index(day)
        sums[place] = [a + b for a, b in zip(sums[place], counts, strict=True)]
    most = max((n for row in sums for n in row), default=0) or 1
    bar, height = max(2, min(24, 900 // max(1, len(days) * (len(versions) + 1)))), 160
    step = bar * (len(versions) + 1)
    shapes = []
    for place, (day, row) in enumerate(zip(days, sums, strict=True)):
        for version, count in enumerate(row):
            size = round(height * count / most, 1)
            shapes.append(
                f'<rect x="{40 + place * step + version * bar}" y="{20 + height - size}" width="{bar - 1}" '
                f'height="{size}" fill="{_COLOURS[version % len(_COLOURS)]}">'
                f"<title>{escape(day)} {escape(versions[version].name)}: {count}</title></rect>"
            )
        if place % max(1, len(days) // 10) == 0:
            shapes.append(
                f'<text x="{40 + place * step}" y="{height + 36}" font-size="11">{escape(day)}</text>'
            )
    for version, one in enumerate(versions):
        x = 40 + version * 180
        shapes.append(
            f'<rect x="{x}" y="{height + 48}" width="10" height="10" fill="{_COLOURS[version % 7]}"/>'
        )
        shapes.append(f'<text x="{x + 14}" y="{height + 57}" font-size="12">{escape(one.name)}</text>')
    shapes.append(f'<text x="0" y="28" font-size="11">{most}</text>')
    wide = max(60 + len(days) * step, 40 + 180 * len(versions))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{height + 70}" role="img">'
        f"<title>events a day</title>{''.join(shapes)}</svg>"
    )

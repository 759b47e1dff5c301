"""Random sequences as text, with streams: for the literal reading, the engine, and every way of running.

All quantifiers, alternation, nesting, reluctant, GAP, OVERLAPPING, SKIP TO LAST, SKIPPING, ties, several
sources, conditions on the row, PREV, FIRST, LAST and aggregates. Small: few rows, values and times, so that
deadlines meet rows, rows meet at one instant, and partial matches differ in little.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from dotr.program.sequences import (
    Either,
    Element,
    InOrder,
    Pattern,
    Repeated,
    elements_of,
    pattern_text,
    satisfied_by_nothing,
)

ELEMENTS = ("A", "X", "Y", "B")
"""A and B have the names of sources."""
PROLOGUE = """PREFIX : <http://example.org/>
QUERY A := { SELECT ?k ?v WHERE { ?o :a ?v OPTIONAL { ?o :k ?k } } }
QUERY B := { SELECT ?k ?v WHERE { ?o :b ?v OPTIONAL { ?o :k ?k } } }
"""
OF_THE_ROW = ("{e}.?v = 1", "{e}.?v > 0", "{e}.?v < 2", "{e}.?v != 1", "true", "{e}.?w = 1", "{e}.?v / 0 = 1")
OF_ROWS_BEFORE = (
    "{e}.?v > PREV.?v",
    "{e}.?v <= PREV.?v",
    "{e}.?v = PREV(2).?v",
    "COALESCE(PREV.?v, 1) = {e}.?v",
    "{e}.time - PREV.time <= 1",
    "!BOUND(PREV.?v) || {e}.?v != PREV.?v",
)
OF_THE_MATCH = (
    "{e}.?v >= FIRST(*).?v",
    "{e}.?v != LAST({o}).?v",
    "{e}.?v > {o}.?v",
    "COALESCE(LAST({e}, 1).?v, 0) <= {e}.?v",
    "COALESCE(FIRST({o}, 1).?v, 1) = 1",
    "{e}.time - FIRST(*).time < 4",
    "LAST(*, 1).?v = 1 || COUNT(*) < 3",
    "COUNT({e}) <= 2",
    "COUNT(*) < 4",
    "SUM({e}.?v) < 3",
    "SUM({o}.?v) >= {e}.?v",
    "COALESCE(MAX({o}.?v), 0) <= {e}.?v",
    "COUNT(DISTINCT {e}.?v) = COUNT({e})",
    "AVG({e}.?v * 2) >= 1",
)
VALUES = (
    "COUNT(*)",
    "COUNT({e})",
    "SUM({e}.?v)",
    "AVG({e}.?v)",
    "MAX({e}.?v)",
    "MIN({e}.?v + 1)",
    "COUNT(DISTINCT {e}.?v)",
    "{e}.?v",
    "FIRST({e}).?v",
    "LAST({e}, 1).?v",
    "FIRST(*).time",
    "LAST(*).time",
    "{e}.time - FIRST(*).time",
    "FIRST(*).?k",
    "{e}.?v / SUM({o}.?v)",
)


class Row(NamedTuple):
    """A fact of a source: `a` or `b`, its value, its key ("" for none)."""

    source: str
    value: int
    key: str


Instants = list[tuple[int, list[Row]]]
"""(time, what comes then, perhaps nothing) in the order of time."""


def _reached(pattern: Pattern) -> int:
    """Elements, those counted that are repeated a number of times."""
    match pattern:
        case Element():
            return 1
        case InOrder(parts) | Either(parts):
            return sum(map(_reached, parts))
        case Repeated(part, minimum, maximum):
            return _reached(part) * max(1, minimum, maximum or 0)


_QUANTIFIERS = ((1, None), (0, None), (0, 1), (2, 2), (2, None), (1, 2), (0, 2), (1, 1), (1, 3))


@st.composite
def patterns(draw: st.DrawFn, depth: int = 2) -> Pattern:
    """A pattern; the empty word may satisfy it."""
    kind = draw(
        st.sampled_from(
            ("element", "repeated", "order", "order", "either") if depth else ("element", "repeated")
        )
    )
    if kind == "element":
        return Element(draw(st.sampled_from(ELEMENTS)))
    if kind == "repeated":
        part = (
            draw(patterns(max(0, depth - 1)))
            if depth and draw(st.booleans())
            else Element(draw(st.sampled_from(ELEMENTS)))
        )
        if satisfied_by_nothing(part):
            return part
        least, most = draw(st.sampled_from(_QUANTIFIERS))
        return Repeated(part, least, most, draw(st.booleans()))
    parts = draw(st.lists(patterns(depth - 1), min_size=2, max_size=3))
    flat: list[Pattern] = []
    for part in parts:
        if isinstance(part, InOrder) and kind == "order":
            flat += part.parts
        elif isinstance(part, Either) and kind == "either":
            flat += part.branches
        else:
            flat.append(part)
    return InOrder(tuple(flat)) if kind == "order" else Either(tuple(flat))


@st.composite
def sequences(
    draw: st.DrawFn, name: str = "Seq", sources: str = "A, B", *, merged: bool | None = None
) -> str:
    """A SEQUENCE over A and B. `merged`: its conditions look at the row and PREV only; None: or not."""
    pattern = draw(patterns().filter(lambda p: not satisfied_by_nothing(p) and _reached(p) <= 12))
    named = list(dict.fromkeys(elements_of(pattern)))
    pools = [OF_THE_ROW, OF_ROWS_BEFORE]
    if merged is False or (merged is None and draw(st.booleans())):
        pools = [OF_THE_ROW, OF_ROWS_BEFORE, OF_THE_MATCH, OF_THE_MATCH]
    lines = [f"SEQUENCE {name} := {pattern_text(pattern)}{draw(st.sampled_from(('', '', '', ' SKIPPING')))}"]
    key = draw(st.sampled_from(("", " PER ?k")))
    lines.append(f"OF {sources}{key}")
    for element in named:
        of = draw(st.sampled_from(("", "", " OF A", " OF B", " OF B, A"))) if element in "XY" else ""
        on = ""
        if draw(st.integers(0, 3)):
            conditions = draw(
                st.lists(st.sampled_from(pools).flatmap(st.sampled_from), min_size=1, max_size=2)
            )
            other = draw(st.sampled_from(named))
            words = draw(st.sampled_from((" && ", " || ")))
            on = f" ON {words.join(c.format(e=element, o=other) for c in conditions)}"
        if of or on:
            lines.append(f"AND {element}{of}{on}".replace("?w", "?v"))
    bound = f"WITHIN {draw(st.integers(0, 8))} s"
    if draw(st.integers(0, 2)) == 0:
        bound += f" GAP {draw(st.integers(0, 3))} s"
    way = draw(st.sampled_from(("", "", "", " OVERLAPPING", " OVERLAPPING", "to")))
    lines.append(bound + (f" SKIP TO LAST {draw(st.sampled_from(named))}" if way == "to" else way))
    values = draw(st.lists(st.sampled_from(VALUES), max_size=4))
    given = ["?first := FIRST(*).time", "?n := COUNT(*)"][: draw(st.integers(0, 2))]
    given += [
        f"?x{n} := {v.format(e=draw(st.sampled_from(named)), o=named[0])}" for n, v in enumerate(values)
    ]
    if given:
        lines.append(f"WITH {', '.join(given)}")
    return "\n".join(lines) + "\n"


READERS = (
    "RULE Found\nDEFINE {{ dotr_x a :Found }}\nFROM {s}\n",
    "RULE Pair\nDEFINE {{ dotr_x a :Pair }}\nFROM {s}\nAND EACH Earlier := {s} WITHIN 6 s BEFORE {s}\n",
    "RULE Absent\nDEFINE {{ dotr_x a :None }}\nFROM A\nAND NOT {s} WITHIN 3 s FROM A\n",
    "RULE Many\nDEFINE {{ dotr_x :n ?n }} FROM B\nAND COUNT(*) AS ?n OVER {s} WITHIN 9 s FROM B WITH ?n:=?n",
    "RULE Late\nDEFINE {{ dotr_x a :Late }}\nFROM {s} AFTER 2 s AS Due\n",
)


@st.composite
def programs(draw: st.DrawFn, *, merged: bool | None = None) -> str:
    """One sequence, or a second one over it, and rules that read them."""
    text = PROLOGUE + draw(sequences(merged=merged))
    streams = ["Seq"]
    if draw(st.integers(0, 4)) == 0:
        text += "\nSEQUENCE Runs := Seq+\nOF Seq\nWITHIN 5 s\nWITH ?m := COUNT(Seq), ?t := FIRST(Seq).time\n"
        streams.append("Runs")
    text += "\n" + READERS[0].format(s=streams[-1])
    for reader in draw(st.lists(st.sampled_from(READERS[1:]), max_size=2, unique=True)):
        text += "\n" + reader.format(s=draw(st.sampled_from(streams)))
    return text


@st.composite
def instants(draw: st.DrawFn, most: int = 9, least: int = 1, rows: int = 0) -> Instants:
    """A stream, rich in ties; with no `rows` nothing comes at some instants that is a row."""
    found: Instants = []
    time = draw(st.integers(0, 2))
    row = st.builds(Row, st.sampled_from("aab"), st.integers(0, 2), st.sampled_from(("x", "x", "y", "")))
    for _ in range(draw(st.integers(least, most))):
        found.append((time, draw(st.lists(row, min_size=rows, max_size=3))))
        time += draw(st.sampled_from((1, 1, 1, 2, 3, 5)))
    return [*found, (time + draw(st.sampled_from((0, 2, 12))), [])]


def graph_of(rows: Sequence[Row]) -> str:
    """The rows of an instant as a Turtle document: equal ones are facts of their own."""
    nodes = [f"[] :{row.source} {row.value}{f' ; :k :{row.key}' if row.key else ''} ." for row in rows] or [
        "[] a :Nothing ."
    ]
    return "@prefix : <http://example.org/> . " + " ".join(nodes)


def stream_of(given: Instants) -> str:
    """The stream as JSON lines."""
    return "".join(json.dumps({"time": time, "graph": graph_of(rows)}) + "\n" for time, rows in given)

"""What a filter over zones of the background costs a graph of one point: the R-tree of joins/nearby.py.

Run:     python -m tests.bench places
Method:  zones are squares in a grid, and cover four fifths of it; each graph has a new point, which
         no table knows. Two engines with one rule each, which writes an event for a point, or for a point in
         a zone, take turns in short pieces. Processor time, the median of the pieces: other work on a machine
         doubles some of them.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import dotr
from dotr.expressions.geometry import GEO, WKT

PIECE = 200
MOST = 3.0
"""How many times as long a graph may take with the filter. It was 3.3 when the filter came after the tree."""
GROWTH = 1.5
"""How many times as long a hundred times as many zones may take."""
RULES = """PREFIX : <urn:x:>
PREFIX geo: <http://www.opengis.net/ont/geosparql#>
PREFIX geof: <http://www.opengis.net/def/function/geosparql/>
BACKGROUND <zones.ttl>
RULE In
DEFINE {{ dotr_e :of ?v ; :in ?z }}
FROM Q := {{ SELECT ?v ?z {{ {pattern} }} }}
WITH ?v := Q.?v, ?z := Q.?z
"""
PATTERNS = {
    "without": "?v :at ?z",
    "with": "?v :at ?p . ?z geo:asWKT ?area FILTER(geof:sfWithin(?p, ?area))",
}


def squares(count: int) -> Iterator[str]:
    """Zones, in a grid of as many rows as columns; the grid is as long as wide."""
    side = math.isqrt(count)
    for place in range(side * side):
        x, y = place % side / side, place // side / side
        u, v = x + 0.9 / side, y + 0.9 / side
        ring = ", ".join(f"{a:.4f} {b:.4f}" for a, b in ((x, y), (u, y), (u, v), (x, v), (x, y)))
        yield f'<urn:x:zone{place}> <{GEO}asWKT> "POLYGON(({ring}))"^^<{WKT}> .\n'


def points(count: int, seed: str) -> list[str]:
    """Graphs of a point each."""
    draw = random.Random(seed)
    return [
        f'<urn:x:v{n % 50}> <urn:x:at> "POINT({draw.random():.6f} {draw.random():.6f})"^^<{WKT}> .'
        for n in range(count)
    ]


def measure(zones: int, graphs: int) -> dict[str, Any]:
    """µs of processor time a graph, without the filter and with it, and how many were in a zone."""
    spent: dict[str, list[float]] = {name: [] for name in PATTERNS}
    found = dict.fromkeys(PATTERNS, 0)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "zones.ttl").write_text("".join(squares(zones)))
        engines = {}
        for name, pattern in PATTERNS.items():
            (Path(folder) / f"{name}.dotr").write_text(RULES.format(pattern=pattern))
            engines[name] = dotr.Engine(Path(folder) / f"{name}.dotr")
        time = 0
        for piece in range(-1, graphs // PIECE):  # the first makes the tree
            for name, engine in engines.items():
                new = points(PIECE, f"{zones} {name} {piece}")
                start = process_time()
                for graph in new:
                    time += 1
                    found[name] += len(engine.push(graph, at=time))
                if piece >= 0:
                    spent[name].append((process_time() - start) / PIECE * 1e6)
    without, with_it = (median(spent[name]) for name in PATTERNS)
    return {
        "zones": zones,
        "without µs": round(without, 1),
        "with µs": round(with_it, 1),
        "filter µs": round(median(b - a for a, b in zip(*spent.values(), strict=True)), 1),
        "times": round(median(b / a for a, b in zip(*spent.values(), strict=True)), 2),
        "in a zone": round(found["with"] / found["without"], 2),
    }


def figures(graphs: int) -> tuple[list[dict[str, Any]], dict[str, bool]]:
    """Rows, and what must hold of them."""
    few, many = rows = [measure(zones, graphs) for zones in (100, 10_000)]
    return rows, {
        f"a point in 10,000 zones: at most {MOST} × as long as without a filter": many["times"] <= MOST,
        f"10,000 zones: at most {GROWTH} × as long as 100": many["with µs"] <= GROWTH * few["with µs"],
    }

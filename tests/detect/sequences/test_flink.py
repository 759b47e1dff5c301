"""An outside check: Flink SQL's MATCH_RECOGNIZE finds the same rows on a common subset.

DOTR_FLINK is a Python that has apache-flink (`pip install apache-flink==2.3.0`, and Java 17); without it the
test is skipped. Conditions of different elements exclude each other, since Flink takes greedy quantifiers
possessively where they overlap; the last element is one row, for a pattern of Flink's may not end greedily,
and no element is `??`, which it does not have.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dotr.detect.detector import TeslaDetector
from dotr.events import Clock
from dotr.lang import parse_program
from dotr.rdf.terms import integer

FLINK = os.environ.get("DOTR_FLINK", "")
SCRIPT = Path(__file__).parents[2] / "bench" / "peer_sequences.py"
OPTIONAL = ("*", "?", "*?")
"""What Flink does not take behind a greedy quantifier."""
PATTERNS, CASES, ROWS = 20, 10, 40
QUANTIFIERS = ("", "", "+", "*", "?", "{2}", "{1,2}", "{2,}", "+?", "*?", "{1,3}?")

QUERY = "QUERY Q := { SELECT ?k ?v WHERE { ?k <urn:x:v> ?v } }\n"


def pattern(random: Random) -> list[tuple[str, str]]:
    """(element, quantifier); element `En` takes rows whose value is n."""
    middle: list[tuple[str, str]] = []
    for number in range(1, random.randint(2, 5)):
        greedy = bool(middle) and middle[-1][1] not in ("", "{2}") and not middle[-1][1].endswith("?")
        greedy = greedy or (bool(middle) and middle[-1][1] == "?")
        allowed = [one for one in QUANTIFIERS if not (greedy and one in OPTIONAL)]
        middle.append((f"E{number}", random.choice(allowed)))
    return [("E0", ""), *middle, (f"E{len(middle) + 1}", "")]


def of_flink(parts: list[tuple[str, str]], skip: str) -> str:
    elements = [name for name, _ in parts]
    counted = ", ".join(f"COUNT({name}.v) AS n{name}" for name in elements)
    define = ", ".join(f"{name} AS {name}.v = {name[1:]}" for name in elements)
    written = " ".join(name + quantifier for name, quantifier in parts)
    parts_of_query = [
        "SELECT k, b, e",
        *(f", n{name}" for name in elements),
        " FROM {facts} MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts",
        f" MEASURES E0.ms AS b, {elements[-1]}.ms AS e, {counted}",
        f" ONE ROW PER MATCH AFTER MATCH SKIP {skip} PATTERN ({written}) DEFINE {define})",
    ]
    return "".join(parts_of_query)


def of_dotr(parts: list[tuple[str, str]], skip: str) -> str:
    elements = [name for name, _ in parts]
    counted = ", ".join(f"?n{name} := COUNT({name})" for name in elements)
    on = " ".join(f"AND {name} ON {name}.?v = {name[1:]}" for name in elements)
    written = " ".join(name + quantifier for name, quantifier in parts)
    overlapping = "OVERLAPPING" if skip == "TO NEXT ROW" else ""
    return QUERY + (
        f"SEQUENCE S := {written} OF Q PER ?k {on} WITHIN 1000 d {overlapping}\n"
        f"WITH ?k := E0.?k, ?b := E0.time, ?e := {elements[-1]}.time, {counted}\n"
        "RULE R DEFINE { dotr_x a <urn:x:R> } FROM S"
    )


def by_dotr(text: str, rows: list[tuple[int, int, int]]) -> list[tuple[int, ...]]:
    detector = TeslaDetector(parse_program(text), Clock())
    sequence = next(i for i, rule in enumerate(detector.program.rules) if rule.name == "S")
    found = []
    for k, v, second in sorted(rows, key=lambda row: row[2]):
        time = second * 1_000_000
        facts: Any = {"Q": [(time, (integer(k), integer(v)), 0, "")]}
        for match in detector.at(time, facts):
            if match.rule == sequence:
                k_, b, e, *counts = (int(str(term).split('"')[1]) for term in match.bindings)
                found.append((k_, b * 1000, e * 1000, *counts))
    return sorted(found)


@pytest.mark.skipif(not FLINK, reason="DOTR_FLINK names no Python that has apache-flink")
def test_flink_matches_the_same_rows(tmp_path: Path) -> None:
    random = Random(42)
    jobs, expected = [], []
    for number in range(PATTERNS):
        parts = pattern(random)
        skip = random.choice(["PAST LAST ROW", "PAST LAST ROW", "TO NEXT ROW"])
        values = [*range(len(parts)), *(n for n, (_, q) in enumerate(parts) if q)]
        rows = []
        for second in range(ROWS * CASES):
            near = random.random() < 0.6 and rows
            k = second % CASES
            last = next((v for k_, v, _ in reversed(rows) if k_ == k), -1)
            v = (last + random.choice([0, 1])) % len(parts) if near else random.choice(values)
            rows.append((k, v, second))
        expected.append(by_dotr(of_dotr(parts, skip), rows))
        facts = tmp_path / f"facts{number}.csv"
        with facts.open("w", newline="") as out:
            csv.writer(out).writerows((k, v, second * 1000) for k, v, second in rows)
        counts = ", ".join(f"n{name} BIGINT" for name, _ in parts)
        jobs.append(
            {
                "facts": str(facts),
                "out": str(tmp_path / f"out{number}"),
                "columns": "k INT, v INT",
                "result": f"k INT, b BIGINT, e BIGINT, {counts}",
                "query": of_flink(parts, skip),
            }
        )
    listed = tmp_path / "jobs.json"
    listed.write_text(json.dumps(jobs))
    subprocess.run([FLINK, str(SCRIPT), str(listed)], check=True, capture_output=True)
    for job, wanted in zip(jobs, expected, strict=True):
        out = Path(job["out"])  # not there where nothing matches
        found = [
            tuple(map(int, row))
            for part in (sorted(out.iterdir()) if out.exists() else ())
            for row in csv.reader(part.open(newline=""))
        ]
        assert sorted(found) == wanted, job["query"]
    assert sum(map(len, expected)) > PATTERNS * CASES // 2

"""What `--verify` may spend on a sequence, whose literal reading goes through every way to take rows."""

from __future__ import annotations

import pytest

import dotr
from dotr.errors import DotrError

RULES = """PREFIX : <ex:>
QUERY Row := { SELECT ?v { ?o :v ?v } }
SEQUENCE Run := A+ B SKIPPING OF Row AND B ON B.?v > 90 WITHIN 100 s
RULE R DEFINE { dotr_r a :R } FROM Run
"""


def pushed(rows: int, verify: bool) -> dotr.Engine:
    engine = dotr.Engine.from_text(RULES, budget=100_000, verify=verify)
    for time in range(rows):
        engine.push(f"<ex:o> <ex:v> {time} .", at=time)
    return engine


def test_a_sequence_of_many_ways_is_not_read_literally_for_ever() -> None:
    """It was 28 s of CPU for 20 rows, and twice as much for each further one; the engine keeps one way."""
    pushed(60, verify=False).finish()
    pushed(8, verify=True).finish()
    with pytest.raises(DotrError, match=r"D4012.*literal reading of `Run`"):
        pushed(60, verify=True)

"""What `--verify` and `dotr test` may spend on a sequence, whose literal reading goes through every way."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import dotr
from dotr.cli.main import group
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


def test_a_test_of_a_sequence_of_many_ways_ends(tmp_path: Path) -> None:
    """Coverage read it literally: a case of 24 rows did not end."""
    (tmp_path / "many.dotr").write_text(RULES, encoding="utf-8")
    rows = "".join(f'      - {{ at: {t}, graph: "<ex:o> <ex:v> {t} ." }}\n' for t in range(60))
    text = f"rules: many.dotr\ntests:\n  - name: many rows\n    stream:\n{rows}    never: [ R ]\n"
    (tmp_path / "many.test.yaml").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(group, ["test", str(tmp_path / "many.test.yaml")])
    assert (done.exit_code, "1 test passed" in done.output) == (0, True), done.output

"""Operators of rules are found by tables in three rooms; nobody else asks which one it is."""

import ast
from pathlib import Path

import pytest

from dotr.detect.operators import DETECTED
from dotr.lang.operators import WRITTEN
from dotr.program.rules import Operator, Selection
from dotr.reference.operators import LITERAL

CODE = Path(__file__).resolve().parents[2] / "dotr"
ASKING = {
    "explain/text.py": "says `latest` and `earliest` of the other candidates",
    "lang/checks/comparisons.py": "D1327 is about LAST 1 and FIRST 1 alone",
    "lang/checks/advice.py": "D1331 and D1335 are about EACH alone",
    "lang/grammar/dotr.py": "EACH has no number",
}
"""Files outside of the three rooms that tell selections apart, and why."""


@pytest.mark.parametrize("table", [LITERAL, WRITTEN, DETECTED], ids=["literal", "written", "detected"])
def test_every_operator_has_a_row(table: dict[Operator, object]) -> None:
    assert set(table) == set(Operator)
    assert {Selection(s).value for s in Selection} < {o.value for o in Operator}


def test_nobody_else_asks_which_selection_it_is() -> None:
    asking = set()
    for path in sorted(CODE.rglob("*.py")):
        if "operators" in (path.parent.name, path.stem):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in (
                "Selection",
                "program.Selection",
            ):
                asking.add(str(path.relative_to(CODE)))
    assert asking == set(ASKING)


def test_the_literal_meaning_knows_no_engine() -> None:
    assert "dotr.detect" not in (CODE / "reference" / "operators.py").read_text("utf-8")

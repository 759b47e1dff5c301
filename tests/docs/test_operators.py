"""Operators of rules are found by tables in three rooms; nobody else asks which one it is."""

import ast
from pathlib import Path

import pytest

from dotr.ir.rules import Operator, Selection
from dotr.lang.operators import WRITTEN
from dotr.reference.operators import LITERAL
from dotr.tesla.operators import DETECTED

CODE = Path(__file__).resolve().parents[2] / "dotr"
FILES = {Operator.NOT: "absent"} | {o: o.value.lower() for o in Operator if o is not Operator.NOT}
ASKING = {
    "explain/text.py": "says `latest` and `earliest` of the other candidates",
    "lang/checks/single_choices.py": "D1327 is about LAST 1 and FIRST 1 alone",
    "lang/grammar/windows.py": "EACH has no number",
}
"""Files outside of the three rooms that tell selections apart, and why."""


@pytest.mark.parametrize("table", [LITERAL, WRITTEN, DETECTED], ids=["literal", "written", "detected"])
def test_every_operator_has_a_row(table: dict[Operator, object]) -> None:
    assert set(table) == set(Operator)
    assert {Selection(s).value for s in Selection} < {o.value for o in Operator}


def test_every_operator_has_a_file_of_its_detection() -> None:
    there = {path.stem for path in (CODE / "tesla" / "operators").glob("*.py")}
    assert set(FILES.values()) <= there


def test_nobody_else_asks_which_selection_it_is() -> None:
    asking = set()
    for path in sorted(CODE.rglob("*.py")):
        if "operators" in (path.parent.name, path.stem):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("Selection", "ir.Selection"):
                asking.add(str(path.relative_to(CODE)))
    assert asking == set(ASKING)


def test_the_literal_meaning_knows_no_engine() -> None:
    assert "dotr.tesla" not in (CODE / "reference" / "operators.py").read_text("utf-8")

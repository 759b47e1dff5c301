"""Nothing declared costs nothing: the code that is generated for the queries of a program without HOLD is the
stored listing's. Renew it by `python -m tests.core.test_listing`, in a commit that says why it changed.
"""

from __future__ import annotations

from pathlib import Path

from dotr.cli.planning import overview
from dotr.core.deployment import Deployment
from dotr.io.files.background import read_background
from dotr.io.files.rule_texts import read_rules_text
from dotr.lang import load_program

RULES = Path(__file__).parents[2] / "examples" / "building" / "building.dotr"
LISTING = Path(__file__).parent / "listing.txt"


def listing() -> str:
    """The code of every query of the building, under its name."""
    program = load_program([str(RULES)], read_rules_text)
    plan = overview(Deployment(program, read_background(program.background)), code=True)
    parts = []
    for query in plan["queries"]:
        parts += [f"QUERY {query['name']}\n", *(f"{source.rstrip()}\n\n" for source in query["code"])]
    return "".join(parts)


def test_the_code_of_a_program_without_hold_is_that_of_the_listing() -> None:
    assert listing() == LISTING.read_text(encoding="utf-8")


if __name__ == "__main__":
    LISTING.write_text(listing(), encoding="utf-8")

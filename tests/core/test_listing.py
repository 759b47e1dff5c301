"""Nothing declared costs nothing: all code that is generated for a program without HOLD while it runs is the
stored listing's. Renew it by `python -m tests.core.test_listing`, in a commit that says why it changed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dotr import codegen
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.events import Clock
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.io.sources import SourceOptions, Sources
from dotr.lang import load_program

BUILDING = Path(__file__).parents[2] / "examples" / "building"
LISTING = Path(__file__).parent / "listing.txt"


def listing() -> str:
    """The code of rules, queries and detectors of the building, a morning long; each shape of it once, in
    order. In a process that has generated nothing else.
    """
    program = load_program([str(BUILDING / "building.dotr")], read_rules_text)
    pipeline = Pipeline(Deployment(program, read_background(program.background)))
    pipeline.begin(Clock())
    for graph in Sources([str(BUILDING / "morning.ttl")], SourceOptions()):
        pipeline.push_part(graph.time, graph.triples)
    pipeline.finish()
    return "".join(f"{source.rstrip()}\n\n" for source in sorted(codegen._CODE))


def test_the_code_of_a_program_without_hold_is_that_of_the_listing() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tests.core.test_listing", "--print"],
        check=True,
        capture_output=True,
        encoding="utf-8",
        cwd=Path(__file__).parents[2],
    ).stdout
    assert made == LISTING.read_text(encoding="utf-8")
    kinds = ("def add(", "def run(", "def doubt(", "def enter(")
    assert [kind in made for kind in kinds] == [True, True, False, False]  # nothing of what lasts


if __name__ == "__main__":
    if "--print" in sys.argv:
        sys.stdout.write(listing())
    else:
        LISTING.write_text(listing(), encoding="utf-8")

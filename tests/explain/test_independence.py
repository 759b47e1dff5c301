"""The checker shares terms, the evaluator and the literal readings with the engines, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENGINES = (
    "dotr.core",
    "dotr.enrich.insertion",
    "dotr.enrich.retraction",
    "dotr.enrich.evaluation",
    "dotr.enrich.materialiser",
    "dotr.enrich.maintenance",
    "dotr.enrich.closing",
    "dotr.explain.derivations",
    "dotr.explain.matches",
    "dotr.explain.record",
    "dotr.explain.solutions",
    "dotr.joins.code",
    "dotr.joins.store",
    "dotr.windows.engine",
    "dotr.extract.query",
    "dotr.extract.units",
    "dotr.detect.columns",
    "dotr.detect.code",
    "dotr.detect.detector",
)
"""What finds events, and what finds proofs."""


def _file(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


def imports(module: str) -> set[str]:
    """The modules that a module names when it is loaded, typing aside."""
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dotr"):
            assert node.module is not None
            found.add(node.module)
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(
                name for name in below if ROOT.joinpath(*name.split(".")).with_suffix(".py").exists()
            )
    return found


def reached(module: str) -> dict[str, str]:
    """Every module that one stands on → by which it is named. Packages are not looked into for themselves."""
    found, todo = {module: ""}, [module]
    for one in todo:  # grows while it is read
        for other in sorted(imports(one)):
            if other not in found and not ROOT.joinpath(*other.split(".")).is_dir():
                found[other] = one
                todo.append(other)
    return found


def test_the_checker_stands_on_no_engine() -> None:
    found = reached("dotr.explain.checker")
    assert {name: by for name, by in found.items() if name.startswith(ENGINES)} == {}
    assert "dotr.reference.tesla" in found


def test_this_test_sees_what_others_stand_on() -> None:
    assert "dotr.joins.plan" in reached("dotr.explain.matches")
    assert all(_file(name).exists() for name in ENGINES[1:])

"""Queries, paths and rules that no machine has the memory for end with a diagnostic, in little of it."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

GIB = 1 << 30
CLIQUE = [f"<urn:n{i}> <urn:e> <urn:n{j}> ." for i in range(300) for j in range(300)]


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 * GIB, 4 * GIB))
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))


def dotr(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`dotr` in a process of its own with 4 GiB of addresses and two minutes."""
    return subprocess.run(
        [sys.executable, "-m", "dotr", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited,  # no threads here
    )


PATHS = ["(:e/:e)+", "((:e*)*)*", "(:e|^:e)+", "!(:f)+"]
SELECTS = [
    "SELECT (COUNT(*) AS ?n) { ?x %s ?y }",
    "SELECT ?x { ?x :e ?y { SELECT ?y { ?y %s ?z } } }",
    "SELECT ?x { ?x %s ?y FILTER NOT EXISTS { ?y %s ?x MINUS { ?x :f ?y } } }",
]


@pytest.mark.parametrize(
    ("select", "path"),
    [*((SELECTS[0], path) for path in PATHS), (SELECTS[1], PATHS[0]), (SELECTS[2], PATHS[0])],
)
def test_paths_over_a_clique_are_answered_or_refused(tmp_path: Path, select: str, path: str) -> None:
    (tmp_path / "clique.nt").write_text("\n".join(CLIQUE))
    (tmp_path / "q.rq").write_text("PREFIX : <urn:> " + select.replace("%s", path))
    ran = dotr("query", "clique.nt", "q.rq", cwd=tmp_path)
    assert ran.returncode == 0 or (ran.returncode == 3 and "error[D4132]" in ran.stderr), ran.stderr[-500:]
    if "COUNT" in select:
        assert json.loads(ran.stdout)["n"]["value"] == "90000"


def test_a_stream_with_a_clique_goes_on_behind_it(tmp_path: Path) -> None:
    (tmp_path / "r.dotr").write_text(
        "PREFIX : <urn:>\nRULE Far DEFINE { dotr_f :n ?n }\n"
        "FROM F := { SELECT ?x ?n { ?x :e ?y\n"
        "  { SELECT ?y (COUNT(*) AS ?n) { ?y (:e/:e)+ ?z } GROUP BY ?y } } }\n"
        "WITH ?n := F.?n\n"
    )
    lines = [
        {"time": 0, "graph": CLIQUE[1]},
        {"time": 1, "graph": "".join(CLIQUE)},
        {"time": 2, "graph": CLIQUE[0]},
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = dotr("run", "r.dotr", "s.jsonl", "--on-error", "skip", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr[-500:]
    assert json.loads(ran.stdout.splitlines()[-1])["time"] == 2

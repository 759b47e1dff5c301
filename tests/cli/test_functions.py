"""`--functions MODULE`: every command that evaluates rules takes it, and says what is wrong with a module."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dotr.program.own_functions import OWN
from dotr.service.journal import Journal
from tests.cli.conftest import Dotr

MODULE = """
from math import hypot
__version__ = "1.2"
def distance(x, y):
    return hypot(x, y)
FUNCTIONS = {"http://example.org/cli#distance": distance}
"""
RULES = """
PREFIX : <http://example.org/drones#>
PREFIX f: <http://example.org/cli#>
RULE Far
DEFINE { dotr_f a :Far ; :metres ?d }
FROM   Position := { SELECT ?x ?y WHERE { ?o :x ?x ; :y ?y } }
WHERE  f:distance(Position.?x, Position.?y) > 100
WITH   ?d := f:distance(Position.?x, Position.?y)
"""
STREAM = """\
{"time": 1, "graph": "@prefix : <http://example.org/drones#> . [] :x 30 ; :y 40 ."}
{"time": 2, "graph": "@prefix : <http://example.org/drones#> . [] :x 300 ; :y -400 ."}
"""
CALLING = """
PREFIX : <http://example.org/drones#>
SELECT ?o WHERE { ?o :x ?x ; :y ?y FILTER(<http://example.org/cli#distance>(?x, ?y) > 100) }
"""
GIVEN = ("--functions", "drones_of_this_test")
TEST = """
rules: far.dotr
tests:
  - name: far
    stream:
      - { at: 1, graph: "[] :x 300 ; :y 400 ." }
    expect:
      - { rule: Far, at: 1, d: 500e0 }
"""


@pytest.fixture
def drones(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rules that call a function, its module and a stream in the current folder, which nobody knows yet."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, GIVEN[1], raising=False)
    monkeypatch.delitem(OWN, "<http://example.org/cli#distance>", raising=False)
    (folder / f"{GIVEN[1]}.py").write_text(MODULE)
    (folder / "far.dotr").write_text(RULES)
    (folder / "log.jsonl").write_text(STREAM)
    (folder / "calling.rq").write_text(CALLING)
    (folder / "far.test.yaml").write_text(TEST)
    return folder


def test_without_the_option_the_function_is_missing(dotr: Dotr, drones: Path) -> None:
    ran = dotr("check", "far.dotr")
    assert ran.code == 1
    assert "D1216" in ran.out + ran.err
    assert "--functions MODULE" in ran.out + ran.err


@pytest.mark.parametrize(
    "command",
    [
        ("run", "far.dotr", "log.jsonl", "--format", "text"),
        ("run", "far.dotr", "log.jsonl", "--format", "text", "--verify"),
        ("explain", "far.dotr", "log.jsonl", "--rule", "Far", "--at", "2"),
        ("explain", "far.dotr", "log.jsonl", "--why-not", "Far", "--at", "1"),
        ("query", "far.dotr", "log.jsonl", "--at", "2", "calling.rq"),
        ("watch", "calling.rq", "log.jsonl"),
        ("show", "far.dotr", "log.jsonl", "-o", "page.html"),
        ("test", "far.test.yaml"),
        ("compare", "far.dotr", "far.dotr", "log.jsonl"),
    ],
)
def test_commands_that_run_rules_take_it(dotr: Dotr, drones: Path, command: tuple[str, ...]) -> None:
    ran = dotr(*command, *GIVEN)
    assert ran.code == (1 if "--why-not" in command else 0), ran.err
    assert "error" not in ran.err


def test_the_event_has_what_the_function_returned(dotr: Dotr, drones: Path) -> None:
    (line,) = dotr("run", "far.dotr", "log.jsonl", *GIVEN).out.splitlines()
    assert json.loads(line)["bindings"]["d"]["value"] == "500"


def test_check_and_plan_know_it(dotr: Dotr, drones: Path) -> None:
    assert dotr("check", "far.dotr", *GIVEN).code == 0
    shown = json.loads(dotr("plan", "far.dotr", "--format", "json", *GIVEN).out)
    assert shown["functions"] == [{"name": "f:distance", "version": "1.2", "from": GIVEN[1]}]
    assert f"  f:distance: {GIVEN[1]} 1.2\n" in dotr("plan", "far.dotr", *GIVEN).out


def test_a_deployment_runs_them_and_a_new_version_begins_anew(dotr: Dotr, drones: Path) -> None:
    assert dotr("deploy", "far.dotr", "--dir", "there", *GIVEN).code == 0
    fed = dotr("feed", "log.jsonl", "--dir", "there", *GIVEN)
    assert fed.code == 0
    assert len(fed.out.splitlines()) == 1
    with Journal("there", exclusive=False) as journal:
        before = journal.digest()
        assert journal.deployed().functions == (("<http://example.org/cli#distance>", "1.2"),)
    del sys.modules[GIVEN[1]], OWN["<http://example.org/cli#distance>"]
    assert "D1216" in dotr("feed", "log.jsonl", "--dir", "there").err
    (drones / f"{GIVEN[1]}.py").write_text(MODULE.replace("1.2", "2.0 of another length"))
    (drones / "more.jsonl").write_text(STREAM.replace('"time": ', '"time": 1'))
    fed = dotr("feed", "more.jsonl", "--dir", "there", *GIVEN)
    assert fed.code == 0
    assert "start with nothing remembered: Far" in fed.err
    with Journal("there", exclusive=False) as journal:
        assert journal.digest() != before


def test_the_configuration_of_a_server_names_modules_beside_itself(dotr: Dotr, drones: Path) -> None:
    (drones / "conf").mkdir()
    (drones / f"{GIVEN[1]}.py").rename(drones / "conf" / f"{GIVEN[1]}.py")
    text = f"rules: [../far.dotr]\nfunctions: [{GIVEN[1]}]\n"
    (drones / "conf" / "dotr.yaml").write_text(text)
    ran = dotr("serve", "--check", "--config", "conf/dotr.yaml")
    assert ran.code == 0, ran.err
    (drones / "conf" / "dotr.yaml").write_text("functions: [geo.py]\n")
    assert "without .py" in dotr("serve", "--check", "--config", "conf/dotr.yaml").err
    (drones / "conf" / "dotr.yaml").write_text("functions: [nowhere_at_all]\n")
    refused = dotr("serve", "--check", "--config", "conf/dotr.yaml").err
    assert "D4154" in refused
    assert "conf/dotr.yaml" in refused


def test_an_editor_takes_it(dotr: Dotr, drones: Path) -> None:
    assert "--functions MODULE" in dotr("lsp", "--help").out


def test_a_batch_imports_them_in_its_processes(dotr: Dotr, drones: Path) -> None:
    ran = dotr("batch", "far.dotr", "--log", "log.jsonl", "--engine", "local", "--out", "found", *GIVEN)
    assert ran.code == 0, ran.err
    (line,) = [line for part in (drones / "found").glob("*.jsonl") for line in part.read_text().splitlines()]
    assert json.loads(line)["bindings"]["d"]["value"] == "500"


@pytest.mark.parametrize(
    ("module", "content", "code", "message"),
    [
        ("nowhere_at_all", None, "D4154", "cannot be imported"),
        ("geo.py", None, "D4154", "name a module as Python imports it"),
        ("./geo", None, "D4154", "name a module as Python imports it"),
        ("", None, "D4154", "cannot be imported"),
        ("wrong_syntax", "def f(:", "D4154", "SyntaxError"),
        ("that_raises", "1 / 0", "D4154", "ZeroDivisionError"),
        ("that_exits", "raise SystemExit(0)", "D4154", "SystemExit"),
        ("without_table", "x = 1", "D4154", "has no FUNCTIONS"),
        ("with_a_list", "FUNCTIONS = [len]", "D4155", "is no table of functions"),
        ("with_a_name", 'FUNCTIONS = {"distance": len}', "D4155", "is not the name of a function"),
        (
            "with_ours",
            'FUNCTIONS = {"http://www.w3.org/2001/XMLSchema#int": len}',
            "D4155",
            "a name of dotr's own functions",
        ),
    ],
)
def test_what_is_wrong_with_a_module(
    dotr: Dotr, drones: Path, module: str, content: str | None, code: str, message: str
) -> None:
    if content is not None:
        (drones / f"{module}.py").write_text(content)
    ran = dotr("check", "far.dotr", "--functions", module)
    assert ran.code == 2
    assert f"error[{code}]" in ran.err
    assert message in ran.err
    assert f"--functions {module}" in ran.err
    assert "Traceback" not in ran.err

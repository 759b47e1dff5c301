"""What `dotr plan` says about what holds, and what a deployment makes of LARS rules that change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dotr.cli.main import group

RULES = """
PREFIX : <http://example.org/>
LARS <hot.lars>
QUERY temp := { SELECT ?v WHERE { ?o :value ?v } }
RULE Hot DEFINE { dotr_x a :Hot } FROM ISTREAM hot
RULE Cold DEFINE { dotr_x a :Cold } FROM DSTREAM hot
RULE Dense DEFINE { dotr_x a :Dense } FROM calm
RULE Again DEFINE { dotr_x a :Again } FROM temp AND NOT on_and_on WITHIN 1 s BEFORE temp
"""
HELD = """
STEP 2 s
hot() :- temp(?v) WITHIN 6 s, FILTER(?v >= 100) .
calm() :- NOT hot() WITHIN 10 s, NOT Cold() WITHIN 4 s .
on_and_on() :- temp(?v) .
on_and_on() AT ?t + 4 s :- on_and_on() AT ?t WITHIN 2 s .
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "hot.dotr").write_text(RULES, encoding="utf-8")
    (tmp_path / "hot.lars").write_text(HELD, encoding="utf-8")
    return tmp_path / "hot.dotr"


def called(*arguments: str) -> Result:
    result = CliRunner().invoke(group, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


def test_a_plan_shows_points_layers_windows_and_bounds(rules: Path) -> None:
    text = called("plan", str(rules)).output
    assert "WHAT HOLDS at multiples of 2 s" in text
    assert "atoms wait for a later point for at most 4 s" in text
    assert "hot() :- temp(?v) WITHIN 6 s, FILTER(?v >= 100) ." in text
    assert "layer 2, after Hot, Cold" in text
    assert "calm: looks back 16 s, read by Dense" in text
    assert "on_and_on: depends on the whole past, read by Again" in text
    assert "Dense: a fact at every point at which it holds" in text
    assert "used by Again, LARS" in text
    remembered = text[text.index("  remembered\n") :].split("\n\n")[0].splitlines()[1:]
    assert remembered == [
        "    temp WITHIN 6 s: each atom, for 6 s after it last held",
        "    hot WITHIN 10 s: each atom, for 10 s after it last held",
        "    Cold WITHIN 4 s: each atom, for 4 s after it last held",
        "    temp: each atom while it holds",
        "    on_and_on AT WITHIN 2 s: each atom at each of its points, for 2 s",
    ]
    assert "not by time: all of the past can influence what holds" in text


def test_a_plan_has_totals_over_windows_of_facts_and_what_is_kept_as_intervals(
    rules: Path, tmp_path: Path
) -> None:
    (tmp_path / "hot.lars").write_text(
        HELD + "most(?n) :- MAX(?v) AS ?n OVER temp(?v) WITHIN 5 FACTS .\n", encoding="utf-8"
    )
    with rules.open("a", encoding="utf-8") as more:
        more.write(
            "RULE Most DEFINE { dotr_x a :Most } FROM Top := ISTREAM most AND EACH hot WITHIN 1 s FROM Top"
        )
    text = called("plan", str(rules)).output
    remembered = text[text.index("  remembered\n") :].split("\n\n")[0].splitlines()
    assert "    temp AT WITHIN 5 FACTS OF (temp): the last 5 atoms of temp" in remembered
    total = "    MAX OVER temp AT WITHIN 5 FACTS OF (temp): a total for each group that has an atom there"
    assert total in remembered
    assert "all facts, as intervals, for 1 s" in text


def test_a_plan_as_json_has_the_layers(rules: Path) -> None:
    shown = json.loads(called("plan", str(rules), "--format", "json").output)
    first, second = shown["holding"]["layers"]
    assert [head["name"] for head in first["heads"]] == ["hot", "on_and_on"]
    assert "Cold" in second["after"]


def test_other_rules_of_what_holds_begin_with_nothing(rules: Path, tmp_path: Path) -> None:
    folder = str(tmp_path / "deployed")
    called("deploy", str(rules), "--dir", folder)
    (tmp_path / "hot.lars").write_text(HELD.replace("6 s", "8 s"), encoding="utf-8")
    text = called("deploy", str(rules), "--dir", folder).output
    assert "~ Hot    the rules of what holds changed" in text
    refused = CliRunner().invoke(group, ["undeploy", "Cold", "--dir", folder])
    assert "D5210" in str(refused.exception)

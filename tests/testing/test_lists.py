"""Lists of COLLECT in rule tests: expected, recorded, compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Dotr

RULES = """PREFIX : <urn:>
QUERY Item := { SELECT ?i WHERE { ?i a :Item } }
QUERY End := { SELECT ?e WHERE { ?e a :End } }
RULE Order DEFINE { dotr_e :items ?items } FROM End
AND COLLECT(Item.?i) AS ?all OVER Item WITHIN 9 s FROM End
WITH ?e := End.?e, ?items := ?all
"""
STREAM = (
    '{"time": 1, "graph": "<urn:b> a <urn:Item> . <urn:a> a <urn:Item> ."}\n'
    '{"time": 2, "graph": "<urn:e> a <urn:End> ."}\n'
)
HEAD = "rules: order.dotr\ntests:\n  - name: a\n    stream: [ { from: s.jsonl } ]\n    only: true\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "order.dotr").write_text(RULES, encoding="utf-8")
    (tmp_path / "s.jsonl").write_text(STREAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expect(shop: Path, event: str) -> None:
    (shop / "a.test.yaml").write_text(f"{HEAD}    expect: [ {event} ]\n", encoding="utf-8")


@pytest.mark.parametrize("event", ['{ rule: Order, items: [ ":a", ":b" ] }', '{ rule: Order, e: ":e" }'])
def test_an_expected_list_has_its_members_in_order(shop: Path, dotr: Dotr, event: str) -> None:
    expect(shop, event)
    assert dotr("test", "a.test.yaml").code == 0


@pytest.mark.parametrize("items", ['[ ":b", ":a" ]', '[ ":a" ]', "[]", '[ ":a", ":b", ":c" ]'])
def test_another_list_is_reported_with_the_one_that_came(shop: Path, dotr: Dotr, items: str) -> None:
    expect(shop, f"{{ rule: Order, items: {items} }}")
    done = dotr("test", "a.test.yaml")
    assert done.code == 1
    assert "[:a, :b]" in done.out


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ('{ rule: Order, items: ":a" }', "`items` is a list"),
        ('{ rule: Order, e: [ ":e" ] }', "`e` is not a list"),
        ('{ rule: Order, rule: [ ":e" ] }', "twice"),
    ],
)
def test_a_list_for_a_term_and_a_term_for_a_list_are_refused(
    shop: Path, dotr: Dotr, event: str, words: str
) -> None:
    expect(shop, event)
    done = dotr("test", "a.test.yaml")
    assert done.code != 0
    assert words in done.out + done.err


def test_what_is_recorded_of_a_list_passes(shop: Path, dotr: Dotr) -> None:
    recorded = dotr("test", "--record", "s.jsonl", "order.dotr").out
    assert 'items: [":a", ":b"]' in recorded
    (shop / "a.test.yaml").write_text(recorded, encoding="utf-8")
    assert dotr("test", "a.test.yaml").code == 0

"""`dotr test` with rules over what holds: what is expected, what the graph has, why something is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Dotr

RULES = """PREFIX : <ex:>
LARS <h.lars>
QUERY a := { SELECT ?x { ?x a :A } }
RULE Gone DEFINE { dotr_x a :Gone ; :x ?x } FROM G := DSTREAM near WITH ?x := G.?x
"""
SUITE = """rules: r.dotr
tests:
  - name: gone
    stream: [ {{ at: 1, graph: ":p a :A ." }}, {{ at: {end}, graph: "" }} ]
    holds: [ {{ at: 1, triples: ":p a :A ." }}, {{ at: 6, not: ":p a :A ." }} ]
    expect: [ {{ rule: Gone, at: {at}, x: ":p" }} ]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "r.dotr").write_text(RULES, encoding="utf-8")
    (tmp_path / "h.lars").write_text("STEP 2 s\nnear(?x) :- a(?x) WITHIN 4 s .\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_end_comes_in_silence_while_the_stream_goes_on(folder: Path, dotr: Dotr) -> None:
    (folder / "r.test.yaml").write_text(SUITE.format(end=8, at=8), encoding="utf-8")
    assert dotr("test", "r.test.yaml")[:2] == (0, "")


@pytest.mark.parametrize(
    ("end", "at", "words"),
    [
        (5, 8, "the stream ends at 6: end it with a message at 8, such as one without triples"),
        (8, 4, "it holds then"),
    ],
)
def test_what_did_not_come_says_why(folder: Path, dotr: Dotr, end: int, at: int, words: str) -> None:
    (folder / "r.test.yaml").write_text(SUITE.format(end=end, at=at), encoding="utf-8")
    ran = dotr("test", "r.test.yaml")
    assert ran.code == 1
    assert words in ran.out, ran.out

"""`dotr test`: sequences as subjects, what is missing of one with its reasons, and coverage of elements."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Dotr

PROGRAM = """PREFIX : <urn:>
QUERY Fail := { SELECT ?user WHERE { ?l a :Failure ; :user ?user } }
QUERY Ok   := { SELECT ?user ?code WHERE { ?l a :Success ; :user ?user ; :code ?code } }
SEQUENCE Guess := Fail{2,} Ok
  OF Fail, Ok PER ?user
  AND Ok ON Ok.?code = 1
  WITHIN 10 min GAP 1 min
  WITH ?user := Ok.?user, ?tries := COUNT(Fail)
SEQUENCE Calm := Fail+ OF Fail PER ?user WITHIN 5 min GAP 10 s
RULE Intruder
DEFINE { dotr_i a :Intrusion ; :account ?u }
FROM Guess
WITH ?u := Guess.?user
"""
FAILURES = '{ at: 1, user: ":a" }, { at: 2, user: ":a" }, { at: 3, user: ":b" }'
FACTS = f'stream: [ {{ facts: {{ Fail: [ {FAILURES} ], Ok: [ {{ at: 5, user: ":a", code: 1 }} ] }} }} ]'
GRAPHS = (
    'stream: [ { at: 1, graph: "[] a :Failure ; :user :a ." }, '
    ' { at: 2, graph: "[] a :Failure ; :user :a ." },'
    ' { at: 5, graph: "[] a :Success ; :user :a ; :code 1 ." } ]'
)
FEW = (
    'stream: [ { at: 1, graph: "[] a :Failure ; :user :a ." },'
    ' { at: 5, graph: "[] a :Success ; :user :a ; :code 1 ." } ]'
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guess.dotr").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


def write(folder: Path, *cases: str) -> None:
    tests = "".join(f"  - {{ name: t{n}, {case} }}\n" for n, case in enumerate(cases))
    (folder / "a.test.yaml").write_text(f"rules: guess.dotr\ntests:\n{tests}", encoding="utf-8")


@pytest.mark.parametrize("stream", [FACTS, GRAPHS], ids=["facts", "graphs"])
@pytest.mark.parametrize(
    "expected",
    [
        'expect: [ { sequence: Guess, at: 5, user: ":a", tries: 2 } ]',
        "expect: [ { sequence: Guess }, { rule: Intruder, at: 5 } ]",
        "expect: [ { rule: Guess, tries: 2.0 } ]",
        "expect: [ Guess ], only: [ Guess ]",
        "only: true, expect: [ Intruder ]",  # matches do not come out: they need not be listed
        "never: [ { sequence: Guess, at: 4 }, { sequence: Guess, tries: 3 } ]",
        'until: 12, expect: [ { sequence: Calm, at: 12, user: ":a" } ]',
        "never: [ Calm ]",  # the end of the messages is no deadline
    ],
)
def test_matches_are_expected_as_events_are(folder: Path, dotr: Dotr, stream: str, expected: str) -> None:
    write(folder, f"{stream}, {expected}")
    ran = dotr("test", "a.test.yaml")
    assert (ran.code, ran.out) == (0, "")


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            f"{FACTS}, expect: [ {{ sequence: Guess, at: 6 }} ]",
            ["- Guess @ 6", "over the whole test: rows 4 → Fail 3 → Ok 1 → matches 1"],
        ),
        (
            f"{GRAPHS}, expect: [ {{ sequence: Guess, tries: 3 }} ]",
            ["- Guess  ?tries 3", "instead: Guess @ 5  ?user :a ; ?tries 2"],
        ),
        (
            f"{FEW}, expect: [ {{ sequence: Guess, at: 5 }} ]",
            ["Guess has no match @ 5", "Fail: Fail  @ 1", "no Fail: Ok  @ 5", "→ matches 0"],
        ),
        (f"{GRAPHS}, never: [ Guess ]", ["+ Guess @ 5  ?user :a", "never should", "Ok: Ok  @ 5"]),
        (f"{GRAPHS}, only: [ Guess ]", ["+ Guess @ 5  ?user :a", "nothing expects it"]),
        (
            f"{GRAPHS}, expect: [ Guess, Guess ]",
            ["- Guess   expected, but it did not happen", "rows 3 → Fail 2 → Ok 1 → matches 1"],
        ),
        (
            f"{GRAPHS}, expect: [ {{ sequence: Calm, at: 12 }} ]",
            ["the stream ends at 5: let time go on with `until: 12`"],
        ),
        (
            f"{GRAPHS}, until: 30, expect: [ {{ sequence: Calm, at: 20 }} ]",
            ["Calm has no match @ 20", "→ matches 1"],
        ),
        (
            f"{GRAPHS}, until: 15, expect: [ {{ sequence: Calm, at: 20 }} ]",
            ["the stream ends at 15: let time go on with `until: 20`"],
        ),
        (
            f"{GRAPHS}, until: 30, never: [ Calm ]",
            ["+ Calm @ 12  ?user :a   happened, but it never should", "Fail: Fail  @ 2"],
        ),
    ],
)
def test_what_is_not_as_expected_is_explained(folder: Path, dotr: Dotr, case: str, words: list[str]) -> None:
    write(folder, case)
    ran = dotr("test", "a.test.yaml")
    assert ran.code == 1
    for word in words:
        assert word in ran.out, ran.out


def test_the_advice_for_a_deadline_works(folder: Path, dotr: Dotr) -> None:
    """What `until:` is proposed for happens with it."""
    write(folder, f"{GRAPHS}, until: 12, expect: [ {{ sequence: Calm, at: 12 }} ]")
    assert dotr("test", "a.test.yaml").code == 0


@pytest.mark.parametrize(
    ("case", "code", "words"),
    [
        ("expect: [ { at: 3 } ]", "D4401", "needs `rule` or `sequence`"),
        ("expect: [ { sequence: Gues } ]", "D4402", "no sequence named `Gues`"),
        ("expect: [ { sequence: Gues } ]", "D4402", "did you mean `Guess`"),
        ("expect: [ { sequence: Intruder } ]", "D4402", "it is a rule: write `rule: Intruder`"),
        ("expect: [ Gues ]", "D4402", "no rule or sequence named `Gues`"),
        ("expect: [ { sequence: Guess, tires: 3 } ]", "D4402", "did you mean `tries`"),
        ("only: [ Guess, Fail ]", "D4402", "no rule or sequence named `Fail`"),
        ("only: Guess", "D4401", "or `only: [ Fire ]`"),
        (
            'only: true, stream: [ { facts: { Guess: [ { at: 1, user: ":a" } ] } } ]',
            "D4402",
            "give the messages that it comes of, or facts of Fail, Ok",
        ),
    ],
)
def test_what_is_no_sequence_is_an_error(folder: Path, dotr: Dotr, case: str, code: str, words: str) -> None:
    write(folder, case)
    ran = dotr("test", "a.test.yaml")
    assert ran.code in (1, 3)
    assert code in ran.out + ran.err
    assert words in ran.out + ran.err


def test_a_variable_may_be_called_sequence(folder: Path, dotr: Dotr) -> None:
    """With `rule`, `sequence` is a variable of the rule, as it was before there were sequences."""
    (folder / "guess.dotr").write_text(
        "PREFIX : <urn:>\nRULE Seen DEFINE { dotr_s :n ?sequence }\n"
        "FROM Look := { SELECT ?n WHERE { ?o :n ?n } } WITH ?sequence := Look.?n\n",
        encoding="utf-8",
    )
    stream = 'stream: [ { at: 1, graph: "[] :n 4 ." } ]'
    write(folder, f"{stream}, only: true, expect: [ {{ rule: Seen, sequence: 4 }} ]")
    assert dotr("test", "a.test.yaml").code == 0
    write(folder, f"{stream}, expect: [ {{ rule: Seen, sequence: 5 }} ]")
    assert dotr("test", "a.test.yaml").code == 1


def test_coverage_counts_elements(folder: Path, dotr: Dotr) -> None:
    write(folder, f"{FEW}, never: [ Guess ]")
    out = dotr("test", "a.test.yaml", "--coverage").out
    for words in (
        "sequence Guess: Fail got no row",
        "sequence Guess: Ok got no row",
        "sequence Guess: ON of Ok was never true",
        "sequence Guess: ON of Ok was never false",
        "sequence Guess had no match",
        "sequence Calm had no match",
    ):
        assert words in out, out
    refused = GRAPHS.replace(":code 1", ":code 2")
    write(folder, f"{GRAPHS}, until: 20, expect: [ Guess, Calm ]", f"{refused}, never: [ Guess ]")
    ran = dotr("test", "a.test.yaml", "--coverage")
    assert ran.code == 0
    assert "(100 %)" in ran.out

"""What points cost at which nothing comes: an allowance of the whole run, to which input adds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dotr
from dotr.budget import INPUT, POINT
from dotr.detect.detector import TeslaDetector
from dotr.errors import DotrError

YEARS = 10**9
RULES = """PREFIX : <ex:>
LARS <h.lars>
QUERY a := { SELECT ?x { ?o :a ?x } }
RULE R DEFINE { dotr_r a :R } FROM {trigger}
RULE Came DEFINE { dotr_c a :Came } FROM a
"""
AHEAD = "h() AT ?t :- a(?x) AT ?t WITHIN 0 s .\nh() AT ?t + {n} s :- h() AT ?t WITHIN 0 s .\n"
RESTLESS = {
    "puts itself ahead": (AHEAD.format(n=2), "ISTREAM h"),
    "puts itself ahead, read by another": (AHEAD.format(n=3) + "g() :- h() WITHIN 1 s .\n", "g"),
    "puts itself ahead, read by nobody": (AHEAD.format(n=1) + "g() :- a(?x) .\n", "ISTREAM g"),
    "puts another ahead": (
        AHEAD.format(n=1).replace("?t + 1 s :- h()", "?t + 1 s :- g()")
        + "g() AT ?t + 1 s :- h() AT ?t WITHIN 0 s .\n",
        "ISTREAM g",
    ),
    "looks back over itself": (AHEAD.format(n=5).replace("WITHIN 0 s .\n", "WITHIN 4 s .\n"), "h"),
    "two variables of AT": (
        "lit() :- a(?x) WITHIN 36500 d .\nh() :- lit() AT ?t WITHIN 100 d, lit() AT ?u WITHIN 100 d .\n",
        "ISTREAM h",
    ),
    "the points of what holds": (
        "lit() :- a(?x) WITHIN 36500 d .\nh() :- lit() AT ?t WITHIN 36500 d, NOT a(?x) .\n",
        "ISTREAM h",
    ),
    "a count that grows": (
        "lit() :- a(?x) WITHIN 36500 d .\nh(?n) :- COUNT(*) AS ?n OVER lit() WITHIN 36500 d .\n",
        "ISTREAM h",
    ),
    "triggers at each point": ("h() :- NOT a(?x) WITHIN 1 s .\n", "h"),
    "triggers at each point, and joins": (
        "h() :- NOT a(?x) WITHIN 1 s .\n",
        "h AND EACH A := a WITHIN 36500 d FROM h AND EACH B := h WITHIN 9 d BEFORE h WHERE A.?x < 0",
    ),
}


def rules_of(folder: Path, lars: str, trigger: str) -> str:
    (folder / "h.lars").write_text(f"STEP 1 s\n{lars}", encoding="utf-8")
    (folder / "r.dotr").write_text(RULES.replace("{trigger}", trigger), encoding="utf-8")
    return str(folder / "r.dotr")


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The instants that were detected."""
    found: list[int] = []
    instant = TeslaDetector._instant
    monkeypatch.setattr(
        TeslaDetector, "_instant", lambda self, time, *a: found.append(time) or instant(self, time, *a)
    )
    return found


@pytest.mark.parametrize("name", RESTLESS)
def test_a_silence_without_rest_ends_the_run_soon(tmp_path: Path, name: str, visited: list[int]) -> None:
    budget = 200_000
    engine = dotr.Engine(rules_of(tmp_path, *RESTLESS[name]), budget=budget)
    engine.push("<ex:o> <ex:a> 1 .", at=0)
    with pytest.raises(DotrError, match="D4011"):
        engine.push("<ex:o> <ex:a> 1 .", at=YEARS)
    assert len(visited) <= budget // POINT + 2


@pytest.mark.parametrize("name", ["puts itself ahead", "two variables of AT", "triggers at each point"])
def test_the_literal_reading_of_a_silence_ends_soon_too(tmp_path: Path, name: str) -> None:
    engine = dotr.Engine(rules_of(tmp_path, *RESTLESS[name]), budget=40_000, verify=True)
    engine.push("<ex:o> <ex:a> 1 .", at=0)
    with pytest.raises(DotrError, match=r"D4012.*the literal reading"):
        engine.push("<ex:o> <ex:a> 1 .", at=YEARS)


def test_a_far_silence_at_rest_is_too_long_to_verify_point_by_point(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, "h() :- a(?x) WITHIN 9 s .\n", "ISTREAM h")
    for verify in (False, True):
        engine = dotr.Engine(rules, budget=100_000, verify=verify)
        engine.push("<ex:o> <ex:a> 1 .", at=0)
        engine.push("<ex:o> <ex:a> 1 .", at=300)
        engine.push("<ex:o> <ex:a> 1 .", at=YEARS)
        if not verify:
            engine.finish()
            continue
        with pytest.raises(DotrError, match="D4012"):
            engine.finish()


def outcome(rules: str, times: list[int], budget: int, cuts: bool) -> list[str]:
    """The events, and what ended the run; `cuts`: with a snapshot after every graph."""
    found: list[str] = []
    try:
        engine = dotr.Engine(rules, budget=budget)
        for time in times:
            found += [event.to_json() for event in engine.push("<ex:o> <ex:a> 1 .", at=time)]
            if cuts:
                engine = dotr.Engine(rules, budget=budget, snapshot=engine.snapshot())
        found += [event.to_json() for event in engine.finish()]
    except DotrError as error:
        found.append(str(error))
    return found


def test_many_silences_spend_of_one_allowance(tmp_path: Path) -> None:
    """Each of them alone is far within it."""
    rules = rules_of(tmp_path, *RESTLESS["triggers at each point"])
    times = list(range(0, 100_000, 100))
    found = outcome(rules, times, 100_000, cuts=False)
    assert "D4011" in found[-1]
    assert len(found) < 2_000
    assert outcome(rules, times, 100_000, cuts=True) == found


def test_input_adds_to_the_allowance(tmp_path: Path) -> None:
    """A stream with a few points between graphs goes on for ever."""
    rules = rules_of(tmp_path, *RESTLESS["triggers at each point"])
    budget = 4 * 2 * POINT * INPUT
    found = outcome(rules, list(range(0, 4_000, 5)), budget, cuts=False)
    assert not any("D4011" in line for line in found)


@settings(max_examples=max(20, settings().max_examples // 8), deadline=None)
@given(
    st.sampled_from(sorted(RESTLESS)),
    st.lists(st.integers(1, 40), min_size=1, max_size=8),
    st.integers(300, 60_000),
)
def test_snapshots_do_not_change_what_is_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, gaps: list[int], budget: int
) -> None:
    rules = rules_of(tmp_path_factory.mktemp("s"), *RESTLESS[name])
    times = [sum(gaps[:place]) for place in range(len(gaps) + 1)]
    assert outcome(rules, times, budget, cuts=True) == outcome(rules, times, budget, cuts=False)

"""A hint about a .lars file, done as it says, leaves no mistake of that code: each is followed once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from dotr.errors import Diagnostic, Severity
from dotr.lang import check_program
from dotr.lang.explain import pages_of
from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture

QUERIES = """PREFIX : <http://example.org/>
LARS <a.lars>
QUERY temp := { SELECT ?v WHERE { ?o :value ?v } }
QUERY seen := { SELECT ?room ?o WHERE { ?o :in ?room } }
"""
NOT_STRICT = "RULE Alarm DEFINE { dotr_x a :Alarm } FROM temp AND NOT again WITHIN 1 s FROM temp\n"


class Followed(NamedTuple):
    """`hint` is part of what is said about `wrong`; `right` is `wrong` after it. `rules`: behind the queries,
    before and after.
    """

    code: str
    wrong: str
    hint: str
    right: str
    rules: tuple[str, str] = ("", "")


def one(code: str, wrong: str, hint: str, right: str) -> Followed:
    return Followed(code, wrong, hint, right)


FOLLOWED = (
    one("D1009", "within() :- temp(?v) .", "choose another name", "inside() :- temp(?v) ."),
    one("D1401", "h() :- temp(?v) WITHIN 5 .", "write `5 s`", "h() :- temp(?v) WITHIN 5 s ."),
    one("D1601", "h() :- temp(?v) ALWAYS .", "write `WITHIN 10 s`", "h() :- temp(?v) ALWAYS WITHIN 10 s ."),
    one(
        "D1601",
        "h() WITHIN 5 s :- temp(?v) .",
        "a head holds now, or `AT ?t`; windows belong in the body",
        "h() :- temp(?v) WITHIN 5 s .",
    ),
    one("D1601", "h() :- temp(?v) AND temp(3) .", "separated by `,`", "h() :- temp(?v), temp(3) ."),
    one("D1601", ":h() :- temp(?v) .", "a bare name, without a prefix", "h() :- temp(?v) ."),
    one(
        "D1601",
        "h() :- ALWAYS temp(?v) AT ?t WITHIN 5 s .",
        "`ALWAYS` already states when",
        "h() :- ALWAYS temp(?v) WITHIN 5 s .",
    ),
    one(
        "D1601",
        "h(), k() :- temp(?v) .",
        "write a rule for each",
        "h() :- temp(?v) .\nk() :- temp(?v) .",
    ),
    one("D1601", "NOT h() :- temp(?v) .", "negation belongs in the body", "h() :- NOT temp(?v) ."),
    one("D1601", "h() :- temp(v) .", "a variable is written `?v`", "h() :- temp(?v) ."),
    one("D1601", "h() <- temp(?v) .", "the arrow is written `:-`", "h() :- temp(?v) ."),
    one(
        "D1601",
        "h() :- temp(?v), NOT FILTER(?v > 3) .",
        "write `FILTER(! …)`",
        "h() :- temp(?v), FILTER(! (?v > 3)) .",
    ),
    one("D1601", "h() :- .", "is written without `:-`", "h() ."),
    one(
        "D1602",
        "h() AT ?t :- temp(?v) AT ?t .",
        "bound it: `temp(…) AT ?t WITHIN 1 min`",
        "h() AT ?t :- temp(?v) AT ?t WITHIN 1 min .",
    ),
    one(
        "D1603",
        "h() :- temp(?v) AT LEAST 0 WITHIN 5 s .",
        "write a whole number from 1 on",
        "h() :- temp(?v) AT LEAST 1 WITHIN 5 s .",
    ),
    one("D1604", "h() :- temps(?v) .", "did you mean `temp`?", "h() :- temp(?v) ."),
    one(
        "D1605",
        "h() AT ?u :- temp(?v) AT ?t WITHIN 4 s .",
        "write `AT ?u WITHIN …` in the body",
        "h() AT ?u :- temp(?v) AT ?u WITHIN 4 s .",
    ),
    one(
        "D1605",
        "h(?v) :- temp(?v), BIND(?v + 1 AS ?v) .",
        "use a new variable and compare: FILTER(?new = ?v)",
        "h(?v) :- temp(?v), BIND(?v + 1 AS ?new), FILTER(?new = ?v) .",
    ),
    one("D1606", "h() :- temp(?x, ?y) .", "write `temp(?v)`", "h() :- temp(?v) ."),
    one(
        "D1606",
        "h(?v) :- temp(?v) .\nh(?v, ?w) :- temp(?v), temp(?w) .",
        "write `h(?v)`",
        "h(?v) :- temp(?v) .\nh(?v) :- temp(?v), temp(?w) .",
    ),
    one("D1607", "STEP 0 s\nh() :- temp(?v) .", "write `STEP 1 s`", "STEP 1 s\nh() :- temp(?v) ."),
    one(
        "D1607",
        "STEP 1 s\nSTEP 1 min\nh() :- temp(?v) .",
        "keep one of them",
        "STEP 1 min\nh() :- temp(?v) .",
    ),
    one(
        "D1608",
        "STEP 2 s\nh() :- temp(?v) WITHIN 3 s .",
        "write 2 s or 4 s, or a finer STEP",
        "STEP 2 s\nh() :- temp(?v) WITHIN 4 s .",
    ),
    one(
        "D1608",
        "STEP 2 s\nh() :- temp(?v) WITHIN 3 s .",
        "or a finer STEP",
        "STEP 1 s\nh() :- temp(?v) WITHIN 3 s .",
    ),
    one(
        "D1610",
        "k(?v) :- temp(?v) .\nh(?v) :- k(?v) WITHIN 3 FACTS .",
        "write a window of time, `WITHIN 10 s`",
        "k(?v) :- temp(?v) .\nh(?v) :- k(?v) WITHIN 10 s .",
    ),
    one(
        "D1619",
        "h(?v) :- seen(?v, ?o) WITHIN 3 FACTS OF (seen, temp) PER (?v) .",
        "write `FACTS PER (?v)`, without OF",
        "h(?v) :- seen(?v, ?o) WITHIN 3 FACTS PER (?v) .",
    ),
    one(
        "D1619",
        "h(?v) :- seen(?v, ?other) WITHIN 3 FACTS PER (?othr) .",
        "did you mean `?other`?",
        "h(?v) :- seen(?v, ?other) WITHIN 3 FACTS PER (?other) .",
    ),
    one(
        "D1619",
        "h(?v) :- seen(?v, ?o) ALWAYS WITHIN 3 FACTS PER (?v) .",
        "write `AT LEAST k`, or a window of time",
        "h(?v) :- seen(?v, ?o) AT LEAST 2 WITHIN 3 FACTS PER (?v) .",
    ),
    one(
        "D1611",
        "h(?v) :- temp(?v) WITHIN 3 FACTS OF (seen) .",
        "write `OF (seen, temp)`",
        "h(?v) :- temp(?v) WITHIN 3 FACTS OF (seen, temp) .",
    ),
    one(
        "D1612",
        "h(?r, ?n) :- COUNT(?o) AS ?n OVER seen(?r, ?o) WITHIN 1 min .",
        "write `PER (?r)`, or another name in the atom",
        "h(?r, ?n) :- COUNT(?o) AS ?n OVER seen(?r, ?o) WITHIN 1 min PER (?r) .",
    ),
    one(
        "D1612",
        "h(?n) :- COUNT(?o) AS ?n OVER seen(?r, ?o) WITHIN 1 min PER ?x .",
        "PER names variables of the atom",
        "h(?n) :- COUNT(?o) AS ?n OVER seen(?r, ?o) WITHIN 1 min PER ?r .",
    ),
    one(
        "D1613",
        "h(?t) :- temp(?v) AT ?t WITHIN 4 s .",
        "or choose another name",
        "h(?v) :- temp(?v) AT ?t WITHIN 4 s .",
    ),
    one(
        "D1615",
        "h() :- NOT away() .\naway() :- h() WITHIN 4 s .",
        "derive what is negated or counted without it",
        "h() :- NOT away() .\naway() :- temp(?v) WITHIN 4 s .",
    ),
    Followed(
        "D1616",
        "again() :- Alarm() WITHIN 1 min .",
        "make it look back strictly",
        "again() :- Alarm() WITHIN 1 min .",
        (NOT_STRICT, NOT_STRICT.replace("FROM temp\n", "BEFORE temp\n")),
    ),
    Followed(
        "D1617",
        "h() :- temp(?v) .",
        "name it in a rule, as `FROM ISTREAM h`, or delete it",
        "h() :- temp(?v) .",
        (
            "RULE R DEFINE { dotr_x a :R } FROM temp\n",
            "RULE R DEFINE { dotr_x a :R } FROM ISTREAM h\n",
        ),
    ),
)
WITHOUT_HINT = {"D1614", "D1618"}
"""D1614 only says what a .lars file has not; D1618 is information and stays."""
OF_A_RUN = {"D1609"}
"""Needs a stream."""


def said(lars: str, rules: str) -> list[Diagnostic]:
    files = {"a.dotr": QUERIES + rules, "a.lars": lars + "\n"}
    return check_program(["a.dotr"], files.__getitem__)[1]


@pytest.mark.parametrize("case", FOLLOWED, ids=lambda case: f"{case.code}-{case.hint[:30]}")
def test_a_hint_that_is_followed_ends_the_mistake(case: Followed) -> None:
    before, after = said(case.wrong, case.rules[0]), said(case.right, case.rules[1])
    assert any(d.code == case.code and case.hint in d.render() for d in before), [d.render() for d in before]
    assert case.code not in {d.code for d in after}
    assert [d.render() for d in after if d.severity is Severity.ERROR] == []


def test_every_code_of_lars_files_with_a_hint_is_followed() -> None:
    followed = {case.code for case in FOLLOWED}
    assert {page.code for page in pages_of("lars")} - followed == WITHOUT_HINT | OF_A_RUN


def ran(dotr: Dotr, folder: Path, lars: str, times: list[int] | list[str], *options: str) -> tuple[int, str]:
    """(exit code, what was said) of a run over graphs that each state one temperature."""
    rule = "RULE R DEFINE { dotr_x a :R } FROM ISTREAM h\n"
    (folder / "a.dotr").write_text(QUERIES.replace("QUERY seen", "# QUERY seen") + rule)
    (folder / "a.lars").write_text(lars + "\n")
    graphs = [f"<urn:o{n}> <http://example.org/value> {n} ." for n in range(len(times))]
    lines = [json.dumps({"time": t, "graph": g}) + "\n" for t, g in zip(times, graphs, strict=True)]
    (folder / "s.jsonl").write_text("".join(lines))
    found = dotr("run", "a.dotr", "s.jsonl", *options)
    return found.code, found.err


def test_a_stream_with_dates_goes_through_once_the_step_of_the_hint_is_written(
    dotr: Dotr, folder: Path
) -> None:
    dates = ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"]
    code, err = ran(dotr, folder, "h() :- temp(?v) WITHIN 10 s .", dates)
    assert code == 3
    assert "error[D1609]" in err
    assert "write `STEP 1 s` into a .lars file" in err
    code, err = ran(dotr, folder, "STEP 1 s\nh() :- temp(?v) WITHIN 10 s .", dates)
    assert (code, "error" in err) == (0, False)


def test_each_way_out_of_too_much_work_that_the_hint_names_is_one(dotr: Dotr, folder: Path) -> None:
    times, budget = list(range(40)), ("--budget", "10000")
    code, err = ran(
        dotr, folder, "h() :- temp(?v) WITHIN 1 d, temp(?w) WITHIN 1 d, temp(?x) WITHIN 1 d .", times, *budget
    )
    assert code == 3
    assert "error[D4011]" in err
    assert "narrow a window, let atoms share a variable, or raise --budget" in err
    for lars, most in (
        ("h() :- temp(?v) WITHIN 1 s, temp(?w) WITHIN 1 s, temp(?x) WITHIN 1 s .", "10000"),
        ("h() :- temp(?v) WITHIN 1 d, temp(?v) WITHIN 1 d, temp(?v) WITHIN 1 d .", "10000"),
        ("h() :- temp(?v) WITHIN 1 d, temp(?w) WITHIN 1 d, temp(?x) WITHIN 1 d .", "10000000"),
    ):
        code, err = ran(dotr, folder, lars, times, "--budget", most)
        assert (code, "error" in err) == (0, False), lars

"""Parts of `dotr test` and `dotr compare` alone: what was traced, what is covered, what a report says."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dotr.errors import DataError
from dotr.events import Clock
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import parse_program
from dotr.rdf.terms import integer, literal
from dotr.service.comparison import RunComparison, Version
from dotr.source import Source
from dotr.testing.cases import Bench, recorded
from dotr.testing.compare import (
    as_json,
    compared_batches,
    difference_text,
    formatter,
    html,
    reasons,
    text,
)
from dotr.testing.reports import SuiteReport, because, coverage_text, covered, failure_text, junit, run_suite
from dotr.testing.suite import Suite, read_suite
from dotr.testing.tracing import Trace, stages_text

RULES = """PREFIX : <urn:>
RULE Fire DEFINE { dotr_x a :Fire ; :at ?at } FROM Smoke := { SELECT ?s WHERE { ?s :smoke ?o } }
AND LAST Hot := { SELECT ?t ?v WHERE { ?t :v ?v } } WITHIN 5 s FROM Smoke ON Hot.?v > 50
AND NOT Drill := { SELECT ?d WHERE { ?d :drill ?o } } WITHIN 5 s FROM Smoke
WHERE Hot.?v < 99 WITH ?at := Smoke.?s
"""


def suite(folder: Path, cases: str, rules: str = RULES) -> Suite:
    (folder / "a.dotr").write_text(rules, encoding="utf-8")
    path = folder / "a.test.yaml"
    path.write_text(f"rules: a.dotr\ntests:\n{cases}", encoding="utf-8")
    return read_suite(Source(str(path), read_rules_text(str(path))))


def case(name: str, stream: str, expect: str) -> str:
    return f"  - name: {name}\n    stream: [{stream}]\n    {expect}\n"


HOT = '{ at: 10, graph: ":a :v 60 ." }'
SMOKE = '{ at: 12, graph: ":b :smoke 1 ." }'
DRILL = '{ at: 11, graph: ":c :drill 1 ." }'


def report(folder: Path, cases: str) -> SuiteReport:
    return run_suite(Bench(suite(folder, cases)))


def test_a_suite_covers_what_its_cases_made_true_and_false(tmp_path: Path) -> None:
    found = report(tmp_path, case("one", f"{HOT}, {SMOKE}", "expect: [Fire]"))
    assert found.failed == 0
    missed = [item.what for item in found.items if not item.covered]
    assert missed == [
        "query Fire.Drill had no fact",
        "rule Fire: LAST Hot always found something",
        "rule Fire: LAST Hot: ON was never false",
        "rule Fire: NOT Drill stopped no match",
        "rule Fire: WHERE was never false",
    ]
    done, all_ = covered(found.items)
    assert (all_ - done, coverage_text(found).splitlines()[0].endswith(f"{100 * done // all_} %)")) == (
        5,
        True,
    )


def test_what_one_case_leaves_out_another_may_cover(tmp_path: Path) -> None:
    two = case("one", f"{HOT}, {SMOKE}", "expect: [Fire]") + case(
        "two", f"{HOT}, {DRILL}, {SMOKE}", "only: true"
    )
    missed = [item.what for item in report(tmp_path, two).items if not item.covered]
    assert "rule Fire: NOT Drill stopped no match" not in missed
    assert "rule Fire: LAST Hot always found something" in missed


def test_a_trace_stops_where_nothing_was_left() -> None:
    [rule] = parse_program(RULES).rules
    trace = Trace(rule)
    trace.triggers, trace.stages = 3, [2, 0]
    assert stages_text(trace) == "Smoke 3 → LAST Hot 2 → NOT Drill 0"
    other = Trace(rule)
    other.triggers, other.stages, other.events, other.true = 1, [1, 1], 1, {("WHERE", 0): 1}
    trace.add(other)
    assert stages_text(trace) == "Smoke 4 → LAST Hot 3 → NOT Drill 1 → WHERE 1 → events 1"


def test_a_missing_event_is_shown_with_what_came_instead_and_how_far_the_rule_got(tmp_path: Path) -> None:
    expected = "expect: [ { rule: Fire, at: 12, at_: 1 } ]".replace(", at_: 1", ', "?at": ":z"')
    found = report(tmp_path, case("one", f"{HOT}, {SMOKE}", expected))
    [outcome] = found.outcomes
    shown = failure_text(found.bench, outcome)
    assert "- Fire @ 12  ?at :z" in shown
    assert "instead: Fire @ 12  ?at :b" in shown
    assert "over the whole test: Smoke 1 → LAST Hot 1 → NOT Drill 1 → WHERE 1 → events 1" in shown


def test_why_an_event_is_missing_is_asked_at_its_time_and_not_behind_the_end(tmp_path: Path) -> None:
    for at, reason in ((12, "LAST Hot 0"), (13, "the stream ends at 12: end it with a message at 13")):
        found = report(tmp_path, case("one", f"{DRILL}, {SMOKE}", f"expect: [ {{ rule: Fire, at: {at} }} ]"))
        [outcome] = found.outcomes
        [failure] = outcome.failures
        assert reason in because(found.bench, outcome, failure) or "Hot" in because(
            found.bench, outcome, failure
        )
        assert ("the stream ends" in because(found.bench, outcome, failure)) is (at == 13)


def test_junit_counts_failures_and_files_that_were_refused(tmp_path: Path) -> None:
    found = report(
        tmp_path, case("good", f"{HOT}, {SMOKE}", "expect: [Fire]") + case("bad", HOT, "expect: [Fire]")
    )
    refused = DataError.of("D2010", "no \x00 test\ud800 file")
    root = ElementTree.fromstring(junit([found], {"b.test.yaml": refused}))  # noqa: S314  # our own
    assert [(one.get("tests"), one.get("failures"), one.get("errors")) for one in root] == [
        ("1", "0", "1"),
        ("2", "1", "0"),
    ]
    error = root.find(".//error")
    assert error is not None
    assert error.get("message") == "no  test file"


def test_what_is_recorded_passes_as_a_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graphs = [{"time": 10, "graph": "<urn:a> <urn:v> 60 ."}, {"time": 12, "graph": "<urn:b> <urn:smoke> 1 ."}]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, graphs)), encoding="utf-8")
    given = suite(tmp_path, "  - name: x\n    stream: []\n    only: true\n")
    written = recorded(["a.dotr"], ["a.jsonl"], None, "s", given, "as it: is")
    assert '"?at": ":b"' in written
    found = run_suite(Bench(read_suite(Source("b.test.yaml", written))))
    assert [(one.case.name, one.passed, one.case.only) for one in found.outcomes] == [
        ("as it: is", True, True)
    ]
    with pytest.raises(DataError):
        recorded(["a.dotr"], ["b.jsonl"], None, "s", given, "x")


# -- comparisons ---------------------------------------------------------------------------------------

OLD = Version("old", parse_program(RULES), [])
NEW = Version("new", parse_program(RULES.replace("> 50", "> 70")), [])
KEY = ("Fire", (("at", "<urn:b>"),))


def compared(*counts: int) -> RunComparison:
    found = RunComparison([OLD, NEW])
    found.at(12_000_000, [Counter({KEY: count}) if count else Counter() for count in counts])
    return found


def test_a_difference_has_its_sign_and_its_number() -> None:
    for counts, line in (((1, 0), "− Fire @ 12  ?at :b"), ((1, 3), "+ Fire @ 12  ?at :b × 2")):
        found = compared(*counts)
        assert difference_text(found.differences[0], found, formatter(found)) == line
        assert text(found, [], 5).splitlines()[-1] == line
    assert text(compared(0, 2), [], 0).endswith("and 2 more\n")
    assert "more" not in text(compared(1, 1), [], 0)


def test_a_comparison_as_values_and_as_a_page_with_its_reasons() -> None:
    found = compared(1, 0)
    why = [(found.differences[0], "a <reason>")]
    value = json.loads(as_json(found, why))
    assert value["changed"] == 1
    assert value["days"] == [
        {"rule": "Fire", "day": "day 0", "events": [1, 0], "added": [0, 0], "removed": [0, 1]}
    ]
    [one] = value["differences"]
    assert (one["version"], one["change"], one["time"], one["because"]) == ("new", -1, 12, "a <reason>")
    page = html(found, why, 5)
    assert "a &lt;reason&gt;" in page
    assert page.count("<circle ") == 1
    ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])  # noqa: S314  # our own


def test_why_events_differ_is_said_of_both_versions(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    graphs = [{"time": 10, "graph": "<urn:a> <urn:v> 60 ."}, {"time": 12, "graph": "<urn:b> <urn:smoke> 1 ."}]
    log.write_text("\n".join(map(json.dumps, graphs)), encoding="utf-8")
    found = compared(1, 0)
    [(one, why)] = reasons(found, found.differences, [str(log)], SourceOptions(), 0)
    assert one is found.differences[0]
    assert [line for line in why.splitlines() if line in ("old:", "new:")] == ["old:", "new:"]
    gone = RunComparison([OLD, Version("new", parse_program(""), [])], differences=found.differences)
    [(_, why)] = reasons(gone, gone.differences, [str(log)], SourceOptions(), 0)
    assert why.endswith("new has no rule Fire")


def test_parts_of_batches_are_merged_by_time_and_compared_as_multisets(tmp_path: Path) -> None:
    def part(name: str, *events: tuple[int, dict[str, str]]) -> str:
        path = tmp_path / name
        lines = [
            json.dumps({"rule": "Fire", "time": time, "bindings": {"at": value}}) for time, value in events
        ]
        path.write_text("\n".join(lines), encoding="utf-8")
        return str(path)

    b = {"type": "uri", "value": "urn:b"}
    five = {"type": "literal", "value": "5", "datatype": "http://www.w3.org/2001/XMLSchema#integer"}
    french = {"type": "literal", "value": "mot", "xml:lang": "fr"}
    old = [part("o1", (1, b), (3, five)), part("o2", (2, b), (3, five))]
    new = [part("n1", (1, b), (2, b), (3, five), (4, french))]
    found = compared_batches([OLD, NEW], [old, new])
    assert found.clock == Clock(True)
    assert found.total("Fire") == [4, 4]
    assert [(d.change, d.time, d.bindings) for d in found.differences] == [
        (-1, 3_000_000, (("at", integer(5)),)),
        (1, 4_000_000, (("at", literal("mot", language="fr")),)),
    ]

"""State leaves as a value and comes back; what changed starts empty, and is reported."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from dotr.detect.detector import TeslaDetector
from dotr.detect.digest import rule_digests
from dotr.errors import EngineError
from dotr.program import DatalogRule, Program, Rule
from dotr.program.program import only
from dotr.program.queries import Atom, GroupPattern, Projection, Select, TriplePattern, Triples, Var
from dotr.source import Source, Span
from tests.detect.building import (
    CLOCK,
    A,
    B,
    at,
    attribute,
    before,
    each,
    equal,
    facts,
    last,
    program,
    rule,
    times,
    total,
    within,
)


def fire(name: str = "Fire", width: int = 5) -> Rule:
    return rule(name, at("Smoke"), last(at("Heat"), within(width, "Smoke"), equal("Heat.k", "Smoke.k")))


def counted() -> Rule:
    return rule(
        "Counted",
        at("Smoke"),
        total("SUM", attribute("Heat.v"), "n", at("Heat"), within(5, "Smoke")),
        each(at("All", "Heat"), within(5, "Smoke")),
        give={"n": "?n"},
        consuming=["All"],
    )


def feed(detector: TeslaDetector, *calls: tuple[int, dict[str, list[tuple[Any, ...]]]]) -> list[Any]:
    found = []
    for time, content in calls:
        found += detector.at(time, {name: facts(time, *rows) for name, rows in content.items()})
    return found


HEAT = (1, {"Heat": [(A, 1), (B, 2)]})
SMOKE = (3, {"Smoke": [(A, 0)]})


def through_json(value: dict[str, Any]) -> Any:
    return json.loads(json.dumps(value))


def test_a_restored_detector_goes_on_where_the_other_stopped() -> None:
    of = program(fire(), counted())
    one = TeslaDetector(of, CLOCK)
    feed(one, HEAT)
    other = TeslaDetector(of, CLOCK)
    assert other.restore(through_json(one.snapshot())).kept == ("Fire", "Counted")
    assert feed(other, SMOKE) == feed(one, SMOKE) != []


def test_a_snapshot_shares_nothing_with_the_live_state() -> None:
    detector = TeslaDetector(program(fire(), counted()), CLOCK)
    feed(detector, HEAT)
    value = detector.snapshot()
    text = json.dumps(value)
    feed(detector, (2, {"Heat": [(A, 5)]}), SMOKE)
    assert json.dumps(value) == text


def test_unchanged_rules_keep_their_state_and_changed_ones_start_empty() -> None:
    before_ = TeslaDetector(program(fire("Kept"), fire("Changed"), fire("Gone")), CLOCK)
    feed(before_, HEAT)
    after = TeslaDetector(program(fire("New"), fire("Changed", width=6), fire("Kept")), CLOCK)
    restored = after.restore(through_json(before_.snapshot()))
    assert (restored.kept, restored.empty, restored.gone) == (("Kept",), ("New", "Changed"), ("Gone",))
    found = feed(after, SMOKE, (4, {"Heat": [(A, 9)], "Smoke": [(A, 0)]}))
    assert [(m.rule, t) for m, t in zip(found, times(found), strict=True)] == [
        (2, (3, 1)),
        (0, (4, 4)),
        (1, (4, 4)),
        (2, (4, 4)),
    ]


def test_a_rule_deployed_later_never_sees_what_came_before_it() -> None:
    first_ = TeslaDetector(program(fire("Old")), CLOCK)
    feed(first_, HEAT)
    second = TeslaDetector(program(fire("Old"), fire("New")), CLOCK)
    second.restore(through_json(first_.snapshot()))
    third = TeslaDetector(program(fire("Old"), fire("New"), fire("Newest")), CLOCK)
    feed(second, (2, {"Heat": [(B, 1)]}))
    third.restore(through_json(second.snapshot()))
    assert [m.rule for m in feed(third, (3, {"Smoke": [(A, 0), (B, 0)]}))] == [0, 0, 1]


def test_a_snapshot_holds_a_shared_column_once_and_no_expired_fact() -> None:
    many = TeslaDetector(program(*(fire(f"Fire{i}") for i in range(50))), CLOCK)
    one = TeslaDetector(program(fire("Fire0")), CLOCK)
    feed(many, HEAT)
    feed(one, HEAT)
    assert many.snapshot()["columns"] == one.snapshot()["columns"]
    feed(many, (100, {}))
    assert many.snapshot()["columns"][0]["facts"] == []
    assert set(many.sizes().values()) == {0}


def test_a_snapshot_of_another_version_is_refused() -> None:
    detector = TeslaDetector(program(fire()), CLOCK)
    with pytest.raises(EngineError, match="D5010"):
        detector.restore({**detector.snapshot(), "version": 99})


def test_a_digest_is_of_meaning_not_of_layout() -> None:
    one = program(fire(), counted())
    moved = replace(one, rules=tuple(replace(r, span=Span(Source("x", "text"), 0, 3)) for r in one.rules))
    assert rule_digests(one) == rule_digests(moved)
    assert rule_digests(program(counted(), fire())) == rule_digests(one)[::-1]


def test_private_is_no_part_of_a_digest() -> None:
    one = program(fire(), counted())
    assert rule_digests(one) == rule_digests(only(one, ()))


def test_a_digest_covers_queries_their_datalog_and_the_rules_chained_on() -> None:
    def asks(predicate: str) -> Select:
        pattern = TriplePattern(Var("k"), predicate, Var("v"))
        return Select((Projection(Var("k")), Projection(Var("v"))), GroupPattern((Triples((pattern,)),)))

    def derives(head: str, body: str) -> DatalogRule:
        return DatalogRule((Atom(Var("x"), head, Var("y")),), (Atom(Var("x"), body, Var("y")),))

    alarm = rule("Alarm", at("Fire", variables="k v", chained=True))
    base = Program(
        queries={"Smoke": asks("<urn:x:smoke>"), "Heat": asks("<urn:x:heat>")},
        rules=(fire(), alarm),
        datalog=(derives("<urn:x:heat>", "<urn:x:warm>"), derives("<urn:x:noise>", "<urn:x:loud>")),
    )
    plain = rule_digests(base)

    def changed(**parts: Any) -> list[bool]:
        return [a != b for a, b in zip(plain, rule_digests(replace(base, **parts)), strict=True)]

    assert changed(queries={**base.queries, "Heat": asks("<urn:x:cold>")}) == [True, True]
    assert changed(datalog=base.datalog[1:]) == [True, True]
    assert changed(datalog=base.datalog[:1]) == [False, False]
    assert changed(datalog=(*base.datalog, derives("<urn:x:warm>", "<urn:x:sun>"))) == [True, True]
    assert changed(rules=(fire(width=6), alarm)) == [True, True]
    late = rule("Alarm", at("Fire", variables="k v", chained=True), last(at("Heat"), before(1, "Fire")))
    assert changed(rules=(fire(), late)) == [False, True]

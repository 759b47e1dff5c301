"""Rules as functions: what operators choose of a window, the order of matches, work that is too much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dotr.budget import Exhausted
from dotr.detect.code import SharedRules, compile_rules
from dotr.detect.columns import open_column
from dotr.detect.detector import LOOKS, TeslaDetector, write_loop
from dotr.detect.digest import rule_digests
from dotr.detect.network import Network, Options, run_alone
from dotr.detect.operators import DETECTED
from dotr.detect.plan import plan_rule
from dotr.detect.state import load, save
from dotr.errors import EngineError, ProgramError
from dotr.events import Fact, RawMatch, Time
from dotr.program import Rule, TemplateVar
from dotr.program.names import counts
from dotr.rdf.terms import Term, integer
from tests.detect.building import (
    CLOCK,
    A,
    B,
    C,
    absent,
    at,
    attribute,
    before,
    between,
    both,
    call,
    each,
    equal,
    facts,
    first,
    last,
    program,
    rule,
    total,
    within,
)

KEY = equal("H.k", "S.k")
W = within(5, "S")
PAST: Sequence[tuple[int, Term, int]] = [(0, A, 9), (5, A, 1), (6, B, 2), (7, A, 3), (7, A, 4), (10, A, 5)]


class Compiled:
    """Owns the function of one rule alone, and the columns that it reads."""

    def __init__(self, of: Rule, past: Sequence[tuple[int, Term, int]] = PAST, budget: int = 10**6) -> None:
        plan = plan_rule(0, of, frozenset(), alone=True)
        self.columns = [open_column(step.column, CLOCK, lambda _: None) for step in plan.steps]
        for column, step in zip(self.columns, plan.steps, strict=True):
            column.retention = step.retention
            for time, key, value in past:
                if not (step.column.deferred and time == 10):
                    column.insert(facts(time, (key, value)))
        self.refused: list[tuple[Fact, Exhausted]] = []
        self.dropped: list[int] = []
        shape = SharedRules([plan], self.columns, lambda _t, fact, why, *_: self.refused.append((fact, why)))
        self._run = compile_rules([shape], CLOCK, budget=budget, drop=self.dropped.extend)

    def at(self, time: Time = 10, *rows: tuple[Term, int]) -> list[RawMatch]:
        out: list[RawMatch] = []
        self._run(time, facts(time, *(rows or ((A, 0),))), out)
        return out


def chosen(of: Rule) -> list[list[int]]:
    """Of each match the values of the facts chosen, as numbers."""
    return [[int((fact[1][1] or "").split('"')[1]) for fact in found[2][1:]] for found in Compiled(of).at()]


@pytest.mark.parametrize(
    ("conjunct", "values"),
    [
        (each(at("H"), W, KEY), [[1], [3], [4], [5]]),
        (each(at("H"), W), [[1], [2], [3], [4], [5]]),
        (each(at("H"), before(5, "S"), KEY), [[1], [3], [4]]),
        (last(at("H"), W, KEY), [[5]]),
        (last(at("H"), before(5, "S"), KEY), [[4]]),
        (last(at("H"), W, KEY, k=2), [[4], [5]]),
        (last(at("H"), W, KEY, k=9), [[1], [3], [4], [5]]),
        (last(at("H"), W, both(KEY, call("<", "H.v", 4))), [[3]]),
        (first(at("H"), W, KEY), [[1]]),
        (first(at("H"), W, KEY, k=2), [[1], [3]]),
        (first(at("H"), W, both(KEY, call(">", "H.v", "S.v"))), [[1]]),
        (last(at("H"), within(0, "S"), KEY), [[5]]),
        (last(at("H"), W, equal("H.k", C)), []),
    ],
)
def test_what_is_chosen_of_a_window(conjunct: Any, values: list[list[int]]) -> None:
    assert chosen(rule("R", at("S"), conjunct)) == values


@pytest.mark.parametrize(
    ("conjunct", "matches"),
    [
        (absent(at("H"), W, KEY), 0),
        (absent(at("H"), W, equal("H.k", C)), 1),
        (absent(at("H"), within(5, "S"), both(KEY, call(">", "H.v", 5))), 1),
        (absent(at("H"), within(10, "S"), both(KEY, call(">", "H.v", 5))), 0),
        (absent(at("H"), before(5, "S"), equal("H.v", 5)), 1),
    ],
)
def test_a_match_is_dropped_where_there_is_a_candidate(conjunct: Any, matches: int) -> None:
    assert len(Compiled(rule("R", at("S"), conjunct)).at()) == matches


def test_an_open_interval_has_neither_of_its_ends() -> None:
    two = rule("R", at("S"), first(at("H"), W, KEY), each(at("M"), between("H", "S")))
    assert chosen(two) == [[1, 2], [1, 3], [1, 4]]


def test_a_window_of_another_position_ends_with_it_or_before() -> None:
    late = last(at("H"), W, KEY)
    assert chosen(rule("R", at("S"), late, each(at("M"), within(3, "H")))) == [[5, 3], [5, 4], [5, 5]]
    assert chosen(rule("R", at("S"), late, each(at("M"), before(3, "H")))) == [[5, 3], [5, 4]]


@pytest.mark.parametrize(
    ("function", "on", "value"),
    [
        ("COUNT", KEY, 4),
        ("SUM", KEY, 13),
        ("MIN", KEY, 1),
        ("MAX", KEY, 5),
        ("SUM", equal("H.k", C), 0),
        ("COUNT", call(">", "H.v", "S.v"), 5),
        ("MAX", equal("H.k", C), None),
    ],
)
def test_an_aggregate_is_of_all_candidates(function: str, on: Any, value: int | None) -> None:
    of = rule("R", at("S"), total(function, attribute("H.v"), "n", at("H"), W, on), give={"n": "?n"})
    found = [bindings for *_, bindings in Compiled(of).at()]
    assert found == ([] if value is None else [(integer(value),)])


def test_matches_come_by_trigger_and_then_as_loops_nest() -> None:
    of = rule("R", at("S"), each(at("H"), W, KEY), each(at("M"), within(3, "S"), equal("M.k", "S.k")))
    out = Compiled(of).at(10, (A, 7), (B, 8))
    found = [[int((fact[1][1] or "").split('"')[1]) for fact in one[2]] for one in out]
    assert found == [[7, a, b] for a in (1, 3, 4, 5) for b in (3, 4, 5)]


def test_a_template_without_a_graph_drops_the_match() -> None:
    of = rule("R", at("S"), give={"v": "S.v"}, template=[(TemplateVar("v"), "<urn:p>", "<urn:o>")])
    compiled = Compiled(of)
    assert compiled.at() == []
    assert compiled.dropped == [0]


def test_a_trigger_fact_that_takes_too_much_has_no_match_and_others_have_theirs() -> None:
    on = call("<", "H.v", call("+", "S.v", "M.v"))
    of = rule("R", at("S"), each(at("M"), W), each(at("H"), W, on))
    past = [(9, A, n) for n in range(60)]
    assert len(Compiled(of, past).at()) > 1_000
    poor = Compiled(of, past, budget=100)
    assert poor.at() == []
    ((fact, why),) = poor.refused
    assert fact[0] == 10
    assert why.factors


def test_every_operator_has_its_code() -> None:
    keeps = {str(operator): bool(row.counts_reference) for operator, row in DETECTED.items()}
    assert keeps == {"EACH": False, "LAST": False, "FIRST": False, "NOT": False, "AGGREGATE": True}


def above(index: int, limit: int) -> Rule:
    return rule(f"R{index}", at("S"), last(at("H"), W, both(KEY, call(">", "H.v", limit))))


def network(*rules: Rule, budget: int = 10**6) -> Network:
    def refuse(_rule: int, _fact: Fact, error: ProgramError) -> None:
        raise error

    return Network(program(*rules), Options(CLOCK, budget, refuse, {}, {}), [0] * len(rules), None)


def test_a_rule_alone_finds_what_it_finds_in_its_group() -> None:
    of = network(above(0, 1), above(1, 3), above(2, 8))
    (group,) = of.groups
    (column,) = of.columns.values()
    column.retention = 5
    for time, value in ((6, 9), (7, 2), (8, 4)):
        column.insert(facts(time, (A, value)))
    found = {}
    for plan in group:
        run = run_alone(
            plan, [column], CLOCK, {}, budget=10**6, drop=lambda _: None, exceeded=lambda *_: lambda *_: None
        )
        out: list[RawMatch] = []
        run(10, facts(10, (A, 0)), out)
        found[plan.index] = [one[2][1][0] for one in out]
    assert found == {0: [8], 1: [8], 2: [6]}


def test_rules_sleep_until_each_column_they_choose_from_has_facts() -> None:
    both_of_them = rule("R", at("S"), last(at("H"), W), last(at("M"), W))
    of = network(both_of_them, rule("Q", at("S"), absent(at("H"), W)))
    trigger = of.streams["S"]
    assert [bundle.name for _, bundle in trigger.awake] == ["Q"], "NOT chooses nothing"
    of.streams["H"].fills[0].insert(facts(1, (A, 1)))
    assert len(trigger.awake) == 1
    of.streams["M"].fills[0].insert(facts(1, (A, 1)))
    assert [bundle.name for _, bundle in trigger.awake] == ["R", "Q"]
    of.now = 100
    of.sweep(100)
    assert [bundle.name for _, bundle in trigger.awake] == ["Q"]


@pytest.mark.parametrize("streams", [1, LOOKS, LOOKS + 3])
def test_the_loop_counts_and_finds_the_same_however_many_streams_there_are(streams: int) -> None:
    names = [f"S{n % streams}" for n in range(streams + 10)]
    rules = [
        rule(f"R{n}", at("T", names[n]), last(at("H", names[n + 1]), before(9, "T"))) for n in range(streams)
    ]
    of = network(*rules)
    detector = TeslaDetector(program(*rules), CLOCK)
    loop = write_loop(of, detector._instant, [0], plain=True)
    instants = [(t, None, {name: facts(t, (A, t)) for name in names[t : t + 2]}, True) for t in range(1, 9)]
    other = TeslaDetector(program(*rules), CLOCK)
    seen = counts()
    detector._take(of)
    for place, found in loop(instants, seen, counts(), True):
        time, _, came, _ = instants[place]
        assert sorted(found) == sorted(other.detect(time, came))
    assert sum(count for (count,) in seen.values()) == sum(
        len(rows) for _, _, came, _ in instants for rows in came.values()
    )


def test_state_comes_back_for_rules_that_are_the_same() -> None:
    old = program(above(0, 1), above(1, 3))
    of = Network(old, Options(CLOCK, 10, lambda *_: None, {}, {}), [0, 0], None)
    of.now = 4
    (column,) = of.columns.values()
    column.insert(facts(4, (A, 2)))
    of.dropped[1] = 7
    saved = save(old, of, rule_digests(old), 1)
    new = program(above(1, 3), rule("New", at("S")))
    epochs: list[Sequence[int]] = []

    def build(given: Sequence[int], now: Time | None) -> Network:
        epochs.append(given)
        return Network(new, Options(CLOCK, 10, lambda *_: None, {}, {}), given, now)

    again, report = load(new, rule_digests(new), saved, build)
    assert (report.kept, report.empty, report.gone) == (("R1",), ("New",), ("R0",))
    assert (epochs, again.now, again.dropped) == ([[0, 1]], 4, [7, 0])
    assert [one.size() for one in again.columns.values()] == [0], "2 is not above 3"
    for version in (0, 6, None):
        with pytest.raises(EngineError) as raised:
            load(new, rule_digests(new), {**saved, "version": version}, build)
        assert raised.value.diagnostics[0].code == "D5010"

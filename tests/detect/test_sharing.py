"""Rules that differ in constants: who is answered together, and that it is the same answer for less work."""

from __future__ import annotations

from unittest.mock import patch
from weakref import WeakValueDictionary

from hypothesis import given, settings
from hypothesis import strategies as st

from dotr.codegen import CodeSource
from dotr.detect import thresholds
from dotr.detect.columns import own_condition
from dotr.detect.detector import TeslaDetector
from dotr.detect.thresholds import Filtered, is_threshold, measured, sizes, threshold, write_test
from dotr.events import Fact
from dotr.program import Attribute, Call, Const, Program, Rule
from dotr.rdf.terms import XSD, Term, canonical, integer
from dotr.reference.tesla import LiteralTesla
from tests.detect.building import (
    CLOCK,
    A,
    absent,
    at,
    both,
    call,
    each,
    equal,
    facts,
    last,
    program,
    rule,
    times,
    within,
)

KEY = equal("Heat.k", "Smoke.k")


def above(i: int, limit: int, **rest: object) -> Rule:
    on = both(KEY, call(">", "Heat.v", limit))
    return rule(f"Fire{i}", at("Smoke"), last(at("Heat"), within(9, "Smoke"), on), **rest)  # type: ignore[arg-type]  # tests


def sized(found: list[Fact], operator: str, *constants: int) -> list[Fact]:
    """Facts as a base has them, compared by their second attribute."""
    size_of = sizes(operator, list(map(integer, constants)))
    assert size_of is not None
    return [(*fact, size) for fact in found if (size := size_of(fact[1][1])) is not None]  # type: ignore[misc]


def group_sizes(of: Program) -> list[int]:
    return [len(group) for group in TeslaDetector(of, CLOCK).network.groups]


def test_rules_that_differ_in_a_threshold_or_a_constant_of_with_are_one_group() -> None:
    assert group_sizes(program(*(above(i, i, give={"limit": Const(integer(i))}) for i in range(5)))) == [5]


def test_rules_that_differ_in_more_are_not() -> None:
    wide = rule("Wide", at("Smoke"), last(at("Heat"), within(8, "Smoke"), both(KEY, call(">", "Heat.v", 1))))
    below = rule("Low", at("Smoke"), last(at("Heat"), within(9, "Smoke"), both(KEY, call("<", "Heat.v", 1))))
    consuming = above(3, 1, consuming=["Heat"])
    other = above(4, 1, where=call(">", "Heat.v", 0))
    assert group_sizes(program(above(0, 1), wide, below, consuming, other)) == [1] * 5


def test_thresholds_that_do_not_rise_together_are_answered_apart() -> None:
    def twice(i: int, heat: int, rain: int) -> Rule:
        return rule(
            f"Fire{i}",
            at("Smoke"),
            last(at("Heat"), within(9, "Smoke"), call(">", "Heat.v", heat)),
            last(at("Rain"), within(9, "Smoke"), call(">", "Rain.v", rain)),
        )

    of = program(twice(0, 1, 5), twice(1, 2, 3), twice(2, 3, 6), twice(3, 0, 9))
    assert sorted(group_sizes(of)) == [1, 1, 2]
    engine, oracle = TeslaDetector(of, CLOCK), LiteralTesla(of, CLOCK)
    for t, (heat, rain) in enumerate([(2, 4), (4, 4), (2, 7), (9, 9)]):
        content = {"Heat": facts(t, (A, heat)), "Rain": facts(t, (A, rain)), "Smoke": facts(t, (A, 0))}
        assert engine.at(t, content) == oracle.at(t, content)


def typed(text: str, name: str) -> Term:
    return f'"{text}"^^<{XSD}{name}>'


def test_only_short_exact_constants_are_thresholds() -> None:
    assert is_threshold(">", integer(20))
    assert is_threshold(">", integer(2**63 - 1))
    assert is_threshold("<=", typed("-0.5", "decimal"))
    assert is_threshold(">", typed("101.0010", "decimal"))
    assert not is_threshold(">", typed("0.1234567890123456", "decimal"))
    assert not is_threshold(">", typed("0.5", "double"))
    assert not is_threshold("=", integer(1))
    assert not is_threshold(">", '"20"')
    assert not is_threshold(">", typed("true", "boolean"))


NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(integer),
    st.integers(-30, 30).map(integer),
    st.decimals(-100, 100, places=2).map(lambda d: canonical(typed(f"{d:f}", "decimal"))),
    st.decimals(-2, 2, places=18).map(lambda d: canonical(typed(f"{d:f}", "decimal"))),
    st.floats().map(
        lambda f: canonical(typed(repr(f).replace("inf", "INF").replace("nan", "NaN"), "double"))
    ),
    st.sampled_from([0.1, 0.5, 1.1, 2.675, -0.1, 1e22, 5e-324, 2.0**63, 2.0**53 + 2]).map(
        lambda f: canonical(typed(repr(f), "double"))
    ),
    st.sampled_from([A, '"1"', typed("true", "boolean"), typed("x", "integer")]),
)
LIMITS = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(integer),
    st.integers(2**53 - 3, 2**53 + 3).map(integer),
    st.integers(-30, 30).map(integer),
    st.decimals(-100, 100, places=3).map(lambda d: canonical(typed(f"{d:f}", "decimal"))),
    st.sampled_from(["0.1", "0.5", "1.1", "2.675", "-0.1", "0.00000000000001"]).map(
        lambda t: typed(t, "decimal")
    ),
)


OPERATOR = st.sampled_from([">", ">=", "<", "<="])
SINGLES = st.floats(width=32).map(
    lambda f: canonical(typed(repr(f).replace("inf", "INF").replace("nan", "NaN"), "float"))
)


@given(NUMBERS, LIMITS, OPERATOR)
@settings(max_examples=500)
def test_a_value_passes_a_threshold_as_it_passes_the_comparison(
    value: Term, limit: Term, operator: str
) -> None:
    found = threshold(0, operator, limit)
    assert found is not None
    fact: Fact = (0, (value,), 0, "")
    measure = measured(found.measure)(fact)
    inclusive = found.measure.inclusive
    passes = measure is not None and (measure >= found.limit if inclusive else measure > found.limit)
    condition = Call(operator, (Attribute("", "0"), Const(limit)))
    assert passes == own_condition(condition, CLOCK)(fact)


@given(st.lists(st.tuples(LIMITS, OPERATOR), min_size=1, max_size=4), st.data())
@settings(max_examples=100)
def test_columns_take_what_passes_whether_answers_are_kept_or_sizes_are_compared(
    limits: list[tuple[Term, str]], data: st.DataObject
) -> None:
    long = typed(f"0.{'0' * 300}1", "decimal")
    terms = data.draw(st.lists(st.one_of(NUMBERS, st.none(), st.just(long)), max_size=9))
    with patch.multiple(thresholds, TABLES=2, _ANSWERS=WeakValueDictionary()):
        written = []
        for limit, operator in limits:
            found = threshold(0, operator, limit)
            assert found is not None
            source = CodeSource()
            source.line("passed = []")
            with source.block("for fact in facts"):
                write_test(source, found, "fact", "fact[1]")
                source.line("passed.append(fact)")
            source.line("return passed")
            written.append(source.function("facts"))
            assert len(thresholds._ANSWERS) <= 2
        for (limit, operator), passed in zip(limits * 2, written * 2, strict=True):
            came: list[Fact] = [(0, (term,), 0, "") for term in terms]
            condition = own_condition(Call(operator, (Attribute("", "0"), Const(limit))), CLOCK)
            assert passed(came) == [fact for fact in came if fact[1][0] is not None and condition(fact)]


@given(st.one_of(NUMBERS, SINGLES), st.lists(LIMITS, min_size=1, max_size=5), OPERATOR)
@settings(max_examples=500)
def test_what_a_term_measures_among_constants_says_which_it_passes(
    value: Term, limits: list[Term], operator: str
) -> None:
    size_of = sizes(operator, limits)
    assert size_of is not None
    size = size_of(value)
    for limit in limits:
        found = threshold(0, operator, limit)
        assert found is not None
        condition = Call(operator, (Attribute("", "0"), Const(limit)))
        passes = own_condition(condition, CLOCK)((0, (value,), 0, ""))
        assert (size is not None and size >= found.least) == passes


def test_each_rule_takes_the_latest_fact_above_its_own_limit() -> None:
    of = program(*(above(i, limit) for i, limit in enumerate((10, 40, 20, 30))))
    detector = TeslaDetector(of, CLOCK)
    for t, value in enumerate((35, 5, 25, 15)):
        detector.at(t, {"Heat": facts(t, (A, value))})
    found = detector.at(4, {"Smoke": facts(4, (A, 0))})
    assert [(m.rule, m.facts[1][0]) for m in found] == [(0, 3), (2, 2), (3, 0)]


def test_of_equal_sizes_the_latest_alone_is_kept() -> None:
    detector = TeslaDetector(program(above(0, 1), above(1, 2)), CLOCK)
    for time, size in enumerate([9, 2, 2, 2, 9, 7, 2, 2]):
        detector.at(time, {"Heat": facts(time, (A, size))})
    assert set(detector.sizes().values()) == {2}


def test_what_every_threshold_lets_pass_is_not_told_apart() -> None:
    detector = TeslaDetector(program(above(0, 1), above(1, 2)), CLOCK)
    for time, size in enumerate([1, 9, 8, 7, 0, 6]):
        detector.at(time, {"Heat": facts(time, (A, size))})
    assert set(detector.sizes().values()) == {1}


def test_a_threshold_that_all_have_is_a_filter() -> None:
    smoke, heat = at("Smoke"), at("Heat")
    on = both(equal("Heat.k", "Smoke.k"), call(">", "Heat.v", 5))
    rules = [
        rule(f"Fire{i}", smoke, last(heat, within(9, "Smoke"), on), where=call(">", "Smoke.v", i))
        for i in (0, 3)
    ]
    detector = TeslaDetector(program(*rules), CLOCK)
    for time, size in enumerate([7, 4]):
        detector.at(time, {"Heat": facts(time, (A, size))})
    assert detector.sizes() == {"Fire0": 1, "Fire3": 1}
    assert detector.describe()["Fire0"][1] == "Heat: lastvalue of Heat by 1 key(s), 1 filter(s), kept 9 us"
    assert times(detector.at(2, {"Smoke": facts(2, (A, 2))})) == [(2, 0)]


def test_absence_above_a_limit_is_reported_rule_by_rule() -> None:
    rules = [
        rule(
            f"Calm{i}",
            at("Smoke"),
            absent(at("Heat"), within(2, "Smoke"), both(KEY, call(">=", "Heat.v", limit))),
        )
        for i, limit in enumerate((10, 40, 20))
    ]
    detector = TeslaDetector(program(*rules), CLOCK)
    detector.at(0, {"Heat": facts(0, (A, 40))})
    detector.at(1, {"Heat": facts(1, (A, 20))})
    assert [m.rule for m in detector.at(2, {"Smoke": facts(2, (A, 0))})] == []
    assert [m.rule for m in detector.at(3, {"Smoke": facts(3, (A, 0))})] == [1]
    assert [m.rule for m in detector.at(4, {"Smoke": facts(4, (A, 0))})] == [0, 1, 2]


def test_a_stream_that_filters_another_has_its_facts() -> None:
    rules = [
        rule(f"Fire{i}", at("Smoke", f"Smoke{i}"), each(at("Heat", f"Heat{i}"), within(9, "Smoke"), KEY))
        for i in range(3)
    ]
    filtered = {f"Heat{i}": Filtered("Heat", ">", integer(10 * i)) for i in range(3)}
    filtered |= {f"Smoke{i}": Filtered("Smoke", "<=", integer(i)) for i in range(3)}
    detector = TeslaDetector(program(*rules), CLOCK, filtered=filtered)
    heat = sized(facts(1, (A, 5), (A, 15), (A, None), (A, A)), ">", 0, 10, 20)
    found = detector.at(1, {"Heat": heat, "Smoke": sized(facts(1, (A, 1)), "<=", 0, 1, 2)})
    assert [(m.rule, m.facts[1][1][1]) for m in found] == [(1, integer(15))]


def test_streams_of_equal_queries_are_given_once() -> None:
    rules = [
        rule(f"Fire{i}", at("Smoke", f"Fire{i}.Smoke"), last(at("Heat"), within(9, "Smoke"), KEY))
        for i in range(3)
    ]
    same = {f"Fire{i}.Smoke": "Fire0.Smoke" for i in range(3)}
    detector = TeslaDetector(program(*rules), CLOCK, same=same)
    found = detector.at(1, {"Fire0.Smoke": facts(1, (A, 1)), "Heat": facts(1, (A, 1))})
    assert [m.rule for m in found] == [0, 1, 2]
    assert [len(group) for group in detector.network.groups] == [3]


def test_a_thousand_thresholds_cost_one_look_where_none_passes() -> None:
    of = program(*(above(i, 100 + i) for i in range(1_000)))
    detector = TeslaDetector(of, CLOCK)
    assert len(detector.network.columns) == 1
    assert len(detector.network.groups) == 1
    for t in range(50):
        fact: Fact = (t, (A, integer(t)), 0, "")
        assert detector.detect(t, {"Heat": [fact], "Smoke": [fact]}) == []
    (column,) = detector.network.columns.values()
    assert column.size() == 0  # what passes no threshold is not kept


def test_a_state_fits_whatever_rules_come_to_share_its_columns() -> None:
    one = TeslaDetector(program(above(0, 10)), CLOCK)
    one.at(1, {"Heat": facts(1, (A, 35))})
    one.at(2, {"Heat": facts(2, (A, 5))})
    both_ = TeslaDetector(program(above(1, 1), above(0, 10)), CLOCK)
    assert both_.restore(one.snapshot()).kept == ("Fire0",)
    found = both_.at(3, {"Smoke": facts(3, (A, 0))})
    assert [(m.rule, m.facts[1][0]) for m in found] == [(1, 1)]


def test_a_state_fits_a_stream_that_is_now_given_as_its_base() -> None:
    rules = [
        rule(f"Fire{i}", at("Smoke"), last(at("Heat", f"Heat{i}"), within(9, "Smoke"), KEY)) for i in range(2)
    ]
    apart = TeslaDetector(program(*rules), CLOCK)
    apart.at(1, {"Heat0": facts(1, (A, 5)), "Heat1": []})
    apart.at(2, {"Heat0": facts(2, (A, 25)), "Heat1": facts(2, (A, 25))})
    apart.at(3, {"Heat0": facts(3, (A, 5)), "Heat1": []})
    filtered = {"Heat0": Filtered("Heat", ">", integer(0)), "Heat1": Filtered("Heat", ">", integer(20))}
    together = TeslaDetector(program(*rules), CLOCK, filtered=filtered)
    together.restore(apart.snapshot())
    found = together.at(4, {"Smoke": facts(4, (A, 0))})
    assert [(m.rule, m.facts[1][0]) for m in found] == [(0, 3), (1, 2)]
    again = TeslaDetector(program(*rules), CLOCK)
    again.restore(together.snapshot())
    assert again.at(5, {"Smoke": facts(5, (A, 0))}) == together.at(5, {"Smoke": facts(5, (A, 0))}) != []


def test_a_size_by_a_threshold_of_on_is_not_taken_for_one_of_the_query() -> None:
    def fire(number: int, stream: str, limit: int) -> Rule:
        on = call(">", "Heat.k", limit)
        return rule(f"R{number}", at("Smoke"), last(at("Heat", stream), within(9, "Smoke"), on))

    of = program(fire(0, "Heat0", 30), fire(1, "Heat0", 40), fire(2, "Heat1", 30))
    apart = TeslaDetector(of, CLOCK)
    apart.at(1, {"Heat0": facts(1, (100, 5)), "Heat1": []})
    filtered = {"Heat0": Filtered("Heat", ">", integer(0)), "Heat1": Filtered("Heat", ">", integer(20))}
    together = TeslaDetector(of, CLOCK, filtered=filtered)
    together.restore(apart.snapshot())
    assert [m.rule for m in together.at(2, {"Smoke": facts(2, (A, 0))})] == [0, 1]

"""Meters: when units are gone, who says so, and what it names."""

import pickle

import pytest

from dotr.budget import Exhausted, Factor, Meter


def test_the_last_unit_may_be_used_and_no_more() -> None:
    meter = Meter(10)
    meter.charge(10, "rows")
    assert meter.left == [0]
    with pytest.raises(Exhausted) as found:
        meter.charge(1, "?y :p ?w", outer=[Factor("?x :p ?v", 5)])
    assert found.value.step == "?y :p ?w"
    assert [str(factor) for factor in found.value.largest] == ["?x :p ?v: 5 rows", "?y :p ?w: 1 row"]


def test_opening_begins_anew() -> None:
    meter = Meter(10)
    meter.charge(8)
    meter.open()
    meter.charge(8)
    assert meter.used == 8
    meter.open(5)
    with pytest.raises(Exhausted):
        meter.charge(6)


def test_what_earlier_instants_used_is_not_held_against_a_later_one() -> None:
    now = [1]
    meter = Meter(10, lambda: now[0])
    for instant in range(100):
        now[0] = instant
        meter.charge(9)


def test_one_instant_never_gets_more_than_twice_the_limit() -> None:
    meter = Meter(10, lambda: 1)
    for _ in range(20):
        meter.charge(1)
    with pytest.raises(Exhausted):
        meter.charge(1)


def test_a_loop_far_beyond_the_limit_is_never_entered() -> None:
    meter = Meter(10, lambda: 1)
    with pytest.raises(Exhausted):
        meter.charge(21)


def test_the_largest_two_of_many_factors_are_named() -> None:
    exhausted = Exhausted([Factor("a", 3), Factor("b", 2_000), Factor("c", 70)])
    assert [factor.what for factor in exhausted.largest] == ["b", "c"]
    assert exhausted.step == "c"


def test_it_crosses_processes() -> None:
    exhausted = pickle.loads(pickle.dumps(Exhausted([Factor("a", 3)])))  # noqa: S301  # our own bytes
    assert exhausted.factors == (Factor("a", 3),)

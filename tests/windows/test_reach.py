"""What follows from the shape of a program: how far it sees, by what it can be cut, what it is called by."""

from __future__ import annotations

from dotr.program.program import Modality, TimeWindow, WindowAggregate
from dotr.program.queries import Var
from dotr.windows.building import depths, horizon
from dotr.windows.rules import strata
from tests.windows.building import atom, last, now, program, rule, sometime, window
from tests.windows.parting import partition_keys


def test_windows_and_offsets_add_up_along_a_way() -> None:
    rules = program(
        rule(atom("a", "?x"), window(Modality.AT, 5, "p", "?x", at="t"), at="t", offset=3),
        rule(atom("b", "?x"), window(Modality.ALWAYS, 10, "a", "?x"), sometime(4, "q", "?x")),
        rule(atom("c", "?x"), now("b", "?x"), now("q", "?x", negated=True)),
    )
    assert depths(rules) == {"a": {"p": 8}, "b": {"p": 18, "q": 4}, "c": {"p": 18, "q": 4}}
    assert horizon(rules) == (18, 3)


def test_a_cycle_through_a_window_and_a_window_of_facts_have_no_bound() -> None:
    cycle = program(rule(atom("a", "?x"), now("p", "?x")), rule(atom("a", "?x"), sometime(1, "a", "?x")))
    assert horizon(cycle) == (None, 0)
    closure = program(rule(atom("a", "?x"), sometime(7, "p", "?x")), rule(atom("a", "?x"), now("a", "?x")))
    assert horizon(closure) == (7, 0)
    assert depths(program(rule(atom("a"), last(2, ("p", "q"), "p", "?x")))) == {"a": {"p": None, "q": None}}


def test_a_program_is_parted_by_the_variable_that_all_atoms_share() -> None:
    count = WindowAggregate(
        "COUNT", None, False, Var("n"), atom("seen", "?o", "?r"), TimeWindow(60), (Var("r"),)
    )
    busy = rule(atom("busy", "?r", "?n"), count, sometime(9, "open", "?r", negated=True))
    assert partition_keys(program(busy)) == {"busy": 0, "seen": 1, "open": 0}
    back = rule(atom("seen", "?r", "?n"), now("busy", "?r", "?n"))
    assert partition_keys(program(busy, back)) is None
    pairs = rule(atom("pair", "?x", "?y"), now("p", "?y", "?x"), sometime(3, "q", "?x"))
    one = rule(atom("one", "?x"), now("pair", "?x", "?x"))
    assert partition_keys(program(pairs, one)) == {"pair": 0, "p": 1, "q": 0, "one": 0}


def test_what_is_not_joined_on_one_variable_is_not_parted() -> None:
    assert partition_keys(program(rule(atom("a", "?x"), now("p", "?x"), now("alarm")))) is None
    assert (
        partition_keys(program(rule(atom("a", "?x", "?z"), now("p", "?x", "?y"), now("p", "?y", "?z"))))
        is None
    )
    assert partition_keys(program(rule(atom("a", "?x"), last(3, ("p",), "p", "?x")))) is None
    assert partition_keys(program(rule(atom("a", "x")))) is None


def test_strata_are_components() -> None:
    rules = program(
        rule(atom("c"), now("b"), now("a", negated=True)),
        rule(atom("a"), sometime(1, "b")),
        rule(atom("b"), sometime(1, "a")),
        rule(atom("b"), now("p")),
    )
    assert strata(rules) == [[1, 2, 3], [0]]

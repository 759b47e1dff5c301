"""The literal reading of a sequence gives what the contract says: its worked cases, and what is beside."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from dotr.events import Clock
from dotr.lang import parse_program
from dotr.program.positions import Position
from dotr.program.queries import Attribute, Call, Const, Expression, Var
from dotr.program.rules import Binding, Rule
from dotr.program.sequences import (
    Either,
    Element,
    InOrder,
    Pattern,
    Place,
    Repeated,
    RowElement,
    RowName,
    RowPattern,
    RowTotal,
    elements_of,
)
from dotr.rdf.terms import integer
from dotr.reference.sequences import LiteralSequence, PatternRow
from tests.sequences import PROLOGUE, Instants, instants, sequences

S = 1_000_000
CLOCK = Clock()
A, B, C, X, UP = (Element(name) for name in ("A", "B", "C", "X", "Up"))


def some(part: Pattern, least: int = 1, most: int | None = None, *, reluctant: bool = False) -> Repeated:
    return Repeated(part, least, most, reluctant)


def v(position: str) -> Attribute:
    return Attribute(position, "v")


def call(operator: str, left: Expression, right: Expression | int) -> Expression:
    return Call(operator, (left, Const(integer(right)) if isinstance(right, int) else right))


def rising(element: str) -> dict[str, Expression]:
    return {element: call(">", v(element), v("PREV"))}


def pattern(
    of: Pattern,
    on: dict[str, Expression] | None = None,
    *,
    sources: dict[str, tuple[int, ...]] | None = None,
    per: tuple[str, ...] = (),
    within: int = 100,
    gap: int | None = None,
    count: int = 1,
    totals: tuple[tuple[str, RowTotal], ...] = (),
    rows: tuple[tuple[str, RowName], ...] = (),
    **options: Any,
) -> RowPattern:
    """A pattern over `count` sources with ?v and ?k, times in seconds."""
    named = dict.fromkeys(elements_of(of))
    elements = tuple(
        RowElement(name, (sources or {}).get(name, tuple(range(count))), (on or {}).get(name))
        for name in named
    )
    own = tuple((name, RowName(Place.LAST, name, 0)) for name in named)
    return RowPattern(
        tuple(Position(f"S{n}", f"S{n}", ("v", "k")) for n in range(count)),
        of,
        elements,
        within * S,
        per,
        None if gap is None else gap * S,
        rows=(("PREV", RowName(Place.PREV, "", 1)), *own, *rows),
        totals=totals,
        **options,
    )


def rows(*written: str) -> list[PatternRow]:
    """`time:value` or `source@time`."""
    found = []
    for text in written:
        source, _, time = text.rpartition("@")
        time, _, value = time.partition(":")
        fact = int(time) * S, (integer(int(value or 0)), None), 0, ""
        found.append(PatternRow("ab".index(source) if source else 0, fact))
    return found


def found(
    of: RowPattern, given: Sequence[PatternRow], now: int | None = None
) -> list[tuple[list[int], int, str]]:
    """(times of the rows, time, elements) of the matches that are certain at `now`."""
    reading = LiteralSequence(of, (), CLOCK)
    matches = reading.matches(given)
    return [
        (
            [row.fact[0] // S for row in given[match.first : match.last + 1]],
            match.time // S,
            " ".join(match.given),
        )
        for match in matches
        if now is None or match.time <= now * S
    ]


def facts(of: RowPattern, *written: str, now: int | None = None) -> list[tuple[list[int], int]]:
    return [(times, time) for times, time, _ in found(of, rows(*written), now)]


# -- the worked cases of the contract ------------------------------------------------------------------------


def test_case_1_greedy_waits_for_the_deadline() -> None:
    given = "1:5", "2:6", "3:7", "4:1", "5:2"
    one = pattern(InOrder((A, some(B))), rising("B"))
    assert facts(one, *given) == [([1, 2, 3], 4), ([4, 5], 104)]
    assert facts(one, *given, now=103) == [([1, 2, 3], 4)]


def test_case_2_reluctant_does_not_wait() -> None:
    of = pattern(InOrder((A, some(B, reluctant=True))), rising("B"))
    assert facts(of, "1:5", "2:6", "3:7", "4:1", "5:2") == [([1, 2], 2), ([4, 5], 5)]


def test_case_3_a_gap_is_a_deadline() -> None:
    of = pattern(InOrder((A, some(B))), rising("B"), gap=2)
    assert facts(of, "1:5", "2:6", "9:7") == [([1, 2], 4)]


def test_case_4_overlapping_has_each_start() -> None:
    of = pattern(InOrder((A, some(B))), rising("B"), overlapping=True)
    assert facts(of, "1:5", "2:6", "3:7", "4:1") == [([1, 2, 3], 4), ([2, 3], 4)]


def test_case_5_within_ends_a_session() -> None:
    of = pattern(some(X), within=12, gap=5)
    assert facts(of, "0", "5", "10", "12", "13") == [([0, 5, 10, 12], 12), ([13], 18)]


def test_case_6_the_earlier_branch_is_preferred() -> None:
    on = {"B": call("=", v("B"), 1), "C": call(">", v("C"), 0)}
    of = pattern(Either((InOrder((A, B)), InOrder((A, C)))), on)
    assert found(of, rows("1:0", "2:1")) == [([1, 2], 2, "A B")]


def test_case_7_what_may_be_absent() -> None:
    on = {"A": call("=", v("A"), 0), "C": call(">", v("C"), 0)}
    of = pattern(InOrder((some(A, 0), C)), on)
    assert facts(of, "1:0", "2:0", "3:4", "4:4") == [([1, 2, 3], 3), ([4], 4)]


@pytest.mark.parametrize(
    ("reluctant", "expected"),
    [(False, [([1, 2, 3, 4], 101)]), (True, [([1, 2], 2), ([3, 4], 4)])],
)
def test_case_8_greedy_may_go_on_until_the_deadline(
    reluctant: bool, expected: list[tuple[list[int], int]]
) -> None:
    of = pattern(InOrder((some(A, reluctant=reluctant), B)), {"B": call("=", v("B"), 9)})
    assert facts(of, "1:1", "2:9", "3:1", "4:9") == expected


def test_case_9_rows_of_one_instant_are_in_canonical_order() -> None:
    assert facts(pattern(InOrder((A, B))), "1:3", "1:5") == [([1, 1], 1)]


def test_case_10_prev_is_the_row_before_in_the_partition() -> None:
    assert facts(pattern(some(UP), rising("Up")), "1:1", "2:2", "3:3", "4:0") == [([2, 3], 4)]


@pytest.mark.parametrize(("reluctant", "time"), [(False, 19), (True, 15)])
def test_case_11_starts_die_by_themselves(reluctant: bool, time: int) -> None:
    of = pattern(
        InOrder((A, some(X, 0, reluctant=reluctant), B)),
        sources={"A": (0,), "B": (1,), "X": (0, 1)},
        within=10,
        count=2,
    )
    assert facts(of, "a@1", "a@9", "b@15") == [([9, 15], time)]


# -- what is beside them ------------------------------------------------------------------------------------


def test_rows_of_the_instant_of_a_deadline_may_be_taken() -> None:
    of = pattern(some(X), within=10)
    assert facts(of, "0", "10", "10", "11") == [([0, 10, 10], 10), ([11], 21)]


def test_a_match_is_not_earlier_than_those_before_it() -> None:
    """Row 1 may match until 11; what row 2 has at once waits for that."""
    of = pattern(
        Either((InOrder((A, B, C)), X)), {"A": call("=", v("A"), 1), "X": call("=", v("X"), 2)}, within=10
    )
    assert facts(of, "1:1", "2:2") == [([2], 11)]


def test_skip_to_the_last_row_of_an_element() -> None:
    of = pattern(InOrder((A, some(UP), C)), rising("Up"), skip_to="C")
    assert facts(of, "1:1", "2:2", "3:0", "4:4", "5:1") == [([1, 2, 3], 3), ([3, 4, 5], 5)]


def test_skip_to_the_first_row_goes_on_behind_it() -> None:
    assert facts(pattern(InOrder((A, B)), skip_to="A"), "1", "2", "3") == [([1, 2], 2), ([2, 3], 3)]


def test_skipping_takes_the_nearest_row() -> None:
    of = pattern(
        InOrder((A, B)), {"A": call("=", v("A"), 1), "B": call("=", v("B"), 2)}, skipping=True, gap=2
    )
    assert found(of, rows("1:1", "2:0", "3:2", "4:2")) == [([1, 2, 3], 3, "A  B")]
    assert facts(of, "1:1", "2:0", "5:2") == []  # a skipped row is a neighbour, too


def test_rows_by_number_and_totals() -> None:
    reading = LiteralSequence(
        pattern(
            some(X),
            {"X": call("<=", Var(".0"), 3)},
            totals=(
                (".0", RowTotal("COUNT", "X", None)),
                (".1", RowTotal("SUM", "X", v("X"))),
                (".2", RowTotal("COUNT", "*", None)),
                (".3", RowTotal("COUNT", "X", v("X"), distinct=True)),
            ),
            rows=(
                ("FIRST(X)", RowName(Place.FIRST, "X", 0)),
                ("LAST(X,1)", RowName(Place.LAST, "X", 1)),
                ("LAST(*,5)", RowName(Place.LAST, "*", 5)),
            ),
        ),
        [
            Binding(str(n), value)
            for n, value in enumerate(
                [v("FIRST(X)"), v("X"), v("LAST(X,1)"), v("LAST(*,5)"), Var(".1"), Var(".2"), Var(".3")]
            )
        ],
        CLOCK,
    )
    given = rows("1:4", "2:4", "3:9", "4:7")
    first, second = reading.matches(given)
    n = integer
    assert reading.values(given, first) == (n(4), n(9), n(4), None, n(17), n(3), n(2))
    assert reading.values(given, second) == (n(7), n(7), None, None, n(7), n(1), n(1))


def test_prev_is_at_most_within_before() -> None:
    assert facts(pattern(InOrder((UP,)), rising("Up"), within=2), "1:1", "3:2", "6:3") == [([3], 3)]


# -- laws ----------------------------------------------------------------------------------------------------


def read(text: str) -> Rule:
    return parse_program(PROLOGUE + text).rules[0]


def partitions(of: Rule, came: Instants) -> dict[object, list[PatternRow]]:
    """The rows of each partition, in order."""
    assert isinstance(of.trigger, RowPattern)
    literal = LiteralSequence(of.trigger, of.bindings, CLOCK)
    found: dict[object, list[PatternRow]] = {}
    for time, instant in came:
        facts = sorted(
            (("ab".index(r.source), r.key and f"<{r.key}>", integer(r.value)) for r in instant),
        )
        for source, key, value in facts:
            row = PatternRow(source, (time * S, (key or None, value), 0, ""))
            if (part := literal.key(row)) is not None:
                found.setdefault(part, []).append(row)
    return found


@drawn(sequences(), instants(), st.integers(0, 20))
def test_what_is_certain_stays(text: str, came: Instants, now: int) -> None:
    """Rows after an instant change nothing of what is certain at it."""
    of = read(text)
    assert isinstance(of.trigger, RowPattern)
    literal = LiteralSequence(of.trigger, of.bindings, CLOCK)
    for rows_ in partitions(of, came).values():
        known = [row for row in rows_ if row.fact[0] <= now * S]
        before, after = ([m for m in literal.matches(r) if m.time <= now * S] for r in (known, rows_))
        assert before == after


@drawn(sequences(), instants())
def test_matches_are_what_the_pattern_says(text: str, came: Instants) -> None:
    """Rows are consecutive, in time, given to elements of which they satisfy the condition; a match begins
    behind the one before, unless the sequence says otherwise.
    """
    of = read(text)
    pattern = of.trigger
    assert isinstance(pattern, RowPattern)
    literal = LiteralSequence(pattern, of.bindings, CLOCK)
    for rows_ in partitions(of, came).values():
        last = -1
        settled = 0
        for match in literal.matches(rows_):
            times = [row.fact[0] for row in rows_[match.first : match.last + 1]]
            assert times[-1] - times[0] <= pattern.within
            assert pattern.gap is None or all(b - a <= pattern.gap for a, b in pairwise(times))
            assert times[-1] <= match.time <= times[0] + pattern.within
            assert match.given[0]
            assert match.given[-1]
            for n, name in enumerate(match.given, 1):
                assert not name or literal.satisfies(rows_, match.first, match.given[:n])
            if not pattern.overlapping:
                assert match.time >= settled
                assert match.first > last or pattern.skip_to is not None
            last, settled = match.last, match.time

"""Which instant a graph belongs to, what closes it, and what is late."""

from __future__ import annotations

from typing import Any

import pytest

from dotr.core.instants import OpenInstants, ahead
from dotr.detect.analysis import IdleTicks
from dotr.errors import DataError
from dotr.events import Clock

Late = list[tuple[int, Any]]


def instants(lateness: int = 0, max_jump: int | None = None) -> tuple[OpenInstants, Late]:
    late: Late = []
    made = OpenInstants(
        lateness, lambda time, graph: late.append((time, graph)), None, ahead(IdleTicks(()), max_jump)
    )
    made.clock = Clock()
    return made, late


def closed(made: OpenInstants) -> list[Any]:
    found = made.closed()
    if found:
        made.last = found[-1][0]
    made.done()
    return found


def test_a_later_timestamp_closes_an_instant_and_an_equal_one_joins_it() -> None:
    made, late = instants()
    made.accept(5, ["a"])
    made.accept(5, ["b"])
    assert closed(made) == []
    made.accept(7, ["c"])
    assert closed(made) == [(5, [["a"], ["b"]])]
    assert (made.watermark, made.settled, late) == (6, 6, [])


def test_a_graph_for_a_closed_instant_is_late_and_is_not_taken() -> None:
    made, late = instants()
    made.accept(5, ["a"])
    made.accept(7, ["b"])
    made.accept(6, ["c"])
    assert (late, made.late, made.graphs) == ([(6, ["c"])], 1, 2)
    made.accept(7, ["d"])  # the instant of 7 is open
    made.close_before(8)
    assert closed(made) == [(5, [["a"]]), (7, [["b"], ["d"]])]


def test_lateness_leaves_earlier_instants_open_and_runs_them_in_order() -> None:
    made, late = instants(lateness=10)
    for time in (20, 12, 15, 12):
        made.accept(time, [str(time)])
    assert closed(made) == []
    made.accept(24, ["24"])
    assert [time for time, _ in closed(made)] == [12]
    made.accept(14, ["14"])
    made.accept(13, ["13"])
    assert late == [(13, ["13"])]
    assert [time for time, _ in made.waiting()] == [14, 15, 20, 24]
    assert made.settled == 13


def test_what_a_run_did_not_reach_is_closed_again() -> None:
    made, _ = instants()
    for time in (1, 2, 3):
        made.accept(time, [str(time)])
    assert [time for time, _ in made.closed()] == [1, 2]
    made.last = 1  # the run ended behind the first
    assert [time for time, _ in made.closed()] == [2]
    made.failed.add(2)  # in error: it does not come back
    assert made.closed() == []


def test_many_graphs_are_taken_at_once_only_in_order_and_where_the_first_begins_an_instant() -> None:
    made, _ = instants()
    assert not made.accept_run([1, 2], [["a"], ["b"]])  # nothing came before
    made.accept(1, ["a"])
    assert not made.accept_run([1, 2], [["b"], ["c"]])
    assert not made.accept_run([3, 2], [["b"], ["c"]])
    assert made.accept_run([2, 4], [["b"], ["c"]])
    assert closed(made) == [(1, [["a"]]), (2, [["b"]])]
    assert made.graphs == 3


def test_graphs_of_one_time_that_are_taken_at_once_are_one_instant() -> None:
    made, _ = instants()
    made.accept(1, ["a"])
    assert made.accept_run([2, 2, 3, 5, 5], [["b"], ["c"], ["d"], ["e"], ["f"]])
    made.accept(5, ["g"])
    assert closed(made) == [(1, [["a"]]), (2, [["b"], ["c"]]), (3, [["d"]])]
    made.close_before(6)
    assert closed(made) == [(5, [["e"], ["f"], ["g"]])]


def test_instants_that_are_run_elsewhere_close_those_before() -> None:
    made, late = instants()
    assert not made.pass_over(2, 4, 3)  # nothing came before
    made.accept(1, ["a"])
    assert not made.pass_over(1, 4, 3)
    assert made.pass_over(2, 4, 3)
    assert closed(made) == [(1, [["a"]])]
    assert (made.latest, made.watermark, made.graphs) == (4, 4, 4)
    made.accept(4, ["late"])
    made.accept(5, ["b"])
    made.accept(6, ["c"])
    assert late == [(4, ["late"])]
    assert closed(made) == [(5, [["b"]])]


def test_a_graph_too_far_ahead_closes_nothing() -> None:
    made, _ = instants(max_jump=100)
    made.accept(5, ["a"])
    with pytest.raises(DataError, match="D2106"):
        made.accept(106, ["b"])
    assert (made.latest, made.bound) == (5, 5)
    made.accept(105, ["c"])
    assert closed(made) == [(5, [["a"]])]


def test_a_snapshot_has_what_waits_and_what_is_closed() -> None:
    made, _ = instants(lateness=10)
    for time in (20, 15):
        made.accept(time, [])
    other, late = instants(lateness=10)
    other.restore(made.snapshot())
    assert other.waiting() == made.waiting()
    other.accept(9, [])
    assert late == [(9, [])]

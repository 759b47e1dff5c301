"""The benchmarks of what lasts at a small size: all that are measured side by side give the same answers."""

from __future__ import annotations

import pytest

from . import lasting


@pytest.mark.parametrize("share", [0.01, 0.25, 0.5])
def test_windows_over_trees_are_the_same_recomputed_deleted_and_expired(share: float) -> None:
    took = lasting.imars_step(200, share, 6)  # asserts that all three hold as many triples
    assert took.keys() == {"ours", "dred", "naive"}


@pytest.mark.parametrize("kind", ["taxonomy", "database", "dl"])
def test_rules_and_facts_that_go_and_come_leave_what_there_was(kind: str) -> None:
    row = lasting.volz_kind(kind, 3, 200, 2)
    assert {"set up", "facts 10%", "facts 15%", "rule median", "rule worst"} < row.keys()


@pytest.mark.parametrize("name", sorted(lasting.PATTERNS))
def test_signed_answers_add_up_to_those_asked_again(name: str) -> None:
    changes = lasting.updates(600, 30)
    assert lasting.delta_pattern(lasting.PATTERNS[name], changes, 3)["answers"] > 0


def test_two_windows_are_joined() -> None:
    assert lasting.windows_rate(3, 200, rooms=20)["events"] > 0

"""Rows of JSON lines, parts of messages, and times as Python programs give them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dotr.errors import DataError, DotrError
from dotr.events import Message, message_of
from dotr.io.python_values import checked_budget, duration, time_of

TRIPLE = ("<urn:a>", "<urn:p>", "<urn:b>")


def test_a_graph_alone_is_not_a_message_and_nothing_is_refused() -> None:
    assert message_of([TRIPLE], None, None, "here") == [TRIPLE]
    assert message_of(None, [TRIPLE], None, "here") == Message(None, [TRIPLE], None)
    with pytest.raises(DataError, match="D2201"):
        message_of(None, None, None, "here")
    for blank in (("_:b", "<urn:p>", "<urn:b>"), ("<urn:a>", "<urn:p>", "_:b")):
        assert message_of([], [blank], None, "here") == Message([], [blank], None)
        with pytest.raises(DataError, match="D2202"):
            message_of([], None, [blank], "here")


def test_times_are_numbers_of_a_unit_or_instants() -> None:
    assert time_of(12, 1_000_000) == (12_000_000, True)
    assert time_of(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1) == (1_000_000, False)
    assert time_of("1970-01-01T01:00:01+01:00", 1) == (1_000_000, False)


@pytest.mark.parametrize(
    ("at", "code"),
    [
        (True, "D4104"), (1.5, "D4104"), ("2026-01-01T00:00:00", "D2103"), ("soon", "D2105"),
        (datetime(2026, 1, 1), "D2103"), (2**63, "D2105"),
    ],
)  # fmt: skip
def test_what_is_not_a_time_is_refused(at: Any, code: str) -> None:
    with pytest.raises(DotrError, match=code):
        time_of(at, 1_000_000)


def test_durations_and_budgets() -> None:
    assert (duration(None), duration("PT5M"), duration(timedelta(seconds=2))) == (0, 300_000_000, 2_000_000)
    for wrong in ("5", timedelta(seconds=-1), 5):
        with pytest.raises(DotrError, match="D4101"):
            duration(wrong)  # type: ignore[arg-type]  # the mistake
    assert checked_budget(7) == 7
    for budget in (0, -1, True, 1.5):
        with pytest.raises(DotrError, match="D4108"):
            checked_budget(budget)  # type: ignore[arg-type]  # the mistake

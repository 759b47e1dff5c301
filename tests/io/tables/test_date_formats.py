"""Formats of strptime, compiled: the same instants as Python's own parser, and what it lets pass refused."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.io.tables.cells import DateFormat
from dotr.io.time import TimeError

FORMATS = (
    "%Y-%m-%d %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d %b %Y %H:%M:%S.%f",
    "%B %d, %Y %I:%M %p",
    "%F %T",
    "%D %R",
    "%Y-%m-%dT%H:%M:%S%z",
)


@pytest.mark.parametrize("text", FORMATS)
@given(st.datetimes(datetime(1970, 1, 1), datetime(2068, 12, 31), timezones=st.just(UTC)))
def test_the_same_instants_as_strptime(text: str, time: datetime) -> None:
    long = text.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S")
    long = long.replace("%D", "%m/%d/%y").replace("%R", "%H:%M")
    written = time.strftime(long)
    expected = datetime.strptime(written, long)  # its zone follows
    if expected.tzinfo is None:
        expected = expected.replace(tzinfo=UTC)
    format_ = DateFormat(text, UTC)
    assert format_.micros(written) == (expected - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution)


def test_an_hour_in_which_the_zone_changes_is_not_taken_as_a_whole() -> None:
    berlin = DateFormat("%Y-%m-%d %H:%M", ZoneInfo("Europe/Berlin"))
    assert berlin.usual(["2026-03-01 10:00", "2026-03-01 10:30"]) is not None
    assert berlin.usual(["2026-10-25 02:30"]) is None
    with pytest.raises(TimeError) as twice:
        berlin.micros("2026-10-25 02:30")
    with pytest.raises(TimeError) as never:
        berlin.micros("2026-03-29 02:30")
    assert (twice.value.code, never.value.code) == ("D2108", "D2109")


@pytest.mark.parametrize(
    ("text", "cell", "says"),
    [
        ("%Y-%m-%d", "2026-02-30", "is not a day"),
        ("%Y-%m-%d %H", "2026-02-03 24", "is not a time of day"),
        ("%Y-%m-%d %I %p", "2026-02-03 13 pm", "has no such hour"),
        ("%Y-%m-%d %H:%M:%S", "2026-02-03 10:00:60", "60 seconds"),
        ("%Y-%m-%dT%H%z", "2026-02-03T10+15:00", "beyond 14:00"),
        ("%Y-%m-%d", "yesterday", "is not a time written as"),
    ],
)
def test_cells_that_are_refused(text: str, cell: str, says: str) -> None:
    with pytest.raises(TimeError, match=says) as raised:
        DateFormat(text, UTC).micros(cell)
    assert cell in raised.value.message


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [("%d.%m.", "D2105", "no year"), ("%Y-%m-%d", "D2103", "no zone"), ("%Y %j %z", "D2105", "%j")],
)
def test_formats_that_are_refused(text: str, code: str, says: str) -> None:
    with pytest.raises(TimeError, match=says) as raised:
        DateFormat(text, None)
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("%d/%d", "day twice: `%d` and `%d`"),
        ("%d/%d/%Y", "day twice"),
        ("%F %Y", "year twice"),
        ("%b %B %Y", "month twice: `%b` and `%B`"),
        ("%Y %H %I", "hour twice: `%H` and `%I`"),
        ("%Y %z%z", "zone twice"),
        ("%T %H %Y", "hour twice"),
        ("%Y%", "single `%`"),
        ("%Y %", "single `%`"),
        ("%", "single `%`"),
        ("%%Y", "has no year"),
        ("(?P<year>", "has no year"),
        ("%Y %\n", "is not known"),
        ("%Y %é", "is not known"),
    ],
)
def test_a_format_that_says_no_time_is_refused_with_its_reason(text: str, named: str) -> None:
    with pytest.raises(TimeError, match=re.escape(named)) as raised:
        DateFormat(text, UTC)
    assert raised.value.code == "D2105"


@given(st.text(st.sampled_from("%YymbBdHIpMSfzAaFTRD%-/: (?P<x>)[]*+\\é\n")), st.text(max_size=12))
def test_any_format_is_taken_or_refused_and_so_is_any_text(form: str, text: str) -> None:
    with suppress(TimeError):
        DateFormat(form, UTC).micros(text)


def test_percent_signs_are_written_twice_also_before_letters_of_shorthands() -> None:
    assert DateFormat("%%F%Y", UTC).micros("%F1970") == 0

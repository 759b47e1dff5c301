"""Local times are instants exactly where their zone has them once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.io.time import TimeError, TimestampExtractor, parse_datetime, to_instant, zone_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu")


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


@given(
    st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2100, 1, 1)),
    st.sampled_from(ZONES),
)
def test_what_a_clock_on_the_wall_showed_once_is_that_instant(utc: datetime, zone: str) -> None:
    shown = utc.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    back = [
        moment.replace(tzinfo=None)
        for moment in (shown.replace(tzinfo=ZoneInfo(zone), fold=f).astimezone(UTC) for f in (0, 1))
    ]
    local = micros(shown.replace(tzinfo=UTC))
    if back[0] == back[1]:
        assert to_instant(local, zone_of(zone), "x") == micros(utc.replace(tzinfo=UTC))
    else:
        with pytest.raises(TimeError) as error:
            to_instant(local, zone_of(zone), "x")
        assert error.value.code == "D2108"


@pytest.mark.parametrize(
    ("text", "code"), [("2026-10-25T02:30:00", "D2108"), ("2026-03-29T02:30:00", "D2109")]
)
def test_the_changes_of_clocks_are_refused(text: str, code: str) -> None:
    with pytest.raises(TimeError) as error:
        parse_datetime(text, zone_of("Europe/Berlin"))
    assert error.value.code == code


def test_a_zone_that_the_data_say_wins() -> None:
    assert parse_datetime("2026-10-25T02:30:00+02:00", zone_of("Asia/Tokyo")) == parse_datetime(
        "2026-10-25T00:30:00Z"
    )


@pytest.mark.parametrize("name", ["Europe/Berln", "../../etc/passwd", "", "/etc/passwd", "Europe", "+25:00"])
def test_what_is_not_a_zone_is_refused(name: str) -> None:
    with pytest.raises(TimeError) as error:
        zone_of(name)
    assert error.value.code == "D2110"


def test_a_near_name_is_suggested() -> None:
    with pytest.raises(TimeError) as error:
        zone_of("Europe/Berln")
    assert error.value.hint == "did you mean `Europe/Berlin`?"


def test_offsets_are_zones() -> None:
    assert parse_datetime("2026-01-01T00:00:00", zone_of("-03:30")) == parse_datetime("2026-01-01T03:30:00Z")


def test_a_day_is_refused_with_the_choice() -> None:
    day = '"2026-01-01"^^<http://www.w3.org/2001/XMLSchema#date>'
    extractor = TimestampExtractor("<urn:when>")
    with pytest.raises(DataError) as error:
        extractor.time([("<urn:o>", "<urn:when>", day)], "x.ttl", "x.ttl")
    first = error.value.diagnostics[0]
    assert first.code == "D2105"
    assert "its beginning 2026-01-01T00:00:00Z" in first.hint
    assert "its end 2026-01-01T24:00:00Z" in first.hint

"""Timestamps are exact, and are looked for in a fixed order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.events import Clock
from dotr.io.time import TimeError, TimestampExtractor, parse_datetime, parse_integer, time_in_name
from dotr.rdf.terms import Triple, integer

RESULT_TIME = "<http://www.w3.org/ns/sosa/resultTime>"
PHENOMENON_TIME = "<http://www.w3.org/ns/sosa/phenomenonTime>"
GENERATED = "<http://www.w3.org/ns/prov#generatedAtTime>"


def moment(text: str) -> str:
    return f'"{text}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


def at(extractor: TimestampExtractor, *triples: Triple, file: str = "x.ttl", **more: object) -> int:
    return extractor.time(list(triples), file, "place", **more)  # type: ignore[arg-type]  # test passes what it names


def code_of(error: pytest.ExceptionInfo[DataError]) -> str:
    return error.value.diagnostics[0].code


@given(
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)),
    st.integers(-14 * 60, 14 * 60),
)
def test_date_times_are_read_to_the_microsecond_in_every_zone(local: datetime, minutes: int) -> None:
    aware = local.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert parse_datetime(aware.isoformat()) == expected
    assert parse_datetime(Clock(integer=False).text(expected)) == expected


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T24:00:00Z", 86_400_000_000),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("1970-01-01T00:00:00.0000010000Z", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("2000-02-29T00:00:00-14:00", 951_832_800_000_000),
        ("1970-01-01T00:01:59Z", 119_000_000),
        ("1970-01-01T00-01-59Z", 119_000_000),
    ],
)
def test_corners_of_date_times(text: str, micros: int) -> None:
    assert parse_datetime(text) == micros


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2026-01-01T00:00:00", "D2103"),
        ("2026-01-01", "D2105"),
        ("2026-02-29T00:00:00Z", "D2105"),
        ("2026-01-01T24:00:01Z", "D2105"),
        ("2026-01-01T00:60:00Z", "D2105"),
        ("2026-01-01T00:00:60Z", "D2105"),
        ("2026-01-01T24:00:00", "D2103"),
        ("2026-01-01 00:00:00Z", "D2105"),
        ("0000-01-01T00:00:01Z", "D2105"),
        ("2026-01-01T00:00:0\u0661Z", "D2105"),
        ("2026-01-01T00:00:00+14:01", "D2105"),
        ("2026-01-01T24:00:00.0000001Z", "D2105"),
        ("0000-01-01T00:00:00Z", "D2105"),
        ("12026-01-01T00:00:00Z", "D2105"),
        ("9999-12-31T23:59:59-01:00", "D2105"),
        ("yesterday", "D2105"),
    ],
)
def test_what_is_no_instant_is_refused(text: str, code: str) -> None:
    with pytest.raises(TimeError) as caught:
        parse_datetime(text)
    assert caught.value.code == code


def test_integers_count_the_unit_and_stay_in_64_bits() -> None:
    assert parse_integer("-12", 1000) == -12_000
    with pytest.raises(TimeError):
        parse_integer("9" * 19, 1_000_000)


@pytest.mark.parametrize(
    ("name", "time"),
    [
        ("12.ttl", (12_000_000, True)),
        ("-3.ttl.gz", (-3_000_000, True)),
        ("a/b/smoke@12.ttl", (12_000_000, True)),
        ("1970-01-01T00-00-12Z.ttl", (12_000_000, False)),
        ("x@1970-01-01T00:00:12.5+00:00.nt", (12_500_000, False)),
        ("smoke12.ttl", None),
        ("smoke.ttl", None),
        ("12@smoke.ttl", None),
    ],
)
def test_file_names_carry_times(name: str, time: tuple[int, bool] | None) -> None:
    assert time_in_name(name, 1_000_000) == time


def test_a_naive_time_in_a_file_name_is_refused() -> None:
    with pytest.raises(TimeError) as caught:
        time_in_name("2026-01-01T08-00-12.ttl", 1)
    assert caught.value.code == "D2103"


def test_the_first_rung_that_hits_wins_and_is_counted() -> None:
    extractor = TimestampExtractor(time_path="<urn:when>")
    everything: list[Triple] = [
        ("<urn:o>", "<urn:when>", integer(1)),
        ("<urn:dotr:stream>", GENERATED, integer(3)),
        ("<urn:o>", PHENOMENON_TIME, integer(5)),
        ("<urn:o>", RESULT_TIME, integer(4)),
    ]
    own = ("the line's own time", 2)
    assert at(extractor, *everything, file="6.ttl", own=own) == 1_000_000
    assert at(extractor, *everything[1:], file="6.ttl", own=own) == 2_000_000
    assert at(extractor, *everything[1:], file="6.ttl") == 3_000_000
    assert at(extractor, *everything[2:], file="6.ttl") == 4_000_000
    assert at(extractor, everything[2], file="6.ttl") == 5_000_000
    assert at(extractor, file="6.ttl") == 6_000_000
    assert extractor.time_sources == {
        "--time-path <urn:when>": 1,
        "the line's own time": 1,
        "prov:generatedAtTime": 1,
        "sosa:resultTime": 1,
        "sosa:phenomenonTime": 1,
        "file name": 1,
    }


def test_two_different_result_times_are_no_time_of_the_graph() -> None:
    two: list[Triple] = [("<urn:a>", RESULT_TIME, integer(4)), ("<urn:b>", RESULT_TIME, integer(5))]
    assert at(TimestampExtractor(), *two, file="6.ttl") == 6_000_000
    assert at(TimestampExtractor(), two[0], ("<urn:b>", RESULT_TIME, integer(4))) == 4_000_000
    one = moment("2026-01-01T01:00:00+01:00"), moment("2026-01-01T00:00:00Z")
    assert (
        at(TimestampExtractor(), *(("<urn:a>", RESULT_TIME, term) for term in one)) == 1_767_225_600_000_000
    )


def test_a_resource_as_phenomenon_time_is_no_timestamp() -> None:
    assert at(TimestampExtractor(), ("<urn:a>", PHENOMENON_TIME, "<urn:interval>"), file="6.ttl") == 6_000_000


def test_a_graph_without_time_lists_what_was_looked_for() -> None:
    with pytest.raises(DataError) as caught:
        at(TimestampExtractor(), ("<urn:a>", "<urn:b>", integer(4)))
    message = str(caught.value)
    assert code_of(caught) == "D2101"
    assert "sosa:resultTime: none" in message
    for time_source in (
        "--time-path",
        "prov:generatedAtTime",
        "saref:hasTimestamp",
        "as:published",
        "file name `x.ttl`",
    ):
        assert time_source in message


def test_a_graph_with_two_result_times_and_nothing_else_has_several_times_not_none() -> None:
    with pytest.raises(DataError, match="one graph has 2 times of sosa:resultTime") as caught:
        at(TimestampExtractor(), ("<urn:a>", RESULT_TIME, integer(4)), ("<urn:a>", RESULT_TIME, integer(5)))
    assert code_of(caught) == "D2104"


def test_a_graph_without_time_lists_its_properties_that_look_like_one() -> None:
    stamp, millis = moment("2026-01-01T08:00:00Z"), integer(1_767_225_600_000)
    with pytest.raises(DataError) as caught:
        at(
            TimestampExtractor(),
            ("<urn:a>", "<urn:seen>", stamp),
            ("<urn:a>", "<urn:ms>", millis),
            ("<urn:a>", "<urn:v>", integer(7)),
        )
    message = str(caught.value)
    assert "it has <urn:seen> " in message
    assert "hint: --time-path urn:ms, if that is its time" in message
    assert "<urn:v>" not in message


def test_a_graph_without_time_lists_its_properties_with_values_where_none_looks_like_a_time() -> None:
    with pytest.raises(DataError) as caught:
        at(TimestampExtractor(), ("<urn:a>", "<urn:v>", integer(7)), ("<urn:a>", "<urn:in>", "<urn:r>"))
    assert f"it has <urn:v> {integer(7)}" in str(caught.value)
    assert "<urn:in>" not in str(caught.value)


@pytest.mark.parametrize("property_", [RESULT_TIME, PHENOMENON_TIME, "<urn:when>"])
def test_several_times_are_several_times_wherever_they_stand(property_: str) -> None:
    two = [("<urn:a>", property_, moment(f"2026-01-01T0{hour}:00:00Z")) for hour in (1, 2)]
    with pytest.raises(DataError, match="one graph has 2 times of") as caught:
        at(TimestampExtractor(time_path=property_ if property_ == "<urn:when>" else None), *two)
    assert code_of(caught) == "D2104"


def test_one_graph_with_two_stamps_is_refused() -> None:
    about = [("<urn:g>", GENERATED, integer(1)), ("<urn:g>", GENERATED, integer(2))]
    with pytest.raises(DataError) as caught:
        at(TimestampExtractor(), about=about, names=["<urn:g>"])
    assert code_of(caught) == "D2104"


def test_mixed_kinds_of_time_are_refused() -> None:
    extractor = TimestampExtractor()
    at(extractor, file="6.ttl")
    assert extractor.clock == Clock(integer=True)
    with pytest.raises(DataError) as caught:
        at(extractor, ("<urn:o>", RESULT_TIME, moment("2026-01-01T00:00:00Z")))
    assert code_of(caught) == "D2102"


@pytest.mark.parametrize(
    ("term", "code"),
    [
        (moment("2026-01-01T00:00:00"), "D2103"),
        ('"12"', "D2105"),
        ('"2026-01-01"^^<http://www.w3.org/2001/XMLSchema#date>', "D2105"),
        ('"1.5"^^<http://www.w3.org/2001/XMLSchema#double>', "D2105"),
    ],
)
def test_a_stamp_that_is_no_timestamp_is_refused_not_passed_over(term: str, code: str) -> None:
    with pytest.raises(DataError) as caught:
        at(TimestampExtractor(), ("<urn:o>", RESULT_TIME, term), file="6.ttl")
    assert code_of(caught) == code


@given(time=st.one_of(st.integers(-(2**63), 2**63), st.integers(-62_135_596_800, 253_402_300_799)))
def test_a_clock_writes_a_time_as_datetime_does(time: int) -> None:
    for micros in (time, time * 1_000_000):
        try:
            whole = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=micros // 1_000_000)
        except OverflowError:
            expected = f"{micros}us"
        else:
            fraction = f".{micros % 1_000_000:06d}".rstrip("0") if micros % 1_000_000 else ""
            expected = f"{whole:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + f"{fraction}Z"
        assert Clock(integer=False).text(micros) == expected

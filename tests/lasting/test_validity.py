"""The times that graphs have: the engine reads what the literal reading reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.events import Clock
from dotr.lasting.validity import LAST, moment
from dotr.rdf.terms import XSD, canonical, literal
from dotr.reference import lasting as literal_reading

DATETIMES, SECONDS = Clock(integer=False), Clock()
DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("term", "time"),
    [
        (f'"1970-01-02T00:00:00Z"^^<{XSD}dateTime>', DAY),
        (f'"1970-01-01T24:00:00Z"^^<{XSD}dateTime>', DAY),
        (f'"1970-01-02T05:30:00+05:30"^^<{XSD}dateTimeStamp>', DAY),
        ('"1970-01-02T00:00:00Z"', DAY),
        ('"1970-01-02T00:00:00Z"^^<urn:stamp>', DAY),
        (f'"1970-01-01T00:00:00.0000019Z"^^<{XSD}dateTime>', 1),
        (f'"1969-12-31T23:59:59.9999999Z"^^<{XSD}dateTime>', -1),
        (f'"2024-02-29T00:00:00Z"^^<{XSD}dateTime>', 19_782 * DAY),
        (f'"2023-02-29T00:00:00Z"^^<{XSD}dateTime>', None),
        (f'"9999-12-31T23:59:59-14:00"^^<{XSD}dateTime>', 253_402_351_199_000_000),
        (f'"400000-01-01T00:00:00Z"^^<{XSD}dateTime>', LAST),
        (f'"-400000-01-01T00:00:00Z"^^<{XSD}dateTime>', -LAST),
        (f'"0000-03-01T00:00:00Z"^^<{XSD}dateTime>', -719_468 * DAY),
        (f'"1970-01-02T00:00:00"^^<{XSD}dateTime>', None),
        (f'"1970-01-02"^^<{XSD}date>', None),
        ('"1970-01-02T00:00:00Z"@en', None),
        ('"tomorrow"', None),
        ('"12"', None),
        (f'"12"^^<{XSD}integer>', None),
        ("<urn:then>", None),
        ("_:b", None),
    ],
)
def test_a_datetime_with_a_zone_is_a_time_of_a_stream_of_datetimes(term: str, time: int | None) -> None:
    assert moment(canonical(term), DATETIMES) == time
    assert literal_reading.moment(term, DATETIMES) == time


@pytest.mark.parametrize(
    ("term", "time"),
    [
        (f'"12"^^<{XSD}integer>', 12_000_000),
        (f'"-012"^^<{XSD}integer>', -12_000_000),
        (f'"+12"^^<{XSD}long>', 12_000_000),
        (f'"12"^^<{XSD}unsignedByte>', 12_000_000),
        ('"+12"', 12_000_000),
        ('"12"^^<urn:seconds>', 12_000_000),
        (f'"{10**18}"^^<{XSD}integer>', LAST),
        (f'"-{10**40}"^^<{XSD}integer>', -LAST),
        (f'"12.0"^^<{XSD}decimal>', None),
        (f'"12"^^<{XSD}double>', None),
        (f'"true"^^<{XSD}boolean>', None),
        ('"12 s"', None),
        ('"1970-01-02T00:00:00Z"', None),
        (f'"1970-01-02T00:00:00Z"^^<{XSD}dateTime>', None),
    ],
)
def test_an_integer_is_a_time_of_a_stream_of_integers(term: str, time: int | None) -> None:
    assert moment(canonical(term), SECONDS) == time
    assert literal_reading.moment(term, SECONDS) == time


_texts = st.one_of(
    st.text(max_size=6),
    st.integers(-(10**45), 10**45).map(str),
    st.from_regex(
        r"-?([1-9][0-9]{4,6}|[0-9]{4})-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,18})?"
        r"(Z|[+-]1?[0-9]:[0-6][0-9]|[+-][01][0-9]:[0-6][0-9])",
        fullmatch=True,
        alphabet=st.characters(codec="ascii"),
    ),
)
_types = st.sampled_from(["dateTime", "dateTimeStamp", "string", "integer", "long", "int", "date", "decimal"])


@given(_texts, st.one_of(_types.map(XSD.__add__), st.just("urn:own")), st.booleans())
def test_both_readings_read_the_same(text: str, datatype: str, integer: bool) -> None:
    clock, term = Clock(integer=integer), literal(text, datatype)
    assert moment(canonical(term), clock) == literal_reading.moment(canonical(term), clock)

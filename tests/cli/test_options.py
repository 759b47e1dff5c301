"""What values of options and given times mean, and which are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest

from dotr.cli.options import class_or_property, file_name, given_time, iri, micros, number, policy, size, zone
from dotr.errors import UsageError
from dotr.events import Clock
from dotr.io.events import EVENT_FORMATS, format_of_name

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (size, "1000000", 1_000_000), (size, "64k", 65_536), (size, "256m", 1 << 28), (size, "2GiB", 2 << 30),
        (number, "10k", 10_000), (number, "2M", 2_000_000), (number, "1_000", 1_000),
        (micros, "90 s", 90_000_000), (micros, "5min", 300_000_000), (micros, "PT5M", 300_000_000),
        (iri, "<urn:x>", "urn:x"), (zone, "", ""), (zone, "Europe/Berlin", "Europe/Berlin"),
        (class_or_property, "urn:x", "<urn:x>"),
        (class_or_property, "sosa:Observation", "<http://www.w3.org/ns/sosa/Observation>"),
        (policy("fail", "skip"), "file=x", "file=x"), (policy("fail", "skip"), "skip", "skip"),
    ],
)  # fmt: skip
def test_a_value_is_read(parse: Callable[[str], Any], text: str, value: Any) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (size, "0"), (size, "12x"), (size, "1.5m"), (number, "0"), (number, "-1"), (number, "k"),
        (micros, "5"), (micros, "soon"), (iri, "room"), (iri, "urn:a b"), (zone, "CEST"),
        (class_or_property, "ex:Thing"), (class_or_property, "Thing"), (file_name, ""),
        (policy("fail", "skip"), "drop"), (policy("fail", "skip"), "file="),
    ],
)  # fmt: skip
def test_what_is_not_one_is_refused(parse: Callable[[str], Any], text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse(text)


def test_the_name_of_an_output_determines_its_format() -> None:
    assert format_of_name("a/b.NQ", EVENT_FORMATS, "dotr run") == "nquads"
    assert format_of_name("events", EVENT_FORMATS, "dotr run") is None
    assert format_of_name("events.log", EVENT_FORMATS, "dotr run") is None
    for name, what in (("x.ttl", "turtle"), ("x.xlsx", "a spreadsheet"), ("x.jsonl.gz", "compressed")):
        with pytest.raises(UsageError, match=f"dotr run does not write `{name}`, by its name {what}"):
            format_of_name(name, EVENT_FORMATS, "dotr run")


def test_a_given_time_is_written_as_it_is_given() -> None:
    assert given_time("12", SECOND, None) == (12 * SECOND, Clock(True))
    assert given_time("12", 1_000, None) == (12_000, Clock(True, 1_000))
    when, clock = given_time("1970-01-01T00:00:05Z", SECOND, Clock(True))
    assert (when, clock.integer) == (5 * SECOND, False)
    with pytest.raises(UsageError) as raised:
        given_time("soon", SECOND, None, "--until")
    assert (raised.value.diagnostics[0].code, "--until" in str(raised.value)) == ("D4111", True)


def test_now_is_cut_to_the_unit_of_integer_times() -> None:
    when, clock = given_time("now", SECOND, Clock(True))
    assert clock == Clock(True)
    assert when % SECOND == 0
    assert given_time("now", SECOND, None)[1].integer is False

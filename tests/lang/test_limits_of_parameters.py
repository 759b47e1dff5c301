"""`PARAMETER ?look := 1 min AT MOST ?patience`: who gives a longer value is warned where it is given."""

from __future__ import annotations

import pytest

from dotr.errors import Diagnostic, Severity
from dotr.io.rules_and_background import SCHEME, read_rules_text
from dotr.lang import check_program
from dotr.lang.printer import format_text
from dotr.source import Source

OWN = """PREFIX : <urn:>
QUERY Sensor := { SELECT ?entity WHERE { ?entity a :Sensor } }
QUERY Beat := { SELECT ?entity WHERE { ?b a :Beat ; :of ?entity } }
IMPORT <dotr:patterns/lost.dotr> AS Lost
  WITH Known := Sensor, Beat := Beat, VALUES
"""
LIBRARY = """PARAMETER QUERY Beat(?entity)
PARAMETER ?every := 5 min AT MOST 10 min
PARAMETER ?long AT MOST ?every
RULE Looked DEFINE { dotr_e a <urn:Looked> } FROM EVERY ?every AS Tick
AND EACH Beat WITHIN ?long FROM Tick ON true
"""


def found(text: str, library: str = "") -> list[Diagnostic]:
    def read(path: str) -> str:
        if path.startswith(SCHEME):
            return read_rules_text(path)
        return {"own.dotr": text, "library.dotr": library}[path]

    return check_program(["own.dotr"], read)[1]


@pytest.mark.parametrize(
    ("values", "said", "where"),
    [
        ("?patience := 30 s", "`?look` is 1 min, longer than `?patience`, 30 s", "30 s"),
        ("?patience := 5 min, ?look := 6 min", "`?look` is 6 min, longer than `?patience`, 5 min", "6 min"),
        ("?patience := 5 min, ?look := 5 min", "", ""),
        ("?patience := 30 s, ?look := 10 s", "", ""),
        ("?patience := 10 min", "", ""),
    ],
)
def test_losses_between_two_looks_are_warned_of_at_the_import(values: str, said: str, where: str) -> None:
    warned = [d for d in found(OWN.replace("VALUES", values)) if d.code == "D1119"]
    assert [d.message for d in warned] == ([said] if said else [])
    for diagnostic in warned:
        assert diagnostic.severity is Severity.WARNING
        assert diagnostic.span is not None
        assert diagnostic.span.source.name == "own.dotr"
        assert diagnostic.span.source.text[diagnostic.span.start :].startswith(where.split()[0])
        assert "lost.dotr" in " ".join(diagnostic.notes)


IMPORT = """QUERY Beat := { SELECT ?entity WHERE { ?b <urn:of> ?entity } }
IMPORT <library.dotr> AS L WITH Beat := Beat, """


def test_a_limit_is_a_length_or_another_parameter() -> None:
    def codes(values: str) -> list[str]:
        return [d.message for d in found(IMPORT + values, LIBRARY) if d.code == "D1119"]

    assert codes("?long := 5 min") == []
    assert codes("?every := 11 min, ?long := 11 min") == ["`?every` is 11 min, longer than 10 min"]
    assert codes("?every := 1 min, ?long := 90 s") == ["`?long` is 90 s, longer than `?every`, 1 min"]


def test_a_library_by_itself_is_not_warned_of_and_is_written_as_it_was_read() -> None:
    assert [d.code for d in found(LIBRARY) if d.code == "D1119"] == []
    formatted = format_text(Source("library.dotr", LIBRARY))
    assert "PARAMETER ?every := 5 min AT MOST 10 min" in formatted
    assert "PARAMETER ?long AT MOST ?every" in formatted

"""Runs of the command line inside the test's process, in an empty folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from dotr.cli.main import run


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Dotr = Callable[..., Ran]

FIRE = """
PREFIX : <http://example.org/building#>
BACKGROUND <building.ttl>
RULES <rooms.dlog>
RULE Fire
DEFINE { dotr_id1 a :Fire ; :at_room ?room }
FROM Smoke := { SELECT ?room WHERE { ?read a :SmokeReading ; :sensor/:is_in_room ?room } }
AND LAST HighTemp := { SELECT ?room ?v WHERE { ?read a :TempReading ; :sensor/:is_in_room ?room ; :val ?v FILTER(?v > 60) } }
    WITHIN 5 min FROM Smoke ON HighTemp.?room = Smoke.?room
WITH ?room := Smoke.?room
CONSUMING HighTemp
"""  # noqa: E501  # a program as users write it
ROOMS = """PREFIX : <http://example.org/building#>
:is_in_room(?a, ?b) :- :is_at_location(?a, ?c), :is_in_room(?c, ?b) .
"""
BUILDING = """PREFIX : <http://example.org/building#>
:locA :is_in_room :roomA . :locB :is_in_room :roomA .
"""
HOT = """PREFIX : <http://example.org/building#>
:s1 :is_at_location :locA . :r1 a :TempReading ; :sensor :s1 ; :val 70 .
"""
SMOKE = """PREFIX : <http://example.org/building#>
:s2 :is_at_location :locB . :r2 a :SmokeReading ; :sensor :s2 .
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, the working directory, with the paper's example in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOTR_TRACEBACK", raising=False)
    (tmp_path / "fire.dotr").write_text(FIRE)
    (tmp_path / "rooms.dlog").write_text(ROOMS)
    (tmp_path / "building.ttl").write_text(BUILDING)
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "10.ttl").write_text(HOT)
    (tmp_path / "events" / "12.ttl").write_text(SMOKE)
    return tmp_path


@pytest.fixture
def dotr(folder: Path, capfd: pytest.CaptureFixture[str]) -> Dotr:
    """Run `dotr` with arguments."""

    def call(*arguments: str) -> Ran:
        capfd.readouterr()
        code = run(list(arguments))
        return Ran(code, *capfd.readouterr())

    return call

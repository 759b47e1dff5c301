"""Colour where it is wanted, lines that fit."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from dotr.cli import show
from dotr.cli.show import funnel_lines
from dotr.errors import Diagnostic, Severity
from dotr.lang import parse_program
from tests.cli.conftest import Dotr

RULE = "RULE R DEFINE { dotr_x a <urn:R> } FROM S := { SELECT ?x { ?x <urn:b> ?y } }"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "terminal", "pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_the_terminal_and_the_environment_decide(
    environment: dict[str, str], terminal: bool, pipe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    for name in {"NO_COLOR", "FORCE_COLOR"} - environment.keys():
        monkeypatch.delenv(name, raising=False)
    assert (show.coloured(Terminal()), show.coloured(io.StringIO())) == (terminal, pipe)


def test_the_text_of_a_diagnostic_is_the_same_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    one = Diagnostic("D2512", "never `true`", severity=Severity.WARNING, hint="look", notes=("so",))
    monkeypatch.setenv("FORCE_COLOR", "1")
    painted = show.painted(one)
    assert painted.startswith("\x1b[1;33mwarning\x1b[0m")
    assert "\x1b[1;32m = hint:\x1b[0m look" in painted
    monkeypatch.setenv("NO_COLOR", "1")
    plain = show.painted(one)
    for code in ("\x1b[1;33m", "\x1b[1;32m", "\x1b[1m", "\x1b[0m"):
        painted = painted.replace(code, "")
    assert painted == plain == one.render()


def test_check_paints_what_it_finds_when_asked(dotr: Dotr, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("wrong.dotr").write_text("RULE R DEFINE {} FROM Nothing", encoding="utf-8")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;31merror\x1b[0m" in dotr("check", "wrong.dotr").out
    monkeypatch.delenv("FORCE_COLOR")
    assert "\x1b" not in dotr("check", "wrong.dotr").out


def test_a_reason_that_does_not_fit_stands_below() -> None:
    program = parse_program(RULE)
    why = Diagnostic("D2517", "nothing matches `?x <urn:b> ?y` in query `R.S`")
    wide = funnel_lines(program, {}, {"R": [("S", 0)]}, {"R.S": 0}, [why])
    assert wide == ["  R  0   S 0   query R.S: 0 facts; nothing matches `?x <urn:b> ?y`"]
    narrow = funnel_lines(program, {}, {"R": [("S", 0)]}, {"R.S": 0}, [why], width=40)
    assert narrow == [
        "  R  0   S 0",
        "         query R.S: 0 facts; nothing matches `?x <urn:b> ?y`",
    ]

"""Memory stays flat while keys and terms are ever new, with a trigger that comes and one that never does."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from dotr.detect.detector import TeslaDetector
from dotr.program import Program
from dotr.rdf.terms import integer
from tests.detect.building import (
    CLOCK,
    absent,
    at,
    attribute,
    before,
    call,
    each,
    equal,
    last,
    program,
    rule,
    total,
    within,
)

FACTS = 1_000_000
WINDOW = 500


def rules() -> Program:
    key = equal("Heat.k", "Smoke.k")
    latest = rule("Latest", at("Smoke"), last(at("Heat"), within(WINDOW, "Smoke"), key))
    all_ = rule(
        "All",
        at("Smoke"),
        each(at("Heat"), before(WINDOW, "Smoke"), key),
        absent(at("Rain"), within(9, "Heat"), equal("Rain.k", "Heat.k")),
        consuming=["Heat"],
    )
    sums = rule(
        "Sums",
        at("Smoke"),
        total("SUM", attribute("Heat.v"), "n", at("Heat"), within(WINDOW, "Smoke"), key),
        total(
            "MIN",
            attribute("Low.v"),
            "m",
            at("Low", "Heat"),
            within(WINDOW, "Smoke"),
            equal("Low.k", "Smoke.k"),
        ),
        give={"n": "?n"},
    )
    stairs = [
        rule(
            f"Above{i}",
            at("Smoke"),
            last(at("Heat"), within(WINDOW, "Smoke"), call("&&", key, call(">", "Heat.v", i))),
        )
        for i in range(3)
    ]
    chained = rule(
        "Chained",
        at("Sums", variables="n", chained=True),
        last(at("Earlier", "Sums", "n", chained=True), before(WINDOW, "Sums")),
    )
    return program(latest, all_, sums, *stairs, chained)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(os.environ.get("HYPOTHESIS_PROFILE") != "deep", reason="a minute each: profile deep only")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
@pytest.mark.parametrize("triggers", [True, False], ids=["with-triggers", "a-trigger-that-never-comes"])
def test_memory_is_flat_after_warm_up(triggers: bool) -> None:
    detector = TeslaDetector(rules(), CLOCK)
    held: list[int] = []
    for t in range(FACTS):
        key = f"<http://example.org/thing/{t // 3}>"
        facts = {"Heat" if t % 4 else "Rain": [(t, (key, integer(t)), 0, "")]}
        if triggers and t % 5 == 0:
            facts["Smoke"] = [(t, (key, integer(t)), 0, "")]
        detector.detect(t, facts)
        if (t + 1) % (FACTS // 10) == 0:
            gc.collect()
            held.append(resident())
    warm = held[2:]
    assert max(warm) <= 1.05 * min(warm), held

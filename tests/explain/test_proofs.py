"""Every event of every golden case and example has a proof that the checker accepts."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dotr.io.sources import SourceOptions
from dotr.io.time import UNITS
from dotr.program.names import duration
from tests.explain.proving import checker_of, explainer_of, faults_over_changes, history_of

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
WITHOUT = ("rejected",)
CASES = sorted(
    path.parent for path in GOLDEN.glob("*/*/stream.jsonl") if path.parent.parent.name not in WITHOUT
)


EXAMPLES = {
    "fire": ("fire/fire.dotr", "fire/events"),
    "building": ("building/building.dotr", "building/morning.ttl"),
    "presence": ("presence/presence.dotr", "presence/moves.jsonl"),
    "libraries": ("building/libraries.dotr", "building/morning.ttl"),
    "cooling": ("cooling/cooling.dotr", "cooling/sensor.jsonl"),
    "cooling alone": ("cooling/alone.dotr", "cooling/sensor.jsonl"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_event_of_an_example_has_a_proof(name: str) -> None:
    rules, stream = (ROOT / "examples" / path for path in EXAMPLES[name])
    history = history_of(rules, [stream])
    explainer = explainer_of(history)
    checker = checker_of(history, explainer)
    for event in history.events:
        checker.event(explainer.event(event))
    assert history.events
    assert checker.found == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_every_event_of_a_golden_case_has_a_proof(case: Path) -> None:
    options = yaml.safe_load((case / "options.yaml").read_text()) if (case / "options.yaml").exists() else {}
    unit = UNITS[options.get("time-unit", "s")]
    lateness = duration(str(options["lateness"])) if "lateness" in options else 0
    then = [(options["then"]["at"] * unit, case / options["then"]["rules"])] if "then" in options else []
    advance = options["advance"] * unit if isinstance(options.get("advance"), int) else None
    source = SourceOptions(unit=unit)
    found = faults_over_changes(
        case / "rules.dotr", [case / "stream.jsonl"], then, source=source, lateness=lateness, advance=advance
    )
    assert found.faults == []

"""The text of thirty explanations: of each golden case here the last event, as `dotr explain` prints it.

Renewed by `python -m tests.explain.test_texts`, and then read: each must say why its event happened.
"""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest
import yaml

from dotr.explain.text import Renderer, drawn
from dotr.io.sources import SourceOptions
from dotr.io.time import UNITS
from tests.explain.proving import explainer_of, history_of

GOLDEN = Path(__file__).parents[1] / "golden"
TEXTS = Path(__file__).parent / "texts"
NAMES = sorted(path.name.removesuffix(".txt").replace("--", "/") for path in TEXTS.glob("*.txt"))


def explained(name: str) -> str:
    """The last event of a golden case, explained; "" where it has none."""
    case = GOLDEN / name
    file = case / "options.yaml"
    options = yaml.safe_load(file.read_text()) if file.exists() else {}
    unit = UNITS[options.get("time-unit", "s")]
    advance = options["advance"] * unit if isinstance(options.get("advance"), int) else None
    source = SourceOptions(unit=unit)
    with chdir(case):  # places are relative
        history = history_of(Path("rules.dotr"), [Path("stream.jsonl")], source, advance=advance)
        if not history.events:
            return ""
        proof = explainer_of(history).event(history.events[-1])
        return drawn(Renderer(history.program.prefixes, history.clock).node(proof))


@pytest.mark.parametrize("name", NAMES)
def test_the_text_is_the_one_that_was_read(name: str) -> None:
    assert explained(name) == (TEXTS / f"{name.replace('/', '--')}.txt").read_text(encoding="utf-8")


def test_there_are_thirty_of_many_topics() -> None:
    assert len(NAMES) >= 30
    assert len({name.partition("/")[0] for name in NAMES}) >= 8


if __name__ == "__main__":
    for chosen in NAMES:
        (TEXTS / f"{chosen.replace('/', '--')}.txt").write_text(explained(chosen), encoding="utf-8")

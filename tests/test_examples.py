"""Every example runs, and prints what its README shows.

Method:  a block that starts with ```console is a session: lines that start with `$ ` are run in the example's
         folder, and what follows is compared with standard output, character by character.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SESSION = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def sessions() -> list[tuple[str, str, str]]:
    """(example, command, expected output) of all sessions in the READMEs."""
    found = []
    for readme in sorted(EXAMPLES.glob("*/README.md")):
        if readme.parent.name == "serve":
            continue  # tests/serve/test_example.py runs it beside a server
        for session in SESSION.findall(readme.read_text(encoding="utf-8")):
            for block in session.removeprefix("$ ").split("\n$ "):
                command, _, output = block.partition("\n")
                found.append((readme.parent.name, command, output))
    return found


def run(folder: Path, command: str, **environment: str) -> bytes:
    program, *arguments = shlex.split(command)
    assert program == "dotr"
    done = subprocess.run(
        [sys.executable, "-c", "from dotr.cli.main import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize(
    ("example", "command", "output"), [pytest.param(*s, id=f"{s[0]}-{s[1]}") for s in sessions()]
)
def test_readme_shows_what_the_command_prints(example: str, command: str, output: str) -> None:
    assert run(EXAMPLES / example, command).decode() == output


def test_the_examples_that_can_run_have_a_session() -> None:
    assert {example for example, _, _ in sessions()} >= {"fire", "building", "presence"}


def test_the_papers_example_is_one_fire_in_room_a_at_12_whatever_the_hash_seed() -> None:
    command = "dotr run fire.dotr events --format jsonl"
    outputs = {run(EXAMPLES / "fire", command, PYTHONHASHSEED=str(seed)) for seed in range(4)}
    assert len(outputs) == 1
    (line,) = outputs.pop().splitlines()
    event = json.loads(line)
    assert (event["rule"], event["time"]) == ("Fire", 12)
    assert event["bindings"]["room"]["value"] == "http://example.org/building#roomA"


def test_the_building_is_what_its_generator_writes() -> None:
    folder = EXAMPLES / "building"
    done = subprocess.run(
        [sys.executable, "generate.py"], cwd=folder, capture_output=True, check=True, env=os.environ
    )
    assert done.stdout == (folder / "morning.ttl").read_bytes()


def test_the_building_is_the_same_whatever_the_hash_seed() -> None:
    command = "dotr run building.dotr morning.ttl --format nquads"
    outputs = {run(EXAMPLES / "building", command, PYTHONHASHSEED=str(seed)) for seed in (1, 2)}
    assert len(outputs) == 1

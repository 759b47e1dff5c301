"""Kill a feed with SIGKILL at seeded moments until it is through; its outputs must be those of a quiet run.

    python -m tests.soak.kill_feed --kills 200 --graphs 60000
    python -m tests.soak.kill_feed --kills 60 --graphs 20000 --rules holds
    python -m tests.soak.kill_feed --kills 60 --graphs 20000 --rules lasts
    python -m tests.soak.kill_feed --kills 60 --graphs 20000 --rules sequences

Place:   tests/cli/test_feed.py does a few kills with it; the long run is started by hand, its line is in
         LOG.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.service.deployments import HELD, HOLDING, LASTING, REACH, RULES, SEQUENCES, deploy, doors, stream

SCHEMA = "<urn:x:Smoke> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:x:Event> ."
PROGRAMS = {"happens": RULES, "holds": HOLDING, "lasts": LASTING, "sequences": SEQUENCES}
OUTPUTS = ("out.nq", "out.jsonl", "out.nq.gz", "dead.jsonl")


def command(state: str, every: int) -> list[str]:
    """The feed under test: three outputs and dead letters, with commits that often."""
    outputs = ["-o", "out.nq", "-o", "out.jsonl", "-o", "out.nq.gz", "--on-error", "file=dead.jsonl"]
    pace = ["--commit-graphs", str(every), "--commit-every", "50ms"]
    return [sys.executable, "-m", "dotr.cli.main", "feed", "in.jsonl", "--dir", state, "-q", *outputs, *pace]


def outputs(folder: Path) -> dict[str, bytes]:
    """What the outputs say, unpacked: where members end depends on when a feed was killed."""
    found = {name: (folder / name).read_bytes() for name in OUTPUTS}
    found["out.nq.gz"] = gzip.decompress(found["out.nq.gz"])
    assert found["out.nq.gz"] == found["out.nq"]
    return found


def quiet_run(folder: Path, graphs: int, every: int, rules: str) -> tuple[dict[str, bytes], float]:
    """Deploy and feed without a disturbance: the outputs, and how long the feed took."""
    state = prepared(folder, graphs, rules)
    begun = time.monotonic()
    subprocess.run(command(state, every), cwd=folder, check=True)
    return outputs(folder), time.monotonic() - begun


def prepared(folder: Path, graphs: int, rules: str = RULES) -> str:
    """A deployment and its stream, in which lines are unreadable and instants in error."""
    folder.mkdir(parents=True)
    (folder / "holds.lars").write_text(HELD, encoding="utf-8")
    (folder / "reach.dlog").write_text(REACH, encoding="utf-8")
    with (folder / "in.jsonl").open("w") as file:
        for number, line in enumerate(stream(graphs)):
            file.write(f"{line}\n")
            if rules == LASTING and number % 3 == 0 and line.startswith("{"):
                file.writelines(f"{door}\n" for door in doors(line, number))
            if number % 150 == 70 and line.startswith("{"):
                file.write(json.dumps({**json.loads(line), "graph": SCHEMA}) + "\n")
    return deploy(folder, rules.replace("PREFIX", "ENTAILMENT rdfs PREFIX", 1))


def killed_run(
    folder: Path, graphs: int, every: int, kills: int, seconds: float, seed: int, rules: str
) -> int:
    """As `quiet_run`, killed at random moments of a run; how many kills struck before it was through."""
    state, noise, struck = prepared(folder, graphs, rules), random.Random(seed), 0
    for _ in range(kills):
        # most kills fall into the work, some into the start, where outputs are cut back and state is read
        delay = noise.uniform(0.05, 0.35) if noise.random() < 0.2 else noise.uniform(0.3, 0.45 + seconds / 5)
        with subprocess.Popen(command(state, every), cwd=folder) as process:
            try:
                process.wait(delay)
                return struck
            except subprocess.TimeoutExpired:
                process.kill()
                struck += 1
    subprocess.run(command(state, every), cwd=folder, check=True)
    return struck


def trial(
    folder: Path, graphs: int, every: int, kills: int, seed: int = 1, rules: str = RULES
) -> tuple[int, float, int]:
    """(kills that struck, seconds of the quiet run, bytes of output). Raises AssertionError on a
    difference.
    """
    expected, seconds = quiet_run(folder / "quiet", graphs, every, rules)
    struck, round_ = 0, 0
    while struck < kills:  # a run that gets through early is followed by another
        round_ += 1
        struck += killed_run(
            folder / f"killed{round_}", graphs, every, kills - struck, seconds, seed + round_, rules
        )
        for name, content in outputs(folder / f"killed{round_}").items():
            assert content == expected[name], f"{name} differs in round {round_}, see {folder}"
    return struck, seconds, sum(map(len, expected.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--graphs", type=int, default=60_000)
    parser.add_argument("--every", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rules", choices=list(PROGRAMS), default="happens")
    given = parser.parse_args()
    rules = PROGRAMS[given.rules]
    with tempfile.TemporaryDirectory() as folder:
        struck, seconds, size = trial(Path(folder), given.graphs, given.every, given.kills, given.seed, rules)
    print(
        f"{struck} kills, {given.graphs:,} graphs, {size:,} bytes of output identical; "
        f"quiet run {seconds:.1f} s, seed {given.seed}"
    )


if __name__ == "__main__":
    main()

"""Mutation testing of the rooms that decide what is true and what is kept.

    python -m tests.mutation                       # every room, 40 mutants of each
    python -m tests.mutation detect --count 100 --seed 7 --minutes 30
    python -m tests.mutation ledger --at file_positions.py:96

Place:   started by hand; survivors are killed by a test or stand in SURVIVORS.md with their reason.
Method:  in a copy of the tree, one mutant at a time, the tests of its room run until the first fails. The
         sample depends on the seed and the text alone. A mutant that makes the tests run four times as long
         as they do without it counts as killed.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants_of

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Room:
    """Files that are mutated, and the tests that must notice, the quick ones first."""

    files: tuple[str, ...]
    """Patterns below the root."""
    tests: tuple[str, ...]
    rest: tuple[str, ...] = ()
    """Tests that take longer, for the mutants that the first do not notice."""


_DETECT = ("meaning", "keys", "running_aggregates", "identity", "snapshot", "work", "stages", "partitioning")
_GOLDEN = (
    "tests/test_golden.py",
    "--deselect=tests/test_golden.py::test_events_are_the_ones_derived_by_hand[holds/silence-verified]",
)
ROOMS = {
    "detect": Room(
        ("dotr/detect/*.py",),
        (
            *(f"tests/detect/test_{name}.py" for name in _DETECT),
            "tests/lang/test_plan.py",
        ),
        (
            "tests/detect/test_sharing.py",
            "tests/detect/test_differential.py",
            "tests/detect/test_budget.py",
            *_GOLDEN,
        ),
    ),
    "joins": Room(
        ("dotr/joins/*.py",),
        ("tests/joins", "tests/budget/test_meter.py"),
        ("tests/extract/test_compiled.py", "tests/extract/test_maintained_queries.py", "tests/enrich"),
    ),
    "order": Room(("dotr/rdf/values.py",), ("tests/rdf/test_order.py", "tests/rdf", "tests/expressions")),
    "unary": Room(
        ("dotr/extract/operators.py",),
        (
            "tests/extract/test_unary_operators.py",
            "tests/extract/test_maintained_queries.py",
            "tests/extract/test_compiled.py",
        ),
    ),
    "ledger": Room(
        ("dotr/io/feeds.py",),
        ("tests/io/test_file_positions.py", "tests/service/test_feed.py", "tests/service/test_resuming.py"),
    ),
    "journal": Room(
        ("dotr/service/journal.py",),
        ("tests/cli/test_deploy.py", "tests/service/test_ahead.py", "tests/service/test_resuming.py"),
        ("tests/service/test_feed.py",),
    ),
}
"""Tests that take minutes are not here: a mutant that survives is tried by hand against the rest."""


def sample(room: Room, count: int, seed: int) -> list[Mutant]:
    """`count` mutants of a room, in random order: the same for the same seed and text."""
    files = sorted({str(path.relative_to(ROOT)) for part in room.files for path in ROOT.glob(part)})
    found = [mutant for file in files for mutant in mutants_of(ROOT, file)]
    return random.Random(seed).sample(found, min(count, len(found)))


@contextmanager
def copy_of_the_tree() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        copy = Path(name) / "tree"
        left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")
        shutil.copytree(ROOT, copy, ignore=left_out, symlinks=True)
        yield copy


def tests_pass(tree: Path, tests: Sequence[str], limit: float, cached: bool) -> tuple[bool, str]:
    """Whether the tests pass in a tree, and the name of the one that does not.

    `cached`: bytecode is read, not written: what the run without a mutant left is three quarters of a start.
    A mutated file is newer than its bytecode.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
    command += tests
    env = {**os.environ, "PYTHONPATH": str(tree), "HYPOTHESIS_PROFILE": "ci"}
    env["PYTHONDONTWRITEBYTECODE"] = "1" if cached else ""
    try:
        ran = subprocess.run(
            command, cwd=tree, env=env, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"more than {limit:.0f} s"
    reported = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return ran.returncode == 0, reported[0] if reported else f"pytest ended with {ran.returncode}"


def survivors(
    mutants: Sequence[Mutant], room: Room, jobs: int, until: float, quick: bool
) -> tuple[int, list[Mutant]]:
    """How many mutants were tried, and those that every test passes with."""
    tests = room.tests
    waiting: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in mutants:
        waiting.put(mutant)
    tried: list[Mutant] = []
    left: list[Mutant] = []

    def work(limit: float, tree: Path) -> None:
        while time.monotonic() < until:
            try:
                mutant = waiting.get_nowait()
            except queue.Empty:
                return
            file = tree / mutant.file
            content = file.read_bytes()
            file.write_bytes(mutant.applied(content))
            try:
                passed, reported = tests_pass(tree, tests, limit, cached=True)
                if passed and room.rest and not quick:
                    passed, reported = tests_pass(tree, room.rest, 1800, cached=True)
            finally:
                file.write_bytes(content)
            tried.append(mutant)
            if passed:
                left.append(mutant)
            print(
                f"{'SURVIVED' if passed else 'killed  '} {mutant}  [{'' if passed else reported[:110]}]",
                flush=True,
            )

    with copy_of_the_tree() as first:
        begun = time.monotonic()
        passed, reported = tests_pass(first, tests, 900, cached=False)
        if not passed:
            raise SystemExit(f"the tests fail without a mutant: {reported}")
        limit = 4 * (time.monotonic() - begun) + 10
        print(f"without a mutant the tests take {time.monotonic() - begun:.0f} s", flush=True)
        trees = [first]
        for number in range(1, jobs):
            trees.append(first.with_name(f"tree{number}"))
            shutil.copytree(first, trees[-1], symlinks=True)
        threads = [threading.Thread(target=work, args=(limit, tree)) for tree in trees]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return len(tried), sorted(left)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.split("\n")[0])
    parser.add_argument("rooms", nargs="*", choices=[*ROOMS, []], metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--count", type=int, default=40, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument(
        "--minutes", type=float, default=20, help="for each room; what is left then is not tried"
    )
    parser.add_argument("--at", default="", help="all mutants of one line instead of a sample: FILE:LINE")
    parser.add_argument("--quick", action="store_true", help="the quick tests of the room alone")
    given = parser.parse_args()
    wrong = 0
    for name in given.rooms or ROOMS:
        room = ROOMS[name]
        if given.at:
            file, _, line = given.at.rpartition(":")
            mutants = [m for m in sample(room, 10**6, 0) if m.file.endswith(file) and m.line == int(line)]
        else:
            mutants = sample(room, given.count, given.seed)
        until = time.monotonic() + 60 * given.minutes
        tried, left = survivors(mutants, room, given.jobs, until, given.quick)
        wrong += len(left)
        print(
            f"{name}: {tried} of {len(mutants)} mutants tried, {len(left)} survived, seed {given.seed}",
            flush=True,
        )
        for mutant in left:
            print(f"  {mutant}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

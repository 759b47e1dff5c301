"""What the next feed with this dotr would make of a deployment, tried on a copy.

Place:   `dotr deploy --check-upgrade`, before another version of dotr feeds a deployment.
Method:  SQLite copies the database, also while a feed goes on; the copy is opened as a feed opens it: its
         tables are converted, rules checked, the background closed, the state restored. Nothing is fed.
Why not: a comparison of version numbers: it cannot tell which rules keep what they remember.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from dotr.errors import Diagnostic
from dotr.service.deployment import deployed_program
from dotr.service.feed import CheckpointPolicy, FeedOptions, open_feed
from dotr.service.journal import DATABASE, FORMAT, Journal

_PERIOD: Final = 3_600_000_000
"""Of a deployment that makes corrections, in µs: its own is not stored, and its state fits any."""


class Upgrade(Struct, frozen=True):
    """What would become of a deployment. `forgotten`: the rules that would start with nothing remembered."""

    format: str
    rules: tuple[str, ...]
    forgotten: tuple[str, ...]

    @property
    def converts(self) -> bool:
        """Whether the tables would be converted, after which an older dotr does not read them."""
        return self.format != str(FORMAT)


def check_upgrade(folder: str, on_finding: Callable[[Diagnostic], None]) -> Upgrade:
    """Try an upgrade on a copy; the deployment itself is only read.

    Raises DataError D5201 (no deployment), EngineError D5202, D5203, D5101 and D5010 where this dotr cannot
    go on with it, ProgramError where it refuses the rules. Cost: the time and disk of a copy, and of the
    start of a feed.
    """
    Journal(folder, exclusive=False).close()  # refuses what is no deployment, or damaged
    with TemporaryDirectory(prefix="dotr-upgrade-") as place:
        copy = Path(place)
        with (
            closing(sqlite3.connect(f"file:{(Path(folder) / DATABASE).absolute()}?mode=ro", uri=True)) as old,
            closing(sqlite3.connect(copy / DATABASE)) as new,
        ):
            old.backup(new)
            (format_,) = new.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
        for file in Path(folder).glob("*.background"):
            shutil.copy(file, copy)
        with Journal(place) as journal:
            program = deployed_program(journal.deployed())
            corrects = "corrections" in journal.status()
            options = FeedOptions(corrections=_PERIOD if corrects else None)
            feed = open_feed(journal, program, options, CheckpointPolicy(), on_finding)
            return Upgrade(format_, tuple(rule.name for rule in program.rules), tuple(feed.forgotten))

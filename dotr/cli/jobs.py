"""`--jobs N`: processes that parse beside the one that runs the rules.

Place:   an option of `dotr run`; the processes are those of io/files/parse_workers.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dotr.io.files.parse_workers import ParseWorkers

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    default=1,
    help="Processes: one for the rules, others parse JSON lines ahead of it (default: 1). The output is the "
    "same.",
)


@contextmanager
def parsing(jobs: int, base: str | None) -> Iterator[ParseWorkers | None]:
    """What parses for a run of so many processes; None where the process of the rules does."""
    if jobs == 1:
        yield None
        return
    from dotr.io.files.parse_workers import ParseWorkers  # noqa: PLC0415  # start-up: most runs need one process

    with ParseWorkers(jobs - 1, base) as workers:
        yield workers

"""`--jobs N`: processes that parse beside the one that runs the rules.

Place:   an option of `dotr run`; the processes are those of io/files/parse_workers.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dotr.io.files.parse_workers import ParseWorkers

LARGE = 64 * 1024 * 1024
"""Bytes of input from which a second process is worth its start and its memory."""

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Processes: one for the rules, others parse JSON lines ahead of it (default: 1, of a file of 64m "
    "or more 2). The output is the same.",
)


@contextmanager
def parsing(jobs: int | None, sources: Sequence[str], base: str | None) -> Iterator[ParseWorkers | None]:
    """What parses for a run over these sources; None where the process of the rules does."""
    count = jobs or jobs_for(sources)
    if count == 1:
        yield None
        return
    from dotr.io.files.parse_workers import ParseWorkers  # noqa: PLC0415  # start-up: most runs need one process

    with ParseWorkers(count - 1, base) as workers:
        yield workers


def jobs_for(sources: Sequence[str]) -> int:
    """How many processes a run takes unless it is given: by the size of its input."""
    size = sum(os.path.getsize(path) for path in sources if os.path.isfile(path))
    return 2 if size >= LARGE and (os.cpu_count() or 1) > 1 else 1

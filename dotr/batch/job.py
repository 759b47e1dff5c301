"""What a worker needs to know, and the worker itself, built once per process.

Place:   the driver makes a Job and ships it as bytes; spark/frame_stages.py runs it inside Spark's Python
         workers and local.py's processes.
Method:  a job is identified by the hash of its content (program, background, clock, layout). A process keeps
         the workers of its last few jobs, so that its thousands of tasks find the closed background and the
         compiled queries ready. A large background goes into a file, which the processes of a machine map: it
         is in memory once.
Why not: a closure over the compiled program: it is unpickled for every task.
"""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from dotr.batch.detecting import Detecting
from dotr.batch.extracting import PLAIN, Extracting, Treatment
from dotr.batch.fact_rows import VERSION, Layout, Router
from dotr.batch.time_gaps import Cutoff
from dotr.core.deployment import Deployment, Settings
from dotr.events import Clock
from dotr.io.files.mapped import content_name, mapped
from dotr.io.files.whole_files import write_whole
from dotr.ir import Program
from dotr.rdf.terms import Triple

_KEPT = 2


class Placed(Protocol):
    """A file that the driver wrote for workers."""

    def path(self) -> str:
        """Its path on this machine."""


Place: TypeAlias = Callable[[str, Sequence[Any]], Placed]
"""Writes a file of this name with these contents, which every worker can find."""


class InFolder(Struct, frozen=True):
    """A file at the same path for all."""

    file: str

    def path(self) -> str:
        return self.file


def into_folder(folder: str, name: str, parts: Sequence[Any]) -> InFolder:
    """A `Place`, once the folder is bound. Raises EngineError if the disk refuses it."""
    path = os.path.join(folder, name)
    write_whole(path, parts)
    return InFolder(path)


class Job(Struct, frozen=True):
    """One batch run, as shipped; `key` is the hash of everything.

    `whole`: each slice has all rules, and the detecting task reads it (archive_slices.py). `closed` is the
    closed and indexed background, compressed, or the file with it; `background` its explicit triples as
    compressed N-Triples, empty unless verifying. `standing`: the queries that it alone answers. `cutoff`: the
    time from which the log is too far ahead.
    """

    program: Program
    settings: Settings
    closed: bytes | Placed
    background: bytes
    clock: Clock
    layout: Layout
    treatment: Treatment
    standing: frozenset[str]
    cutoff: Cutoff | None
    whole: bool
    key: str

    def deployment(self) -> Deployment:
        """Load what the driver compiled: nothing is closed again."""
        explicit = split_lines(zlib.decompress(self.background).decode())
        kept = self.closed
        closed = zlib.decompress(kept) if isinstance(kept, bytes) else mapped(kept.path())
        return Deployment(self.program, explicit, self.settings, closed=closed)


def make_job(
    deployment: Deployment,
    clock: Clock,
    layout: Layout,
    treatment: Treatment = PLAIN,
    cut: Cutoff | None = None,
    place: Place | None = None,
    *,
    whole: bool = False,
) -> Job:
    """Close the background and pack everything. `place` takes a large background; `whole`: see Job.

    Raises ProgramError for the rules, DataError D3101 for a background that contradicts its ontology.
    """
    program, settings = deployment.program, replace(deployment.settings, apart=treatment.verify or not whole)
    closed, standing = deployment.closed_background(), deployment.standing
    contents = closed.contents()
    explicit = deployment.background if treatment.verify else ()
    text = "".join([f"{s} {p} {o} .\n" for s, p, o in explicit]).encode()
    parts = (VERSION, program.fingerprint, settings, clock, layout, treatment, sorted(standing), cut, whole)
    hashed = blake2b(repr(parts).encode(), digest_size=16)
    for content in contents:
        hashed.update(content)
    hashed.update(text)
    kept: bytes | Placed
    if closed.index.large and place is not None:
        kept = place(f"background-{content_name(contents)}", contents)
    else:
        kept = zlib.compress(b"".join(contents), 1)
    return Job(
        program,
        settings,
        kept,
        zlib.compress(text, 1),
        clock,
        layout,
        treatment,
        standing,
        cut,
        whole,
        hashed.hexdigest(),
    )


def split_lines(text: str) -> list[Triple]:
    """The triples of N-Triples text written by dotr: one per line, single blanks."""
    triples: list[Triple] = []
    for line in text.split("\n"):
        if line:
            subject, predicate, rest = line.split(" ", 2)
            triples.append((subject, predicate, rest[:-2]))
    return triples


class Worker:
    """Owns what a process builds once per job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.router = Router(job.program, job.layout)
        self.deployment = job.deployment()
        self.extracting = Extracting(self.deployment, job.clock, job.treatment, job.cutoff)

    def detecting(self) -> Detecting:
        """Fresh counters for each task; the rules are cheap to build beside the background."""
        job = self.job
        facts, treatment = self.extracting.tick_facts, job.treatment
        return Detecting(
            self.deployment, job.layout, job.clock, facts, job.standing, treatment, whole=job.whole
        )


class Shipped(Struct, frozen=True):
    """A shipped job: opened only by a process that does not have it yet."""

    key: str
    content: bytes

    def worker(self) -> Worker:
        """The worker of this process for the job; built on the first call."""
        found = _WORKERS.pop(self.key, None)
        if found is None:
            while len(_WORKERS) >= _KEPT:
                del _WORKERS[next(iter(_WORKERS))]
            found = Worker(pickle.loads(self.content))  # noqa: S301  # our own driver's bytes, same release
        _WORKERS[self.key] = found
        return found


_WORKERS: dict[str, Worker] = {}


def ship(job: Job) -> Shipped:
    return Shipped(job.key, pickle.dumps(job, pickle.HIGHEST_PROTOCOL))

"""What `dotr explain` looks at: rules and sources that the command names, or a deployment.

Place:   under cli/explain.py, which asks the question.
Method:  a deployment that keeps its messages is run again from a state before them; of one that does not, the
         sources that its journal names are read again, as far as they were fed, and what became of those that
         are not what they were is said.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from dotr.cli import show
from dotr.cli.dead_letters import DeadLetters
from dotr.core.parts import part_of
from dotr.errors import DataError
from dotr.events import Clock, Time
from dotr.explain.history import History
from dotr.explain.record import Graph, KeptEvent
from dotr.explain.verify import EVERYTHING
from dotr.io.files.file_positions import FilePosition, is_as_fed
from dotr.io.files.file_source import FILES
from dotr.io.files.sources import SourceOptions, Sources, resolve
from dotr.ir import Program
from dotr.rdf.terms import Triple
from dotr.service.deployment_directory import deployed_background, deployed_program
from dotr.service.journal import Journal
from dotr.service.kept_tables import KeptRow

FOREVER = 2**62
"""As long as no time is: nothing is late where a feed has said what was."""


class Asked(Struct, frozen=True):
    """How far a run goes, and what it looks for."""

    wanted: Callable[[KeptEvent, Program], bool]
    first: bool
    until: Time | None
    lateness: int
    everything: bool
    reads_on: bool
    verify: bool = False


class Subject(Protocol):
    """What is explained. `files`: of the background, in which its triples are looked for."""

    @property
    def program(self) -> Program: ...
    @property
    def files(self) -> Sequence[str]: ...
    @property
    def programs(self) -> Sequence[Program]:
        """All that hold at some time."""

    def run(self, asked: Asked) -> History:
        """Run as far as the question needs."""


class Replacing(Struct, frozen=True):
    """Rules that hold from a time on, with how that time is written."""

    time: Time
    clock: Clock
    program: Program
    background: Collection[Triple]
    files: Sequence[str]


def new_history(
    program: Program, background: Collection[Triple], asked: Asked, until: Time | None, lateness: int
) -> History:
    """A run that looks for what is asked."""
    history: History = History(
        program,
        background,
        wanted=lambda event: (until is None or event.time <= until) and asked.wanted(event, history.program),
        first=asked.first,
        until=until,
        lateness=lateness,
        everything=asked.everything,
        reads_on=asked.reads_on,
    )
    if asked.verify:
        history.reach = EVERYTHING
    return history


class NamedSources(Struct):
    """Rules and sources of the command line."""

    program: Program
    background: Collection[Triple]
    files: Sequence[str]
    sources: Sequence[str]
    options: SourceOptions
    on_error: str
    then: Sequence[Replacing] = ()

    @property
    def programs(self) -> Sequence[Program]:
        return [self.program, *(one.program for one in self.then)]

    def run(self, asked: Asked) -> History:
        with DeadLetters(self.on_error) as dead:
            reader = Sources(self.sources, self.options, dead.refusals())
            history = new_history(self.program, self.background, asked, asked.until, asked.lateness)
            for one in self.then:
                if reader.extractor.clock is not None and reader.extractor.clock != one.clock:
                    hint = "write all of them as integers, or as dateTimes"
                    raise DataError.of("D2102", "the times of --then are of two kinds", hint=hint)
                reader.extractor.clock = one.clock
                history.replace(one.time, one.clock, one.program, one.background)
            history.run(reader, lambda: reader.clock)
            return history


class DeploymentSubject:
    """Owns a look at a deployment, as of its last commit. Raises DataError D4189 where it was not fed."""

    def __init__(self, folder: str, options: SourceOptions, on_error: str) -> None:
        self.options, self._on_error = options, on_error
        with Journal(folder, exclusive=False) as journal:
            self.program = deployed_program(journal.deployed())
            self._background = deployed_background(journal)
            self._kept = journal.kept()
            self._sources = {file: FilePosition.of(at) for file, at in journal.positions(FILES).items()}
            self._given = journal.given()
            status = journal.status()
        if status.get("clock") is None:
            hint = "dotr feed SOURCE"
            raise DataError.of("D4189", f"the deployment in `{folder}` was not fed", place=folder, hint=hint)
        with journal.reading():
            self.clock = Clock(*status["clock"])
        self._journal = journal
        self._watermark: Time | None = status.get("watermark")
        home = Path(folder).absolute().parent
        paths = [path if path.startswith("dotr:") else str(home / path) for path in self.program.background]
        self.files: Sequence[str] = [os.path.relpath(file) for file in _there(paths)]
        self.programs: Sequence[Program] = [self.program]

    def run(self, asked: Asked) -> History:
        """Run what was fed, up to the watermark at most."""
        limits = [time for time in (asked.until, self._watermark) if time is not None]
        until = min(limits, default=None)
        if self._kept:
            history = new_history(self.program, self._background, asked, until, FOREVER)
            history.reach = FOREVER
            first, *rest = self._kept
            assert first.state is not None, "what is kept begins with a state"
            with self._journal.reading():  # which is closed, and knows its folder
                history.go_on(first.state, self.clock)
            history.run(_messages(rest, history), lambda: self.clock)
            return history
        return self._read_again(asked, until)

    def _read_again(self, asked: Asked, until: Time | None) -> History:
        history = new_history(self.program, self._background, asked, until, asked.lateness)
        with ExitStack() as stack:
            dead = stack.enter_context(DeadLetters(self._on_error))
            files = [file for file, row in self._sources.items() if _is_as_fed(file, row)]
            if self._given:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                given = os.path.join(folder, "given.jsonl")
                Path(given).write_text("".join(f"{line}\n" for line in self._given), encoding="utf-8")
                files.append(given)
            if not files:
                hint = "dotr deploy --keep 7d keeps what explanations need"
                raise DataError.of("D4189", "none of the sources that were fed is there", hint=hint)
            reader = Sources([os.path.relpath(file) for file in files], self.options, dead.refusals())
            history.run(reader, lambda: reader.clock)
        return history


def _messages(rows: Sequence[KeptRow], history: History) -> Iterator[Graph]:
    """The messages that a feed took, in its order; those it did not take stand apart."""
    for row in rows:
        for message in row.messages:
            graph = Graph(message.time, part_of(message.part), message.place)
            if message.left_out:
                history.come_too_late(graph)
            else:
                yield graph


def _there(paths: Sequence[str]) -> list[str]:
    """The files that are still there: only places are looked for in them."""
    return [
        file for path in paths if path.startswith("dotr:") or os.path.exists(path) for file in resolve([path])
    ]


def _is_as_fed(file: str, row: FilePosition) -> bool:
    """Whether a file can be read again; says so where it is gone, or is not what was fed."""
    if not os.path.isfile(file):
        show.note(f"`{os.path.relpath(file)}`, which was fed, is gone")
        return False
    if not is_as_fed(file, row):
        show.note(f"`{os.path.relpath(file)}` changed since it was fed; what it says now is explained")
    return True

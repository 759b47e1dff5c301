"""A batch run: the request, the report, how time is cut once the log is known, and the output.

Place:   requested by cli/batch.py; local.py and spark/cluster.py do the work, and report in the same form.
Method:  output is files `part-*`, complete or absent. A run is written to `DIR.part`; every task attempt
         writes a file of its own, with a unique name, and reports that name. Only reported files get their
         final names, so that failed or repeated attempts leave nothing. The driver renames the folder when
         everything is done.
Why not: Spark's text writer: it supports neither these formats nor lines as events.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.batch.choices import TYPED
from dotr.batch.facts import Cut, Layout
from dotr.batch.log import LogListing
from dotr.batch.time_cuts import Even, Gap, Slices, balanced_slices, slices_at_gaps
from dotr.batch.work import PLAIN, Detecting, Treatment, Weight, Worker
from dotr.core.deployment import Deployment
from dotr.core.funnel import Funnel, funnels, joined
from dotr.core.instants import check_units
from dotr.detect.partitioning import By, Partitioning, RuleComponentGroup, describe, sequential
from dotr.errors import Diagnostic, ProgramError, RefusedError, Severity, UnsupportedError
from dotr.events import Clock, Composite, Time
from dotr.io.event_tables import TABLE_ROWS as ROWS
from dotr.io.events import ENDINGS, EVENT_FORMATS, EventFile, formatter
from dotr.io.outputs import unwritable
from dotr.io.typed_events import TypedEventFolder
from dotr.program import Program
from dotr.program.names import Passed, duration_text, summed

PARTS = 6
"""Parts per core: enough to balance parts of different weight, few enough to be cheap."""

LEAST = 16
"""A requested slice is at least this part of its horizon long: with shorter ones every fact would be sent to
too many.
"""

MOST = 10_000
"""The limit of slices of a log."""

COPIES = 32
"""The limit of parts of a group that copies facts to every part: a fact is sent and read that often."""

OnProgress = Callable[[str, int, int, int], None]
"""Progress: (stage, tasks done, of, graphs done). 0: unknown."""


class Request(Struct, frozen=True):
    """One run. `slice_length` in µs, None: automatic.

    `max_jump`: how far ahead of the one before it an instant may lie, in µs; None: no limit. `states`: the
    folder of enriched graphs, None if not requested; everything must be materialised. `together`: one task
    computes what holds. `until`: up to when time goes on behind the log.
    """

    deployment: Deployment
    log: LogListing
    by: By = By.AUTO
    slice_length: int | None = None
    format_: str = "jsonl"
    treatment: Treatment = PLAIN
    max_jump: Time | None = None
    states: str | None = None
    together: bool = False
    until: Time | None = None

    def end(self, last: Time) -> Time:
        """Up to when time goes on, where the log's last graph is at `last`."""
        return last if self.until is None else max(last, self.until)

    @property
    def program(self) -> Program:
        return self.deployment.program

    def plan(self) -> Partitioning:
        return self.deployment.partitioning(self.by, together=self.together)


class Report(Struct):
    """The result of a run; `files`: the names of output files in the unfinished folder, in order.

    `states`: those of enriched graphs. `streams`: facts by query, except those `uncounted`; `passed`: how far
    trigger facts got, by rule; `ticking`: the first and the last instant that ran.
    """

    graphs: int = 0
    instants: int = 0
    first: Time | None = None
    last: Time | None = None
    events: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    not_held: int = 0
    not_stated: int = 0
    ineffective: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    letters: list[str] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    time_sources: dict[str, int] = field(default_factory=dict)
    beside: dict[str, int] = field(default_factory=dict)
    """Subjects of dumps in no graph, as the extractor of times counts them."""
    changed: dict[str, str] = field(default_factory=dict)
    """Where reading changed something first, in the order of tasks; empty where they have none."""
    files: list[str] = field(default_factory=list)
    parts: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    streams: dict[str, int] = field(default_factory=dict)
    uncounted: set[str] = field(default_factory=set)
    """Queries whose facts are counted as those of another (core/funnel.py)."""
    passed: dict[str, Passed] = field(default_factory=dict)
    ticking: tuple[Time, Time] | None = None
    states: list[str] = field(default_factory=list)

    def add_counted(self, text: str) -> None:
        """Add what a task counted (`Detected.counted`)."""
        streams, passed = json.loads(text)
        self.uncounted.update(name for name, count in streams.items() if count is None)
        add_counts(self.streams, {name: count for name, count in streams.items() if count is not None})
        added = {rule: [(step, count) for step, count in steps] for rule, steps in passed.items()}
        self.passed = summed(self.passed, added)

    def facts(self, program: Program) -> dict[str, int]:
        """Facts by query, for all counted queries."""
        names = (name for name in program.queries if name not in self.uncounted)
        return {name: self.streams.get(name, 0) for name in names}

    def funnel(self, program: Program) -> dict[str, Funnel]:
        """Rule → how far it got; the same as in `dotr run`."""
        first, last = self.ticking or (None, None)
        return joined(program, {}, funnels(program, self.streams, self.passed, first, last), self.events)


def run_again(request: Request, once: Callable[[Request], Report]) -> Report:
    """`once` for a request; again with what holds in one task, if a part of its keys needed more than its
    share of the budget: all of them together may or may not exceed it (D4011).
    """
    try:
        return once(request)
    except ProgramError as error:
        from dotr.windows.engine import MUCH_WORK  # noqa: PLC0415  # start-up

        parted = any(group.holds and group.keys is not None for group in request.plan().groups)
        if not parted or all(found.code != MUCH_WORK for found in error.diagnostics):
            raise
    whole = replace(request, together=True)
    report = once(whole)
    report.findings = [*warnings(whole.program, whole.plan()), *report.findings]
    return report


def add_counts(total: dict[str, int], more: Mapping[str, int]) -> None:
    """Add what a task counted by name."""
    for name, count in more.items():
        total[name] = total.get(name, 0) + count


class Runner(Protocol):
    """An engine: runs a request, writes events into a folder. Raises DotrError."""

    name: str

    def run(self, request: Request, folder: str, on_progress: OnProgress) -> Report: ...

    def close(self) -> None: ...


def check_program(program: Program, clock: Clock) -> None:
    """Raise ProgramError D1409 for lengths of time that do not fit the stream's, UnsupportedError D4160 if
    something lasts and no folder is shared: instants are then enriched separately.
    """
    check_units(program, clock)
    if program.lasting:
        stating = next((rule.span for rule in program.rules if rule.has_effects), None)
        where = next(iter(program.holds)).span if program.holds else stating
        raise UnsupportedError.of(
            "D4160",
            "what lasts needs a log and a folder that all workers can read",
            where,
            notes=(
                "HOLD, ISTREAM, DSTREAM and effects look across instants: slices are cut on a shared disk",
            ),
            hint="copy the log to a shared disk, or run it on this machine: --engine local",
        )


def lay_out(
    plan: Partitioning,
    cores: int,
    quantiles: Sequence[Time],
    last: Time,
    slice_length: int | None,
    gaps: Sequence[Gap] = (),
) -> Layout:
    """The cuts of every group, from quantiles of the log's times; `slice_length` overrides them, within LEAST
    and MOST. `gaps`: some of those wider than `plan.gap`, in time order.
    """
    span = max(last - quantiles[0], 0)
    found = [(before, first) for before, first in gaps if first <= last]
    cuts = (_cut(group, cores, quantiles, span, slice_length, found) for group in plan.groups)
    return Layout(plan, tuple(cuts), last)


def _cut(
    group: RuleComponentGroup,
    cores: int,
    quantiles: Sequence[Time],
    span: Time,
    slice_length: int | None,
    gaps: Sequence[Gap],
) -> Cut:
    slices: Slices | None = None
    pieces = 1
    if group.gap is not None:
        at_gaps = slices_at_gaps(quantiles, gaps, group.gap)
        slices = at_gaps if at_gaps.starts else None
    elif group.horizon is not None and slice_length is not None:
        slices = Even(max(slice_length, group.horizon // LEAST, span // MOST))
        pieces = max(1, span // slices.length)
    elif group.horizon is not None:
        balanced = balanced_slices(quantiles, group.horizon)
        pieces = len(balanced.starts) + 1
        slices = balanced if pieces > 1 else None
    return Cut(_buckets(group, cores, pieces), slices)


def _buckets(group: RuleComponentGroup, cores: int, pieces: int) -> int:
    """The number of parts of keys; if facts are copied to each, no more than workers."""
    if group.keys is None:
        return 1
    if group.copies:
        return min(max(1, cores), COPIES)
    return max(1, -(-PARTS * cores // pieces))


def warnings(program: Program, plan: Partitioning) -> list[Diagnostic]:
    """Warnings before a job starts: rules that will run in one task."""
    slow = sequential(program, plan)
    if not slow:
        return []
    parts = [c for c in plan.components if program.rules[c.rules[0]].name in slow]
    reasons = [reason for component in parts for reason in component.reasons]
    if plan.gap is not None:
        reasons.append(f"where the log has a gap longer than {duration_text(plan.gap)} another task begins")
    hint = "" if program.has_effects else "an equation with the trigger in every ON lets it run by key"
    if hint and any(program.has_to_do_with_lars(rule) for component in parts for rule in component.rules):
        hint += "; in LARS rules, so does a variable shared by all their atoms"
    return [
        Diagnostic(
            "D4126",
            f"detection of `{'`, `'.join(slow)}` runs in one task",
            notes=tuple(dict.fromkeys(reasons)),
            hint=hint,
            severity=Severity.WARNING,
        )
    ]


def run_file(request: Request, report: Report, extra: Mapping[str, Any]) -> str:
    """The text of `_dotr_run.json`."""
    clock = request.log.clock or Clock()

    def stamp(time: Time | None) -> int | str | None:
        if time is None:
            return None
        return int(clock.text(time)) if clock.integer else clock.text(time)

    plan = request.plan()
    content = {
        **extra,
        "graphs": report.graphs,
        "instants": report.instants,
        "first": stamp(report.first),
        "last": stamp(report.last),
        "events": {r.name: report.events.get(r.name, 0) for r in request.program.rules if not r.private},
        "funnel": report.funnel(request.program),
        "dropped": report.dropped,
        "left_out": report.left_out,
        "refused": len(report.letters),
        "strategy": describe(request.program, plan),
        "parts": report.parts,
        "files": len(report.files),
        "seconds": {stage: round(seconds, 3) for stage, seconds in report.seconds.items()},
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


RUN_FILE = "_dotr_run.json"
"""Describes what ran, when, and how much came out; it is in every finished folder."""

UNFINISHED = "_dotr_unfinished"
"""Marks the folder of an unfinished run, so that only dotr's own leftovers are ever removed."""


class Written(Struct):
    """What one task wrote. `file` is "" without events. `counted`: see `Detected.counted`."""

    file: str
    counts: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    findings: list[tuple[Time, str]] = field(default_factory=list)
    weights: list[Weight] = field(default_factory=list)
    parts: int = 0
    counted: str = "[{}, {}]"


def write_events(
    folder: str, format_: str, program: Program, clock: Clock, events: Iterable[Composite]
) -> Written:
    """Write a task's events to its own file in `folder`; no file without events. Raises EngineError."""
    counts: dict[str, int] = {}

    def counted() -> Iterator[list[Composite]]:
        for some in batched(events):
            for event in some:
                counts[event.rule] = counts.get(event.rule, 0) + 1
            yield some

    written = write_runs(folder, format_, program, clock, counted())
    written.counts = counts
    return written


def write_runs(
    folder: str, format_: str, program: Program, clock: Clock, runs: Iterable[Sequence[Composite]]
) -> Written:
    """Like `write_events` for events that come some at a time; they are not counted. Leaves no file if they
    end with an error.
    """
    written = Written("")
    name = f"{uuid4().hex}.{'parquet' if format_ == TYPED else ENDINGS[format_]}"
    path = os.path.join(folder, name)
    file: EventFile | None = None
    try:
        for some in runs:
            if file is None:
                file = _opened(path, format_, program, clock)
            file.add(some)
        if file is not None:
            file.close()
            written.file = name
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        if file is not None and not written.file:  # other tasks may go on, and other rounds begin
            with suppress(OSError):
                file.close()
                _remove(Path(path))
    return written


def _opened(path: str, format_: str, program: Program, clock: Clock) -> EventFile:
    if format_ == TYPED:
        return TypedEventFolder(path, program, clock)
    opened = EVENT_FORMATS[format_].file
    return opened(path, clock) if opened else _PartFile(path, format_, program, clock)


def write_detected(
    folder: str, format_: str, worker: Worker, detecting: Detecting, events: Iterable[Composite]
) -> Written:
    """Like `write_events`, with the other results of `detecting`, the source of the events."""
    written = write_events(folder, format_, worker.job.program, worker.job.clock, events)
    done = detecting.done
    written.dropped, written.parts, written.counted = done.dropped, done.parts, done.counted()
    written.left_out, written.findings = done.left_out, done.findings
    written.weights = done.weights
    return written


def batched(events: Iterable[Composite]) -> Iterator[list[Composite]]:
    """Events in lists of ROWS, the last one shorter; none without events."""
    source = iter(events)
    while waiting := list(islice(source, ROWS)):
        yield waiting


class _PartFile:
    """Owns one text file of events; `close` completes it. Raises OSError."""

    def __init__(self, path: str, format_: str, program: Program, clock: Clock) -> None:
        head, self._format = formatter(format_, program.prefixes, program.rules)
        self._clock = clock
        self._file = open(path, "w", encoding="utf-8", newline="\n")  # noqa: SIM115  # closed by `close`
        self._file.write(head)

    def add(self, events: Sequence[Composite]) -> None:
        self._file.write(self._format(events, self._clock))

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def part_name(number: int, of: int, suffix: str) -> str:
    """The name of an output file."""
    return f"part-{number:0{max(5, len(str(of)))}}.{suffix}"


class Folder(Protocol):
    """Where a run's output is written and, when complete, renamed."""

    def open(self) -> str: ...

    def finish(self, files: Sequence[str], run: str) -> None: ...

    def abandon(self) -> None: ...


class OutputFolder:
    """Owns `DIR.part` from the start of a run to `finish`, when it is renamed to `DIR`. A finished folder is
    recognised by its `run_file`.

    Raises RefusedError D5001 at once if DIR or DIR.part is not empty and `overwrite` is not set.
    """

    def __init__(
        self, path: str, overwrite: bool, run_file: str = RUN_FILE, verb: str = "dotr batch"
    ) -> None:
        self._run_file = run_file
        self.path = Path(path)
        if not self.path.name:
            raise _refused(f"`{path}` is not a name for an output", self.path, "give another name")
        self.part = self.path.with_name(self.path.name + ".part")
        self._overwrite = overwrite
        for there in (self.path, self.part):
            if not os.path.lexists(there) or _is_empty_folder(there):
                continue
            if not overwrite:
                what = "was left by a run that did not finish" if there == self.part else "exists"
                raise _refused(f"`{there}` {what}", there, "give another name, or --overwrite")
            if not (there / run_file).is_file() and not (there / UNFINISHED).is_file():
                raise _refused(f"`{there}` is not an output of `{verb}`", there, "give another name")

    def open(self) -> str:
        """Make the folder of the unfinished run; returns its absolute path."""
        try:
            if os.path.lexists(self.part):
                _remove(self.part)
            self.part.mkdir(parents=True)
            (self.part / UNFINISHED).touch()
        except OSError as error:
            raise unwritable(str(self.part), error) from None
        return str(self.part.resolve())

    def finish(self, files: Sequence[str], run: str) -> None:
        """Name the reported files, write the run file, and give the folder its name. A reported folder is the
        tree of files that a task wrote.

        What has that name is removed only now.
        """
        try:
            kept: set[str] = set()
            for number, file in enumerate(files):
                for one, folder in _written(self.part / file):
                    made = self.part / folder
                    made.mkdir(parents=True, exist_ok=True)
                    name = part_name(number, len(files), one.suffix.removeprefix("."))
                    if folder != Path():
                        name = f"{Path(name).stem}-{one.name}"
                    one.rename(made / name)
                    kept.add((folder / name).parts[0])
            for stray in self.part.iterdir():
                if stray.name not in kept:
                    _remove(stray)
            (self.part / self._run_file).write_text(run, encoding="utf-8")
            if os.path.lexists(self.path):
                _remove(self.path)
            self.part.rename(self.path)
        except OSError as error:
            raise unwritable(str(self.path), error) from None

    def abandon(self) -> None:
        """Leave nothing of a failed run behind."""
        shutil.rmtree(self.part, ignore_errors=True)


def _written(path: Path) -> list[tuple[Path, Path]]:
    """The files that a task reported as one, each with the folder that it belongs in."""
    if not path.is_dir():
        return [(path, Path())]
    return [(one, one.relative_to(path).parent) for one in sorted(path.rglob("*")) if one.is_file()]


def _refused(message: str, place: Path, hint: str) -> RefusedError:
    return RefusedError.of("D5001", message, place=str(place), hint=hint)


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()

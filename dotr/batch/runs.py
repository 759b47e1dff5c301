"""A batch run: the request, the report, and how time is cut once the log is known.

Place:   requested by cli/batch.py; local.py and spark/cluster.py do the work, and report in the same form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.batch.extracting import PLAIN, Treatment
from dotr.batch.fact_rows import Cut, Layout
from dotr.batch.log_splits import LogListing
from dotr.batch.time_gaps import Gap
from dotr.batch.time_slices import Even, Slices, balanced_slices, slices_at_gaps
from dotr.core.deployment import Deployment
from dotr.core.funnel import Funnel, funnels, joined
from dotr.core.time_units import check_units
from dotr.errors import Diagnostic, ProgramError, Severity, UnsupportedError
from dotr.events import Clock, Time
from dotr.ir import Program
from dotr.temporal.durations import duration_text
from dotr.temporal.partitions import By, Partitioning, RuleComponentGroup, describe, sequential
from dotr.temporal.stages import Passed, summed

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
    computes what holds.
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
    left_out: dict[str, int] = field(default_factory=dict)
    letters: list[str] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    rungs: dict[str, int] = field(default_factory=dict)
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
        from dotr.lars.overworked_rules import MUCH_WORK  # noqa: PLC0415  # start-up

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
        where = next(iter(program.holds)).span if program.holds else None
        raise UnsupportedError.of(
            "D4160",
            "what lasts needs a log and a folder that all workers can read",
            where,
            notes=("HOLD, ISTREAM and DSTREAM look across instants: slices are cut on a shared disk",),
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
    hint = "an equation with the trigger in every ON lets it run by key"
    if any(program.has_to_do_with_lars(rule) for component in parts for rule in component.rules):
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

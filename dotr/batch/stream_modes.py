"""Whether a stream runs in order in one engine, or as parts on all workers: the choice and its reasons.

Place:   spark/streams.py and spark/distributed.py start the chosen mode; `dotr stream` and
         `dotr.spark.stream` report it.
Method:  features that need all of an instant, in order, are ordered: what lasts, LARS rules, late graphs that
         are kept or refused, dead letters. Everything else can be distributed. That pays with enough cores:
         each graph goes through Spark twice more.
Bad input: D4311 what cannot be distributed · D4123 an unknown mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec

from msgspec import Struct

from dotr.batch.fact_rows import Cut, Layout
from dotr.batch.stream_folder import DISTRIBUTED, MODES, ORDERED, StreamOptions
from dotr.core.deployment import Deployment
from dotr.errors import UsageError
from dotr.events import Time
from dotr.ir import Every, Program
from dotr.temporal.partitions import By

AUTO = "auto"
CHOICES = (AUTO, *MODES)

MANY_CORES = 4
"""Cores from which a stream is distributed by default: on fewer one engine is as fast."""

PARTS = 4
"""Parts of keys per core."""

_END: Time = 2**62


class Choice(Struct, frozen=True):
    """A mode, and its reasons as sentences."""

    mode: str
    reasons: tuple[str, ...]


def choose(
    asked: str, known: str | None, deployment: Deployment, options: StreamOptions, cores: int
) -> Choice:
    """The mode of a stream: that of its checkpoint (`known`), else the requested one, else the faster one.

    Raises UsageError D4123, D4311.
    """
    if asked not in CHOICES:
        raise UsageError.of("D4123", f"mode cannot be `{asked}`", hint=f"one of {', '.join(CHOICES)}")
    against = obstacles(deployment.program, options)
    if asked == DISTRIBUTED and against:
        raise _cannot(against)
    if asked != AUTO:
        return Choice(asked, ("that was asked for",))
    if known is not None:
        return Choice(known, ("the checkpoint was made so",))
    if against:
        return Choice(ORDERED, tuple(against))
    if cores < MANY_CORES:
        return Choice(ORDERED, (f"one engine is as quick as parts on {cores} cores, and keeps order",))
    plan = deployment.partitioning(By.KEY)
    if not any(group.keys is not None for group in plan.groups):
        return Choice(
            ORDERED, ("no rule is partitioned by key (`--mode distributed` still enriches on all cores)",)
        )
    return Choice(DISTRIBUTED, (f"rules are partitioned by key, and there are {cores} cores",))


def no_clock(asked: str) -> Choice:
    """In order, for a source without data yet. Raises UsageError D4311 if the other mode was requested."""
    why = "there is no data yet that shows how times are written"
    if asked == DISTRIBUTED:
        raise _cannot([why])
    return Choice(ORDERED, (why,))


def _cannot(notes: Sequence[str]) -> UsageError:
    return UsageError.of(
        "D4311",
        "this stream cannot be distributed",
        notes=tuple(notes),
        hint="leave the mode to `auto`, or run it `ordered`",
    )


def obstacles(program: Program, options: StreamOptions) -> list[str]:
    """Why a stream cannot be distributed; empty if it can."""
    found = []
    if program.lasting:
        found.append("what lasts (HOLD, ISTREAM, DSTREAM) is followed from instant to instant, in order")
    if program.lars.rules:
        found.append("one engine computes what holds by .lars files")
    if options.late != "drop":
        found.append(f"late graphs are only counted there, and `--late {options.late}` needs them")
    if options.on_error == "keep":
        found.append("dead letters are kept in order, by one engine")
    if options.on_error == "skip" and any(isinstance(rule.trigger, Every) for rule in program.rules):
        found.append("EVERY begins with the first instant that is not in error, which one engine knows")
    if options.max_jump is not None:
        found.append("--max-jump compares graphs in order of arrival")
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        found.append("Spark's states need the package protobuf: pip install protobuf")
    return found


def stream_layout(deployment: Deployment, cores: int) -> Layout:
    """The parts of a stream: buckets of keys if any, never slices of time."""
    plan = deployment.partitioning(By.KEY)
    cuts = (Cut(max(1, PARTS * cores) if group.keys is not None else 1) for group in plan.groups)
    return Layout(plan, tuple(cuts), _END)


def parts_of(layout: Layout) -> list[int]:
    """All parts of a layout without slices."""
    groups = layout.plan.groups
    return [
        layout.part(g.number, bucket, 0) for g in groups for bucket in range(layout.cuts[g.number].buckets)
    ]


def slots(parts: Iterable[int], partitions: int) -> dict[int, int]:
    """Part → the number that Spark groups it by, so that its hash distributes parts evenly."""
    found: dict[int, int] = {}
    number = 0
    for place, part in enumerate(parts):
        while _hash(number) % partitions != place % partitions:
            number += 1
        found[part] = number
        number += 1
    return found


def _hash(value: int) -> int:
    """Spark's hash of a bigint: Murmur3 with the seed 42."""
    found = 42
    for half in (value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF):
        mixed = half * 0xCC9E2D51 & 0xFFFFFFFF
        mixed = (mixed << 15 | mixed >> 17) & 0xFFFFFFFF
        found ^= mixed * 0x1B873593 & 0xFFFFFFFF
        found = (found << 13 | found >> 19) & 0xFFFFFFFF
        found = (found * 5 + 0xE6546B64) & 0xFFFFFFFF
    found ^= 8
    found = (found ^ found >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    found = (found ^ found >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    found ^= found >> 16
    return found - 2**32 if found >= 2**31 else found

"""A detector's state as a value, and back.

Place:   `snapshot` and `restore` of detector.py; the pipeline and the deployment's journal keep the value.
Method:  one part per rule digest (digest.py), with its columns and the time of its deployment; columns are
         stored once, however many rules share them. A rule deployed later than others starts empty even if it
         could share their columns: rules of different epochs never do. Columns hold facts, so that a rule
         finds its past even if it now shares columns in another way; a running total holds what it adds up,
         by level if rules with several thresholds share it.
Why not: pickle: it ties a state to the code that wrote it and executes what it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from dotr.detect.columns import Column
from dotr.detect.digest import FormerColumn, without_repeats
from dotr.detect.network import Network
from dotr.detect.plan_step import PlanStep, RankedTotal
from dotr.detect.thresholds import CARRIED, Filtered, Measure, Threshold, threshold
from dotr.errors import EngineError
from dotr.events import Time
from dotr.program.positions import Position
from dotr.program.program import Program
from dotr.program.rules import Rule

VERSION = 5
"""The version of snapshots. It changes with the contents of columns and with the planning of rules.

In version 1 facts of a base had no size: it followed from their values. In version 2 parts of ON that bound a
fact's age kept facts where now there is a running total. In version 3 rules that differ in thresholds had a
running total each. In version 4 a total counted each event of a rule by itself.
"""


class Restored(Struct, frozen=True):
    """The result of a restore: rules that kept their state, that start empty, that no longer exist."""

    kept: tuple[str, ...]
    empty: tuple[str, ...]
    gone: tuple[str, ...]


def _positions(rule: Rule) -> list[Position]:
    return [conjunct.position for conjunct in rule.conjuncts]


def _level(step: PlanStep) -> list[Any] | None:
    """The threshold of a rule that reads a total by level."""
    if step.threshold is None or not isinstance(step.column.content, RankedTotal):
        return None
    measure = step.threshold.measure
    return [measure.place, measure.sign, measure.inclusive, step.threshold.limit]


def _of_level(saved: Sequence[Any] | None) -> Threshold | None:
    return None if saved is None else Threshold(Measure(*saved[:3]), saved[3])


def _plain(by: Filtered | None) -> list[Any] | None:
    return None if by is None else [by.operator, by.constant]


def _threshold(test: Sequence[Any] | None) -> Threshold | None:
    """The threshold of a position's facts: [operator, constant]; in version 1 [place, operator, constant]."""
    if test is None:
        return None
    place, operator, constant = test if len(test) == 3 else (CARRIED, *test)
    return threshold(place, operator, constant)


def _wanted(network: Network, step: PlanStep) -> Threshold | None:
    """What a position takes of facts that carry their size, or of a total by level."""
    if isinstance(step.column.content, RankedTotal):
        return step.threshold
    by = network.options.filtered.get(step.conjunct.position.stream)
    return None if by is None else by.threshold


def save(program: Program, network: Network, digests: Sequence[str], first: Time | None) -> dict[str, Any]:
    """Everything that later results depend on, as a JSON value; shares nothing with the network."""
    network.sweep_all()
    number = {column: i for i, column in enumerate(network.columns.values())}
    return {
        "version": VERSION,
        "first": first,
        "now": network.now,
        "epochs": 1 + max(network.epochs, default=0),
        "rules": {
            digest: {
                "rule": rule.name,
                "epoch": network.epochs[index],
                "dropped": network.dropped[index],
                "columns": [number[column] for column in network.columns_of[index]],
                "filters": [_plain(network.options.filtered.get(p.stream)) for p in _positions(rule)],
                "levels": [_level(step) for step in network.plans[index].steps],
                **_awaited(network, number, index),
                **_rows(network, index),
            }
            for index, (digest, rule) in enumerate(zip(digests, program.rules, strict=True))
        },
        "columns": [column.dump() for column in network.columns.values()],
    }


def _awaited(network: Network, number: Mapping[Column[Any], int], index: int) -> dict[str, Any]:
    """The facts that a rule's AFTER follows: they pass the column's threshold, if it has one."""
    column = network.awaited(network.plans[index])
    return {} if column is None else {"awaited": number[column]}


def _rows(network: Network, index: int) -> dict[str, Any]:
    """The partitions of a sequence."""
    bundle = network.sequences.get(index)
    if bundle is None or bundle.sequence is None:
        return {}
    return {"rows": bundle.sequence.dump(network.now)}


def load(
    program: Program,
    digests: Sequence[str],
    state: Mapping[str, Any],
    build: Callable[[Sequence[int], Time | None], Network],
) -> tuple[Network, Restored]:
    """A network, built for the epochs passed to `build`, with the state of unchanged rules.

    Raises EngineError D5010 for a snapshot of a version that is not read.
    """
    if state.get("version") not in (1, 2, 3, 4, VERSION):
        raise EngineError.of(
            "D5010",
            f"the detector's state has version {state.get('version')}, this dotr reads {VERSION}",
            hint="replay the stream from the start, or use the dotr that wrote it",
        )
    parts = state["rules"]
    network = build([parts[d]["epoch"] if d in parts else state["epochs"] for d in digests], state["now"])
    wanted: dict[Column[Any], dict[FormerColumn, None]] = {}
    for index, digest in enumerate(digests):
        if digest in parts:
            part = parts[digest]
            network.dropped[index] = part["dropped"]
            bundle = network.sequences.get(index)
            if bundle is not None and bundle.sequence is not None:
                bundle.sequence.load(part["rows"], state["now"])
            steps = network.plans[index].steps
            levels = part.get("levels", [None] * len(steps))  # since version 4
            of_rule = zip(
                network.columns_of[index], part["columns"], part["filters"], levels, steps, strict=True
            )
            for column, old, test, level, step in of_rule:
                past = FormerColumn(
                    old, _of_level(level) or _threshold(test), _wanted(network, step), level is not None
                )
                wanted.setdefault(column, {})[past] = None
            awaited = network.awaited(network.plans[index])
            if awaited is not None:
                by = network.options.filtered.get(program.rules[index].positions[0].stream)
                own = FormerColumn(part["awaited"], None, None if by is None else by.threshold)
                wanted.setdefault(awaited, {})[own] = None
    for column, pasts in wanted.items():
        needed = without_repeats(pasts, column.spec)
        column.load([past.facts(state["columns"][past.column], column.spec) for past in needed])
    named = [(rule.name, digest in parts) for rule, digest in zip(program.rules, digests, strict=True)]
    names = {name for name, _ in named}
    known_ = frozenset(digests)
    gone = [part["rule"] for digest, part in parts.items() if digest not in known_]
    return network, Restored(
        kept=tuple(name for name, known in named if known),
        empty=tuple(name for name, known in named if not known),
        gone=tuple(name for name in gone if name not in names),
    )


def joined(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One snapshot of the rules of several, of which at most one has LARS rules; rules of different ones
    share no columns.
    """
    rules: dict[str, Any] = {}
    columns: list[Any] = []
    epochs = 0
    for state in states:
        if state["version"] != VERSION:
            return dict(state)  # which `load` reports, or reads
        shift = len(columns)
        for digest, part in state["rules"].items():
            moved = {**part, "epoch": part["epoch"] + epochs, "columns": [n + shift for n in part["columns"]]}
            if "awaited" in part:
                moved["awaited"] = part["awaited"] + shift
            rules[digest] = moved
        columns += state["columns"]
        epochs += state["epochs"]
    times = {name: [t for state in states if (t := state[name]) is not None] for name in ("first", "now")}
    timelines = [state["timeline"] for state in states if "timeline" in state]
    return {
        "version": VERSION,
        "first": min(times["first"], default=None),
        "now": max(times["now"], default=None),
        "epochs": epochs,
        "rules": rules,
        "columns": columns,
        **({"timeline": timelines[0]} if timelines else {}),
    }

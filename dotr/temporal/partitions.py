"""How detection is cut, by key and by time: the plan as values and text, and the part of a fact.

Place:   an engine makes the plan (tesla/partitioning.py); a deployment holds it, `dotr plan` prints it,
         batch/ executes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from zlib import crc32

from msgspec import Struct

from dotr.events import Time, Values
from dotr.ir import Every, Program
from dotr.temporal.durations import duration_text
from dotr.temporal.equal_terms import equality_class

StreamKeys = Mapping[str, tuple[int, ...]]
"""Stream → the attributes (places in a fact's values) of its key, one for each part of the key; empty if all
of its facts go to every part.
"""


class By(StrEnum):
    """The user's choice: `--by`."""

    AUTO = "auto"
    KEY = "key"
    TIME = "time"


class RuleComponent(Struct, frozen=True):
    """Rules connected by chaining, in program order, and how they may be partitioned.

    `keys` None: not by key. `horizon` None: not by time. `gap`: if neither is possible, the width in µs of
    gaps beyond which it is cut; None: not there either. `reasons`: why, one sentence each.
    """

    rules: tuple[int, ...]
    keys: StreamKeys | None
    horizon: Time | None
    reasons: tuple[str, ...]
    gap: Time | None = None


class RuleComponentGroup(Struct, frozen=True):
    """Components that share their input; `streams` are the queries whose facts they need.

    `ticks` are the EVERY durations of its rules. `holds`: it includes the LARS rules.
    """

    number: int
    rules: tuple[int, ...]
    streams: frozenset[str]
    keys: StreamKeys | None
    horizon: Time | None
    ticks: frozenset[Time]
    holds: bool = False
    gap: Time | None = None

    @property
    def parallel(self) -> bool:
        return self.keys is not None or self.horizon is not None

    @property
    def copies(self) -> bool:
        """Whether every part gets all facts of some stream."""
        return self.keys is not None and () in self.keys.values()


class Partitioning(Struct, frozen=True):
    components: tuple[RuleComponent, ...]
    groups: tuple[RuleComponentGroup, ...]

    @property
    def gap(self) -> Time | None:
        """The narrowest gap of a log that cuts a group; None: no group is cut at gaps."""
        return min((group.gap for group in self.groups if group.gap is not None), default=None)


def describe(program: Program, plan: Partitioning) -> list[str]:
    """The choice and its reasons as text: one line per component, its reasons indented below."""
    lines: list[str] = []
    for component in plan.components:
        names = ", ".join(f"`{program.rules[i].name}`" for i in component.rules)
        lines.append(f"{names}: {strategy(program, component)}")
        lines += [f"    {reason}" for reason in component.reasons]
    return lines


def strategy(program: Program, component: RuleComponent) -> str:
    """`by key ?room and by time (overlap 5 min)`, `one task between gaps longer than 5 min`, `one task`."""
    cuts: list[str] = []
    if component.keys is not None:
        trigger = program.rules[component.rules[0]].trigger
        assert not isinstance(trigger, Every)
        names = " ".join(f"?{trigger.variables[place]}" for place in component.keys[trigger.stream])
        copied = ", ".join(f"`{stream}`" for stream, places in component.keys.items() if not places)
        cuts.append(f"by key {names}" + (f", each part with all of {copied}" if copied else ""))
    if component.horizon is not None:
        cuts.append(f"by time (overlap {duration_text(component.horizon)})")
    if cuts:
        return " and ".join(cuts)
    gap = component.gap
    return "one task" + (f" between gaps longer than {duration_text(gap)}" if gap is not None else "")


def sequential(program: Program, plan: Partitioning) -> list[str]:
    """Names of the rules that run in a single task per group, for a warning."""
    return [program.rules[i].name for group in plan.groups if not group.parallel for i in group.rules]


def bucket(values: Values, places: Sequence[int], buckets: int) -> int:
    """The part, of `buckets`, to which a fact belongs: equal for keys that `=` equates; any for unbound keys.

    A function of the values alone: it agrees between processes and machines.
    """
    text = "\n".join([_class_text(values[place]) for place in places])
    return crc32(text.encode()) % buckets


def _class_text(term: str | None) -> str:
    if term is None:
        return ""
    if term[0] != '"' or term[-1] != ">":
        return term
    found = equality_class(term)
    return repr(found + 0.0) if isinstance(found, float) else str(found)

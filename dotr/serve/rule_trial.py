"""Rules that are not in force, tried on what a deployment was fed lately.

Place:   `POST /v1/rules/try`; takes a proposal of service/deployment.py and what the deployment keeps of its
         messages, and compares by service/comparison.py, as `dotr compare` does over a log.
Method:  both versions run over the messages of the last hour and of as long before as any of their rules
         looks back; events of that hour count. What lasted when the first message came is stated before
         them, so that HOLD and ISTREAM begin as they were.
Bad input: D4189 nothing is kept, or nothing was fed · D4207 too many messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from dotr.errors import DataError, UsageError
from dotr.events import Clock, GraphOrMessage, Time, part_of
from dotr.explain.record import reach_of
from dotr.service.comparison import Comparing, Key, RunComparison, Version, compared_values
from dotr.service.deployment import Proposal
from dotr.service.history import FedDeployment

HOUR: Final = 3_600_000_000
MOST: Final = 200_000
"""Messages that are run."""

NAMES: Final = ("deployed", "tried")


class _Lately(RunComparison):
    """Events from a time on."""

    begin: Time = 0

    def at(self, time: Time, found: Sequence[Counter[Key]]) -> None:
        """Take the events of an instant, if it is not before."""
        if time >= self.begin:
            super().at(time, found)


def tried(folder: str, proposal: Proposal, length: Time = HOUR) -> dict[str, Any]:
    """How events of the last µs would differ: totals by rule, and the first differences, JSON-able. Raises
    DataError D4189, UsageError D4207 and what a run raises.
    """
    fed = FedDeployment(folder)
    end = fed.watermark
    if end is None or not fed.kept:
        missing = "nothing is closed yet" if end is None else "this deployment keeps no messages"
        raise DataError.of("D4189", missing, hint="keep: {messages: 7d} of the configuration keeps them")
    begin = end - length + 1
    background = tuple(fed.background)
    versions = [
        Version(NAMES[0], fed.program, background),
        Version(NAMES[1], proposal.compiled.program, tuple(proposal.compiled.background)),
    ]
    first = begin - max(reach_of(version.program) for version in versions)
    graphs = _graphs(fed, first, end)
    comparing = Comparing(versions, forgiving=True)
    comparing.found = _Lately(versions, begin=begin)
    found = comparing.run(graphs, _always(fed.clock))
    totals = [
        {
            "rule": rule,
            **dict(zip(NAMES, found.total(rule), strict=True)),
            "added": _sum(found.added, rule),
            "removed": _sum(found.removed, rule),
        }
        for rule in found.rules
    ]
    values = compared_values(found)
    times = {"since": _text(begin, fed.clock), "until": _text(end, fed.clock)}
    return {
        **times,
        "graphs": len(graphs),
        "refused": found.refused,
        "changed": found.changed,
        "rules": totals,
        "differences": [
            {name: value for name, value in one.items() if name != "version"} for one in values["differences"]
        ],
    }


def _graphs(fed: FedDeployment, first: Time, end: Time) -> list[tuple[Time, GraphOrMessage]]:
    """The messages from a time on, what lasted before them as the first one."""
    found: list[tuple[Time, GraphOrMessage]] = []
    before = False
    for message in fed.accepted():
        if message.time > end:
            break
        if message.time < first:
            before = True
            continue
        found.append((message.time, part_of(message.part)))
        if len(found) > MOST:
            hint = "a shorter time: ?last=10min"
            raise UsageError.of("D4207", f"more than {MOST:,} messages came in this time", hint=hint)
    lasts = fed.program.holds or fed.program.standing
    if lasts and (before or fed.kept.since is not None):
        try:
            stated, _ = fed.instant(first - 1)
        except UsageError:  # not kept any more: what is kept is all there is
            return found
        known = set(fed.background)
        lasting = [triple for triple in stated if triple not in known]
        if lasting:
            found.insert(0, (first - 1, lasting))
    return found


def _always(clock: Clock) -> Iterator[Clock]:
    while True:
        yield clock


def _sum(counts: dict[tuple[str, str], list[int]], rule: str) -> int:
    return sum(values[1] for (name, _), values in counts.items() if name == rule)


def _text(time: Time, clock: Clock) -> int | str:
    return int(clock.text(time)) if clock.integer else clock.text(time)

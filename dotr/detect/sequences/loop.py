"""An instant of a program with sequences, as a part of the detector's generated loop.

Place:   detect/detector.py writes it into its loop where sequences read queries only, rules read queries and
         sequences only, and nothing has a clock; others with sequences take the detector's agenda.
Method:  columns are filled; then sequences run, for nothing at the instant comes before them; then rules, and
         those that what sequences found wakes; then columns that exclude the instant itself are filled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dotr.codegen import CodeSource
from dotr.detect.network import Network, SequenceBundle
from dotr.events import Fact, RawMatch, Time
from dotr.program.positions import Position
from dotr.program.sequences import RowPattern

STREAMS = 16
"""The greatest number of queries in the loop: each takes a test at an instant."""


def in_loop(network: Network) -> bool:
    """Whether instants of these rules can be in the loop."""
    names = {one.name for one in network.sequences.values()}
    if network.clocks or network.late or len(network.queries) > STREAMS:
        return False
    return all(
        _of_query(position) or (position.stream in names and not isinstance(plan.rule.trigger, RowPattern))
        for plan in network.plans
        for position in plan.rule.positions
    )


def _of_query(position: Position) -> bool:
    return not position.within_instant and " " not in position.stream


def write_instant(
    source: CodeSource,
    network: Network,
    as_facts: Callable[[str, Sequence[RawMatch]], list[Fact]],
) -> None:
    """Write it: from the locals `time`, `facts`, `seen` to `out`, which is `idle` before."""
    streams = {name: network.streams[name] for name in network.queries if name in network.streams}
    for name in network.queries:
        stream = source.name("stream", name)
        with source.block(f"if {stream} in facts"):
            source.line(f"new = facts[{stream}]")
            source.line(f"n_{stream}[0] += len(new)")
            if name in streams:
                for column in streams[name].fills:
                    column.write_insert(source, "new")
    later = source.name("later", _Later(network, as_facts))
    source.line("woke = False")
    for bundle in network.sequences.values():
        _write_sequence(source, bundle, later)
    triggers = {plan.stream for plan in network.plans if not isinstance(plan.rule.trigger, RowPattern)}
    for name, wiring in streams.items():
        if name not in triggers:
            continue
        stream, awake = source.name("stream", name), source.name("awake", wiring.awake)
        with source.block(f"if {stream} in facts"):
            source.line(f"new = facts[{stream}]")
            with source.block(f"for _, bundle in {awake}"), source.block("if bundle.groups and new"):
                source.line("if out is idle: out = []")
                compile_ = source.name("compile", network.compile)
                source.line(f"(bundle.run or {compile_}(bundle))(time, new, out)")
    source.line(f"if woke: {later}.run(time, out)")
    for name, wiring in streams.items():
        if wiring.defers:
            stream = source.name("stream", name)
            with source.block(f"if {stream} in facts"):
                source.line(f"new = facts[{stream}]")
                for column in wiring.defers:
                    column.write_insert(source, "new")


def _write_sequence(source: CodeSource, bundle: SequenceBundle, later: str) -> None:
    sequence = bundle.sequence
    assert sequence is not None, "its network made it"
    own = source.name("sequence", sequence)
    found, queue = source.name("found", sequence.found), source.name("queue", sequence.queue)
    source.line(f"if time > {own}.sweep_at: {own}.sweep(time)")
    for number, base, least in bundle.sources:
        stream = source.name("stream", base)
        text = f"facts[{stream}]"
        if least is not None:
            text = f"[f[:4] for f in {text} if f[4] >= {source.name('least', least)}]"
        source.line(
            f"if {stream} in facts: {source.name('feed', sequence.feeds[number])}(time, {text}, {found})"
        )
    source.line(f"if {queue} and {queue}[0][0] <= time: {own}.end(time)")
    with source.block(f"if {found}"):
        source.line("if out is idle: out = []")
        source.line(f"new = {own}.take(time)")
        source.line("out += new; woke = True")
        source.line(f"{later}.enter({source.name('bundle', bundle)}, new)")


class _Later:
    """Owns what sequences found at an instant until the rules that it wakes have run."""

    def __init__(self, network: Network, as_facts: Callable[[str, Sequence[RawMatch]], list[Fact]]) -> None:
        self._network, self._as_facts = network, as_facts
        self._found: list[tuple[Any, list[Fact]]] = []

    def enter(self, bundle: SequenceBundle, matches: Sequence[RawMatch]) -> None:
        """Fill the columns of what a sequence found."""
        stream = self._network.streams[bundle.name]
        if stream.fills or stream.defers or stream.awake:
            facts = self._as_facts(bundle.name, matches)
            for column in stream.fills:
                column.insert(facts)
            self._found.append((stream, facts))

    def run(self, time: Time, out: list[RawMatch]) -> None:
        """Run the rules that it triggers, then fill columns that exclude the instant."""
        for stream, facts in self._found:
            for _, bundle in list(stream.awake):
                (bundle.run or self._network.compile(bundle))(time, facts, out)
        for stream, facts in self._found:
            for column in stream.defers:
                column.insert(facts)
        self._found.clear()

"""The loop over instants: facts of a batch in, matches per instant out; one generated function per network.

Place:   detector.py calls it for every batch, also for a batch of one instant.
Method:  which columns a stream fills, and whether it triggers rules, is fixed for a network. So the loop
         tests for each stream in turn and contains the code that fills its columns (columns.py): a fact needs
         no call. Awake rules are called (compile.py), once per instant. All facts of an instant fill columns
         first, then rules run, then the columns that exclude the instant itself are filled. Facts that
         trigger no rule may come with a later instant: they only fill columns, each with its own time. Rare
         cases are calls: an instant without a graph or out of order, a sweep, a new key.
         If there are many streams, testing for each takes longer than a call: then each set of streams that
         an instant has gets a function, written at its first use. Rules that depend on each other, on a
         clock or on what holds go to the detector.
Why not: the code of rules in the loop, too. Their call is a twentieth of the cost of an instant with a
         trigger, and rules that never wake would have to be compiled.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from dotr.codegen import CodeSource
from dotr.events import Fact, RawMatch, Time
from dotr.temporal.stages import Counts
from dotr.tesla.columns import Column
from dotr.tesla.network import NEVER, Network, StreamWiring

LOOKS = 8
"""The greatest number of tests for streams in the loop."""

SETS = 64
"""The greatest number of sets of streams that get a function; instants with others go to the detector."""

Instants: TypeAlias = Iterable[tuple[Time, object, Mapping[str, Sequence[Fact]], bool]]

BatchLoop: TypeAlias = Callable[[Instants, Counts, Counts, bool], Iterator[tuple[int, list[RawMatch]]]]
"""See `TeslaDetector.detected`."""


def waking(network: Network) -> frozenset[str] | None:
    """The streams whose facts trigger rules, if the loop takes facts of other streams with a later instant;
    None if it needs every instant by itself.
    """
    if network.clocks or network.chains or len(_looks(network)) > LOOKS:
        return None
    return frozenset(name for name, stream in network.streams.items() if stream.triggers)


def write_loop(
    network: Network,
    instant: Callable[[Time, Mapping[str, Sequence[Fact]], bool], list[RawMatch]],
    refused: Sequence[int],
    *,
    plain: bool,
) -> BatchLoop:
    """Write the loop. `instant` processes any instant; without `plain`, every one. `refused[0]`: the number
    of refused trigger facts.
    """
    source = CodeSource()
    looks = _looks(network) if plain else []
    many = _Sets(looks, network) if len(looks) > LOOKS else None
    if many is not None:
        looks = []
    net, nothing = source.name("network", network), source.name("nothing", [])
    counts: dict[str, str] = {}
    for look in looks:
        if look.first:
            stream = source.name("stream", look.name)
            counts[look.name] = f"n_{stream}"
            source.line(f"n_{stream} = seen[{stream}]")
    failed = f"{source.name('refused', refused)}[0]"

    source.line(f"idle = [] if every else {nothing}")
    source.line(f"now, was = {net}.now, {failed}")
    source.line(f"if now is None: now = {source.name('never', NEVER)}")
    with source.block("for place, (time, _, facts, graph) in enumerate(instants)"):
        depth = source.depth
        if many is not None:
            source.line(f"run = {source.name('sets', many)}[tuple(facts)] if graph and now < time else None")
        if looks or many is not None:
            with source.block("if graph and now < time" if many is None else "if run is not None"):
                source.line("out = idle")
                source.line(f"{net}.now = now = time")
                source.line(f"if time >= {net}.sweep_at: {net}.sweep(time)")
                for look in looks:
                    with source.block(f"if {source.name('stream', look.name)} in facts"):
                        source.line(f"new = facts[{source.name('stream', look.name)}]")
                        if look.first:
                            source.line(f"{counts[look.name]}[0] += len(new)")
                        look.write(source, network)
                if many is not None:
                    source.line("out = run(time, facts, idle, seen)")
            source.open("else")
        source.line("counted = seen if graph else quiet")
        source.line("for name in facts: counted[name][0] += len(facts[name])")
        source.line(f"out = {source.name('instant', instant)}(time, facts, graph)")
        source.line("now = time")
        source.resume(depth)
        with source.block(f"if out is not {nothing} and (out or every or {failed} != was)"):
            source.line(f"was = {failed}")
            source.line("yield place, out")
    return source.function("instants, seen, quiet, every")


class _Sets(dict[tuple[str, ...], Any]):
    """Owns a function for each set of streams that an instant has: (time, facts, no matches, counts by
    stream) → matches; None for a set beyond the first ones.
    """

    def __init__(self, looks: Sequence[_Look], network: Network) -> None:
        super().__init__()
        self._looks, self._network = looks, network

    def __missing__(self, names: tuple[str, ...]) -> Callable[..., list[RawMatch]] | None:
        if len(self) >= SETS:
            return None
        source = CodeSource()
        source.line("out = idle")
        for look in self._looks:
            if look.name in names:
                stream = source.name("stream", look.name)
                source.line(f"new = facts[{stream}]")
                if look.first:
                    source.line(f"seen[{stream}][0] += len(new)")
                look.write(source, self._network)
        source.line("return out")
        self[names] = run = source.function("time, facts, idle, seen")
        return run


class _Look(Struct):
    """What the loop does with a stream's facts after one test for it. `first`: the first such test."""

    name: str
    stream: StreamWiring
    first: bool
    fills: Sequence[Column[object]] = ()
    runs: bool = False
    defers: Sequence[Column[object]] = ()

    def write(self, source: CodeSource, network: Network) -> None:
        """Write it for the facts in the local `new`; matches go to `out`."""
        for column in self.fills:
            column.write_insert(source, "new")
        if self.first and self.stream.defers:
            with source.block("if new and new[0][0] < time"):
                source.line(f"old = new[:{source.name('bisect', bisect_left)}(new, (time,))]")
                for column in self.stream.defers:
                    column.write_insert(source, "old")
        if self.runs:
            awake = source.name("awake", self.stream.awake)
            with source.block(f"if {awake} and new"):
                source.line("if out is idle: out = []")
                with source.block(f"for _, bundle in {awake}"):
                    compile_ = source.name("compile", network.compile)
                    source.line(f"(bundle.run or {compile_}(bundle))(time, new, out)")
        if self.defers:
            with source.block("if new and new[0][0] < time"):
                source.line(f"new = new[{source.name('bisect', bisect_left)}(new, (time,)):]")
            for column in self.defers:
                column.write_insert(source, "new")


def _looks(network: Network) -> list[_Look]:
    """The steps of an instant, in order; adjacent steps of one stream are joined. Streams that no rule reads
    are included, to count their facts.
    """
    streams = {name: StreamWiring() for name in network.queries} | network.streams
    order = sorted(streams, key=lambda name: streams[name].triggers)
    looks: list[_Look] = []

    def look(name: str, first: bool) -> _Look:
        if not looks or looks[-1].name != name:
            looks.append(_Look(name, streams[name], first))
        return looks[-1]

    for name in order:
        look(name, True).fills = streams[name].fills
    for name in reversed(order):
        if streams[name].triggers:
            look(name, False).runs = True
    for name in order:
        if streams[name].defers:
            look(name, False).defers = streams[name].defers
    return looks

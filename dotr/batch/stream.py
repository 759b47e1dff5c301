"""A stream in numbered batches, each delivered at least once: what does not depend on Spark.

Place:   called by spark/ordered_frames.py for the engine of a stream in order (OrderedEngine), by
         spark/distributed.py for the parts of a distributed stream (LiveSlot), and by spark/stream_frames.py
         for the folders of events and state (StreamFolder).
Method:  in order: the engine of `dotr run` takes the batches in order, and its state is one bytes value. The
         files of events are named by the number of the batch, so that a repeated batch replaces its own; in
         the order of their names they concatenate to what `dotr run` prints.
         By part: a part has a detector of its group's rules, as in work.py, which stays alive from batch to
         batch and is fed with all rows of an instant when the instant is closed. After a batch its state is
         written as one bytes value, with a token; a process that holds the live part with the same token need
         not read it. Python's marshal is the codec: it holds plain values only, executes nothing, and is
         several times as fast as JSON; its version is fixed and recorded in the head. Parts of one bucket of
         keys have one state, whatever their groups, so that other rules can go on from it.
         Where something lasts graphs are divided instead of facts (lasting/keys.py): a part is a pipeline of
         all rules, with all of the background, fed with the triples of its keys; of the facts that it finds
         it drops those of other keys.
         The mode: features that need all of an instant, in order, run in order: what lasts and has no key,
         late graphs that are kept or refused, dead letters. All others can be distributed, LARS rules too,
         whose timelines all begin with the stream; this pays with enough cores: each graph goes through Spark
         twice more. `dotr stream` and `dotr.spark.stream` report the choice and its reasons.
Why not: append to one file: the lines that a killed attempt appended would have to be found and cut off.
         A row of state for every fact: Spark's state protocol handles 10,000 of them per second.
Bad input: D4123 an unknown mode · D4311 what cannot be distributed · D5001 a folder of other events · D5220 a
         checkpoint of other rules or options · D5221 a damaged or missing state, or one of another version.
"""

from __future__ import annotations

import json
import marshal
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any

from msgspec import Struct

from dotr.batch.choices import AUTO, DISTRIBUTED, MODES, ORDERED
from dotr.batch.facts import MARK, Cut, FactRow, Layout
from dotr.batch.work import Detecting, Shipped, split_lines
from dotr.core.deployment import Deployment
from dotr.core.instants import ahead
from dotr.core.pipeline import Pipeline, PipelineObserver, SkippedTriggers
from dotr.detect.partitioning import By, Partitioning, bucket, streams_of
from dotr.detect.state import joined
from dotr.errors import NOT_WRITTEN, DataError, Diagnostic, DotrError, EngineError, RefusedError, UsageError
from dotr.events import Clock, Composite, Fact, GraphOrMessage, LabelledGraph, RawMatch, Time
from dotr.io.errors import dead_letter
from dotr.io.events import ENDINGS, late_line
from dotr.io.outputs import unwritable, write_whole
from dotr.lasting.keys import stated
from dotr.program import Tick
from dotr.rdf.terms import Triple

VERSION = 3
"""The version of a checkpoint's content. In version 1 parts of keys were by group, in versions 1 and 2 the
engine of a stream in order was the driver's.
"""

META = "dotr-stream.json"


class StreamOptions(Struct, frozen=True):
    """How a stream is read and written; fixed for the lifetime of a checkpoint.

    `late`: "drop", "keep" (in `_late`) or "fail"; `on_error`: "fail", "skip" or "keep" (in `_letters`).
    `change_rules`: a checkpoint of other rules goes on with those that are given.
    """

    format_: str = "jsonl"
    lateness: Time = 0
    late: str = "drop"
    on_error: str = "fail"
    max_jump: Time | None = None
    change_rules: bool = False


class Taken(Struct):
    """The result of one batch."""

    number: int
    graphs: int = 0
    events: int = 0
    late: int = 0
    refused: int = 0


class StreamFolder:
    """Owns the folder of a stream's events, if they go to one, and `states`, that of its state.

    `more`: content of the checkpoint beside rules and options; earlier values take precedence. Raises
    RefusedError D5001 for a folder of events that is not this checkpoint's, D5220; EngineError D5221.
    """

    def __init__(
        self,
        deployment: Deployment,
        out: str | None,
        states: str,
        options: StreamOptions,
        mode: str = ORDERED,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.out, self.states = None if out is None else Path(out), Path(states)
        self._changing = options.change_rules
        self._ending = ENDINGS[options.format_]
        meta = meta_of(deployment, options, mode)
        self.noted: dict[str, Any] = dict(more or {})
        """The checkpoint's content beside rules and options."""
        self._claim(meta)

    def _claim(self, meta: dict[str, Any]) -> None:
        known = _read_json(self.states / META)
        other = False
        if known is not None:
            other = compare(known, meta, str(self.states), self._changing)
            self.noted = known.get("noted", {})
        try:
            self.states.mkdir(parents=True, exist_ok=True)
            if self.out is not None:
                self._own(self.out, is_new=known is None)
            if known is None or other:
                _write(self.states / META, json.dumps({**meta, "noted": self.noted}).encode())
        except OSError as error:
            raise unwritable(str(self.out or self.states), error) from None

    def _own(self, out: Path, is_new: bool) -> None:
        """Claim the folder of the events. Raises RefusedError D5001, EngineError D5221."""
        out.mkdir(parents=True, exist_ok=True)
        owner = {"checkpoint": os.path.abspath(self.states)}
        owned = _read_json(out / f"_{META}") == owner
        if owned and is_new:
            raise damaged(str(self.states), f"no {META}, but `{out}` has its events")
        if not owned:
            if any(out.iterdir()):
                raise RefusedError.of(
                    "D5001",
                    f"`{out}` exists",
                    place=str(out),
                    notes=("it has no events of the stream with this checkpoint",),
                    hint="give another name",
                )
            _write(out / f"_{META}", json.dumps(owner).encode())

    def file(self, number: int) -> Path:
        """That of a batch's events; the files sort in the order of batches."""
        assert self.out is not None
        return self.out / f"{number:012}.{self._ending}"

    def kept(self, folder: str, number: int) -> Path:
        """That of a batch's late graphs or dead letters, in a folder beside the events."""
        assert self.out is not None
        return self.out / folder / f"{number:012}.jsonl"

    def write_state(self, name: str, content: bytes) -> None:
        _write(self.states / name, content)


def known_mode(states: str) -> str | None:
    """The mode of an existing checkpoint, or None. Raises EngineError D5221."""
    known = _read_json(Path(states) / META)
    return None if known is None else known.get("mode", ORDERED)


def known_notes(states: str) -> Mapping[str, Any]:
    """An existing checkpoint's content beside rules and options; empty without one."""
    known = _read_json(Path(states) / META)
    return {} if known is None else known.get("noted", {})


def meta_of(deployment: Deployment, options: StreamOptions, mode: str) -> dict[str, Any]:
    """What a checkpoint belongs to, as a JSON value."""
    program = deployment.program
    background = blake2b(digest_size=16)
    for triple in sorted(deployment.background):
        background.update(f"{' '.join(triple)}\n".encode())
    return {
        "version": VERSION,
        "rules": {r.name: d for r, d in zip(program.rules, deployment.digests(), strict=True)},
        "background": background.hexdigest(),
        "format": options.format_,
        "lateness": options.lateness,
        "mode": mode,
        "keys": keys_of_rules(deployment) if mode == DISTRIBUTED else {},
        "divided": divided_by(deployment) if mode == DISTRIBUTED else None,
    }


def _write(path: Path, content: bytes) -> None:
    """A file, complete or absent."""
    write_whole(path, [content])


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise damaged(str(path), str(error)) from None


def compare(known: dict[str, Any], meta: dict[str, Any], place: str, changing: bool = False) -> bool:
    """Whether a checkpoint, which begins with `known`, goes on with other rules or another background.

    `changing`: that is allowed. Raises RefusedError D5220 for everything else, EngineError D5221.
    """
    if known.get("version") != VERSION:
        raise damaged(place, f"version {known.get('version')!r}; this release of dotr reads {VERSION}")
    rules, before = meta["rules"], known["rules"]
    kept = [name for name in rules if before.get(name) == rules[name]]
    changes = [
        *(f"rule `{name}` is new" for name in rules if name not in before),
        *(f"rule `{name}` is gone" for name in before if name not in rules),
        *(f"rule `{name}` has changed" for name in rules if name in before and name not in kept),
    ]
    if known["background"] != meta["background"]:
        changes.append("the background has changed")
    others = [
        f"the {what} has changed" for what in ("format", "lateness") if known.get(what) != meta.get(what)
    ]
    clocks = known.get("clock"), meta.get("clock")
    if None not in clocks and clocks[0] != clocks[1]:  # None: before the first graph
        others.append("the clock has changed")
    if known["mode"] != meta["mode"]:
        others.append(f"the mode is {known['mode']}, not {meta['mode']}")
    cores = known.get("cores"), meta.get("cores")
    if cores[0] != cores[1]:
        others.append(f"it has the parts of parallelism {cores[0]}, not {cores[1]}")
    moved = [name for name in kept if known["keys"].get(name) != meta["keys"].get(name)]
    others += [f"rule `{name}` is partitioned by another key beside the new rules" for name in moved]
    divided = known.get("divided"), meta["divided"]
    if divided[0] != divided[1]:
        other = "what lasts is divided by other keys beside the new rules"
        if None in divided:
            other = f"{'something' if divided[0] is None else 'nothing'} lasts under the new rules"
        others.append(other)
    if not others and (changing or not changes):
        return bool(changes)
    hint = "start again with another --checkpoint and --out"
    if not others:
        hint = (
            "--change-rules (in Python change_rules=True) goes on: rules that are the same keep their state, "
            f"others start without one; or {hint}"
        )
    elif cores[0] != cores[1]:
        hint = f"--parallelism {cores[0]} (in Python parallelism={cores[0]}), or {hint}"
    elif not moved and divided[0] == divided[1]:
        hint = f"give the options of before, or {hint}"
    raise RefusedError.of(
        "D5220",
        "the checkpoint belongs to other rules or options",
        place=place,
        notes=tuple(changes + others),
        hint=hint,
    )


def damaged(place: str, what: str) -> EngineError:
    """D5221."""
    return EngineError.of(
        "D5221",
        "the state of the stream cannot be read",
        place=place,
        label=what,
        hint="start again with another --checkpoint and --out",
    )


def other_clock() -> DataError:
    """D2102, for graphs of a batch whose place is unknown."""
    return DataError.of("D2102", "this batch writes time differently from those before", hint="--time-unit")


class OrderedEngine:
    """Owns the engine of a stream in order. `taken` counts since `number_batch`; `late` and `letters` are the
    lines of that batch, if they are kept.
    """

    def __init__(self, deployment: Deployment, options: StreamOptions) -> None:
        self._options = options
        self.taken = Taken(-1)
        self.late: list[str] = []
        self.letters: list[str] = []
        refused = None if options.on_error == "fail" else self._refused
        self.pipeline = Pipeline(
            deployment,
            PipelineObserver(late=self._late, refused=refused),
            lateness=options.lateness,
            max_jump=options.max_jump,
        )

    def number_batch(self, number: int) -> None:
        """A batch begins."""
        self.taken, self.late, self.letters = Taken(number), [], []

    def take(
        self, clock: Clock | None, rows: Iterable[tuple[Time, list[Triple]]]
    ) -> Iterator[Sequence[Composite]]:
        """Graphs in order of time; then the events of the instants that they close. Without graphs `clock`
        may be None. Raises DataError for graphs in error under the policy `fail`, D2102 for another kind of
        time.
        """
        known = self.pipeline.clock
        if known is None and clock is not None:
            self.pipeline.begin(clock)
        elif clock is not None and known != clock:
            raise other_clock()
        for time, graph in rows:
            self.taken.graphs += 1
            self.pipeline.take(time, graph)
        return self._drained()

    def close(self) -> Iterator[Sequence[Composite]]:
        """Close the last instant."""
        self.pipeline.close_all()
        return self._drained()

    def _drained(self) -> Iterator[Sequence[Composite]]:
        for events in self.pipeline.drain():
            self.taken.events += len(events)
            yield events

    def snapshot(self) -> bytes:
        """Everything that the next batch depends on."""
        return zlib.compress(json.dumps(self.pipeline.snapshot()).encode(), 1)

    def restore(self, content: bytes, place: str) -> None:
        """Continue where a snapshot was taken, by these rules or others; the engine is new. Raises
        EngineError D5221.
        """
        try:
            self.pipeline.restore(json.loads(zlib.decompress(content)))
        except (zlib.error, *NOT_WRITTEN) as error:
            raise damaged(place, str(error)) from None

    def _late(self, time: Time, part: GraphOrMessage) -> None:
        clock = self.pipeline.clock
        assert clock is not None
        if self._options.late == "fail":
            raise DataError.of(
                "D2301",
                f"a graph is for {clock.text(time)}, an instant that is already closed",
                hint="allow for disorder with a lateness, or drop such graphs",
            )
        self.taken.late += 1
        if self._options.late == "keep":
            self.late.append(late_line(time, part, clock))

    def _refused(self, time: Time, parts: Sequence[GraphOrMessage], error: DotrError) -> None:
        clock = self.pipeline.clock
        assert clock is not None
        self.taken.refused += len(parts)
        if self._options.on_error == "keep":
            for part in parts:
                more = json.loads(late_line(time, part, clock))
                self.letters.append(dead_letter(error, None, "", more))


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
    if asked not in MODES:
        raise UsageError.of("D4123", f"mode cannot be `{asked}`", hint=f"one of {', '.join(MODES)}")
    against = obstacles(deployment, options)
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
    if deployment.program.lasting:
        return Choice(
            ORDERED,
            ("where something lasts each part holds the background (`--mode distributed` divides by key)",),
        )
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


def obstacles(deployment: Deployment, options: StreamOptions) -> list[str]:
    """Why a stream cannot be distributed; empty if it can. Where something lasts, the background is read."""
    found, program = [], deployment.program
    if program.lasting and isinstance(deployment.divided, str):
        found.append(f"what lasts (HOLD, changes, effects) has no key: {deployment.divided}")
    if options.late != "drop":
        found.append(f"late graphs are only counted there, and `--late {options.late}` needs them")
    if options.on_error == "keep":
        found.append("dead letters are kept in order, by one engine")
    ticking = any(isinstance(rule.trigger, Tick) for rule in program.rules)
    if options.on_error == "skip" and (ticking or program.lars.rules):
        found.append("EVERY and LARS begin with the first instant not in error, which one engine knows")
    if options.max_jump is not None:
        found.append("--max-jump compares graphs in order of arrival")
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        found.append("Spark's states need the package protobuf: pip install protobuf")
    return found


def stream_plan(deployment: Deployment) -> Partitioning:
    """How a stream is divided by key. Raises UsageError D4311 for what lasts without one."""
    if not deployment.program.lasting:
        return deployment.partitioning(By.KEY)
    group = deployment.divided
    if isinstance(group, str):
        raise _cannot([group])
    return Partitioning((), (group,))


def divided_by(deployment: Deployment) -> list[list[Any]] | None:
    """(relation, place of its key) of what may be stated or ended, as a JSON value; None if nothing lasts,
    whose parts have another state.
    """
    program = deployment.program
    if not program.lasting:
        return None
    relations = stream_plan(deployment).groups[0].relations or {}
    kept = stated(program)
    return [list(pair) for pair in sorted(relations.items()) if kept is None or pair[0] in kept]


def stream_layout(deployment: Deployment, cores: int) -> Layout:
    """The parts of a stream: buckets of keys if any, never slices of time."""
    plan = stream_plan(deployment)
    cuts = (Cut(max(1, PARTS * cores) if group.keys is not None else 1) for group in plan.groups)
    return Layout(plan, tuple(cuts), _END)


def places(layout: Layout, cores: int) -> dict[int, list[int]]:
    """Place → its parts: a place for each bucket of keys, with that of every group, and one for all groups
    without keys. The places do not depend on the rules, so that a checkpoint can go on with others.
    """
    buckets = max(1, PARTS * cores)
    found: dict[int, list[int]] = {place: [] for place in range(buckets + 1)}
    for group in layout.plan.groups:
        if group.keys is None:
            found[buckets].append(layout.part(group.number, 0, 0))
        else:
            for bucket in range(buckets):
                found[bucket].append(layout.part(group.number, bucket, 0))
    return found


def keys_of_rules(deployment: Deployment) -> dict[str, str]:
    """Rule → the keys of its streams, as text; "" for a rule without one."""
    found, program = {}, deployment.program
    for group in stream_plan(deployment).groups:
        for rule in (program.rules[i] for i in group.rules):
            names = {*streams_of(rule), *(position.stream for position in rule.positions)}
            keys = {} if group.keys is None else {n: group.keys[n] for n in sorted(names) if n in group.keys}
            found[rule.name] = str(sorted(keys.items())) if keys else ""
    return found


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


_HEAD = b"dotr part 2\n"
_MARSHAL = 4
"""The codec's version: every Python since 3.4 reads it."""

_NEVER: Time = 2**61
"""From here on there are no ticks."""

KEPT = 256
"""The limit of parts that a process keeps alive."""

Row = tuple[Time, str]


class LivePart:
    """Owns the detector of one part, and its current time. Rows of a time come once, in any order within a
    batch; batches come in time order.
    """

    def __init__(
        self, detecting: Detecting, layout: Layout, clock: Clock, number: int, digests: Collection[str]
    ) -> None:
        group, self._bucket, _ = layout.owner(number)
        self._group, self._digests = layout.plan.groups[group], frozenset(digests)
        self._detecting, self._clock = detecting, clock
        self._rules = detecting.deployments[group].program.rules
        self._emitter = detecting.emitters[group]
        self._idle_ticks = detecting.idle_ticks[group]
        self._ahead = ahead(self._idle_ticks)
        self._left_out = SkippedTriggers(None, _unsaid)
        self._detector = detecting.deployments[group].detector(clock, self._left_out.take)
        self._tick_facts = detecting.tick_facts_of(self._group, self._bucket)
        self._done: Time | None = None  # ticks and instants up to here have run; None before the first
        self._last_graph_time: Time | None = None  # the last instant with a row
        self._seen: Time | None = None  # the last known instant of the stream
        self._is_new = True  # no instant of the stream is known
        self._ticking = self._group.ticking or self._group.holds

    def take(self, rows: Iterable[Row], bound: Time | None) -> list[Composite]:
        """The events of a batch's rows, in order; then of the ticks up to and including `bound`, None: up to
        the last instant that the rows mention.

        Raises ProgramError D4010, DataError D2107; then the part must not be used again.
        """
        events: list[Composite] = []
        plain: list[Row] = []
        for time, text in rows:
            if time == MARK:
                first, last = map(int, text.split(" "))
                self._done = first - 1 if self._done is None else min(self._done, first - 1)
                self._seen = last if self._seen is None else max(self._seen, last)
            else:
                plain.append((time, text))
        plain.sort(key=itemgetter(0))
        read, ticks = self._detecting.reader.read, self._ticking
        if self._group.holds and self._is_new and self._done is not None:
            first, self._is_new = self._done + 1, False
            if not plain or first < plain[0][0]:  # a timeline begins with the stream, whatever its keys
                self._run(first, {}, True, events)
                self._done = self._last_graph_time = first
        for time, text in plain:
            if ticks:
                self._tick(time, events)
            self._run(time, read(text, time), True, events)
            self._done = self._last_graph_time = time
        until = bound
        if until is None and self._seen is not None:
            until = self._detector.covering(self._seen)
        if ticks and until is not None and self._done is not None and until > self._done:
            self._tick(until + 1, events)
            self._done = until
        return events

    def _tick(self, bound: Time, events: list[Composite]) -> None:
        """Run the ticks before `bound` that can matter."""
        done = self._done
        if done is None:
            return
        error = self._ahead.ticked(
            done, done if self._last_graph_time is None else self._last_graph_time, bound, self._clock
        )
        if error is not None:
            raise error
        silent = self._detecting.idle(
            self._group, self._detector, done, self._last_graph_time, bound, self._tick_facts
        )
        for time, _, facts, graph in silent:
            self._run(time, facts, graph, events)

    def _run(
        self, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool, events: list[Composite]
    ) -> None:
        matches: Sequence[RawMatch] = self._detector.detect(time, facts, graph)
        if self._left_out.facts:
            failed = self._left_out.settle(time, self._rules, self._clock)
            if failed is not None:
                raise failed
        if matches := self._emitter.public(matches):
            events += self._emitter.composites(matches)

    def due(self) -> Time | None:
        """The next tick that matters although no graph comes, or None."""
        if self._done is None or not self._ticking:
            return None
        found = self._detector.next_idle(self._idle_ticks, self._done, self._last_graph_time, _NEVER)
        return None if found is None or found >= _NEVER // 2 else found

    def sizes(self) -> dict[str, int]:
        """Rule → how many facts are stored for it."""
        return self._detector.sizes()

    @property
    def seen(self) -> Time | None:
        """The last instant of the stream that a batch mentioned."""
        return self._seen

    def snapshot(self) -> list[Any]:
        """Everything that the next batch depends on, as plain values."""
        return [[self._done, self._last_graph_time, self._seen], self._detector.snapshot()]

    def restore(self, known: Iterable[Sequence[Any]], closed: Time | None) -> None:
        """Continue from snapshots of parts with the same keys, up to `closed`: rules that are among theirs
        keep their state. The part is new.
        """
        snapshots = list(known)
        own = [one for one in snapshots if not self._digests.isdisjoint(one[1]["rules"])]
        if own:
            times = zip(*(one[0] for one in own), strict=True)
            self._done, self._last_graph_time, self._seen = map(_latest, times)
            self._is_new = self._done is None
            self._detector.restore(own[0][1] if len(own) == 1 else joined([one[1] for one in own]))
            same = len(own) == 1 and self._digests == own[0][1]["rules"].keys()
        elif same := self._group.holds:
            return  # a timeline that begins
        else:
            self._seen = _latest(one[0][2] for one in snapshots)
        if not same:  # for rules that are new, nothing before was
            self._done = _latest([self._done, closed])


class LastingPart:
    """Owns the run of one part where something lasts, over the graphs of its keys. Rows as in LivePart, with
    triples.
    """

    def __init__(self, deployment: Deployment, layout: Layout, clock: Clock, number: int) -> None:
        group, self._bucket, _ = layout.owner(number)
        self._buckets = layout.cuts[group].buckets
        keys = layout.plan.groups[group].keys
        assert keys is not None, "what lasts is divided"
        self._keys = keys
        self._pipeline = Pipeline(deployment, PipelineObserver(facts=self._own))
        self._pipeline.begin(clock)
        self._seen: Time | None = None  # the last known instant of the stream

    def _own(self, _time: Time, facts: Mapping[str, Sequence[Fact]], _graph: bool) -> dict[str, list[Fact]]:
        """The facts of the part's keys, of the streams that rules read."""
        keys, own, buckets = self._keys, self._bucket, self._buckets
        found = {
            name: [fact for fact in some if bucket(fact[1], keys[name], buckets) == own]
            for name, some in facts.items()
            if name in keys
        }
        return {name: some for name, some in found.items() if some}

    def take(self, rows: Iterable[Row], bound: Time | None) -> list[Composite]:
        """The events of a batch's rows, in order; then of what ends up to and including `bound`, None: up to
        the last instant that the rows mention.

        Raises ProgramError, DataError D2107; then the part must not be used again.
        """
        pipeline = self._pipeline
        plain: list[Row] = []
        for time, text in rows:
            if time == MARK:
                self._seen = _latest([self._seen, int(text.partition(" ")[2])])
            else:
                plain.append((time, text))
        plain.sort(key=itemgetter(0))
        for time, text in plain:
            pipeline.accept(time, LabelledGraph(split_lines(text)))
        until = self._seen if bound is None else bound
        if until is not None:
            pipeline.close_up_to(until)
        return [event for events in pipeline.drain() for event in events]

    def due(self) -> Time | None:
        """The next instant that matters although no graph comes, or None."""
        found = self._pipeline.due(_NEVER)
        return None if found is None or found >= _NEVER // 2 else found

    def sizes(self) -> dict[str, int]:
        """Rule → how many facts are stored for it."""
        return self._pipeline.sizes()

    @property
    def seen(self) -> Time | None:
        """The last instant of the stream that a batch mentioned."""
        return self._seen

    def snapshot(self) -> list[Any]:
        """Everything that the next batch depends on, as plain values."""
        return [self._seen, self._pipeline.snapshot()]

    def restore(self, known: Sequence[Sequence[Any]], _closed: Time | None) -> None:
        """Continue from the one snapshot of a part with the same keys: rules that are among its keep their
        state. The part is new.
        """
        ((self._seen, state),) = known
        self._pipeline.restore(state)


def _latest(times: Iterable[Time | None]) -> Time | None:
    return max((time for time in times if time is not None), default=None)


class LiveSlot:
    """Owns the parts of one place: of a bucket of keys those of all groups with keys; or of all others."""

    def __init__(self, parts: Mapping[int, LivePart | LastingPart]) -> None:
        self._parts = parts
        self._closed: Time | None = None  # ticks and instants up to here have run

    def take(self, rows: Mapping[int, Iterable[Row]], bound: Time | None) -> Iterator[Composite]:
        """The events of a batch, part by part; see LivePart. It is read to the end before the next call."""
        for number, part in self._parts.items():
            yield from part.take(rows.get(number, ()), bound)
        seen = _latest(part.seen for part in self._parts.values()) if bound is None else bound
        self._closed = _latest([self._closed, seen])

    def due(self) -> Time | None:
        """The next tick that matters although no graph comes, or None."""
        return min((due for part in self._parts.values() if (due := part.due()) is not None), default=None)

    def sizes(self) -> dict[str, int]:
        """Rule → how many facts are stored for it."""
        return merged(part.sizes() for part in self._parts.values())

    def snapshot(self) -> bytes:
        """Everything that the next batch depends on."""
        states = [part.snapshot() for part in self._parts.values()]
        return _HEAD + marshal.dumps([self._closed, states], _MARSHAL)

    def restore(self, content: bytes) -> None:
        """Continue where a snapshot was taken, by these rules or others; all parts are new. Raises
        EngineError D5221.
        """
        if not content.startswith(_HEAD):
            raise damaged("", f"a part begins with {content[: len(_HEAD)]!r}, not with {_HEAD!r}")
        try:
            self._closed, states = marshal.loads(content[len(_HEAD) :])  # noqa: S302  # plain values; nothing is run
        except (EOFError, ValueError, TypeError) as error:
            raise damaged("", f"a part is truncated: {error}") from None
        for part in self._parts.values():
            part.restore(states, self._closed)


def _unsaid(_finding: Diagnostic) -> None:
    """The engine's warnings are not reported here."""


class _Held(Struct):
    """A live slot, and the token of its state."""

    token: int
    slot: LiveSlot


class LiveSlots:
    """Owns the live slots of this process for one stream, by place; `cores` are those of its layout."""

    def __init__(self, shipped: Shipped, cores: int) -> None:
        self._worker = worker = shipped.worker()
        self._layout, self._clock = worker.job.layout, worker.job.clock
        self._detecting = worker.detecting() if worker.graphs is None else None
        self._places = places(self._layout, cores)
        self._digests = [part.digests() for part in self._detecting.deployments] if self._detecting else []
        self._held: dict[int, _Held] = {}

    def taken(self, place: int, token: int | None) -> LiveSlot | None:
        """Take out the slot with the state of `token`; the caller returns it on success. A new slot if there
        is no state; None if the state must be restored first.
        """
        held = self._held.pop(place, None)
        if token is None:
            return self.fresh(place)
        return held.slot if held is not None and held.token == token else None

    def fresh(self, place: int) -> LiveSlot:
        return LiveSlot({part: self.part(part) for part in self._places[place]})

    def part(self, number: int) -> LivePart | LastingPart:
        """A new part."""
        if self._detecting is None:
            return LastingPart(self._worker.deployment, self._layout, self._clock, number)
        digests = self._digests[self._layout.owner(number)[0]]
        return LivePart(self._detecting, self._layout, self._clock, number, digests)

    def give_back(self, place: int, token: int, slot: LiveSlot) -> None:
        while len(self._held) >= KEPT:
            del self._held[next(iter(self._held))]
        self._held[place] = _Held(token, slot)


_STREAMS: dict[str, LiveSlots] = {}
_STREAMS_KEPT = 2


def live_slots(stream: str, shipped: Shipped, cores: int) -> LiveSlots:
    """The live slots of this process for a stream, which has a unique name."""
    name = f"{stream} {shipped.key}"
    found = _STREAMS.pop(name, None)
    if found is None:
        while len(_STREAMS) >= _STREAMS_KEPT:
            del _STREAMS[next(iter(_STREAMS))]
        found = LiveSlots(shipped, cores)
    _STREAMS[name] = found
    return found


def marks_of(parts: Iterable[int], first: Time, last: Time) -> list[FactRow]:
    """A row for every part with the first and last instant of a task's graphs, so that every part is called
    with every batch, runs ticks without other rows, and reports the size of its state.
    """
    text = f"{first} {last}"
    return [(part, MARK, text) for part in parts]


def merged(sizes: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Rule → how many facts all parts store for it."""
    total: dict[str, int] = {}
    for found in sizes:
        for rule, count in found.items():
            total[rule] = total.get(rule, 0) + count
    return total

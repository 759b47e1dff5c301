"""A small deployment whose rules remember, consume, aggregate, chain and tick; and a stream for it.

Place:   shared by the tests of the journal, of feeding, and of being killed.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dotr.core.pipeline import PipelineObserver
from dotr.events import Clock
from dotr.io.decode.rdf import split_triples
from dotr.io.events import formatter
from dotr.io.feeds import FileSource, GraphSource
from dotr.io.sources import SourceOptions
from dotr.service.database import Disk
from dotr.service.deployment import commit_proposal, deployed_program, plan_of, propose, resumed
from dotr.service.feed import CheckpointPolicy, Feed
from dotr.service.journal import Journal, planned
from dotr.service.outputs import AppendingFile, FileSink, Sink

RULES = """
PREFIX : <urn:x:>
RULE Fire
DEFINE { dotr_f a :Fire ; :in ?room ; :peak ?v }
FROM Smoke := { SELECT ?room { ?o a :Smoke ; :room ?room } }
AND LAST Hot := { SELECT ?room ?v { ?o :celsius ?v ; :room ?room FILTER(?v > 60) } }
    WITHIN 20 s FROM Smoke ON Hot.?room = Smoke.?room
WITH ?room := Smoke.?room, ?v := Hot.?v
CONSUMING Hot

RULE Mean
DEFINE { dotr_m :mean ?mean ; :at ?room }
FROM Smoke2 := { SELECT ?room { ?o a :Smoke ; :room ?room } }
AND AVG(Any.?v) AS ?mean OVER Any := { SELECT ?room ?v { ?o :celsius ?v ; :room ?room } }
    WITHIN 30 s FROM Smoke2 ON Any.?room = Smoke2.?room
WITH ?mean := ?mean, ?room := Smoke2.?room

RULE Again
DEFINE { dotr_a :again ?room }
FROM Fire
AND EACH Earlier := Fire WITHIN 60 s BEFORE Fire ON Earlier.?room = Fire.?room
WITH ?room := Fire.?room

RULE Quiet
DEFINE { dotr_q :quiet ?t }
FROM EVERY 25 s AS Tick
AND NOT S := { SELECT ?o { ?o a :Smoke } } WITHIN 10 s FROM Tick
WITH ?t := Tick.time
"""

HOLDING = """
PREFIX : <urn:x:>
LARS <holds.lars>
QUERY smoke := { SELECT ?room { ?o a :Smoke ; :room ?room } }
QUERY heat := { SELECT ?room ?v { ?o :celsius ?v ; :room ?room } }

RULE Burning
DEFINE { dotr_b a :Burning ; :in ?room }
FROM ISTREAM burning
WITH ?room := burning.?room

RULE Burnt
DEFINE { dotr_o a :Over ; :in ?room ; :since ?since }
FROM Ended := DSTREAM burning
AND LAST Burning WITHIN 1 h BEFORE Ended ON Burning.?room = Ended.?room
WITH ?room := Ended.?room, ?since := Burning.time

RULE Busy
DEFINE { dotr_y :busy ?n ; :at ?room }
FROM ISTREAM busy
WITH ?room := busy.?room, ?n := busy.?n

RULE Calm
DEFINE { dotr_c a :Calm ; :at ?room }
FROM DSTREAM calm
WITH ?room := calm.?room
"""

HELD = """STEP 1 s
hot(?room) :- heat(?room, ?v) WITHIN 20 s, FILTER(?v > 60) .
burning(?room) :- hot(?room) ALWAYS WITHIN 5 s, smoke(?room) WITHIN 30 s .
later(?room) AT ?t + 10 s :- smoke(?room) AT ?t WITHIN 3 s .
busy(?room, ?n) :- COUNT(*) AS ?n OVER heat(?room, ?v) WITHIN 10 s PER ?room .
calm(?room) :- later(?room) WITHIN 5 s, NOT hot(?room), heat(?room, ?v) WITHIN 4 FACTS .
calm(?room) :- calm(?room) WITHIN 1 s, NOT burning(?room) WITHIN 1 min, smoke(?room) AT LEAST 2 WITHIN 1 min .
"""
"""The file `holds.lars` of HOLDING."""


LASTING = """
PREFIX : <urn:x:>
RULES <reach.dlog>
HOLD * FOR 20 s
HOLD :status LATEST FROM :from FOR 1 min
QUERY hot := { SELECT DISTINCT ?room { ?o :celsius ?v ; :room ?room FILTER(?v > 80) } }
QUERY reach := { SELECT ?a ?b { ?a :reach ?b } }
QUERY seen := { SELECT ?room (COUNT(?o) AS ?n) { ?o :room ?room } GROUP BY ?room }
QUERY closed := { SELECT ?room { ?room a :Closed } }
QUERY status := { SELECT ?room ?s { ?room :status ?s } }

RULE Hot DEFINE { dotr_h :hot ?room } FROM H := ISTREAM hot WITH ?room := H.?room
RULE Cooled DEFINE { dotr_c :cooled ?room } FROM H := DSTREAM hot
AND LAST Hot WITHIN 5 min BEFORE H ON Hot.?room = H.?room
WITH ?room := H.?room
RULE Opened DEFINE { dotr_o :way ?a ; :to ?b } FROM R := ISTREAM reach WITH ?a := R.?a, ?b := R.?b
RULE Shut DEFINE { dotr_s :noway ?a ; :to ?b } FROM R := DSTREAM reach WITH ?a := R.?a, ?b := R.?b
RULE Seen DEFINE { dotr_n :at ?room ; :n ?n } FROM S := ISTREAM seen WITH ?room := S.?room, ?n := S.?n
RULE Closed DEFINE { dotr_x :closed ?room } FROM C := ISTREAM closed WITH ?room := C.?room
RULE Status DEFINE { dotr_t :status ?s ; :was ?room } FROM S := DSTREAM status
WITH ?room := S.?room, ?s := S.?s
"""

SEQUENCES = """
PREFIX : <urn:x:>
QUERY Heat  := { SELECT ?room ?v { ?o :celsius ?v ; :room ?room } }
QUERY Smoke := { SELECT ?room { ?o a :Smoke ; :room ?room } }

SEQUENCE Dip := Start Down+ Up{1,2}
OF Heat PER ?room
AND Down ON Down.?v < PREV.?v
AND Up ON Up.?v > PREV.?v
WITHIN 40 s
WITH ?room := Start.?room, ?low := LAST(Down).?v, ?n := COUNT(*)

SEQUENCE Climb := Low High+
OF Heat
AND High ON High.?v > LAST(*, 1).?v && COUNT(High) < 4
WITHIN 15 s OVERLAPPING
WITH ?room := Low.?room, ?top := LAST(High).?v, ?sum := SUM(High.?v), ?kinds := COUNT(DISTINCT High.?room)

SEQUENCE Visit := Any+
OF Heat, Smoke PER ?room
WITHIN 1 min GAP 5 s
WITH ?room := FIRST(Any).?room, ?n := COUNT(Any), ?began := FIRST(Any).time

SEQUENCE Step := Cool Other*? Rise
OF Heat PER ?room
AND Cool ON Cool.?v < 60
AND Rise ON Rise.?v > PREV(2).?v + 10
WITHIN 30 s SKIP TO LAST Rise
WITH ?room := Rise.?room, ?by := Rise.?v - Cool.?v

SEQUENCE Calm := Visit{2} OF Visit WITHIN 3 min
WITH ?began := FIRST(Visit).?began, ?mean := AVG(Visit.?n)

RULE Dipped DEFINE { dotr_d :low ?low ; :in ?room ; :n ?n } FROM Dip
WITH ?low := Dip.?low, ?room := Dip.?room, ?n := Dip.?n
RULE Climbed DEFINE { dotr_c :top ?top ; :sum ?sum ; :kinds ?kinds } FROM Climb
WITH ?top := Climb.?top, ?sum := Climb.?sum, ?kinds := Climb.?kinds
RULE Left DEFINE { dotr_l :left ?room ; :n ?n ; :low ?low } FROM Visit
AND OPTIONAL LAST Dip WITHIN 1 min BEFORE Visit ON Dip.?room = Visit.?room
WITH ?room := Visit.?room, ?n := Visit.?n, ?low := COALESCE(Dip.?low, 0)
RULE Stepped DEFINE { dotr_s :by ?by ; :in ?room } FROM Step
AND NOT Smoke WITHIN 3 s FROM Step ON Smoke.?room = Step.?room
WITH ?by := Step.?by, ?room := Step.?room
RULE Calmed DEFINE { dotr_k :mean ?mean ; :since ?began } FROM Calm
WITH ?mean := Calm.?mean, ?began := Calm.?began
"""

REACH = """[?x, <urn:x:reach>, ?y] :- [?x, <urn:x:door>, ?y] .
[?x, <urn:x:reach>, ?z] :- [?x, <urn:x:reach>, ?y], [?y, <urn:x:door>, ?z] .
[?x, a, <urn:x:Closed>] :- [?x, <urn:x:status>, ?s], NOT [?x, <urn:x:door>, ?y] .
"""
"""The file `reach.dlog` of LASTING."""


def doors(line: str, number: int) -> list[str]:
    """Messages at the time of a line: a door that is put in, or taken out; what a room's status is."""
    noise, time = random.Random(number), json.loads(line)["time"]
    a, b = (f"<urn:x:{noise.choice('abcdef')}>" for _ in range(2))
    part = "insert" if noise.random() < 0.5 else "delete"
    status = f"{a} <urn:x:status> {noise.randrange(3)} ; <urn:x:from> {time + noise.randrange(4)} ."
    return [
        json.dumps({"time": time, part: f"{a} <urn:x:door> {b} ."}),
        json.dumps({"time": time, "graph": status}),
    ]


def stream(count: int, seed: int = 7, bad: bool = True) -> list[str]:
    """JSON lines of a stream, some of them not readable, some times shared."""
    noise = random.Random(seed)
    time, lines = 0, []
    for number in range(count):
        time += noise.choice((0, 1, 1, 2))
        room = noise.choice("ab")
        if noise.random() < 0.2:
            graph = f"[] a <urn:x:Smoke> ; <urn:x:room> <urn:x:{room}> ."
        else:
            graph = f"[] <urn:x:celsius> {noise.randrange(40, 90)} ; <urn:x:room> <urn:x:{room}> ."
        lines.append(json.dumps({"time": time, "graph": graph}))
        if bad and number % 40 == 17:
            lines.append("not json")
    return lines


def deploy(folder: Path, rules: str = RULES) -> str:
    """A deployment of the rules in `folder`/state; its path."""
    (folder / "rules.dotr").write_text(rules)
    with Journal(str(folder / "state"), create=True) as journal:
        commit_proposal(journal, propose(journal, [str(folder / "rules.dotr")]))
    return str(folder / "state")


def deploy_from(folder: Path, rules: str, time: int) -> None:
    """Plan other rules for that file of the deployment in `folder`/state, from a time in seconds on."""
    (folder / "rules.dotr").write_text(rules)
    with Journal(str(folder / "state")) as journal:
        proposal = propose(journal, [str(folder / "rules.dotr")])
        journal.keep_plan(plan_of(proposal, time * 1_000_000, Clock()))


def feed(
    state: str,
    paths: Sequence[str],
    outputs: Sequence[str] = (),
    *,
    disk: Disk | None = None,
    every: int = 10,
    keep_open: bool = False,
    letters: str = "",
    late: str = "",
    options: SourceOptions | None = None,
    follow_for: tuple[Any, float, int] | None = None,
    lateness: int = 0,
    max_jump: int | None = None,
    source: GraphSource | None = None,
    others: Sequence[Sink] = (),
    **more: Any,
) -> Feed:
    """One feed to the ends of its sources, events to `outputs` (N-Quads), commits by count alone.

    `source`: instead of the files of `paths`; `others`: sinks beside `outputs`. `follow_for`: follow instead,
    between looks let a frozen clock tick so many seconds, so many times.
    """
    with Journal(state, disk=disk) as journal:
        program = deployed_program(journal.deployed())
        pipeline = resumed(
            journal,
            program,
            observer=PipelineObserver(
                late=lambda time, graph: feeding.late(time, graph),
                refused=lambda time, graphs, error: feeding.refused(time, graphs, error),
            ),
            lateness=lateness,
            max_jump=max_jump,
            pause=lambda: feeding.pause(),
        )
        snapshot = journal.snapshot()
        if snapshot is not None:
            pipeline.restore(snapshot)
        _head, write = formatter("nquads", program.prefixes)
        sinks: list[Sink] = [*others]
        feeding = Feed(
            journal,
            pipeline,
            sinks,
            fail_on_error=not letters and "dead_letters" not in more,
            checkpoints=CheckpointPolicy(graphs=every, seconds=1e9, share=0),
            **more,
        )
        if (plan := journal.plan()) is not None:
            feeding.plan(plan, deployed_program(planned(plan)), split_triples(plan.background))
        try:
            for path in outputs:
                sinks.append(FileSink(write, AppendingFile(journal, path, "nquads", packed=True)))
            if letters:
                feeding.dead_letters = AppendingFile(journal, letters, "jsonl")
            if late:
                feeding.delayed = AppendingFile(journal, late, "jsonl")
            feeding.resume()
            following = follow_for is not None
            source = source or FileSource(
                paths, options or SourceOptions(), fail=not letters, follow=following
            )
            if follow_for is not None:
                clock, step, times = follow_for
                waits: list[float] = []
                feeding.stopping = lambda: len(waits) == times
                with suppress(KeyboardInterrupt):
                    feeding.follow(source, lambda: waits.append(clock.tick(step)))
            else:
                feeding.run(source, keep_open)
        finally:
            feeding.close()
    return feeding


class FailingDisk(Disk):
    """Fails once, at the `at`-th write of any kind, as a full disk does; counts them all."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0

    def _step(self) -> bool:
        self.count += 1
        return self.count == self.at

    def execute(self, connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> None:
        if self._step():
            raise sqlite3.OperationalError("database or disk is full")
        super().execute(connection, statement, values)

    def insert(self, connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        if self._step():
            super().insert(connection, statement, rows[: len(rows) // 2])
            raise sqlite3.OperationalError("database or disk is full")
        super().insert(connection, statement, rows)

    def write(self, file: int, content: bytes) -> int:
        if self._step():
            if len(content) > 1:
                super().write(file, content[: len(content) // 2])  # a part may get through before the error
            raise OSError(28, "No space left on device")
        return super().write(file, content)

    def sync(self, file: int) -> None:
        if self._step():
            raise OSError(5, "Input/output error")

    def truncate(self, file: int, length: int) -> None:
        if self._step():
            raise OSError(5, "Input/output error")
        super().truncate(file, length)

    def create(self, path: str) -> int:
        if self._step():
            raise OSError(28, "No space left on device")
        return super().create(path)

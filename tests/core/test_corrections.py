"""Corrections: what remains of all changes is what a run over the same graphs in order of time reports.

Place:   random whole programs and random programs in which something lasts, with graphs that come late; the
         reference is an engine without corrections.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import dotr
from dotr.api import Event, _sum
from dotr.core.corrections import CHEAPER, Corrected, CorrectingPipeline
from dotr.core.instant import Instants
from dotr.events import Clock
from dotr.rdf.terms import Triple
from tests.sequences import Instants as Given
from tests.sequences import graph_of, instants
from tests.sequences import programs as sequence_programs
from tests.test_differential import engine
from tests.test_whole_lasting import loaded
from tests.whole import wholes
from tests.whole_lasting import Lasting, lastings

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SECOND = 1_000_000
SEEDS = range(5_000 if DEEP else 60)


def line(event: Event) -> str:
    found = json.loads(event.to_json())
    for key in ("change", "corrected_at", "cause"):
        found.pop(key, None)
    return json.dumps(found)


def consolidated(events: Sequence[Event]) -> Counter[str]:
    """What remains; an event is taken back only after it was reported."""
    there: Counter[str] = Counter()
    for event in events:
        assert event.change in (1, -1)
        assert (event.corrected_at is None) <= (event.change == 1)
        there[line(event)] += event.change
        assert there[line(event)] >= 0, line(event)
    return +there


class Message(NamedTuple):
    """What is pushed; `cut`: another engine goes on before it."""

    time: int
    graph: str | None
    insert: str | None
    delete: str | None
    cut: bool


Make: TypeAlias = Callable[..., dotr.Engine]


def delayed(random: Random, messages: Sequence[Message]) -> list[Message]:
    """The same messages in the order in which they come."""
    come = [(one.time + random.choice((0, 0, 0, 1, 4, 9)), number) for number, one in enumerate(messages)]
    return [messages[number] for _, number in sorted(come)]


def pushed(running: dotr.Engine, one: Message) -> Sequence[Event]:
    return running.push(one.graph, at=one.time, insert=one.insert, delete=one.delete)


def logging(running: dotr.Engine) -> dotr.Engine:
    """An engine whose graphs of the period are stored as a journal does it."""
    assert isinstance(running.pipeline, CorrectingPipeline)
    running.pipeline._log = []
    return running


def with_log(blob: bytes, log: Sequence[Any]) -> bytes:
    """A snapshot with what a journal has of the graphs of the period, instead of them."""
    state = json.loads(blob)
    del state["sum"]
    state["corrections"] |= {"graphs": None, "log": log}
    content = json.dumps(state, separators=(",", ":"), ensure_ascii=False).encode()
    return b'{"sum":"%s",%s' % (_sum(content[1:]), content[1:])


def take_over(stated: dict[Triple, Any], log: list[Any], running: dotr.Engine) -> None:
    """What a commit stores of statements, and of the graphs of the period."""
    assert isinstance(running.pipeline, CorrectingPipeline)
    change = running.pipeline.period()
    if change.anew:
        log.clear()
    log += json.loads(json.dumps(change.entries))
    for triple, entry in running.pipeline.stated().items():
        if entry is None:
            stated.pop(triple, None)
        else:
            stated[triple] = list(entry)


def compare(make: Make, messages: Sequence[Message], random: Random) -> int:
    """How many events corrections added or took back."""
    come = delayed(random, messages)
    lateness = random.choice((0, 0, 0, 2))
    dropped: list[int] = []
    now = [0]
    options: dict[str, Any] = {
        "corrections": random.choice(("3 s", "6 s", "1 h")),
        "corrections_budget": random.choice((0.05, 0.5, 0.95)),
        "lateness": f"{lateness} s",
        "late": lambda *_: dropped.append(now[0]),
    }
    running = logging(make(**options))
    found: list[Event] = []
    log: list[Any] = []
    stated: dict[Triple, Any] = {}  # as a journal has it
    for now[0], one in enumerate(come):
        if one.cut:
            take_over(stated, log, running)
            state = running.snapshot()
            state = state if random.random() < 0.2 else with_log(state, log)
            running = logging(make(**options))
            running.restore(state)
        found += pushed(running, one)
        if random.random() < 0.3:
            take_over(stated, log, running)
    found += [*running.advance(60), *running.finish()]
    take_over(stated, log, running)
    lasting = running.pipeline.snapshot()["lasting"]
    assert stated == {(s, p, o): entry for s, p, o, *entry in (lasting["stated"] if lasting else ())}
    taken = [one for number, one in enumerate(come) if number not in dropped]
    plain = make()
    expected: list[Event] = []
    for one in sorted(taken, key=lambda one: one.time):
        expected += pushed(plain, one)
    expected += [*plain.advance(60), *plain.finish()]
    there = consolidated(found)
    if running.refused or plain.refused:  # what is in error depends on what came before it
        return 0
    assert there == Counter(map(line, expected))
    mine, theirs = running.counters, plain.counters
    assert (mine.graphs, mine.instants, mine.events) == (theirs.graphs, theirs.instants, theirs.events)
    assert mine.late == len(dropped)
    return sum(event.corrected_at is not None for event in found)


def compare_whole(seed: int) -> int:
    whole, random = wholes(Random(seed)), Random(seed)
    messages = [Message(one.time, one.text, None, None, one.cut) for one in whole.stream]
    try:
        engine(whole)
    except dotr.ProgramError:
        return 0
    return compare(partial(engine, whole), messages, random)


def compare_lasting(seed: int) -> int:
    """A program in which something lasts, whose rules stay."""
    lasting, random = replace(lastings(Random(seed)), then=()), Random(seed)
    messages = [Message(one.time, one.graph, one.insert, one.delete, one.cut) for one in lasting.stream]

    def make(**options: Any) -> dotr.Engine:
        return dotr.Engine(loaded(lasting.rules), background=lasting.background, on_error="skip", **options)

    try:
        make()
    except (dotr.ProgramError, dotr.DataError):
        return 0
    try:
        return compare(make, messages, random)
    except dotr.ProgramError as error:
        if error.diagnostics[0].code != "D4013":
            raise
        return 0


class Replaced:
    """Owns an engine with corrections whose rules are replaced; it goes on from snapshots."""

    place = 0

    def __init__(self, lasting: Lasting, **options: Any) -> None:
        self.lasting, self.options = lasting, options
        self.engine = self.made(None, None)

    def made(self, state: bytes | None, settled: int | None) -> dotr.Engine:
        rules, ahead = self.lasting.rules, []
        for time, then in sorted(self.lasting.then, key=lambda one: one[0]):
            if settled is not None and time * SECOND <= settled:
                rules = then
            else:
                ahead.append((time, then))
        background = self.lasting.background
        engine = dotr.Engine(loaded(rules), background=background, on_error="skip", **self.options)
        if state is not None:
            engine.restore(state)
        if engine.clock is None:
            engine.pipeline.begin(Clock())
        for time, then in ahead:
            engine.pipeline.replace(time * SECOND, loaded(then), engine.pipeline.deployment.background)
        return engine

    def whole(self, messages: Sequence[Message], cuts: bool) -> list[Event]:
        found: list[Event] = []
        for self.place, one in enumerate(messages):
            if cuts and one.cut:
                self.engine = self.made(self.engine.snapshot(), self.engine.pipeline.settled)
            found += pushed(self.engine, one)
        return [*found, *self.engine.finish()]


def compare_replaced(seed: int) -> int:
    """A program in which something lasts, whose rules are replaced: what is late then is left out."""
    lasting, random = lastings(Random(seed)), Random(seed)
    if not lasting.then:
        return 0
    messages = [Message(one.time, one.graph, one.insert, one.delete, one.cut) for one in lasting.stream]
    come = delayed(random, messages)
    dropped: list[int] = []
    running: Replaced
    try:
        running = Replaced(
            lasting,
            corrections=random.choice(("3 s", "6 s", "1 h")),
            corrections_budget=random.choice((0.05, 0.5, 0.95)),
            late=lambda *_: dropped.append(running.place),
        )
        found = running.whole(come, cuts=random.random() < 0.7)
        plain = Replaced(lasting, late="fail")
        taken = [one for number, one in enumerate(come) if number not in dropped]
        expected = plain.whole(sorted(taken, key=lambda one: one.time), cuts=False)
    except (dotr.ProgramError, dotr.DataError) as error:
        if error.diagnostics[0].code == "D2301":
            raise
        return 0
    if running.engine.refused or plain.engine.refused:
        return 0
    assert consolidated(found) == Counter(map(line, expected))
    return sum(event.corrected_at is not None for event in found)


@settings(max_examples=5_000 if DEEP else 60)
@given(sequence_programs(), instants(), st.randoms(use_true_random=False))
def test_what_remains_of_sequences_is_what_a_run_in_order_reports(
    program: str, given_: Given, random: Random
) -> None:
    messages = [Message(time, graph_of(rows), None, None, random.random() < 0.2) for time, rows in given_]
    compare(partial(dotr.Engine.from_text, program), messages, random)


@pytest.mark.parametrize("compared", [compare_whole, compare_lasting, compare_replaced])
def test_what_remains_is_what_a_run_in_order_reports(
    compared: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dotr.lasting.instants.DEEPEST", 12)  # effects that follow one another without an end
    corrected = 0
    for seed in SEEDS:
        try:
            corrected += compared(seed) > 0
        except (AssertionError, dotr.DotrError) as error:
            pytest.fail(f"seed {seed}: {error}")
    assert corrected > len(SEEDS) // (20 if compared is not compare_replaced else 40)


@pytest.mark.parametrize("seed", [1_005])
def test_windows_of_lars_rules_are_those_of_the_snapshot_that_a_replay_begins_with(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dotr.lasting.instants.DEEPEST", 12)
    assert compare_lasting(seed) > 0


@pytest.mark.parametrize("seed", [*range(6, 10), *(range(10, 500) if DEEP else ())])
def test_what_comes_after_a_snapshot_does_not_change_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.lasting.instants.DEEPEST", 12)
    lasting = lastings(Random(seed))
    try:
        running = dotr.Engine(loaded(lasting.rules), background=lasting.background, on_error="skip")
        taken: list[tuple[Any, str]] = []
        for one in lasting.stream:
            pushed(running, Message(one.time, one.graph, one.insert, one.delete, False))
            state = running.pipeline.snapshot()
            taken.append((state, json.dumps(state)))
        running.advance(60)
    except dotr.DotrError:
        return
    for state, text in taken:
        assert json.dumps(state) == text


QUIET = """PREFIX : <ex:>
ENTAILMENT rdfs
QUERY Value := { SELECT ?s ?v WHERE { ?s :value ?v } }
QUERY Check := { SELECT ?s WHERE { ?s :check ?x } }
RULE Quiet DEFINE { dotr_x a :Quiet ; :s ?s } FROM Check
AND NOT Value WITHIN 10 s FROM Check ON Value.?s = Check.?s WITH ?s := Check.?s
"""
VALUE, CHECK = "<ex:a> <ex:value> 1 .", "<ex:a> <ex:check> 1 ."
IN_ERROR = "<ex:a> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <ex:b> ."


def quiet(**options: Any) -> dotr.Engine:
    return dotr.Engine.from_text(QUIET, **{"corrections": "1 h", **options})


def signs(events: Sequence[Event]) -> list[tuple[int, Any]]:
    return [(event.change, event.time) for event in events]


def test_a_late_graph_takes_back_an_event_with_its_cause() -> None:
    running = quiet()
    running.push(CHECK, at=20)
    assert signs(running.push(VALUE, at=30)) == [(1, 20)]
    (event,) = running.push(VALUE, at=15)
    assert (event.change, event.time, event.corrected_at, event.cause) == (-1, 20, 29, [15])
    line = json.loads(event.to_json())
    assert list(line)[:4] == ["change", "corrected_at", "cause", "rule"]
    assert line["cause"] == [{"time": 15, "place": ""}]


def test_a_late_graph_that_fails_counts_as_if_it_had_never_come() -> None:
    running = quiet()
    running.push(CHECK, at=20)
    assert signs(running.push(VALUE, at=30)) == [(1, 20)]
    with pytest.raises(dotr.DataError):
        running.push(IN_ERROR, at=15)
    assert running.push(VALUE, at=40) == []
    assert signs(running.push(VALUE, at=15)) == [(-1, 20)]
    assert signs(running.push(CHECK, at=100)) == []
    assert signs(running.finish()) == [(1, 100)]


def test_graphs_of_an_instant_in_error_are_reported_once_and_take_part_in_nothing() -> None:
    reported: list[str] = []
    running = quiet(on_error=lambda error: reported.append(error.diagnostics[0].code))
    found: list[Event] = []
    for time, graph in (
        (10, IN_ERROR),
        (20, CHECK),
        (30, VALUE),
        (15, VALUE),
        (9, VALUE),
        (12, IN_ERROR),
        (50, VALUE),
    ):
        found += running.push(graph, at=time)
    found += running.finish()
    assert signs(found) == [(1, 20), (-1, 20)]
    assert len(reported) == running.refused == 2


def test_a_graph_too_far_ahead_is_not_kept() -> None:
    running = quiet(max_jump="1 min", on_error="skip")
    running.push(CHECK, at=20)
    running.push(VALUE, at=30)
    running.push(VALUE, at=3_000)
    assert signs(running.push(VALUE, at=15)) == [(-1, 20)]
    assert running.counters.last == 20_000_000
    assert signs([*running.push(CHECK, at=60), *running.finish()]) == [(1, 60)]


def test_what_is_kept_is_the_period() -> None:
    running = logging(quiet(corrections="1 min"))
    for time in range(2_000):
        running.push(CHECK, at=time)
        if time % 7 == 3:
            running.push(VALUE, at=time - 30)
    pipeline = running.pipeline
    assert isinstance(pipeline, CorrectingPipeline)
    kept = max(len(pipeline._times), len(pipeline._events))
    assert kept < 300, "graphs of a period, of the waiting, and of an eighth"
    assert len(pipeline._snapshots) < 30
    assert len(pipeline._known) <= kept
    assert len(pipeline.period().entries) < 3 * kept, "nor for the journal, if no commit comes"
    assert pipeline.corrected.replayed < 6_000, "half of the work, where a replayed graph counts half"


@pytest.mark.parametrize("lasts", [False, True])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_replays_are_paid_for_by_graphs_that_come_and_late_graphs_wait(share: float, lasts: bool) -> None:
    held = QUIET.replace("QUERY Value", "HOLD <ex:check> LATEST\nQUERY Value", 1)
    running = dotr.Engine.from_text(held if lasts else QUIET, corrections="1 h", corrections_budget=share)
    pipeline = running.pipeline
    assert isinstance(pipeline, CorrectingPipeline)
    cost = 1 if lasts else 1 / CHEAPER
    came, replays, waiting, before = 0, [0.0], [0], Corrected()
    for number in range(1_100):
        late = number % 11 == 10
        came += not late
        running.push(VALUE if late else CHECK, at=came - 9 if late else came)
        done = pipeline.corrected
        waiting.append(done.waiting)
        if done.corrections > before.corrections:
            assert done.waiting == 0
            assert sum(replays) <= share / (1 - share) * came, "those before are paid for"
            replays.append(cost * (done.replayed - before.replayed))
        before = done
        assert done.waiting == 0 or pipeline._owed > 0, "no graph waits in vain"
    assert len(replays) > 2, "late graphs do not wait for the end"
    assert max(waiting) > 1 or share == 0.8
    running.finish()
    assert (pipeline.corrected.late, pipeline.corrected.waiting) == (100, 0)


def test_no_late_graph_waits_longer_than_the_period() -> None:
    running = quiet(corrections="1 min", corrections_budget=0.05)
    pipeline = running.pipeline
    assert isinstance(pipeline, CorrectingPipeline)
    longest = 0
    for time in range(500):
        running.push(CHECK, at=time)
        if time % 20 == 19:
            running.push(VALUE, at=time - 8)
        if pipeline._waiting:
            longest = max(longest, time - pipeline._waiting[0].bound // 1_000_000)
    assert 50 < longest <= 61


def test_a_replay_extracts_only_instants_that_late_graphs_change(monkeypatch: pytest.MonkeyPatch) -> None:
    extracted: list[int] = []
    extract = Instants.overlaid

    def counted(self: Instants, time: int, graphs: Any) -> Any:
        extracted.append(time // 1_000_000)
        return extract(self, time, graphs)

    monkeypatch.setattr(Instants, "overlaid", counted)
    running, both = quiet(corrections_budget=0.95), VALUE + CHECK
    for time in range(10):
        running.push(both, at=time)
    running.push(both, at=3)
    running.push(both, at=5)
    running.finish()
    assert isinstance(running.pipeline, CorrectingPipeline)
    assert running.pipeline.corrected.late == 2
    assert sorted(extracted) == sorted([*range(10), 3, 5])
    assert sorted(running.pipeline._known) == [time * 1_000_000 for time in range(10)]


def test_an_engine_goes_on_with_corrections_after_a_snapshot_without() -> None:
    plain = dotr.Engine.from_text(QUIET)
    plain.push(CHECK, at=20)
    running = quiet(snapshot=plain.snapshot())
    assert signs(running.push(VALUE, at=30)) == [(1, 20)]
    assert running.push(VALUE, at=15) == []
    assert running.counters.late == 1, "nothing is known of what came before the snapshot"
    running.push(CHECK, at=45)
    assert signs(running.push(VALUE, at=60)) == [(1, 45)]
    assert signs(running.push(VALUE, at=40)) == [(-1, 45)]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"lateness": "1 h"}, "D4167"),
        ({"corrections_budget": 1.0}, "D4108"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], code: str) -> None:
    with pytest.raises(dotr.UsageError) as error:
        quiet(**options)
    assert error.value.diagnostics[0].code == code


def test_graphs_behind_the_time_at_which_rules_were_replaced_are_late(tmp_path: Path) -> None:
    (tmp_path / "quiet.dotr").write_text(QUIET.replace("10 s", "3 s"), encoding="utf-8")
    running = quiet(corrections_budget=0.95)
    running.replace(tmp_path / "quiet.dotr", at=50)
    running.push(CHECK, at=20)
    assert signs(running.push(VALUE, at=30)) == [(1, 20)]
    assert signs(running.push(VALUE, at=15)) == [(-1, 20)]
    running.push(CHECK, at=45)
    assert signs(running.push(CHECK, at=60)) == [(1, 45)]
    assert running.push(VALUE, at=44) == []
    assert running.counters.late == 1
    assert signs(running.push(VALUE, at=70)) == [(1, 60)]
    assert running.push(VALUE, at=58) == []
    assert running.counters.late == 2, "it is behind the graph with which that time passed"
    running.push(CHECK, at=80)
    assert signs(running.push(CHECK, at=90)) == [(1, 80)]
    assert signs(running.push(VALUE, at=78)) == [(-1, 80)]
    assert running.counters.late == 2

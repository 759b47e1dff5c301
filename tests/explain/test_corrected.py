"""Why an engine with corrections withdrew an event, added it, or reported it again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import pytest

import dotr
from dotr.explain.corrected import CorrectedExplaining
from dotr.explain.proofs import Blocked, Corrected, EventProof
from tests.core.test_corrections import CHECK, QUIET, VALUE, Make, Message, delayed, pushed
from tests.test_differential import engine
from tests.test_whole_lasting import loaded
from tests.whole import wholes
from tests.whole_lasting import lastings


def quiet(**options: Any) -> dotr.Engine:
    return dotr.Engine.from_text(QUIET, **{"corrections": "1 h", "keep": "horizon", **options})


def push(running: dotr.Engine, *graphs: tuple[int, str]) -> list[dotr.Event]:
    return [event for time, graph in graphs for event in running.push(graph, at=time)]


def test_a_withdrawn_event_has_its_old_proof_and_what_is_there_now() -> None:
    running = quiet()
    first, gone = push(running, (20, CHECK), (30, VALUE), (15, VALUE))
    assert (gone.change, gone.id) == (-1, first.id)
    (found,) = first.explain().found
    assert isinstance(found, Corrected)
    assert (found.event.id, found.event.time) == (first.id, 20_000_000)
    assert [(one.change, one.at, one.late) for one in found.changes] == [
        (-1, 29_999_999, ((15_000_000, ""),))
    ]
    assert isinstance(found.now, Blocked)
    assert found.now.blocker is not None
    assert found.now.blocker.fact[0] == 15_000_000
    text = str(gone.explain())
    assert "withdrawn" in text
    assert "blocked by Value  @ 15" in text
    assert gone.explain().to_dict()["now"]["fired"] is False
    assert "invalidatedAtTime" in gone.explain().to_rdf().serialize(format="turtle")


def test_an_event_that_stays_has_a_plain_proof_and_one_that_was_added_its_correction() -> None:
    running = quiet()
    (stays,) = push(running, (20, CHECK), (30, VALUE))
    (added,) = push(running, (5, CHECK))
    assert isinstance(stays.explain().found[0], EventProof)
    (found,) = added.explain().found
    assert isinstance(found, Corrected)
    assert (found.now, found.changes[0].change) == (None, 1)
    assert "added @" in str(added.explain())


def test_why_not_and_what_held_count_late_graphs() -> None:
    running = quiet()
    push(running, (20, CHECK), (30, VALUE), (15, VALUE))
    assert "blocked by Value  @ 15" in str(running.why_not("Quiet", at=20))
    assert running.query("ASK { <ex:a> <ex:value> 1 }", at=15) is True
    assert running.query("ASK { <ex:a> <ex:value> 1 }", at=20) is False


def test_what_is_older_than_is_kept_is_not_explained() -> None:
    running = quiet(corrections="1 min", keep="1 min")
    (first, *_) = push(running, (20, CHECK), (30, VALUE))
    push(running, *((time, VALUE) for time in range(31, 2_000)))
    with pytest.raises(dotr.UsageError, match="D4173"):
        first.explain()
    explaining = running.explaining
    assert isinstance(explaining, CorrectedExplaining)
    assert len(explaining._taken) < 400
    (last,) = push(running, (2_100, CHECK), (2_101, VALUE))
    assert isinstance(last.explain().found[0], EventProof)


def test_an_engine_that_goes_on_from_a_snapshot_explains_what_comes() -> None:
    running = quiet()
    push(running, (20, CHECK), (30, VALUE))
    again = quiet(snapshot=running.snapshot())
    (gone,) = push(again, (15, VALUE))
    assert "blocked by Value  @ 15" in str(gone.explain())


def explained(make: Make, messages: Sequence[Message], random: Random) -> int:
    """Explain every event; how many were withdrawn."""
    running = make(corrections="1 h", corrections_budget=random.choice((0.05, 0.95)), keep="1 h")
    found = [event for one in delayed(random, messages) for event in pushed(running, one)]
    found += running.finish()
    if running.refused:
        return 0
    last = {event.id: event for event in found}
    for name, event in last.items():
        (proof,) = event.explain().found
        mine = [one for one in found if one.id == name and one.corrected_at is not None]
        if mine:
            assert isinstance(proof, Corrected), name
            assert len(proof.changes) == len(mine)
            assert (proof.now is None) is (event.change > 0), name
            proof = proof.event
        assert isinstance(proof, EventProof)
        assert proof.id == name
        assert str(event.explain())
    return sum(event.change < 0 for event in last.values())


def test_every_event_of_random_programs_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.lasting.instants.DEEPEST", 12)  # effects that follow one another without an end
    withdrawn = 0
    for seed in range(60):
        random, whole, lasting = Random(seed), wholes(Random(seed)), lastings(Random(seed))
        try:
            if seed % 2:
                messages = [Message(one.time, one.text, None, None, one.cut) for one in whole.stream]
                withdrawn += explained(partial(engine, whole, on_error="skip"), messages, random)
            else:
                messages = [
                    Message(one.time, one.graph, one.insert, one.delete, one.cut) for one in lasting.stream
                ]
                program = loaded(lasting.rules)
                make = partial(dotr.Engine, program, background=lasting.background, on_error="skip")
                withdrawn += explained(make, messages, random)
        except (dotr.ProgramError, dotr.DataError):
            continue
    assert withdrawn > 3

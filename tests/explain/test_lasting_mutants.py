"""The checker rejects proofs over what lasts that do not follow: one thing changed, one finding at least."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from dotr.explain.proofs import (
    Changed,
    Chosen,
    Derived,
    Ending,
    EventProof,
    InBackground,
    InStream,
    Lasting,
    NothingThere,
    SolutionProof,
)
from dotr.program import Absent, Within
from tests.explain.proving import checker_of, explainer_of, history_of

RULES = """PREFIX : <urn:>
BACKGROUND <map.ttl>
RULES <ways.dlog>
HOLD :in LATEST
HOLD :noise FOR 20 s
HOLD :pass LATEST FROM :from UNTIL :until
QUERY Pass := { SELECT ?x ?y WHERE { ?x :pass ?y } }
QUERY Near := { SELECT DISTINCT ?x ?y WHERE { ?x :near ?y } }
QUERY Loud := { SELECT ?r WHERE { ?r :noise ?n } }
QUERY Crowd := { SELECT ?r ?n WHERE { ?r :count ?n FILTER(?n > 1) } }
RULE Met DEFINE { dotr_m a :Met } FROM B := ISTREAM Near
AND LAST L := Loud WITHIN 10 s FROM B
AND NOT Met WITHIN 5 s BEFORE B ON Met.?x = B.?y
WITH ?x := B.?x, ?y := B.?y
RULE Left DEFINE { dotr_l a :Left } FROM E := DSTREAM Near
AND EACH M := Met WITHIN 1 min BEFORE E ON M.?x = E.?x
WITH ?x := E.?x, ?y := E.?y
RULE Lost DEFINE { dotr_p a :Lost } FROM P := DSTREAM Pass WITH ?x := P.?x
RULE Full DEFINE { dotr_f a :Full } FROM C := ISTREAM Crowd WITH ?r := C.?r, ?n := C.?n
"""
WAYS = """PREFIX : <urn:>
:near(?x, ?y) :- :in(?x, ?r), :door(?r, ?s), :in(?y, ?s), NOT :shut(?r, ?s) .
:door(?a, ?b) :- :door(?b, ?a) .
:count(?r, ?n) :- AGGREGATE(:in(?x, ?r) ON ?r BIND COUNT(?x) AS ?n) .
"""
STREAM = """{"time": 1, "graph": "<urn:ann> <urn:in> <urn:a> . <urn:a> <urn:noise> <urn:hum> ."}
{"time": 3, "graph": "<urn:bob> <urn:in> <urn:b> ."}
{"time": 6, "graph": "<urn:b> <urn:noise> <urn:hum> ."}
{"time": 7, "graph": "<urn:ann> <urn:pass> 1 ; <urn:from> 8 ; <urn:until> 13 ."}
{"time": 8, "graph": "<urn:ann> <urn:pass> 2 ; <urn:from> 12 ; <urn:until> 18 ."}
{"time": 9, "graph": "<urn:cem> <urn:in> <urn:b> ."}
{"time": 12, "insert": "<urn:c> <urn:door> <urn:b> ."}
{"time": 15, "graph": "<urn:ann> <urn:in> <urn:c> ."}
{"time": 20, "delete": "<urn:c> <urn:door> <urn:b> ."}
"""


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[EventProof], Callable[[Any], list[str]]]:
    """The events of a run over what lasts, and a function that checks a proof."""
    folder = tmp_path_factory.mktemp("held")
    (folder / "h.dotr").write_text(RULES)
    (folder / "ways.dlog").write_text(WAYS)
    (folder / "map.ttl").write_text("<urn:a> <urn:door> <urn:b> .\n")
    (folder / "s.jsonl").write_text(STREAM)
    history = history_of(folder / "h.dotr", [folder / "s.jsonl"])
    explainer = explainer_of(history)

    def check(proof: EventProof) -> list[str]:
        checker = checker_of(history, explainer)
        checker.event(proof)
        return checker.found

    return [explainer.event(event) for event in history.events], check


def everywhere(value: Any, change: Callable[[Any], Any]) -> Iterator[Any]:
    """The value with one part changed, for every part in turn that `change` gives another one for."""
    if (other := change(value)) is not None:
        yield other
    if isinstance(value, tuple) and type(value) is tuple:
        for place, part in enumerate(value):
            for new in everywhere(part, change):
                yield (*value[:place], new, *value[place + 1 :])
    elif isinstance(value, Struct) and type(value).__module__.startswith("dotr.explain"):
        for name in value.__struct_fields__:
            for new in everywhere(getattr(value, name), change):
                yield replace(value, **{name: new})


def drop_a_premise(one: Any) -> Any:
    return (
        replace(one, premises=one.premises[1:])
        if isinstance(one, SolutionProof | Derived) and one.premises
        else None
    )


def begin_earlier(one: Any) -> Any:
    return replace(one, start=one.start - 1) if isinstance(one, Lasting) and one.start is not None else None


def end_later(one: Any) -> Any:
    over = isinstance(one, Lasting) and one.ending in (Ending.REPLACED, Ending.DELETED)
    return replace(one, until=one.until + 1_000_000) if over else None


def state_it_in_the_stream(one: Any) -> Any:
    return (
        InStream(one.triple, one.start or 0)
        if isinstance(one, Lasting | Derived) and hasattr(one, "start")
        else None
    )


def state_it_in_the_background(one: Any) -> Any:
    return InBackground(one.triple) if isinstance(one, Lasting | Derived) else None


def change_a_term(one: Any) -> Any:
    if isinstance(one, Lasting | Derived | InBackground):
        return replace(one, triple=("<urn:zoe>", *one.triple[1:]))
    return None


def change_a_binding(one: Any) -> Any:
    if isinstance(one, Derived) and one.bindings:
        return replace(one, bindings=((one.bindings[0][0], "<urn:zoe>"), *one.bindings[1:]))
    return None


def count_another_answer(one: Any) -> Any:
    return (
        replace(one, before=one.before + 1) if isinstance(one, Changed) and one.before is not None else None
    )


def turn_the_change_round(one: Any) -> Any:
    if not isinstance(one, Changed):
        return None
    other = next(o for o in type(one.operator) if o is not one.operator)
    return replace(one, operator=other)


def widen_a_window(one: Any) -> Any:
    if isinstance(one, Chosen | NothingThere) and isinstance(one.conjunct.window, Within):
        wide = replace(one.conjunct.window, duration=one.conjunct.window.duration * 2)
        return replace(one, conjunct=replace(one.conjunct, window=wide))
    return None


def skip_a_blocker(one: Any) -> Any:
    if isinstance(one, EventProof) and any(isinstance(step.conjunct, Absent) for step in one.steps):
        return replace(one, steps=tuple(s for s in one.steps if not isinstance(s.conjunct, Absent)))
    return None


def count_another_solution(one: Any) -> Any:
    if isinstance(one, Derived) and one.totals:
        return replace(one, totals=(replace(one.totals[0], rows=one.totals[0].rows + 1),))
    return None


def leave_a_solution_out(one: Any) -> Any:
    if isinstance(one, Derived) and one.totals:
        return replace(one, totals=(replace(one.totals[0], shown=one.totals[0].shown[1:]),))
    return None


MUTANTS = [
    drop_a_premise,
    begin_earlier,
    end_later,
    state_it_in_the_stream,
    state_it_in_the_background,
    change_a_term,
    change_a_binding,
    count_another_answer,
    turn_the_change_round,
    widen_a_window,
    skip_a_blocker,
    count_another_solution,
    leave_a_solution_out,
]


def test_the_proofs_themselves_are_accepted(
    proofs: tuple[list[EventProof], Callable[[Any], list[str]]],
) -> None:
    events, check = proofs
    assert {event.rule.name for event in events} == {"Met", "Left", "Full", "Lost"}
    for proof in events:
        assert check(proof) == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_every_mutant_is_rejected(
    proofs: tuple[list[EventProof], Callable[[Any], list[str]]], mutant: Callable[[Any], Any]
) -> None:
    events, check = proofs
    tried = 0
    for proof in events:
        for wrong in everywhere(proof, mutant):
            tried += 1
            assert check(wrong) != [], wrong
    assert tried > 0

"""Mutants of every kind of step: aggregates, NOT, consumption, chains, LARS, and queries of every shape.

Each change makes a claim that is not so; the checker rejects every one, wherever in a proof it is made.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dotr.explain.proofs import (
    Chosen,
    Counted,
    Derived,
    EventLeaf,
    EventProof,
    FactProof,
    HeldAtom,
    Holding,
    InBackground,
    InStream,
    NoneHeld,
    NothingThere,
    PlacedAtom,
    ProvedTotal,
    SolutionProof,
    Supported,
    Totalled,
)
from dotr.program import Choose, Within
from tests.explain.proving import checker_of, explainer_of, history_of
from tests.explain.test_lasting_mutants import everywhere

RULES = """PREFIX : <urn:>
BACKGROUND <map.ttl>
RULES <in.dlog>
ENTAILMENT RDFS
LARS <h.lars>
QUERY T := { SELECT ?t WHERE { ?t a :T } }
QUERY A := { SELECT ?a WHERE { ?a a :A } }
QUERY Plain := { SELECT ?x ?r WHERE { ?x a :Thing ; :in ?r } }
QUERY Opt := { SELECT ?x ?l WHERE { ?x a :Odd OPTIONAL { ?x :label ?l } } }
QUERY Minus := { SELECT ?x WHERE { ?x a :Odd MINUS { ?x :off true } } }
QUERY Exists := { SELECT ?x WHERE { ?x a :Odd FILTER EXISTS { ?x :label ?l } } }
QUERY NotExists := { SELECT ?x WHERE { ?x a :Odd FILTER NOT EXISTS { ?x :gone true } } }
QUERY Group := { SELECT ?r (COUNT(?x) AS ?n) (SUM(?v) AS ?s) WHERE { ?x :in ?r ; :v ?v } GROUP BY ?r }
QUERY Limit := { SELECT ?v WHERE { ?x :v ?v } ORDER BY DESC(?v) LIMIT 1 }
QUERY Union := { SELECT ?x WHERE { { ?x a :Odd } UNION { ?x :off true } } }
QUERY Path := { SELECT ?x ?y WHERE { ?x :next+ ?y } }
QUERY Values := { SELECT ?x WHERE { VALUES ?x { :o :p } ?x a :Odd } }
QUERY Quiet := { SELECT ?x WHERE { ?x a :Quiet } }
QUERY Loads := { SELECT ?r ?n WHERE { ?r :load ?n } }
RULE Asked DEFINE { dotr_a a :Asked } FROM T
AND EACH Plain WITHIN 0 s FROM T AND LAST Opt WITHIN 5 s FROM T AND LAST Minus WITHIN 5 s FROM T
AND FIRST Exists WITHIN 5 s FROM T AND LAST NotExists WITHIN 5 s FROM T AND LAST Group WITHIN 0 s FROM T
AND LAST Limit WITHIN 0 s FROM T AND LAST Union WITHIN 0 s FROM T AND LAST Path WITHIN 0 s FROM T
AND LAST Values WITHIN 0 s FROM T AND LAST Quiet WITHIN 0 s FROM T AND LAST Loads WITHIN 0 s FROM T
WITH ?t := T.?t
RULE Used DEFINE { dotr_u a :Used } FROM T AND LAST A WITHIN 1 h FROM T WITH ?a := A.?a CONSUMING A
RULE Total DEFINE { dotr_s a :Sum } FROM T AND COUNT(*) AS ?n OVER A2 := A WITHIN 1 h FROM T
AND NOT N := A WITHIN 2 s FROM T ON N.?a = T.?t WHERE ?n > 0 WITH ?n := ?n
RULE Then DEFINE { dotr_t a :Then } FROM Used AND LAST Total WITHIN 0 s FROM Used WITH ?n := Total.?n
RULE Held DEFINE { dotr_h a :Held } FROM T AND LAST box WITHIN 1 s FROM T AND LAST none WITHIN 1 s FROM T
AND LAST many WITHIN 1 s FROM T WITH ?x := box.?a, ?n := many.?n
"""
LARS = """seen(?a) :- A(?a) WITHIN 6 s .
box(?a)  :- seen(?a) ALWAYS WITHIN 2 s .
none()   :- NOT A(?a) WITHIN 1 s, seen(?b) .
many(?n) :- COUNT(?a) AS ?n OVER A(?a) WITHIN 9 s .
"""
DATALOG = """PREFIX : <urn:>
:in(?x, ?r) :- :at(?x, ?d), :of(?d, ?r) .
:Quiet(?x) :- :Odd(?x), NOT :loud(?x, ?y) .
:load(?r, ?n) :- AGGREGATE(:in(?x, ?r) ON ?r BIND COUNT(?x) AS ?n) .
"""
MAP = """@prefix : <urn:> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:d :of :r . :o a :Odd ; :label "o" . :Odd rdfs:subClassOf :Thing .
"""
STREAM = [
    (1, "<urn:a1> a <urn:A> ."),
    (2, "<urn:a2> a <urn:A> ."),
    (
        4,
        (
            "<urn:t> a <urn:T> . <urn:o> <urn:at> <urn:d> ; <urn:v> 3 ; <urn:next> <urn:p> . "
            "<urn:p> <urn:next> <urn:q> ; <urn:at> <urn:d> ; <urn:v> 4 ."
        ),
    ),
    (5, "<urn:t> a <urn:T> . <urn:o> <urn:at> <urn:d> ; <urn:v> 3 ; <urn:next> <urn:p> ."),
]
Proofs = tuple[list[EventProof], Callable[[Any], list[str]]]


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> Proofs:
    """The events of a run, and a function that checks a proof."""
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "k.dotr").write_text(RULES)
    (folder / "h.lars").write_text(LARS)
    (folder / "in.dlog").write_text(DATALOG)
    (folder / "map.ttl").write_text(MAP)
    lines = [json.dumps({"time": time, "graph": graph}) for time, graph in STREAM]
    (folder / "s.jsonl").write_text("".join(f"{line}\n" for line in lines))
    history = history_of(folder / "k.dotr", [folder / "s.jsonl"])
    explainer = explainer_of(history)

    def check(proof: EventProof) -> list[str]:
        checker = checker_of(history, explainer)
        checker.event(proof)
        return checker.found

    return [explainer.event(event) for event in history.events], check


Mutant = Callable[[Any], Any]


def of(kind: Any, change: Mutant) -> Mutant:
    return lambda one: change(one) if isinstance(one, kind) else None


def narrower(conjunct: Any) -> Any:
    if not isinstance(conjunct.window, Within):
        return None
    return replace(conjunct, window=replace(conjunct.window, duration=conjunct.window.duration + 1))


def window(one: Any) -> Any:
    changed = narrower(one.conjunct)
    return None if changed is None else replace(one, conjunct=changed)


def necessary(why: SolutionProof) -> Any:
    """Without a premise; of an OPTIONAL whose values nobody asks for there is none here."""
    return replace(why, premises=why.premises[1:]) if why.premises else None


def another_term(one: Any) -> Any:
    return replace(one, triple=(one.triple[0], one.triple[1], "<urn:zoe>"))


MUTANTS: dict[str, Mutant] = {
    "drop a premise of a solution": of(SolutionProof, necessary),
    "drop the last premise of a solution": of(
        SolutionProof, lambda one: replace(one, premises=one.premises[:-1]) if one.premises else None
    ),
    "drop a premise of a rule": of(
        Derived, lambda one: replace(one, premises=one.premises[1:]) if one.premises else None
    ),
    "drop the schema of a rule": of(
        Derived,
        lambda one: (
            replace(one, premises=one.premises[:-1]) if len(one.premises) > len(one.rule.body) else None
        ),
    ),
    "another rule": of(
        Derived,
        lambda one: replace(one, rule=replace(one.rule, body=one.rule.body[:-1])) if one.rule.body else None,
    ),
    "another binding": of(
        Derived,
        lambda one: replace(one, bindings=((one.bindings[0][0], "<urn:zoe>"), *one.bindings[1:])),
    ),
    "leave out what a rule's NOT looked for": of(
        Derived, lambda one: replace(one, absent=()) if one.absent else None
    ),
    "count another number of solutions": of(Totalled, lambda one: replace(one, rows=one.rows + 1)),
    "leave out a solution that was counted": of(Totalled, lambda one: replace(one, shown=one.shown[1:])),
    "another term in the stream": of(InStream, another_term),
    "another term in the background": of(InBackground, another_term),
    "another time in the stream": of(InStream, lambda one: replace(one, time=one.time + 1_000_000)),
    "what is absent is left out": of(
        SolutionProof, lambda one: replace(one, absent=()) if one.absent else None
    ),
    "another number of rows": of(
        SolutionProof, lambda one: replace(one, rows=one.rows + 1) if one.rows else None
    ),
    "more rows than are shown": of(
        SolutionProof, lambda one: replace(one, rows=one.rows + 20) if one.rows else None
    ),
    "another value of a fact": of(
        FactProof,
        lambda one: (
            replace(one, fact=(one.fact[0], ("<urn:zoe>", *one.fact[1][1:]), *one.fact[2:]))
            if one.fact[1]
            else None
        ),
    ),
    "another time of a fact": of(
        FactProof, lambda one: replace(one, fact=(one.fact[0] - 1_000_000, *one.fact[1:]))
    ),
    "another stream of a fact": of(
        FactProof, lambda one: replace(one, stream="Other") if isinstance(one.why, SolutionProof) else None
    ),
    "a wider window": of(Chosen | NothingThere | Counted, window),
    "more facts in a window": of(
        Chosen | NothingThere | Counted, lambda one: replace(one, inside=one.inside + 1)
    ),
    "more candidates": of(Chosen, lambda one: replace(one, passing=one.passing + 1)),
    "another selection": of(
        Chosen,
        lambda one: (
            replace(one, conjunct=replace(one.conjunct, k=2)) if isinstance(one.conjunct, Choose) else None
        ),
    ),
    "no nearest": of(NothingThere, lambda one: replace(one, nearest=None) if one.nearest else None),
    "another nearest": of(
        NothingThere, lambda one: replace(one, nearest=(7, (), 0, "")) if one.nearest else None
    ),
    "a fact is not counted": of(Counted, lambda one: replace(one, facts=one.facts[1:])),
    "another total": of(Counted, lambda one: replace(one, value='"9"')),
    "an event is a leaf of another name": of(
        FactProof,
        lambda one: (
            replace(one, why=EventLeaf(one.why.rule.name, one.why.id + "x", one.fact[0]))
            if isinstance(one.why, EventProof)
            else None
        ),
    ),
    "an event of another time": of(EventProof, lambda one: replace(one, time=one.time + 1)),
    "another name of an event": of(EventProof, lambda one: replace(one, id=one.id + "x")),
    "another value of an event": of(
        EventProof, lambda one: replace(one, values=("<urn:zoe>", *one.values[1:])) if one.values else None
    ),
    "skip a conjunct": of(EventProof, lambda one: replace(one, steps=one.steps[1:]) if one.steps else None),
    "another operator of what holds": of(Holding, lambda one: replace(one, operator="ISTREAM")),
    "read at another point": of(HeldAtom, lambda one: replace(one, considered=one.considered - 2_000_000)),
    "another point of a head": of(HeldAtom, lambda one: replace(one, point=one.point - 1_000_000)),
    "a literal is skipped": of(HeldAtom, lambda one: replace(one, steps=one.steps[1:])),
    "held at more points": of(
        Supported, lambda one: replace(one, points=one.points + 1) if one.start is not None else None
    ),
    "a window that begins earlier": of(
        Supported | NoneHeld | ProvedTotal,
        lambda one: replace(one, start=one.start - 1_000_000) if one.start is not None else None,
    ),
    "another total of what holds": of(ProvedTotal, lambda one: replace(one, pairs=one.pairs + 1)),
    "support at another point": of(PlacedAtom, lambda one: replace(one, point=one.point - 9_000_000)),
    "support of other values": of(
        PlacedAtom, lambda one: replace(one, values=("<urn:zoe>",)) if one.values else None
    ),
}


def test_the_proofs_are_of_every_kind_and_accepted(proofs: Proofs) -> None:
    events, check = proofs
    assert {event.rule.name for event in events} == {"Asked", "Used", "Total", "Then", "Held"}
    for proof in events:
        assert check(proof) == []


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_rejected(proofs: Proofs, name: str) -> None:
    events, check = proofs
    tried = 0
    for proof in events:
        for wrong in everywhere(proof, MUTANTS[name]):
            tried += 1
            assert check(wrong) != [], wrong
    assert tried > 0


def test_consumption_that_is_forgotten_is_noticed(proofs: Proofs) -> None:
    """For the checker the second payment's offer was consumed: then there is one fewer."""
    events, check = proofs
    used = [event for event in events if event.rule.name == "Used"]
    first, second = used[0].steps[0], used[1].steps[0]
    assert isinstance(first, Chosen)
    assert isinstance(second, Chosen)
    assert (first.passing, second.passing) == (2, 1)
    assert check(replace(used[1], steps=(replace(second, passing=2),))) != []
    assert check(replace(used[1], steps=(replace(second, fact=first.fact),))) != []

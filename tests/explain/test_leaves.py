"""The leaves of a proof are enough: a log without everything else gives the event again.

True where what is asked is monotone and no two facts are equal: patterns, paths, unions and filters; positive
Datalog; rules with EACH and WHERE. Bindings are compared, not names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.events import Clock, Time
from dotr.explain.proofs import (
    Chosen,
    Derived,
    EventProof,
    FactProof,
    InBackground,
    InStream,
    SolutionProof,
    TripleProof,
)
from dotr.explain.record import Graph, History
from dotr.lang import load_program
from dotr.rdf.terms import Triple
from tests.explain.proving import checker_of, explainer_of

TERMS = [f"<urn:{name}>" for name in "abcd"]
PREDICATES = [f"<urn:{name}>" for name in ("p", "q", "r")]
DERIVED = "<urn:d>"

PATTERNS = (
    "?x :p ?y . ?y :q ?z",
    "?x :q ?y",
    "?x :d ?y",
    "?x :p+ ?y",
    "?x :p/:q ?y",
    "{ ?x :p ?y } UNION { ?y :q ?x }",
    "?x :d ?y . ?x :r ?z",
    "?x (:p|^:q)* ?y . ?y :r ?z",
    "?x :q ?y FILTER(?x != ?y)",
    "?x :p ?y FILTER EXISTS { ?y :d ?z }",
    "VALUES ?x { :a :b } ?x :d ?y",
    "?x :p ?y OPTIONAL { ?y :q ?w } FILTER(BOUND(?w))",
)
DATALOG = (
    ":d(?x, ?y) :- :p(?x, ?y) .",
    ":d(?x, ?z) :- :d(?x, ?y), :p(?y, ?z) .",
    ":d(?x, ?y) :- :q(?y, ?x) .",
    ":d(?x, ?x) :- :q(?x, ?y), :r(?y, ?z) .",
    ":r(?x, ?y) :- :p(?x, ?y), FILTER(?x != ?y) .",
    ":q(?y, ?x) :- :d(?x, ?y), :r(?x, ?y) .",
)
CONDITIONS = ("", " ON {n}.?x = {r}.?x", " ON {n}.?y = {r}.?x", " ON {n}.?x != {r}.?y")


def program(r: Random) -> tuple[str, str]:
    """(rules, Datalog) of a monotone program."""
    queries = "".join(
        f"QUERY Q{i} := {{ SELECT DISTINCT ?x ?y WHERE {{ {pattern} }} }}\n"
        for i, pattern in enumerate(r.sample(PATTERNS, 3))
    )
    conjuncts, names = "", ["T"]
    for number in range(r.randint(0, 2)):
        name, reference = f"C{number}", r.choice(names)
        window = f"WITHIN {r.randint(0, 4)} s {r.choice(('FROM', 'BEFORE'))} {reference}"
        conjuncts += f"AND EACH {name} := Q{r.randrange(3)} {window}"
        conjuncts += r.choice(CONDITIONS).format(n=name, r=reference) + "\n"
        names.append(name)
    where = r.choice(("", f"WHERE T.?x != {r.choice(names)}.?y\n"))
    values = ", ".join(f"?v{i} := {name}.?y" for i, name in enumerate(names))
    rule = f"RULE R DEFINE {{ dotr_r a :R }} FROM T := Q0\n{conjuncts}{where}WITH ?t := T.?x, {values}\n"
    again = "RULE S DEFINE { dotr_s a :S } FROM R AND EACH U := Q1 WITHIN 2 s FROM R\n"
    again += "WITH ?a := R.?t, ?b := U.?y\n"
    return f"PREFIX : <urn:>\nRULES <d.dlog>\n{queries}{rule}{again}", "\n".join(
        ["PREFIX : <urn:>", *r.sample(DATALOG, r.randint(0, 4))]
    )


def graph(r: Random, count: int) -> list[Triple]:
    found = [(r.choice(TERMS), r.choice(PREDICATES), r.choice(TERMS)) for _ in range(count)]
    return list(dict.fromkeys(found))


def history_over(rules: Path, background: list[Triple], stream: dict[Time, list[Triple]]) -> History:
    history = History(load_program([str(rules)], lambda path: Path(path).read_text()), background)
    history.reach = 2**62
    history.run((Graph(time, list(triples)) for time, triples in sorted(stream.items())), Clock)
    return history


def leaves(proof: EventProof | FactProof | TripleProof) -> Iterator[InStream | InBackground]:
    """The stated triples below a proof."""
    match proof:
        case EventProof():
            yield from leaves(proof.trigger)
            for step in proof.steps:
                assert isinstance(step, Chosen)
                yield from leaves(step.fact)
        case FactProof(why=SolutionProof() as why):
            assert not why.opaque
            for premise in why.premises:
                yield from leaves(premise)
        case FactProof(why=EventProof() as why):
            yield from leaves(why)
        case Derived():
            for premise in proof.premises:
                yield from leaves(premise)
        case InStream() | InBackground():
            yield proof
        case _:
            raise AssertionError(proof)


def bindings(history: History) -> list[tuple[str, Time, object]]:
    rules = history.program.rules
    return [(rules[event.rule].name, event.time, event.bindings) for event in history.events]


def holds(seed: int) -> int:
    """Check a program and a log; how many events it had."""
    r = Random(seed)  # no secret
    with TemporaryDirectory() as folder:
        path = Path(folder) / "m.dotr"
        rules, datalog = program(r)
        path.write_text(rules)
        (path.parent / "d.dlog").write_text(datalog)
        background = graph(r, r.randint(0, 3))
        stream = {t * 1_000_000: graph(r, r.randint(0, 4)) for t in sorted(r.sample(range(10), 5))}
        history = history_over(path, background, stream)
        explainer = explainer_of(history)
        checker = checker_of(history, explainer)
        chosen = history.events if len(history.events) < 6 else r.sample(history.events, 6)
        for event in chosen:
            proof = explainer.event(event)
            checker.event(proof)
            assert checker.found == []
            found = set(leaves(proof))
            stated = {t: [x for x in graph_ if InStream(x, t) in found] for t, graph_ in stream.items()}
            left = [triple for triple in background if InBackground(triple) in found]
            again = history_over(path, left, stated)
            name = history.program.rules[event.rule].name
            assert (name, event.time, event.bindings) in bindings(again), proof
        return len(chosen)


@given(st.integers(0, 2**32))
def test_the_leaves_of_a_proof_give_its_event_again(seed: int) -> None:
    holds(seed)


def test_there_is_something_to_hold() -> None:
    assert sum(holds(seed) for seed in range(12)) > 20


@pytest.mark.parametrize("seed", range(3))
def test_without_one_of_its_leaves_a_proof_of_one_fact_gives_nothing(seed: int) -> None:
    """A log of one graph whose only proof needs each leaf: the property is not true of anything less."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "m.dotr"
        path.write_text(
            "PREFIX : <urn:>\nRULES <d.dlog>\nRULE R DEFINE { dotr_r a :R }\n"
            "FROM T := { SELECT ?x ?y WHERE { ?x :d ?y } }\nWITH ?t := T.?x, ?y := T.?y\n"
        )
        (path.parent / "d.dlog").write_text(
            "PREFIX : <urn:>\n:d(?x, ?w) :- :p(?x, ?y), :q(?y, ?z), :r(?z, ?w) .\n"
        )
        triples: list[Triple] = [
            ("<urn:a>", "<urn:p>", "<urn:b>"),
            ("<urn:b>", "<urn:q>", "<urn:c>"),
            ("<urn:c>", "<urn:r>", "<urn:d>"),
        ]
        assert len(history_over(path, [], {0: triples}).events) == 1
        del triples[seed]
        assert history_over(path, [], {0: triples}).events == []

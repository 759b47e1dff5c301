"""Parts of explanations alone: smallest proofs, proofs as drawings and as RDF, the literal history."""

from __future__ import annotations

from dotr.enrich.materialiser import Materialiser
from dotr.events import Clock
from dotr.explain.checker import EVER, LiteralHistory, moment_of
from dotr.explain.derivations import Derivations
from dotr.explain.explanation import to_rdf
from dotr.explain.formats import html, mermaid
from dotr.explain.proofs import Derived, InBackground, Missing, Of, TripleProof
from dotr.explain.text import Node
from dotr.lang import parse_datalog, parse_program
from dotr.rdf.terms import Triple, integer

RULES = """PREFIX : <urn:>
:p(?x, ?y) :- :q(?x, ?y) .
:p(?x, ?y) :- :r(?x, ?y), :s(?x, ?y) .
:q(?x, ?y) :- :t(?x, ?y) .
:t(?x, ?y) :- :u(?x, ?y) .
:u(?x, ?y) :- :p(?x, ?y) .
"""


def triple(predicate: str) -> Triple:
    return "<urn:a>", f"<urn:{predicate}>", "<urn:b>"


def derivations(*stated: str) -> Derivations:
    background = [triple(name) for name in stated]
    made = Materialiser(parse_datalog(RULES), background)
    made.instant([])

    def leaf(one: Triple) -> TripleProof | None:
        return InBackground(one) if one in background else None

    return Derivations(made.store, made.clauses.all, leaf)


def test_the_smallest_proof_comes_first_and_none_stands_on_itself() -> None:
    found = derivations("u", "r", "s")
    assert found.holds(triple("p"))
    best = found.proof(triple("p"))
    assert isinstance(best, Derived)
    assert [premise.triple for premise in best.premises] == [triple("r"), triple("s")]
    sizes = [found.sharing.size(one) for one in found.proofs(triple("p"))]
    assert sizes == [3, 4]
    assert isinstance(found.proof(triple("r")), InBackground)
    assert len(derivations("p").proofs(triple("u"))) == 1


def test_what_does_not_hold_is_missing_with_what_each_rule_lacks() -> None:
    found = derivations("r")
    assert not found.holds(triple("p"))
    missing = found.why_absent(triple("p"))
    assert isinstance(missing, Missing)
    assert {attempt.lacks for attempt in missing.attempts} == {triple("q"), triple("s")}


def test_a_proof_as_rdf_names_each_triple_once() -> None:
    found = derivations("r", "s")
    graph = to_rdf([found.proof(triple("u")), found.why_absent(triple("zz"))], Clock())
    kinds = [
        str(kind).rpartition("#")[2].rpartition(":")[2] for _, p, kind in graph if str(p).endswith("#type")
    ]
    assert sorted(kinds) == ["Absence", *["Activity"] * 2, *["Entity"] * 4, *["Statement"] * 4]


def test_drawings_escape_what_they_are_made_of() -> None:
    tree = Node('<a> "b" #1', [Node("leaf", [], "")], "note <i>")
    drawn = mermaid([tree])
    assert drawn.splitlines()[1:] == [
        '  n0["#lt;a#gt; #quot;b#quot; #35;1<br/>note #lt;i#gt;"]',
        '  n1["leaf"]',
        "  n1 --> n0",
    ]
    page = html([tree], "a < b")
    assert "<title>a &lt; b</title>" in page
    assert "<details open>" in page
    assert "note &lt;i&gt;" in page


PROGRAM = """PREFIX : <urn:>
RULE A DEFINE { dotr_x a :A } FROM Hot := { SELECT ?v WHERE { ?s :v ?v } }
RULE B DEFINE { dotr_x a :B } FROM EVERY 2 s AS T
"""
SECOND = 1_000_000


def test_states_and_facts_of_a_time_and_what_a_rule_could_see() -> None:
    program = parse_program(PROGRAM)
    old = parse_program(PROGRAM.replace(":v ?v", ":w ?v"))
    stated = {1 * SECOND: [("<urn:s>", "<urn:v>", integer(5))], 4 * SECOND: []}
    history = LiteralHistory(program, [triple("r")], stated, Clock(), past=[(3 * SECOND, old)])
    assert history.state(1 * SECOND) == {triple("r"), *stated[1 * SECOND]}
    assert history.state(1 * SECOND, Of.LASTING) == {triple("r")}
    assert history.program_at(3 * SECOND - 1) is old
    assert history.program_at(3 * SECOND) is program
    now = LiteralHistory(program, [], stated, Clock())
    assert now.facts("A.Hot", 1 * SECOND) == [(1 * SECOND, (integer(5),), 0, "")]
    assert now.facts("A.Hot", 4 * SECOND) == []
    first, second = program.rules
    assert (history.begun(first), history.begun(second)) == (3 * SECOND, EVER)
    assert history.instants(first, 5 * SECOND) == {4 * SECOND}
    assert now.instants(second, 5 * SECOND) == {time * SECOND for time in (1, 2, 4)}
    assert (moment_of(5, Of.BEFORE), moment_of(5, Of.INSTANT)) == (4, 5)

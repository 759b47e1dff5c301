"""What is remembered of a head, totals that rows enter and leave, piles of solutions, and who is to blame."""

from __future__ import annotations

from msgspec.structs import replace

from dotr.budget import Exhausted, Meter, Overlong
from dotr.errors import Diagnostics
from dotr.lang import parse_program
from dotr.lang.grammar.lars import LarsParser
from dotr.program import NamedAtom, TimeWindow, Var, WindowAggregate
from dotr.rdf.terms import XSD, integer, literal
from dotr.source import Source
from dotr.windows.engine import endless, overworked
from dotr.windows.tables import Kept, OpenEnded, Placing, Relation, Scattered, Through
from dotr.windows.window_tables import FOREVER, Agenda, AtomTable
from dotr.windows.windows import Totals

A, B = ("<urn:a>",), ("<urn:b>",)
HALF = literal("0.5", XSD + "decimal")


def test_the_table_of_totals_follows_its_source() -> None:
    agenda = Agenda()
    source = AtomTable(agenda)
    atom = NamedAtom("temp", (Var("s"), Var("v")))
    aggregate = WindowAggregate("SUM", Var("v"), False, Var("n"), atom, TimeWindow(1), (Var("s"),))
    totals = Totals(agenda, aggregate, source, lambda row: ((row[0],), row[1]), Meter())
    source.extend([("<a>", integer(1)), ("<a>", integer(4)), ("<b>", integer(2))], FOREVER)
    totals.refresh()
    assert set(totals.table.rows) == {("<a>", integer(5)), ("<b>", integer(2))}
    source.assign(("<a>", integer(4)), None)
    source.assign(("<b>", integer(2)), None)
    totals.refresh()
    assert set(totals.table.rows) == {("<a>", integer(1))}


def test_heads_put_ahead_wait_and_those_before_the_beginning_are_dropped() -> None:
    agenda, relation = Agenda(), Relation("h", 1)
    placing = Placing(agenda, 10)
    placing.now = 12
    relation.begin(12, 11)
    for point in (9, 12, 13):
        placing.put(relation, [A], point)
    assert placing.pending == {13: {"h": {A: None}}}
    assert agenda.after(12) == 13
    assert relation.put_now == {A}
    late = Scattered(placing, relation, {"@14": 14}, -2)
    late.pile["@14"] = [B]
    late.empty()
    assert relation.put_now == {A, B}
    assert late.pile == {}


def test_nothing_holds_before_the_beginning() -> None:
    placing, relation = Placing(Agenda(), 10), Relation("h", 1)
    relation.begin(9, 8)
    placing.put(relation, [A], 9)
    assert (relation.put_now, placing.pending) == (set(), {})


def test_what_stands_is_entered_once_and_a_kept_pile_stays() -> None:
    relation = Relation("h", 1)
    relation.begin(1, 0)
    upright = OpenEnded(relation)
    upright.pile.update({A: None, B: None})
    upright.empty()
    assert list(relation.open_ended) == [A, B]
    assert upright.pile == {}
    relation.stop(A)
    assert list(relation.open_ended) == [B]
    kept = Kept(relation, {A: None})
    kept.empty()
    assert kept.pile == {A: None}
    through = Through(relation)
    through.pile[5] = [A]
    through.empty()
    assert through.pile == {}
    assert list(relation.open_ended) == [B]


def test_the_only_rule_of_the_heads_is_named_with_its_place() -> None:
    text = "h(?s) :- temp(?s, ?v) .\ng(?s) :- h(?s) .\ng(?t) :- temp(?s, ?v), BIND(CONCAT(?v, ?v) AS ?t) ."
    source = Source("a.lars", text)
    rules = LarsParser(source, Diagnostics()).file().rules
    program = replace(parse_program("").lars, rules=tuple(rules))
    one = overworked(program, ["h"], Exhausted(), "5", 7).diagnostics[0]
    assert (one.code, str(one.span)) == ("D4011", "a.lars:1:1")
    two = overworked(program, ["g"], Exhausted(), "5", 7).diagnostics[0]
    assert two.span is None
    text = overworked(program, ["g"], Overlong(9), "5", 7).diagnostics[0]
    assert (text.code, str(text.span)) == ("D4133", "a.lars:3:1")
    assert " for " not in endless([], "5", 9, literal=False).diagnostics[0].message
    verified = endless(["h"], "5", 9, literal=True).diagnostics[0]
    assert (verified.code, "the literal reading of what holds for `h`" in verified.message) == ("D4012", True)

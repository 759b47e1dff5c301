"""The parsers of parts of a text: what each takes, where it stops, what it refuses and goes on behind."""

from __future__ import annotations

import pytest

from dotr import program
from dotr.errors import Diagnostics
from dotr.lang.grammar import syntax
from dotr.lang.grammar.cursor import Cursor, Parameters, Skip
from dotr.lang.grammar.dlog import AtomParser, DatalogParser
from dotr.lang.grammar.dotr import ClauseParser, TemplateParser, WindowParser
from dotr.lang.grammar.expressions import ExpressionParser, Mode
from dotr.lang.grammar.sparql import FIRST, NIL, REST, SparqlParser, TriplesParser
from dotr.lang.printer import LayoutUnit, attach, render
from dotr.rdf.terms import RDF_TYPE, integer
from dotr.source import Source

P = "<urn:p>"


def cursor_over(text: str) -> Cursor:
    cursor = Cursor(Source("x", text))
    cursor.prefixes[""] = "urn:"
    return cursor


def windows_over(text: str, **given: syntax.Duration | str) -> WindowParser:
    cursor = cursor_over(text)
    return WindowParser(cursor, Parameters(cursor, given))


def clauses_over(text: str) -> ClauseParser:
    windows = windows_over(text)
    expressions = ExpressionParser(windows.cursor, Mode.RULE, windows.parameters)
    return ClauseParser(windows.cursor, SparqlParser(windows.cursor, expressions), windows)


def codes(cursor: Cursor) -> list[str]:
    return [one.code for one in cursor.found.found]


# -- windows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "micros", "found"),
    [
        ("5 min", 300_000_000, []),
        ("0.5 ms", 500, []),
        ("0 s", 0, []),
        ("366000 d", 366_000 * 86_400_000_000, []),
        ("366001 d", 1, ["D1406"]),
        ("0.5 us", 1, ["D1406"]),
        ("1e3 s", 1, ["D1406"]),
        ("5", 1, ["D1401"]),
        ("5 FROM", 1, ["D1401"]),
        ("5 months", 1, ["D1401"]),
        ("-5 s", 1, ["D1402"]),
        ("?d", 7, []),
        ("?t", 1, ["D1113"]),
        ("?u", 1, ["D1112"]),
    ],
)
def test_a_length_of_time(text: str, micros: int, found: list[str]) -> None:
    windows = windows_over(text, d=syntax.Duration(7), t='"5"')
    assert windows.duration().micros == micros
    assert codes(windows.cursor) == found


@pytest.mark.parametrize(
    ("text", "selection", "k", "found"),
    [
        ("3 A", program.Selection.LAST, 3, []),
        ("A", program.Selection.LAST, 1, []),
        ("0 A", program.Selection.FIRST, 1, ["D1408"]),
        ("-2 A", program.Selection.FIRST, 1, ["D1408"]),
        ("2.0 A", program.Selection.FIRST, 1, ["D1408"]),
        ("2 A", program.Selection.EACH, 1, ["D1408"]),
        ("1000000000 A", program.Selection.LAST, 10**9, []),
        ("1000000001 A", program.Selection.LAST, 1, ["D1408"]),
        ("?k A", program.Selection.LAST, 4, []),
        ("?t A", program.Selection.LAST, 1, ["D1408"]),
    ],
)
def test_how_many_are_chosen(text: str, selection: program.Selection, k: int, found: list[str]) -> None:
    windows = windows_over(text, k=integer(4), t='"4"')
    assert windows.count(selection) == (k, "")
    assert codes(windows.cursor) == found
    assert windows.cursor.token.text == "A"


def test_words_that_are_names_elsewhere() -> None:
    windows = windows_over("HOLD LARS PRIVATE Istream")
    assert [windows.name("a name").text for _ in range(4)] == ["HOLD", "LARS", "PRIVATE", "Istream"]
    assert windows_over("HOLD * FOR 1 s").at_statement()
    assert not windows_over("HOLD WITHIN").at_statement()
    assert windows_over("PRIVATE RULE A").at_clause()
    assert windows_over("istream Hot").operator() is program.RelationToStream.ISTREAM
    assert windows_over("ISTREAM WITHIN 5 s").operator() is None
    assert windows_over("ISTREAM").operator() is None


def test_a_keyword_as_a_name_is_reported_once_with_its_other_places() -> None:
    windows = windows_over("on on on on")
    for _ in range(4):
        windows.name("a name")
    [one] = windows.cursor.found.found
    assert (one.code, one.notes) == ("D1009", ("also at x:1:4", "also at x:1:7"))
    with pytest.raises(Skip):
        windows_over("WHERE ?x").name("a name")


def test_behind_a_broken_brace_reading_goes_on_at_the_next_clause() -> None:
    for text, at in (("{ { } } RULE", "RULE"), ("{ { } AND EACH A", "AND"), ("{ { x RULE A DEFINE", "RULE")):
        windows = windows_over(text)
        windows.close(0)
        assert windows.cursor.key == at


# -- clauses -------------------------------------------------------------------------------------------


def test_a_clause_that_cannot_be_read_is_left_out_and_its_names_are_unresolved() -> None:
    clauses = clauses_over(
        "RULE R DEFINE { dotr_x a :C } FROM A AND EACH B := { SELECT } WITHIN 1 s FROM A "
        "AND EACH C WITHIN FROM A AND LAST D WITHIN 1 s FROM A WHERE A.?x > 1 CONSUMING D"
    )
    rule = clauses.rule()
    assert not rule.whole
    assert rule.unresolved >= {"C"}
    assert [type(one).__name__ for one in rule.conjuncts] == ["ChooseSyntax", "ChooseSyntax"]
    assert [one.event.broken for one in rule.conjuncts] == [True, False]
    assert rule.where is not None
    assert [name.text for name in rule.consuming] == ["D"]


@pytest.mark.parametrize(
    ("behind", "code"),
    [
        ("WHERE 1 < 2 AND A.?x > 1", "D1010"),
        ("WITH ?x := 1 WHERE 1 < 2", "D1004"),
        ("WHERE 1 < 2 WHERE 1 < 2", "D1004"),
        ("AND MODE(A.?x) AS ?m OVER B WITHIN 1 s FROM A", "D1004"),
        ("AND EACH B BETWEEN A AND A", "D1411"),
        ("AND NOT LAST B WITHIN 1 s FROM A", "D1004"),
        ("AND SUM(*) AS ?n OVER B WITHIN 1 s FROM A", "D1004"),
        ("AND COUNT(DISTINCT *) AS ?n OVER B WITHIN 1 s FROM A", "D1004"),
        ("WITHIN 1 s FROM A", "D1004"),
    ],
)
def test_one_mistake_is_one_finding(behind: str, code: str) -> None:
    clauses = clauses_over(f"RULE R DEFINE {{ dotr_x a :C }} FROM A {behind}")
    clauses.rule()
    assert codes(clauses.cursor) == [code]
    assert clauses.cursor.key == "end"


def test_a_tick_of_no_length_is_refused() -> None:
    clauses = clauses_over("RULE R DEFINE { dotr_x a :C } FROM EVERY 0 s AS T")
    assert isinstance(clauses.rule().trigger, syntax.EverySyntax)
    assert codes(clauses.cursor) == ["D1403"]


# -- templates -----------------------------------------------------------------------------------------


def test_a_template_is_read_in_order_with_the_variables_it_names() -> None:
    windows = windows_over("{ dotr_a a :C ; :p ?x, ?y ; . ?x ?y 5 }")
    triples, names, clean = TemplateParser(windows.cursor, windows).template()
    fresh, x, y = program.Fresh("dotr_a"), program.TemplateVar("x"), program.TemplateVar("y")
    assert [(t.subject, t.predicate, t.object) for t in triples] == [
        (fresh, RDF_TYPE, "<urn:C>"), (fresh, P, x), (fresh, P, y), (x, y, integer(5)),
    ]  # fmt: skip
    assert [name.text for name in names] == ["x", "y", "x", "y"]
    assert clean


@pytest.mark.parametrize(
    ("inside", "code", "clean"),
    [
        ("[] a :C", "D1011", False),
        ("_:b a :C", "D1011", False),
        (":a :p (1)", "D1011", False),
        ("5 a :C", "D1012", True),
        (":a dotr_x :C", "D1012", True),
        (":a :p dotr_", "D1012", False),
        (":a :p x", "D1012", False),
        (":a :p A.?x", "D1012", False),
        (":a ^:p :b", "D1004", False),
    ],
)
def test_what_no_template_may_have(inside: str, code: str, clean: bool) -> None:
    windows = windows_over(f"{{ {inside} }} FROM")
    assert TemplateParser(windows.cursor, windows).template()[2] is clean
    assert codes(windows.cursor) == [code]
    assert windows.cursor.key == "FROM"


# -- triples -------------------------------------------------------------------------------------------


def test_brackets_and_lists_become_plain_patterns_in_order_of_appearance() -> None:
    cursor = cursor_over("?x :p [ :p 1 ], (2) ; . () :p _:a . _:a :p [] }")
    found = TriplesParser(cursor, Parameters(cursor)).block().patterns
    x, (b0, b1, b2, b3) = program.Var("x"), (program.Var(f".b{n}") for n in range(4))
    assert [(t.subject, t.predicate, t.object) for t in found] == [
        (x, P, b0), (b0, P, integer(1)), (x, P, b1), (b1, FIRST, integer(2)), (b1, REST, NIL),
        (NIL, P, b2), (b2, P, b3),
    ]  # fmt: skip
    assert cursor.key == "}"


def test_a_label_stands_in_one_basic_graph_pattern_only() -> None:
    cursor = cursor_over("_:a :p 1 . _:a :p 2 } _:a :p 3")
    triples = TriplesParser(cursor, Parameters(cursor))
    triples.new_pattern()
    triples.block()
    assert codes(cursor) == []
    cursor.advance()
    triples.new_pattern()
    assert triples.block().patterns[0].subject == program.Var(".b0")
    assert codes(cursor) == ["D1214"]


def test_triples_without_a_dot_between_them_are_refused() -> None:
    cursor = cursor_over("?x :p 1 ?y :p 2")
    with pytest.raises(Skip):
        TriplesParser(cursor, Parameters(cursor)).block()
    for text, begins in (("-5", True), ("- x", False), ("(", True), ("TRUE", True), ("FILTER", False)):
        cursor = cursor_over(text)
        assert TriplesParser(cursor, Parameters(cursor)).begins() is begins


# -- Datalog -------------------------------------------------------------------------------------------


def rules_of(text: str) -> tuple[tuple[program.DatalogRule, ...], list[str]]:
    found = Diagnostics()
    rules = DatalogParser(Source("x", "PREFIX : <urn:>\n" + text), found).rules()
    return rules, [one.code for one in found.found]


def test_both_forms_of_an_atom_are_one() -> None:
    (one, two), found = rules_of(
        ":p(?x, ?y), :C(?x) :- :q(?x, ?y) .\n[?x, :p, ?y], [?x, a, :C] :- [?x, :q, ?y] ."
    )
    assert found == []
    assert (one.heads, one.body) == (two.heads, two.body)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (":p(?x, ?y, ?z) :- :q(?x) .", "D3021"),
        ("[?x, :p] :- :q(?x) .", "D3021"),
        (":p() .", "D3021"),
        (":C(_:b) .", "D3024"),
        ("NOT :C(?x) :- :D(?x) .", "D3020"),
        (":C(?x) :- .", "D3020"),
        (":C(?x) :- NOT EXISTS :D(?x) .", "D3020"),
        (":C(?m) :- AGGREGATE(AGGREGATE(:p(?x, ?y) BIND SUM(?y) AS ?n) BIND COUNT(?n) AS ?m) .", "D3023"),
        ("@prefix : <urn:> .", "D3020"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_read_is_one_finding_and_the_next_is_read(wrong: str, code: str) -> None:
    rules, found = rules_of(wrong + "\n:C(:a) .")
    assert found == [code]
    assert len(rules) == 1


def test_a_total_of_a_group() -> None:
    (rule,), found = rules_of(":n(?x, ?n) :- AGGREGATE(:p(?x, ?y) ON ?x BIND COUNT(DISTINCT ?y) AS ?n) .")
    assert found == []
    [total] = rule.body
    assert isinstance(total, program.AggregateAtom)
    assert total.group == (program.Var("x"),)
    assert total.totals == (program.AggregateTerm("COUNT", program.Var("y"), True, program.Var("n")),)


def test_a_prologue_line_and_where_reading_goes_on() -> None:
    cursor = cursor_over("PREFIX e: <urn:e> . BASE <urn:b> x y . z PREFIX")
    atoms = AtomParser(cursor, ExpressionParser(cursor, Mode.DATALOG))
    assert atoms.prologue_line()
    assert atoms.prologue_line()
    assert not atoms.prologue_line()
    assert [prefix for prefix, _ in atoms.prologue] == ["e", None]
    atoms.recover(cursor.at, ("PREFIX",))
    assert cursor.token.text == "z"
    atoms.recover(cursor.at, ("PREFIX",))
    assert cursor.key == "PREFIX"


# -- layout --------------------------------------------------------------------------------------------


def test_no_comment_is_lost_and_each_stands_by_its_unit() -> None:
    text = "# first\n\nONE # behind\nTWO a # inside\n b # end\n# last\n"
    units = [
        LayoutUnit(text.index("ONE"), text.index("ONE") + 3, ["one"]),
        LayoutUnit(text.index("TWO"), text.index("\n b") + 3, ["two", "  b"], gap=True),
    ]
    footer = attach(Source("x", text), units)
    assert render(units, footer) == "# first\n\none  # behind\n\n# inside\n# end\ntwo\n  b\n\n# last\n"


def test_comments_of_a_unit_that_is_left_out_go_to_the_next() -> None:
    left = LayoutUnit(0, 1, [], above=["# above"], behind=["# behind"])
    assert render([left, LayoutUnit(2, 3, ["x"])], []) == "# above\n# behind\nx\n"
    assert render([left], []) == "# above\n# behind\n"
    assert render([], []) == ""

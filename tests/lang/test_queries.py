"""Embedded SPARQL: every form of the grammar becomes the tree it should, and W3C's syntax tests agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from dotr.errors import ProgramError
from dotr.lang import parse_program, parse_query
from dotr.program import (
    Alternative,
    Call,
    Const,
    Expression,
    Filter,
    GroupPattern,
    Inverse,
    NegatedSet,
    Repeat,
    Select,
    Sequence,
    SubSelect,
    TriplePattern,
    Triples,
    Union,
    Values,
    Var,
)
from dotr.rdf.terms import RDF, RDF_TYPE, XSD, integer
from tests.extract.manifests import cases

EX = {"": "http://example.org/", "ex": "http://example.org/x#"}
REFUSED = {"D1202", "D1203", "D1205", "D1207"}
"""What is SPARQL, but not SPARQL in rules: other forms, other graphs, answers without an order."""


def ex(name: str) -> str:
    return f"<http://example.org/{name}>"


def query(text: str) -> Select:
    return parse_query(text, prefixes=EX)


def patterns(text: str) -> tuple[TriplePattern, ...]:
    block = query(f"SELECT * WHERE {{ {text} }}").where.elements[0]
    assert isinstance(block, Triples)
    return block.patterns


def predicate(text: str) -> object:
    return patterns(f"?x {text} ?y")[0].predicate


def expression(text: str) -> Expression:
    condition = query(f"SELECT * WHERE {{ ?x ?y ?z FILTER({text}) }}").where.elements[1]
    assert isinstance(condition, Filter)
    return condition.condition


def codes(text: str) -> list[str]:
    with pytest.raises(ProgramError) as caught:
        query(text)
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


def test_star_projects_in_order_of_first_appearance_and_only_what_is_in_scope() -> None:
    text = """SELECT * WHERE { ?b :p [ :q ?c ] . OPTIONAL { ?a :p ?b } FILTER(?hidden > 1) MINUS { ?m :p ?b }
        { SELECT ?s WHERE { ?s :p ?inner } } BIND(1 AS ?d) FILTER EXISTS { ?e :p ?b } } VALUES ?v { 1 }"""
    select = query(text)
    assert select.star
    assert select.variables == ("b", "c", "a", "s", "d", "v")


def test_blank_nodes_and_lists_are_variables_numbered_as_they_appear() -> None:
    b = [Var(f".b{i}") for i in range(4)]
    first, rest, nil = (f"<{RDF}{name}>" for name in ("first", "rest", "nil"))
    assert patterns("?s :p [ :q _:x ] ; :r (1 [ ])") == (
        TriplePattern(Var("s"), ex("p"), b[0]),
        TriplePattern(b[0], ex("q"), b[1]),
        TriplePattern(Var("s"), ex("r"), b[2]),
        TriplePattern(b[2], first, integer(1)),
        TriplePattern(b[2], rest, b[3]),
        TriplePattern(b[3], first, Var(".b4")),
        TriplePattern(b[3], rest, nil),
    )


def test_an_empty_list_is_nil_and_a_lone_property_list_is_a_pattern() -> None:
    assert patterns("() :p ?x")[0].subject == f"<{RDF}nil>"
    assert patterns("[ :p ?x ]") == (TriplePattern(Var(".b0"), ex("p"), Var("x")),)
    assert len(patterns("(1) .")) == 2


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a", RDF_TYPE),
        ("^:p", Inverse(ex("p"))),
        (":p/:q/^:r", Sequence((ex("p"), ex("q"), Inverse(ex("r"))))),
        (":p|:q/:r", Alternative((ex("p"), Sequence((ex("q"), ex("r")))))),
        ("(:p|:q)*", Repeat(Alternative((ex("p"), ex("q"))), 0, unbounded=True)),
        (":p+", Repeat(ex("p"), 1, unbounded=True)),
        (":p?", Repeat(ex("p"), 0, unbounded=False)),
        ("^:p*", Inverse(Repeat(ex("p"), 0, unbounded=True))),
        ("!(:p|^:q|a)", NegatedSet((ex("p"), RDF_TYPE), (ex("q"),))),
        ("!^:p", NegatedSet((), (ex("p"),))),
        ("!()", NegatedSet((), ())),
    ],
)
def test_paths_bind_as_in_sparql(text: str, tree: object) -> None:
    assert predicate(text) == tree


def test_a_sign_before_a_number_belongs_to_the_object_not_to_the_path() -> None:
    assert patterns("?x :p +5") == (TriplePattern(Var("x"), ex("p"), integer(5)),)
    assert patterns("?x :p -5") == (TriplePattern(Var("x"), ex("p"), integer(-5)),)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("?x || ?y && ?z", "?x || (?y && ?z)"),
        ("?x + ?y * ?z - 1", "(?x + (?y * ?z)) - 1"),
        ("?x - ?y - ?z", "(?x - ?y) - ?z"),
        ("!?x = ?y", "(!?x) = ?y"),
        ("?x < 1 && ?y in (1, 2) || ?z not in ()", "((?x < 1) && (?y IN (1, 2))) || (?z NOT IN ())"),
        ("?x -1", "?x - 1"),
        ("?x+1", "?x + 1"),
        ("regex(?x, 'a')", 'REGEX(?x, "a")'),
        ("isuri(?x)", "isIRI(?x)"),
    ],
)
def test_operators_bind_as_in_sparql(text: str, same: str) -> None:
    assert expression(text) == expression(same)


def test_signs_make_constants_or_operators() -> None:
    assert expression("-5") == Const(integer(-5))
    assert expression("- 5") == Call("u-", (Const(integer(5)),))
    assert expression("2 - -5") == Call("-", (Const(integer(2)), Const(integer(-5))))


def test_constants_are_canonical() -> None:
    assert expression('"01"^^<http://www.w3.org/2001/XMLSchema#int>') == Const(integer(1))
    assert expression("'a'@EN-gb") == Const('"a"@en-gb')
    assert expression("1.50") == Const(f'"1.5"^^<{XSD}decimal>')
    assert expression('"""a "b"\n"""') == Const('"a \\"b\\"\\n"')
    assert expression(r'"\u00e9\t"') == Const('"é\\t"')
    assert expression(r"<http://example.org/\u00e9>") == Const("<http://example.org/é>")
    assert expression(r":a\-b%20") == Const(ex("a-b%20"))


def test_a_word_a_dot_and_a_variable_are_no_attribute_inside_a_query() -> None:
    assert patterns("?s :p true.?x :q ?y") == (
        TriplePattern(Var("s"), ex("p"), f'"true"^^<{XSD}boolean>'),
        TriplePattern(Var("x"), ex("q"), Var("y")),
    )


def test_groups_unions_and_subqueries_keep_their_braces() -> None:
    where = query(
        "SELECT ?x WHERE { { ?x :p 1 } UNION { ?x :p 2 } { ?x :p 3 } { SELECT ?x { ?x :p 4 } } }"
    ).where
    union, group, sub = where.elements
    assert isinstance(union, Union)
    assert len(union.branches) == 2
    assert isinstance(group, GroupPattern)
    assert isinstance(sub, GroupPattern)
    assert isinstance(sub.elements[0], SubSelect)


def test_values_of_one_and_of_several_variables() -> None:
    text = "SELECT * { VALUES ?x { 1 UNDEF } VALUES (?y ?z) { (:a 'b') (1 2) } }"
    one, several = query(text).where.elements
    assert one == Values((Var("x"),), ((integer(1),), (None,)))
    assert isinstance(several, Values)
    assert several.rows == ((ex("a"), '"b"'), (integer(1), integer(2)))


def test_all_clauses_of_select() -> None:
    select = query(
        """SELECT DISTINCT ?r (AVG(?v) AS ?m) WHERE { ?x :room ?r ; :val ?v } GROUP BY ?r (STR(?x) AS ?s)
        HAVING (COUNT(*) > 1) (MAX(?v) < 9) ORDER BY DESC(?m) ?r LIMIT 5 OFFSET 2 VALUES ?r { :a }"""
    )
    assert (select.distinct, select.limit, select.offset) == (True, 5, 2)
    assert [key.variable for key in select.group_by] == [None, Var("s")]
    assert len(select.having) == 2
    assert [key.descending for key in select.order_by] == [True, False]
    assert select.values is not None


def test_keywords_are_known_in_any_case_and_dollar_is_a_question_mark() -> None:
    assert query("select $x where { $x a :C } order by $x") == query(
        "SELECT ?x WHERE { ?x a :C } ORDER BY ?x"
    )


def test_a_query_may_add_prefixes_that_end_with_it() -> None:
    text = """PREFIX : <http://example.org/>
    QUERY A := { PREFIX p: <http://example.com/> SELECT ?x WHERE { ?x a p:C } }
    QUERY B := { SELECT ?x WHERE { ?x a p:C } }"""
    with pytest.raises(ProgramError, match=r"D1101.*`p:` is not declared"):
        parse_program(text)


def test_base_holds_from_its_line_on_and_paths_are_untouched_by_it() -> None:
    program = parse_program(
        "BASE <http://example.org/a/b>\nBACKGROUND <c.ttl>\nQUERY A := { SELECT ?x WHERE { ?x a <../c> } }",
        "dir/x.dotr",
    )
    assert program.background == ("dir/c.ttl",)
    block = program.queries["A"].where.elements[0]
    assert isinstance(block, Triples)
    assert block.patterns[0].object == ex("c")


def test_one_run_reports_everything_that_is_forbidden() -> None:
    text = "SELECT (RAND() AS ?r) FROM :g WHERE { GRAPH :h { ?x :p ?y } SERVICE :s { ?x :q ?z } } LIMIT 1"
    assert codes(text) == ["D1205", "D1203", "D1203", "D1203", "D1207"]


def test_nesting_ends_in_a_finding() -> None:
    assert codes("SELECT * " + "{" * 1000 + "}" * 1000) == ["D1005"]
    assert query("SELECT * " + "{" * 60 + "}" * 60).variables == ()


def syntax_tests(root: Path) -> list[tuple[str, str, bool, str]]:
    """(name, text, whether it is SPARQL 1.1, base) of every query that is parsed or run."""
    found = []
    for case in cases(root):
        if "Update" in case.kind or "sparql12" in case.query.parts:
            continue
        found.append(
            (case.id, case.query.read_text(encoding="utf-8"), "Negative" not in case.kind, case.base)
        )
    return found


def test_the_w3c_syntax_tests_agree(data: Path) -> None:
    wrong: list[str] = []
    tests = syntax_tests(data / "w3c" / "sparql")
    for name, text, right, base in tests:
        found: set[str] = set()
        try:
            parse_query(text, name, base=base)
        except ProgramError as error:
            found = {diagnostic.code for diagnostic in error.diagnostics}
        if (found and not found <= REFUSED) if right else not found:
            wrong.append(name)
    assert wrong == []
    assert len(tests) > 700


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        (
            "SELECT ?x { ?x a :T . LOAD <http://e/> }",
            "D1201",
            "a query sees one graph only: name files with BACKGROUND",
        ),
        ("SELECT ?x { ?x a :T . INSERT { ?x a :U } }", "D1201", "a query cannot change data"),
        ("SELECT ?x { load a ?x }", "D1201", "a variable is written `?load`"),
        (
            "INSERT DATA { :a :b :c }",
            "D1202",
            "a query cannot change data: write `SELECT … WHERE { … }`",
        ),
    ],
)
def test_an_update_in_a_query_is_not_taken_for_a_variable(text: str, code: str, hint: str) -> None:
    with pytest.raises(ProgramError) as raised:
        query(text)
    (found,) = raised.value.diagnostics
    assert (found.code, found.hint) == (code, hint)

"""The parsers of one text are parts that hold its cursor together; they do not inherit from each other."""

import importlib
import inspect
import pkgutil

import pytest

import dotr.lang.grammar
from dotr.errors import Diagnostics
from dotr.lang.grammar.cursor import HINTS, Cursor, Parameters
from dotr.lang.grammar.dotr import DotrParser
from dotr.lang.grammar.expressions import ExpressionParser, Mode
from dotr.lang.grammar.sparql import PathParser, SparqlParser
from dotr.lang.grammar.syntax import Duration
from dotr.program import Alternative, Inverse, NegatedSet, Path, Repeat, Sequence
from dotr.rdf.terms import RDF_TYPE
from dotr.source import Source


def _classes() -> list[type]:
    modules = [
        importlib.import_module(f"{dotr.lang.grammar.__name__}.{found.name}")
        for found in pkgutil.iter_modules(dotr.lang.grammar.__path__)
    ]
    return [
        one
        for module in modules
        for _, one in inspect.getmembers(module, inspect.isclass)
        if one.__module__ == module.__name__
    ]


def test_no_class_of_the_grammars_has_more_than_two_ancestors_of_our_own() -> None:
    classes = _classes()
    assert len([one for one in classes if one.__name__.endswith("Parser")]) >= 10
    ancestors = {
        one.__name__: [base.__name__ for base in one.__mro__[1:] if base.__module__.startswith("dotr.")]
        for one in classes
    }
    assert {name: bases for name, bases in ancestors.items() if len(bases) > 2} == {}
    assert {name: bases for name, bases in ancestors.items() if name.endswith("Parser") and bases} == {}


def test_a_query_leaves_the_place_of_the_text_as_it_found_it() -> None:
    cursor = Cursor(Source("x", "PREFIX e: <http://e/> SELECT ?x WHERE { ?x a e:C }"))
    cursor.prefixes["f"], cursor.code, cursor.used = "http://f/", "D1004", {"f"}
    expressions = ExpressionParser(cursor, Mode.RULE)
    queries = SparqlParser(cursor, expressions)
    queries.query(ask=False)
    assert (cursor.prefixes, cursor.code, cursor.used) == ({"f": "http://f/"}, "D1004", {"f"})
    assert (expressions.mode, expressions.aggregates) == (Mode.RULE, "")
    assert queries.held == {"e": "http://e/", "f": "http://f/"}


def test_a_broken_aggregate_does_not_change_what_is_said_of_the_next() -> None:
    broken = "PREFIX : <http://e/>\nRULE A DEFINE { :a :b :c } FROM E WHERE COUNT(+) > 1\n"
    alone, behind = Diagnostics(), Diagnostics()
    second = "RULE B DEFINE { :a :b :c } FROM E WHERE COUNT(?x) > 1\n"
    DotrParser(Source("x", "PREFIX : <http://e/>\n" + second), alone).file()
    DotrParser(Source("x", broken + second), behind).file()
    assert behind.found[-1].notes == alone.found[-1].notes


def test_a_parameter_is_a_term_a_duration_or_open() -> None:
    cursor = Cursor(Source("x", "?a ?b ?c"))
    parameters = Parameters(cursor, {"a": '"5"', "b": Duration(5)})
    token = cursor.token
    assert parameters.term("a", token) == '"5"'
    assert (parameters.term("b", token), parameters.term("z", token)) == (None, None)
    assert ("a" in parameters, "b" in parameters, "z" in parameters) == (True, True, False)
    parameters.refuse_binding("z", cursor.span(), "variable")
    parameters.refuse_binding("a", cursor.span(), "variable")
    parameters.unknown("b", token)
    assert [one.code for one in cursor.found.found] == ["D1113", "D1114", "D1112"]


@pytest.mark.parametrize("word", sorted(HINTS))
def test_a_word_of_another_language_says_how_it_is_written_here(word: str) -> None:
    found = Diagnostics()
    DotrParser(Source("x", f"{word.lower()} Alarm"), found).file()
    assert found.found[0].hint == HINTS[word]


P, Q = "<urn:p>", "<urn:q>"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (":p", P),
        ("a", RDF_TYPE),
        ("^:p/:q", Sequence((Inverse(P), Q))),
        (":p|:q/:p", Alternative((P, Sequence((Q, P))))),
        ("(:p|:q)*", Repeat(Alternative((P, Q)), 0, unbounded=True)),
        (":p+/:q?", Sequence((Repeat(P, 1, unbounded=True), Repeat(Q, 0, unbounded=False)))),
        ("!(:p|^:q)", NegatedSet((P,), (Q,))),
        ("!a", NegatedSet((RDF_TYPE,), ())),
        ("!()", NegatedSet((), ())),
    ],
)
def test_paths_bind_as_sparql_says(text: str, path: Path) -> None:
    cursor = Cursor(Source("x", text))
    cursor.prefixes[""] = "urn:"
    assert PathParser(cursor).path() == path
    assert cursor.key == "end"
    assert cursor.found.found == []

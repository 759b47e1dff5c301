"""Trees to text and back."""

from __future__ import annotations

import pytest
from hypothesis import given

from dotr.extract.printing import query_text
from dotr.lang import parse_query
from dotr.program import Select
from tests.extract.strategies import EX, selects

PREFIXES = {"": EX, "xsd": "http://www.w3.org/2001/XMLSchema#"}


@given(selects())
def test_printing_and_parsing_again_gives_the_same_tree(select: Select) -> None:
    for prefixes in (None, PREFIXES):
        read = parse_query(query_text(select, prefixes), prefixes=prefixes)
        assert parse_query(query_text(read, prefixes), prefixes=prefixes) == read


@given(selects())
def test_short_and_long_texts_are_one_tree(select: Select) -> None:
    short = parse_query(query_text(select, PREFIXES), prefixes=PREFIXES)
    assert short == parse_query(query_text(select))


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("FILTER((?x+1)*2=3||!(?x=?y)&&?x IN(1))", "FILTER((?x + 1) * 2 = 3 || !(?x = ?y) && ?x IN (1))"),
        ("FILTER(?x - (?y - 1) - 2 > -(5))", "FILTER(?x - (?y - 1) - 2 > -(5))"),
        ("?x (:p|^:q)/:r* ?y", "?x (:p|^:q)/:r* ?y ."),
        ("?x !(:p|^:q) ?y", "?x !(:p|^:q) ?y ."),
        ("?x ^(:p/:q)+ ?y", "?x ^(:p/:q)+ ?y ."),
        ("?x a :C ; :p 1.0, 1e0, true", "?x a :C ;\n    :p 1.0 ;\n    :p 1e0 ;\n    :p true ."),
        ('?x :p "a\\n\\"b"@en', '?x :p "a\\n\\"b"@en .'),
        ("FILTER NOT EXISTS { ?x :p ?y }", "FILTER NOT EXISTS {\n    ?x :p ?y .\n  }"),
        ("VALUES ?x { 1 UNDEF }", "VALUES (?x) { (1) (UNDEF) }"),
    ],
)  # fmt: skip
def test_the_printed_form_of(written: str, printed: str) -> None:
    text = query_text(parse_query(f"SELECT * WHERE {{ {written} }}", prefixes=PREFIXES), PREFIXES)
    assert text == f"SELECT * WHERE {{\n  {printed}\n}}"

"""Whatever the text, only findings come out, in bounded time. The long runs: tests/fuzz_language.py."""

from __future__ import annotations

import time

import pytest

from dotr.errors import ProgramError
from dotr.lang import check_program, parse_datalog, parse_query
from tests.fuzz_language import fuzz

MEGABYTE = 1_000_000
SIZE = 100_000
DEEP = {
    "braces": "{" * SIZE,
    "braces in a query": "QUERY A := " + "{" * SIZE,
    "groups": "QUERY A := { SELECT * WHERE " + "{ " * (SIZE // 2) + "}" * (SIZE // 2) + "}",
    "brackets": "QUERY A := { SELECT * WHERE { FILTER(" + "(" * SIZE,
    "blank nodes": "QUERY A := { SELECT * WHERE { ?x ?y " + "[ ?p " * (SIZE // 5),
    "lists": "QUERY A := { SELECT * WHERE { ?x ?y " + "( " * (SIZE // 2),
    "paths": "QUERY A := { SELECT * WHERE { ?x " + "(" * SIZE,
    "negations": "QUERY A := { SELECT * WHERE { FILTER(" + "!" * SIZE,
    "sums": "QUERY A := { SELECT * WHERE { FILTER(1" + "+1" * (SIZE // 2) + ") } }",
    "runs of names": "a." * (SIZE // 2),
    "letters no name may have": "\u00e9." * (SIZE // 3),
    "digits": "QUERY A := { SELECT * WHERE { ?x ?y " + "1" * SIZE,
    "open strings": '"' * SIZE,
    "open IRIs": "<a" * (SIZE // 2),
    "underscores": "_" * SIZE,
    "rules": "RULE A DEFINE { } FROM B AND " * (SIZE // 29),
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_a_long_text_of_one_thing_ends_in_findings_within_seconds(text: str) -> None:
    begun = time.process_time()
    program, found = check_program(["x.dotr"], lambda _path: text)
    assert program is None
    assert 0 < len(found) <= 400
    assert time.process_time() - begun < 10


def test_a_megabyte_of_braces_is_an_error_in_every_language() -> None:
    for parse in (parse_query, parse_datalog):
        with pytest.raises(ProgramError):
            parse("{" * MEGABYTE)


def test_mutated_and_random_texts_end_in_findings_only() -> None:
    assert list(fuzz(seed=0, count=600)) == []

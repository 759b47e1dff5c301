"""Which kinds of values have a sum, a product, a comparison; check says so in all three languages."""

from __future__ import annotations

from itertools import product

import pytest

from dotr.errors import Diagnostic
from dotr.events import Clock
from dotr.expressions.evaluate import compile_expression
from dotr.lang import check_program
from dotr.lang.checks.comparisons import NoValueError, Sort, comparable, result
from dotr.program import Call, Const
from dotr.rdf.terms import FALSE, TRUE, XSD, Term, integer, literal

EXAMPLES: dict[Sort, tuple[Term, Term]] = {
    Sort.NUMBER: (integer(2), literal("2.5", XSD + "decimal")),
    Sort.TEXT: (literal("2"), literal("a")),
    Sort.BOOLEAN: (TRUE, FALSE),
    Sort.RESOURCE: ("<urn:a>", "<urn:b>"),
    Sort.TIME: tuple(literal(f"2026-01-0{n}T00:00:00Z", XSD + "dateTime") for n in (1, 2)),
    Sort.DATE: tuple(literal(f"2026-01-0{n}Z", XSD + "date") for n in (1, 2)),
    Sort.CLOCK: tuple(literal(f"0{n}:00:00Z", XSD + "time") for n in (1, 2)),
    Sort.SECONDS: tuple(literal(f"PT{n}S", XSD + "dayTimeDuration") for n in (1, 2)),
    Sort.MONTHS: tuple(literal(f"{sign}P1M", XSD + "yearMonthDuration") for sign in ("", "-")),
    Sort.DURATION: tuple(literal(f"PT{n}S", XSD + "duration") for n in (1, 2)),
}  # type: ignore[assignment]  # pairs


def values(function: str, left: Sort, right: Sort, *, rule: bool) -> list[Term | None]:
    return [
        compile_expression(
            Call(function, (Const(a), Const(b))),
            lambda _: lambda _row: None,
            clock=Clock(False),
            seconds=rule,
        )(())
        for a, b in product(EXAMPLES[left], EXAMPLES[right])
    ]


@pytest.mark.parametrize("rule", [False, True])
@pytest.mark.parametrize("function", ["+", "-", "*", "/"])
def test_what_is_called_an_error_is_one_and_nothing_else(function: str, rule: bool) -> None:
    for left, right in product(EXAMPLES, repeat=2):
        found = values(function, left, right, rule=rule)
        try:
            result(function, (left, right), rule=rule)
        except NoValueError:
            assert found == [None] * 4, (function, left, right)
        else:
            assert any(found), (function, left, right)


@pytest.mark.parametrize("rule", [False, True])
def test_what_is_called_incomparable_never_holds(rule: bool) -> None:
    for left, right in product(EXAMPLES, repeat=2):
        if not comparable(left, right, rule=rule):
            for function in ("=", "<", ">="):
                assert TRUE not in values(function, left, right, rule=rule), (function, left, right)


def found(files: dict[str, str]) -> list[Diagnostic]:
    return [d for d in check_program(["a.dotr"], files.__getitem__)[1] if d.code in ("D1219", "D1224")]


def test_datalog_and_lars_are_looked_at_too() -> None:
    prefix = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
    rules = (
        "RULES <a.dlog>\nLARS <a.lars>\nQUERY Q := { SELECT ?x { ?s <urn:v> ?x } }\n"
        "RULE R DEFINE { dotr_e <urn:is> ?x } FROM ISTREAM late WITH ?x := late.?x\n"
    )
    datalog = prefix + "<urn:p>(?s, ?d) :- <urn:v>(?s, ?x), BIND(xsd:dateTime(?x) + 5 AS ?d) .\n"
    lars = (
        prefix
        + 'late(?x) :- Q(?x) WITHIN 5 s, FILTER(xsd:date(?x) < xsd:dateTime("2026-01-01T00:00:00Z")) .\n'
    )
    said = [(d.code, d.notes[0]) for d in found({"a.dotr": rules, "a.dlog": datalog, "a.lars": lars})]
    assert said == [
        ("D1224", "`xsd:dateTime(?x)` is a dateTime and `5` is a number"),
        ("D1219", '`xsd:date(?x)` is a date and `xsd:dateTime("2026-01-01T00:00:00Z")` is a dateTime'),
    ]

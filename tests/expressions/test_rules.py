"""What expressions mean in ON, WHERE and WITH, where there are positions, times and no graph."""

from __future__ import annotations

from typing import Any

import pytest

from dotr.errors import ProgramError
from dotr.events import Clock
from dotr.expressions import operators
from dotr.expressions.evaluate import check_call, compile_condition, compile_expression
from dotr.program import Attribute, Call, Const, Exists, Expression, GroupPattern, TimeOf, Var
from dotr.rdf.terms import FALSE, TRUE, XSD, Term, integer, literal

SECONDS = Clock()
MILLIS = Clock(unit=1_000)
DATES = Clock(integer=False)
A, B = TimeOf("A"), TimeOf("B")
DATE = literal("2020-01-01T00:00:00Z", XSD + "dateTime")
DAY = literal("P1D", XSD + "dayTimeDuration")


def leaf(node: Any) -> Any:
    match node:
        case TimeOf(position):
            return lambda row: row[f"{position}.time"]
        case Attribute(position, variable):
            return lambda row: row[f"{position}.{variable}"]
        case Var(name):
            return lambda row: row[name]


def value(expression: Expression, clock: Clock = SECONDS, **row: Term | None) -> Term | None:
    names = {name.replace("_", "."): term for name, term in row.items()}
    return compile_expression(expression, leaf, clock=clock, seconds=True)(names)


@pytest.mark.parametrize(
    ("clock", "later", "earlier", "seconds"),
    [
        (SECONDS, 12_000_000, 10_000_000, "2"),
        (SECONDS, 10_000_000, 12_000_000, "-2"),
        (MILLIS, 12_500_000, 12_000_000, "0.5"),
        (DATES, 1_600_000_000_000_001, 1_600_000_000_000_000, "0.000001"),
        (DATES, 86_400_000_000, 0, "86400"),
    ],
)
def test_the_difference_of_two_times_is_decimal_seconds(
    clock: Clock, later: int, earlier: int, seconds: str
) -> None:
    difference = value(Call("-", (A, B)), clock, A_time=clock.term(later), B_time=clock.term(earlier))
    assert difference == literal(seconds, XSD + "decimal")


def dated(text: str, kind: str = "dateTime") -> Term:
    return literal(text, XSD + kind)


SENT, GOT = Attribute("A", "sent"), Attribute("A", "got")
TWO = dated("PT2S", "dayTimeDuration")


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (Call("-", (A, SENT)), literal("4", XSD + "decimal")),
        (Call("-", (SENT, A)), literal("-4", XSD + "decimal")),
        (Call("-", (GOT, SENT)), literal("3.5", XSD + "decimal")),
        (Call("-", (A, Const(TWO))), dated("2026-01-01T10:00:03Z")),
        (Call("+", (Const(TWO), SENT)), dated("2026-01-01T11:00:03+01:00")),
        (Call("-", (GOT, Const(literal("1.5", XSD + "decimal")))), dated("2026-01-01T10:00:03Z")),
        (Call("+", (Const(literal("0.1", XSD + "double")), A)), dated("2026-01-01T10:00:05.1Z")),
        (Call("+", (GOT, Const(dated("P1M", "yearMonthDuration")))), dated("2026-02-01T10:00:04.5Z")),
        (Call(">", (Call("-", (A, SENT)), Const(integer(2)))), TRUE),
        (Call(">", (Call("-", (A, SENT)), Const(TWO))), TRUE),
        (Call("<", (Const(TWO), Call("-", (A, GOT)))), FALSE),
        (Call("=", (Const(TWO), Const(integer(2)))), TRUE),
        (Call("!=", (Const(TWO), Const(literal("2.5", XSD + "double")))), TRUE),
        (Call("IN", (Const(TWO), Const(integer(1)), Const(integer(2)))), TRUE),
        (Call("-", (Call("+", (A, Const(integer(60)))), SENT)), literal("64", XSD + "decimal")),
        (Call("-", (Call("NOW", ()), SENT)), literal("4", XSD + "decimal")),
        (
            Call("-", (Const(dated("2026-03-31", "date")), Const(dated("2026-01-31", "date")))),
            literal("5097600", XSD + "decimal"),
        ),
        (
            Call("+", (Const(dated("2026-01-31", "date")), Const(integer(90_000)))),
            dated("2026-02-01", "date"),
        ),
        (Call("-", (Const(dated("10:00:00", "time")), Const(integer(60)))), dated("09:59:00", "time")),
        # what stays an error
        (Call("-", (A, Const(dated("2026-01-01", "date")))), None),
        (Call("-", (A, Const(dated("2026-01-01T10:00:01")))), None),
        (Call("+", (A, SENT)), None),
        (Call("-", (Const(integer(5)), A)), None),
        (Call("*", (A, Const(integer(2)))), None),
        (Call("+", (Const(TWO), Const(integer(2)))), None),
        (Call(">", (Const(dated("P1M", "yearMonthDuration")), Const(integer(2)))), None),
        (Call(">", (A, Const(integer(2)))), None),
        (Call("-", (A, Const(literal("NaN", XSD + "double")))), None),
    ],
)
def test_times_and_durations_in_rules(expression: Expression, wanted: Term | None) -> None:
    row = {
        "A.time": dated("2026-01-01T10:00:05Z"),
        "A.sent": dated("2026-01-01T11:00:01+01:00"),
        "A.got": dated("2026-01-01T10:00:04.5Z"),
    }
    found = compile_expression(expression, leaf, clock=DATES, now=lambda r: r["A.time"], seconds=True)(row)
    assert found == wanted
    holds = compile_condition(expression, leaf, clock=DATES, now=lambda r: r["A.time"], seconds=True)(row)
    if wanted in (TRUE, FALSE, None):
        assert holds is (wanted == TRUE)


@pytest.mark.parametrize(
    ("clock", "expression", "wanted"),
    [
        (SECONDS, Call("+", (A, Const(integer(5)))), integer(12)),
        (SECONDS, Call("-", (A, SENT)), integer(4)),
        (SECONDS, Call("-", (A, Const(literal("0.5", XSD + "decimal")))), literal("6.5", XSD + "decimal")),
        (SECONDS, Call("-", (SENT, A)), literal("-4", XSD + "decimal")),
        (SECONDS, Call("+", (A, Const(TWO))), integer(9)),
        (SECONDS, Call("+", (Const(TWO), A)), integer(9)),
        (SECONDS, Call("+", (A, Const(dated("P1M", "yearMonthDuration")))), None),
        (MILLIS, Call("+", (A, Const(integer(5)))), integer(5_007)),
        (MILLIS, Call("-", (A, Const(literal("0.0005", XSD + "decimal")))), literal("6.5", XSD + "decimal")),
        (MILLIS, Call("-", (A, Const(TWO))), integer(-1_993)),
        (MILLIS, Call("-", (Call("+", (A, Const(integer(5)))), A)), literal("5", XSD + "decimal")),
        (MILLIS, Call("-", (SENT, A)), literal("-0.004", XSD + "decimal")),
        (MILLIS, Call("-", (A, Const(dated("2026-01-01T10:00:01Z")))), None),
        (MILLIS, Call("+", (SENT, Const(integer(5)))), integer(8)),
        (MILLIS, Call("*", (A, Const(integer(2)))), integer(14)),
    ],
)
def test_seconds_are_added_to_integer_times_of_any_unit(
    clock: Clock, expression: Expression, wanted: Term | None
) -> None:
    assert value(expression, clock, A_time=integer(7), A_sent=integer(3)) == wanted


def test_in_queries_differences_are_durations_and_no_number_equals_one() -> None:
    row = {"a": DATE, "b": literal("2020-01-01T00:00:02Z", XSD + "dateTime")}
    difference = Call("-", (Var("b"), Var("a")))
    assert compile_expression(difference, leaf, clock=DATES)(row) == TWO
    for operator in ("=", "<", ">="):
        condition = Call(operator, (difference, Const(integer(2))))
        assert compile_condition(condition, leaf, clock=DATES)(row) is False
    assert compile_expression(Call("+", (Var("a"), Const(integer(2)))), leaf, clock=DATES)(row) is None


def test_in_queries_a_duration_can_be_added_to_a_datetime() -> None:
    later = compile_expression(Call("+", (Var("t"), Const(DAY))), leaf, clock=SECONDS)({"t": DATE})
    assert later == literal("2020-01-02T00:00:00Z", XSD + "dateTime")


def test_integer_times_are_integers() -> None:
    assert value(Call("<", (A, B)), A_time=integer(7), B_time=integer(8)) == TRUE


def test_an_unbound_attribute_makes_an_error_but_for_bound_and_coalesce() -> None:
    v = Attribute("A", "v")
    assert value(Call("+", (v, Const(integer(1)))), A_v=None) is None
    assert value(Call("BOUND", (v,)), A_v=None) == FALSE
    assert value(Call("COALESCE", (v, Const(integer(0)))), A_v=None) == integer(0)
    assert value(Call("!", (Call("BOUND", (v,)),)), A_v=None) == TRUE


def test_a_condition_whose_value_is_an_error_is_false() -> None:
    condition = Call("!=", (Var("v"), Const(integer(1))))
    assert compile_condition(condition, leaf, clock=SECONDS)({"v": None}) is False
    negated = Call("!", (condition,))
    assert compile_condition(negated, leaf, clock=SECONDS)({"v": None}) is False


def test_now_is_what_the_caller_says() -> None:
    now = Call("NOW", ())
    assert compile_expression(now, leaf, clock=SECONDS, now=lambda row: row["t"])(
        {"t": integer(9)}
    ) == integer(9)
    assert compile_expression(now, leaf, clock=SECONDS)({}) is None


def test_exists_is_the_callers_and_an_error_in_the_program_where_there_is_no_graph() -> None:
    exists, not_exists = Exists(GroupPattern(()), False), Exists(GroupPattern(()), True)
    for found in (True, False):
        for expression in (exists, not_exists):
            holds = compile_condition(expression, leaf, clock=SECONDS, exists=lambda _: lambda row: row)
            assert holds(found) is (found is not expression.negated)
    with pytest.raises(ProgramError, match="EXISTS"):
        compile_condition(exists, leaf, clock=SECONDS)


@pytest.mark.parametrize(
    ("function", "arguments", "complaint"),
    [
        ("STRLEN", 1, None),
        ("STRLEN", 2, "`STRLEN` takes 1 argument, not 2"),
        ("SUBSTR", 1, "`SUBSTR` takes 2 to 3 arguments, not 1"),
        ("IN", 0, "`IN` takes 1 or more arguments, not 0"),
        (f"<{XSD}double>", 1, None),
        ("RAND", 0, "there is no function `RAND`"),
        ("<urn:f>", 1, "there is no function `<urn:f>`"),
    ],
)
def test_calls_are_checked_by_name_and_number_of_arguments(
    function: str, arguments: int, complaint: str | None
) -> None:
    assert check_call(function, arguments) == complaint
    if complaint:
        call = Call(function, tuple(Const(integer(i)) for i in range(arguments)))
        with pytest.raises(ProgramError, match=r"takes|there is no function"):
            compile_expression(call, leaf, clock=SECONDS)


def test_a_users_text_never_becomes_query_text() -> None:
    hostile = literal('a") } } SELECT (1 AS ?r) { VALUES (?x) { ("')
    assert value(Call("REGEX", (Var("v"), Const('"^a\\"\\\\)"'))), v=hostile) == TRUE
    assert value(Call("REPLACE", (Var("v"), Const('".*"'), Const('"x"'))), v='"q\\"\\n"') == '"x\\nx"'
    odd = f'"x"^^<urn:a> {chr(125)} # >'
    assert value(Call("=", (Var("v"), Const('"y"^^<urn:b>'))), v=odd) is None


def test_patterns_of_many_values_do_not_fill_memory() -> None:
    for i in range(20):
        value(Call("REGEX", (Var("v"), Const('"^a.*"'))), v=literal("a" * 2_000 + str(i)))
    assert not any(len(question) > 1 and len(question[1]) > 1_000 for question in operators._memo)

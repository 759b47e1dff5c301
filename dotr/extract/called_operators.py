"""Operators on numbers and durations as functions that the full engine calls.

Place:   full.py rewrites a query with `called` and gives pyoxigraph `FUNCTIONS`; for `--verify` and tests.
Method:  the full engine's own integers end at 64 bits. So every operator, comparison, cast and function that
         may take a number, and every place where a number has an effective boolean value, becomes a call.
         Arguments that are all numbers are read and computed literally (expressions/literal_numbers.py); for
         all others the engine is asked for its own answer. So an overflow of the engine is never taken for an
         error of the query.
         What the engine lacks for durations is implemented independently of expressions/, from the letter of
         XPath and XQuery Functions and Operators 3.1, sec. 8, on the text of literals, with fractions of
         seconds.
Why not: `COALESCE(?a + ?b, …)` around the engine's own operators: the query doubles in length with each
         level. Calls only where a large integer occurs: nobody knows beforehand where one will be computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

import pyoxigraph as ox

from dotr import program
from dotr.budget import Overlong
from dotr.expressions.literal_calendars import CALENDARS
from dotr.expressions.literal_geometry import GEOMETRY
from dotr.expressions.literal_numbers import (
    DECIMAL,
    INTEGER,
    MATHEMATICS,
    OPERATORS,
    TRUTH,
    Number,
    operands,
    read,
    write,
)
from dotr.expressions.operators import ask
from dotr.program.own_functions import OWN, OwnFunction
from dotr.rdf.terms import FALSE, TRUE, XSD, Term, is_iri, literal_parts, to_oxigraph

OxTerm = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple
Answer = OxTerm | None

_DAY_TIME, _YEAR_MONTH = f"{XSD}dayTimeDuration", f"{XSD}yearMonthDuration"
_DURATIONS = frozenset((_DAY_TIME, _YEAR_MONTH, f"{XSD}duration"))
_UNITS = {"Y": (12, 0), "M": (1, 0), "D": (0, 86_400)}
_SMALL_UNITS = {"H": (0, 3_600), "M": (0, 60), "S": (0, 1)}
_LIMIT = 2**127
_NUMERIC = frozenset(f"{XSD}{name}" for name in ("integer", "decimal", "double", "float"))


def _parts(term: OxTerm) -> tuple[int, Fraction] | None:
    """Months and seconds of a well-typed duration."""
    if not isinstance(term, ox.Literal) or term.datatype.value not in _DURATIONS:
        return None
    if ask("STR(?a + ?a)", str(term)) is None:  # the engine reads it, or not
        return None
    date, _, time = term.value.lstrip("-").removeprefix("P").partition("T")
    months, seconds = 0, Fraction(0)
    for text, units in ((date, _UNITS), (time, _SMALL_UNITS)):
        for count, unit in re.findall(r"([0-9.]+)([A-Z])", text):
            months += int(Fraction(count) * units[unit][0])
            seconds += Fraction(count) * units[unit][1]
    return (-months, -seconds) if term.value.startswith("-") else (months, seconds)


def _number(term: OxTerm) -> Fraction | None:
    number = read(str(term))
    if number is None:
        return None
    exact = number.exact
    if isinstance(exact, float):
        return None
    return exact if number.kind in (INTEGER, DECIMAL) else Fraction(literal_parts(str(term))[0])


def _literal(amount: Fraction, datatype: str) -> Answer:
    """A dayTimeDuration or decimal of seconds, cut; a yearMonthDuration of months, rounded."""
    if datatype == _YEAR_MONTH:
        months = (2 * amount.numerator + amount.denominator) // (2 * amount.denominator)
        return _canonical(f"{'-' if months < 0 else ''}P{abs(months)}M", datatype)
    cut = int(amount * 10**18)
    if datatype == f"{XSD}decimal":
        return to_oxigraph(write(Number(DECIMAL, cut)))
    if abs(cut) >= _LIMIT:
        return None
    text = f"{abs(cut) // 10**18}.{abs(cut) % 10**18:018}"
    sign = "-" if cut < 0 else ""
    return _canonical(f"{sign}PT{text}S", datatype)


def _canonical(text: str, datatype: str) -> Answer:
    found = ask(f"<{datatype}>(?a)", f'"{text}"')
    return None if found is None else to_oxigraph(found)


def _of(term: str | None) -> Answer:
    return None if term is None else to_oxigraph(term)


def plus(a: OxTerm, b: OxTerm) -> Answer:
    """`a + b`, which the engine knows in one order only where one side is a time."""
    return _of(ask("?a + ?b", str(a), str(b)) or ask("?a + ?b", str(b), str(a)))


def times(a: OxTerm, b: OxTerm) -> Answer:
    """`a * b`."""
    for length, factor in ((a, b), (b, a)):
        parts, number = _parts(length), _number(factor)
        if parts is not None and number is not None:
            return _scaled(length, parts, number)
    return _of(ask("?a * ?b", str(a), str(b)))


def over(a: OxTerm, b: OxTerm) -> Answer:
    """`a / b`."""
    parts, others, number = _parts(a), _parts(b), _number(b)
    if parts is None:
        return _of(ask("?a / ?b", str(a), str(b)))
    if others is not None:
        assert isinstance(a, ox.Literal)
        assert isinstance(b, ox.Literal)
        kind = a.datatype.value
        if kind != b.datatype.value or kind == f"{XSD}duration":
            return None
        left, right = (parts[0], others[0]) if kind == _YEAR_MONTH else (parts[1], others[1])
        return None if right == 0 else _literal(Fraction(left) / right, f"{XSD}decimal")
    if number is None:
        infinite = isinstance(b, ox.Literal) and b.value in ("INF", "-INF") and b.datatype.value in _NUMERIC
        return _scaled(a, parts, Fraction(0)) if infinite else None
    return None if number == 0 else _scaled(a, parts, 1 / number)


def _scaled(length: OxTerm, parts: tuple[int, Fraction], factor: Fraction) -> Answer:
    assert isinstance(length, ox.Literal)
    kind = length.datatype.value
    if kind == f"{XSD}duration":
        return None
    return _literal((parts[0] if kind == _YEAR_MONTH else parts[1]) * factor, kind)


def _component(name: str) -> Callable[[OxTerm], Answer]:
    def component(term: OxTerm) -> Answer:
        parts = _parts(term)
        if parts is None:
            return None if name == "DAYS" else _of(ask(f"{name}(?a)", str(term)))
        whole = abs(parts[1])
        found = {
            "DAYS": Fraction(whole // 86_400),
            "HOURS": Fraction(whole // 3_600 % 24),
            "MINUTES": Fraction(whole // 60 % 60),
            "SECONDS": whole % 60,
        }[name]
        signed = -found if parts[1] < 0 else found
        if name == "SECONDS":
            return _literal(Fraction(signed), f"{XSD}decimal")
        return _canonical(str(signed), f"{XSD}integer")

    return component


def decimal(term: OxTerm) -> Answer:
    """`xsd:decimal(a)`: of a duration without months its seconds."""
    parts = _parts(term)
    if parts is None or parts[0]:
        return _of(ask(f"<{XSD}decimal>(?a)", str(term)))
    return _literal(parts[1], f"{XSD}decimal")


def _of_text(own: Callable[..., Term | None]) -> Callable[..., Answer]:
    return lambda *given: _of(own(*map(str, given)))


def _no_number(*_given: OxTerm) -> Answer:
    """What mathematics gives where an argument is no number."""
    return None


CALLS: Mapping[str, tuple[str, Callable[..., Answer]]] = {
    "+": ("plus", plus),
    "*": ("times", times),
    "/": ("over", over),
    f"<{XSD}decimal>": ("decimal", decimal),
    **{name: (name, _component(name)) for name in ("DAYS", "HOURS", "MINUTES", "SECONDS")},
    **{name: (name, _of_text(own)) for name, own in CALENDARS.items()},
    **{name: (f"geometry{place}", _of_text(own)) for place, (name, own) in enumerate(GEOMETRY.items())},
    **{name: (f"math{place}", _no_number) for place, name in enumerate(MATHEMATICS)},
}
"""Function of `Call` → the name under which the engine finds it, and what it does."""


_SPACE: Final = "urn:dotr:sparql:"
_NAMES: Final = {
    **{name: f"<{_SPACE}{own}>" for name, (own, _) in CALLS.items()},
    **{name: f"<{_SPACE}number{i}>" for i, name in enumerate(OPERATORS)},
}
_CONDITIONS: Final = frozenset(("=", "!=", "<", ">", "<=", ">="))
_BOOLEAN: Final = frozenset(
    {"&&", "||", "!", "BOUND", "SAMETERM", "IN", "NOT-IN", "LANGMATCHES", "REGEX", "CONTAINS", "STRSTARTS"}
    | {"STRENDS", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", *(_NAMES[name] for name in _CONDITIONS)}
)
"""What has a boolean value, or none."""


def called(expression: program.Expression) -> program.Expression:
    """One expression, whose parts are rewritten already."""
    match expression:
        case program.Call("IN", (tested, first, *others)) if not all(map(_is_iri, (first, *others))):
            found = called(program.Call("=", (tested, first)))
            for other in others:
                found = program.Call("||", (found, called(program.Call("=", (tested, other)))))
            return found
        case program.Call("NOT-IN", (tested, first, *others)) if not all(map(_is_iri, (first, *others))):
            return program.Call("!", (called(program.Call("IN", (tested, first, *others))),))
        case program.Call("=" | "!=", (a, b)) if _is_iri(a) or _is_iri(b):
            return expression
        case program.Call("&&" | "||" | "!" as function, arguments, span):
            return program.Call(function, tuple(map(condition, arguments)), span)
        case program.Call("IF", (tested, *ways), span):
            return program.Call("IF", (condition(tested), *ways), span)
        case program.Call(function, arguments, span) if function in _NAMES:
            return program.Call(_NAMES[function], arguments, span)
        case _:
            return expression


def condition(expression: program.Expression) -> program.Expression:
    """An expression, rewritten already, whose effective boolean value is taken."""
    match expression:
        case program.Exists():
            return expression
        case program.Call(function) if function in _BOOLEAN:
            return expression
        case _:
            return program.Call(_NAMES[TRUTH], (expression,))


def _is_iri(expression: program.Expression) -> bool:
    return isinstance(expression, program.Const) and is_iri(expression.term)


def _function(name: str) -> Callable[..., OxTerm | None]:
    """The function of an operator: None is an error, as is what it raises."""
    own, question = OPERATORS[name], _question(name)
    otherwise = CALLS[name][1] if name in CALLS else None

    def answer(*terms: Term) -> Term | None:
        numbers = operands(name, terms)
        if numbers is None:
            nodes = any(term[0] == "_" for term in terms)
            return _of_nodes(name, *terms) if nodes else ask(question, *map(_within_its_bits, terms))
        found = own(*numbers)
        if found is None or isinstance(found, bool):
            return None if found is None else TRUE if found else FALSE
        return write(found)

    def function(*given: OxTerm) -> OxTerm | None:
        try:
            if otherwise is not None and operands(name, list(map(str, given))) is None:
                return otherwise(*given)
            found = answer(*map(str, given))
        except Overlong:  # an error that only an engine reports
            return None
        return None if found is None else to_oxigraph(found)

    return function


def _within_its_bits(term: Term) -> Term:
    """A number that the engine has in place of one that it has not: beside what is no number, any will do."""
    number = read(term)
    if number is None or not isinstance(number.value, int):
        return term
    bits = 63 if number.kind == INTEGER else 127
    known = abs(number.value) < 2**bits and write(number) == term
    return term if known else write(number._replace(value=1))


def _question(name: str) -> str:
    if name == TRUTH:
        return "!!(?a)"
    if name in ("u-", "u+"):
        return f"{name[1]}(?a)"
    return f"{name}(?a)" if (name[0] == "<" and name[-1] == ">") or name.isalpha() else f"?a {name} ?b"


def _of_nodes(name: str, *terms: Term) -> Term | None:
    """An operator where an argument is a blank node, which cannot be written in a query."""
    if name not in _CONDITIONS:
        return FALSE if name == "ISNUMERIC" else None
    same = terms[0] == terms[1]
    if name in ("=", "!="):
        return TRUE if same is (name == "=") else FALSE
    return (TRUE if name[-1] == "=" else FALSE) if same else None


FUNCTIONS: Mapping[ox.NamedNode, Callable[..., OxTerm | None]] = {
    ox.NamedNode(iri[1:-1]): _function(name) if name in OPERATORS else CALLS[name][1]
    for name, iri in _NAMES.items()
}


def own_calls() -> dict[ox.NamedNode, Callable[..., OxTerm | None]]:
    """Functions of one's own, by name."""
    from dotr.expressions.literal_functions import call_of_terms  # noqa: PLC0415  # start-up

    def function(own: OwnFunction) -> Callable[..., OxTerm | None]:
        return lambda *given: _of(call_of_terms(own, list(map(str, given))))

    return {ox.NamedNode(term[1:-1]): function(own) for term, own in OWN.items()}

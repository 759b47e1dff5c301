"""What the full engine lacks for durations, once more and by other means: for `--verify` and tests.

Place:   oxigraph.py writes calls of these functions into the query for the full engine; full.py passes them.
Method:  the letter of XPath and XQuery Functions and Operators 3.1, sec. 8, on the text of literals, with
         fractions of seconds. Nothing of expressions/ decides here; what is about no duration the engine
         answers itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction

import pyoxigraph as ox

from dotr.expressions.dialect import ask
from dotr.expressions.literal_numbers import DECIMAL, INTEGER, Number, read, write
from dotr.rdf.terms import XSD, literal_parts, to_oxigraph

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


CALLS: Mapping[str, tuple[str, Callable[..., Answer]]] = {
    "+": ("plus", plus),
    "*": ("times", times),
    "/": ("over", over),
    f"<{XSD}decimal>": ("decimal", decimal),
    **{name: (name, _component(name)) for name in ("DAYS", "HOURS", "MINUTES", "SECONDS")},
}
"""Function of `Call` → the name under which the engine finds it, and what it does."""

"""Which literals are one data value, by Python's own arithmetic of the value spaces."""

from __future__ import annotations

import base64
import re
import struct
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotr.io.python_values import triples_of
from dotr.knowledge_base import KnowledgeBase
from dotr.rdf.terms import OWL, RDF, XSD, Term, canonical, literal
from dotr.rdf.values import data_value

InstantFacts = tuple[Term, Any]
"""A literal, and its value: equal for one value, another for each other."""


def typed(lexical: str, name: str) -> Term:
    return literal(lexical, name if ":" in name else XSD + name)


_sign = st.sampled_from(["", "+", "-"])
_zeros = st.sampled_from(["", "0", "000"])
_INTEGERS = {
    "integer": (None, None),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "byte": (-128, 127),
    "short": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
    "unsignedByte": (0, 255),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedLong": (0, 2**64 - 1),
}


@st.composite
def integers(draw: st.DrawFn) -> InstantFacts:
    name = draw(st.sampled_from(sorted(_INTEGERS)))
    least, most = _INTEGERS[name]
    small = [n for n in range(-3, 4) if (least is None or n >= least) and (most is None or n <= most)]
    value = draw(st.one_of(st.sampled_from(small), st.integers(least, most)))
    sign = "-" if value < 0 else draw(st.sampled_from(["", "+"] if value else ["", "+", "-"]))
    return typed(f"{sign}{draw(_zeros)}{abs(value)}", name), ("number", Fraction(value))


@st.composite
def decimals(draw: st.DrawFn) -> InstantFacts:
    whole, fraction = (
        draw(st.integers(0, 3) | st.integers(0, 10**25)),
        draw(st.sampled_from(["", "0", "5", "50", "125", "00000000000000000000000001"])),
    )
    lexical = f"{draw(_sign)}{draw(_zeros)}{whole}{'.' + fraction if fraction else ''}"
    return typed(lexical, "decimal"), ("number", Fraction(Decimal(lexical)))


@st.composite
def rationals(draw: st.DrawFn) -> InstantFacts:
    over, under = draw(st.integers(-9, 9)), draw(st.integers(1, 12))
    return typed(f"{over}/{under}", OWL + "rational"), ("number", Fraction(over, under))


_FLOATS = [
    "0",
    "-0",
    "+0",
    "0.0",
    "-0.0",
    "1",
    "1.0",
    "01",
    "1e0",
    "10E-1",
    "0.1",
    "0.10",
    "1e400",
    "INF",
    "-INF",
    "NaN",
    "16777217",
    "16777216",
    "0.10000000149011612",
]


@st.composite
def floats(draw: st.DrawFn) -> InstantFacts:
    name, lexical = draw(st.sampled_from(["double", "float"])), draw(st.sampled_from(_FLOATS))
    value = float(lexical)  # Python reads INF and NaN as XSD does
    code = "d" if name == "double" else "f"
    try:
        image = struct.pack(code, value)
    except OverflowError:  # beyond a float: infinite
        image = struct.pack(code, float("inf") if value > 0 else float("-inf"))
    return typed(lexical, name), (name, "NaN" if value != value else image)


@st.composite
def strings(draw: st.DrawFn) -> InstantFacts:
    name = draw(
        st.sampled_from(["string", "normalizedString", "token", "language", "Name", "NCName", "NMTOKEN"])
    )
    lexical = draw(st.sampled_from(["en", "a", "A", "de"]))
    return typed(lexical, name), ("string", lexical)


@st.composite
def tagged(draw: st.DrawFn) -> InstantFacts:
    lexical, tag = (
        draw(st.sampled_from(["en", "a", "A"])),
        draw(st.sampled_from(["en", "EN", "de-AT", "de-at", "de"])),
    )
    if draw(st.booleans()):
        return literal(f"{lexical}@{tag}", RDF + "PlainLiteral"), ("tagged", lexical, tag.lower())
    return f'"{lexical}"@{tag}', ("tagged", lexical, tag.lower())


@st.composite
def plain(draw: st.DrawFn) -> InstantFacts:
    lexical = draw(st.sampled_from(["en", "a", "A"]))
    return literal(f"{lexical}@", RDF + "PlainLiteral"), ("string", lexical)


@st.composite
def moments(draw: st.DrawFn) -> InstantFacts:
    hours = draw(st.sampled_from([None, 0, 1, -5]))
    zone = None if hours is None else timezone(timedelta(hours=hours))
    moment = datetime(2024, 2, 28, draw(st.sampled_from([0, 5, 23])), tzinfo=zone) + timedelta(
        hours=draw(st.sampled_from([0, 1]))
    )
    fraction = draw(st.sampled_from(["", ".0", ".5", ".50"]))
    end = (
        ""
        if hours is None
        else draw(st.sampled_from(["Z", "+00:00", "-00:00"]))
        if hours == 0
        else f"{hours:+03d}:00"
    )
    text = f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}{end}"
    if moment.hour == 0 and not fraction and draw(st.booleans()):
        text = f"{moment - timedelta(days=1):%Y-%m-%dT24:00:00}{end}"
    names = ["dateTime"] if hours is None else ["dateTime", "dateTimeStamp"]
    key = (moment.replace(tzinfo=None), hours, Fraction(Decimal(fraction or "0")))
    return typed(text, draw(st.sampled_from(names))), ("moment", *key)


@st.composite
def bytes_(draw: st.DrawFn) -> InstantFacts:
    data = draw(st.sampled_from([b"", b"\x0a", b"\xab", b"\xab\xcd\xef", b"hello"]))
    if draw(st.booleans()):
        text = data.hex()
        return typed(draw(st.sampled_from([text, text.upper()])), "hexBinary"), ("hex", data)
    text = base64.b64encode(data).decode()
    return typed(draw(st.sampled_from([text, " ".join(text)])), "base64Binary"), ("base64", data)


_XML = {
    "<a/>": 0,
    "<a></a>": 0,
    "<a x='1' y=\"2\"/>": 1,
    '<a y="2" x="1"></a>': 1,
    "<b/>": 2,
    "text": 3,
    "t&#101;xt": 3,
    "": 4,
}
_OTHERS: list[InstantFacts] = [
    *((literal(text, RDF + "XMLLiteral"), ("xml", number)) for text, number in _XML.items()),
    *((typed(text, "boolean"), ("boolean", text in ("1", "true"))) for text in ("0", "1", "false", "true")),
    *((typed(text, "anyURI"), ("uri", text)) for text in ("en", "a", "http://e/")),
    *(
        (typed(text, name), ("duration", text in ("P1Y", "P12M"), text in ("PT36H", "P1DT12H")))
        for text, name in (
            ("P1Y", "duration"),
            ("P12M", "duration"),
            ("P12M", "yearMonthDuration"),
            ("PT36H", "duration"),
            ("P1DT12H", "dayTimeDuration"),
            ("PT0S", "dayTimeDuration"),
            ("P0M", "yearMonthDuration"),
            ("P0Y", "duration"),
        )
    ),
    *(
        (typed(text, "date"), ("date", text[:10], text[10:13]))
        for text in ("2024-01-01", "2024-01-02", "2024-01-01+01:00")
    ),
]
known = st.one_of(
    integers(),
    integers(),
    decimals(),
    rationals(),
    floats(),
    strings(),
    tagged(),
    plain(),
    moments(),
    bytes_(),
    st.sampled_from(_OTHERS),
)


@given(known, known)
@settings(max_examples=settings().max_examples * 5)
def test_two_literals_have_one_form_where_python_has_one_value(
    one: InstantFacts, other: InstantFacts
) -> None:
    """As they are written, and as they are kept."""
    forms = [data_value(one[0]), data_value(other[0])]
    assert None not in forms
    assert (forms[0] == forms[1]) == (one[1] == other[1])
    assert [data_value(canonical(one[0])), data_value(canonical(other[0]))] == forms
    assert [data_value(form) for form in forms if form] == forms


UNKNOWN = [
    "<http://e/a>",
    "_:b",
    literal("POINT(1 2)", "http://www.opengis.net/ont/geosparql#wktLiteral"),
    literal("{}", RDF + "JSON"),
    literal("<p>", RDF + "HTML"),
    typed("one", "integer"),
    typed(" 1 ", "integer"),
    typed("300", "byte"),
    typed("2024-01-01T00:00:00", "dateTimeStamp"),
    typed("abc", "hexBinary"),
    typed("<a>", RDF + "XMLLiteral"),
    literal("1/0", OWL + "rational"),
    literal("1", OWL + "real"),
    typed("1", "noSuchType"),
    literal("no at", RDF + "PlainLiteral"),
    typed("a\tb", "normalizedString"),
    typed("q:n", "QName"),
    literal("1/" + "9" * 5000, OWL + "rational"),
]


@pytest.mark.parametrize("term", UNKNOWN)
def test_of_others_nothing_is_known(term: Term) -> None:
    assert data_value(term) is None


_AXIOMS = (
    "<urn:p> a owl:FunctionalProperty .",
    "<urn:C> owl:onProperty <urn:p> ; owl:maxCardinality 1 . <urn:x> a <urn:C> .",
    "<urn:x> a [ owl:onProperty <urn:p> ; owl:maxQualifiedCardinality 1 ; owl:onClass owl:Thing ] .",
    "<urn:q> rdfs:subPropertyOf <urn:p> . <urn:p> a owl:FunctionalProperty .",
)
_PREFIXES = (
    "PREFIX owl: <http://www.w3.org/2002/07/owl#> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
)


def clashes(axioms: str, first: Term, second: Term, by: str = "urn:p") -> bool:
    kb = KnowledgeBase(entailment="owl2rl", datatypes=True, contradictions="keep", terms="canonical")
    kb.insert(_PREFIXES + axioms)
    kb.insert(f"<urn:x> <{by}> {first} . <urn:x> <urn:p> {second} .")
    found = {one.rule for one in kb.contradictions()}
    assert found <= {"dt-diff"}
    return bool(found)


@given(known, known, st.sampled_from(_AXIOMS))
@settings(max_examples=settings().max_examples // 2, deadline=None)
def test_dt_diff_is_a_difference_of_values(one: InstantFacts, other: InstantFacts, axioms: str) -> None:
    by = "urn:q" if "urn:q" in axioms else "urn:p"
    assert clashes(axioms, one[0], other[0], by) == (one[1] != other[1])


@pytest.mark.parametrize("term", [term for term in UNKNOWN if re.search("wkt|JSON|HTML|noSuch|QName", term)])
def test_nobody_knows_that_values_of_an_unknown_datatype_differ(term: Term) -> None:
    assert triples_of(f"<urn:x> <urn:p> {term} .")
    assert not clashes(_AXIOMS[0], term, '"a"')
    assert not clashes(_AXIOMS[0], term, term.replace("1", "2"))


def test_a_quotient_with_very_many_digits_keeps_its_lowest_terms() -> None:
    rational = "http://www.w3.org/2002/07/owl#rational"
    one, same = (literal(text, rational) for text in (f"1/{2**13_000}", f"2/{2**13_001}"))
    assert data_value(one) == data_value(same) == one

"""The strict functions of SPARQL 1.1, of mathematics, calendars and geometries, and the casts of XSD.

Place:   the tables `FUNCTIONS` (by name) and `CASTS` (by the IRI of a datatype), read by evaluate.py and, for
         names and numbers of arguments, by lang/.
Method:  SPARQL 1.1, sec. 17.4.2 to 17.4.6 and 17.5, with the full engine's answers; arguments are values,
         errors propagate. Frequent functions are implemented here; rare or engine-specific ones (REGEX,
         REPLACE, unusual Unicode) and rare casts are passed to the full engine (`ask` of operators.py). A
         plain string is cast like the literal of that text; numbers to numbers by value; a duration without
         months to an xsd:decimal of seconds. A string of too many digits raises Overlong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite, trunc
from types import NoneType
from typing import TypeAlias
from urllib.parse import quote

import pyoxigraph as ox
from msgspec import Struct

from dotr.budget import TEXT, Overlong
from dotr.budget import text_of as make_text
from dotr.expressions import calendars, operators
from dotr.expressions.geometry import GEOMETRY
from dotr.expressions.mathematics import MATHEMATICS
from dotr.expressions.operators import ask, in_seconds, is_number, to_single, value_of
from dotr.program import Call, Const, Expression
from dotr.rdf.terms import RDF, XSD, XSD_DECIMAL, XSD_INTEGER, Term, literal, literal_parts, too_long
from dotr.rdf.values import (
    EXACT,
    DateTime,
    Duration,
    LanguageString,
    Number,
    Opaque,
    Resource,
    Single,
    Value,
    decode,
    encode,
    to_double,
)
from dotr.regex import regex

Function: TypeAlias = Callable[..., Value | None]


class Signature(Struct, frozen=True):
    """A strict function and its number of arguments; `most` None: any number."""

    least: int
    most: int | None
    apply: Function


def text_of(value: Value) -> Value | None:
    """STR: an IRI's text, a literal's lexical form; None for a blank node."""
    if type(value) is str:
        return value
    term = encode(value)
    if term[0] == "_":
        return None
    return term[1:-1] if term[0] == "<" else literal_parts(term)[0]


def _language(value: Value) -> Value | None:
    if isinstance(value, LanguageString):
        return value.language
    return None if isinstance(value, Resource) else ""


def _datatype(value: Value) -> Value | None:
    if isinstance(value, Resource):
        return None
    return Resource(f"<{literal_parts(encode(value))[1]}>")


def _iri(value: Value) -> Value | None:
    if isinstance(value, Resource):
        return value if value.term[0] == "<" else None
    if type(value) is not str:
        return None
    try:
        return Resource(str(ox.NamedNode(value)))
    except ValueError:
        return None


def _iri_under(value: Value, base: Value) -> Value | None:
    """IRI() under a BASE."""
    if type(value) is not str or not isinstance(base, Resource):
        return _iri(value)
    return value_of(ask("IRI(?a)", literal(value), base=base.term))


def _typed(lexical: Value, datatype: Value) -> Value | None:
    if type(lexical) is not str or not isinstance(datatype, Resource) or datatype.term[0] != "<":
        return None
    name = datatype.term[1:-1]
    if name.startswith(RDF):
        return value_of(ask("STRDT(?a, ?b)", literal(lexical), datatype.term))
    if name in _EXACT and too_long(lexical):
        raise Overlong
    return decode(literal(lexical, name))


_EXACT = (XSD_INTEGER, XSD_DECIMAL)


def _tagged(lexical: Value, language: Value) -> Value | None:
    if type(lexical) is not str or type(language) is not str:
        return None
    return value_of(ask("STRLANG(?a, ?b)", literal(lexical), literal(language)))


def _string(value: Value) -> str | None:
    """The text of a plain or language-tagged string."""
    if type(value) is str:
        return value
    return value.text if isinstance(value, LanguageString) else None


def _like(value: Value, text: str) -> Value:
    """A string with the language of `value`."""
    if isinstance(value, LanguageString):
        return LanguageString(text, value.language, literal(text, language=value.language))
    return text


def _compatible(a: Value, b: Value) -> tuple[str, str] | None:
    """The texts of two strings, the second plain or of the first one's language (sec. 17.4.3.1.2)."""
    left, right = _string(a), _string(b)
    if left is None or right is None:
        return None
    if isinstance(b, LanguageString) and not (isinstance(a, LanguageString) and a.language == b.language):
        return None
    return left, right


def _length(value: Value) -> Value | None:
    text = _string(value)
    return None if text is None else len(text)


def _substring(value: Value, start: Value, length: Value = 2**31) -> Value | None:
    text = _string(value)
    if text is None or type(start) is not int or type(length) is not int:
        return None
    if not (1 <= start <= 2**31 and 0 <= length <= 2**31):
        start, length = (max(-_FAR, min(_FAR, place)) for place in (start, length))
        return value_of(ask("SUBSTR(?a, ?b, ?c)", encode(value), encode(start), encode(length)))
    return _like(value, text[start - 1 : start - 1 + length])


_FAR = 2**62
"""Behind the end of every text, and within the 64 bits of the engine's integers."""


def _upper(value: Value) -> Value | None:
    text = _string(value)
    if text is None:
        return None
    return _like(value, text.upper()) if text.isascii() else value_of(ask("UCASE(?a)", encode(value)))


def _lower(value: Value) -> Value | None:
    text = _string(value)
    if text is None:
        return None
    return _like(value, text.lower()) if text.isascii() else value_of(ask("LCASE(?a)", encode(value)))


def _starts(a: Value, b: Value) -> Value | None:
    pair = _compatible(a, b)
    return None if pair is None else pair[0].startswith(pair[1])


def _ends(a: Value, b: Value) -> Value | None:
    pair = _compatible(a, b)
    return None if pair is None else pair[0].endswith(pair[1])


def _contains(a: Value, b: Value) -> Value | None:
    pair = _compatible(a, b)
    return None if pair is None else pair[1] in pair[0]


def _before(a: Value, b: Value) -> Value | None:
    pair = _compatible(a, b)
    if pair is None:
        return None
    at = pair[0].find(pair[1])
    return "" if at < 0 else _like(a, pair[0][:at])


def _after(a: Value, b: Value) -> Value | None:
    pair = _compatible(a, b)
    if pair is None:
        return None
    at = pair[0].find(pair[1])
    return "" if at < 0 else _like(a, pair[0][at + len(pair[1]) :])


def _concatenated(*values: Value) -> Value | None:
    texts = [_string(value) for value in values]
    if None in texts:
        return None
    make_text(sum(len(t) for t in texts if t))
    text = "".join(t for t in texts if t)
    languages = {v.language if isinstance(v, LanguageString) else "" for v in values}
    if len(languages) == 1 and languages != {""}:
        return _like(values[0], text)
    return text


def _for_uri(value: Value) -> Value | None:
    text = _string(value)
    if text is None:
        return None
    make_text(len(text))
    made = quote(text, safe="~")
    make_text(len(made))
    return made


def _language_matches(tag: Value, wanted: Value) -> Value | None:
    """Basic filtering of RFC 4647, sec. 3.3.1; `*` matches any tag, but not a missing one."""
    if type(tag) is not str or type(wanted) is not str:
        return None
    if wanted == "*":
        return tag != ""
    have, want = tag.lower().split("-"), wanted.lower().split("-")
    return have[: len(want)] == want


_PLAIN = regex(r"[A-Za-z0-9 _:/,;-]*")


def _matches(text: Value, pattern: Value, flags: Value = "") -> Value | None:
    if type(pattern) is str and flags == "" and _PLAIN.fullmatch(pattern):
        plain = _string(text)
        return None if plain is None else pattern in plain
    return value_of(ask("REGEX(?a, ?b, ?c)", encode(text), encode(pattern), encode(flags)))


TEXT_MAKERS = frozenset(("CONCAT", "REPLACE", "ENCODE_FOR_URI"))
"""Functions whose text may be longer than their arguments; past TEXT characters they raise Overlong."""


def makes_text(expression: Expression | None) -> bool:
    """Whether it may raise Overlong."""
    if not isinstance(expression, Call):
        return False
    return expression.function in TEXT_MAKERS or any(map(makes_text, expression.arguments))


def may_be_overlong(expression: Expression | None) -> bool:
    """Whether it is likely enough to raise Overlong: it makes texts, or multiplies what data say."""
    match expression:
        case Call("*", (a, b)) if not (isinstance(a, Const) or isinstance(b, Const)):
            return True
        case Call(function, arguments):
            return function in TEXT_MAKERS or any(map(may_be_overlong, arguments))
        case _:
            return False


def _replaced(text: Value, pattern: Value, replacement: Value, flags: Value = "") -> Value | None:
    arguments = (encode(text), encode(pattern), encode(replacement), encode(flags))
    whole, put = _string(text), _string(replacement)
    if whole is not None and put is not None:
        groups = put.count("$") * len(whole)  # a group's text may be inserted once per reference
        if len(whole) + (len(whole) + 1) * len(put) + groups > TEXT:
            rest, marked = (_replacing(*arguments[:2], encode(by), arguments[3]) for by in ("", "x"))
            if rest is None or marked is None:
                return None
            left = len(_string(rest) or "")
            places = len(_string(marked) or "") - left
            make_text(left + places * len(put) + (groups if places else 0))
    return _replacing(*arguments)


def _replacing(*arguments: Term) -> Value | None:
    return value_of(ask("REPLACE(?a, ?b, ?c, ?d)", *arguments))


def _hash(name: str) -> Function:
    def digest(value: Value) -> Value | None:
        return hashlib.new(name, value.encode()).hexdigest() if type(value) is str else None

    return digest


_PARTS = regex(
    r'"(?P<YEAR>-?[0-9]+)-(?P<MONTH>..)-(?P<DAY>..)T(?P<HOURS>..):(?P<MINUTES>..):(?P<SECONDS>[0-9.]+)(?P<TZ>[^"]*)'
)


def _part(name: str) -> Function:
    """YEAR, MONTH, DAY, HOURS, MINUTES, SECONDS, TZ as written; for dates and times by the engine. Of a
    duration HOURS, MINUTES and SECONDS.
    """
    convert: Callable[[str], Value] = {"SECONDS": Decimal, "TZ": str}.get(name, int)
    question = f"{name}(?a)"

    def part(value: Value) -> Value | None:
        if isinstance(value, DateTime):
            found = _PARTS.match(value.term)
            return convert(found[name]) if found else None
        if isinstance(value, Duration):
            return operators.part(value, name) if name in _DURATION_PARTS else None
        return value_of(ask(question, value.term)) if isinstance(value, Opaque) else None

    return part


_DURATION_PARTS = frozenset(("HOURS", "MINUTES", "SECONDS"))


def _whole_days(value: Value) -> Value | None:
    return operators.part(value, "DAYS") if isinstance(value, Duration) else None


def _zone(value: Value) -> Value | None:
    return value_of(ask("TIMEZONE(?a)", value.term)) if isinstance(value, (DateTime, Opaque)) else None


FUNCTIONS: Mapping[str, Signature] = {
    "STR": Signature(1, 1, text_of),
    "LANG": Signature(1, 1, _language),
    "DATATYPE": Signature(1, 1, _datatype),
    "IRI": Signature(1, 1, _iri),
    "URI": Signature(1, 1, _iri),
    "IRI-UNDER": Signature(2, 2, _iri_under),
    "STRDT": Signature(2, 2, _typed),
    "STRLANG": Signature(2, 2, _tagged),
    "ISIRI": Signature(1, 1, lambda v: isinstance(v, Resource) and v.term[0] == "<"),
    "ISURI": Signature(1, 1, lambda v: isinstance(v, Resource) and v.term[0] == "<"),
    "ISBLANK": Signature(1, 1, lambda v: isinstance(v, Resource) and v.term[0] == "_"),
    "ISLITERAL": Signature(1, 1, lambda v: not isinstance(v, Resource)),
    "ISNUMERIC": Signature(1, 1, is_number),
    "STRLEN": Signature(1, 1, _length),
    "SUBSTR": Signature(2, 3, _substring),
    "UCASE": Signature(1, 1, _upper),
    "LCASE": Signature(1, 1, _lower),
    "STRSTARTS": Signature(2, 2, _starts),
    "STRENDS": Signature(2, 2, _ends),
    "CONTAINS": Signature(2, 2, _contains),
    "STRBEFORE": Signature(2, 2, _before),
    "STRAFTER": Signature(2, 2, _after),
    "CONCAT": Signature(0, None, _concatenated),
    "ENCODE_FOR_URI": Signature(1, 1, _for_uri),
    "LANGMATCHES": Signature(2, 2, _language_matches),
    "REGEX": Signature(2, 3, _matches),
    "REPLACE": Signature(3, 4, _replaced),
    "ABS": Signature(1, 1, operators.absolute),
    "CEIL": Signature(1, 1, operators.ceiling),
    "FLOOR": Signature(1, 1, operators.floor),
    "ROUND": Signature(1, 1, operators.rounded),
    "DAYS": Signature(1, 1, _whole_days),
    "TIMEZONE": Signature(1, 1, _zone),
    "LOCAL": Signature(2, 2, calendars.local),
    "DAYOFWEEK": Signature(1, 1, calendars.day_of_week),
    "DATE": Signature(1, 1, calendars.date_of),
    **{n: Signature(1, 1, _part(n)) for n in ("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TZ")},
    **{n: Signature(1, 1, _hash(n.lower())) for n in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512")},
    **{name: Signature(number, number, apply) for name, (number, apply) in MATHEMATICS.items()},
    **{name: Signature(number, number, apply) for name, (number, apply) in GEOMETRY.items()},
}
"""By keyword, those of mathematics and of geometries by IRI."""


DATA_VALUE: Term = "<urn:dotr:owl:dataValue>"
"""A function of rules over datatypes: the literal that stands for a literal's value (rdf/values.py); an
error where nobody knows the value.
"""

Cast = Callable[[Value], Value | None]

_NUMBERS = {"integer": int, "decimal": Decimal, "double": float, "float": Single, "boolean": bool}
_EXACT_CASTS = (int, Decimal)
_ELSEWHERE = ["dateTime", "date", "time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"]
_ELSEWHERE += ["duration", "dayTimeDuration", "yearMonthDuration"]


def _cast(name: str) -> Cast:
    datatype, kind = XSD + name, _NUMBERS.get(name, NoneType)
    question = f"<{datatype}>(?a)"

    def cast(value: Value) -> Value | None:
        given = type(value)
        if given is kind:
            return value
        if isinstance(value, str) and kind is not NoneType:
            if kind in _EXACT_CASTS and too_long(value):
                raise Overlong
            read = decode(literal(value, datatype))
            return read if type(read) is kind else None
        if isinstance(value, (int, Decimal, float)) and given is not bool:
            quick = _numeric(value, kind)
            if quick is not None:
                return quick
        if given is Duration and kind is Decimal:
            return in_seconds(value)
        return None if isinstance(value, Resource) else value_of(ask(question, encode(value)))

    return cast


def _numeric(value: Number, kind: type) -> Value | None:
    """A number as another number or as a boolean; None leaves it to the engine."""
    if kind is bool:
        return value != 0 and value == value
    if kind is float:
        return to_double(value)
    if kind is Single:
        return to_single(value)
    if kind is Decimal and type(value) is int:
        return Decimal(value)
    if kind is int and isinstance(value, Decimal):
        return int(value)
    if isinstance(value, float) and isfinite(value):
        return trunc(value) if kind is int else _cut(value) if kind is Decimal else None
    return None


def _cut(value: float) -> Decimal:
    """A double as a decimal: a whole number exactly, else cut like by the engine, through `value * 1e18`."""
    return Decimal(int(value)) if value.is_integer() else EXACT.scaleb(Decimal(int(value * 1e18)), -18)


CASTS: Mapping[Term, Cast] = {
    f"<{XSD}string>": text_of,
    **{f"<{XSD}{name}>": _cast(name) for name in (*_NUMBERS, *_ELSEWHERE)},
}

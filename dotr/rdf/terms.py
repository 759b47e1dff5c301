"""Terms: an RDF term is its N-Triples text, in canonical form.

Place:   the one representation of terms inside dotr; parsers and writers convert at the boundary. The
         canonical form is applied where terms enter: background, stream, constants of programs (language.md,
         sec. 1).
Method:  `<iri>`, `_:label`, `"lexical"`, `"lexical"@lang`, `"lexical"^^<datatype>`, escaped exactly as by
         pyoxigraph's N-Triples writer. Two terms are the same iff the strings are equal, so joins compare
         strings, output is concatenation, and a snapshot stores strings. An unbound value is None.
         A list (of COLLECT) is no RDF term: it is a value of WITH alone, `[` before its members' texts.
         Canonical form: a literal of an XSD value type becomes its value's one text, the text that a
         pyoxigraph Store returns for the literal, so that a query answered by the store and one answered here
         see the same terms; integers past its 64 bits and decimals past its 128 have the same form here.
         Frequent shapes (plain integers, decimals, doubles, booleans, dateTimes) are rewritten here; every
         other literal of an XSD value type makes the round trip through a store. Ill-typed literals stay as
         they are, as do decimals of more than 18 fractional digits; language tags become lower-case.
         Memo: a bounded table of a pure function's results, for rdf/ and expressions/, which process the same
         terms repeatedly. It is a self-filling dict (`__missing__`), so a hit is one C-level subscription (30
         ns); when full it is emptied, which costs one recomputation per live key and no bookkeeping per hit.
Why not: classes for terms: a str hashes once, compares by pointer when interned, and costs nothing to
         serialise; `pyoxigraph.serialize(parse(document))` yields a document's terms in this form for less
         than the cost of reading them one by one. A store for every literal: 10 µs per literal. Our own
         parser for every literal: two dialects to keep equal. functools.lru_cache: it costs twice as much per
         hit and keeps literals of any length alive.
Bad input: D2409 a number of more than 4,096 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final, TypeAlias, TypeVar

import pyoxigraph as ox

from dotr.budget import DIGITS
from dotr.errors import DataError
from dotr.regex import regex

Term: TypeAlias = str
Triple: TypeAlias = tuple[Term, Term, Term]

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
PROV_GENERATED_AT_TIME: Term = "<http://www.w3.org/ns/prov#generatedAtTime>"
RDF_TYPE: Term = f"<{RDF}type>"

XSD_STRING = XSD + "string"
XSD_INTEGER = XSD + "integer"
XSD_DECIMAL = XSD + "decimal"
XSD_DOUBLE = XSD + "double"
XSD_FLOAT = XSD + "float"
XSD_BOOLEAN = XSD + "boolean"
XSD_DATETIME = XSD + "dateTime"

TRUE: Term = f'"true"^^<{XSD_BOOLEAN}>'
FALSE: Term = f'"false"^^<{XSD_BOOLEAN}>'

_ESCAPES = {
    ord("\\"): "\\\\",
    ord('"'): '\\"',
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    8: "\\b",
    12: "\\f",
    0x7F: "\\u007F",
}
_ESCAPES |= {c: f"\\u{c:04X}" for c in range(0x20) if c not in _ESCAPES}


_MEMBERS: Final = "\x1f"
"""Between the members of a list: a character that no term has unescaped."""


def list_of(terms: Iterable[Term]) -> Term:
    """The value that has these terms in this order."""
    return f"[{_MEMBERS.join(terms)}]"


def is_list(value: Term) -> bool:
    return value[0] == "["


def size_of_list(value: Term) -> int:
    """How many members a list has."""
    return value.count(_MEMBERS) + 1 if len(value) > 2 else 0


def members(value: Term) -> list[Term]:
    """The terms of a list; of any other value itself. O(n)."""
    if value[0] != "[":
        return [value]
    return value[1:-1].split(_MEMBERS) if len(value) > 2 else []


def is_iri(term: Term) -> bool:
    return term[0] == "<" and term[1:2] != "<"


def is_blank(term: Term) -> bool:
    return term[0] == "_"


def is_literal(term: Term) -> bool:
    return term[0] == '"'


def iri(value: str) -> Term:
    """The term of an IRI without brackets. The IRI must be valid (no spaces, no `<>`)."""
    return f"<{value}>"


def escape(lexical: str) -> str:
    """Escape a lexical form as pyoxigraph's N-Triples does (golden-tested against it)."""
    return lexical.translate(_ESCAPES)


def literal(lexical: str, datatype: str = XSD_STRING, language: str = "") -> Term:
    """The term of a literal; not canonicalised (see rdf/terms.py)."""
    if language:
        return f'"{escape(lexical)}"@{language.lower()}'
    if datatype == XSD_STRING:
        return f'"{escape(lexical)}"'
    return f'"{escape(lexical)}"^^<{datatype}>'


def integer(value: int) -> Term:
    return f'"{value}"^^<{XSD_INTEGER}>'


def literal_parts(term: Term) -> tuple[str, str, str]:
    """(lexical form, datatype IRI without brackets, language or "") of a literal term."""
    end = term.rindex('"')
    lexical, suffix = term[1:end], term[end + 1 :]
    if "\\" in lexical:
        lexical = _unescape(lexical)
    if not suffix:
        return lexical, XSD_STRING, ""
    if suffix[0] == "@":
        return lexical, RDF + "langString", suffix[1:]
    return lexical, suffix[3:-1], ""


def _unescape(text: str) -> str:
    out: list[str] = []
    i, n = 0, len(text)
    single = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "'": "'"}
    while i < n:
        c = text[i]
        if c != "\\":
            out.append(c)
            i += 1
        elif text[i + 1] in single:
            out.append(single[text[i + 1]])
            i += 2
        else:
            width = 4 if text[i + 1] == "u" else 8
            out.append(chr(int(text[i + 2 : i + 2 + width], 16)))
            i += 2 + width
    return "".join(out)


def to_oxigraph(term: Term) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    """A term as a pyoxigraph term."""
    if term[0] == "<":
        return ox.NamedNode(term[1:-1])
    if term[0] == "_":
        return ox.BlankNode(term[2:])
    lexical, datatype, language = literal_parts(term)
    if language:
        return ox.Literal(lexical, language=language)
    return ox.Literal(lexical, datatype=ox.NamedNode(datatype))


K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """Owns at most `limit` results of `function`; `memo[key]` computes a missing one.

    Keys longer than `longest` characters (terms) or, for other keys, results of more bytes are recomputed
    each time and not kept, so that the table is also bounded in bytes.
    """

    __slots__ = ("__weakref__", "_function", "_limit", "_longest")

    def __init__(self, function: Callable[[K], V], limit: int = 1 << 15, longest: int = 256) -> None:
        super().__init__()
        self._function = function
        self._limit = limit
        self._longest = longest

    def __missing__(self, key: K) -> V:
        value = self._function(key)
        size = len(key) if isinstance(key, str) else len(value) if isinstance(value, bytes) else 0
        if size <= self._longest:
            if len(self) >= self._limit:
                self.clear()
            self[key] = value
        return value


class TextMemo(dict[str, V]):
    """A memo of strings of any length, emptied when its keys together have more than `most` characters."""

    __slots__ = ("_function", "_most", "_size")

    def __init__(self, function: Callable[[str], V], most: int = 1 << 25) -> None:
        super().__init__()
        self._function = function
        self._most = most
        self._size = 0

    def __missing__(self, key: str) -> V:
        value = self._function(key)
        self._size += len(key)
        if self._size > self._most:
            self.clear()
            self._size = len(key)
        self[key] = value
        return value


_SUFFIX = '"^^<' + XSD
_INTEGER_TAIL = _SUFFIX + "integer>"
_VALUE_TYPES = frozenset(
    {"integer", "byte", "short", "int", "long", "unsignedByte", "unsignedShort", "unsignedInt"}
    | {"unsignedLong", "positiveInteger", "negativeInteger", "nonPositiveInteger", "nonNegativeInteger"}
    | {"decimal", "double", "float", "boolean", "dateTime", "dateTimeStamp", "date", "time"}
    | {"gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"}
    | {"duration", "dayTimeDuration", "yearMonthDuration"}
)

_INTEGER = regex(r"-?[1-9][0-9]{0,17}|0")
_ANY_INTEGER = regex(r"([+-]?)0*+([0-9]+)")
_UNBOUNDED: Final[dict[str, tuple[int | None, int | None]]] = {
    "integer": (None, None),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "unsignedLong": (0, 2**64 - 1),
}
"""The least and the greatest value of the types that reach past 64 bits."""

_DECIMAL = regex(r"-?[0-9]{1,18}\.[0-9]{1,18}")
_ANY_DECIMAL = regex(r"([+-]?)(?=\.?[0-9])0*+([0-9]*)(?:\.([0-9]*))?")
FRACTION: Final = 18
"""Fractional digits of a decimal."""
_DOUBLE = regex(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
USUAL_DATETIME = (
    r"[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)"
    r"|(?:0[13578]|1[02])-31)T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
)
"""dateTimes up to the second, except the 29th of February, which some years lack."""

_DATETIME = regex(rf"({USUAL_DATETIME})(\.[0-9]{{1,18}})?(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9])?")

_PLACE = ox.NamedNode("urn:dotr:canonical")


def canonical(term: Term) -> Term:
    """The canonical form of a term; IRIs, blank nodes and strings stay. Idempotent.

    Raises DataError D2409 for a number of more than DIGITS digits. Cost: nothing for IRIs and strings, one
    table look-up for a known literal, otherwise at most 10 µs.
    """
    if term[0] != '"' or term[-1] == '"':
        return term
    return canonical_literals[term]


def double_text(value: float) -> str:
    """The canonical lexical form of an xsd:double: shortest digits, never an exponent, INF, -INF, NaN."""
    text = repr(value)
    if text.endswith(".0"):
        return text[:-2]
    if "e" in text:
        return format(Decimal(text), "f")
    if text[-1] in "fn":
        return _NOT_FINITE[text]
    return _tie_upwards(value, text) if len(text) > 15 and (value * 8).is_integer() else text


def _tie_upwards(value: float, text: str) -> str:
    """Of two equally near shortest texts the engine takes the greater, Python the even one.

    Only a value of few binary places and many digits lies half-way: 562949953421312.25 is ….3, not ….2.
    """
    exact, shortest = Decimal(value), Decimal(text)
    if abs(exact) <= abs(shortest):
        return text
    other = str(exact + (exact - shortest)).rstrip("0")
    return other if len(other) == len(text) and float(other) == value else text


_NOT_FINITE = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}


def canonical_literal(term: Term) -> Term:
    """`canonical` for a literal with a language or datatype, recomputed."""
    if term.endswith(_INTEGER_TAIL):  # the most frequent in streams
        digits = term[1 : -len(_INTEGER_TAIL)]
        if digits.isdigit() and digits[0] != "0" and len(digits) < 19 and digits.isascii():
            return term
    end = term.rindex('"')
    suffix = term[end:]
    rewrite = _REWRITERS.get(suffix)
    if rewrite is None:
        return f"{term[:end]}{suffix.lower()}" if suffix[1] == "@" else term
    return term if end == 1 else rewrite(term[1:end]) or _round_trip(term)


def too_long(lexical: str) -> bool:
    """Whether a string is that of an integer or decimal of more than DIGITS digits before the point."""
    if len(lexical) <= DIGITS:
        return False
    found = _ANY_DECIMAL.fullmatch(lexical)
    return found is not None and len(found[2]) > DIGITS


def _refuse(lexical: str) -> None:
    if too_long(lexical):
        raise DataError.of(
            "D2409",
            f"a number has more than {DIGITS:,} digits",
            label=f"`{lexical[:40]}…`",
            hint="write it as a string, or as an xsd:double",
        )


def _integer(lexical: str) -> Term | None:
    return f'"{lexical}{_INTEGER_TAIL}' if _INTEGER.fullmatch(lexical) else None


def _reaching(name: str) -> Callable[[str], Term | None]:
    """For a type of integers that reaches past 64 bits."""
    least, most = _UNBOUNDED[name]

    def integer(lexical: str) -> Term | None:
        if len(lexical) < 19:
            return _integer(lexical)
        found = _ANY_INTEGER.fullmatch(lexical)
        if found is None or len(found[2]) < 19:
            return None
        _refuse(lexical)
        value = -int(found[2]) if found[1] == "-" else int(found[2])
        if -(2**63) <= value < 2**63:
            return None  # the store has the form, whatever the type
        if (least is not None and value < least) or (most is not None and value > most):
            return f'"{lexical}{_SUFFIX}{name}>'
        return f'"{value}{_INTEGER_TAIL}'

    return integer


def _decimal(lexical: str) -> Term | None:
    if _DECIMAL.fullmatch(lexical):
        whole, fraction = lexical.rstrip("0").split(".")
        sign, whole = ("-", whole[1:]) if whole[0] == "-" else ("", whole)
        whole = whole.lstrip("0") or "0"
    else:
        found = _ANY_DECIMAL.fullmatch(lexical)
        if found is None:
            return None
        _refuse(lexical)
        sign, whole, fraction = found[1].strip("+"), found[2] or "0", (found[3] or "").rstrip("0")
        if len(fraction) > FRACTION:
            return f'"{lexical}{_SUFFIX}decimal>'
    text = f"{whole}.{fraction}" if fraction else whole
    return f'"{sign if text != "0" else ""}{text}{_SUFFIX}decimal>'


def _double(lexical: str) -> Term | None:
    return f'"{double_text(float(lexical))}{_SUFFIX}double>' if _DOUBLE.fullmatch(lexical) else None


def _datetime(lexical: str) -> Term | None:
    found = _DATETIME.fullmatch(lexical)
    if found is None:
        return None
    fraction = (found[2] or "").rstrip("0").rstrip(".")
    zone = found[3] or ""
    return f'"{found[1]}{fraction}{"Z" if zone[1:] == "00:00" else zone}{_SUFFIX}dateTime>'


_BOOLEANS = {"true": TRUE, "1": TRUE, "false": FALSE, "0": FALSE}

_FREQUENT: dict[str, Callable[[str], Term | None]] = {
    **{name: _reaching(name) for name in _UNBOUNDED},
    "int": _integer,
    "long": _integer,
    "decimal": _decimal,
    "double": _double,
    "boolean": _BOOLEANS.get,
    "dateTime": _datetime,
}
_REWRITERS: dict[str, Callable[[str], Term | None]] = {
    f"{_SUFFIX}{name}>": _FREQUENT.get(name, lambda _lexical: None) for name in sorted(_VALUE_TYPES)
}
"""Suffix of the lexical form → the canonical form of a frequent shape, None for all others."""


def _round_trip(term: Term) -> Term:
    store = ox.Store()  # a new one is cheaper than removing the quad, and threads share nothing
    store.add(ox.Quad(_PLACE, _PLACE, to_oxigraph(term)))
    return str(next(iter(store)).object)


canonical_literals: Memo[Term, Term] = Memo(canonical_literal)
"""`canonical` for a literal with a language or datatype, at the cost of a subscription."""

"""Terms: an RDF term is its N-Triples text, in canonical form.

Place:   the one representation of terms inside dotr; parsers and writers convert at the boundary.
Method:  `<iri>`, `_:label`, `"lexical"`, `"lexical"@lang`, `"lexical"^^<datatype>`, escaped exactly like by
         pyoxigraph's N-Triples writer. Two terms are the same iff the texts are equal, so joins compare
         strings, output is concatenation, and a snapshot stores text. An unbound value is None.
Why not: classes for terms. A str hashes once, compares by pointer when interned, and costs nothing to
         serialise; `pyoxigraph.serialize(parse(document))` yields a document's terms in this form for less
         than the cost of reading them one by one.
"""

from __future__ import annotations

from typing import TypeAlias

import pyoxigraph as ox

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
    """The term of a literal; not canonicalised (see rdf/canonical.py)."""
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

"""Terms as a reader wants them: prefixed names, bare numbers; and as JSON wants them.

Place:   below event_formats.py; also the tables of `dotr query` and every message that shows a term to a
         human.
Method:  the longest namespace of the program's prefixes wins; a name is shortened only when the short form is
         Turtle without escapes, so that TriG output written this way reads back to the same terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from json.encoder import encode_basestring as json_string

from dotr.rdf.memo import Memo
from dotr.rdf.terms import (
    RDF_TYPE,
    XSD_BOOLEAN,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    XSD_STRING,
    Term,
    literal_parts,
)
from dotr.regex import regex

_LOCAL = regex(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?)?")
_PREFIX = regex(r"(?:[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?)?")
_FRESH = regex(r"<(urn:dotr:[A-Za-z][A-Za-z0-9_]*:[a-z2-7]{24}(?:-[A-Za-z0-9_]+)?)>")
_NUMERAL = regex(r"[+-]?[0-9]+")
_DECIMAL = regex(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_BOOLEAN = ("true", "false")


class TermFormatter:
    """Writes terms with a program's prefixes. `fresh` True shows fresh names bare, as the paper does
    (text only).
    """

    def __init__(self, prefixes: Mapping[str, str], fresh: bool = False) -> None:
        usable = {name: iri for name, iri in prefixes.items() if _PREFIX.fullmatch(name) and iri}
        self.prefixes = dict(sorted(usable.items()))
        self._namespaces = sorted(
            ((iri, name) for name, iri in usable.items()), key=lambda pair: -len(pair[0])
        )
        self._fresh = fresh
        self._memo: Memo[Term, str] = Memo(self._short)

    def term(self, term: Term) -> str:
        """A term in subject or object position."""
        return self._memo[term]

    def predicate(self, term: Term) -> str:
        return "a" if term == RDF_TYPE else self._memo[term]

    def header(self) -> str:
        """The prefixes as Turtle directives, one a line."""
        return "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in self.prefixes.items())

    def _short(self, term: Term) -> str:
        if term[0] == "<":
            if self._fresh and (found := _FRESH.fullmatch(term)):
                return found[1]
            return self._iri(term[1:-1])
        if term[0] == "_" or term[-1] == '"':
            return term
        lexical, datatype, language = literal_parts(term)
        if language:
            return term
        if datatype == XSD_INTEGER and _NUMERAL.fullmatch(lexical):
            return lexical
        if datatype == XSD_DECIMAL and _DECIMAL.fullmatch(lexical):
            return lexical if "." in lexical else f"{lexical}.0"
        if datatype == XSD_DOUBLE and _DECIMAL.fullmatch(lexical):
            return f"{lexical}e0"
        if datatype == XSD_BOOLEAN and lexical in _BOOLEAN:
            return lexical
        return f"{term[: term.rindex('^') + 1]}{self._iri(datatype)}"

    def _iri(self, value: str) -> str:
        for namespace, name in self._namespaces:
            if value.startswith(namespace) and _LOCAL.fullmatch(value, len(namespace)):
                return f"{name}:{value[len(namespace) :]}"
        return f"<{value}>"


def _json_term(term: Term) -> str:
    if term[0] == "<":
        return f'{{"type":"uri","value":{json_string(term[1:-1])}}}'
    if term[0] == "_":
        return f'{{"type":"bnode","value":{json_string(term[2:])}}}'
    lexical, datatype, language = literal_parts(term)
    value = json_string(lexical)
    if language:
        return f'{{"type":"literal","value":{value},"xml:lang":{json_string(language)}}}'
    if datatype == XSD_STRING:
        return f'{{"type":"literal","value":{value}}}'
    return f'{{"type":"literal","value":{value},"datatype":{json_string(datatype)}}}'


json_terms: Memo[Term, str] = Memo(_json_term)
"""Term → its object in SPARQL 1.1 JSON results."""

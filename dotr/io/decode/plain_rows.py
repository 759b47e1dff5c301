"""Documents of plain statements, many at once, without a parser: sensors say little, and always alike.

Place:   before the parser in batch_parse.py.
Method:  one regular expression splits the documents into rows of three terms. It knows Turtle's statements of
         one object each, of absolute IRIs, prefixed names, numbers, and strings in plain ASCII, so narrowly
         that what it accepts any parser accepts, as it stands; the rest is left to the parser. Literals
         become canonical as elsewhere.
Why not: pyoxigraph for all: 3.6 µs for a document of one statement, of which this takes a third.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyoxigraph as ox

from dotr.io.decode.ntriples import literals
from dotr.late import regex
from dotr.rdf.memo import Memo
from dotr.rdf.terms import RDF_TYPE, XSD, Term, Triple

_BETWEEN = "\x01"  # in no term that is known here
_IRI = (
    r"<(?:[a-z][a-z0-9]*://[A-Za-z0-9.-]++(?:/[A-Za-z0-9_~/:@,;=+.-]*+)?|urn:[a-z0-9]+:[A-Za-z0-9_~/:.-]++)"
    r"(?:#[A-Za-z0-9_~/:.-]*+)?>"
)
_NAME = r"(?:[A-Za-z][A-Za-z0-9]*+)?:[A-Za-z0-9_][A-Za-z0-9_-]*+"
_LITERAL = rf'"[ !#-\[\]-~]*+"(?:\^\^(?:{_IRI}|{_NAME}))?+|[+-]?[0-9]++(?:\.[0-9]++)?+|true|false'
_STATEMENT = (
    rf"[ \t\r\n]*+({_IRI}|{_NAME})[ \t]++({_IRI}|{_NAME}|a)[ \t]++({_IRI}|{_LITERAL}|{_NAME})[ \t\r\n]++"
    r"\.[ \t\r\n]*+"
)
_ROW, _ROWS = regex(_STATEMENT), regex(rf"(?:{_STATEMENT})+")
_ABSOLUTE = regex(_IRI)
_NUMBERS = {False: f"^^<{XSD}integer>", True: f"^^<{XSD}decimal>"}
_TRUTH = {word: f'"{word}"^^<{XSD}boolean>' for word in ("true", "false")}
_REWRITTEN = (f"<{XSD}string>", RDF_TYPE[: -len("type>")])
"""What datatypes begin with whose literals parsers write in another form, or refuse."""


class _LeftError(Exception):
    """Something that is left to the parser."""


class PlainRows:
    """Owns what names and literals mean behind the declarations that documents begin with."""

    def __init__(self, base: str | None) -> None:
        self._base = base
        self._head: str | None = None
        self._prefixes: dict[str, str] = {}
        self._names: Memo[str, Term] = Memo(self._named)
        self._objects: Memo[str, Term] = Memo(self._object)

    def parse(self, texts: Sequence[str], head: str) -> list[list[Triple]] | None:
        """The triples of each document behind `head`, canonical, without repeats; None: ask the parser."""
        if _ROWS.fullmatch(texts[0]) is None:
            return None
        parts = _ROW.split(_BETWEEN.join(texts))
        gaps = parts[::4]
        between = gaps.count(_BETWEEN)
        if gaps[0] or gaps[-1] or between != len(texts) - 1 or between + gaps.count("") != len(gaps):
            return None
        if head != self._head:
            self._begin(head)
        names, objects = self._names, self._objects
        try:
            rows = list(
                zip(
                    [term if term[0] == "<" else names[term] for term in parts[1::4]],
                    map(names.__getitem__, parts[2::4]),  # few, and the same object each time is found sooner
                    [term if term[0] == "<" else objects[term] for term in parts[3::4]],
                    strict=True,
                )
            )
        except _LeftError:
            return None
        if len(gaps) == len(texts) + 1:  # one row each
            return [[row] for row in rows]
        graphs: list[dict[Triple, None]] = []
        for gap, row in zip((_BETWEEN, *gaps[1:]), rows, strict=False):
            if gap:
                graphs.append({row: None})
            else:
                graphs[-1][row] = None
        return list(map(list, graphs))

    def _begin(self, head: str) -> None:
        self._head, self._prefixes = head, {}
        self._names.clear()
        self._objects.clear()
        try:
            parser = ox.parse(head, ox.RdfFormat.TURTLE, base_iri=self._base)
            if not list(parser):
                self._prefixes = parser.prefixes
        except SyntaxError:
            pass  # no name has a meaning: the parser says why

    def _named(self, name: str) -> Term:
        if name == "a":
            return RDF_TYPE
        if name[0] == "<":
            return name
        prefix, _, local = name.partition(":")
        iri = f"<{self._prefixes.get(prefix, '')}{local}>"
        if not _ABSOLUTE.fullmatch(iri):
            raise _LeftError
        return iri

    def _object(self, text: str) -> Term:
        """What an object that is no IRI in full stands for."""
        if text[0] == '"':
            if text[-1] == '"':
                return text
            value, _, datatype = text.rpartition("^^")
            if datatype[0] != "<":
                datatype = self._names[datatype]
            if datatype.startswith(_REWRITTEN):
                raise _LeftError
            return literals[f"{value}^^{datatype}"]
        if text in _TRUTH:
            return _TRUTH[text]
        if text[0] in "+-0123456789":
            return literals[f'"{text}"{_NUMBERS["." in text]}']
        return self._names[text]

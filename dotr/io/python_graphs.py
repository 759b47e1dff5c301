"""Graphs as Python programs hold them, and terms, into ours and back.

Place:   under api.py and knowledge_base/; text goes on to decode/parsing.py.
Method:  a term of rdflib is rewritten by its parts, without its writer; a term of pyoxigraph, and one of
         ours, is its N-Triples text. rdflib is imported by whoever has a term of it: nobody else pays.
Bad input: D2001 a term that N-Triples does not know · D4105 no triple.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import pyoxigraph as ox

from dotr.errors import DataError, UsageError
from dotr.io.decode.documents import STREAM_BASE, Format, decode, format_of
from dotr.io.decode.parse_choices import STRICT, ParseChoices
from dotr.io.decode.parsing import parse_triples
from dotr.rdf.canonical import canonical
from dotr.rdf.terms import XSD_STRING, Term, Triple, is_blank, is_iri, literal, literal_parts

if TYPE_CHECKING:
    import rdflib

GraphLike: TypeAlias = Any
"""An rdflib.Graph, Turtle text (str or bytes), a pathlib.Path of an RDF file (for an Engine), or an iterable
of triples: of terms of rdflib, of canonical terms, or of pyoxigraph (quads, too)."""

IRI = r"<[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*>"
_BLANK = r"_:[^\s<>\"]+"
_LITERAL = rf'"(?:[^"\\\n\r]|\\.)*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^{IRI})?'
_TRIPLE = tuple(map(re.compile, (rf"{IRI}|{_BLANK}", IRI, rf"{IRI}|{_BLANK}|{_LITERAL}")))
_TERM = re.compile(rf"{IRI}|{_BLANK}|{_LITERAL}")
_PATH = 1_000
"""Characters of a text that may be a path."""
_WHOLE = re.compile(IRI)


def triples_of(graph: GraphLike, base: str = STREAM_BASE, choices: ParseChoices = STRICT) -> list[Triple]:
    """The triples of a graph, canonical, without repeats; blank nodes have the labels they came with.

    Raises DataError for text that cannot be read, UsageError D4105 for what is not a graph.
    """
    if isinstance(graph, bytes):
        graph = decode(graph, "<bytes>")
    if isinstance(graph, str):
        try:
            return parse_triples(graph, base=base, choices=choices)
        except DataError:
            if len(graph) < _PATH and "\n" not in graph and "<" not in graph and format_of(graph.strip()):
                raise _a_path(graph) from None
            raise
    if hasattr(graph, "serialize") and hasattr(graph, "triples"):
        return parse_triples(_ntriples(graph), Format.NTRIPLES, choices=choices)
    if not isinstance(graph, Iterable):
        raise no_triple(graph)
    return list(dict.fromkeys(_own_triples(graph)))


def _own_triples(items: Iterable[Any]) -> Iterator[Triple]:
    """Triples of many, where terms recur: each spelling is looked at once."""
    subjects: set[Any] = set()
    predicates: set[Any] = set()
    objects: dict[Any, Term] = {}
    for item in items:
        if type(item) is tuple and len(item) == 3 and type(item[0]) is type(item[1]) is type(item[2]) is str:
            subject, predicate, object_ = item
            if subject in subjects and predicate in predicates and object_ in objects:
                yield subject, predicate, objects[object_]
                continue
            own = own_triple(item)
            subjects.add(subject)
            predicates.add(predicate)
            objects[object_] = own[2]
            yield own
        else:
            yield own_triple(item)


def own_triple(item: Any) -> Triple:
    """A triple of canonical terms. Raises UsageError D4105, DataError D2001."""
    if isinstance(item, tuple) and len(item) == 3:
        if any(map(_is_rdflib, item)):
            subject, predicate, object_ = map(own_term, item)
            if subject[0] != '"' and is_iri(predicate):
                return subject, predicate, object_
        elif all(
            isinstance(term, str) and form.fullmatch(term) for form, term in zip(_TRIPLE, item, strict=True)
        ):
            return item[0], item[1], canonical(item[2])
    elif isinstance(item, ox.Quad | ox.Triple):
        return str(item.subject), str(item.predicate), canonical(str(item.object))
    raise no_triple(item)


def own_term(term: Any) -> Term:
    """A term of rdflib, of pyoxigraph, or ours, as canonical text.

    Raises UsageError D4105, DataError D2001.
    """
    if _is_rdflib(term):
        return _of_rdflib(term)
    if isinstance(term, ox.NamedNode | ox.BlankNode | ox.Literal):
        return canonical(str(term))
    if isinstance(term, str) and _TERM.fullmatch(term):
        return canonical(term)
    raise UsageError.of(
        "D4105",
        f"{term!r} is not a term",
        hint='give a term of rdflib or pyoxigraph, or N-Triples text like <urn:a> or "one"',
    )


def _is_rdflib(term: Any) -> bool:
    return type(term).__module__ == "rdflib.term"


def _of_rdflib(term: Any) -> Term:
    import rdflib  # noqa: PLC0415  # whoever has a term has it loaded

    if isinstance(term, rdflib.Literal):
        if term.language:
            return literal(str(term), language=term.language)
        datatype = XSD_STRING if term.datatype is None else str(term.datatype)
        return canonical(literal(str(term), datatype))
    if isinstance(term, rdflib.BNode):
        return f"_:{term}"
    text = f"<{term}>"
    if isinstance(term, rdflib.URIRef) and _WHOLE.fullmatch(text):
        return text
    raise DataError.of(
        "D2001", f"{term!r} cannot be read as a term of RDF", hint="an IRI is absolute, without spaces"
    )


def _a_path(text: str) -> UsageError:
    return UsageError.of(
        "D4105",
        f"`{text}` is no Turtle, but looks like the name of a file",
        hint=f'give pathlib.Path("{text}"), or replay it: engine.feed("{text}")',
    )


def no_triple(item: Any) -> UsageError:
    return UsageError.of(
        "D4105",
        f"{item!r} is not a triple",
        hint="push Turtle text, an rdflib.Graph, or pyoxigraph quads or triples",
    )


def _ntriples(graph: rdflib.Graph) -> str:
    """Raises DataError D2001 for terms that rdflib takes and N-Triples does not know."""
    try:
        return graph.serialize(format="nt", encoding="utf-8").decode()
    except Exception as error:  # rdflib raises just this
        raise DataError.of(
            "D2001", f"rdflib cannot write this graph: {error}", hint="correct the term"
        ) from None


def rdflib_term(term: Term) -> rdflib.term.Node:
    """A term of ours as rdflib's, its lexical form untouched."""
    import rdflib  # noqa: PLC0415  # half a second of start-up that many runs do not need

    if is_iri(term):
        return rdflib.URIRef(term[1:-1])
    if is_blank(term):
        return rdflib.BNode(term[2:])
    lexical, datatype, language = literal_parts(term)
    if language:
        return rdflib.Literal(lexical, lang=language)
    plain = datatype == XSD_STRING
    return rdflib.Literal(lexical, datatype=None if plain else rdflib.URIRef(datatype), normalize=False)

"""Terms of rdflib as terms of ours, and back.

Place:   io/python_values.py, for the API of Python; expressions/own_functions.py, for functions of one's own.
Method:  a term of rdflib is rewritten by its parts, without its writer. rdflib is imported only once somebody
         uses its terms, so nobody else pays for it.
Bad input: D2001 a term that N-Triples does not know.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from dotr.errors import DataError
from dotr.rdf.terms import XSD_STRING, Term, canonical, is_blank, is_iri, literal, literal_parts

if TYPE_CHECKING:
    import rdflib

IRI: Final = r"<[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*>"
_WHOLE = re.compile(IRI)


def is_rdflib(term: Any) -> bool:
    """Whether it is a term of rdflib."""
    return type(term).__module__ == "rdflib.term"


def of_rdflib(term: Any) -> Term:
    """A term of rdflib as one of ours, canonical. Raises DataError D2001."""
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

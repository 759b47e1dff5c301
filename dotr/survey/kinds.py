"""Of what kind terms are, in the words of a message: `an IRI`, `xsd:decimal`, `a text`.

Place:   below the files that judge conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from dotr.rdf.terms import RDF, XSD, XSD_DATETIME, XSD_STRING, Term, is_iri, is_literal, literal_parts
from dotr.rdf.values import number

UNBOUND: Final = "without a value"
TEXT: Final = "a text"
_SHORT: Final[Mapping[str, str]] = {XSD_STRING: TEXT, RDF + "langString": "a text with a language"}

Kinds = Counter[str]


def kind_of(term: Term | None) -> str:
    """The kind of a term."""
    if term is None:
        return UNBOUND
    if not is_literal(term):
        return "an IRI" if is_iri(term) else "a blank node"
    datatype = literal_parts(term)[1]
    return _SHORT.get(datatype) or (
        f"xsd:{datatype[len(XSD) :]}" if datatype.startswith(XSD) else f"<{datatype}>"
    )


def kinds_of(terms: Iterable[Term | None]) -> Kinds:
    return Counter(map(kind_of, terms))


def is_number(term: Term | None) -> bool:
    return term is not None and number(term) is not None


def family(term: Term | None) -> str:
    """What may be compared with each other: numbers of any type are one family."""
    return "a number" if is_number(term) else kind_of(term)


def is_time(term: Term | None) -> bool:
    return term is not None and is_literal(term) and literal_parts(term)[1] == XSD_DATETIME


def listed(kinds: Kinds, of: str) -> str:
    """`xsd:decimal in 940 of 940 rows`, the commonest first, at most three."""
    total = sum(kinds.values())
    shown = [f"{kind} in {count:,}" for kind, count in sorted(kinds.items(), key=lambda k: (-k[1], k[0]))[:3]]
    more = f" and {len(kinds) - 3} other kinds" if len(kinds) > 3 else ""
    return f"{', '.join(shown)}{more} of {total:,} {of}"

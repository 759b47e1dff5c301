"""The parts of a message put together: what every format, and Python, hand to the pipeline.

Place:   called by the decoders of io/decode/ and by api.py with the triples of each part.
Method:  language.md, "Messages". A graph alone is not a message; a deletion names triples, and a blank node
         is not a name, as in SPARQL's DELETE DATA.
Bad input: D2201 no part at all · D2202 a deletion with a blank node.
"""

from __future__ import annotations

from collections.abc import Sequence

from dotr.errors import DataError
from dotr.events import Message, Part
from dotr.rdf.terms import RDF_TYPE, Term, Triple

INSERT = "<urn:dotr:insert>"
DELETE = "<urn:dotr:delete>"
"""Names of the graphs of a message, of a log of messages, that are insertions and deletions."""

INSERTION = "<urn:dotr:Insert>"
DELETION = "<urn:dotr:Delete>"
"""Classes of stamped graphs that are insertions and deletions."""


def message_of(
    graph: list[Triple] | None, insert: list[Triple] | None, delete: list[Triple] | None, place: str
) -> Part:
    """What came, from its parts; None where there is none. Raises DataError."""
    if insert is None and delete is None:
        if graph is None:
            raise DataError.of(
                "D2201",
                "a message needs a graph, an insertion or a deletion",
                place=place,
                hint='an empty graph is `"graph": ""`',
            )
        return graph
    if delete is not None:
        refuse_blank(delete, place)
    return Message(graph, insert, delete)


def stamped_part(name: Term, triples: list[Triple], about: Sequence[Triple], place: str) -> Part:
    """A named graph as what the default graph, which is `about` graphs, says it is. Raises DataError."""
    kinds = {o for s, p, o in about if s == name and p == RDF_TYPE}
    insert = triples if INSERTION in kinds else None
    delete = triples if DELETION in kinds else None
    return message_of(triples if insert is None and delete is None else None, insert, delete, place)


def refuse_blank(delete: Sequence[Triple], place: str) -> None:
    """Raise DataError D2202 where a deletion has a blank node."""
    for triple in delete:
        if triple[0][0] == "_" or triple[2][0] == "_":
            raise DataError.of(
                "D2202",
                "a deletion names a triple, and a blank node is not a name",
                place=place,
                label=" ".join(triple),
                notes=("blank nodes are scoped to their graph: this one was in no other",),
                hint="give the node an IRI where it is inserted",
            )

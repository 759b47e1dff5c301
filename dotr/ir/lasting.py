"""What lasts, as checked: HOLD lines, and the queries of ISTREAM and DSTREAM."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from dotr.ir.queries import Select
from dotr.rdf.terms import Term
from dotr.source import Span, Syntax


class RelationToStream(StrEnum):
    """CQL's operators from a relation that changes to a stream of its changes."""

    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"


class Hold(Syntax, frozen=True):
    """How long a triple of a stream's graph lasts: triples of one predicate, members of one class, or (both
    None) those without their own line.

    `latest`: until the same subject gets other values of the predicate. `duration`: the limit in
    microseconds, 0 for not at all; None: until it is deleted.
    """

    predicate: Term | None = None
    class_: Term | None = None
    latest: bool = False
    duration: int | None = None
    span: Span | None = None


class StandingQuery(Struct, frozen=True):
    """`ISTREAM q` or `DSTREAM q`: the answers that a query over what lasts gains or loses.

    `query`: the stream of the QUERY that it names, "" for an inline query.
    """

    operator: RelationToStream
    select: Select
    query: str = ""

"""From when until when a triple of a graph lasts: what a HOLD line says, and the times that the graph has.

Place:   periods.py asks for every triple of an instant's graphs that is declared; explain/record.py, too, for
         the leaves of proofs. The literal reading (reference/lasting.py) has its own.
Method:  language.md, "What lasts". Under FROM a triple holds from the earliest time that the instant's graphs
         have for its subject, but not before the instant; under UNTIL to the latest one. FOR counts from the
         beginning. A value is a time as a timestamp is under a property that the user names: an xsd:dateTime
         with a zone or, with integer time, an integer; also as a plain string, or of a datatype that is not
         XSD's. Finer digits than microseconds are cut towards the past. Times beyond 64 bits of microseconds
         are the last that these hold: no timestamp is later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from dotr.errors import Diagnostic, Severity
from dotr.events import FOREVER, Clock, Time
from dotr.program import Hold
from dotr.rdf.terms import XSD, XSD_DATETIME, XSD_INTEGER, Term, Triple, literal
from dotr.rdf.values import TICKS, DateTime, Opaque, decode
from dotr.regex import regex

LAST: Final[Time] = 2**63 - 1
"""The last time there is; FOREVER is later."""

Times: TypeAlias = Mapping[tuple[Term, Term], Sequence[Term]]
"""(subject, predicate of FROM or UNTIL) → its values in the graphs of an instant."""

_INTEGER = regex(r"[+-]?[0-9]{1,30}")
_DATETIME = regex(r"-?[0-9]{4,9}-[0-9:.T+Z-]{1,60}")
_STAMP: Final = XSD + "dateTimeStamp"


class NotHeld(NamedTuple):
    """A triple that a graph states, that is declared, and that does not last; `reason` as a message says it.
    `term`: the value that is not a time, "" where the times are at fault.
    """

    triple: Triple
    reason: str
    term: Term = ""

    def finding(self, clock: Clock) -> Diagnostic:
        """D2603."""
        right = "an integer" if clock.integer else "an xsd:dateTime with a zone"
        return Diagnostic(
            "D2603",
            f"a triple is not held: {self.reason}",
            label=" ".join(self.triple),
            notes=(f"{self.term} is not a time of this stream",) if self.term else (),
            hint=f"write {right}" if self.term else "check the times that its graph has for its subject",
            severity=Severity.WARNING,
        )


Period: TypeAlias = tuple[Time, Time]
"""When a statement begins, and when it ends by time: FOREVER where it does not."""


def times_of(triples: Iterable[Triple], predicates: frozenset[Term]) -> Times:
    """The values of these predicates in the graphs of one instant."""
    found: dict[tuple[Term, Term], list[Term]] = {}
    for subject, predicate, object_ in triples:
        if predicate in predicates:
            found.setdefault((subject, predicate), []).append(object_)
    return found


def period(triple: Triple, hold: Hold, time: Time, times: Times, clock: Clock) -> Period | NotHeld:
    """The period of a triple that a graph states at `time`, by its line, which is not FOR 0 s."""
    begins = _moments(triple, hold.start, times, clock)
    if isinstance(begins, NotHeld):
        return begins._replace(reason="its beginning is not a time")
    ends = _moments(triple, hold.until, times, clock)
    if isinstance(ends, NotHeld):
        return ends._replace(reason="its end is not a time")
    begin, end = min(begins, default=time), max(ends, default=FOREVER)
    if end < begin and begins:
        return NotHeld(triple, "it ends before it begins")
    start = max(time, begin)
    if end <= start:
        return NotHeld(triple, "it is over when it comes" if end <= time else "it ends as it begins")
    return start, end if hold.duration is None else min(end, start + hold.duration)


def _moments(triple: Triple, predicate: Term | None, times: Times, clock: Clock) -> list[Time] | NotHeld:
    found: list[Time] = []
    if predicate is None:
        return found
    for term in sorted(times.get((triple[0], predicate), ())):
        time = moment(term, clock)
        if time is None:
            return NotHeld(triple, "", term)
        found.append(time)
    return found


def moment(term: Term, clock: Clock) -> Time | None:
    """The time that a term is in a stream of such a clock; None where it is none."""
    value = decode(term)
    text = None
    if isinstance(value, str):
        text = value
    elif isinstance(value, Opaque) and (value.datatype == _STAMP or not value.datatype.startswith(XSD)):
        text = value.lexical
    if text is not None:
        form, datatype = (_INTEGER, XSD_INTEGER) if clock.integer else (_DATETIME, XSD_DATETIME)
        if form.fullmatch(text) is None:
            return None
        value = decode(literal(text, datatype))
    if clock.integer:
        return _within(value * clock.unit) if type(value) is int else None
    if not isinstance(value, DateTime) or not value.zoned or _DATETIME.match(value.term, 1) is None:
        return None
    return _within(value.ticks // (TICKS // 1_000_000))


def _within(time: Time) -> Time:
    return max(-LAST, min(LAST, time))

"""Values of Python programs: graphs, terms, query answers, arguments, (time, Turtle) pairs.

Place:   under api.py, knowledge_base/ and dotr.spark.
Method:  a term of rdflib is rewritten by its parts, without its writer; a term of pyoxigraph, and one of
         ours, is its N-Triples text. rdflib is imported only once a caller uses its terms, so nobody else
         pays for it. Answers of `Engine.query` are rows of rdflib terms, a bool, or an rdflib.Graph.
         Arguments (durations, times, policies) become what the engine expects; UsageError and DataError
         report the others. `Engine.push_all` reads many pairs at once by `PairReader`, and one by one where
         that returns None.
Bad input: D2001 a term that N-Triples does not know · D4105 no triple.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyoxigraph as ox

from dotr.core.funnel import answer, graph_of, makes_a_graph
from dotr.core.instants import LateGraph
from dotr.errors import DataError, DotrError, UsageError
from dotr.events import Clock, GraphOrMessage, Message, Time
from dotr.extract.interpreter import asks_time
from dotr.io.decode.documents import STREAM_BASE, Format, decode, format_of, read_bytes
from dotr.io.decode.plain import BatchParser, common_head
from dotr.io.decode.rdf import RDF12, STRICT, ParseChoices, parse_triples
from dotr.io.errors import ErrorPolicy
from dotr.io.time import TimeError, parse_datetime, too_fine
from dotr.io.time_reading import EXACT, Notes, TimeReading
from dotr.lang import parse_query
from dotr.program import Program
from dotr.program.names import duration as parse_duration
from dotr.rdf.rdflib_terms import IRI, is_rdflib, of_rdflib, rdflib_term
from dotr.rdf.terms import Term, Triple, canonical, is_iri

if TYPE_CHECKING:
    import rdflib

GraphLike: TypeAlias = Any
"""An rdflib.Graph, Turtle text (str or bytes), a pathlib.Path of an RDF file (for an Engine), or an iterable
of triples: of terms of rdflib, of canonical terms, or of pyoxigraph (quads, too)."""

_BLANK = r"_:[^\s<>\"]+"
_LITERAL = rf'"(?:[^"\\\n\r]|\\.)*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^{IRI})?'
_TRIPLE = tuple(map(re.compile, (rf"{IRI}|{_BLANK}", IRI, rf"{IRI}|{_BLANK}|{_LITERAL}")))
_TERM = re.compile(rf"{IRI}|{_BLANK}|{_LITERAL}")
_PATH = 1_000
"""Characters of a string that may be a path."""


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
    """Triples of many, where terms recur: each spelling is examined once."""
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
        if any(map(is_rdflib, item)):
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
    if is_rdflib(term):
        return of_rdflib(term)
    if isinstance(term, ox.NamedNode | ox.BlankNode | ox.Literal):
        return canonical(str(term))
    if isinstance(term, str) and _TERM.fullmatch(term):
        return canonical(term)
    raise UsageError.of(
        "D4105",
        f"{term!r} is not a term",
        hint='give a term of rdflib or pyoxigraph, or an N-Triples string like <urn:a> or "one"',
    )


def _a_path(text: str) -> UsageError:
    return UsageError.of(
        "D4105",
        f"`{text}` is not Turtle, but looks like the name of a file",
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


def asked(
    query: str, program: Program, state: Collection[Triple], time: Time | None, clock: Clock
) -> bool | list[dict[str, rdflib.term.Node]] | rdflib.Graph:
    """The answer of a query, given as SPARQL or by its name in the program, over a state.

    Raises ProgramError, UsageError D4112, D4178.
    """
    if query not in program.written and makes_a_graph(query):
        import rdflib  # noqa: PLC0415  # start-up

        graph = rdflib.Graph(bind_namespaces="none")
        for prefix, namespace in program.prefixes.items():
            graph.bind(prefix, namespace)
        for triple in graph_of(query, "<query>", program.prefixes, state):
            graph.add(tuple(map(rdflib_term, triple)))  # type: ignore[arg-type]  # three terms
        return graph
    select = program.written.get(query) or parse_query(query, "<query>", program.prefixes)
    if time is None and asks_time(select):
        message = "this query asks for NOW(), and no instant is given"
        raise UsageError.of("D4112", message, hint="give one: query(…, at=12)")
    found = answer(select, state, None if time is None else (clock, time))
    if isinstance(found, bool):
        return found
    pairs = ([(n, t) for n, t in zip(select.variables, row, strict=True) if t is not None] for row in found)
    return [{name: rdflib_term(term) for name, term in row} for row in pairs]


_LEAST, _MOST = -(2**63), 2**63
"""Times are at most so many microseconds away from 0."""


def duration(value: timedelta | str | None) -> int:
    """A duration of the Python API in microseconds: a timedelta, "5 min" or "PT5M". None is 0.

    Raises UsageError D4101 for anything else, and for a negative one.
    """
    if value is None:
        return 0
    if isinstance(value, timedelta) and value >= timedelta():
        return value // timedelta(microseconds=1)
    with suppress(ValueError):
        if isinstance(value, str):
            return parse_duration(value)
    raise UsageError.of(
        "D4101", f"`{value}` is not a duration", hint='write "5 min", "PT5M" or a timedelta, not negative'
    )


def checked_budget(budget: int) -> int:
    """Units of work as given. Raises UsageError D4108 for anything but a positive number."""
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise UsageError.of("D4108", f"{budget!r} is not a budget", hint="a number of units, from 1 on")
    return budget


def fits(time: Time) -> bool:
    """Whether a time is within 64 bits of microseconds."""
    return _LEAST <= time < _MOST


def time_of(
    at: int | datetime | str, unit: int, reading: TimeReading = EXACT, notes: Notes | None = None
) -> tuple[Time, bool]:
    """A stamp in microseconds, and whether it was a number, which counts `unit` µs; what `reading` changed is
    added to `notes`.

    Raises UsageError D4104 for what is not a time, DataError D2103 without a zone, D2105 beyond 64 bits, and
    what `parse_datetime` says.
    """
    if isinstance(at, bool) or not isinstance(at, int | datetime | str):
        raise UsageError.of(
            "D4104", f"{at!r} is not a time", hint="give an int, an aware datetime or an ISO 8601 string"
        )
    if isinstance(at, int):
        return _fitting(at * unit, at), True
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise DataError.of("D2103", f"`{at.isoformat()}` has no time zone", hint="use an aware datetime")
        if getattr(at, "nanosecond", 0):  # of pandas
            if reading.finer == "refuse":
                raise _refused(too_fine(at.isoformat()))
            if notes is not None:
                notes.add("cut")
        return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), False
    try:
        return _fitting(parse_datetime(at, None, reading, notes), at), False
    except TimeError as error:
        raise _refused(error) from None


_OPTION = re.compile(r"--([a-z-]+) ([a-z]+)")


def _refused(error: TimeError) -> DataError:
    """What is wrong with a time; options of the command line are those of an engine."""
    hint = _OPTION.sub(lambda hit: f'{hit[1].replace("-", "_")}="{hit[2]}"', error.hint)
    if error.code == "D2103":
        hint = "write Z after it if it is UTC, or give an aware datetime"
    return DataError.of(error.code, error.message, hint=hint)


def _fitting(time: Time, at: object) -> Time:
    if not fits(time):
        raise DataError.of("D2105", f"`{at}` lies beyond 64 bits of microseconds", hint="check the time_unit")
    return time


def parse_choices(rdf12: str, contexts: Mapping[str, str | Path]) -> ParseChoices:
    """What documents may say, as given. Raises UsageError D4107, D4187, DataError for files."""
    if rdf12 not in RDF12:
        raise UsageError.of("D4187", f"`{rdf12}` is not a value of rdf12", hint=f"one of {', '.join(RDF12)}")
    texts = {absolute_iri(i): decode(read_bytes(str(file)), str(file)) for i, file in contexts.items()}
    return ParseChoices(rdf12, texts)


class EngineErrors(ErrorPolicy):
    """The policy of an engine for documents and instants in error; `given` may be a function to call."""

    given: Callable[[DotrError], None] | None = None

    @staticmethod
    def of(on_error: str | Callable[[DotrError], None]) -> EngineErrors:
        """As given. Raises UsageError D4109."""
        if callable(on_error):
            return EngineErrors(fail=False, given=on_error)
        if on_error not in ("fail", "skip"):
            raise UsageError.of(
                "D4109", f"`{on_error}` is not a policy for errors", hint="fail, skip or a function"
            )
        return EngineErrors(on_error == "fail")

    def take(self, error: DataError, content: bytes) -> None:
        """As `ErrorPolicy.take`."""
        if self.fail:
            raise error
        self.report(error, 1)

    def report(self, error: DotrError, count: int) -> None:
        """So many graphs are left out because of an error."""
        self.count += count
        if self.given is not None:
            self.given(error)


def absolute_iri(iri: str) -> str:
    """An IRI as given. Raises UsageError D4107."""
    if not re.fullmatch(IRI, f"<{iri}>"):
        raise UsageError.of("D4107", f"`{iri}` is not an absolute IRI", hint="give a whole IRI")
    return iri


def not_a_pair(item: object) -> UsageError:
    """D4105."""
    return UsageError.of(
        "D4105",
        f"{item!r} is not a (time, graph) pair",
        hint='push_all takes pairs like (12, "<a> <b> <c> .")',
    )


def turtle_of(value: Any) -> str:
    """A value of `why_not` as Turtle: text is that already."""
    if isinstance(value, str) and not hasattr(value, "n3"):
        return value
    return str(value.n3()) if hasattr(value, "n3") else json.dumps(value)


def late_policy(late: str | LateGraph, clock: Callable[[], Clock | None]) -> LateGraph | None:
    """What is done with a graph for an instant that is closed; None: it is counted. `clock` writes its time.

    Raises UsageError D4106; the policy "fail" raises DataError D2301.
    """
    if callable(late):
        return late
    if late == "drop":
        return None
    if late != "fail":
        raise UsageError.of("D4106", f"`{late}` is not a policy for late graphs", hint="use drop or fail")

    def fail(time: Time, part: GraphOrMessage) -> None:
        begun = clock()
        assert begun is not None, "only a closed instant has late graphs"
        parts = part._asdict() if isinstance(part, Message) else {"graph": part}
        counts = [
            f"{len(triples)} triples to {name}" for name, triples in parts.items() if triples is not None
        ]
        raise DataError.of(
            "D2301",
            f"this graph is for {begun.text(time)}, an instant that is already closed",
            notes=(f"it has {', '.join(counts).replace(' to graph', '')}",),
            hint="allow for disorder with a lateness, or sort the input",
        )

    return fail


class PairReader:
    """Owns the parsing. `unit`: µs of one unit of integer time; `base`: of relative IRIs."""

    def __init__(self, unit: int, base: str | None) -> None:
        self._unit = unit
        self._together = BatchParser(base)

    def read(self, pairs: Sequence[Any]) -> tuple[list[Time], list[list[Triple]]] | None:
        """Times and triples of pairs of an integer and a string; None where one is something else, or the
        strings have to be read one by one.
        """
        if set(map(type, pairs)) != {tuple} or set(map(len, pairs)) != {2} or len(pairs) < 2:
            return None
        stamps, texts = zip(*pairs, strict=True)
        if set(map(type, stamps)) != {int} or set(map(type, texts)) != {str}:
            return None
        times = [stamp * self._unit for stamp in stamps]
        if not (fits(min(times)) and fits(max(times))):
            return None
        head = common_head(texts)
        graphs = self._together.parse([text[len(head) :] for text in texts] if head else texts, head)
        return None if graphs is None else (times, graphs)

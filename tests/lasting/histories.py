"""Random histories of what is stated: messages with up to three parts, small and rich in ties."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from dotr.events import Message, Time
from dotr.program import Hold
from dotr.rdf.terms import RDF_TYPE, Triple

UNIT = 1_000_000
NODES = [f"<ex:{name}>" for name in "abc"]
PREDICATES = ["<ex:p>", "<ex:q>", "<ex:r>"]
CLASSES = ["<ex:C>", "<ex:D>"]
TIMELY = ["<ex:from>", "<ex:until>"]
TIMES = [
    *(f'"{second}"^^<http://www.w3.org/2001/XMLSchema#integer>' for second in range(-1, 16)),
    '"7"',
    "<ex:a>",
]

triples: st.SearchStrategy[Triple] = st.one_of(
    st.tuples(st.sampled_from(NODES), st.sampled_from(PREDICATES), st.sampled_from(NODES)),
    st.tuples(st.sampled_from(NODES), st.just(RDF_TYPE), st.sampled_from(CLASSES)),
)
_timely: st.SearchStrategy[Triple] = st.tuples(
    st.sampled_from(NODES), st.sampled_from(TIMELY), st.sampled_from(TIMES)
)
_some = st.lists(st.one_of(triples, _timely), max_size=4)
_part = st.one_of(st.none(), _some)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """A message with one part or more."""
    graph, insert, delete = draw(st.one_of(st.none(), _some, _some)), draw(_part), draw(_part)
    if graph is insert is delete is None:
        graph = []
    return Message(graph, insert, delete)


durations = st.one_of(st.none(), st.integers(0, 6).map(lambda n: n * UNIT))


_named = st.tuples(*(st.one_of(st.none(), st.just(predicate)) for predicate in TIMELY))


@st.composite
def holds(draw: st.DrawFn) -> tuple[Hold, ...]:
    """At most one line for each predicate and class, and for everything else."""
    found = []
    for predicate in PREDICATES:
        if draw(st.booleans()):
            found.append(Hold(predicate, None, draw(st.booleans()), draw(durations), *draw(_named)))
    for class_ in CLASSES:
        if draw(st.booleans()):
            found.append(Hold(RDF_TYPE, class_, False, draw(durations), *draw(_named)))
    if draw(st.booleans()):
        found.append(Hold(None, None, False, draw(durations), *draw(_named)))
    return tuple(found)


@st.composite
def histories(draw: st.DrawFn, most: int = 8) -> list[tuple[Time, list[Message]]]:
    """(time, messages) of instants in order."""
    times = sorted(draw(st.sets(st.integers(0, 14), max_size=most)))
    return [(time * UNIT, draw(st.lists(messages(), min_size=1, max_size=2))) for time in times]


def instants(history: Sequence[tuple[Time, list[Message]]], ends: Sequence[Time]) -> list[Time]:
    return sorted({*(time for time, _ in history), *ends})

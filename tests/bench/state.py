"""States that events begin and end, measured: INSERT beside the same change by graphs under HOLD LATEST.

Place:   the scenario `state` of __main__.py.
Method:  a graph says that a room gets another state. By effects, an event of it states the new value at the
         next moment; by messages, the graph brings the value itself. Both have the event, and a rule that
         sees what begins by ISTREAM. A number of holders have a state before; the same rooms change, in
         turns of both, processor time.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from time import process_time

from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.events import Clock, Message
from dotr.lang import load_program
from dotr.rdf.terms import RDF_TYPE, Triple

SECOND = 1_000_000
_HEAD = """PREFIX : <urn:x:>
HOLD :state LATEST
QUERY Turn := { SELECT ?room ?to WHERE { ?t a :Turn ; :room ?room ; :to ?to } }
QUERY Occupied := { SELECT ?room WHERE { ?room :state :occupied } }
RULE Began DEFINE { dotr_b a :Began ; :room ?room } FROM ISTREAM Occupied WITH ?room := Occupied.?room
RULE Turned DEFINE { dotr_t a :Turned ; :room ?room } FROM Turn WITH ?room := Turn.?room, ?to := Turn.?to
"""
_INERTIA = """PREFIX : <urn:x:>
LARS <h.lars>
QUERY Came := { SELECT ?room WHERE { ?t a :Turn ; :room ?room ; :to :occupied } }
QUERY Left := { SELECT ?room WHERE { ?t a :Turn ; :room ?room ; :to :empty } }
QUERY Turn := { SELECT ?room ?to WHERE { ?t a :Turn ; :room ?room ; :to ?to } }
RULE Began DEFINE { dotr_b a :Began ; :room ?room } FROM ISTREAM occupied WITH ?room := occupied.?room
RULE Turned DEFINE { dotr_t a :Turned ; :room ?room } FROM Turn WITH ?room := Turn.?room
"""
_LARS = """STEP 1 s
occupied(?room) :- Came(?room) .
occupied(?room) :- occupied(?room) WITHIN 1 s, NOT Left(?room) .
"""
RULES = {"effects": _HEAD + "INSERT { ?room :state ?to }", "messages": _HEAD, "inertia": _INERTIA}
VALUES = ("<urn:x:occupied>", "<urn:x:empty>")
_TURN = 50


def pipeline(kind: str, holders: int) -> Pipeline:
    """With a state for each holder."""
    files = {"a.dotr": RULES[kind], "h.lars": _LARS}
    found = Pipeline(Deployment(load_program(["a.dotr"], files.__getitem__), ()))
    found.begin(Clock())
    if kind == "inertia":
        rooms = ((f"<urn:first{n}>", f"<urn:o{n}>") for n in range(holders))
        found.push(0, [triple for name, room in rooms for triple in _turn(name, room, VALUES[0])])
    else:
        found.push_part(0, Message([(f"<urn:r{n}>", "<urn:x:state>", VALUES[1]) for n in range(holders)]))
    return found


def _turn(name: str, room: str, value: str) -> list[Triple]:
    return [(name, RDF_TYPE, "<urn:x:Turn>"), (name, "<urn:x:room>", room), (name, "<urn:x:to>", value)]


def change(kind: str, number: int, holders: int) -> list[Triple]:
    """The graph of a change: each room is occupied and left in turn."""
    room, value = f"<urn:r{number // 2 % holders}>", VALUES[number % 2]
    graph = _turn(f"<urn:t{number}>", room, value)
    return [*graph, (room, "<urn:x:state>", value)] if kind == "messages" else graph


def change_us(holders: int, changes: int) -> dict[str, float]:
    """Microseconds a change, by kind; the best of its turns."""
    runs = {kind: pipeline(kind, holders) for kind in RULES}
    best = dict.fromkeys(RULES, float("inf"))
    events = dict.fromkeys(RULES, 0)
    gc.collect()
    for first in range(0, changes, _TURN):
        for kind, run in runs.items():
            graphs = [(10 + 2 * n, change(kind, n, holders)) for n in range(first, first + _TURN)]
            start = process_time()
            events[kind] += _pushed(run, graphs)
            if first:
                best[kind] = min(best[kind], (process_time() - start) / _TURN * 1e6)
    assert abs(events["effects"] - events["messages"]) <= 1, events  # the last effect waits
    return best


def _pushed(run: Pipeline, graphs: Sequence[tuple[int, list[Triple]]]) -> int:
    """The number of events; none is named or written, in either way."""
    found = 0
    for second, graph in graphs:
        run.accept(second * SECOND, graph)
        found += sum(map(len, run.drain()))
    return found

"""How a workload is run: by dotr, by the floors, by the naive loop; each from Turtle text to N-Quads text.

Place:   one row of `prepare_…` functions. Each does what is done once (load, close, compile) and returns a
         function from the next documents of the stream to the text of their events; only that is timed.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyoxigraph as ox

import dotr

from . import floor_citybench, floor_default, floor_sequence, naive
from .workloads import Workload

Documents: TypeAlias = Sequence[tuple[int, str]]
Run: TypeAlias = Callable[[Documents], list[str]]


def engine_of(workload: Workload, **options: Any) -> dotr.Engine:
    """A workload deployed as a user would: from files."""
    with tempfile.TemporaryDirectory() as folder:
        rules, facts = Path(folder, "rules.dotr"), Path(folder, "background.nt")
        head = "RULES <rules.dlog>\n" if workload.datalog else ""
        Path(folder, "rules.dlog").write_text(workload.datalog, encoding="utf-8")
        rules.write_text(head + workload.rules, encoding="utf-8")
        facts.write_text(workload.background, encoding="utf-8")
        return dotr.Engine(str(rules), background=[str(facts)], time_unit=workload.unit, **options)


def prepare_dotr(workload: Workload, **options: Any) -> Run:
    """From files; Turtle text in, N-Quads text out."""
    engine = engine_of(workload, **options)

    def run(documents: Documents) -> list[str]:
        out: list[str] = []
        for events in engine.push_all(documents):
            out += events.nquads()
        out += engine.finish().nquads()
        return out

    return run


def prepare_pushing(workload: Workload, **options: Any) -> Run:
    """The same, graph by graph, as one does whose graphs arrive one by one."""
    engine = engine_of(workload, **options)

    def run(documents: Documents) -> list[str]:
        push, out = engine.push, []
        for time, text in documents:
            events = push(text, at=time)
            if events:
                out += events.nquads()
        out += engine.finish().nquads()
        return out

    return run


def prepare_detection(workload: Workload, **options: Any) -> Run:
    """The same, but the events are only counted, as a user does who does not print them."""
    engine = engine_of(workload, **options)

    def run(documents: Documents) -> list[str]:
        count = sum(map(len, engine.push_all(documents))) + len(engine.finish())
        return [str(count)]

    return run


def prepare_naive(workload: Workload, prefixes: str = "") -> Run:
    return naive.prepare(workload, prefixes)


def prepare_floor(workload: Workload) -> Run:
    """The default scenario; every rule's filter passes."""
    room_of = floor_default.rooms(workload.background)
    names = [pattern.name for pattern in workload.patterns]
    last: dict[str, tuple[int, str]] = {}
    return lambda documents: floor_default.run(documents, room_of, names, last)


def prepare_floor_sequence(workload: Workload) -> Run:
    room_of = floor_default.rooms(workload.background)
    names = [pattern.name for pattern in workload.patterns]
    conjuncts = workload.patterns[0].conjuncts
    each, window = conjuncts[0].selection == "EACH", conjuncts[0].seconds
    history: floor_sequence.History = {}
    length = len(conjuncts) + 1
    return lambda documents: floor_sequence.run(documents, room_of, names, length, each, window, history)


def prepare_floor_citybench(workload: Workload) -> Run:
    congestion = floor_citybench.levels(workload.background)
    query = {"q1": floor_citybench.q1, "q2": floor_citybench.q2}[workload.name]
    history: floor_citybench.History = (deque(), deque())
    return lambda documents: query(documents, congestion, history)


def parse_only(documents: Documents) -> list[str]:
    """What pyoxigraph alone takes to read the same documents."""
    parse, turtle = ox.parse, ox.RdfFormat.TURTLE
    for _, text in documents:
        for _quad in parse(text, format=turtle):
            pass
    return []

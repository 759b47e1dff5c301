"""The loop a competent user would write: a pyoxigraph store, SPARQL at one instant, Python across time.

Method:  the background stays in the store, closed once. For each graph: add its triples to a graph of its
         own, insert what the rules conclude until nothing is new, ask every query, match in Python, clear
         that graph. Nothing is rebuilt, nothing is asked twice, queries are ready text.
Why not: Python for the joins as well: then it is the floor, and no loop over a store.
"""

from __future__ import annotations

from base64 import b32encode
from collections import defaultdict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import product

import pyoxigraph as ox

from .workloads import NAMESPACE, SECOND, Conjunct, Pattern, Query, Workload

XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
STAMP = "<http://www.w3.org/ns/prov#generatedAtTime>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
NOW = ox.NamedNode("urn:now")
UNITS = {"s": SECOND, "ms": 1000}

Row = tuple[str, ...]
Found = tuple[int, Row]


def prepare(workload: Workload, prefixes: str = "") -> Callable[[Sequence[tuple[int, str]]], list[str]]:
    """Load and close the background; the function takes documents to the N-Quads of their events."""
    store = ox.Store()
    store.bulk_load(workload.background.encode(), format=ox.RdfFormat.N_TRIPLES)
    inserts = [
        f"PREFIX : <{NAMESPACE}> INSERT {{ GRAPH <urn:now> {{ ?s :{head} ?r }} }} "
        f"USING <urn:background> USING <urn:now> "
        f"WHERE {{ ?s :{first} ?o . ?o :{second} ?r FILTER NOT EXISTS {{ ?s :{head} ?r }} }}"
        for head, first, second in workload.closures
    ]
    move(store, ox.DefaultGraph(), ox.NamedNode("urn:background"))
    close(store, inserts)
    move(store, NOW, ox.NamedNode("urn:background"))
    head = f"{prefixes or f'PREFIX : <{NAMESPACE}>'}\n"
    matchers = [Matcher(pattern, head, UNITS[workload.unit]) for pattern in workload.patterns]
    unit = UNITS[workload.unit]

    def run(documents: Sequence[tuple[int, str]]) -> list[str]:
        out: list[str] = []
        for time, text in documents:
            store.extend([ox.Quad(*quad.triple, NOW) for quad in ox.parse(text, format=ox.RdfFormat.TURTLE)])
            close(store, inserts)
            for matcher in matchers:
                out.extend(matcher.at(store, time, time * unit))
            store.clear_graph(NOW)
        return out

    return run


def move(store: ox.Store, source: ox.DefaultGraph | ox.NamedNode, target: ox.NamedNode) -> None:
    store.extend(
        [ox.Quad(*quad.triple, target) for quad in store.quads_for_pattern(None, None, None, source)]
    )
    store.clear_graph(source)


def close(store: ox.Store, inserts: Sequence[str]) -> None:
    """The rules' conclusions over the instant and the background, to the fixpoint."""
    before = -1
    while before != (size := sum(1 for _ in store.quads_for_pattern(None, None, None, NOW))):
        before = size
        for insert in inserts:
            store.update(insert)


class Matcher:
    """Owns what one pattern remembers: per conjunct and key, the facts of its window."""

    def __init__(self, pattern: Pattern, head: str, unit: int) -> None:
        self._pattern = pattern
        self._head = head
        self._unit = unit
        self._history: list[dict[str, list[Found]]] = [defaultdict(list) for _ in pattern.conjuncts]

    def _rows(self, store: ox.Store, query: Query) -> list[Row]:
        graphs = [ox.NamedNode("urn:background"), NOW]
        solutions = store.query(self._head + query.text, default_graph=graphs)
        return sorted(tuple(str(term) for term in solution) for solution in solutions)

    def at(self, store: ox.Store, time: int, micros: int) -> list[str]:
        pattern = self._pattern
        for conjunct, history in zip(pattern.conjuncts, self._history, strict=True):
            for row in self._rows(store, conjunct.query):
                history[key_of(conjunct, conjunct.query, row)].append((micros, row))
        out: list[str] = []
        for row in self._rows(store, pattern.trigger):
            choices = [
                candidates(history[key_of(conjunct, pattern.trigger, row)], conjunct, micros)
                for conjunct, history in zip(pattern.conjuncts, self._history, strict=True)
            ]
            for match in product(*choices):
                out.append(self._event(time, micros, [(micros, row), *match]))
        return out

    def _event(self, time: int, micros: int, facts: list[Found]) -> str:
        pattern = self._pattern
        key = "\n".join([str(micros), *("\n".join([f"{when} 0", *row]) for when, row in facts)])
        name = b32encode(blake2b(key.encode(), digest_size=15).digest()).decode().lower()
        event = f"<urn:dotr:{pattern.name}:{name}>"
        queries = [pattern.trigger, *(c.query for c in pattern.conjuncts)]
        lines = [
            f'{event} {STAMP} "{time}"^^<{XSD_INTEGER}> .\n',
            f"{event} {TYPE} {absolute(pattern.kind)} {event} .\n",
        ]
        for predicate, position, variable in pattern.template:
            value = facts[position][1][queries[position].variables.index(variable)]
            lines.append(f"{event} {absolute(predicate)} {value} {event} .\n")
        return "".join(lines)


def absolute(name: str) -> str:
    return f"<{name}>" if ":" in name else f"<{NAMESPACE}{name}>"


def key_of(conjunct: Conjunct, query: Query, row: Row) -> str:
    return row[query.variables.index(conjunct.key)] if conjunct.key else ""


def candidates(history: list[Found], conjunct: Conjunct, now: int) -> list[Found]:
    """The facts of the window, oldest first; what has left it is forgotten."""
    oldest = now - conjunct.seconds * SECOND
    gone = 0
    while gone < len(history) and history[gone][0] < oldest:
        gone += 1
    del history[:gone]
    return history[-1:] if conjunct.selection == "LAST" else history

"""Answers of a SPARQL query as Python programs hold them: rows of rdflib terms, a bool, or an rdflib.Graph.

Place:   under `Engine.query`; core/asking.py finds the answers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from dotr.core.asking import answer, graph_of, makes_a_graph
from dotr.errors import UsageError
from dotr.events import Clock, Time
from dotr.io.python_graphs import rdflib_term
from dotr.ir import Program
from dotr.lang import parse_query
from dotr.rdf.terms import Triple
from dotr.sparql.interpreter import asks_time

if TYPE_CHECKING:
    import rdflib


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

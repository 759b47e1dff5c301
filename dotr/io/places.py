"""Where a triple stands in a document, found again when somebody asks.

Place:   asked for the leaves of a proof (explain/).
Method:  a tolerant scan: the line on which the object stands after the predicate and the subject, each in
         any of the ways in which Turtle can write it. Triples carry no lines on their way through the engine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from dotr.errors import DataError
from dotr.events import Time, labelled
from dotr.explain.record import Record
from dotr.explain.text import Places
from dotr.io.decode.documents import is_packed, read_bytes
from dotr.rdf.terms import RDF_TYPE, Term, Triple, literal_parts

MOST = 64 * 1024 * 1024
"""Bytes of a document that are looked through."""


def lines_of(path: str) -> Sequence[str]:
    """The lines of a document, none where it cannot be read."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return _lines(os.path.abspath(path), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _lines(path: str, _written: int, _size: int) -> Sequence[str]:
    """The lines of a document as it was written then."""
    try:
        return read_bytes(path, MOST).decode("utf-8", "replace").splitlines()
    except (OSError, DataError):
        return ()


def place_of(triple: Triple, paths: Iterable[str]) -> str:
    """`building.ttl:41`, or "" where it is not found."""
    for path in paths:
        line = line_of(triple, lines_of(path))
        if line:
            return f"{path}:{line}"
    return ""


def place_in(triple: Triple, graph: str) -> str:
    """Where a triple of a graph of the stream stands, whose place is `file:line`, or `file, graph 17`."""
    path, _, line = graph.rpartition(":")
    if not line.isdigit():
        path, line = graph, "1"
    if path.endswith(".jelly"):  # what was read is its statements as text, one a line
        return f"{path}, line {line} as text"
    if path.endswith((".jsonl", ".parquet", ".csv", ".tsv")) or is_packed(path) or path == "-":
        return graph
    found = line_of(triple, lines_of(path), int(line))
    return f"{path}:{found}" if found else graph


def line_of(triple: Triple, lines: Sequence[str], start: int = 1) -> int:
    """The line, from 1, on which a triple ends; 0 where no line looks like it. Looks from `start` on."""
    subject, predicate, object_ = (_spelled(term) for term in triple)
    if triple[1] == RDF_TYPE:
        predicate = re.compile(rf"(?:^|\s)a(?=\s)|{predicate.pattern}")
    stage = 0
    for number in range(start, len(lines) + 1):
        line, at = lines[number - 1], 0
        found = subject.search(line)
        if found and (stage == 0 or found.start() == _indent(line)):
            stage, at = 1, found.end()
        if stage == 1 and (found := predicate.search(line, at)):
            stage, at = 2, found.end()
        if stage == 2 and object_.search(line, at):
            return number
    return 0


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _spelled(term: Term) -> re.Pattern[str]:
    """The ways in which a document may write a term."""
    if term[0] == "_":
        return re.compile(r"_:\S+|\[|\]|\(|\)")
    if term[0] == '"':
        lexical, _, _ = literal_parts(term)
        return re.compile(rf"(?<![\w.]){re.escape(lexical)}(?!\w)")
    iri = term[1:-1]
    local = re.split(r"[#/:]", iri)[-1]
    return re.compile(rf"<{re.escape(iri)}>|<[^>\s]*{re.escape(local)}>|[\w.-]*:{re.escape(local)}(?![\w-])")


def places_of(record: Record, background: Sequence[str]) -> Places:
    """Where triples of a run's record stand, looked up when it is asked for; `background`: its files."""

    @lru_cache(maxsize=64)
    def stated(time: Time, _graphs: int) -> list[tuple[frozenset[Triple], str]]:
        """What each graph of an instant states, its blank nodes as in proofs, and its place."""
        graphs = record.graphs(time)
        messages = labelled([graph.part for graph in graphs], time)
        return [
            (frozenset(message.graph or ()), graph.place)
            for message, graph in zip(messages, graphs, strict=True)
        ]

    def place(triple: Triple, time: Time | None) -> str:
        if time is None:
            return place_of(triple, background)
        graphs = record.graphs(time)
        for triples, where in stated(time, len(graphs)):
            if where and (triple in triples or len(graphs) == 1):
                return place_in(triple, where)
        return ""

    return place

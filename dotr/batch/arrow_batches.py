"""The two halves of the work as functions over Arrow batches: graphs to facts, facts to events.

Place:   called by Spark's mapInArrow and by the processes of local.py alike.
Method:  plain columns in, plain columns out; a batch of rows amortises the crossing between JVM and Python.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter

import pyarrow as pa

from dotr.batch.extracting import Instant
from dotr.batch.fact_bundles import BundleRow, bundled, unbundled
from dotr.batch.fact_rows import COUNTED, FINDING, REFUSED, FactRow
from dotr.batch.findings_as_json import packed
from dotr.batch.job import Worker, split_lines
from dotr.core.fact_batch import Known
from dotr.core.funnel import FactCounts
from dotr.core.instant import REFUSABLE
from dotr.core.parts import Part
from dotr.errors import DataError, DotrError, ProgramError, UnsupportedError
from dotr.events import Clock, Composite, Message, Time
from dotr.io.arrow_columns import column
from dotr.io.error_policy import dead_letter
from dotr.io.event_formats import late_line
from dotr.rdf.terms import Triple

FACTS = pa.schema([("part", pa.int64()), ("time", pa.int64()), ("facts", pa.binary())])
"""BundleRow by column."""

_TOGETHER = 256
"""Instants whose facts are in memory."""


def extract(worker: Worker, instants: Iterable[Instant]) -> Iterator[FactRow]:
    """Distinct instants, in any order, to rows of facts; on request, those in error to rows of dead letters.
    The last row has the number of facts.
    """
    extracting, route = worker.extracting, worker.router.rows
    findings = extracting.findings
    extracting.counts = FactCounts()  # left by an aborted attempt
    forgiving = worker.job.treatment.forgiving
    source = iter(instants)
    while due := list(islice(source, _TOGETHER)):
        while due:
            known: list[Known] = []
            try:
                extracting.several(due, known)
                due = due[len(known) :]
            except (DataError, ProgramError) as error:
                if not forgiving or error.diagnostics[0].code not in REFUSABLE:
                    raise
                (time, graphs), due = due[len(known)], due[len(known) + 1 :]
                yield from _letters(time, graphs, error, worker.job.clock)
            extracting.count(known)
            if findings:
                yield from ((FINDING, known[-1][0], json.dumps(packed(finding))) for finding in findings)
                findings.clear()
            for time, _, facts, _ in known:
                yield from route(time, facts)
    counts, extracting.counts = extracting.counts, FactCounts()
    if counts.seen:
        yield COUNTED, 0, json.dumps({name: count for name, (count,) in counts.seen.items()})


def _letters(time: Time, graphs: Sequence[list[Triple]], error: DotrError, clock: Clock) -> Iterator[FactRow]:
    """A dead letter per graph, with time and graph like a line of a source."""
    for graph in graphs:
        yield REFUSED, time, dead_letter(error, None, "", json.loads(late_line(time, graph, clock)))


def fact_batches(rows: Iterable[FactRow]) -> Iterator[pa.RecordBatch]:
    """Rows of facts as batches of FACTS."""
    for bundles in bundled(rows):
        columns = zip(*bundles, strict=True)
        arrays = [column(values, field.type) for values, field in zip(columns, FACTS, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=FACTS)


def fact_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[FactRow]:
    """Batches of FACTS, sorted by part and time, as rows in that order."""
    return unbundled(_bundle_rows(batches))


def _bundle_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[BundleRow]:
    for batch in batches:
        yield from zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True)


def graph_text(triples: Part) -> str:
    """A graph as in the column `graphs`. Raises UnsupportedError D4160 for a message with other parts."""
    if isinstance(triples, Message):
        raise UnsupportedError.of(
            "D4160",
            "a message inserts or deletes, which does not run on Spark",
            hint="run it on this machine: --engine local",
        )
    return "".join([f"{s} {p} {o} .\n" for s, p, o in triples])


def message_text(part: Part) -> str:
    """A message in a row: a graph as N-Triples, other messages as JSON of their parts."""
    if not isinstance(part, Message):
        return _lines(part)
    parts = part._asdict().items()
    return json.dumps({name: _lines(triples) for name, triples in parts if triples is not None})


def message_of(text: str) -> Part:
    """The inverse of `message_text`, with new lists."""
    if not text.startswith("{"):
        return split_lines(text)
    return Message(**{name: split_lines(lines) for name, lines in json.loads(text).items()})


def _lines(triples: Iterable[Triple]) -> str:
    return "".join([f"{s} {p} {o} .\n" for s, p, o in triples])


def instants(rows: Iterable[tuple[Time, str]]) -> Iterator[Instant]:
    """Instants from graphs sorted by time, in the form of `graph_text`."""
    for time, graphs in groupby(rows, key=itemgetter(0)):
        yield time, [split_lines(graph) for _time, graph in graphs]


def events(worker: Worker, batches: Iterable[pa.RecordBatch]) -> Iterator[Composite]:
    """FACTS, sorted by part and time, to composite events."""
    return worker.detecting().events(fact_rows(batches))

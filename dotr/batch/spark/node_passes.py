"""`materialize(…, passes=N)`: rules that join triples of the data at a node, by repeated passes.

Place:   under materialising.py, whose single pass comes first.
Method:  if all atoms of data in a rule share a variable, the triples that it joins meet at the node that is
         its value. A pass sends each triple to the nodes at which some rule joins it, closes what meets
         there, and removes duplicates; when a pass finds nothing new the table is closed, since every rule
         whose body holds has been applied at its node. Recursion by doubling (transitivity) takes the
         logarithm of its longest chain in passes, recursion by steps its length.
Why not: until nothing is new, without limit: every pass shuffles and sorts the triples that rules join, which
         a caller should choose knowingly. Joins of DataFrames: see materialising.py.
Bad input: D4310 a rule whose atoms share no variable · D4313 not closed after that many passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from dotr.batch.spark import failures
from dotr.batch.spark.failures import Batches
from dotr.datalog.clauses import Clause
from dotr.datalog.schema import is_schema
from dotr.errors import UnsupportedError
from dotr.io.arrow_columns import texts
from dotr.ir import Var
from dotr.joins.body import BodyPattern
from dotr.joins.graph_relations import Relation, holding, is_class
from dotr.rdf.terms import Term, Triple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Places: TypeAlias = Mapping[Relation, frozenset[int]]
"""The columns of a relation's rows at which rules join them with other data."""

CloseSome: TypeAlias = Callable[[Iterable[tuple[str, str, str]]], list[Triple]]
"""Triples of data, and what follows from them."""

_MANY = 8192
"""The minimum of triples that are closed together, from as many nodes as needed."""


def data_of(clause: Clause) -> list[BodyPattern]:
    """The atoms of a body that are not over the schema, which every worker has."""
    return [i for i in clause.items if isinstance(i, BodyPattern) and not is_schema(i.relation)]


def places_of(clauses: Iterable[Clause]) -> dict[Relation, frozenset[int]] | Clause:
    """Where rules join data; a clause whose atoms share no variable, if any."""
    found: dict[Relation, set[int]] = {}
    for clause in clauses:
        data = data_of(clause)
        if len(data) < 2:
            continue
        shared = _shared(data)
        if shared is None:
            return clause
        for atom in data:
            found.setdefault(atom.relation, set()).add(atom.columns.index(Var(shared)))
    return {relation: frozenset(columns) for relation, columns in found.items()}


def _shared(data: Sequence[BodyPattern]) -> str | None:
    """The variable of all atoms that is their first column most often: objects may be hubs."""
    common = set.intersection(*(set(atom.variables) for atom in data))
    columns = {name: [atom.columns.index(Var(name)) for atom in data] for name in common}
    return min(columns, key=lambda name: (sum(columns[name]), name), default=None)


def nodes_of(triple: Triple, places: Places) -> set[Term]:
    """The nodes at which rules join a triple."""
    subject, predicate, object_ = triple
    found: set[Term] = set()
    for relation in holding(triple):
        row = (
            (subject,)
            if is_class(relation)
            else (subject, object_)
            if relation == predicate
            else (subject, predicate, object_)
        )
        found.update(row[column] for column in places.get(relation, ()))
    return found


def news(rows: Iterable[tuple[Term, str, str, str]], close: CloseSome) -> Iterator[list[Triple]]:
    """New consequences at nodes; `rows` (node, triple) are sorted by node."""
    waiting: dict[Triple, None] = {}
    for _, of_node in groupby(rows, itemgetter(0)):
        waiting.update(((s, p, o), None) for _, s, p, o in of_node)
        if len(waiting) >= _MANY:
            yield [triple for triple in close(waiting) if triple not in waiting]
            waiting = {}
    yield [triple for triple in close(waiting) if triple not in waiting]


@dataclass(frozen=True, slots=True)
class Spread:
    """Sends triples to the nodes at which rules join them."""

    places: Places

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            triples = zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True)
            rows = [(node, *triple) for triple in triples for node in sorted(nodes_of(triple, self.places))]
            parts = zip(*rows, strict=True) if rows else ((), (), (), ())
            names = ["node", *batch.schema.names]
            yield pa.RecordBatch.from_arrays([texts(list(part)) for part in parts], names=names)


@dataclass(frozen=True, slots=True)
class CloseAtNodes:
    """Closes what meets at nodes; rows are sorted by them."""

    close: CloseSome

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(lambda: self._closed(batches))

    def _closed(self, batches: Batches) -> Batches:
        rows = (
            row
            for batch in batches
            for row in zip(*(batch.column(i).to_pylist() for i in range(4)), strict=True)
        )
        for found in news(rows, self.close):
            parts = zip(*found, strict=True) if found else ((), (), ())
            names = ["subject", "predicate", "object"]
            yield pa.RecordBatch.from_arrays([texts(list(part)) for part in parts], names=names)


def closed_by_passes(
    table: DataFrame, columns: str, places: Places, close: CloseSome, passes: int
) -> DataFrame:
    """The closure of a table that is closed except for rules that join data. Runs at once; kept on disk.

    Raises UnsupportedError D4313.
    """
    from pyspark import StorageLevel  # noqa: PLC0415  # start-up

    spread, work = failures.shipped(Spread(places)), failures.shipped(CloseAtNodes(close))
    current = table.persist(StorageLevel.DISK_ONLY)
    count = current.count()
    for _ in range(passes):
        sent = current.mapInArrow(spread, f"node string, {columns}")
        met = sent.repartition("node").sortWithinPartitions("node")
        found = current.unionByName(met.mapInArrow(work, columns)).distinct()
        found = found.persist(StorageLevel.DISK_ONLY)
        before, count = count, found.count()
        current.unpersist()
        current = found
        if count == before:
            return current
    current.unpersist()
    raise UnsupportedError.of(
        "D4313",
        f"the table is not closed after {passes} {'pass' if passes == 1 else 'passes'}",
        notes=(f"the last one found new triples; there are {count:,} now",),
        hint="give more passes, or close it in one process (dotr query)",
    )

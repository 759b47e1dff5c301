"""`dotr.spark.materialize`: a table of triples closed under rules, in one pass or in N passes.

Place:   for knowledge graphs too large for one machine; `dotr query` is faster for others.
Method:  the schema (RDFS and OWL vocabulary), which is small, is collected and closed by the driver, and sent
         to every worker. If no rule then has two atoms of data in its body, the consequences of a triple
         follow from it and the schema alone, so pieces of the table are closed independently, and duplicates
         are removed once at the end. Description logic programs (Grosof et al. 2003) of RDFS are of this
         form.
         Rules that join data at a node need repeated passes, on request (`passes=N`), after the single pass.
         If all atoms of data in a rule share a variable, the triples that it joins meet at the node that is
         its value. A pass sends each triple to the nodes at which some rule joins it, closes what meets
         there, and removes duplicates; when a pass finds nothing new the table is closed, since every rule
         whose body holds has been applied at its node. Recursion by doubling (transitivity) takes the
         logarithm of its longest chain in passes, recursion by steps its length.
Why not: semi-naive evaluation by joins of DataFrames: a prototype took 13 times the CPU of one process.
         Passes until nothing is new, without limit: every pass shuffles and sorts the triples that rules
         join, which a caller should choose knowingly.
Bad input: D4122 other columns · D4310 a rule that joins data with data, or whose atoms share no variable ·
         D4313 not closed after that many passes · D3101 an inconsistent schema.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from dotr.batch.spark import session
from dotr.batch.spark.frames import Rules, deployed
from dotr.batch.spark.session import Batches
from dotr.core.deployment import Deployment, Settings
from dotr.core.instant import enricher
from dotr.enrich.materialiser import Materialiser
from dotr.enrich.owl import is_schema, schema_triples
from dotr.enrich.rules import Clause
from dotr.errors import DataError, DotrError, UnsupportedError, UsageError
from dotr.io.decode.parquet import texts
from dotr.joins.plan import (
    AbsentPattern,
    BodyPattern,
    Relation,
    class_relation,
    holding,
    is_class,
    relation_name,
)
from dotr.program import Program, Var
from dotr.rdf.terms import OWL, RDF_TYPE, RDFS, Term, Triple, canonical

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
        return session.crossing_to_driver(lambda: self._closed(batches))

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

    spread, work = session.shipped(Spread(places)), session.shipped(CloseAtNodes(close))
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
        hint="give more passes, or close it in one process (dotr close)",
    )


COLUMNS = ("subject", "predicate", "object")
_TRIPLES = ", ".join(f"{name} string" for name in COLUMNS)
_ROWS = 8192


def materialize(
    triples: DataFrame,
    rules: Rules,
    text: str | None,
    background: Sequence[str | PathLike[str]],
    passes: int | None = None,
) -> DataFrame:
    """The closure of a table of triples, distinct and unordered.

    `triples` has the columns subject, predicate and object, terms as in N-Triples; its schema triples are
    collected during this call. `rules`, `text` and `background` as in `detect`. `passes`: the limit of
    further passes if rules join data; they run during this call. Raises ProgramError, DataError, UsageError
    D4122, D4123, UnsupportedError D4310, D4313.
    """
    session.install()
    missing = [name for name in COLUMNS if name not in triples.columns]
    if missing:
        raise UsageError.of(
            "D4122",
            "a table of triples has the columns subject, predicate and object",
            label=", ".join(triples.columns),
            hint="rename them",
        )
    spark, table = triples.sparkSession, triples.select(*COLUMNS)
    deployment = deployed(rules, text, background)
    try:
        rows = table.where(_schema_condition()).distinct().collect()
    except DotrError:
        raise
    except Exception as error:  # Py4J and gRPC raise anything
        raise session.as_own_error(error) from None
    schema = schema_triples([(row[0], row[1], canonical(row[2])) for row in rows])
    work, known, places = closing(
        deployment.program, [*deployment.background, *sorted(schema)], passes is not None
    )
    found = table.mapInArrow(session.shipped(work), _TRIPLES)
    found = found.unionByName(spark.createDataFrame(known, _TRIPLES)).distinct()
    if passes is None or not places:
        return found
    try:
        return closed_by_passes(found, _TRIPLES, places, work.some, passes)
    except DotrError:
        raise
    except Exception as error:  # Py4J and gRPC raise anything
        raise session.as_own_error(error) from None


def closing(
    program: Program, background: Iterable[Triple], passes: bool = False
) -> tuple[Close, list[Triple], Places]:
    """What closes pieces of a table over a background, the closed background, and where rules join data.

    Raises UnsupportedError D4310, DataError D3101.
    """
    materialiser = enricher(program, list(background), materialize_all=True)
    places = _joins(materialiser, passes)
    content = pickle.dumps((program, materialiser.closed.save()), pickle.HIGHEST_PROTOCOL)
    return Close(content), sorted(materialiser.state()), places


def _schema_condition() -> str:
    predicates = " OR ".join(
        f"predicate = '<{RDFS}{name}>'" for name in ("subClassOf", "subPropertyOf", "domain", "range")
    )
    kinds = f"(predicate = '{RDF_TYPE}' AND (startswith(object, '<{OWL}') OR startswith(object, '<{RDFS}')))"
    return f"{predicates} OR startswith(predicate, '<{OWL}') OR {kinds}"


def _joins(materialiser: Materialiser, passes: bool) -> Places:
    """Where rules join data. Raises UnsupportedError D4310 if they do and must not, and for rules whose
    conclusions depend on the absence of a triple.
    """
    clauses = materialiser.closed.clauses
    for clause in clauses.all:
        if any(isinstance(item, AbsentPattern) for item in clause.items):
            raise _joining("it has a NOT", False)
        if len(data_of(clause)) > 1 and not passes:
            raise _joining(_reads(clause), not isinstance(places_of([clause]), Clause))
    if clauses.all_aggregations:
        raise _joining("it has an AGGREGATE", False)
    places = places_of(clauses.all)
    if isinstance(places, Clause):
        raise _joining(f"{_reads(places)}, which share no variable", False)
    return places


def _reads(clause: Clause) -> str:
    return f"it reads {' and '.join(relation_name(atom.relation) for atom in data_of(clause))}"


def _joining(why: str, at_node: bool) -> UnsupportedError:
    more = "ask for repeated passes (passes=10)" if at_node else "leave the rule out"
    return UnsupportedError.of(
        "D4310",
        "a rule joins triples of the data, which `materialize` processes separately",
        notes=(why,),
        hint=f"close it in one process (dotr close), or {more}",
    )


class Close(Struct, frozen=True):
    """Closes pieces of a table: `content` is the program and the closed schema, pickled."""

    content: bytes

    def __call__(self, batches: Batches) -> Batches:
        return session.crossing_to_driver(lambda: self._closed(batches))

    def some(self, rows: Iterable[tuple[str, str, str]]) -> list[Triple]:
        """Triples of data, and what follows from all of them."""
        return closed(_materialiser(self.content), _data(rows))

    def _closed(self, batches: Batches) -> Batches:
        materialiser = _materialiser(self.content)
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS):
                piece = batch.slice(start, _ROWS)
                columns = [piece.column(i).to_pylist() for i in range(3)]
                found = closed(materialiser, _data(zip(*columns, strict=True)))
                parts = zip(*found, strict=True) if found else ((), (), ())
                yield pa.RecordBatch.from_arrays([texts(list(part)) for part in parts], names=list(COLUMNS))


def closed(materialiser: Materialiser, triples: Sequence[Triple]) -> list[Triple]:
    """Triples of data and what follows from each of them. Raises DataError D3101 for a contradiction."""
    materialiser.instant(triples)
    try:
        clashes = materialiser.clashes()
        if clashes:
            raise DataError(clashes)
        return list(dict.fromkeys([*triples, *materialiser.added()]))
    finally:
        materialiser.forget()


def _data(rows: Iterable[tuple[str, str, str]]) -> list[Triple]:
    """The rows without the schema, which the driver has. Raises DataError D2018 for a row without a term."""
    found = []
    for subject, predicate, object_ in rows:
        if subject is None or predicate is None or object_ is None:
            raise DataError.of(
                "D2018", "a row has no subject, predicate or object", hint="leave such rows out"
            )
        if not is_schema(class_relation(object_) if predicate == RDF_TYPE else predicate):
            found.append((subject, predicate, canonical(object_)))
    return found


_OPEN: dict[bytes, Materialiser] = {}


def _materialiser(content: bytes) -> Materialiser:
    """The materialiser of this process; opened on the first call."""
    if content not in _OPEN:
        _OPEN.clear()
        program, saved = pickle.loads(content)  # noqa: S301  # our own driver's bytes, same release
        settings = replace(Settings(), materialize_all=True)
        _OPEN[content] = Deployment(program, (), settings, closed=saved).enrich
    return _OPEN[content]

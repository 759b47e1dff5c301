"""`dotr.spark.materialize`: a table of triples closed under rules, in one pass.

Place:   for knowledge graphs too large for one machine; `dotr query` is faster for others.
Method:  the schema (RDFS and OWL vocabulary), which is small, is collected and closed by the driver, and sent
         to every worker. If no rule then has two atoms of data in its body, the consequences of a triple
         follow from it and the schema alone, so pieces of the table are closed independently, and duplicates
         are removed once at the end. Description logic programs (Grosof et al. 2003) of RDFS are of this
         form. Rules that join data at a node need repeated passes, on request (node_passes.py).
Why not: semi-naive evaluation by joins of DataFrames: a prototype took 13 times the CPU of one process.
Bad input: D4122 other columns · D4310 a rule that joins data with data · D3101 an inconsistent schema.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from dotr.batch.spark import failures
from dotr.batch.spark.driver_input import Rules, deployed
from dotr.batch.spark.node_passes import Places, closed_by_passes, data_of, places_of
from dotr.core.deployment import Deployment, Settings
from dotr.core.enrich import enricher
from dotr.datalog.clauses import Clause
from dotr.datalog.materialiser import Materialiser
from dotr.datalog.schema import is_schema, schema_triples
from dotr.errors import DataError, DotrError, UnsupportedError, UsageError
from dotr.io.arrow_columns import texts
from dotr.ir import Program
from dotr.joins.body import AbsentPattern
from dotr.joins.graph_relations import class_relation, relation_name
from dotr.rdf.canonical import canonical
from dotr.rdf.terms import OWL, RDF_TYPE, RDFS, Triple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches = Iterator[pa.RecordBatch]

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
    failures.install()
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
        raise failures.as_own_error(error) from None
    schema = schema_triples([(row[0], row[1], canonical(row[2])) for row in rows])
    work, known, places = closing(
        deployment.program, [*deployment.background, *sorted(schema)], passes is not None
    )
    found = table.mapInArrow(failures.shipped(work), _TRIPLES)
    found = found.unionByName(spark.createDataFrame(known, _TRIPLES)).distinct()
    if passes is None or not places:
        return found
    try:
        return closed_by_passes(found, _TRIPLES, places, work.some, passes)
    except DotrError:
        raise
    except Exception as error:  # Py4J and gRPC raise anything
        raise failures.as_own_error(error) from None


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
        hint=f"close it in one process (dotr query), or {more}",
    )


class Close(Struct, frozen=True):
    """Closes pieces of a table: `content` is the program and the closed schema, pickled."""

    content: bytes

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(lambda: self._closed(batches))

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

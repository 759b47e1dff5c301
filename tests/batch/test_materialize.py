"""`dotr.spark.materialize`: the closure of pieces, put together, is that of one process."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import dotr.spark
from dotr.batch.spark import materialising
from dotr.batch.spark.materialising import closing, news, nodes_of
from dotr.core.instant import enricher
from dotr.enrich.owl import schema_triples
from dotr.errors import UnsupportedError, UsageError
from dotr.io.rules_and_background import read_rules_text
from dotr.lang import load_program
from dotr.program import Program
from dotr.rdf.terms import RDF_TYPE, RDFS, Triple

RULES = "ENTAILMENT rdfs\n"
OWN = """PREFIX : <urn:x:>
:Busy(?x) :- :p1(?x, ?y) .
:p2(?y, ?x) :- :p3(?x, ?y) .
"""


def program_of(datalog: str) -> Program:
    given = {"r.dotr": RULES, "d.dlog": datalog}
    return load_program(list(given), lambda name: given[name] if name in given else read_rules_text(name))


def table(seed: int, count: int = 400) -> list[Triple]:
    """Instances under random hierarchies of classes and properties, cycles too, the schema anywhere."""
    random = Random(seed)

    def iri(kind: str, most: int) -> str:
        return f"<urn:x:{kind}{random.randrange(most)}>"

    triples: set[Triple] = set()
    for _ in range(12):
        triples.add((iri("C", 8), f"<{RDFS}subClassOf>", iri("C", 8)))
        triples.add((iri("p", 6), f"<{RDFS}subPropertyOf>", iri("p", 6)))
    for _ in range(4):
        triples.add((iri("p", 6), f"<{RDFS}domain>", iri("C", 8)))
        triples.add((iri("p", 6), f"<{RDFS}range>", iri("C", 8)))
    for _ in range(count):
        object_ = iri("i", 60) if random.random() < 0.8 else f'"{random.randrange(9)}"'
        triples.add((iri("i", 60), iri("p", 6), object_))
        triples.add((iri("i", 60), RDF_TYPE, iri("C", 8)))
    found = sorted(triples)
    random.shuffle(found)
    return found


def batch_of(triples: list[Triple]) -> pa.RecordBatch:
    columns = [pa.array(column) for column in zip(*triples, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=["subject", "predicate", "object"])


def in_one_process(datalog: str, triples: list[Triple]) -> set[Triple]:
    return set(enricher(program_of(datalog), triples, materialize_all=True).state())


@pytest.mark.parametrize("datalog", ["", OWN])
@pytest.mark.parametrize("seed", range(4))
def test_pieces_closed_apart_are_the_closure_of_all(datalog: str, seed: int) -> None:
    triples = table(seed)
    close, known, _ = closing(program_of(datalog), sorted(schema_triples(triples)))
    pieces = [triples[i : i + 37] for i in range(0, len(triples), 37)]
    found = set(known)
    for batch in close(map(batch_of, pieces)):
        found.update(zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True))
    expected = in_one_process(datalog, triples)
    assert len(expected) > len(triples) * 1.3
    assert found == expected


@pytest.mark.parametrize(
    "rule",
    [
        ":q(?x, ?z) :- :p(?x, ?y), :p(?y, ?z) .",
        ":Lonely(?x) :- :Person(?x), NOT :knows(?x, ?y) .",
        ":of(?x, ?n) :- AGGREGATE(:p(?x, ?y) ON ?x BIND COUNT(?y) AS ?n) .",
    ],
)
def test_rules_that_join_data_are_refused(rule: str) -> None:
    program = program_of(f"PREFIX : <urn:x:>\n{rule}\n")
    with pytest.raises(UnsupportedError, match="D4310"):
        closing(program, [])


JOINS = """PREFIX : <urn:x:>
:p0(?x, ?z) :- :p0(?x, ?y), :p0(?y, ?z) .
:C9(?x) :- :C1(?x), :p4(?x, ?y), :p5(?z, ?x) .
:near(?x, ?y) :- :C9(?x), [?x, ?p, ?y], :p1(?y, ?x) .
:same(?x, ?y) :- :p2(?x, ?v), :p3(?y, ?v) .
"""


@pytest.mark.parametrize("seed", range(4))
def test_passes_over_nodes_end_with_the_closure_of_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Spark does between the passes, done here: send, sort, close some nodes at a time."""
    monkeypatch.setattr(materialising, "_MANY", 5)
    triples = table(seed, 120)
    close, known, places = closing(program_of(JOINS), sorted(schema_triples(triples)), passes=True)
    expected = in_one_process(JOINS, triples)
    current = set(known)
    for i in range(0, len(triples), 37):
        current.update(close.some(triples[i : i + 37]))
    assert current < expected
    passes = 0
    while True:
        sent = [(node, *triple) for triple in current for node in nodes_of(triple, places)]
        found = {triple for some in news(sorted(sent), close.some) for triple in some}
        if found <= current:
            break
        current |= found
        passes += 1
    assert current == expected
    assert passes > 1


def test_rules_whose_atoms_share_no_variable_are_refused_in_any_number_of_passes() -> None:
    program = program_of("PREFIX : <urn:x:> :q(?x, ?z) :- :p(?x, ?a), :r(?a, ?b), :p(?b, ?z) .")
    with pytest.raises(UnsupportedError, match=r"D4310(.|\n)*share no variable"):
        closing(program, [], passes=True)
    joined = program_of("PREFIX : <urn:x:> :q(?x, ?z) :- :p(?x, ?a), :r(?a, ?z) .")
    with pytest.raises(UnsupportedError, match=r"D4310(.|\n)*passes=10"):
        closing(joined, [])


@pytest.mark.spark
def test_a_chain_is_closed_by_passes(spark: Any, tmp_path: Path) -> None:
    chain = [(f"<urn:x:n{i}>", "<urn:x:on>", f"<urn:x:n{i + 1}>") for i in range(12)]
    (tmp_path / "on.dlog").write_text("PREFIX : <urn:x:> :on(?x, ?z) :- :on(?x, ?y), :on(?y, ?z) .")
    (tmp_path / "r.dotr").write_text("RULES <on.dlog>\n")
    frame = spark.createDataFrame(chain, "subject string, predicate string, object string").repartition(3)
    rules = tmp_path / "r.dotr"
    found = dotr.spark.materialize(frame, rules, passes=6).collect()
    assert len(found) == 12 * 13 // 2
    assert len(set(map(tuple, found))) == len(found)
    with pytest.raises(UnsupportedError, match="D4313"):
        dotr.spark.materialize(frame, rules, passes=1)
    with pytest.raises(UnsupportedError, match="D4310"):
        dotr.spark.materialize(frame, rules)


@pytest.mark.spark
def test_a_table_is_closed_by_spark(spark: Any) -> None:
    triples = table(7)
    frame = spark.createDataFrame(triples, "subject string, predicate string, object string").repartition(3)
    rows = dotr.spark.materialize(frame, text=RULES).collect()
    found = [tuple(row) for row in rows]
    assert len(found) == len(set(found))
    assert set(found) == in_one_process("", triples)
    with pytest.raises(UsageError, match="D4122"):
        dotr.spark.materialize(spark.range(3), text=RULES)

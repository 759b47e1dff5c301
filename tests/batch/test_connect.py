"""Spark Connect: a local server, in a process of its own, since one Python has one kind of session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dotr.batch.spark.session import find_java
from dotr.core.instant import enricher
from dotr.errors import EngineError
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import load_program
from tests.batch.test_local import in_one_process
from tests.batch.test_spark import RULES

pytestmark = pytest.mark.spark

LIMIT = 240
SCHEMA = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
A = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
TRIPLES = [(f"<urn:x:i{i}>", A, f"<urn:x:C{i % 3}>") for i in range(40)]
TRIPLES += [("<urn:x:C0>", SCHEMA, "<urn:x:C1>"), ("<urn:x:C1>", SCHEMA, "<urn:x:C2>")]

CLIENT = """
import json, os, sys
from pathlib import Path
import dotr.spark
from dotr.cli.main import run
from pyspark.sql import Observation
from dotr.errors import DataError, ProgramError, UsageError
from dotr.rdf import index as background

background.LARGE = 0  # it goes to the workers as a file
spark = dotr.spark.session()
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
rows = [(line["time"], line["graph"]) for line in map(json.loads, open("log.jsonl"))]
log = spark.createDataFrame(rows, "time bigint, graph string")
seen = Observation("dotr")
found = dotr.spark.detect(log, "rules.dotr", parallelism=2, observation=seen).collect()
dotr.spark.register(spark)
log.createOrReplaceTempView("log")
path = os.path.abspath("rules.dotr")
function = spark.sql(f"SELECT * FROM dotr_detect(TABLE(log), rules => '{path}')").collect()
read = spark.read.format("dotr").option("from", "90").load(os.path.abspath("log.jsonl")).count()
columns = "subject string, predicate string, object string"
triples = spark.createDataFrame(json.load(open("triples.json")), columns)
closed = dotr.spark.materialize(triples, text="ENTAILMENT rdfs").collect()
reported = []
try:
    bad = spark.createDataFrame([(1, "nonsense")], "time bigint, graph string")
    dotr.spark.detect(bad, "rules.dotr").collect()
except DataError as error:
    reported.append(error.diagnostics[0].code)
try:
    stream = spark.readStream.schema("time bigint, graph string").json("logs")
    dotr.spark.stream(stream, "rules.dotr", out="out", checkpoint="state")
except UsageError as error:
    reported.append(error.diagnostics[0].code)
try:
    spark.sql("SELECT * FROM dotr_detect(TABLE(log), rules => 'RULE')").collect()
except ProgramError as error:
    reported.append(error.diagnostics[0].code)
counts = [seen.get["graphs"], seen.get["events"], len(function), read]
results = [sorted(row.id for row in found), sorted(map(list, closed)), reported, counts]
results.append(sorted(row.id for row in function))
assert run(["batch", "rules.dotr", "log.jsonl", "--engine", "spark", "--out", "batched", "-q"]) == 0
parts = [part.read_text("utf-8").splitlines() for part in Path("batched").glob("part-*")]
results.append(sorted(json.loads(line)["id"] for lines in parts for line in lines))
json.dump(results, open("found.json", "w"))
spark.stop()
"""


def test_detect_materialize_and_a_batch_work_over_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'dotr[connect]'")
    try:
        java = find_java().home
    except EngineError as error:
        pytest.skip(str(error))
    (tmp_path / "rules.dotr").write_text(RULES, encoding="utf-8")
    (tmp_path / "logs").mkdir()
    lines = [
        {
            "time": i * 7 % 97,
            "graph": f"<urn:x:o{i}> <urn:x:{('smoke', 'heat', 'no')[i % 3]}> <urn:x:r{i % 5}> .",
        }
        for i in range(120)
    ]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    (tmp_path / "triples.json").write_text(json.dumps(TRIPLES), encoding="utf-8")
    (tmp_path / "client.py").write_text(CLIENT, encoding="utf-8")
    environment = {
        **os.environ,
        "SPARK_REMOTE": "local[2]",
        "JAVA_HOME": java,
        "PYSPARK_PYTHON": sys.executable,
    }
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    done = subprocess.run(
        [sys.executable, "client.py"],
        cwd=tmp_path,
        env=environment,
        timeout=LIMIT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ids, closed, reported, counts, of_function, batched = json.loads(
        (tmp_path / "found.json").read_text(encoding="utf-8")
    )
    program = load_program([str(tmp_path / "rules.dotr")], read_rules_text)
    expected = in_one_process(program, [], [str(tmp_path / "log.jsonl")], SourceOptions())
    assert len(expected) > 20
    assert ids == sorted(json.loads(line)["id"] for line in expected)
    assert of_function == batched == ids
    assert counts == [120, len(ids), len(ids), sum(line["time"] >= 90 for line in lines)]
    rdfs = load_program(
        ["r.dotr"], lambda name: "ENTAILMENT rdfs" if name == "r.dotr" else read_rules_text(name)
    )
    assert closed == sorted(map(list, enricher(rdfs, TRIPLES, materialize_all=True).state()))
    assert reported == ["D2001", "D4309", "D1004"]

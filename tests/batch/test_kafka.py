"""Kafka through Spark's connector, against a broker that the test starts: records in, events out.

The jars of the connector come as those of the broker do (tests/connectors/kafka_broker.py).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.batch.test_micro_batches import RULES, SECOND, graphs, in_one_go
from tests.connectors.kafka_broker import LIMIT, jars, running

pytestmark = pytest.mark.spark

CONNECTOR = ("org.apache.spark", "spark-sql-kafka-0-10_2.13")
FALLBACK = "4.2.0"
"""A connector that works with the Spark that is pinned, where its own release has none."""

STORY = """
import sys, json
import dotr.spark
from dotr.cli.main import run
servers, folder, jars = sys.argv[1:]
spark = dotr.spark.session("local[2]", **{"spark.jars": jars, "spark.sql.shuffle.partitions": "2"})
records = [(line,) for line in open(f"{folder}/log.jsonl")]
kafka = {"kafka.bootstrap.servers": servers}
spark.createDataFrame(records, "value string").coalesce(1).write.format("kafka").options(**kafka).option(
    "topic", "readings"
).save()
for mode in ("ordered", "distributed"):
    state = ["--checkpoint", f"{folder}/{mode}", "--out", f"kafka:{servers}/{mode}", "--mode", mode]
    source = ["--source", "kafka", servers, "readings", "--most", "25", "--once", "-q"]
    assert run(["stream", f"{folder}/rules.dotr", *source, *state]) == 0
    found = spark.read.format("kafka").options(**kafka).option("subscribe", mode).load()
    rows = found.orderBy("partition", "offset").selectExpr("string(key) AS key", "string(value) AS value")
    with open(f"{folder}/{mode}.json", "w") as file:
        json.dump([[row.key, row.value] for row in rows.collect()], file)
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """Where a broker is."""
    with running(tmp_path / "broker") as one:
        yield one.servers


def connector() -> str:
    """The jars of Spark's connector as spark.jars takes them."""
    import pyspark  # noqa: PLC0415  # start-up

    spark = {path.name for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    stems = {name.rpartition("-")[0] for name in spark}
    for version in dict.fromkeys((pyspark.__version__, FALLBACK)):
        try:
            found = jars(*CONNECTOR, version)
        except (LookupError, OSError, subprocess.SubprocessError) as error:
            missing = error
            continue
        return ",".join(str(path) for path in found if path.name.rpartition("-")[0] not in stems)
    pytest.skip(f"no connector: {missing}")


def records_by_batch(checkpoint: Path) -> list[int]:
    """How many records of the topic's only partition each batch took, by the offsets that Spark noted: the
    first source on the third line.
    """
    (offsets,) = checkpoint.rglob("offsets")
    noted = sorted(
        (path for path in offsets.iterdir() if path.name.isdigit()), key=lambda path: int(path.name)
    )
    ends = [json.loads(path.read_text(encoding="utf-8").splitlines()[2])["readings"]["0"] for path in noted]
    return [end - start for start, end in pairwise([0, *ends])]


def test_records_become_events_of_a_topic(broker: str, tmp_path: Path) -> None:
    """In order: the bytes of one process, record by record; distributed: the same set. No batch takes more
    than `--most` records.
    """
    (tmp_path / "rules.dotr").write_text(RULES, encoding="utf-8")
    lines = [
        json.dumps({"time": at // SECOND, "graph": "".join(f"{s} {p} {o} .\n" for s, p, o in graph)})
        for at, graph in graphs()
    ]
    (tmp_path / "log.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    story = [sys.executable, "-c", STORY, broker, str(tmp_path), connector()]
    done = subprocess.run(story, capture_output=True, text=True, timeout=2 * LIMIT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = in_one_go(graphs()).splitlines()
    ordered = json.loads((tmp_path / "ordered.json").read_text(encoding="utf-8"))
    assert [value for _, value in ordered] == expected
    assert [key for key, _ in ordered] == [json.loads(line)["id"] for line in expected]
    distributed = json.loads((tmp_path / "distributed.json").read_text(encoding="utf-8"))
    assert sorted(value for _, value in distributed) == sorted(expected)
    for mode in ("ordered", "distributed"):
        taken = [count for count in records_by_batch(tmp_path / mode) if count]
        assert taken == [25, 25, 10], mode

"""Kafka through Spark's connector, against a broker that the test starts: records in, events out.

The jars of both come from Maven's repository, by the Ivy that Spark has; they are kept in the user's cache.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dotr.batch.spark.session import find_java
from dotr.errors import EngineError
from tests.batch.test_micro_batches import RULES, SECOND, graphs, in_one_go

pytestmark = pytest.mark.spark

BROKER = ("org.apache.kafka", "kafka_2.13", "3.9.1")
CONNECTOR = ("org.apache.spark", "spark-sql-kafka-0-10_2.13")
FALLBACK = "4.2.0"
"""A connector that works with the Spark that is pinned, where its own release has none."""

LIMIT = 240

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
    source = ["--source", "kafka", servers, "readings", "--most", "40", "--once", "-q"]
    assert run(["stream", f"{folder}/rules.dotr", *source, *state]) == 0
    found = spark.read.format("kafka").options(**kafka).option("subscribe", mode).load()
    rows = found.orderBy("partition", "offset").selectExpr("string(key) AS key", "string(value) AS value")
    with open(f"{folder}/{mode}.json", "w") as file:
        json.dump([[row.key, row.value] for row in rows.collect()], file)
"""


def jars(organisation: str, name: str, version: str) -> list[Path]:
    """The jar of a module and all that it needs, without what Spark has."""
    import pyspark  # noqa: PLC0415  # start-up

    folder = Path.home() / ".cache" / "dotr-tests" / f"{name}-{version}"
    done = folder / "complete"
    if not done.exists():
        ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
        command = [str(Path(find_java().home, "bin", "java")), "-jar", str(ivy), "-types", "jar", "bundle"]
        command += ["-cache", str(folder / "ivy"), "-confs", "default", "-dependency", organisation, name]
        command += [version, "-retrieve", f"{folder}/jars/[artifact]-[revision](-[classifier]).[ext]"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        if found.returncode or "UNRESOLVED" in found.stdout or not list(folder.glob(f"jars/{name}-*.jar")):
            raise LookupError(f"{name} {version} cannot be had: {found.stdout.splitlines()[-1:]}")
        done.touch()
    return sorted((folder / "jars").glob("*.jar"))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """A broker of one node on loopback, which is its own controller."""
    try:
        java = str(Path(find_java().home, "bin", "java"))
        path = ":".join(map(str, jars(*BROKER)))
    except (EngineError, LookupError, OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no broker: {error}")
    port, control = free_port(), free_port()
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{control}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "offsets.topic.replication.factor": 1,
        "group.initial.rebalance.delay.ms": 0,
        "log.dirs": tmp_path / "kafka",
    }
    config = tmp_path / "server.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    run = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path]
    cluster = "QUFBQUFBQUFBQUFBQUFBQQ"
    format_ = [*run, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)]
    subprocess.run(format_, check=True, capture_output=True, timeout=LIMIT)
    with (tmp_path / "broker.log").open("w") as log:
        process = subprocess.Popen([*run, "kafka.Kafka", str(config)], stdout=log, stderr=log)
    try:
        until = time.monotonic() + LIMIT
        while True:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (tmp_path / "broker.log").read_text(encoding="utf-8")
            assert time.monotonic() < until
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


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


def test_records_become_events_of_a_topic(broker: str, tmp_path: Path) -> None:
    """In order: the bytes of one process, record by record; distributed: the same set."""
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

"""A real standalone cluster here: a master and two workers as processes, spark-submit, a killed executor."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import dotr
from dotr.cli.main import run
from dotr.events import Clock
from dotr.io.decode.parquet import ArchiveWriter
from tests.batch.standalone import (
    BIN,
    LIMIT,
    Cluster,
    NoClusterError,
    below,
    children,
    mappings,
    standalone,
    until,
)
from tests.batch.test_spark import RULES

pytestmark = pytest.mark.spark

GRAPHS = 20_000
SMALL = ("--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=512m")


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Two workers; the parameter is the cores of each."""
    try:
        with standalone(tmp_path, cores=getattr(request, "param", 1)) as started:
            yield started
    except NoClusterError as error:
        pytest.skip(str(error))


def archive(folder: Path) -> None:
    writer = ArchiveWriter(str(folder / "log.parquet"), Clock())
    for i in range(GRAPHS):
        kind = ("smoke", "heat", "noise")[i % 3]
        graph = [(f"<urn:x:o{i}>", f"<urn:x:{kind}>", f"<urn:x:room{i % 50}>")]
        writer.add(i * 2 // 3 * 1_000_000, graph)
    writer.close()


def submitted(
    url: str, environment: dict[str, str], folder: Path, *arguments: str, settings: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    command = [str(BIN / "spark-submit"), "--master", url, *SMALL, *settings, "dotr-submit.py", *arguments]
    command.append("-q")
    with (folder / "driver.log").open("wb") as log:
        return subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)


def working(workers: list[subprocess.Popen[bytes]]) -> list[int]:
    """Executors that have started Python for a task."""
    return [one for worker in workers for one in children(worker.pid) if children(one)]


DYNAMIC = (
    *("--conf", "spark.dynamicAllocation.enabled=true"),
    *("--conf", "spark.dynamicAllocation.shuffleTracking.enabled=true"),
    *("--conf", "spark.dynamicAllocation.minExecutors=0", "--conf", "spark.executor.cores=1"),
)
"""Spark begins without an executor, and asks for some when tasks wait."""


@pytest.mark.parametrize("lost", ["executor", "worker"])
def test_a_submitted_batch_survives_an_executor(
    lost: str,
    cluster: Cluster,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The master is spark-submit's; the batch ran on `local[*]` of the gateway. "worker": executors are
    allocated dynamically, and a worker is killed together with its executor.
    """
    url, workers, environment = cluster
    (tmp_path / "rules.dotr").write_text(RULES, encoding="utf-8")
    archive(tmp_path)
    assert run(["spark", "entry-point", "-o", str(tmp_path / "dotr-submit.py")]) == 0
    words = ("batch", "rules.dotr", "log.parquet", "--out", "out")
    driver = submitted(url, environment, tmp_path, *words, settings=DYNAMIC if lost == "worker" else ())
    try:
        executor = until(lambda: working(workers), driver)[0]
        if lost == "worker":
            (worker,) = (one for one in workers if executor in children(one.pid))
            os.killpg(worker.pid, signal.SIGKILL)
        else:
            os.kill(executor, signal.SIGKILL)
        code = driver.wait(LIMIT)
    finally:
        driver.kill()
    assert code == 0, (tmp_path / "driver.log").read_text(encoding="utf-8")
    capfd.readouterr()
    assert run(["run", str(tmp_path / "rules.dotr"), str(tmp_path / "log.parquet"), "-q"]) == 0
    expected = sorted(capfd.readouterr().out.splitlines())
    parts = sorted((tmp_path / "out").glob("part-*.jsonl"))
    assert len(expected) > 4_000
    assert (
        sorted(line for part in parts for line in part.read_text(encoding="utf-8").splitlines()) == expected
    )
    assert len(parts) > 1


def test_an_environment_that_is_sent_along_has_dotr(cluster: Cluster, tmp_path: Path) -> None:
    """Workers start the Python of the archive, which has our dotr; that of PYSPARK_PYTHON has none."""
    url, _, environment = cluster
    here = Path(sysconfig.get_path("purelib"))
    site = Path("lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
    for name in ("sent", "bare"):
        venv.create(tmp_path / name, symlinks=True, with_pip=False)
        (tmp_path / name / site / "others.pth").write_text(f"{here}\n", encoding="utf-8")
    ours = Path(dotr.__file__).parent
    shutil.copytree(ours, tmp_path / "sent" / site / "dotr", ignore=shutil.ignore_patterns("__pycache__"))
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz", compresslevel=1) as packed:
        packed.add(tmp_path / "sent", ".")
    (tmp_path / "rules.dotr").write_text(RULES, encoding="utf-8")
    (tmp_path / "log.jsonl").write_text("".join(map(_line, range(300))), encoding="utf-8")
    assert run(["spark", "entry-point", "-o", str(tmp_path / "dotr-submit.py")]) == 0
    environment |= {
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": str(tmp_path / "bare" / "bin" / "python"),
    }
    sent = ("--archives", "env.tar.gz#environment")
    workers = ("--conf", "spark.pyspark.python=./environment/bin/python")
    chosen = (*sent, *workers, "--conf", f"spark.pyspark.driver.python={sys.executable}")
    for options, code in ((chosen, 0), ((), 4)):
        command = [str(BIN / "spark-submit"), "--master", url, *SMALL, *options, "dotr-submit.py", "batch"]
        words = ["rules.dotr", "log.jsonl", "--out", f"out{code}", "-q"]
        done = subprocess.run(
            [*command, *words], env=environment, cwd=tmp_path, timeout=LIMIT, capture_output=True, check=False
        )
        said = (done.stdout + done.stderr).decode(errors="replace")  # spark-submit prints both there
        assert done.returncode == code, said
        assert ("D4307" in said) == (code == 4)
    assert len(list((tmp_path / "out0").glob("part-*.jsonl"))) > 0


FUNCTIONS = """
__version__ = "1"
FUNCTIONS = {"urn:f:room": lambda iri: iri.removeprefix("urn:x:")}
"""
CALLING = """PREFIX : <urn:x:>
RULE Smoked
DEFINE { dotr_id a :Smoked ; :in ?room }
FROM Smoke := { SELECT ?name WHERE { ?o :smoke ?room BIND(<urn:f:room>(STR(?room)) AS ?name) } }
WITH ?room := Smoke.?name
"""


def test_functions_are_sent_to_workers_as_python_files(
    cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The driver finds the module in its folder, which workers do not have: without the option they end the
    job with D4154.
    """
    (tmp_path / "sent_functions.py").write_text(FUNCTIONS, encoding="utf-8")
    (tmp_path / "rules.dotr").write_text(CALLING, encoding="utf-8")
    (tmp_path / "log.jsonl").write_text("".join(map(_line, range(300))), encoding="utf-8")
    dotr = [sys.executable, "-m", "dotr"]
    common = ["rules.dotr", "log.jsonl", "--functions", "sent_functions", "-q"]
    batch = [*dotr, "batch", *common, "--master", cluster.url, *SMALL]
    done = subprocess.run(
        [*batch, "--out", "out", "--py-files", "sent_functions.py"],
        env=cluster.environment,
        cwd=tmp_path,
        timeout=LIMIT,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    expected = subprocess.run(
        [*dotr, "run", *common], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    found = [path.read_text(encoding="utf-8") for path in (tmp_path / "out").glob("part-*.jsonl")]
    assert sorted("".join(found).splitlines()) == sorted(expected.stdout.splitlines())
    assert '"value":"room0"' in expected.stdout


@pytest.mark.parametrize("cluster", [2], indirect=True)
def test_a_background_is_brought_to_an_executor_once(
    cluster: Cluster,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Two executors of two cores each: there are two copies of the background, whatever the number of tasks,
    and all Python processes of an executor map its copy, each of them once.
    """
    url, workers, environment = cluster
    smoke = "{ ?o :smoke ?room }"
    assert smoke in RULES
    rules = RULES.replace(smoke, "{ ?o :smoke ?room . ?room a :Room }")
    rules = rules.replace("QUERY", "BACKGROUND <rooms.nt>\nQUERY", 1)
    (tmp_path / "rules.dotr").write_text(rules, encoding="utf-8")
    a = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    rooms = [f"<urn:x:room{i}> {a} <urn:x:Room> .\n" for i in range(1, 5_000)]
    (tmp_path / "rooms.nt").write_text("".join(rooms), encoding="utf-8")
    archive(tmp_path)
    (tmp_path / "dotr-submit.py").write_text(
        "import dotr.rdf.index\nfrom dotr.cli.main import main\ndotr.rdf.index.LARGE = 1_000\nmain()\n",
        encoding="utf-8",
    )
    driver = submitted(url, environment, tmp_path, "batch", "rules.dotr", "log.parquet", "--out", "out")
    found: dict[int, dict[int, list[str]]] = {}
    try:
        while driver.poll() is None:
            for executor in (one for worker in workers for one in children(worker.pid)):
                for process in below(executor):
                    if mapped := mappings(process):
                        found.setdefault(executor, {})[process] = mapped
            time.sleep(0.02)
    finally:
        driver.kill()
    assert driver.returncode == 0, (tmp_path / "driver.log").read_text(encoding="utf-8")
    copies = {tuple(mapped) for processes in found.values() for mapped in processes.values()}
    assert len(found) == len(copies) == 2, found
    assert all(len(copy) == 1 for copy in copies), "a process maps its copy once"
    assert all(len({*map(tuple, processes.values())}) == 1 for processes in found.values())
    assert max(map(len, found.values())) > 1, "no two processes shared one"
    assert len(list(tmp_path.glob("worker*/app-*/*/background-*"))) == 2
    capfd.readouterr()
    assert run(["run", str(tmp_path / "rules.dotr"), str(tmp_path / "log.parquet"), "-q"]) == 0
    expected = sorted(capfd.readouterr().out.splitlines())
    parts = (tmp_path / "out").glob("part-*.jsonl")
    assert sorted(line for part in parts for line in part.read_text("utf-8").splitlines()) == expected
    assert len(expected) > 4_000


def test_a_distributed_stream_survives_an_executor(
    cluster: Cluster,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """An executor is killed when events of a batch are there: its parts of the state, and the graphs that
    wait, are restored where the other one runs. The events are those of one process.
    """
    url, workers, environment = cluster
    (tmp_path / "rules.dotr").write_text(RULES, encoding="utf-8")
    (tmp_path / "log").mkdir()
    for number in range(3):  # each batch takes seconds: two executors on one machine
        path = tmp_path / "log" / f"{number}.jsonl"
        path.write_text("".join(map(_line, range(number * 1000, number * 1000 + 1000))), encoding="utf-8")
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    assert run(["spark", "entry-point", "-o", str(tmp_path / "dotr-submit.py")]) == 0
    arguments = ("stream", "rules.dotr", "--source", "files", "log", "--most", "1", "--once")
    places = ("--mode", "distributed", "--checkpoint", "state", "--out", "out")
    driver = submitted(url, environment, tmp_path, *arguments, *places)
    try:
        until(lambda: list((tmp_path / "out").glob("*.jsonl")), driver)
        os.kill(working(workers)[0], signal.SIGKILL)
        code = driver.wait(LIMIT)
    finally:
        driver.kill()
    assert code == 0, (tmp_path / "driver.log").read_text(encoding="utf-8")
    capfd.readouterr()
    logs = sorted(map(str, (tmp_path / "log").iterdir()))
    assert run(["run", str(tmp_path / "rules.dotr"), *logs, "-q"]) == 0
    expected = sorted(capfd.readouterr().out.splitlines())
    found = [file.read_text(encoding="utf-8") for file in (tmp_path / "out").glob("*.jsonl")]
    assert len(expected) > 400
    assert sorted("".join(found).splitlines()) == expected


def _line(i: int) -> str:
    kind = ("smoke", "heat", "noise")[i % 3]
    graph = f"<urn:x:o{i}> <urn:x:{kind}> <urn:x:room{i % 50}> ."
    return json.dumps({"time": i * 2 // 3, "graph": graph}) + "\n"

"""A real standalone cluster here: a master and two workers as processes, spark-submit, a killed executor."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

import dotr
from dotr.batch.spark.session import find_java
from dotr.cli.main import run
from dotr.errors import EngineError
from dotr.events import Clock
from dotr.io.decode.parquet import ArchiveWriter
from tests.batch.test_spark import RULES

pytestmark = pytest.mark.spark

BIN = Path(pyspark.__file__).parent / "bin"
LIMIT = 180
GRAPHS = 20_000
SMALL = ("--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=512m")


def until(what: Callable[[], Any], process: subprocess.Popen[bytes] | None = None) -> Any:
    """What `what` gives as soon as it gives something; fails after LIMIT, or when the process has ended."""
    end = time.monotonic() + LIMIT
    while not (found := what()):
        assert time.monotonic() < end, "nothing came"
        assert process is None or process.poll() is None, "it ended before"
        time.sleep(0.05)
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def children(parent: int) -> list[int]:
    """The processes that a process started."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            stat = (
                (entry / "stat").read_text(encoding="utf-8", errors="replace") if entry.name.isdigit() else ""
            )
        except OSError:  # it has ended meanwhile
            continue
        if stat and int(stat.rpartition(")")[2].split()[1]) == parent:
            found.append(int(entry.name))
    return found


@pytest.fixture
def cluster(
    tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]], dict[str, str]]]:
    """(the master's URL, the workers, the environment of all); the parameter is the cores of each worker."""
    cores = str(getattr(request, "param", 1))
    if not Path("/proc/self/stat").exists():
        pytest.skip("executors are found in /proc")
    try:
        environment = {**os.environ, "JAVA_HOME": find_java().home, "PYSPARK_PYTHON": sys.executable}
    except EngineError as error:
        pytest.skip(str(error))
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    log = (tmp_path / "cluster.log").open("wb")
    started: list[subprocess.Popen[bytes]] = []

    def start(kind: str, *arguments: str) -> None:
        command = [str(BIN / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}", *arguments]
        started.append(
            subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        )

    def said(words: str, count: int) -> bool:
        return (tmp_path / "cluster.log").read_text(encoding="utf-8", errors="replace").count(words) >= count

    try:
        start("Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        until(lambda: said("I have been elected leader", 1), started[0])
        for number in range(2):
            folder = ("--work-dir", str(tmp_path / f"worker{number}"), "--webui-port", "0")
            start("Worker", *folder, "--host", "127.0.0.1", "--cores", cores, "--memory", "1g", url)
        until(lambda: said("Successfully registered with master", 2), started[2])
        yield url, started[1:], environment
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.close()


def archive(folder: Path) -> None:
    writer = ArchiveWriter(str(folder / "log.parquet"), Clock())
    for i in range(GRAPHS):
        kind = ("smoke", "heat", "noise")[i % 3]
        graph = [(f"<urn:x:o{i}>", f"<urn:x:{kind}>", f"<urn:x:room{i % 50}>")]
        writer.add(i * 2 // 3 * 1_000_000, graph)
    writer.close()


def submitted(
    url: str, environment: dict[str, str], folder: Path, *arguments: str
) -> subprocess.Popen[bytes]:
    command = [str(BIN / "spark-submit"), "--master", url, *SMALL, "dotr-submit.py", *arguments, "-q"]
    with (folder / "driver.log").open("wb") as log:
        return subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)


def working(workers: list[subprocess.Popen[bytes]]) -> list[int]:
    """Executors that have started Python for a task."""
    return [one for worker in workers for one in children(worker.pid) if children(one)]


def test_a_submitted_batch_survives_an_executor(
    cluster: tuple[str, list[subprocess.Popen[bytes]], dict[str, str]],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The master is spark-submit's; the batch ran on `local[*]` of the gateway."""
    url, workers, environment = cluster
    (tmp_path / "rules.dotr").write_text(RULES, encoding="utf-8")
    archive(tmp_path)
    assert run(["spark", "entry-point", "-o", str(tmp_path / "dotr-submit.py")]) == 0
    driver = submitted(url, environment, tmp_path, "batch", "rules.dotr", "log.parquet", "--out", "out")
    try:
        os.kill(until(lambda: working(workers), driver)[0], signal.SIGKILL)
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


def test_an_environment_that_is_sent_along_has_dotr(
    cluster: tuple[str, list[subprocess.Popen[bytes]], dict[str, str]], tmp_path: Path
) -> None:
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


def mappings(process: int) -> list[str]:
    """What a process has mapped of closed backgrounds: inode and path, once a mapping."""
    try:
        lines = Path(f"/proc/{process}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # it has ended meanwhile
        return []
    return [" ".join(line.split()[4:]) for line in lines if "/background-" in line]


def below(process: int) -> Iterator[int]:
    """Everything that a process has started, at any remove."""
    for child in children(process):
        yield child
        yield from below(child)


@pytest.mark.parametrize("cluster", [2], indirect=True)
def test_a_background_is_brought_to_an_executor_once(
    cluster: tuple[str, list[subprocess.Popen[bytes]], dict[str, str]],
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
    cluster: tuple[str, list[subprocess.Popen[bytes]], dict[str, str]],
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

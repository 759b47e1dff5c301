"""A standalone cluster of Spark here: a master and workers as processes on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyspark

from dotr.batch.spark.session import find_java
from dotr.errors import EngineError

BIN = Path(pyspark.__file__).parent / "bin"
LIMIT = 180


class NoClusterError(Exception):
    """Why there is none."""


class Cluster(NamedTuple):
    """The master's URL, the workers, the environment of all and of drivers."""

    url: str
    workers: list[subprocess.Popen[bytes]]
    environment: dict[str, str]


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


@contextmanager
def standalone(folder: Path, workers: int = 2, cores: int = 1) -> Iterator[Cluster]:
    """A cluster that keeps its files in `folder`; `cores`: of each worker. Raises NoClusterError."""
    if not Path("/proc/self/stat").exists():
        raise NoClusterError("executors are found in /proc")
    try:
        environment = {**os.environ, "JAVA_HOME": find_java().home, "PYSPARK_PYTHON": sys.executable}
    except EngineError as error:
        raise NoClusterError(str(error)) from None
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    started: list[subprocess.Popen[bytes]] = []
    with (folder / "cluster.log").open("wb") as log:

        def start(kind: str, *arguments: str) -> None:
            command = [str(BIN / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}", *arguments]
            started.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
            )

        def said(words: str, count: int) -> bool:
            text = (folder / "cluster.log").read_text(encoding="utf-8", errors="replace")
            return text.count(words) >= count

        try:
            start("Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
            until(lambda: said("I have been elected leader", 1), started[0])
            for number in range(workers):
                place = ("--work-dir", str(folder / f"worker{number}"), "--webui-port", "0")
                start("Worker", *place, "--host", "127.0.0.1", "--cores", str(cores), "--memory", "1g", url)
            until(lambda: said("Successfully registered with master", workers), started[-1])
            yield Cluster(url, started[1:], environment)
        finally:
            for process in started:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

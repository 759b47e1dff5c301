"""A Kafka of a test's own: one node on loopback, which is its own controller.

The jars come from Maven's repository, by the Ivy that Spark has; they are kept in the user's cache.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from dotr.batch.spark.session import find_java
from dotr.errors import EngineError

BROKER = ("org.apache.kafka", "kafka_2.13", "3.9.1")

LIMIT = 240


class NoBrokerError(Exception):
    """Why there is none."""


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


class Broker:
    """Owns the process; it keeps its topics over restarts. `servers`: where it is. `more`: settings;
    `users`: those who log in by SCRAM, with their passwords. Raises NoBrokerError.
    """

    def __init__(
        self,
        folder: Path,
        more: Mapping[str, object] | None = None,
        security: str = "PLAINTEXT",
        users: Mapping[str, str] | None = None,
    ) -> None:
        try:
            java = str(Path(find_java().home, "bin", "java"))
            path = ":".join(map(str, jars(*BROKER)))
        except (EngineError, ImportError, LookupError, OSError, subprocess.SubprocessError) as error:
            raise NoBrokerError(f"no broker: {error}") from None
        folder.mkdir(exist_ok=True)
        self.folder, self.port = folder, free_port()
        self.servers, control = f"127.0.0.1:{self.port}", free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{control}",
            "listeners": f"{security}://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{control}",
            "advertised.listeners": f"{security}://127.0.0.1:{self.port}",
            "listener.security.protocol.map": f"{security}:{security},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": security,
            "controller.listener.names": "CONTROLLER",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "log.retention.ms": -1,  # times of tests are long ago: nothing is deleted for its age
            "log.dirs": folder / "kafka",
            **(more or {}),
        }
        self._config = folder / "server.properties"
        self._config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), "utf-8")
        self._run = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path]
        cluster = "QUFBQUFBQUFBQUFBQUFBQQ"
        format_ = [*self._run, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._config)]
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512") if users else ():
            for user, password in (users or {}).items():
                format_ += ["--add-scram", f"{mechanism}=[name={user},password={password}]"]
        subprocess.run(format_, check=True, capture_output=True, timeout=LIMIT)
        self.start()

    def start(self) -> None:
        """Begin, or begin again with what there is."""
        log_file = self.folder / "broker.log"
        with log_file.open("a") as log:
            self.process = subprocess.Popen(
                [*self._run, "kafka.Kafka", str(self._config)], stdout=log, stderr=log
            )
        until = time.monotonic() + LIMIT
        while True:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self.process.poll() is None, log_file.read_text(encoding="utf-8")
            assert time.monotonic() < until
            time.sleep(0.2)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()


@contextmanager
def running(
    folder: Path,
    more: Mapping[str, object] | None = None,
    security: str = "PLAINTEXT",
    users: Mapping[str, str] | None = None,
) -> Iterator[Broker]:
    """A broker; the test is skipped where there is none."""
    try:
        one = Broker(folder, more, security, users)
    except NoBrokerError as error:
        pytest.skip(str(error))
    try:
        yield one
    finally:
        one.kill()

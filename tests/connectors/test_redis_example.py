"""The source of `examples/redis`, installed as a package is, against a real Redis: killed, and once each."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import ConnectionError as NobodyError
from redis import Redis

from dotr.cli.help import pages
from tests.serve.servers import RULES, Server, hot, smoke
from tests.service.deployments import deploy, feed, stream

EXAMPLE = Path(__file__).parents[2] / "examples" / "redis"
REDIS = shutil.which("redis-server", path="/usr/bin:/usr/local/bin:/usr/sbin:/usr/local/sbin:/bin")

needs_redis = pytest.mark.skipif(REDIS is None, reason="redis-server is not installed")

LINES = stream(600, bad=False)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    assert REDIS is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen([REDIS, *settings], stdout=subprocess.DEVNULL)
    client, until = Redis("127.0.0.1", port), time.monotonic() + 10
    try:
        while True:
            try:
                client.ping()
                break
            except NobodyError:
                assert time.monotonic() < until
                time.sleep(0.02)
        yield client
    finally:
        client.close()
        process.kill()
        process.wait()


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment in which the example is installed: its module, and the entry points of its project."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "site"
    about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = project["entry-points"].items()
    points = [
        f"[{group}]\n" + "".join(f"{name} = {of}\n" for name, of in rows.items()) for group, rows in groups
    ]
    (about / "entry_points.txt").write_text("".join(points))
    shutil.copy(EXAMPLE / "dotr_redis.py", folder)
    return {**os.environ, "PYTHONPATH": str(folder)}


def uri(redis: Redis, key: str) -> str:
    return f"redis://127.0.0.1:{redis.connection_pool.connection_kwargs['port']}/{key}"


def add(redis: Redis, key: str, lines: list[str]) -> None:
    for line in lines:
        redis.xadd(key, {"graph": line})


COMMAND = "import sys; from dotr.cli.main import main; main()"


def fed(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COMMAND, "feed", *arguments, "-q"]
    return subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)


@needs_redis
def test_entries_are_fed_once_through_kills(redis: Redis, installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "all.jsonl").write_text("".join(f"{line}\n" for line in LINES))
    feed(deploy(tmp_path / "one"), [str(tmp_path / "all.jsonl")], [str(tmp_path / "one.nq")])
    expected = (tmp_path / "one.nq").read_text()
    state = deploy(tmp_path)
    given = [uri(redis, "readings"), "--dir", str(state), "-o", "found.nq"]
    given += ["--commit-graphs", "20", "--commit-every", "20ms"]
    for cut in range(0, 600, 150):
        add(redis, "readings", LINES[cut : cut + 150])
        process = fed(tmp_path, installed, *given, "--follow")
        until = time.monotonic() + 60
        before = (tmp_path / "found.nq").stat().st_size if cut else 0
        while not ((tmp_path / "found.nq").exists() and (tmp_path / "found.nq").stat().st_size > before):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < until
            time.sleep(0.01)
        process.kill()
        process.communicate()
    process = fed(tmp_path, installed, *given)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert (tmp_path / "found.nq").read_text() == expected


@needs_redis
def test_a_server_reads_entries_once_through_kills(
    redis: Redis, installed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sources of one scheme, each with its position."""
    monkeypatch.setenv("PYTHONPATH", installed["PYTHONPATH"])
    (tmp_path / "rules.dotr").write_text(RULES)
    (tmp_path / "dotr.yaml").write_text(
        "rules: [rules.dotr]\nsources:\n"
        f"  heat: {{uri: '{uri(redis, 'heat')}', idle: 1s}}\n"
        f"  alarms: {{uri: '{uri(redis, 'alarms')}', idle: 1s}}\n"
    )
    for number in range(4):
        add(redis, "heat", [hot(10 * number + 1), hot(10 * number + 3)])
        add(redis, "alarms", [smoke(10 * number + 2)])
        server = Server(tmp_path, ())
        until = time.monotonic() + 30
        while len(server.events()) < number:
            assert time.monotonic() < until, server.log
            time.sleep(0.05)
        server.kill()
    add(redis, "heat", [hot(100)])
    server = Server(tmp_path, ())
    try:
        until = time.monotonic() + 30
        while len(server.events()) < 4:
            assert time.monotonic() < until, server.log
            time.sleep(0.05)
        assert [event["time"] for event in server.events()] == [2, 12, 22, 32]
        status = server.client.get("/v1/status").json()
        assert status["graphs"] == 13
        assert {one["source"] for one in status["partitions"]} == {"heat", "alarms"}
    finally:
        assert server.stop() == 0, server.log


def test_a_scheme_that_nothing_reads_is_refused_by_the_check(tmp_path: Path) -> None:
    (tmp_path / "dotr.yaml").write_text(
        "sources: {x: {uri: 'rediss://h/k'}}\noutputs: {y: {uri: 'nats://h'}}\n"
    )
    for key in ("source", "output"):
        found = subprocess.run(
            [sys.executable, "-m", "dotr", "serve", "--check"], cwd=tmp_path, capture_output=True, text=True
        )
        assert found.returncode == 2
        assert "D4213" in found.stderr, key
        (tmp_path / "dotr.yaml").write_text("outputs: {y: {uri: 'nats://h'}}\n")


def test_a_redis_that_is_not_there_is_reported(installed: dict[str, str], tmp_path: Path) -> None:
    state = deploy(tmp_path)
    process = fed(tmp_path, installed, "redis://127.0.0.1:1/readings", "--dir", str(state))
    _, error = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "error[D4215]" in error
    assert "Traceback" not in error


def test_the_manual_shows_the_example() -> None:
    page = pages()["connectors"].read_text(encoding="utf-8")
    for name in ("dotr_redis.py", "pyproject.toml"):
        shown = (
            page.partition(f"<!-- file: examples/redis/{name} -->\n")[2].split("```")[1].partition("\n")[2]
        )
        assert shown == (EXAMPLE / name).read_text(encoding="utf-8")

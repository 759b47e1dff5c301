"""examples/serve: its session runs, its files agree with the code, and its steps of an upgrade hold."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dotr.service.journal import DATABASE, FORMAT
from tests.docs.pages import run
from tests.service.deployments import RULES as RULES_BEFORE
from tests.service.deployments import stream

from .servers import Server, hot, serving, smoke

EXAMPLE = Path(__file__).parents[2] / "examples" / "serve"
README = (EXAMPLE / "README.md").read_text(encoding="utf-8")
OWN = "/opt/dotr/bin/dotr"


_PARTS = {"histogram": ("_bucket", "_count", "_sum"), "summary": ("_count", "_sum")}


def dotr(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dotr", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "serve"))


def test_the_readme_shows_what_is_printed(copy: Path) -> None:
    assert run(README, copy) > 5


def test_every_file_is_in_the_table() -> None:
    named = set(re.findall(r"`([\w.]+)`", README.partition("|---|---|")[2].partition("\n\n")[0]))
    there = {path.name for path in EXAMPLE.iterdir() if path.is_file()} - {"README.md"}
    assert there <= named


def test_the_unit_calls_dotr_as_it_can_be_called(copy: Path) -> None:
    commands = re.findall(rf"^ExecStart\w*={OWN} (.*)$", (copy / "dotr.service").read_text(), re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        words = shlex.split(
            command.replace("/etc/dotr", str(copy)).replace("/var/lib/dotr", str(copy / "lib"))
        )
        checked = dotr(copy, *words, *(() if "--check" in words else ("--check",)))
        assert checked.returncode == 0, checked.stderr
        assert f"file {copy}/lib/alarms.jsonl" in checked.stdout


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze here")
    unit = tmp_path / "dotr.service"
    unit.write_text((EXAMPLE / "dotr.service").read_text().replace(OWN, "/bin/true"))
    found = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


def test_the_image_calls_dotr_as_it_can_be_called(copy: Path) -> None:
    text = (copy / "Dockerfile").read_text().replace("\\\n", "")
    entry, more = (
        json.loads(re.findall(rf"^{name} (\[.*\])$", text, re.MULTILINE)[0]) for name in ("ENTRYPOINT", "CMD")
    )
    words = [
        word.replace("/etc/dotr", str(copy)).replace("/var/lib/dotr", str(copy / "lib"))
        for word in (*entry[1:], *more, "--check")
    ]
    (copy / "lib").mkdir()
    made = dotr(
        copy, "serve", "token", "new", "sensor", "--scopes", "write:sensors", "--tokens", "lib/tokens"
    )
    assert made.returncode == 0, made.stderr
    checked = dotr(copy, *words)
    assert checked.returncode == 0, checked.stderr
    for name in re.findall(r"examples/serve/([\w.]+)", text.partition("FROM python:3.12-slim\n")[2]):
        assert (copy / name).exists()


def test_dashboard_and_alerts_ask_for_metrics_that_are_printed(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.post([hot(1), smoke(2), hot(3)], wait="committed")
        text = server.client.get("/metrics").text
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)", text, re.MULTILINE))
    there = {f"{name}{part}" for name, kind in kinds.items() for part in _PARTS.get(kind, ("",))}
    board = json.loads((EXAMPLE / "grafana.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    alerts = yaml.safe_load((EXAMPLE / "alerts.yml").read_text())
    asked += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    named = {name for expression in asked for name in re.findall(r"\bdotr_\w+", expression)}
    assert named <= there
    shown = {re.sub("_(bucket|count|sum)$", "", name) for name in named}
    assert shown == set(kinds), "every metric has a panel or an alert"
    scraped = yaml.safe_load((EXAMPLE / "prometheus.yml").read_text())["scrape_configs"][0]
    assert scraped["metrics_path"] == "/metrics"


def test_a_deployment_of_the_version_before_is_served(tmp_path: Path) -> None:
    """The journal is of format 7, after the first half of a stream."""
    lines = stream(90, bad=False)
    (tmp_path / "whole.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "rules.dotr").write_text(RULES_BEFORE)
    whole = dotr(tmp_path, "run", "rules.dotr", "whole.jsonl", "--format", "jsonl").stdout.splitlines()
    state = tmp_path / ".dotr"
    state.mkdir()
    before = Path(__file__).parents[1] / "service" / "format7.db.gz"
    (state / DATABASE).write_bytes(gzip.decompress(before.read_bytes()))
    status = dotr(tmp_path, "status")
    assert status.returncode == 0, status.stderr
    server = Server(tmp_path, ())
    try:
        server.post(lines[45:], wait="committed")
        served = server.events()
        (event,) = served[-1:]
        why = server.client.get(f"/v1/events/{event['number']}/why", headers={"accept": "text/plain"})
        assert why.text.startswith(str(event["rule"]))
    finally:
        assert server.stop() == 0, server.log
    ids = [json.loads(line)["id"] for line in whole]
    first = ids.index(served[0]["id"])  # the instant of the last line is open
    assert [one["id"] for one in served] == ids[first : first + len(served)]
    assert len(served) > 20
    with sqlite3.connect(state / DATABASE) as connection:
        (format_,) = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
    connection.close()
    assert format_ == str(FORMAT)
    for words in (("status",), ("explain", "--dir", ".dotr"), ("query", "--dir", ".dotr", "ASK {}")):
        ran = dotr(tmp_path, *words)
        assert ran.returncode == 0, ran.stderr
    (tmp_path / "more.jsonl").write_text('{"time": 1000, "graph": "<urn:x:o> <urn:x:celsius> 10 ."}\n')
    fed = dotr(tmp_path, "feed", "more.jsonl", "--format", "jsonl")
    assert fed.returncode == 0, fed.stderr


def test_an_older_dotr_refuses_in_the_words_of_the_readme(tmp_path: Path) -> None:
    assert dotr(tmp_path, "deploy", str(EXAMPLE / "kitchen.dotr"), "--dir", "state").returncode == 0
    with sqlite3.connect(tmp_path / "state" / DATABASE) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'format'", (str(FORMAT + 1),))
    connection.close()
    refused = dotr(tmp_path, "status", "--dir", "state")
    assert refused.returncode == 4
    assert refused.stderr in README.replace("format 10", f"format {FORMAT + 1}").replace(
        "writes 9", f"writes {FORMAT}"
    )

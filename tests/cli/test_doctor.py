"""`dotr doctor` looks around, and connects to what a server's configuration names."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from tests.cli.conftest import Dotr
from tests.connectors.brokers import Mosquitto, needs_mosquitto
from tests.serve.servers import serving


def test_doctor_finds_what_is_needed(dotr: Dotr) -> None:
    ran = dotr("doctor", "--format", "json")
    found = {finding["what"]: finding for finding in json.loads(ran.out)["findings"]}
    assert ran.code == 0
    assert {"Python", "pyoxigraph", "SQLite", "Java for Spark", "memory"} <= set(found)
    assert all(finding["works"] for finding in found.values() if finding["needed"])
    assert "ok  Python" in dotr("doctor").out


def test_doctor_says_how_to_mend(dotr: Dotr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.cli.doctor.version", _missing)
    ran = dotr("doctor")
    assert ran.code == 4
    assert "pip install pyoxigraph" in ran.out


def _missing(name: str) -> str:
    raise PackageNotFoundError(name)


def test_doctor_lists_each_extra_with_its_packages(dotr: Dotr, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {
        "dotr": [
            "click>=8",
            'paho-mqtt<3,>=2.1; extra == "mqtt"',
            'other[remote]>=4; extra == "connect"',
            'pytest>=8; extra == "test"',
        ],
        "other": ['wire>=1; extra == "remote"', 'lamp>=1; extra == "light"'],
    }
    there = {"other": "4.1", "pyoxigraph": "1", "rdflib": "1", "click": "1"}

    def requires(name: str) -> Sequence[str]:
        return needs[name]

    def version(name: str) -> str:
        if name not in there:
            raise PackageNotFoundError(name)
        return there[name]

    monkeypatch.setattr("dotr.cli.doctor.requires", requires)
    monkeypatch.setattr("dotr.cli.doctor.version", version)
    found = json.loads(dotr("doctor", "--format", "json").out)["findings"]
    extras = {one["what"]: one for one in found if one["what"].startswith("dotr[")}
    assert set(extras) == {"dotr[connect]", "dotr[mqtt]"}
    assert extras["dotr[connect]"]["found"] == "other 4.1, without wire"
    assert extras["dotr[mqtt]"]["found"] == "not installed"
    assert extras["dotr[mqtt]"]["fix"] == "pip install 'dotr[mqtt]'"
    assert not extras["dotr[mqtt]"]["works"]


def trials(dotr: Dotr, text: str) -> tuple[int, dict[str, dict[str, object]]]:
    Path("dotr.yaml").write_text(text)
    ran = dotr("doctor", "--config", "dotr.yaml", "--format", "json")
    found = json.loads(ran.out)["findings"]
    names = ("listen", "source", "output")
    return ran.code, {one["what"]: one for one in found if one["what"].startswith(names)}


def nobody() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_doctor_connects_to_what_a_configuration_names(dotr: Dotr) -> None:
    Path("in").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, free, dead = listening.getsockname()[1], nobody(), nobody()
        code, found = trials(
            dotr,
            f"listen: 127.0.0.1:{free}\n"
            "sources: {lines: {files: [in/]}, posted: {http: {}}}\n"
            f'outputs: {{log: {{file: events.jsonl}}, hook: {{webhook: "http://127.0.0.1:{port}/x"}}}}\n',
        )
        assert code == 0
        assert {name: one["works"] for name, one in found.items()} == {
            f"listen 127.0.0.1:{free}": True,
            "source lines": True,
            "output log": True,
            "output hook": True,
        }
        code, found = trials(
            dotr,
            f"listen: 127.0.0.1:{port}\n"
            "sources: {lines: {files: [nowhere/]}}\n"
            "outputs: {log: {file: nowhere/events.jsonl}, "
            f'hook: {{webhook: "http://127.0.0.1:{dead}/x", secret: "env:DOTR_NO_SUCH"}}, '
            f'dead: {{webhook: "http://127.0.0.1:{dead}/x"}}}}\n',
        )
    assert code == 4
    assert not any(one["works"] for one in found.values())
    assert found["output dead"]["found"] == "connection refused"
    assert "DOTR_NO_SUCH" in str(found["output hook"]["found"])
    assert "nowhere" in str(found["source lines"]["found"])


def test_other_servers_are_tried(dotr: Dotr, tmp_path: Path) -> None:
    text = (
        "listen: 127.0.0.1:{port}\nsources:\n  up: {{dotr: '{url}'}}\n  feed: {{ldes: '{url}/v1/ldes'}}\n"
        "  none: {{ldes: '{url}/v1/status'}}\n"
    )
    with serving(tmp_path / "server") as server:
        code, found = trials(dotr, text.format(port=nobody(), url=server.url))
        assert code == 4
        assert found["source up"]["works"] is found["source feed"]["works"] is True
        assert "is a deployment" in str(found["source up"]["found"])
        assert "no format of RDF" in str(found["source none"]["found"])
    _, found = trials(dotr, text.format(port=nobody(), url=server.url))
    assert found["source up"]["found"] == found["source feed"]["found"] == "connection refused"


def test_a_configuration_in_error_is_reported_as_the_server_does(dotr: Dotr) -> None:
    Path("dotr.yaml").write_text("lisen: x\n")
    ran = dotr("doctor", "--config", "dotr.yaml")
    assert (ran.code, "D4190" in ran.err) == (3, True)


@needs_mosquitto
def test_doctor_leaves_the_session_of_a_server_alone(dotr: Dotr, tmp_path: Path) -> None:
    folder = tmp_path / "broker"
    folder.mkdir()
    broker = Mosquitto(folder)
    try:
        lost: list[object] = []
        running = broker.client(client_id="dotr-sensors")
        running.on_disconnect = lambda *_: lost.append(1)
        text = (
            f'listen: 127.0.0.1:{nobody()}\nsources: {{sensors: {{mqtt: "{broker.url}", topics: [a/#]}}}}\n'
        )
        code, found = trials(dotr, text)
        assert (code, found["source sensors"]["works"]) == (0, True)
        assert (lost, running.is_connected()) == ([], True)
        running.loop_stop()
        text = text.replace("topics", "user: nobody, password: 'env:DOTR_PASSWORD', topics")
        code, found = trials(dotr, text)
        assert (code, "DOTR_PASSWORD" in str(found["source sensors"]["found"])) == (4, True)
    finally:
        broker.stop()
    code, found = trials(dotr, text.replace("user: nobody, password: 'env:DOTR_PASSWORD', ", ""))
    assert (code, "connection refused" in str(found["source sensors"]["found"])) == (4, True)

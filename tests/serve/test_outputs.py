"""Outputs of a server: files and webhooks, of some rules, while receivers fail and configurations change."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.connectors.test_webhook import Receiver

from .servers import RULES, Server, hot, smoke


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.close()


def until(what: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert what()


def configured(folder: Path, outputs: str) -> None:
    (folder / "rules.dotr").write_text(RULES)
    (folder / "dotr.yaml").write_text(f"rules: [rules.dotr]\noutputs:\n{outputs}")


def delivered(server: Server) -> int:
    (state,) = server.client.get("/v1/status").json()["outputs"]
    return int(state["delivered"])


def test_a_webhook_gets_every_event_once_it_works_again(tmp_path: Path, receiver: Receiver) -> None:
    configured(tmp_path, f"  hook: {{webhook: '{receiver.url}', secret: 'file:secret'}}\n")
    (tmp_path / "secret").write_text("hush\n")
    receiver.answers = [(500, {})]
    server = Server(tmp_path, ())
    try:
        server.post([hot(1), smoke(2), smoke(3), hot(4)], wait="committed")
        until(lambda: any("the output `hook` works again" in line for line in server.log))
        until(lambda: delivered(server) == 2)
        ids = [event["id"] for event in server.events()]
        assert [headers["webhook-id"] for headers, _ in receiver.came] == [ids[0], *ids]
        assert all(headers["webhook-signature"].startswith("v1,") for headers, _ in receiver.came)
        (state,) = server.client.get("/v1/status").json()["outputs"]
        assert (state["output"], state["delivered"], state["waiting"]) == ("hook", 2, 0)
        assert 'dotr_sink_errors_total{sink="hook"} 1.0' in server.client.get("/metrics").text
        assert any("the output `hook` fails" in line for line in server.log)
    finally:
        assert server.stop() == 0
    server = Server(tmp_path, ())
    try:
        server.post([smoke(5), hot(6)], wait="committed")
        until(lambda: len(receiver.came) == 4)
    finally:
        assert server.stop() == 0
    assert len({headers["webhook-id"] for headers, _ in receiver.came}) == 3


def test_a_rule_that_an_output_names_and_that_is_not_deployed_is_reported(
    tmp_path: Path, receiver: Receiver
) -> None:
    log = "  log: {file: log.jsonl, rules: [Fire, Fier]}\n"
    configured(tmp_path, f"{log}  hook: {{webhook: '{receiver.url}', rules: [No]}}\n")
    server = Server(tmp_path, ())
    try:
        server.said("no rule `Fier` is deployed: the output `log` gets no events of it")
        server.said("no rule `No` is deployed: the output `hook` gets no events of it")
        assert not any("no rule `Fire`" in line for line in server.log)
    finally:
        assert server.stop() == 0


def test_outputs_come_and_go_with_the_configuration(tmp_path: Path, receiver: Receiver) -> None:
    configured(tmp_path, "  log: {file: log.jsonl}\n")
    server = Server(tmp_path, ())
    try:
        server.post([hot(1), smoke(2), hot(3)], wait="committed")
        body = '{"text": "fire in {room}"}'
        configured(
            tmp_path,
            f"  log: {{file: log.jsonl}}\n  hook:\n    webhook: '{receiver.url}'\n    body: '{body}'\n",
        )
        server.process.send_signal(signal.SIGHUP)
        until(lambda: any("read again" in line for line in server.log))
        server.post([smoke(5), hot(6)], wait="committed")
        until(lambda: len(receiver.came) == 1)
        assert json.loads(receiver.came[0][1]) == {"text": "fire in urn:x:a"}
        configured(tmp_path, "  log: {file: log.jsonl}\n")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: sum("read again" in line for line in server.log) == 2)
        server.post([smoke(8), hot(9)], wait="committed")
        assert server.client.get("/v1/status").json()["outputs"] == []
    finally:
        assert server.stop() == 0
    assert len(receiver.came) == 1
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 3

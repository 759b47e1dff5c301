"""A server with corrections: what its readers and outputs get of events that are added and taken back."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyoxigraph as ox
import pytest

from dotr.connectors.mqtt import Publisher, broker_of
from dotr.service.logs import OutboxRow
from tests.connectors.brokers import Mosquitto, needs_mosquitto
from tests.connectors.test_webhook import Receiver

from .servers import Server

RULES = """PREFIX : <urn:x:>
RULE Lost
DEFINE { dotr_l a :Lost ; :who ?who }
FROM Beat := { SELECT ?who { ?who :beat ?n } } AFTER 10 s AS Due
AND NOT Again := Beat WITHIN 10 s FROM Due ON Again.?who = Beat.?who && Again.time > Beat.time
WITH ?who := Beat.?who
"""


def beat(when: int, who: str = "pump") -> str:
    return json.dumps({"time": when, "graph": f"<urn:x:{who}> <urn:x:beat> {when} ."})


def until(what: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert what()


def configured(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "rules.dotr").write_text(RULES)
    (folder / "dotr.yaml").write_text(f"rules: [rules.dotr]\ncorrections: 1min\n{text}")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.close()


def signs(events: Sequence[dict[str, object]]) -> list[tuple[object, object, object]]:
    return [(event["change"], event["time"], event.get("corrected_at")) for event in events]


FED = [beat(0), beat(20), beat(8), beat(21), beat(22), beat(16)]


def post(server: Server, lines: Sequence[str]) -> None:
    """Each in its turn: late graphs that come together are taken together."""
    for line in lines:
        assert server.post([line], wait="committed").status_code == 200


def test_readers_get_what_is_added_and_taken_back_over_restarts(tmp_path: Path) -> None:
    configured(tmp_path, "outputs: {log: {file: log.jsonl}}\n")
    server = Server(tmp_path, ())
    try:
        post(server, FED[:2])
        assert signs(server.events()) == [(1, 10, None)]
    finally:
        server.kill()
    server = Server(tmp_path, ())
    try:
        post(server, FED[2:])
        found = server.events()
        assert signs(found) == [(1, 10, None), (-1, 10, 19), (1, 18, 19), (-1, 18, 21)]
        assert [event["number"] for event in found] == [1, 2, 3, 4]
        (cause,) = found[1]["cause"]  # type: ignore[misc]  # a list of JSON
        assert (cause["time"], cause["place"].rpartition(":")[2]) == (8, "1")
        assert found[0]["id"] == found[1]["id"]
        one = server.client.get(f"/v1/events/{found[0]['id']}").json()
        assert (one["number"], one["change"]) == (2, -1)
        since = server.client.get("/v1/events", params={"since": "19"}).json()["events"]
        assert [event["number"] for event in since] == [2, 3, 4]
        lines = server.client.get("/v1/events?after=0", headers={"accept": "application/x-ndjson"}).text
        assert [{"number": n, **json.loads(line)} for n, line in enumerate(lines.splitlines(), 1)] == found
        sse = {"accept": "text/event-stream"}
        with server.client.stream("GET", "/v1/events?after=1", headers=sse) as live:
            data = next(line for line in live.iter_lines() if line.startswith("data: "))
        assert json.loads(data.removeprefix("data: "))["change"] == -1
        counts = server.client.get("/v1/events/counts?since=10&until=22&buckets=13").json()
        assert (counts["rules"], counts["taken_back"]) == (
            {"Lost": [[0, 1], [9, 1]]},
            {"Lost": [[9, 1], [11, 1]]},
        )
        status = server.client.get("/v1/status").json()
        assert status["corrections"]["withdrawn"] == 2
        why = server.client.get(f"/v1/events/{found[0]['id']}/why")
        assert (why.status_code, why.json()["fired"]) == (200, False)
        assert [one["corrected_at"] for one in why.json()["corrections"]] == ["19"]
        assert why.json()["now"]["failed"]["blocked_by"]["time"] == "8"
        again = server.client.get(f"/v1/events/{found[2]['id']}/why", headers={"accept": "text/plain"}).text
        assert "withdrawn @ 21 by 1 late graph" in again
        page = server.client.get("/v1/ldes/1", headers={"accept": "application/n-quads"}).text
    finally:
        assert server.stop() == 0
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert signs(logged) == signs(found)
    quads = list(ox.parse(page, format=ox.RdfFormat.N_QUADS))
    gone = ox.NamedNode(f"{found[1]['id']}:2")
    about = {quad.predicate.value.rpartition("#")[2] for quad in quads if quad.graph_name == gone}
    assert about == {"invalidatedAtTime", "wasInvalidatedBy", "atTime", "label"}
    assert sum(quad.predicate.value.endswith("tree#member") for quad in quads) == 4


def test_a_post_of_what_is_taken_back_has_an_id_of_its_own(tmp_path: Path, receiver: Receiver) -> None:
    configured(tmp_path, f"outputs: {{hook: {{webhook: '{receiver.url}'}}}}\n")
    receiver.answers = [(200, {}), (500, {})]
    server = Server(tmp_path, ())
    try:
        post(server, FED)
        until(lambda: len(receiver.came) == 5)
        found = server.events()
    finally:
        assert server.stop() == 0
    posted = [(headers["webhook-id"], json.loads(body)["data"]["change"]) for headers, body in receiver.came]
    first, second = found[0]["id"], found[2]["id"]
    again = (f"{first}:2", -1)  # which was answered by 500
    assert posted == [(first, 1), again, again, (f"{second}:3", 1), (f"{second}:4", -1)]


def test_a_feed_posts_what_it_adds_and_takes_back(tmp_path: Path, receiver: Receiver) -> None:
    configured(tmp_path, "")
    (tmp_path / "beats.jsonl").write_text("".join(f"{line}\n" for line in FED))
    for more in (
        ("deploy", "rules.dotr"),
        ("feed", "beats.jsonl", "--corrections", "1min", "-o", f"webhook:{receiver.url}"),
    ):
        command = [sys.executable, "-m", "dotr.cli.main", *more]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
    said = [json.loads(body)["data"] for _, body in receiver.came]
    assert [(one["change"], one["time"]) for one in said][:2] == [(1, 10), (-1, 10)]
    assert sum(one["change"] for one in said) == 0
    assert len({headers["webhook-id"] for headers, _ in receiver.came}) == len(said)


def retained(broker: Mosquitto, topic: str) -> list[bytes]:
    found: list[bytes] = []
    client = broker.client()
    client.on_message = lambda _client, _data, message: found.append(message.payload)
    client.subscribe([(topic, 1), ("probe", 1)])
    client.publish("probe", b"end", 1)
    until(lambda: b"end" in found)
    client.disconnect()
    client.loop_stop()
    return [payload for payload in found if payload != b"end"]


@needs_mosquitto
def test_a_broker_does_not_keep_what_was_taken_back(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path)
    try:
        home = tmp_path / "server"
        configured(
            home, f"outputs: {{board: {{mqtt: '{broker.url}', topic: 't/{{who}}', retain: [Lost]}}}}\n"
        )
        came: list[bytes] = []
        client = broker.client()
        client.on_message = lambda _client, _data, message: came.append(message.payload)
        client.subscribe("t/#", 1)
        server = Server(home, ())
        try:
            post(server, FED[:2])
            until(lambda: len(came) == 1)
            assert [json.loads(one)["time"] for one in retained(broker, "t/#")] == [10]
            server.kill()  # which forgets what the broker keeps
            server = Server(home, ())
            post(server, FED[2:3])
            until(lambda: len(came) == 4)
            assert [json.loads(one)["time"] for one in retained(broker, "t/#")] == [18]
            post(server, FED[3:])
            until(lambda: len(came) == 6)
            assert retained(broker, "t/#") == []
        finally:
            if server.process.poll() is None:
                assert server.stop() == 0
        client.disconnect()
        client.loop_stop()
        assert [json.loads(one)["change"] if one else 0 for one in came] == [1, -1, 0, 1, -1, 0]
    finally:
        broker.stop()


@needs_mosquitto
def test_a_broker_keeps_the_newest_event_while_older_ones_are_added_and_taken_back(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path)
    publisher = Publisher(broker_of(broker.url, "c", "5", None, ""), "t", ["Lost"])

    def row(number: int, change: int, when: str, corrected: bool) -> OutboxRow:
        head: dict[str, object] = {"change": change}
        if corrected:
            head |= {"corrected_at": "2024-01-01T00:01:00Z", "cause": []}
        event = {**head, "rule": "Lost", "time": when, "id": f"urn:{when}", "bindings": {}}
        return OutboxRow(number, 0, "Lost", f"urn:{when}", json.dumps(event, separators=(",", ":")))

    early, late, later = "2024-01-01T00:00:12Z", "2024-01-01T00:00:12.5Z", "2024-01-01T00:00:13Z"
    try:
        assert publisher.give([row(1, 1, late, False), row(2, 1, early, True)]) == 2
        assert [json.loads(one)["time"] for one in retained(broker, "t")] == [late]
        assert publisher.give([row(3, -1, early, True)]) == 1
        assert [json.loads(one)["time"] for one in retained(broker, "t")] == [late]
        assert publisher.give([row(4, 1, later, True), row(5, -1, late, True)]) == 2
        assert [json.loads(one)["time"] for one in retained(broker, "t")] == [later]
        assert publisher.give([row(6, -1, later, True), row(6, -1, later, True)]) == 2
        assert retained(broker, "t") == []
    finally:
        publisher.close()
        broker.stop()


@pytest.mark.parametrize(
    ("text", "code", "found"),
    [
        ("sources: {s: {http: {}, lateness: 1min}}\n", "D4167", "a lateness of 1 min"),
        ("""outputs: {h: {webhook: "http://x/", body: '{"text": "{rule}"}'}}\n""", "D4165", "`h`"),
        ("corrections-budget: 0.99\n", "D4190", "0.05 to 0.95"),
    ],
)
def test_what_goes_with_no_corrections_is_refused_before_the_start(
    tmp_path: Path, text: str, code: str, found: str
) -> None:
    configured(tmp_path, text)
    command = [sys.executable, "-m", "dotr.cli.main", "serve", "--check"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.returncode in (2, 3), code in ran.stderr, found in ran.stderr) == (True,) * 3, ran.stderr


def test_rules_change_at_once_and_from_a_later_time_on(tmp_path: Path) -> None:
    configured(tmp_path, "")
    server = Server(tmp_path, ())
    try:
        post(server, FED[:2])
        changed = {"rules.dotr": RULES.replace("10 s", "12 s")}
        assert server.client.put("/v1/rules", json={"files": changed}).status_code == 200
        post(server, FED[2:])
        assert signs(server.events()) == [(1, 10, None)]  # what other rules reported stays
        later = {"rules.dotr": RULES.replace("10 s", "5 s")}
        planned = server.client.put("/v1/rules?from=100", json={"files": later})
        assert planned.status_code == 202, planned.text
        post(server, [beat(90), beat(103), beat(95), beat(110), beat(104), beat(111)])
        assert (-1, 108, 109) in signs(server.events())
        status = server.client.get("/v1/status").json()
        assert status["late"] == 3  # 8, 16 and 95: behind the rules that hold
        assert server.client.get("/v1/status").json()["ready"]
    finally:
        assert server.stop() == 0

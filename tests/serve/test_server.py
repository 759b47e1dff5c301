"""The routes of a server, over HTTP, in a process of its own."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from openapi_spec_validator import validate

from dotr.serve.app import ROUTES, openapi

from .servers import LINES, RULES, Server, hot, serving, smoke


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as one:
        yield one


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as one:
        yield one


def test_a_document_is_committed_and_its_events_are_there(own: Server) -> None:
    answer = own.post([hot(1), smoke(2), hot(3)], wait="committed")
    assert answer.status_code == 200
    assert answer.json() == {
        "seq": 1,
        "token": "1",
        "duplicate": False,
        "state": "committed",
        "graphs": 3,
        "events": [1],
        "open": True,
    }
    (event,) = own.events()
    assert (event["rule"], event["time"], event["number"]) == ("Fire", 2, 1)
    assert own.client.get(f"/v1/events/{event['id']}").json() == event
    assert own.client.get("/v1/events/1").json() == event
    assert own.client.get("/v1/tokens/1").json()["state"] == "committed"


def test_a_key_makes_a_repeated_post_one_document(own: Server) -> None:
    def post(body: str) -> httpx.Response:
        headers = {"content-type": "application/x-ndjson", "idempotency-key": "k"}
        return own.client.post("/v1/streams/input", content=body, headers=headers)

    first, second, other = post(hot(1)), post(hot(1)), post(hot(2))
    assert (first.json()["duplicate"], second.json()["duplicate"]) == (False, True)
    assert first.json()["seq"] == second.json()["seq"]
    assert (other.status_code, other.json()["code"]) == (409, "D5231")


def test_events_are_streamed_from_a_number_on(own: Server) -> None:
    own.post([hot(1), smoke(2), smoke(3), smoke(4), hot(9)], wait="committed")
    found = []
    with own.client.stream("GET", "/v1/events?after=1", headers={"accept": "text/event-stream"}) as stream:
        for line in stream.iter_lines():
            found.append(line)
            if len([one for one in found if one.startswith("data:")]) == 2:
                break
    assert [line for line in found if line.startswith("id:")] == ["id: 2", "id: 3"]
    lines = own.client.get("/v1/events?after=0", headers={"accept": "application/x-ndjson"}).text.splitlines()
    assert [json.loads(line)["time"] for line in lines] == [2, 3, 4]


def test_events_are_chosen_by_rule_binding_and_time(own: Server) -> None:
    own.post([hot(1), hot(1, "b"), smoke(2), smoke(3, "b"), smoke(4), hot(9)], wait="committed")
    assert [event["time"] for event in own.events(where="room=<urn:x:b>")] == [3]
    assert [event["time"] for event in own.events(where="room=:a")] == [2, 4]
    assert [event["time"] for event in own.events(rule="Fire")] == [2, 3, 4]
    page = own.client.get("/v1/events?where=room=<urn:x:a>&limit=1&after=0").json()
    assert page["next"] == "/v1/events?after=1&where=room%3D%3Curn%3Ax%3Aa%3E&limit=1"
    assert [event["time"] for event in own.client.get(page["next"]).json()["events"]] == [4]
    page = own.client.get("/v1/events?since=3").json()
    assert [event["time"] for event in page["events"]] == [3, 4]
    answer = own.client.get("/v1/events?rule=Fier")
    assert (answer.status_code, answer.json()["hint"]) == (404, "did you mean `Fire`?")
    pages = own.client.get("/v1/events?after=0&limit=2").json()
    assert len(pages["events"]) == 2
    assert [e["time"] for e in own.client.get(pages["next"]).json()["events"]] == [4]


def test_a_page_says_what_is_not_kept_any_more(tmp_path: Path) -> None:
    with serving(tmp_path, RULES, "--keep-events", "2kB") as own:
        for time_ in range(10, 90, 10):
            own.post([hot(time_), smoke(time_ + 1), hot(time_ + 2)], wait="committed")
        page = own.client.get("/v1/events?after=1").json()
        first = page["events"][0]["number"]
        assert first > 2
        assert (page["missed"], page["events"][-1]["number"]) == ({"after": 1, "first": first}, 8)
        assert "missed" not in own.client.get("/v1/events?after=0").json()
        assert "missed" not in own.client.get(f"/v1/events?after={first - 1}").json()


def test_what_cannot_be_read_is_a_dead_letter_and_can_be_tried_again(own: Server) -> None:
    body, turtle = "<urn:x:a> a", {"content-type": "text/turtle"}
    answer = own.client.post("/v1/streams/input?wait=committed", content=body, headers=turtle).json()
    assert answer["state"] == "refused"
    assert "D2001" in answer["refused"][0]
    (letter,) = own.client.get("/v1/dead-letters").json()["letters"]
    assert (letter["source"], letter["code"], letter["document"]) == ("input", "D2001", body)
    assert own.client.post(f"/v1/dead-letters/{letter['number']}/retry").status_code == 202
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        letters = own.client.get("/v1/dead-letters").json()["letters"]
        if [one["number"] for one in letters] == [letter["number"] + 1]:
            break
        time.sleep(0.05)
    else:
        pytest.fail(f"it is not refused again: {letters}")
    assert own.client.delete(f"/v1/dead-letters/{letters[0]['number']}").status_code == 204
    assert own.client.get("/v1/dead-letters").json()["letters"] == []
    assert own.client.delete("/v1/dead-letters/99").status_code == 404


def test_what_is_tried_again_keeps_what_was_said_beside_it(tmp_path: Path) -> None:
    sources = "sources.kitchen={http: {}, time: header, idle: 200ms}"
    with serving(tmp_path, RULES, "--set", sources, "--set", "sources.hall={http: {}}") as own:
        turtle = {"content-type": "text/turtle"}
        for _ in range(3):
            own.client.post("/v1/streams/kitchen?at=7&wait=committed", content="<urn:x:a> a", headers=turtle)
        page = own.client.get("/v1/dead-letters?kind=refused&limit=2").json()
        assert [(letter["code"], letter["at"]) for letter in page["letters"]] == [("D2001", "7")] * 2
        assert page["next"] == "/v1/dead-letters?after=2&kind=refused&limit=2"
        assert len(own.client.get(page["next"]).json()["letters"]) == 1
        assert own.client.post("/v1/dead-letters/1/retry").json()["seq"] == 4
        assert own.client.post("/v1/dead-letters/2/retry?stream=hall").json()["seq"] == 5
        assert own.client.post("/v1/dead-letters/3/retry?stream=cellar").status_code == 404
        own.post([hot(8)], "hall", wait="committed")
        found = own.client.get("/v1/dead-letters?after=3").json()["letters"]
        assert {(letter["source"], letter["at"]) for letter in found} == {("kitchen", "7"), ("hall", "7")}


def test_late_graphs_are_said_of_a_document(own: Server) -> None:
    own.post([hot(10), hot(20)], wait="committed")
    answer = own.post([hot(5)], wait="committed").json()
    assert (answer["state"], answer["late"]) == ("late", [5])
    (letter,) = own.client.get("/v1/dead-letters?kind=late").json()["letters"]
    assert letter["kind"] == "late"


def test_a_dry_run_reads_and_does_nothing(own: Server) -> None:
    answer = own.post([hot(1), smoke(2)], **{"dry-run": ""})
    assert (answer.status_code, answer.json()) == (200, {"graphs": 2, "first": 1, "last": 2})
    answer = own.post(["not json"], **{"dry-run": ""})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert own.client.get("/v1/status").json()["graphs"] == 0


def test_a_dry_run_reads_as_the_stream_does(tmp_path: Path) -> None:
    lines = "sources.lines={http: {}, format: jsonl, idle: 100ms}"
    now = "sources.now={http: {}, time: arrival, idle: 100ms}"
    with serving(tmp_path, RULES, "--set", lines, "--set", now) as own:
        for query, state in (("dry-run", "graphs"), ("wait=committed", "state")):
            answer = own.client.post(f"/v1/streams/lines?{query}", content=hot(1) + "\n")
            assert (answer.status_code, answer.json()[state]) == (
                200,
                1 if state == "graphs" else "committed",
            )
        for stream, query in (("lines", "at=2026-01-01T00:00:00Z"), ("now", "")):
            answer = own.client.post(f"/v1/streams/{stream}?{query}", content=hot(2) + "\n", headers=LINES)
            assert answer.json()["code"] == "D4207", "integers are refused at once"
    with serving(tmp_path / "other", RULES, "--set", "sources.now={http: {}, time: arrival}") as own:
        answer = own.post([hot(1)], "now", **{"dry-run": ""})
        assert answer.json()["first"].startswith("20"), "when it came, not what it says"


def test_a_document_of_many_mistakes_costs_no_more_than_they_do(own: Server) -> None:
    body = "x\n" * 3_000
    answer = own.client.post(
        "/v1/streams/input?wait=committed&timeout=60s", content=body, headers=LINES, timeout=60
    ).json()
    assert (answer["state"], len(answer["refused"])) == ("refused", 100)
    assert own.client.get("/v1/status").json()["refused"] == 3_000


def test_the_time_beside_a_document_is_that_of_its_graphs(own: Server) -> None:
    turtle = {"content-type": "text/turtle"}
    own.client.post(
        "/v1/streams/input?at=1", content="[] <urn:x:celsius> 70 ; <urn:x:room> 1 .", headers=turtle
    )
    own.client.post(
        "/v1/streams/input",
        content="[] a <urn:x:Smoke> ; <urn:x:room> 1 .",
        headers={**turtle, "dotr-time": "2"},
    )
    own.post([hot(3)], wait="committed")
    assert [event["time"] for event in own.events()] == [2]
    answer = own.client.post("/v1/streams/input?at=noon", content="", headers=turtle)
    assert (answer.status_code, answer.json()["code"]) == (400, "D4207")


def test_rules_change_now_or_from_a_time_on_and_only_as_they_were_read(own: Server) -> None:
    rules = own.client.get("/v1/rules")
    assert rules.json()["rules"] == ["Fire"]
    other = RULES.replace("> 60", "> 80")
    stale = own.client.put("/v1/rules?name=rules.dotr", content=other, headers={"if-match": '"0"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "D5215")
    own.post([hot(1), smoke(2), hot(3)], wait="committed")
    put = own.client.put(
        "/v1/rules?name=rules.dotr", content=other, headers={"if-match": rules.headers["etag"]}
    )
    assert put.status_code == 200
    assert put.json()["changes"] == [{"rule": "Fire", "change": "changed", "why": "its query `Hot` changed"}]
    assert put.headers["etag"] == own.client.get("/v1/rules").headers["etag"] != rules.headers["etag"]
    planned = own.client.put("/v1/rules?name=rules.dotr&from=10", content=RULES)
    assert (planned.status_code, planned.json()["from"]) == (202, "10")
    own.post([hot(4), smoke(5), hot(11), smoke(12), hot(13)], wait="committed")
    assert [event["time"] for event in own.events()] == [2, 12]
    closed = own.client.put("/v1/rules?name=rules.dotr&from=5", content=other)
    assert (closed.status_code, closed.json()["code"]) == (400, "D4161")


def test_rules_in_error_change_nothing(own: Server) -> None:
    wrong = RULES.replace("Hot.?room = Smoke.?room", "Hot.?rom = Smoke.?room")
    answer = own.client.put("/v1/rules?name=rules.dotr", content=wrong)
    assert (answer.status_code, answer.json()["code"]) == (422, "D1310")
    assert answer.json()["place"].startswith("rules.dotr:6:")
    check = own.client.post("/v1/rules/check?name=rules.dotr", content=wrong).json()
    assert [one["code"] for one in check["diagnostics"]] == ["D1310"]
    assert own.client.get("/v1/rules").json()["files"]["rules.dotr"] == RULES


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../rules.dotr", "a/../../b.dotr", "https://x.example/a.dotr", ""]
)
def test_rules_name_no_paths(server: Server, name: str) -> None:
    bundle = {"files": {name: RULES}, "roots": [name]}
    answer = server.client.put("/v1/rules", json=bundle)
    assert (answer.status_code, answer.json()["code"]) == (422, "D5216")


def test_a_bundle_without_rules_is_refused(server: Server) -> None:
    for bundle in ({"files": {}}, {"files": {"a.dotr": RULES}, "roots": []}, {"files": []}, []):
        answer = server.client.put("/v1/rules", json=bundle)
        assert (answer.status_code, answer.json()["code"]) == (400, "D4207")


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret.dotr", "https://x.example/a.dotr", "other.dotr"])
def test_rules_import_only_what_is_sent_or_deployed(server: Server, path: str) -> None:
    (server.folder / "other.dotr").write_text(RULES.replace("RULE Fire", "RULE Other"))
    answer = server.client.put("/v1/rules?name=rules.dotr", content=f"IMPORT <{path}>\n{RULES}")
    assert answer.status_code == 422, answer.text
    assert "root:" not in answer.text


def test_a_rule_is_taken_out(own: Server) -> None:
    answer = own.client.delete("/v1/rules/Fier")
    assert (answer.status_code, answer.json()["code"]) == (404, "D5209")
    assert own.client.delete("/v1/rules/Fire").status_code == 204
    assert own.client.get("/readyz").text == "no rules are deployed\n"


def test_a_pause_stops_the_engine_and_not_the_inbox(own: Server) -> None:
    assert own.client.post("/v1/pause").json() == {"paused": True}
    ready = own.client.get("/readyz")
    assert (ready.status_code, ready.text) == (503, "the engine is paused\n")
    answer = own.post([hot(1), smoke(2), hot(3)], wait="committed", timeout="200ms")
    assert (answer.status_code, answer.json()["state"]) == (202, "pending")
    assert own.events() == []
    own.client.post("/v1/resume")
    assert own.post([hot(4)], wait="committed").json()["state"] == "committed"
    assert len(own.events()) == 1


def test_commands_are_obeyed_during_a_pause_and_do_not_end_it(own: Server) -> None:
    own.post([hot(1)], wait="committed")
    own.client.post("/v1/pause")
    for seconds in (10, 15):
        put = own.client.put("/v1/rules?name=rules.dotr", content=RULES.replace("20 s", f"{seconds} s"))
        assert put.status_code == 200
    own.process.send_signal(signal.SIGHUP)
    own.said("was read again")
    assert own.client.post("/v1/advance?to=2").json() == {"watermark": 2}
    answer = own.post([smoke(3), hot(4)], wait="committed", timeout="200ms")
    assert answer.json()["state"] == "pending"
    assert (own.client.get("/v1/status").json()["graphs"], own.events()) == (1, [])
    own.client.post("/v1/resume")
    assert own.post([hot(5)], wait="committed").json()["state"] == "committed"
    assert [event["time"] for event in own.events()] == [3]


def test_time_goes_on_when_it_is_told_to(own: Server) -> None:
    assert own.client.post("/v1/advance?to=5").status_code == 400, "no graph has come"
    own.post([hot(1), smoke(2)], wait="committed")
    assert own.events() == []
    assert own.client.post("/v1/advance?to=2").json() == {"watermark": 2}
    assert len(own.events()) == 1


def test_a_tick_does_not_pass_what_waits_for_another_source(tmp_path: Path) -> None:
    sources = [f"sources.{name}={{http: {{}}, idle: 2s}}" for name in "ab"]
    with serving(tmp_path, RULES, "--set", sources[0], "--set", sources[1], "--tick", "300ms") as own:
        assert own.post([hot(1), hot(9)], "b", wait="committed", timeout="100ms").json()["state"] == "pending"
        answer = own.post([hot(2), smoke(3), hot(4)], "a", wait="committed", timeout="100ms")
        time.sleep(1)
        assert own.post([smoke(8), hot(9)], "a", wait="committed").json()["state"] == "committed"
        assert "late" not in own.client.get(f"/v1/tokens/{answer.json()['token']}").json()
        assert [event["time"] for event in own.events()] == [3, 8]
        deadline = time.monotonic() + 10
        while own.client.get("/v1/status").json()["watermark"] < 10 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert own.client.get("/v1/status").json()["watermark"] >= 10


@pytest.mark.parametrize("name", ["a", "b"])
def test_the_first_graph_may_wait_for_a_silent_source(tmp_path: Path, name: str) -> None:
    sources = [f"sources.{source}={{http: {{}}, idle: 400ms}}" for source in "ab"]
    with serving(tmp_path, RULES, "--set", sources[0], "--set", sources[1]) as own:
        assert own.post([hot(1)], name, wait="committed", timeout="10s").json()["state"] == "committed"
        assert own.client.get("/readyz").status_code == 200


def test_metrics_are_prometheus_text(own: Server) -> None:
    own.post([hot(1), smoke(2), hot(3)], wait="committed")
    text = own.client.get("/metrics").text
    assert 'dotr_events_total{rule="Fire"} 1.0' in text
    assert 'dotr_source_documents_total{outcome="accepted",source="input"} 1.0' in text
    assert 'dotr_rule_stage_total{rule="Fire",stage="1 LAST Hot"} 1.0' in text


def test_what_is_not_there_is_said_with_what_is(server: Server) -> None:
    for method, path, status in (
        ("GET", "/v1/event", 404),
        ("POST", "/v1/streams/inptu", 404),
        ("GET", "/v1/tokens/999", 404),
        ("GET", "/v1/events/urn:x:none", 404),
        ("PATCH", "/v1/rules", 405),
        ("GET", "/v1/events?after=x", 400),
        ("GET", "/v1/events?after=1&after=2", 400),
    ):
        answer = server.client.request(method, path)
        assert answer.status_code == status, path
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"].startswith("D")


def test_the_openapi_document_is_valid_and_names_every_route(server: Server) -> None:
    document = server.client.get("/v1/openapi.json").json()
    assert document == json.loads(json.dumps(openapi()))
    validate(document)
    named = {(method.upper(), path) for path, of in document["paths"].items() for method in of}
    assert named == {(route.method, route.path.replace(":path", "")) for route in ROUTES}


def test_a_signal_commits_and_the_next_server_goes_on(tmp_path: Path) -> None:
    for at, number in ((10, signal.SIGTERM), (20, signal.SIGINT)):
        with serving(tmp_path) as server:
            first = len(server.events())
            server.post([hot(at), smoke(at + 1), hot(at + 2)], wait="committed")
            begun = time.monotonic()
            assert server.stop(number) == 0
            assert time.monotonic() - begun < 10
            assert server.log[-1] == "stopped"
    with serving(tmp_path) as server:
        assert len(server.events()) == first + 1


def test_sighup_reads_the_configuration_again(tmp_path: Path) -> None:
    (tmp_path / "rules.dotr").write_text(RULES)
    (tmp_path / "dotr.yaml").write_text("rules: [rules.dotr]\n")
    server = Server(tmp_path, ())
    try:
        assert server.client.post("/v1/streams/kitchen").status_code == 404
        (tmp_path / "dotr.yaml").write_text(
            "rules: [rules.dotr]\nsources: {kitchen: {http: {}}}\noutputs: {log: {file: log.jsonl}}\n"
        )
        server.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 10
        while server.client.post("/v1/streams/kitchen").status_code == 404 and time.monotonic() < deadline:
            time.sleep(0.05)
        server.post([hot(1), smoke(2), hot(3)], "kitchen", wait="committed")
        assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1
        (tmp_path / "dotr.yaml").write_text("ruels: [rules.dotr]\n")
        server.process.send_signal(signal.SIGHUP)
        server.said("stays as it was")
        assert any("D4190" in line for line in server.log)
        assert server.client.get("/livez").text == "ok\n"
    finally:
        assert server.stop() == 0


def test_what_only_a_start_can_change_stays_as_it_was(tmp_path: Path) -> None:
    with serving(tmp_path, RULES) as server:
        (tmp_path / "dotr.yaml").write_text("rules: [rules.dotr]\n")
    server = Server(tmp_path, ())
    try:
        (tmp_path / "dotr.yaml").write_text("rules: [rules.dotr]\ndir: another\n")
        server.process.send_signal(signal.SIGHUP)
        server.said("was read again")
        assert "warning: `dir` changes at the next start" in server.log
        server.post([hot(1), smoke(2), hot(3)], wait="committed")
        assert len(server.events()) == 1
        assert server.client.get("/v1/rules").json()["rules"] == ["Fire"]
    finally:
        assert server.stop() == 0


def test_a_configuration_with_which_nothing_can_be_fed_is_mended_by_another(tmp_path: Path) -> None:
    (tmp_path / "rules.dotr").write_text(RULES)
    (tmp_path / "dotr.yaml").write_text("rules: [rules.dotr]\n")
    (tmp_path / "folder").mkdir()
    server = Server(tmp_path, ())
    try:
        (tmp_path / "dotr.yaml").write_text("rules: [rules.dotr]\noutputs: {log: {file: folder}}\n")
        server.process.send_signal(signal.SIGHUP)
        server.said("error[D4201]: cannot write folder: is a folder")
        assert server.client.get("/readyz").status_code == 503
        assert server.client.put("/v1/rules?name=rules.dotr", content=RULES + "\n").status_code == 200
        (tmp_path / "dotr.yaml").write_text("rules: [rules.dotr]\n")
        server.process.send_signal(signal.SIGHUP)
        assert server.post([hot(1), smoke(2), hot(3)], wait="committed").json()["state"] == "committed"
    finally:
        assert server.stop() == 0

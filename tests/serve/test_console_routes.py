"""What the console asks for: its files, events the other way round, counts of a timeline."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dotr.serve.samples import quantile
from dotr.serve.security import new_token
from dotr.serve.static import StaticFiles
from tests.serve.servers import RULES, Server, hot, serving, smoke


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with events at 10, 20 … 2500, each in one room of three."""
    with serving(tmp_path_factory.mktemp("server")) as one:
        lines = []
        for at in range(10, 2510, 10):
            room = "abc"[at // 10 % 3]
            lines += [hot(at - 1, room), smoke(at, room)]
        one.post([*lines, hot(9000)], wait="committed")
        yield one


def numbers(server: Server, path: str) -> tuple[list[int], str | None]:
    page = server.client.get(path).raise_for_status().json()
    return [event["number"] for event in page["events"]], page["next"]


def test_pages_of_the_newest_first_have_every_event_once(server: Server) -> None:
    found: list[int] = []
    path: str | None = "/v1/events?order=newest&limit=70"
    while path is not None:
        page, path = numbers(server, path)
        found += page
    assert found == list(range(250, 0, -1))


def test_a_page_of_the_newest_keeps_to_rule_text_and_times(server: Server) -> None:
    assert numbers(server, "/v1/events?order=newest&since=40&until=60")[0] == [6, 5, 4]
    assert numbers(server, "/v1/events?order=newest&before=4&rule=Fire") == ([3, 2, 1], None)
    found, _ = numbers(server, "/v1/events?order=newest&text=URN:X:A%22&limit=2")
    assert found == [249, 246]
    assert numbers(server, "/v1/events?order=newest&text=nowhere") == ([], None)


def test_a_page_of_the_oldest_ends_at_until(server: Server) -> None:
    assert numbers(server, "/v1/events?after=0&until=30") == ([1, 2, 3], None)
    assert numbers(server, "/v1/events?since=40&before=7&limit=2")[0] == [4, 5]
    assert numbers(server, "/v1/events?since=40&before=7") == ([4, 5, 6], None)


def test_an_order_that_is_none_is_refused(server: Server) -> None:
    answer = server.client.get("/v1/events?order=random")
    assert (answer.status_code, answer.json()["hint"]) == (400, "oldest, or newest")


def test_counts_have_every_event_in_buckets_of_round_length(server: Server) -> None:
    found = server.client.get("/v1/events/counts?buckets=30").json()
    assert (found["since"], found["width"], found["total"]) == (0, 100, 250)
    assert found["rules"]["Fire"] == [[0, 9], *([n, 10] for n in range(1, 25)), [25, 1]]


def test_counts_of_a_range_are_of_that_range(server: Server) -> None:
    found = server.client.get("/v1/events/counts?since=100&until=139&buckets=4").json()
    assert found["rules"] == {"Fire": [[0, 1], [1, 1], [2, 1], [3, 1]]}
    assert (found["since"], found["width"], found["buckets"], found["total"]) == (100, 10, 4, 4)
    assert server.client.get("/v1/events/counts?since=9&until=3").status_code == 400


def test_counts_of_nothing(tmp_path: Path) -> None:
    with serving(tmp_path / "server") as one:
        assert one.client.get("/v1/events/counts").json()["buckets"] == 0


def test_files_of_the_console_have_types_and_are_sent_once(server: Server) -> None:
    for name in ("", *(f"console/{name}" for name in StaticFiles().names())):
        answer = server.client.get(f"/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["cache-control"] == "no-cache"
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        again = server.client.get(f"/{name}", headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    assert server.client.get("/console/app.js").headers["content-type"] == "text/javascript; charset=utf-8"
    assert server.client.get("/console/style.css").headers["content-type"] == "text/css; charset=utf-8"


def test_files_are_packed_for_who_unpacks_them(server: Server) -> None:
    plain = server.client.get("/console/app.js", headers={"accept-encoding": "identity"})
    with server.client.stream("GET", "/console/app.js", headers={"accept-encoding": "gzip"}) as packed:
        assert gzip.decompress(b"".join(packed.iter_raw())) == plain.content


def test_no_path_leads_out_of_the_folder(server: Server) -> None:
    for name in ("..%2fapp.py", "%2e%2e/app.py", "..%2f..%2fapi.py", "%2fetc%2fpasswd", "vendor", "none.js"):
        answer = server.client.get(f"/console/{name}")
        assert answer.status_code == 404, name


def test_rules_have_their_texts_places_and_prefixes(server: Server) -> None:
    found = server.client.get("/v1/rules").json()
    assert found["prefixes"] == {"": "urn:x:"}
    assert found["texts"]["Fire"]["line"] == 2
    assert found["texts"]["Fire"]["text"].startswith("RULE Fire\n")


TEXT = {"content-type": "text/plain"}


def test_rules_are_tried_on_what_came_lately_and_not_put_in_force(server: Server) -> None:
    before = server.client.get("/v1/rules").json()["digest"]
    tried = server.client.post("/v1/rules/try?name=rules.dotr&last=20h", content=RULES, headers=TEXT).json()
    assert (tried["changed"], tried["differences"]) == (0, [])
    assert tried["rules"] == [{"rule": "Fire", "deployed": 250, "tried": 250, "added": 0, "removed": 0}]
    colder = RULES.replace("Smoke.?room\nWITH", "Smoke.?room && Smoke.?room != :a\nWITH")
    tried = server.client.post("/v1/rules/try?name=rules.dotr&last=20h", content=colder, headers=TEXT).json()
    assert tried["rules"] == [{"rule": "Fire", "deployed": 250, "tried": 167, "added": 0, "removed": 83}]
    assert {one["bindings"]["room"]["value"] for one in tried["differences"]} == {"urn:x:a"}
    assert {one["change"] for one in tried["differences"]} == {-1}
    assert server.client.get("/v1/rules").json()["digest"] == before


def test_what_came_before_the_time_that_is_tried_does_not_count(server: Server) -> None:
    # the watermark is 8999: the last 6,510 s begin at 2,490
    tried = server.client.post("/v1/rules/try?name=rules.dotr&last=6510s", content=RULES, headers=TEXT).json()
    assert tried["rules"][0]["tried"] == 2
    assert (tried["since"], tried["until"]) == (2490, 8999)


def test_messages_out_of_order_are_tried_in_order(tmp_path: Path) -> None:
    rules = "PREFIX : <urn:x:>\nRULE R DEFINE { dotr_a a :R } FROM T := { SELECT ?s { ?s a :T } }\n"
    sources = ["--set", "sources={input: {http: {}, lateness: 10s}}"]
    with serving(tmp_path / "server", rules, *sources) as one:
        graph = '"graph": "<urn:x:s> a <urn:x:T> ."}'
        one.post([f'{{"time": {at}, {graph}' for at in (1, 4, 3, 2, 90)], wait="committed")
        tried = one.client.post("/v1/rules/try?last=200s", content=rules, headers=TEXT).json()
        assert [(each["deployed"], each["tried"]) for each in tried["rules"]] == [(4, 4)]


def test_who_may_change_rules_and_not_read_does_not_try_them(tmp_path: Path) -> None:
    secret = new_token(str(tmp_path / "tokens"), "editor", ["rules"])
    with serving(tmp_path / "server", RULES, "--tokens", str(tmp_path / "tokens")) as one:
        headers = {**TEXT, "Authorization": f"Bearer {secret}"}
        answer = one.client.post("/v1/rules/try?name=rules.dotr", content=RULES, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "D4142")


def test_a_search_that_finds_nothing_ends_and_goes_on(server: Server) -> None:
    path, pages = "/v1/events?text=nothing+like+this", 0
    while path:
        page = server.client.get(path).json()
        assert page["events"] == []
        path, pages = page["next"], pages + 1
        assert pages < 10


def test_wrong_rules_and_lengths_are_refused(server: Server) -> None:
    answer = server.client.post("/v1/rules/try", content="RULE Hot FROM", headers=TEXT)
    assert (answer.status_code, answer.json()["code"]) == (422, "D1004")
    answer = server.client.post("/v1/rules/try?last=long", content=RULES, headers=TEXT)
    assert (answer.status_code, answer.json()["hint"]) == (400, "1h, or PT1H")


def test_what_lasts_is_there_when_rules_are_tried(tmp_path: Path) -> None:
    rules = """PREFIX : <urn:x:>
HOLD :in LATEST
QUERY Places := { SELECT ?who ?room WHERE { ?who :in ?room } }
RULE Came DEFINE { dotr_e a :Came ; :of ?who } FROM Begun := ISTREAM Places WITH ?who := Begun.?who
RULE Look DEFINE { dotr_e a :Look ; :at ?who }
FROM Seen := { SELECT ?who ?room WHERE { ?l a :Look . ?who :in ?room } } WITH ?who := Seen.?who
"""
    with serving(tmp_path / "server", rules) as one:
        one.post(
            [
                '{"time": 10, "graph": "<urn:x:ann> <urn:x:in> <urn:x:a> ."}',
                '{"time": 90000, "graph": "[] a <urn:x:Look> ."}',
                '{"time": 90001, "graph": "[] a <urn:x:Other> ."}',
            ],
            wait="committed",
        )
        tried = one.client.post("/v1/rules/try?last=10s", content=rules, headers=TEXT).json()
        assert [(each["rule"], each["tried"]) for each in tried["rules"]] == [("Came", 0), ("Look", 1)]


def test_a_planned_change_is_withdrawn(tmp_path: Path) -> None:
    with serving(tmp_path / "server") as one:
        assert one.client.delete("/v1/planned-rules").status_code == 404
        one.post([hot(1), smoke(2), hot(3)], wait="committed")
        planned = RULES.replace("Fire\n", "Blaze\n", 1)
        answer = one.client.put("/v1/rules?name=rules.dotr&from=100", content=planned, headers=TEXT)
        assert answer.status_code == 202
        assert one.client.get("/v1/rules").json()["planned"] == "100"
        assert one.client.delete("/v1/planned-rules").status_code == 204
        assert "planned" not in one.client.get("/v1/rules").json()
        one.post([hot(101), smoke(102), hot(103)], wait="committed")
        assert [event["rule"] for event in one.events()] == ["Fire", "Fire"]


def test_samples_have_rates_and_latencies(tmp_path: Path) -> None:
    with serving(tmp_path / "server") as one:
        one.post([hot(1), smoke(2), hot(3)], wait="committed")
        until = time.monotonic() + 20
        while not (found := one.client.get("/v1/samples").json())["time"]:
            assert time.monotonic() < until
            time.sleep(0.2)
        assert len({len(column) for column in found.values() if isinstance(column, list)}) == 1
        assert found["documents"][0] > 0
        assert found["graphs"][0] > found["documents"][0]
        assert 0 < found["p50"][0] <= found["p99"][0] < 10


def test_quantiles() -> None:
    assert quantile([], 0.5) is None
    assert [quantile([3, 1, 2, 4], part) for part in (0, 0.5, 0.99)] == [1, 3, 4]

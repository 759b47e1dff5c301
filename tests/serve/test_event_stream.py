"""The outbox as a Linked Data Event Stream: what another's client has of it, and what never changes."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest

from dotr.events import Clock
from dotr.serve import event_stream
from dotr.serve.event_stream import GROUP_PAGES, PAGE_ROWS, EventStream, Node, nodes
from dotr.service.outbox import OutboxReader

from .ldes_client import command, members, script
from .servers import RULES, Server, hot, serving, smoke

TREE = "https://w3id.org/tree#"
NQUADS = {"accept": "application/n-quads"}


def fill(server: Server, first: int, last: int) -> None:
    """An event at each of these times, which are days of 2026 and later."""
    lines = []
    for at in range(first, last + 1):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_767_225_600 + 60 * at))
        lines += [line.replace(f'"time": {at},', f'"time": "{stamp}",') for line in (hot(at), smoke(at))]
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_767_225_600 + 60 * last + 1))
    lines.append(json.dumps({"time": stamp, "graph": "[] <urn:x:nothing> 1 ."}))
    assert server.post(lines, wait="committed").json()["state"] == "committed"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """610 events: two full pages, and one that grows."""
    with serving(tmp_path_factory.mktemp("filled")) as server:
        fill(server, 1, 610)
        yield server


def objects(server: Server, path: str, predicate: str) -> list[str]:
    """What a page says with a predicate of TREE."""
    content = server.client.get(path, headers=NQUADS).content
    found = ox.parse(content, format=ox.RdfFormat.N_QUADS)
    return [quad.object.value for quad in found if quad.predicate.value == f"{TREE}{predicate}"]


def test_the_client_of_others_has_every_event_once_as_it_was(filled: Server) -> None:
    found = [one for one in members(f"{filled.url}/v1/ldes", "ascending") if "id" in one]
    events = filled.events()
    assert len(events) == 610
    by_name = {event["id"]: event for event in events}
    assert sorted(str(one["id"]) for one in found) == sorted(by_name)  # its order depends on when pages come
    for one in found:
        event = by_name[one["id"]]
        name = str(event["id"])
        graph = ox.parse(str(event["graph"]).encode(), format=ox.RdfFormat.N_TRIPLES)
        expected = {(q.subject.value, q.predicate.value, q.object.value, name) for q in graph}
        stamp = (name, "http://www.w3.org/ns/prov#generatedAtTime", str(event["time"]), "")
        assert {tuple(quad) for quad in one["quads"]} == expected | {stamp}  # type: ignore[attr-defined]


def test_the_client_of_others_goes_to_the_pages_of_its_times_alone(filled: Server) -> None:
    after = "2026-01-01T09:30:00Z"
    found = members(f"{filled.url}/v1/ldes", "ascending", after=after)
    later = [event["id"] for event in filled.events() if str(event["time"]) > after]
    assert [one["id"] for one in found if "id" in one] == later
    assert len(later) == 40
    pages = {str(one["page"]) for one in found if "page" in one}
    assert f"{filled.url}/v1/ldes/3" in pages
    assert f"{filled.url}/v1/ldes/1" not in pages


def test_the_client_of_others_follows(tmp_path: Path) -> None:
    script()
    with serving(tmp_path) as server:
        fill(server, 1, 240)
        following = subprocess.Popen(
            command(f"{server.url}/v1/ldes", polling=True, pollInterval=200),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        try:
            assert following.stdout is not None
            found: list[str] = []
            for last in (240, 260, 530):
                if last > 240:
                    fill(server, len(found) + 1, last)
                while len(found) < last:
                    line = following.stdout.readline()
                    assert line, following.communicate()
                    one = json.loads(line) if line.startswith("{") else {}
                    found += [one["id"]] if "id" in one else []
            assert sorted(found) == sorted(str(event["id"]) for event in server.events())
        finally:
            following.kill()
            following.communicate()


def test_a_full_page_never_changes_and_the_others_say_whether_they_did(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        fill(server, 1, 260)
        full, growing, root = (server.client.get(f"/v1/ldes{path}") for path in ("/1", "/2", ""))
        assert "immutable" in full.headers["cache-control"]
        assert growing.headers["cache-control"] == root.headers["cache-control"] == "no-cache"
        for page in (full, growing, root):
            known = {"if-none-match": f'"other", W/{page.headers["etag"]}'}
            again = server.client.get(page.url.path, headers=known)
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == page.headers["etag"]
        other = server.client.get("/v1/ldes/1", headers={**NQUADS, "if-none-match": full.headers["etag"]})
        assert other.status_code == 200, "another format is other bytes"
        fill(server, 261, 270)
        assert server.client.get("/v1/ldes/1").content == full.content
        for page in (growing, root):
            again = server.client.get(page.url.path, headers={"if-none-match": page.headers["etag"]})
            assert again.status_code == (200 if page is growing else 304), "the root lists no other page"
        assert len(objects(server, "/v1/ldes/2", "member")) == 20


@pytest.mark.parametrize("media", ["application/trig", "application/n-quads", "application/ld+json"])
def test_every_format_says_the_same(filled: Server, media: str) -> None:
    answer = filled.client.get("/v1/ldes/2", headers={"accept": media})
    assert answer.headers["content-type"] == media
    plain = filled.client.get("/v1/ldes/2", headers=NQUADS).content
    found = set(ox.parse(answer.content, format=event_stream.FORMATS[media]))
    assert found == set(ox.parse(plain, format=ox.RdfFormat.N_QUADS))
    assert len(found) > 5 * PAGE_ROWS


def test_turtle_has_the_root_and_no_pages(filled: Server) -> None:
    turtle = {"accept": "text/turtle"}
    root = filled.client.get("/v1/ldes", headers=turtle)
    assert len(list(ox.parse(root.content, format=ox.RdfFormat.TURTLE))) == 4 + 5 * 5
    assert filled.client.get("/v1/ldes/1", headers=turtle).status_code == 406
    for path in ("4", "0", "01", "-1", "x", "group-1", "group-0", "9" * 30):
        assert filled.client.get(f"/v1/ldes/{path}").status_code == 404


def test_pages_whose_events_are_gone_answer_so_and_the_root_begins_behind_them(tmp_path: Path) -> None:
    with serving(tmp_path, RULES, "--keep-events", "5h") as server:
        fill(server, 1, 620)
        fill(server, 621, 640)
        first = OutboxReader(str(tmp_path / ".dotr")).first()
        assert PAGE_ROWS < first < 2 * PAGE_ROWS
        assert server.client.get("/v1/ldes/1").status_code == 410
        assert "D5233" in server.client.get("/v1/ldes/1").text
        pages = [name.rpartition("/")[2] for name in objects(server, "/v1/ldes", "node")]
        assert pages == ["2", "2", "3"]
        assert len(objects(server, "/v1/ldes/2", "member")) == 2 * PAGE_ROWS - first + 1
        assert "immutable" not in server.client.get("/v1/ldes/2").headers["cache-control"]
        found = [one["id"] for one in members(f"{server.url}/v1/ldes") if "id" in one]
        assert sorted(map(str, found)) == sorted(str(event["id"]) for event in server.events())


def test_full_pages_are_told_of_in_groups() -> None:
    rows = PAGE_ROWS * GROUP_PAGES
    assert nodes(1, 0) == []
    assert nodes(1, 1) == [Node("1", 1, 1, False)]
    assert nodes(300, 500) == [Node("2", 300, 500, True)]
    assert nodes(7, rows) == [Node("group-1", 7, rows, True)]
    begin = rows + 10
    assert nodes(begin, 2 * rows + 1) == [
        Node("group-2", begin, 2 * rows, True),
        Node(str(2 * GROUP_PAGES + 1), 2 * rows + 1, 2 * rows + 1, False),
    ]
    assert nodes(rows + 1, rows) == []


def test_the_client_of_others_reads_groups(filled: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the server has them with pages of 50 events and groups of four pages."""
    monkeypatch.setattr(event_stream, "PAGE_ROWS", 50)
    monkeypatch.setattr(event_stream, "GROUP_PAGES", 4)
    with OutboxReader(str(filled.folder / ".dotr")) as reader:
        own = EventStream(reader)
        seen: list[str] = []

        def members_below(text: str) -> None:
            quads = list(ox.parse(text.encode(), format=ox.RdfFormat.N_QUADS))
            seen.extend(q.object.value for q in quads if q.predicate.value == f"{TREE}member")
            below = {q.object.value for q in quads if q.predicate.value == f"{TREE}node"}
            for name in sorted(below):
                name = name.rpartition("/")[2]
                got = own.page("urn:x:root", name, Clock(), "application/n-quads")
                assert got.content is not None
                members_below(got.content.decode())

        root = own.view("urn:x:root", Clock(), "application/n-quads").content
        assert root is not None
        assert root.count(b"GreaterThanOrEqualToRelation") == 3 + 1
        members_below(root.decode())
    assert sorted(seen) == sorted(str(event["id"]) for event in filled.events())

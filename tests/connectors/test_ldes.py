"""Linked Data Event Streams as a source: what is read, in which order, how often, and from where on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from dotr.connectors import ldes, outgoing
from dotr.connectors.ldes import LdesTransport, PageSet, Progress, page_content, try_stream
from dotr.errors import DataError, Diagnostic, EngineError
from dotr.events import Message
from dotr.io.decode.documents import Format
from dotr.io.feeds import DocumentSource, Position
from dotr.io.graphs import TimedGraph
from dotr.rdf.terms import Triple

HEAD = """PREFIX tree: <https://w3id.org/tree#> PREFIX ldes: <https://w3id.org/ldes#>
PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX : <urn:x:>
<#stream> a ldes:EventStream ; ldes:timestampPath :at ; ldes:versionOfPath :of .
"""


def member(name: str, at: int | str, of: str = "thing") -> str:
    """A member in Turtle."""
    return f"<#stream> tree:member :{name} . :{name} :at {at} ; :of :{of} .\n"


def relation(page: str, at_least: int | None = None) -> str:
    """A relation to a page."""
    if at_least is None:
        return f"<> tree:relation [ a tree:Relation ; tree:node <{page}> ] .\n"
    return (
        f"<> tree:relation [ a tree:GreaterThanOrEqualToRelation ; tree:node <{page}> ; tree:path :at ; "
        f"tree:value {at_least} ] .\n"
    )


class Site:
    """Owns a server of pages. `asked`: path, If-None-Match and status of each request."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, Mapping[str, str]]] = {}
        self.failing: dict[str, tuple[int, Mapping[str, str]]] = {}
        self.asked: list[tuple[str, str, int]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.answer(self)

            def log_message(self, *_: Any) -> None:
                return

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None:
                """A client went away."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def put(self, path: str, text: str, immutable: bool = False, media: str = "text/turtle") -> None:
        """A page, or other content for it."""
        tag = f'"{len(self.asked)} {hash(text)}"'
        more = {"cache-control": "max-age=60, immutable"} if immutable else {}
        self.pages[path] = (
            (HEAD + text if media == "text/turtle" else text),
            {
                "content-type": media,
                "etag": tag,
                **more,
            },
        )

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        known = to.headers.get("if-none-match", "")
        status, headers, content = 404, dict[str, str](), b""
        if to.path in self.failing:
            status, headers = self.failing[to.path][0], dict(self.failing[to.path][1])
        elif to.path in self.pages:
            text, found = self.pages[to.path]
            status, headers, content = 200, dict(found), text.encode()
            if known and known == headers.get("etag"):
                status, content = 304, b""
        self.asked.append((to.path, known, status))
        to.send_response(status)
        for name, value in headers.items():
            to.send_header(name, value)
        to.send_header("content-length", str(len(content)))
        to.end_headers()
        to.wfile.write(content)

    def times_asked(self, path: str) -> int:
        return [one for one, _, _ in self.asked].count(path)


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.server.shutdown()
    made.server.server_close()


class Reader:
    """Owns a transport, and what a feed would have of it. `stored`: the position of the last commit."""

    def __init__(self, url: str, stored: Position | None = None, poll: float = 0.05) -> None:
        self.said: list[Diagnostic] = []
        self.transport = LdesTransport("traffic", url, poll, self.said.append)
        self.stored = stored
        self.source = DocumentSource(self.transport, Format.TURTLE, fail=False, ends=False)
        self.graphs: list[TimedGraph] = []
        self.refused: list[str] = []

    def read(self, enough: Callable[[], bool], commit: bool = True) -> list[str]:
        """The names of members, as they come, until there is enough."""
        until, before = time.monotonic() + 10, len(self.graphs)
        while not enough():
            assert time.monotonic() < until, (self.names(), [str(one) for one in self.said])
            for item in self.source.items(lambda _s, _p: self.stored):
                if item is None:
                    continue
                if isinstance(item, TimedGraph):
                    self.graphs.append(item)
                elif item.error is not None:
                    self.refused.append(str(item.error))
                self.source.consumed(item)
            time.sleep(0.005)
        if commit:
            self.commit()
        return self.names()[before:]

    def commit(self) -> None:
        for position in self.source.changes().values():
            self.stored = json.loads(json.dumps(position))
        self.source.committed()

    def names(self) -> list[str]:
        return [subject_of(one) for one in self.graphs]

    def count(self, number: int) -> Callable[[], bool]:
        return lambda: len(self.graphs) >= number

    def close(self) -> None:
        self.transport.close()


def triples_of(graph: TimedGraph) -> Sequence[Triple]:
    assert not isinstance(graph.triples, Message)
    return graph.triples


def subject_of(graph: TimedGraph) -> str:
    return min(s for s, _, _ in triples_of(graph)).strip("<>").rpartition(":")[2]


@pytest.fixture
def opened() -> Iterator[Callable[..., Reader]]:
    made: list[Reader] = []

    def open_(*given: Any, **named: Any) -> Reader:
        made.append(Reader(*given, **named))
        return made[-1]

    yield open_
    for one in made:
        one.close()


Open = Callable[..., Reader]


def test_pages_and_members_come_in_the_order_of_their_times(site: Site, opened: Open) -> None:
    site.put("/feed", relation("/b", 20) + relation("/a", 1) + relation("/c", 30))
    site.put("/a", member("a2", 5) + member("a1", 1), immutable=True)
    site.put("/b", member("b2", 29) + member("b1", 20), immutable=True)
    site.put("/c", member("c1", 30) + member("c2", 30, "other"))
    reader = opened(f"{site.url}/feed")
    assert reader.read(reader.count(6)) == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert [one.time // 1_000_000 for one in reader.graphs] == [1, 5, 20, 29, 30, 30]
    assert sorted(t[1] for t in triples_of(reader.graphs[0])) == ["<urn:x:at>", "<urn:x:of>"], "as given"


def test_full_pages_are_read_once_and_others_asked_with_their_tag(site: Site, opened: Open) -> None:
    site.put("/feed", relation("/1", 1) + relation("/2", 10))
    site.put("/1", member("a", 1), immutable=True)
    site.put("/2", member("b", 10))
    reader = opened(f"{site.url}/feed")
    reader.read(reader.count(2))
    reader.read(lambda: site.times_asked("/2") > 3)
    assert site.times_asked("/1") == 1
    assert {status for path, tag, status in site.asked if path == "/2" and tag} == {304}
    site.put("/2", member("b", 10) + member("c", 11))
    assert reader.read(reader.count(3)) == ["c"]
    site.put("/2", member("b", 10) + member("c", 11) + member("d", 12), immutable=True)
    site.put("/feed", relation("/1", 1) + relation("/2", 10) + relation("/3", 13))
    site.put("/3", member("e", 13))
    assert reader.read(reader.count(5)) == ["d", "e"]
    before = site.times_asked("/2")
    reader.read(lambda: site.times_asked("/3") > 4)
    assert site.times_asked("/2") == before


@pytest.mark.parametrize("step", [1, 2, 3, 5])
def test_a_source_that_is_ended_anywhere_gives_each_member_once(site: Site, opened: Open, step: int) -> None:
    """A chain of full pages, one that grows, and one from which members move."""
    site.put("/feed", relation("/p1"))
    for page in range(1, 5):
        text = "".join(member(f"m{page}{n}", page * 10 + n) for n in range(4)) + relation(f"/p{page + 1}")
        site.put(f"/p{page}", text, immutable=True)
    site.put("/p5", "".join(member(f"m5{n}", 50 + n) for n in range(4)))
    stored, found = None, list[str]()
    while len(found) < 20:
        reader = opened(f"{site.url}/feed", stored)
        transport, names = reader.transport, list[str]()
        until = time.monotonic() + 10
        while len(names) < step and len(found) + len(names) < 20:
            assert time.monotonic() < until
            for item in reader.source.items(lambda _s, _p: stored):  # noqa: B023  # at once
                if isinstance(item, TimedGraph):
                    names.append(subject_of(item))
                    reader.source.consumed(item)
                    if len(names) == step:
                        break
            time.sleep(0.002)
        reader.commit()
        stored, found = reader.stored, found + names
        transport.close()
    assert found == [f"m{page}{n}" for page in range(1, 6) for n in range(4)]
    site.put("/p5", "".join(member(f"m5{n}", 50 + n) for n in range(2, 6)) + relation("/p6"))
    site.put("/p6", "".join(member(f"m5{n}", 50 + n) for n in range(2)) + member("m6", 60), immutable=True)
    reader = opened(f"{site.url}/feed", stored)
    assert reader.read(reader.count(3)) == ["m54", "m55", "m6"]
    reader.read(lambda: site.times_asked("/p5") > 30 // step)
    assert len(reader.graphs) == 3
    assert len(json.dumps(reader.stored)) < 1_500


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("leaves", ["is full", "moves"])
def test_a_member_of_two_pages_is_given_once_while_one_of_them_changes(
    site: Site, opened: Open, monkeypatch: pytest.MonkeyPatch, leaves: str, restarts: bool
) -> None:
    """Its page is full, or names it no more; then more members come than are remembered of such pages."""
    monkeypatch.setattr(ldes, "RECENT", 3)
    reader = opened(f"{site.url}/feed")

    def comes(number: int) -> list[str]:
        nonlocal reader
        if restarts:
            reader.close()
            reader = opened(f"{site.url}/feed", reader.stored)
        return reader.read(reader.count(len(reader.graphs) + number))

    pages = relation("/p", 1) + relation("/q", 1)
    site.put("/feed", pages)
    site.put("/p", member("m", 1))
    site.put("/q", member("m", 1))
    assert comes(1) == ["m"]
    site.put("/q", member("m", 1) + member("n", 2))
    assert comes(1) == ["n"]
    if leaves == "is full":
        site.put("/p", member("m", 1) + member("last", 3), immutable=True)
    else:
        site.put("/p", member("last", 3))
    assert comes(1) == ["last"]
    site.put("/r", "".join(member(f"r{n}", 4 + n) for n in range(5)), immutable=True)
    site.put("/feed", pages + relation("/r", 4))
    assert comes(5) == [f"r{n}" for n in range(5)]
    site.put("/q", member("m", 1) + member("n", 2) + member("o", 9))
    assert comes(1) == ["o"]
    site.put("/q", member("n", 2) + member("o", 9) + member("m", 1), immutable=True)
    site.put("/s", member("s", 10))
    site.put("/feed", pages + relation("/r", 4) + relation("/s", 10))
    assert comes(1) == ["s"]


def test_members_that_stand_on_many_pages_do_not_end_a_stream(
    site: Site, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deployment that was begun when each counted once goes on."""
    monkeypatch.setattr(ldes, "MOST_MEMBERS", 4)
    site.put("/feed", relation("/p", 1) + relation("/q", 1))
    three = "".join(member(name, at) for at, name in enumerate("abc", 1))
    site.put("/p", three)
    site.put("/q", three)
    reader = opened(f"{site.url}/feed")
    assert reader.read(reader.count(3)) == ["a", "b", "c"]
    site.put("/q", three + member("d", 4))
    assert reader.read(reader.count(4)) == ["d"]
    assert not reader.said
    site.put("/q", three + member("d", 4) + member("e", 5))
    reader.read(lambda: "5 members" in reader.transport.why)


def before(page: str, at: int) -> str:
    """A relation to a page of what was earlier."""
    return (
        f"<> tree:relation [ a tree:LessThanRelation ; tree:node <{page}> ; tree:path :at ; "
        f"tree:value {at} ] .\n"
    )


@pytest.mark.parametrize("step", [1, 2, 3, 6])
def test_pages_that_lead_back_come_in_the_order_of_their_times(site: Site, opened: Open, step: int) -> None:
    """Ended after each few members; each page that never changes is read once when nothing ends."""
    site.put("/new", member("e", 5) + member("f", 6) + before("/mid", 5))
    site.put("/mid", member("c", 3) + member("d", 4) + before("/old", 3), immutable=True)
    site.put("/old", member("a", 1) + member("b", 2), immutable=True)
    stored, found = None, list[str]()
    until = time.monotonic() + 10
    while len(found) < 6:
        reader = opened(f"{site.url}/new", stored)
        names = list[str]()
        while len(names) < step and len(found) + len(names) < 6:
            assert time.monotonic() < until, found
            for item in reader.source.items(lambda _s, _p: stored):  # noqa: B023  # at once
                if isinstance(item, TimedGraph):
                    names.append(subject_of(item))
                    reader.source.consumed(item)
                    if len(names) == step:
                        break
            time.sleep(0.002)
        reader.commit()
        stored, found = reader.stored, found + names
        reader.close()
    assert found == list("abcdef")
    if step == 6:
        assert [site.times_asked(page) for page in ("/mid", "/old")] == [1, 1]


def test_more_than_may_wait_is_asked_for_again(
    site: Site, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ldes, "_HELD", 0)
    site.put("/new", member("b", 5) + before("/old", 5))
    site.put("/old", member("a", 1), immutable=True)
    reader = opened(f"{site.url}/new", poll=60)
    assert reader.read(reader.count(2)) == ["a", "b"]
    assert [path for path, _, _ in site.asked] == ["/new", "/old", "/new"]


def test_the_path_that_a_page_that_is_done_named_is_known_after_a_restart(site: Site, opened: Open) -> None:
    site.put("/1", member("a", 1) + relation("/2", 2), immutable=True)
    prefixes = "PREFIX tree: <https://w3id.org/tree#> PREFIX : <urn:x:>\n"
    linked = "<#stream> tree:member :{0} . :{0} :at {1} .\n"
    site.pages["/2"] = (prefixes + linked.format("b", 2), {"content-type": "text/turtle", "etag": '"1"'})
    reader = opened(f"{site.url}/1")
    assert reader.read(reader.count(2)) == ["a", "b"]
    reader.close()
    text = prefixes + linked.format("b", 2) + linked.format("c", 3)
    site.pages["/2"] = (text, {"content-type": "text/turtle", "etag": '"2"'})
    again = opened(f"{site.url}/1", reader.stored)
    again.read(lambda: len(again.graphs) + len(again.refused) >= 1)
    assert (again.names(), again.refused) == (["c"], [])


def test_a_page_that_goes_after_part_of_it_was_read_is_said(site: Site, opened: Open) -> None:
    site.put("/feed", relation("/1", 1))
    site.put("/1", member("a", 1))
    reader = opened(f"{site.url}/feed")
    reader.read(reader.count(1))
    reader.close()
    site.put("/feed", relation("/2", 9))
    site.failing["/1"] = (410, {})
    site.put("/2", member("z", 9))
    again = opened(f"{site.url}/feed", reader.stored)
    assert again.read(again.count(1)) == ["z"]
    assert [one.code for one in again.said] == ["D4223"]
    assert "after it was read is lost" in again.said[0].message


def test_a_page_that_told_of_pages_alone_goes_unsaid(site: Site, opened: Open) -> None:
    site.put("/feed", relation("/group", 1))
    site.put("/group", relation("/1", 1))
    site.put("/1", member("a", 1), immutable=True)
    reader = opened(f"{site.url}/feed")
    reader.read(lambda: site.times_asked("/group") > 2)
    site.failing["/group"] = (410, {})
    site.put("/feed", relation("/2", 2))
    site.put("/2", member("b", 2))
    assert reader.read(reader.count(2))[-1:] == ["b"]
    assert reader.said == []


def test_relations_of_another_property_say_nothing_of_times() -> None:
    text = HEAD + (
        "<> tree:relation [ a tree:GreaterThanOrEqualToRelation ; tree:node </warm> ; tree:path :celsius ; "
        "tree:value 5 ] , [ a tree:LessThanRelation ; tree:node </cold> ; tree:path :celsius ; "
        "tree:value 5 ] .\n"
    )
    found = page_content(text.encode(), "text/turtle", "http://h/")
    assert found.pages == {"http://h/warm": None, "http://h/cold": None}
    assert found.before == set()


def test_addresses_that_are_none_are_said_and_others_are_encoded(site: Site, opened: Open) -> None:
    site.put("/feed", member("a", 1) + relation("http://[x/2") + relation("/s\u00e9rie?q=\u00e9", 2))
    site.put("/s%C3%A9rie?q=%C3%A9", member("b", 2))
    reader = opened(f"{site.url}/feed")
    assert reader.read(reader.count(2)) == ["a", "b"]
    assert [one.code for one in reader.said] == ["D4223"]


@pytest.mark.parametrize(
    ("root", "page", "here"),
    [
        ("http://example.org/feed", "http://example.org:80/2", True),
        ("https://Example.org:443/feed", "https://example.org/2", True),
        ("https://example.org/feed", "https://example.org:444/2", False),
        ("https://example.org/feed", "http://example.org/2", False),
        ("https://example.org/feed", "https://example.org.evil.example/2", False),
    ],
)
def test_a_host_is_one_however_its_port_is_written(root: str, page: str, here: bool) -> None:
    assert LdesTransport("traffic", root)._is_here(page) is here


def test_pages_that_lead_in_a_circle_are_read_once_a_round(site: Site, opened: Open) -> None:
    site.put("/feed", relation("/a") + member("r", 1))
    site.put("/a", member("a", 2) + relation("/b") + relation("/feed") + relation("/a"))
    site.put("/b", member("b", 3) + relation("/a") + relation("/feed"), immutable=True)
    reader = opened(f"{site.url}/feed", poll=60)
    assert reader.read(reader.count(3)) == ["r", "a", "b"]
    time.sleep(0.1)
    assert [path for path, _, _ in site.asked] == ["/feed", "/a", "/b"]


def test_another_host_is_never_asked(site: Site, opened: Open) -> None:
    other = Site()
    try:
        other.put("/a", member("secret", 1))
        site.put("/feed", relation(f"{other.url}/a") + relation(f"{other.url}/b") + member("own", 1))
        reader = opened(f"{site.url}/feed")
        reader.read(reader.count(1))
        assert [one.code for one in reader.said] == ["D4223"], "once, though there are two"
        assert other.url in reader.said[0].message
        site.failing["/away"] = (302, {"location": f"{other.url}/a"})
        site.failing["/near"] = (302, {"location": "/feed"})
        away = opened(f"{site.url}/away")
        away.read(lambda: "another host" in away.transport.why)
        near = opened(f"{site.url}/near")
        assert near.read(near.count(1)) == ["own"]
        assert other.asked == []
    finally:
        other.server.shutdown()
        other.server.server_close()


def test_what_fails_is_tried_again_and_nothing_is_lost(site: Site, opened: Open) -> None:
    site.failing["/feed"] = (503, {"retry-after": "1"})
    site.put("/feed", relation("/a") + relation("/b"))
    site.put("/a", member("a", 1), immutable=True)
    site.put("/b", "this is no Turtle", immutable=True)
    reader = opened(f"{site.url}/feed")
    assert not reader.transport.connected
    reader.read(lambda: "503" in reader.transport.why)
    del site.failing["/feed"]
    reader.read(lambda: "cannot be read" in reader.transport.why and len(reader.graphs) >= 1)
    assert reader.names() == ["a"]
    site.put("/b", member("b", 2), immutable=True)
    assert reader.read(reader.count(2)) == ["b"]
    reader.read(lambda: reader.transport.connected)
    assert site.times_asked("/a") == 1
    assert [one.code for one in reader.said] == ["D4222"] * 4, "it fails, works, fails, works"


def test_a_page_that_is_gone_is_said_and_passed(site: Site, opened: Open) -> None:
    site.put("/feed", relation("/old", 1) + relation("/new", 5))
    site.failing["/old"] = (410, {})
    site.put("/new", member("n", 5))
    reader = opened(f"{site.url}/feed")
    assert reader.read(reader.count(1)) == ["n"]
    assert [one.code for one in reader.said] == ["D4223"]
    assert reader.transport.counts == {"lost": 1}
    reader.read(lambda: site.times_asked("/new") > 3)
    assert site.times_asked("/old") == 1


def test_a_page_that_is_too_long_is_refused(
    site: Site, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "MOST", 10_000)
    site.put("/feed", member("a", 1) + "#" * 20_000)
    reader = opened(f"{site.url}/feed")
    reader.read(lambda: "more than 10,000 bytes" in reader.transport.why)
    assert reader.names() == []


DEEP = 100_000


@pytest.mark.parametrize(
    ("media", "text", "message"),
    [
        ("text/html", "<html><body>It works!</body></html>", "`text/html`, which is no format of RDF"),
        ("text/turtle", "<html>", "cannot be read"),
        ("text/turtle", "<a:> <b:> " + "<<( <a:> <b:> " * DEEP + "1" + " )>>" * DEEP + " .", "nests deeper"),
        ("application/ld+json", "[" * DEEP + "]" * DEEP, "nests deeper"),
        ("application/rdf+xml", "<a:b xmlns:a='urn:a'>" * DEEP, "nests deeper"),
        ("text/turtle", "<a:> <b:> " + ",".join(map(str, range(501))) + " .", "more than 500 statements"),
        (
            "text/turtle",
            f"PREFIX l: <urn:{'x' * 1_000}> <a:> <b:> " + ",".join(f"l:{n}" for n in range(200)) + " .",
            "characters in them",
        ),
        (
            "text/turtle",
            HEAD
            + "".join(f"<#stream> tree:member :m{n} . :m{n} :in _:all ." for n in range(50))
            + "".join(f"_:all :has {n} ." for n in range(50)),
            "more than 500 statements together",
        ),
    ],
    ids=["html", "none", "terms", "json", "xml", "statements", "prefix", "members"],
)
def test_a_page_that_would_cost_too_much_is_said(
    site: Site, opened: Open, monkeypatch: pytest.MonkeyPatch, media: str, text: str, message: str
) -> None:
    """Some of them ended the process, or took its memory."""
    monkeypatch.setattr(ldes, "MOST_STATEMENTS", 500)
    monkeypatch.setattr(ldes, "MOST_CHARACTERS", 100_000)
    site.pages["/bad"] = (text, {"content-type": media})
    site.put("/feed", member("good", 1) + relation("/bad", 2))
    reader = opened(f"{site.url}/feed")
    reader.read(lambda: message in reader.transport.why and len(reader.graphs) >= 1)
    assert reader.names() == ["good"]
    assert {one.code for one in reader.said} == {"D4222"}


def test_what_is_remembered_of_a_page_is_short(site: Site, opened: Open) -> None:
    """Its address and its tag are stored with every commit."""
    long = "/long" + "x" * 5_000
    site.put("/feed", member("a", 1) + relation(long) + relation("/b", 2))
    site.put(long, member("never", 1))
    site.put("/b", member("b", 2))
    site.pages["/b"][1]["etag"] = '"' + "x" * 10_000 + '"'  # type: ignore[index]  # a dict
    reader = opened(f"{site.url}/feed")
    assert reader.read(reader.count(2)) == ["a", "b"]
    reader.read(lambda: site.times_asked("/b") > 3)
    assert {tag for path, tag, _ in site.asked if path == "/b"} == {""}
    assert site.times_asked(long) == 0
    assert [one.code for one in reader.said] == ["D4223"]
    assert len(json.dumps(reader.stored)) < 1_000


def test_an_answer_that_drips_is_said_in_time(
    site: Site, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "WHOLE", 0.3)
    ended = threading.Event()

    def drip(to: BaseHTTPRequestHandler) -> None:
        to.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/turtle\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not ended.wait(0.02):
            to.wfile.write(b"0")

    monkeypatch.setattr(site, "answer", drip)
    reader = opened(f"{site.url}/feed")
    reader.read(lambda: "takes more than 0.3 s" in reader.transport.why)
    ended.set()


def test_nothing_is_asked_while_the_feed_stands_still(site: Site, opened: Open) -> None:
    site.put("/feed", member("a", 1))
    reader = opened(f"{site.url}/feed", poll=0.01)
    reader.read(reader.count(1))
    time.sleep(0.1)
    before = len(site.asked)
    time.sleep(0.3)
    assert len(site.asked) == before
    reader.read(lambda: len(site.asked) > before + 2)


def test_a_member_without_a_time_is_a_dead_letter_and_the_others_are_read(site: Site, opened: Open) -> None:
    text = "<#stream> tree:member :none . :none :of :thing .\n" + member("bad", '"soon"') + member("good", 1)
    site.put("/feed", text)
    reader = opened(f"{site.url}/feed")
    reader.read(lambda: len(reader.graphs) + len(reader.refused) >= 3)
    assert reader.names() == ["good"]
    assert any("soon" in one for one in reader.refused)
    place = "traffic: urn:x:none:1"
    origin = reader.transport.origin(place)
    assert origin is not None
    assert origin.source == "traffic"
    assert reader.transport.origin("kitchen@7") is None


def test_more_pages_than_are_remembered_end_it_with_a_reason(
    site: Site, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ldes, "MOST_PAGES", 3)
    site.put("/feed", "".join(relation(f"/{name}") for name in "abcde"))
    for name in "abcde":
        site.put(f"/{name}", member(name, 1), immutable=True)
    reader = opened(f"{site.url}/feed")
    reader.read(lambda: "more than are remembered" in reader.transport.why)


def test_the_address_of_a_stream_leads_to_its_view(site: Site, opened: Open) -> None:
    site.put("/", "<#stream> tree:view </root> , </zoo> .")
    site.put("/root", relation("/a"))
    site.put("/a", member("a", 1), immutable=True)
    reader = opened(f"{site.url}/#stream")
    assert reader.read(reader.count(1)) == ["a"]
    assert site.times_asked("/zoo") == 0
    assert "stream of 0 pages" in try_stream(site.url + "/")
    site.put("/home", "")
    with pytest.raises(DataError, match="no stream"):
        try_stream(site.url + "/home")


TRIG = HEAD + (
    "<#stream> tree:member :g , :s . :g :at 3 . :g { :x :p [ :q 1 ] . :y :p 2 }\n"
    ":s :at 2 ; :in [ :room [ :name 'a' ] ] . :x :else 1 .\n<> ldes:immutable true .\n"
)


def test_a_named_graph_is_a_member_as_it_is_and_another_its_description() -> None:
    content = page_content(TRIG.encode(), "application/trig; charset=utf-8", "http://h/feed")
    described, named = content.members
    assert (described.id, described.time, named.id, named.time) == ("urn:x:s", "2", "urn:x:g", "3")
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert sorted(named.content.decode().splitlines()) == [
        "<urn:x:x> <urn:x:p> _:b0 .",
        f"<urn:x:y> <urn:x:p> {one.replace('1', '2', 1)} .",
        f"_:b0 <urn:x:q> {one} .",
    ]
    assert described.content.count(b"\n") == 4
    assert b"else" not in described.content
    assert content.immutable
    assert content == page_content(TRIG.encode(), "application/trig", "http://h/feed"), "each time the same"


def test_numbered_pages_are_spans() -> None:
    pages = PageSet()
    for number in (3, 1, 2, 7, 6, 10**12):
        pages.add(f"http://h/feed/{number}?x")
    pages.add("http://h/feed/latest")
    pages.add("http://h/feed/007")
    assert len(pages) == 5
    again = PageSet(json.loads(json.dumps(pages.stored())))
    for number in (1, 2, 3, 6, 7, 10**12):
        assert f"http://h/feed/{number}?x" in again
    for name in ("0?x", "4?x", "5?x", "8?x", "1", "1?y", "01?x", "other"):
        assert f"http://h/feed/{name}" not in again
    assert "http://h/feed/latest" in again
    assert "http://h/feed/007" in again
    assert "http://h/feed/7" not in again


@pytest.mark.parametrize("stored", [7, [1, 2], [[[], []], 3, []], "x"])
def test_a_position_that_is_none_is_damage(stored: Any) -> None:
    with pytest.raises(EngineError, match="position"):
        Progress(stored)

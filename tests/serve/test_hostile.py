"""Requests that no honest client sends: each is refused or closed, and the server answers all the while."""

from __future__ import annotations

import gzip
import json
import re
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from statistics import median

import pytest

from .servers import RULES, Server, hot, serving, smoke

LONG = "9" * 25
TURTLE = {"content-type": "text/turtle"}
JSON = {"content-type": "application/json"}
HOST = b"Host: localhost\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as one:
        one.post([hot(1), smoke(2), hot(3)], wait="committed")
        yield one
        assert one.client.get("/livez").status_code == 200
        assert not any("error" in line for line in one.log), one.log


def connected(server: Server) -> socket.socket:
    host, _, port = server.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def sent(server: Server, content: bytes, wait: float = 0.5) -> bytes:
    """What comes back for some bytes, until the server closes or is silent for so many seconds."""
    found = b""
    with connected(server) as one:
        one.settimeout(wait)
        try:
            one.sendall(content)
            while part := one.recv(65_536):
                found += part
        except (TimeoutError, ConnectionError) as error:
            if wait > 1:
                found += repr(error).encode()
    return found


class Pulse:
    """Owns a thread that asks all the time whether the server lives; `times`: how long each answer took."""

    def __init__(self, server: Server) -> None:
        self.server, self.times, self.failures = server, list[float](), list[str]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.05) or not self.times:  # once at least, however quick the rest is
            begun = time.monotonic()
            request = b"GET /livez HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
            answer = sent(self.server, request, 30)
            if not answer.endswith(b"ok\n"):
                self.failures.append(f"{time.monotonic() - begun:.1f} s: {answer[:100]!r}")
            self.times.append(time.monotonic() - begun)


@contextmanager
def alive(server: Server, mostly: float = 1, always: float = 15) -> Iterator[None]:
    """The server answers all the while, mostly within the promised second.

    Others compute on this machine at the same time.
    """
    pulse = Pulse(server)
    try:
        yield
    finally:
        pulse.end()
    assert not pulse.failures
    assert median(pulse.times) < mostly
    assert max(pulse.times) < always


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/events?after=-1", 400),
        ("GET", f"/v1/events?after={LONG}", 400),
        ("GET", f"/v1/events?after={'9' * 18}", 200),
        ("GET", f"/v1/events?since={LONG}", 400),
        ("GET", f"/v1/events/{LONG}", 404),
        ("GET", f"/v1/tokens/{LONG}", 404),
        ("GET", "/v1/events?rule=Fire'%20OR%201=1--", 404),
        ("GET", "/v1/events?where=room=%27;DROP%20TABLE%20outbox", 400),
        ("GET", "/v1/dead-letters?kind=%27%20OR%201=1", 200),
        ("GET", "/v1/events/urn:x%27%20OR%201=1", 404),
        ("GET", "/v1/watch/x%27%00", 400),
        ("GET", f"/v1/state?at={LONG}", 400),
        ("GET", f"/v1/why-not?rule=Fire&at={LONG}", 400),
        ("GET", f"/v1/events/1/why?depth={'9' * 18}", 200),
        ("POST", f"/v1/dead-letters/{LONG}/retry", 404),
        ("POST", f"/v1/dead-letters/{'9' * 5000}/retry", 404),
        ("DELETE", f"/v1/dead-letters/{LONG}", 404),
        ("DELETE", "/v1/rules/x';DROP%00", 404),
        ("POST", f"/v1/advance?to={LONG}", 400),
        ("POST", "/v1/streams/..%2f..%2fetc", 404),
        ("POST", "/v1/streams/in%27put", 404),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404),
    ],
)
def test_numbers_names_and_paths_are_what_they_say(
    server: Server, method: str, path: str, status: int
) -> None:
    assert server.client.request(method, path).status_code == status


@pytest.mark.parametrize(
    "name",
    [
        *(
            "..\\..\\x.dotr",
            "C:\\x.dotr",
            "./../x.dotr",
            "x/./../../y.dotr",
            "~/x.dotr",
            "x.dotr/",
            ".",
            "..",
        ),
        *("a\0b.dotr", "x\n.dotr", "a//b.dotr", "\u202e.dotr", "a" * 300 + ".dotr", "\ud800.dotr"),
    ],
)
def test_rule_files_have_plain_names(server: Server, name: str) -> None:
    bundle = json.dumps({"files": {name: RULES}, "roots": [name]})
    assert server.client.put("/v1/rules", content=bundle, headers=JSON).status_code in (400, 422)
    assert server.client.post("/v1/rules/check", content=bundle, headers=JSON).status_code in (200, 400)


def test_rules_do_not_follow_links(server: Server) -> None:
    (server.folder / "link.dotr").symlink_to("/etc/passwd")
    answer = server.client.put("/v1/rules?name=rules.dotr", content=f"IMPORT <link.dotr>\n{RULES}")
    assert answer.status_code == 422
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "body",
    ["[" * 100_000, '{"a":' * 100_000, '{"files":' + "[" * 5000 + "]" * 5000 + "}", "1" * 5000, "null"],
)
def test_bundles_do_not_nest(server: Server, body: str) -> None:
    assert server.client.put("/v1/rules", content=body, headers=JSON).status_code == 400


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("application/ld+json", b"[" * 200_000),
        ("application/ld+json", b'{"@context": "http://169.254.169.254/", "@id": "a"}'),
        ("application/x-ndjson", b'{"time": 1, "graph": ' + b"[" * 100_000),
        ("application/x-ndjson", b'{"time": 9, "graph": "\xff"}\n'),
        ("application/x-ndjson", b'{"time": 9, "graph": "<urn:a> <urn:b> \\"\\ud800\\" ."}\n'),
        ("application/x-ndjson", b'{"time": ' + b"9" * 5000 + b', "graph": ""}\n'),
        ("application/rdf+xml", b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>'),
        ("text/turtle", b"<urn:a> <urn:b> " + b"(" * 100_000),
        ("application/x-jelly-rdf", b"\xff" * 1000),
        ("application/n-triples", b"\0\0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_documents_that_cannot_be_read_are_refused(server: Server, media: str, body: bytes) -> None:
    headers = {"content-type": media}
    found = server.client.post("/v1/streams/input?wait=committed", content=body, headers=headers).json()
    assert found["state"] == "refused"
    assert "root:" not in json.dumps(found)
    assert server.client.post("/v1/streams/input?dry-run", content=body, headers=headers).status_code == 422


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { SERVICE <http://169.254.169.254/> { ?s ?p ?o } }",
        "LOAD <http://169.254.169.254/>",
        "SELECT * FROM <file:///etc/passwd> { ?s ?p ?o }",
        "INSERT DATA { <a> <b> <c> }",
        "SELECT * { FILTER(" + "(" * 20_000 + "1" + ")" * 20_000 + ") }",
        "SELECT * " + "{" * 3_000 + "}" * 3_000,
        "\xff\xfe",
    ],
    ids=range(7),
)
def test_queries_reach_nothing_else(server: Server, query: str) -> None:
    headers = {"content-type": "application/sparql-query"}
    content = query.encode("latin-1")
    assert server.client.post("/v1/sparql", content=content, headers=headers).status_code in (400, 422)


def test_endless_queries_hold_up_nobody(server: Server) -> None:
    query = "SELECT * { VALUES ?x {" + " 1" * 8_000 + "} VALUES ?y {" + " 1" * 8_000 + "} }"
    content = "POST /v1/sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\n"
    request = f"{content}Content-Length: {len(query)}\r\n\r\n{query}".encode()
    with alive(server):
        asked = [connected(server) for _ in range(6)]
        for one in asked:
            one.sendall(request)
        answer = server.post([hot(10), smoke(11)], wait="committed")
        assert answer.json()["state"] == "committed"
        for one in asked:
            one.close()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x16\x03\x01\x00\xa5junk\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
        (b"GET /livez HTTP/1.1\r\nOrigin: http://evil.example\r\n" + HOST + b"\r\n", 403),
        (b"GET /livez HTTP/1.1\r\nHost: evil.example\r\n" + HOST + b"\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nX: \0\r\n" + HOST + b"\r\n", 400),
        (b"GET /livez\xff HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (
            b"POST /v1/streams/input HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n"
            + HOST
            + b"\r\nabcd",
            400,
        ),
        (b"POST /v1/streams/input HTTP/1.1\r\nContent-Length: -1\r\n" + HOST + b"\r\nabcd", 400),
        (
            b"POST /v1/streams/input HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n" + HOST + b"\r\n0\r\n\r\n",
            400,
        ),
        (b"POST /v1/streams/input HTTP/1.1\r\nContent-Length: 1073741824\r\n" + HOST + b"\r\nxx", 413),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 403),
        (b"CONNECT x:1 HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    ],
    ids=range(13),
)
def test_what_is_not_http_is_refused(server: Server, request_: bytes, status: int) -> None:
    assert sent(server, request_).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_request_of_two_lengths_is_refused_and_ends_the_connection(server: Server) -> None:
    both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    inner = b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"
    answer = sent(server, b"POST /v1/streams/input HTTP/1.1\r\n" + HOST + both + inner)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    paths = [f"/v1/tokens/{n}" for n in range(100, 130)]
    requests = "".join(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n" for path in paths)
    answers = b""
    with connected(server) as one:
        one.settimeout(10)
        one.sendall(requests.encode())
        while answers.count(b"no document") < len(paths):
            answers += one.recv(65_536)
    assert [int(n) for n in re.findall(rb"no document `(\d+)`", answers)] == list(range(100, 130))


def test_headers_have_bounds(server: Server) -> None:
    with alive(server), connected(server) as one:
        one.sendall(b"GET /livez HTTP/1.1\r\n" + HOST)
        with pytest.raises(ConnectionError):  # noqa: PT012  # some line is the last
            for _ in range(200):
                one.sendall(b"X: " + b"a" * 4000 + b"\r\n")
                time.sleep(0.01)


def test_ids_that_are_none_begin_with_what_comes(server: Server) -> None:
    head = b"GET /v1/events HTTP/1.1\r\nAccept: text/event-stream\r\n" + HOST
    answer = sent(server, head + f"Last-Event-ID: {LONG}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_bodies_that_go_on_are_cut(server: Server) -> None:
    head = b"POST /v1/streams/input HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n"
    chunk = b"%x\r\n" % (1 << 20) + bytes(1 << 20) + b"\r\n"
    with alive(server), connected(server) as one:
        one.sendall(head)
        count = 0
        with pytest.raises(ConnectionError):  # noqa: PT012  # some chunk is the last
            while count < 1024:
                one.sendall(chunk)
                count += 1
        assert count < 64


def test_bombs_are_not_unpacked(server: Server) -> None:
    bomb = gzip.compress(bytes(1 << 27))
    with alive(server):
        headers = {**TURTLE, "content-encoding": "gzip"}
        answer = server.client.post("/v1/streams/input", content=bomb, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (413, "D4144")
    zstd = pytest.importorskip("zstandard")
    headers = {**TURTLE, "content-encoding": "zstd"}
    bomb = zstd.compress(bytes(1 << 26))
    assert server.client.post("/v1/streams/input", content=bomb, headers=headers).status_code == 413


def test_senders_that_go_away_are_no_error(server: Server) -> None:
    for head in (b"Content-Length: 100\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"):
        with connected(server) as one:
            one.sendall(b"POST /v1/streams/input HTTP/1.1\r\n" + HOST + head)
    time.sleep(0.1)
    assert server.client.get("/livez").status_code == 200


def test_floods_of_connections_do_not_keep_others_out(server: Server) -> None:
    most = min(4_500, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)
    host, _, port = server.url.removeprefix("http://").partition(":")
    flood: list[socket.socket] = []
    try:
        with alive(server, mostly=30, always=30):  # the kernel tries connections again after 1, 3, 7 and 15 s
            for number in range(most):
                one = socket.socket()
                one.setblocking(False)
                one.connect_ex((host, int(port)))
                flood.append(one)
                if not number % 100:
                    time.sleep(0.01)
            time.sleep(0.5)
    finally:
        for one in flood:
            one.close()


def test_slow_senders_are_closed(server: Server) -> None:
    with connected(server) as slow, connected(server) as silent, alive(server):
        silent.settimeout(20)
        begun = time.monotonic()
        with pytest.raises(ConnectionError):  # noqa: PT012  # some byte is the last
            while time.monotonic() - begun < 25:
                slow.sendall(b"G")
                time.sleep(0.5)
        assert time.monotonic() - begun < 20
        with suppress(ConnectionError):
            assert silent.recv(1) == b""

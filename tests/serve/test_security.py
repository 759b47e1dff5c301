"""Tokens, Host and Origin, limits of bodies: what gets through, and what is said of the rest."""

from __future__ import annotations

import asyncio
import gzip
import hmac
import json
import random
import select
import socket
import stat
import threading
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
import uvicorn

from dotr.errors import DataError, DotrError, RefusedError, UsageError
from dotr.serve import security
from dotr.serve.configuration import Override, Settings, Tls, read_configuration
from dotr.serve.security import (
    Limits,
    Message,
    Receive,
    Scope,
    Security,
    Send,
    Tokens,
    check_certificate,
    needed,
    new_token,
    refuse_unsafe,
)

LOCAL = "http://127.0.0.1:8080"


class Echo:
    """An application that answers with what came through."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.scopes: list[Scope] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        self.bodies.append(message["body"])
        self.scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"through"})


def ask(app: Any, method: str, path: str, host: str = LOCAL, **given: Any) -> httpx.Response:
    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=host) as client:
            return await client.request(method, path, **given)

    return asyncio.run(run())


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert (found["code"], found["status"], found["type"]) == (code, status, f"urn:dotr:error:{code}")
    return found


def guarded(tokens: Tokens | None = None, **settings: Any) -> tuple[Security, Echo]:
    echo = Echo()
    return Security(echo, Settings(**settings), tokens), echo


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# -- tokens


def test_a_new_token_is_found_again_and_only_its_hash_is_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "tokens")
    token = new_token(path, "sensor", ["write:kitchen", "read", "read"])
    text = Path(path).read_text()
    assert token not in text
    assert text == f"sensor write:kitchen,read {sha256(token.encode()).hexdigest()}\n"
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    row = Tokens.read(path).find(token.encode())
    assert row is not None
    assert (row.name, row.scopes) == ("sensor", {"write:kitchen", "read"})
    assert len(token) > 40
    assert new_token(path, "other", ["admin"]) != token
    assert [row.name for row in Tokens.read(path).rows] == ["sensor", "other"]


def test_a_prefix_another_case_or_the_hash_of_a_token_is_no_token(tmp_path: Path) -> None:
    path = str(tmp_path / "tokens")
    token = new_token(path, "a", ["read"])
    tokens = Tokens.read(path)
    wrong = [token[:-1], token[:10], "", token + "x", token.swapcase(), tokens.rows[0].digest, f" {token}"]
    assert [tokens.find(one.encode()) for one in wrong] == [None] * len(wrong)


def test_every_row_is_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those behind the row that fits."""
    path = str(tmp_path / "tokens")
    first, *_ = [new_token(path, name, ["read"]) for name in ("a", "b", "c")]
    tokens = Tokens.read(path)
    calls = 0
    real = hmac.compare_digest

    class Counting:
        @staticmethod
        def compare_digest(one: str, other: str) -> bool:
            nonlocal calls
            calls += 1
            return real(one, other)

    monkeypatch.setattr(security, "hmac", Counting)
    assert tokens.find(first.encode()) is tokens.rows[0]
    assert calls == 3


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a read", "a row has three words, not 2"),
        ("a reed " + "0" * 64, "`reed` is not a scope"),
        ("a write:a/b " + "0" * 64, "`write:a/b` is not a scope"),
        ("a read dotr_clear", "the hash of `a` is not 64 digits of SHA-256"),
        ("a read " + "0" * 63, "the hash of `a`"),
        ("a/b read " + "0" * 64, "this is not the name of a token"),
        (f"ok read {'0' * 64}", "the token `ok` stands here twice"),
    ],
)
def test_a_wrong_row_is_reported_with_its_place_and_not_shown(tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# who\n\nok read {'0' * 64}\n{row}\n")
    with pytest.raises(DataError) as error:
        Tokens.read(str(path))
    assert said in str(error.value)
    assert f"--> {path}:4:1" in str(error.value)
    assert "dotr_clear" not in str(error.value)


def test_a_file_of_tokens_is_there_and_has_one(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("# nobody\n")
    for path, code in (("tokens", "D4193"), ("none", "D2003")):
        with pytest.raises(DataError, match=code):
            Tokens.read(str(tmp_path / path))


def test_a_token_is_not_made_twice_or_for_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "tokens")
    new_token(path, "a", ["read"])
    with pytest.raises(RefusedError, match="D4195"):
        new_token(path, "a", ["read"])
    for name, scopes in (("a b", ["read"]), ("b", ["reed"]), ("b", []), ("b", ["write:"]), ("b", ["read "])):
        with pytest.raises(UsageError, match="D4195"):
            new_token(path, name, scopes)
    Path(path).write_text(Path(path).read_text().rstrip("\n"))  # an editor took the end of the line
    new_token(path, "c", ["read"])
    assert [row.name for row in Tokens.read(path).rows] == ["a", "c"]


# -- scopes


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "tokens")


@pytest.mark.parametrize(
    ("scopes", "method", "target", "allowed"),
    [
        ("read", "GET", "/v1/events", True),
        ("write", "GET", "/v1/events", False),
        ("read", "POST", "/v1/streams/kitchen", False),
        ("write", "POST", "/v1/streams/kitchen", True),
        ("write:kitchen", "POST", "/v1/streams/kitchen", True),
        ("write:kitchen", "POST", "/v1/streams/kitchen/", True),
        ("write:kitchen", "POST", "/v1/streams/lab", False),
        ("write:kitchen", "POST", "/v1/streams/kitchen2", False),
        ("write:kitchen", "POST", "/v1/streams/kitchen%2Flab", False),
        ("write:kitchen", "POST", "/v1/streams/../streams/lab", False),
        ("write:kitchen", "GET", "/v1/tokens/17", True),
        ("rules", "GET", "/v1/tokens/17", False),
        ("read", "POST", "/v1/sparql", True),
        ("read", "PUT", "/v1/rules", False),
        ("rules", "PUT", "/v1/rules", True),
        ("rules", "POST", "/v1/rules/check", True),
        ("rules", "DELETE", "/v1/rules/Fire", True),
        ("rules", "GET", "/v1/events", False),
        ("read", "POST", "/v1/pause", False),
        ("admin", "POST", "/v1/pause", True),
        ("admin", "GET", "/v1/events", False),
        ("read", "GET", "/v1/dead-letters", False),
        ("admin", "DELETE", "/v1/dead-letters/3", True),
        ("read", "GET", "/metrics", True),
        ("write", "GET", "/metrics", False),
        ("read,write,rules", "POST", "/what/is/this", False),
        ("read,write,rules", "PATCH", "/v1/events", False),
    ],
)
def test_a_token_does_what_its_scopes_say(
    path: str, scopes: str, method: str, target: str, allowed: bool
) -> None:
    token = new_token(path, "it", scopes.split(","))
    app, echo = guarded(Tokens.read(path))
    answer = ask(app, method, target, headers=bearer(token))
    if allowed:
        assert answer.text == "through"
        assert echo.scopes[0]["dotr.token"].name == "it"
    else:
        found = problem(answer, 403, "D4142")
        assert "insufficient_scope" in answer.headers["www-authenticate"]
        assert "it needs" in found["detail"]
        assert echo.bodies == []


@pytest.mark.parametrize("target", ["/", "/livez", "/readyz", "/v1/openapi.json", "/console/app.js"])
def test_what_says_nothing_needs_no_token(path: str, target: str) -> None:
    new_token(path, "it", ["read"])
    assert ask(guarded(Tokens.read(path))[0], "GET", target).status_code == 200


def test_without_or_with_an_unknown_token_nothing_is_read(path: str) -> None:
    token = new_token(path, "it", ["write", "read"])
    app, echo = guarded(Tokens.read(path))
    for headers in (
        {},
        bearer(""),
        {"Authorization": token},
        {"Authorization": f"Basic {token}"},
        bearer(token[:-1]),
        bearer(token + "x" * 100_000),
        [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")],
        {"Cookie": f"token={token}"},
    ):
        answer = ask(app, "POST", "/v1/streams/a", headers=headers, content=b"x")
        problem(answer, 401, "D4141")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert token not in answer.text
    problem(ask(app, "GET", f"/v1/events?token={token}"), 401, "D4141")
    assert echo.bodies == []


def test_the_scheme_of_a_token_is_of_any_case(path: str) -> None:
    token = new_token(path, "it", ["read"])
    headers = {"Authorization": f"bearer  {token}"}
    assert ask(guarded(Tokens.read(path))[0], "GET", "/v1/events", headers=headers).status_code == 200


def test_tokens_can_be_replaced_while_it_runs(path: str) -> None:
    token = new_token(path, "it", ["read"])
    app, _ = guarded(Tokens.read(path))
    app.tokens = Tokens([])
    problem(ask(app, "GET", "/v1/events", headers=bearer(token)), 401, "D4141")


def test_without_tokens_everybody_who_reaches_it_may_do_all() -> None:
    app, echo = guarded()
    assert ask(app, "PUT", "/v1/rules", content=b"x").text == "through"
    assert echo.scopes[0]["dotr.token"] is None


def test_an_unknown_path_needs_the_most() -> None:
    assert needed("POST", "/anything") == ("admin",)
    assert needed("POST", "/v1/streams/a{b}") == ["write:a{b}"]


# -- Host and Origin


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "127.0.0.1", "localhost:99", "LOCALHOST", "[::1]:8080"])
def test_this_machine_is_called_by_its_names(host: str) -> None:
    assert ask(guarded()[0], "GET", "/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example:8080", "localhost.evil.example", "10.0.0.1", "", "a@localhost",
     "localhost:80:80", "[::1", "evil.example#localhost", "localhost/evil"],
)  # fmt: skip
@pytest.mark.parametrize("target", ["/", "/v1/events", "/livez"])
def test_a_page_that_rebinds_its_name_to_this_machine_gets_nothing(host: str, target: str) -> None:
    app, echo = guarded()
    problem(ask(app, "GET", target, headers={"Host": host}), 403, "D4143")
    assert echo.bodies == []


def test_two_hosts_are_none() -> None:
    headers = [("Host", "localhost"), ("Host", "evil.example")]
    problem(ask(guarded()[0], "GET", "/", headers=headers), 403, "D4143")


def test_a_configured_name_is_served_and_numbers_where_others_reach_it() -> None:
    app, _ = guarded(hosts=["dotr.example.org"])
    for host in ("dotr.example.org", "DOTR.example.org:443", "dotr.example.org."):
        assert ask(app, "GET", "/", headers={"Host": host}).status_code == 200
    app, _ = guarded(listen="0.0.0.0:8080")
    assert ask(app, "GET", "/", headers={"Host": "10.0.0.1:8080"}).status_code == 200
    problem(ask(app, "GET", "/", headers={"Host": "evil.example"}), 403, "D4143")
    app, _ = guarded(listen="dotr.example.org:8080")
    assert ask(app, "GET", "/", headers={"Host": "dotr.example.org:8080"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:8080", "HTTP://127.0.0.1:8080", "https://127.0.0.1:8080"]
)
def test_its_own_pages_may_call_it(origin: str) -> None:
    """Behind a proxy that encrypts the scheme is another one than the server sees."""
    answer = ask(guarded()[0], "POST", "/v1/pause", headers={"Origin": origin})
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


def test_the_usual_port_need_not_be_there() -> None:
    headers = {"Host": "localhost", "Origin": "http://localhost:80"}
    assert ask(guarded()[0], "GET", "/", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:8081", "http://127.0.0.1:8080.evil.example",
     "http://evil.example:8080", "file://", "", "http://evil.example/127.0.0.1:8080"],
)  # fmt: skip
def test_pages_of_others_may_not(origin: str) -> None:
    app, echo = guarded(cors=["https://board.example.org"])
    problem(ask(app, "POST", "/v1/pause", headers={"Origin": origin}), 403, "D4143")
    answer = ask(app, "OPTIONS", "/v1/pause", headers={"Origin": origin})
    assert "access-control-allow-origin" not in answer.headers
    assert echo.bodies == []


def test_listed_pages_may_and_are_asked_for_a_token_all_the_same(path: str) -> None:
    token = new_token(path, "it", ["admin"])
    app, _ = guarded(Tokens.read(path), cors=["https://board.example.org"])
    origin = {"Origin": "https://board.example.org"}
    asked = ask(app, "OPTIONS", "/v1/pause", headers={**origin, "Access-Control-Request-Method": "POST"})
    assert asked.status_code == 204
    assert asked.headers["access-control-allow-origin"] == "https://board.example.org"
    assert "Authorization" in asked.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in asked.headers
    done = ask(app, "POST", "/v1/pause", headers={**origin, **bearer(token)})
    assert (done.text, done.headers["vary"]) == ("through", "Origin")
    refused = ask(app, "POST", "/v1/pause", headers=origin)
    problem(refused, 401, "D4141")
    assert refused.headers["access-control-allow-origin"] == "https://board.example.org"


def test_every_answer_has_the_headers_of_safety() -> None:
    app, _ = guarded()
    for host in (LOCAL, "http://evil.example"):
        headers = ask(app, "GET", "/", host=host).headers
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_a_websocket_is_not_opened() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    app, echo = guarded()
    asyncio.run(app({"type": "websocket", "headers": [], "path": "/"}, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]
    assert echo.bodies == []


# -- bodies


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    found: bytes = sink.getvalue().to_pybytes()
    return found


PACKED: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd}


@pytest.mark.parametrize("encoding", PACKED)
@pytest.mark.parametrize("size", [0, 10, 100_000])
def test_a_packed_body_comes_through_unpacked(encoding: str, size: int) -> None:
    content = random.Random(1).randbytes(size)
    app, echo = guarded()
    ask(
        app,
        "POST",
        "/v1/streams/a",
        headers={"Content-Encoding": encoding},
        content=PACKED[encoding](content),
    )
    assert echo.bodies == [content]
    names = dict(echo.scopes[0]["headers"])
    assert b"content-encoding" not in names
    assert names[b"content-length"] == str(len(content)).encode()


def test_members_of_gzip_follow_each_other() -> None:
    app, echo = guarded()
    content = gzip.compress(b"a") + gzip.compress(b"b")
    ask(app, "POST", "/v1/streams/a", headers={"Content-Encoding": "x-gzip"}, content=content)
    assert echo.bodies == [b"ab"]


@pytest.mark.parametrize("encoding", PACKED)
def test_a_bomb_is_not_unpacked(encoding: str) -> None:
    """100 times its length is refused before 64 MiB are reached."""
    app, echo = guarded()
    for size in (10 << 20, 80 << 20):
        bomb = PACKED[encoding](bytes(size))
        answer = ask(app, "POST", "/v1/streams/a", headers={"Content-Encoding": encoding}, content=bomb)
        assert "100 times its length" in problem(answer, 413, "D4144")["detail"]
    assert echo.bodies == []


def test_a_bomb_of_members_is_not_unpacked() -> None:
    app, _ = guarded()
    member = gzip.compress(bytes(1 << 20))
    answer = ask(app, "POST", "/v1/streams/a", headers={"Content-Encoding": "gzip"}, content=member * 2000)
    problem(answer, 413, "D4144")


def test_what_is_longer_than_the_limit_unpacked_is_refused() -> None:
    echo = Echo()
    app = Security(echo, Settings(), None, needed, Limits(unpacked=1000, small=1000))
    content = gzip.compress(bytes(range(256)) * 4)
    answer = ask(app, "POST", "/v1/streams/a", headers={"Content-Encoding": "gzip"}, content=content)
    assert "1,000 bytes" in problem(answer, 413, "D4144")["detail"]


@pytest.mark.parametrize("encoding", PACKED)
def test_a_damaged_body_is_refused(encoding: str) -> None:
    app, echo = guarded()
    content = PACKED[encoding](bytes(range(256)) * 100)
    for wrong in (b"plain", content[:-4], content[: len(content) // 2], content[:10] + b"zz" + content[12:]):
        answer = ask(app, "POST", "/v1/streams/a", headers={"Content-Encoding": encoding}, content=wrong)
        problem(answer, 400, "D4146")
    assert echo.bodies == []


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "gzip, zstd", "zip", "bzip2"])
def test_another_encoding_is_refused(encoding: str) -> None:
    content = zlib.compress(b"x")
    answer = ask(
        guarded()[0], "POST", "/v1/streams/a", headers={"Content-Encoding": encoding}, content=content
    )
    problem(answer, 415, "D4145")
    assert answer.headers["accept-encoding"] == "gzip, zstd"


def test_a_body_that_is_announced_too_long_is_not_read() -> None:
    read = 0

    async def receive() -> Message:
        nonlocal read
        read += 1
        return {"type": "http.request", "body": b"x", "more_body": True}

    status, closes = raw(receive, [(b"content-length", str(1 << 30).encode())])
    assert (status, closes, read) == (413, True, 0)


def test_a_body_without_a_length_is_counted() -> None:
    read = 0

    async def receive() -> Message:
        nonlocal read
        read += 1
        return {"type": "http.request", "body": bytes(1 << 20), "more_body": True}

    status, closes = raw(receive, [(b"transfer-encoding", b"chunked")])
    assert (status, closes, read) == (413, True, 17)
    assert raw(receive, [(b"content-length", b"5")])[0] == 413
    assert raw(receive, [(b"content-length", b"9" * 5000)])[0] == 413


def raw(receive: Receive, headers: list[tuple[bytes, bytes]]) -> tuple[int, bool]:
    """The status of a request as a server hands it over, and whether the connection ends."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    given = [(b"host", b"localhost"), *headers]
    app, echo = guarded()
    scope = {"type": "http", "method": "POST", "path": "/v1/streams/a", "headers": given}
    asyncio.run(app(scope, receive, send))
    assert echo.bodies == []
    return sent[0]["status"], (b"connection", b"close") in sent[0]["headers"]


def test_a_long_body_in_parts_comes_through_as_one() -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(16):
            yield bytes(1 << 20)

    app, echo = guarded()
    assert ask(app, "POST", "/v1/streams/a", content=parts()).status_code == 200
    assert [len(body) for body in echo.bodies] == [16 << 20]


@contextmanager
def served(app: Any) -> Iterator[int]:
    """The port of uvicorn around an application."""
    config = uvicorn.Config(app, port=0, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize(
    ("head", "part"),
    [
        (b"Content-Length: 1073741824\r\n\r\n", b"x" * 65536),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
    ],
    ids=["announced", "in chunks"],
)
def test_a_gigabyte_ends_early_on_a_real_connection(head: bytes, part: bytes) -> None:
    app, echo = guarded()
    sent = 0
    with served(app) as port, socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(b"POST /v1/streams/a HTTP/1.1\r\nHost: localhost\r\n" + head)
        answer = b""
        while b"D4144" not in answer and sent < 1 << 30:
            with suppress(OSError):  # the server goes, and what it said can still be read
                connection.sendall(part)
            sent += len(part)
            if select.select([connection], [], [], 0)[0]:
                if not (came := connection.recv(4096)):
                    break
                answer += came
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"D4144" in answer
    assert sent < 32 << 20
    assert echo.bodies == []


# -- before it starts


def settings(listen: str, **given: Any) -> Settings:
    return Settings(listen=listen, **given)


@pytest.mark.parametrize(
    "listen", ["0.0.0.0:80", "[::]:80", "10.1.2.3:80", "example.org:80", "[::ffff:7f00:1]:80"]
)
def test_an_address_that_others_reach_needs_tokens_and_encryption(listen: str) -> None:
    with pytest.raises(RefusedError) as error:
        refuse_unsafe(settings(listen))
    assert [one.code for one in error.value.diagnostics] == ["D4194", "D4194"]
    tls = Tls(cert="a", key="b")
    for given in ({"tokens": "t"}, {"tls": tls}, {"behind_proxy": True}):
        with pytest.raises(RefusedError):
            refuse_unsafe(settings(listen, **given))
    refuse_unsafe(settings(listen, tokens="t", tls=tls))
    refuse_unsafe(settings(listen, tokens="t", behind_proxy=True))


def test_this_machine_alone_needs_neither() -> None:
    for listen in ("127.0.0.1:0", "localhost:1", "[::1]:1"):
        refuse_unsafe(read_configuration(None, [Override("--listen", ("listen",), listen)]))


def test_a_certificate_is_tried_before_it_is_needed(tmp_path: Path) -> None:
    for name, text in (("cert", "no PEM"), ("key", "no PEM")):
        (tmp_path / name).write_text(text)
    for cert in ("cert", "none"):
        with pytest.raises(DotrError, match="D4196"):
            check_certificate(Settings(tls=Tls(cert=str(tmp_path / cert), key=str(tmp_path / "key"))))
    check_certificate(Settings())


def test_a_problem_is_json_with_the_code_and_hint_of_dotr() -> None:
    found = json.loads(security.Problem(403, DataError.of("D4143", "no", hint="do", place="x:1")).body())
    assert found == {
        "type": "urn:dotr:error:D4143",
        "title": "Forbidden",
        "status": 403,
        "detail": "no",
        "code": "D4143",
        "place": "x:1",
        "hint": "do",
    }

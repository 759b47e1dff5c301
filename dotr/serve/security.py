"""Who may do what, from where, and how much of it: tokens, Host and Origin, limits of bodies, headers.

Place:   `Security` stands around the whole application (ASGI); nothing is routed, read or unpacked before it
         has looked. `dotr serve token new` makes tokens; `refuse_unsafe` is asked before a port is opened.
Method:  Tokens: a file of `name scopes sha256`. A token is 32 random bytes, so one round of SHA-256 is
         enough; its hash is compared with every row in constant time, whichever fits. It is taken from
         `Authorization` alone: no cookie, so no page can make a browser send it, and no query, so no log has
         it.
         Host: a page that lets its own name resolve to this machine (DNS rebinding) sends that name. Names of
         this machine and those of `hosts` are served; where the address is no loopback, numbers are, too: a
         page that rebinds has a name. Origin: what a browser says of a page must be the host that it calls,
         or be listed in `cors`.
         Bodies: read whole, counted while they come, so that a length that lies or is missing changes
         nothing; then unpacked in steps, up to 64 MiB and 100 times of what came.
Why not: Starlette's middleware: CORSMiddleware answers pages that are not listed, too, and BaseHTTPMiddleware
         breaks streams. bcrypt and the like: for what humans choose.
Bad input: D4141 no token, or one that is not known · D4142 not among its scopes · D4143 Host or Origin ·
         D4144 too large · D4145 an encoding · D4146 a damaged body · D4193 the file of tokens · D4194 an
         address that others reach, unprotected · D4195 a name or a scope of a new token · D4196 TLS.
"""

from __future__ import annotations

import asyncio
import hmac
import io
import ipaddress
import json
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from msgspec import Struct

from dotr.errors import DataError, Diagnostic, DotrError, RefusedError, UsageError
from dotr.io.decode.documents import DamagedError, decode, unpacked, unreadable
from dotr.lang.grammar.cursor import nearest
from dotr.serve.configuration import Settings, read_secret
from dotr.source import Source, Span

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

# -- tokens

READ, WRITE, RULES, ADMIN = SCOPES = ("read", "write", "rules", "admin")
"""What a token may be for; `write:STREAM` is for one stream. None includes another."""

_LONGEST = 512
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_STREAM = re.compile(r"write:[A-Za-z][A-Za-z0-9_-]{0,63}")


class Token(Struct, frozen=True):
    """A row of the file: a name, what it may do, and the hash of the token."""

    name: str
    scopes: frozenset[str]
    digest: str

    def may(self, need: str) -> bool:
        """Whether a scope, or that of all streams, is among its own. `write:*`: any scope of a stream."""
        if need == "write:*":
            return any(scope == WRITE or scope.startswith("write:") for scope in self.scopes)
        return need in self.scopes or need.partition(":")[0] in self.scopes


class Tokens:
    """Owns the rows of a file of tokens."""

    def __init__(self, rows: Sequence[Token]) -> None:
        self.rows = tuple(rows)

    @classmethod
    def read(cls, path: str) -> Tokens:
        """Raises DataError D4193 with every row that is wrong, and for a file without any."""
        try:
            with open(path, "rb") as file:
                text = decode(file.read(1 << 20), path)
        except OSError as error:
            raise unreadable(path, error) from None
        source, start = Source(path, text), 0
        found: list[Diagnostic] = []
        rows: list[Token] = []
        for line in text.split("\n"):
            words = line.split()
            if words and not words[0].startswith("#"):
                wrong = _wrong(words, {row.name for row in rows})
                if wrong:  # the line is not shown: somebody may have put a token there
                    place = str(Span(source, start, start + 1))
                    found.append(Diagnostic("D4193", wrong, place=place, hint=_ROW))
                else:
                    rows.append(Token(words[0], frozenset(words[1].split(",")), words[2]))
            start += len(line) + 1
        if not rows and not found:
            found.append(Diagnostic("D4193", f"`{path}` has no token", place=path, hint=_NEW))
        if found:
            raise DataError(found)
        return cls(rows)

    def find(self, secret: bytes) -> Token | None:
        """The row of a token. Every row is compared, each in constant time."""
        given, found = sha256(secret).hexdigest(), None
        for row in self.rows:
            if hmac.compare_digest(row.digest, given):
                found = row
        return found


_ROW = "a line is `name scopes sha256`; `dotr serve token new` makes them"
_NEW = "dotr serve token new NAME --scopes read,write"


def _wrong(words: Sequence[str], names: set[str]) -> str:
    """What is wrong with a row."""
    if len(words) != 3:
        return f"a row has three words, not {len(words)}"
    name, scopes, digest = words
    if not _NAME.fullmatch(name):
        return "this is not the name of a token"
    if name in names:
        return f"the token `{name}` stands here twice"
    if unknown := _unknown_scope(scopes.split(",")):
        return f"`{unknown}` is not a scope"
    return "" if _DIGEST.fullmatch(digest) else f"the hash of `{name}` is not 64 digits of SHA-256"


def _unknown_scope(scopes: Sequence[str]) -> str | None:
    return next((s for s in scopes if s not in SCOPES and not _STREAM.fullmatch(s)), None)


def new_token(path: str, name: str, scopes: Sequence[str]) -> str:
    """Make a token and append its row to the file; nothing but the result has the token itself.

    Raises UsageError D4195, RefusedError D4195 for a name that is there, DataError D4193.
    """
    if not _NAME.fullmatch(name):
        hint = "letters, digits, ., - and _, at most 64"
        raise UsageError.of("D4195", f"`{name}` is not the name of a token", hint=hint)
    unknown = _unknown_scope(scopes)
    if unknown is not None or not scopes:
        hint = nearest(unknown or "", SCOPES) or f"scopes are {', '.join(SCOPES)} and write:STREAM"
        raise UsageError.of("D4195", f"`{unknown or ''}` is not a scope", hint=hint)
    before = Tokens.read(path).rows if _has_rows(path) else ()
    if any(row.name == name for row in before):
        hint = "take its line out of the file to end it, or choose another name"
        raise RefusedError.of("D4195", f"there is a token `{name}` in `{path}`", place=path, hint=hint)
    token = f"dotr_{secrets.token_urlsafe(32)}"
    row = f"{name} {','.join(dict.fromkeys(scopes))} {sha256(token.encode()).hexdigest()}\n"
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        torn = size > 0 and file.read(1) != b"\n"
        file.write((f"\n{row}" if torn else row).encode())
        file.flush()
        os.fsync(file.fileno())
    return token


def _has_rows(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            return any(line.split("#", 1)[0].strip() for line in file)
    except (FileNotFoundError, UnicodeDecodeError):
        return os.path.exists(path)


# -- before it starts


def refuse_unsafe(settings: Settings) -> None:
    """Raise RefusedError D4194 for an address that others reach without tokens or encryption."""
    if settings.loopback:
        return
    found = []
    if settings.tokens is None:
        message = f"`{settings.listen}` is reached by others, and there are no tokens"
        hint = "name a file with `tokens:` or --tokens; `dotr serve token new` writes it"
        found.append(Diagnostic("D4194", message, hint=hint))
    if settings.tls is None and not settings.behind_proxy:
        message = f"`{settings.listen}` is reached by others, and tokens would go there unencrypted"
        hint = (
            "give `tls:` a certificate, say `behind-proxy: true` if a proxy encrypts, or listen on 127.0.0.1"
        )
        found.append(Diagnostic("D4194", message, hint=hint))
    if found:
        raise RefusedError(found)


def check_certificate(settings: Settings) -> None:
    """Raise DataError D4196 if the certificate and the key of `tls` cannot be used, D4192 its password."""
    if settings.tls is None:
        return
    import ssl  # noqa: PLC0415  # start-up: most servers have none

    tls = settings.tls
    password = read_secret(tls.password) if tls.password is not None else ""
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tls.cert, tls.key, password)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        message = f"the certificate `{tls.cert}` cannot be used with the key `{tls.key}`"
        raise DataError.of("D4196", message, label=str(reason).lower().replace("_", " ")) from None


# -- problems


class Problem(Exception):  # noqa: N818  # RFC 9457 calls it that
    """A request that is not answered as it was asked: RFC 9457, with dotr's diagnostics."""

    def __init__(
        self,
        status: int,
        found: Diagnostic | DotrError,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.diagnostics = (found,) if isinstance(found, Diagnostic) else found.diagnostics
        self.headers = dict(headers or {})
        super().__init__(self.diagnostics[0].message)

    def body(self) -> bytes:
        """`application/problem+json`."""
        first = self.diagnostics[0]
        value: dict[str, Any] = {
            "type": f"urn:dotr:error:{first.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": first.message,
            **_told(first),
        }
        if len(self.diagnostics) > 1:
            value["diagnostics"] = [{"message": d.message, **_told(d)} for d in self.diagnostics]
        return f"{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}\n".encode()


def _told(one: Diagnostic) -> dict[str, Any]:
    """What of a diagnostic says more than its message."""
    place = one.place if one.span is None else str(one.span)
    told = {"code": one.code, "place": place, "found": one.label, "hint": one.hint, "notes": list(one.notes)}
    return {name: value for name, value in told.items() if value}


# -- bodies


class Limits(Struct, frozen=True):
    """Bytes of a body as it comes and unpacked, and how many times longer that may be. A body of a few bytes
    may become `small` ones whatever it was.
    """

    body: int = 16 << 20
    unpacked: int = 64 << 20
    ratio: int = 100
    small: int = 64 << 10


_MAGIC: Final = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
ENCODINGS: Final = tuple(_MAGIC)
_STEP = 1 << 20


def unpack(content: bytes, encoding: str, limits: Limits) -> bytes:
    """A body without its `Content-Encoding`. Raises Problem: 400 damaged, 413 too long unpacked."""
    if not content.startswith(_MAGIC[encoding]):
        raise Problem(400, Diagnostic("D4146", f"the body is not {encoding}, as it says"))
    most = min(limits.unpacked, max(limits.ratio * len(content), limits.small))
    parts, size = [], 0
    try:
        reader = unpacked(io.BytesIO(content), content[:10], "the body")
        assert reader is not None
        with reader:
            while part := reader.read(min(_STEP, most + 1 - size)):
                parts.append(part)
                size += len(part)
                if size > most:
                    raise Problem(413, _too_long_unpacked(most, limits))
    except (DamagedError, EOFError) as error:
        message = f"the body is damaged: {error}"
        raise Problem(400, Diagnostic("D4146", message, hint="send it again")) from None
    return b"".join(parts)


def _too_long_unpacked(most: int, limits: Limits) -> Diagnostic:
    least = f"{limits.unpacked:,} bytes" if most == limits.unpacked else f"{limits.ratio} times its length"
    return Diagnostic("D4144", f"the body is longer than {least} when it is unpacked", hint=_PARTS)


_PARTS = "send it in parts"


# -- around the application

_OPEN = ()
Needs: TypeAlias = Callable[[str, str], Sequence[str]]
"""(method, path) → the scopes one of which a token must have; none: nobody need show one."""

_READING = frozenset(("GET", "HEAD"))
NEEDS: Final[Sequence[tuple[frozenset[str] | None, re.Pattern[str], Sequence[str]]]] = (
    (frozenset(("POST",)), re.compile(r"/v1/streams/([^/]+)/?"), ("write:{}",)),
    (_READING, re.compile(r"/v1/tokens/.*"), (READ, "write:*")),
    (_READING, re.compile(r"/v1/openapi\.json"), _OPEN),
    (_READING, re.compile(r"/v1/dead-letters.*"), (ADMIN,)),
    (_READING, re.compile(r"(/v1|/metrics)(/.*)?"), (READ,)),
    (frozenset(("POST",)), re.compile(r"/v1/sparql/?"), (READ,)),
    (None, re.compile(r"/v1/(planned-)?rules(/.*)?"), (RULES,)),
    (_READING, re.compile(r".*"), _OPEN),
    (frozenset(("OPTIONS",)), re.compile(r".*"), _OPEN),
)
"""Methods (None: all), paths, and scopes of which one is needed. The first row decides; without one it is
`admin`.
"""


def needed(method: str, path: str) -> Sequence[str]:
    """The scopes of which a request needs one."""
    for methods, pattern, scopes in NEEDS:
        if (methods is None or method in methods) and (found := pattern.fullmatch(path)):
            return [scope.format(*found.groups()) for scope in scopes]
    return (ADMIN,)


_CSP = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS: Final = (
    (b"content-security-policy", _CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
"""Of every answer, unless the application gives its own."""

_ASKED = (
    *("Authorization", "Content-Type", "Content-Encoding", "Dotr-Time"),
    *("Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID"),
)
_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, DELETE"),
    (b"access-control-allow-headers", ", ".join(_ASKED).encode()),
    (b"access-control-max-age", b"600"),
)
_EXPOSED: Final = (b"access-control-expose-headers", b"ETag, Link, Location, Retry-After")


class Security:
    """Owns who is let through to an application. `tokens` None: everybody who reaches the address; it may be
    replaced while requests are served. What an application finds as `scope["dotr.token"]` is the row of the
    token, None where there are no tokens or none was needed.
    """

    def __init__(
        self,
        app: App,
        settings: Settings,
        tokens: Tokens | None = None,
        needs: Needs = needed,
        limits: Limits | None = None,
    ) -> None:
        self.app = app
        self.settings = settings
        self.tokens = tokens
        self._needs = needs
        self._limits = limits or Limits()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there is no WebSocket
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        headers: list[tuple[bytes, bytes]] = [*HEADERS]

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [(name.lower(), value) for name, value in message.get("headers", ())]
                own = {name for name, _ in given}
                added = (pair for pair in headers if pair[0] not in own or pair[0] == b"vary")
                message["headers"] = [*given, *added]
            await send(message)

        try:
            if (origin := self._origin(scope)) is not None:
                headers += [(b"access-control-allow-origin", origin), _EXPOSED]
            if self.settings.cors:
                headers.append((b"vary", b"Origin"))
            if origin is not None and scope["method"] == "OPTIONS":
                await _answer(guarded, 204, _PREFLIGHT, b"")
                return
            scope["dotr.token"] = self._token(scope)
            body = await self._body(scope, receive)
        except Problem as problem:
            await answer_problem(guarded, problem)
            return
        if body is not None:
            await self.app(scope, body, guarded)

    def _origin(self, scope: Scope) -> bytes | None:
        """Check Host and Origin; an origin of another page that is listed. Raises Problem 403."""
        hosts, origins = _all(scope, b"host"), _all(scope, b"origin")
        host = _host_of(hosts[0]) if len(hosts) == 1 else ""
        if not self._serves(host):
            shown = hosts[0].decode("latin-1")[:100] if hosts else ""
            message = f"this server is not called `{shown}`"
            raise Problem(403, Diagnostic("D4143", message, hint="name it in `hosts:`, or use its address"))
        if not origins:
            return None
        scheme, _, authority = origins[0].lower().partition(b"://")
        if len(origins) == 1 and _authority(authority, scheme) == _authority(hosts[0].lower(), scheme):
            return None
        if len(origins) == 1 and origins[0].decode("latin-1").lower() in self.settings.cors:
            return origins[0]
        shown = origins[0].decode("latin-1")[:100]
        message = f"pages of `{shown}` may not call this server"
        raise Problem(403, Diagnostic("D4143", message, hint="list it in `cors:`"))

    def _serves(self, host: str) -> bool:
        if host == "localhost" or host in self.settings.hosts or f"[{host}]" in self.settings.hosts:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return not self.settings.loopback and host == self.settings.host.lower()
        return address.is_loopback or not self.settings.loopback

    def _token(self, scope: Scope) -> Token | None:
        """The token of a request. Raises Problem 401, 403."""
        needs = self._needs(scope["method"], scope["path"])
        if self.tokens is None or not needs:
            return None
        given = _all(scope, b"authorization")
        kind, _, secret = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        if kind.lower() != b"bearer" or not secret.strip():
            message = "this needs a token"
            hint = "Authorization: Bearer TOKEN; `dotr serve token new` makes one"
            raise Problem(401, Diagnostic("D4141", message, hint=hint), _BEARER)
        token = self.tokens.find(secret.strip()) if len(secret) <= _LONGEST else None
        if token is None:
            headers = {"www-authenticate": 'Bearer realm="dotr", error="invalid_token"'}
            raise Problem(401, Diagnostic("D4141", "this token is not known", hint=""), headers)
        if not any(token.may(need) for need in needs):
            words = " or ".join(f"`{need}`" for need in needs)
            message = f"the token `{token.name}` may not do this: it needs {words}"
            headers = {"www-authenticate": 'Bearer realm="dotr", error="insufficient_scope"'}
            hint = f"its scopes are {', '.join(sorted(token.scopes))}"
            raise Problem(403, Diagnostic("D4142", message, hint=hint), headers)
        return token

    async def _body(self, scope: Scope, receive: Receive) -> Receive | None:
        """Read a body, counted and unpacked; what gives it to the application, None where its sender went
        away. Raises Problem.
        """
        if _all(scope, b"transfer-encoding") and _all(scope, b"content-length"):
            message = "a request has a Content-Length or a Transfer-Encoding, not both"
            hint = "a proxy could read two requests where this server reads one (RFC 9112, 6.1)"
            raise Problem(400, Diagnostic("D4146", message, hint=hint), _CLOSE)
        encodings = [e.strip().lower() for v in _all(scope, b"content-encoding") for e in v.split(b",")]
        encodings = [e for e in encodings if e and e != b"identity"]
        encoding = encodings[0].decode("latin-1").removeprefix("x-") if encodings else ""
        if len(encodings) > 1 or (encoding and encoding not in ENCODINGS):
            shown = b", ".join(encodings).decode("latin-1")[:100]
            message = f"a body encoded by `{shown}` is not read"
            hint = f"Content-Encoding: {' or '.join(ENCODINGS)}"
            headers = {"accept-encoding": ", ".join(ENCODINGS), **_CLOSE}
            raise Problem(415, Diagnostic("D4145", message, hint=hint), headers)
        most = self._limits.body
        for length in _all(scope, b"content-length"):
            if length.isdigit() and int(length[:30]) > most:
                raise _too_long(most)
        parts, size = [], 0
        while True:
            came = await receive()
            if came["type"] != "http.request":
                return None
            parts.append(came.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise _too_long(most)
            if not came.get("more_body", False):
                break
        content = b"".join(parts)
        if encoding and content:
            if len(content) > 4096:
                content = await asyncio.to_thread(unpack, content, encoding, self._limits)
            else:  # at most 409,600 bytes: done before a thread has begun
                content = unpack(content, encoding, self._limits)
        kept = [pair for pair in scope["headers"] if pair[0] not in (b"content-encoding", b"content-length")]
        scope["headers"] = [*kept, (b"content-length", str(len(content)).encode())]
        return _given([{"type": "http.request", "body": content, "more_body": False}], receive)


_BEARER: Final = {"www-authenticate": 'Bearer realm="dotr"'}
_CLOSE: Final = {"connection": "close"}


def _too_long(most: int) -> Problem:
    return Problem(413, Diagnostic("D4144", f"the body has more than {most:,} bytes", hint=_PARTS), _CLOSE)


def _given(messages: list[Message], receive: Receive) -> Receive:
    """What gives some messages, then those that come."""

    async def next_() -> Message:
        return messages.pop(0) if messages else await receive()

    return next_


def _all(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _host_of(value: bytes) -> str:
    """The host of a Host header, without its port; "" for what is none."""
    text = value.decode("latin-1").lower()
    found = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+?)\.?)(?::[0-9]{1,5})?", text)
    return "" if found is None else found[1] or found[2]


def _authority(value: bytes, scheme: bytes) -> bytes:
    """Host and port, the port of a scheme left out."""
    return value.removesuffix({b"http": b":80", b"https": b":443"}.get(scheme, b":"))


async def answer_problem(send: Send, problem: Problem) -> None:
    """Send a problem as the answer."""
    headers = [(name.encode(), value.encode()) for name, value in problem.headers.items()]
    headers.append((b"content-type", b"application/problem+json"))
    await _answer(send, problem.status, headers, problem.body())


async def _answer(send: Send, status: int, headers: Headers, body: bytes) -> None:
    headers = [*headers, *([(b"content-length", str(len(body)).encode())] if status != 204 else [])]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

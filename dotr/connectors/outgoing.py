"""Requests over HTTP to hosts that the configuration names.

Place:   webhook.py posts by it, ldes.py and upstream.py read.
Method:  a name that resolves to a link-local address (where clouds keep their secrets) is not connected to,
         and the address that was checked is the one that is connected to. The head of an answer has a
         bound in seconds, and so has its body unless it is read on and on (`end_by`): a socket's own timeout
         begins again with every byte. An answer that is read whole has a bound in bytes, too.
Why not: requests, httpx: http.client does what is needed, and follows nothing by itself.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import socket
import ssl
import string
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import SplitResult, quote

TIMEOUT: Final = 15.0
"""Seconds for a connection, and for the next bytes of an answer."""

MOST: Final = 16 << 20
"""Bytes of an answer that is read whole."""

WHOLE: Final = 60.0
"""Seconds for the head of an answer, and for an answer that is read whole."""

_PART: Final = 1 << 16

Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""Host and port → addresses."""


class Answer(NamedTuple):
    """An answer that was read whole; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


def addresses(host: str, port: int) -> list[str]:
    """Those that the system knows. Raises OSError."""
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # a label that is empty or too long
        raise OSError(f"{host[:80]} is not the name of a host") from None
    return [str(row[4][0]) for row in rows]


def connection_to(
    url: SplitResult, resolve: Resolve = addresses, timeout: float = TIMEOUT
) -> http.client.HTTPConnection:
    """A connection that is not open yet. Raises OSError, for a link-local address, too."""
    host, port, secure = url.hostname or "", url.port, url.scheme == "https"
    found = list(resolve(host, port or (443 if secure else 80)))
    for address in found:
        if is_forbidden(address):
            raise OSError(f"{host} is the address {address}, which is link-local")
    return (_Secure if secure else _Plain)(host, port, found[0], timeout)


def try_connection(url: SplitResult, resolve: Resolve = addresses) -> str:
    """Connect and let go, and say to what; nothing is sent. Raises OSError."""
    connection = connection_to(url, resolve)
    try:
        connection.connect()
    finally:
        connection.close()
    return f"{url.netloc} accepts connections"


def target_of(url: SplitResult) -> str:
    """Path and query, as a request has them: what is no ASCII is percent-encoded, all else is as it is."""
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    return quote(target, safe=string.punctuation)


def headers_of(response: http.client.HTTPResponse) -> dict[str, str]:
    """By names in lower case."""
    return {name.lower(): value for name, value in response.getheaders()}


def get(connection: http.client.HTTPConnection, target: str, headers: Mapping[str, str]) -> Answer:
    """Ask, and read the answer whole. Raises OSError, also for one that is too long or takes too long, and
    HTTPException.
    """
    connection.request("GET", target, headers=dict(headers))
    response = connection.getresponse()
    end_by(response, WHOLE)
    found = headers_of(response)
    if found.get("content-encoding", "identity").lower() != "identity":
        raise OSError("the answer is compressed, which was not asked for")
    parts: list[bytes] = []
    size = 0
    while part := response.read1(_PART):
        parts.append(part)
        size += len(part)
        if size > MOST:
            raise OSError(f"the answer has more than {MOST:,} bytes")
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    response.close()  # else the connection takes no other request
    return Answer(response.status, found, b"".join(parts))


def is_forbidden(address: str) -> bool:
    """Whether an address is not connected to: link-local, or nobody's."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found.is_link_local or found.is_multicast or found.is_unspecified


def retry_after(headers: Mapping[str, str], clock: Callable[[], float] = time.time) -> float | None:
    """Seconds after which the other side wants to be asked again; None where it does not say."""
    text = headers.get("retry-after", "")
    if text.isascii() and text.isdigit():
        return float(text[:6])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - clock())
    except (ValueError, TypeError, OverflowError):
        return None


def wake(connection: http.client.HTTPConnection | None) -> None:
    """Let a thread that waits for bytes of a connection find its end."""
    sock = None if connection is None else connection.sock
    if sock is not None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _connected(address: str, port: int, seconds: float) -> socket.socket:
    """A connection that does not hold a body back until its head is acknowledged, 40 ms."""
    made = socket.create_connection((address, port), seconds)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


class _Timely(io.RawIOBase):
    """Owns the bytes of an answer as they come, until a moment."""

    def __init__(self, inner: io.RawIOBase) -> None:
        self._inner = inner
        self.seconds = 0.0
        self.until: float | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.until is not None and time.monotonic() > self.until:
            raise TimeoutError(f"the answer takes more than {self.seconds:g} s")
        return self._inner.readinto(buffer)

    def close(self) -> None:
        self._inner.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """An answer whose head has to be there in time."""

    def __init__(self, sock: socket.socket, *more: Any, **named: Any) -> None:
        super().__init__(sock, *more, **named)
        self.fp.close()
        self.timely = _Timely(sock.makefile("rb", buffering=0))
        self.fp = io.BufferedReader(self.timely)

    def begin(self) -> None:
        end_by(self, WHOLE)
        super().begin()
        end_by(self, None)


def end_by(response: http.client.HTTPResponse, seconds: float | None) -> None:
    """What is read from now on has to come in so many seconds, else TimeoutError; None: whenever it does."""
    if isinstance(response, _Response):
        response.timely.seconds = seconds or 0.0
        response.timely.until = None if seconds is None else time.monotonic() + seconds


class _Plain(http.client.HTTPConnection):
    """A connection to an address that was looked up before."""

    response_class = _Response

    def __init__(self, host: str, port: int | None, address: str, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self._address, self._seconds = address, timeout

    def connect(self) -> None:
        self.sock = _connected(self._address, self.port, self._seconds)


class _Secure(http.client.HTTPSConnection):
    """The same, encrypted; the certificate has to be that of the host."""

    response_class = _Response

    def __init__(self, host: str, port: int | None, address: str, timeout: float) -> None:
        self._context_of = ssl.create_default_context()
        super().__init__(host, port, timeout=timeout, context=self._context_of)
        self._address, self._seconds = address, timeout

    def connect(self) -> None:
        plain = _connected(self._address, self.port, self._seconds)
        self.sock = self._context_of.wrap_socket(plain, server_hostname=self.host)

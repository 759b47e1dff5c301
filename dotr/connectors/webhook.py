"""Events as signed posts to a URL, by Standard Webhooks: at least once, with the id of the event.

Place:   an output of `dotr serve`; service/cursors.py calls `give` and repeats what failed.
Method:  a post has the headers `webhook-id` (the event's id, the same each time), `webhook-timestamp` and
         `webhook-signature`: HMAC-SHA256 over id, timestamp and body, by which a receiver knows that it is
         from us, fresh, and whole. 2xx is an acknowledgement. 410 ends it, `Retry-After` is heeded, and
         everything else is tried again: 3xx, too, since a redirect is followed nowhere.
         `strict`: one after another. `any`: up to eight at a time; what was taken out of order is
         remembered and not sent again by this process.
         A body of one's own is a string in which `{name}` is a variable of the rule, or `rule`, `time`, `id`,
         `number`; what is put there is escaped for a JSON string, and nothing is evaluated.
         Addresses: a name that resolves to a link-local address (where clouds keep their secrets) is not
         connected to, and the address that was looked at is the one that is connected to.
Why not: requests, httpx: http.client posts, and follows nothing by itself.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import ipaddress
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from dotr.errors import DataError
from dotr.service.cursors import NotDeliveredError
from dotr.service.logs import OutboxRow
from dotr.version import __version__

Order: TypeAlias = Literal["strict", "any"]

TIMEOUT: Final = 15.0
"""Seconds for a connection, and for an answer."""

_TOGETHER: Final = 8
_PLACE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PREFIX: Final = "whsec_"


def secret_of(text: str) -> bytes:
    """The key of a secret: base64 after `whsec_`, as receivers have it, else its bytes. Raises DataError
    D4192.
    """
    if not text.startswith(_PREFIX):
        return text.encode()
    try:
        return base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except ValueError:
        raise DataError.of("D4192", "the secret of a webhook is not base64 after `whsec_`") from None


def signature(key: bytes, id_: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`."""
    signed = f"{id_}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()


def body_of(row: OutboxRow, template: str | None) -> bytes:
    """What is posted for an event."""
    if template is None:
        event = json.loads(row.line)
        value = {"type": row.rule, "timestamp": event["time"], "data": {"number": row.number, **event}}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    event = json.loads(row.line)
    values: dict[str, str] = {
        name: str(term["value"]) for name, term in event["bindings"].items() if term is not None
    }
    values |= {"rule": row.rule, "time": str(event["time"]), "id": row.id, "number": str(row.number)}

    def put(found: re.Match[str]) -> str:
        value = values.get(found[1])
        return found[0] if value is None else json.dumps(value, ensure_ascii=False)[1:-1]

    return _PLACE.sub(put, template).encode()


class Webhook:
    """Owns the threads that post. `clock` gives the time of a post; `resolve` the addresses of a host."""

    def __init__(
        self,
        url: str,
        secret: bytes = b"",
        order: Order = "strict",
        body: str | None = None,
        *,
        clock: Callable[[], float] = time.time,
        resolve: Callable[[str, int], Sequence[str]] | None = None,
    ) -> None:
        self.identity = url
        self._url, self._secret, self._body = urlsplit(url), secret, body
        self._clock, self._resolve = clock, resolve or _addresses
        self._taken: set[int] = set()
        self._pool = ThreadPoolExecutor(_TOGETHER, "dotr-webhook") if order == "any" else None

    def close(self) -> None:
        """Let go of the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def give(self, rows: Sequence[OutboxRow]) -> int:
        """See `Receiver`."""
        if self._pool is None:
            self._post(rows[0])
            return 1
        asked = [
            (row, self._pool.submit(self._post, row))
            for row in rows[: 2 * _TOGETHER]
            if row.number not in self._taken
        ]
        failed: NotDeliveredError | None = None
        for row, future in asked:
            try:
                future.result()
                self._taken.add(row.number)
            except NotDeliveredError as error:
                failed = error if failed is None or error.gone else failed
        count = 0
        while count < len(rows) and rows[count].number in self._taken:
            self._taken.discard(rows[count].number)
            count += 1
        if failed is not None and (failed.gone or not count):
            raise failed
        return count

    def _post(self, row: OutboxRow) -> None:
        body, stamp = body_of(row, self._body), int(self._clock())
        headers = {
            "content-type": "application/json",
            "user-agent": f"dotr/{__version__}",
            "webhook-id": row.id,
            "webhook-timestamp": str(stamp),
        }
        if self._secret:
            headers["webhook-signature"] = signature(self._secret, row.id, stamp, body)
        try:
            status, answer = self._request(body, headers)
        except (OSError, http.client.HTTPException) as error:
            why = str(error) or type(error).__name__
            raise NotDeliveredError(f"cannot post to {self._url.netloc}: {why}"[:300]) from None
        if 200 <= status < 300:
            return
        gone = status == 410
        raise NotDeliveredError(
            f"{self._url.netloc} answers {status}", _retry_after(answer, self._clock), gone
        )

    def _request(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str]]:
        host, port = self._url.hostname or "", self._url.port
        secure = self._url.scheme == "https"
        address = self._allowed(host, port or (443 if secure else 80))
        connection = _Secure(host, port, address) if secure else _Plain(host, port, address)
        path = self._url.path or "/"
        path += f"?{self._url.query}" if self._url.query else ""
        try:
            connection.request("POST", path, body, dict(headers))
            response = connection.getresponse()
            response.read(1 << 16)
            return response.status, {name.lower(): value for name, value in response.getheaders()}
        finally:
            connection.close()

    def _allowed(self, host: str, port: int) -> str:
        """An address of a host. Raises OSError for one that is link-local."""
        found = list(self._resolve(host, port))
        for address in found:
            if is_forbidden(address):
                raise OSError(f"{host} is the address {address}, which is link-local")
        return found[0]


def is_forbidden(address: str) -> bool:
    """Whether an address is not connected to: link-local, or nobody's."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found.is_link_local or found.is_multicast or found.is_unspecified


def _addresses(host: str, port: int) -> list[str]:
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in rows]


class _Plain(http.client.HTTPConnection):
    """A connection to an address that was looked up before."""

    def __init__(self, host: str, port: int | None, address: str) -> None:
        super().__init__(host, port, timeout=TIMEOUT)
        self._address = address

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), TIMEOUT)


class _Secure(http.client.HTTPSConnection):
    """The same, encrypted; the certificate has to be that of the host."""

    def __init__(self, host: str, port: int | None, address: str) -> None:
        self._context_of = ssl.create_default_context()
        super().__init__(host, port, timeout=TIMEOUT, context=self._context_of)
        self._address = address

    def connect(self) -> None:
        plain = socket.create_connection((self._address, self.port), TIMEOUT)
        self.sock = self._context_of.wrap_socket(plain, server_hostname=self.host)


def _retry_after(headers: Mapping[str, str], clock: Callable[[], float]) -> float | None:
    text = headers.get("retry-after", "")
    if text.isascii() and text.isdigit():
        return float(text[:6])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - clock())
    except (ValueError, TypeError, OverflowError):
        return None

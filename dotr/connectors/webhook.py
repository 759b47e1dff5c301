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
         Requests are those of outgoing.py. A connection is kept for a minute, one a thread, since a handshake
         for each event would take longer than the event.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from http.client import HTTPConnection
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from dotr.connectors.bound_values import bound_text
from dotr.connectors.outgoing import (
    TIMEOUT,
    Resolve,
    addresses,
    connection_to,
    end_by,
    headers_of,
    retry_after,
    target_of,
    try_connection,
    wake,
)
from dotr.errors import DataError
from dotr.service.cursors import NotDeliveredError
from dotr.service.logs import OutboxRow
from dotr.version import __version__

Order: TypeAlias = Literal["strict", "any"]

_CONNECTED: Final = 60.0
"""Seconds for which a connection is used; then the name of the host is looked up again."""

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
        name: bound_text(term) for name, term in event["bindings"].items() if term is not None
    }
    values |= {"rule": row.rule, "time": str(event["time"]), "id": row.id, "number": str(row.number)}
    if row.change is not None:
        values["change"] = str(row.change)

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
        resolve: Resolve | None = None,
    ) -> None:
        self.identity = url
        self._url, self._secret, self._body = urlsplit(url), secret, body
        self._clock, self._resolve = clock, resolve or addresses
        self._taken: set[int] = set()
        self._of_thread = threading.local()
        self._mutex = threading.Lock()
        self._connections: set[HTTPConnection] = set()
        self._closed = False
        self._pool = ThreadPoolExecutor(_TOGETHER, "dotr-webhook") if order == "any" else None

    def close(self) -> None:
        """Let go of the threads and connections."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        with self._mutex:
            self._closed = True
            connections, self._connections = self._connections, set()
        for connection in connections:
            wake(connection)  # else closing waits for the thread that reads
            connection.close()

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
            "webhook-id": row.key,
            "webhook-timestamp": str(stamp),
        }
        if self._secret:
            headers["webhook-signature"] = signature(self._secret, row.key, stamp, body)
        try:
            status, answer = self._request(body, headers)
        except (AttributeError, ValueError) as error:  # what was read from is closed meanwhile
            if not self._closed:
                raise
            raise NotDeliveredError("the output has ended") from error
        except (OSError, http.client.HTTPException) as error:
            why = str(error) or type(error).__name__
            raise NotDeliveredError(f"cannot post to {self._url.netloc}: {why}"[:300]) from None
        if 200 <= status < 300:
            return
        gone = status == 410
        raise NotDeliveredError(
            f"{self._url.netloc} answers {status}", retry_after(answer, self._clock), gone
        )

    def try_connection(self) -> str:
        """Connect and let go, and say to what; nothing is posted. Raises OSError."""
        return try_connection(self._url, self._resolve)

    def _request(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str]]:
        """The status and the headers of an answer, by the connection of this thread. Raises OSError,
        HTTPException.
        """
        kept: HTTPConnection | None = getattr(self._of_thread, "connection", None)
        if kept is not None and time.monotonic() < self._of_thread.until:
            try:
                return self._exchange(kept, body, headers)
            except (ConnectionError, http.client.BadStatusLine):  # it was closed meanwhile: once more
                pass
        elif kept is not None:
            self._let_go(kept)
        made = connection_to(self._url, self._resolve)
        self._of_thread.until = time.monotonic() + _CONNECTED
        with self._mutex:
            if self._closed:
                raise OSError("the output has ended")
            self._connections.add(made)
        return self._exchange(made, body, headers)

    def _exchange(
        self, connection: HTTPConnection, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str]]:
        self._of_thread.connection = None
        whole = False
        try:
            connection.request("POST", target_of(self._url), body, dict(headers))
            response = connection.getresponse()
            size = 0
            end_by(response, TIMEOUT)
            with suppress(TimeoutError):  # the status is known
                while size < 1 << 16 and (part := response.read1(1 << 12)):
                    size += len(part)
            done = response.isclosed() or response.length == 0
            response.close()  # else the connection takes no other request
            whole = done and connection.sock is not None
            return response.status, headers_of(response)
        finally:
            if whole:
                self._of_thread.connection = connection
            else:
                self._let_go(connection)

    def _let_go(self, connection: HTTPConnection) -> None:
        with self._mutex:
            self._connections.discard(connection)
        connection.close()

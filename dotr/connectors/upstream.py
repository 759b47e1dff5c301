"""The events of another deployment that serves: each a graph at its time, exactly once.

Place:   a source of `dotr serve` (`dotr: URL`), which reads what streaming.py of the other one writes.
Method:  server-sent events of `/v1/events`, from a number on: numbers have no gaps and an event keeps its
         own, so the number of the last event that was committed here is the whole position, and either side
         may be killed. An event's graph is the composite event that its rule defined; its time is the time
         that the rule found it at.
         What the other one has dropped before it was read (`keep.events`) is counted and said. One that ends
         before the position is another deployment: nothing is read, since its numbers mean other events.
         Nothing is read beyond what is no event, or an event whose number does not follow.
Why not: `/v1/ldes` of the other one: pages are polled, events come. Both give the same graphs.
Bad input: D4222 it cannot be had, or is another one · D4223 events that are not there any more.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlsplit

from dotr.connectors.outgoing import (
    MOST,
    WHOLE,
    addresses,
    connection_to,
    end_by,
    get,
    headers_of,
    retry_after,
    wake,
)
from dotr.connectors.read_ahead import NotReadError, ReadAhead, ReadAheadTransport
from dotr.errors import DataError, Diagnostic
from dotr.io.decode.documents import Format
from dotr.io.feeds import Document, Position
from dotr.service.outbox import Origin
from dotr.version import __version__

SILENCE: Final = 45.0
"""Seconds without a byte after which a connection is dead: the other side sends a comment every 15."""


_TAKES_BACK: Final = (
    "it makes corrections: what it takes back cannot be taken out of a stream; read one without corrections"
)


class UpstreamTransport(ReadAheadTransport):
    """Owns the reading of one deployment. `rules`: events of these alone, none: all; `token`: "" for none."""

    def __init__(
        self,
        name: str,
        url: str,
        rules: Sequence[str] = (),
        token: str = "",
        say: Callable[[Diagnostic], None] = lambda _found: None,
        silence: float = SILENCE,
    ) -> None:
        self.name = name
        self.counts: Mapping[str, int] = {}
        self._url, self._rules, self._silence = urlsplit(url), list(rules), silence
        self._headers = {"user-agent": f"dotr/{__version__}"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._ahead = ReadAhead(f"the source `{name}`, {url}", self._read, say)
        self._last = 0
        self._connection: http.client.HTTPConnection | None = None

    def open(self, partition: str, position: Position | None) -> Iterator[Sequence[Document]]:
        """See `Transport`."""
        if not self._last:
            self._last = position or 0
        yield from self._documents()

    def position(self, partition: str, mark: Position) -> Position:
        """See `Transport`: the number of an event."""
        return mark

    def committed(self, positions: Mapping[str, Position | None]) -> None:
        """See `Transport`."""

    def origin(self, place: str) -> Origin | None:
        """See `Replayed`."""
        source, at, rest = place.rpartition("@")
        number = rest.partition(":")[0].partition(",")[0]
        if not at or source != self.name or not number.isdecimal():
            return None
        return Origin(self.name, int(number), "application/n-triples")

    def close(self) -> None:
        """See `Replayed`."""
        self._ahead.close(lambda: wake(self._connection))

    # ------------------------------------------------------------------ in the thread that reads

    def _target(self, path: str) -> str:
        return f"{self._url.path.rstrip('/')}{path}"

    def _check(self) -> None:
        """Raise NotReadError where the position is not one of that deployment."""
        connection = connection_to(self._url)
        try:
            answer = get(connection, self._target("/v1/status"), self._headers)
        finally:
            connection.close()
        _refuse(answer.status, answer.headers, answer.content)
        try:
            status = json.loads(answer.content)
            last = status["outbox"]
        except (ValueError, KeyError, TypeError):
            raise NotReadError("what answers is not `dotr serve`") from None
        if type(last) is not int:
            raise NotReadError("what answers is not `dotr serve`")
        if status.get("corrections") is not None:
            raise NotReadError(_TAKES_BACK)
        if last < self._last:
            raise NotReadError(
                f"it ends with event {last}, and event {self._last} of it was read already: it is another "
                "deployment; give this source another name to read that one from its beginning"
            )

    def _read(self) -> None:
        """Events until the connection ends, which it does not by itself."""
        self._ahead.wait_until_asked()
        self._check()
        rules = "".join(f"&rule={quote(rule, safe='')}" for rule in self._rules)
        self._connection = connection = connection_to(self._url, addresses, self._silence)
        try:
            target = self._target(f"/v1/events?after={self._last}{rules}")
            connection.request("GET", target, headers={**self._headers, "accept": "text/event-stream"})
            response = connection.getresponse()
            if response.status != http.client.OK:
                end_by(response, WHOLE)
                _refuse(response.status, headers_of(response), response.read(1 << 16))
            self._ahead.works()
            for name, number, data in _events(response, self._silence + WHOLE):
                self._take(name, number, data)
        finally:
            self._connection = None
            connection.close()
        raise NotReadError("the connection ended")

    def _take(self, name: str, number: str, data: str) -> None:
        """Raises NotReadError for what no deployment sends."""
        try:
            content = json.loads(data)
            if name == "dotr-problem":
                raise NotReadError(str(content.get("detail", data))[:300])
            if name == "dotr-missed":
                self._skip(int(content["first"]), int(content["after"]))
            elif content.get("change", 1) < 0:
                raise NotReadError(_TAKES_BACK)
            else:
                self._give(int(number), content["graph"].encode(), str(content["time"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise NotReadError(f"`{data[:80]}` is no event of `dotr serve`") from None

    def _skip(self, first: int, after: int) -> None:
        if not after < first > self._last:
            raise NotReadError(f"it has no events before number {first}, though number {self._last} was read")
        self._missed(first - after - 1, after)
        self._last = first - 1

    def _give(self, number: int, graph: bytes, time: str) -> None:
        if number <= self._last:
            return
        if self._last and number != self._last + 1 and not self._rules:
            raise NotReadError(
                f"event {number} came after event {self._last}: what was between them is neither there nor "
                "reported"
            )
        self._ahead.put(Document(graph, number, f"{self.name}@{number}", Format.NTRIPLES, time))
        self._last = number

    def _missed(self, count: int, after: int) -> None:
        self.counts = {"missed": self.counts.get("missed", 0) + count}
        which = " of all rules" if self._rules else ""
        self._ahead.say(
            f"the source `{self.name}`: {count:,} events{which} after number {after:,} are not kept there "
            "any more",
            "D4223",
            "let the other deployment keep its events for longer than this one may be away (`keep.events`)",
        )


def try_upstream(url: str, token: str) -> str:
    """What answers there. Raises OSError, DataError D4222."""
    found = UpstreamTransport("trial", url, (), token)
    try:
        found._check()
    except NotReadError as error:
        raise DataError.of("D4222", str(error)) from None
    return f"{urlsplit(url).netloc} is a deployment"


def _refuse(status: int, headers: Mapping[str, str], content: bytes) -> None:
    """Raise NotReadError for an answer that is none."""
    if status == http.client.OK:
        return
    try:
        problem = json.loads(content)
        detail = f": {problem['detail']}" if isinstance(problem, dict) and problem.get("detail") else ""
    except (ValueError, RecursionError):
        detail = ""
    raise NotReadError(f"it answers {status}{detail}", retry_after(headers))


def _events(response: http.client.HTTPResponse, seconds: float) -> Iterator[tuple[str, str, str]]:
    """Name, id and data of each event. `seconds`: for a line. Raises OSError for an event that is too long or
    takes too long, NotReadError for what is no text.
    """
    found: dict[str, str] = {}
    size = 0
    while True:
        end_by(response, seconds)
        line = response.readline(MOST)
        size += len(line)
        if size >= MOST:
            raise OSError(f"an event has more than {MOST:,} bytes")
        if not line.endswith(b"\n"):
            return  # cut off
        try:
            text = line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise NotReadError(f"what it sends is no text: {line[:80]!r}") from None
        if text:
            name, _, value = text.partition(":")
            found[name] = value.removeprefix(" ")
            continue
        if "data" in found:
            yield found.get("event", ""), found.get("id", ""), found["data"]
        found, size = {}, 0

"""The routes of a server: documents in, events out, rules, what holds and why (`/v1`).

Place:   between server.py, which owns what it uses, and the functions of answers.py; security.py stands in
         front of it, so a body has come whole, and whoever asks may.
Method:  `ROUTES` is the one table: Starlette's routes, the OpenAPI document and the list of the manual are
         made of it. A handler gets the request and the server's parts, and returns an answer or raises: a
         diagnostic becomes `application/problem+json` (RFC 9457) with the status of its class.
         A document is in the inbox, on disk, before it is answered with 202. What computes over what was
         committed does so in threads with connections of their own; what changes something is a command of
         the engine.
Why not: pydantic and a framework over it: bodies are RDF.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from time import time_ns
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlencode

from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from dotr.connectors.bound_values import values_of
from dotr.errors import (
    DataError,
    Diagnostic,
    DotrError,
    ProgramError,
    RefusedError,
    UnsupportedError,
    UsageError,
    as_json,
)
from dotr.events import Clock, Time
from dotr.io.events import json_terms
from dotr.io.feeds import Document, DocumentSource
from dotr.io.graphs import TimedGraph
from dotr.io.rules_and_background import with_declared
from dotr.io.tables.mapping import TableMapping
from dotr.io.time import UNITS, TimeError, parse_text
from dotr.lang.grammar.cursor import nearest
from dotr.program import Program
from dotr.program.names import duration
from dotr.serve.answers import (
    GRAPHS,
    PROOFS,
    SOLUTIONS,
    Answer,
    Answers,
    NotAcceptableError,
    difference_lines,
    negotiated,
    pair,
    request_of,
    snapshot_lines,
)
from dotr.serve.configuration import Configuration, Source
from dotr.serve.deliveries import Deliveries
from dotr.serve.engine import Engine, default_format, reading_of
from dotr.serve.event_stream import DATASETS as PAGE_MEDIA
from dotr.serve.event_stream import FORMATS as VIEW_MEDIA
from dotr.serve.event_stream import EventStream, GoneError, Representation
from dotr.serve.metrics import MEDIA as METRICS_MEDIA
from dotr.serve.metrics import Metrics, source_name
from dotr.serve.replayed import state_of
from dotr.serve.rule_trial import HOUR, tried
from dotr.serve.samples import Samples
from dotr.serve.security import READ, Problem, Receive, Scope, Send, answer_problem
from dotr.serve.static import INDEX, StaticFiles
from dotr.serve.streaming import PAGE, PULSE, Broadcast, Wanted, missed, stream
from dotr.serve.subscriptions import Subscriptions
from dotr.service.deployment import Proposal, propose_texts, undeployed
from dotr.service.history import background_files
from dotr.service.inbox import Inbox, format_called
from dotr.service.journal import Journal
from dotr.service.logs import OutboxRow
from dotr.version import __version__

T = TypeVar("T")

WAIT: Final = 30.0
"""Seconds that `?wait=committed` waits unless `?timeout=` says otherwise."""

EVENT_MEDIA: Final = ("application/json", "text/event-stream", "application/x-ndjson")

READY_BACKLOG: Final = 0.5
"""The part of the inbox that may be full while the server is ready for more."""


class Parts(Struct):
    """What the handlers use."""

    configuration: Configuration
    engine: Engine
    inbox: Inbox
    broadcast: Broadcast
    metrics: Metrics
    deliveries: Deliveries
    listening: Subscriptions
    mappings: Mapping[str, TableMapping]
    answers: Answers
    samples: Samples
    workers: Workers


Handler: TypeAlias = Callable[[Request, Parts], Awaitable[Response | None]]
"""None: the answer was sent."""


class Parameter(NamedTuple):
    """One parameter of a route. `where`: query, header or path."""

    name: str
    where: str
    text: str
    example: str = ""


class Route(NamedTuple):
    """One row: how it is called, what it does, what it takes, and what it gives by status."""

    method: str
    path: str
    handler: Handler
    summary: str
    parameters: Sequence[Parameter] = ()
    body: str = ""
    """What the body is; "" for none."""
    answers: Mapping[int, str] = {200: "The answer."}
    media: Sequence[str] = ("application/json",)


# ---------------------------------------------------------------------- small things


async def in_thread(function: Callable[..., T], *given: Any) -> T:
    """Compute beside the event loop what takes no long time."""
    return await asyncio.to_thread(function, *given)


class Workers:
    """Owns the threads for what may take long (queries, proofs, rules), so that events and the states of
    documents do not wait for it; nor does the end of the server, which ends these threads.
    """

    def __init__(self, threads: int = 4) -> None:
        self._tasks: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        for number_ in range(threads):
            threading.Thread(target=self._run, name=f"dotr-worker-{number_}", daemon=True).start()

    async def run(self, function: Callable[..., T], *given: Any) -> T:
        """Compute in one of them."""
        asked: Future[T] = Future()
        self._tasks.put((asked, partial(function, *given)))
        return await asyncio.wrap_future(asked)

    def _run(self) -> None:
        while True:
            asked, task = self._tasks.get()
            if not asked.set_running_or_notify_cancel():
                continue  # nobody waits for it any more
            try:
                result = task()
            except BaseException as error:  # to whoever asked
                asked.set_exception(error)
            else:
                asked.set_result(result)


def status_of(error: DotrError) -> tuple[int, dict[str, str]]:
    """The status of a diagnostic, and headers that go with it."""
    if isinstance(error, GoneError):
        return 410, {}
    code = error.diagnostics[0].code
    special = _STATUS.get(code)
    if special is not None:
        return special, {"retry-after": "1"} if special in (429, 503) else {}
    if isinstance(error, NotAcceptableError):
        return 406, {}
    if isinstance(error, UsageError | UnsupportedError):
        return 400, {}
    if isinstance(error, ProgramError | DataError):
        return 422, {}
    if isinstance(error, RefusedError):
        return 409, {}
    return 503, {"retry-after": "5"}


_STATUS: Final = {
    "D5230": 429,
    "D5231": 409,
    "D5209": 404,
    "D5215": 412,
    "D4206": 503,
    "D4201": 503,
    "D5232": 404,
    "D5233": 404,
}


def problem_of(error: DotrError) -> Problem:
    """A diagnostic as an answer."""
    status, headers = status_of(error)
    return Problem(status, error, headers)


def wrong(message: str, hint: str = "", code: str = "D4207", status: int = 400) -> Problem:
    """A request that is not understood."""
    return Problem(status, Diagnostic(code, message, hint=hint))


def query(request: Request, name: str) -> str:
    """A parameter of the query, "" where it is missing."""
    found = request.query_params.getlist(name)
    if len(found) > 1:
        raise wrong(f"`{name}` is given {len(found)} times")
    return found[0] if found else ""


def number(request: Request, name: str, default: int) -> int:
    """A parameter that is a whole number."""
    text = query(request, name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise wrong(f"`{name}={text[:50]}` is not a number")
    return int(text)


def instant(request: Request, clock: Clock | None, name: str = "at") -> Time | None:
    """A parameter that is a time of the stream."""
    text = query(request, name)
    if not text:
        return None
    unit = clock.unit if clock is not None and clock.integer else UNITS["s"]
    try:
        time, integer = parse_text(text, unit)
    except TimeError as error:
        raise wrong(f"`{name}={text[:50]}`: {error.message}", error.hint) from None
    if clock is not None and clock.integer is not integer:
        raise wrong(f"`{name}={text[:50]}`: the times of this deployment are {_kind(clock)}")
    return time


def clock_of(parts: Parts) -> Clock | None:
    """How the deployment counts time; None before its first graph."""
    clock = parts.engine.status.get("clock")
    return None if clock is None else Clock(*clock)


def as_time(time: Time | None, clock: Clock | None) -> int | str | None:
    """A time in the data's form."""
    if time is None or clock is None:
        return None
    return int(clock.text(time)) if clock.integer else clock.text(time)


async def commanded(future: Any) -> Any:
    """What a command of the engine gives."""
    return await asyncio.wrap_future(future)


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer, which ends its line, so that a terminal shows it well."""
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Response(f"{content}\n", status, dict(headers or {}), media_type="application/json")


# ---------------------------------------------------------------------- documents in


def _streams(parts: Parts) -> dict[str, Source]:
    """The sources that take what is posted."""
    return {name: source for name, source in parts.configuration.sources.items() if source.http is not None}


async def post_stream(request: Request, parts: Parts) -> Response:
    name = request.path_params["name"]
    known = _streams(parts)
    source = known.get(name)
    if source is None:
        raise wrong(
            f"there is no stream `{name[:64]}`",
            nearest(name, list(known)) or f"streams: {', '.join(known)}",
            "D4209",
            404,
        )
    content = await request.body()
    media = request.headers.get("content-type", "")
    format_, mapping = _format_of(media, query(request, "map"), name, parts)
    stamp = query(request, "at") or request.headers.get("dotr-time", "")
    clock = clock_of(parts)
    if stamp:
        _check_time(stamp, clock, parts)
    elif source.time == "arrival" and clock is not None and clock.integer:
        raise wrong(
            "this stream takes the time of arrival, and the times of this deployment are integers",
            "?at=TIME, or the header Dotr-Time",
            status=409,
        )
    elif source.time == "header":
        raise wrong("this stream needs the time of a document beside it", "?at=TIME, or the header Dotr-Time")
    if "dry-run" in request.query_params:
        return json_answer(await parts.workers.run(_dry_run, content, media, mapping, stamp, name, parts))
    key = request.headers.get("idempotency-key", "").strip('"')
    if len(key) > 255:
        raise wrong("the Idempotency-Key has more than 255 characters")
    try:
        future = parts.inbox.append(name, content, format=format_, time=stamp, key=key, mapping=mapping)
        received = await asyncio.wrap_future(future)
    except DotrError as error:
        parts.metrics.count(name, "full" if error.diagnostics[0].code == "D5230" else "refused")
        raise
    parts.metrics.count(name, "duplicate" if received.duplicate else "accepted")
    if not received.duplicate:
        parts.metrics.arrived(name, received.number)
    token = str(received.number)
    answer = {"seq": received.number, "token": token, "duplicate": received.duplicate}
    if query(request, "wait") != "committed":
        return json_answer(answer, 202, {"location": f"/v1/tokens/{token}"})
    found = await _until_committed(received.number, _timeout(request), parts)
    return json_answer({**answer, **found}, 202 if found["state"] == "pending" else 200)


def _timeout(request: Request) -> float:
    text = query(request, "timeout")
    try:
        return min(duration(text) / 1_000_000, 300.0) if text else WAIT
    except ValueError:
        raise wrong(f"`timeout={text[:50]}` is not a duration", "30s, or PT30S") from None


def _format_of(media: str, map_: str, name: str, parts: Parts) -> tuple[str, str]:
    """The format of a document, and the mapping that it needs, by name."""
    kind = media.partition(";")[0].strip().lower()
    source = parts.configuration.sources[name]
    if map_ and map_ not in parts.mappings:
        raise wrong(f"there is no mapping `{map_[:64]}`", nearest(map_, list(parts.mappings)) or "")
    if map_ or kind in TABLES:
        mapping = map_ or (name if source.map is not None else "")
        if not mapping:
            raise wrong(
                f"a document of {kind or 'no content type'} needs a mapping",
                "give the source a `map:`, or name one with ?map=",
                "D4210",
                415,
            )
        return kind or "text/csv", mapping
    if not kind or kind in ("application/octet-stream", "application/x-www-form-urlencoded"):
        if source.format is None:
            raise wrong(
                "the document does not say what it is",
                "add -H 'Content-Type: text/turtle' (or application/x-ndjson …), or give it a `format:`",
                "D4210",
                415,
            )
        return "", ""
    if format_called(kind) is None:
        raise wrong(
            f"a document of `{kind[:64]}` is not read",
            "text/turtle, application/n-quads, application/ld+json, application/x-ndjson, text/csv …",
            "D4210",
            415,
        )
    return kind, ""


TABLES: Final = ("text/csv", "text/tab-separated-values", "application/json")


def _check_time(stamp: str, clock: Clock | None, parts: Parts) -> None:
    unit = clock.unit if clock is not None and clock.integer else UNITS[parts.configuration.time_unit]
    try:
        _, integer = parse_text(stamp, unit)
    except TimeError as error:
        raise wrong(f"the time `{stamp[:50]}`: {error.message}", error.hint) from None
    if clock is not None and clock.integer is not integer:
        raise wrong(f"the time `{stamp[:50]}`: the times of this deployment are {_kind(clock)}")


def _kind(clock: Clock) -> str:
    return "integers" if clock.integer else "dateTimes"


class _One:
    """A transport of one document."""

    name = "dry run"

    def __init__(self, document: Document) -> None:
        self.document = document

    def partitions(self) -> Sequence[str]:
        return [""]

    def open(self, partition: str, position: Any) -> Any:
        yield [self.document]

    def position(self, partition: str, mark: Any) -> Any:
        return mark

    def committed(self, positions: Any) -> None:
        return


def _dry_run(content: bytes, media: str, mapping: str, stamp: str, name: str, parts: Parts) -> dict[str, Any]:
    """What a document has: graphs and their times. Raises DataError."""
    clock = clock_of(parts)
    unit = clock.unit if clock is not None and clock.integer else UNITS[parts.configuration.time_unit]
    source = parts.configuration.sources[name]
    options = reading_of(source, parts.configuration.base, unit, None)
    now = time_ns() // 1_000
    if source.time == "arrival" and not stamp:
        stamp = Clock(integer=False).text(now)
    document = Document(
        content,
        1,
        name,
        format_called(media),
        stamp,
        now if source.time == "event-or-arrival" else None,
        parts.mappings.get(mapping),
    )
    read = DocumentSource(_One(document), default_format(source), options)
    read.extractor.clock = clock
    graphs = [item for item in read.items(lambda _s, _p: None) if isinstance(item, TimedGraph)]
    own = read.extractor.clock
    times = [graph.time for graph in graphs]
    first, last = min(times, default=None), max(times, default=None)
    return {"graphs": len(graphs), "first": as_time(first, own), "last": as_time(last, own)}


async def get_token(request: Request, parts: Parts) -> Response:
    token = request.path_params["token"]
    if (
        not (token.isascii() and token.isdigit() and len(token) < 19)
        or not 0 < int(token) <= parts.inbox.last
    ):
        raise wrong(f"there is no document `{token[:50]}`", "", "D5232", 404)
    return json_answer({"token": token, **await in_thread(_state_of, int(token), parts)})


async def _until_committed(row: int, seconds: float, parts: Parts) -> dict[str, Any]:
    """The state of a document, once a commit has it, or after so many seconds."""
    until = asyncio.get_running_loop().time() + seconds
    while True:
        commits = parts.broadcast.commits
        found = await in_thread(_state_of, row, parts)
        left = until - asyncio.get_running_loop().time()
        if found["state"] != "pending" or left <= 0 or parts.broadcast.closing:
            return found
        while parts.broadcast.commits == commits and left > 0 and not parts.broadcast.closing:
            await parts.broadcast.changes(left)
            left = until - asyncio.get_running_loop().time()


def _state_of(row: int, parts: Parts) -> dict[str, Any]:
    """What became of a document."""
    reader, clock = parts.broadcast.reader, clock_of(parts)
    fed, source = parts.engine.fed, parts.inbox.source_of(row)
    if source is not None and fed.get(source, 0) < row:
        return {"state": "pending"}
    found = reader.outcome(row)
    if found is None:
        raise wrong(f"what became of document {row} is not known any more", "", "D5232", 410)
    answer: dict[str, Any] = {"state": "committed", "graphs": found.graphs}
    if found.refused:
        answer |= {"refused": found.refused, "state": "committed" if found.graphs else "refused"}
    if found.late:
        answer |= {
            "late": [as_time(time, clock) for time in found.late],
            "state": "late" if len(found.late) == found.graphs else answer["state"],
        }
    numbers: list[int] = []
    open_ = False
    settled = parts.engine.status.get("watermark")
    for first, last in found.spans:
        start = reader.since(first)
        while len(numbers) < PAGE:
            rows = reader.page(start, PAGE).rows
            numbers += [row.number for row in rows if row.time <= last]
            if not rows or rows[-1].time > last:
                break
            start = rows[-1].number
        open_ |= settled is None or last > settled
    return {**answer, "events": sorted(set(numbers))[:PAGE], "open": open_}


# ---------------------------------------------------------------------- events out


def _wanted(request: Request, parts: Parts) -> Wanted:
    """Which events are asked for."""
    rules = request.query_params.getlist("rule") or None
    known = [rule.name for rule in parts.engine.program.rules]
    for rule in rules or ():
        if rule not in known:
            hint = nearest(rule, known) or f"rules: {', '.join(known[:20])}"
            raise wrong(f"there is no rule `{rule[:64]}`", hint, "D5209", 404)
    prefixes = parts.engine.program.prefixes
    where = [pair(text, prefixes, "where") for text in request.query_params.getlist("where")]
    tests = [(name, json.loads(json_terms[term])) for name, term in where]
    text = query(request, "text").casefold()
    if not tests and not text:
        return Wanted(rules)

    def passes(row: OutboxRow) -> bool:
        if text and text not in row.line.casefold():
            return False
        bindings = json.loads(row.line).get("bindings", {}) if tests else {}
        return all(value in values_of(bindings.get(name)) for name, value in tests)

    return Wanted(rules, passes)


async def get_events(request: Request, parts: Parts) -> Response | None:
    wanted = _wanted(request, parts)
    media = negotiated(request.headers.get("accept"), EVENT_MEDIA)
    last = request.headers.get("last-event-id", "")
    after = number(
        request, "after", int(last) if last.isascii() and last.isdigit() and len(last) < 19 else -1
    )
    reader = parts.broadcast.reader
    since, until = (instant(request, clock_of(parts), name) for name in ("since", "until"))
    if after < 0 and since is not None:
        after = await in_thread(reader.since, since)
    before = number(request, "before", _AFTER_ALL)
    if until is not None:
        before = min(before, await in_thread(reader.since, until + 1) + 1)
    if media != "application/json":
        if after < 0:
            after = parts.broadcast.last
        lines = media == "application/x-ndjson"
        follow = not lines or "follow" in request.query_params
        pieces = parts.broadcast.pieces(after, wanted, lines, follow)
        await stream(parts.broadcast, request.scope, request.receive, _send_of(request), pieces, media)
        return None
    limit = min(max(1, number(request, "limit", 100)), PAGE)
    order = query(request, "order")
    if order not in ("", "oldest", "newest"):
        raise wrong(f"`order={order[:50]}` is no order", "oldest, or newest")
    gap: dict[str, int] | None = None
    if order == "newest":
        rows, upto = await in_thread(_page_before, parts, max(after, 0), before, limit, wanted)
        next_ = json.dumps(_next(request, before=upto)) if upto > max(after, 0) + 1 else "null"
    else:
        rows, upto, gap = await in_thread(_page, parts, max(after, 0), before, limit, wanted)
        next_ = (
            json.dumps(_next(request, after=upto)) if upto < min(before - 1, parts.broadcast.last) else "null"
        )
    events = ",".join(f'{{"number":{row.number},{row.line[1:]}' for row in rows)
    more_ = "" if gap is None else f',"missed":{json.dumps(gap)}'
    return Response(f'{{"events":[{events}],"next":{next_}{more_}}}\n', media_type="application/json")


def _next(request: Request, **begin: int) -> str:
    """Where the page begins that follows, of what was asked for."""
    others = [(name, value) for name, value in request.query_params.multi_items() if name not in begin]
    return f"{request.url.path}?{urlencode([*begin.items(), *others])}"


def _page(
    parts: Parts, after: int, before: int, limit: int, wanted: Wanted
) -> tuple[list[OutboxRow], int, dict[str, int] | None]:
    """Up to so many events that are wanted between two numbers, up to where the outbox was read for them, and
    what is missed.
    """
    reader = parts.broadcast.reader
    found: list[OutboxRow] = []
    page = reader.page(after, PAGE, wanted.rules)
    gap, begin = missed(after, page), max(after, page.first - 1)
    while page.upto > after and after < before - 1 and after - begin < _SEARCHED:
        for row in wanted.of(page.rows):
            if row.number >= before:
                return found, before - 1, gap
            found.append(row)
            if len(found) == limit:
                return found, row.number, gap
        after = page.upto
        page = reader.page(after, PAGE, wanted.rules)
    return found, min(after, before - 1), gap


_AFTER_ALL: Final = 1 << 62
"""More than any number of an event."""

_SEARCHED: Final = 20_000
"""Events that one page looks at: a page of few events that are wanted comes soon."""


def _page_before(
    parts: Parts, after: int, before: int, limit: int, wanted: Wanted
) -> tuple[list[OutboxRow], int]:
    """Likewise, the last one first, and the number before which to go on."""
    reader, begin = parts.broadcast.reader, before
    found: list[OutboxRow] = []
    while begin > after + 1 and before - begin < _SEARCHED:
        page = reader.page_before(begin, PAGE, wanted.rules)
        for row in wanted.of(page.rows):
            if row.number <= after:
                return found, after + 1
            found.append(row)
            if len(found) == limit:
                return found, row.number if row.number > page.first else after + 1
        if page.upto <= page.first:
            return found, after + 1
        begin = page.upto
    return found, max(begin, after + 1)


_BUCKETS: Final = tuple(
    seconds * 1_000_000
    for seconds in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400)
)
"""Lengths of buckets from a second to a day."""


def _bucket(least: Time, clock: Clock) -> Time:
    """A round length of time, at least so long."""
    if not clock.integer and _BUCKETS[0] < least <= _BUCKETS[-1]:
        return next(length for length in _BUCKETS if length >= least)
    unit = clock.unit if clock.integer else _BUCKETS[-1] if least > _BUCKETS[-1] else 1
    power = unit
    while True:
        for factor in (1, 2, 5):
            if factor * power >= least:
                return factor * power
        power *= 10


_MOST_COUNTED: Final = 500_000
"""Events that are counted for one answer."""


async def get_counts(request: Request, parts: Parts) -> Response:
    clock = clock_of(parts)
    since, until = (instant(request, clock, name) for name in ("since", "until"))
    buckets = min(max(1, number(request, "buckets", 120)), 1_000)
    return json_answer(await parts.workers.run(_counts, parts, clock, since, until, buckets))


def _counts(
    parts: Parts, clock: Clock | None, since: Time | None, until: Time | None, buckets: int
) -> dict[str, Any]:
    """Events by rule in buckets of the same length between two times, both included; with corrections those
    that are taken back by themselves, in the bucket of when that was.
    """
    reader = parts.broadcast.reader
    bounds = reader.bounds()
    if clock is None or bounds.last < bounds.first:
        return {"since": None, "until": None, "width": None, "buckets": 0, "rules": {}, "total": 0}
    begin = reader.page(bounds.first - 1, 1).rows[0].time if since is None else since
    end = reader.page(bounds.last - 1, 1).rows[0].time if until is None else until
    if end < begin:
        raise wrong("`until` is before `since`")
    width = _bucket((end - begin) // buckets + 1, clock)
    begin -= begin % width
    after = bounds.first - 1 if since is None else reader.since(since)
    before = reader.since(end + 1) + 1
    counted = max(after, before - 1 - _MOST_COUNTED)
    found: dict[str, list[list[int]]] = {}
    taken: dict[str, list[list[int]]] = {}
    changes = parts.configuration.corrections is not None
    for rule, bucket, count, gone in reader.counts(counted, before, begin, width, changes):
        if count:
            found.setdefault(rule, []).append([bucket, count])
        if gone:
            taken.setdefault(rule, []).append([bucket, gone])
    value: dict[str, Any] = {
        "since": as_time(begin, clock),
        "until": as_time(end, clock),
        "width": width // clock.unit if clock.integer else width / 1_000_000,  # s
        "buckets": (end - begin) // width + 1,
        "rules": found,
        "total": max(0, before - 1 - after),
    }
    if changes:
        value["taken_back"] = taken
    if counted > after:
        value["counted"] = before - 1 - counted
    return value


def _send_of(request: Request) -> Send:
    send: Send = request.scope["dotr.send"]
    return send


async def get_event(request: Request, parts: Parts) -> Response:
    row = await _event(request, parts)
    return Response(f'{{"number":{row.number},{row.line[1:]}\n', media_type="application/json")


async def _event(request: Request, parts: Parts) -> OutboxRow:
    """The event of the path, by its id or its number."""
    id_ = request.path_params["id"]
    row = None
    if id_.isascii() and id_.isdigit() and len(id_) < 19:
        rows = (await in_thread(parts.broadcast.reader.page, int(id_) - 1, 1)).rows if int(id_) else []
        row = rows[0] if rows and rows[0].number == int(id_) else None
    else:
        row = await in_thread(parts.broadcast.reader.by_id, id_.strip("<>"))
    if row is None:
        raise wrong(f"there is no event `{id_[:100]}`, or it is not kept any more", "", "D5233", 404)
    return row


async def get_ldes(request: Request, parts: Parts) -> Response:
    root, clock = str(request.url_for("/v1/ldes")), clock_of(parts)
    accept, known = request.headers.get("accept"), request.headers.get("if-none-match", "")
    stream_ = EventStream(parts.broadcast.reader)
    return _represented(await in_thread(stream_.view, root, clock, accept, known))


async def get_ldes_page(request: Request, parts: Parts) -> Response:
    root, name, clock = str(request.url_for("/v1/ldes")), request.path_params["page"], clock_of(parts)
    accept, known = request.headers.get("accept"), request.headers.get("if-none-match", "")
    stream_ = EventStream(parts.broadcast.reader)
    return _represented(await in_thread(stream_.page, root, name, clock, accept, known))


def _represented(found: Representation) -> Response:
    headers = dict(found.headers)
    if found.content is None:
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)


# ---------------------------------------------------------------------- rules


def _look(parts: Parts) -> Journal:
    return Journal(parts.configuration.dir, exclusive=False)


def _digest(parts: Parts) -> str:
    with _look(parts) as journal:
        return journal.digest()


async def get_rules(request: Request, parts: Parts) -> Response:
    def read() -> tuple[dict[str, Any], str]:
        with _look(parts) as journal:
            deployed, digest, plan = journal.deployed(), journal.digest(), journal.plan()
        program = parts.engine.program
        value: dict[str, Any] = {
            "digest": digest,
            "roots": list(deployed.files),
            "files": dict(sorted((deployed.texts or {}).items())),
            "removed": sorted({rule for _, rule in deployed.removed}),
            "rules": [rule.name for rule in program.rules],
            "sequences": [rule.name for rule in program.rules if rule.kind == "sequence"],
            "private": [rule.name for rule in program.rules if rule.private],
            "heads": sorted({rule.head.atom.name for rule in program.lars.rules}),
            "texts": _rule_texts(program),
            "prefixes": with_declared(program.prefixes, background_files(parts.configuration.dir, program)),
        }
        if plan is not None:
            value["planned"] = Clock(*plan.clock).text(plan.time)
        return value, digest

    value, digest = await in_thread(read)
    return json_answer(value, headers={"etag": f'"{digest}"'})


def _rule_texts(program: Program) -> dict[str, Any]:
    """Each rule as it is written, and where: its file and the line of its first word."""
    return {
        rule.name: {
            "file": rule.span.source.name,
            "line": rule.span.source.position(rule.span.start)[0],
            "text": rule.span.source.text[rule.span.start : rule.span.end],
        }
        for rule in program.rules
        if rule.span is not None
    }


async def _bundle(request: Request) -> tuple[dict[str, str], list[str]]:
    """The rule files of a body: one text, or JSON with several; and those that are to be deployed."""
    content = await request.body()
    media = request.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise wrong("the rules are not UTF-8") from None
    if media != "application/json":
        name = query(request, "name") or "rules.dotr"
        return {name: text}, [name]
    try:
        value = json.loads(text)
        files, roots = value["files"], value.get("roots")
        if not (isinstance(files, dict) and all(isinstance(one, str) for one in files.values())):
            raise TypeError
        roots = [name for name in files if name.endswith(".dotr")] if roots is None else roots
        if not (roots and isinstance(roots, list) and all(isinstance(one, str) for one in roots)):
            raise TypeError  # no rules at all is nobody's wish: each can be taken out by its name
        "".join((*files, *files.values(), *roots)).encode()  # a lone surrogate is no character
    except (ValueError, TypeError, KeyError, RecursionError):
        raise wrong(
            "the rules are not a bundle", '{"files": {"rules.dotr": "…"}, "roots": ["rules.dotr"]}'
        ) from None
    return files, roots


def _if_match(request: Request) -> str | None:
    header = request.headers.get("if-match", "").strip()
    return None if header in ("", "*") else header.removeprefix("W/").strip('"')


async def put_rules(request: Request, parts: Parts) -> Response:
    texts, roots = await _bundle(request)
    since = query(request, "from")
    digest = _if_match(request)

    def make() -> Proposal:
        with _look(parts) as journal:
            return propose_texts(journal, texts, roots)

    def begin(clock: Clock | None) -> tuple[Time, Clock]:
        unit = clock.unit if clock is not None and clock.integer else UNITS[parts.configuration.time_unit]
        try:
            time, integer = parse_text(since, unit)
        except TimeError as error:
            raise UsageError.of("D4207", f"`from={since[:50]}`: {error.message}", hint=error.hint) from None
        if clock is not None and clock.integer is not integer:
            message = f"`from={since[:50]}`: the times of this deployment are {_kind(clock)}"
            raise UsageError.of("D4207", message)
        return time, clock or Clock(integer, unit)

    proposal = await parts.workers.run(make)
    planned = await commanded(parts.engine.put_rules(proposal, digest, begin if since else None))
    changes = [
        {"rule": one.rule, "change": str(one.change), **({"why": one.why} if one.why else {})}
        for one in proposal.differences
    ]
    value: dict[str, Any] = {"changes": changes, "warnings": [as_json(one) for one in proposal.warnings]}
    if planned:
        return json_answer({**value, "from": planned}, 202)
    now = await in_thread(_digest, parts)
    return json_answer({**value, "digest": now}, headers={"etag": f'"{now}"'})


async def check_rules(request: Request, parts: Parts) -> Response:
    texts, roots = await _bundle(request)

    def check() -> list[Diagnostic]:
        with _look(parts) as journal:
            try:
                return list(propose_texts(journal, texts, roots).warnings)
            except (ProgramError, DataError) as error:
                return list(error.diagnostics)

    found = await parts.workers.run(check)
    return json_answer({"diagnostics": [as_json(one) for one in found]})


async def try_rules(request: Request, parts: Parts) -> Response:
    token = request.scope.get("dotr.token")
    if token is not None and not token.may(READ):  # differences show what was fed
        message = f"the token `{token.name}` may not do this: it needs `read`, too"
        hint = "dotr serve token new NAME --scopes read,rules"
        raise Problem(403, Diagnostic("D4142", message, hint=hint))
    texts, roots = await _bundle(request)
    text = query(request, "last")
    try:
        length = duration(text) if text else HOUR
    except ValueError:
        raise wrong(f"`last={text[:50]}` is not a duration", "1h, or PT1H") from None

    def run() -> dict[str, Any]:
        with _look(parts) as journal:
            proposal = propose_texts(journal, texts, roots)
        return tried(parts.configuration.dir, proposal, length)

    return json_answer(await parts.workers.run(run))


async def delete_planned(request: Request, parts: Parts) -> Response:
    planned = await commanded(parts.engine.withdraw())
    if not planned:
        raise wrong("no change of the rules is planned", "PUT /v1/rules?from=TIME plans one", "D5209", 404)
    return Response(status_code=204)


async def delete_rule(request: Request, parts: Parts) -> Response:
    name = request.path_params["name"]

    def check() -> None:
        with _look(parts) as journal:
            undeployed(journal, name)

    await in_thread(check)
    await commanded(parts.engine.take_out(name, _if_match(request)))
    return Response(status_code=204)


# ---------------------------------------------------------------------- the engine


async def post_pause(request: Request, parts: Parts) -> Response:
    await commanded(parts.engine.pause())
    return json_answer({"paused": True})


async def post_resume(request: Request, parts: Parts) -> Response:
    await commanded(parts.engine.resume())
    return json_answer({"paused": False})


async def post_advance(request: Request, parts: Parts) -> Response:
    if not query(request, "to"):
        raise wrong("up to when?", "POST /v1/advance?to=TIME")

    def to(clock: Clock | None) -> Time:
        if clock is None:
            raise UsageError.of("D4207", "no graph has come yet, so time has no kind")
        time = instant(request, clock, "to")
        assert time is not None
        return time

    instant(request, clock_of(parts), "to")
    watermark = await commanded(parts.engine.advance(to))
    return json_answer({"watermark": as_time(watermark, clock_of(parts))})


# ---------------------------------------------------------------------- dead letters


async def get_letters(request: Request, parts: Parts) -> Response:
    after, limit = number(request, "after", 0), min(number(request, "limit", 100), PAGE)
    found = await in_thread(parts.broadcast.reader.letters, after, limit, query(request, "kind"))
    letters = [_letter(one) for one in found]
    next_ = _next(request, after=found[-1].number) if found and len(found) == limit else None
    return json_answer({"letters": letters, "next": next_})


def _letter(one: Any) -> dict[str, Any]:
    try:
        document: dict[str, str] = {"document": one.content.decode()}
    except UnicodeDecodeError:
        import base64  # noqa: PLC0415  # most documents are UTF-8

        document = {"base64": base64.b64encode(one.content).decode()}
    return {
        "number": one.number,
        "kind": one.kind,
        "source": one.source,
        "code": one.code,
        "format": one.format,
        **json.loads(one.line),
        **document,
    }


async def _one_letter(request: Request, parts: Parts) -> Any:
    text = request.path_params["n"]
    known = text.isascii() and text.isdigit() and len(text) < 19
    found = await in_thread(parts.broadcast.reader.letter, int(text)) if known else None
    if found is None:
        raise wrong(f"there is no dead letter `{text[:50]}`", "", "D5233", 404)
    return found


async def retry_letter(request: Request, parts: Parts) -> Response:
    letter = await _one_letter(request, parts)
    name = query(request, "stream") or letter.source
    streams = _streams(parts)
    if name not in streams:
        hint = f"name one with ?stream=; streams: {', '.join(streams)}"
        if not streams:
            hint = "add a source `input: {http: {}}`, and name it with ?stream=input"
        found = f"there is no stream `{name[:64]}`"
        if name in parts.configuration.sources:
            found = f"`{name}` takes nothing back: it is not posted to"
        raise wrong(found, hint, "D4209", 404)
    about = json.loads(letter.line)
    future = parts.inbox.append(
        name,
        letter.content,
        format=letter.format,
        time=about.get("at", ""),
        key=f"dead letter {letter.number}",
        mapping=about.get("map", ""),
    )
    received = await asyncio.wrap_future(future)
    parts.metrics.count(name, "duplicate" if received.duplicate else "accepted")
    await commanded(parts.engine.drop_letters([letter.number]))
    return json_answer({"seq": received.number, "token": str(received.number)}, 202)


async def delete_letter(request: Request, parts: Parts) -> Response:
    letter = await _one_letter(request, parts)
    await commanded(parts.engine.drop_letters([letter.number]))
    return Response(status_code=204)


# ---------------------------------------------------------------------- how it is


async def get_status(request: Request, parts: Parts) -> Response:
    engine, clock = parts.engine, clock_of(parts)
    status = engine.status
    return json_answer(
        {
            "version": __version__,
            "ready": not reasons_not_ready(parts),
            "reasons": reasons_not_ready(parts),
            "paused": engine.paused,
            "watermark": as_time(status.get("watermark"), clock),
            "latest": as_time(status.get("latest"), clock),
            "commit": status.get("commit", 0),
            "digest": engine.digest,
            "graphs": status.get("graphs", 0),
            "instants": status.get("instants", 0),
            "late": status.get("late", 0),
            "refused": status.get("refused", 0),
            "corrections": status.get("corrections"),
            "streams": list(_streams(parts)),
            "rules": [
                {
                    "rule": rule.name,
                    "events": status.get("events", {}).get(rule.name, 0),
                    "last": as_time(status.get("last", {}).get(rule.name), clock),
                    "remembered": status.get("sizes", {}).get(rule.name, 0),
                    "funnel": status.get("funnel", {}).get(rule.name, []),
                }
                for rule in engine.program.rules
            ],
            "partitions": [
                {
                    "source": source_name(source),
                    "partition": partition,
                    "latest": as_time(latest, clock),
                    "graphs": graphs,
                    "idle": idle,
                }
                for source, partition, latest, graphs, idle in status.get("partitions", ())
            ],
            "inbox": {name: count.rows for name, count in parts.inbox.counts().items()},
            "outbox": parts.broadcast.last,
            "subscriptions": [
                *(one._asdict() for one in parts.listening.states()),
                *(state_of(name, one) for name, one in engine.replayed.items()),
            ],
            "outputs": [
                {
                    "output": one.name,
                    "delivered": one.delivered,
                    "waiting": max(0, parts.broadcast.last - one.delivered),
                    "failures": one.failures,
                    "error": one.why,
                    "gone": one.gone,
                }
                for one in parts.deliveries.states()
            ],
            "readers": parts.broadcast.readers,
        }
    )


def reasons_not_ready(parts: Parts) -> list[str]:
    """Why documents had better not come now; nothing where they may."""
    engine, reasons = parts.engine, []
    if engine.loading:
        reasons.append("the deployment is being loaded")
    if engine.failure is not None:
        reasons.append(engine.failure.diagnostics[0].message)
    if parts.inbox.failure is not None:
        reasons.append(parts.inbox.failure.diagnostics[0].message)
    if engine.paused:
        reasons.append("the engine is paused")
    for name, one in engine.replayed.items():
        if not one.connected:
            reasons.append(f"the source `{name}` is not connected: {one.why}")
    if engine.held_by:
        reasons.append(f"the output `{engine.held_by}` is too slow")
    if parts.inbox.filled > READY_BACKLOG:
        reasons.append("the inbox is more than half full")
    if not engine.program.rules:
        reasons.append("no rules are deployed")
    return reasons


async def get_samples(request: Request, parts: Parts) -> Response:
    return json_answer(parts.samples.values())


async def get_livez(request: Request, parts: Parts) -> Response:
    return Response("ok\n", media_type="text/plain")


async def get_readyz(request: Request, parts: Parts) -> Response:
    reasons = reasons_not_ready(parts)
    if reasons:
        text = "".join(f"{reason}\n" for reason in reasons)
        return Response(text, 503, {"retry-after": "1"}, media_type="text/plain")
    return Response("ready\n", media_type="text/plain")


async def get_metrics(request: Request, parts: Parts) -> Response:
    return Response(await in_thread(parts.metrics.text), media_type=METRICS_MEDIA)


async def get_openapi(request: Request, parts: Parts) -> Response:
    return json_answer(openapi())


# ---------------------------------------------------------------------- the console

_FILES: Final = StaticFiles()


async def get_page(request: Request, parts: Parts) -> Response:
    return await _file(request, INDEX)


async def get_file(request: Request, parts: Parts) -> Response:
    return await _file(request, request.path_params["file"])


async def _file(request: Request, name: str) -> Response:
    """A file of the console, packed where that is taken; 304 where the browser has it."""
    file = await in_thread(_FILES.find, name)
    if file is None:
        raise wrong(
            f"the console has no file `{name[:64]}`", nearest(name, _FILES.names()) or "", "D4211", 404
        )
    headers = {"etag": file.etag, "cache-control": "no-cache", "vary": "Accept-Encoding"}
    if file.etag in [one.strip() for one in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(file.packed, headers=headers, media_type=file.media)
    return Response(file.content, headers=headers, media_type=file.media)


# ---------------------------------------------------------------------- answers


def _answered(answer: Answer) -> Response:
    headers = {"dotr-commit": str(answer.commit)}
    if answer.watermark is not None:
        headers["dotr-watermark"] = answer.watermark
    return Response(answer.content, media_type=answer.media_type, headers=headers)


async def sparql(request: Request, parts: Parts) -> Response:
    accept = request.headers.get("accept")
    parameters, body = list(request.query_params.multi_items()), None
    if request.method == "POST":
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        text = (await request.body()).decode("utf-8", "replace")
        if media == "application/sparql-query":
            body = text
        elif media == "application/x-www-form-urlencoded":
            parameters += parse_qsl(text, keep_blank_values=True)
        else:
            raise wrong(
                f"a query of `{media[:64]}` is not read",
                "application/sparql-query, or a form with query=",
                "D4210",
                415,
            )
    elif not parameters:
        answer = parts.answers.service_description
        return _answered(await parts.workers.run(answer, str(request.url_for("/v1/sparql")), accept))
    asked = request_of(parameters, body)
    try:
        return _answered(await parts.workers.run(parts.answers.sparql, asked.query, asked.at, accept))
    except ProgramError as error:  # 400 by the protocol, not 422
        raise Problem(400, error) from None


async def get_state(request: Request, parts: Parts) -> Response:
    at, accept = query(request, "at") or None, request.headers.get("accept")
    return _answered(await parts.workers.run(parts.answers.state, at, accept))


def _depth(request: Request) -> int | None:
    return number(request, "depth", 0) if query(request, "depth") else None


async def get_why(request: Request, parts: Parts) -> Response:
    row = await _event(request, parts)
    accept = request.headers.get("accept")
    return _answered(await parts.workers.run(parts.answers.why, row.id, _depth(request), accept))


async def get_why_not(request: Request, parts: Parts) -> Response:
    rule, at = query(request, "rule"), query(request, "at")
    if not rule or not at:
        raise wrong("which rule, and when?", "GET /v1/why-not?rule=Fire&at=TIME")
    where, accept = request.query_params.getlist("where"), request.headers.get("accept")
    why_not, depth = parts.answers.why_not, _depth(request)
    return _answered(await parts.workers.run(why_not, rule, at, where, depth, accept))


async def get_plan(request: Request, parts: Parts) -> Response:
    return json_answer(await parts.workers.run(parts.answers.plan))


async def get_watch(request: Request, parts: Parts) -> Response | None:
    media = negotiated(request.headers.get("accept"), ("text/event-stream", "application/x-ndjson"))
    watch = await parts.workers.run(parts.answers.watch, request.path_params["query"])
    sse = media == "text/event-stream"

    def written(lines: str, event: str) -> bytes:
        if not sse:
            return lines.encode()
        return "".join(f"event: {event}\ndata: {line}\n\n" for line in lines.split("\n") if line).encode()

    async def pieces() -> AsyncIterator[bytes]:
        yield written(await in_thread(snapshot_lines, watch), "snapshot")
        while not parts.broadcast.closing:
            commits = parts.broadcast.commits
            found = await parts.workers.run(watch.changes)
            if lines := await in_thread(difference_lines, watch, found):
                yield written(lines, "change")
            while parts.broadcast.commits == commits and not parts.broadcast.closing:
                if not await parts.broadcast.changes(PULSE):
                    yield b""

    try:
        await stream(parts.broadcast, request.scope, request.receive, _send_of(request), pieces(), media)
    finally:
        await in_thread(watch.close)
    return None


# ---------------------------------------------------------------------- the table

_AT: Final = Parameter("at", "query", "A time of the stream; without it, now.", "2026-01-01T08:00:00Z")
_DEPTH: Final = Parameter("depth", "query", "How many steps of a proof are shown.", "3")
_WHERE: Final = Parameter("where", "query", "VARIABLE=TERM; may be repeated.", "room=:room14")
_RULE: Final = Parameter("rule", "query", "The name of a rule; may be repeated.", "Fire")
_IF_NONE_MATCH: Final = Parameter("If-None-Match", "header", "The ETag of what is known.")
_SINCE: Final = Parameter("since", "query", "Events of this time and later.", "2026-01-01T08:00:00Z")
_UNTIL: Final = Parameter("until", "query", "Events of this time and before.", "2026-01-01T09:00:00Z")
_IF_MATCH: Final = Parameter("If-Match", "header", "The digest of the rules that are changed.")

_OF_DOCUMENTS: Final = {
    202: "The document is on disk, and is going to be processed.",
    200: "It is processed and committed (`wait=committed`), or was read (`dry-run`).",
    404: "There is no such stream.",
    409: "The key was used for other bytes.",
    413: "The document is too long.",
    415: "Documents of this type are not read.",
    422: "It cannot be read (`dry-run`).",
    429: "The inbox is full; Retry-After says when to come again.",
}

ROUTES: Final[Sequence[Route]] = (
    Route(
        "POST",
        "/v1/streams/{name}",
        post_stream,
        "Give a document to a stream.",
        (
            Parameter("at", "query", "The time of its graphs, whatever they say.", "2026-01-01T08:00:00Z"),
            Parameter("Dotr-Time", "header", "The same."),
            Parameter("map", "query", "The mapping of a table, by its name."),
            Parameter("wait", "query", "`committed`: answer when the document is processed.", "committed"),
            Parameter("timeout", "query", "How long to wait (30s).", "5s"),
            Parameter("dry-run", "query", "Read it, and do nothing else."),
            Parameter("Idempotency-Key", "header", "The same key and bytes are one document, for a day."),
        ),
        "A document in any format that dotr reads, by its Content-Type; gzip and zstd by Content-Encoding.",
        _OF_DOCUMENTS,
    ),
    Route(
        "GET",
        "/v1/tokens/{token}",
        get_token,
        "What became of a document.",
        answers={
            200: "pending, committed, refused or late.",
            404: "There is no such document.",
            410: "Too old.",
        },
    ),
    Route(
        "GET",
        "/v1/events",
        get_events,
        "Events, as they come or by pages.",
        (
            Parameter("after", "query", "The number of the last event that is known.", "1234"),
            Parameter("Last-Event-ID", "header", "The same, as browsers send it."),
            Parameter("before", "query", "Of a page: events before this number.", "1300"),
            _SINCE,
            _UNTIL,
            _RULE,
            _WHERE,
            Parameter("text", "query", "Events whose JSON line has this, in any case.", "room14"),
            Parameter("order", "query", "Of a page: `oldest` first, or `newest`.", "newest"),
            Parameter("limit", "query", "Events of a page (100, at most 1,000).", "100"),
            Parameter("follow", "query", "Lines go on as events come."),
        ),
        media=EVENT_MEDIA,
    ),
    Route(
        "GET",
        "/v1/ldes",
        get_ldes,
        "The events as a Linked Data Event Stream: its pages, and the times of their events.",
        (_IF_NONE_MATCH,),
        answers={200: "The root.", 304: "It is as it was."},
        media=tuple(VIEW_MEDIA),
    ),
    Route(
        "GET",
        "/v1/ldes/{page}",
        get_ldes_page,
        "A page of 250 events, each a graph; it never changes once it is full.",
        (_IF_NONE_MATCH,),
        answers={
            200: "The page.",
            304: "It is as it was.",
            404: "There is no such page yet.",
            410: "Its events are not kept any more.",
        },
        media=tuple(PAGE_MEDIA),
    ),
    Route(
        "GET",
        "/v1/events/counts",
        get_counts,
        "How many events of each rule there are in buckets of time.",
        (
            _SINCE,
            _UNTIL,
            Parameter("buckets", "query", "How many buckets (120, at most 1,000).", "120"),
        ),
    ),
    Route("GET", "/v1/events/{id}", get_event, "One event, by its id or number."),
    Route("GET", "/v1/events/{id}/why", get_why, "Why an event happened.", (_DEPTH,), media=tuple(PROOFS)),
    Route(
        "GET",
        "/v1/why-not",
        get_why_not,
        "How far a rule came at an instant.",
        (_RULE, Parameter("at", "query", "The instant.", "2026-01-01T08:00:00Z"), _WHERE, _DEPTH),
        media=tuple(PROOFS),
    ),
    Route(
        "GET",
        "/v1/sparql",
        sparql,
        "Ask a SPARQL 1.1 query of what holds; without one, the service description.",
        (Parameter("query", "query", "The query.", "SELECT * { ?s ?p ?o } LIMIT 10"), _AT),
        media=(*SOLUTIONS[:4], *GRAPHS),
    ),
    Route(
        "POST",
        "/v1/sparql",
        sparql,
        "The same.",
        (_AT,),
        "application/sparql-query, or a form.",
        media=(*SOLUTIONS[:4], *GRAPHS),
    ),
    Route("GET", "/v1/state", get_state, "What holds, as RDF.", (_AT,), media=tuple(GRAPHS)),
    Route(
        "GET",
        "/v1/watch/{query}",
        get_watch,
        "The answers of a QUERY of the rules, then what begins and ends.",
        media=("text/event-stream", "application/x-ndjson"),
    ),
    Route("GET", "/v1/rules", get_rules, "The rule files, and their digest as ETag."),
    Route(
        "PUT",
        "/v1/rules",
        put_rules,
        "Put other rules in force, all or none, now or from a time of the stream on.",
        (Parameter("from", "query", "A time that has not come.", "2026-01-01T08:00:00Z"), _IF_MATCH),
        'One rule file as text, or {"files": {NAME: TEXT}, "roots": [NAME]}.',
        {
            200: "What changed.",
            202: "Planned.",
            412: "The rules are others now.",
            422: "What is wrong with them.",
        },
    ),
    Route(
        "POST",
        "/v1/rules/check",
        check_rules,
        "Check rules, and change nothing.",
        (),
        "As for PUT.",
        {200: "Diagnostics, as `dotr check --format json` prints them."},
    ),
    Route(
        "POST",
        "/v1/rules/try",
        try_rules,
        "Run rules and those in force over what came lately, and compare; change nothing.",
        (Parameter("last", "query", "How much of the stream (1h).", "10min"),),
        "As for PUT.",
        {200: "Events by rule, and those that differ.", 422: "What is wrong with the rules."},
    ),
    Route(
        "DELETE",
        "/v1/planned-rules",
        delete_planned,
        "Withdraw what `PUT /v1/rules?from=` planned.",
        answers={204: "It is withdrawn.", 404: "Nothing is planned."},
    ),
    Route(
        "DELETE",
        "/v1/rules/{name}",
        delete_rule,
        "Take one rule out.",
        (_IF_MATCH,),
        answers={204: "It is out.", 404: "There is no such rule.", 409: "Another rule reads its events."},
    ),
    Route(
        "GET", "/v1/plan", get_plan, "How the rules are evaluated, as `dotr plan --format json` prints it."
    ),
    Route("POST", "/v1/pause", post_pause, "Commit, and process nothing; documents are still taken."),
    Route("POST", "/v1/resume", post_resume, "Go on."),
    Route(
        "POST",
        "/v1/advance",
        post_advance,
        "Close every instant up to a time.",
        (Parameter("to", "query", "The time.", "2026-01-01T08:00:00Z"),),
    ),
    Route(
        "GET",
        "/v1/dead-letters",
        get_letters,
        "Documents and graphs that were refused, and graphs that came late.",
        (
            Parameter("after", "query", "The number of the last one that is known.", "12"),
            Parameter("kind", "query", "`refused` or `late`.", "refused"),
            Parameter("limit", "query", "How many (100, at most 1,000).", "100"),
        ),
    ),
    Route(
        "POST",
        "/v1/dead-letters/{n}/retry",
        retry_letter,
        "Give it to its stream again.",
        (Parameter("stream", "query", "Another stream.", "input"),),
        answers={202: "It is in the inbox."},
    ),
    Route("DELETE", "/v1/dead-letters/{n}", delete_letter, "Forget it.", answers={204: "It is gone."}),
    Route("GET", "/v1/status", get_status, "How far it is, and whether it is ready."),
    Route("GET", "/v1/samples", get_samples, "Rates and latencies of the last hour, every five seconds."),
    Route("GET", "/metrics", get_metrics, "Counts, for Prometheus.", media=("text/plain",)),
    Route("GET", "/livez", get_livez, "Whether the server answers.", media=("text/plain",)),
    Route(
        "GET",
        "/readyz",
        get_readyz,
        "Whether it is ready for documents.",
        answers={200: "It is.", 503: "Why not, a line each."},
        media=("text/plain",),
    ),
    Route("GET", "/v1/openapi.json", get_openapi, "This, for programs."),
    Route("GET", "/", get_page, "The console.", media=("text/html",)),
    Route(
        "GET",
        "/console/{file:path}",
        get_file,
        "Its files.",
        answers={200: "The file.", 304: "It is as it was.", 404: "There is no such file."},
        media=("text/javascript", "text/css"),
    ),
)


def openapi() -> dict[str, Any]:
    """The routes as an OpenAPI 3.1 document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        path = route.path.replace(":path}", "}")
        named = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in named
        ]
        parameters += [
            {
                "name": one.name,
                "in": one.where,
                "description": one.text,
                "schema": {"type": "string"},
                **({"example": one.example} if one.example else {}),
            }
            for one in route.parameters
        ]
        content: dict[str, Any] = {media: {} for media in route.media}
        responses: dict[str, Any] = {
            str(status): {
                "description": text,
                **({"content": content} if status < 300 and status != 204 else {}),
            }
            for status, text in route.answers.items()
        }
        responses["default"] = {
            "description": "A problem (RFC 9457).",
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        operation: dict[str, Any] = {
            "operationId": f"{route.method.lower()}_{route.handler.__name__}",
            "summary": route.summary,
            "parameters": parameters,
            "responses": responses,
        }
        if route.body:
            operation["requestBody"] = {"description": route.body, "required": True, "content": {"*/*": {}}}
        paths.setdefault(path, {})[route.method.lower()] = operation
    text = {"type": "string"}
    problem = {
        "type": "object",
        "properties": {
            "type": text,
            "title": text,
            "status": {"type": "integer"},
            "detail": text,
            "code": text,
            "place": text,
            "found": text,
            "hint": text,
            "notes": {"type": "array", "items": text},
        },
        "required": ["type", "title", "status", "detail", "code"],
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dotr serve",
            "version": __version__,
            "description": "Documents in, events out, and why.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {"Problem": problem},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def application(parts: Parts) -> Starlette:
    """The application, without what stands in front of it."""
    routes = [
        StarletteRoute(route.path, _endpoint(route, parts), name=route.path, methods=[route.method])
        for route in ROUTES
    ]
    return Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found})


class _endpoint:  # noqa: N801  # it stands for a function
    """One route as an ASGI application, which may send its answer itself."""

    def __init__(self, route: Route, parts: Parts) -> None:
        self.route, self.parts = route, parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["dotr.send"] = send
        request = Request(scope, receive, send)
        try:
            response = await self.route.handler(request, self.parts)
        except Problem as problem:
            await answer_problem(send, problem)
            return
        except DotrError as error:
            await answer_problem(send, problem_of(error))
            return
        if response is not None:
            await response(scope, receive, send)


async def _not_found(request: Request, error: Exception) -> Response:
    paths = {route.path for route in ROUTES}
    status = getattr(error, "status_code", 404)
    path = request.url.path
    message = f"there is no `{path[:100]}`" if status == 404 else f"`{path[:100]}` takes no {request.method}"
    problem = wrong(
        message, nearest(path, paths) or "GET /v1/openapi.json lists what there is", "D4211", status
    )
    return Response(problem.body(), status, media_type="application/problem+json")

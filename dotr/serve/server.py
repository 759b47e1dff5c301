"""A server from its first port to its last commit.

Place:   what `dotr serve` runs; owns the inbox, the engine, the routes and the web server.
Method:  uvicorn answers in the main thread, the engine feeds in its own. The port is bound before the
         deployment is touched, so two servers of one address do not both begin. SIGTERM and SIGINT: no more
         requests, readers are let go, the inbox is written, the engine commits: within ten seconds, else the
         last commit stands. SIGHUP: the configuration is read again; what is wrong with it is reported,
         and the server goes on as it was.
         A connection that sends no whole request in ten seconds, or no body in a minute, is closed. Where
         there are as many as the system has room for, a new one takes the place of the one that has asked
         for nothing for the longest time.
Why not: a process for each half: HTTP is not what costs (tests/bench/serve.py).
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, Protocol, TextIO

import h11
import uvicorn
from msgspec.structs import replace
from uvicorn.protocols.http.h11_impl import H11Protocol

from dotr.errors import Diagnostic, DotrError, EngineError, RefusedError, Severity
from dotr.serve.answers import Answers
from dotr.serve.app import Parts, Workers, application
from dotr.serve.configuration import Configuration, read_secret, rows_and_bytes
from dotr.serve.deliveries import Deliveries, receivers
from dotr.serve.engine import Engine, mappings_of
from dotr.serve.metrics import Metrics
from dotr.serve.samples import Samples
from dotr.serve.security import (
    App,
    Problem,
    Receive,
    Scope,
    Security,
    Send,
    Tokens,
    answer_problem,
    refuse_unsafe,
)
from dotr.serve.streaming import Broadcast
from dotr.serve.subscriptions import Subscriptions, subscriptions
from dotr.serve.telemetry import Telemetry
from dotr.service.inbox import Inbox
from dotr.service.journal import DATABASE, Journal
from dotr.service.outbox import OutboxReader

_M_ARENA_MAX: Final = -8
"""As `malloc.h` has it."""

GRACE: Final = 8.0
"""Seconds that the engine has to end."""

HEAD_SECONDS: Final = 10.0
"""Seconds for the head of a request, and between two requests of a connection."""

BODY_SECONDS: Final = 60.0
"""Seconds for a whole request to come."""

_SPARE_FILES: Final = 100
"""Files that are kept for the deployment and its outputs."""

_BURST: Final = 1_000
"""Connections that are accepted at once, before any is counted."""

_QUEUE: Final = 4_096
"""Connections that wait until they are accepted; the system may allow fewer."""

_MOST_CONNECTIONS: Final = 4_000

_AT_START: Final = ("listen", "dir", "tls", "inbox", "otlp", "corrections", "corrections_budget")
"""Keys of the configuration that a running server keeps."""


_WATCHED: Final = 0.5
"""Seconds between two looks of whoever watches."""


class Watcher(Protocol):
    """Who watches the server on the terminal to which its log goes."""

    def begin(self, address: str, parts: Parts) -> None:
        """It listens there."""

    def look(self) -> None:
        """Some time has passed; for any thread."""

    def aside(self) -> AbstractContextManager[None]:
        """A line is written meanwhile."""

    def close(self) -> None:
        """It listens no more."""


class Log:
    """Owns where the server writes what happens: lines, or JSON objects with a time. No bodies, no tokens.
    `aside`: around each line.
    """

    def __init__(
        self,
        format_: str,
        out: TextIO,
        aside: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._json, self._out, self._aside = format_ == "json", out, aside
        self._mutex = threading.Lock()

    def say(self, message: str, level: str = "info", **more: Any) -> None:
        """One line."""
        if self._json:
            time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            line = json.dumps({"time": time, "level": level, "message": message, **more}, ensure_ascii=False)
        else:
            line = message if level == "info" else f"{level}: {message}"
        self._write(line)

    def _write(self, line: str) -> None:
        with self._mutex, self._aside(), suppress(OSError, ValueError):
            self._out.write(line + "\n")
            self._out.flush()

    def found(self, one: Diagnostic) -> None:
        """A diagnostic."""
        level = "error" if one.severity is Severity.ERROR else "warning"
        if self._json:
            more = {
                "code": one.code,
                "place": one.place or (str(one.span) if one.span else ""),
                "hint": one.hint,
            }
            self.say(one.message, level, **{name: value for name, value in more.items() if value})
        else:
            self._write(one.render())


class _Errors(logging.Handler):
    """Errors that libraries find, as lines of the log; what a client does wrong is none."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.ERROR)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        found = record.exc_info[1] if record.exc_info else None
        message = record.getMessage().partition("\n")[0] + ("" if found is None else f": {found!r}")
        ended = "graceful shutdown" in message  # a request that took longer than the server waits for
        self._log.say(message[:500], "warning" if ended else "error")

    @classmethod
    def listen(cls, log: Log) -> None:
        """To the libraries that serve."""
        for name in ("uvicorn.error", "asyncio"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [cls(log)], False


class _Protocol(H11Protocol):
    """A connection that has to send what it has to say, and may be ended at once."""

    most = _MOST_CONNECTIONS
    _oldest: ClassVar[dict[_Protocol, None]] = {}
    """Connections by the time since when they have not asked for anything else."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most and not self._make_room():
            transport.abort()
            return
        self._oldest[self] = None
        app = self.app

        async def with_abort(scope: Any, receive: Any, send: Any) -> None:
            scope["dotr.abort"] = transport.abort
            await app(scope, receive, send)

        self.app = with_abort
        self._since: float | None = self.loop.time()
        self._timer = self.loop.call_later(HEAD_SECONDS, self._look)

    def _make_room(self) -> bool:
        """End the connection that has waited longest without a whole request."""
        for one in self._oldest:
            if one.cycle is None or one.cycle.response_complete or one.conn.their_state is h11.SEND_BODY:
                del self._oldest[one]
                one.transport.abort()
                return True
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._oldest.pop(self, None)
        if (timer := getattr(self, "_timer", None)) is not None:
            timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self.conn.their_state
        if before is h11.IDLE and self._since is None:
            self._since = self.loop.time()
            self._oldest.pop(self, None)
            self._oldest[self] = None
        super().data_received(data)
        after = self.conn.their_state
        if after is h11.SEND_BODY:
            self._since = self.loop.time() if before is not h11.SEND_BODY else self._since
        elif after is not h11.IDLE or not self.conn.trailing_data[0]:
            self._since = None

    def _look(self) -> None:
        """End a connection whose request does not come."""
        allowed = BODY_SECONDS if self.conn.their_state is h11.SEND_BODY else HEAD_SECONDS
        if self._since is not None and self.loop.time() - self._since > allowed:
            self.transport.abort()
            return
        self._timer = self.loop.call_later(HEAD_SECONDS / 2, self._look)


class _WebServer(uvicorn.Server):
    """What answers; signals are not its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def end(self) -> None:
        """A signal: end in good order, at the second one at once."""
        self.force_exit = self.should_exit
        self.should_exit = True


def run(configuration: Configuration, *, log_format: str = "text", watcher: Watcher | None = None) -> int:
    """Serve until a signal; the exit code. Raises DotrError for what keeps it from beginning."""
    log = Log(log_format, sys.stderr, nullcontext if watcher is None else watcher.aside)
    _share_heaps()
    _Errors.listen(log)
    refuse_unsafe(configuration)
    sock = _bound(configuration)
    try:
        return asyncio.run(_Server(configuration, log, sock, watcher).run())
    finally:
        sock.close()
        if watcher is not None:
            watcher.close()


def _share_heaps() -> None:
    """Let threads share two heaps. The C library of Linux gives each its own and returns none: bodies that
    pass from thread to thread left 149 MiB after 600,000 graphs, and leave 90 so.
    """
    with suppress(AttributeError, OSError):  # another library
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def _bound(configuration: Configuration) -> socket.socket:
    """The port. Raises RefusedError D4212."""
    family = socket.AF_INET6 if ":" in configuration.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio waits to fill packets
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((configuration.host, configuration.port))
        sock.listen(1024)
    except OSError as error:
        sock.close()
        reason = (error.strerror or str(error)).lower()
        raise RefusedError.of(
            "D4212",
            f"cannot listen on `{configuration.listen}`: {reason}",
            hint="stop what listens there, or choose another port with --listen",
        ) from None
    return sock


def _fed(folder: str) -> int:
    """The greatest number of a document that the deployment has committed."""
    if not os.path.exists(os.path.join(folder, DATABASE)):
        return 0
    with Journal(folder, exclusive=False) as journal:
        return journal.greatest_position("inbox/")


def _connections() -> tuple[int, int]:
    """How many connections there may be, and how many more are accepted before they are counted: as many
    files as the system lets us have, but for some. Windows has no such limit.
    """
    try:
        import resource  # noqa: PLC0415  # POSIX alone has it
    except ImportError:
        return _MOST_CONNECTIONS, _BURST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_CONNECTIONS + _BURST + _SPARE_FILES
    if soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, soft), hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    burst = max(1, min(_BURST, soft // 4))
    return max(16, min(_MOST_CONNECTIONS, soft - burst - _SPARE_FILES)), burst


class _Server:
    """Owns everything that runs."""

    def __init__(
        self, configuration: Configuration, log: Log, sock: socket.socket, watcher: Watcher | None
    ) -> None:
        self.configuration, self.log, self._socket = configuration, log, sock
        self._watcher = watcher
        self._reloading = False

    async def run(self) -> int:
        """See the function of that name."""
        configuration, log = self.configuration, self.log
        mappings = mappings_of(configuration)
        rows, size = rows_and_bytes(configuration.inbox.max, 100_000, 1 << 30)
        made, after = receivers(configuration), _fed(configuration.dir)
        tokens = Tokens.read(configuration.tokens) if configuration.tokens is not None else None
        with Inbox(configuration.dir, max_rows=rows, max_bytes=size, after=after) as inbox:
            self._committed: Callable[[Mapping[str, int]], None] = lambda _fed: None
            engine = Engine(configuration, inbox, mappings, lambda fed: self._committed(fed), log.found)
            await asyncio.to_thread(engine.start)
            self._engine = engine
            with OutboxReader(configuration.dir, look=None) as reader:
                broadcast = Broadcast(reader, log.found)
                deliveries = Deliveries(reader, engine.cursors, log.found)
                listening = Subscriptions()
                metrics = Metrics(engine, inbox, broadcast, deliveries)

                def committed(fed: Mapping[str, int]) -> None:
                    metrics.committed(fed)
                    broadcast.changed()
                    deliveries.wake()

                self._committed = committed
                answers = Answers(configuration.dir)
                engine.tell(answers.knowledge)
                samples = Samples(engine, inbox, broadcast, metrics)
                self._parts = Parts(
                    configuration,
                    engine,
                    inbox,
                    broadcast,
                    metrics,
                    deliveries,
                    listening,
                    mappings,
                    answers,
                    samples,
                    Workers(),
                )
                self._security = Security(_logged(application(self._parts), log), configuration, tokens)
                running = asyncio.ensure_future(broadcast.run())
                sampling = asyncio.ensure_future(samples.run())
                collector = configuration.otlp
                telemetry = None if collector is None else Telemetry(collector, metrics, log.found)
                try:
                    await asyncio.to_thread(deliveries.begin, configuration, made)
                    await asyncio.to_thread(
                        listening.begin, subscriptions(configuration, mappings, inbox, log.found)
                    )
                    await self._serve(broadcast)
                finally:
                    broadcast.close()
                    sampling.cancel()
                    if telemetry is not None:
                        await asyncio.to_thread(telemetry.close)
                    await asyncio.to_thread(listening.close)
                    await asyncio.to_thread(deliveries.close)
                    ended = await asyncio.to_thread(engine.stop, GRACE)
                    running.cancel()
                    if not ended:
                        log.say("the engine was ended in the middle of an instant: the last commit stands")
        log.say("stopped")
        return 0

    async def _serve(self, broadcast: Broadcast) -> None:
        configuration = self.configuration
        tls: dict[str, Any] = {}
        if configuration.tls is not None:
            password = configuration.tls.password
            tls = {
                "ssl_certfile": configuration.tls.cert,
                "ssl_keyfile": configuration.tls.key,
                "ssl_keyfile_password": None if password is None else read_secret(password),
            }
        _Protocol.most, burst = _connections()
        server = _WebServer(
            uvicorn.Config(
                self._security,
                http=_Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=configuration.behind_proxy,
                backlog=burst,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=2,
                h11_max_incomplete_event_size=64 << 10,
                **tls,
            )
        )
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, AttributeError):
            loop.add_signal_handler(signal.SIGHUP, self._reload)
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, server.end)
        address = self._socket.getsockname()
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        scheme = "https" if configuration.tls is not None else "http"
        self.log.say(
            f"dotr serves {configuration.dir} on {scheme}://{host}:{address[1]}",
            address=f"{scheme}://{host}:{address[1]}",
        )
        if not self._engine.program.rules:
            self.log.say("no rules are deployed: PUT /v1/rules brings them", "warning")

        async def let_go() -> None:
            while not server.started and not server.should_exit:
                await asyncio.sleep(0.01)
            self._socket.listen(_QUEUE)
            while not server.should_exit:
                await asyncio.sleep(0.1)
            broadcast.close()

        async def watch(watcher: Watcher) -> None:
            watcher.begin(f"{scheme}://{host}:{address[1]}", self._parts)
            while not server.should_exit:
                await asyncio.to_thread(watcher.look)
                await asyncio.sleep(_WATCHED)
            watcher.close()

        beside = [asyncio.ensure_future(let_go())]
        if self._watcher is not None:
            beside.append(asyncio.ensure_future(watch(self._watcher)))
        try:
            await server.serve(sockets=[self._socket])
        finally:
            for one in beside:
                one.cancel()

    def _reload(self) -> None:
        """SIGHUP."""
        if not self._reloading:
            self._reloading = True
            self._reloaded = asyncio.ensure_future(self._read_again())

    async def _read_again(self) -> None:
        try:
            new = await asyncio.to_thread(self.configuration.again)
            for name in _AT_START:
                if getattr(new, name) != getattr(self.configuration, name):
                    self.log.say(f"`{name}` changes at the next start", "warning")
            new = replace(new, **{name: getattr(self.configuration, name) for name in _AT_START})
            refuse_unsafe(new)
            await asyncio.to_thread(new.import_functions)
            tokens = Tokens.read(new.tokens) if new.tokens is not None else None
            mappings = await asyncio.to_thread(mappings_of, new)
            made = receivers(new)
            listened = subscriptions(new, mappings, self._parts.inbox, self.log.found)
            await asyncio.wrap_future(self._engine.configure(new, mappings))
            self._security.settings, self._security.tokens = new, tokens
            self.configuration = self._parts.configuration = new
            self._parts.mappings = mappings
            await asyncio.to_thread(self._parts.deliveries.begin, new, made)
            await asyncio.to_thread(self._parts.listening.begin, listened)
            self.log.say("the configuration was read again")
        except DotrError as error:
            for one in error.diagnostics:
                self.log.found(one)
            self.log.say("the configuration stays as it was", "warning")
        finally:
            self._reloading = False


def _logged(app: App, log: Log) -> App:
    """An application whose mistakes are logged, and answered by a problem."""

    async def logged(scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noted(message: Mapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(dict(message))

        try:
            await app(scope, receive, noted)
        except ConnectionError:
            return  # there is nobody to answer
        except asyncio.CancelledError:  # by the end of the server, which waits for nothing else
            if not begun:
                found = EngineError.of("D4206", "the server stops", hint="ask again in a while")
                await answer_problem(send, Problem(503, found, {"retry-after": "5"}))
        except Exception as error:
            log.say(f"an error of dotr itself: {type(error).__name__}: {error}"[:500], "error", code="D4299")
            if not begun:
                found = EngineError.of("D4299", "an error of dotr itself", hint="please report it")
                await answer_problem(send, Problem(500, found))

    return logged

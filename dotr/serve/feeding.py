"""What a feed connects to beside files: brokers that it reads, hooks and brokers that get its events.

Place:   `dotr feed mqtt://… -o webhook:https://…`: cli/feed.py owns it, service/schemes.py asks it for
         sources and outputs. It runs what a server runs, of the same structs (uris.py): the inbox,
         subscriptions.py, the outbox, deliveries.py.
Method:  A source whose sender cannot be asked again goes through the inbox of the deployment; the others are
         those of replayed.py. All kept outputs are one `Outbox`, and a cursor each, under their names; so the
         next feed that names an output goes on where it was. An output that a later feed does not name is
         forgotten, as by a server: its cursor goes, which is reported where it had not got everything. Names
         of a server's outputs are left alone.
         Events leave the outbox when all outputs have them, unless a server has said how long they are kept.
         Beyond a million that wait the feed waits, as a server does; at its end it waits until all are
         delivered. Ctrl-C ends that: everything is committed, and the next feed delivers the rest.
         The session at a broker is called after the deployment, so two deployments do not share one.
Why not: to deliver without a cursor, at the end of each commit: a dead hook would hold the feed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final, TypeVar

from msgspec.structs import replace

from dotr.errors import Diagnostic, Severity, UsageError
from dotr.events import Time
from dotr.io.decode.documents import Format
from dotr.io.feeds import DocumentSource, GraphSource, Transport
from dotr.io.graphs import SourceOptions
from dotr.serve.configuration import Configuration, Output, Source, age_and_bytes, rows_and_bytes
from dotr.serve.deliveries import Deliveries, drop_others, receivers, unknown_rules
from dotr.serve.engine import KEEP_EVENTS, default_format, mappings_of, reading_of
from dotr.serve.replayed import REPLAYED, check_replayed
from dotr.serve.subscriptions import Subscriptions, check_source, subscriptions
from dotr.serve.uris import OUTPUT_SCHEMES, SOURCE_SCHEMES, digest_of_name, output_of_uri, source_of_uri
from dotr.service.inbox import Inbox, InboxTransport
from dotr.service.journal import Journal
from dotr.service.outbox import Cursors, Outbox, OutboxReader
from dotr.service.outputs import Sink
from dotr.service.schemes import Connectors, OutputRequest, SourceRequest, scheme_of

T = TypeVar("T", Source, Output)

IDENTITY: Final = "identity"
"""What the journal notes: a random name, by which brokers know a deployment."""

SLOW: Final = 5.0
"""Seconds after which it is said that an output takes long."""

_LOOK: Final = 0.05


def is_kept(uri: str) -> bool:
    """Whether a URI is an output with a cursor."""
    return scheme_of(uri) in OUTPUT_SCHEMES


class FeedConnectors:
    """Owns the connections of one feed, and their threads. `say` gets to know what fails and works again.

    Raises DataError, UsageError, EngineError D4205 for what cannot be connected to; no connection is made
    yet.
    """

    def __init__(
        self,
        sources: Sequence[str],
        outputs: Sequence[str],
        say: Callable[[Diagnostic], None],
        corrections: Time | None = None,
    ) -> None:
        self._say = say
        self._source_names: dict[str, str] = {}
        self._output_names: dict[str, str] = {}
        own: dict[str, Source] = {}
        for uri in dict.fromkeys(sources):
            if scheme_of(uri) in SOURCE_SCHEMES:
                name, source = source_of_uri(uri)
                _refuse_twice(name, own)
                check_source(name, source)
                check_replayed(name, source)
                own[name], self._source_names[uri] = source, name
        kept: dict[str, Output] = {}
        for uri in dict.fromkeys(outputs):
            if is_kept(uri):
                name, output = output_of_uri(uri)
                _refuse_twice(name, kept)
                kept[name], self._output_names[uri] = output, name
        self._configuration = Configuration(sources=own, outputs=kept, corrections=corrections)
        self._mappings = mappings_of(self._configuration)
        for receiver in receivers(self._configuration).values():  # which reads secrets
            receiver.close()
        self._inbox: Inbox | None = None
        self._reader: OutboxReader
        self._deliveries: Deliveries | None = None
        self._listening = Subscriptions()
        self._opened = ExitStack()
        self._stopping: Callable[[], bool] = lambda: False
        self._seen = 0

    @property
    def reads(self) -> bool:
        """Whether there are sources that end with the feed alone."""
        return bool(self._source_names)

    @property
    def keeps(self) -> bool:
        """Whether there are outputs with a cursor."""
        return bool(self._output_names)

    @property
    def lateness(self) -> int:
        """How far out of order documents of the sources may be, in µs."""
        return self._configuration.lateness

    def open(self, journal: Journal) -> Connectors:
        """What reads and writes the URIs, for schemes.py. Raises DotrError."""
        configuration, folder = self._configuration, str(journal.folder)
        identity = _identity(journal) if self.reads or self.keeps else ""
        self._configuration = configuration = replace(
            configuration,
            dir=folder,
            sources={name: _called(name, one, identity) for name, one in configuration.sources.items()},
            outputs={name: _called(name, one, identity) for name, one in configuration.outputs.items()},
        )
        if any(source.is_received for source in configuration.sources.values()):
            after = journal.greatest_position("inbox/")
            self._inbox = self._opened.enter_context(Inbox(folder, after=after))
        noted = journal.noted(KEEP_EVENTS)
        keep, most = (0, None) if noted is None else age_and_bytes(noted)
        self._outbox = Outbox(keep, most, changes=configuration.corrections is not None)
        return Connectors(
            dict.fromkeys(SOURCE_SCHEMES, self._source),
            dict.fromkeys(OUTPUT_SCHEMES, self._output),
            {_stored(name, one): one.idle / 1_000_000 for name, one in configuration.sources.items()},
        )

    def _source(self, request: SourceRequest) -> GraphSource:
        """See `MakeSource`."""
        (uri,) = dict.fromkeys(request.uris)
        name = self._source_names[uri]
        source = self._configuration.sources[name]
        transport: Transport
        if source.kind in REPLAYED:
            made = REPLAYED[source.kind](name, source, self._mappings.get(name), self._say)
            self._opened.callback(made.close)
            transport = made
        else:
            assert self._inbox is not None, "it is opened for sources that need it"
            lines = default_format(source) is Format.JSONLINES
            transport = InboxTransport(self._inbox, {name: source.time}, self._mappings, lines)
        return DocumentSource(
            transport,
            default_format(source),
            self._reading(name, source, request.options),
            fail=request.fail,
            ends=False,
            idle=source.idle / 1_000_000,
            name=_stored(name, source),
        )

    def _reading(self, name: str, source: Source, options: SourceOptions) -> SourceOptions:
        """The options of the command line, with what the URI says over them."""
        own = reading_of(source, options.base, options.unit, self._mappings.get(name))
        said = {
            key: getattr(own, key)
            for key, value in (
                ("time_path", source.time_path),
                ("zone", source.time_zone),
                ("mappings", source.map),
            )
            if value is not None
        }
        return replace(options, growing=False, **said)

    def _output(self, request: OutputRequest) -> Sink:
        """See `MakeOutput`: all of them are one."""
        name = self._output_names[request.uri]
        for found in unknown_rules({name: self._configuration.outputs[name]}, request.program):
            self._say(found)
        return self._outbox

    # ------------------------------------------------------------------ while it runs

    def begin(self, folder: str, stopping: Callable[[], bool]) -> None:
        """Listen, and deliver. `stopping`: whether the feed ends. Raises DotrError."""
        self._stopping = stopping
        reader = OutboxReader(folder, look=None)
        self._opened.callback(reader.close)
        cursors = self._opened.enter_context(Cursors(folder))
        self._reader = reader
        if self.keeps:
            self._deliveries = Deliveries(reader, cursors, self._say, is_of_a_feed)
            self._opened.callback(self._deliveries.close)
            self._deliveries.begin(self._configuration, receivers(self._configuration))
        else:
            drop_others(cursors, (), reader.last(), self._say, is_of_a_feed)
        if self._inbox is not None:
            made = subscriptions(self._configuration, self._mappings, self._inbox, self._say)
            self._opened.callback(self._listening.close)
            self._listening.begin(made)

    def committed(self) -> None:
        """There was a commit; where too much waits to be delivered, wait for it."""
        if self._deliveries is None:
            return
        self._deliveries.wake()
        most, _ = rows_and_bytes(self._configuration.outbox.max, 1_000_000, 1 << 30)
        slow = _Slow(self._say, "the feed waits for it")
        while (lags := self._lags()) and max(lags.values()) > most and not self._stopping():
            slow.look(lags)
            time.sleep(_LOOK)

    def wait(self, seconds: float) -> None:
        """Return when there may be something to read; at most so long."""
        if self._inbox is None:
            time.sleep(seconds)
            return
        self._inbox.wait(seconds, self._seen)
        self._seen = self._inbox.last

    def finish(self, shown: Callable[[int], None], seconds: float | None = None) -> None:
        """Wait until the outputs have everything, or Ctrl-C; at most so long. `shown` is called with how many
        events wait for the slowest.
        """
        begun, slow = time.monotonic(), _Slow(self._say, "Ctrl-C ends the wait")
        while lags := self._lags():
            patient = not self._stopping() if seconds is None else time.monotonic() - begun < seconds
            if not patient:
                break
            shown(max(lags.values()))
            if seconds is None:
                slow.look(lags)
            time.sleep(_LOOK)
        for name, events in lags.items() if seconds is not None else ():
            self._say(
                _note(
                    f"{_events(events)} still to be delivered to `{name}`: the next feed with the same -o "
                    "goes on with them"
                )
            )

    def _lags(self) -> dict[str, int]:
        """Output → how many events it has not got, of those that want some."""
        if self._deliveries is None:
            return {}
        last = self._reader.last()
        return {
            one.name: last - one.delivered
            for one in self._deliveries.states()
            if not one.gone and one.delivered < last
        }

    def close(self) -> None:
        """End the threads, and let go."""
        self._opened.close()


def _stored(name: str, source: Source) -> str:
    """What the positions of a source are stored under, as a server has it."""
    return f"{source.kind if source.kind in REPLAYED else 'inbox'}/{name}"


def is_of_a_feed(name: str) -> bool:
    """Whether a cursor is of an output that a feed named by its URI; a configuration's have no colon."""
    return ":" in name


class _Slow:
    """Says once that somebody waits, when that takes long."""

    def __init__(self, say: Callable[[Diagnostic], None], what: str) -> None:
        self._say, self._what, self._said = say, what, False
        self._begun = time.monotonic()

    def look(self, lags: dict[str, int]) -> None:
        """So many events wait."""
        if self._said or time.monotonic() - self._begun < SLOW:
            return
        self._said = True
        for name, events in lags.items():
            self._say(_note(f"{_events(events)} still to be delivered to `{name}`: {self._what}"))


def _note(message: str) -> Diagnostic:
    return Diagnostic("D4214", message, severity=Severity.WARNING)


def _events(count: int) -> str:
    return f"{count:,} event{' is' if count == 1 else 's are'}"


def _refuse_twice(name: str, known: dict[str, Source] | dict[str, Output]) -> None:
    if name in known:
        raise UsageError.of(
            "D4217", f"`{name}` is named twice, differently", hint="give one of them another name: ?name=NAME"
        )


def _identity(journal: Journal) -> str:
    """The name by which brokers know the deployment."""
    known = journal.noted(IDENTITY)
    if known is None:
        known = secrets.token_hex(4)
        journal.note(IDENTITY, known)
    return known


def _called(name: str, one: T, identity: str) -> T:
    """With the name of its session at a broker."""
    return replace(one, client=one.client or f"dotr-{identity}-{digest_of_name(name)}")

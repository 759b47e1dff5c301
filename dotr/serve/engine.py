"""The thread that feeds the deployment of a server, from start to stop.

Place:   between server.py, which owns it, and the routes of app.py, which ask it by `ask`; drives
         service/feed.py over the sources of the configuration, merged by time.
Method:  one thread owns the journal and whatever computes. Others give it commands, which it runs between two
         graphs, and get futures. Everything that reads what was committed (events, answers, proofs) has its
         own connection and asks nothing.
         Rules change between two commits: those that hold from a later time on wait in the feed, others end
         it, and the next feed goes on with them from the same commit. So does a configuration that was read
         again. A pause, and the wait for a slow output, is a command that does nothing but other commands; it
         is given after a commit and before a feed begins, never inside of another command.
         A feed that fails (a full disk) begins again from the last commit, after a second first and later
         after half a minute; meanwhile the inbox takes what comes, `failure` says why nothing is done, and
         what may mend it (other rules, another configuration) is still done.
Why not: commands in the inbox: what a command changes is in the journal already, so nothing needs to be
         repeated after a crash.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from dotr.core.instants import check_units
from dotr.core.pipeline import refuse_closed
from dotr.detect.analysis import ENDLESS
from dotr.errors import Diagnostic, DotrError, EngineError, RefusedError
from dotr.events import Clock, Time
from dotr.explain.record import reach_of
from dotr.io.decode.documents import Format, format_of
from dotr.io.decode.rdf import split_triples
from dotr.io.events import EVENT_FORMATS, format_of_name
from dotr.io.feeds import DocumentSource, FileSource, GraphSource, Transport
from dotr.io.graphs import SourceOptions
from dotr.io.merged_source import MergedSource
from dotr.io.tables.mapping import TableMapping, read_mapping
from dotr.io.time import UNITS
from dotr.program import Program
from dotr.serve.configuration import Configuration, Output, Source, age_and_bytes, rows_and_bytes
from dotr.serve.deliveries import unknown_rules
from dotr.serve.replayed import REPLAYED, Replayed
from dotr.service.deployment import (
    Proposal,
    commit_proposal,
    deployed_program,
    plan_of,
    propose,
    refuse_planned,
    undeploy,
)
from dotr.service.feed import CheckpointPolicy, Feed, FeedOptions, Idle, Stopped, keeping_of, open_feed
from dotr.service.inbox import Inbox, InboxTransport
from dotr.service.journal import Journal, digest_of, planned
from dotr.service.knowledge import Knowledge
from dotr.service.outbox import Cursors, DeadLetterRows, Origin, Outbox, Outcomes
from dotr.service.outputs import Sink, SinkOfRules
from dotr.service.schemes import OutputRequest, file_output, output_of, source_of

T = TypeVar("T")

Say = Callable[[Diagnostic], None]

_SHARE: Final = 4
"""Time between two commits, as a multiple of what a commit takes: a fifth of the time at most goes there."""

_SHORTEST_LOOK: Final = 0.005
_LONGEST_LOOK: Final = 0.05
"""Seconds after which the thread looks for commands, and for additions to files."""

_RETRIES: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before a feed that failed begins again."""

CONFIGURED: Final = "configured"
"""What the journal notes of the rules that the configuration named last."""

KEEP_EVENTS: Final = "keep.events"
"""What it notes of how long events are kept, for feeds without a server."""


class _AgainError(Exception):
    """The feed ends here, and another one goes on from its last commit."""


class Engine:
    """Owns the thread. `committed` is called in it after each commit, with the number of the last document of
    each source that is committed, `say` with findings.

    `status` is what the last commit said of itself (`Feed`), `sources` the names of sources.
    """

    def __init__(
        self,
        configuration: Configuration,
        inbox: Inbox,
        mappings: Mapping[str, TableMapping],
        committed: Callable[[Mapping[str, int]], None],
        say: Say,
    ) -> None:
        self.configuration = configuration
        self.failure: DotrError | None = None
        """Why nothing is done now."""
        self.paused = False
        self.held_by = ""
        """The output that is so slow that the feed waits for it."""
        self.status: Mapping[str, Any] = {}
        self.program = Program()
        self.digest = ""
        """Of what is deployed."""
        self._planned = False
        self.loading = True
        self.letters: dict[str, int] = {}
        """Dead letters since the server began, by code."""
        self.steps: dict[str, float] = {}
        """Seconds that instants took since then, by step."""
        self.commit_seconds = 0.0
        """How long the last commit took."""
        self._inbox, self._mappings, self._committed, self._say = inbox, mappings, committed, say
        self._commands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._feed: Feed | None = None
        self._journal: Journal
        self._seen = self._last_event = 0
        self._saving = 0.0
        self.fed: Mapping[str, int] = {}
        """Source → the number of the last document that is committed, all of it."""
        self._transports: list[InboxTransport] = []
        self.replayed: Mapping[str, Replayed] = {}
        """Source → its transport, of those that can be asked again."""
        self.cursors: Cursors
        """Of the outputs that are kept, for those who deliver to them."""
        self._holding = self._ended = False
        self._unknown: Sequence[Diagnostic] = ()
        """What was reported of outputs of rules that are not deployed."""
        self._answer: Callable[[], None] | None = None
        """To whoever asked for what made the feed begin again, once it has, or cannot."""
        self._stopping = threading.Event()
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="dotr-engine", daemon=True)

    # ------------------------------------------------------------------ from other threads

    def start(self) -> None:
        """Deploy what the configuration names and begin. Raises DotrError where that is refused."""
        self._thread.start()
        self._started.result()

    def stop(self, seconds: float) -> bool:
        """Commit what was done, and end; whether that took no longer."""
        self._stopping.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def ask(self, command: Callable[[Feed], T]) -> Future[T]:
        """Run a command between two graphs. The future raises what it raises, or EngineError D4206 where
        nothing is fed now.
        """

        def with_feed(feed: Feed | None) -> T:
            if feed is None:
                raise self._standing()
            return command(feed)

        return self._ask(with_feed)

    def _ask(self, command: Callable[[Feed | None], T]) -> Future[T]:
        """As `ask`; None: nothing is fed now."""
        asked: Future[T] = Future()

        def run() -> None:
            if not asked.set_running_or_notify_cancel():
                return
            try:
                if self._ended:
                    raise self._standing()
                result = command(self._feed)
            except _AgainError as again:
                self._answer = partial(asked.set_result, again.args[0])
                raise
            except Exception as error:
                asked.set_exception(error if isinstance(error, DotrError) else _unexpected(error))
            else:
                asked.set_result(result)
                self._hold()

        self._commands.put(run)
        if self._ended:
            self._refuse_commands()
        return asked

    def _standing(self) -> EngineError:
        found = self.failure.diagnostics[0].message if self.failure is not None else "the server stops"
        return EngineError.of("D4206", f"nothing is fed now: {found}", hint="ask again in a while")

    # ------------------------------------------------------------------ commands

    def pause(self) -> Future[None]:
        """Commit, and do nothing until `resume`; the inbox goes on."""

        def hold(feed: Feed | None) -> None:
            if feed is not None:
                feed.commit()
            self.paused = True

        return self._ask(hold)

    def resume(self) -> Future[None]:
        """Go on after `pause`."""

        def go_on(_feed: Feed | None) -> None:
            self.paused = False

        return self._ask(go_on)

    def advance(self, to: Callable[[Clock | None], Time]) -> Future[Time | None]:
        """Close every instant up to a time, and commit; up to where they are closed then."""

        def close(feed: Feed) -> Time | None:
            feed.close_up_to(to(feed.pipeline.clock))
            return feed.pipeline.watermark

        return self.ask(close)

    def put_rules(
        self,
        proposal: Proposal,
        digest: str | None,
        since: Callable[[Clock | None], tuple[Time, Clock]] | None,
    ) -> Future[str]:
        """Put rules in force: now, or from a time of the stream on, which is returned as text.

        `digest`: of what was deployed when they were made; if that is another now, RefusedError D5215.
        """

        def put(feed: Feed | None) -> str:
            self._refuse_changed(digest)
            if since is None:
                refuse_planned(self._journal)
                if feed is not None:
                    feed.commit()
                commit_proposal(self._journal, proposal)
                raise _AgainError("")
            if feed is None:
                raise self._standing()
            time_, clock = since(feed.pipeline.clock)
            refuse_closed(time_, feed.pipeline.watermark, clock)
            check_units(proposal.compiled.program, clock)
            feed.commit()
            self._journal.keep_plan(plan_of(proposal, time_, clock))
            raise _AgainError(clock.text(time_))

        return self._ask(put)

    def withdraw(self) -> Future[str]:
        """Forget the change that is planned; from when it was, "" where there was none."""

        def forget(feed: Feed | None) -> str:
            plan = self._journal.plan()
            if plan is None:
                return ""
            if feed is not None:
                feed.commit()
                plan = self._journal.plan()  # the commit may have done it
            if plan is None:
                return ""
            self._journal.keep_plan(None)
            raise _AgainError(Clock(*plan.clock).text(plan.time))

        return self._ask(forget)

    def take_out(self, rule: str, digest: str | None) -> Future[str]:
        """Take one rule out."""

        def take(feed: Feed | None) -> str:
            self._refuse_changed(digest)
            if feed is not None:
                feed.commit()
            undeploy(self._journal, rule)
            raise _AgainError("")

        return self._ask(take)

    def _refuse_changed(self, digest: str | None) -> None:
        now = self._journal.digest()
        if digest is not None and digest != now:
            raise RefusedError.of(
                "D5215", "the rules were changed meanwhile", hint="read them again, and change those"
            )

    def drop_letters(self, numbers: Sequence[int]) -> Future[None]:
        """Take dead letters away."""
        return self._ask(lambda _feed: self._journal.drop_letters(numbers))

    def configure(self, configuration: Configuration, mappings: Mapping[str, TableMapping]) -> Future[str]:
        """Go on with another configuration."""

        def change(feed: Feed | None) -> str:
            if feed is not None:
                feed.commit()
            self._deploy(configuration)
            self.configuration, self._mappings = configuration, mappings
            raise _AgainError("")

        return self._ask(change)

    def tell(self, knowledge: Knowledge) -> None:
        """Tell who follows what holds of every commit from now on; after `start`."""
        knowledge.attach(self._journal)

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        try:
            with Journal(self.configuration.dir, create=True) as self._journal:
                self._deploy(self.configuration)
                with Cursors(self.configuration.dir) as self.cursors:
                    self._feed_on()
        except BaseException as error:  # before it began: whoever starts it gets to know
            if not self._started.done():
                self._started.set_exception(error)
                return
            self.failure = error if isinstance(error, DotrError) else _unexpected(error)
            self._say(self.failure.diagnostics[0])
        finally:
            self._ended = True
            self._has_begun()
            self._refuse_commands()

    def _feed_on(self) -> None:
        """Feed after feed, until the server stops."""
        failures = 0
        while not self._stopping.is_set():
            try:
                with self._opened() as (feed, source):
                    self.loading, self.failure = False, None
                    self._has_begun()
                    if not self._started.done():
                        self._started.set_result(None)
                    self._hold()
                    before = feed.totals.commits
                    feed.follow(source, self._wait)
                    failures = 0 if feed.totals.commits > before else failures
            except _AgainError:
                failures = 0
            except (Stopped, KeyboardInterrupt):
                return
            except Exception as error:
                if not self._started.done():
                    raise
                self.failure = error if isinstance(error, DotrError) else _unexpected(error)
                self._say(self.failure.diagnostics[0])
                self._has_begun()
                with suppress(_AgainError):
                    self._wait_to_retry(_RETRIES[min(failures, len(_RETRIES) - 1)])
                failures += 1

    def _has_begun(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer()

    def _wait_to_retry(self, seconds: float) -> None:
        """Nothing but commands for so long. Raises _AgainError where one of them may have mended it."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._stopping.is_set():
            with suppress(Empty):
                self._commands.get(timeout=0.1)()

    def _refuse_commands(self) -> None:
        """Answer those who ask when the thread has ended."""
        with suppress(Empty):
            while True:
                self._commands.get_nowait()()

    def _wait(self) -> None:
        """Nothing is there now."""
        look = max(_SHORTEST_LOOK, min(self.configuration.commit / 1_000_000, _LONGEST_LOOK))
        self._inbox.wait(look, self._seen)
        self._seen = self._inbox.last

    def _hold(self) -> None:
        """Do nothing but commands, while that is asked for or an output is too slow."""
        if self._holding:
            return
        self._holding = True
        try:
            while not (self._stopping.is_set() or self._ended):
                self.held_by = self._slow_output()
                if not self.paused and not self.held_by:
                    return
                with suppress(Empty):
                    self._commands.get(timeout=_LONGEST_LOOK)()
        finally:
            self._holding = False

    def _slow_output(self) -> str:
        """The output that has more than `outbox.max` to deliver."""
        rows, _ = rows_and_bytes(self.configuration.outbox.max, 1_000_000, 1 << 30)
        kept = [cursor for cursor in self.cursors.all().values() if not cursor.gone]
        slowest = min(kept, key=lambda cursor: cursor.number, default=None)
        return "" if slowest is None or self._last_event - slowest.number <= rows else slowest.name

    # ------------------------------------------------------------------ opening

    def _deploy(self, configuration: Configuration) -> None:
        """Deploy the rules that the configuration names, unless they are those of the last time: what was
        changed since then by requests stays.
        """
        journal = self._journal
        if configuration.rules:
            proposal = propose(journal, configuration.rules, configuration.background, configuration.base)
            named = digest_of(replace(proposal.deployed, functions=()))  # as they are written
            if journal.noted(CONFIGURED) != named:
                refuse_planned(journal)
                commit_proposal(journal, proposal)
                journal.note(CONFIGURED, named)
        if journal.noted(KEEP_EVENTS) != configuration.keep.events:
            journal.note(KEEP_EVENTS, configuration.keep.events)
        program = deployed_program(journal.deployed())
        length, reach = configuration.kept_messages, reach_of(program)
        length = max(length, reach) if length and reach < ENDLESS else length
        if journal.keeps() != length:
            journal.keep(length)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Feed, GraphSource]]:
        """A feed with its outputs, and its sources, from the last commit on."""
        configuration, journal = self.configuration, self._journal
        self.program = program = deployed_program(journal.deployed())
        self.digest = journal.digest()
        feed = open_feed(
            journal,
            program,
            FeedOptions(
                lateness=configuration.lateness,
                max_jump=configuration.max_ahead,
                fail_on_error=False,
                corrections=configuration.corrections,
                corrections_share=configuration.corrections_budget,
            ),
            CheckpointPolicy(seconds=configuration.commit / 1_000_000, share=_SHARE),
            self._say,
        )
        try:
            keep, most = age_and_bytes(configuration.keep.events)
            outbox = Outbox(keep, most, changes=configuration.corrections is not None)
            feed.sinks = [outbox, *self._outputs(program)]
            streams = {name: one.time for name, one in configuration.sources.items() if one.is_received}
            rows = InboxTransport(self._inbox, streams)
            origin = partial(self._origin, rows)
            feed.dead_letters = DeadLetterRows("refused", origin, codes=self.letters)
            feed.delayed = DeadLetterRows("late", origin, codes=self.letters)
            posted = {name: one.time for name, one in configuration.sources.items() if one.http is not None}
            if posted:  # others have no token to ask with
                feed.outcomes = Outcomes(InboxTransport(self._inbox, posted).origin)
            feed.keeping = keeping_of(journal, feed.pipeline)
            feed.commands, feed.stopping = self._commands, self._stopping.is_set
            feed.committed = lambda: self._has_committed(feed)
            if configuration.tick is not None:
                feed.idle = Idle(configuration.tick)
            self._planned = (plan := journal.plan()) is not None
            if plan is not None:
                feed.plan(plan, deployed_program(planned(plan)), split_triples(plan.background))
            feed.resume()
            self.status = journal.status()
            self._last_event = journal.last_event()
            self._feed = feed
            yield feed, self._source(feed)
        finally:
            self._feed = None
            for one in self.replayed.values():
                one.close()
            self.replayed = {}
            feed.close()

    def _origin(self, rows: InboxTransport, place: str) -> Origin | None:
        """The document that a place is in, with all that is known of it."""
        found = rows.whole_origin(place)
        others = iter(self.replayed.values())
        while found is None and (one := next(others, None)) is not None:
            found = one.origin(place)
        return found

    def _has_committed(self, feed: Feed) -> None:
        self.status = feed.status_at_commit
        if self._planned and self._journal.plan() is None:  # it holds from now on
            self._planned = False
            self.program, self.digest = deployed_program(self._journal.deployed()), self._journal.digest()
        self._last_event = self._journal.last_event()
        self.commit_seconds = feed.totals.saving - self._saving
        self._saving = feed.totals.saving
        self._note_steps(feed)
        self.fed = {**self.fed, **{name: n for one in self._transports for name, n in one.fed.items()}}
        self._committed(self.fed)
        if not self._holding:
            self._commands.put(self._hold)  # the feed obeys before it goes on

    def _note_steps(self, feed: Feed) -> None:
        """Add how long instants took since the last commit, by step."""
        totals = feed.totals
        for step, seconds in (("run", totals.running), ("write", totals.writing)):
            self.steps[step] = self.steps.get(step, 0.0) + seconds
        totals.running = totals.writing = 0.0

    def _source(self, feed: Feed) -> GraphSource:
        """The sources of the configuration, merged by time."""
        clock = feed.pipeline.clock
        unit = clock.unit if clock is not None and clock.integer else UNITS[self.configuration.time_unit]
        made: list[GraphSource] = []
        self._transports, self._saving = [], feed.totals.saving
        replayed: dict[str, Replayed] = {}
        idle: dict[str, float | None] = {}
        for name, source in self.configuration.sources.items():
            mapping = self._mappings.get(name)
            options = reading_of(source, self.configuration.base, unit, mapping)
            seconds = source.idle / 1_000_000
            if source.uri is not None:
                made.append(_of_package(name, source.uri, options))
            elif source.kind in REPLAYED:
                replayed[name] = REPLAYED[source.kind](name, source, mapping, self._say)
                self.replayed = dict(replayed)
                made.append(self._documents(replayed[name], f"{source.kind}/{name}", source, options))
            elif source.is_received:
                lines = default_format(source) is Format.JSONLINES
                transport = InboxTransport(self._inbox, {name: source.time}, self._mappings, lines)
                self._transports.append(transport)
                stored = self._journal.positions(f"inbox/{name}").get(name)
                self.fed = {**self.fed, name: 0 if stored is None else stored[0] or 0}
                made.append(self._documents(transport, f"inbox/{name}", source, options))
            else:
                made.append(
                    FileSource(source.files or (), options, fail=False, follow=True, name=f"files/{name}")
                )
            idle[made[-1].name] = seconds
        return made[0] if len(made) == 1 else MergedSource(made, idle)

    def _documents(
        self, transport: Transport, name: str, source: Source, options: SourceOptions
    ) -> DocumentSource:
        """What a transport delivers, for as long as the server runs."""
        return DocumentSource(
            transport,
            default_format(source),
            options,
            fail=False,
            ends=False,
            idle=source.idle / 1_000_000,
            name=name,
        )

    def _outputs(self, program: Program) -> list[Sink]:
        """The outputs of the configuration that commit with the feed."""
        made: list[Sink] = []
        unknown = unknown_rules(self.configuration.outputs, program)
        for found in unknown if unknown != self._unknown else ():  # a feed that failed begins again
            self._say(found)
        self._unknown = unknown
        for output in self.configuration.outputs.values():
            sink: Sink
            if output.uri is not None:
                format_ = output.format or "jsonl"
                sink = output_of(OutputRequest(output.uri, self._journal, program, format_))
            elif output.file is not None:
                sink = self._file(program, output)
            else:
                continue
            made.append(SinkOfRules(sink, frozenset(output.rules)) if output.rules else sink)
        return made

    def _file(self, program: Program, output: Output) -> Sink:
        path = output.file
        assert path is not None, "an output has one kind"
        name = (
            output.format or format_of_name(path, tuple(EVENT_FORMATS), "dotr serve", packed=True) or "jsonl"
        )
        changes = self.configuration.corrections is not None
        return file_output(OutputRequest(path, self._journal, program, name, changes=changes))


def mappings_of(configuration: Configuration) -> dict[str, TableMapping]:
    """The mappings of the sources, by the names of these. Raises DataError."""
    return {
        name: read_mapping(source.map, configuration.base)
        for name, source in configuration.sources.items()
        if source.map is not None
    }


def _of_package(name: str, uri: str, options: SourceOptions) -> GraphSource:
    """What an installed package reads. Its positions are stored under both names, so two may have one URI."""
    made = source_of([uri], options, fail=False, follow=True)
    made.name = f"{made.name}/{name}"
    return made


def default_format(source: Source) -> Format:
    """That of documents which do not say theirs."""
    return (source.format and format_of(f"x.{source.format}")) or Format.TURTLE


def reading_of(source: Source, base: str, unit: int, mapping: TableMapping | None) -> SourceOptions:
    """How the documents of a source are read."""
    return SourceOptions(
        base,
        None if source.time_path is None else f"<{source.time_path}>",
        unit,
        zone=source.time_zone or "",
        mappings=() if mapping is None else (mapping,),
        growing=source.files is not None,
    )


def _unexpected(error: BaseException) -> EngineError:
    """What should not have happened, as a diagnostic."""
    return EngineError.of(
        "D4299", f"an error of dotr itself: {type(error).__name__}: {error}"[:500], hint="please report it"
    )

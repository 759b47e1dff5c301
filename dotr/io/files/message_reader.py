"""RDF Message Logs as graphs and marks, in the order in which they stand.

Place:   reader.py hands logs to it; decode/message_logs.py cuts them into messages.
Method:  messages that are in hand together are parsed together, and are one run where all of them bring a
         graph that says its time alike; else each by itself.
Bad input: what cannot be read is raised, or reported by a mark in its place, and reading goes on behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dotr.core.parts import Part, all_triples
from dotr.errors import DataError
from dotr.events import Time
from dotr.io.decode.documents import Format
from dotr.io.decode.message_logs import Carried, LoggedMessage, split_messages
from dotr.io.error_policy import ErrorPolicy
from dotr.io.files.taps import Tap
from dotr.io.graphs import GraphRun, Item, Mark, SourceOptions, TimedGraph
from dotr.io.times_in_graphs import times_in
from dotr.io.timestamps import TimestampExtractor, UndecidedTimeError
from dotr.rdf.terms import Term, Triple

if TYPE_CHECKING:
    from dotr.io.files.repeated_hours import Undecided


@dataclass(slots=True)
class MessageReader:
    """Owns the reading of one log. `name`: the file as messages call it; `carried`: what the messages before
    leave to the first one.
    """

    file: str
    name: str
    options: SourceOptions
    extractor: TimestampExtractor
    refusals: ErrorPolicy
    carried: Carried
    last: Time | None = field(default=None, init=False)
    """The time of the graph that was read last."""
    prefixes: str = field(default="", init=False)
    """The bookmark of what the messages that were read leave to the next."""

    def items(
        self, tap: Tap, head: bytes, format_: Format, line: int, start: int
    ) -> Iterator[Item | GraphRun | Undecided]:
        """The messages from `head` on, which stands at `line` and so many bytes behind the file's start."""
        carried = self.carried
        try:
            for messages in split_messages(tap, self.name, self.options.max_document, head, line, start):
                many = carried.parse_many(messages, format_)
                run = None if many is None else self._run(messages, many)
                if run is not None:
                    yield run
                    self.prefixes = carried.bookmark
                    continue
                for number, message in enumerate(messages):
                    item = self._message(message, format_, None if many is None else many[number])
                    if item is None:
                        tap.refused()
                    else:
                        yield item
                    self.prefixes = carried.bookmark
        except DataError as error:
            yield self._refused(error, b"", "whole", tap.count)

    def _run(self, messages: Sequence[LoggedMessage], graphs: list[list[Triple]]) -> GraphRun | None:
        """Messages that bring these graphs together; None where one brings none, or their times differ in
        kind.
        """
        times = times_in(graphs, self.extractor)
        if times is None:
            return None
        self.last = times[-1]
        lines, ends = [message.first_line for message in messages], [message.end for message in messages]
        return GraphRun(times, graphs, self.name, lines, ends, "byte", self.carried.bookmark)

    def _message(
        self, message: LoggedMessage, format_: Format, parsed: list[Triple] | None
    ) -> TimedGraph | Mark | Undecided | None:
        about: Sequence[Triple] = ()
        names: Sequence[Term] = ()
        triples: Part
        try:
            if parsed is None:
                triples, about, names = self.carried.parse(message, format_, self.name)
            else:
                triples = parsed
            if not triples and not about:
                return None  # a heartbeat: it says no time, so no instant is closed by it
        except DataError as error:
            return self._refused(error, message.text.encode(), "byte", message.end, self.carried.bookmark)
        line, carried = message.first_line, self.carried.bookmark

        def timed() -> TimedGraph | Mark:
            place = f"{self.name}:{line}"
            try:
                time = self.extractor.time(all_triples(triples), self.file, place, about=about, names=names)
            except UndecidedTimeError:
                raise
            except DataError as error:
                return self._refused(error, message.text.encode(), "byte", message.end, carried)
            self.last = time
            return TimedGraph(time, triples, self.name, line, "byte", message.end, carried)

        try:
            return timed()
        except UndecidedTimeError as error:
            from dotr.io.files.repeated_hours import undecided  # noqa: PLC0415  # start-up: a rare choice

            return undecided(error.local, timed, self.extractor, message.end)

    def _refused(self, error: DataError, content: bytes, how: str, end: int, carried: str = "") -> Mark:
        if self.refusals.fail:
            raise error
        return Mark(self.last, self.name, how, end, carried, error, content)

"""RDF Message Logs: one document, many messages, one message one graph.

Place:   reads an open file whose head says `VERSION "1.2-messages"`.
Method:  the draft of the W3C RDF Stream Processing group. A message ends at `MESSAGE`, `@message .` or the
         older comment `# @message`, where a directive may stand, or at the end of input; a last delimiter
         ends the message before it and begins none. Prefixes and base carry over, blank nodes do not. Lines
         are read until one contains the word; only then is the message's text scanned, jumping over strings
         and IRIs. In a message the graphs `urn:dotr:insert` and `urn:dotr:delete` are its other parts.
         `MessageReader` yields graphs and marks in document order. Messages that are available together are
         parsed together, and become one run where each brings a graph that gives its time by the same
         property: one pass over all triples, then all values as a column. Otherwise each is read by itself.
Why not: parsing the whole log and cutting afterwards: pyoxigraph knows no delimiter, and a log need not fit
         in memory.
Bad input: D2015 a delimiter inside a graph block · what documents.py reports, with the log's line. An error
         is raised, or reported by a mark in its place, and reading goes on after it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import contains
from typing import TYPE_CHECKING, NamedTuple

from dotr.errors import DataError
from dotr.events import DELETE, INSERT, GraphOrMessage, Time, all_triples, message_of
from dotr.io.decode.documents import (
    MAX_DOCUMENT,
    STREAM_BASE,
    Format,
    Readable,
    decode,
    line_blocks,
    read_some,
    too_large,
)
from dotr.io.decode.limits import QuietBytes, refuse_prefixes
from dotr.io.decode.plain import MANY, BatchParser
from dotr.io.decode.rdf import STRICT, ParseChoices, Quad, distinct_triples, parse_with_prefixes, quad_runs
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import GraphRun, Item, ReadEvent, SourceOptions, StreamReader, TimedGraph
from dotr.io.time import TIMELY, USUAL_PROPERTIES, TimestampExtractor, UndecidedTimeError
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, Term, Triple
from dotr.regex import regex

if TYPE_CHECKING:
    from dotr.io.tables.rows import Undecided

_VERSION = regex(
    r"""\A(?:\s|\#[^\n]*\n)*
    (?:@version\s+(["'])[^"'\s]*-messages\1\s*\.|version\s+(["'])[^"'\s]*-messages\2)""",
    re.IGNORECASE | re.VERBOSE,
)
_TOKEN = regex(
    r'''(?P<string>"""(?:[^"\\]++|\\.|"(?!""))*+"""|\'\'\'(?:[^'\\]++|\\.|'(?!''))*+\'\'\'
        |"(?!"")(?:[^"\\\r\n]++|\\[^\r\n])*+"|'(?!'')(?:[^'\\\r\n]++|\\[^\r\n])*+')(?:@[A-Za-z][A-Za-z0-9-]*)?
    |(?P<long>"""|\'\'\')
    |<[^<>"{}|^`\\\s]*>
    |(?P<comment>\#[^\n]*)
    |(?P<open>\{)|(?P<close>\})
    |(?P<mark>@message\s*\.|(?<![\w:%@-])(?<![\w:%-]\.)message(?![\w:%-]|\.\w))''',
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_LONG_END = {
    '"""': regex(r'(?:[^"\\]++|\\.|"(?!""))*+(?P<end>"""(?:@[A-Za-z][A-Za-z0-9-]*)?)?', re.DOTALL),
    "'''": regex(r"(?:[^'\\]++|\\.|'(?!''))*+(?P<end>'''(?:@[A-Za-z][A-Za-z0-9-]*)?)?", re.DOTALL),
}
_HALF_MARK, _HALF = regex(r"@message\s*\Z", re.IGNORECASE), 64
_EMPTY_BLOCK = regex(r"\{\s*\}")
_OLD_MARK = regex(r"#\s*@message\s*\.?\s*", re.IGNORECASE)
_CARRIED = regex(r"PREFIX ([^\s:]*): <([^>]*)>")
_FEW = 32
_DELIMITER = "\nMESSAGE\n"
_NESTING = ('"""', "'''", "{")  # only in these can a line be that is not a delimiter
_BLOCK = 1 << 16


class LoggedMessage(NamedTuple):
    """The text of one message as written in the log: its first line, and the bytes up to its end."""

    text: str
    line: int
    end: int
    complete: bool = True

    @property
    def first_line(self) -> int:
        """The first line with content."""
        return self.line + self.text.count("\n", 0, len(self.text) - len(self.text.lstrip()))


def is_message_log(head: bytes) -> bool:
    """Whether a document that begins so is a message log."""
    if b"-messages" not in head.lower():
        return False
    return _VERSION.match(head.decode("utf-8", "replace").lstrip("\ufeff")) is not None


def split_messages(
    file: Readable, name: str, limit: int = MAX_DOCUMENT, head: bytes = b"", line: int = 1, offset: int = 0
) -> Iterator[list[LoggedMessage]]:
    """The messages of a log, some that are in hand at a time. Raises DataError D2006, D2015, D2023.

    `line` and `offset` say where `head` stands; at 1 and 0 the version line is put aside.
    """
    splitter = _Splitter(name, line, offset)

    def too_long() -> DataError:
        return too_large(f"{name}:{splitter.line}", limit)

    quiet = QuietBytes(name, limit)
    for block in line_blocks(lambda size: read_some(file, size, name), _BLOCK, head, limit, too_long):
        quiet.take(block)
        yield from splitter.feed(decode(block, name))
        if splitter.size > limit:
            raise too_long()
    yield from splitter.finish()


class _Splitter:
    """Owns the text of the message being read, and what is open where it ends."""

    def __init__(self, name: str, line: int, offset: int) -> None:
        self.line = line
        self.size = 0
        """Characters of the message being read."""
        self._name = name
        self._offset = offset
        self._held: list[str] = []
        self._waiting: list[str] = []  # lines that may end in half a delimiter, and blanks after
        self._depth = 0
        self._string = ""  # the quotes of a long string that goes on
        self._first = offset == 0

    def feed(self, text: str) -> Iterator[list[LoggedMessage]]:
        """Take whole lines; yield the messages that end in them, together where nothing nests in them."""
        if self._waiting and text.isspace():
            self._waiting.append(text)
            self.size += len(text)
            return
        self.size -= sum(map(len, self._waiting[1:]))
        text = "".join((*self._waiting, text))
        self._waiting = [text] if _HALF_MARK.search(text[-_HALF:]) else []
        if not self._waiting:
            yield from self._feed(text)

    def _feed(self, text: str) -> Iterator[list[LoggedMessage]]:
        if self._first:
            text = "".join((*self._held, text))
            self._held, self.size = [], 0
            version = _VERSION.match(text) if "-messages" in text.lower() else None
            if version is None:
                self._hold(text)
                return
            self._first = False
            blank = "\n" * text.count("\n", 0, version.end())
            self._offset += len(text[: version.end()].encode()) - len(blank)
            text = blank + text[version.end() :]
        if self._depth or self._string or any(mark in text for mark in _NESTING):
            yield from self._scan(text)
            return
        said = text.lower().count("message")
        if not said:
            self._hold(text)
            return
        if self._held:  # the end of the line before may begin a delimiter
            before = self._held[-1]
            self._held[-1] = before[:-1]
            text = before[-1] + text
        if text.count(_DELIMITER) == said:
            yield from self._cut_lines(text)
        else:
            yield from self._scan(text)

    def _hold(self, text: str) -> None:
        self._held.append(text)
        self.size += len(text)

    def _cut_lines(self, text: str) -> Iterator[list[LoggedMessage]]:
        """Cut where MESSAGE is a line, and nothing there is can have that line inside."""
        *parts, rest = text.split(_DELIMITER[:-1])
        messages = [self._message(f"{part}\n", _DELIMITER[1:-1]) for part in parts]
        self._hold(rest)
        for first in range(0, len(messages), MANY):
            yield messages[first : first + MANY]

    def finish(self) -> Iterator[list[LoggedMessage]]:
        """The end of the log: the last message, unless it is blank after a delimiter or the head."""
        if self._waiting:
            yield from self._feed("".join(self._waiting))
        if not all(text.isspace() for text in self._held if text):
            yield [self._message("", "", complete=False)]

    def _scan(self, text: str) -> Iterator[list[LoggedMessage]]:
        start = place = 0
        while True:
            if self._string:
                end = _LONG_END[self._string].match(text, place)
                assert end is not None, "it matches nothing, too"
                place = end.end()
                if end["end"] is None:
                    break
                self._string = ""
            for token in _TOKEN.finditer(text, place):
                place = token.end()
                if token["long"]:
                    self._string = token["long"]
                    break
                if token["open"]:
                    self._depth += 1
                elif token["close"]:
                    self._depth = max(0, self._depth - 1)
                elif token["mark"] or (token["comment"] and _OLD_MARK.fullmatch(token["comment"].rstrip())):
                    if self._depth > 0:
                        raise self._inside(text[start : token.start()])
                    yield [self._message(text[start : token.start()], token[0])]
                    start, self._depth = place, 0
            else:
                break
        self._hold(text[start:])

    def _message(self, text: str, delimiter: str, complete: bool = True) -> LoggedMessage:
        """The message that ends with `text`, before `delimiter`."""
        text = "".join((*self._held, text))
        self._held, self.size = [], 0
        self._offset += (len(text) if text.isascii() else len(text.encode())) + len(delimiter.encode())
        message = LoggedMessage(text, self.line, self._offset, complete)
        self.line += text.count("\n") + delimiter.count("\n")
        return message

    def _inside(self, text: str) -> DataError:
        line = self.line + text.count("\n") + sum(part.count("\n") for part in self._held)
        return DataError.of(
            "D2015",
            "a message ends inside a graph block",
            place=f"{self._name}:{line}",
            hint="close the block with } before the delimiter",
        )


@dataclass(slots=True)
class Carried:
    """Owns what one message leaves to the next: prefixes and base."""

    base: str | None = STREAM_BASE
    prefixes: str = ""
    """`PREFIX` lines in one line, ready to stand before a message."""
    choices: ParseChoices = STRICT
    bookmark: str = field(default="", init=False)
    """All of it as one text, from which `resumed` goes on."""
    _known: dict[str, str] = field(default_factory=dict, init=False)
    _lengths: set[int] = field(default_factory=set, init=False)
    _together: BatchParser = field(default_factory=BatchParser, init=False)

    def __post_init__(self) -> None:
        self._known = dict(_CARRIED.findall(self.prefixes))
        self._lengths = {len(prefix) for prefix in self._known}
        self.bookmark = f"{self.base or ''}\n{self.prefixes}"

    @classmethod
    def resumed(cls, bookmark: str, choices: ParseChoices = STRICT) -> Carried:
        base, _, prefixes = bookmark.partition("\n")
        return cls(base or None, prefixes, choices)

    def parse_many(self, messages: Sequence[LoggedMessage], format_: Format) -> list[list[Triple]] | None:
        """Messages of one list of `split_messages` as graphs; None: parse them one by one."""
        if len(messages) < 2 or format_ is not Format.TRIG:
            return None
        self._together.base = self.base
        return self._together.parse([message.text for message in messages], self.prefixes)

    def parse(
        self, message: LoggedMessage, format_: Format, name: str
    ) -> tuple[GraphOrMessage, list[Triple], list[Term]]:
        """What a message says: (its graph or parts, what its default graph says about its graph names, those
        names).

        Without named graphs the default graph is the graph; with them, default graph triples whose subject is
        one of the names are about it, and all others belong to the graph as well. Raises DataError.
        """
        text = message.text
        skipped = 1 - message.line
        if self.prefixes:
            text = f"{self._used(text)}\n{text}"
            skipped += 1
        lines, said, base = parse_with_prefixes(text, format_, name, self.base, skipped, self.choices)
        if not said.items() <= self._known.items() or (base is not None and base != self.base):
            known = self._known | said
            prefixes = " ".join(f"PREFIX {prefix}: <{iri}>" for prefix, iri in sorted(known.items()))
            refuse_prefixes(len(prefixes), name, f"{name}:{message.line}")
            self._known, self.prefixes = known, prefixes
            self._lengths = set(map(len, known))
            self.base = base or self.base
            self.bookmark = f"{self.base or ''}\n{self.prefixes}"
        if format_ is not Format.NQUADS and "{" not in message.text:
            return distinct_triples(lines, name), [], []
        quads = [(s, p, o, g) for g, rows in quad_runs(lines, name) for s, p, o in rows]
        names = list(dict.fromkeys(g for _s, _p, _o, g in quads if g))
        if names or _EMPTY_BLOCK.search(message.text):  # `<g> { }` leaves no quad
            stamped = [s for s, p, _o, g in quads if not g and p == PROV_GENERATED_AT_TIME]
            names = list(dict.fromkeys([*names, *stamped]))
        graphs = frozenset(names)
        about = [(s, p, o) for s, p, o, g in quads if not g and s in graphs]
        own = [quad for quad in quads if quad[3] or quad[0] not in graphs]
        return _parts(own, graphs, f"{name}:{message.line}"), about, names

    def _used(self, text: str) -> str:
        """The prefixes that a string may use: all where they are few, else those before a colon."""
        if len(self._known) <= _FEW:
            return self.prefixes
        used: set[str] = set()
        at = text.find(":")
        while at >= 0:
            used.update(
                prefix for size in self._lengths if (prefix := text[max(0, at - size) : at]) in self._known
            )
            at = text.find(":", at + 1)
        return " ".join(f"PREFIX {prefix}: <{self._known[prefix]}>" for prefix in sorted(used))


def _parts(said: Sequence[Quad], names: Collection[Term], place: str) -> GraphOrMessage:
    """The quads of a message by part; no graph came where there are other parts alone."""
    if INSERT not in names and DELETE not in names:
        return _triples(said)
    graph = [quad for quad in said if quad[3] not in (INSERT, DELETE)]
    others = set(names) - {INSERT, DELETE}
    insert, delete = (
        _triples([quad for quad in said if quad[3] == name]) if name in names else None
        for name in (INSERT, DELETE)
    )
    return message_of(_triples(graph) if graph or others else None, insert, delete, place)


def _triples(quads: Iterable[Quad]) -> list[Triple]:
    return list(dict.fromkeys((s, p, o) for s, p, o, _ in quads))


def times_in(graphs: Sequence[Sequence[Triple]], extractor: TimestampExtractor) -> list[Time] | None:
    """As `extractor.time` for each of some graphs, if each says one time, all by one property and in the form
    of the graphs before. None for others: then each is asked for by itself.
    """
    timely = [triple for graph in graphs for triple in graph if triple[1] in TIMELY]
    if len(timely) != len(graphs) or not all(map(contains, graphs, timely)):
        return None
    properties = {property_ for _, property_, _ in timely}
    time_source = USUAL_PROPERTIES.get(properties.pop())
    if time_source is None or properties:
        return None
    return extractor.stamped_times([value for _, _, value in timely], time_source)


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
        self, stream: StreamReader, head: bytes, format_: Format, line: int, start: int
    ) -> Iterator[Item | GraphRun | Undecided]:
        """The messages from `head` on, which stands at `line` and so many bytes after the file's start."""
        carried = self.carried
        try:
            for messages in split_messages(stream, self.name, self.options.max_document, head, line, start):
                many = carried.parse_many(messages, format_)
                run = None if many is None else self._run(messages, many)
                if run is not None:
                    yield run
                    self.prefixes = carried.bookmark
                    continue
                for number, message in enumerate(messages):
                    item = self._message(message, format_, None if many is None else many[number])
                    if item is None:
                        stream.refused()
                    else:
                        yield item
                    self.prefixes = carried.bookmark
        except DataError as error:
            yield self._refused(error, b"", "whole", stream.count)

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
    ) -> TimedGraph | ReadEvent | Undecided | None:
        about: Sequence[Triple] = ()
        names: Sequence[Term] = ()
        triples: GraphOrMessage
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

        def timed() -> TimedGraph | ReadEvent:
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
            from dotr.io.tables.rows import undecided  # noqa: PLC0415  # start-up: a rare choice

            return undecided(error.local, timed, self.extractor, message.end)

    def _refused(self, error: DataError, content: bytes, how: str, end: int, carried: str = "") -> ReadEvent:
        if self.refusals.fail:
            raise error
        return ReadEvent(self.last, self.name, how, end, carried, error, content)

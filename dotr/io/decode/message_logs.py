"""RDF Message Logs: one document, many messages, one message one graph.

Place:   called by sources.py with an open file whose head says `VERSION "1.2-messages"`.
Method:  the draft of the W3C RDF Stream Processing group. A message ends at `MESSAGE`, `@message .` or the
         older comment `# @message`, where a directive may stand, or at the end of input; a last delimiter
         ends the message before it and begins none. Prefixes and base carry on, blank nodes do not. Lines
         are read until one has the word, and only then is the message's text looked at, jumping over strings
         and IRIs. In a message the graphs `urn:dotr:insert` and `urn:dotr:delete` are its other parts.
Why not: parse the whole log and cut afterwards: pyoxigraph knows no delimiter, and a log need not fit in
         memory.
Bad input: D2015 a delimiter inside a graph block · what documents.py reports, with the log's line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dotr.core.parts import Part
from dotr.errors import DataError, Diagnostic
from dotr.io.decode.batch_parse import MANY, BatchParser
from dotr.io.decode.documents import (
    MAX_DOCUMENT,
    STREAM_BASE,
    Format,
    Quad,
    Readable,
    decode,
    parse_with_prefixes,
    read_some,
    too_large,
)
from dotr.io.decode.ntriples import distinct_triples, quad_runs
from dotr.io.message_parts import DELETE, INSERT, message_of
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, Term, Triple

_VERSION = re.compile(
    r"""\A(?:\s|\#[^\n]*\n)*
    (?:@version\s+(["'])[^"'\s]*-messages\1\s*\.|version\s+(["'])[^"'\s]*-messages\2)""",
    re.IGNORECASE | re.VERBOSE,
)
_TOKEN = re.compile(
    r'''(?P<string>"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^'\\]|\\.|'(?!''))*\'\'\'
        |"(?!"")(?:[^"\\\r\n]|\\.)*"|'(?!'')(?:[^'\\\r\n]|\\.)*')(?:@[A-Za-z][A-Za-z0-9-]*)?
    |(?P<long>"""|\'\'\')
    |<[^<>"{}|^`\\\s]*>
    |(?P<comment>\#[^\n]*)
    |(?P<open>\{)|(?P<close>\})
    |(?P<mark>@message\s*\.|(?<![\w:%@-])(?<![\w:%-]\.)message(?![\w:%-]|\.\w))''',
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_EMPTY_BLOCK = re.compile(r"\{\s*\}")
_OLD_MARK = re.compile(r"#\s*@message\s*\.?\s*", re.IGNORECASE)
_DELIMITER = "\nMESSAGE\n"
_NESTING = ('"""', "'''", "{", "\\\n")  # only in these can a line be that is no delimiter
_BLOCK = 1 << 16


class Message(NamedTuple):
    """The text of one message as it stands in the log: its first line, and the bytes up to behind it."""

    text: str
    line: int
    end: int
    complete: bool = True


def is_message_log(head: bytes) -> bool:
    """Whether a document that begins so is a message log."""
    if b"-messages" not in head.lower():
        return False
    return _VERSION.match(head.decode("utf-8", "replace").lstrip("\ufeff")) is not None


def split_messages(
    file: Readable, name: str, limit: int = MAX_DOCUMENT, head: bytes = b"", line: int = 1, offset: int = 0
) -> Iterator[list[Message]]:
    """The messages of a log, some that are in hand at a time. Raises DataError D2006, D2015.

    `line` and `offset` say where `head` stands; at 1 and 0 the version line is put aside.
    """
    splitter = _Splitter(name, line, offset)
    block, rest = head, b""  # what is in hand comes before the next read, which may have to wait
    ended = False
    while not ended:
        block = block or read_some(file, _BLOCK, name)
        ended = not block
        cut = len(rest) + len(block) if ended else (rest + block).rfind(b"\n") + 1
        content, rest, block = (rest + block)[:cut], (rest + block)[cut:], b""
        yield from splitter.feed(decode(content, name))
        if splitter.size > limit or len(rest) > limit:
            raise too_large(f"{name}:{splitter.line}", limit)
    yield from splitter.finish()


class _Splitter:
    """Owns the text of the message being read, and how far it has been looked at."""

    def __init__(self, name: str, line: int, offset: int) -> None:
        self.line = line
        self._name = name
        self._offset = offset
        self._text = ""
        self._seen = 0  # characters of the text already looked at
        self._depth = 0
        self._first = offset == 0
        self._plain = True  # nothing nests in the text

    @property
    def size(self) -> int:
        return len(self._text)

    def feed(self, text: str) -> Iterator[list[Message]]:
        """Take whole lines; yield the messages that end in them, together where nothing nests in them."""
        said = "message" in text.lower()
        self._text += text
        if self._first:
            version = _VERSION.match(self._text)
            if version is None:
                return
            self._first = False
            blank = "\n" * self._text.count("\n", 0, version.end())
            self._offset += len(self._text[: version.end()].encode()) - len(blank)
            text = self._text = blank + self._text[version.end() :]
        self._plain = self._plain and not any(mark in text for mark in _NESTING)
        if self._plain and not said:
            return
        lines = self._plain and len(self._text) < 2 * _BLOCK
        if lines and self._text.count(_DELIMITER) == self._text.lower().count("message"):
            yield from self._cut_lines()
            return
        if said or not self._seen:
            before = self._offset
            yield from self._scan()
            if self._offset != before:
                self._plain = not any(mark in self._text for mark in _NESTING)

    def _cut_lines(self) -> Iterator[list[Message]]:
        """Cut where MESSAGE is a line, and nothing there is can have that line inside."""
        self._seen = self._depth = 0
        *parts, self._text = self._text.split(_DELIMITER[:-1])
        messages: list[Message] = []
        for part in parts:
            text = f"{part}\n"
            self._offset += (len(text) if text.isascii() else len(text.encode())) + len(_DELIMITER) - 2
            messages.append(Message(text, self.line, self._offset))
            self.line += text.count("\n")
        for first in range(0, len(messages), MANY):
            yield messages[first : first + MANY]

    def finish(self) -> Iterator[list[Message]]:
        """The end of the log: the last message, unless it is blank behind a delimiter or the head."""
        if self._text.strip():
            yield [self._cut(len(self._text), len(self._text), complete=False)]

    def _scan(self) -> Iterator[list[Message]]:
        while True:
            for token in _TOKEN.finditer(self._text, self._seen):
                if token["long"]:  # a long string that goes on: look again when more is there
                    self._seen = token.start()
                    return
                if token["open"]:
                    self._depth += 1
                elif token["close"]:
                    self._depth -= 1
                elif token["mark"] or (token["comment"] and _OLD_MARK.fullmatch(token["comment"].rstrip())):
                    if self._depth > 0:
                        raise self._inside(token.start())
                    yield [self._cut(token.start(), token.end())]
                    break
                self._seen = token.end()
            else:
                return

    def _cut(self, end: int, behind: int, complete: bool = True) -> Message:
        text = self._text[:end]
        self._offset += len(self._text[:behind].encode())
        message = Message(text, self.line, self._offset, complete)
        self.line += self._text.count("\n", 0, behind)
        self._text = self._text[behind:]
        self._seen = self._depth = 0
        return message

    def _inside(self, at: int) -> DataError:
        return DataError(
            Diagnostic(
                "D2015",
                "a message ends inside a graph block",
                place=f"{self._name}:{self.line + self._text.count(chr(10), 0, at)}",
                hint="close the block with } before the delimiter",
            )
        )


@dataclass(slots=True)
class Carried:
    """Owns what one message leaves to the next: prefixes and base."""

    base: str | None = STREAM_BASE
    prefixes: str = ""
    """`PREFIX` lines in one line, ready to stand before a message."""
    bookmark: str = field(default="", init=False)
    """All of it as one text, from which `resumed` goes on."""
    _known: dict[str, str] = field(default_factory=dict, init=False)
    _together: BatchParser = field(default_factory=BatchParser, init=False)

    def __post_init__(self) -> None:
        self.bookmark = f"{self.base or ''}\n{self.prefixes}"

    @classmethod
    def resumed(cls, bookmark: str) -> Carried:
        base, _, prefixes = bookmark.partition("\n")
        return cls(base or None, prefixes)

    def parse_many(self, messages: Sequence[Message], format_: Format) -> list[list[Triple]] | None:
        """Messages of one list of `split_messages` as graphs; None: parse them one by one."""
        if len(messages) < 2 or format_ is not Format.TRIG:
            return None
        self._together.base = self.base
        return self._together.parse([message.text for message in messages], self.prefixes)

    def parse(self, message: Message, format_: Format, name: str) -> tuple[Part, list[Triple], list[Term]]:
        """What a message says: (its graph or parts, what its default graph says about its graph names, those
        names).

        Without named graphs the default graph is the graph; with them, default graph triples whose subject is
        one of the names are about it, and all others belong to the graph as well. Raises DataError.
        """
        text = message.text
        skipped = 1 - message.line
        if self.prefixes:
            text = f"{self.prefixes}\n{text}"
            skipped += 1
        lines, prefixes, base = parse_with_prefixes(text, format_, name, self.base, skipped)
        if prefixes != self._known or (base is not None and base != self.base):
            self._known = prefixes
            self.base = base or self.base
            self.prefixes = " ".join(f"PREFIX {prefix}: <{iri}>" for prefix, iri in sorted(prefixes.items()))
            self.bookmark = f"{self.base or ''}\n{self.prefixes}"
        if format_ is not Format.NQUADS and "{" not in message.text:
            return distinct_triples(lines, name), [], []
        quads = [(s, p, o, g) for g, rows in quad_runs(lines, name) for s, p, o in rows]
        names = list(dict.fromkeys(g for _s, _p, _o, g in quads if g))
        if names or _EMPTY_BLOCK.search(message.text):  # `<g> { }` leaves no quad
            stamped = [s for s, p, _o, g in quads if not g and p == PROV_GENERATED_AT_TIME]
            names = list(dict.fromkeys([*names, *stamped]))
        known = frozenset(names)
        about = [(s, p, o) for s, p, o, g in quads if not g and s in known]
        said = [quad for quad in quads if quad[3] or quad[0] not in known]
        return _parts(said, known, f"{name}:{message.line}"), about, names


def _parts(said: Sequence[Quad], names: Collection[Term], place: str) -> Part:
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

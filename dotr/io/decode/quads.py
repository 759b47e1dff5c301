"""TriG and N-Quads streams: a named graph with its stamp in the default graph.

Method:  a document of up to 4 MiB is grouped whole. A longer one is streamed when its first graph shows that
         graphs stand together with their stamp directly before or after (our own output: before); otherwise
         it is read whole, up to `--max-document`. N-Quads are cut at lines here, so that every graph knows
         its line and the byte offset of its end, where reading can be resumed; whole lines are parsed a block
         at a time, and only a block with a bad line line by line. TriG is read by pyoxigraph as it comes. An
         unreadable line of N-Quads takes the graphs of the lines before and after it with it: it may have
         belonged to them.
         Without a parser, many graphs at once (`quad_parts`): where every graph follows its stamp, the text
         is cut where a line begins with a stamp and is read by its tokens (plain.py). Graphs before a cut are
         complete when the next graph has begun with a quad of its own and has another name. From the first
         deviation on, the rest of the document takes the path above. A small document is read so as a whole,
         or not at all.
         Dead letters (`RawBytes`): where documents may be refused, what was read of a file is kept on a tape
         until the graphs before it are processed. In streamed N-Quads a graph's bytes lie between two graphs;
         in N-Quads grouped whole they are its lines; in TriG its blocks, found by their braces, whose names
         pyoxigraph spells out.
Why not: returning to tokens after a deviation: whether a default graph's triple is about the graph before or
         after it is known only at the end of both. Keeping the bytes with every graph: few are refused.
Bad input: D2012 a stray triple in the default graph · D2013 a graph whose quads are not consecutive · D2019
         a graph beside an unreadable line · D2023 nothing but blanks and comments.
"""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from operator import eq
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from dotr.errors import DataError
from dotr.io.decode.documents import (
    MAX_DOCUMENT,
    STREAM_BASE,
    Format,
    Read,
    Readable,
    decode,
    line_blocks,
    read_some,
    too_large,
)
from dotr.io.decode.limits import QuietBytes, is_quiet, says_nothing
from dotr.io.decode.plain import DECLARED, Places, PlainTokens, distinct, places_of, prefixes_of
from dotr.io.decode.rdf import STRICT, ParseChoices, Quad, Run, parse_quads, parse_runs, stream_runs
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, Memo, Term, Triple
from dotr.regex import regex

_BLOCK = 1 << 18
_MOST_LOST = 1 << 16

Placed: TypeAlias = tuple[Quad, int, int]
"""A quad, its line (0 unknown), and the number of bytes up to the end of that line.

A line that cannot be read, where that is forgiven, is a quad without predicate, its object the line."""

PlacedRun: TypeAlias = tuple[Term, list[Triple], int, int]
"""Consecutive quads (graph name, triples), the line of the first, the bytes to the end of the last."""


def line_runs(
    read: Read,
    name: str,
    line: int,
    offset: int,
    forgiving: bool,
    limit: int = MAX_DOCUMENT,
    choices: ParseChoices = STRICT,
) -> Iterator[PlacedRun]:
    """N-Quads, one quad a line, with places. Quads before an error come out before it is raised.

    Raises DataError D2006 for a line of more than `limit` bytes, D2023 where too many cannot be read.
    """
    runs = chain.from_iterable(_line_blocks(read, name, line, offset, forgiving, limit, choices))
    return _some_readable(runs, name) if forgiving else runs


def _some_readable(runs: Iterator[PlacedRun], name: str) -> Iterator[PlacedRun]:
    """Runs among which not too many lines in a row are unreadable: these are held until a graph comes."""
    lost = 0
    for run in runs:
        lost = 0 if run[1][0][1] else lost + 1
        if lost > _MOST_LOST:
            hint = "check how the file is written"
            raise says_nothing(f"{name}:{run[2]}", _MOST_LOST, "lines that cannot be read", hint)
        yield run


def _line_blocks(
    read: Read,
    name: str,
    line: int,
    offset: int,
    forgiving: bool,
    limit: int,
    choices: ParseChoices,
) -> Iterator[Iterator[PlacedRun]]:
    def too_long() -> DataError:
        return too_large(f"{name}:{line}", limit)

    for block in line_blocks(read, _BLOCK, b"", limit, too_long):
        if not is_quiet(block):
            yield _placed_runs(block, name, line, offset, forgiving, choices)
        line += block.count(b"\n")
        offset += len(block)


def placed_lines(
    content: bytes, name: str, line: int, offset: int, forgiving: bool = False
) -> Iterator[Placed]:
    """The quads of whole N-Quads lines. Raises DataError at the first bad line, after the quads before it."""
    lines = _NumberedLines(content, line, offset)
    runs = lines.runs(name)
    if runs is None:
        return lines.one_by_one(name, forgiving)
    quads = [(s, p, o, g) for g, triples in runs for s, p, o in triples]
    return ((quad, *lines.place(number)) for number, quad in enumerate(quads))


def _placed_runs(
    content: bytes, name: str, line: int, offset: int, forgiving: bool, choices: ParseChoices
) -> Iterator[PlacedRun]:
    lines = _NumberedLines(content, line, offset, choices)
    runs = lines.runs(name)
    if runs is None:
        for (s, p, o, g), number, end in lines.one_by_one(name, forgiving):
            yield g, [(s, p, o)], number, end
        return
    number = 0
    rows, ends = lines.rows, lines.ends
    for graph, triples in runs:
        first = rows[number]
        number += len(triples)
        last = rows[number - 1]
        yield graph, triples, line + first, offset + ends[last]


class _NumberedLines:
    """Owns whole lines of N-Quads, the first being line `line` of a file, at its byte `offset`."""

    def __init__(self, content: bytes, line: int, offset: int, choices: ParseChoices = STRICT) -> None:
        self._content, self._line, self._offset, self._choices = content, line, offset, choices
        self._raw = content.split(b"\n")
        open_ended = bool(self._raw[-1])
        if not open_ended:
            self._raw.pop()
        self.ends = list(accumulate([len(text) + 1 for text in self._raw]))
        """The bytes up to the end of each line."""
        if open_ended:
            self.ends[-1] = len(content)
        self.rows: Sequence[int] = range(len(self._raw))
        """The lines that have a quad, by its number; both count from 0."""

    def runs(self, name: str) -> list[Run] | None:
        """The quads of all lines, None if they must be examined one by one."""
        if self._choices.rdf12 == "plain" and b"<<(" in self._content:
            return None  # not every line gives a quad
        try:
            runs = parse_runs(decode(self._content, name), Format.NQUADS, name, choices=self._choices)
        except DataError:
            return None
        count = sum([len(triples) for _graph, triples in runs])
        if count != len(self._raw):
            self.rows = [i for i, text in enumerate(self._raw) if (bare := text.strip()) and bare[:1] != b"#"]
        return runs if count == len(self.rows) else None

    def place(self, number: int) -> tuple[int, int]:
        """The line of a quad, counted from 0, and the bytes up to its end."""
        row = self.rows[number]
        return self._line + row, self._offset + self.ends[row]

    def one_by_one(self, name: str, forgiving: bool) -> Iterator[Placed]:
        """The same where a line is bad: up to it, or (`forgiving`) with it as a quad without predicate."""
        for row, text in enumerate(self._raw):
            number = self._line + row
            try:
                quads = parsed_line(text, name, number, self._choices)
            except DataError:
                if not forgiving:
                    raise
                quads = [("", "", text.decode("utf-8", "surrogateescape"), "")]
            for quad in quads:
                yield quad, number, self._offset + self.ends[row]


def parsed_line(text: bytes, name: str, line: int, choices: ParseChoices = STRICT) -> list[Quad]:
    """The quad of one line, if there is one. Raises DataError."""
    try:
        quads = parse_quads(decode(text, name), Format.NQUADS, name, choices=choices)
    except DataError as error:
        raise _moved(error, name, line) from None
    if len(quads) > 1:
        raise DataError.of(
            "D2001", f"`{name}` has several statements in one line", place=f"{name}:{line}", hint="part them"
        )
    return quads


def _moved(error: DataError, name: str, line: int) -> DataError:
    """The same error, its place being line 1 of a string that is line `line` of the file."""
    first = error.diagnostics[0]
    column = first.place.rpartition(":")[2] if first.place.startswith(f"{name}:1:") else ""
    return DataError(first._replace(place=f"{name}:{line}:{column}".rstrip(":")))


WHOLE = 4 * 1024 * 1024
"""Bytes up to which a document of quads is always grouped whole."""

_CHUNK = 4096


class QuadBlock(Struct):
    """One named graph as read: its triples, what the default graph says about it, and where it stands."""

    name: Term
    triples: list[Triple] = field(default_factory=list)
    about: list[Triple] = field(default_factory=list)
    line: int = 0
    end: int = 0
    named: bool = False
    whole: bool = False
    """Whether the document was grouped whole: `end` then counts graphs, not bytes."""
    spoiled: bool = False
    """Whether a line that cannot be read stands beside one of its own."""
    unreadable: Sequence[tuple[str, int]] = ()
    """Such lines directly before one of its own, with their numbers; without a name they end the document."""

    def text(self) -> str:
        """The block as N-Quads, for a dead letter, after the unreadable lines before it."""
        lost = (f"{line}\n" for line, _number in self.unreadable)
        about = (f"{s} {p} {o} .\n" for s, p, o in self.about)
        return "".join(chain(lost, about, (f"{s} {p} {o} {self.name} .\n" for s, p, o in self.triples)))


class JoinedQuads:
    """A reader of the bytes already taken from a file, then of the rest; counts, and stops at `limit`, or
    where too many bytes in a row say nothing for documents of at most `most`.
    """

    def __init__(self, head: bytes, file: Readable, name: str, most: int) -> None:
        self._head, self._file, self._name = io.BytesIO(head), file, name
        self.limit: int | None = None
        self._quiet = QuietBytes(name, most)
        self._count = 0

    def read(self, size: int = -1) -> bytes:
        part = self._head.read(size)
        if not part:
            part = read_some(self._file, size, self._name)
        self._count += len(part)
        if self.limit is not None and self._count > self.limit:
            raise too_large(self._name, self.limit)
        return self._quiet.take(part)


def quad_blocks(
    file: Readable,
    format_: Format,
    name: str,
    base: str | None = STREAM_BASE,
    limit: int = MAX_DOCUMENT,
    head: bytes = b"",
    whole: int = WHOLE,
    line: int = 1,
    offset: int = 0,
    forgiving: bool = False,
    choices: ParseChoices = STRICT,
) -> Iterator[QuadBlock]:
    """The named graphs of a document, in document order. Raises DataError.

    `forgiving` makes blocks of unreadable N-Quads lines instead. `whole` 0 is for pipes: nothing is waited
    for. `head` are bytes already read from `file`; `line` and `offset` say where they stand in it.
    """
    while len(head) <= whole:
        more = read_some(file, whole + 1 - len(head), name)
        if not more:
            yield from _numbered(
                group_whole(_small(head, format_, name, base, line, offset, forgiving, choices), name)
            )
            return
        head += more
    reader = JoinedQuads(head, file, name, limit)
    if format_ is Format.NQUADS:
        placed = line_runs(reader.read, name, line, offset, forgiving, limit, choices)
    else:
        chunk = _CHUNK if whole else 1  # of a pipe every quad is taken as it comes
        runs = stream_runs(reader, format_, name, base, chunk, choices=choices)
        placed = ((g, triples, 0, 0) for g, triples in runs)
    blocks = _streamed(placed, reader, name, limit)
    yield from blocks if format_ is Format.NQUADS else _numbered(blocks)


def rest_blocks(
    file: Readable,
    format_: Format,
    name: str,
    base: str | None,
    limit: int,
    head: bytes,
    line: int,
    offset: int,
    forgiving: bool,
    before: tuple[int, str],
    choices: ParseChoices = STRICT,
) -> Iterator[QuadBlock]:
    """As `quad_blocks` after `before` (how many graphs that stand together, and the declarations that hold
    in one line), from the beginning of a line and of a graph on.
    """
    count, declared = before
    if format_ is Format.NQUADS:
        reader = JoinedQuads(head, file, name, limit)
        placed = line_runs(reader.read, name, line, offset, forgiving, limit, choices)
        return group_adjacent(placed, name)
    own = f"{declared}\n".encode() if declared else b""
    runs = stream_runs(
        JoinedQuads(own + head, file, name, limit),
        format_,
        name,
        base,
        skipped=bool(own) + 1 - line,
        choices=choices,
    )
    return _numbered(group_adjacent(((g, triples, 0, 0) for g, triples in runs), name), count + 1)


def _numbered(blocks: Iterator[QuadBlock], first: int = 1) -> Iterator[QuadBlock]:
    """Blocks that know how many graphs of the document are consumed with them."""
    for number, block in enumerate(blocks, first):
        block.whole, block.end = True, number
        yield block


def _small(
    content: bytes,
    format_: Format,
    name: str,
    base: str | None,
    line: int,
    offset: int,
    forgiving: bool,
    choices: ParseChoices,
) -> Iterator[PlacedRun]:
    if format_ is Format.NQUADS:
        parts = iter((content, b""))
        return line_runs(lambda _size: next(parts), name, line, offset, forgiving, choices=choices)
    runs = parse_runs(decode(content, name), format_, name, base, choices)
    return ((g, triples, 0, 0) for g, triples in runs)


def refused_lines(block: QuadBlock, name: str) -> DataError:
    """Why a spoiled block is refused."""
    for text, line in block.unreadable:
        try:
            parsed_line(text.encode("utf-8", "surrogateescape"), name, line)
        except DataError as error:
            return error
    return DataError.of(
        "D2019",
        f"graph {block.name} is next to a line that cannot be read",
        place=_at(name, block.line),
        notes=("the line may have been one of its quads",),
        hint="correct the line and feed the graph again",
    )


def _streamed(items: Iterator[PlacedRun], reader: JoinedQuads, name: str, limit: int) -> Iterator[QuadBlock]:
    """Blocks as they stand if the first one has the streaming shape, else grouped whole."""
    taken: list[PlacedRun] = []
    named: Term = ""
    for item in items:
        taken.append(item)
        graph = item[0]
        if named and graph and graph != named:
            break
        named = graph or named
    stamped = {s for g, rows, _l, _e in taken for s, p, _o in rows if not g and p == PROV_GENERATED_AT_TIME}
    together = stamped <= {named, taken[-1][0]} if taken else True
    if together:
        yield from group_adjacent(chain(taken, items), name)
    else:
        reader.limit = limit
        yield from _numbered(group_whole(chain(taken, items), name))


def group_whole(items: Iterable[PlacedRun], name: str) -> Iterator[QuadBlock]:
    """Group the quads of a document by graph name, wherever they stand; blocks in order of appearance."""
    blocks: dict[
        Term, QuadBlock
    ] = {}  # of every graph name and every subject of the default graph, as they come
    spoiled: set[Term] = set()
    last: Term = ""
    lost: list[tuple[str, int]] = []  # unreadable lines since the last that is not
    for g, rows, line, _end in items:
        subject, predicate, object_ = rows[0]
        if not predicate:
            lost.append((object_, line))
            spoiled.add(last)
            continue
        last = g or subject
        block = blocks.get(last)
        if block is None:
            block = blocks[last] = QuadBlock(last, line=line)
        if not g:
            block.about += rows
        elif block.triples:
            block.triples += rows
        else:
            block.named, block.triples = True, rows
        if lost:
            spoiled.add(last)
            block.unreadable = [*block.unreadable, *lost]
            lost = []
    for key in spoiled - {""}:
        blocks[key].spoiled = True
    if lost:
        blocks["!"] = QuadBlock("", line=lost[0][1], spoiled=True, unreadable=lost)
    graphs = [block for block in blocks.values() if block.named or block.spoiled or _stamped(block.about)]
    if blocks and not graphs:
        raise _only_default(name)
    if len(graphs) < len(blocks):
        kept = {id(block) for block in graphs}
        stray = next(block for block in blocks.values() if id(block) not in kept)
        raise _stray(stray.about[0], name, stray.line)
    yield from graphs


def group_adjacent(items: Iterable[PlacedRun], name: str) -> Iterator[QuadBlock]:
    """Group quads that stand together, stamps directly before or after. One graph in memory at a time.

    A stamp about neither neighbour is an empty graph. Raises DataError D2012, D2013.
    """
    block: QuadBlock | None = None
    pending: list[tuple[Triple, int, int]] = []
    bad = _Unreadable()
    for g, rows, line, end in items:
        subject, predicate, object_ = rows[0]
        if not predicate:
            about = pending[-1][0][0] if pending else block.name if block is not None else ""
            bad.line(object_, line, end, about)
            continue
        if bad.lines:
            bad.next(g or subject)
        if not g:
            pending.append((rows[0], line, end))
        elif block is not None and g == block.name:
            if any(row[0][0] != g for row in pending):
                raise _apart(g, name, line)
            block.about.extend(row[0] for row in pending)
            pending.clear()
            block.triples += rows
            block.end = end
        else:
            before = block
            if len(pending) == 1 and pending[0][0][0] == g and not bad.spoiled and before is not None:
                stamp, first, _end = pending.pop()  # as our own output is
                block = QuadBlock(g, rows, [stamp], first, end)
                yield before
            else:
                block = QuadBlock(g, rows, [], line, end)
                yield from _distributed(before, block, pending, name, bad)
                pending.clear()
    yield from _distributed(block, None, pending, name, bad)
    yield from bad.rest()


class _Unreadable(Struct):
    """Owns the unreadable lines that are not reported yet, and the names of the graphs that they spoil."""

    lines: list[tuple[str, int]] = field(default_factory=list)
    end: int = 0
    spoiled: dict[Term, list[tuple[str, int]]] = field(default_factory=dict)

    def line(self, text: str, line: int, end: int, before: Term) -> None:
        """An unreadable line, after one of the graph `before`."""
        self.lines.append((text, line))
        self.end = end
        if before:
            self.spoiled.setdefault(before, [])

    def next(self, after: Term) -> None:
        """The next line that can be read is of the graph `after`: that one reports them."""
        self.spoiled.setdefault(after, []).extend(self.lines)
        self.lines.clear()

    def completed(self, block: QuadBlock) -> QuadBlock:
        """A block that is complete, marked if it is spoiled."""
        lost = self.spoiled.pop(block.name, None)
        if lost is not None:
            block.spoiled, block.unreadable = True, lost
        return block

    def rest(self) -> Iterator[QuadBlock]:
        """Unreadable lines at the end of the document, after all graphs."""
        if self.lines:
            yield QuadBlock("", line=self.lines[0][1], end=self.end, spoiled=True, unreadable=self.lines)


def _distributed(
    before: QuadBlock | None,
    after: QuadBlock | None,
    pending: list[tuple[Triple, int, int]],
    name: str,
    bad: _Unreadable,
) -> Iterator[QuadBlock]:
    """Give the default graph's triples between two blocks to them; yield `before`, then the empty graphs."""
    others: dict[Term, list[tuple[Triple, int, int]]] = {}
    for row in pending:
        triple, line, end = row
        if before is not None and triple[0] == before.name:
            before.about.append(triple)
            before.end = end
        elif after is not None and triple[0] == after.name:
            after.line = after.line if after.about else line
            after.about.append(triple)
        else:
            others.setdefault(triple[0], []).append(row)
    if before is not None:
        yield bad.completed(before)
    for subject, rows in others.items():
        about = [row[0] for row in rows]
        empty = bad.completed(QuadBlock(subject, about=about, line=rows[0][1], end=rows[-1][2]))
        if not _stamped(about) and not empty.spoiled:
            raise _stray(about[0], name, rows[0][1])
        yield empty


def _stamped(about: list[Triple]) -> bool:
    return any(predicate == PROV_GENERATED_AT_TIME for _s, predicate, _o in about)


def _at(name: str, line: int) -> str:
    return f"{name}:{line}" if line else name


def _only_default(name: str) -> DataError:
    return DataError.of(
        "D2012",
        f"`{name}` has triples but no named graph",
        place=name,
        hint="put every time-annotated graph into a named graph, or name a file of one graph .ttl or .nt",
    )


def _stray(triple: Triple, name: str, line: int) -> DataError:
    return DataError.of(
        "D2012",
        f"`{name}` has a triple in the default graph that is about none of its named graphs",
        place=_at(name, line),
        label=" ".join(triple)[:300],
        notes=("a stream's default graph describes its named graphs, above all their times",),
        hint="move it into the named graph it belongs to, or into the background",
    )


def _apart(graph: Term, name: str, line: int) -> DataError:
    return DataError.of(
        "D2013",
        f"the quads of graph {graph} are not consecutive",
        place=_at(name, line),
        notes=(f"a document of more than {WHOLE} bytes is streamed, one graph after the other",),
        hint="sort it so that the quads of a graph are consecutive, their stamp directly before them",
    )


_SKIPPED = regex(
    r'''"""(?:[^"\\]++|\\.|"(?!""))*+"""|\'\'\'(?:[^'\\]++|\\.|'(?!''))*+\'\'\'
    |"(?:[^"\\\r\n]++|\\.)*+"|'(?:[^'\\\r\n]++|\\.)*+'
    |<[^<>"{}|^`\\\s]*+>|\#[^\n]*+|(?P<open>\{)|(?P<close>\})''',
    re.VERBOSE | re.DOTALL,
)
_LABEL = regex(r"(?:<[^<>\s]*>|[^\s<>{}\"';,.][^\s<>{}\"';,]*)\s*\Z")
_DIRECTIVE = regex(r"(?:@?prefix\s+[^\s:<>]*:|@?base)\s*<[^<>\s]*>", re.IGNORECASE)


class RawBytes(Struct):
    """Owns the bytes read of a document, from `start` on, that are not yet through.

    What has more than `limit` bytes that are not is forgotten from the head (0: nothing is).
    """

    start: int
    limit: int = 0
    _parts: deque[bytes] = field(default_factory=deque)
    _size: int = 0

    def take(self, content: bytes) -> None:
        """The next bytes were read."""
        self._parts.append(content)
        self._size += len(content)
        while self.limit and self._size > self.limit:
            self._drop()

    def _drop(self) -> None:
        part = self._parts.popleft()
        self.start += len(part)
        self._size -= len(part)

    def passed(self, end: int) -> None:
        """What is before byte `end` is not needed any more."""
        while self._parts and self.start + len(self._parts[0]) <= end:
            self._drop()

    def between(self, start: int, end: int) -> bytes | None:
        """Bytes of the document, None if they are not on the tape."""
        if not self.start <= start < end <= self.start + self._size:
            return None
        content = b"".join(self._parts)
        return content[start - self.start : end - self.start]

    def everything(self) -> bytes | None:
        """All that was read, None if its head is gone."""
        return None if self.start else b"".join(self._parts)


def pieces(content: bytes, format_: Format, name: str, base: str | None) -> dict[Term, bytes]:
    """Graph name → its part of a whole document of N-Quads (with what unreadable lines stand before it; those
    at the end are under "") or TriG. What cannot be distinguished is left out.
    """
    if format_ is Format.NQUADS:
        return _lines(content, name)
    found: dict[Term, bytes] = {}
    try:
        blocks = list(_blocks(content.decode()))
        header = " ".join(_turtle(directive) for directive in _DIRECTIVE.findall(content.decode()))
        named = "".join(
            f"{label} {{ <urn:x:{i}> <urn:x:p> <urn:x:o> }}\n" for i, (label, _) in enumerate(blocks)
        )
        for subject, _p, _o, graph in parse_quads(f"{header}\n{named}", format_, name, base):
            block = blocks[int(subject[len("<urn:x:") : -1])][1].encode()
            found[graph] = found[graph] + b"\n" + block if graph in found else block
    except (DataError, UnicodeDecodeError):
        return {}
    return found


def _turtle(directive: str) -> str:
    """A directive in the form that has no dot."""
    return directive.removeprefix("@")


def _lines(content: bytes, name: str) -> dict[Term, bytes]:
    raw = content.split(b"\n")
    found: dict[Term, list[bytes]] = {}
    lost: list[bytes] = []
    for (s, p, _o, g), number, _end in placed_lines(content, name, 1, 0, forgiving=True):
        if not p:
            lost.append(raw[number - 1])
            continue
        found.setdefault(g or s, []).extend([*lost, raw[number - 1]])
        lost.clear()
    if lost:
        found[""] = lost
    return {key: b"".join(line + b"\n" for line in lines) for key, lines in found.items()}


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The graph blocks of a TriG document with the label of each; blocks of the default graph have none."""
    depth = begun = 0
    clean: list[str] = []  # the text since the last block, without comments
    since = 0
    for token in _SKIPPED.finditer(text):
        if token["open"]:
            depth += 1
            if depth == 1:
                clean.append(text[since : token.start()])
                begun = token.start()
        elif token["close"]:
            depth -= 1
            if depth == 0:
                head = "".join(clean)
                label = _LABEL.search(head)
                if label is not None:
                    written = label[0].strip()
                    yield written, f"{written} {text[begun : token.end()]}"
                clean.clear()
                since = token.end()
        elif depth == 0 and token[0].startswith("#"):
            clean.append(text[since : token.start()])
            since = token.end()


_QUAD_BLOCK = 1 << 16  # of more the tokens are too many for the caches of a processor
_LARGEST = 1 << 20
"""Bytes of a graph from which it is left to quads.py: what is held is examined again with every block."""

_END = " .\n"
_STAMP = len("nnl.")
_PROV = {PROV_GENERATED_AT_TIME}
_QUADS = regex(r"(?:nnl\.(?:[nb]n[nlb]n\.)++)++")
_QUAD_GRAPH = regex(r"nnl\.(?:[nb]n[nlb]n\.)++")
_TRIG = regex(r"(?:nnl\.n\{[^{}]++\})++")
_TRIG_GRAPH = regex(r"nnl\.n\{[^{}]++\}")
_STAMPS = {Format.NQUADS: PROV_GENERATED_AT_TIME.encode(), Format.TRIG: b"generatedAtTime"}


class QuadRun(NamedTuple):
    """Named graphs that follow one another, each after its stamp, as columns: see QuadBlock."""

    names: Sequence[Term]
    stamps: Sequence[Term]
    graphs: Sequence[list[Triple]]
    lines: Sequence[int]
    ends: Sequence[int]
    whole: bool

    def blocks(self) -> list[QuadBlock]:
        """Each by itself."""
        rows = zip(self.names, self.stamps, self.graphs, self.lines, self.ends, strict=True)
        return [
            QuadBlock(name, graph, [(name, PROV_GENERATED_AT_TIME, stamp)], line, end, True, self.whole)
            for name, stamp, graph, line, end in rows
        ]

    def behind(self, count: int) -> QuadRun:
        """Without the first `count`."""
        columns = self.names[count:], self.stamps[count:], self.graphs[count:], self.lines[count:]
        return QuadRun(*columns, self.ends[count:], self.whole)


class _Found(NamedTuple):
    names: list[Term]
    stamped: list[Term]
    """What their stamps say of them."""
    stamps: list[Term]
    graphs: list[list[Triple]]
    sizes: list[int]
    """Quads of each, before repeats are left out."""
    times: int
    """How often the property of stamps is said."""
    widths: Sequence[int] = ()
    """Bytes of each line of N-Quads."""


def quad_parts(
    file: Readable,
    format_: Format,
    name: str,
    base: str | None = STREAM_BASE,
    limit: int = MAX_DOCUMENT,
    head: bytes = b"",
    whole: int = WHOLE,
    line: int = 1,
    offset: int = 0,
    forgiving: bool = False,
    choices: ParseChoices = STRICT,
) -> Iterator[QuadRun | QuadBlock]:
    """The named graphs of a document in document order, as `quad_blocks` has them; many at once where that is
    the same. Raises DataError.
    """
    ended = False
    while len(head) <= whole and not ended:
        more = read_some(file, whole + 1 - len(head), name)
        head, ended = head + more, not more
    plain = _PlainQuads(format_, base, line, offset, whole=ended)
    taken = io.BytesIO(head)
    if ended:
        runs = list(plain.runs(taken.read))
        names = [graph for run in runs for graph in run.names]
        if plain.over and len(set(names)) == len(names):
            yield from runs
        else:
            small = len(head)
            rest = limit, head, small, line, offset, forgiving, choices
            yield from quad_blocks(file, format_, name, base, *rest)
        return
    if whole or format_ is Format.NQUADS:  # of a pipe with TriG every quad is taken as it comes
        yield from plain.runs(lambda size: taken.read(size) or read_some(file, size, name))
        if plain.over:
            return
        head = plain.rest + taken.read()
        if plain.count:
            before = plain.count, plain.declared
            line, offset = plain.line, plain.offset
            place = line, offset, forgiving, before, choices
            yield from rest_blocks(file, format_, name, base, limit, head, *place)
            return
    yield from quad_blocks(file, format_, name, base, limit, head, whole, line, offset, forgiving, choices)


class _PlainQuads:
    """Owns how far a document was read so: `count` graphs, up to `line` and `offset`; `rest`, from there on,
    was read and is left to others; `over`: nothing is left.
    """

    def __init__(self, format_: Format, base: str | None, line: int, offset: int, *, whole: bool) -> None:
        self.line, self.offset, self.count = line, offset, 0
        self.rest = b""
        self.over = False
        self.declared = ""
        """Of TriG, the declarations that hold, in one line."""
        self._base = base
        self._stamp = _STAMPS[format_]
        self._lines = format_ is Format.NQUADS
        self._numbered = whole or not self._lines
        self._words = PlainTokens("." if self._lines else ".;,{}", turtle=not self._lines)
        self._form = ""  # of the graphs before
        self._layouts: Memo[str, _Layout | None] = Memo(_layout, limit=1 << 10)
        self._last: Term = ""

    def runs(self, read: Callable[[int], bytes]) -> Iterator[QuadRun]:
        """The graphs of what `read` gives, as long as they are plain."""
        self.rest = read(_QUAD_BLOCK)
        declared = self._begin()
        while True:
            cut, following = self._cut(self.rest, declared)
            if cut > 0:
                run = self._run(self.rest[:cut], declared, following)
                if run is None:
                    return
                self.rest, declared = self.rest[cut:], 0
                yield run
            if len(self.rest) > _LARGEST:
                return
            more = read(_QUAD_BLOCK)
            if not more:
                break
            self.rest += more
        if self.rest.strip():
            run = self._run(self.rest, declared, "")
            if run is None:
                return
            self.rest = b""
            yield run
        self.over = self.count > 0

    def _begin(self) -> int:
        """Take the declarations at the head of TriG; the bytes of them."""
        if self._lines:
            return 0
        found = DECLARED.match(self.rest.decode("utf-8", "replace"))
        head = found[0] if found is not None and "\ufffd" not in found[0] else ""
        prefixes = prefixes_of(head, self._base)
        if prefixes is None:
            return 0
        self._words.begin(prefixes)
        self.declared = " ".join(head.split())
        return len(head.encode())

    def _cut(self, content: bytes, start: int) -> tuple[int, Term]:
        """Where the last graph begins that has begun with a quad, and its name; 0: nowhere after `start`."""
        end = len(content)
        while (stamp := content.rfind(self._stamp, start, end)) >= 0:
            end = content.rfind(b"\n", start, stamp) + 1
            if end <= start:
                break
            if self._lines:
                quad = content.find(b"\n", content.find(b"\n", stamp) + 1 or len(content))
            else:
                quad = content.find(b"}", stamp)
            if quad >= 0:
                found = self._found(content[end : quad + 1])
                return (end, found.names[0]) if found is not None else (0, "")
        return 0, ""

    def _run(self, content: bytes, declared: int, following: Term) -> QuadRun | None:
        """The graphs of a string after so many bytes of declarations, before one of the name `following`."""
        found = self._found(content[declared:])
        if found is None:
            return None
        names = found.names
        if any(map(eq, (self._last, *names), (*names, following))):
            return None  # a graph that goes on
        lines: Sequence[int] = [0] * len(names)
        ends: Sequence[int] = range(self.count + 1, self.count + len(names) + 1)
        if self._lines:
            behind = list(accumulate([size + 1 for size in found.sizes], initial=0))
            lines = [self.line + before for before in behind[:-1]]
            if not self._numbered:
                places = list(accumulate(found.widths, initial=self.offset))
                ends = [places[row] for row in behind[1:]]
                ends[-1] = self.offset + len(content)  # which may lack its line end
        self.line += sum(found.sizes) + len(names) if self._lines else content.count(b"\n")
        self.offset += len(content)
        self.count += len(names)
        self._last = names[-1]
        return QuadRun(names, found.stamps, found.graphs, lines, ends, self._numbered)

    def _found(self, content: bytes) -> _Found | None:
        """The graphs of a string, if it is such graphs and nothing else."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return None
        if self._lines and text[-1:] != "\n":
            text += "\n"
        tokens, columns = self._words.read(text)
        if columns is not None:
            found = self._alike(columns)
        else:
            found = None if tokens is None else self._of_form(tokens)
        if found is None or set(found.stamped) != _PROV or found.times != len(found.names):
            return None  # no stamps, or graphs that say times themselves
        return self._one_a_line(text, found) if self._lines else found

    def _one_a_line(self, text: str, found: _Found) -> _Found | None:
        """The graphs with the widths of their lines; None where a line is not one statement."""
        lines = text.split(_END)
        count = len(found.names) + sum(found.sizes)
        if len(lines) - 1 != count or text.count("\n") != count or "\r" in text or "\t" in text:
            return None
        if self._numbered:
            return found
        widths = map(len, lines) if text.isascii() else [len(line.encode()) for line in lines]
        return found._replace(widths=[width + len(_END) for width in widths])

    def _of_form(self, tokens: list[str]) -> _Found | None:
        """Graphs of a form that is not that of those before."""
        form = "".join(map(self._words.kinds.__getitem__, tokens))
        pattern = _QUAD_GRAPH if self._lines else _TRIG_GRAPH
        if (_QUADS if self._lines else _TRIG).fullmatch(form) is None:
            return None
        first = pattern.match(form)
        assert first is not None, "all of it is such graphs"
        count = len(form) // len(first[0])
        if count > 1 and form == first[0] * count:  # one graph does not say how others are
            return self._begin_form(first[0], tokens)
        terms = list(map(self._words.terms.__getitem__, tokens))
        found = _Found([], [], [], [], [], terms.count(*_PROV))
        for graph in pattern.finditer(form):
            start, end = graph.span()
            layout = self._layouts[graph[0]]
            if layout is None:
                return None
            own = terms[start:end]
            if any(own[place] != own[0] for place in layout.named):
                return None
            rows = [(own[s], own[p], own[o]) for s, p, o in layout.places]
            found.names.append(own[0])
            found.stamped.append(own[1])
            found.stamps.append(own[2])
            found.graphs.append(distinct(rows))
            found.sizes.append(len(rows))
        return found

    def _begin_form(self, form: str, tokens: list[str]) -> _Found | None:
        """Graphs of one form, as those after them are likely to be."""
        if self._layouts[form] is None:
            return None
        self._form = form
        columns = self._words.expect(tokens, form)
        assert columns is not None, "they are of this form"
        return self._alike(columns)

    def _alike(self, columns: list[list[Term]]) -> _Found | None:
        """Graphs of one form, by columns."""
        layout = self._layouts[self._form]
        names = columns[0]
        if layout is None or any(columns[place] != names for place in layout.named):
            return None
        rows = [zip(columns[s], columns[p], columns[o], strict=True) for s, p, o in layout.places]
        graphs = list(map(distinct, zip(*rows, strict=True)))
        times = sum([column.count(*_PROV) for column in columns])
        return _Found(names, columns[1], columns[2], graphs, [len(rows)] * len(names), times)


class _Layout(NamedTuple):
    """Where in a graph's tokens its triples stand, and its name after the first."""

    places: Places
    named: list[int]


def _layout(form: str) -> _Layout | None:
    """Of N-Quads or TriG with a stamp before it; None where it is left to the parser."""
    if "{" not in form:
        quads = range(_STAMP, len(form), 5)
        return _Layout([(at, at + 1, at + 2) for at in quads], [at + 3 for at in quads])
    start = form.index("{") + 1
    inside = form[start:-1]
    places = places_of(inside if inside[-1] == "." else f"{inside}.")
    return (
        None
        if places is None
        else _Layout([(s + start, p + start, o + start) for s, p, o in places], [_STAMP])
    )

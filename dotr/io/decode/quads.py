"""TriG and N-Quads streams: one named graph is one time-annotated graph, its stamp is in the default graph.

Place:   called by sources.py with an open file; delivers blocks that have no time yet.
Method:  a document of up to 4 MiB is grouped whole. A longer one is streamed when its first graph shows that
         graphs stand together with their stamp directly before or after (our own output: before); else it is
         read whole, up to `--max-document`. N-Quads are cut at lines here, so that every graph knows its
         line and the byte behind it; TriG is read by pyoxigraph as it comes.
         An unreadable line of N-Quads takes the graphs of the lines before and after it with it: it may
         have been theirs.
Bad input: D2012 a stray triple in the default graph · D2013 a graph whose quads do not stand together ·
           D2019 a graph beside an unreadable line · D2023 nothing but blanks and comments.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec import Struct, field

from dotr.errors import DataError
from dotr.io.decode.documents import (
    MAX_DOCUMENT,
    STREAM_BASE,
    Format,
    Readable,
    decode,
    read_some,
    too_large,
)
from dotr.io.decode.parse_choices import STRICT, ParseChoices
from dotr.io.decode.parsing import parse_runs, stream_runs
from dotr.io.decode.quad_lines import PlacedRun, line_runs, parsed_line
from dotr.io.decode.quiet_bytes import QuietBytes
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, Term, Triple

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
        """The block as N-Quads, for a dead letter, behind the unreadable lines before it."""
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
    """As `quad_blocks` behind `before` (how many graphs that stand together, and the declarations that hold
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
        f"graph {block.name} stands beside a line that cannot be read",
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
        """An unreadable line, behind one of the graph `before`."""
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
        """Unreadable lines at the end of the document, behind all graphs."""
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
        f"`{name}` has a triple in the default graph that is about no graph beside it",
        place=_at(name, line),
        label=" ".join(triple)[:300],
        notes=("a stream's default graph says things about its named graphs, above all when they hold",),
        hint="move it into the named graph it belongs to, or into the background",
    )


def _apart(graph: Term, name: str, line: int) -> DataError:
    return DataError.of(
        "D2013",
        f"the quads of graph {graph} do not stand together",
        place=_at(name, line),
        notes=(f"a document of more than {WHOLE} bytes is streamed, one graph after the other",),
        hint="sort it so that the quads of a graph are neighbours, their stamp directly before them",
    )

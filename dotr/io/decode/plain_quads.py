"""Streams of quads whose graphs stand together, each behind its stamp, many graphs at once without a parser.

Place:   asked by files/reader.py for N-Quads and TriG; what is not so is left to quads.py, for the rest of
         the document.
Method:  the text is cut where a line begins with a stamp, and read by its tokens (plain_tokens.py). Graphs
         before a cut are complete when the graph behind it has begun with a quad of its own, and has another
         name. A small document is grouped whole, so it is read so as a whole, or not at all.
Why not: go back to this behind what is not so: whether a default graph's triple is about the graph before or
         behind it is known at the end of both.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from operator import eq
from typing import NamedTuple

from dotr.io.decode.batch_parse import DECLARED
from dotr.io.decode.documents import MAX_DOCUMENT, STREAM_BASE, Format, Readable, read_some
from dotr.io.decode.parse_choices import STRICT, ParseChoices
from dotr.io.decode.plain_graphs import Places, distinct, places_of
from dotr.io.decode.plain_tokens import PlainTokens, prefixes_of
from dotr.io.decode.quads import WHOLE, QuadBlock, quad_blocks, rest_blocks
from dotr.rdf.memo import Memo
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, Term, Triple
from dotr.regex import regex

_BLOCK = 1 << 16  # of more the tokens are too many for the caches of a processor
_LARGEST = 1 << 20
"""Bytes of a graph from which it is left to quads.py: what is held is looked at again with every block."""

_END = " .\n"
_STAMP = len("nnl.")
_PROV = {PROV_GENERATED_AT_TIME}
_QUADS = regex(r"(?:nnl\.(?:[nb]n[nlb]n\.)++)++")
_QUAD_GRAPH = regex(r"nnl\.(?:[nb]n[nlb]n\.)++")
_TRIG = regex(r"(?:nnl\.n\{[^{}]++\})++")
_TRIG_GRAPH = regex(r"nnl\.n\{[^{}]++\}")
_STAMPS = {Format.NQUADS: PROV_GENERATED_AT_TIME.encode(), Format.TRIG: b"generatedAtTime"}


class QuadRun(NamedTuple):
    """Named graphs that stand one behind another, each behind its stamp, as columns: see QuadBlock."""

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
        self.rest = read(_BLOCK)
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
            more = read(_BLOCK)
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
        """Where the last graph begins that has begun with a quad, and its name; 0: nowhere behind `start`."""
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
        """The graphs of a text behind so many bytes of declarations, before one of the name `following`."""
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
        """The graphs of a text, if it is such graphs and nothing else."""
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
        """Graphs of one form, as those behind them are likely to be."""
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
    """Where in a graph's tokens its triples stand, and its name behind the first."""

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

"""A Linked Data Event Stream as a source: each member a graph at its time, exactly once.

Place:   a source of `dotr serve` (`ldes: URL`). serve/event_stream.py writes such streams.
Method:  pages are followed along `tree:relation`, those first whose events begin first by their relations
         (`GreaterThan…`); the members of a page come sorted by `ldes:timestampPath`. A page that is immutable
         (`Cache-Control: immutable`, or `ldes:immutable`) is read once; the others are asked for again every
         `poll` seconds with their ETag. A page that leads to earlier ones (`LessThan…`) waits for them.
         A member that is a named graph is that graph: what the default graph says of it, such as its stamp,
         is about the graph. Another member is its concise bounded description: its triples, and those of
         blank nodes that they lead to. Its time is its timestamp, unless the source has a `time-path`.
         Versions of one thing (`ldes:versionOfPath`) are members as others are, in the order of their times;
         the triple that says of what a member is a version stays in its graph, so that a rule sees both.
         Progress: the pages that are done, those that are not with the members that they name, and the last
         5,000 members that no such page names any more, for streams that move members from page to page. So a
         member of two pages is known as long as one of them may change (`MOST_MEMBERS`). A page is known
         before the one that led to it is done or has an ETag. Each step has a number, the mark of a document;
         a commit applies the steps up to its mark. Pages that are numbered are spans, others are hashes; a
         stream that needs more than `MOST_PAGES` or `MOST_MEMBERS` of them ends with a diagnostic.
         Only the host of the configuration is asked, whatever relations and redirects say.
Why not: remembering every member, as clients with a disk of their own do: the position is written with each
         commit. Order over pages that have no relation with a time: that would take reading all of them.
Bad input: D4222 what cannot be had or read: it is tried again · D4223 pages that are gone, or elsewhere. A
         member without a time that can be read is a dead letter.
"""

from __future__ import annotations

import heapq
import http.client
import re
from base64 import urlsafe_b64encode
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import SplitResult, urldefrag, urljoin, urlsplit

import pyoxigraph as ox
from msgspec import Struct, field

from dotr.connectors.outgoing import Answer, connection_to, get, retry_after, target_of, wake
from dotr.connectors.read_ahead import NotReadError, ReadAhead, ReadAheadTransport
from dotr.errors import DataError, Diagnostic, EngineError
from dotr.events import Time
from dotr.io.decode.documents import Format
from dotr.io.decode.rdf import refuse_costly
from dotr.io.feeds import Document, Position
from dotr.io.time import TimeError, parse_text
from dotr.rdf.terms import RDF_TYPE
from dotr.service.outbox import Origin
from dotr.version import __version__

MOST_PAGES: Final = 20_000
"""Spans of numbered pages, and other pages, that are remembered."""

MOST_MEMBERS: Final = 100_000
"""Members of pages that still change. Where these pages name so many together, a member that was given is not
remembered for another page that names it, too.
"""

RECENT: Final = 5_000
"""Members that no page that still changes names, the last ones."""

MOST_STATEMENTS: Final = 500_000
"""Of a page, and of all its members together: they may have blank nodes in common."""

MOST_CHARACTERS: Final = 64 << 20
"""Of the statements of a page, written out: a short name may stand for a long IRI."""

_MOST_HOSTS: Final = 100
"""Other hosts that are named in messages."""

_LONGEST_ADDRESS: Final = 4_096
_TAG: Final = re.compile(r"[ -~\x80-\xff]{1,256}")
"""What is remembered of a page is short; where its tag is another, it is asked for without one."""

_HELD: Final = 16 << 20
"""Bytes of members that wait for those of earlier pages; what is more is asked for again."""

_REDIRECTS: Final = 5
_TREE: Final = "https://w3id.org/tree#"
_LDES: Final = "https://w3id.org/ldes#"
_LOWER: Final = {f"{_TREE}GreaterThanRelation", f"{_TREE}GreaterThanOrEqualToRelation"}
_UPPER: Final = {f"{_TREE}LessThanRelation", f"{_TREE}LessThanOrEqualToRelation"}
_FORMATS: Final[Mapping[str, tuple[Format, ox.RdfFormat]]] = {
    "application/n-quads": (Format.NQUADS, ox.RdfFormat.N_QUADS),
    "application/trig": (Format.TRIG, ox.RdfFormat.TRIG),
    "text/turtle": (Format.TURTLE, ox.RdfFormat.TURTLE),
    "application/n-triples": (Format.NTRIPLES, ox.RdfFormat.N_TRIPLES),
    "application/ld+json": (Format.JSONLD, ox.RdfFormat.JSON_LD),
    "application/rdf+xml": (Format.RDFXML, ox.RdfFormat.RDF_XML),
}
_ACCEPT: Final = (
    "application/n-quads, application/trig;q=0.9, text/turtle;q=0.8, application/n-triples;q=0.8, "
    "application/ld+json;q=0.7, application/rdf+xml;q=0.5"
)
_NUMBER: Final = re.compile(r"(0|[1-9][0-9]{0,15})(?=[^0-9]*$)")
_EARLIEST: Final = -(1 << 62)
_LATEST: Final = 1 << 62

Term: TypeAlias = Any
Statement: TypeAlias = Any
"""A term and a triple of pyoxigraph, whose objects may be triples; those have no `value`."""


# -- what a page says


class Member(NamedTuple):
    """A member of a page. `time`: its timestamp as written, "" for none; `content`: its graph, N-Triples."""

    id: str
    time: str
    content: bytes


class PageContent(NamedTuple):
    """What a page says: members by their times, pages by the times from which on they have members (None: it
    does not say), those of them that have the time before which their members are, the IRIs of
    views, `ldes:timestampPath`, and whether it never changes.
    """

    members: list[Member]
    pages: dict[str, Time | None]
    before: set[str]
    views: list[str]
    path: str
    immutable: bool


def page_content(content: bytes, media: str, url: str, path: str = "") -> PageContent:
    """Read a page. `path`: the timestamp path that other pages named. Raises NotReadError."""
    kind = media.partition(";")[0].strip().lower()
    if kind not in _FORMATS:
        raise NotReadError(f"{url} is `{kind[:64]}`, which is no format of RDF")
    quads = _quads(content, *_FORMATS[kind], url)
    about: dict[Term, list[Statement]] = {}
    graphs: dict[Term, list[Statement]] = {}
    for quad in quads:
        if isinstance(quad.graph_name, ox.DefaultGraph):
            about.setdefault(quad.subject, []).append(quad.triple)
        else:
            graphs.setdefault(quad.graph_name, []).append(quad.triple)
    stated = [triple for triples in about.values() for triple in triples]
    path = next((t.object.value for t in stated if _is(t, f"{_LDES}timestampPath")), path)
    found = dict.fromkeys(t.object for t in stated if _is(t, f"{_TREE}member"))
    members, left = list[Member](), MOST_STATEMENTS
    for one in found:
        described = graphs.get(one) or list(islice(_described(one, about), left + 1))
        left -= len(described)
        if left < 0:
            raise NotReadError(f"the members of {url} have more than {MOST_STATEMENTS:,} statements together")
        members.append(_member(one, described, about.get(one, ()), path))
    members.sort(key=_sorted_by)
    pages: dict[str, Time | None] = {}
    ends = set[str]()
    for triple in stated:
        if _is(triple, f"{_TREE}relation"):
            node, low, ended = _relation(about.get(triple.object, []), path)
            if node and (node not in pages or low is not None):
                pages[node] = low
            if node and ended:
                ends.add(node)
    before = {node for node in ends if pages[node] is None}
    views = sorted(t.object.value for t in stated if _is(t, f"{_TREE}view"))
    immutable = any(_is(t, f"{_LDES}immutable") and t.object.value in ("true", "1") for t in stated)
    return PageContent(members, pages, before, views, path, immutable)


def _quads(content: bytes, format_: Format, parser: ox.RdfFormat, url: str) -> list[Statement]:
    """What a page says. Raises NotReadError, also for one that would cost too much."""
    found, size = list[Statement](), 0
    try:
        refuse_costly(content.decode(), format_, url)
        for quad in ox.parse(content, format=parser, base_iri=url, lenient=True):
            found.append(quad)
            size += len(str(quad))
            if len(found) > MOST_STATEMENTS or size > MOST_CHARACTERS:
                raise NotReadError(
                    f"{url} has more than {MOST_STATEMENTS:,} statements, or {MOST_CHARACTERS:,} characters "
                    "in them"
                )
    except (SyntaxError, ValueError) as error:
        raise NotReadError(f"{url} cannot be read: {error}") from None
    except DataError as error:
        raise NotReadError(error.diagnostics[0].message) from None
    return found


def _is(triple: Statement, predicate: str) -> bool:
    return triple.predicate.value == predicate and not isinstance(triple.object, ox.Triple)


def _relation(triples: Sequence[Statement], path: str) -> tuple[str, Time | None, bool]:
    """The page that a relation leads to, from when on its members are, and whether it says until when. What
    is said of another property than the timestamp says nothing of times.
    """
    node = next((t.object.value for t in triples if _is(t, f"{_TREE}node")), "")
    along = any(_is(t, f"{_TREE}path") and t.object.value == path for t in triples)
    value = next((_time(t.object.value) for t in triples if _is(t, f"{_TREE}value")), None)
    if value is None or not (along or not path):
        return _address(node), None, False
    kinds = {t.object.value for t in triples if _is(t, RDF_TYPE.strip("<>"))}
    return _address(node), value if kinds & _LOWER else None, bool(kinds & _UPPER)


def _address(iri: str) -> str:
    """Without its fragment."""
    with suppress(ValueError):
        return urldefrag(iri).url
    return iri


def _time(text: str) -> Time | None:
    try:
        return parse_text(text, 1)[0]
    except TimeError:
        return None


def _size(found: tuple[PageContent, str] | None) -> int:
    return 0 if found is None else sum(len(one.content) for one in found[0].members)


def _sorted_by(member: Member) -> Time:
    time = _time(member.time)
    return _LATEST if time is None else time


def _member(name: Term, triples: Sequence[Statement], about: Sequence[Statement], path: str) -> Member:
    """A member of its graph; `about`: what the page says of it."""
    stamps = [t.object.value for t in (*about, *triples) if t.subject == name and _is(t, path)]
    blanks: dict[Term, ox.BlankNode] = {}

    def numbered(term: Term) -> Term:
        if isinstance(term, ox.BlankNode):  # a parser's labels differ from run to run
            return blanks.setdefault(term, ox.BlankNode(f"b{len(blanks)}"))
        return term

    made = [ox.Triple(numbered(t.subject), t.predicate, numbered(t.object)) for t in triples]
    content = ox.serialize(made, format=ox.RdfFormat.N_TRIPLES)
    assert content is not None, "nothing was named to write to"
    id_ = name.value if isinstance(name, ox.NamedNode) else content.decode()
    return Member(id_, stamps[0] if stamps else "", content)


def _described(name: Term, about: Mapping[Term, list[Statement]]) -> Iterator[Statement]:
    """The concise bounded description of a thing."""
    seen, waiting = {name}, deque([name])
    while waiting:
        for triple in about.get(waiting.popleft(), ()):
            yield triple
            if isinstance(triple.object, ox.BlankNode) and triple.object not in seen:
                seen.add(triple.object)
                waiting.append(triple.object)


# -- how far a stream is read


class PageSet:
    """Owns which pages are done: spans of those whose addresses differ in their last number, hashes of the
    others.
    """

    def __init__(self, stored: Sequence[Any] = ((), ())) -> None:
        numbered, others = stored
        self._spans = {(head, tail): [list(span) for span in spans] for head, tail, spans in numbered}
        self._others = dict.fromkeys(others)

    def __contains__(self, url: str) -> bool:
        found = _NUMBER.search(url)
        if found is None:
            return _hash(url) in self._others
        spans, number = self._spans.get((url[: found.start()], url[found.end() :]), []), int(found[0])
        at = bisect_right(spans, [number, _LATEST]) - 1
        return at >= 0 and spans[at][1] >= number

    def add(self, url: str) -> None:
        if url in self:
            return
        found = _NUMBER.search(url)
        if found is None:
            self._others[_hash(url)] = None
            return
        spans, number = self._spans.setdefault((url[: found.start()], url[found.end() :]), []), int(found[0])
        at = bisect_right(spans, [number, _LATEST])
        spans.insert(at, [number, number])
        if at + 1 < len(spans) and spans[at + 1][0] == number + 1:
            spans[at][1] = spans.pop(at + 1)[1]
        if at and spans[at - 1][1] == number - 1:
            spans[at - 1][1] = spans.pop(at)[1]

    def __len__(self) -> int:
        return sum(map(len, self._spans.values())) + len(self._others)

    def stored(self) -> list[Any]:
        """As JSON."""
        spans = [[head, tail, found] for (head, tail), found in sorted(self._spans.items())]
        return [spans, list(self._others)]


class OpenPage(Struct):
    """A page that is not done: its ETag, the earliest time of its members, and those that were given, by it
    or by another page.
    """

    low: Time = _EARLIEST
    tag: str = ""
    members: dict[str, None] = field(default_factory=dict)


class Step(NamedTuple):
    """One step of progress; `what`: of STEPS."""

    what: str
    url: str
    value: Any = None


class Progress:
    """Owns how far a stream is read, after some steps."""

    def __init__(self, stored: Position | None) -> None:
        """Raises EngineError D5105."""
        try:
            done, pages, recent, self.path = stored or [((), ()), {}, (), ""]
            self.done = PageSet(done)
            self.pages = {
                url: OpenPage(low, tag, dict.fromkeys(members)) for url, (low, tag, members) in pages.items()
            }
            self._open = Counter(one for page in self.pages.values() for one in page.members)
            self._named = self._open.total()
            """In all."""
            self._recent = dict.fromkeys(recent)
        except (TypeError, ValueError, AttributeError):
            raise EngineError.of("D5105", "what is stored for a source is not a position in LDES") from None

    def has(self, member: str) -> bool:
        """Whether a member, by its hash, was given and is remembered."""
        return member in self._recent or member in self._open

    def apply(self, step: Step) -> None:
        """Go on by a step."""
        STEPS[step.what](self, step.url, step.value)

    def _has_path(self, _url: str, path: str) -> None:
        self.path = path

    def _opened(self, url: str, low: Time) -> None:
        self.pages.setdefault(url, OpenPage(low))

    def _given(self, url: str, member: str) -> None:
        self.pages[url].members[member] = None
        self._open[member] += 1
        self._named += 1

    def _tagged(self, url: str, value: tuple[str, set[str]]) -> None:
        page = self.pages[url]
        page.tag, there = value
        moved = [one for one in page.members if one not in there]
        self._remember(moved)
        for one in moved:
            del page.members[one]

    def _done(self, url: str, _value: None) -> None:
        self._remember(self.pages.pop(url).members)
        self.done.add(url)

    def _remember(self, members: Iterable[str]) -> None:
        """Members that one open page names no more; those that no other one does become the last ones."""
        for one in members:
            self._named -= 1
            self._open[one] -= 1
            if not self._open[one]:
                del self._open[one]
                self._recent.pop(one, None)
                self._recent[one] = None
        while len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]

    def has_room(self) -> bool:
        """Whether a member may be remembered for another page, too."""
        return self._named < MOST_MEMBERS

    def refuse_too_much(self) -> None:
        """Raise NotReadError where there is more than is remembered."""
        pages, members = len(self.done) + len(self.pages), len(self._open)
        if pages > MOST_PAGES or members > MOST_MEMBERS:
            raise NotReadError(
                f"{pages:,} pages and {members:,} members of pages that change are more than are remembered "
                f"({MOST_PAGES:,} and {MOST_MEMBERS:,})"
            )

    def stored(self) -> Position:
        """As JSON."""
        pages = {url: [one.low, one.tag, list(one.members)] for url, one in self.pages.items()}
        return [self.done.stored(), pages, list(self._recent), self.path]


STEPS: Final[Mapping[str, Callable[[Progress, str, Any], None]]] = {
    "path": Progress._has_path,
    "open": Progress._opened,
    "member": Progress._given,
    "tag": Progress._tagged,
    "done": Progress._done,
}
"""What a step does: the timestamp path is known, a page is known, a member of it was given (by this page or
before), it has a tag and these members, it is done.
"""


def _hash(text: str) -> str:
    return urlsafe_b64encode(blake2b(text.encode(), digest_size=9).digest()).decode()


# -- the source


class LdesTransport(ReadAheadTransport):
    """Owns the reading of one stream. `url`: of its root, or of the stream; `poll`: seconds; `own_time`: the
    time of a member is found by the reader of documents, not by `ldes:timestampPath`.
    """

    def __init__(
        self,
        name: str,
        url: str,
        poll: float = 60.0,
        say: Callable[[Diagnostic], None] = lambda _found: None,
        own_time: bool = False,
    ) -> None:
        self.name, self.poll = name, poll
        self.counts: Mapping[str, int] = {}
        self._root = urldefrag(url).url
        self._own_time = own_time
        self._ahead = ReadAhead(f"the source `{name}`, {self._root}", self._read, say, self._let_go)
        self._begun = False
        self._read_to = Progress(None)
        """With everything that was read."""
        self._fed_to = Progress(None)
        """With everything up to the last mark that was asked for."""
        self._steps: deque[tuple[int, Step]] = deque()
        self._number = self._mark = 0
        self._stored: Position | None = None
        self._told: set[str] = set()
        self._connection: http.client.HTTPConnection | None = None

    def open(self, partition: str, position: Position | None) -> Iterator[Sequence[Document]]:
        """See `Transport`."""
        if not self._begun:
            self._read_to, self._fed_to = Progress(position), Progress(position)
            self._stored, self._begun = position, True
        yield from self._documents()

    def position(self, partition: str, mark: Position) -> Position:
        """See `Transport`: progress after the steps up to a mark."""
        if mark > self._mark or self._stored is None:
            while self._steps and self._steps[0][0] <= mark:
                self._fed_to.apply(self._steps.popleft()[1])
            self._mark, self._stored = mark, self._fed_to.stored()
        return self._stored

    def committed(self, positions: Mapping[str, Position | None]) -> None:
        """See `Transport`."""

    def origin(self, place: str) -> Origin | None:
        """See `Replayed`."""
        if not place.startswith(f"{self.name}: "):
            return None
        return Origin(self.name, 0, "application/n-triples")

    def close(self) -> None:
        """See `Replayed`."""
        self._ahead.close(lambda: wake(self._connection))

    # ------------------------------------------------------------------ in the thread that reads

    def _step(self, step: Step) -> int:
        """Take a step; its number."""
        self._number += 1
        self._read_to.apply(step)
        self._steps.append((self._number, step))
        return self._number

    def _read(self) -> None:
        """Round after round."""
        while True:
            self._round()
            self._ahead.sleep(self.poll)

    def _round(self) -> None:
        """Every page that is not done, and those that they lead to."""
        progress = self._read_to
        waiting = [(_EARLIEST, 0, self._root)] if self._root not in progress.done else []
        waiting += [(page.low, number, url) for number, (url, page) in enumerate(progress.pages.items(), 1)]
        heapq.heapify(waiting)
        seen, last = set[str](), len(waiting)
        put_off: dict[str, tuple[PageContent, str] | None] = {}
        tags: list[Step] = []
        given = self._ahead.received
        while waiting:
            low, number, url = heapq.heappop(waiting)
            again = number < 0
            if url in seen and not again:
                continue
            seen.add(url)
            content, tag = put_off.pop(url, None) or (None, "")
            if content is None:
                self._ahead.wait_until_asked()
                content, tag = self._page(url)
            if content is None:
                continue
            if content.path != progress.path:
                self._step(Step("path", "", content.path))
            if url not in progress.pages:
                self._step(Step("open", url, low))
            earlier = False
            for page in self._linked(url, content):
                bound = content.pages.get(page)
                begin = _EARLIEST if page in content.before else low if bound is None else bound
                if page in progress.done or page in seen:
                    continue
                earlier |= page in content.before
                if content.immutable and page not in progress.pages:
                    self._step(Step("open", page, begin))
                last += 1
                heapq.heappush(waiting, (begin, last, page))
            if earlier and content.members and not again:
                held = sum(map(_size, put_off.values())) + _size((content, tag)) <= _HELD
                put_off[url] = (content, tag) if held else None
                last += 1
                heapq.heappush(waiting, (_sorted_by(content.members[0]), -last, url))
                continue
            self._give(url, content)
            progress.refuse_too_much()
            if content.immutable:
                self._step(Step("done", url))
            else:
                tags.append(Step("tag", url, (tag, {_hash(one.id) for one in content.members})))
        for step in tags:
            if given < self._ahead.received or set(progress.pages[step.url].members) - step.value[1]:
                self._step(step)
            else:  # nothing is going to be committed, so it need not be remembered for that
                progress.apply(step)

    def _linked(self, url: str, content: PageContent) -> list[str]:
        """The pages of the same host that a page leads to."""
        pages = list(content.pages)
        if url == self._root and not pages and not content.members:  # it is the stream, not its root
            pages = [one for one in map(_address, content.views) if one != url][:1]
        return [page for page in pages if self._is_here(page) and self._is_short(page)]

    def _is_short(self, url: str) -> bool:
        """Whether an address can be remembered; the first one that cannot is reported."""
        if len(url) <= _LONGEST_ADDRESS:
            return True
        self._say_once(
            "long addresses",
            f"a page whose address has more than {_LONGEST_ADDRESS:,} characters is not read",
            "",
        )
        return False

    def _say_once(self, what: str, message: str, hint: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self._ahead.say(f"the source `{self.name}`: {message}", "D4223", hint)

    def _is_here(self, url: str) -> bool:
        """Whether an address is of the host of the configuration; what is elsewhere is said once."""
        try:
            found = urlsplit(url)
            if _host_of(found) == _host_of(urlsplit(self._root)):
                return True
            host = f"{found.scheme}://{found.netloc}"
        except ValueError:
            host = url
        if len(self._told) < _MOST_HOSTS:
            self._say_once(
                host,
                f"pages of `{host[:160]}` are not read: it is another host",
                "make it a source of its own, if it is to be read",
            )
        return False

    def _give(self, url: str, content: PageContent) -> None:
        """Members that were not given before. A page that may change knows the others, too."""
        named = self._read_to.pages[url].members
        for member in content.members:
            hashed = _hash(member.id)
            if self._read_to.has(hashed):
                if not content.immutable and hashed not in named and self._read_to.has_room():
                    self._step(Step("member", url, hashed))
                continue
            time = "" if self._own_time else member.time
            number = self._step(Step("member", url, hashed))
            place = f"{self.name}: {member.id[:200]}"
            self._ahead.put(Document(member.content, number, place, Format.NTRIPLES, time))

    def _page(self, url: str) -> tuple[PageContent | None, str]:
        """A page and its ETag; None: it is as it was, or gone. Raises NotReadError."""
        page = self._read_to.pages.get(url)
        known = "" if page is None else page.tag
        answer, final = self._fetched(url, known)
        if answer.status == http.client.NOT_MODIFIED and known:
            self._ahead.works()
            return None, known
        if answer.status == http.client.GONE and url != self._root:
            self._lost(url)
            return None, ""
        if answer.status != http.client.OK:
            raise NotReadError(f"{url} answers {answer.status}", retry_after(answer.headers))
        content = page_content(
            answer.content, answer.headers.get("content-type", ""), final, self._read_to.path
        )
        self._ahead.works()
        controls = [one.strip() for one in answer.headers.get("cache-control", "").lower().split(",")]
        immutable = content.immutable or "immutable" in controls
        tag = answer.headers.get("etag", "")
        return content._replace(immutable=immutable), tag if _TAG.fullmatch(tag) else ""

    def _lost(self, url: str) -> None:
        """A page is not kept any more. One that only led to pages is missed by nobody: they are known."""
        page = self._read_to.pages.get(url)
        if page is None:
            self._step(Step("open", url, _EARLIEST))
        if page is None or page.members or not page.tag:
            some = "; what it got after it was read is lost" if page is not None and page.members else ""
            self.counts = {"lost": self.counts.get("lost", 0) + 1}
            self._ahead.say(f"the source `{self.name}`: {url} is not kept any more{some}", "D4223")
        self._step(Step("done", url))

    def _fetched(self, url: str, tag: str) -> tuple[Answer, str]:
        """The answer to a request, and where it came from."""
        headers = {"accept": _ACCEPT, "user-agent": f"dotr/{__version__}", "accept-encoding": "identity"}
        if tag:
            headers["if-none-match"] = tag
        for _ in range(_REDIRECTS):
            answer = self._asked(url, headers)
            to = answer.headers.get("location", "")
            if answer.status not in (301, 302, 303, 307, 308) or not to:
                return answer, url
            url = urldefrag(urljoin(url, to)).url
            if not self._is_here(url):
                raise NotReadError("it leads to another host")
        raise NotReadError(f"it leads from page to page, {_REDIRECTS} times")

    def _asked(self, url: str, headers: Mapping[str, str]) -> Answer:
        """One request, over the connection that is there; a new one where that was closed meanwhile."""
        target = target_of(urlsplit(url))
        if self._connection is not None:
            try:
                return get(self._connection, target, headers)
            except (ConnectionError, http.client.HTTPException):
                self._let_go()
            except BaseException:
                self._let_go()
                raise
        self._connection = connection_to(urlsplit(self._root))
        try:
            return get(self._connection, target, headers)
        except BaseException:
            self._let_go()
            raise

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _host_of(url: SplitResult) -> tuple[str, str | None, int | None]:
    """What is one host, however its port is written. Raises ValueError."""
    return url.scheme, url.hostname, url.port or {"http": 80, "https": 443}.get(url.scheme)


def try_stream(url: str) -> str:
    """What is there. Raises OSError, DataError D4222."""
    found = LdesTransport("trial", url)
    try:
        content, _ = found._page(found._root)
    except NotReadError as error:
        raise DataError.of("D4222", str(error)) from None
    finally:
        found._let_go()
    assert content is not None, "nothing was known of it"
    if not (content.pages or content.members or content.views):
        raise DataError.of("D4222", f"{url} is no stream: it has no members, relations or views")
    return f"{urlsplit(url).netloc} has a stream of {len(content.pages)} pages"

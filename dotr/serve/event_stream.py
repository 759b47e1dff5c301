"""The outbox as a Linked Data Event Stream: pages that never change once they are full.

Place:   the routes `/v1/ldes` of app.py; rows come from the outbox (service/outbox.py). The way back is
         connectors/ldes.py.
Method:  page n has the events 250 (n - 1) + 1 to 250 n, whatever is kept: an event stays on its page. A full
         page, of which all is kept, is immutable (`Cache-Control: immutable`); others and the root have an
         ETag, so that who follows asks with `If-None-Match`. Times never go back along the numbers, so the
         root says of each page from which time on its events are (`tree:GreaterThanOrEqualToRelation`) and,
         of a full one, up to which: a client goes to the pages of its times alone. 250 full pages are listed
         on a page of their own (`group-1`), so that the root of a hundred million events has some 2,000
         relations.
         A member is the graph of its event, named by the event's id, with `prov:generatedAtTime` in the
         default graph. Where corrections are made, a member that one added or took back is named by the
         event's id and its number, since members do not change: the graph of the latter says that the event
         is invalid from then on, and by which late graphs. Formats have named graphs; the root, which has no
         members, is Turtle as well.
         Of a page that has lost some of its events to `keep.events` there are the others; when all are gone,
         410.
Why not: a chain of pages: whoever wants the last hour would read all of it. Turtle of pages: without graphs
         the triples of an event about other things would be nobody's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import pyoxigraph as ox

from dotr.errors import UsageError
from dotr.events import Clock, Time
from dotr.io.changes import PROV, RDFS_LABEL
from dotr.io.time import parse_text
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, RDF_TYPE
from dotr.serve.answers import negotiated
from dotr.service.logs import OutboxRow
from dotr.service.outbox import OutboxReader

PAGE_ROWS: Final = 250
"""Events of a page."""

GROUP_PAGES: Final = 250
"""Pages of a group."""

DATASETS: Final[Mapping[str, ox.RdfFormat]] = {
    "application/trig": ox.RdfFormat.TRIG,
    "application/n-quads": ox.RdfFormat.N_QUADS,
    "application/ld+json": ox.RdfFormat.JSON_LD,
}
"""Formats of pages, the first by preference."""

FORMATS: Final[Mapping[str, ox.RdfFormat]] = {
    **DATASETS,
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
}
"""Formats of what has no members."""

FRESH_SECONDS: Final = 31_536_000
"""How long what is immutable need not be asked for again."""

_TREE: Final = "https://w3id.org/tree#"
_LDES: Final = "https://w3id.org/ldes#"
_PREFIXES: Final = {
    "tree": _TREE,
    "ldes": _LDES,
    "prov": "http://www.w3.org/ns/prov#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_AT_LEAST: Final = "GreaterThanOrEqualToRelation"
_AT_MOST: Final = "LessThanOrEqualToRelation"


class Node(NamedTuple):
    """A page, or a group of pages: its name, and the numbers of its events, of which the first ones may be
    gone. `full`: no event will be added.
    """

    name: str
    first: int
    last: int
    full: bool


class Representation(NamedTuple):
    """What a client gets. `content`: None: it has it already."""

    content: bytes | None
    media_type: str
    headers: Mapping[str, str]


class GoneError(UsageError):
    """A page whose events are not kept any more."""


class NoPageError(UsageError):
    """A page that there is not, or not yet."""


def page_of(number: int) -> int:
    """The page of an event."""
    return (number - 1) // PAGE_ROWS + 1


def nodes(first: int, last: int) -> list[Node]:
    """The nodes that the root leads to, of an outbox that has these events."""
    rows = PAGE_ROWS * GROUP_PAGES
    groups = last // rows
    found = [
        Node(f"group-{group + 1}", max(first, group * rows + 1), (group + 1) * rows, True)
        for group in range((first - 1) // rows, groups)
    ]
    return [*found, *_pages(max(first, groups * rows + 1), last)]


def _pages(first: int, last: int) -> Iterator[Node]:
    for page in range(page_of(first), page_of(last) + 1) if first <= last else ():
        end = page * PAGE_ROWS
        begin = max(first, end - PAGE_ROWS + 1)
        yield Node(str(page), begin, min(end, last), end <= last)


class EventStream:
    """Reads pages. `root` in calls is the URL of the view, which the URLs of pages begin with."""

    def __init__(self, reader: OutboxReader) -> None:
        self._reader = reader

    def view(self, root: str, clock: Clock | None, accept: str | None, known: str = "") -> Representation:
        """The root. `known`: the value of If-None-Match. Raises NotAcceptableError D4199, EngineError."""
        media = negotiated(accept, FORMATS)
        first, last, _ = self._reader.bounds()
        return _of_nodes(root, self._relations(root, root, nodes(first, last), clock), media, known)

    def page(
        self, root: str, name: str, clock: Clock | None, accept: str | None, known: str = ""
    ) -> Representation:
        """A page, or a group of pages. Raises as `view`; GoneError, NoPageError D5233."""
        kind, _, digits = name.rpartition("-")
        number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else 0
        if kind not in ("", "group") or not number or str(number) != digits or name.startswith("-"):
            raise NoPageError.of("D5233", f"there is no page `{name[:50]}`", hint=f"GET {root}")
        rows = PAGE_ROWS if kind == "" else PAGE_ROWS * GROUP_PAGES
        begin, end = (number - 1) * rows + 1, number * rows
        if kind == "group":
            media = negotiated(accept, FORMATS)
            first, last, _ = self._reader.bounds()
            _refuse_missing(name, root, begin, end, first, last if last >= end else 0)
            text = self._relations(root, f"{root}/{name}", list(_pages(max(first, begin), end)), clock)
            return _of_nodes(root, text, media, known)
        media = negotiated(accept, DATASETS)
        found = self._reader.page(begin - 1, PAGE_ROWS)
        members = [row for row in found.rows if row.number <= end]
        if not members:
            _refuse_missing(name, root, begin, end, found.first, found.upto)
        full = (members[0].number, members[-1].number) == (begin, end)  # else it grows, or loses what it had
        state = f"{root} {members[0].number} {members[-1].number} {members[-1].id}"
        written = partial(_written, root, name, members, clock or Clock(), full)
        return _answer(written, media, known, state, full)

    def _relations(self, root: str, node: str, below: Sequence[Node], clock: Clock | None) -> str:
        """The relations of a node to others, as N-Triples."""
        ends = {number for one in below for number in (one.first, one.last)}
        times = self._reader.times(sorted(ends))
        lines = [f"<{node}> {RDF_TYPE} <{_TREE}Node> .\n"]
        for one in below:
            if one.first not in times or clock is None:
                continue  # it went meanwhile
            lines.append(_relation(node, f"{root}/{one.name}", _AT_LEAST, times[one.first], clock))
            if one.full:
                lines.append(_relation(node, f"{root}/{one.name}", _AT_MOST, times[one.last], clock))
        return "".join(lines)


def _refuse_missing(name: str, root: str, begin: int, end: int, first: int, last: int) -> None:
    """Raise what is to be said of a page that has no events. `last`: of those there are."""
    if end < first:
        raise GoneError.of("D5233", f"the events of page {name} are not kept any more", hint=f"GET {root}")
    if last < begin:
        raise NoPageError.of("D5233", f"there is no page `{name}` yet", hint=f"GET {root}")


def _about(root: str) -> str:
    """What the stream is, as N-Triples."""
    stream = f"<{root}#stream>"
    return (
        f"{stream} {RDF_TYPE} <{_LDES}EventStream> .\n"
        f"{stream} <{_LDES}timestampPath> {PROV_GENERATED_AT_TIME} .\n"
        f"{stream} <{_TREE}view> <{root}> .\n"
    )


def _relation(node: str, other: str, kind: str, time: Time, clock: Clock) -> str:
    name = f"_:{'since' if kind == _AT_LEAST else 'until'}{other.rpartition('/')[2].replace('-', '')}"
    return (
        f"<{node}> <{_TREE}relation> {name} .\n"
        f"{name} {RDF_TYPE} <{_TREE}{kind}> .\n"
        f"{name} <{_TREE}node> <{other}> .\n"
        f"{name} <{_TREE}path> {PROV_GENERATED_AT_TIME} .\n"
        f"{name} <{_TREE}value> {clock.term(time)} .\n"
    )


def _written(root: str, name: str, rows: Sequence[OutboxRow], clock: Clock, full: bool) -> str:
    """A page as N-Quads."""
    stream = f"<{root}#stream>"
    parts = [_about(root), f"<{root}/{name}> {RDF_TYPE} <{_TREE}Node> .\n"]
    if full:
        parts.append(f'<{root}/{name}> <{_LDES}immutable> "true"^^<{_PREFIXES["xsd"]}boolean> .\n')
    for row in rows:
        graph = f"<{row.key}>"
        parts.append(f"{stream} <{_TREE}member> {graph} .\n")
        parts.append(f"{graph} {PROV_GENERATED_AT_TIME} {clock.term(row.time)} .\n")
        event = json.loads(row.line)
        lines = _invalidation(row, event, clock) if row.change == -1 else event["graph"].split("\n")
        parts += [f"{line[:-1]}{graph} .\n" for line in lines if line]
    return "".join(parts)


def _invalidation(row: OutboxRow, event: Mapping[str, Any], clock: Clock) -> list[str]:
    """That an event was taken back, and the late graphs by which, as N-Triples."""
    lines = [f"<{row.id}> <{PROV}invalidatedAtTime> {clock.term(row.time)} ."]
    for number, cause in enumerate(event["cause"]):
        node = f"_:late-{row.number}-{number}"
        lines.append(f"<{row.id}> <{PROV}wasInvalidatedBy> {node} .")
        lines.append(f"{node} <{PROV}atTime> {_term(cause['time'], clock)} .")
        if cause["place"]:
            lines.append(f"{node} {RDFS_LABEL} {json.dumps(cause['place'], ensure_ascii=False)} .")
    return lines


def _term(time: int | str, clock: Clock) -> str:
    """The time of a JSON line."""
    return clock.term(parse_text(str(time), clock.unit)[0])


def _of_nodes(root: str, relations: str, media: str, known: str) -> Representation:
    return _answer(lambda: f"{_about(root)}{relations}", media, known, relations, False)


def _answer(written: Callable[[], str], media: str, known: str, state: str, full: bool) -> Representation:
    """`written`: N-Quads; `state`: what they depend on; `known`: the value of If-None-Match."""
    tag = f'"{blake2b(f"{media} {state}".encode(), digest_size=12).hexdigest()}"'
    headers = {
        "etag": tag,
        "cache-control": f"max-age={FRESH_SECONDS}, immutable" if full else "no-cache",
        "vary": "Accept",
    }
    if known == "*" or tag in [one.strip().removeprefix("W/") for one in known.split(",")]:
        return Representation(None, media, headers)
    text = written()
    if media in ("application/n-quads", "application/n-triples"):
        return Representation(text.encode(), media, headers)
    quads = ox.parse(text, format=ox.RdfFormat.N_QUADS, lenient=True)
    prefixes = _PREFIXES if media in ("application/trig", "text/turtle") else None
    found = quads if media in DATASETS else (quad.triple for quad in quads)
    content = ox.serialize(found, format=FORMATS[media], prefixes=prefixes)
    assert content is not None, "nothing was named to write to"
    return Representation(content, media, headers)

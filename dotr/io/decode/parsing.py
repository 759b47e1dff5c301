"""Text of RDF documents to triples and quads of canonical terms, or a diagnostic.

Place:   under all readers, the background's and the Python API; what a document may cost is in limits.py.
Method:  pyoxigraph parses and writes N-Triples or N-Quads again; splitting its lines gives our terms. That is
         cheaper than reading term by term (one triple: 2.7 µs, of which 2.0 are parsing; 15 triples: 25 and
         13 µs), and every term has the one spelling that rdf/terms.py promises. A large document goes in and
         comes out in pieces, so that it is Python that runs out of memory and can say so.
Why not: rdflib's parsers are 30 times slower; an own parser is another 3,000 lines to be wrong in.
Bad input: D2001 cannot be read · D2002 half a character · D2004 RDF 1.2 terms · D2005 remote context · D2007
         D2020 costs too much · D2021 a term too long · D2022 no memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, TypeAlias, cast

import pyoxigraph as ox
from pyoxigraph import parse, serialize

from dotr.errors import DataError
from dotr.io.decode.documents import QUAD_FORMATS, STREAM_BASE, Format, Readable
from dotr.io.decode.limits import (
    MAX_NESTING,
    BoundedOutput,
    Overgrown,
    grows,
    has_long_term,
    long_term,
    may_grow_to,
    no_memory,
    refuse_costly_json,
    refuse_costly_xml,
    refuse_deep_terms,
    refuse_levels,
)
from dotr.io.decode.ntriples import Run, literals, quad_runs, refuse, several_triples
from dotr.io.decode.parse_choices import STRICT, ParseChoices
from dotr.lang.grammar.base import WELL_KNOWN
from dotr.rdf.terms import Term, Triple
from dotr.regex import regex

Quad: TypeAlias = tuple[Term, Term, Term, Term]
"""Subject, predicate, object, graph name; the name is "" in the default graph."""

_OXIGRAPH = {
    Format.TURTLE: ox.RdfFormat.TURTLE,
    Format.NTRIPLES: ox.RdfFormat.N_TRIPLES,
    Format.TRIG: ox.RdfFormat.TRIG,
    Format.NQUADS: ox.RdfFormat.N_QUADS,
    Format.RDFXML: ox.RdfFormat.RDF_XML,
    Format.JSONLD: ox.RdfFormat.JSON_LD,
}
_STREAMED = Format.TURTLE  # looked up once: attributes of classes cost
_TURTLE, _N_TRIPLES, _N_QUADS = ox.RdfFormat.TURTLE, ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS
_SHORT = 4096
"""Characters up to which a Turtle document is first read without a base, which is a tenth cheaper, and again
with it when that fails. Only relative IRIs can tell the difference: absolute ones are taken as they stand.
Nothing in it can nest deep enough for a stack, or grow."""
_LARGE, _HUGE = 1 << 20, 64 << 20
"""Characters from which a document comes out, and goes in, in pieces; in pieces, a long name is looked at ten
times."""
_CHUNK = 4096
_READ_AHEAD = 25 * MAX_NESTING
"""Triple terms that may be begun in a stream without one statement coming out; a stack ends at 10,000."""

_POSITION = regex(
    r"^Parser error (?:at (?:byte \d+|line \d+ (?:column \d+|between columns \d+ and \d+)|[^:]*)"
    r"|between line \d+ column \d+ and line \d+ column \d+): "
)
_TRAILER = regex(r" \(line \d+\)$")


def parse_triples(
    text: str,
    format_: Format = Format.TURTLE,
    name: str = "<text>",
    base: str | None = STREAM_BASE,
    skipped: int = 0,
    choices: ParseChoices = STRICT,
) -> list[Triple]:
    """The triples of a document of one graph: canonical terms, document order, no repeats.

    Blank nodes have the document's labels. `skipped` lines at the head of `text` are not the user's and are
    taken off in messages. `choices`: what documents may say beyond RDF 1.1 and beyond themselves. Raises
    DataError; in N-Quads, TriG and JSON-LD named graphs are refused.
    """
    if format_ is not _STREAMED or len(text) >= _SHORT:
        pieces = _written(text, format_, name, base, skipped, _N_TRIPLES, choices)
        return several_triples("".join(pieces), name) if len(text) < _LARGE else _sharing(pieces, name)
    try:  # the hot path: one graph of a stream after the other
        lines = serialize(parse(text, _TURTLE), None, _N_TRIPLES).decode()  # type: ignore[union-attr]
    except (SyntaxError, AttributeError):  # an IRI may be relative; else the message says what there is
        lines = "".join(_written(text, format_, name, base, skipped, _N_TRIPLES))
    if choices.rdf12 == "plain":
        lines = choices.plain(lines)
    terms = lines.split(" ", 4)
    if len(terms) == 4:  # one triple, without a blank in its object
        subject, predicate, object_, _ = terms
        if object_[0] == '"' and object_[-1] != '"':
            object_ = literals[object_] or refuse(object_, name)
        return [(subject, predicate, object_)]
    return several_triples(lines, name)


def _sharing(pieces: Iterable[str], name: str) -> list[Triple]:
    """The triples of pieces, equal terms one string: that is a quarter of the memory."""
    terms: dict[Term, Term] = {}
    one = terms.setdefault
    found: dict[Triple, None] = {}
    for lines in pieces:
        for s, p, o in several_triples(lines, name):
            found[one(s, s), one(p, p), one(o, o)] = None
    return list(found)


def parse_runs(
    text: str,
    format_: Format,
    name: str,
    base: str | None = STREAM_BASE,
    choices: ParseChoices = STRICT,
) -> list[Run]:
    """The quads of a whole document in document order, as `quad_runs`. Raises DataError."""
    pieces = _written(text, format_, name, base, 0, _N_QUADS, choices)
    return [run for lines in pieces for run in quad_runs(lines, name)]


def parse_quads(
    text: str,
    format_: Format,
    name: str = "<text>",
    base: str | None = STREAM_BASE,
    choices: ParseChoices = STRICT,
) -> list[Quad]:
    """The quads of a whole document in document order. Raises DataError."""
    runs = parse_runs(text, format_, name, base, choices)
    return [(s, p, o, g) for g, triples in runs for s, p, o in triples]


def parse_with_prefixes(
    text: str,
    format_: Format,
    name: str,
    base: str | None,
    skipped: int = 0,
    choices: ParseChoices = STRICT,
) -> tuple[str, dict[str, str], str | None]:
    """A document as N-Quads text, with the prefixes and the base that hold at its end. Raises DataError."""
    _refuse_costly(text, format_, name)
    parser = parse(text, _OXIGRAPH[format_], base_iri=base)
    lines = "".join(_pieces(parser, text, format_, name, skipped, _N_QUADS, choices))
    return lines, parser.prefixes, parser.base_iri


def _written(
    text: str,
    format_: Format,
    name: str,
    base: str | None,
    skipped: int,
    target: ox.RdfFormat,
    choices: ParseChoices = STRICT,
) -> Iterator[str]:
    """What a document says as N-Triples or N-Quads, in pieces of whole lines. Raises DataError.

    In N-Triples named graphs are refused.
    """
    _refuse_costly(text, format_, name)
    missing = ""
    if format_ is Format.JSONLD:
        from dotr.io.decode.json_contexts import with_contexts  # noqa: PLC0415  # start-up: one format of many

        text, missing = with_contexts(text, choices.contexts, name)
    one_graph = target is _N_TRIPLES and format_ in QUAD_FORMATS
    source = text if len(text) < _HUGE else cast("IO[bytes]", _Encoded(text))
    parser = parse(source, _OXIGRAPH[format_], base_iri=base, without_named_graphs=one_graph)
    return _pieces(parser, text, format_, name, skipped, target, choices, missing)


def _pieces(
    parser: ox.QuadParser,
    text: str,
    format_: Format,
    name: str,
    skipped: int,
    target: ox.RdfFormat,
    choices: ParseChoices,
    missing: str = "",
) -> Iterator[str]:
    plain = choices.plain if choices.rdf12 == "plain" else str
    left = may_grow_to(len(text))
    chunk = None if len(text) < _LARGE else _CHUNK
    try:
        while True:
            lines = BoundedOutput(left)
            serialize(islice(parser, chunk), lines, target)
            content = lines.getvalue()
            if format_ is Format.RDFXML and has_long_term(content):
                raise long_term(name)
            if chunk is None or not content:
                yield plain(content.decode())
                return
            left -= len(content)
            yield plain(content.decode())
    except SyntaxError as error:
        raise _unreadable(error, text, format_, name, skipped, missing) from None
    except (AttributeError, UnicodeEncodeError):  # a text that UTF-8 cannot hold is asked for its `read`
        raise _half_character(text, name) from None
    except Overgrown:
        raise grows(name) from None
    except MemoryError as error:
        raise _too_much(error, name) from None


def _refuse_costly(text: str, format_: Format, name: str) -> None:
    if format_ is Format.RDFXML:
        refuse_costly_xml(text, name)
    elif format_ is Format.JSONLD:
        refuse_costly_json(text, name)
    else:
        refuse_deep_terms(text, name)


class _Encoded:
    """Owns a place in a text that is read as UTF-8, without a copy of all of it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        start = self._at
        self._at = len(self._text) if size < 0 else start + max(1, size // 4)  # bytes of a character
        return self._text[start : self._at].encode()


class _CountedReads:
    """Owns the count of what a streamed document has brought: bytes, and triple terms since `through`."""

    def __init__(self, file: Readable, name: str) -> None:
        self._file, self._name = file, name
        self.size = 0
        self.terms = 0

    def read(self, size: int = -1) -> bytes:
        part = self._file.read(size)
        self.size += len(part)
        if b"<<(" in part:
            self.terms += part.count(b"<<(")
            if self.terms > _READ_AHEAD:
                refuse_levels(self._name, self._name)
        return part


def stream_runs(
    file: Readable,
    format_: Format,
    name: str,
    base: str | None = STREAM_BASE,
    chunk: int = _CHUNK,
    skipped: int = 0,
    choices: ParseChoices = STRICT,
) -> Iterator[Run]:
    """The quads of a document as they are read, `chunk` at a time, in bounded memory.

    The first `skipped` lines are not the user's; below 0, so many lines of his are before the first. Quads
    that stand before an error come out before it is raised.
    """
    counted = _CountedReads(file, name)
    parser = parse(cast("IO[bytes]", counted), _OXIGRAPH[format_], base_iri=base)
    size = 0
    while True:
        counted.terms = 0
        error: DataError | None = None
        lines = BoundedOutput(may_grow_to(counted.size + _LARGE) - size)
        try:
            serialize(islice(parser, chunk), lines, _N_QUADS)
        except SyntaxError as found:
            error = _unreadable(found, "", format_, name, skipped)
        except MemoryError as found:
            error = _too_much(found, name)
        except DataError as found:  # of the file, or of `counted`
            error = found
        except Overgrown:
            raise grows(name) from None
        content = lines.getvalue()
        size += len(content)
        text = content.decode() if choices.rdf12 != "plain" else choices.plain(content.decode())
        yield from quad_runs(text, name)
        if error is not None:
            raise error
        if not content:
            return


def _too_much(error: MemoryError, name: str) -> DataError:
    return long_term(name) if "buffer" in str(error) else no_memory(name)


def _unreadable(
    error: SyntaxError, text: str, format_: Format, name: str, skipped: int, missing: str = ""
) -> DataError:
    reason = _TRAILER.sub("", _POSITION.sub("", str(error.msg)))
    if "LoadDocumentCallback" in reason:
        return DataError.of(
            "D2005",
            f"`{name}` refers to a context that is not in it",
            place=name,
            label=missing,
            notes=("dotr never reads from the network",),
            hint=f"save the context to a file and name it: --context {missing or 'IRI'}=FILE",
        )
    if error.lineno is None:
        return DataError.of("D2001", f"`{name}` cannot be read as {format_.value}", place=name, label=reason)
    excerpt = _line(text, error.lineno).strip()
    return DataError.of(
        "D2001",
        f"`{name}` cannot be read as {format_.value}: {reason}",
        place=f"{name}:{error.lineno - skipped}:{error.offset}",
        label=excerpt if len(excerpt) < 200 else "",
        hint=_hint(reason),
    )


def _line(text: str, number: int) -> str:
    """A line of a text, counted from 1; "" if there is none."""
    start = 0
    for _ in range(number - 1):
        start = text.find("\n", start) + 1
        if not start:
            return ""
    end = text.find("\n", start)
    return text[start : end if end >= 0 else len(text)]


def _hint(reason: str) -> str:
    if "has not been declared" in reason:
        missing = re.search(r"prefix (\w*):", reason)
        name = missing[1] if missing else "name"
        return f"declare it: PREFIX {name}: <{WELL_KNOWN.get(name, '…')}>"
    if "No scheme found" in reason:
        return "write the IRI in full, or give --base"
    if "named graph" in reason.lower():
        return "a document of one graph has no named graphs; TriG and N-Quads streams may have them"
    return ""


def _half_character(text: str, name: str) -> DataError:
    at = next(place for place, char in enumerate(text) if "\ud800" <= char <= "\udfff")
    line = text.count("\n", 0, at) + 1
    return DataError.of(
        "D2002",
        f"`{name}` has half a character of UTF-16",
        place=f"{name}:{line}:{at - text.rfind(chr(10), 0, at)}",
        label=f"\\u{ord(text[at]):04X}",
        hint="such escapes stand in pairs in JSON, and nowhere else",
    )

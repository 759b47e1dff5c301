"""Text of RDF documents to triples and quads of canonical terms, or a diagnostic.

Place:   all readers, the background and the Python API parse here; limits.py bounds what a document may cost.
Method:  pyoxigraph parses and writes N-Triples or N-Quads again; splitting its lines gives our terms. That is
         cheaper than reading term by term (one triple: 2.7 µs, of which 2.0 are parsing; 15 triples: 25 and
         13 µs), and every term has the one spelling that rdf/terms.py promises. A large document goes in and
         comes out in pieces, so that it is Python that runs out of memory and can report it.
         Splitting: one statement a line, single blanks, no comments, line ends in strings escaped, so the end
         of the line separates statements and a blank separates terms, except for blanks in literals.
         Neighbours of one named graph share their graph's text, which is compared instead of searched for.
         Choices (`ParseChoices`): `--rdf12 plain` takes what pyoxigraph has written and leaves out the
         triples whose object is a triple term; annotations and the triples of a reifier stay, since they are
         plain. A triple that is only quoted (`<< :s :p :o >>`) is not asserted, and is not read as asserted.
         A string with a base direction loses the direction.
         Contexts of JSON-LD are inlined before parsing, never fetched: an IRI in the value of a key
         `@context` becomes what `--context IRI=FILE` names, or a context shipped with dotr (contexts/), and
         so do the IRIs in that, in `@import`, and in contexts of terms. The rest of the text stays unchanged,
         on its lines.
Why not: rdflib's parsers: 30 times slower; a parser of our own: another 3,000 lines to be wrong in. For
         splitting, a regular expression: half as much time again; asking pyoxigraph's terms one by one: twice
         the time. Taking triple terms as asserted: RDF 1.2 separates quoting a triple from asserting it.
         Rewriting a whole document as JSON for its contexts: numbers would be written anew; a loader for the
         parser: pyoxigraph has none.
Bad input: D2001 cannot be read, or a file that is no context · D2002 half a character · D2004 RDF 1.2 terms ·
         D2005 a remote context that nobody names · D2007, D2020 costs too much · D2021 a term too long ·
         D2022 no memory · D2409 a number of too many digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, NoReturn, TypeAlias, cast

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
from dotr.lang.grammar.cursor import WELL_KNOWN
from dotr.rdf.terms import Memo, Term, Triple, canonical, canonical_literal, canonical_literals
from dotr.regex import regex

Run: TypeAlias = tuple[Term, list[Triple]]
"""Quads that stand together: the name of their graph ("" is the default graph) and their triples."""

_DIRECTION = regex(r'"@[A-Za-z0-9-]+--(?:ltr|rtl)$')


def _literal(term: Term) -> Term:
    """A literal with a language or datatype in canonical form, "" if it has none or a base direction."""
    if term[-1] != ">" and _DIRECTION.search(term):
        return ""
    try:
        return canonical_literal(term)
    except DataError:
        return ""


literals: Memo[Term, Term] = Memo(_literal)
"""A literal with a language or datatype → its canonical form; "" for one that `refuse` is to refuse."""


def distinct_triples(text: str, name: str) -> list[Triple]:
    """The triples of N-Triples text in order, objects canonical, no repeats.

    Raises DataError D2004, D2409.
    """
    terms = text.split(" ", 4)
    if len(terms) != 4:
        return several_triples(text, name)
    s, p, o, _ = terms  # one triple, without a blank in its object
    return [(s, p, o if o[0] != '"' or o[-1] == '"' else literals[o] or refuse(o, name))]


def several_triples(text: str, name: str) -> list[Triple]:
    """As `distinct_triples` where there is more than one, as a rule."""
    if "<<(" in text:
        for line in text.split(" .\n")[:-1]:
            object_ = line.split(" ", 2)[2]
            if object_.startswith("<<"):
                refuse(object_, name)
    rows = text.split(" .\n")
    rows.pop()
    found = {
        (s, p, o if o[0] != '"' or o[-1] == '"' else literals[o] or refuse(o, name)): None
        for row in rows
        for s, p, o in [row.split(" ", 2)]
    }
    return list(found)


def split_triples(text: str) -> list[Triple]:
    """As `distinct_triples` for text that was accepted before; repeats stay."""
    rows = text.split(" .\n")
    rows.pop()
    memo = canonical_literals
    return [
        (s, p, o if o[0] != '"' or o[-1] == '"' else memo[o])
        for row in rows
        for s, p, o in [row.split(" ", 2)]
    ]


def quad_runs(text: str, name: str) -> list[Run]:
    """The quads of N-Quads text in order, objects canonical. Raises DataError D2004, D2409.

    All neighbours of one named graph are one run; each triple of the default graph is one of its own.
    """
    runs: list[Run] = []
    graph = ""  # of the run that may go on
    triples: list[Triple] = []
    rows = text.split(" .\n")
    rows.pop()
    for row in rows:
        terms = row.split(" ", 3)
        if len(terms) == 4:
            s, p, o, g = terms
            if g != graph and (" " in g or '"' in g):  # of a literal with blanks
                o, g = _object_and_graph(row[len(s) + len(p) + 2 :], name)
        else:
            s, p, o = terms
            g = ""
        if o[0] == '"' and o[-1] != '"':
            o = literals[o] or refuse(o, name)
        if g and g == graph:
            triples.append((s, p, o))
        else:
            graph, triples = g, [(s, p, o)]
            runs.append((g, triples))
    return runs


def _object_and_graph(rest: str, name: str) -> tuple[Term, Term]:
    """What follows a predicate: the object, then the graph's name if there is one."""
    if rest.startswith("<<"):
        refuse(rest, name)
    cut = rest.find(" ", rest.rindex('"')) if rest[0] == '"' else rest.find(" ")
    return (rest, "") if cut < 0 else (rest[:cut], rest[cut + 1 :])


def refuse(term: Term, name: str) -> NoReturn:
    """Raise DataError D2409 for a number that is too long; else D2004: a triple term, or a string with a base
    direction.
    """
    try:
        canonical(term)
    except DataError as error:
        raise DataError([one._replace(place=name) for one in error.diagnostics]) from None
    what = "a triple term" if term[0] == "<" else "a string with a base direction"
    raise DataError.of(
        "D2004",
        f"`{name}` has {what} of RDF 1.2, which dotr does not read",
        place=name,
        label=term if len(term) < 200 else term[:200] + "…",
        hint="write RDF 1.1: give the statement a node of its own, leave the direction out; "
        "or read only what is RDF 1.1 in it: --rdf12 plain",
    )


RDF12: Final = ("refuse", "plain")
_DIRECTED = regex(r'("(?:[^"\\]|\\.)*"@[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)--(?:ltr|rtl)(?= |\Z)')


@dataclass(frozen=True, slots=True)
class ParseChoices:
    """The choices of one run. `rdf12`: terms of RDF 1.2 are "refuse"d, or read for what is "plain" RDF 1.1.
    `contexts`: the IRI of a context of JSON-LD → its text, before those that dotr knows.
    """

    rdf12: str = "refuse"
    contexts: Mapping[str, str] = field(default_factory=dict)
    _left: dict[str, int] = field(default_factory=dict, compare=False)

    def plain(self, lines: str) -> str:
        """N-Triples or N-Quads as pyoxigraph writes them, without what is RDF 1.2; it is counted."""
        if "<<(" not in lines and "--ltr" not in lines and "--rtl" not in lines:
            return lines
        rows = lines.split(" .\n")
        rows.pop()
        kept = []
        for row in rows:
            subject, predicate, rest = row.split(" ", 2)
            if rest.startswith("<<("):
                self._count("triple terms")
                continue
            directed = _DIRECTED.match(rest)
            if directed is not None:
                self._count("directions")
                rest = directed[1] + rest[directed.end() :]
            kept.append(f"{subject} {predicate} {rest} .\n")
        return "".join(kept)

    def _count(self, what: str) -> None:
        self._left[what] = self._left.get(what, 0) + 1

    def taken(self) -> dict[str, int]:
        """What was left out since this was asked."""
        found = dict(self._left)
        self._left.clear()
        return found


STRICT = ParseChoices()


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
"""Characters from which a document comes out, and goes in, in pieces; in pieces, a long name is examined ten
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
    refuse_costly(text, format_, name)
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
    refuse_costly(text, format_, name)
    missing = ""
    if format_ is Format.JSONLD:
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
    except (AttributeError, UnicodeEncodeError):  # a string that UTF-8 cannot hold is asked for its `read`
        raise _half_character(text, name) from None
    except Overgrown:
        raise grows(name) from None
    except MemoryError as error:
        raise _too_much(error, name) from None


def refuse_costly(text: str, format_: Format, name: str) -> None:
    """Raise DataError for a document that would cost its parser too much, or end the process (limits.py)."""
    if format_ is Format.RDFXML:
        refuse_costly_xml(text, name)
    elif format_ is Format.JSONLD:
        refuse_costly_json(text, name)
    else:
        refuse_deep_terms(text, name)


class _Encoded:
    """Owns a place in a string that is read as UTF-8, without a copy of all of it."""

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
    """A line of a string, counted from 1; "" if there is none."""
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
        f"`{name}` has half of a UTF-16 surrogate pair",
        place=f"{name}:{line}:{at - text.rfind(chr(10), 0, at)}",
        label=f"\\u{ord(text[at]):04X}",
        hint="such escapes are allowed in JSON only, and in pairs",
    )


_REFERS = regex(r'"@context"\s*:\s*["\[]|"@import"|\\u0040')
_STRING = regex(r'("(?:[^"\\]++|\\.)*+")(\s*+:\s*+)?')
_FOLDER: Final = Path(__file__).parent / "contexts"
_SHIPPED: Final = (
    (regex(r"https?://uri\.etsi\.org/ngsi-ld/v1/ngsi-ld-core-context(?:-v[0-9.]+)?\.jsonld"), "ngsi-ld"),
    (regex(r"https?://www\.w3\.org/ns/activitystreams(?:\.jsonld|#)?"), "activitystreams"),
    (regex(r"https?://(?:www\.)?schema\.org(?:/(?:docs/jsonldcontext\.json(?:ld)?)?)?"), "schema"),
    (regex(r"https?://www\.w3\.org/ns/(?:sosa|ssn)/?"), "sosa"),
    (regex(r"https://(?:saref\.etsi\.org/core|w3id\.org/saref)[/#]?"), "saref"),
)
_decoded = json.JSONDecoder().raw_decode


def with_contexts(text: str, contexts: Mapping[str, str], name: str) -> tuple[str, str]:
    """A document with the contexts that it refers to in it, and the first IRI that nobody names, or "".

    `contexts`: IRI → text of a document with a context. Raises DataError D2001, D2007.
    """
    if _REFERS.search(text) is None:
        return text, ""
    contexts_of = _Contexts(contexts, may_grow_to(len(text)), name)
    pieces: list[str] = []
    at = place = 0
    while (found := _STRING.search(text, place)) is not None:
        place = found.end()
        if found[2] is None or not _is_context(found[1]):
            continue
        try:
            value, end = _decoded(text, place)
        except (ValueError, RecursionError):
            break  # the parser says what is wrong
        made = contexts_of.within(value, ())
        if made != value:
            written = json.dumps(made, ensure_ascii=False)
            contexts_of.spend(len(written))
            pieces += text[at:place], written
            pieces.append("\n" * text.count("\n", place, end))
            at = end
        place = end
    return "".join([*pieces, text[at:]]), contexts_of.missing


def _is_context(key: str) -> bool:
    return key == '"@context"' or ("\\u" in key and json.loads(key) == "@context")


class _Contexts:
    """Owns what contexts become, and how much of them may be put in."""

    def __init__(self, given: Mapping[str, str], most: int, name: str) -> None:
        self.missing = ""
        self._given, self._left, self._name = given, most, name

    def spend(self, size: int) -> None:
        """So many characters are put into the document."""
        self._left -= size
        if self._left < 0:
            raise grows(self._name)

    def within(self, value: Any, above: tuple[str, ...]) -> Any:
        """A context with those that it refers to in it; `above`: the IRIs of those that it is in."""
        if isinstance(value, str):
            found = self._of(value, above)
            return value if found is None else found
        if isinstance(value, list):
            made: list[Any] = []
            for one in value:
                found = self.within(one, above)
                made += found if isinstance(found, list) else [found]
            return made
        if not isinstance(value, dict):
            return value
        imported = value.get("@import")
        if isinstance(imported, str):
            found = self._of(imported, above)
            if isinstance(found, dict):
                value = {**found, **{key: one for key, one in value.items() if key != "@import"}}
        return {key: self._term(one, above) for key, one in value.items()}

    def _term(self, definition: Any, above: tuple[str, ...]) -> Any:
        """The definition of a term, which may have a context of its own."""
        if not isinstance(definition, dict) or "@context" not in definition:
            return definition
        return {**definition, "@context": self.within(definition["@context"], above)}

    def _of(self, iri: str, above: tuple[str, ...]) -> Any:
        """The context of an IRI; None where nobody names it, or it is in itself."""
        text = self._given.get(iri)
        if text is None:
            text = next((_shipped(file) for pattern, file in _SHIPPED if pattern.fullmatch(iri)), None)
        if text is None or iri in above:
            self.missing = self.missing or iri
            return None
        self.spend(len(text))
        return self.within(_context(text, iri), (*above, iri))


@lru_cache(maxsize=8)
def _shipped(file: str) -> str:
    return (_FOLDER / f"{file}.jsonld").read_text("utf-8")


@lru_cache(maxsize=32)
def _context(text: str, iri: str) -> Any:
    """The context in the text of a document."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        label = str(error)
    else:
        if isinstance(found, dict) and "@context" in found:
            return found["@context"]
        label = "it has no key `@context`"
    raise DataError.of(
        "D2001",
        f"the file given for `{iri}` is not a context of JSON-LD",
        place=iri,
        label=label,
        hint="--context IRI=FILE names a JSON file with an object that has the key `@context`",
    )

"""What a deployment answers while it runs: SPARQL, what holds, why, why not, watched queries, the plan.

Place:   over service/knowledge.py and service/history.py; routes give it what HTTP asked, and `dotr query
         --dir` uses the same. It speaks no HTTP: it takes text and what a client accepts, and returns bytes
         with their media type and the watermark that was seen.
Method:  everything comes from the last commit, in whatever thread asks; the engine is not asked and does not
         wait. Formats are those of SPARQL 1.1 (JSON, XML, CSV and TSV of results) and of pyoxigraph (graphs);
         a client's Accept chooses by quality, then by what it names most closely, then in our order.
Bad input: D4199 a request of the SPARQL protocol that is none, or a format that there is not · D4111 not a
           time · as service/knowledge.py and service/history.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias
from xml.sax.saxutils import escape, quoteattr

import pyoxigraph as ox
from msgspec import Struct

from dotr.budget import BUDGET
from dotr.core.deployment import Deployment, Settings
from dotr.errors import UsageError
from dotr.events import Time
from dotr.extract.operators import Row
from dotr.io.events import csv_solutions, json_terms
from dotr.io.show import read_term
from dotr.knowledge_base.text_queries import Now, Result, Rows
from dotr.program import Entailment, Program
from dotr.rdf.terms import XSD_STRING, Term, Triple, literal_parts, to_oxigraph
from dotr.service.deployment import deployed_background, deployed_program
from dotr.service.history import FedDeployment, Question, Reasons, explained, time_of
from dotr.service.journal import Journal
from dotr.service.knowledge import Differences, Knowledge, Watch
from dotr.service.overview import overview


class Answer(Struct, frozen=True):
    """What goes to a client. `watermark`: the time of what was seen, as the data writes it; None where
    nothing was fed. `commit`: the number of the commit that was seen, 0 for a time before it.
    """

    content: bytes
    media_type: str
    watermark: str | None
    commit: int = 0


# -- formats ----------------------------------------------------------------------------------------

_JSON, _XML = "application/sparql-results+json", "application/sparql-results+xml"
_CSV, _TSV = "text/csv", "text/tab-separated-values"
SOLUTIONS: Final = (_JSON, _XML, _CSV, _TSV, "application/json", "application/xml", "text/xml")
"""Of SELECT, the first by preference."""
BOOLEANS: Final = (_JSON, _XML, "application/json", "application/xml", "text/xml")
GRAPHS: Final[Mapping[str, ox.RdfFormat]] = {
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/ld+json": ox.RdfFormat.JSON_LD,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
    "text/plain": ox.RdfFormat.N_TRIPLES,
}
DATASETS: Final[Mapping[str, ox.RdfFormat]] = {
    "application/trig": ox.RdfFormat.TRIG,
    "application/n-quads": ox.RdfFormat.N_QUADS,
}
"""Of a state with what is stated apart from what is derived."""
PROOFS: Final[Mapping[str, str]] = {
    "application/json": "json",
    "text/html": "html",
    "text/turtle": "ttl",
    "text/plain": "text",
    "text/vnd.mermaid": "mermaid",
}

_RANGE: Final = re.compile(r"\s*([^\s;,/]+)/([^\s;,]+)\s*(;[^,]*)?")
_QUALITY: Final = re.compile(r";\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*(?:;|$)", re.IGNORECASE)


class NotAcceptableError(UsageError):
    """There is no format that a client takes."""


def negotiated(accept: str | None, offers: Iterable[str]) -> str:
    """The offer that an Accept header prefers. Raises NotAcceptableError D4199 where it has none of them."""
    offers = list(offers)
    wanted: list[tuple[str, str, float]] = []
    for part in (accept or "").split(","):
        found = _RANGE.fullmatch(part)
        if found is not None:
            quality = _QUALITY.search(found[3] or "")
            wanted.append((found[1].lower(), found[2].lower(), 1.0 if quality is None else float(quality[1])))
    if not wanted:
        return offers[0]
    best, most = "", 0.0
    for offer in offers:
        like = _quality(offer, wanted)
        if like > most:
            best, most = offer, like
    if not best:
        raise NotAcceptableError.of(
            "D4199", f"there is no format `{accept}` here", notes=(f"there are {', '.join(offers)}",)
        )
    return best


def _quality(offer: str, wanted: Iterable[tuple[str, str, float]]) -> float:
    """That of the range that names an offer most closely."""
    kind, _, name = offer.partition("/")
    levels = [
        (2 if one == name else 1 if of == kind else 0, quality)
        for of, one, quality in wanted
        if (of == kind and one in (name, "*")) or (of == "*" and one == "*")
    ]
    return max(levels, default=(0, 0.0))[1]


def written_result(result: Result, media_type: str, prefixes: Mapping[str, str]) -> bytes:
    """An answer in a format of its kind."""
    if isinstance(result, list):
        return graph(result, media_type, prefixes)
    kind = "xml" if "xml" in media_type else "json" if "json" in media_type else media_type
    text = _BOOLEAN[kind](result) if isinstance(result, bool) else _ROWS[kind](result)
    return text.encode()


def offers_of(result: Result) -> Iterable[str]:
    """The formats of an answer's kind."""
    return GRAPHS if isinstance(result, list) else BOOLEANS if isinstance(result, bool) else SOLUTIONS


def _rows_json(found: Rows) -> str:
    head = json.dumps({"vars": list(found.variables)})
    rows = ",".join(bindings(found.variables, row) for row in found.rows)
    return f'{{"head":{head},"results":{{"bindings":[{rows}]}}}}\n'


def bindings(variables: Sequence[str], row: Row) -> str:
    """A solution as an object of JSON results; what is unbound is left out."""
    pairs = zip(variables, row, strict=True)
    inner = ",".join(f"{json.dumps(name)}:{json_terms[term]}" for name, term in pairs if term is not None)
    return f"{{{inner}}}"


_SPARQL_XML: Final = '<?xml version="1.0"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n'
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _rows_xml(found: Rows) -> str:
    names = "".join(f"<variable name={quoteattr(name)}/>" for name in found.variables)
    lines = []
    for row in found.rows:
        pairs = zip(found.variables, row, strict=True)
        cells = (
            f"<binding name={quoteattr(name)}>{_xml_term(term)}</binding>" for name, term in pairs if term
        )
        lines.append(f"<result>{''.join(cells)}</result>\n")
    return f"{_SPARQL_XML}<head>{names}</head>\n<results>\n{''.join(lines)}</results>\n</sparql>\n"


def _xml_term(term: Term) -> str:
    if term[0] == "<":
        return f"<uri>{_xml(term[1:-1])}</uri>"
    if term[0] == "_":
        return f"<bnode>{_xml(term[2:])}</bnode>"
    lexical, datatype, language = literal_parts(term)
    kind = f' xml:lang="{language}"' if language else ""
    if not language and datatype != XSD_STRING:
        kind = f" datatype={quoteattr(datatype)}"
    return f"<literal{kind}>{_xml(lexical)}</literal>"


def _xml(text: str) -> str:
    if (odd := _NOT_XML.search(text)) is not None:
        message = f"XML has no way to write U+{ord(odd[0]):04X}, which an answer contains"
        raise UsageError.of("D4199", message, hint=f"ask for {_JSON}")
    return escape(text, {"\r": "&#13;"})


def _rows_csv(found: Rows) -> str:
    return csv_solutions(found.variables, found.rows, "\r\n")


def _rows_tsv(found: Rows) -> str:
    lines = ["\t".join(f"?{name}" for name in found.variables)]
    lines += [
        "\t".join("" if term is None else term.replace("\t", "\\t") for term in row) for row in found.rows
    ]
    return "".join(f"{line}\n" for line in lines)


_ROWS: Final[Mapping[str, Callable[[Rows], str]]] = {
    "json": _rows_json,
    "xml": _rows_xml,
    _CSV: _rows_csv,
    _TSV: _rows_tsv,
}
_BOOLEAN: Final[Mapping[str, Callable[[bool], str]]] = {
    "json": lambda yes: f'{{"head":{{}},"boolean":{str(yes).lower()}}}\n',
    "xml": lambda yes: f"{_SPARQL_XML}<head/>\n<boolean>{str(yes).lower()}</boolean>\n</sparql>\n",
}


def graph(triples: Iterable[Triple], media_type: str, prefixes: Mapping[str, str]) -> bytes:
    """Triples in a format for graphs."""
    return _serialized((ox.Triple(*_terms(triple)) for triple in triples), GRAPHS[media_type], prefixes)


def _terms(triple: Triple) -> tuple[Any, Any, Any]:
    subject, predicate, object_ = triple
    return to_oxigraph(subject), to_oxigraph(predicate), to_oxigraph(object_)


def _serialized(
    found: Iterable[ox.Triple] | Iterable[ox.Quad], format_: ox.RdfFormat, prefixes: Mapping[str, str]
) -> bytes:
    named = dict(prefixes) if format_ in (ox.RdfFormat.TURTLE, ox.RdfFormat.TRIG) else None
    content = ox.serialize(found, format=format_, prefixes=named)
    assert content is not None, "nothing was named to write to"
    return content


# -- the SPARQL protocol ----------------------------------------------------------------------------

_DATASET: Final = ("default-graph-uri", "named-graph-uri", "using-graph-uri", "using-named-graph-uri")


class Request(Struct, frozen=True):
    """A query of the SPARQL protocol. `at`: as it was written."""

    query: str
    at: str | None = None


def request_of(parameters: Iterable[tuple[str, str]], body: str | None = None) -> Request:
    """Read the parameters of a request; `body`: a query sent as application/sparql-query. Others than those
    of the protocol are ignored. Raises UsageError D4199.
    """
    given = list(parameters)
    names = {name for name, _ in given}
    if "update" in names:
        raise UsageError.of("D4199", "updates are refused here", hint="post what is to hold to a stream")
    if not names.isdisjoint(_DATASET):
        raise UsageError.of(
            "D4199", "there is one graph here, and no other can be chosen", hint="leave the graphs out"
        )
    queries = [value for name, value in given if name == "query"] + ([] if body is None else [body])
    if len(queries) != 1:
        raise UsageError.of("D4199", f"a request has one query, and this one {len(queries) or 'none'}")
    times = [value for name, value in given if name == "at"]
    if len(times) > 1:
        raise UsageError.of("D4199", "a request has one `at`, and this one more")
    return Request(queries[0], times[0] if times else None)


_ENTAILMENT: Final = {
    Entailment.RDFS: "sd:defaultEntailmentRegime <http://www.w3.org/ns/entailment/RDFS> ;",
    Entailment.OWL2RL: "sd:defaultEntailmentRegime <http://www.w3.org/ns/entailment/OWL-RDF-Based> ;\n"
    "    sd:defaultSupportedEntailmentProfile <http://www.w3.org/ns/owl-profile/RL> ;",
}
_FORMATS: Final = {
    _JSON: "SPARQL_Results_JSON",
    _XML: "SPARQL_Results_XML",
    _CSV: "SPARQL_Results_CSV",
    _TSV: "SPARQL_Results_TSV",
    "text/turtle": "Turtle",
    "application/n-triples": "N-Triples",
    "application/ld+json": "JSON-LD",
    "application/rdf+xml": "RDF_XML",
}


def service_description(endpoint: str, program: Program, triples: int) -> list[Triple]:
    """The SPARQL 1.1 Service Description of an endpoint, whose graph has so many triples."""
    formats = ", ".join(f"<http://www.w3.org/ns/formats/{name}>" for name in _FORMATS.values())
    text = f"""PREFIX sd: <http://www.w3.org/ns/sparql-service-description#>
PREFIX void: <http://rdfs.org/ns/void#>
[] a sd:Service ;
    sd:endpoint {ox.NamedNode(endpoint)} ;
    sd:supportedLanguage sd:SPARQL11Query ;
    sd:resultFormat {formats} ;
    {_ENTAILMENT.get(program.entailment, "")}
    sd:defaultDataset [ a sd:Dataset ; sd:defaultGraph [ a sd:Graph ; void:triples {triples} ] ] .
"""
    read = ox.parse(text, format=ox.RdfFormat.TURTLE, rename_blank_nodes=True)
    return [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in read]


# -- answers ----------------------------------------------------------------------------------------

STATED, DERIVED = ox.NamedNode("urn:dotr:stated"), ox.NamedNode("urn:dotr:derived")

Plan: TypeAlias = dict[str, Any]


def time_text(now: Now) -> str | None:
    return None if now is None else now[1].text(now[0])


class Answers:
    """Owns what it takes to answer questions to one deployment. Threads may share it.

    `budget`: units of work of one question (budget.py). Every method raises DotrError for what it refuses.
    """

    def __init__(self, folder: str, budget: int = BUDGET) -> None:
        self.folder, self.budget = folder, budget
        self.knowledge = Knowledge(folder, budget)
        self._planned: tuple[str, Plan] | None = None

    # -- what holds

    def sparql(self, query: str, at: str | None = None, accept: str | None = None) -> Answer:
        """The answer to a query over what holds now, or held at an instant that is kept."""
        with self.knowledge.holding(self._time(at)) as holding:
            result = holding.result(query)
            media_type = negotiated(accept, offers_of(result))
            content = written_result(result, media_type, holding.program.prefixes)
            return Answer(content, media_type, time_text(holding.now), holding.number)

    def state(self, at: str | None = None, accept: str | None = None) -> Answer:
        """What holds now, or held at an instant that is kept; TriG and N-Quads have what is stated in the
        graph urn:dotr:stated and what is derived in urn:dotr:derived.
        """
        media_type = negotiated(accept, (*GRAPHS, *DATASETS))
        with self.knowledge.holding(self._time(at)) as holding:
            stated, derived = holding.triples()
            prefixes = holding.program.prefixes
            if media_type in DATASETS:
                apart = ((STATED, stated), (DERIVED, derived))
                quads = [ox.Quad(*_terms(triple), name) for name, found in apart for triple in found]
                content = _serialized(quads, DATASETS[media_type], prefixes)
            else:
                content = graph([*stated, *derived], media_type, prefixes)
            return Answer(content, media_type, time_text(holding.now), holding.number)

    def service_description(self, endpoint: str, accept: str | None = None) -> Answer:
        """What the endpoint can do, as RDF."""
        media_type = negotiated(accept, GRAPHS)
        with self.knowledge.holding() as holding:
            found = service_description(endpoint, holding.program, len(holding.model.kept))
            prefixes = {
                "sd": "http://www.w3.org/ns/sparql-service-description#",
                "void": "http://rdfs.org/ns/void#",
            }
            content = graph(found, media_type, prefixes)
            return Answer(content, media_type, time_text(holding.now), holding.number)

    def _time(self, at: str | None) -> Time | None:
        return None if at is None else time_of(at, self.knowledge.follow().clock)

    # -- why

    def why(self, event_id: str, depth: int | None = None, accept: str | None = None) -> Answer:
        """Why an event happened. Raises DataError D4173, D4189."""
        media_type = negotiated(accept, PROOFS)
        fed = FedDeployment(self.folder)
        return _explanation(fed, explained(fed, Question(event_id=event_id)), media_type, depth)

    def why_not(
        self,
        rule: str,
        at: str,
        where: Sequence[str] = (),
        depth: int | None = None,
        accept: str | None = None,
    ) -> Answer:
        """How far a rule came at an instant; `where`: `NAME=TERM`, as `dotr explain --where` has it. Raises
        UsageError D4172, D4174, D4198, DataError D4189.
        """
        media_type = negotiated(accept, PROOFS)
        fed = FedDeployment(self.folder)
        time = time_of(at, fed.clock)
        fed.refuse_ahead(time)
        values = dict(pair(text, fed.program.prefixes, "where") for text in where)
        question = Question(why_not=rule, time=time, at=at, values=values)
        return _explanation(fed, explained(fed, question), media_type, depth)

    # -- watched queries

    def watch(self, query: str) -> Watch:
        """Follow the answers of a QUERY of the rules: `snapshot`, then `changes()` after each commit. Leave
        it with `close`, or as a context.
        """
        return self.knowledge.watch(query)

    # -- the plan

    def plan(self) -> Plan:
        """What `dotr plan --format json` shows of what is deployed."""
        digest = self.knowledge.follow().digest
        if self._planned is None or self._planned[0] != digest:
            with Journal(self.folder, exclusive=False) as journal:
                program, background = deployed_program(journal.deployed()), deployed_background(journal)
            shown = overview(Deployment(program, background, Settings(budget=self.budget)))
            self._planned = digest, shown
        return self._planned[1]


def pair(text: str, prefixes: Mapping[str, str], what: str) -> tuple[str, Term]:
    """`NAME=TERM`. Raises UsageError D4174."""
    name, _, term = text.partition("=")
    return name.strip().lstrip("?"), read_term(term, prefixes, what)


def _explanation(fed: FedDeployment, reasons: Reasons, media_type: str, depth: int | None) -> Answer:
    seen = None if fed.watermark is None else fed.clock.text(fed.watermark)
    if media_type == "application/json":
        values = reasons.values()
        content = json.dumps(values[0] if len(values) == 1 else {"all": values}, ensure_ascii=False)
    else:
        content = reasons.written(PROOFS[media_type], depth)
    return Answer(content.encode(), media_type, seen, fed.commit)


def snapshot_lines(watch: Watch) -> str:
    """The answers at the beginning of a watch, as `dotr watch` writes them: a line of JSON each."""
    return _lines(watch, watch.first_now, ((row, n) for row, n in watch.snapshot))


def difference_lines(watch: Watch, found: Differences) -> str:
    """What began and ended, likewise."""
    return _lines(watch, found.now, found.rows)


def _lines(watch: Watch, now: Now, rows: Iterable[tuple[Row, int]]) -> str:
    text = time_text(now)
    time = "null" if now is None else text if now[1].integer else json.dumps(text)
    return "".join(
        f'{{"time":{time},"change":{n},"bindings":{bindings(watch.variables, row)}}}\n' for row, n in rows
    )

"""Composite events as text, JSON lines, TriG, N-Quads, CSV, Jelly and Parquet, and the choice of format.

Place:   the command line and `Event.to_json` write by these formats; every message shows terms by
         `TermFormatter`.
Method:  every line is written by hand from ready parts (N-Quads of one event 0.4 µs; a serializer over term
         objects takes three times that). TriG and N-Quads put the stamp, prov:generatedAtTime in the default
         graph, before the event's graph, so that an output is a source. CSV has one table of all rules: time,
         rule, id, then the WITH variables in program order, each name once; terms as in SPARQL 1.1 CSV
         results: an IRI or a literal's text bare, and an empty cell for what a rule does not bind.
         JSON lines: a generated function for rules of one form puts ready parts together, those that rules
         share once a match (emit/templates.py); terms, times and escaped terms come from tables, and the
         order of the graph's lines is known beforehand where all are about the event and no property occurs
         twice. What is unusual, a chosen event of a chained rule, an attribute without a value, is written
         as `format_jsonl` does.
         Formats are rows of `EVENT_FORMATS`: how events are written as text, or what writes a binary
         format, and where it may go. Nobody else asks which format it is. `--format` decides, else the
         ending of the name. An ending that names a format which the verb cannot write is refused; an
         unknown ending gives JSON lines.
         Terms for a reader: the longest namespace of the program's prefixes wins; a name is shortened only
         when the short form is Turtle without escapes, so that TriG output written this way reads back to the
         same terms.
Why not: json.dumps: 2 µs an event; the round trip through json is tested instead. Assembling names and keys
         anew for each event: three times the cost.
Bad input: D4151 a format that the verb does not write.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from json.encoder import encode_basestring as json_string
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from msgspec import Struct

from dotr.codegen import Names, make
from dotr.emit.events import Emitter, EventTexts, InstantEvents, Named
from dotr.emit.templates import NAME, STAMP, Constants, Piece, RuleTemplate, Writer, shared_writer
from dotr.errors import EngineError, UsageError
from dotr.events import NEVER, Clock, Composite, Fact, GraphOrMessage, Message, RawMatch, Time
from dotr.io.outputs import FileOutput, Output, ending_of, packing_of, unwritable
from dotr.program import Program, Rule
from dotr.rdf.terms import (
    PROV_GENERATED_AT_TIME,
    RDF_TYPE,
    XSD,
    XSD_BOOLEAN,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    XSD_STRING,
    Memo,
    Term,
    Triple,
    is_literal,
    literal_parts,
    members,
)
from dotr.regex import regex

if TYPE_CHECKING:
    from dotr.io.decode.jelly import JellyFrames
    from dotr.io.event_tables import EventTableWriter

_LOCAL = regex(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?)?")
_PREFIX = regex(r"(?:[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?)?")
_FRESH = regex(r"<(urn:dotr:[A-Za-z][A-Za-z0-9_]*:[a-z2-7]{24}(?:-[A-Za-z0-9_]+)?)>")
_NUMERAL = regex(r"[+-]?[0-9]+")
_DECIMAL = regex(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_BOOLEAN = ("true", "false")


class TermFormatter:
    """Writes terms with a program's prefixes. `fresh` True shows fresh names bare, as the paper does
    (text only).
    """

    def __init__(self, prefixes: Mapping[str, str], fresh: bool = False) -> None:
        usable = {name: iri for name, iri in prefixes.items() if _PREFIX.fullmatch(name) and iri}
        self.prefixes = dict(sorted(usable.items()))
        self._namespaces = sorted(
            ((iri, name) for name, iri in usable.items()), key=lambda pair: -len(pair[0])
        )
        self._fresh = fresh
        self._memo: Memo[Term, str] = Memo(self._short)

    def term(self, term: Term) -> str:
        """A term in subject or object position."""
        return self._memo[term]

    def predicate(self, term: Term) -> str:
        return "a" if term == RDF_TYPE else self._memo[term]

    def header(self) -> str:
        """The prefixes as Turtle directives, one a line."""
        return "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in self.prefixes.items())

    def _short(self, term: Term) -> str:
        if term[0] == "[":
            return f"[{', '.join(map(self.term, members(term)))}]"
        if term[0] == "<":
            if self._fresh and (found := _FRESH.fullmatch(term)):
                return found[1]
            return self._iri(term[1:-1])
        if term[0] == "_" or term[-1] == '"':
            return term
        lexical, datatype, language = literal_parts(term)
        if language:
            return term
        if datatype == XSD_INTEGER and _NUMERAL.fullmatch(lexical):
            return lexical
        if datatype == XSD_DECIMAL and _DECIMAL.fullmatch(lexical):
            return lexical if "." in lexical else f"{lexical}.0"
        if datatype == XSD_DOUBLE and _DECIMAL.fullmatch(lexical):
            return f"{lexical}e0"
        if datatype == XSD_BOOLEAN and lexical in _BOOLEAN:
            return lexical
        return f"{term[: term.rindex('^') + 1]}{self._iri(datatype)}"

    def _iri(self, value: str) -> str:
        for namespace, name in self._namespaces:
            if value.startswith(namespace) and _LOCAL.fullmatch(value, len(namespace)):
                return f"{name}:{value[len(namespace) :]}"
        return f"<{value}>"


def _json_term(term: Term) -> str:
    if term[0] == "<":
        return f'{{"type":"uri","value":{json_string(term[1:-1])}}}'
    if term[0] == "_":
        return f'{{"type":"bnode","value":{json_string(term[2:])}}}'
    if term[0] == "[":
        return f"[{','.join([json_terms[member] for member in members(term)])}]"
    lexical, datatype, language = literal_parts(term)
    value = json_string(lexical)
    if language:
        return f'{{"type":"literal","value":{value},"xml:lang":{json_string(language)}}}'
    if datatype == XSD_STRING:
        return f'{{"type":"literal","value":{value}}}'
    return f'{{"type":"literal","value":{value},"datatype":{json_string(datatype)}}}'


json_terms: Memo[Term, str] = Memo(_json_term)
"""Term → its object in SPARQL 1.1 JSON results; list → the array of its members."""


Cells: TypeAlias = Callable[[str, RawMatch], tuple[str, str]]
"""The match of an event as JSON and its graph as sorted N-Triples, by the hash in its name and its match."""


def _escaped(term: Term) -> str:
    return json_string(term)[1:-1]


escaped_terms: Memo[Term, str] = Memo(_escaped)


class TimeTexts(dict[int, str]):
    """Owns the JSON strings of times of one clock: of one run, since rules share times and events are near
    each other. `stamp`: the text of a time as JSON, an integer or a string.
    """

    __slots__ = ("_text", "stamp")

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._text = clock.text
        self.stamp: Callable[[int], str] = clock.text if clock.integer else self.__getitem__

    def __missing__(self, time: int) -> str:
        if len(self) >= _TIMES:
            self.clear()
        text = self[time] = f'"{self._text(time)}"'
        return text


_TIMES = 1 << 13


class _Form(Struct, frozen=True):
    """What makes the parts of an event: equal for rules whose events one function writes.

    `variables`: of WITH, how many; `positions`: the attributes of the fact of each; `optional`: the names of
    those that may have none, "" of others; `alone`: the template of a rule whose graph is made and sorted.
    """

    variables: int
    positions: tuple[tuple[str, ...], ...]
    optional: tuple[str, ...]
    alone: RuleTemplate | None


class LineWriters:
    """Owns the functions that write the events of rules as JSON lines, line ends included. `times` has the
    strings of times that are no integers.
    """

    def __init__(self, templates: Sequence[RuleTemplate], clock: Clock, times: Mapping[int, str]) -> None:
        self._clock, self._times = clock, times
        self._pieces = [_line_pieces(template) for template in templates]
        self._templates = templates
        self._alike: dict[Hashable, list[int]] = {}
        self._keys: list[Hashable] = []
        for number, (form, pieces) in enumerate(self._pieces):
            key = form, tuple(piece if isinstance(piece, int) else "" for piece in pieces)
            self._keys.append(key)
            self._alike.setdefault(key, []).append(number)
        self._made: dict[int, tuple[Writer, Constants]] = {}

    def of(self, rule: int) -> tuple[Writer, Constants]:
        """Of a rule, by its number, made when first asked for."""
        if rule not in self._made:
            numbers = self._alike[self._keys[rule]]
            form, _ = self._pieces[rule]
            names = Names()
            write, constants = shared_writer(
                [self._templates[number].prefix for number in numbers],
                [self._pieces[number][1] for number in numbers],
                list(_locals(form, names, self._clock, self._times)),
                names,
            )
            self._made |= zip(numbers, zip(repeat(write), constants, strict=False), strict=True)
        return self._made[rule]


def _line_pieces(template: RuleTemplate) -> tuple[_Form, list[Piece]]:
    """The JSON line of an event of a rule. The locals: values as JSON, values escaped, facts, the graph."""
    nodes, width = _graph_pieces(template), len(template.variables)
    pieces: list[Piece] = []
    pieces += [f'{{"rule":{json_string(template.rule)},"time":', STAMP, ',"id":"', NAME, '","bindings":{']
    for place, variable in enumerate(template.variables):
        pieces += [f"{',' if place else ''}{json_string(variable)}:", place]
    pieces.append('},"match":{')
    for place, (name, _) in enumerate(template.positions):
        if name not in template.optional:
            pieces.append(f"{',' if place else ''}{json_string(name)}:")
        pieces.append(2 * width + place)
    pieces.append('},"graph":')
    if nodes is None:
        pieces.append(2 * width + len(template.positions))
    else:
        pieces.append('"')
        for node in nodes:
            if isinstance(node, str):
                pieces.append(escaped_terms[node])
            elif node < 0:
                pieces += ["<", NAME, ">" if node == NAME else ""]
            else:
                pieces.append(width + node)
        pieces.append('"')
    pieces.append("}\n")
    form = _Form(
        width,
        tuple(variables for _, variables in template.positions),
        tuple(name if name in template.optional else "" for name, _ in template.positions),
        template if nodes is None else None,
    )
    return form, _merged(pieces)


def _merged(pieces: Iterable[Piece]) -> list[Piece]:
    """Constants that follow one another as one."""
    merged: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        elif piece != "":
            merged.append(piece)
    return merged


def _locals(form: _Form, names: Names, clock: Clock, times: Mapping[int, str]) -> Iterator[str]:
    """The lines that make the locals of `_line_pieces` from facts `f` and values `b`."""
    names.namespace |= {"T": times, "J": json_terms, "E": escaped_terms, "FACT": _fact, "CLOCK": clock}
    width = form.variables
    if width:
        yield f"{''.join(f'b{n}, ' for n in range(width))}= b"
    for n in range(width):
        yield f"s{n} = J[b{n}]"
        if form.alone is None:
            yield f"s{width + n} = E[b{n}]"
    yield f"{''.join(f'f{n}, ' for n in range(len(form.positions)))}= f"
    for n, (variables, optional) in enumerate(zip(form.positions, form.optional, strict=True)):
        yield from _fact_lines(f"s{2 * width + n}", n, variables, optional, names, clock)
    if form.alone is not None:
        of = form.alone
        names.namespace["GRAPH"] = lambda name, bound: json_string(sorted_graph(of.graph(name, bound)))
        yield f"s{2 * width + len(form.positions)} = GRAPH({names.constant(of.prefix)} + h, b)"


def cell_writer(template: RuleTemplate, clock: Clock, times: Mapping[int, str]) -> Cells:
    """What writes the `match` and `graph` of the events of one rule. Its locals: `i` the event's name, `b0`…
    the values of WITH, `p0`… the positions of the match.
    """
    names = Names()
    names.namespace |= {"T": times, "J": json_terms, "FACT": _fact, "CLOCK": clock}
    facts = "".join(f"f{n}, " for n in range(len(template.positions)))
    bound = "".join(f"b{n}, " for n in range(len(template.variables)))
    lines = ["def cells(name, match):", f"    _, w, ({facts}), {f'({bound})' if bound else '_'} = match"]
    lines.append(f"    i = {names.constant(template.prefix)} + name")
    match, graph = _Parts(names).add("{"), _Parts(names)
    for n, (name, variables) in enumerate(template.positions):
        optional = name if name in template.optional else ""
        lines += [f"    {line}" for line in _fact_lines(f"p{n}", n, variables, optional, names, clock)]
        if not optional:
            match.add(f"{',' if n else ''}{json_string(name)}:")
        match.local(f"p{n}")
    nodes = _graph_pieces(template)
    if nodes is None:
        names.namespace["GRAPH"] = lambda name, match: sorted_graph(template.graph(name, match[3]))
        graph.local("GRAPH(i, match)")
    for piece in nodes or ():
        if isinstance(piece, str):
            graph.add(piece)
        elif piece < 0:
            graph.add("<").local("i").add(">" if piece == NAME else "")
        else:
            graph.local(f"b{piece}")
    lines.append(f"    return f'{match.add('}').text()}', f'{graph.text()}'")
    written: Cells = make("cells", "\n".join([*lines, ""]), names)
    return written


class _Parts:
    """Owns the parts of an f-string: constants by name, and locals."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._parts: list[str] = []
        self._constant = ""

    def add(self, constant: str) -> _Parts:
        self._constant += constant
        return self

    def local(self, expression: str) -> _Parts:
        self._settle()
        self._parts.append(f"{{{expression}}}")
        return self

    def text(self) -> str:
        self._settle()
        return "".join(self._parts)

    def _settle(self) -> None:
        if self._constant:
            self._parts.append(f"{{{self._names.constant(self._constant)}}}")
            self._constant = ""


def _text_of(time: str, clock: Clock) -> str:
    """The expression of a time as JSON: an integer is a division, which costs less than a table of them."""
    return f"{time} // {clock.unit}" if clock.integer else f"T[{time}]"


def _fact_lines(
    local: str, n: int, variables: tuple[str, ...], optional: str, names: Names, clock: Clock
) -> list[str]:
    """`local`: the fact `f{n}` as JSON; if it is `optional`, behind that name, and "" where there is none."""
    parts = _Parts(names).add('{"time":').local(_text_of("w", clock)).add(',"values":{')
    for place, variable in enumerate(variables):
        parts.add(f"{',' if place else ''}{json_string(variable)}:").local(f"J[v[{place}]]")
    text = parts.add("}}").text()
    names.namespace[f"V{n}"] = variables
    lines = [
        f"w, v, _, o = f{n}",
        f"{local} = FACT(V{n}, f{n}, CLOCK) if o or None in v else f'{text}'",
    ]
    if optional:
        member = names.bind(f",{json_string(optional)}:", "M")
        lines.append(f"{local} = '' if w == {names.bind(NEVER, 'N')} else {member} + {local}")
    return lines


def _graph_pieces(template: RuleTemplate) -> list[Piece] | None:
    """The sorted N-Triples of an event; None where their order depends on values."""
    predicates = [p for _, p, _ in template.build]
    about_the_event = all(s == 0 for s, _, _ in template.build)
    if template.repeats or not about_the_event or len(set(predicates)) < len(predicates):
        return None
    if not all(isinstance(p, str) for p in predicates):
        return None
    triples = sorted(template.build, key=lambda triple: f"{triple[1]} ")
    return [piece for triple in triples for piece in (*template.pieces(triple), ".\n")]


_OWN: Final = ("time", "rule", "id")


def csv_columns(rules: Iterable[Rule]) -> list[str]:
    """The header. A variable that is called as one of the first three columns keeps its question mark."""
    names = dict.fromkeys(v for rule in rules if not rule.private for v in rule.variables)
    return [*_OWN, *(f"?{name}" if name in _OWN else name for name in names)]


def csv_formatter(rules: Sequence[Rule]) -> tuple[str, Callable[[Sequence[Composite], Clock], str]]:
    """(the header line, how events are written)."""
    columns = csv_columns(rules)
    place = {name.removeprefix("?"): number for number, name in enumerate(columns) if number >= len(_OWN)}
    places = {rule.name: [place[name] for name in rule.variables] for rule in rules if not rule.private}

    def rows(events: Sequence[Composite], clock: Clock) -> str:
        return _written([_row(event, clock, places[event.rule], len(columns)) for event in events])

    return _written([columns]), rows


def csv_solutions(variables: Sequence[str], rows: Iterable[Sequence[Term | None]], end: str = "\n") -> str:
    """The solutions of a query as SPARQL 1.1 CSV results have them, where lines end in CR LF: what is unbound
    is empty.
    """
    cells = (["" if term is None else _texts[term] for term in row] for row in rows)
    return _written([list(variables), *cells], end)


def _row(event: Composite, clock: Clock, places: Sequence[int], width: int) -> list[str]:
    row = [""] * width
    row[:3] = clock.text(event.time), event.rule, event.id
    for place, term in zip(places, event.bound, strict=True):
        row[place] = _texts[term]
    return row


def _written(rows: Sequence[Sequence[str]], end: str = "\n") -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator=end).writerows(rows)
    return out.getvalue()


def _text(term: Term) -> str:
    if is_literal(term):
        return literal_parts(term)[0]
    if term[0] == "[":
        return f"[{','.join([json_string(_texts[member]) for member in members(term)])}]"
    return term if term[0] == "_" else term[1:-1]


_texts: Memo[Term, str] = Memo(_text)


Formatter: TypeAlias = Callable[[Sequence[Composite], Clock], str]
"""Events as the characters that go to the sink, line ends included."""


def with_prov(prefixes: Mapping[str, str]) -> dict[str, str]:
    """The prefixes, with `prov` and `xsd` for the stamps unless the program uses those names otherwise."""
    return {"prov": "http://www.w3.org/ns/prov#", "xsd": XSD, **prefixes}


def text(event: Composite, clock: Clock, notation: TermFormatter) -> str:
    """The paper's notation: `{ urn:dotr:Fire:7k2q… a :Fire ; :at_room :roomA } @ 12`."""
    return f"{{ {turtle(event.graph, notation)}}} @ {clock.text(event.time)}"


def trig(event: Composite, clock: Clock, notation: TermFormatter) -> str:
    """A stamp and a graph, each on its line."""
    name = f"<{event.id}>"
    stamp = f"{notation.term(PROV_GENERATED_AT_TIME)} {notation.term(clock.term(event.time))}"
    return f"{name} {stamp} .\n{name} {{ {turtle(event.graph, notation)}}}\n"


def turtle(graph: tuple[Triple, ...], notation: TermFormatter) -> str:
    """Triples in their order, `;` and `,` where subject or predicate repeat; ends with a blank if not
    empty.
    """
    out: list[str] = []
    last: Triple | None = None
    for triple in graph:
        subject, predicate, object_ = triple
        if last is not None and last[0] == subject:
            if last[1] == predicate:
                out.append(f", {notation.term(object_)} ")
            else:
                out.append(f"; {notation.predicate(predicate)} {notation.term(object_)} ")
        else:
            dot = ". " if last is not None else ""
            out.append(
                f"{dot}{notation.term(subject)} {notation.predicate(predicate)} {notation.term(object_)} "
            )
        last = triple
    return "".join(out)


def nquads(events: Sequence[Composite], clock: Clock) -> str:
    """Of each event the stamp in the default graph, then its quads in template order. The events of an
    instant as the pipeline gives them are written without being made.
    """
    if isinstance(events, InstantEvents):
        return "".join(events.nquads(clock))
    return "".join([e.template.quads(e.id, e.bound, clock.term(e.time)) for e in events])


def named(events: Sequence[Composite]) -> list[Named]:
    """What events are made of; they need not be made for that."""
    if isinstance(events, InstantEvents):
        return events.named()
    found: list[Named] = []
    for event in events:
        of = event.template
        assert isinstance(of, RuleTemplate), "a rule made it"
        found.append((of, event.id[len(of.prefix) :], ((), event.time, event.facts, event.bound)))
    return found


class _JsonLines:
    """Owns the functions that write the events of each rule as `format_jsonl` does, with their line ends."""

    def __init__(self) -> None:
        self._clock: Clock | None = None
        self._emitter: Emitter | None = None
        self._alone: dict[RuleTemplate, tuple[Writer, Constants]] = {}

    def __call__(self, events: Sequence[Composite], clock: Clock) -> str:
        if clock is not self._clock:
            self._clock, self._times, self._emitter = clock, TimeTexts(clock), None
            self._alone.clear()
        if isinstance(events, InstantEvents):
            emitter = events.emitter
            if emitter is not self._emitter:
                writers = LineWriters(emitter.templates, clock, self._times)
                self._emitter, self._texts = emitter, EventTexts(writers.of, len(emitter.templates))
            return "".join(self._texts.written(events.instants(), self._times.stamp))
        return "".join([self._line(event, clock) for event in events])

    def _line(self, event: Composite, clock: Clock) -> str:
        template = event.template
        if not isinstance(template, RuleTemplate):
            return f"{format_jsonl(event, clock)}\n"
        if template not in self._alone:
            self._alone[template] = LineWriters([template], clock, self._times).of(0)
        write, constants = self._alone[template]
        name = event.id[len(template.prefix) :]
        return write((constants,), ((name, self._times.stamp(event.time), event.facts, event.bound),))[0]


def format_jsonl(event: Composite, clock: Clock) -> str:
    """The JSON line of an event, without its end; keys in the order of cli.md."""
    bindings = ",".join([f"{json_string(name)}:{json_terms[term]}" for name, term in event.bindings])
    return (
        f'{{"rule":{json_string(event.rule)},"time":{json_time(event.time, clock)},'
        f'"id":{json_string(event.id)},"bindings":{{{bindings}}},"match":{format_match(event, clock)},'
        f'"graph":{json_string(format_graph(event))}}}'
    )


def format_match(event: Composite, clock: Clock) -> str:
    """The `match` of a JSON line: an object."""
    facts = [f"{json_string(name)}:{_fact(variables, fact, clock)}" for name, variables, fact in event.match]
    return f"{{{','.join(facts)}}}"


def format_graph(event: Composite) -> str:
    """The event's graph as sorted N-Triples."""
    return sorted_graph(event.graph)


def sorted_graph(graph: Iterable[Triple]) -> str:
    """Triples as sorted N-Triples."""
    return "".join(sorted([f"{s} {p} {o} .\n" for s, p, o in graph]))


def _fact(variables: tuple[str, ...], fact: Fact, clock: Clock) -> str:
    time, values, _ordinal, id_ = fact
    pairs = ",".join(
        [
            f"{json_string(variable)}:{json_terms[value]}"
            for variable, value in zip(variables, values, strict=True)
            if value is not None
        ]
    )
    own = f',"id":{json_string(id_)}' if id_ else ""
    return f'{{"time":{json_time(time, clock)},"values":{{{pairs}}}{own}}}'


def json_time(time: int, clock: Clock) -> str:
    """A timestamp as JSON lines have it."""
    return clock.text(time) if clock.integer else f'"{clock.text(time)}"'


def late_line(time: Time, part: GraphOrMessage, clock: Clock) -> str:
    """A late graph or message as a JSON line that is a valid source. Blank nodes are numbered as they appear:
    the labels that a parser makes up differ from run to run.
    """
    line: dict[str, str | int] = {"time": int(clock.text(time)) if clock.integer else clock.text(time)}
    parts = part._asdict() if isinstance(part, Message) else {"graph": part}
    line |= {name: _numbered(triples) for name, triples in parts.items() if triples is not None}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def _numbered(graph: Sequence[Triple]) -> str:
    """Triples as N-Triples, blank nodes numbered as they appear."""
    blanks: dict[Term, Term] = {}
    for subject, _, object_ in graph:
        for term in (subject, object_):
            if term[0] == "_":
                blanks.setdefault(term, f"_:b{len(blanks)}")
    return "".join(f"{blanks.get(s, s)} {p} {blanks.get(o, o)} .\n" for s, p, o in graph)


# -- sinks


class EventSink(Protocol):
    """Takes events in order; `flush` makes them visible, `finish` ends it well, `abandon` otherwise."""

    @property
    def output(self) -> Output: ...

    def write(self, events: Sequence[Composite], clock: Clock) -> None: ...

    def flush(self) -> None: ...

    def finish(self) -> None: ...

    def abandon(self) -> None: ...


class TextSink(Struct):
    """Events as text."""

    format: Formatter
    output: Output

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        self.output.write(self.format(events, clock))

    def flush(self) -> None:
        self.output.flush()

    def finish(self) -> None:
        self.output.finish()

    def abandon(self) -> None:
        self.output.abandon()


class JellySink(Struct):
    """Events as frames of Jelly, those that are written together in one."""

    output: Output
    frames: JellyFrames

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        self.output.write_bytes(self.frames.frame(nquads(events, clock)))

    def flush(self) -> None:
        self.output.flush()

    def finish(self) -> None:
        self.output.write_bytes(self.frames.frame(""))  # the options, where nothing else was written
        self.output.finish()

    def abandon(self) -> None:
        self.output.abandon()


class ParquetSink(Struct):
    """Events as rows of a Parquet file, which grows beside its name as every output does."""

    output: FileOutput
    opener: Callable[[str, Clock], EventFile]
    _writer: EventFile | None = None
    _broken: bool = False

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        try:
            self._opened(clock).add(events)
        except OSError as error:
            raise self._unwritable(error) from None

    def flush(self) -> None:
        """Rows of a Parquet file are there when it is complete."""

    def finish(self) -> None:
        self._close()
        self.output.finish()

    def abandon(self) -> None:
        """What was emitted so far can be read, unless the file could not be written: nobody can read a
        Parquet file without its end.
        """
        if not self._broken:
            with suppress(EngineError):  # what ends the run is reported already
                self._close()
        if self._broken:
            self.output.discard()
        else:
            self.output.abandon()

    def _opened(self, clock: Clock) -> EventFile:
        if self._writer is None:
            self._writer = self.opener(str(self.output.part), clock)
        return self._writer

    def _close(self) -> None:
        try:
            self._opened(Clock()).close()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> EngineError:
        self._broken = True
        return unwritable(str(self.output.path), error)


# -- formats


class EventFile(Protocol):
    """A file that takes events in order and is complete once closed. Raises OSError."""

    def add(self, events: Sequence[Composite]) -> None: ...

    def close(self) -> None: ...


class EventFormat(Struct, frozen=True):
    """A format of events.

    `ending`: of the names of its files. Of text, `text`: (prefixes, rules) → (the beginning of an output, how
    events are written); it grows, and may be compressed. Of a binary format, `file` opens a file of its own
    for the events of a task or a commit, and `sink` writes the events of a run to what it opens; `live`: the
    head stands there before the first event. `streamed`: standard output and pipes take it. `columns`: it is
    a table with a schema. `typed`: opens such a table with a column for each variable of these rules.
    `require`: raises UsageError where a package is missing.
    """

    ending: str
    text: Callable[[Mapping[str, str], Sequence[Rule]], tuple[str, Formatter]] | None = None
    file: Callable[[str, Clock], EventFile] | None = None
    sink: Callable[[Callable[[], Output], bool], EventSink] | None = None
    streamed: bool = True
    columns: bool = False
    require: Callable[[], object] = lambda: None
    typed: Callable[[Callable[[], Output], Sequence[Rule]], EventSink] | None = None

    @property
    def remote(self) -> bool:
        """Whether Spark writes it to a URI, where it writes lines and tables."""
        return self.text is not None or self.columns


def _for_people(prefixes: Mapping[str, str], _rules: Sequence[Rule]) -> tuple[str, Formatter]:
    short = TermFormatter({"xsd": XSD, **prefixes}, fresh=True)
    return "", lambda events, clock: "".join([f"{text(event, clock, short)}\n" for event in events])


def _trig(prefixes: Mapping[str, str], _rules: Sequence[Rule]) -> tuple[str, Formatter]:
    notation = TermFormatter(with_prov(prefixes))
    return notation.header(), lambda events, clock: "".join([trig(e, clock, notation) for e in events])


def _jelly_frames() -> JellyFrames:
    from dotr.io.decode.jelly import JellyFrames  # noqa: PLC0415  # an extra

    return JellyFrames()


def _jelly_file(path: str, clock: Clock) -> EventFile:
    from dotr.io.decode.jelly import JellyEventWriter  # noqa: PLC0415  # an extra

    return JellyEventWriter(path, clock)


def _jelly_sink(opened: Callable[[], Output], live: bool) -> EventSink:
    frames = _jelly_frames()  # before anything is opened
    output = opened()
    if live:
        output.write_bytes(frames.frame(""))  # the options stand at the head of the stream, as of text
    return JellySink(output, frames)


def _parquet_file(path: str, clock: Clock) -> EventTableWriter:
    from dotr.io.event_tables import EventTableWriter  # noqa: PLC0415  # start-up: Arrow takes 0.3 s

    return EventTableWriter(path, clock)


def _parquet_sink(opened: Callable[[], Output], _live: bool) -> EventSink:
    output = opened()
    assert isinstance(output, FileOutput), "it is not streamed"
    return ParquetSink(output, _parquet_file)


def _typed_sink(opened: Callable[[], Output], rules: Sequence[Rule]) -> EventSink:
    from dotr.io.event_tables import TypedTableWriter  # noqa: PLC0415  # start-up: as above

    output = opened()
    assert isinstance(output, FileOutput), "it is not streamed"
    return ParquetSink(output, lambda path, clock: TypedTableWriter(path, clock, rules))


EVENT_FORMATS: Final[Mapping[str, EventFormat]] = {
    "text": EventFormat("txt", _for_people),
    "jsonl": EventFormat("jsonl", lambda _prefixes, _rules: ("", _JsonLines())),
    "trig": EventFormat("trig", _trig),
    "nquads": EventFormat("nq", lambda _prefixes, _rules: ("", nquads)),
    "csv": EventFormat("csv", lambda _prefixes, rules: csv_formatter(rules)),
    "parquet": EventFormat(
        "parquet", file=_parquet_file, sink=_parquet_sink, streamed=False, columns=True, typed=_typed_sink
    ),
    "jelly": EventFormat("jelly", file=_jelly_file, sink=_jelly_sink, require=_jelly_frames),
}
"""By the value of `--format`. A new format is a row."""

BINARY: Final = tuple(name for name, format_ in EVENT_FORMATS.items() if format_.text is None)
"""Formats that are never compressed by whole files, and of which a feed writes a file for each commit."""

GRAPH_FORMATS: Final = ("turtle", "ntriples")
"""Those of one graph."""

ENDINGS: Final[Mapping[str, str]] = {
    **{name: format_.ending for name, format_ in EVENT_FORMATS.items()},
    "turtle": "ttl",
    "ntriples": "nt",
}
"""Format → what the names of its files end in."""

_OTHERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("n3", "turtle"), "Turtle"),
    **dict.fromkeys(("rdf", "owl", "xml"), "XML"),
    **dict.fromkeys(("gz", "bz2", "xz", "zst", "zip"), "compressed"),
    **dict.fromkeys(("md", "html"), "a page"),
    "jsonld": "JSON-LD",
    "json": "one JSON document",
    "tsv": "tab-separated",
    "xlsx": "a spreadsheet",
    "avro": "Avro",
    "orc": "ORC",
}
"""Ending of a name → what a reader will take the file for."""


def formatter(name: str, prefixes: Mapping[str, str], rules: Sequence[Rule] = ()) -> tuple[str, Formatter]:
    """(the beginning of an output, how events are written) of a format that is text. `rules` are those of
    the program: columns of a table are theirs.
    """
    of = EVENT_FORMATS[name].text
    if of is None:
        raise ValueError(name)
    return of(prefixes, rules)


def open_sink(
    name: str,
    opened: Callable[[], Output],
    program: Program,
    own: Formatter | None = None,
    *,
    live: bool = False,
    typed: Sequence[Rule] | None = None,
    head: str | None = None,
) -> EventSink:
    """Where the events of a run go, opened, with what stands at its head; `own` writes them instead, as text,
    after `head`, if that is another one.
    `live`: see `EventFormat`; `typed`: likewise, of the rules of all programs of the run.

    Raises UsageError D4151 for a format that has no typed columns.
    """
    if typed is not None:
        opener = EVENT_FORMATS[name].typed
        if opener is None:
            can = [known for known, format_ in EVENT_FORMATS.items() if format_.typed]
            raise refused(f"{name} with --schema typed", can, "dotr run")
        return opener(opened, typed)
    sink = EVENT_FORMATS[name].sink
    if sink is not None:
        return sink(opened, live)
    usual, write = formatter(name, program.prefixes, program.rules)
    output = opened()
    output.write(usual if head is None else head)
    return TextSink(own or write, output)


def format_of_name(path: str, can: Sequence[str], verb: str, *, packed: bool = False) -> str | None:
    """The format of `can` that the ending of a name says; None where it says nothing. `packed`: `verb` writes
    compressed text.

    Raises UsageError D4151 for one that `verb` does not write.
    """
    ending = ending_of(path)
    inner = ending_of(path[: -1 - len(ending)]) if packed and packing_of(path) else ending
    format_ = next((name for name, known in ENDINGS.items() if known == inner), None)
    fits = inner == ending or format_ not in BINARY
    if fits and (format_ in can or (format_ is None and inner not in _OTHERS)):
        return format_
    raise refused(f"`{path}`, by its name {_OTHERS.get(ending) or format_}", can, verb)


def refused(what: str, can: Sequence[str], verb: str) -> UsageError:
    """A format that a verb does not write."""
    listed = ", ".join(f"{name} (.{ENDINGS[name]})" for name in can)
    return UsageError.of(
        "D4151",
        f"{verb} does not write {what}",
        notes=(f"it writes {listed}",),
        hint="give the file another name, or --format, which takes precedence over the name",
    )

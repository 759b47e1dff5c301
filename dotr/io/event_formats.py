"""Sinks: composite events as text, JSON lines, TriG, N-Quads and CSV.

Place:   behind core/emit.py; used by the command line and by Event.to_json.
Method:  every line is written by hand from ready parts (N-Quads of one event 0.4 µs; a serializer over term
         objects takes three times that). TriG and N-Quads put the stamp, prov:generatedAtTime in the
         default graph, before the event's graph, so that an output is a source. CSV has one table of all
         rules: time, rule, id, then the WITH variables in program order, each name once; terms as in SPARQL
         1.1 CSV results: an IRI or a literal's text bare, what a rule does not bind empty.
Why not: json.dumps: 2 µs an event; the round trip through json is tested instead.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring as json_string
from typing import Final, TypeAlias

from dotr.core.emit import Emission
from dotr.core.parts import Part
from dotr.core.templates import RuleTemplate
from dotr.events import Clock, Composite, Fact, Message, Template, Time
from dotr.io.json_events import Line, line_writer
from dotr.io.term_formatting import TermFormatter, json_terms
from dotr.ir import Rule
from dotr.rdf.memo import Memo
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, XSD, Term, Triple, is_literal, literal_parts

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


def csv_solutions(variables: Sequence[str], rows: Iterable[Sequence[Term | None]]) -> str:
    """The solutions of a query as SPARQL 1.1 CSV results have them, but for line ends: what is unbound is
    empty.
    """
    cells = (["" if term is None else _texts[term] for term in row] for row in rows)
    return _written([list(variables), *cells])


def _row(event: Composite, clock: Clock, places: Sequence[int], width: int) -> list[str]:
    row = [""] * width
    row[:3] = clock.text(event.time), event.rule, event.id
    for place, term in zip(places, event.bound, strict=True):
        row[place] = _texts[term]
    return row


def _written(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _text(term: Term) -> str:
    if is_literal(term):
        return literal_parts(term)[0]
    return term if term[0] == "_" else term[1:-1]


_texts: Memo[Term, str] = Memo(_text)


Formatter: TypeAlias = Callable[[Sequence[Composite], Clock], str]
"""Events as the characters that go to the sink, line ends included."""


def formatter(name: str, prefixes: Mapping[str, str], rules: Sequence[Rule] = ()) -> tuple[str, Formatter]:
    """(the beginning of an output, how events are written) of a format that is text. `rules` are those of
    the program: columns of a table are theirs.
    """
    if name == "text":
        short = TermFormatter({"xsd": XSD, **prefixes}, fresh=True)
        return "", lambda events, clock: "".join([f"{text(event, clock, short)}\n" for event in events])
    if name == "jsonl":
        return "", _JsonLines()
    if name == "trig":
        notation = TermFormatter(_with_prov(prefixes))
        return notation.header(), lambda events, clock: "".join([trig(e, clock, notation) for e in events])
    if name == "nquads":
        return "", nquads
    if name == "csv":
        return csv_formatter(rules)
    raise ValueError(name)


def _with_prov(prefixes: Mapping[str, str]) -> dict[str, str]:
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
    if isinstance(events, Emission):
        return "".join(events.nquads(clock))
    return "".join([e.template.quads(e.id, e.bound, clock.term(e.time)) for e in events])


class _JsonLines:
    """Owns the functions that write the events of each rule as `format_jsonl` does, with their line ends."""

    def __init__(self) -> None:
        self._writers: dict[Template, Line] = {}
        self._clock: Clock | None = None

    def __call__(self, events: Sequence[Composite], clock: Clock) -> str:
        if clock is not self._clock:
            self._clock = clock
            self._writers.clear()
        writers = self._writers
        return "".join([(writers.get(e.template) or self._writer(e.template, clock))(e) for e in events])

    def _writer(self, template: Template, clock: Clock) -> Line:
        if isinstance(template, RuleTemplate):
            made = line_writer(template, clock, _fact, lambda event: json_string(format_graph(event)))
        else:
            made = lambda event: f"{format_jsonl(event, clock)}\n"  # noqa: E731  # either is a function
        self._writers[template] = made
        return made


def format_jsonl(event: Composite, clock: Clock) -> str:
    """The JSON line of an event, without its end; keys in the order of cli.md."""
    bindings = ",".join([f"{json_string(name)}:{json_terms[term]}" for name, term in event.bindings])
    return (
        f'{{"rule":{json_string(event.rule)},"time":{_time(event.time, clock)},"id":{json_string(event.id)},'
        f'"bindings":{{{bindings}}},"match":{format_match(event, clock)},'
        f'"graph":{json_string(format_graph(event))}}}'
    )


def format_match(event: Composite, clock: Clock) -> str:
    """The `match` of a JSON line: an object."""
    facts = [f"{json_string(name)}:{_fact(variables, fact, clock)}" for name, variables, fact in event.match]
    return f"{{{','.join(facts)}}}"


def format_graph(event: Composite) -> str:
    """The event's graph as sorted N-Triples."""
    return "".join(sorted([f"{s} {p} {o} .\n" for s, p, o in event.graph]))


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
    return f'{{"time":{_time(time, clock)},"values":{{{pairs}}}{own}}}'


def _time(time: int, clock: Clock) -> str:
    return clock.text(time) if clock.integer else f'"{clock.text(time)}"'


def late_line(time: Time, part: Part, clock: Clock) -> str:
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

"""JSON lines of events by a generated function for each rule.

Place:   behind `format_jsonl` of event_formats.py, which says what a line is and writes what is unusual: a
         chosen event of a chained rule, an attribute without a value.
Method:  one f-string from ready parts: terms, times and escaped terms come from tables, and the order of the
         graph's lines is known beforehand where all are about the event and no property stands twice.
Why not: names and keys put together again for each event: 3 times the price.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from json.encoder import encode_basestring as json_string
from typing import TypeAlias

from dotr.codegen import Names, make
from dotr.core.templates import RuleTemplate
from dotr.events import Clock, Composite, Fact
from dotr.io.term_formatting import json_terms
from dotr.rdf.memo import Memo
from dotr.rdf.terms import Term

Line: TypeAlias = Callable[[Composite], str]
WriteFact: TypeAlias = Callable[[tuple[str, ...], Fact, Clock], str]
WriteGraph: TypeAlias = Callable[[Composite], str]


def _escaped(term: Term) -> str:
    return json_string(term)[1:-1]


escaped_terms: Memo[Term, str] = Memo(_escaped)


def line_writer(template: RuleTemplate, clock: Clock, fact: WriteFact, graph: WriteGraph) -> Line:
    """What writes the events of one rule, line ends included; `fact` and `graph` write what is unusual."""
    names = Names()
    times: Memo[int, str] = Memo(lambda t: f'"{clock.text(t)}"', 1 << 10)
    names.namespace |= {"T": times, "J": json_terms, "E": escaped_terms, "FACT": fact, "GRAPH": graph}
    names.namespace["CLOCK"] = clock
    parts = _Parts(names)
    facts = range(len(template.positions))
    lines = ["def line(event):", "    i = event.id", f"    t = {_text_of('event.time', clock)}"]
    if template.variables:
        lines.append(f"    {''.join(f'b{n}, ' for n in range(len(template.variables)))}= event.bound")
    lines.append(f"    {''.join(f'f{n}, ' for n in facts)}= event.facts")
    for n, (_, variables) in enumerate(template.positions):
        lines += _fact_lines(n, variables, names, clock)
    static = _graph_parts(template)
    if static is None:
        lines.append("    g = GRAPH(event)")
    parts.add(f'{{"rule":{json_string(template.rule)},"time":').local("t").add(',"id":"').local("i")
    parts.add('","bindings":{')
    for n, variable in enumerate(template.variables):
        parts.add(f"{',' if n else ''}{json_string(variable)}:").local(f"J[b{n}]")
    parts.add('},"match":{')
    for n, (name, _) in enumerate(template.positions):
        parts.add(f"{',' if n else ''}{json_string(name)}:").local(f"p{n}")
    parts.add('},"graph":')
    if static is None:
        parts.local("g")
    else:
        parts.add('"')
        for part in static:
            if isinstance(part, str):
                parts.add(_escaped(part))
            else:
                parts.local(part[0])
        parts.add('"')
    parts.add("}\n")
    lines.append(f"    return f'{parts.text()}'")
    written: Line = make("line", "\n".join([*lines, ""]), names)
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


def _fact_lines(n: int, variables: tuple[str, ...], names: Names, clock: Clock) -> list[str]:
    """`p{n}`: a position of the match."""
    parts = _Parts(names).add('{"time":').local(_text_of("w", clock)).add(',"values":{')
    for place, variable in enumerate(variables):
        parts.add(f"{',' if place else ''}{json_string(variable)}:").local(f"J[v[{place}]]")
    text = parts.add("}}").text()
    names.namespace[f"V{n}"] = variables
    return [
        f"    w, v, _, o = f{n}",
        f"    p{n} = FACT(V{n}, f{n}, CLOCK) if o or None in v else f'{text}'",
    ]


_ID = ("i",)
_Part: TypeAlias = str | tuple[str]
"""Constant text, or an expression of the generated function."""


def _graph_parts(template: RuleTemplate) -> list[_Part] | None:
    """The sorted N-Triples of an event: constants, `_ID`, and locals; None where their order depends on
    values.
    """
    predicates = [p for _, p, _ in template.build]
    about_the_event = all(s == 0 for s, _, _ in template.build)
    if template.repeats or not about_the_event or len(set(predicates)) < len(predicates):
        return None
    if not all(isinstance(p, str) for p in predicates):
        return None
    parts: list[_Part] = []
    for _, predicate, object_ in sorted(template.build, key=lambda triple: f"{triple[1]} "):
        parts += ["<", _ID, f"> {predicate} ", *_object_parts(object_, template), " .\n"]
    return parts


def _object_parts(object_: Term | int, template: RuleTemplate) -> Sequence[_Part]:
    if isinstance(object_, str):
        return [object_]
    if object_ == 0:
        return ["<", _ID, ">"]
    values = len(template.variables)
    if object_ < 2 + values:
        return [(f"E[b{object_ - 2}]",)]
    return ["<", _ID, f"{template.suffixes[object_ - 2 - values]}>"]

"""Every output format says the whole event, and quad formats and JSON lines are sources again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.events import Clock, Composite, Fact
from dotr.io.events import TermFormatter, format_jsonl, formatter, json_terms
from dotr.io.sources import SourceOptions, Sources
from dotr.rdf.terms import XSD, Term, Triple, canonical, iri, is_literal, literal, literal_parts

PREFIXES = {"": "urn:x:", "xsd": XSD, "odd": "urn:x:a", "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#"}
ID = "urn:dotr:Fire:" + "a" * 24
CLOCKS = [Clock(True, 1), Clock(True, 1_000_000), Clock(False)]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
iris = st.one_of(
    st.sampled_from(
        ["urn:x:a", "urn:x:", "urn:x:a.b", "urn:x:a.", "urn:x:é", "urn:x:a/b", "urn:x:-a", "http://e/?q=1#f"]
    )
).map(iri)
literals = st.one_of(
    texts.map(literal),
    texts.map(lambda text: literal(text, language="en-gb")),
    st.integers(-(2**63), 2**63 - 1).map(lambda n: literal(str(n), XSD + "integer")),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(
        lambda d: literal(format(d, "f"), XSD + "decimal")
    ),
    st.floats().map(lambda f: literal(repr(f).replace("inf", "INF").replace("nan", "NaN"), XSD + "double")),
    st.sampled_from(["true", "false", "maybe"]).map(lambda b: literal(b, XSD + "boolean")),
    texts.map(lambda text: literal(text, "urn:x:type")),
    texts.map(lambda text: literal(text, XSD + "integer")),
).map(canonical)
terms = st.one_of(iris, literals, st.sampled_from(["_:b0", "_:x1"]))
triples = st.tuples(st.one_of(iris, st.just(iri(ID)), st.just("_:b0")), iris, terms)


@dataclass(frozen=True)
class Fixed:
    """A template that makes one graph, whatever is asked of it."""

    rule: str
    variables: tuple[str, ...]
    positions: tuple[tuple[str, tuple[str, ...]], ...]
    triples: tuple[Triple, ...]

    def graph(self, _id: str, _bindings: tuple[str, ...]) -> tuple[Triple, ...]:
        return self.triples

    def quads(self, id_: str, _bindings: tuple[str, ...], stamp: str) -> str:
        head = f"<{id_}> <http://www.w3.org/ns/prov#generatedAtTime> {stamp} .\n"
        return head + "".join(f"{s} {p} {o} <{id_}> .\n" for s, p, o in self.triples)


def composite(
    rule: str,
    time: int,
    name: str,
    bindings: tuple[tuple[str, str], ...],
    match: tuple[tuple[str, tuple[str, ...], Fact], ...],
    graph: tuple[Triple, ...],
) -> Composite:
    template = Fixed(rule, tuple(n for n, _ in bindings), tuple((n, v) for n, v, _ in match), graph)
    return Composite(template, name, (0, time, tuple(f for _, _, f in match), tuple(t for _, t in bindings)))


@st.composite
def events(draw: st.DrawFn) -> Composite:
    number = draw(st.integers(0, 10**6))
    variables = ("room", "val")
    fact: Fact = (
        draw(st.integers(0, 99)) * 1_000_000,
        (draw(terms), draw(st.none() | terms)),
        0,
        draw(st.sampled_from(["", ID])),
    )
    return composite(
        rule="Fire",
        time=draw(st.integers(-99, 99)) * 1_000_000,
        name=f"urn:dotr:Fire:{number:024d}".replace("0", "a")
        .replace("1", "b")
        .replace("8", "c")
        .replace("9", "d"),
        bindings=(("v", draw(terms)),),
        match=(("Smoke", variables, fact),),
        graph=tuple(dict.fromkeys(draw(st.lists(triples, max_size=4)))),
    )


def written(name: str, many: list[Composite], clock: Clock) -> str:
    head, write = formatter(name, PREFIXES)
    return head + write(many, clock)


SUFFIX = {"jsonl": ".jsonl", "trig": ".trig", "nquads": ".nq"}


def read_back(name: str, text: str, clock: Clock, folder: Path) -> Sources:
    path = folder / f"out{SUFFIX[name]}"
    path.write_text(text, encoding="utf-8", newline="")
    return Sources([str(path)], SourceOptions(unit=clock.unit if clock.integer else 1))


@pytest.mark.parametrize("name", SUFFIX)
@given(
    many=st.lists(events(), min_size=1, max_size=4, unique_by=lambda event: event.id),
    clock=st.sampled_from(CLOCKS),
)
def test_an_output_reads_back_as_the_same_graphs_at_the_same_times(
    name: str, many: list[Composite], clock: Clock, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sources = read_back(name, written(name, many, clock), clock, tmp_path_factory.getbasetemp())
    assert [(graph.time, sorted(graph.triples)) for graph in sources] == [
        (event.time, sorted(event.graph)) for event in many
    ]
    assert sources.clock == clock or (sources.clock is not None and not clock.integer)


def as_json(term: Term) -> dict[str, str]:
    """A term as SPARQL 1.1 JSON results spell it, by the book."""
    if not is_literal(term):
        return (
            {"type": "uri", "value": term[1:-1]} if term[0] == "<" else {"type": "bnode", "value": term[2:]}
        )
    lexical, datatype, language = literal_parts(term)
    out = {"type": "literal", "value": lexical}
    if language:
        out["xml:lang"] = language
    elif datatype != XSD + "string":
        out["datatype"] = datatype
    return out


@given(events(), st.sampled_from(CLOCKS))
def test_a_json_line_is_what_the_json_module_would_write(event: Composite, clock: Clock) -> None:
    def time(value: int) -> int | str:
        return int(clock.text(value)) if clock.integer else clock.text(value)

    match = {}
    for name, variables, (when, values, _ordinal, id_) in event.match:
        bound = {v: as_json(t) for v, t in zip(variables, values, strict=True) if t is not None}
        match[name] = {"time": time(when), "values": bound} | ({"id": id_} if id_ else {})
    expected = {
        "rule": event.rule,
        "time": time(event.time),
        "id": event.id,
        "bindings": {name: as_json(term) for name, term in event.bindings},
        "match": match,
        "graph": "".join(sorted(f"{s} {p} {o} .\n" for s, p, o in event.graph)),
    }
    assert format_jsonl(event, clock) == json.dumps(expected, ensure_ascii=False, separators=(",", ":"))


FIRE = composite(
    rule="Fire",
    time=12_000_000,
    name=ID,
    bindings=(("room", "<urn:x:roomA>"),),
    match=(("Smoke", ("room",), (12_000_000, ("<urn:x:roomA>",), 0, "")), ("Tick", (), (0, (), 0, ""))),
    graph=(
        (iri(ID), "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<urn:x:Fire>"),
        (iri(ID), "<urn:x:at_room>", "<urn:x:roomA>"),
        (iri(ID), "<urn:x:at_room>", "<urn:x:room/B>"),
        (iri(ID + "-part"), "<urn:x:peak>", literal("70.5", XSD + "double")),
    ),
)


def test_text_is_the_papers_notation() -> None:
    assert written("text", [FIRE], Clock()) == (
        f"{{ {ID} a :Fire ; odd:t_room :roomA , <urn:x:room/B> . {ID}-part :peak 70.5e0 }} @ 12\n"
    )


def test_an_empty_graph_is_written_in_every_format(tmp_path: Path) -> None:
    empty = composite("Fire", 0, ID, (), (), ())
    assert written("text", [empty], Clock()) == "{ } @ 0\n"
    for name in SUFFIX:
        (graph,) = read_back(name, written(name, [empty], Clock()), Clock(), tmp_path)
        assert graph.triples == []


def test_stamps_stand_in_the_default_graph_before_their_graph() -> None:
    lines = written("nquads", [FIRE], Clock()).splitlines()
    assert lines[0] == f'<{ID}> <http://www.w3.org/ns/prov#generatedAtTime> "12"^^<{XSD}integer> .'
    assert all(line.endswith(f"<{ID}> .") for line in lines[1:])


def test_prefixes_that_turtle_does_not_know_are_not_used() -> None:
    notation = TermFormatter({"ok": "urn:ok:", "not ok": "urn:bad:", "-": "urn:minus:"})
    assert [notation.term(f"<urn:{name}:x>") for name in ("ok", "bad", "minus")] == [
        "ok:x",
        "<urn:bad:x>",
        "<urn:minus:x>",
    ]


def test_the_longest_namespace_wins() -> None:
    assert TermFormatter(PREFIXES).term("<urn:x:ab>") == "odd:b"


def test_json_of_a_term_is_kept_but_not_for_ever() -> None:
    for i in range(40_000):
        json_terms[f"<urn:{i}>"]
    assert len(json_terms) <= 1 << 15

"""Every golden case under every treatment: one expected result, however the stream is cut, ordered or run.

Place:   the first of the four nets. A case is a folder `tests/golden/<topic>/<case>/`: `rules.dotr` (its
         first line says which sentence of the contract it pins) with what it names, `stream.jsonl`,
         `expected.txt`, and sometimes `options.yaml` and `expected.jsonl`.
Method:  the expected text was derived by hand from the contract, never from an engine: one line an event,
         `Rule @ time WITH values | Position@time(attributes) …`, blank nodes numbered as they appear. Where
         `options.yaml` says `graphs: true`, the event's triples follow, `id` standing for its identifier.
         `expected.jsonl` pins whole lines, identifiers included.
Options: `time-unit`, `lateness`, `advance` (a last `advance(t)` before the end), `then` (`at` and the
         `rules` that hold from there on), `treatments` (those that apply; default all), `counts` (of
         `Engine.counters`), `graphs`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from unittest import mock

import pyoxigraph as ox
import pytest
import yaml
from click.testing import CliRunner
from msgspec.structs import replace

import dotr
from dotr.cli.main import group
from dotr.enrich import maintenance, materialiser
from dotr.enrich.closing import Closed, close_background
from dotr.extract import algebra
from dotr.lang.printer import format_text
from dotr.program import Select
from dotr.rdf import index
from dotr.rdf import mapped as mapped_columns
from dotr.rdf.index import Background
from dotr.source import Source

GOLDEN = Path(__file__).parent / "golden"
XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = {"ex:": ":", XSD: "xsd:"}
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
BARE = {
    XSD + "integer": re.compile(r"[+-]?\d+"),
    XSD + "decimal": re.compile(r"[+-]?\d*\.\d+"),
    XSD + "boolean": re.compile(r"true|false"),
}


class Graph(NamedTuple):
    """A message: the texts of its parts, None where it has none."""

    at: int | str
    text: str | None
    insert: str | None = None
    delete: str | None = None

    def push(self, engine: dotr.Engine) -> Sequence[Any]:
        return engine.push(self.text, at=self.at, insert=self.insert, delete=self.delete)


class Outcome(NamedTuple):
    """The JSON lines of a run in order, and its counters (None where the runner shows none)."""

    lines: list[str]
    counts: Mapping[str, int] | None


@dataclass(frozen=True)
class Case:
    folder: Path

    @property
    def name(self) -> str:
        return str(self.folder.relative_to(GOLDEN))

    @property
    def rules(self) -> Path:
        return self.folder / "rules.dotr"

    @property
    def source(self) -> Path:
        return self.folder / "stream.jsonl"

    @property
    def expected(self) -> str:
        return (self.folder / "expected.txt").read_text(encoding="utf-8")

    @cached_property
    def options(self) -> dict[str, Any]:
        file = self.folder / "options.yaml"
        return yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}

    @cached_property
    def stream(self) -> list[Graph]:
        lines = map(json.loads, self.source.read_text(encoding="utf-8").splitlines())
        return [
            Graph(line["time"], line.get("graph"), line.get("insert"), line.get("delete")) for line in lines
        ]

    def applies(self, treatment: str) -> bool:
        if "treatments" in self.options:
            return treatment in self.options["treatments"]
        if treatment in ("feed", "run") and "advance" in self.options:
            return False  # a source has no advance: it ends at its last timestamp
        return treatment != "late"

    def engine(self, **options: Any) -> dotr.Engine:
        engine = dotr.Engine(str(self.rules), time_unit=self.options.get("time-unit", "s"), **options)
        if "then" in self.options:
            then = self.options["then"]
            engine.replace(str(self.folder / then["rules"]), at=then["at"])
        return engine

    def instants(self) -> Iterator[list[Graph]]:
        """The graphs of one time together, in the order of the stream."""
        instant: list[Graph] = []
        for graph in self.stream:
            if instant and instant[-1].at != graph.at:
                yield instant
                instant = []
            instant.append(graph)
        if instant:
            yield instant


def ended(case: Case, engine: dotr.Engine, events: list[Any]) -> Outcome:
    """The end of a run: what `advance` of the options and the end of the input close."""
    if "advance" in case.options:
        events += engine.advance(case.options["advance"])
    events += engine.finish()
    return Outcome([event.to_json() for event in events], counts(engine))


def counts(engine: dotr.Engine) -> dict[str, int]:
    counters = engine.counters
    return {
        name: getattr(counters, name)
        for name in ("graphs", "late", "dropped", "useless_deletes", "not_held", "not_stated", "ineffective")
    }


def pushed(case: Case, engine: dotr.Engine) -> Outcome:
    events: list[Any] = []
    for graph in case.stream:
        events += graph.push(engine)
    return ended(case, engine, events)


def push(case: Case) -> Outcome:
    """One push per graph; an instant is closed by the next timestamp."""
    return pushed(case, case.engine())


def late(case: Case) -> Outcome:
    """One push per graph, with the case's own lateness; late graphs are dropped."""
    return pushed(case, case.engine(lateness=case.options.get("lateness"), late="drop"))


def advance(case: Case) -> Outcome:
    """Every instant closed at once by `advance`, before the next graph is known."""
    engine = case.engine()
    events: list[Any] = []
    for instant in case.instants():
        for graph in instant:
            events += graph.push(engine)
        events += engine.advance(instant[0].at)
    return ended(case, engine, events)


def arrival(case: Case) -> Outcome:
    """The graphs of one instant arrive in the opposite order."""
    engine = case.engine()
    events: list[Any] = []
    for instant in case.instants():
        for graph in reversed(instant):
            events += graph.push(engine)
    return ended(case, engine, events)


def disorder(case: Case) -> Outcome:
    """The whole stream backwards, inside the lateness."""
    engine = case.engine(lateness="1000 d")
    events: list[Any] = []
    for graph in reversed(case.stream):
        events += graph.push(engine)
    return ended(case, engine, events)


def feed(case: Case) -> Outcome:
    """The file through `feed`, all at once."""
    engine = case.engine()
    return Outcome([event.to_json() for event in engine.feed(str(case.source))], counts(engine))


def run(case: Case) -> Outcome:
    """The command line, JSON lines."""
    unit = case.options.get("time-unit", "s")
    result = CliRunner().invoke(
        group, ["run", str(case.rules), str(case.source), "--format", "jsonl", "--time-unit", unit]
    )
    assert result.exception is None, result.exception
    return Outcome(result.stdout.splitlines(), None)


def restart(case: Case) -> Outcome:
    """A snapshot after every push, and a new engine that goes on from it."""
    lateness = case.options.get("lateness")
    engine = case.engine(lateness=lateness)
    events: list[Any] = []
    for graph in case.stream:
        events += graph.push(engine)
        engine = case.engine(lateness=lateness, snapshot=engine.snapshot())
    return ended(case, engine, events)


def unpruned(case: Case) -> Outcome:
    """Everything materialised, also what no query reaches."""
    return pushed(case, case.engine(materialize="all"))


def verified(case: Case) -> Outcome:
    """With the literal oracle beside the engine, which stops at the first difference.

    It evaluates every point of a silence: hours of them take more than the usual budget.
    """
    return pushed(case, case.engine(verify=True, budget=1_000_000_000))


def interpreted(case: Case) -> Outcome:
    """Every query interpreted, nothing compiled."""

    def refuse(_select: Select) -> NoReturn:
        raise algebra.Refused("the interpreter is wanted")

    with mock.patch.object(algebra, "_translated", refuse):
        return pushed(case, case.engine())


def mapped(case: Case) -> Outcome:
    """The closed background read from a file, lookups remembering nearly nothing."""

    def close(*args: Any, **more: Any) -> Closed:
        closed = close_background(*args, **more)
        return replace(closed, index=Background.load(closed.index.save()))

    with (
        mock.patch.object(index, "LARGE", 0),
        mock.patch.object(mapped_columns, "REMEMBERED", 2),
        mock.patch.object(mapped_columns, "_SPREAD", 2),
        mock.patch.object(materialiser, "close_background", close),
        mock.patch.object(maintenance, "close_background", close),
    ):
        return pushed(case, case.engine())


def printed(case: Case) -> Outcome:
    """The program as `dotr fmt` writes it, parsed again."""
    text = format_text(Source(str(case.rules), case.rules.read_text(encoding="utf-8")))
    unit = case.options.get("time-unit", "s")
    return pushed(case, dotr.Engine.from_text(text, name=str(case.rules), time_unit=unit))


TREATMENTS: Mapping[str, Callable[[Case], Outcome]] = {
    function.__name__: function
    for function in (
        push,
        late,
        advance,
        arrival,
        disorder,
        feed,
        restart,
        unpruned,
        verified,
        run,
        interpreted,
        mapped,
        printed,
    )
}
CASES = [Case(file.parent) for file in sorted(GOLDEN.glob("*/*/stream.jsonl"))]


@pytest.mark.parametrize(
    ("treatment", "case"),
    [
        pytest.param(treatment, case, id=f"{case.name}-{treatment}")
        for case in CASES
        for treatment in TREATMENTS
        if case.applies(treatment)
    ],
)
def test_events_are_the_ones_derived_by_hand(treatment: str, case: Case) -> None:
    outcome = TREATMENTS[treatment](case)
    assert "".join(Writer(case.options.get("graphs", False)).lines(outcome.lines)) == case.expected
    identifiers = [json.loads(line)["id"] for line in outcome.lines]
    assert len(set(identifiers)) == len(identifiers), "two composite events have one identifier"
    if outcome.counts is not None:
        for name, count in case.options.get("counts", {}).items():
            assert outcome.counts[name] == count, name
    pinned = case.folder / "expected.jsonl"
    if pinned.exists():
        assert "".join(f"{line}\n" for line in outcome.lines) == pinned.read_text(encoding="utf-8")


def test_there_is_a_case_for_every_sentence_of_the_language() -> None:
    assert len(CASES) >= 100
    for case in CASES:
        first = case.rules.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("# "), f"{case.name}: the first line says what the case pins"


class Writer:
    """Owns the numbering of blank nodes of one expected text."""

    def __init__(self, graphs: bool) -> None:
        self._graphs = graphs
        self._blanks: dict[str, int] = {}

    def lines(self, events: list[str]) -> Iterator[str]:
        for line in events:
            event = json.loads(line)
            bindings = "".join(f" {name}={self.term(term)}" for name, term in event["bindings"].items())
            facts = " ".join(self.fact(name, fact) for name, fact in event["match"].items())
            yield f"{event['rule']} @ {event['time']}{bindings} | {facts}\n"
            if self._graphs:
                yield from sorted(f"  {triple}\n" for triple in self.triples(event["graph"], event["id"]))

    def fact(self, name: str, fact: Mapping[str, Any]) -> str:
        values = " ".join(f"{variable}={self.term(term)}" for variable, term in fact["values"].items())
        return f"{name}@{fact['time']}({values})"

    def term(self, term: Mapping[str, str] | list[Mapping[str, str]]) -> str:
        if isinstance(term, list):
            return f"[{' '.join(map(self.term, term))}]"
        value = term["value"]
        if term["type"] == "uri":
            return self.iri(value)
        if term["type"] == "bnode":
            return f"_:{self._blanks.setdefault(value, len(self._blanks) + 1)}"
        datatype, language = term.get("datatype", ""), term.get("xml:lang", "")
        if datatype in BARE and BARE[datatype].fullmatch(value):
            return value
        quoted = json.dumps(value, ensure_ascii=False)
        if language:
            return f"{quoted}@{language}"
        return f"{quoted}^^{self.iri(datatype)}" if datatype else quoted

    @staticmethod
    def iri(value: str) -> str:
        for namespace, prefix in PREFIXES.items():
            if value.startswith(namespace):
                return prefix + value[len(namespace) :]
        return f"<{value}>"

    def triples(self, ntriples: str, identifier: str) -> Iterator[str]:
        """N-Triples in the notation above, read with another reader, to hold the writer to its word."""
        for triple in ox.parse(ntriples, format=ox.RdfFormat.N_TRIPLES):
            yield " ".join(self.node(node, identifier) for node in triple.triple)

    def node(self, node: Any, identifier: str) -> str:
        if isinstance(node, ox.NamedNode):
            if node.value == RDF_TYPE:
                return "a"
            if node.value.startswith(identifier):
                return "id" + node.value[len(identifier) :]
            return self.iri(node.value)
        if isinstance(node, ox.BlankNode):
            return self.term({"type": "bnode", "value": node.value})
        literal = {"type": "literal", "value": node.value}
        if node.language:
            literal["xml:lang"] = node.language
        elif node.datatype.value != XSD + "string":
            literal["datatype"] = node.datatype.value
        return self.term(literal)

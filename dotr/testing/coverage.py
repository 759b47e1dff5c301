"""What the tests of a suite made true and made false, and what none of them did.

Place:   asked by `dotr test --coverage`; tracing.py has counted.
Method:  a query is covered once it has had a fact; a conjunct that chooses or counts, once it left a match;
         NOT, ON and WHERE once they were true and once they were false; a Datalog rule once its body had a
         solution at some instant of a test (asked as a query of the state, in a run of its own).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from dotr import ir
from dotr.core.deployment import Deployment, Settings
from dotr.core.fact_batch import Facts
from dotr.errors import DotrError
from dotr.events import Time
from dotr.rdf.terms import literal
from dotr.source import Span
from dotr.testing.case_runs import Bench, CaseOutcome, run_all
from dotr.testing.tracing import ON, WHERE, Trace, conjunct_name


class Item(Struct, frozen=True):
    """Something that tests should do. `what` says what none of them did, if `covered` is false."""

    what: str
    covered: bool
    span: Span | None


def coverage(bench: Bench, outcomes: Sequence[CaseOutcome]) -> list[Item]:
    """Everything that the tests of a suite should do, in program order."""
    program = bench.program
    tracers = [outcome.tracer for outcome in outcomes if outcome.tracer is not None]
    answered = {name for tracer in tracers for name in tracer.answered}
    items = [
        Item(f"query {name} had no fact", name in answered, select.span)
        for name, select in program.selects.items()
    ]
    for number, rule in enumerate(program.rules):
        trace = Trace(rule)
        for tracer in tracers:
            trace.add(tracer.traced[number].trace)
        items += _of_rule(trace)
    return items + _of_datalog(bench, outcomes)


def _of_rule(trace: Trace) -> Iterator[Item]:
    rule = trace.rule
    for number, conjunct in enumerate(rule.conjuncts):
        name = f"rule {rule.name}: {conjunct_name(conjunct)}"
        if isinstance(conjunct, ir.Absent):
            yield Item(f"{name} let no match pass", trace.stages[number] > 0, conjunct.span)
            yield Item(f"{name} stopped no match", trace.stopped[number] > 0, conjunct.span)
        elif isinstance(conjunct, ir.Choose):
            yield Item(f"{name} chose nothing", trace.stages[number] > 0, conjunct.span)
            yield Item(f"{name} always found something", trace.stopped[number] > 0, conjunct.span)
        if conjunct.on is not None and not isinstance(conjunct.on, ir.Const):
            yield from _both(f"{name}: ON", trace, (ON, number), conjunct.span)
    if rule.where is not None:
        yield from _both(f"rule {rule.name}: WHERE", trace, (WHERE, 0), rule.span)
    yield Item(f"rule {rule.name} had no event", trace.events > 0, rule.span)


def _both(name: str, trace: Trace, asked: tuple[str, int], span: Span | None) -> Iterator[Item]:
    yield Item(f"{name} was never true", asked in trace.true, span)
    yield Item(f"{name} was never false", asked in trace.false, span)


def _of_datalog(bench: Bench, outcomes: Iterable[CaseOutcome]) -> list[Item]:
    program = bench.program
    bodies = {f"_d{n}": _body(rule) for n, rule in enumerate(program.datalog) if rule.body}
    if not bodies:
        return []
    asked = replace(program, rules=(), dependencies=(), queries=bodies, standing={})
    fired: set[str] = set()

    def look(_time: Time, facts: Facts, _graph: bool) -> Facts:
        fired.update(stream for stream, found in facts.items() if found)
        return facts

    deployment = Deployment(asked, bench.background, Settings(apart=True))
    for outcome in outcomes:
        if outcome.given is not None:
            try:
                run_all(deployment, outcome.given, bench.suite.lateness, look)
            except DotrError:
                continue  # the case has failed with it
    return [
        Item(f"Datalog rule {_heads(rule)} derived nothing", f"_d{number}" in fired, rule.span)
        for number, rule in enumerate(program.datalog)
        if rule.body
    ]


def _heads(rule: ir.DatalogRule) -> str:
    return f"at line {rule.span.source.position(rule.span.start)[0]}" if rule.span is not None else ""


def _body(rule: ir.DatalogRule) -> ir.Select:
    """A query that has an answer where the body of a rule has a solution."""
    one = ir.Projection(ir.Var("x"), ir.Const(literal("1", "http://www.w3.org/2001/XMLSchema#integer")))
    elements = [element for item in rule.body for element in _elements(item)]
    return ir.Select((one,), ir.GroupPattern(tuple(elements)), distinct=True)


def _elements(item: ir.BodyAtom) -> Iterator[ir.Triples | ir.Filter | ir.Bind]:
    match item:
        case ir.Atom():
            yield _triples(item)
        case ir.NotAtom(atom=atom):
            yield ir.Filter(ir.Exists(ir.GroupPattern((_triples(atom),)), negated=True))
        case ir.FilterAtom(condition=condition):
            yield ir.Filter(condition)
        case ir.BindAtom(expression=expression, variable=variable):
            yield ir.Bind(expression, variable)
        case ir.AggregateAtom(body=body):
            for inner in body:
                yield from _elements(inner)


def _triples(atom: ir.Atom) -> ir.Triples:
    return ir.Triples((ir.TriplePattern(atom.subject, atom.predicate, atom.object),))


def covered(items: Sequence[Item]) -> tuple[int, int]:
    """How many items are covered, and of how many."""
    return sum(item.covered for item in items), len(items)

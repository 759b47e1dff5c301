"""What `dotr test` prints: failures with their reasons, coverage, JUnit.

Place:   over cases.py, and tracing.py, which counts for the coverage; nothing here depends on the clock.
Method:  reasons: why an event came that should not have, or did not come, by explain/ over the stream of the
         case, for the first failures of a case only, since each costs another run of it. Given facts have no
         graphs to explain them; how far the rule came is reported in any case.
         Coverage (`dotr test --coverage`): what the tests of a suite made true and false, and what none of
         them did. A query is covered once it has had a fact; a conjunct that chooses or counts, once it left
         a match; NOT, ON and WHERE once they were true and once they were false; a Datalog rule once its body
         had a solution at some instant of a test (asked as a query of the state, in a separate run).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from xml.etree import ElementTree

from msgspec import Struct, field
from msgspec.structs import replace

from dotr import program
from dotr.core.deployment import Deployment, Settings
from dotr.core.instant import Facts
from dotr.errors import DotrError
from dotr.events import Composite, Time
from dotr.explain.matches import Explainer
from dotr.explain.proofs import Missing, TripleProof, WhyNot
from dotr.explain.record import Graph, History, KeptEvent
from dotr.explain.solutions import Text
from dotr.explain.text import Renderer, drawn, pruned
from dotr.extract.printing import Writer
from dotr.io.events import TermFormatter
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import Triple, literal
from dotr.source import Span
from dotr.testing.cases import (
    Bench,
    CaseOutcome,
    Failure,
    Given,
    Wanted,
    paired,
    run_all,
    sequences_of,
)
from dotr.testing.tracing import ON, WHERE, Trace, conjunct_name, stages_text

_DEPTH = 2


def because(bench: Bench, outcome: CaseOutcome, failure: Failure) -> str:
    """The reason as text, "" where there is nothing to say."""
    given = outcome.given
    if given is None:
        return ""
    lines = [_explained(bench, given, outcome, failure)] if _is_explained(outcome) else []
    rule = failure.missing.rule if failure.missing is not None else ""
    for trace in [] if outcome.tracer is None else [t.trace for t in outcome.tracer.traced]:
        if trace.rule.name == rule:
            lines.append(f"over the whole test: {stages_text(trace)}")
    return "\n".join(line.rstrip("\n") for line in lines if line)


def _is_explained(outcome: CaseOutcome) -> bool:
    """Whether what came was messages, which alone are explained."""
    return outcome.given is not None and not outcome.case.gives_facts


def _came(missing: Wanted, outcome: CaseOutcome) -> bool:
    """Whether its rule had an event at that time, which has other values."""
    return any(event.rule == missing.rule and event.time == missing.time for event in outcome.events)


def _explained(bench: Bench, given: Given, outcome: CaseOutcome, failure: Failure) -> str:
    try:
        if failure.event is not None:
            wanted = failure.event.id
            history = _history(bench, given, lambda event: event.id == wanted)
            explainer, renderer = _explainer(history, bench)
            return (
                ""
                if history.wanted_event is None
                else _drawn(renderer, explainer.event(history.wanted_event))
            )
        missing = failure.missing
        if missing is not None and missing.time is not None and not _came(missing, outcome):
            ended = _ended(bench, given, missing)
            if ended:
                return ended
            history = _history(bench, given, lambda event: False)
            explainer, renderer = _explainer(history, bench)
            found = explainer.why_not(missing.rule, missing.time, missing.values)
            return "\n".join(_drawn(renderer, one) for one in found[:3])
        if failure.state is not None:
            history = _history(bench, given, lambda event: False, everything=True)
            explainer, renderer = _explainer(history, bench)
            triples = explainer.triples(failure.state.triple, failure.state.time)
            return _drawn(renderer, triples if isinstance(triples, Missing) else triples[0])
    except DotrError:
        return ""
    return ""


def _ended(bench: Bench, given: Given, missing: Wanted) -> str:
    """That nothing is evaluated so late; "" if it is: the end of input closes the point of the last fact."""
    time = missing.time
    assert time is not None, "it is expected at a time"
    last, step = time if given.end is None else given.end, given.clock.unit
    if bench.program.lars.rules:
        step = bench.program.lars.step or step
        last = -(-last // step) * step
    if time <= last:
        return ""
    end, at = given.clock.text(last), given.clock.text(time)
    if missing.rule in sequences_of(bench.program):
        return f"the stream ends at {end}: let time go on with `until: {at}`"
    return f"the stream ends at {end}: end it with a message at {at}, such as one without triples"


def _history(
    bench: Bench, given: Given, wanted: Callable[[KeptEvent], bool], everything: bool = False
) -> History:
    history = History(
        bench.program,
        bench.background,
        wanted=wanted,
        until=None if given.until is None else given.end,
        lateness=bench.suite.lateness,
        everything=everything,
    )
    graphs = (Graph(timed.time, timed.part, timed.place) for timed in given.stream)
    history.run(graphs, lambda: given.clock)
    return history


def _explainer(history: History, bench: Bench) -> tuple[Explainer, Renderer]:
    writer = Writer(bench.prefixes)

    def place(triple: Triple, time: Time | None) -> str:
        if time is None:
            return ""
        return next((g.place for g in history.graphs(time) if triple in g.triples), "")

    text = Text(writer.term, writer.expression, writer.path)
    return Explainer(history, text), Renderer(bench.prefixes, history.clock, place)


def _drawn(renderer: Renderer, found: WhyNot | TripleProof | Missing) -> str:
    return drawn(pruned(renderer.node(found), _DEPTH))


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
    if isinstance(rule.trigger, RowPattern):
        yield from _of_sequence(trace, rule.trigger)
        return
    for number, conjunct in enumerate(rule.conjuncts):
        name = f"rule {rule.name}: {conjunct_name(conjunct)}"
        if isinstance(conjunct, program.Absent):
            yield Item(f"{name} let no match pass", trace.stages[number] > 0, conjunct.span)
            yield Item(f"{name} stopped no match", trace.lacked[number] > 0, conjunct.span)
        elif isinstance(conjunct, program.Choose):
            found = trace.stages[number] - (trace.lacked[number] if conjunct.optional else 0)
            yield Item(f"{name} chose nothing", found > 0, conjunct.span)
            yield Item(f"{name} always found something", trace.lacked[number] > 0, conjunct.span)
        if conjunct.on is not None and not isinstance(conjunct.on, program.Const):
            yield from _both(f"{name}: ON", trace, (ON, number), conjunct.span)
    if rule.where is not None:
        yield from _both(f"rule {rule.name}: WHERE", trace, (WHERE, 0), rule.span)
    yield Item(f"rule {rule.name} had no event", trace.events > 0, rule.span)


def _of_sequence(trace: Trace, pattern: RowPattern) -> Iterator[Item]:
    name = f"sequence {trace.rule.name}"
    for number, element in enumerate(pattern.elements):
        yield Item(
            f"{name}: {element.name} got no row", element.name in trace.given, element.span or pattern.span
        )
        if element.on is not None and not isinstance(element.on, program.Const):
            yield from _both(f"{name}: ON of {element.name}", trace, (ON, number), element.span)
    yield Item(f"{name} had no match", trace.events > 0, trace.rule.span)


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


def _heads(rule: program.DatalogRule) -> str:
    return f"at line {rule.span.source.position(rule.span.start)[0]}" if rule.span is not None else ""


def _body(rule: program.DatalogRule) -> program.Select:
    """A query that has an answer where the body of a rule has a solution."""
    one = program.Projection(
        program.Var("x"), program.Const(literal("1", "http://www.w3.org/2001/XMLSchema#integer"))
    )
    elements = [element for item in rule.body for element in _elements(item)]
    return program.Select((one,), program.GroupPattern(tuple(elements)), distinct=True)


def _elements(item: program.BodyAtom) -> Iterator[program.Triples | program.Filter | program.Bind]:
    match item:
        case program.Atom():
            yield _triples(item)
        case program.NotAtom(atom=atom):
            yield program.Filter(program.Exists(program.GroupPattern((_triples(atom),)), negated=True))
        case program.FilterAtom(condition=condition):
            yield program.Filter(condition)
        case program.BindAtom(expression=expression, variable=variable):
            yield program.Bind(expression, variable)
        case program.AggregateAtom(body=body):
            for inner in body:
                yield from _elements(inner)


def _triples(atom: program.Atom) -> program.Triples:
    return program.Triples((program.TriplePattern(atom.subject, atom.predicate, atom.object),))


def covered(items: Sequence[Item]) -> tuple[int, int]:
    """How many items are covered, and of how many."""
    return sum(item.covered for item in items), len(items)


_EXPLAINED = 3
"""Failures of a case that are explained; the others are said."""

_SHOWN = 20


class SuiteReport(Struct):
    """A suite that has run."""

    bench: Bench
    outcomes: list[CaseOutcome] = field(default_factory=list)
    _items: list[Item] | None = None

    @property
    def items(self) -> list[Item]:
        """What its tests cover; found out when it is first asked for."""
        if self._items is None:
            self._items = coverage(self.bench, self.outcomes)
        return self._items

    @property
    def failed(self) -> int:
        return sum(not outcome.passed for outcome in self.outcomes)


def run_suite(bench: Bench, done: Callable[[CaseOutcome], None] = lambda outcome: None) -> SuiteReport:
    """Run all tests of a suite. Raises ProgramError, DataError for its rules and background."""
    _ = bench.deployment
    report = SuiteReport(bench)
    for case in bench.suite.cases:
        outcome = bench.run(case)
        report.outcomes.append(outcome)
        done(outcome)
    return report


def failure_text(bench: Bench, outcome: CaseOutcome) -> str:
    """Everything that is wrong with a test, with reasons; no newline at the end."""
    lines = [f"FAILED {bench.suite.path} · {outcome.case.name}"]
    if outcome.error is not None:
        lines += [f"  {line}" for one in outcome.error.diagnostics for line in one.render().splitlines()]
    terms = TermFormatter(bench.prefixes)
    for number, failure in enumerate(outcome.failures[:_SHOWN]):
        lines.append(f"  {failure.span}: {_headline(failure, outcome, terms)}")
        if failure.missing is not None:
            lines += [
                f"    instead: {event_text(e, terms, outcome)}" for e in _near(failure.missing, outcome)
            ]
        if number < _EXPLAINED:
            lines += [f"    {line}" for line in because(bench, outcome, failure).splitlines()]
    if len(outcome.failures) > _SHOWN:
        lines.append(f"  and {len(outcome.failures) - _SHOWN} more")
    return "\n".join(lines)


def _headline(failure: Failure, outcome: CaseOutcome, terms: TermFormatter) -> str:
    if failure.event is not None:
        return f"+ {event_text(failure.event, terms, outcome)}   {failure.message}"
    if failure.missing is not None:
        return f"- {wanted_text(failure.missing, terms, outcome)}   {failure.message}"
    return failure.message


def event_text(event: Composite, terms: TermFormatter, outcome: CaseOutcome) -> str:
    """An event on a line: `Fire @ 12  ?room :room23`."""
    assert outcome.given is not None
    values = " ; ".join(f"?{name} {terms.term(term)}" for name, term in event.bindings)
    return f"{event.rule} @ {outcome.given.clock.text(event.time)}  {values}".rstrip()


def wanted_text(wanted: Wanted, terms: TermFormatter, outcome: CaseOutcome) -> str:
    """An expectation on a line."""
    assert outcome.given is not None
    values = " ; ".join(f"?{name} {terms.term(term)}" for name, term in wanted.values.items())
    when = "" if wanted.time is None else f" @ {outcome.given.clock.text(wanted.time)}"
    return f"{wanted.rule}{when}  {values}".rstrip()


def _near(wanted: Wanted, outcome: CaseOutcome) -> list[Composite]:
    """Events of the same rule that no expectation took, those of the same time first."""
    assert outcome.given is not None
    taken = set(paired(outcome.given.expect, outcome.events).values())
    free = [event for number, event in enumerate(outcome.events) if number not in taken]
    same = [event for event in free if event.rule == wanted.rule]
    return sorted(same, key=lambda event: event.time != wanted.time)[:3]


def coverage_text(report: SuiteReport) -> str:
    """What the tests cover, and a line for each thing that they do not."""
    done, all_ = covered(report.items)
    share = 100 * done // all_ if all_ else 100
    lines = [f"{report.bench.suite.path}: {done} of {all_} covered ({share} %)"]
    lines += [f"  {item.span or ''}  {item.what}".rstrip() for item in report.items if not item.covered]
    return "\n".join(lines)


def junit(reports: Sequence[SuiteReport], refused: Mapping[str, DotrError] | None = None) -> str:
    """JUnit XML, as build servers read it; a test file that was refused is an error of its own."""
    root = ElementTree.Element("testsuites")
    for path, error in (refused or {}).items():
        suite = ElementTree.SubElement(root, "testsuite", name=path, tests="1", failures="0", errors="1")
        case = ElementTree.SubElement(suite, "testcase", classname=path, name=path)
        found = ElementTree.SubElement(case, "error", message=_printable(error.diagnostics[0].message))
        found.text = _printable("\n".join(one.render() for one in error.diagnostics))
    for report in reports:
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=report.bench.suite.path,
            tests=str(len(report.outcomes)),
            failures=str(sum(bool(outcome.failures) for outcome in report.outcomes)),
            errors=str(sum(outcome.error is not None for outcome in report.outcomes)),
        )
        for outcome in report.outcomes:
            case = ElementTree.SubElement(
                suite, "testcase", classname=report.bench.suite.path, name=outcome.case.name
            )
            if not outcome.passed:
                kind = "error" if outcome.error is not None else "failure"
                text = failure_text(report.bench, outcome)
                found = ElementTree.SubElement(case, kind, message=_printable(text.splitlines()[-1].strip()))
                found.text = _printable(text)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(
        c
        for c in text
        if (c >= " " or c in "\n\t") and c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff"
    )

"""Run a test case: its stream through the rules of its suite, compared with what was expected.

Place:   called by `dotr test` and the pytest plugin; reports.py explains the differences.
         `dotr test --record` writes today's behaviour as a test file.
Method:  the pipeline that every runner drives. Rules that are PRIVATE are visible to tests, which may expect
         their events; since they are never emitted, `only` does not concern them. Given facts take the place
         of graphs: only the temporal part is tested then. What K(t) must contain is asked by ground queries
         in a separate run, so that what lasts is in it.
Bad input: D4402 a name that the program does not have · D4403 a term, a graph or a time that cannot be read.
"""

from __future__ import annotations

import json
import posixpath
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from dotr.core.deployment import Deployment, Settings
from dotr.core.instant import Facts
from dotr.core.pipeline import AHEAD, FactsAt, Pipeline, PipelineObserver, drive
from dotr.errors import DataError, DotrError
from dotr.events import Clock, Composite, Fact, GraphOrMessage, Time, message_of
from dotr.expressions.operators import equal
from dotr.extract.sharing import facts_of
from dotr.io.decode.rdf import parse_triples
from dotr.io.events import TermFormatter
from dotr.io.rules_and_background import RuleTexts, read_background
from dotr.io.show import term_hint
from dotr.io.sources import SourceOptions, Sources
from dotr.io.tables.mapping import read_mapping
from dotr.io.time import TimeError, parse_text
from dotr.io.yaml_nodes import Scalar
from dotr.lang import load_program
from dotr.lang.grammar.cursor import nearest
from dotr.program import (
    Const,
    GroupPattern,
    Program,
    Projection,
    Rule,
    Select,
    TriplePattern,
    Triples,
    Var,
)
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import Term, Triple, is_blank, is_list, list_of, literal, members, size_of_list
from dotr.rdf.values import decode
from dotr.source import Span
from dotr.testing.suite import (
    Case,
    ExpectedEvent,
    FactsStep,
    FilesStep,
    GivenFact,
    MessageStep,
    Suite,
)
from dotr.testing.tracing import Tracer

_FACT = Var("x")


class Timed(Struct, frozen=True):
    """What comes at a time. `place`: where it is written."""

    time: Time
    part: GraphOrMessage
    place: str = ""


class Wanted(Struct, frozen=True):
    """An expected event, read: `time` None at any time; `values` by attribute."""

    rule: str
    time: Time | None
    values: Mapping[str, Term]
    span: Span

    def fits(self, event: Composite) -> bool:
        """Whether an event is as expected: numbers by value, other terms by identity."""
        if event.rule != self.rule or self.time not in (None, event.time):
            return False
        bound = dict(event.bindings)
        return all(same_value(bound[name], term) for name, term in self.values.items())


class WantedState(Struct, frozen=True):
    """A triple that must hold at a time, or must not."""

    time: Time
    triple: Triple
    holds: bool
    span: Span


class Given(Struct, frozen=True):
    """What a case gives and expects, read for its program."""

    clock: Clock
    stream: tuple[Timed, ...]
    facts: Mapping[Time, Mapping[str, Sequence[Fact]]]
    expect: tuple[Wanted, ...]
    never: tuple[Wanted, ...]
    states: tuple[WantedState, ...]
    until: Time | None = None
    only_of: frozenset[str] = frozenset()

    @property
    def end(self) -> Time | None:
        """The last time of the case; None if nothing comes."""
        times = [timed.time for timed in self.stream[-1:]]
        return max(times if self.until is None else [*times, self.until], default=None)


class Failure(Struct, frozen=True):
    """Something that is not as expected: `event` came and should not have, or `missing` did not come."""

    message: str
    span: Span
    event: Composite | None = None
    missing: Wanted | None = None
    state: WantedState | None = None


class CaseOutcome(Struct, frozen=True):
    """How a case ended. `tracer`: how far its rules came; `error`: what ended its run early."""

    case: Case
    given: Given | None
    events: tuple[Composite, ...] = ()
    failures: tuple[Failure, ...] = ()
    tracer: Tracer | None = None
    error: DotrError | None = None

    @property
    def passed(self) -> bool:
        return not self.failures and self.error is None


@dataclass
class Bench:
    """Owns a suite's program, compiled once for its cases. Raises ProgramError, DataError."""

    suite: Suite
    read_files: list[str] = field(default_factory=list)

    private: frozenset[str] = frozenset()

    @cached_property
    def program(self) -> Program:
        """The rules under test, none of them private; `private` has the names of those that were."""
        suite, texts = self.suite, RuleTexts()
        inline = f"{suite.path}#rules.dotr"

        def read(path: str) -> str:
            return suite.text.text if suite.text is not None and path == inline else texts(path)

        paths = [inline] if suite.text is not None else [self.path(rules) for rules in suite.rules]
        try:
            program = load_program(paths, read)
        finally:
            self.read_files += texts.read_files
        self.private = frozenset(rule.name for rule in program.rules if rule.private)
        return replace(program, rules=tuple(replace(rule, private=False) for rule in program.rules))

    @cached_property
    def background(self) -> list[Triple]:
        program = self.program
        further = [self.path(path) for path in self.suite.background]
        self.read_files += [*program.background, *further]
        return read_background([*program.background, *further], named=program.named)

    @cached_property
    def prefixes(self) -> dict[str, str]:
        return {**self.program.prefixes, **self.suite.prefixes}

    @cached_property
    def deployment(self) -> Deployment:
        """What runs: facts of each query under its own name, so that tests can give and see them."""
        return Deployment(self.program, self.background, Settings(apart=True))

    def path(self, written: Scalar) -> str:
        """A path of the file, relative to the file."""
        if written.text.startswith("dotr:") or posixpath.isabs(written.text):
            return written.text
        return posixpath.normpath(posixpath.join(posixpath.dirname(self.suite.path), written.text))

    def run(self, case: Case) -> CaseOutcome:
        """Run a case. Nothing that is wrong with it is raised: it is in the outcome."""
        try:
            given = CaseReader(self, case).given()
        except DotrError as error:
            return CaseOutcome(case, None, error=error)
        tracer = Tracer(self.program, given.clock)

        def detected(time: Time, facts: Facts, graph: bool) -> Facts:
            return tracer.see(time, _merged(facts, given.facts.get(time, {}), time), graph)

        try:
            events = run_all(self.deployment, given, self.suite.lateness, detected)
            failures = [*compared(case, given, events, self.private), *self._states(given)]
        except DotrError as error:
            return CaseOutcome(case, given, tracer=tracer, error=error)
        return CaseOutcome(case, given, tuple(events), tuple(failures), tracer)

    def _states(self, given: Given) -> Iterable[Failure]:
        """What must hold and does not, or holds and must not."""
        states = given.states
        if not states:
            return []
        queries = {f"_h{number}": _ground(state.triple) for number, state in enumerate(states)}
        program = replace(self.program, rules=(), dependencies=(), queries=queries, standing={})
        held: set[tuple[Time, str]] = set()

        def look(time: Time, facts: Facts, _graph: bool) -> Facts:
            held.update((time, stream) for stream, found in facts.items() if found)
            return facts

        asked = tuple(Timed(time, []) for time in dict.fromkeys(state.time for state in states))
        stream = tuple(sorted((*given.stream, *asked), key=lambda timed: timed.time))
        deployment = Deployment(program, self.background, Settings(apart=True))
        run_all(deployment, replace(given, stream=stream), self.suite.lateness, look)
        return [
            Failure(_state_text(state, self.prefixes, given.clock), state.span, state=state)
            for number, state in enumerate(states)
            if ((state.time, f"_h{number}") in held) is not state.holds
        ]


def run_all(
    deployment: Deployment, given: Given, lateness: Time, on_facts: FactsAt | None
) -> list[Composite]:
    """Everything that comes of a stream, in order."""
    pipeline = Pipeline(deployment, PipelineObserver(facts=on_facts), lateness=lateness)
    pipeline.begin(given.clock)

    def taking() -> Iterator[int]:
        for timed in given.stream:
            pipeline.take(timed.time, timed.part)
            yield 1
        pipeline.close_all()
        if given.until is not None:
            yield AHEAD  # what is closed is run first
            pipeline.close_up_to(given.until)

    return [event for emission in drive(pipeline, taking()) for event in emission]


def sequences_of(program: Program) -> dict[str, Rule]:
    """The sequences of a program by name."""
    return {rule.name: rule for rule in program.rules if isinstance(rule.trigger, RowPattern)}


def same_value(found: Term, wanted: Term) -> bool:
    """Whether a term is what a test names: numbers and dateTimes by value, anything else by identity; a list
    by its members in order.
    """
    if is_list(found) and is_list(wanted):
        pairs = zip(members(found), members(wanted), strict=False)
        return size_of_list(found) == size_of_list(wanted) and all(same_value(*pair) for pair in pairs)
    return found == wanted or (found[0] == wanted[0] == '"' and equal(decode(found), decode(wanted)) is True)


def _ground(triple: Triple) -> Select:
    pattern = Triples((TriplePattern(*triple),))
    one = Projection(_FACT, Const(literal("1", "http://www.w3.org/2001/XMLSchema#integer")))
    return Select((one,), GroupPattern((pattern,)))


def _merged(facts: Facts, given: Mapping[str, Sequence[Fact]], time: Time) -> Facts:
    """Extracted and given facts together, in canonical order."""
    if not given:
        return facts
    merged = dict(facts)
    for stream, more in given.items():
        rows = [fact[1] for fact in (*facts.get(stream, ()), *more)]
        merged[stream] = facts_of(rows, time)
    return merged


def compared(
    case: Case, given: Given, events: Sequence[Composite], private: Collection[str] = ()
) -> list[Failure]:
    """What was expected and did not come, and what came and was not to. `private`: rules whose events never
    come out; `only` is not about them.
    """
    pairs = paired(given.expect, events)
    failures = [
        Failure("expected, but it did not happen", wanted.span, missing=wanted)
        for number, wanted in enumerate(given.expect)
        if number not in pairs
    ]
    taken = set(pairs.values())
    for number, event in enumerate(events):
        never = next((wanted for wanted in given.never if wanted.fits(event)), None)
        if never is not None:
            failures.append(Failure("happened, but it never should", never.span, event=event))
        elif number not in taken and (
            event.rule in given.only_of or (case.only and event.rule not in private)
        ):
            failures.append(Failure("happened, but nothing expects it", case.span, event=event))
    return failures


def paired(wanted: Sequence[Wanted], events: Sequence[Composite]) -> dict[int, int]:
    """Expectation → its event, each event for one expectation, as many as possible.

    Augmenting paths, shortest first; the outcome depends on the order of both alone.
    """
    named: defaultdict[str, list[int]] = defaultdict(list)
    for number, event in enumerate(events):
        named[event.rule].append(number)
    fits = [[j for j in named[one.rule] if one.fits(events[j])] for one in wanted]
    has: dict[int, int] = {}
    owner: dict[int, int] = {}
    for number in range(len(wanted)):
        path = _path(number, fits, owner)
        while path:  # each takes what it asked for, and gives up what it had
            j, taker = path.popitem()
            has[taker], owner[j] = j, taker
    return has


def _path(number: int, fits: Sequence[Sequence[int]], owner: Mapping[int, int]) -> dict[int, int]:
    """Event → the expectation that is to have it, so that `number` has one, too; empty if there is no way."""
    asked: dict[int, int] = {}
    had: dict[int, int] = {}
    line = deque([number])
    while line:
        one = line.popleft()
        for j in fits[one]:
            if j in asked:
                continue
            asked[j] = one
            if j in owner:
                had[owner[j]] = j
                line.append(owner[j])
                continue
            path = {j: one}
            while one != number:
                j = had[one]
                one = asked[j]
                path[j] = one
            return path
    return {}


def _state_text(state: WantedState, prefixes: Mapping[str, str], clock: Clock) -> str:
    from dotr.io.events import TermFormatter  # noqa: PLC0415  # failures alone need it

    terms = TermFormatter(prefixes)
    s, p, o = state.triple
    shown = f"{terms.term(s)} {terms.predicate(p)} {terms.term(o)}"
    return f"{shown} {'does not hold' if state.holds else 'holds'} @ {clock.text(state.time)}"


class CaseReader:
    """Reads what a case says in the terms of its program."""

    def __init__(self, bench: Bench, case: Case) -> None:
        self.bench, self.case = bench, case
        self.unit = bench.suite.unit
        self._integer: bool | None = None
        self._head = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in bench.prefixes.items())

    def given(self) -> Given:
        """Raises DataError D4402, D4403, and what reading a file raises."""
        stream: list[Timed] = []
        facts: dict[Time, dict[str, list[Fact]]] = {}
        for step in self.case.stream:
            match step:
                case MessageStep():
                    stream.append(self._message(step))
                case FilesStep():
                    stream += self._files(step)
                case FactsStep(facts=given):
                    for fact in given:
                        time, values = self._fact(fact)
                        facts.setdefault(time, {}).setdefault(fact.stream.text, []).append(
                            (time, values, 0, "")
                        )
        came = {timed.time for timed in stream}
        stream += [Timed(time, []) for time in facts if time not in came]
        stream.sort(key=lambda timed: timed.time)
        expect = tuple(map(self._wanted, self.case.expect))
        never = tuple(map(self._wanted, self.case.never))
        states = tuple(self._states())
        until = None if self.case.until is None else self.time(self.case.until)
        clock = Clock(self._integer is not False, self.unit)
        return Given(clock, tuple(stream), facts, expect, never, states, until, frozenset(self._only_of()))

    def _only_of(self) -> Iterator[str]:
        for name in self.case.only_of:
            yield self._reported(name).name

    def _reported(self, name: Scalar, kind: str | None = None) -> Rule:
        """The rule or sequence of a name. `kind`: which of them it is to be; a sequence is one of the rules,
        too.
        """
        sequences = sequences_of(self.bench.program)
        rules = {rule.name: rule for rule in self.bench.program.rules}
        found = (sequences if kind == "sequence" else rules).get(name.text)
        if found is not None:
            return found
        if name.text in rules:
            hint = f"it is a rule: write `rule: {name.text}`"
            raise DataError.of("D4402", f"there is no sequence named `{name.text}`", name.span, hint=hint)
        what = kind or ("rule or sequence" if sequences else "rule")
        raise _unknown(what, name.text, sequences if kind == "sequence" else rules, name.span)

    def time(self, written: Scalar) -> Time:
        """The time that a scalar names, of the same kind as all others of the case."""
        try:
            time, integer = parse_text(written.text, self.unit)
        except TimeError as error:
            raise _unread(error.message, written.span, error.hint) from None
        if self._integer not in (None, integer):
            hint = "write all times of a test as integers, or all as dateTimes"
            raise _unread("integers and dateTimes as times of one test", written.span, hint)
        self._integer = integer
        return time

    def term(self, written: Scalar) -> Term:
        """A term in Turtle, with the prefixes of the rules and of the test file."""
        text, hint = f"<urn:s> <urn:p> {written.text} .", term_hint(written.text)
        return self._triples(written, text, "a term", hint)[0][2]

    def triples(self, written: Scalar) -> list[Triple]:
        return self._triples(written, written.text, "a graph")

    def _triples(self, written: Scalar, text: str, what: str, advice: str = "") -> list[Triple]:
        try:
            found = parse_triples(f"{self._head}{text}", skipped=len(self.bench.prefixes))
        except DataError as error:
            first = error.diagnostics[0]
            hint = first.hint or advice or "write it in Turtle, with the prefixes of the rules"
            message = f"`{written.text}` is not a term in Turtle" if advice else first.message
            raise _unread(f"{what} that cannot be read: {message}", written.span, hint) from None
        if what == "a term" and len(found) != 1:
            raise _unread(
                "one term is needed here", written.span, 'write it in Turtle: `:room23`, `61.5`, `"text"`'
            )
        return found

    def _message(self, step: MessageStep) -> Timed:
        graph, insert, delete = (
            None if part is None else self.triples(part) for part in (step.graph, step.insert, step.delete)
        )
        place = str(step.at.span)
        return Timed(self.time(step.at), message_of(graph, insert, delete, place), place)

    def _files(self, step: FilesStep) -> list[Timed]:
        files = [self.bench.path(path) for path in (step.path, step.mapping) if path is not None]
        self.bench.read_files += files
        mappings = tuple(map(read_mapping, files[1:]))
        reader = Sources(files[:1], SourceOptions(unit=self.unit, mappings=mappings))
        found: list[Timed] = []
        latest: Time | None = None
        for graph in reader:
            if latest is not None and graph.time < latest - self.bench.suite.lateness:
                raise _late(graph.time, graph.place, reader.clock)
            latest = graph.time if latest is None else max(latest, graph.time)
            found.append(Timed(graph.time, graph.triples, graph.place))
        if reader.clock is not None:
            if self._integer not in (None, reader.clock.integer):
                hint = "write the times of the test as the file does"
                raise _unread("integers and dateTimes as times of one test", step.path.span, hint)
            self._integer = reader.clock.integer
        return found

    def _fact(self, fact: GivenFact) -> tuple[Time, tuple[Term | None, ...]]:
        queries = self.bench.program.selects
        name = fact.stream.text
        if name not in queries and (sequence := sequences_of(self.bench.program).get(name)) is not None:
            assert isinstance(sequence.trigger, RowPattern), "the trigger of a sequence"
            of = dict.fromkeys(one.stream for one in sequence.trigger.sources if one.stream in queries)
            more = f", or facts of {', '.join(of)}" if of else ""
            hint = f"it is a sequence: give the messages that it comes of{more}"
            raise DataError.of("D4402", f"there is no query named `{name}`", fact.stream.span, hint=hint)
        if name not in queries:
            raise _unknown("query", name, queries, fact.stream.span)
        variables = queries[name].variables
        values = self._attributes(fact.values, variables, name, given=True)
        return self.time(fact.at), tuple(values.get(variable) for variable in variables)

    def _wanted(self, event: ExpectedEvent) -> Wanted:
        rule = self._reported(event.rule, event.kind)
        values = self._attributes(event.values, rule.variables, event.rule.text)
        for attribute, items in event.lists.items():
            name = attribute.lstrip("?")
            if name not in rule.lists:
                hint = "only a variable that COLLECT gives has a list"
                raise _unread(f"`{attribute}` is not a list", event.span, hint)
            values[name] = list_of(map(self.term, items))
        for name in values.keys() & rule.lists:
            if not is_list(values[name]):
                hint = f"write `{name}: [ … ]`, its members in order"
                raise _unread(f"`{name}` is a list", event.span, hint)
        return Wanted(event.rule.text, None if event.at is None else self.time(event.at), values, event.span)

    def _attributes(
        self, values: Mapping[str, Scalar], variables: Sequence[str], name: str, given: bool = False
    ) -> dict[str, Term]:
        found = {}
        for attribute, value in values.items():
            if attribute.lstrip("?") not in variables:
                raise _unknown(f"attribute of {name}", attribute, variables, value.named)
            found[attribute.lstrip("?")] = term = self.term(value)
            if term[0] == "_" and not given:
                hint = "leave it out: a variable that is not named may have any value"
                raise _unread("a blank node of a test is never that of an event", value.span, hint)
        return found

    def _states(self) -> Iterable[WantedState]:
        for state in self.case.holds:
            time = self.time(state.at)
            for written, holds in ((state.triples, True), (state.absent, False)):
                for triple in () if written is None else self.triples(written):
                    if triple[0][0] == "_" or triple[2][0] == "_":
                        hint = "name nodes by IRI; what has no name cannot be asked for"
                        raise _unread("a blank node in what must hold", written.span, hint)  # type: ignore[union-attr]  # it has triples
                    yield WantedState(time, triple, holds, written.span)  # type: ignore[union-attr]  # likewise


def _late(time: Time, place: str, clock: Clock | None) -> DataError:
    """As `dotr run` has it: a file is taken in its own order."""
    text = (clock or Clock()).text(time)
    message = f"this graph is for {text}, an instant that is already closed"
    return DataError.of("D2301", message, place=place, hint="allow for disorder with `lateness: 5 min`")


def _unread(message: str, span: Span, hint: str) -> DataError:
    return DataError.of("D4403", message, span, hint=hint)


def _unknown(what: str, name: str, known: Iterable[str], span: Span) -> DataError:
    names = list(known)
    hint = nearest(name, names) or (f"there are: {', '.join(names)}" if names else "there is none")
    return DataError.of("D4402", f"there is no {what} named `{name}`", span, hint=hint)


def recorded(
    rules: Sequence[str], sources: Sequence[str], mapping: str | None, unit: str, suite: Suite, name: str
) -> str:
    """A test file that expects what the rules find in the sources now, and nothing else.

    `mapping`: the file through which the sources are read, where they are tables.

    Events of PRIVATE rules never come out, and are not in it.

    Raises what running them raises.
    """
    bench = Bench(suite)
    span = suite.rules[0].span
    through = None if mapping is None else Scalar(mapping, span)
    case = Case(name, span, tuple(FilesStep(Scalar(source, span), through) for source in sources), only=True)
    outcome = bench.run(case)
    if outcome.error is not None:
        raise outcome.error
    assert outcome.given is not None
    clock, terms = outcome.given.clock, TermFormatter(bench.prefixes)
    events = [event for event in outcome.events if event.rule not in bench.private]
    lines = [f"rules: {_list(rules)}"]
    if unit != "s":
        lines.append(f"time_unit: {unit}")
    lines += ["tests:", f"  - name: {_text(name)}", "    stream:"]
    more = "" if mapping is None else f", map: {_text(mapping)}"
    lines += [f"      - {{ from: {_text(source)}{more} }}" for source in sources]
    lines.append("    only: true")
    lines.append("    expect:" if events else "    expect: []")
    for event in events:
        lines.append(f"      - {{ {_event(event, clock.text(event.time), terms)} }}")
    return "\n".join(lines) + "\n"


def _event(event: Composite, time: str, terms: TermFormatter) -> str:
    pairs = [("rule", _text(event.rule)), ("at", _text(time))]
    own = {"rule", "at"}  # keys of an expectation itself; a variable of that name is written with its `?`
    for name, term in event.bindings:
        if not any(is_blank(member) for member in members(term)):
            listed = [_text(terms.term(member)) for member in members(term)]
            text = f"[{', '.join(listed)}]" if is_list(term) else listed[0]
            pairs.append((f"?{name}" if name in own else name, text))
    return ", ".join(f"{_text(name)}: {value}" for name, value in pairs)


def _list(values: Sequence[str]) -> str:
    return _text(values[0]) if len(values) == 1 else f"[{', '.join(map(_text, values))}]"


def _text(value: str) -> str:
    """A scalar of YAML, quoted where it must be."""
    plain = value.replace("_", "").replace("-", "").replace(".", "").replace("/", "")
    return value if plain.isalnum() and value[0].isalnum() else json.dumps(value, ensure_ascii=False)

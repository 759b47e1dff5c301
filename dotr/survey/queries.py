"""Probes on a sample of a stream, and terms of a program that occur nowhere in it.

Place:   report.py and conditions.py define what to probe; the pipeline does the rest, so that what
         lasts, what is derived and what is refused are as in a run. A sample is a stretch of a stream: graphs
         with their times, in order, up to a limit.
Method:  a probe is a rule of one event without a template, whose matches go to an observer and are not
         reported. Names begin with `_`, as no name of a program does. Probing is a side task: its budgets are
         smaller than those of a run, and it ends once it took more than WORK in all.
         Missing terms: every IRI of the background, the sample and the Datalog heads is known. An unknown one
         is compared with them: the same name in another namespace, in other letters, or spelled almost the
         same. Predicates and classes of queries are reported by lang/checks/lasting.py (D1220).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.budget import KEPT as MATCH
from dotr.core.deployment import Background, Deployment, Settings
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.errors import Diagnostics, DotrError, ProgramError
from dotr.events import Clock, Fact, GraphOrMessage, RawMatch, Time, all_triples
from dotr.extract.printing import Writer
from dotr.lang.checks.comparisons import STAND_IN, filters_of, rule_expressions
from dotr.lang.checks.lasting import Vocabulary, required_patterns
from dotr.lang.checks.lasting import near_names as near
from dotr.program import (
    Atom,
    Binding,
    Call,
    Conjunct,
    Const,
    Expression,
    Position,
    Program,
    Rule,
    Select,
    Trigger,
    TriplePattern,
)
from dotr.rdf.terms import OWL, RDF, RDF_TYPE, RDFS, XSD, Term, is_iri
from dotr.source import Span

GRAPHS = 10_000
"""Graphs that are examined, unless stated otherwise."""

FIRST_GRAPHS = 1_000
"""Graphs that a run looks at for rules that had no event."""

_TRIPLES = 1_000_000
"""Triples that are kept, whatever the number of graphs."""


class Sample(Struct):
    """The first graphs of a stream. `full`: no more are taken."""

    clock: Clock = field(default_factory=Clock)
    limit: int = GRAPHS
    graphs: list[tuple[Time, GraphOrMessage]] = field(default_factory=list)
    full: bool = False
    _triples: int = 0

    def add(self, time: Time, graph: GraphOrMessage) -> None:
        self.graphs.append((time, graph))
        self._triples += len(all_triples(graph))
        self.full = len(self.graphs) >= self.limit or self._triples >= _TRIPLES


_BUILT_IN = tuple(f"<{space}" for space in (RDF, RDFS, OWL, XSD))

Use = tuple[Term, Span | None]


def check_terms(program: Program, vocabulary: Vocabulary, found: Diagnostics) -> None:
    """Warn about each IRI that nothing has, D2501, once for each place in the program's text."""
    writer = Writer(program.prefixes)
    reported: set[str] = set()
    for term, span in _uses(program):
        if term in vocabulary.terms or term.startswith((*_BUILT_IN, STAND_IN)) or str(span) in reported:
            continue
        reported.add(str(span))
        likely = near(term, vocabulary.terms)
        found.warning(
            "D2501",
            f"nothing is called {writer.term(term)}",
            span,
            hint=f"did you mean {writer.term(likely)}?" if likely else "",
            notes=("it is nowhere in the background or the sample, and no Datalog rule derives it",),
        )


def _uses(program: Program) -> Iterator[Use]:
    """Every IRI that a query needs as a subject or object, or that a condition compares with."""
    for select in program.written.values():
        yield from _of_patterns(select)
        for condition, _ in filters_of(select):
            yield from _of_expression(condition)
    for rule in program.rules:
        for expression in rule_expressions(rule):
            yield from _of_expression(expression)
    for clause in program.datalog:
        for atom in clause.body:
            yield from _of_atoms(atom)


def _of_patterns(select: Select) -> Iterator[Use]:
    for pattern in required_patterns(select):
        for term in _resources(pattern):
            yield term, pattern.span


def _resources(pattern: TriplePattern) -> Iterator[Term]:
    if isinstance(pattern.subject, str) and is_iri(pattern.subject):
        yield pattern.subject
    if isinstance(pattern.object, str) and is_iri(pattern.object) and pattern.predicate != RDF_TYPE:
        yield pattern.object


def _of_expression(expression: Expression) -> Iterator[Use]:
    """IRIs that something is compared with."""
    if isinstance(expression, Call):
        compares = expression.function in ("=", "!=", "IN", "NOT-IN")
        for argument in expression.arguments:
            if compares and isinstance(argument, Const) and is_iri(argument.term):
                yield argument.term, argument.span
            yield from _of_expression(argument)


def _of_atoms(node: Any) -> Iterator[Use]:
    """IRIs of the atoms of a Datalog body."""
    if isinstance(node, Atom):
        for term in (node.subject, node.predicate, node.object):
            if isinstance(term, str) and is_iri(term):
                yield term, node.span
    elif isinstance(node, Struct):
        for name in node.__struct_fields__:
            yield from _of_atoms(getattr(node, name))
    elif isinstance(node, Iterable) and not isinstance(node, str):
        for item in node:
            yield from _of_atoms(item)


KEPT = 5_000
"""Matches of a probe that are kept; all are counted."""

WORK = 20_000_000
"""Units of work (budget.py) after which a look ends, in all: some seconds."""

_INSTANT, _TRIGGER = 3_000_000, 20_000
"""Units of an instant's Datalog and of a query at it, and of a rule or probe at one trigger fact."""

_HOLDING = 3_000_000
"""Units of all that holds, at all points together: some seconds, too."""

_HELD = "D4011"
"""Why a look ends that has no units left for what holds."""

_COSTLY = frozenset(("D4003", "D4130", "D4132"))
"""Why instants are set aside that cost the look a whole budget."""

_TOGETHER, _FIRST = 63, 4


class Observed(Struct):
    """What a probe saw: how many matches, and of the first ones the facts and the values of WITH.

    `partial`: there are more, of which nothing is known: to find them took too much work.
    """

    count: int = 0
    partial: bool = False
    matches: list[tuple[tuple[Fact, ...], tuple[Term, ...]]] = field(default_factory=list)

    def add(self, facts: tuple[Fact, ...], values: tuple[Term, ...]) -> None:
        self.count += 1
        if len(self.matches) < KEPT:
            self.matches.append((facts, values))


class Probes:
    """Owns the probes of a program, and what they saw once they have run."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._queries: dict[str, Select] = {}
        self._rules: list[Rule] = []
        self._seen: list[Observed] = []

    def query(self, select: Select) -> Observed:
        """Look at the answers of a query; what is given is filled by `run`."""
        name = f"_q{len(self._queries)}"
        self._queries[name] = select
        return self.rule(Position(name, name, select.variables))

    def rule(
        self, trigger: Trigger, conjuncts: Sequence[Conjunct] = (), bindings: Sequence[Binding] = ()
    ) -> Observed:
        """Look at the matches of a rule without WHERE."""
        name = f"_r{len(self._rules)}"
        self._rules.append(Rule(name, (), trigger, tuple(conjuncts), None, tuple(bindings), ()))
        self._seen.append(Observed())
        return self._seen[-1]

    def run(self, background: Background, sample: Sample, closed: bytes | None = None) -> DotrError | None:
        """Run the program and its probes over the sample. What ends it early is returned; what was seen until
        then is valid.
        """
        program = self._program
        first = len(program.rules)
        order = program.dependencies or tuple(range(first))
        probed = replace(
            program,
            queries={**program.queries, **self._queries},
            rules=(*program.rules, *self._rules),
            dependencies=(*order, *range(first, first + len(self._rules))),
        )
        seen = self._seen

        look = _ProbeLook(seen, first)
        settings = Settings(budget=_INSTANT, trigger_budget=_TRIGGER, holding_budget=_HOLDING)
        try:
            pipeline = Pipeline(
                Deployment(probed, background, settings, closed=closed),
                PipelineObserver(refused=look.refused, overworked=look.overworked, matches=look.matched),
            )
            pipeline.begin(sample.clock)
            for number, (time, part) in enumerate(sample.graphs):
                pipeline.take(time, part)
                if look.dear(number) or not number & _TOGETHER:
                    _drain(pipeline)
                    if look.spent > WORK:
                        look.cut()
                        return None
            pipeline.close_all()
            _drain(pipeline)
        except DotrError as error:
            if any(found.code == _HELD for found in error.diagnostics):
                look.cut()
                return None
            return error
        return None


class _ProbeLook(Struct):
    """What happens while probes run. `spent`: units of work so far, about. `first`: number of the first
    probe's rule.
    """

    seen: Sequence[Observed]
    first: int
    spent: int = 0

    def dear(self, graphs: int) -> bool:
        """Whether graphs take so much that the next one is not to wait for others."""
        return self.spent > graphs * (WORK // 1_000) or graphs < _FIRST

    def matched(self, _time: Time, matches: Sequence[RawMatch]) -> None:
        self.spent += MATCH * len(matches)
        for rules, _, facts, values in matches:
            for rule in rules:
                if rule >= self.first:
                    self.seen[rule - self.first].add(facts, values)

    def refused(self, _time: Time, _parts: Sequence[GraphOrMessage], error: DotrError) -> None:
        if any(d.code in _COSTLY for d in error.diagnostics):
            self.spent += _INSTANT
            self.cut()

    def overworked(self, rule: str, _error: ProgramError) -> None:
        self.spent += _TRIGGER
        if rule.startswith("_r"):
            self.seen[int(rule.removeprefix("_r"))].partial = True

    def cut(self) -> None:
        """Of the rest of the sample nothing is known."""
        for observed in self.seen:
            observed.partial = True


def _drain(pipeline: Pipeline) -> None:
    for _ in pipeline.drain():
        pass

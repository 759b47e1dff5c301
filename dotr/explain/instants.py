"""Any instant of a record, opened again: what holds, with the reasons of what is stated.

Place:   asked by matches.py and by `dotr state`; over record.py.
Method:  a second store over the same closed background, in which an instant is an overlay as in a run. Where
         something lasts, what background and insertions state at the instant is closed, and what graphs made
         last is opened over it with the instant's own graph; schema that is among it is closed, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from dotr.core.enrich import wanted
from dotr.core.extract import Extractor
from dotr.core.instant import instant_triples
from dotr.core.parts import labelled
from dotr.datalog.materialiser import Materialiser
from dotr.datalog.owl_lists import rules_over
from dotr.errors import DataError
from dotr.events import Fact, Time
from dotr.explain.derivations import Derivations
from dotr.explain.proofs import InBackground, InStream, Of, TripleProof
from dotr.explain.record import Record
from dotr.explain.schema_premises import SchemaPremises
from dotr.ir import Entailment, Program
from dotr.rdf.terms import Triple
from dotr.tesla.references import Occasion, occasions_seen


class _Base(NamedTuple):
    """A closed store, for a program, over what it was closed. `origins`: of its rules."""

    program: Program
    basic: frozenset[Triple]
    materialiser: Materialiser
    origins: SchemaPremises


class KeptInstants:
    """Owns a store beside the one of the run, and the facts that were extracted again."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._base: _Base | None = None
        self._extract: tuple[_Base, Extractor] | None = None
        self._facts: dict[Time, Mapping[str, Sequence[Fact]]] = {}
        self._occasions: tuple[Program, list[frozenset[Occasion]]] | None = None

    def triples(self, time: Time) -> list[Triple]:
        """What graphs of the stream state at an instant, blank nodes labelled."""
        record = self._record
        if (jump := record.jumps.at(time)) is not None:
            return [triple for message in jump.messages for triple in message.graph or ()]
        graphs = [graph.part for graph in record.graphs(time)]
        if record.statements is not None:
            return [triple for message in labelled(graphs, time) for triple in message.graph or ()]
        return instant_triples([graph.triples for graph in record.graphs(time)], time) if graphs else []

    @contextmanager
    def open(self, time: Time, of: Of = Of.INSTANT, now: Time | None = None) -> Iterator[Derivations]:
        """An instant, to be looked into; ends of statements are given as they were known at `now`."""
        record = self._record
        graph = self.triples(time) if of is Of.INSTANT else []
        moment = time - 1 if of is Of.BEFORE else time
        background, statements = record.background, record.statements
        held: frozenset[Triple] = frozenset()
        if statements is not None:
            background, held = frozenset(statements.basic(moment)), frozenset(statements.held(moment))
        program = record.program_at(moment)
        materialiser = self._opened(program, background, held, graph)
        materialiser.store.moment.time = time
        own = frozenset(graph)
        known = time if now is None else now

        def leaf(triple: Triple) -> TripleProof | None:
            if triple in own:
                return InStream(triple, time)
            if statements is not None:
                return statements.leaf(triple, moment, known)
            return InBackground(triple) if triple in background else None

        base = self._base
        assert base is not None, "an instant is open"
        with_schema = base.origins.leaves(leaf)
        try:
            origins, clauses = base.origins, materialiser.clauses.all
            yield Derivations(materialiser.store, clauses, with_schema, origins.of, origins.inverse_of)
        finally:
            materialiser.forget()

    def _opened(
        self, program: Program, basic: frozenset[Triple], held: frozenset[Triple], graph: Collection[Triple]
    ) -> Materialiser:
        """A store over `basic` in which what is held and a graph are open."""
        materialiser = self._over(program, basic)
        overlay = dict.fromkeys([*sorted(held), *graph])
        try:
            materialiser.instant(overlay)
            if not (held and materialiser.findings()):
                return materialiser
            materialiser.forget()
        except DataError as error:
            if error.diagnostics[0].code != "D2601" or self._record.statements is None:
                raise
        materialiser = self._over(program, basic | held)  # it has schema, or the schema of equal individuals
        materialiser.instant(graph)
        return materialiser

    def _over(self, program: Program, basic: frozenset[Triple]) -> Materialiser:
        record, base = self._record, self._base
        if base is None or base.program is not program or base.basic != basic:
            made = self._made(program, basic)
            lists = program.entailment is Entailment.OWL2RL
            origins = SchemaPremises(program.datalog, basic, made.closed, lists)
            base = self._base = _Base(program, basic, made, origins)
        base.materialiser.store.moment.clock = record.clock
        return base.materialiser

    def _made(self, program: Program, basic: frozenset[Triple]) -> Materialiser:
        record = self._record
        pipeline = record.pipeline
        assert pipeline is not None, "a record is filled by a pipeline"
        deployment = pipeline.deployment
        if basic == record.background and deployment.program is program:
            closed = pipeline.instants.enrich.closed
            return Materialiser(closed.instantiated.rules, closed=closed)
        needed = wanted(program, deployment.settings.materialize_all)
        return Materialiser(rules_over(program, basic), basic, needed=needed)

    def facts(self, time: Time, stream: str) -> Sequence[Fact]:
        """The facts of a query, or of a stream of changes, at an instant, in canonical order."""
        if self._record.statements is not None:
            return (self._record.facts(time) or {}).get(stream, ())
        if time not in self._facts:
            record = self._record
            materialiser = self._opened(record.program, record.background, frozenset(), self.triples(time))
            try:
                self._facts[time] = self._extractor().facts(time)
            finally:
                materialiser.forget()
        return self._facts[time].get(stream, ())

    def _extractor(self) -> Extractor:
        base = self._base
        assert base is not None, "an instant is open"
        if self._extract is None or self._extract[0] is not base:
            self._extract = base, Extractor(self._record.program.queries, base.materialiser.store)
        return self._extract[1]

    def state(self, time: Time) -> tuple[list[Triple], list[Triple]]:
        """(what background, messages and stream state, what is derived) at an instant, each sorted."""
        statements = self._record.statements
        stated: Collection[Triple] = self._record.background
        if statements is not None:
            stated = statements.basic(time) | statements.held(time)
        with self.open(time):
            assert self._base is not None, "an instant is open"
            holds = set(self._base.materialiser.state())
        stated = {*stated, *self.triples(time)}
        return sorted(stated), sorted(holds - stated)

    def between(
        self, rule: int, stream: str, start: Time, end: Time, ticks: Iterable[Time] = ()
    ) -> list[Fact]:
        """The facts of a stream at the instants of `[start, end]` that a rule sees; `ticks`: those without a
        graph.
        """
        record = self._record
        if record.statements is not None:
            times = [t for t in sorted(record.jumps.times()) if start <= t <= end and self._sees(rule, t)]
        else:
            times = sorted({t for t in (*record.times(), *ticks) if start <= t <= end})
        return [fact for time in times for fact in self.facts(time, stream)]

    def _sees(self, rule: int, time: Time) -> bool:
        """Whether a rule sees an instant of what lasts."""
        jump, program = self._record.jumps.at(time), self._record.program
        assert jump is not None, "it is kept"
        if self._occasions is None or self._occasions[0] is not program:
            self._occasions = program, occasions_seen(program)
        return jump.graph or any(
            bool(jump.facts.get(occasion)) if isinstance(occasion, str) else time % occasion == 0
            for occasion in self._occasions[1][rule]
        )

    def forget(self, before: Time) -> None:
        """Drop facts that were extracted again and are not looked at any more."""
        for time in [time for time in self._facts if time < before]:
            del self._facts[time]

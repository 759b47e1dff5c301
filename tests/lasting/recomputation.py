"""What lasts, recomputed: after each change M is closed over what is stated, and the standing queries run
again.

Place:   what lasting/model.py is compared with, instant by instant, also where an instant is refused, the
         rules change, or a run goes on from a snapshot.
Method:  what is stated is split: a base that is closed and indexed, and an overlay that is opened over it for
         every evaluation, like a stream's graph. Statements of graphs and insertions go to the overlay, so
         that the end of a period costs what holds there; schema, or an end in the base, closes the base
         again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from dotr.budget import BUDGET
from dotr.enrich.materialiser import Limits, Materialiser
from dotr.enrich.owl import SAME_AS, is_list_triple, is_schema, rules_over, while_held
from dotr.errors import DataError, Diagnostic
from dotr.events import Clock, Fact, Time, Values
from dotr.extract.extractor import Extractor, wanted
from dotr.extract.sharing import facts_of
from dotr.joins.plan import relation_of
from dotr.lasting.instants import LastingRun
from dotr.lasting.periods import Periods, StatedChange
from dotr.program import Entailment, Program, RelationToStream, Select
from dotr.rdf.terms import Triple

Answers = dict[Select, Counter[Values]]
"""Standing query → the bag of its answers."""


class _KeptInstant(NamedTuple):
    """The state to which an open change is undone. `answers` None: not evaluated yet."""

    program: Program
    stated: frozenset[Triple]
    held: frozenset[Triple]
    answers: Answers | None


class _View:
    """Owns some queries over a closed base, and the overlay that is opened over it to evaluate them."""

    def __init__(
        self,
        enrich: Materialiser,
        queries: Mapping[str, Select],
        clock: Clock,
        checked: bool,
        budget: int,
    ) -> None:
        self._enrich, self._checked = enrich, checked
        enrich.store.moment.clock = clock
        self.findings: list[Diagnostic] = []
        self.equal = False
        self._extract = Extractor(queries, enrich.store, budget=budget, patience=budget)

    def facts(self, triples: Iterable[Triple], time: Time) -> dict[str, list[Fact]]:
        """The facts over the base and `triples`. `findings` are those of this call; `equal`: whether it made
        anything equal. Raises DataError D3101 for a contradiction, and D2601.
        """
        self._enrich.instant(dict.fromkeys(triples))
        try:
            if self._checked and (clashes := self._enrich.clashes()):
                raise DataError(clashes)
            self.findings = self._enrich.findings()
            self.equal = bool(self._enrich.store.changes(SAME_AS).added)
            return self._extract.facts(time)
        finally:
            self._enrich.forget()

    def state(self, triples: Iterable[Triple]) -> set[Triple]:
        """What holds over the base and `triples`. Raises as `facts`."""
        self._enrich.instant(dict.fromkeys(triples))
        try:
            return set(self._enrich.state())
        finally:
            self._enrich.forget()


class _Model:
    """Owns a closed base: K over it for the queries of an instant, M for the standing ones."""

    def __init__(
        self,
        program: Program,
        base: frozenset[Triple],
        clock: Clock,
        materialize_all: bool,
        budget: int,
    ) -> None:
        self.program = program
        self.base = base
        self.findings: list[Diagnostic] = []
        self.equal = False
        rules, needed = rules_over(program, base), wanted(program, materialize_all)
        checked = program.entailment is not Entailment.NONE
        limits = Limits(budget=budget)
        enrich = Materialiser(rules, base, needed=needed, limits=limits)
        self.instant = _View(enrich, program.asked, clock, checked, budget)
        again = Materialiser(rules, (), needed=needed, closed=enrich.closed, limits=limits)
        self._standing = _View(again, _standing(program), clock, checked, budget)

    def answers(self, triples: Iterable[Triple], time: Time) -> Answers:
        """The answers over the base and `triples`; `findings` and `equal` are of this call."""
        found = self._standing.facts(triples, time)
        self.findings, self.equal = self._standing.findings, self._standing.equal
        return {
            select: Counter(values for _, values, _, _ in found.get(stream, ()))
            for stream, select in _standing(self.program).items()
        }


class RecomputedJumps(LastingRun):
    """What lasts, from instant to instant, recomputed at each. It has the whole budget at each."""

    def _opened(self) -> Recomputation:  # type: ignore[override]  # it has the same methods
        return Recomputation(self.program, self._periods, self.clock, self._all, self._budget)


class Recomputation:
    """Owns what is stated, the last model made, and the answers kept last."""

    def __init__(
        self,
        program: Program,
        periods: Periods,
        clock: Clock,
        materialize_all: bool = False,
        budget: int = BUDGET,
    ) -> None:
        self._clock, self._all, self._budget = clock, materialize_all, budget
        self._kept = self._now = _KeptInstant(program, frozenset(periods), frozenset(), None)
        self._model: _Model | None = None
        self._consistent = True
        self.findings: list[Diagnostic] = []
        self._was_consistent = True

    # -- the methods of Maintenance

    def change(
        self, time: Time, stated: StatedChange, program: Program | None = None
    ) -> dict[str, list[Fact]]:
        before = self._before(time, program)
        self.findings = []
        if program is None and not stated and self._consistent:
            return {}
        self._now = self._changed(stated, program)
        try:
            after = self._asked(self._now, time, stated.held)
        except BaseException:
            self.abandon()
            raise
        self._now = self._now._replace(answers=after)
        self._consistent = True
        return _differences(self._now.program, before, after, time)

    def facts(self, time: Time, graph: Sequence[Triple] | None) -> dict[str, list[Fact]]:
        model = self._modelled(self._now)
        found = model.instant.facts([*self._overlay(model, self._now), *(graph or ())], time)
        self.findings += model.instant.findings
        return found

    def state(self, graph: Sequence[Triple]) -> set[Triple]:
        model = self._modelled(self._now)
        return model.instant.state([*self._overlay(model, self._now), *graph])

    def keep(self) -> None:
        self._kept = self._now
        self._was_consistent = self._consistent

    def abandon(self) -> None:
        self._now = self._kept
        self._consistent = self._was_consistent

    def overlook(self, time: Time, stated: StatedChange, program: Program | None = None) -> None:
        before = self._before(time, program)
        self._now = self._changed(stated, program)._replace(answers=before)
        self._consistent = False
        self.keep()

    def snapshot(self) -> Any:
        if self._consistent or self._kept.answers is None:
            return None
        answers = self._kept.answers
        return [
            [[list(values), count] for values, count in sorted(answers[select].items(), key=repr)]
            for select in _standing(self._kept.program).values()
        ]

    def restore(self, state: Any) -> None:
        if state is not None:
            rows = ({tuple(values): count for values, count in bag} for bag in state)
            selects = _standing(self._kept.program).values()
            answers = {select: Counter(bag) for select, bag in zip(selects, rows, strict=True)}
            self._kept = self._now = self._kept._replace(answers=answers)
            self._consistent = self._was_consistent = False

    # -- the queries

    def _before(self, time: Time, program: Program | None) -> Answers:
        """The answers over the last consistent M, of the queries evaluated from now on."""
        kept = self._kept
        answers = self._asked(kept, time) if kept.answers is None else kept.answers
        self._kept = self._now = kept._replace(answers=answers)
        new = [] if program is None else [s for s in _standing(program).values() if s not in answers]
        if not new or not self._consistent:
            return answers
        assert program is not None, "new queries are another program's"
        old = kept.program
        mixed = replace(program, datalog=old.datalog, entailment=old.entailment)
        return answers | self._asked(kept._replace(program=mixed), time)

    def _changed(self, stated: StatedChange, program: Program | None) -> _KeptInstant:
        kept = self._kept
        new = (kept.stated - set(stated.ended)) | stated.begun.keys()
        held = (kept.held - set(stated.ended)) | set(stated.held)
        return _KeptInstant(program or kept.program, frozenset(new), frozenset(held), None)

    def _asked(self, kept: _KeptInstant, time: Time, own: Iterable[Triple] = ()) -> Answers:
        """Answers over M, which is made here if the last one does not fit. `own`: what graphs state now."""
        try:
            model = self._modelled(kept)
            found = model.answers(self._overlay(model, kept), time)
            if not model.equal:
                return found
        except DataError as error:
            if error.diagnostics[0].code != "D2601":
                raise
        self._model = self._made(
            kept, kept.stated.difference(own)
        )  # schema follows, or an equality concerns it
        found = self._model.answers(self._overlay(self._model, kept), time)
        if self._model.equal:  # M has the equality in everything
            self.findings += map(while_held, self._model.findings)
            self._model = self._made(kept, kept.stated)
            found = self._model.answers((), time)
        return found

    def _modelled(self, kept: _KeptInstant) -> _Model:
        model = self._model
        if model is None or model.program is not kept.program or not self._fits(model, kept):
            model = self._model = self._made(kept, kept.stated - kept.held)
        return model

    def _made(self, kept: _KeptInstant, base: frozenset[Triple]) -> _Model:
        return _Model(kept.program, base, self._clock, self._all, self._budget)

    def _fits(self, model: _Model, kept: _KeptInstant) -> bool:
        """Whether the stated triples outside the base can be opened over it."""
        return model.base <= kept.stated and not any(map(_is_basic, kept.stated - model.base - kept.held))

    def _overlay(self, model: _Model, kept: _KeptInstant) -> list[Triple]:
        return sorted(kept.stated - model.base)


def _standing(program: Program) -> dict[str, Select]:
    """The distinct queries of ISTREAM and DSTREAM, under the first stream of each."""
    streams: dict[Select, str] = {}
    for stream, standing in program.standing.items():
        streams.setdefault(standing.select, stream)
    return {stream: select for select, stream in streams.items()}


def _is_basic(triple: Triple) -> bool:
    """Whether rules may be instantiated over a triple."""
    relation = relation_of(*triple)
    return is_schema(relation) or relation == SAME_AS or is_list_triple(triple)


def _differences(
    program: Program, before: Mapping[Select, Counter[Values]], after: Answers, time: Time
) -> dict[str, list[Fact]]:
    found: dict[str, list[Fact]] = {}
    for stream, standing in program.standing.items():
        now = after[standing.select]
        was = before.get(standing.select, now)
        gained = now - was if standing.operator is RelationToStream.ISTREAM else was - now
        if gained:
            found[stream] = facts_of(gained.elements(), time)
    return found

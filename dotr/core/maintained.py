"""What lasts, maintained: M is updated incrementally, standing answers by signed deltas.

Place:   between jumps.py, which knows what is stated when (periods.py), and the model (lasting_model.py).
         Tested against reference/lasting.py.
Method:  language.md, "What lasts". At an instant jumps.py calls `change` with the change of what is stated,
         `facts` if a rule sees the instant, and then `keep`; or `abandon` if one of them raised. Then it
         calls `change` again with the ends of periods alone, as if the messages had never come; if that
         raises, too, `overlook` continues.
         A change is committed when it is stated, and undone when it is abandoned.
         New rules, a change of schema over which rules were instantiated, and the end of most stated triples
         cause M to be recomputed. While M contradicts itself its answers change unseen: the difference is
         kept for the next consistent M.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from dotr.budget import BUDGET, SLACK
from dotr.core.lasting_model import LastingModel, SchemaChange
from dotr.core.periods import Periods, StatedChange
from dotr.core.spending import Spending
from dotr.datalog.equality import while_held
from dotr.datalog.schema import is_schema, stream_schema
from dotr.errors import DataError, Diagnostic, DotrError
from dotr.events import Clock, Fact, Time
from dotr.ir import Program, RelationToStream, Select
from dotr.joins.graph_relations import relation_of
from dotr.rdf.terms import Triple
from dotr.sparql.distribution import facts_of
from dotr.sparql.solution_operators import Row

Facts: TypeAlias = dict[str, list[Fact]]
"""Stream → its facts of one instant in canonical order; streams without facts are left out."""

Bags = Mapping[Select, Counter[Row]]
"""Standing query → a bag of rows, or of signed changes."""


class _State(NamedTuple):
    """The state to which an open change is undone.

    `model` None: none can be made; then `answers` are those of the last consistent one. `owed`: how the
    answers changed since M was last `consistent`.
    """

    program: Program
    model: LastingModel | None
    answers: Bags = MappingProxyType({})
    owed: Bags = MappingProxyType({})
    consistent: bool = True


class Maintenance:
    """Owns M, the least model of the rules over what is stated, the standing answers over it, and how to undo
    the open change. Stated triples that nothing reads are in `periods` alone.

    Times never decrease from call to call. At most one change is open. What is stated is closed when the
    first change is opened; a contradiction in it is not an error here. The periods advance before `change`
    is called, and are undone after the change is.
    """

    def __init__(
        self,
        program: Program,
        periods: Periods,
        clock: Clock,
        materialize_all: bool = False,
        budget: int = BUDGET,
        spending: Spending | None = None,
    ) -> None:
        self._clock, self._all, self._budget = clock, materialize_all, budget
        self._spending = spending
        self._periods = periods
        self._first = list(periods), periods.ends()
        self._now = self._kept = _State(program, None)
        self._begun = False
        self._findings: list[Diagnostic] = []
        self._closing: int | None = None
        self._undo: Callable[[], None] | None = None

    def change(self, time: Time, stated: StatedChange, program: Program | None = None) -> Facts:
        """Open the change from M(t⁻) to M(t); returns the facts of all ISTREAM and DSTREAM streams that have
        any.

        They are the bag difference between a query's answers and those kept last, ordinals counted within it.
        With `stated` empty, an inconsistent M is still reported. `program`: its rules hold from `time` on,
        and its queries are evaluated, also over M(t⁻) under the earlier rules. Raises DataError or
        ProgramError when M(t) contradicts itself, explodes, or has a schema that makes the rules invalid;
        then nothing is open and the earlier program stays.
        """
        first = self._begin()
        self._findings = []
        if program is None and not first and self._now.consistent and not self._matters(stated):
            return {}
        try:
            self._refuse_schema(stated)
            owed = self._go(time, stated, program, check=True)
        except BaseException:
            self.abandon()
            raise
        self._now = self._now._replace(owed={}, consistent=True)
        return _facts(self._now.program, owed, time)

    def facts(self, time: Time, graph: Sequence[Triple] | None) -> Facts:
        """The facts of all other streams over K(t), with the open change.

        `graph`: the triples of the instant's graphs, labelled, None if none came. K(t) is dropped afterwards.
        Raises DotrError as `change` does, and D2601; the change stays open.
        """
        model = self._now.model
        assert model is not None, "a change was opened"
        model.findings = []
        found = model.facts(graph or (), time)
        self._findings += model.findings
        return found

    def findings(self) -> Sequence[Diagnostic]:
        """Warnings about the open change and what `facts` took: D2602. Again for what was reported before."""
        return self._findings

    def state(self, graph: Sequence[Triple]) -> set[Triple]:
        """K(t) with the open change, as far as it is materialised. Raises as `facts` does."""
        assert self._now.model is not None, "a change was opened"
        return {*self._periods, *self._now.model.state(graph)}

    def keep(self) -> None:
        """Commit the open change: the next change is compared with its answers."""
        self._kept, self._undo = self._now, None

    def abandon(self) -> None:
        """Undo the open change, if any."""
        if self._undo is not None:
            self._undo()
        self._now, self._undo = self._kept, None

    def overlook(self, time: Time, stated: StatedChange, program: Program | None = None) -> None:
        """Commit a change without messages for which `change` raised.

        The answers kept last stay, to be compared with the next consistent M; `facts` is not called before
        then.
        """
        self._begin()
        try:
            owed = self._go(time, stated, program, check=False)
            self._now = self._now._replace(owed=owed, consistent=False)
        except DotrError:
            self.abandon()
            self._now = self._without_model(stated, program)
        self.keep()

    def snapshot(self) -> Any:
        """What a new one over what is stated now cannot derive, as a JSON value, or None. Called between
        instants.
        """
        state = self._kept
        if state.consistent or not self._begun:
            return None
        kind, bags = ("owed", state.owed) if state.model is not None else ("answers", state.answers)
        rows = (bags.get(select, _NONE) for select in _standing(state.program))
        return [kind, [[[list(row), n] for row, n in sorted(bag.items(), key=repr)] for bag in rows]]

    def restore(self, state: Any) -> None:
        """Restore a `snapshot` in a new one."""
        self._closing = SLACK * self._budget  # what was maintained step by step is not refused now
        if state is None:
            return
        kind, found = state
        bags = (Counter({tuple(row): n for row, n in bag}) for bag in found)
        by_query = dict(zip(_standing(self._now.program), bags, strict=True))
        if kind == "owed":
            self._begin()
            self._now = self._now._replace(owed=by_query, consistent=False)
        else:
            self._begun = True
            self._now = self._now._replace(answers=by_query, consistent=False)
        self._kept = self._now

    # -- advancing

    def _begin(self) -> bool:
        """Close what is stated at first; returns whether this call did."""
        if self._begun:
            return False
        now = self._now
        stated, ends = self._first
        model = self._model(now.program, stated, ends)
        self._begun, self._first, self._closing = True, ([], {}), None
        self._now = self._kept = _State(now.program, model)
        return True

    def _model(
        self, program: Program, stated: Collection[Triple], ends: Mapping[Triple, Time]
    ) -> LastingModel:
        return LastingModel(
            program,
            stated,
            self._clock,
            self._all,
            self._budget,
            ends,
            spending=self._spending,
            closing=self._closing,
        )

    def _matters(self, stated: StatedChange) -> bool:
        """Whether M must process the change."""
        model = self._now.model
        return bool(stated) or (bool(stated.moved) and model is not None and model.kept.expires)

    def _go(self, time: Time, stated: StatedChange, program: Program | None, *, check: bool) -> Bags:
        """Advance to M(t); returns how its answers changed since M was last consistent."""
        now, model = self._now, self._now.model
        if program is None and model is not None and not model.mostly_ends(stated.ended):
            try:
                settled = model.move(stated.begun, stated.ended, time, stated.moved, check=check)
            except SchemaChange:
                pass
            else:
                self._undo = settled.undo
                return _sum(now.owed, settled.differences)
        return self._close_anew(stated, program or now.program, check)

    def _close_anew(self, stated: StatedChange, program: Program, check: bool) -> Bags:
        """Make a new model; compare the answers of both."""
        now = self._now
        after, ends = set(self._periods), self._periods.ends()
        model = self._model(program, after, ends)
        if check:
            model.check()
            self._look_at_held(model, after, stated)
        before = self._before(program, stated)
        self._now = _State(program, model)
        found: dict[Select, Counter[Row]] = {}
        for select in before:
            bag = found[select] = Counter(model.answers(select))
            bag.subtract(before[select])
        return _sum(now.owed if now.model is not None else {}, found)

    def _before(self, program: Program, stated: StatedChange) -> Bags:
        """All answers that a program's queries are compared with: of M(t⁻), or of the last M kept."""
        now, wanted = self._now, _standing(program)
        if now.model is None:
            return {select: now.answers[select] for select in wanted if select in now.answers}
        known = set(_standing(now.program))
        found = {select: now.model.answers(select) for select in wanted if select in known}
        if now.consistent and len(found) < len(wanted):  # the old rules over what the new queries read
            mixed = replace(program, datalog=now.program.datalog, entailment=now.program.entailment)
            before = set(self._periods).difference(stated.begun).union(stated.ended)
            model = LastingModel(mixed, before, self._clock, self._all, self._budget)
            found |= {select: model.answers(select) for select in wanted if select not in known}
        return found

    def _without_model(self, stated: StatedChange, program: Program | None) -> _State:
        """Advance what is stated although no model can be made of it."""
        now = self._now
        program = program or now.program
        answers = {}
        for select, bag in self._before(program, stated).items():
            answers[select] = Counter(bag)
            if now.model is not None:
                answers[select].subtract(now.owed.get(select, _NONE))
        return _State(program, None, answers, consistent=False)

    # -- schema

    def _refuse_schema(self, stated: StatedChange) -> None:
        """Raise DataError D2601 for schema in a graph that would be held."""
        model = self._now.model
        if model is not None and model.over_schema:
            for triple in stated.held:
                if is_schema(relation_of(*triple)):
                    raise DataError(stream_schema(triple))

    def _look_at_held(self, model: LastingModel, after: set[Triple], stated: StatedChange) -> None:
        """What a graph makes last is to it as to any graph: schema must not follow from it (DataError D2601),
        and equalities of individuals that the schema mentions are reported (D2602).
        """
        if stated.held and model.over_schema:
            others = after.difference(stated.held)
            without = LastingModel(model.program, others, self._clock, self._all, self._budget)
            without.beside(stated.held)
            self._findings += map(while_held, without.findings)


_NONE: Counter[Row] = Counter()


def _standing(program: Program) -> list[Select]:
    """The distinct queries of ISTREAM and DSTREAM."""
    return list(dict.fromkeys(standing.select for standing in program.standing.values()))


def _sum(owed: Bags, more: Mapping[Select, Iterable[tuple[Row, int]] | Counter[Row]]) -> Bags:
    """The sum of signed changes, without queries that have none. (Hashing a Select hashes all its parts, so
    queries are only hashed when they changed.)
    """
    if not (owed or more):
        return {}
    total = {select: Counter(bag) for select, bag in owed.items()}
    for select, changes in more.items():
        bag = total.setdefault(select, Counter())
        for row, n in changes.items() if isinstance(changes, Counter) else changes:
            bag[row] += n
    found = {select: Counter({row: n for row, n in bag.items() if n}) for select, bag in total.items()}
    return {select: bag for select, bag in found.items() if bag}


def _facts(program: Program, changes: Bags, time: Time) -> Facts:
    """The facts of the streams: what their queries gained or lost."""
    if not changes:
        return {}
    found: dict[str, list[Fact]] = {}
    for stream, standing in program.standing.items():
        sign = 1 if standing.operator is RelationToStream.ISTREAM else -1
        bag = changes.get(standing.select, _NONE)
        rows = (row for row, n in bag.items() for _ in range(n * sign))
        facts = facts_of(rows, time)
        if facts:
            found[stream] = facts
    return found

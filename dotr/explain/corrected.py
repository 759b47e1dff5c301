"""Why events were withdrawn by corrections, added, or came back.

Place:   service/history.py explains events of a deployment by it, `Engine(corrections=…, keep=…)` its own.
Method:  a run that makes corrections has no record: a correction changes what was. So the graphs that were
         taken are kept, with the correction that took each late one, and states that no correction can reach
         any more. An explanation runs them again, in order of time: all of them for an event that holds; for
         one that was withdrawn those from before its last correction, which give its proof, and once more
         with the late graphs of that correction, for how far its rule comes with them (matches.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from dotr.core.corrections import CorrectingPipeline, Late
from dotr.detect.state import Restored
from dotr.emit.changes import Changes
from dotr.errors import UsageError
from dotr.events import Fact, GraphOrMessage, Time
from dotr.explain.explanation import Explaining, Explanation
from dotr.explain.matches import Explainer
from dotr.explain.proofs import Blocked, Corrected, EventChange, EventProof, WhyNot
from dotr.explain.record import Graph, History, KeptEvent, Record, reach_of
from dotr.explain.solutions import Text
from dotr.extract.printing import Writer
from dotr.program import Program
from dotr.rdf.terms import Term, Triple

FOREVER = 2**62
"""As long as no time is: nothing is late where a run has said what was."""

_LOOK = 63
"""So many graphs, and one more, come between two looks at what is too old: a mask."""


def explainer_of(history: History, every: bool = False) -> Explainer:
    """What explains a run that went on from a state."""
    writer = Writer(history.program.prefixes)
    return Explainer(history, Text(writer.term, writer.expression, writer.path), every=every)


def withdrawn(
    before: Explainer, after: Explainer, event: KeptEvent, changes: Sequence[EventChange]
) -> Corrected:
    """An event of the run before a correction that is not in the one after it."""
    proof = before.event(event)
    reached = after.why_not(proof.rule.name, event.time, {})
    now = next((one for one in reached if _trigger_of(one) == event.facts[0]), reached[0])
    return Corrected(proof, tuple(changes), now)


def _trigger_of(found: WhyNot) -> Fact | None:
    return found.trigger.fact if isinstance(found, Blocked | EventProof) else None


class _Taken(NamedTuple):
    """A graph that was taken, in its turn (0) or by the correction with this number."""

    time: Time
    part: GraphOrMessage
    correction: int


class _Made(NamedTuple):
    """A correction of an event."""

    number: int
    change: EventChange
    time: Time


class _State(NamedTuple):
    """A state that no correction can reach, and up to when all has run in it."""

    time: Time | None
    state: Mapping[str, Any]


class RememberingPipeline(CorrectingPipeline):
    """A pipeline that makes corrections, and says which graphs come in their turn."""

    came: Callable[[Time, GraphOrMessage], None]
    went_on: Callable[[], None]
    """Called when nothing of before can be corrected: after `restore`, and when other rules hold."""

    def _keep(self, time: Time, graph: GraphOrMessage) -> None:
        super()._keep(time, graph)
        self.came(time, graph)

    def restore(self, state: Mapping[str, Any]) -> Restored:
        restored = super().restore(state)
        self.went_on()
        return restored

    def _begin_under_others(self, bound: Time) -> None:
        super()._begin_under_others(bound)
        self.went_on()


class CorrectedExplaining(Explaining):
    """Owns what explanations of a run with corrections need. `length`: for how long events are explained, in
    µs; it is the period of corrections at least.
    """

    def __init__(self, program: Program, background: Collection[Triple], length: Time) -> None:
        super().__init__(Record(program, background, 0), lambda _triple, _time: "")
        self._length = length
        self._states: list[_State] = []
        self._taken: list[_Taken] = []
        self._made: dict[str, list[_Made]] = {}  # by event
        self._number = self._count = 0
        self._pipeline: RememberingPipeline | None = None

    def watch(self, pipeline: RememberingPipeline) -> RememberingPipeline:
        """Keep what comes from now on."""
        self._pipeline, pipeline.watcher = pipeline, self
        pipeline.came, pipeline.went_on = self._came, self._begin
        return pipeline

    def _begin(self) -> None:
        """Forget what was before: the pipeline begins, goes on from a snapshot, or has other rules."""
        assert self._pipeline is not None, "it is watched"
        if self._record.program is not self._pipeline.program:
            self._record = Record(self._pipeline.program, self._pipeline.background, 0)
        self._states, self._made = [_State(*self._pipeline.final())], {}
        self._taken = [_Taken(time, part, 0) for time, part in self._pipeline.graphs()]

    # -- what comes

    def _came(self, time: Time, part: GraphOrMessage) -> None:
        if not self._states:
            self._begin()
        else:
            self._taken.append(_Taken(time, part, 0))
        self._count += 1
        if not self._count & _LOOK:
            self._look()

    def waits(self, part: GraphOrMessage) -> None:
        """See `Watcher`: it is kept when it is taken."""

    def corrected(self, at: Time, late: Sequence[Late], changed: Sequence[Changes]) -> None:
        """See `Watcher`."""
        self._number += 1
        self._taken += [_Taken(one.time, one.part, self._number) for one in late]
        for events in changed:
            causes = tuple((one.time, one.place) for one in late if one.time <= events.time)
            for event in events:
                made = _Made(self._number, EventChange(events.change, at, causes), events.time)
                self._made.setdefault(event.id, []).append(made)

    def _look(self) -> None:
        """Keep another state; forget what is too old."""
        assert self._pipeline is not None, "it is watched"
        (time, state), settled = self._pipeline.final(), self._pipeline.settled
        last = self._states[-1].time
        if time is None or settled is None or (last is not None and time - last <= self._length // 4):
            return
        self._states.append(_State(time, state))
        low, first = settled - self._length, 0
        for place, one in enumerate(self._states):
            if one.time is not None and one.time < low:
                first = place
        since = self._states[first].time
        if first and since is not None:
            del self._states[:first]
            self._taken = [one for one in self._taken if one.time > since]
            self._made = {name: made for name, made in self._made.items() if made[-1].time > since}

    # -- why

    @property
    def record(self) -> Record:
        """Everything that is kept, as it holds now."""
        return self._run(lambda _event: False, None, everything=True)

    def event(self, name: str) -> Explanation:
        """See `Explaining`."""
        made = self._made.get(name, [])
        until = made[-1].time if made else None
        changes = tuple(one.change for one in made)
        gone = bool(made) and changes[-1].change < 0
        number = made[-1].number if gone else None
        before = self._run(lambda event: event.id == name, until, None if number is None else number - 1)
        if before.wanted_event is None:
            raise UsageError.of(
                "D4173",
                f"the event `{name}` is not kept any more",
                hint="explain events as they come, or keep more: keep='7 d'",
            )
        explainer = explainer_of(before)
        if gone:
            after = self._run(lambda _event: False, until, number)
            found: WhyNot = withdrawn(explainer, explainer_of(after), before.wanted_event, changes)
        else:
            found = explainer.event(before.wanted_event)
            found = Corrected(found, changes) if changes else found
        return self._explained(before, [found])

    def why_not(self, rule: str, time: Time, where: Mapping[str, Term]) -> Explanation:
        """See `Explaining`."""
        self._refuse_unknown(rule)
        history = self._run(lambda _event: False, time)
        return self._explained(history, explainer_of(history).why_not(rule, time, where))

    def _explained(self, history: History, found: Sequence[WhyNot]) -> Explanation:
        return Explanation(found, self._record.program.prefixes, history.clock, lambda _triple, _time: "")

    def _run(
        self,
        wanted: Callable[[KeptEvent], bool],
        until: Time | None,
        corrections: int | None = None,
        everything: bool = False,
    ) -> History:
        """Run what was taken, up to a time, as of so many corrections."""
        program, background = self._record.program, self._record.background
        limits: dict[str, Any] = {"until": until, "lateness": FOREVER, "everything": everything}
        history = History(program, background, wanted=wanted, first=True, **limits)
        history.reach = FOREVER
        pipeline = self._pipeline
        if pipeline is None or pipeline.clock is None or not self._states:
            return history
        first, clock = self._states[0], pipeline.clock
        history.go_on(first.state, clock, first.time)
        end = pipeline.watermark if until is None else until
        taken = [
            one
            for one in self._taken
            if (first.time is None or one.time > first.time)
            and (end is None or one.time <= end)
            and (corrections is None or one.correction <= corrections)
        ]
        graphs = (Graph(one.time, one.part, "") for one in sorted(taken, key=attrgetter("time")))
        history.run(graphs, lambda: clock)
        return history


def explaining_corrections(
    program: Program, background: Collection[Triple], longest: Time
) -> CorrectedExplaining:
    """For an engine that keeps for so long, in µs; what its rules can reach at least."""
    return CorrectedExplaining(program, background, max(longest, reach_of(program)))

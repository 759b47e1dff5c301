"""What lasts, from instant to instant: when it changes, how, and the facts of each instant over it.

Place:   core/pipeline.py holds it for a program in which something lasts, that asks for changes, or whose
         messages insert or delete; it replaces enriching and extracting each instant by itself.
Method:  language.md, "What lasts". An instant is all or nothing: what is stated advances (periods.py), what
         follows from it is maintained (maintained.py), the queries are evaluated; if any of these
         fails, everything is as before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from dotr.budget import BUDGET
from dotr.core.enrich import wanted
from dotr.core.maintained import Facts, Maintenance
from dotr.core.parts import Part, labelled
from dotr.core.periods import Entry, Periods, StatedChange
from dotr.core.query_units import MUCH_WORK
from dotr.core.spending import ANSWER, Spending
from dotr.datalog.materialiser import Materialiser
from dotr.datalog.owl_lists import rules_over
from dotr.errors import Diagnostic, ProgramError
from dotr.events import Clock, Message, Time
from dotr.ir import Program
from dotr.ir.datalog import AggregateAtom
from dotr.rdf.terms import Triple


class Replacement(NamedTuple):
    """A new program, with its background, from a time on."""

    program: Program
    background: frozenset[Triple]


class Jump(NamedTuple):
    """One instant of what lasts. `graph`: whether a graph came; `tick`: whether an EVERY is due; `program`:
    the new program from this instant on; `state`: if messages came and it is requested, K(t) without what
    follows from the background alone; `findings`: warnings.
    """

    facts: Facts
    messages: Sequence[Message] = ()
    graph: bool = False
    tick: bool = False
    program: Program | None = None
    state: Sequence[Triple] = ()
    findings: Sequence[Diagnostic] = ()

    @property
    def seen(self) -> bool:
        """Whether a rule may see it, or it is the first instant of a run or program."""
        return bool(self.tick or self.facts or self.messages or self.program)


class Jumps:
    """Owns what is stated, what follows from it, and the later programs. `states`: report what holds at each
    instant; everything must be materialised.
    """

    def __init__(
        self,
        program: Program,
        background: Collection[Triple],
        clock: Clock,
        *,
        materialize_all: bool = False,
        budget: int = BUDGET,
        states: bool = False,
    ) -> None:
        self.program = program
        self.useless = 0
        """Deletions of triples that were not stated."""
        self.consistent = True
        """Whether the last M was a consistent model: not after `overlook`."""
        self._background = frozenset(background)
        self._periods = Periods(self._background, program.holds)
        self._states = states
        self._given: frozenset[Triple] | None = None  # what follows from the background alone
        self.clock, self._all, self._budget = clock, materialize_all, budget
        self._spending = Spending(budget)
        self._readers = _readers(program)
        self._knowledge = self._opened()
        self._ahead: dict[Time, Replacement] = {}

    def _opened(self) -> Maintenance:
        return Maintenance(self.program, self._periods, self.clock, self._all, self._budget, self._spending)

    def replace(self, time: Time, program: Program, background: Collection[Triple]) -> None:
        """Schedule a program, with its background, to hold from `time` on, which lies ahead."""
        self._ahead[time] = Replacement(program, frozenset(background))

    def program_from(self, time: Time) -> Program | None:
        """The new program that holds from exactly this time on, or None."""
        found = self._ahead.get(time)
        return None if found is None else found.program

    def programs_ahead(self) -> dict[Time, Program]:
        """The later programs, by the times from which they hold."""
        return {time: replacement.program for time, replacement in self._ahead.items()}

    def next(self) -> Time | None:
        """When what lasts next changes without a message, or None."""
        times = [*self._ahead, *([] if (end := self._periods.next_end()) is None else [end])]
        return min(times, default=None)

    def go(self, time: Time, parts: Sequence[Part], tick: bool) -> Jump:
        """Advance to an instant; no change lies before it.

        `parts`: all messages, blank nodes as in the documents. Raises DataError and ProgramError for an
        instant in error; what lasts is then as before.
        """
        messages = labelled(parts, time)
        self._spending.begin(sum(map(_triples, messages)), self._periods.statements, self._readers)
        came = any(message.graph is not None for message in messages)
        replacement = self._ahead.get(time)
        stated = self._stated(time, messages, replacement)
        knowledge = self._knowledge
        program = self.program_from(time)
        state: Sequence[Triple] = ()
        try:
            facts = knowledge.change(time, stated, program)
            if came or tick or facts:
                graph = [triple for message in messages for triple in message.graph or ()]
                facts = {**knowledge.facts(time, graph if came else None), **facts}
                self._answered(facts)
            if self._states and messages:
                graph = [triple for message in messages for triple in message.graph or ()]
                state = sorted(knowledge.state(graph) - self._background_alone(replacement))
        except BaseException as error:
            knowledge.abandon()
            self._periods.undo()
            self._periods.declare(self.program.holds)
            if isinstance(error, ProgramError):
                raise self._spending.explained(error) from None
            raise
        finally:
            self._spending.end()
        knowledge.keep()
        self._settle(time, stated, replacement)
        self.consistent = True
        return Jump(facts, messages, came, tick, program, state, knowledge.findings())

    def _answered(self, facts: Facts) -> None:
        """Spend what rules may do with the facts of an instant. Raises ProgramError D4132."""
        spending = self._spending
        most, units = spending.left, ANSWER * sum(map(len, facts.values()))
        spending.spend(min(units, most))
        if units > most:
            name = max(facts, key=lambda stream: (len(facts[stream]), stream))
            changes = name.startswith(("ISTREAM ", "DSTREAM "))
            instead = "" if changes else "read ISTREAM in place of all answers, "
            raise ProgramError.of(
                MUCH_WORK,
                f"query `{name}` takes more than {most} units of work over what lasts",
                notes=(f"it has {len(facts[name]):,} answers at once, of {ANSWER} units each",),
                hint=f"join patterns through shared variables, {instead}or raise --budget",
            )

    def _background_alone(self, replacement: Replacement | None) -> frozenset[Triple]:
        """What follows from the background and the rules without any message."""
        if self._given is None or replacement is not None:
            program, background = replacement or (self.program, self._background)
            rules = rules_over(program, background)
            closed = Materialiser(rules, background, needed=wanted(program, materialize_all=True))
            self._given = frozenset(closed.state())
        return self._given

    def overlook(self, time: Time, tick: bool) -> Jump:
        """Advance to an instant that is in error without its messages: it has no facts."""
        replacement = self._ahead.get(time)
        stated = self._stated(time, (), replacement)
        program = self.program_from(time)
        self._knowledge.overlook(time, stated, program)
        self._settle(time, stated, replacement)
        self.consistent = False
        return Jump({}, tick=tick, program=program)

    def stated(self) -> list[Triple]:
        """Every triple stated now."""
        return list(self._periods)

    def _stated(
        self, time: Time, messages: Sequence[Message], replacement: Replacement | None
    ) -> StatedChange:
        if replacement is None:
            return self._periods.change(time, messages)
        self._periods.declare(replacement.program.holds)
        old, new = self._background, replacement.background
        return self._periods.change(time, messages, sorted(old - new), sorted(new - old))

    def _settle(self, time: Time, stated: StatedChange, replacement: Replacement | None) -> None:
        self.useless += stated.useless
        if replacement is not None:
            del self._ahead[time]
            self.program, self._background = replacement
            self._readers = _readers(self.program)
            self._periods.rebase(self._background)

    @property
    def spent_at_most(self) -> int:
        """The most that was ever missing of what a run may spend (spending.py)."""
        return self._spending.deepest

    def changed(self) -> dict[Triple, Entry | None]:
        return self._periods.changed()

    def snapshot(self, stated: bool = True) -> dict[str, Any]:
        """What is stated beside the background, as a JSON value; between instants. A caller that keeps the
        values of `changed` leaves `stated` out.
        """
        return {
            "stated": self._periods.save() if stated else [],
            "consistent": self.consistent,
            "useless": self.useless,
            "spent": self._spending.spent,
            "knowledge": self._knowledge.snapshot(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a `snapshot`, over the current program and background."""
        self._periods.load(state["stated"])
        self.consistent, self.useless = state["consistent"], state["useless"]
        self._spending.restore(state.get("spent", 0))
        self._knowledge = self._opened()
        self._knowledge.restore(state["knowledge"])


def _triples(message: Message) -> int:
    """How many a message has."""
    return sum(map(len, filter(None, message)))


def _readers(program: Program) -> int:
    """The number of queries, and of Datalog rules with an AGGREGATE, that look at what lasts."""
    totals = sum(any(isinstance(atom, AggregateAtom) for atom in rule.body) for rule in program.datalog)
    return max(1, len(program.asked) + len(program.standing) + totals)

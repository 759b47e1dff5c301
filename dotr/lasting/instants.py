"""What lasts, from instant to instant: which instants occur, each all or nothing, and those in error.

Place:   core/pipeline.py, which closes instants and detects, uses it for a program in which something lasts,
         that asks for changes, or whose messages insert or delete; it replaces enriching and extracting each
         instant by itself. periods.py knows what is stated when; model.py has what follows. Tested against
         reference/lasting.py and, as a second engine, against recomputation after each change.
Method:  language.md, "What lasts". M(t) changes, K(t) is over it, and answers begin and end.
           LastingRun  an instant is all or nothing: what is stated advances, what follows from it is
             maintained, the queries are evaluated; if any of these fails, everything is as before. An instant
             calls `change` of Maintenance with the change of what is stated, `facts` if a rule sees it, and
             then `keep`; or `abandon` if one of them raised. Then `change` is called again with the ends of
             periods alone, as if the messages had never come; if that raises, too, `overlook` continues.
           LastingInstants  beside the instants of messages: ticks, ends of periods, and changes of rules,
             each once, in order. A refused instant is repeated without its messages; if that is in error,
             too, what is stated advances and the instant has no facts.
           watching  `dotr watch`: the answers of one query, as they begin and end, by a program with DSTREAM
             and ISTREAM of the query, each with a rule, so that answers that end at an instant are reported
             before those that begin (signed answers of a continuous query over a dynamic graph: Gergatsoulis,
             Damigos 2021). Undeclared relations are held until deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from dotr import program
from dotr.budget import ANSWER, BUDGET, Spending
from dotr.enrich.materialiser import Materialiser
from dotr.enrich.owl import rules_over
from dotr.errors import DataError, Diagnostic, DotrError, ProgramError
from dotr.events import Clock, Composite, Instant, Message, Part, Time, Values, labelled
from dotr.extract.extractor import MUCH_WORK, wanted
from dotr.lasting.model import Facts, Maintenance
from dotr.lasting.periods import Entry, Periods, StatedChange
from dotr.program import Hold, Program, RelationToStream, StandingQuery
from dotr.program.queries import AggregateAtom
from dotr.rdf.terms import RDF_TYPE, TRUE, Triple

if TYPE_CHECKING:
    from dotr.reference.oracle import Oracle


class Replacement(NamedTuple):
    """A new program, with its background, from a time on."""

    program: Program
    background: frozenset[Triple]


class LastingInstant(NamedTuple):
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


class LastingRun:
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

    def go(self, time: Time, parts: Sequence[Part], tick: bool) -> LastingInstant:
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
        return LastingInstant(facts, messages, came, tick, program, state, knowledge.findings())

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

    def overlook(self, time: Time, tick: bool) -> LastingInstant:
        """Advance to an instant that is in error without its messages: it has no facts."""
        replacement = self._ahead.get(time)
        stated = self._stated(time, (), replacement)
        program = self.program_from(time)
        self._knowledge.overlook(time, stated, program)
        self._settle(time, stated, replacement)
        self.consistent = False
        return LastingInstant({}, tick=tick, program=program)

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
        """The most that was ever missing of what a run may spend (budget.py)."""
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


OnRefused: TypeAlias = Callable[[Time, Sequence[Part], DotrError], DotrError | None]
"""Handles an instant in error: returns what to raise after it, None to continue."""

Leap: TypeAlias = "tuple[Time, LastingInstant, DotrError | None]"
"""(time, what happened, what to raise after it)."""


class LastingInstants:
    """Owns what lasts in a run, and drives the literal reading beside it if verifying."""

    def __init__(self, run: LastingRun, on_refused: OnRefused, oracle: Oracle | None) -> None:
        self._run = run
        self._on_refused = on_refused
        self._oracle = oracle
        if oracle is not None:
            oracle.last_from_now()

    def stated(self) -> list[Triple]:
        """Every triple stated now."""
        return self._run.stated()

    @property
    def useless(self) -> int:
        """Deletions of triples that were not stated."""
        return self._run.useless

    def replace(self, time: Time, program: Program, background: Collection[Triple]) -> None:
        self._run.replace(time, program, background)
        if self._oracle is not None:
            self._oracle.replace(time, program, background)

    def program_from(self, time: Time) -> Program | None:
        return self._run.program_from(time)

    def programs_ahead(self) -> dict[Time, Program]:
        return self._run.programs_ahead()

    def instants(
        self,
        due: Sequence[Instant],
        bound: Time,
        next_tick: Callable[[Time], Time | None],
        is_tick: Callable[[Time], bool],
    ) -> Iterator[Leap]:
        """The instants `due`, and those between and after them that lie before `bound`.

        The caller finishes one instant before it takes the next, so that `next_tick` (the next tick that can
        matter before a time) knows of it.
        """
        for time, parts in due:
            yield from self._before(time, next_tick, is_tick)
            yield self._leap(time, parts or (), is_tick(time))
        yield from self._before(bound, next_tick, is_tick)

    def _before(
        self, bound: Time, next_tick: Callable[[Time], Time | None], is_tick: Callable[[Time], bool]
    ) -> Iterator[Leap]:
        while True:
            change = self._run.next()
            until = bound if change is None else min(bound, change)
            time = next_tick(until)  # before the change, if any
            time = until if time is None else time
            if time >= bound:
                return
            yield self._leap(time, (), is_tick(time))

    def _leap(self, time: Time, parts: Sequence[Part], tick: bool) -> Leap:
        try:
            return time, self._run.go(time, parts, tick), None
        except (DataError, ProgramError) as error:
            return time, *self._without(time, parts, tick, self._placed(error, time))

    def _without(
        self, time: Time, parts: Sequence[Part], tick: bool, error: DotrError
    ) -> tuple[LastingInstant, DotrError | None]:
        """The outcome of an instant whose messages are refused."""
        run, oracle = self._run, self._oracle
        failed = self._on_refused(time, parts, error) if parts or run.consistent else None
        if oracle is not None:
            oracle.refuse(time, labelled(parts, time), error)
        if parts:
            try:
                return run.go(time, (), tick), failed
            except (DataError, ProgramError) as again:
                if run.consistent:
                    failed = failed or self._on_refused(time, (), self._placed(again, time))
        if oracle is not None:
            oracle.overlook(time)
        return run.overlook(time, tick), failed

    def _placed(self, error: DotrError, time: Time) -> DotrError:
        """An error of an instant, with its time for a place."""
        place = f"@ {self._run.clock.text(time)}"
        return type(error)([one if one.place else one._replace(place=place) for one in error.diagnostics])

    @property
    def spent_at_most(self) -> int:
        return self._run.spent_at_most

    def changed(self) -> dict[Triple, Entry | None]:
        return self._run.changed()

    def snapshot(self, stated: bool = True) -> dict[str, Any]:
        return self._run.snapshot(stated)

    def restore(self, state: Mapping[str, Any]) -> None:
        self._run.restore(state)


ENDED, BEGUN = "ended", "begun"

_SIGNS: Final = {ENDED: -1, BEGUN: 1}


class SignedAnswer(NamedTuple):
    """Equal rows, `change` of them, that begin (> 0) or end at a time. `values` in projection order."""

    time: Time
    change: int
    values: Values


def watching(program: program.Program, select: program.Select) -> program.Program:
    """The prologue of `program` with nothing but the query, which has no NOW()."""
    query = _with_a_row(select)
    holds = program.holds
    if not any(hold.predicate is None and hold.class_ is None for hold in holds):
        holds = (*holds, Hold())
    operators = {ENDED: RelationToStream.DSTREAM, BEGUN: RelationToStream.ISTREAM}
    return replace(
        program,
        queries={},
        rules=tuple(_rule(name, query) for name in operators),
        dependencies=tuple(range(len(operators))),
        holds=holds,
        standing={name: StandingQuery(operator, query) for name, operator in operators.items()},
    )


def watched(program: program.Program) -> program.Select:
    """The query of a program of `watching`: for an ASK one that has a row while the answer is yes."""
    return program.standing[BEGUN].select


def signed(events: Sequence[Composite], ask: bool = False) -> Iterator[SignedAnswer]:
    """The events of one instant of a program of `watching` as answers: those that end, then those that begin,
    each in canonical order, equal rows merged. `ask`: the query was an ASK, whose row is empty.
    """
    for (rule, time, values), equal in groupby(events, _content):
        yield SignedAnswer(time, _SIGNS[rule] * len(list(equal)), () if ask else values)


def _content(event: Composite) -> tuple[str, Time, Values]:
    _, values, _, _ = event.facts[0]
    return event.rule, event.time, values


def _rule(name: str, select: program.Select) -> program.Rule:
    template = (program.TemplateTriple(program.Fresh("dotr_answer"), RDF_TYPE, f"<urn:dotr:{name}>"),)
    return program.Rule(name, template, program.Position(name, name, select.variables), (), None, (), ())


def _with_a_row(select: program.Select) -> program.Select:
    """An ASK as a SELECT that has one row where it is true."""
    if not select.ask:
        return select
    name, text = "yes", repr(select)
    while f"'{name}'" in text:
        name += "_"
    projection = (program.Projection(program.Var(name), program.Const(TRUE)),)
    return replace(select, ask=False, distinct=True, projection=projection)

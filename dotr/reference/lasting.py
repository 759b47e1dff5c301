"""What lasts, literally: a list of statements; M and K closed from nothing; whole answers compared.

Place:   the measure of lasting/, for tests and `--verify`.
Method:  language.md, "What lasts", sentence by sentence. Every statement ever made is in a list, with its
         period; at each instant M(t) and K(t) are closed from nothing over what holds, every query is asked
         of the full SPARQL engine, and ISTREAM and DSTREAM are differences of bags of whole answers. When M
         jumps is read off the list.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from datetime import date
from typing import Any, Final, NamedTuple

import pyoxigraph as ox
from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from dotr.enrich.owl import (
    SAME_AS,
    between_vocabulary,
    instantiate,
    is_schema_class,
    is_schema_predicate,
    is_vocabulary,
    rules_over,
    schema_triples,
    stream_schema,
    vocabulary,
)
from dotr.errors import DataError, ProgramError
from dotr.events import Clock, Fact, Match, Message, Time, Values
from dotr.expressions.literal_numbers import row_key
from dotr.extract.algebra import relations_of
from dotr.extract.full import BoundedFullQuery
from dotr.extract.sharing import facts_of
from dotr.joins.plan import relation_of
from dotr.program import DatalogRule, Entailment, Hold, Program, RelationToStream, Select
from dotr.rdf.terms import RDF_TYPE, XSD, Term, Triple, literal_parts
from dotr.reference.effects import LiteralEffect, effects_of, next_moment
from dotr.reference.enrich import LiteralStates, closure, contradictions, in_rdf, plain_closure, quad
from dotr.reference.extract import LiteralExtractor

FOREVER: Final[Time] = 2**127
_EVER: Final[Time] = -FOREVER


class TimedStatement(Struct, frozen=True):
    """A triple holds over `[start, until)` because of it. `latest`: the next value of its subject and
    predicate ends it. `held`: a graph made it.
    """

    triple: Triple
    start: Time
    until: Time = FOREVER
    latest: bool = False
    held: bool = False

    def holds(self, time: Time) -> bool:
        return self.start <= time < self.until

    def ended(self, time: Time) -> TimedStatement:
        return replace(self, until=min(self.until, time))


class LiteralStatements:
    """Owns every statement that was ever made. A value: `after` makes another one."""

    def __init__(self, made: Iterable[TimedStatement] = ()) -> None:
        self.made = tuple(made)

    @classmethod
    def of(cls, background: Iterable[Triple]) -> LiteralStatements:
        return cls(TimedStatement(triple, _EVER) for triple in sorted(background))

    def at(self, time: Time) -> set[Triple]:
        """L(t)."""
        return {statement.triple for statement in self.made if statement.holds(time)}

    def ends(self, after: Time, before: Time) -> set[Time]:
        """The times between both at which a period ends, or one begins that a graph announced."""
        periods = [(s.start, s.until) for s in self.made if s.start < s.until]
        return {time for period in periods for time in period if after < time < before}

    def after(
        self,
        time: Time,
        messages: Sequence[Message],
        holds: Sequence[Hold],
        ended: Collection[Triple] = (),
        begun: Iterable[Triple] = (),
        clock: Clock | None = None,
        effects: Sequence[LiteralEffect] = (),
    ) -> tuple[LiteralStatements, int]:
        """With what comes at `time`; and how many triples were to be deleted that were not stated.

        `ended` and `begun`: the difference that a change of the background makes. `effects`: of the events of
        the moment before.
        """
        before = self.at(time - 1) | {s.triple for s in self.made if time <= s.start < s.until}
        deleted = {triple for message in messages for triple in message.delete or ()}
        graphs = {triple for message in messages for triple in message.graph or ()}
        stated = {triple for effect in effects for triple in effect.stated}
        graphs |= stated
        matched = {t for t in self.at(time - 1) if any(effect.ends(t) for effect in effects)}
        own = {}
        for triple in graphs:
            hold = hold_of(triple, holds)
            if hold is not None and hold.duration != 0:
                own[triple] = statement_of(triple, hold, time, graphs, clock or Clock())
            elif hold is None and triple in stated:
                own[triple] = TimedStatement(triple, time, held=True)
        values: dict[tuple[Term, Term], Time] = {}
        for triple in graphs:
            new = own.get(triple)
            values[triple[:2]] = min(time if new is None else new.start, values.get(triple[:2], FOREVER))
        made = []
        for statement in self.made:
            if statement.triple in deleted | matched or statement.triple in ended:
                made.append(statement.ended(time))
            elif statement.latest and statement.triple[:2] in values:
                made.append(statement.ended(values[statement.triple[:2]]))
            else:
                made.append(statement)
        inserted = {triple for message in messages for triple in message.insert or ()} | set(begun)
        made += [TimedStatement(triple, time) for triple in sorted(inserted)]
        made += [statement for _, statement in sorted(own.items()) if statement is not None]
        return LiteralStatements(made), len(deleted - before)


def unheld(time: Time, messages: Sequence[Message], holds: Sequence[Hold], clock: Clock) -> set[Triple]:
    """The triples of an instant's graphs that are declared and do not last, by the times in the graphs."""
    graphs = {triple for message in messages for triple in message.graph or ()}
    lines = {triple: hold_of(triple, holds) for triple in graphs}
    return {
        triple
        for triple, hold in lines.items()
        if hold is not None and hold.duration != 0 and statement_of(triple, hold, time, graphs, clock) is None
    }


def statement_of(
    triple: Triple, hold: Hold, time: Time, graphs: Collection[Triple], clock: Clock
) -> TimedStatement | None:
    """What the line makes of a triple that is in the graphs of an instant; None where it is not held."""
    begins = [moment(o, clock) for s, p, o in graphs if s == triple[0] and p == hold.start]
    ends = [moment(o, clock) for s, p, o in graphs if s == triple[0] and p == hold.until]
    if None in begins or None in ends:
        return None
    start = max([time, min(time for time in begins if time is not None)]) if begins else time
    until = max(time for time in ends if time is not None) if ends else FOREVER
    if until <= start:
        return None
    if hold.duration is not None:
        until = min(until, start + hold.duration)
    return TimedStatement(triple, start, until, hold.latest, held=True)


_MOMENT = re.compile(
    r"(-?(?:[1-9]\d{4,8}|\d{4}))-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,18}))?(Z|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_CYCLE = 146_097  # days of 400 years


def moment(term: Term, clock: Clock) -> Time | None:
    """The time that a value is: an integer, or a dateTime with a zone; also as a string or of a datatype
    that is not XSD's. Times beyond 64 bits of microseconds are the first and the last of them.
    """
    if not term.startswith('"'):
        return None
    text, datatype, language = literal_parts(term)
    own = datatype == f"{XSD}string" or not datatype.startswith(XSD)
    if language:
        return None
    if clock.integer:
        whole = re.fullmatch(r"([+-]?)(\d+)", text, re.ASCII)
        name = datatype.removeprefix(XSD).lower()
        if whole is None or not (own or name.endswith(("integer", "int", "long", "short", "byte"))):
            return None
        if own and len(whole[2]) > 30:
            return None
        digits = whole[2].lstrip("0")
        size = int(digits or "0") * clock.unit if len(digits) <= 30 else FOREVER
        return _bounded(-size if whole[1] == "-" else size)
    found = _MOMENT.fullmatch(text)
    if found is None or not (own or datatype in (f"{XSD}dateTime", f"{XSD}dateTimeStamp")):
        return None
    year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
    fraction, sign = found[7] or "", -1 if found[9] == "-" else 1
    offset = 0 if found[8] == "Z" else sign * (60 * int(found[10]) + int(found[11]))
    midnight = hour == 24 and not minute and not second and not fraction.strip("0")
    if not (hour < 24 or midnight) or minute > 59 or second > 59:
        return None
    if abs(offset) > 14 * 60 or (found[11] and int(found[11]) > 59):
        return None
    try:
        days = date(2000 + year % 400, month, day).toordinal() - date(1970, 1, 1).toordinal()
    except ValueError:
        return None
    days += _CYCLE * (year // 400 - 5)
    seconds = 86_400 * days + 3600 * hour + 60 * (minute - offset) + second
    return _bounded(seconds * 1_000_000 + int(fraction[:6].ljust(6, "0")))


def _bounded(time: Time) -> Time:
    return max(1 - 2**63, min(2**63 - 1, time))


def hold_of(triple: Triple, holds: Sequence[Hold]) -> Hold | None:
    """The line that says how long a triple of a graph lasts."""
    _, predicate, object_ = triple
    for hold in holds:
        if hold.predicate == predicate and (predicate != RDF_TYPE or hold.class_ == object_):
            return hold
    return next((hold for hold in holds if hold.predicate is None), None)


class ProgramChange(NamedTuple):
    """Another program, with another background, from a time on."""

    time: Time
    program: Program
    background: frozenset[Triple]


class LiteralLasting:
    """Owns the statements, the program of the time, and the last M that did not contradict itself."""

    def __init__(self, program: Program, background: Collection[Triple], clock: Clock) -> None:
        self.program = program
        self.statements = LiteralStatements.of(background)
        self.clock = clock
        self.useless = 0
        self.unheld = 0
        self._background = frozenset(background)
        self._changes: list[ProgramChange] = []
        self._model = frozenset(closure(rules_over(program, self._background), self._background))
        self._consistent = True
        self._last = _EVER
        self._effects: tuple[Time, list[LiteralEffect]] | None = None
        self._queries: dict[Select, BoundedFullQuery] = {}
        self._extract: tuple[Program, LiteralExtractor] | None = None

    def replace(self, change: ProgramChange) -> None:
        """Another program from a time on that has not come yet, instead of one that was given for it."""
        self._changes = [*(one for one in self._changes if one.time != change.time), change]

    def jumps(self, before: Time) -> list[Time]:
        """When M jumps next without a message, up to `before` and without it, in order."""
        changes = {change.time for change in self._changes if self._last < change.time < before}
        pending = set() if self._effects is None else {self._effects[0]}
        ahead = {time for time in pending if time < before}
        return sorted(self.statements.ends(self._last, before) | changes | ahead)

    def happen(self, time: Time, matches: Collection[Match]) -> None:
        """The events of `time`, those of PRIVATE rules too: their effects come at the next moment."""
        found = effects_of(self.program, matches)
        if found:
            self._effects = next_moment(time, self.clock), found

    def leave_out(self, time: Time) -> None:
        """Of the effects of `time`, which contradict what lasts, keep those that do not, event by event."""
        kept: list[LiteralEffect] = []
        all_of_them = self._due(time)
        for effect in all_of_them:
            trial = copy(self)
            trial._effects = time, [*kept, effect]
            try:
                trial.at(time, ())
            except (DataError, ProgramError):
                continue
            kept.append(effect)
        self._effects = time, kept

    def _due(self, time: Time) -> list[LiteralEffect]:
        return self._effects[1] if self._effects is not None and self._effects[0] == time else []

    @property
    def last(self) -> Time:
        """The last instant taken; before every time where there was none."""
        return self._last

    def at(self, time: Time, messages: Sequence[Message]) -> dict[str, list[Fact]]:
        """The facts of all streams at `time`, which no jump lies before.

        `messages`: all that came, blank nodes labelled. Raises DataError and ProgramError where the instant
        is refused, and nothing has come then.
        """
        change = next((change for change in self._changes if change.time == time), None)
        program = self.program if change is None else change.program
        statements, useless = self._after(time, messages, change)
        lasting = statements.at(time)
        rules = rules_over(program, lasting)
        graph = {triple for message in messages for triple in message.graph or ()}
        came = any(message.graph is not None for message in messages)
        stated = {triple for effect in self._due(time) for triple in effect.stated}
        if came or stated:
            new = [s for s in statements.made if s.held and s.start == time and s.triple in graph | stated]
            own = {s.triple for s in new}
            others = {s.triple for s in statements.made if s.holds(time) and s not in new}
            _refuse_schema(program, rules, others, own | graph)
        states = LiteralStates(rules, lasting)
        model = _consistent(rules, states.generalized, program)
        facts = self._differences(program, model, time)
        state = _consistent(rules, states.generalized_at(graph), program) if graph else model
        facts |= self._extractor(program).facts(_store(state), time, self.clock.term(time))
        self._settle(time, program, statements, useless, change)
        self.unheld += len(unheld(time, messages, program.holds, self.clock))
        self._model, self._consistent = model, True
        return facts

    def overlook(self, time: Time) -> None:
        """M contradicts itself at `time`, and no message is to blame: what is stated goes on."""
        change = next((change for change in self._changes if change.time == time), None)
        statements, _ = self._after(time, (), change)
        program = self.program if change is None else change.program
        self._settle(time, program, statements, 0, change)
        self._consistent = False

    def _after(
        self, time: Time, messages: Sequence[Message], change: ProgramChange | None
    ) -> tuple[LiteralStatements, int]:
        program, new = (self.program, self._background) if change is None else change[1:]
        gone, more = self._background - new, new - self._background
        return self.statements.after(time, messages, program.holds, gone, more, self.clock, self._due(time))

    def _settle(
        self,
        time: Time,
        program: Program,
        statements: LiteralStatements,
        useless: int,
        change: ProgramChange | None,
    ) -> None:
        self.program, self.statements, self._last = program, statements, time
        if self._effects is not None and self._effects[0] == time:
            self._effects = None
        self.useless += useless
        if change is not None:
            self._background = change.background

    def _differences(self, program: Program, model: frozenset[Triple], time: Time) -> dict[str, list[Fact]]:
        before, after = _store(self._model), _store(model)
        found: dict[str, list[Fact]] = {}
        for stream, standing in program.standing.items():
            was, now = (self._answers(standing.select, store) for store in (before, after))
            gained = now - was if standing.operator is RelationToStream.ISTREAM else was - now
            if gained:
                found[stream] = facts_of(gained.elements(), time, row_key)
        return found

    def _answers(self, select: Select, store: ox.Store) -> Counter[Values]:
        if select not in self._queries:
            self._queries[select] = BoundedFullQuery(select)
        return Counter(self._queries[select].rows(store, self.clock.term(0)))

    def _extractor(self, program: Program) -> LiteralExtractor:
        if self._extract is None or self._extract[0] is not program:
            self._extract = program, LiteralExtractor(program.queries)
        return self._extract[1]

    def snapshot(self) -> Any:
        """Everything, as a value that JSON can hold."""
        made = [[*s.triple, str(s.start), str(s.until), s.latest, s.held] for s in self.statements.made]
        model = None if self._consistent else [list(triple) for triple in sorted(self._model)]
        return {
            "made": made,
            "model": model,
            "last": str(self._last),
            "useless": self.useless,
            "unheld": self.unheld,
            "effects": None if self._effects is None else to_builtins(self._effects),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.statements = LiteralStatements(
            TimedStatement((s, p, o), int(start), int(until), latest, held)
            for s, p, o, start, until, latest, held in state["made"]
        )
        self.useless, self._last = state["useless"], int(state["last"])
        self.unheld = state.get("unheld", 0)
        effects = state.get("effects")
        self._effects = None if effects is None else convert(effects, tuple[int, list[LiteralEffect]])
        self._consistent = state["model"] is None
        if state["model"] is not None:
            self._model = frozenset((s, p, o) for s, p, o in state["model"])
        else:
            lasting = self.statements.at(self._last)
            self._model = frozenset(closure(rules_over(self.program, lasting), lasting))


def _consistent(
    rules: Sequence[DatalogRule], state: Collection[Triple], program: Program
) -> frozenset[Triple]:
    """A closed state, as far as it is RDF; raises DataError D3101 where it contradicts itself."""
    if program.entailment is not Entailment.NONE and contradictions(rules, state):
        raise DataError.of("D3101", "inconsistent, literally")
    return frozenset(in_rdf(state))


def _refuse_schema(
    program: Program, rules: Sequence[DatalogRule], lasting: Collection[Triple], graph: Collection[Triple]
) -> None:
    """Raise DataError D2601 where a graph brings schema over which rules were instantiated, lets some follow,
    or makes a class or a property equal to something.
    """
    known = instantiate(rules, lasting, plain_closure)
    if not known.over:
        return
    for triple in graph:
        if is_schema_predicate(triple[1]) and triple[1] != SAME_AS:
            raise DataError(stream_schema(triple))
        if triple[1] == RDF_TYPE and is_schema_class(triple[2]):
            raise DataError(stream_schema(triple))
    states = LiteralStates(rules, lasting)
    new = frozenset(states.at(graph)) - states.closed
    for triple in sorted(schema_triples(new)):
        if relation_of(*triple) in known.watched:
            raise DataError(stream_schema(triple, derived=True))
    asked = frozenset().union(*map(relations_of, program.selects.values()))
    terms = vocabulary(known, asked)
    equal = sorted((s, o) for s, p, o in new if p == SAME_AS and s != o)
    for subject, object_ in equal:
        if is_vocabulary(subject, terms) or is_vocabulary(object_, terms):
            raise DataError(between_vocabulary(subject, object_))


def _store(triples: Iterable[Triple]) -> ox.Store:
    store = ox.Store()
    store.bulk_extend(quad(triple) for triple in triples)
    return store

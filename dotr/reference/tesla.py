"""The meaning of a rule, written down: enumeration over the whole history, row by row of language.md §3.

Place:   beside the engine, for tests and `--verify`. Same interface as TeslaDetector. Proofs, their checker,
         the coverage of tests and the survey take windows, candidates and choices from here.
Method:  keep every fact a rule ever saw; for each trigger fact try what the table says, in its order.
Why not: faster. Whoever doubts the engine reads this file against the table.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, assert_never

from msgspec import Struct

from dotr.budget import UNLIMITED, Allowance, Exhausted, Overlong
from dotr.detect.analysis import Occasion, evaluation_order, occasions_seen, reachable
from dotr.detect.digest import rule_digests
from dotr.detect.timeline import opened
from dotr.errors import DataError, EngineError, ProgramError
from dotr.events import NEVER, Clock, Fact, Match, Time
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.expressions.literal_numbers import literally, row_key
from dotr.program.names import match_id
from dotr.program.positions import Position
from dotr.program.program import Program
from dotr.program.queries import Attribute, Expression, TimeOf, Var
from dotr.program.rules import (
    After,
    Between,
    Conjunct,
    Delay,
    Fresh,
    Rule,
    TemplateNode,
    TemplateVar,
    Tick,
    Within,
)
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import Term, is_iri, is_literal
from dotr.reference.calendars import next_at, ticks_at
from dotr.reference.lars import LiteralLars
from dotr.reference.operators import LITERAL, Row
from dotr.reference.sequences import LiteralSequence, PatternRow

_TIME: Final = itemgetter(0)


def fact_key(fact: Fact) -> tuple[Any, ...]:
    """Canonical order of the facts of one stream: time, values, ordinal."""
    return fact[0], row_key(fact[1]), fact[2]


class LiteralTesla:
    """Owns everything a program's rules ever saw. Each call costs what enumeration costs. `budget`: units of
    work of LARS rules at points at which nothing comes, and of a sequence at an instant (D4012).
    """

    def __init__(self, program: Program, clock: Clock, budget: int = UNLIMITED) -> None:
        self.program = program
        self.dropped = 0
        self._timeline = opened(program, clock, LiteralLars, literal=True, allowance=Allowance(budget))
        self._rules = [literal_rule(rule, clock, budget) for rule in program.rules]
        self._deadlines = deadlines_seen(program)
        self._order = evaluation_order(program)
        self._occasions = occasions_seen(program)
        self._first: Time | None = None
        self._now: Time | None = None

    def at(
        self,
        time: Time,
        facts: Mapping[str, Sequence[Fact]],
        graph: bool = True,
        left_out: Collection[tuple[int, Fact]] = (),
    ) -> list[Match]:
        """The matches at `time`, in output order; times strictly increase from call to call.

        `facts`: per stream, those of this instant. `graph` False: none came, and only rules that see the
        instant all the same are touched. `left_out`: (number of a rule, trigger fact) that take too much.
        """
        if self._now is not None and time <= self._now:
            raise DataError.of("D4002", f"time runs backwards: {time} after {self._now}")
        for rule in self._rules:
            for tick in rule.late_times():
                if self._now is not None and self._now < tick < time:
                    raise _passed_over(rule, tick, "literally it is evaluated there")
        self._now = time
        if self._first is None:
            self._first = time
        found: dict[int, list[Match]] = {}
        composites: dict[str, list[Fact]] = {}
        if self._timeline is not None and (passed := self._timeline.catch_up(time)):
            self._pass_over(passed, left_out)
        late = {t.delay for r in self._rules if isinstance(t := r.rule.trigger, After) and r.is_late(time)}
        sees = [graph or any(_is_due(o, time, facts, late) for o in seen) for seen in self._occasions]
        ends = {r.rule.name for r in self._rules if isinstance(r, LiteralSequenceRule) and r.is_late(time)}
        sees = [saw or bool(ends & seen) for saw, seen in zip(sees, self._deadlines, strict=True)]
        for index, rule in enumerate(self._rules):
            if sees[index]:
                rule.see(facts, graph)
        layers: list[tuple[int, int]] = []
        if self._timeline is not None:
            self._timeline.take(time, facts, graph)
            layers = self._timeline.begin(time)
        for rank, index in enumerate(self._order):
            while layers and layers[0][0] <= rank:
                self._see_held(layers.pop(0)[1], facts, sees, graph)
            rule = self._rules[index]
            if not sees[index] and rule.rule.name not in ends:
                continue
            if sees[index] and isinstance(rule, LiteralSequenceRule):
                rule.take(time)
            matches, dropped = rule.matches(index, time, left_out)
            self.dropped += dropped
            found[index] = matches
            composites[rule.rule.name] = _as_facts(rule.rule, matches)
            for other in self._rules:
                other.see_composites(rule.rule.name, composites[rule.rule.name])
            if self._timeline is not None:
                self._timeline.events(rule.rule.name, composites[rule.rule.name])
        for _, number in layers:
            self._see_held(number, facts, sees, graph)
        if self._timeline is not None:
            self._timeline.end()
        return [match for index in sorted(found) for match in found[index]]

    def _pass_over(
        self, passed: Mapping[str, Sequence[Fact]], left_out: Collection[tuple[int, Fact]]
    ) -> None:
        """Show the rules what held at points that were passed over. Raises EngineError D4090 where one that a
        head triggers has a match there.
        """
        for rule in self._rules:
            rule.see_held(passed)
        for index, rule in enumerate(self._rules):
            trigger = rule.rule.trigger
            if isinstance(trigger, Tick | After | RowPattern) or not trigger.of_head:
                continue
            for point in dict.fromkeys(fact[0] for fact in passed.get(trigger.stream, ())):
                matches, dropped = rule.matches(index, point, left_out)
                if matches or dropped:
                    raise _passed_over(rule, point, "literally it matches there")

    def _see_held(
        self, number: int, facts: Mapping[str, Sequence[Fact]], sees: list[bool], graph: bool
    ) -> None:
        """Show the rules what holds, of one layer; a change lets its rules see the instant."""
        assert self._timeline is not None, "there are layers"
        held = self._timeline.evaluate(number)
        for index, rule in enumerate(self._rules):
            if not sees[index] and any(stream in held for stream in self._occasions[index]):
                sees[index] = True
                rule.see(facts, graph)
            rule.see_held(held)

    def next_tick(self, after: Time) -> Time | None:
        """The earliest due tick > `after`; None if there is none, or before the first instant."""
        every = {r.trigger.rhythm for r in self.program.rules if isinstance(r.trigger, Tick)}
        ticks = [] if self._first is None else [next_at(d, max(after + 1, self._first)) for d in every]
        late = [time for rule in self._rules for time in rule.late_times() if time > after]
        return min([*late, *ticks], default=None)

    def snapshot(self) -> dict[str, Any]:
        """All that was seen and consumed, as a JSON-able value, by rule digest."""
        digests = rule_digests(self.program)
        parts = {digest: rule.snapshot() for digest, rule in zip(digests, self._rules, strict=True)}
        state = {
            "version": 1,
            "first": self._first,
            "now": self._now,
            "dropped": self.dropped,
            "rules": parts,
        }
        return state if self._timeline is None else {**state, "timeline": self._timeline.snapshot()}

    def restore(self, state: Mapping[str, Any]) -> list[str]:
        """Take over the parts of unchanged rules; returns the names of the rules that start empty."""
        digests = rule_digests(self.program)
        self._first, self._now, self.dropped = state["first"], state["now"], state["dropped"]
        if self._timeline is not None:
            self._timeline.restore(state.get("timeline"))
        fresh = []
        for digest, rule in zip(digests, self._rules, strict=True):
            if digest in state["rules"]:
                rule.restore(state["rules"][digest])
            else:
                fresh.append(rule.rule.name)
        return fresh


def _passed_over(rule: LiteralRule, point: Time, literally: str) -> EngineError:
    return EngineError.of(
        "D4090",
        f"{rule.rule.kind} `{rule.rule.name}` at {rule.clock.text(point)}: engine and literal reading differ",
        notes=(literally, "engine: the point was passed over"),
        hint="this is a bug of dotr: please report rules and input",
    )


def _is_due(
    occasion: Occasion, time: Time, facts: Mapping[str, Sequence[Fact]], late: Container[Delay]
) -> bool:
    """Whether a tick is due, or a stream of changes has a fact. `late`: the ticks of AFTER at `time`."""
    if isinstance(occasion, Delay):
        return occasion in late
    return bool(facts.get(occasion)) if isinstance(occasion, str) else ticks_at(occasion, time)


def deadlines_seen(program: Program) -> list[frozenset[str]]:
    """Per rule the sequences at whose deadlines it sees an instant: those it reads, directly or through
    others; a sequence its own only where its sources read it.
    """
    index = {rule.name: i for i, rule in enumerate(program.rules)}
    reached = reachable(program)
    found = []
    for i, rule in enumerate(program.rules):
        seen = reached[i]
        if isinstance(rule.trigger, RowPattern):
            sources = [index[p.stream] for p in rule.trigger.sources if p.chained]
            seen = frozenset().union(*(reached[source] for source in sources))
        read = [program.rules[other] for other in seen]
        found.append(frozenset(other.name for other in read if isinstance(other.trigger, RowPattern)))
    return found


def opening(rule: Rule, trigger: Fact) -> Row:
    """The partial match with which a rule begins at a trigger fact."""
    if isinstance(rule.trigger, After):
        due: Fact = (trigger[0] + rule.trigger.duration, (), 0, "")
        return {rule.trigger.position.name: trigger, rule.trigger.name: due}
    return {rule.trigger.name: trigger}


def _as_facts(rule: Rule, matches: Sequence[Match]) -> list[Fact]:
    """Chaining: composites with equal WITH values are separate facts, ordinal = output order."""
    counts: Counter[tuple[Term, ...]] = Counter()
    facts: list[Fact] = []
    for match in matches:
        facts.append((match.time, match.bindings, counts[match.bindings], match_id(rule, match)))
        counts[match.bindings] += 1
    return facts


class Candidates(NamedTuple):
    """Facts in the window of a conjunct; those of them that pass ON and were not consumed."""

    inside: list[Fact]
    passing: list[Fact]


def window(rule: Rule, conjunct: Conjunct, row: Row) -> tuple[range, Fact | None]:
    """(the times of a conjunct's window, the reference's own fact where it is not a candidate). Measured from
    what an OPTIONAL did not find there are none.
    """
    if lacks_reference(conjunct, row):
        return range(0), None
    match conjunct.window:
        case Within(duration=duration, reference=reference, before=True):
            end: Time = row[reference][0]
            return range(end - duration, end), None
        case Within(duration=duration, reference=reference):
            end = row[reference][0]
            same = (reference, conjunct.position.stream) in [(p.name, p.stream) for p in rule.positions]
            itself = same and not LITERAL[conjunct.operator].counts_reference
            return range(end - duration, end + 1), row[reference] if itself else None
        case Between(start=start, end=until):
            return range(row[start][0] + 1, row[until][0]), None
        case _:
            assert_never(conjunct.window)


def lacks_reference(conjunct: Conjunct, row: Row) -> bool:
    """Whether the window is measured from what an OPTIONAL did not find."""
    measured = conjunct.window
    ends = [measured.start, measured.end] if isinstance(measured, Between) else [measured.reference]
    return any(row[end][0] == NEVER for end in ends)


class LiteralRule:
    """Reads one rule. Owns the facts that it saw, by stream, those that it consumed, by position, and those
    that trigger it later (AFTER); who has facts of its own asks for `candidates` among them, `ways` to go on,
    values and conditions.
    """

    def __init__(self, rule: Rule, clock: Clock) -> None:
        self.rule = rule
        self.clock = clock
        self.history: dict[str, list[Fact]] = {position.stream: [] for position in rule.positions}
        self.consumed: dict[str, set[Fact]] = {name: set() for name in rule.consuming}
        self.awaited: list[Fact] = []
        self._getters: dict[Expression, Callable[[Row], Term | None]] = {}
        self._tests: dict[Expression, Callable[[Row], bool]] = {}

    def see(self, facts: Mapping[str, Sequence[Fact]], graph: bool = True) -> None:
        """`graph`: one came. AFTER a query counts its facts at such instants; those of ISTREAM and DSTREAM at
        all.
        """
        for stream in {p.stream for p in self.rule.positions if not p.within_instant}:
            self._add(stream, facts.get(stream, ()))
            if graph or " " in stream:
                self._await(stream, facts.get(stream, ()))

    def see_composites(self, stream: str, facts: Sequence[Fact]) -> None:
        if any(p.chained and p.stream == stream for p in self.rule.positions):
            self._add(stream, facts)
            self._await(stream, facts)

    def see_held(self, held: Mapping[str, Sequence[Fact]]) -> None:
        for stream in {p.stream for p in self.rule.positions if p.held}:
            self._add(stream, held.get(stream, ()))
            self._await(stream, held.get(stream, ()))

    def _await(self, stream: str, facts: Sequence[Fact]) -> None:
        if isinstance(self.rule.trigger, After) and self.rule.trigger.position.stream == stream:
            self.awaited = sorted([*self.awaited, *facts], key=fact_key)

    def late_times(self) -> list[Time]:
        """The times of all ticks of its AFTER, past ones too."""
        return [fact[0] + self.rule.delay for fact in self.awaited]

    def is_late(self, time: Time) -> bool:
        """Whether its AFTER has a tick."""
        return time in self.late_times()

    def _add(self, stream: str, facts: Sequence[Fact]) -> None:
        """Add facts to the history of a stream, which is in canonical order."""
        if facts:
            history = self.history[stream]
            place = bisect_left(history, min(fact[0] for fact in facts), key=_TIME)
            history[place:] = sorted([*history[place:], *facts], key=fact_key)

    def matches(
        self, index: int, time: Time, left_out: Collection[tuple[int, Fact]]
    ) -> tuple[list[Match], int]:
        """The matches of every trigger fact at `time`, and how many the template dropped."""
        found: list[Match] = []
        dropped = 0
        for trigger in self._trigger_facts(time):
            if (index, trigger) in left_out:
                continue
            rows: list[Row] = [opening(self.rule, trigger)]
            for conjunct in self.rule.conjuncts:
                rows = [longer for row in rows for longer in self._extend(row, conjunct)]
            emitted: list[Row] = []
            for row in rows:
                if self.rule.where is not None and not self.holds(self.rule.where, row):
                    continue
                bindings = [self.value(binding.expression, row) for binding in self.rule.bindings]
                if None in bindings:
                    continue
                values = tuple(b for b in bindings if b is not None)
                if not self._template_is_a_graph(values):
                    dropped += 1
                    continue
                chosen = (trigger, *(row[c.position.name] for c in self.rule.chosen))
                found.append(Match(index, time, chosen, values))
                emitted.append(row)
            for name in self.rule.consuming:
                self.consumed[name] |= {row[name] for row in emitted if row[name][0] != NEVER}
        return found, dropped

    def _trigger_facts(self, time: Time) -> list[Fact]:
        trigger = self.rule.trigger
        if isinstance(trigger, Tick):
            return [(time, (), 0, "")] if ticks_at(trigger.rhythm, time) else []
        if isinstance(trigger, After):
            return [fact for fact in self.awaited if fact[0] + trigger.duration == time]
        assert isinstance(trigger, Position), "a sequence has matches of its own"
        return self.seen_at(trigger.stream, time)

    def seen_at(self, stream: str, time: Time) -> list[Fact]:
        """The facts of a stream at a time, in canonical order."""
        history = self.history[stream]
        return history[bisect_left(history, time, key=_TIME) : bisect_right(history, time, key=_TIME)]

    def _extend(self, row: Row, conjunct: Conjunct) -> list[Row]:
        consumed = self.consumed.get(conjunct.position.name, ())
        seen = self.candidates(conjunct, row, self.history[conjunct.position.stream], consumed)
        return self.ways(conjunct, row, seen.passing)

    def candidates(
        self, conjunct: Conjunct, row: Row, facts: Iterable[Fact], consumed: Container[Fact]
    ) -> Candidates:
        """What `conjunct` sees after a partial match. `facts`: of its stream, in canonical order, at least
        those of its window; `consumed`: by this rule at this position, before the trigger's turn.
        """
        name, operator = conjunct.position.name, LITERAL[conjunct.operator]
        times, itself = window(self.rule, conjunct, row)
        inside = [fact for fact in facts if fact[0] in times and fact != itself]
        passing = [
            fact
            for fact in inside
            if (operator.sees_consumed or fact not in consumed)
            and (conjunct.on is None or self.holds(conjunct.on, {**row, name: fact}))
        ]
        return Candidates(inside, passing)

    def ways(self, conjunct: Conjunct, row: Row, passing: list[Fact]) -> list[Row]:
        """The ways in which `conjunct` continues a partial match, in canonical order."""
        return LITERAL[conjunct.operator].extend(conjunct, row, passing, self.value)

    def others(self, conjunct: Conjunct, row: Row, facts: Iterable[Fact]) -> list[Fact]:
        """Those of the facts of a conjunct's stream that are in no other position of a partial match."""
        stream = conjunct.position.stream
        taken = [row[p.name] for p in self.rule.positions if p.stream == stream and p.name in row]
        return [fact for fact in facts if fact not in taken]

    def _template_is_a_graph(self, values: tuple[Term, ...]) -> bool:
        """Whether no triple gets a literal as subject or anything but an IRI as predicate. One with a list
        stands for one a member.
        """
        bound = dict(zip(self.rule.variables, values, strict=True))

        def terms(node: TemplateNode) -> list[Term]:
            match node:
                case TemplateVar(name=name):
                    if name not in self.rule.lists:
                        return [bound[name]]
                    return [member for member in bound[name][1:-1].split("\x1f") if member]
                case Fresh():
                    return ["<urn:dotr:fresh>"]
                case str():
                    return [node]
                case _:
                    assert_never(node)

        return all(
            not is_literal(subject) and is_iri(predicate)
            for t in self.rule.template
            for subject in terms(t.subject)
            for predicate in terms(t.predicate)
            if terms(t.object)
        )

    def _leaf(self, node: Var | Attribute | TimeOf) -> Callable[[Row], Term | None]:
        match node:
            case Var(name=name):
                return lambda row: row["?" + name]
            case Attribute(position=position, variable=variable):
                where = self._variables_of(position).index(variable)
                return lambda row: row[position][1][where]
            case TimeOf(position=position):
                return lambda row: None if row[position][0] == NEVER else self.clock.term(row[position][0])
            case _:
                assert_never(node)

    def _variables_of(self, name: str) -> tuple[str, ...]:
        return next(p.variables for p in self.rule.positions if p.name == name)

    def _now(self, row: Row) -> Term:
        return self.clock.term(row[self.rule.trigger.name][0])

    def value(self, expression: Expression, row: Row) -> Term | None:
        """The value of an expression for a partial match; None for unbound or an error."""
        if expression not in self._getters:
            self._getters[expression] = compile_expression(
                expression,
                self._leaf,
                clock=self.clock,
                now=self._now,
                seconds=True,
                reading=literally,
            )
        try:
            return self._getters[expression](row)
        except Overlong:  # of a trigger fact that is not left out: nobody else had to look
            return None

    def holds(self, condition: Expression, row: Row) -> bool:
        """Whether a condition is true of a partial match."""
        if condition not in self._tests:
            self._tests[condition] = compile_condition(
                condition,
                self._leaf,
                clock=self.clock,
                now=self._now,
                seconds=True,
                reading=literally,
            )
        try:
            return self._tests[condition](row)
        except Overlong:
            return False

    def snapshot(self) -> dict[str, Any]:
        return {
            "history": {stream: [list(fact) for fact in facts] for stream, facts in self.history.items()},
            "consumed": {
                name: [list(f) for f in sorted(facts, key=fact_key)] for name, facts in self.consumed.items()
            },
            "awaited": [list(fact) for fact in self.awaited],
        }

    def restore(self, part: Mapping[str, Any]) -> None:
        self.history = {stream: [_fact(f) for f in facts] for stream, facts in part["history"].items()}
        self.consumed = {name: {_fact(f) for f in facts} for name, facts in part["consumed"].items()}
        self.awaited = [_fact(f) for f in part.get("awaited", ())]


class Partition(Struct):
    """Rows of a sequence with equal PER. Of those before `first`, at `settled`, it was certain what they
    start.
    """

    rows: list[PatternRow]
    first: int = 0
    settled: Time = NEVER


class LiteralSequenceRule(LiteralRule):
    """Reads one sequence. Owns its rows and the times at which it has facts if no more rows come. `budget`:
    units of work at an instant.
    """

    def __init__(self, rule: Rule, clock: Clock, budget: int = UNLIMITED) -> None:
        super().__init__(rule, clock)
        self.budget = budget
        assert isinstance(rule.trigger, RowPattern), "the trigger of a sequence"
        self.pattern = rule.trigger
        self.reading = LiteralSequence(rule.trigger, rule.bindings, clock)
        self.partitions: dict[tuple[Term, ...], Partition] = {}
        self.deadlines: list[Time] = []

    def take(self, time: Time) -> None:
        """The facts of the sources at an instant that it sees are rows."""
        for number, position in enumerate(self.pattern.sources):
            for fact in self.seen_at(position.stream, time):
                row = PatternRow(number, fact)
                key = self.reading.key(row)
                if key is not None:
                    self.partitions.setdefault(key, Partition([])).rows.append(row)

    def late_times(self) -> list[Time]:
        return self.deadlines

    def matches(
        self, index: int, time: Time, left_out: Collection[tuple[int, Fact]]
    ) -> tuple[list[Match], int]:
        """The matches that are certain at `time`: in canonical order, equal ones by their first row, whose
        fact stands k times if it comes from the k-th source of OF. A partition starts again behind a row of
        `time` that is left out, and behind its last row if the first row of a match at `time` is. Raises
        ProgramError D4012 past the budget.
        """
        self.reading.left = self.budget
        try:
            return self._matches(index, time, left_out), 0
        except Overlong:
            raise
        except Exhausted:
            raise ProgramError.of(
                "D4012",
                f"the literal reading of `{self.rule.name}` takes more than {self.budget:,} units of work"
                " at an instant",
                notes=("it goes through every way to give rows to elements: over n rows there may be 2ⁿ",),
                hint="verify a shorter stretch of the stream, or raise --budget",
            ) from None

    def _matches(self, index: int, time: Time, left_out: Collection[tuple[int, Fact]]) -> list[Match]:
        found: list[tuple[Any, Match]] = []
        self.deadlines = []
        for part in self.partitions.values():
            begun = [row for row in part.rows[part.first :] if row.fact[0] == time]
            for start in self.reading.starts(part.rows, part.first, part.settled) if left_out else ():
                if start.given and start.time == time:
                    begun.append(part.rows[start.first])
            if any((index, row.fact) in left_out for row in begun):
                part.first, part.settled = len(part.rows), time
            for start in self.reading.starts(part.rows, part.first, part.settled):
                if start.time <= time and start.first == part.first:
                    part.first, part.settled = self.reading.after(start), start.time
                if start.given and start.time > time:
                    self.deadlines.append(start.time)
                if start.given and start.time == time:
                    row = part.rows[start.first]
                    values = self.reading.values(part.rows, start)
                    order = row_key(values), row.fact[0], row.source, fact_key(row.fact)
                    facts = (row.fact,) * (row.source + 1)
                    found.append((order, Match(index, time, facts, values)))  # type: ignore[arg-type]  # unbound: None
        return [match for _, match in sorted(found, key=itemgetter(0))]

    def snapshot(self) -> dict[str, Any]:
        parts = [
            [list(key), [[row.source, list(row.fact)] for row in part.rows], part.first, part.settled]
            for key, part in self.partitions.items()
        ]
        return {**super().snapshot(), "partitions": parts, "deadlines": self.deadlines}

    def restore(self, part: Mapping[str, Any]) -> None:
        super().restore(part)
        self.deadlines = part["deadlines"]
        self.partitions = {
            tuple(key): Partition([PatternRow(n, _fact(fact)) for n, fact in rows], first, settled)
            for key, rows, first, settled in part["partitions"]
        }


def literal_rule(rule: Rule, clock: Clock, budget: int) -> LiteralRule:
    """What reads a rule or a sequence."""
    of_rows = isinstance(rule.trigger, RowPattern)
    return LiteralSequenceRule(rule, clock, budget) if of_rows else LiteralRule(rule, clock)


def _fact(plain: Sequence[Any]) -> Fact:
    when, values, ordinal, id_ = plain
    return when, tuple(values), ordinal, id_

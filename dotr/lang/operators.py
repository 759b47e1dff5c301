"""How each operator of a rule is written, checked and printed: found by `WRITTEN`.

Place:   grammar/dotr.py reads conjuncts with it, checks/names.py builds them, printer.py prints them.
Parts:   EACH, LAST, FIRST  put one event of a window, or several in turn, into a match; checks/comparisons.py
                            warns of LAST and FIRST where EACH is meant
         OPTIONAL           before LAST and FIRST: the match goes on where there is none
         NOT                no such event in a window
         aggregates         COUNT, SUM and others over the events of a window, or the LAST or FIRST n of them
                            (expressions/aggregates.py)
         EVERY              a tick in place of an event as the trigger, at multiples of a duration or at local
                            times; called by name
         AFTER              a tick some time after each fact of the trigger's event; called by name
         CONSUMING          events that no further match of the rule may choose; called by name
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dotr.detect.analysis import names as names_of
from dotr.errors import Diagnostics
from dotr.expressions.aggregates import AGGREGATES
from dotr.expressions.aggregates import written as aggregate_text
from dotr.expressions.calendars import zone, zone_names
from dotr.lang.checks.comparisons import STAND_IN, rule_expressions
from dotr.lang.grammar.cursor import Cursor, Skip, Token, nearest, string_value
from dotr.lang.grammar.syntax import (
    AbsentSyntax,
    AfterSyntax,
    CalendarSyntax,
    ChooseSyntax,
    ConjunctSyntax,
    Duration,
    EventSyntax,
    EverySyntax,
    Name,
    SummariseSyntax,
    WithinSyntax,
)
from dotr.program import (
    Absent,
    After,
    Calendar,
    CalendarTick,
    Choose,
    Conjunct,
    Every,
    Expression,
    Position,
    Program,
    Rule,
    Selection,
    Summarise,
    Window,
    Within,
)
from dotr.program.names import UNITS, WEEKDAYS, duration_text
from dotr.program.rules import Operator
from dotr.rdf.terms import literal_parts
from dotr.regex import regex
from dotr.source import Span

if TYPE_CHECKING:
    from dotr.lang.checks.names import RuleResolver
    from dotr.lang.grammar.dotr import ClauseParser


class WrittenOperator(NamedTuple):
    """One operator.

    `words`: a conjunct begins with one of them, after AND. `parse`: reads on from the word; raises Skip for
    what cannot be read. `build`: (names of the rule, as written, position, window) → the checked conjunct,
    None where it cannot be, which is recorded. `text`: what stands between AND and the event. `effect`: what
    it does where its condition relates nothing (D1321). `role`: what the event's name is in the rest of the
    rule; where it has no one fact there, `called` says what it is and `hint` what to write instead.
    `before_event`: the event stands right after the word.
    """

    words: tuple[str, ...]
    parse: Callable[[ClauseParser, Token], ConjunctSyntax]
    build: Callable[[RuleResolver, Any, Position | None, Window | None], Conjunct | None]
    text: Callable[[Any, Callable[[Expression], str]], str]
    effect: Callable[[Any], str]
    role: str
    called: str = ""
    hint: str = ""
    before_event: bool = True


ROLE = "chosen"
OPTIONAL_ROLE = "optional"
GROUP_ROLE = "group"
A_GROUP: Final = "a group of events"
PER: Final = "PER"
"""A word behind the event of EACH, and a name everywhere else."""
OPTIONAL: Final = "OPTIONAL"
"""A word before EACH, LAST or FIRST behind AND, and a name everywhere else."""


def _choosing(selection: Selection) -> WrittenOperator:
    """`selection [k] event WITHIN … [ON condition]`."""

    def parse(clauses: ClauseParser, start: Token) -> ChooseSyntax:
        optional = clauses.cursor.accept(OPTIONAL) is not None
        word = clauses.cursor.advance()
        number = clauses.cursor.token
        k, k_name = clauses.windows.count(selection)
        per: list[Name] = []
        event, window, on = clauses.scope(per if selection is Selection.EACH else None)
        if not isinstance(window, WithinSyntax):
            clauses.cursor.error(
                "D1411",
                f"{selection} has no BETWEEN",
                window.span,
                hint="write `WITHIN … FROM`; BETWEEN is for NOT and aggregates",
            )
            raise Skip
        if optional and selection is Selection.EACH:
            clauses.cursor.error(
                "D1408",
                "OPTIONAL chooses one event or none, and EACH takes all",
                clauses.cursor.span(word),
                hint="write OPTIONAL LAST or OPTIONAL FIRST",
            )
        elif optional and (k != 1 or k_name):
            clauses.cursor.error(
                "D1408",
                f"OPTIONAL chooses one event or none, not {f'?{k_name}' if k_name else k}",
                clauses.cursor.span(number),
                hint=f"write OPTIONAL {selection} without a number",
            )
        span = clauses.cursor.since(start)
        return ChooseSyntax(selection, k, k_name, event, window, on, span, optional, tuple(per))

    return WrittenOperator((selection.value,), parse, _build, _text, _effect, role=ROLE)


def _build(
    names: RuleResolver, written: ChooseSyntax, position: Position | None, window: Window | None
) -> Choose | None:
    role = OPTIONAL_ROLE if written.optional else GROUP_ROLE if written.per else ROLE
    names.register(written.event.name, position, role)
    if position is None or not isinstance(window, Within):
        return None
    if written.per:
        per = tuple(dict.fromkeys(name.text for name in written.per))
        known = [names.selects(position, name) for name in written.per]
        if not all(known):
            return None
        return Choose(Selection.EACH, position, window, written.on, 1, written.span, per=per)
    k = 1 if written.optional else written.k
    return Choose(written.selection, position, window, written.on, k, written.span, written.optional)


def _effect(conjunct: Choose) -> str:
    name = conjunct.position.name
    if conjunct.per:
        return f"every group of `{name}` matches"
    if conjunct.selection is Selection.EACH:
        return f"every `{name}` matches"
    return f"{conjunct.selection} chooses among all `{name}`"


def _text(written: ChooseSyntax, _expression: Callable[[Expression], str]) -> str:
    k = f" ?{written.k_name}" if written.k_name else f" {written.k}" if written.k != 1 else ""
    return f"{OPTIONAL} {written.selection}{k}" if written.optional else f"{written.selection}{k}"


EACH = _choosing(Selection.EACH)
LAST = _choosing(Selection.LAST)
FIRST = _choosing(Selection.FIRST)


ABSENT_ROLE = "NOT"


def _parse_absent(clauses: ClauseParser, start: Token) -> AbsentSyntax:
    clauses.cursor.advance()
    if clauses.cursor.key in tuple(Selection):
        raise clauses.cursor.fail("the name of an event", "NOT asks for any such event: write its name alone")
    event, window, on = clauses.scope()
    return AbsentSyntax(event, window, on, clauses.cursor.since(start))


def _build_absent(
    names: RuleResolver, written: AbsentSyntax, position: Position | None, window: Window | None
) -> Absent | None:
    names.register(written.event.name, position, ABSENT_ROLE)
    return None if position is None or window is None else Absent(position, window, written.on, written.span)


def _absent_text(_written: AbsentSyntax, _expression: Callable[[Expression], str]) -> str:
    return "NOT"


def _absent_effect(conjunct: Absent) -> str:
    return f"any `{conjunct.position.name}` prevents the event"


ABSENT = WrittenOperator(
    ("NOT",),
    _parse_absent,
    _build_absent,
    _absent_text,
    _absent_effect,
    role=ABSENT_ROLE,
    called="a NOT",
    hint="a NOT binds nothing",
)


AGGREGATE_ROLE = "aggregate"
FEW: Final = (Selection.LAST, Selection.FIRST)
"""What may stand behind OVER."""


def _parse_aggregate(clauses: ClauseParser, start: Token) -> SummariseSyntax:
    cursor = clauses.cursor
    word = cursor.advance().key
    function = word if word in AGGREGATES else "MAX"  # one that there is not has been reported
    cursor.expect("(", hint=f"write `{word}(…)`")
    argument: Expression | None = None
    distinct = cursor.accept("DISTINCT") is not None
    if cursor.key == "*":
        star = cursor.span(cursor.advance())
        if function != "COUNT":
            cursor.error("D1004", f"{word}(*) has no meaning", star, hint="name a value: Event.?x")
        if distinct:
            cursor.error("D1004", "COUNT(DISTINCT *) has no meaning", star, hint="name a value: Event.?x")
    else:
        with cursor.nested():
            argument = clauses.expressions.expression()
            function = clauses.expressions.with_share(function)
    cursor.expect(")", "`)` or an operator")
    cursor.expect("AS", hint="an aggregate has a name: `AS ?v`")
    variable = clauses.windows.variable()
    clauses.unresolved.add("?" + variable.text)
    clauses.expressions.parameters.refuse_binding(variable.text, variable.span, "aggregate")
    cursor.expect("OVER")
    selection, k, k_name = None, 0, ""
    if cursor.key in FEW:
        selection = Selection(cursor.advance().key)
        k, k_name = clauses.windows.count(selection)
    event, window, on = clauses.scope()
    clauses.unresolved.discard("?" + variable.text)
    span = cursor.since(start)
    return SummariseSyntax(
        function, argument, distinct, variable, event, window, on, span, selection, k, k_name
    )


def _build_aggregate(
    names: RuleResolver, written: SummariseSyntax, position: Position | None, window: Window | None
) -> Summarise | None:
    if written.argument is not None:
        names.check(written.argument, written.event.name.text)
    names.register(written.event.name, position, AGGREGATE_ROLE)
    names.total(written.variable, written.function)
    if position is None or window is None:
        return None
    return Summarise(
        written.function,
        written.argument,
        written.distinct,
        written.variable.text,
        position,
        window,
        written.on,
        written.span,
        written.selection,
        written.k,
    )


def _aggregate_text(written: SummariseSyntax, expression: Callable[[Expression], str]) -> str:
    argument = "*" if written.argument is None else expression(written.argument)
    distinct = "DISTINCT " if written.distinct else ""
    k = f"?{written.k_name}" if written.k_name else written.k
    few = "" if written.selection is None else f" {written.selection} {k}"
    return f"{aggregate_text(written.function, distinct + argument)} AS ?{written.variable.text} OVER{few}"


def _aggregate_effect(conjunct: Summarise) -> str:
    name = conjunct.position.name
    if conjunct.selection is not None:
        return f"{conjunct.selection} {conjunct.k} counts of all `{name}`"
    return f"every `{name}` is counted"


AGGREGATE = WrittenOperator(
    tuple(word for word in AGGREGATES if word not in tuple(Selection)),
    _parse_aggregate,
    _build_aggregate,
    _aggregate_text,
    _aggregate_effect,
    role=AGGREGATE_ROLE,
    called="an aggregate",
    hint="use its ?v",
    before_event=False,
)


def check_aggregates(program: Program, found: Diagnostics) -> None:
    """Warn about every aggregate variable that no condition, aggregate or binding of its rule uses, D1326."""
    for rule in program.rules:
        for conjunct in _unused(rule):
            found.warning(
                "D1326",
                f"nothing reads `?{conjunct.variable}`",
                conjunct.span,
                hint=f"use it, as in `WHERE ?{conjunct.variable} > 5`, or delete the conjunct",
                notes=("an aggregate alone prevents no event, even if it is over no facts",),
            )


def _unused(rule: Rule) -> Iterator[Summarise]:
    read = frozenset[str]().union(*map(names_of, rule_expressions(rule)))
    for conjunct in rule.conjuncts:
        if isinstance(conjunct, Summarise) and f"?{conjunct.variable}" not in read:
            yield conjunct


EVERY_ROLE = "tick"
SHORT: Final = 1_000
"""Microseconds below which a tick is hardly meant."""


MONTH: Final = "MONTH"
AT: Final = "AT"
CALENDAR: Final = (*WEEKDAYS, MONTH, AT, "DAY", "IN")
"""Words behind EVERY, and names everywhere else."""


def parse_every(clauses: ClauseParser) -> EverySyntax | CalendarSyntax | None:
    """`EVERY duration AS name`, or at local times; None at anything else."""
    start = clauses.cursor.token
    if not clauses.cursor.accept("EVERY"):
        return None
    unit = clauses.cursor.key if clauses.cursor.token.kind == "name" else ""
    if unit in WEEKDAYS or unit == MONTH:
        clauses.cursor.advance()
        return _parse_calendar(clauses, start, unit, None)
    if hint := nearest(unit, (*WEEKDAYS, MONTH)):
        raise clauses.cursor.fail("a duration such as `5 min`, a weekday or MONTH", hint)
    count = clauses.cursor.token
    duration = clauses.windows.duration()
    if clauses.cursor.key == AT:
        _check_days(clauses, count, duration)
        return _parse_calendar(clauses, start, "", duration)
    if duration.micros == 0:
        clauses.cursor.error(
            "D1403", "EVERY 0 never ends", duration.span, hint="write how often it ticks, as `1 min`"
        )
    clauses.cursor.expect("AS", hint="a tick has a name: `EVERY 1 min AS Tick`")
    return EverySyntax(duration, clauses.windows.name("a name for the tick"), clauses.cursor.since(start))


_EXAMPLE: Final = 'write `EVERY 1 d AT 08:00 IN "Europe/Brussels" AS Tick`'


def _parse_calendar(
    clauses: ClauseParser, start: Token, unit: str, duration: Duration | None
) -> CalendarSyntax:
    """`[ON DAY n] AT 08:00 IN "zone" AS name`, behind what EVERY counts."""
    cursor = clauses.cursor
    day = _day_of_month(clauses) if unit == MONTH and cursor.accept("ON") else None
    cursor.expect(AT, hint=f"days have a time of day: {_EXAMPLE}")
    at = _time_of_day(clauses)
    cursor.expect("IN", hint=f"a time of day is that of a zone: {_EXAMPLE}")
    name, parameter = _zone(clauses)
    cursor.expect("AS", hint=f"a tick has a name: {_EXAMPLE}")
    tick = clauses.windows.name("a name for the tick")
    return CalendarSyntax(unit, duration, day, at, name, parameter, tick, cursor.since(start))


def _check_days(clauses: ClauseParser, count: Token, duration: Duration) -> None:
    """Report what is no number of days before AT, D1345."""
    parameters = clauses.windows.parameters
    stands_in = count.kind == "var" and count.text[1:] in parameters.terms
    if clauses.windows.symbolic or stands_in or (duration.micros and duration.micros % UNITS["d"] == 0):
        return
    clauses.cursor.error(
        "D1345",
        f"`{clauses.cursor.shown_since(count)}` is no number of days, and AT is a time of a day",
        duration.span,
        hint="write `EVERY 1 d AT …`, or leave AT out",
    )


def _shown(cursor: Cursor, span: Span) -> str:
    return cursor.source.text[span.start : span.end]


def _day_of_month(clauses: ClauseParser) -> int:
    cursor = clauses.cursor
    cursor.expect("DAY", hint="write `EVERY MONTH ON DAY 15 AT …`")
    number = cursor.token
    if number.kind != "integer":
        raise cursor.fail("a day of the month, from 1 to 31")
    cursor.advance()
    if len(number.text) > 2 or not 1 <= int(number.text) <= 31:
        cursor.error(
            "D1346",
            f"no month has a day {number.text}",
            cursor.span(number),
            hint="write a day from 1 to 31: a month that lacks it has its last day instead",
        )
        return 1
    return int(number.text)


_CLOCK: Final = regex(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")


def _time_of_day(clauses: ClauseParser) -> int:
    """`08:00` or `08:00:30`, which to the tokens are a number and a prefixed name, in µs."""
    cursor = clauses.cursor
    start = cursor.token
    if start.kind != "integer":
        raise cursor.fail("a time of day, as `08:00`")
    cursor.advance()
    if cursor.token.kind == "pname" and cursor.token.start == start.end:
        cursor.advance()
    span = cursor.since(start)
    found = _CLOCK.fullmatch(cursor.source.text[span.start : span.end])
    if found is None:
        cursor.error(
            "D1346",
            f"`{_shown(cursor, span)}` is no time of day",
            span,
            hint="write hours and minutes, as `08:00`, or seconds, too: from 00:00 to 23:59:59",
        )
        return 0
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return (hours * 3600 + minutes * 60 + seconds) * UNITS["s"]


def _zone(clauses: ClauseParser) -> tuple[str, str]:
    """The name of a zone; and the parameter that it was written as."""
    cursor = clauses.cursor
    token = cursor.token
    if token.kind == "string":
        cursor.advance()
        name = string_value(token, cursor.source, cursor.found)
    elif token.kind == "var":
        cursor.advance()
        parameter = cursor.variable_name(token)
        if clauses.windows.symbolic:
            return "UTC", parameter
        term = clauses.windows.parameters.term(parameter, token)
        if term is None:
            if parameter not in clauses.windows.parameters:
                clauses.windows.parameters.unknown(parameter, token)
            return "UTC", ""
        if term.startswith(STAND_IN):
            return "UTC", ""
        name = literal_parts(term)[0] if term[0] == term[-1] == '"' else term
    else:
        raise cursor.fail('the name of a time zone, as "Europe/Brussels"')
    if zone(name) is None:
        cursor.error(
            "D1225",
            f"`{name}` is not a time zone",
            cursor.span(token),
            hint=nearest(name, zone_names()) or 'write "Europe/Berlin", "UTC" or "+02:00"',
        )
        return "UTC", ""
    return name, ""


def build_calendar(names: RuleResolver, written: CalendarSyntax) -> CalendarTick:
    """The checked trigger; its name is known from now on."""
    names.define(written.name, EVERY_ROLE)
    if written.duration is not None:
        calendar = Calendar(written.zone, written.at, max(1, written.duration.micros // UNITS["d"]))
    elif written.unit == MONTH:
        calendar = Calendar(written.zone, written.at, 0, written.day or 1)
    else:
        calendar = Calendar(written.zone, written.at, 7, WEEKDAYS[written.unit])
    return CalendarTick(calendar, written.name.text, written.span)


def build_every(names: RuleResolver, written: EverySyntax) -> Every:
    """The checked trigger; its name is known from now on."""
    names.define(written.name, EVERY_ROLE)
    return Every(written.duration.micros, written.name.text, written.span)


def check_every(rule: Rule, found: Diagnostics) -> None:
    """Warn about ticks that are hardly meant, D1405."""
    if isinstance(rule.trigger, Every) and 0 < rule.trigger.duration < SHORT:
        found.warning(
            "D1405",
            f"a tick every {duration_text(rule.trigger.duration)}: more than a thousand instants a second",
            rule.trigger.span,
            hint="write how often it should be evaluated, as `1 min`",
        )


AFTER_ROLE = "followed"
AFTER: Final = "AFTER"
"""A word behind the trigger's event, and a name everywhere else."""


def parse_after(clauses: ClauseParser, event: EventSyntax, start: Token) -> AfterSyntax | None:
    """`AFTER duration AS name`, behind an event that begins at `start`; None at anything else."""
    cursor = clauses.cursor
    if not cursor.accept(AFTER):
        return None
    duration = clauses.windows.duration()
    if duration.micros == 0:
        cursor.error(
            "D1412",
            "AFTER 0 is the event itself",
            duration.span,
            hint="write the event alone, or how long after it",
        )
    cursor.expect("AS", hint="the time after an event has a name: `AFTER 10 min AS Due`")
    return AfterSyntax(event, duration, clauses.windows.name("a name for that time"), cursor.since(start))


def build_after(names: RuleResolver, written: AfterSyntax, position: Position | None) -> After | None:
    """The checked trigger; None where its event is not known. Both names are known from now on."""
    names.register(written.event.name, position, AFTER_ROLE)
    names.define(written.name, EVERY_ROLE)
    if position is None:
        return None
    if position.of_head:
        names.found.error(
            "D1413",
            f"`{position.stream}` has a fact at every point at which it holds: AFTER follows single facts",
            written.event.name.span,
            hint=f"write `ISTREAM {position.stream}` for when it begins, `DSTREAM …` for when it ends",
        )
    return After(position, written.duration.micros, written.name.text, written.span)


def check_consuming(
    written: Sequence[Name],
    roles: Mapping[str, str],
    unresolved: set[str],
    called: Mapping[str, str],
    found: Diagnostics,
) -> bool:
    """Whether all names are of chosen events; what is wrong is recorded. `roles`: name → what it is.
    `unresolved`: names of which nothing is known. `called`: what to call a role.
    """
    good = True
    reported: set[str] = set()
    for name in written:
        role = roles.get(name.text)
        if name.text in reported:
            found.warning("D1306", f"`{name.text}` is consumed twice", name.span, hint="delete one of them")
        reported.add(name.text)
        if role in CHOOSING or (role is None and name.text in unresolved):
            continue
        good = False
        chosen = [n for n, r in roles.items() if r in CHOOSING]
        if role is None:
            message = f"no event of this rule is called `{name.text}`"
        else:
            message = f"`{name.text}` is {called[role]} and cannot be consumed"
        hint = nearest(name.text, chosen) if role is None else ""
        if not hint and chosen:
            hint = f"only EACH, LAST and FIRST choose an event: {' '.join(chosen)}"
        found.error("D1306", message, name.span, hint=hint or "this rule chooses no event to consume")
    if written and good and all(roles.get(name.text) == OPTIONAL_ROLE for name in written):
        good = False
        found.error(
            "D1306",
            f"`{written[0].text}` is OPTIONAL and cannot be consumed alone: without one nothing is consumed",
            written[0].span,
            hint="consume an event with it that must be there, or choose it without OPTIONAL",
        )
    return good


WRITTEN: Final[Mapping[Operator, WrittenOperator]] = {
    Operator.EACH: EACH,
    Operator.LAST: LAST,
    Operator.FIRST: FIRST,
    Operator.NOT: ABSENT,
    Operator.AGGREGATE: AGGREGATE,
}
BY_WORD: Final[Mapping[str, WrittenOperator]] = {
    word: operator for operator in WRITTEN.values() for word in operator.words
}
"""The operator that a conjunct has which begins with this word."""
BEFORE_EVENTS: Final = frozenset(
    word for operator in WRITTEN.values() if operator.before_event for word in operator.words
)
"""Words that an event follows."""
CHOOSING: Final = frozenset(
    (OPTIONAL_ROLE, *(operator.role for operator in WRITTEN.values() if not operator.called))
)
"""What names are called that have one fact, besides the trigger's."""
EXCLUDED: Final[Mapping[str, WrittenOperator]] = {
    operator.role: operator for operator in WRITTEN.values() if operator.called
}
"""By what a name without one fact is called."""

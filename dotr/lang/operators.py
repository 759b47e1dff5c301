"""How each operator of a rule is written, checked and printed: found by `WRITTEN`.

Place:   grammar/dotr.py reads conjuncts with it, checks/names.py builds them, printer.py prints them.
Parts:   EACH, LAST, FIRST  put one event of a window, or several in turn, into a match; checks/comparisons.py
                            warns of LAST and FIRST where EACH is meant
         NOT                no such event in a window
         aggregates         COUNT, SUM and others over the events of a window (expressions/aggregates.py)
         EVERY              a tick in place of an event as the trigger; called by name
         CONSUMING          events that no further match of the rule may choose; called by name
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dotr.detect.analysis import names as names_of
from dotr.errors import Diagnostics
from dotr.expressions.aggregates import AGGREGATES
from dotr.lang.checks.comparisons import rule_expressions
from dotr.lang.grammar.cursor import Skip, Token, nearest
from dotr.lang.grammar.syntax import (
    AbsentSyntax,
    ChooseSyntax,
    ConjunctSyntax,
    EverySyntax,
    Name,
    SummariseSyntax,
    WithinSyntax,
)
from dotr.program import (
    Absent,
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
from dotr.program.names import duration_text
from dotr.program.rules import Operator

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


def _choosing(selection: Selection) -> WrittenOperator:
    """`selection [k] event WITHIN … [ON condition]`."""

    def parse(clauses: ClauseParser, start: Token) -> ChooseSyntax:
        clauses.cursor.advance()
        k, k_name = clauses.windows.count(selection)
        event, window, on = clauses.scope()
        if not isinstance(window, WithinSyntax):
            clauses.cursor.error(
                "D1411",
                f"{selection} has no BETWEEN",
                window.span,
                hint="write `WITHIN … FROM`; BETWEEN is for NOT and aggregates",
            )
            raise Skip
        return ChooseSyntax(selection, k, k_name, event, window, on, clauses.cursor.since(start))

    return WrittenOperator((selection.value,), parse, _build, _text, _effect, role=ROLE)


def _build(
    names: RuleResolver, written: ChooseSyntax, position: Position | None, window: Window | None
) -> Choose | None:
    names.register(written.event.name, position, ROLE)
    if position is None or not isinstance(window, Within):
        return None
    return Choose(written.selection, position, window, written.on, written.k, written.span)


def _effect(conjunct: Choose) -> str:
    name = conjunct.position.name
    if conjunct.selection is Selection.EACH:
        return f"every `{name}` matches"
    return f"{conjunct.selection} chooses among all `{name}`"


def _text(written: ChooseSyntax, _expression: Callable[[Expression], str]) -> str:
    k = f" ?{written.k_name}" if written.k_name else f" {written.k}" if written.k != 1 else ""
    return f"{written.selection}{k}"


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
    cursor.expect(")", "`)` or an operator")
    cursor.expect("AS", hint="an aggregate has a name: `AS ?v`")
    variable = clauses.windows.variable()
    clauses.unresolved.add("?" + variable.text)
    clauses.expressions.parameters.refuse_binding(variable.text, variable.span, "aggregate")
    cursor.expect("OVER")
    event, window, on = clauses.scope()
    clauses.unresolved.discard("?" + variable.text)
    return SummariseSyntax(function, argument, distinct, variable, event, window, on, cursor.since(start))


def _build_aggregate(
    names: RuleResolver, written: SummariseSyntax, position: Position | None, window: Window | None
) -> Summarise | None:
    if written.argument is not None:
        names.check(written.argument, written.event.name.text)
    names.register(written.event.name, position, AGGREGATE_ROLE)
    names.total(written.variable)
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
    )


def _aggregate_text(written: SummariseSyntax, expression: Callable[[Expression], str]) -> str:
    argument = "*" if written.argument is None else expression(written.argument)
    distinct = "DISTINCT " if written.distinct else ""
    return f"{written.function}({distinct}{argument}) AS ?{written.variable.text} OVER"


def _aggregate_effect(conjunct: Summarise) -> str:
    return f"every `{conjunct.position.name}` is counted"


AGGREGATE = WrittenOperator(
    tuple(AGGREGATES),
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


def parse_every(clauses: ClauseParser) -> EverySyntax | None:
    """`EVERY duration AS name`; None at anything else."""
    start = clauses.cursor.token
    if not clauses.cursor.accept("EVERY"):
        return None
    duration = clauses.windows.duration()
    if duration.micros == 0:
        clauses.cursor.error(
            "D1403", "EVERY 0 never ends", duration.span, hint="write how often it ticks, as `1 min`"
        )
    clauses.cursor.expect("AS", hint="a tick has a name: `EVERY 1 min AS Tick`")
    return EverySyntax(duration, clauses.windows.name("a name for the tick"), clauses.cursor.since(start))


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


CHOSEN = ROLE


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
        if role == CHOSEN or (role is None and name.text in unresolved):
            continue
        good = False
        chosen = [n for n, r in roles.items() if r == CHOSEN]
        if role is None:
            message = f"no event of this rule is called `{name.text}`"
        else:
            message = f"`{name.text}` is {called[role]} and cannot be consumed"
        hint = nearest(name.text, chosen) if role is None else ""
        if not hint and chosen:
            hint = f"only EACH, LAST and FIRST choose an event: {' '.join(chosen)}"
        found.error("D1306", message, name.span, hint=hint or "this rule chooses no event to consume")
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
CHOOSING: Final = frozenset(operator.role for operator in WRITTEN.values() if not operator.called)
"""What names are called that have one fact, besides the trigger's."""
EXCLUDED: Final[Mapping[str, WrittenOperator]] = {
    operator.role: operator for operator in WRITTEN.values() if operator.called
}
"""By what a name without one fact is called."""

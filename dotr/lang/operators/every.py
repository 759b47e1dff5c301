"""EVERY: a tick in place of an event as the trigger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dotr.errors import Diagnostics
from dotr.ir import Every, Rule
from dotr.lang.grammar.syntax import EverySyntax

if TYPE_CHECKING:
    from dotr.lang.checks.rule_names import RuleResolver
    from dotr.lang.grammar.clauses import ClauseParser

ROLE = "tick"
SHORT: Final = 1_000
"""Microseconds below which a tick is hardly meant."""


def parse_every(clauses: ClauseParser) -> EverySyntax | None:
    """`EVERY duration AS name`; None where something else stands."""
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
    names.define(written.name, ROLE)
    return Every(written.duration.micros, written.name.text, written.span)


def check_every(rule: Rule, found: Diagnostics) -> None:
    """Warn about ticks that are hardly meant, D1405."""
    if isinstance(rule.trigger, Every) and 0 < rule.trigger.duration < SHORT:
        found.warning(
            "D1405",
            "a tick every few microseconds: more than a thousand instants a millisecond",
            rule.trigger.span,
            hint="write how often it should be looked at, as `1 min`",
        )

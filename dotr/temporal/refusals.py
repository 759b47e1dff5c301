"""Trigger facts that take a rule too much work: D4010, or make a text or number that is too long: D4133.

Place:   tesla/network.py makes the error; the runner of the detector decides what happens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeAlias

from dotr.budget import OVERLONG, Exhausted, Overlong
from dotr.errors import ProgramError
from dotr.events import Clock, Fact
from dotr.ir.rules import Rule
from dotr.rdf.terms import Term

RefusedTrigger: TypeAlias = Callable[[int, Fact, ProgramError], None]
"""(number of the rule, trigger fact, D4010 or D4133)."""


def fail(rule: int, fact: Fact, error: ProgramError) -> NoReturn:
    """The default handler: raise it."""
    raise error


def overlong_facts(overlong: Overlong) -> ProgramError:
    """D4133 of what a rule computes of facts as they come, whichever fact will trigger it."""
    return ProgramError.of(
        OVERLONG, f"a key, a condition or an aggregate of a rule makes {overlong.made}", hint=overlong.hint
    )


_SHOWN = 200


def _cut(term: Term) -> str:
    return term if len(term) <= _SHOWN else f"{term[:_SHOWN]}…"


def overworked(rule: Rule, fact: Fact, exhausted: Exhausted, clock: Clock, budget: int) -> ProgramError:
    """D4010 or D4133 for one trigger fact."""
    values = ", ".join("unbound" if value is None else _cut(value) for value in fact[1])
    code, much = "D4010", f"takes more than {budget} units of work"
    hint = "narrow a window, equate a variable in ON, use LAST, or raise --budget"
    if isinstance(exhausted, Overlong):
        code, much, hint = OVERLONG, f"makes {exhausted.made}", exhausted.hint
    return ProgramError.of(
        code,
        f"rule `{rule.name}` {much} for one fact of `{rule.trigger.name}`",
        rule.span,
        notes=(f"the fact: {rule.trigger.name}({values})", *exhausted.notes()),
        hint=hint,
        place=f"@ {clock.text(fact[0])}",
    )

"""Trigger facts that take a rule too much work: D4010.

Place:   network.py makes the error; who drives the detector decides what happens then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeAlias

from dotr.budget import Exhausted
from dotr.errors import Diagnostic, ProgramError
from dotr.events import Clock, Fact
from dotr.ir.rules import Rule

RefusedTrigger: TypeAlias = Callable[[int, Fact, ProgramError], None]
"""(number of the rule, trigger fact, D4010)."""


def fail(rule: int, fact: Fact, error: ProgramError) -> NoReturn:
    """Nobody else says what happens."""
    raise error


def overworked(rule: Rule, fact: Fact, exhausted: Exhausted, clock: Clock, budget: int) -> ProgramError:
    """The error for one trigger fact."""
    values = ", ".join("unbound" if value is None else value for value in fact[1])
    return ProgramError(
        Diagnostic(
            "D4010",
            f"rule `{rule.name}` takes more than {budget} units of work for one fact of"
            f" `{rule.trigger.name}`",
            rule.span,
            notes=(f"the fact: {rule.trigger.name}({values})", *exhausted.notes()),
            hint="narrow a window, equate a variable in ON, use LAST, or raise --budget",
            place=f"@ {clock.text(fact[0])}",
        )
    )

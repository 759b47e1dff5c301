"""Rules that take too much work at a point: D4011, or make a text or number that is too long: D4133.

Place:   engine.py makes the error. It ends the run: what holds later depends on what holds now, so that
         nothing of it can be left out.
"""

from __future__ import annotations

from collections.abc import Collection

from dotr.budget import OVERLONG, Exhausted, Overlong
from dotr.errors import ProgramError
from dotr.expressions.functions import makes_text
from dotr.ir.datalog import BindAtom, FilterAtom
from dotr.ir.lars import LarsProgram, LarsRule, WindowAggregate

MUCH_WORK = "D4011"


def overworked(
    program: LarsProgram, heads: Collection[str], exhausted: Exhausted, at: str, budget: int
) -> ProgramError:
    """D4011 or D4133 at a point, whose text is `at`, while rules for `heads` were evaluated."""
    rule = exhausted.source
    if not isinstance(rule, LarsRule):
        texts = isinstance(exhausted, Overlong) and any(map(_makes_text, program.rules))
        own = [r for r in program.rules if r.head.atom.name in heads and (not texts or _makes_text(r))]
        rule = own[0] if len(own) == 1 else None
    if isinstance(exhausted, Overlong):
        code, much, hint = OVERLONG, f"makes {exhausted.made} at {at}", exhausted.hint
    else:
        code, much = MUCH_WORK, f"takes what holds at {at} past {budget} units of work"
        hint = "narrow a window, let atoms share a variable, or raise --budget"
    names = (rule.head.atom.name,) if isinstance(rule, LarsRule) else heads
    return ProgramError.of(
        code,
        f"a rule for `{'` or `'.join(names)}` {much}",
        rule.span if isinstance(rule, LarsRule) else None,
        notes=exhausted.notes(),
        hint=hint,
        place=f"@ {at}",
    )


def never_quiet(names: Collection[str], at: str, most: int) -> ProgramError:
    """D4011 at a point, whose text is `at`: of the heads named, where any are, something happens at each of
    more than `most` points at which nothing came.
    """
    heads = f" for `{'` or `'.join(names)}`" if names else ""
    return ProgramError.of(
        MUCH_WORK,
        f"what holds has to be looked at at more than {most:,} points{heads} though no graph came",
        notes=(f"it had reached {at}",),
        hint="correct the clock of the source (--max-jump refuses such graphs), choose a longer STEP, "
        "let the rule read ISTREAM in place of every point, or raise --budget",
        place=f"@ {at}",
    )


def _makes_text(rule: LarsRule) -> bool:
    for literal in rule.body:
        match literal:
            case FilterAtom(condition=expression) | BindAtom(expression=expression):
                found = makes_text(expression)
            case WindowAggregate(argument=argument):
                found = argument is not None and makes_text(argument)
            case _:
                found = False
        if found:
            return True
    return False

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
MUCH_VERIFYING = "D4012"


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


def endless(
    heads: Collection[str], at: str, most: int, notes: tuple[str, ...] = (), *, literal: bool
) -> ProgramError:
    """D4011 at a point, whose text is `at`: all points of a run at which nothing comes take more than `most`
    units, as far as its input does not account for them; `heads`: those that are at fault, where known.
    D4012 if the `literal` reading takes that much.
    """
    of = f" for `{'` or `'.join(heads)}`" if heads else ""
    what = f"the literal reading of what holds{of}" if literal else f"what holds{of}"
    remedy = "verify a shorter stretch of the stream" if literal else "let rules read ISTREAM"
    return ProgramError.of(
        MUCH_VERIFYING if literal else MUCH_WORK,
        f"{what} takes more than {most:,} units of work at points at which nothing comes",
        notes=notes or (f"it had reached {at}",),
        hint="correct the clock of the source (--max-jump refuses such graphs), choose a longer STEP, "
        f"{remedy}, or raise --budget",
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

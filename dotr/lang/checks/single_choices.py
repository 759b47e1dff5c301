"""LAST and FIRST where one event of all is chosen, and what follows asks about each.

Place:   a static check; no data.
Method:  the rule of silence, written wrong: `AND LAST Beat … AND NOT Later := Beat … ON Later.?s = Beat.?s`
         looks at one beat of all sensors, the last, which is rarely the silent one's. It is reported where
         the choice is related to nothing before it, and every later conjunct that looks at it equates an
         attribute, a NOT over the same facts among them.
"""

from __future__ import annotations

from typing import TypeGuard

from dotr.errors import Diagnostics
from dotr.ir import Absent, Attribute, Call, Choose, Conjunct, Const, Expression, Program, Rule, Selection
from dotr.rdf.terms import TRUE
from dotr.tesla.conditions import names, parts


def check_choices(program: Program, found: Diagnostics) -> None:
    """Warn where EACH is meant, D1327; not where it is reported already that nothing relates the choice."""
    reported = {d.span for d in found.found if d.code == "D1321"}
    for rule in program.rules:
        for number, conjunct in enumerate(rule.conjuncts):
            already = conjunct.position.span in reported
            if _takes_one(conjunct) and not already:
                variable = _treated_as_each(rule, conjunct, rule.conjuncts[number + 1 :])
                if variable:
                    _report(conjunct, variable, found)


def _takes_one(conjunct: Conjunct) -> TypeGuard[Choose]:
    return isinstance(conjunct, Choose) and conjunct.selection is not Selection.EACH and conjunct.k == 1


def _treated_as_each(rule: Rule, choice: Choose, later: tuple[Conjunct, ...]) -> str:
    """The variable by which later conjuncts go on with a choice of one event among all; empty if they do
    not, and where `ON true` says that one of all is meant.
    """
    own = choice.position.name
    if choice.on == Const(TRUE) or any(
        own in looked_at and len(looked_at) > 1 for looked_at in map(names, parts(choice.on))
    ):
        return ""
    variable = ""
    for conjunct in later:
        if conjunct.on is None or own not in names(conjunct.on):
            continue
        equated = [v for part in parts(conjunct.on) if (v := _equated(part, conjunct.position.name, own))]
        if not equated:
            return ""
        if isinstance(conjunct, Absent) and conjunct.position.stream == choice.position.stream:
            variable = variable or equated[0]
    return variable


def _equated(part: Expression, candidate: str, chosen: str) -> str:
    """`v` where a part says `candidate.?v = chosen.?v`."""
    if not (isinstance(part, Call) and part.function == "=" and len(part.arguments) == 2):
        return ""
    left, right = part.arguments
    if not (isinstance(left, Attribute) and isinstance(right, Attribute)):
        return ""
    same = left.variable == right.variable and {left.position, right.position} == {candidate, chosen}
    return left.variable if same else ""


def _report(choice: Choose, variable: str, found: Diagnostics) -> None:
    own, word = choice.position.name, choice.selection
    found.warning(
        "D1327",
        f"{word} takes one `{own}` of all, and what follows asks about that `?{variable}` alone",
        choice.position.span,
        hint=f"write `AND EACH {own}`: a match for every `?{variable}`",
        notes=(f"`{own}` is equated with nothing before it: one event, whatever its `?{variable}`",),
    )

"""Conjuncts whose condition says nothing about which of their events belong to the match.

Place:   a static check; no data.
Method:  a conjunct is related if a part of its ON looks at its own event and at something known before it.
         Without one, and with a variable of the same name on both sides, every pair matches, which is rarely
         meant. `ON true` says that it is.
"""

from __future__ import annotations

from dotr import ir
from dotr.errors import Diagnostics
from dotr.lang.operators import WRITTEN
from dotr.rdf.terms import TRUE
from dotr.tesla.conditions import names, parts


def check_relations(program: ir.Program, found: Diagnostics) -> None:
    """Warn about conjuncts that any event satisfies, D1321, and conditions without their event, D1322."""
    for rule in program.rules:
        known = {rule.trigger.name: frozenset(rule.positions[0].variables if _has_facts(rule) else ())}
        for conjunct in rule.conjuncts:
            _check(conjunct, known, found)
            if isinstance(conjunct, ir.Choose):
                known[conjunct.position.name] = frozenset(conjunct.position.variables)


def _has_facts(rule: ir.Rule) -> bool:
    return len(rule.positions) > len(rule.conjuncts)


def _check(conjunct: ir.Conjunct, known: dict[str, frozenset[str]], found: Diagnostics) -> None:
    own, condition = conjunct.position.name, conjunct.on
    looked_at = [names(part) for part in parts(condition)]
    if condition == ir.Const(TRUE) or any(own in part and len(part) > 1 for part in looked_at):
        return
    if condition is not None and looked_at and not any(own in part for part in looked_at):
        if any(looked_at):
            _report_foreign(condition, own, found)
        return
    near = (*_references(conjunct.window), *known)
    for other in near:
        shared = [name for name in conjunct.position.variables if name in known[other]]
        if shared:
            _report_unrelated(conjunct, other, shared[0], found)
            return


def _references(window: ir.Window) -> tuple[str, ...]:
    return (window.reference,) if isinstance(window, ir.Within) else (window.start, window.end)


def _report_foreign(condition: ir.Expression, own: str, found: Diagnostics) -> None:
    found.warning(
        "D1322",
        f"this condition does not look at `{own}`",
        condition.span,
        hint=f"compare something of `{own}`; a condition on other events belongs in WHERE",
        notes=("it is the same for every candidate",),
    )


def _report_unrelated(conjunct: ir.Conjunct, other: str, shared: str, found: Diagnostics) -> None:
    own, condition = conjunct.position.name, conjunct.on
    equation = f"{own}.?{shared} = {other}.?{shared}"
    written = f"ON {equation}" if condition is None else f"&& {equation}"
    found.warning(
        "D1321",
        f"{WRITTEN[conjunct.operator].effect(conjunct)}, whatever its `?{shared}`",
        conjunct.position.span,
        hint=f"write `{written}`" + (", or `ON true` if that is meant" if condition is None else ""),
        notes=(f"`{own}` and `{other}` both have a `?{shared}`, and ON does not compare them",),
    )

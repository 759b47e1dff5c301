"""Aggregates whose value nothing reads: they never prevent a match, so they do nothing at all.

Place:   a static check; no data.
"""

from __future__ import annotations

from collections.abc import Iterator

from dotr.errors import Diagnostics
from dotr.ir import Program, Rule, Summarise
from dotr.lang.checks.comparisons import rule_expressions
from dotr.tesla.conditions import names


def check_aggregates(program: Program, found: Diagnostics) -> None:
    """Warn about every aggregate variable that no condition, aggregate or binding of its rule uses, D1326."""
    for rule in program.rules:
        for conjunct in _unused(rule):
            found.warning(
                "D1326",
                f"nothing reads `?{conjunct.variable}`",
                conjunct.span,
                hint=f"use it, as in `WHERE ?{conjunct.variable} > 5`, or delete the conjunct",
                notes=("an aggregate alone prevents no event, not even one over nothing",),
            )


def _unused(rule: Rule) -> Iterator[Summarise]:
    read = frozenset[str]().union(*map(names, rule_expressions(rule)))
    for conjunct in rule.conjuncts:
        if isinstance(conjunct, Summarise) and f"?{conjunct.variable}" not in read:
            yield conjunct

"""Whose events leave: PRIVATE rules, and those that a run leaves out.

Place:   between a checked program and who runs it (`--only`, `--except`); core/emit.py drops the events.
Method:  a rule that is not asked for becomes private, and what no other rule then needs is taken out, with
         its queries. What is left finds the same events: a rule sees nothing of those that it does not read.
"""

from __future__ import annotations

from collections.abc import Collection

from dotr.ir.program import Program
from dotr.late import replace


def only(program: Program, names: Collection[str]) -> Program:
    """The program with every rule private that is not among `names`."""
    rules = (rule if rule.name in names else replace(rule, private=True) for rule in program.rules)
    return replace(program, rules=tuple(rules))


def needed(program: Program) -> Program:
    """The program without private rules that no other rule's events depend on, and without their queries."""
    reads = {rule.name: [p.stream for p in rule.positions if p.chained] for rule in program.rules}
    found: set[str] = set()
    todo = [rule.name for rule in program.rules if not rule.private]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += reads[name]
    left = program.without(reads.keys() - found)
    used = {position.stream for rule in left.rules for position in rule.positions}
    gone = {p.stream for r in program.rules if r.name not in found for p in r.positions} - used
    return replace(left, queries={name: q for name, q in left.queries.items() if name not in gone})

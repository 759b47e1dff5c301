"""Rules whose events do not leave: PRIVATE ones, and those that a run excludes.

Place:   between a checked program and its runner (`--only`, `--except`); core/emit.py drops the events.
Method:  an excluded rule becomes private, and rules that no other rule then needs are removed, with their
         queries. The rest finds the same events: a rule does not depend on rules that it does not read.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from dotr.ir.program import Program


def only(program: Program, names: Collection[str]) -> Program:
    """The program with every rule private except `names`."""
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

"""Rules that refer to rules: in which order they run at one instant.

Place:   called by resolve.py with every rule; `Program.dependencies` is its result.
Method:  language.md, sec. 3, "chaining". A reference is strict if its window, or a window between it and the
         trigger, is BEFORE or BETWEEN: it looks at earlier instants only and orders nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from dotr.errors import Diagnostics
from dotr.ir import Position, Rule
from dotr.source import Span
from dotr.tesla.references import references


def _references(rule: Rule) -> Iterator[tuple[Position, bool]]:
    """The positions that range over rules, each with whether the reference is strict."""
    chained = [position for position in rule.positions if position.chained]
    for position, (_, strict) in zip(chained, references(rule), strict=True):
        yield position, strict


def order(rules: Sequence[Rule], found: Diagnostics) -> tuple[int, ...]:
    """Rules so that every non-strict reference comes first, program order where free; cycles are recorded."""
    index = {rule.name: i for i, rule in enumerate(rules)}
    needs: dict[int, dict[int, Span | None]] = {i: {} for i in range(len(rules))}
    for i, rule in enumerate(rules):
        for position, strict in _references(rule):
            if not strict and position.stream in index:
                needs[i].setdefault(index[position.stream], position.span)
    waiting = {i: len(needed) for i, needed in needs.items()}
    users: dict[int, list[int]] = {i: [] for i in needs}
    for i, needed in needs.items():
        for j in needed:
            users[j].append(i)
    ready = [i for i, count in waiting.items() if count == 0]
    heapify(ready)
    sequence: list[int] = []
    while ready:
        i = heappop(ready)
        sequence.append(i)
        for user in users[i]:
            waiting[user] -= 1
            if waiting[user] == 0:
                heappush(ready, user)
    if len(sequence) < len(rules):
        _report({i: needs[i] for i in needs if waiting[i]}, rules, found)
    return tuple(sequence)


def _report(
    needs: Mapping[int, Mapping[int, Span | None]], rules: Sequence[Rule], found: Diagnostics
) -> None:
    """One finding for each cycle met when walking from rule to rule."""
    done: set[int] = set()
    for start in needs:
        path: list[int] = []
        at = start
        while at not in done and at not in path:
            path.append(at)
            following = [j for j in needs[at] if j in needs]
            if not following:
                break
            at = min(following)
        if at in path:
            cycle = path[path.index(at) :]
            names = [rules[i].name for i in (*cycle, cycle[0])]
            follower = cycle[1] if len(cycle) > 1 else cycle[0]
            found.error(
                "D1307",
                f"rule `{rules[at].name}` waits for itself within one instant",
                needs[at][follower],
                hint="make one of the references strict: WITHIN … BEFORE …",
                notes=(" refers to ".join(f"`{name}`" for name in names),),
            )
        done.update(path)

"""Which heads depend on which, and in what order they are evaluated.

Place:   engine.py splits the strata that it is given into components; who has no order of its own (tests,
         plans of .lars files alone) takes `strata`.
Method:  strongly connected components of names, dependencies first. NOT and aggregates inside one have no
         stratified meaning (Apt, Blair, Walker 1988); positive recursion, through windows or not, is fine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from dotr.ir.lars import FactWindow, LarsProgram, LarsRule, WindowAggregate, WindowAtom


def reads(rule: LarsRule) -> Iterator[tuple[str, str]]:
    """(name, "NOT" | "AGGREGATE" | "") of every atom of a body."""
    for literal in rule.body:
        if isinstance(literal, WindowAtom | WindowAggregate):
            negated = isinstance(literal, WindowAtom) and literal.negated
            strict = "NOT" if negated else "AGGREGATE" if isinstance(literal, WindowAggregate) else ""
            yield literal.atom.name, strict
            if isinstance(literal.window, FactWindow):
                yield from ((name, strict) for name in literal.window.streams if name != literal.atom.name)


def strata(program: LarsProgram) -> list[list[int]]:
    """Numbers of rules by component of their heads, dependencies first; program order within one."""
    return components(program.rules, range(len(program.rules)))


def components(rules: Sequence[LarsRule], numbers: Collection[int]) -> list[list[int]]:
    """Some of the rules by component of their heads, dependencies first."""
    reached = _reached(_graph(rules, numbers))
    found: list[list[int]] = []
    placed: set[str] = set()
    heads = list(dict.fromkeys(rules[number].head.atom.name for number in numbers))
    while heads:
        ready = next(h for h in heads if all(b in placed or h in reached.get(b, ()) for b in reached[h]))
        members = {ready, *(b for b in reached[ready] if ready in reached.get(b, ()))}
        placed |= members
        heads = [head for head in heads if head not in members]
        found.append([number for number in numbers if rules[number].head.atom.name in members])
    return found


def recursive(rules: Sequence[LarsRule]) -> bool:
    """Whether a head of these rules, which are one component, depends on one."""
    heads = {rule.head.atom.name for rule in rules}
    return any(name in heads for rule in rules for name, _ in reads(rule))


def _graph(rules: Sequence[LarsRule], numbers: Collection[int]) -> dict[str, dict[str, None]]:
    """Head → the heads among these rules that it reads."""
    heads = {rules[number].head.atom.name for number in numbers}
    graph: dict[str, dict[str, None]] = {}
    for number in numbers:
        found = graph.setdefault(rules[number].head.atom.name, {})
        found.update((name, None) for name, _ in reads(rules[number]) if name in heads)
    return graph


def _reached(graph: Mapping[str, Mapping[str, None]]) -> dict[str, set[str]]:
    """Head → every head that it depends on, by whatever way."""
    found = {}
    for start in graph:
        seen: set[str] = set()
        todo = list(graph[start])
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += graph[name]
        found[start] = seen
    return found

"""What `dotr plan` says about what holds: the timeline, the rules by layer, what bounds their state.

Place:   under planning.py.
Method:  language.md, "A .lars file". State reaches back the sum of windows and offsets along a path of heads,
         ahead the largest offset. A head that reads itself through a window, or by way of others, has no
         bound of influence, though its windows bound what is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dotr.core.deployment import Deployment
from dotr.ir import Every, FactWindow, LarsProgram, LarsRule, Program, TimeWindow, WindowAggregate, WindowAtom
from dotr.lang.grammar.durations import duration_text
from dotr.lang.lars_printer import lars_rule_text

DENSE = "a fact at every point at which it holds: ISTREAM has each beginning once"


def holding(deployment: Deployment) -> dict[str, Any] | None:
    """The timeline and the layers in evaluation order; None without LARS rules."""
    program = deployment.program
    lars = program.lars
    if not lars.rules:
        return None
    reaches = _reaches(lars)
    ahead = max((rule.head.offset for rule in lars.rules), default=0)
    return {
        "points": "one unit of integer time"
        if lars.step is None
        else f"multiples of {duration_text(lars.step)}",
        "ahead": duration_text(max(ahead, 0)),
        "layers": [
            {
                "after": [program.rules[i].name for i in program.dependencies[: layer.before]],
                "heads": [_head(program, name, reaches) for name in layer.names],
                "rules": [lars_rule_text(lars.rules[i], program.prefixes) for i in layer.rules],
            }
            for layer in lars.layers
        ],
    }


def _head(program: Program, name: str, reaches: Mapping[str, int | None]) -> dict[str, Any]:
    users = {
        rule.name: position.stream
        for rule in program.rules
        for position in rule.positions
        if position.held and position.stream.rpartition(" ")[2] == name
    }
    dense = [
        rule.name
        for rule in program.rules
        if not isinstance(rule.trigger, Every) and rule.trigger.held and rule.trigger.stream == name
    ]
    reach = reaches[name]
    return {
        "name": name,
        "attributes": list(program.lars.attributes[name]),
        "reach": None if reach is None else duration_text(reach),
        "counts": any(_counts(rule) for rule in program.lars.rules if rule.head.atom.name == name),
        "rules": list(users),
        "dense": dense,
    }


def _counts(rule: LarsRule) -> bool:
    """Whether a rule has a window of facts, which reaches back as far as they lie."""
    return any(
        isinstance(b, WindowAtom | WindowAggregate) and isinstance(b.window, FactWindow) for b in rule.body
    )


def _reaches(lars: LarsProgram) -> dict[str, int | None]:
    """Head → how far back what it depends on can lie, in µs, as far as windows of time say; None: the whole
    past.
    """
    found: dict[str, int | None] = {}
    open_: set[str] = set()

    def reach(name: str) -> int | None:
        if name not in lars.attributes:
            return 0
        if name in open_:
            return None
        if name not in found:
            open_.add(name)
            found[name] = _furthest([of_rule(rule) for rule in lars.rules if rule.head.atom.name == name])
            open_.discard(name)
        return found[name]

    def of_rule(rule: LarsRule) -> int | None:
        parts: list[int | None] = [0]
        for literal in rule.body:
            if isinstance(literal, WindowAtom | WindowAggregate):
                below = reach(literal.atom.name)
                own = literal.window.duration if isinstance(literal.window, TimeWindow) else 0
                parts.append(None if below is None else own + below)
        far = _furthest(parts)
        return None if far is None else far + abs(rule.head.offset)

    cyclic = {name for name in lars.attributes if _reads_itself(name, lars)}
    for name in lars.attributes:
        if name in cyclic:
            found[name] = None
    for name in lars.attributes:
        reach(name)
    return found


def _furthest(parts: list[int | None]) -> int | None:
    return None if None in parts else max((part for part in parts if part is not None), default=0)


def _reads_itself(name: str, lars: LarsProgram) -> bool:
    """Whether a head depends on itself, by whatever way."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        head = todo.pop()
        for rule in lars.rules:
            if rule.head.atom.name != head:
                continue
            for literal in rule.body:
                if isinstance(literal, WindowAtom | WindowAggregate) and literal.atom.name not in seen:
                    seen.add(literal.atom.name)
                    todo.append(literal.atom.name)
    return name in seen


def holding_lines(shown: dict[str, Any]) -> list[str]:
    """The same as text."""
    lines = [f"WHAT HOLDS at {shown['points']}"]
    if shown["ahead"] != "0 s":
        lines.append(f"  atoms wait for a later point for at most {shown['ahead']}")
    for number, layer in enumerate(shown["layers"], 1):
        after = f", after {', '.join(layer['after'])}" if layer["after"] else ""
        lines.append(f"  layer {number}{after}")
        lines += [f"    {rule}" for rule in layer["rules"]]
        for head in layer["heads"]:
            attributes = "".join(f" ?{name}" for name in head["attributes"])
            users = f", read by {', '.join(head['rules'])}" if head["rules"] else ""
            far = "depends on the whole past" if head["reach"] is None else f"looks back {head['reach']}"
            facts = " and as far as its windows of facts reach" if head["counts"] else ""
            lines.append(f"    {head['name']}{attributes}: {far}{facts}{users}")
            if head["dense"]:
                lines.append(f"      {', '.join(head['dense'])}: {DENSE}")
    return lines

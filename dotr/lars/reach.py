"""How far back and ahead a program sees, and by which argument it can be cut: from its shape alone.

Place:   read by `dotr plan` and by whoever cuts a program for Spark; values in, values out.
Method:  windows add up along the ways from a head down to a stream. A way round a cycle that is longer than
         nothing can be gone again and again: what it influences has no bound. A window of facts has none in
         time, either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from dotr.events import Time
from dotr.ir.expressions import Var
from dotr.ir.lars import (
    Argument,
    FactWindow,
    LarsProgram,
    LarsRule,
    TimeWindow,
    WindowAggregate,
    WindowAtom,
)
from dotr.lars.evaluation_order import components, reads

Depths: TypeAlias = Mapping[str, Time | None]
"""Stream → how long after a fact of it, in µs, an atom may still depend on it; None: for ever."""


def depths(program: LarsProgram) -> dict[str, Depths]:
    """Head → the streams that it depends on, through whatever other heads, and for how long.

    Offsets ahead add up as windows do.
    """
    found: dict[str, dict[str, Time | None]] = {}
    for numbers in components(program.rules, range(len(program.rules))):
        rules = [program.rules[number] for number in numbers]
        own = {rule.head.atom.name for rule in rules}
        endless = any(name in own and length != 0 for rule in rules for name, length in _steps(rule))
        whole: dict[str, Time | None] = {}
        for rule in rules:
            for name, length in _steps(rule):
                if name in own:
                    continue
                for stream, depth in found.get(name, {name: 0}).items():
                    sum_ = None if length is None or depth is None or endless else length + depth
                    before = whole.get(stream, 0)
                    whole[stream] = None if sum_ is None or before is None else max(sum_, before)
        found |= dict.fromkeys(own, whole)
    return {head: dict(streams) for head, streams in found.items()}


def horizon(program: LarsProgram) -> tuple[Time | None, Time]:
    """(how far back state reaches, None without bound; how far ahead atoms are put), in µs."""
    back = [depth for streams in depths(program).values() for depth in streams.values()]
    ahead = max((rule.head.offset for rule in program.rules), default=0)
    reach = None if None in back else max((depth for depth in back if depth is not None), default=0)
    return reach, max(ahead, 0)


def _steps(rule: LarsRule) -> Iterator[tuple[str, Time | None]]:
    """(name, how long after an atom of it the head may depend on it) of what a body reads."""
    ahead = max(rule.head.offset, 0)
    for literal in rule.body:
        if isinstance(literal, WindowAtom | WindowAggregate):
            window = literal.window
            if isinstance(window, FactWindow):
                yield from ((name, None) for name in dict.fromkeys((literal.atom.name, *window.streams)))
            else:
                yield literal.atom.name, ahead + (window.duration if isinstance(window, TimeWindow) else 0)


def connected(rules: Sequence[LarsRule]) -> list[LarsRule]:
    """The rules in an order in which each shares a name with one before it, if any does: there its key is
    known then, and nothing need be tried.
    """
    left, order = list(rules), []
    seen: set[str] = set()
    while left:
        nearest = next((rule for rule in left if not seen.isdisjoint(names(rule))), left[0])
        left.remove(nearest)
        order.append(nearest)
        seen.update(names(nearest))
    return order


def names(rule: LarsRule) -> list[str]:
    """Of the head and of what the body reads."""
    return [rule.head.atom.name, *(name for name, _ in reads(rule))]


def rule_keys(rule: LarsRule, parted: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The ways in which every atom of a rule has one and the same variable in its name's place, given the
    places of some names already; in the order of the head's arguments.

    None where an atom has no such variable, counts facts (of all keys together), or there is no atom.
    """
    if whole_reason(rule) is not None:
        return
    atoms = _atoms(rule)
    variables = [argument.name for argument in atoms[0][1] if isinstance(argument, Var)]
    for variable in dict.fromkeys(variables):
        yield from _places(atoms, variable, parted)


def whole_reason(rule: LarsRule) -> str | None:
    """Why a rule, by itself, cannot be parted; None if it can."""
    atoms = _atoms(rule)
    if any(isinstance(item.window, FactWindow) for item in _windows(rule)):
        return "a window of facts counts those of all keys"
    if len(atoms) == 1:
        return "its body reads nothing"
    shared = {argument.name for argument in atoms[0][1] if isinstance(argument, Var)}
    for _, arguments in atoms:
        shared &= {argument.name for argument in arguments if isinstance(argument, Var)}
    return None if shared else "no variable is in all of its atoms"


def _windows(rule: LarsRule) -> Iterator[WindowAtom | WindowAggregate]:
    return (item for item in rule.body if isinstance(item, WindowAtom | WindowAggregate))


def _atoms(rule: LarsRule) -> list[tuple[str, tuple[Argument | None, ...]]]:
    """(name, arguments) of the head and the body; of an aggregate's only those of PER can part it."""
    found: list[tuple[str, tuple[Argument | None, ...]]] = [(rule.head.atom.name, rule.head.atom.arguments)]
    for literal in _windows(rule):
        arguments: tuple[Argument | None, ...] = literal.atom.arguments
        if isinstance(literal, WindowAggregate):
            arguments = tuple(a if a in literal.group else None for a in arguments)
        found.append((literal.atom.name, arguments))
    return found


def _places(
    atoms: Sequence[tuple[str, tuple[Argument | None, ...]]], variable: str, parted: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """The ways in which every atom has the variable in its name's place."""
    if not atoms:
        yield dict(parted)
        return
    (name, arguments), *rest = atoms
    for place, argument in enumerate(arguments):
        fits = isinstance(argument, Var) and argument.name == variable and parted.get(name, place) == place
        if fits:
            yield from _places(rest, variable, {**parted, name: place})

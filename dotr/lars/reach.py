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
    NamedAtom,
    TimeWindow,
    WindowAggregate,
    WindowAtom,
)
from dotr.lars.strata import components, reads

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


def partition_keys(program: LarsProgram) -> dict[str, int] | None:
    """Name → the place of its argument by which its atoms can be parted, streams and heads alike.

    Every atom of every rule has one and the same variable there, so that a part derives what the whole
    derives for its keys. None where there is no such choice: an atom without the variable, a constant in its
    place, a window of facts (it counts all keys together), a rule without atoms.
    """
    for rule in program.rules:
        windows = (item.window for item in rule.body if isinstance(item, WindowAtom | WindowAggregate))
        if not any(True for _ in reads(rule)) or any(isinstance(window, FactWindow) for window in windows):
            return None
    return _chosen([_atoms(rule) for rule in program.rules], {})


def _atoms(rule: LarsRule) -> list[tuple[str, tuple[Argument | None, ...]]]:
    """(name, arguments) of the head and the body; of an aggregate's only those of PER can part it."""
    found: list[tuple[str, tuple[Argument | None, ...]]] = [(rule.head.atom.name, rule.head.atom.arguments)]
    for literal in rule.body:
        if isinstance(literal, WindowAtom):
            found.append((literal.atom.name, literal.atom.arguments))
        elif isinstance(literal, WindowAggregate):
            found.append((literal.atom.name, _grouped(literal.atom, literal.group)))
    return found


def _grouped(atom: NamedAtom, group: Sequence[Var]) -> tuple[Argument | None, ...]:
    return tuple(argument if argument in group else None for argument in atom.arguments)


def _chosen(
    rules: Sequence[Sequence[tuple[str, tuple[Argument | None, ...]]]], parted: Mapping[str, int]
) -> dict[str, int] | None:
    """A place for every name that suits all rules; the first in the order of rules and of arguments."""
    if not rules:
        return dict(parted)
    first, *rest = rules
    variables = [a.name for a in first[0][1] if isinstance(a, Var)]
    for variable in dict.fromkeys(variables):
        for choice in _places(first, variable, parted):
            found = _chosen(rest, choice)
            if found is not None:
                return found
    return None


def _places(
    atoms: Sequence[tuple[str, tuple[Argument | None, ...]]], variable: str, parted: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """The ways in which every atom has the variable in its name's place."""
    if not atoms:
        yield dict(parted)
        return
    (name, arguments), *rest = atoms
    places = [place for place, a in enumerate(arguments) if isinstance(a, Var) and a.name == variable]
    for place in places:
        if parted.get(name, place) == place:
            yield from _places(rest, variable, {**parted, name: place})

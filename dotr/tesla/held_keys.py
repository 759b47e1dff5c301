"""LARS rules in the search for keys: their constraints, and which attributes of heads are computed.

Place:   used by partition_keys.py for components with what holds.
Method:  if all atoms of a LARS rule share a variable (lars/reach.py), what holds for a part of the keys does
         not depend on the others. A head, its ISTREAM and its DSTREAM have their key in the same place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from dotr.ir import LarsRule, Position, Program, Rule, WindowAggregate, WindowAtom
from dotr.ir.expressions import Var


def parted_name(position: Position) -> str:
    """The name whose key a position's facts have: the same for a head and its changes."""
    return position.stream.rpartition(" ")[2] if position.held else position.stream


def streams_of(rule: Rule) -> list[str]:
    """The names whose keys are related in a rule."""
    return [rule.name, *(parted_name(position) for position in rule.positions)]


def computed_heads(program: Program, computed: Collection[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Attributes of heads, as (stream, variable), that may differ from those of query facts, given those
    known to be computed. Like those of WITH, they can be an xsd:float.
    """
    lars = program.lars
    if not lars.rules:
        return
    attributes = {name: select.variables for name, select in program.selects.items()}
    attributes |= {rule.name: tuple(b.variable for b in rule.bindings) for rule in program.rules}
    attributes |= lars.attributes

    def given(rule: LarsRule, variable: str) -> bool:
        for literal in rule.body:
            match literal:
                case WindowAtom(negated=False, atom=atom):
                    meant = {Var(variable)}
                case WindowAggregate(atom=atom, group=group):
                    meant = {Var(variable)} & set(group)
                case _:
                    continue
            for place, argument in enumerate(atom.arguments):
                if argument in meant and (atom.name, attributes[atom.name][place]) not in computed:
                    return True
        return False

    for rule in lars.rules:
        head = rule.head.atom
        for place, argument in enumerate(head.arguments):
            if not (isinstance(argument, Var) and given(rule, argument.name)):
                for stream in (head.name, f"ISTREAM {head.name}", f"DSTREAM {head.name}"):
                    yield stream, attributes[head.name][place]


def names(rule: LarsRule) -> Sequence[str]:
    """`names` of lars/reach.py."""
    from dotr.lars import reach  # noqa: PLC0415  # start-up: most programs have no such rules

    return reach.names(rule)


def keys_of(rule: LarsRule, parted: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """`rule_keys` of lars/reach.py."""
    from dotr.lars import reach  # noqa: PLC0415  # start-up: most programs have no such rules

    return reach.rule_keys(rule, parted)


def held_reason(program: Program) -> str | None:
    """Why what holds cannot be partitioned by key, as far as one LARS rule shows it."""
    from dotr.lars.reach import whole_reason  # noqa: PLC0415  # start-up: most programs have no such rules

    for rule in program.lars.rules:
        reason = whole_reason(rule)
        if reason is not None:
            return f"not by key: in a rule for `{rule.head.atom.name}` {reason}"
    return None

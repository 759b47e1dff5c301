"""What holds, as lines of text and as plain values.

Place:   asked by text.py and formats.py, which render the facts below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, assert_never

from dotr.events import Clock, Time, Values
from dotr.explain import held_proofs
from dotr.explain.proofs import FactProof
from dotr.explain.tree import Node
from dotr.ir import BindAtom, FilterAtom, LarsRule, Modality, RelationToStream, WindowAtom
from dotr.lang.lars_printer import lars_literal_text, lars_rule_text
from dotr.sparql.printing import Writer

FactNode = Callable[[str, FactProof], Node]
FactValue = Callable[[FactProof], dict[str, Any]]


class HeldRenderer:
    """Draws what holds; `fact` draws what came. An atom that was drawn is named "(above)"."""

    def __init__(self, prefixes: Mapping[str, str], clock: Clock, fact: FactNode) -> None:
        self._prefixes, self._clock, self._fact = prefixes, clock, fact
        self._writer = Writer(prefixes)
        self._seen: set[object] = set()

    def holding(self, why: held_proofs.Holding) -> Iterator[Node]:
        """Why a head has a fact."""
        if why.atom is None:
            yield Node("it lies too far behind the beginning of what was kept", right="not opened")
            return
        node = self._held(why.atom)
        if why.operator is RelationToStream.DSTREAM:
            yield Node("DSTREAM: it held at the point before", right="", children=[node])
            yield from self.failures(why.failed)
        elif why.operator is RelationToStream.ISTREAM:
            yield Node("ISTREAM: it holds, and did not at the point before", children=[node])
        else:
            yield node

    def failures(self, failed: Iterable[held_proofs.LarsFailure]) -> Iterator[Node]:
        """Why no rule gives an atom at a point."""
        for one in failed:
            node = Node(self._rule(one.rule), right=str(one.rule.span or ""))
            if one.literal is None:
                node.children.append(Node("its head is of other values, or at another point"))
            else:
                text = lars_literal_text(one.literal, self._prefixes)
                node.children.append(Node(f"✗ {text}", right=self._failed(one)))
            yield node

    def _failed(self, one: held_proofs.LarsFailure) -> str:
        literal = one.literal
        when = self._clock.text(one.point)
        if isinstance(literal, FilterAtom | BindAtom):
            return "not true" if isinstance(literal, FilterAtom) else "no value"
        span = f"@ {when}" if one.start is None else f"from {self._clock.text(one.start)} to {when}"
        if isinstance(literal, WindowAtom) and literal.negated:
            return f"there is one {span}"
        if isinstance(literal, WindowAtom) and literal.modality is Modality.ALWAYS:
            return f"not at every point {span}"
        if isinstance(literal, WindowAtom) and literal.modality is Modality.AT_LEAST:
            return f"at too few points {span}"
        return f"nothing {span}"

    def _rule(self, rule: LarsRule) -> str:
        return lars_rule_text(rule, self._prefixes)

    def _atom(self, name: str, values: Values, point: Time) -> str:
        terms = ", ".join("unbound" if term is None else self._writer.term(term) for term in values)
        return f"{name}({terms})  @ {self._clock.text(point)}"

    def _held(self, atom: held_proofs.HeldAtom) -> Node:
        node = Node(self._atom(atom.name, atom.values, atom.point))
        key = atom.name, atom.values, atom.point
        if key in self._seen:
            node.right = "(above)"
            return node
        self._seen.add(key)
        place = str(atom.rule.span).rsplit(":", 1)[0] if atom.rule.span is not None else "rule"
        late = "" if atom.considered == atom.point else f"   read @ {self._clock.text(atom.considered)}"
        node.right = f"{place}   {self._rule(atom.rule)}{late}"
        node.children += map(self._step, atom.steps)
        return node

    def _step(self, step: held_proofs.LarsStep) -> Node:
        text = lars_literal_text(step.literal, self._prefixes)
        match step:
            case held_proofs.Computed(literal):
                return Node(text, right="true" if isinstance(literal, FilterAtom) else "")
            case held_proofs.NoneHeld(start=start):
                since = "" if start is None else f" from {self._clock.text(start)} on"
                return Node(text, right=f"none{since}")
            case held_proofs.ProvedTotal(value=value, pairs=pairs, start=start):
                since = self._clock.text(start)
                return Node(text, right=f"{self._writer.term(value)}, of {pairs} from {since} on")
            case held_proofs.Supported(literal, atoms, points, start):
                right = ""
                if start is not None:
                    right = f"at {points} point{'' if points == 1 else 's'} from {self._clock.text(start)} on"
                node = Node(text, right=right)
                node.children += map(self._placed, atoms)
                shown = 1 if literal.modality in (None, Modality.SOMETIME, Modality.AT) else points
                if shown > len(atoms):
                    node.children.append(Node(f"… and {shown - len(atoms)} more points"))
                return node
            case _:
                assert_never(step)

    def _placed(self, atom: held_proofs.PlacedAtom) -> Node:
        match atom.why:
            case held_proofs.HeldAtom():
                return self._held(atom.why)
            case FactProof():
                return self._fact("", atom.why)
            case None:
                return Node(self._atom(atom.name, atom.values, atom.point), right="not opened")
            case _:
                assert_never(atom.why)


class HeldValues:
    """What holds as plain values, JSON-able; `fact` says what came."""

    def __init__(self, clock: Clock, fact: FactValue) -> None:
        self._clock, self._fact = clock, fact
        self._seen: set[object] = set()

    def holding(self, why: held_proofs.Holding) -> dict[str, Any]:
        """Why a head has a fact."""
        found: dict[str, Any] = {"holds": None if why.atom is None else self._held(why.atom)}
        if why.operator is not None:
            found["change"] = why.operator.value
        if why.failed:
            found["no_more"] = self.failures(why.failed)
        return found

    def failures(self, failed: Iterable[held_proofs.LarsFailure]) -> list[dict[str, Any]]:
        """Why no rule gives an atom at a point."""
        return [
            {
                "rule": lars_rule_text(one.rule, {}),
                "failed": None if one.literal is None else lars_literal_text(one.literal, {}),
                "time": self._clock.text(one.point),
                "from": None if one.start is None else self._clock.text(one.start),
            }
            for one in failed
        ]

    def _held(self, atom: held_proofs.HeldAtom) -> dict[str, Any]:
        own = self._at(atom.name, atom.values, atom.point)
        key = atom.name, atom.values, atom.point
        if key in self._seen:
            return {**own, "above": True}
        self._seen.add(key)
        return {
            **own,
            "rule": lars_rule_text(atom.rule, {}),
            "place": "" if atom.rule.span is None else str(atom.rule.span),
            "read": self._clock.text(atom.considered),
            "bindings": dict(atom.bindings),
            "body": [self._step(step) for step in atom.steps],
        }

    def _at(self, name: str, values: Values, point: Time) -> dict[str, Any]:
        return {"head": name, "values": list(values), "time": self._clock.text(point)}

    def _step(self, step: held_proofs.LarsStep) -> dict[str, Any]:
        found: dict[str, Any] = {"literal": lars_literal_text(step.literal, {})}
        if (
            isinstance(step, held_proofs.Supported | held_proofs.NoneHeld | held_proofs.ProvedTotal)
            and step.start is not None
        ):
            found["from"] = self._clock.text(step.start)
        if isinstance(step, held_proofs.Supported):
            found |= {"points": step.points, "support": [self._placed(atom) for atom in step.atoms]}
        elif isinstance(step, held_proofs.ProvedTotal):
            found |= {"value": step.value, "pairs": step.pairs}
        return found

    def _placed(self, atom: held_proofs.PlacedAtom) -> dict[str, Any]:
        match atom.why:
            case held_proofs.HeldAtom():
                return self._held(atom.why)
            case FactProof():
                return self._fact(atom.why)
            case None:
                return self._at(atom.name, atom.values, atom.point)
            case _:
                assert_never(atom.why)

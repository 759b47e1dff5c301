"""Explanations as values, Mermaid and HTML.

Place:   beside text.py, whose tree of lines Mermaid and HTML draw.
Method:  JSON has everything that a proof has, terms in N-Triples form; a page is drawn by pictures/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, assert_never

from dotr.events import Clock, Fact
from dotr.explain import proofs
from dotr.explain.proofs import Holding, Sharing
from dotr.explain.text import LATE, HeldValues, Node, Places, window_text
from dotr.pictures.markup import page
from dotr.pictures.tree import tree
from dotr.program import Node as IrNode
from dotr.program import Rule, Summarise, Var
from dotr.rdf.terms import Term, is_list, members

Plain = dict[str, Any]
LEVELS = 100
"""Derivations that values have inside one another: readers of JSON refuse what is much deeper."""


class PlainProofs:
    """Proofs as plain values, JSON-able."""

    def __init__(self, clock: Clock, places: Places, rule_text: Callable[[Any], str]) -> None:
        self._clock = clock
        self._places = places
        self._rule_text = rule_text
        self._sharing = Sharing()
        self._level = 0
        self._seen: set[object] = set()
        self._held = HeldValues(clock, self._fact)

    def of(self, found: proofs.WhyNot | proofs.TripleProof | proofs.Missing) -> Plain:
        """An explanation; `fired`: whether it explains an event."""
        match found:
            case (
                proofs.InStream()
                | proofs.InBackground()
                | proofs.Lasting()
                | proofs.Derived()
                | proofs.Unopened()
            ):
                return self.triple(found)
            case proofs.Missing(triple=triple, attempts=attempts, not_then=not_then, gone=gone):
                tried = [
                    {
                        "rule": self._rule_text(one.rule),
                        "lacks": _shown(one.lacks),
                        **({"inverses": dict(one.inverses)} if one.inverses else {}),
                    }
                    for one in attempts
                ]
                result: Plain = {"triple": list(triple), "holds": False, "attempts": tried}
                return result | self._not_then(not_then) | self._gone(gone)
            case proofs.EventProof():
                return {"fired": True, **self.event(found)}
            case proofs.NoTrigger():
                return {
                    "fired": False,
                    "rule": found.rule.name,
                    "time": self._clock.text(found.time),
                    "reason": "no trigger",
                    "graph": found.seen,
                    "patterns": list(found.looked_for),
                    "matched": found.found,
                    "bound": found.bound,
                    "nearest": [list(triple) for triple in found.near],
                    "untrue": list(found.untrue),
                    "left_out": list(found.left_out),
                    **self._gone(found.gone),
                    **self._not_held(found),
                    **self._not_then(found.not_then),
                    **({} if found.ahead is None else {"closed": self._clock.text(found.ahead)}),
                    **({"sequence": [self.of(one) for one in found.no_match]} if found.no_match else {}),
                }
            case proofs.Blocked():
                return self._blocked(found)
            case proofs.Unmatched():
                return self._unmatched(found)
            case proofs.Corrected():
                return self._corrected(found)
            case _:
                assert_never(found)

    def _corrected(self, found: proofs.Corrected) -> Plain:
        """As an event, with what corrections did; `now`: why one that was withdrawn does not hold."""
        changes = [
            {
                "change": one.change,
                "corrected_at": self._clock.text(one.at),
                "cause": [{"time": self._clock.text(time), "place": place} for time, place in one.late],
            }
            for one in found.changes
        ]
        now = {} if found.now is None else {"now": self.of(found.now)}
        event = self.event(found.event)
        return {"fired": found.now is None, **event, "corrections": changes, **now}

    def _unmatched(self, found: proofs.Unmatched) -> Plain:
        return {
            "fired": False,
            "rule": found.rule.name,
            "time": self._clock.text(found.time),
            "reason": "no match",
            "rows": [self._row(row) for row in found.rows],
            **({"waits": found.waits} if found.waits else {}),
            **({} if found.row is None else {"ended_by": self._fact(found.row)}),
            **({"untrue": list(found.untrue)} if found.untrue else {}),
            **({} if found.until is None else {"until": self._clock.text(found.until), "open": found.open}),
        }

    def _row(self, row: proofs.RowProof) -> Plain:
        return {"element": row.element, **self._fact(row.fact)}

    def _not_held(self, found: proofs.NoTrigger) -> Plain:
        """Why a head gives a rule no fact."""
        if found.held_before:
            return {"held_before": True}
        return {"not_held": self._held.failures(found.not_held)} if found.not_held else {}

    def _not_then(self, found: Sequence[proofs.NotThen]) -> Plain:
        """Triples that are held at other times."""
        shown: list[Plain] = []
        for one in found:
            times = {"from": one.start, "until": one.end}
            plain: Plain = {name: self._clock.text(t) for name, t in times.items() if t is not None}
            if one.reason:
                plain |= {"reason": one.reason, **({"value": one.value} if one.value else {})}
            shown.append({"triple": list(one.triple), **plain, "place": one.place})
        return {"held_at_other_times": shown} if shown else {}

    def event(self, proof: proofs.EventProof) -> Plain:
        """The proof of an event, the first time that it occurs."""
        if proof.id in self._seen:
            return {"rule": proof.rule.name, "id": proof.id, "above": True}
        self._seen.add(proof.id)
        names = [binding.variable for binding in proof.rule.bindings]
        return {
            "rule": proof.rule.name,
            "id": proof.id,
            "time": self._clock.text(proof.time),
            "bindings": self._bound(names, proof.values),
            **self._rows(proof),
            "trigger": self._fact(proof.trigger),
            **self._due(proof.rule, proof.trigger),
            "steps": [self._step(step) for step in proof.steps],
        }

    def _rows(self, proof: proofs.EventProof) -> Plain:
        """The rows of a match of a sequence, and what made it certain."""
        if not proof.rows:
            return {}
        return {"rows": [self._row(row) for row in proof.rows], "certain": proof.ended}

    def _due(self, rule: Rule, trigger: proofs.FactProof) -> Plain:
        """The tick of an AFTER."""
        if not rule.delay:
            return {}
        return {"due": {"name": rule.trigger.name, "time": self._clock.text(trigger.fact[0] + rule.delay)}}

    def triple(self, proof: proofs.TripleProof) -> Plain:
        """The proof of a triple."""
        match proof:
            case proofs.InStream(triple=triple, time=time):
                place = self._places(triple, time)
                return {
                    "triple": list(triple),
                    "stated": "stream",
                    "time": self._clock.text(time),
                    "place": place.removesuffix(LATE),
                    **({"late": True} if place.endswith(LATE) else {}),
                }
            case proofs.InBackground(triple=triple, until=until):
                place = self._places(triple, None)
                shown: Plain = {"triple": list(triple), "stated": "background", "place": place}
                if until is not None:
                    shown["until"] = self._clock.text(until)
                return {**shown, **self._ended(proof)}
            case proofs.Lasting():
                return self._lasting(proof)
            case proofs.Derived():
                return self._derived(proof)
            case proofs.Unopened(triple=triple, reason=reason):
                return {"triple": list(triple), "unopened": reason}
            case _:
                assert_never(proof)

    def _derived(self, proof: proofs.Derived) -> Plain:
        """A derivation, the first time that it occurs; what is deeper than values can be is counted."""
        number, triple = self._sharing.number(proof), list(proof.triple)
        if number in self._seen:
            return {"triple": triple, "above": True}
        if self._level >= LEVELS:
            return {"triple": triple, "below": self._sharing.size(proof) - 1}
        self._seen.add(number)
        self._level += 1
        found: Plain = {
            "triple": triple,
            "rule": self._rule_text(proof.rule),
            "place": str(proof.rule.span) if proof.rule.span is not None else "",
            **({"name": proof.name} if proof.name else {}),
            **({"inverses": dict(proof.inverses)} if proof.inverses else {}),
            "bindings": dict(proof.bindings),
            "premises": [self.triple(premise) for premise in proof.premises],
            "absent": [list(pattern) for pattern in proof.absent],
            **self._totals(proof),
        }
        self._level -= 1
        return found

    def _totals(self, proof: proofs.Derived) -> Plain:
        """What AGGREGATE atoms counted, where there are some."""
        found = [
            {"solutions": one.rows, "first": [[self.triple(p) for p in row] for row in one.shown]}
            for one in proof.totals
        ]
        return {"aggregates": found} if found else {}

    def _fact(self, proof: proofs.FactProof) -> Plain:
        found: Plain = {"position": proof.position, **self._values(proof.fact, proof.variables)}
        match proof.why:
            case None:
                pass
            case proofs.EventProof():
                found["event"] = self.event(proof.why)
            case proofs.EventLeaf():
                found["event"] = self._event(proof.why)
            case proofs.SolutionProof() as why:
                found |= self._solution(why)
            case Holding() as holding:
                found |= self._held.holding(holding)
            case proofs.Changed() as change:
                found |= self._solution(change.solution)
                found["change"] = change.operator.value
                if change.before is not None:
                    found |= {"before": change.before, "after": change.after}
                if change.rules:
                    found["other_rules"] = True
                if change.moved:
                    found["moved"] = [self.triple(one) for one in change.moved]
            case _:
                assert_never(proof.why)
        return found

    def _solution(self, why: proofs.SolutionProof) -> Plain:
        found: Plain = {"because": [self.triple(premise) for premise in why.premises]}
        if why.absent:
            found["absent"] = list(why.absent)
        if why.rows:
            found["rows"] = why.rows
        if why.opaque:
            found["engine"] = why.opaque
        if why.others:
            found["others"] = [self._solution(other) for other in why.others]
        return found

    def _lasting(self, proof: proofs.Lasting) -> Plain:
        """A statement with its period."""
        of_background = proof.place == proofs.OF_BACKGROUND
        by: Plain = {} if proof.stated_by is None else {"event": self._event(proof.stated_by)}
        how = "event" if by else "inserted" if proof.inserted else "held"
        return {
            "triple": list(proof.triple),
            "stated": "background" if of_background else how,
            "since": None if proof.start is None else self._clock.text(proof.start),
            "until": None if proof.until is None else self._clock.text(proof.until),
            "ends": proof.ending.value,
            "place": self._places(proof.triple, None) if of_background else proof.place,
            **by,
            **self._ended(proof),
        }

    def _ended(self, proof: proofs.Lasting | proofs.InBackground) -> Plain:
        return {} if proof.ended_by is None else {"ended_by": self._event(proof.ended_by)}

    def _gone(self, gone: Sequence[proofs.Lasting | proofs.InBackground]) -> Plain:
        """What was stated before, where it is known."""
        return {"was_stated": [self.triple(one) for one in gone]} if gone else {}

    def _event(self, event: proofs.EventProof | proofs.EventLeaf) -> Plain:
        if isinstance(event, proofs.EventProof):
            return self.event(event)
        return {"rule": event.rule, "id": event.id, "kept": event.kept}

    def _values(self, fact: Fact, variables: Sequence[str]) -> Plain:
        return {"time": self._clock.text(fact[0]), "values": self._bound(variables, fact[1])}

    @staticmethod
    def _bound(variables: Iterable[str], values: Iterable[Term | None]) -> Plain:
        """The variables that have a value."""
        pairs = zip(variables, values, strict=True)
        return {name: _plain(term) for name, term in pairs if term is not None}

    def _step(self, step: proofs.ConjunctProof) -> Plain:
        conjunct = step.conjunct
        found: Plain = {
            "clause": conjunct.word,
            "position": conjunct.position.name,
            "window": window_text(conjunct),
            "in_window": step.inside,
        }
        if step.inside is None:
            found["unopened"] = proofs.TOO_LONG
        match step:
            case proofs.Chosen():
                found |= {"candidates": step.passing, "fact": self._fact(step.fact)}
                if step.group is not None:
                    found["group"] = self._values(step.group, conjunct.position.variables)["values"]
            case proofs.NothingThere():
                if step.nearest is not None:
                    found["nearest"] = self._values(step.nearest, conjunct.position.variables)
                    found["not_true"] = list(step.failed)
            case proofs.Counted():
                assert isinstance(conjunct, Summarise)
                found |= {"variable": conjunct.variable, "candidates": len(step.facts)}
                found["value"] = None if step.value is None else _plain(step.value)
                found["facts"] = [self._values(fact, conjunct.position.variables) for fact in step.facts[:10]]
            case _:
                assert_never(step)
        return found

    def _blocked(self, found: proofs.Blocked) -> Plain:
        result: Plain = {
            "fired": False,
            "rule": found.rule.name,
            "time": self._clock.text(found.trigger.fact[0] + found.rule.delay),
            "trigger": self._fact(found.trigger),
            **self._due(found.rule, found.trigger),
            "steps": [self._step(step) for step in found.steps],
            "reason": found.reason,
        }
        if found.failed is not None:
            failed: Plain = {
                "clause": found.failed.word,
                "position": found.failed.position.name,
                "window": window_text(found.failed),
                "in_window": found.inside,
            }
            if found.nearest is not None:
                failed["nearest"] = self._values(found.nearest, found.failed.position.variables)
                failed |= {"not_true": list(found.missing), "outside_window": found.outside}
            if found.consumed_by:
                failed["consumed_by"] = found.consumed_by
                if found.consumed_at is not None:
                    failed["consumed_at"] = self._clock.text(found.consumed_at)
            if found.blocker is not None:
                failed["blocked_by"] = self._fact(found.blocker)
            if (short := found.nowhere) is not None:
                failed["nearest_instant"] = {
                    "time": self._clock.text(short.time),
                    "patterns": list(short.looked_for),
                    "matched": short.found,
                    "bound": short.bound,
                    "nearest": [list(triple) for triple in short.near],
                    "untrue": list(short.untrue),
                    **self._not_then(short.not_then),
                    **self._gone(short.gone),
                }
            result["failed"] = failed
        return result


def _plain(value: Term) -> str | list[str]:
    """A term, or the terms of a list."""
    return members(value) if is_list(value) else value


def _shown(nodes: Sequence[IrNode]) -> list[str]:
    return [f"?{node.name}" if isinstance(node, Var) else node for node in nodes]


def mermaid(trees: Sequence[Node]) -> str:
    """The trees as one Mermaid flowchart, conclusions above premises."""
    lines = ["flowchart TD"]
    count = 0

    def draw(node: Node, parent: int | None) -> None:
        nonlocal count
        own, count = count, count + 1
        text = node.text if not node.right else f"{node.text}<br/>{node.right}"
        text = (
            text.replace("#", "#35;")
            .replace('"', "#quot;")
            .replace("`", "#96;")
            .replace("<br/>", "\0")
            .replace("<", "#lt;")
            .replace(">", "#gt;")
        )
        lines.append(f'  n{own}["{text}"]'.replace("\0", "<br/>"))
        if parent is not None:
            lines.append(f"  n{own} --> n{parent}")
        for child in node.children:
            draw(child, own)

    for one in trees:
        draw(one, None)
    return "\n".join(lines) + "\n"


def html(trees: Sequence[Node], title: str = "Explanation") -> str:
    """The trees as a page that needs nothing else; steps open and close."""
    return page(title, tree(trees))

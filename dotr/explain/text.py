"""Explanations as text: a tree that fits in a hundred columns.

Renderer       proofs of events, facts and triples
HeldRenderer   what a LARS head holds, as lines
HeldValues     what a LARS head holds, as plain values
Node           a line with the lines below it, and the drawing of such a tree

Place:   what `dotr explain` prints, and `str()` of an explanation in Python.
Method:  every proof becomes lines with children; a sub-proof that was already printed is named "(above)".
         Rules are printed as written, with their place. LARS heads are rendered as lines and as plain values,
         for formats.py, too; clauses, their windows and their distances in time are worded once, for text and
         JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from dotr import program
from dotr.enrich.owl import INVERSE_OF, LIST_PREDICATES, VALUE_OF
from dotr.events import Clock, Fact, Time, Values
from dotr.explain import proofs
from dotr.explain import proofs as held_proofs
from dotr.explain.proofs import FactProof, Holding, Sharing
from dotr.expressions.aggregates import written
from dotr.extract.printing import Writer
from dotr.lang.printer import datalog_rule_text, lars_literal_text, lars_rule_text
from dotr.program import (
    Between,
    BindAtom,
    Conjunct,
    FilterAtom,
    LarsRule,
    Modality,
    RelationToStream,
    WindowAtom,
    Within,
)
from dotr.program.names import duration_text
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import OWL, RDF, RDF_TYPE, RDFS, XSD, Term, Triple
from dotr.windows.windows import kind_of

WIDTH = 100
NARROW = 40
"""Columns that a line has at least, however deep it is."""


class Node(Struct):
    """A line with the lines below it. `right` is shown at the right margin where it fits."""

    text: str
    children: list[Node] = field(default_factory=list)
    right: str = ""


def pruned(node: Node, depth: int) -> Node:
    """A tree without what lies deeper than `depth` levels below its root."""
    if not node.children or depth > 0:
        return replace(node, children=[pruned(child, depth - 1) for child in node.children])
    return replace(node, children=[], right="; ".join(filter(None, (node.right, "…"))))


def drawn(node: Node, width: int = WIDTH) -> str:
    """A tree as text, each line with its end."""
    return "".join(f"{line}\n" for line in _lines(node, "", "", width))


def _lines(node: Node, first: str, rest: str, width: int) -> Iterator[str]:
    text = first + node.text
    width = max(width, len(rest) + NARROW)
    right = len(text) + 3 + len(node.right) <= width
    bar = "│" if node.children else " "
    yield from _wrapped(f"{text}   {node.right}" if right and node.right else text, f"{rest}{bar}    ", width)
    if node.right and not right:
        margin = f"{rest}{bar}       "
        yield from _wrapped(margin + node.right, f"{margin}  ", width)
    for place, child in enumerate(node.children):
        last = place == len(node.children) - 1
        yield from _lines(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), width)


def _wrapped(line: str, margin: str, width: int) -> Iterator[str]:
    """A line broken between words; what is longer than a line stands by itself."""
    while len(line) > width:
        cut = line.rfind(" ", len(margin) + 1, width + 1)
        if cut < 0:
            cut = line.find(" ", width)
        if cut < 0:
            break
        yield line[:cut].rstrip()
        line = margin + line[cut + 1 :].lstrip()
    yield line


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
            yield Node("it lies too far before the beginning of what was kept", right="not opened")
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
        missing = kind_of(literal).missing if isinstance(literal, WindowAtom) else "nothing"
        return f"{missing} {span}"

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


def apart_text(micros: Time) -> str:
    """`1 min 17 s`: a distance in time, in two units at most."""
    for unit, below in (
        (86_400_000_000, 3_600_000_000),
        (3_600_000_000, 60_000_000),
        (60_000_000, 1_000_000),
    ):
        if micros >= unit:
            rest = micros % unit // below * below
            whole = duration_text(micros - micros % unit)
            return f"{whole} {duration_text(rest)}" if rest else whole
    return duration_text(micros)


def outside_text(conjunct: Conjunct, time: Time, previous: Mapping[str, Time]) -> str:
    """`outside of the window: 6 min 30 s before Smoke`."""
    text, window = "outside of the window", conjunct.window
    if not isinstance(window, Within) or window.reference not in previous:
        return text
    apart = previous[window.reference] - time
    if apart == 0:
        return f"{text}: with {window.reference}"
    return f"{text}: {apart_text(abs(apart))} {'before' if apart > 0 else 'after'} {window.reference}"


def false_text(parts: Sequence[str]) -> str:
    """`not true: Hot.?room = Smoke.?room`, or nothing."""
    return f"not true: {' && '.join(parts)}" if parts else ""


def window_text(conjunct: Conjunct) -> str:
    """`within 5 min from Smoke`."""
    match conjunct.window:
        case Within(duration=duration, reference=reference, before=before):
            return f"within {duration_text(duration)} {'before' if before else 'from'} {reference}"
        case Between(start=start, end=end):
            return f"between {start} and {end}"
        case _:
            assert_never(conjunct.window)


def counted_text(number: int, one: str) -> str:
    """`1 fact`, `1,200 facts`."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


LEVELS = 24
"""Derivations that are drawn below one another, unless more are requested."""
USUAL: Mapping[str, str] = {"xsd": XSD, "rdf": RDF, "rdfs": RDFS, "owl": OWL}
"""Prefixes that a program need not declare to see its schema in short."""
LATE = ", late"
"""What the place of a triple ends with that a graph states which came late."""

Places: TypeAlias = Callable[[Triple, Time | None], str]
"""(triple, its instant, None for the background) → where it stands, or ""."""


class Renderer:
    """Owns what has been printed of one explanation."""

    def __init__(
        self,
        prefixes: Mapping[str, str],
        clock: Clock,
        places: Places = lambda triple, time: "",
        background: str = "background",
        levels: int = LEVELS,
    ) -> None:
        self._background = background
        self._prefixes = prefixes
        self._writer = Writer({**USUAL, **prefixes})
        self._clock = clock
        self._places = places
        self._seen: set[object] = set()
        self._sharing = Sharing()
        self._level, self._levels = 0, levels
        self._names: dict[Term, str] = {}
        self._inverses: dict[Term, Term] = {}
        self._held = HeldRenderer(self._writer_prefixes(), clock, self._fact)

    def _writer_prefixes(self) -> dict[str, str]:
        return {**USUAL, **self._prefixes}

    def node(self, found: proofs.WhyNot | proofs.TripleProof | proofs.Missing) -> Node:
        """An explanation as a tree of lines."""
        match found:
            case (
                proofs.InStream()
                | proofs.InBackground()
                | proofs.Lasting()
                | proofs.Derived()
                | proofs.Unopened()
            ):
                return self.triple_node(found)
            case proofs.Missing(triple=triple, attempts=attempts):
                node = Node(f"{self._shown(triple)} does not hold")
                for attempt in attempts:
                    self._name(attempt.inverses)
                    self._name_values(attempt.rule)
                    rule = Node(self.rule_text(attempt.rule), right=str(attempt.rule.span or ""))
                    lacks = " ".join("a" if n == RDF_TYPE else self._writer.node(n) for n in attempt.lacks)
                    rule.children.append(Node(f"lacks {lacks or 'what a FILTER, a BIND or a NOT requires'}"))
                    node.children.append(rule)
                node.children += map(self._not_then, found.not_then)
                if not attempts and not found.not_then:
                    node.children.append(Node("it is not stated, and no rule could derive it"))
                node.children += map(self._gone, found.gone)
                return node
            case proofs.EventProof():
                return self.event_node(found)
            case proofs.NoTrigger():
                return self._no_trigger(found)
            case proofs.Blocked():
                return self._blocked(found)
            case proofs.Unmatched():
                return self._unmatched(found)
            case proofs.Corrected():
                return self._corrected(found)
            case _:
                assert_never(found)

    def _corrected(self, found: proofs.Corrected) -> Node:
        """What holds now, and what corrections did; of an event that was withdrawn its proof of before."""
        changes = [self._change(change) for change in found.changes]
        if found.now is None:
            node = self.event_node(found.event)
            return replace(node, children=[*node.children, *changes])
        event = found.event
        head = Node(f"{event.rule.name}  {event.id}  @ {self._clock.text(event.time)}", right="withdrawn")
        before = Node("it was reported because of", children=[])
        now = Node("with the late graphs", children=[self.node(found.now)])
        before.children.append(self.event_node(event))
        head.children = [*changes, now, before]
        return head

    def _change(self, change: proofs.EventChange) -> Node:
        done = "added" if change.change > 0 else "withdrawn"
        node = Node(
            f"{done} @ {self._clock.text(change.at)} by {counted_text(len(change.late), 'late graph')}"
        )
        node.children = [Node(f"@ {self._clock.text(time)}", right=place) for time, place in change.late]
        return node

    # -- events

    def event_node(self, proof: proofs.EventProof) -> Node:
        """An event with everything below it."""
        pairs = zip(proof.rule.variables, proof.values, strict=True)
        bound = " ; ".join(f"?{name} {self._value(value)}" for name, value in pairs)
        head = Node(f"{proof.rule.name}  {proof.id}  @ {self._clock.text(proof.time)}", right=bound)
        if proof.id in self._seen:
            head.right = "(above)"
            return head
        self._seen.add(proof.id)
        if isinstance(proof.rule.trigger, RowPattern):
            return self._sequence(head, proof, proof.rule.trigger)
        head.children.append(self._fact("trigger", proof.trigger, self._due(proof.rule, proof.trigger)))
        previous = _first_times(proof.rule, proof.trigger)
        for step in proof.steps:
            head.children.append(self._step(step, previous))
        if proof.rule.where is not None:
            head.children.append(Node(f"WHERE {self._writer.expression(proof.rule.where)}"))
        for binding, value in zip(proof.rule.bindings, proof.values, strict=True):
            text = self._writer.expression(binding.expression)
            head.children.append(Node(f"WITH ?{binding.variable} := {text} = {self._writer.term(value)}"))
        return head

    def _sequence(self, head: Node, proof: proofs.EventProof, pattern: RowPattern) -> Node:
        """A match of a sequence: its rows with their elements."""
        head.children += map(self._row, proof.rows)
        head.children.append(Node(proof.ended))
        for binding, value in zip(proof.rule.bindings, proof.values, strict=True):
            text = self._writer.expression(pattern.written(binding.expression))
            head.children.append(Node(f"WITH ?{binding.variable} := {text} = {self._value(value)}"))
        return head

    def _row(self, row: proofs.RowProof) -> Node:
        return self._fact(f"{row.element}:" if row.element else "skipped:", row.fact)

    def _value(self, value: Term | None) -> str:
        return "unbound" if value is None else self._writer.term(value)

    def _unmatched(self, found: proofs.Unmatched) -> Node:
        """The mapping that came furthest."""
        node = Node(f"{found.rule.name} has no match @ {self._clock.text(found.time)}")
        node.children += map(self._row, found.rows)
        if not found.rows and found.row is None:
            node.children.append(Node("there is no row from which one could begin"))
        until = "" if found.until is None else self._clock.text(found.until)
        if found.row is not None:
            ended = self._fact(f"no {found.waits}:", found.row)
            ended.children += [Node(part) for part in found.untrue]
            node.children.append(ended)
        elif found.open and found.waits:
            node.children.append(Node(f"it waits for {found.waits} until {until}"))
        elif found.open:
            node.children.append(Node(f"it is complete, and may still go on until {until}"))
        elif found.waits:
            node.children.append(Node(f"no {found.waits} came until {until}"))
        return node

    def _due(self, rule: program.Rule, trigger: proofs.FactProof) -> str:
        """`Due 10 min later, @ …`; empty where the trigger is no AFTER."""
        if not rule.delay:
            return ""
        when = self._clock.text(trigger.fact[0] + rule.delay)
        return f"{rule.trigger.name} {duration_text(rule.delay)} later, @ {when}"

    def _fact(self, how: str, proof: proofs.FactProof, right: str = "") -> Node:
        fact = proof.fact
        node = Node(f"{how} {self._plain(proof.position, proof.variables, fact)}".lstrip())
        node.right = right
        match proof.why:
            case None:
                pass
            case proofs.EventProof():
                node.children.append(self.event_node(proof.why))
            case proofs.EventLeaf() as leaf:
                node.children.append(self._named_event("", leaf))
            case proofs.SolutionProof():
                node.children += self._solution(proof.why)
            case proofs.Changed():
                node.children += self._changed(proof.why, fact[0])
            case Holding():
                node.children += self._held.holding(proof.why)
            case _:
                assert_never(proof.why)
        return node

    def _changed(self, why: proofs.Changed, time: Time) -> Iterator[Node]:
        begins = why.operator is program.RelationToStream.ISTREAM
        turn = Node(f"{why.operator}: the answer {'begins' if begins else 'ends'} @ {self._clock.text(time)}")
        if why.before is not None and why.after is not None:
            turn.right = f"{counted_text(why.before, 'such answer')} before, {why.after} from then on"
        turn.children += self._solution(why.solution)
        if why.rules:
            turn.children.append(Node("other rules hold from then on"))
        for proof in why.moved:
            turn.children.append(self._stated(f"{'ended' if begins else 'begun'} then: ", proof))
        yield turn

    def _stated(self, how: str, proof: proofs.Lasting | proofs.InBackground) -> Node:
        """A statement with its period, and the events that stated and ended it."""
        right = self.lasting(proof) if isinstance(proof, proofs.Lasting) else self._deleted(proof)
        return Node(f"{how}{self._shown(proof.triple)}", list(self._events(proof)), right)

    def _gone(self, proof: proofs.Lasting | proofs.InBackground) -> Node:
        return self._stated("was stated: ", proof)

    def _events(self, proof: proofs.Lasting | proofs.InBackground) -> Iterator[Node]:
        """The events that stated and ended a statement, each with everything below it."""
        if isinstance(proof, proofs.Lasting) and proof.stated_by is not None:
            yield self._event("stated by ", proof.stated_by)
        if proof.ended_by is not None:
            replaced = isinstance(proof, proofs.Lasting) and proof.ending is proofs.Ending.REPLACED
            yield self._event("replaced by " if replaced else "deleted by ", proof.ended_by)

    def _event(self, how: str, event: proofs.EventProof | proofs.EventLeaf) -> Node:
        if isinstance(event, proofs.EventProof):
            node = self.event_node(event)
            return replace(node, text=how + node.text)
        return self._named_event(how, event)

    def _named_event(self, how: str, event: proofs.EventLeaf) -> Node:
        """An event that is not opened."""
        right = f"dotr explain … --event {event.id}" if event.kept else "not kept"
        return Node(f"{how}{event.rule}  {event.id}  @ {self._clock.text(event.time)}", right=right)

    def _deleted(self, proof: proofs.InBackground) -> str:
        """Where a triple of the background stands, and until when it holds, where that is known."""
        place = f"background  {self._places(proof.triple, None)}".rstrip()
        return place if proof.until is None else f"{place}   until {self._clock.text(proof.until)}: deleted"

    def lasting(self, proof: proofs.Lasting) -> str:
        """Since when a statement holds, until when, and why: `moves.jsonl:2   held since 60 until 660`."""
        period = period_text(proof, self._clock)
        if proof.place == proofs.OF_BACKGROUND:
            where = f"{self._background}  {self._places(proof.triple, None)}".rstrip()
            return f"{where}   {period.removeprefix('inserted ')}"
        return "   ".join(filter(None, (proof.place, period)))

    def _solution(self, why: proofs.SolutionProof) -> Iterator[Node]:
        if why.opaque:
            yield Node(f"answer of an interpreted query ({why.opaque})")
        for premise in why.premises:
            yield self.triple_node(premise)
        for absent in why.absent:
            yield Node(absent)
        for number, other in enumerate(why.others, 2):
            node = Node(f"also, solution {number} of {len(why.others) + 1}:")
            node.children += self._solution(other)
            yield node
        if why.rows:
            shown = f", the first {min(why.rows, 10)} above" if why.rows > 10 else ""
            yield Node(f"aggregate of {counted_text(why.rows, 'row')}{shown}")

    def _step(self, step: proofs.ConjunctProof, previous: dict[str, Time]) -> Node:
        match step:
            case proofs.Chosen(conjunct=conjunct, fact=fact, inside=inside, passing=passing):
                how = conjunct.word
                if isinstance(conjunct, program.Choose) and conjunct.per:
                    return self._fact(how, fact, f"the last of its group{conjunct.suffix}; one of {passing}")
                note = self._distance(conjunct, fact.fact[0], previous)
                which = proofs.TOO_LONG if inside is None else self._which(conjunct, inside, passing)
                previous[fact.position] = fact.fact[0]
                return self._fact(how, fact, f"{note}; {which}" if which else note)
            case proofs.NothingThere(conjunct=conjunct, inside=inside, nearest=nearest, failed=failed):
                name = conjunct.position.name
                text = f"{conjunct.word} {name} {window_text(conjunct)}"
                if inside is None:
                    return Node(text, right=proofs.TOO_LONG)
                if not inside:
                    return Node(text, right=f"no {name} in the window")
                node = Node(text, right=f"{counted_text(inside, 'fact')} in the window, none passes ON")
                if nearest is not None:
                    node.children.append(
                        Node(f"nearest: {self._candidate(conjunct, nearest)}", right=false_text(failed))
                    )
                return node
            case proofs.Counted(conjunct=conjunct, value=value, facts=facts, inside=inside):
                assert isinstance(conjunct, program.Summarise)
                shown = "no value" if value is None else self._writer.term(value)
                argument = "*" if conjunct.argument is None else self._writer.expression(conjunct.argument)
                of = written(conjunct.function, argument)
                text = f"{of} AS ?{conjunct.variable} {conjunct.over} {conjunct.position.name}"
                if inside is None:
                    return Node(f"{text} {window_text(conjunct)}", right=proofs.TOO_LONG)
                node = Node(
                    f"{text} {window_text(conjunct)} = {shown}",
                    right=f"{len(facts)} of {counted_text(inside, 'fact')}",
                )
                for counted in facts[:10]:
                    node.children.append(Node(self._candidate(conjunct, counted)))
                if len(facts) > 10:
                    node.children.append(Node(f"… and {len(facts) - 10} more"))
                return node
            case _:
                assert_never(step)

    def _plain(self, position: str, variables: Sequence[str], fact: Fact) -> str:
        """A fact in one line."""
        terms = ["unbound" if term is None else self._writer.term(term) for term in fact[1]]
        values = [f"   ?{name} {term}" for name, term in zip(variables, terms, strict=True)]
        return f"{position}  @ {self._clock.text(fact[0])}" + "".join(values)

    def _candidate(self, conjunct: program.Conjunct, fact: Fact) -> str:
        return self._plain(conjunct.position.name, conjunct.position.variables, fact)

    def _distance(self, conjunct: program.Conjunct, time: Time, previous: dict[str, Time]) -> str:
        match conjunct.window:
            case program.Within(duration=duration, reference=reference, before=before):
                apart = previous[reference] - time
                word = "before" if before else "from"
                when = f"{apart_text(apart)} before {reference}" if apart else f"with {reference}"
                return f"{when} (within {duration_text(duration)} {word})"
            case program.Between(start=start, end=end):
                return f"between {start} and {end}"
            case _:
                assert_never(conjunct.window)

    def _which(self, conjunct: program.Conjunct, inside: int, passing: int) -> str:
        if not isinstance(conjunct, program.Choose) or conjunct.selection is program.Selection.EACH:
            return f"one of {passing}" if passing > 1 else ""
        word = "latest" if conjunct.selection is program.Selection.LAST else "earliest"
        return f"the {word} of {passing}" if passing > 1 else "the only one"

    # -- triples

    def triple_node(self, proof: proofs.TripleProof) -> Node:
        """A triple with everything below it."""
        node = Node(self._shown(proof.triple))
        number = self._sharing.number(proof)
        if number in self._seen:
            node.right = "(above)"
            return node
        self._seen.add(number)
        match proof:
            case proofs.InStream(triple=triple, time=time):
                node.right = self._places(triple, time) or f"stream @ {self._clock.text(time)}"
            case proofs.InBackground(triple=triple, until=until):
                node.right = f"{self._background}  {self._places(triple, None)}".rstrip()
                if until is not None:
                    node.right += f"   until {self._clock.text(until)}: deleted"
                node.children += self._events(proof)
            case proofs.Lasting():
                node.right = self.lasting(proof)
                node.children += self._events(proof)
            case proofs.Derived() if self._level >= self._levels:
                node.right = f"… {counted_text(self._sharing.size(proof) - 1, 'step')} below, not shown"
            case proofs.Derived(rule=rule, premises=premises, absent=absent, totals=totals):
                self._name(proof.inverses)
                self._name_values(rule)
                self._level += 1
                node.right = f"{rule_place(proof)}   {self.rule_text(rule)}"
                node.children += self._premises(premises)
                for pattern in absent:
                    terms = ["?" if term is None else self._writer.term(term) for term in pattern]
                    text = " ".join([terms[0], "a" if pattern[1] == RDF_TYPE else terms[1], terms[2]])
                    node.children.append(Node(f"NOT {text}", right="no such triple"))
                node.children += map(self._totalled, totals)
                self._level -= 1
            case proofs.Unopened(reason=reason):
                node.right = reason
            case _:
                assert_never(proof)
        return node

    def _premises(self, premises: Sequence[proofs.TripleProof]) -> Iterator[Node]:
        """Premises; the cells of an axiom's list are written as a list, not one by one."""
        cells = {(p.triple[0], p.triple[1]): p.triple[2] for p in premises if p.triple[1] in LIST_PREDICATES}
        for premise in premises:
            subject, predicate, object_ = premise.triple
            if predicate in LIST_PREDICATES:
                continue
            node = self.triple_node(premise)
            if (object_, LIST_PREDICATES[0]) in cells:
                members = " ".join(self._members(object_, cells))
                node.text = f"{self._writer.term(subject)} {self._writer.term(predicate)} ({members})"
            yield node

    def _members(self, cell: Term, cells: Mapping[tuple[Term, Term], Term]) -> Iterator[str]:
        first, rest = LIST_PREDICATES
        while (cell, first) in cells:
            yield self._writer.term(cells[cell, first])
            cell = cells[cell, rest]

    def _totalled(self, proof: proofs.Totalled) -> Node:
        """What an AGGREGATE counted: of one atom its triples, of several a line for each solution."""
        node = Node(f"AGGREGATE of {counted_text(proof.rows, 'solution')}")
        for number, row in enumerate(proof.shown, 1):
            triples = [self.triple_node(premise) for premise in row]
            node.children += triples if len(row) == 1 else [Node(f"solution {number}", triples)]
        if proof.rows > len(proof.shown):
            node.children.append(Node(f"… and {proof.rows - len(proof.shown)} more"))
        return node

    def rule_text(self, rule: program.DatalogRule) -> str:
        """A rule in one line, with the program's prefixes."""
        return datalog_rule_text(rule, self._writer_prefixes(), self._names)

    def _name(self, inverses: proofs.Inverses) -> None:
        """From now on, show anonymous properties as what they are the inverses of."""
        if dict(inverses).keys() <= self._names.keys():
            return
        for one, other in reversed(inverses):  # an inverse of an inverse is before its inner one
            self._names[one] = f"[ owl:inverseOf {self._writer.term(other)} ]"
            self._writer = Writer(self._writer_prefixes(), self._names)
        self._inverses.update(inverses)

    def _name_values(self, rule: program.DatalogRule) -> None:
        """From now on, show what is beside a property as its values."""
        for atom in (*rule.heads, *rule.body):
            if isinstance(atom, program.Atom) and isinstance(atom.predicate, str):
                of = atom.predicate.removeprefix(VALUE_OF)
                if of != atom.predicate and atom.predicate not in self._names:
                    self._names[atom.predicate] = f"[ value of {self._writer.term(of)} ]"
                    self._writer = Writer(self._writer_prefixes(), self._names)

    def _shown(self, triple: Triple) -> str:
        subject, predicate, object_ = map(self._writer.term, triple)
        if triple[1] == INVERSE_OF and self._inverses.get(triple[0]) == triple[2]:
            return subject  # the whole axiom, as Turtle writes it
        return f"{subject} {'a' if triple[1] == RDF_TYPE else predicate} {object_}"

    # -- why not

    def _no_trigger(self, found: proofs.NoTrigger) -> Node:
        when = self._clock.text(found.time)
        rule = found.rule
        then = f"{duration_text(rule.delay)} before" if rule.delay else "then"
        node = Node(f"{rule.name} did not fire @ {when}: no {rule.triggering.name} {then}")
        if found.ahead is not None:
            until = self._clock.text(found.ahead)
            node.text = f"{rule.name} did not fire @ {when}: time is closed up to {until} only"
            return node
        if not found.seen:
            node.children.append(Node(f"no graph came @ {self._clock.text(found.time - rule.delay)}"))
        for graph in found.left_out:
            node.children.append(Node("one came too late, or was refused", right=graph))
        if found.held_before:
            trigger = rule.triggering
            begins = isinstance(trigger, program.Position) and trigger.stream.startswith("ISTREAM ")
            also = ", as it did at the point before" if begins else ""
            node.children.append(Node(f"it holds then{also}"))
        node.children += self._held.failures(found.not_held)
        node.children += [self.node(one) for one in found.no_match]
        if found.untrue == (proofs.TOO_LONG,):
            node.children.append(Node(proofs.TOO_LONG))
        if found.operator is not None:
            node.children.append(Node(f"{found.operator}: no answer over what lasts changes then"))
        node.children += self._looked_for(found)
        return node

    def _looked_for(self, found: proofs.NoTrigger) -> Iterator[Node]:
        """The patterns of a query without an answer, and what fails."""
        for place, pattern in enumerate(found.looked_for):
            mark = "found" if place < found.found else "not found" if place == found.found else ""
            node = Node(pattern, right=mark)
            if place == found.found:
                node.right += f"   {found.bound}" if found.bound else ""
                node.children += [Node(f"nearest: {self._shown(t)}") for t in found.near]
                node.children += map(self._not_then, found.not_then)
                node.children += map(self._gone, found.gone)
            yield node
        if found.looked_for and found.found == len(found.looked_for) and found.operator is None:
            yield from (Node(f"✗ {condition}") for condition in found.untrue)
            if not found.untrue:
                yield Node("✗ the rest of the query leaves no solution")

    def _not_then(self, one: proofs.NotThen) -> Node:
        """From when until when a triple is held, or why it never is."""
        text = self._shown(one.triple)
        if one.reason:
            value = f" ({self._writer.term(one.value)})" if one.value else ""
            return Node(f"{text} is not held: {one.reason}{value}", right=one.place)
        since = "before what was kept" if one.start is None else self._clock.text(one.start)
        until = "" if one.end is None else f" until {self._clock.text(one.end)}"
        return Node(f"{text} is held from {since}{until}", right=one.place)

    def _blocked(self, found: proofs.Blocked) -> Node:
        when = self._clock.text(found.trigger.fact[0] + found.rule.delay)
        node = Node(f"{found.rule.name} did not fire @ {when}")
        node.children.append(self._fact("trigger", found.trigger, self._due(found.rule, found.trigger)))
        previous = _first_times(found.rule, found.trigger)
        node.children += [self._step(step, previous) for step in found.steps]
        if found.failed is None:
            node.children.append(Node(f"✗ {found.reason}"))
            return node
        conjunct = found.failed
        text = f"✗ {conjunct.word} {conjunct.position.name} {window_text(conjunct)}"
        if conjunct.on is not None:
            text += f" ON {self._writer.expression(conjunct.on)}"
        failed = Node(text)
        if found.inside is None:
            failed.right = found.reason
            node.children.append(failed)
            return node
        if found.blocker is not None:
            failed.children.append(self._fact("blocked by", found.blocker))
        elif found.consumed_by and found.nearest is not None:
            at = "" if found.consumed_at is None else f"  @ {self._clock.text(found.consumed_at)}"
            by = f"consumed by {found.consumed_by}{at}"
            failed.children.append(Node(self._candidate(conjunct, found.nearest), right=by))
        elif found.nearest is None:
            nowhere = Node(f"there is no {conjunct.position.name} in what was kept")
            if found.nowhere is not None:
                nowhere.text += f"; nearest @ {self._clock.text(found.nowhere.time)}"
                nowhere.children += self._looked_for(found.nowhere)
            failed.children.append(nowhere)
        else:
            inside = (
                "no fact in the window"
                if found.outside
                else f"{counted_text(found.inside, 'fact')} in the window"
            )
            failed.children.append(Node(inside))
            why = false_text(found.missing)
            if found.outside:
                outside = outside_text(conjunct, found.nearest[0], previous)
                why = "; ".join(filter(None, (outside, why)))
            failed.children.append(Node(f"nearest: {self._candidate(conjunct, found.nearest)}", right=why))
        node.children.append(failed)
        return node


def _first_times(rule: program.Rule, trigger: proofs.FactProof) -> dict[str, Time]:
    """Name → time, of the trigger and of the tick of an AFTER."""
    found = {trigger.position: trigger.fact[0]}
    return {**found, rule.trigger.name: trigger.fact[0] + rule.delay} if rule.delay else found


def rule_place(proof: proofs.Derived) -> str:
    """The place of its rule, or the name that its rule has in OWL's profile."""
    if proof.name:
        return f"OWL 2 RL {proof.name}"
    return str(proof.rule.span).rsplit(":", 1)[0] if proof.rule.span is not None else "rule"


def period_text(proof: proofs.Lasting, clock: Clock) -> str:
    """`held since 60 until another value, at most until 660`."""
    since = "before what was kept" if proof.start is None else clock.text(proof.start)
    text = f"{'inserted' if proof.inserted else 'held'} since {since}"
    until = "" if proof.until is None else f" until {clock.text(proof.until)}"
    match proof.ending:
        case proofs.Ending.TIME:
            return text + until
        case proofs.Ending.REPLACED | proofs.Ending.DELETED:
            return f"{text}{until}: {proof.ending.value}"
        case proofs.Ending.NEXT_VALUE:
            return f"{text} {proof.ending.value}" + (f", at most{until}" if until else "")
        case proofs.Ending.OPEN:
            return f"{text} {proof.ending.value}"
        case _:
            assert_never(proof.ending)

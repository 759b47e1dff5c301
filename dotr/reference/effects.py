"""What events state and end, literally: the clauses INSERT and DELETE of each event's rule, term by term.

Place:   the measure of emit/effects.py and lasting/effects.py; reference/lasting.py puts these effects into
         its list of statements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from dotr.events import Clock, Match, Time
from dotr.program import (
    AnyTerm,
    Fresh,
    PatternNode,
    PatternTriple,
    Program,
    Rule,
    TemplateTriple,
    TemplateVar,
)
from dotr.program.names import match_id
from dotr.rdf.terms import Term, Triple, is_blank, is_iri, is_literal


class LiteralEffect(Struct, frozen=True):
    """What one event states, and the triples of its DELETE with the terms that it knows; the others are
    AnyTerm.
    """

    rule: str
    stated: tuple[Triple, ...]
    deleted: tuple[tuple[Term | AnyTerm, Term | AnyTerm, Term | AnyTerm], ...]

    def ends(self, triple: Triple) -> bool:
        """Whether it ends a statement of this triple."""
        return any(_matches(pattern, triple) for pattern in self.deleted)


def _matches(pattern: Sequence[Term | AnyTerm], triple: Triple) -> bool:
    known: dict[Term | AnyTerm, Term] = {}
    for node, term in zip(pattern, triple, strict=True):
        wanted = known.setdefault(node, term) if isinstance(node, AnyTerm) else node
        if wanted != term:
            return False
    return True


def next_moment(time: Time, clock: Clock) -> Time:
    """t⁺."""
    if clock.integer:
        return (time // clock.unit + 1) * clock.unit
    return time + 1


def effects_of(program: Program, matches: Collection[Match]) -> list[LiteralEffect]:
    """Those of the events of one instant, in output order."""
    rules = program.rules
    found = [_effect(rules[match.rule], match) for match in matches]
    return [effect for effect in found if effect is not None]


def _effect(rule: Rule, match: Match) -> LiteralEffect | None:
    if not rule.inserts and not rule.deletes:
        return None
    return effect_of(rule, match_id(rule, match), match.bindings)


def effect_of(rule: Rule, event: str, bindings: Sequence[Term]) -> LiteralEffect:
    """That of one event, with its id and its values of WITH."""
    own = _Event(event, bindings)
    stated = [triple for nodes in _all(rule, own, rule.inserts) if (triple := _triple(*nodes)) is not None]
    return LiteralEffect(rule.name, tuple(stated), tuple(_all(rule, own, rule.deletes)))


class _Event(NamedTuple):
    id: str
    bindings: Sequence[Term]


def _triple(subject: Term | AnyTerm, predicate: Term | AnyTerm, object_: Term | AnyTerm) -> Triple | None:
    assert isinstance(subject, str)
    assert isinstance(predicate, str)
    assert isinstance(object_, str)
    if is_literal(subject) or is_blank(subject) or is_blank(object_) or not is_iri(predicate):
        return None
    return subject, predicate, object_


def _all(
    rule: Rule, event: _Event, triples: Iterable[TemplateTriple | PatternTriple]
) -> Iterator[tuple[Term | AnyTerm, Term | AnyTerm, Term | AnyTerm]]:
    """Each triple, for each member of its list if it has one."""
    for triple in triples:
        for subject in _terms(rule, event, triple.subject):
            for predicate in _terms(rule, event, triple.predicate):
                for object_ in _terms(rule, event, triple.object):
                    yield subject, predicate, object_


def _terms(rule: Rule, event: _Event, node: PatternNode) -> Sequence[Term | AnyTerm]:
    match node:
        case AnyTerm():
            return [node]
        case Fresh(name):
            first = next(n.name for n in _nodes(rule) if isinstance(n, Fresh))
            return [f"<{event.id}>" if name == first else f"<{event.id}-{name.removeprefix('dotr_')}>"]
        case TemplateVar(name):
            value = event.bindings[rule.variables.index(name)]
            if name not in rule.lists:
                return [value]
            return [member for member in value[1:-1].split("\x1f") if member]
        case _:
            return [node]


def _nodes(rule: Rule) -> Iterator[PatternNode]:
    """Subjects and objects of all its clauses, as written."""
    for made in (*rule.template, *rule.inserts):
        yield from (made.subject, made.object)
    for ended in rule.deletes:
        yield from (ended.subject, ended.object)

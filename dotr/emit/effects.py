"""What events state and end: the triples of INSERT and the patterns of DELETE, filled in.

Place:   called by core/pipeline.py for the events of an instant, those of PRIVATE rules too.
Method:  language.md, "Rules that write what lasts". INSERT is a template as DEFINE is, with the same fresh
         names; in DELETE a variable that WITH does not bind is any term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, product
from typing import Final, TypeAlias

from dotr.emit.templates import fresh_names
from dotr.events import Effect, Fact, Pattern, RawMatch, Time, in_order
from dotr.program import AnyTerm, Fresh, PatternTriple, Program, Rule, TemplateTriple, TemplateVar
from dotr.program.names import match_hash
from dotr.program.rules import PatternNode
from dotr.rdf.terms import Term, Triple, is_iri, members

_Placed: TypeAlias = tuple[Term | int, Term | int, Term | int]
"""A triple: constants, and places among (the id, values of WITH, further fresh names, any terms)."""

_ANY: Final = (0, 1, 2)


class EffectTemplate:
    """What one rule's events state and end."""

    def __init__(self, rule: Rule) -> None:
        self._rule, self._prefix = rule.name, f"urn:dotr:{rule.name}:"
        triples: list[TemplateTriple | PatternTriple] = [*rule.inserts, *rule.deletes]
        self._named = any(isinstance(node, Fresh) for triple in triples for node in _nodes(triple))
        fresh = fresh_names(rule) if self._named else {}
        self._suffixes = [suffix for suffix in fresh.values() if suffix]
        further = 1 + len(rule.variables)
        self._any = further + len(self._suffixes)
        self._places: dict[TemplateVar | Fresh, int] = {
            **{TemplateVar(name): place for place, name in enumerate(rule.variables, 1)},
            **{Fresh(name): 0 for name in fresh},
            **{Fresh(name): further + self._suffixes.index(one) for name, one in fresh.items() if one},
        }
        self._inserts = [self._placed(triple) for triple in rule.inserts]
        self._deletes = [self._placed(triple) for triple in rule.deletes]
        self._lists = bool(rule.lists)

    def id(self, time: Time, facts: tuple[Fact, ...]) -> str:
        """The id of an event."""
        return self._prefix + match_hash(time, facts)

    def effect(self, time: Time, facts: tuple[Fact, ...], bindings: tuple[Term, ...]) -> Effect:
        """The effect of an event. O(its triples); its name is made where it is used."""
        if self._named:
            name: str | Callable[[], str] = self.id(time, facts)
            values: tuple[Term | int, ...] = (
                f"<{name}>",
                *bindings,
                *[f"<{name}{suffix}>" for suffix in self._suffixes],
                *_ANY,
            )
        else:
            name, values = partial(self.id, time, facts), ("", *bindings, *_ANY)
        insert: dict[Triple, None] = {}
        lost = 0
        for subject, predicate, object_ in self._filled(self._inserts, values):
            assert isinstance(subject, str)
            assert isinstance(predicate, str)
            assert isinstance(object_, str)
            if subject[0] not in '"_' and object_[0] != "_" and is_iri(predicate):
                insert[subject, predicate, object_] = None
            else:
                lost += 1
        delete = tuple(dict.fromkeys(self._filled(self._deletes, values))) if self._deletes else ()
        return Effect(self._rule, name, tuple(insert), delete, lost)

    def _placed(self, triple: TemplateTriple | PatternTriple) -> _Placed:
        any_terms: dict[str, int] = {}
        found: list[Term | int] = []
        for node in _nodes(triple):
            if isinstance(node, AnyTerm):
                found.append(self._any + any_terms.setdefault(node.name, len(any_terms)))
            else:
                found.append(node if isinstance(node, str) else self._places[node])
        subject, predicate, object_ = found
        return subject, predicate, object_

    def _filled(self, triples: Sequence[_Placed], values: Sequence[Term | int]) -> Iterable[Pattern]:
        filled = [
            (
                s if isinstance(s, str) else values[s],
                p if isinstance(p, str) else values[p],
                o if isinstance(o, str) else values[o],
            )
            for s, p, o in triples
        ]
        return chain.from_iterable(map(_members, filled)) if self._lists else filled


def _nodes(triple: TemplateTriple | PatternTriple) -> tuple[PatternNode, ...]:
    return triple.subject, triple.predicate, triple.object


def _members(pattern: Pattern) -> Iterator[Pattern]:
    """A pattern, or one for each member of a list in it."""
    subjects, predicates, objects = [members(n) if isinstance(n, str) else [n] for n in pattern]
    return product(subjects, predicates, objects)


class Effects:
    """The effects of a program's events."""

    def __init__(self, program: Program) -> None:
        self._templates = {
            number: EffectTemplate(rule) for number, rule in enumerate(program.rules) if rule.has_effects
        }

    def of(self, matches: Sequence[RawMatch]) -> list[Effect]:
        """Those of the events of one instant, in output order."""
        templates = self._templates
        found: list[Effect] = []
        if len(matches) == 1 and templates.keys().isdisjoint(matches[0][0]):
            return found
        for rule, (_, time, facts, values) in in_order(matches):
            template = templates.get(rule)
            if template is not None:
                found.append(template.effect(time, facts, values))
        return found

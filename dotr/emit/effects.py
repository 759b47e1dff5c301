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

from dotr.codegen import CodeSource
from dotr.emit.templates import fresh_names
from dotr.events import Effect, Fact, Pattern, RawMatch, Time, in_order
from dotr.program import AnyTerm, Fresh, PatternTriple, Program, Rule, TemplateTriple, TemplateVar
from dotr.program.names import match_hash
from dotr.program.rules import PatternNode
from dotr.rdf.terms import Term, Triple, is_iri, members

_Placed: TypeAlias = tuple[int, int, int]
"""A triple: places among (the id, values of WITH, further fresh names, any terms, constants)."""

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
        self._fixed: dict[Term, int] = {}  # constants, by their places
        self._inserts = [self._placed(triple) for triple in rule.inserts]
        self._deletes = [self._placed(triple) for triple in rule.deletes]
        self._lists = bool(rule.lists)
        predicates = [triple.predicate for triple in rule.inserts]
        self._right = all(isinstance(predicate, str) and is_iri(predicate) for predicate in predicates)
        self._rest: tuple[Term | int, ...] = (*_ANY, *self._fixed)
        written = self._right and not (self._named or self._lists)
        self.effect: Callable[[Time, tuple[Fact, ...], tuple[Term, ...]], Effect]
        """The effect of an event. O(its triples); its name is made where it is used."""
        self.effect = self._written() if written else self._effect

    def id(self, time: Time, facts: tuple[Fact, ...]) -> str:
        """The id of an event."""
        return self._prefix + match_hash(time, facts)

    def _written(self) -> Callable[[Time, tuple[Fact, ...], tuple[Term, ...]], Effect]:
        """`_effect` as generated code, for what has no fresh names and no lists."""
        source = CodeSource()
        fixed = {self._constant(term): term for term in self._fixed}

        def text(place: int) -> str:
            if place >= self._any:
                return source.name("fixed", (*_ANY, *self._fixed)[place - self._any])
            return f"values[{place - 1}]"

        def triples(placed: Sequence[_Placed]) -> str:
            found = "".join(f"({', '.join(map(text, triple))}), " for triple in placed)
            return (
                f"tuple({source.name('once', dict.fromkeys)}(({found})))" if len(placed) > 1 else f"({found})"
            )

        tests = [f"{text(s)}[0] in '\"_'" for s, _, _ in self._inserts if s not in fixed]
        tests += [f"{text(o)}[0] == '_'" for _, _, o in self._inserts if o not in fixed]
        if any(fixed.get(s, "<")[0] in '"_' or fixed.get(o, "<")[0] == "_" for s, _, o in self._inserts):
            return self._effect
        if tests:
            source.line(f"if {' or '.join(dict.fromkeys(tests))}:")
            source.line(f"    return {source.name('slow', self._effect)}(time, facts, values)")
        name = f"{source.name('partial', partial)}({source.name('id', self.id)}, time, facts)"
        source.line(
            f"return {source.name('effect', Effect)}({source.name('rule', self._rule)}, {name}, "
            f"{triples(self._inserts)}, {triples(self._deletes)})"
        )
        return source.function("time, facts, values")

    def _effect(self, time: Time, facts: tuple[Fact, ...], bindings: tuple[Term, ...]) -> Effect:
        if self._named:
            name: str | Callable[[], str] = self.id(time, facts)
            values: tuple[Term | int, ...] = (
                f"<{name}>",
                *bindings,
                *[f"<{name}{suffix}>" for suffix in self._suffixes],
                *self._rest,
            )
        else:
            name, values = partial(self.id, time, facts), ("", *bindings, *self._rest)
        insert: list[Triple] = []
        given: Iterable[Triple] = self._filled(self._inserts, values)  # type: ignore[assignment]  # no any terms
        lost = 0
        for triple in given:
            subject, predicate, object_ = triple
            if subject[0] not in '"_' and object_[0] != "_" and (self._right or is_iri(predicate)):
                insert.append(triple)
            else:
                lost += 1
        if len(insert) > 1:
            insert = list(dict.fromkeys(insert))
        delete = tuple(dict.fromkeys(self._filled(self._deletes, values))) if self._deletes else ()
        return Effect(self._rule, name, tuple(insert), delete, lost)

    def _placed(self, triple: TemplateTriple | PatternTriple) -> _Placed:
        any_terms: dict[str, int] = {}
        found: list[int] = []
        for node in _nodes(triple):
            if isinstance(node, AnyTerm):
                found.append(self._any + any_terms.setdefault(node.name, len(any_terms)))
            else:
                found.append(self._constant(node) if isinstance(node, str) else self._places[node])
        subject, predicate, object_ = found
        return subject, predicate, object_

    def _constant(self, term: Term) -> int:
        return self._any + len(_ANY) + self._fixed.setdefault(term, len(self._fixed))

    def _filled(self, triples: Sequence[_Placed], values: Sequence[Term | int]) -> Iterable[Pattern]:
        filled = [(values[s], values[p], values[o]) for s, p, o in triples]
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

    def of(self, matches: Sequence[RawMatch]) -> tuple[Effect, ...]:
        """Those of the events of one instant, in output order."""
        templates = self._templates
        if len(matches) == 1 and len(matches[0][0]) == 1:  # the common case
            ((rule,), time, facts, values) = matches[0]
            one = templates.get(rule)
            return () if one is None else (one.effect(time, facts, values),)
        found: list[Effect] = []
        for rule, (_, time, facts, values) in in_order(matches):
            template = templates.get(rule)
            if template is not None:
                found.append(template.effect(time, facts, values))
        return tuple(found)

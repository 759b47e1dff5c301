"""What events state and end: the triples of INSERT and the patterns of DELETE, filled in.

Place:   called by core/pipeline.py for the events of an instant, those of PRIVATE rules too.
Method:  language.md, "Rules that write what lasts". INSERT is a template as DEFINE is, with the same fresh
         names; in DELETE a variable that WITH does not bind is any term.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from dotr.emit.templates import fresh_names
from dotr.events import Effect, Pattern, RawMatch, in_order
from dotr.program import AnyTerm, Fresh, PatternTriple, Program, Rule, TemplateTriple, TemplateVar
from dotr.program.names import match_hash
from dotr.rdf.terms import Term, Triple, is_blank, is_iri, is_literal, members


class EffectTemplate:
    """What one rule's events state and end."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule.name
        self.prefix = f"urn:dotr:{rule.name}:"
        self._fresh = fresh_names(rule)
        self._places = {name: place for place, name in enumerate(rule.variables)}
        self._inserts, self._deletes = rule.inserts, rule.deletes

    def effect(self, id_: str, bindings: tuple[Term, ...]) -> Effect:
        """The effect of an event. O(its triples)."""
        insert: dict[Triple, None] = {}
        lost = 0
        for triple in self._filled(self._inserts, id_, bindings):
            subject, predicate, object_ = triple
            assert isinstance(subject, str)
            assert isinstance(predicate, str)
            assert isinstance(object_, str)
            if not is_literal(subject) and is_iri(predicate) and not (is_blank(subject) or is_blank(object_)):
                insert[subject, predicate, object_] = None
            else:
                lost += 1
        delete = dict.fromkeys(self._filled(self._deletes, id_, bindings))
        return Effect(self.rule, id_, tuple(insert), tuple(delete), lost)

    def _filled(
        self, triples: Sequence[TemplateTriple | PatternTriple], id_: str, bindings: tuple[Term, ...]
    ) -> Iterator[Pattern]:
        for triple in triples:
            any_terms: dict[str, int] = {}
            found: list[Iterable[Term | int]] = []
            for node in (triple.subject, triple.predicate, triple.object):
                if isinstance(node, TemplateVar):
                    found.append(members(bindings[self._places[node.name]]))
                elif isinstance(node, Fresh):
                    found.append((f"<{id_}{self._fresh[node.name]}>",))
                elif isinstance(node, AnyTerm):
                    found.append((any_terms.setdefault(node.name, len(any_terms)),))
                else:
                    found.append((node,))
            subjects, predicates, objects = found
            yield from product(subjects, predicates, objects)


class Effects:
    """The effects of a program's events."""

    def __init__(self, program: Program) -> None:
        self._templates = {
            number: EffectTemplate(rule) for number, rule in enumerate(program.rules) if rule.has_effects
        }

    def of(self, matches: Sequence[RawMatch]) -> list[Effect]:
        """Those of the events of one instant, in output order."""
        templates, found = self._templates, []
        for rule, (_, time, facts, values) in in_order(matches):
            template = templates.get(rule)
            if template is not None:
                found.append(template.effect(template.prefix + match_hash(time, facts), values))
        return found

"""Step 4: emit. A match becomes the composite event that leaves: its id, its bindings, its graph.

Place:   called by pipeline.py after detect.
Method:  paper, sec. 4, "output translation"; fresh names are content hashes (language.md, sec. 3), so that
         replay, restart and Spark agree, where the paper draws them at random.
"""

from __future__ import annotations

from collections.abc import Callable

from dotr.events import Composite, Match
from dotr.ir import Every, Fresh, Program, Rule, TemplateNode, TemplateVar
from dotr.rdf.terms import Term, Triple
from dotr.tesla.identity import match_id

Node = Callable[[str, tuple[Term, ...]], Term]


class Emitter:
    """Turns the matches of a program's rules into composite events. Stateless."""

    def __init__(self, program: Program) -> None:
        self._rules = tuple(_RuleEmitter(rule) for rule in program.rules)

    def composite(self, match: Match) -> Composite:
        return self._rules[match.rule].composite(match)


class _RuleEmitter:
    """The template of one rule, its nodes resolved to functions of (id, bindings)."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        trigger = rule.trigger
        first = (trigger.name, ()) if isinstance(trigger, Every) else (trigger.name, trigger.variables)
        self._positions = (first, *((c.position.name, c.position.variables) for c in rule.chosen))
        self._variables = rule.variables
        fresh = _fresh_names(rule)
        self._template = tuple(
            tuple(self._node(node, fresh) for node in (t.subject, t.predicate, t.object))
            for t in rule.template
        )

    def _node(self, node: TemplateNode, fresh: dict[str, str]) -> Node:
        if isinstance(node, TemplateVar):
            place = self._variables.index(node.name)
            return lambda _id, bindings: bindings[place]
        if isinstance(node, Fresh):
            suffix = fresh[node.name]
            return lambda id_, _bindings: f"<{id_}{suffix}>"
        return lambda _id, _bindings: node

    def composite(self, match: Match) -> Composite:
        id_ = match_id(self._rule, match)
        graph: dict[Triple, None] = {}
        for subject, predicate, object_ in self._template:
            graph[
                (
                    subject(id_, match.bindings),
                    predicate(id_, match.bindings),
                    object_(id_, match.bindings),
                )
            ] = None
        return Composite(
            rule=self._rule.name,
            time=match.time,
            id=id_,
            bindings=tuple(zip(self._variables, match.bindings, strict=True)),
            match=tuple(
                (name, variables, fact)
                for (name, variables), fact in zip(self._positions, match.facts, strict=True)
            ),
            graph=tuple(graph),
        )


def _fresh_names(rule: Rule) -> dict[str, str]:
    """Fresh name → what follows the id: nothing for the first of the template, "-y" for `dotr_y`."""
    names: dict[str, str] = {}
    for triple in rule.template:
        for node in (triple.subject, triple.object):
            if isinstance(node, Fresh) and node.name not in names:
                names[node.name] = f"-{node.name.removeprefix('dotr_')}" if names else ""
    return names

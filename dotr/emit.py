"""Step 4: emit. A match becomes the composite event that leaves: its id, its bindings, its graph.

Place:   called by pipeline.py after detect.
Method:  paper, sec. 4, "output translation"; fresh names are content hashes (language.md, sec. 3), so that
         replay, restart and Spark agree, where the paper draws them at random. A template is resolved once,
         to nodes for its triples and a generated function for its N-Quads. Only what is asked for is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from dotr.events import Composite, Fact, RawMatch
from dotr.ir import Every, Fresh, Program, Rule, TemplateNode, TemplateTriple, TemplateVar
from dotr.joins.emit import Names, make
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, Term, Triple
from dotr.tesla.identity import match_hash

_LONG = 64  # triples of a template

Build: TypeAlias = tuple[tuple[Term | int, ...], ...]
"""Triples of nodes: a constant, or a place in (name, stamp, bindings…, further fresh names…)."""

QuadWriter: TypeAlias = Callable[[str, tuple[Term, ...], str], str]
"""(id, values of WITH, stamp) → N-Quads."""


class Emitter:
    """Turns the matches of a program's rules into composite events. Stateless."""

    def __init__(self, program: Program) -> None:
        self._templates = tuple(RuleTemplate(rule) for rule in program.rules)

    def composites(self, matches: Iterable[RawMatch]) -> list[Composite]:
        """The events of one instant's matches. O(facts of a match), for its name, which is hashed once for
        all rules that matched the same facts.
        """
        hashes: dict[tuple[Fact, ...], str] = {}
        events: list[Composite] = []
        templates = self._templates
        last: tuple[Fact, ...] | None = None
        name = ""
        for match in matches:
            rule, time, facts, _ = match
            if facts != last:  # a run of rules over the same facts compares by pointers
                last = facts
                name = hashes.get(facts, "")
                if not name:
                    name = hashes[facts] = match_hash(time, facts)
            template = templates[rule]
            events.append(Composite(template, template.prefix + name, match))
        return events

    def composite(self, match: RawMatch) -> Composite:
        """The event of one match."""
        return self.composites((match,))[0]


class RuleTemplate:
    """What one rule makes of its matches: see events.Template."""

    __slots__ = (
        "_build",
        "_suffixes",
        "positions",
        "prefix",
        "quads",
        "rule",
        "variables",
    )

    def __init__(self, rule: Rule) -> None:
        trigger = rule.trigger
        first = (trigger.name, ()) if isinstance(trigger, Every) else (trigger.name, trigger.variables)
        self.rule = rule.name
        self.prefix = f"urn:dotr:{rule.name}:"
        self.variables = rule.variables
        self.positions = (first, *((c.position.name, c.position.variables) for c in rule.chosen))
        fresh = _fresh_names(rule)
        self._suffixes = tuple(suffix for suffix in fresh.values() if suffix)
        may_repeat = _may_repeat(rule.template)
        slot = _slots(rule, fresh)
        self._build = tuple(
            tuple(slot(node) for node in (t.subject, t.predicate, t.object)) for t in rule.template
        )
        self.quads = self._repeating_quads if may_repeat else _quad_writer(rule, self._build, self._suffixes)

    def graph(self, id_: str, bindings: tuple[Term, ...]) -> tuple[Triple, ...]:
        values = (f"<{id_}>", "", *bindings, *[f"<{id_}{suffix}>" for suffix in self._suffixes])
        triples: dict[Triple, None] = {}
        for s, p, o in self._build:
            triple = (
                s if isinstance(s, str) else values[s],
                p if isinstance(p, str) else values[p],
                o if isinstance(o, str) else values[o],
            )
            triples[triple] = None
        return tuple(triples)

    def _repeating_quads(self, id_: str, bindings: tuple[Term, ...], stamp: str) -> str:
        name = f"<{id_}>"
        head = f"{name} {PROV_GENERATED_AT_TIME} {stamp} .\n"
        return head + "".join([f"{s} {p} {o} {name} .\n" for s, p, o in self.graph(id_, bindings)])


def _fresh_names(rule: Rule) -> dict[str, str]:
    """Fresh name → what follows the id: nothing for the first of the template, "-y" for `dotr_y`."""
    names: dict[str, str] = {}
    for triple in rule.template:
        for node in (triple.subject, triple.object):
            if isinstance(node, Fresh) and node.name not in names:
                names[node.name] = f"-{node.name.removeprefix('dotr_')}" if names else ""
    return names


def _slots(rule: Rule, fresh: dict[str, str]) -> Callable[[TemplateNode], Term | int]:
    """Template node → itself if constant, else its place in (name, stamp, bindings…, further names…)."""
    suffixes = [suffix for suffix in fresh.values() if suffix]

    def slot(node: TemplateNode) -> Term | int:
        if isinstance(node, TemplateVar):
            return 2 + rule.variables.index(node.name)
        if isinstance(node, Fresh):
            suffix = fresh[node.name]
            return 2 + len(rule.variables) + suffixes.index(suffix) if suffix else 0
        return node

    return slot


def _quad_writer(rule: Rule, build: Build, suffixes: Sequence[str]) -> QuadWriter:
    """The N-Quads of an event as one generated f-string: constants come in by name, values by place."""
    names = Names()

    def piece(node: Term | int) -> str:
        if not isinstance(node, int):
            return "{" + names.constant(node) + "}"
        if node < 2:
            return ("{n}", "{t}")[node]
        place = node - 2
        if place < len(rule.variables):
            return f"{{b{place}}}"
        return "{i}" + "{" + names.constant(suffixes[place - len(rule.variables)] + ">") + "}"

    lines = ["{n} {STAMPED} {t} .\\n"]
    for triple in build:
        s, p, o = ("<" * piece(node).startswith("{i}") + piece(node) for node in triple)
        lines.append(f"{s} {p} {o} {{n}} .\\n")
    names.namespace["STAMPED"] = PROV_GENERATED_AT_TIME
    unpack = "".join(f"b{i}, " for i in range(len(rule.variables)))
    source = "def quads(i, b, t):\n    n = f'<{i}>'\n"
    if unpack:
        source += f"    {unpack}= b\n"
    return make("quads", f"{source}    return f'{''.join(lines)}'\n", names)


def _may_repeat(template: tuple[TemplateTriple, ...]) -> bool:
    """Whether two triples of a template can become the same: no place holds two different constants.

    A long template is taken to: pairs are too many to look at, and each event is looked through instead.
    """
    if len(template) > _LONG:
        return True

    def apart(a: TemplateNode, b: TemplateNode) -> bool:
        if isinstance(a, TemplateVar) or isinstance(b, TemplateVar):
            return False
        return a != b

    pairs = ((a, b) for i, a in enumerate(template) for b in template[:i])
    return any(
        not (apart(a.subject, b.subject) or apart(a.predicate, b.predicate) or apart(a.object, b.object))
        for a, b in pairs
    )

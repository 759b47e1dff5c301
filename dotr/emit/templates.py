"""Templates of DEFINE, resolved once to nodes for triples and a generated function for N-Quads.

Place:   events.py fills them in; no other module writes the text of events.
Method:  rules whose templates differ in constants alone are written by one function: a loop over matches and
         rules, with everything that does not depend on the rule assembled outside.
Why not: a serializer over term objects: three times the cost of prepared parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import groupby, product
from typing import TypeAlias

from dotr.codegen import Names, make
from dotr.program import Fresh, PatternTriple, Rule, TemplateNode, TemplateTriple, TemplateVar
from dotr.program.positions import Position
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, Term, Triple, members

_LONG = 64  # triples of a template
_MANY = 8  # rules

Build: TypeAlias = tuple[tuple[Term | int, ...], ...]
"""Triples of nodes: a constant, or a place in (name, stamp, bindings…, further fresh names…)."""

Row: TypeAlias = tuple[str, tuple[Term, ...]]
"""(hash, values of WITH) of a match."""

Piece: TypeAlias = int | str
"""Part of an event's text: constant text, or a variable: the node of the event (`NAME`), the node without its
end (`PREFIX`), its time (`_STAMP`), or a value's place."""

NAME, PREFIX, _STAMP = -1, -2, -3
_END = " .\n"

Constants: TypeAlias = tuple[str, ...]
"""The rule-specific parts of the text of its events: the start of its node, differing constants."""

Writer: TypeAlias = Callable[[Sequence[Constants], Sequence[Row], str], list[str]]
"""(rules of one form, what they matched, stamp) → N-Quads of each event: by match, then by rule."""


class RuleTemplate:
    """What one rule makes of its matches; see events.Template."""

    __slots__ = (
        "build",
        "constants",
        "lists",
        "optional",
        "positions",
        "prefix",
        "repeats",
        "rule",
        "suffixes",
        "variables",
        "write",
    )

    def __init__(self, rule: Rule) -> None:
        self.write: Writer = self._write
        self.constants: Constants = ()
        trigger = rule.triggering
        first = trigger.name, trigger.variables if isinstance(trigger, Position) else ()
        self.rule = rule.name
        self.prefix = f"urn:dotr:{rule.name}:"
        self.variables = rule.variables
        self.positions = (first, *((c.position.name, c.position.variables) for c in rule.chosen))
        self.optional = frozenset(c.position.name for c in rule.chosen if c.optional)
        fresh = fresh_names(rule)
        self.suffixes = tuple(suffix for suffix in fresh.values() if suffix)
        self.lists = frozenset(2 + n for n, name in enumerate(rule.variables) if name in rule.lists)
        slot = _slots(rule, fresh)
        self.build = tuple(
            tuple(slot(node) for node in (t.subject, t.predicate, t.object)) for t in rule.template
        )
        spread = any(node in self.lists for triple in self.build for node in triple)
        self.repeats = spread or _may_repeat(rule.template)

    def graph(self, id_: str, bindings: tuple[Term, ...]) -> tuple[Triple, ...]:
        values = (f"<{id_}>", "", *bindings, *[f"<{id_}{suffix}>" for suffix in self.suffixes])
        triples: dict[Triple, None] = {}
        lists = self.lists
        for s, p, o in self.build:
            triple = (
                s if isinstance(s, str) else values[s],
                p if isinstance(p, str) else values[p],
                o if isinstance(o, str) else values[o],
            )
            if not lists or lists.isdisjoint((s, p, o)):
                triples[triple] = None
            else:
                for one in product(members(triple[0]), members(triple[1]), members(triple[2])):
                    triples[one] = None
        return tuple(triples)

    def pieces(self, triple: tuple[Term | int, ...]) -> Iterator[Piece]:
        """The text of a triple of `build`, with a space after each term."""
        values = 2 + len(self.variables)
        for node in triple:
            if isinstance(node, str):
                yield f"{node} "
            elif node < values:
                yield node - 2 if node else NAME
                yield " "
            else:
                yield PREFIX
                yield f"{self.suffixes[node - values]}> "

    def quads(self, id_: str, bindings: tuple[Term, ...], stamp: str) -> str:
        """An event as N-Quads: its stamp in the default graph, then its quads in template order."""
        return self.write((self.constants,), ((id_[len(self.prefix) :], bindings),), stamp)[0]

    def _write(self, rules: Sequence[Constants], rows: Sequence[Row], stamp: str) -> list[str]:
        """For a template in which two triples can become one, or one several."""
        texts = []
        for name, bindings in rows:
            id_ = self.prefix + name
            node = f"<{id_}>"
            lines = [f"{s} {p} {o} {node} .\n" for s, p, o in self.graph(id_, bindings)]
            texts.append(f"{node} {PROV_GENERATED_AT_TIME} {stamp} .\n{''.join(lines)}")
        return texts


def fresh_names(rule: Rule) -> dict[str, str]:
    """Fresh name → what follows the id: nothing for the first of the template, "-y" for `dotr_y`."""
    names: dict[str, str] = {}
    triples: list[TemplateTriple | PatternTriple] = [*rule.template, *rule.inserts, *rule.deletes]
    for triple in triples:
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


def share_writers(templates: Sequence[RuleTemplate]) -> None:
    """Set one function for templates that differ only in constants; many that differ only in names get their
    own.
    """
    pieces = [() if t.repeats else tuple(_pieces(t)) for t in templates]
    equal = Counter(pieces)
    forms: dict[Hashable, list[tuple[RuleTemplate, tuple[Piece, ...]]]] = {}
    for template, own in zip(templates, pieces, strict=True):
        if own:
            form = own if equal[own] >= _MANY else tuple(p if isinstance(p, int) else "" for p in own)
            forms.setdefault((len(template.variables), form), []).append((template, own))
    for alike in forms.values():
        _share_writer(alike)


def _pieces(template: RuleTemplate) -> list[Piece]:
    """The N-Quads of an event: constants alternating with variable parts as far as possible."""
    pieces: list[Piece] = []

    def add(*more: Piece) -> None:
        for piece in more:
            if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            else:
                pieces.append(piece)

    add(NAME, f" {PROV_GENERATED_AT_TIME} ", _STAMP, _END)
    for triple in template.build:
        add(*template.pieces(triple), NAME, _END)
    return pieces


def _share_writer(alike: Sequence[tuple[RuleTemplate, tuple[Piece, ...]]]) -> None:
    """Give rules of one form a generated loop over them. What does not depend on the rule is assembled before
    it.
    """
    names = Names()
    template, pieces = alike[0]
    columns: list[list[str]] = [[f"<{t.prefix}" for t, _ in alike]]
    parts: list[str] = []  # of the f-string; a part that is the same for all rules begins with `s`
    for place, piece in enumerate(pieces):
        if isinstance(piece, int):
            parts.append({NAME: "n", PREFIX: "i", _STAMP: "st"}.get(piece, f"s{piece}"))
            continue
        column = [str(other[place]) for _, other in alike]
        if len(set(column)) == 1:
            parts.append(f"s{names.constant(column[0])}")
            names.namespace[parts[-1]] = column[0]
        else:
            parts.append(f"k{len(columns)}")
            columns.append(column)
    names.namespace["LEN"] = len
    lines = ["def quads(rules, rows, st):", "    out = []"]
    values = "".join(f"s{i}, " for i in range(len(template.variables)))
    unpack = [f"{values}= b"] if values else []
    constants = "".join(f"k{i}, " for i in range(len(columns)))
    named, name = ["i = k0 + h"], "(i + '>')"
    if "i" not in parts:
        named, name = [], "(k0 + g)"
        unpack.append("g = h + '>'")
    fixed, text = _joined(parts, lambda part: part == "st" or part[:2] == "sK", "e")
    lines += [f"    {line}" for line in fixed]
    # one rule: everything is assembled once
    put = f"out.append({name}.join(({_between(text)})))"
    lines += ["    if LEN(rules) == 1:", f"        ({constants}), = rules", "        for h, b in rows:"]
    lines += [f"            {line}" for line in (*unpack, *named, put)]
    lines += ["        return out"]
    # several: their common parts first
    common, text = _joined(text, lambda part: part[0] in "es", "c")
    lines += ["    for h, b in rows:", *(f"        {line}" for line in (*unpack, *common))]
    if all(part[0] in "nsec" for part in text):  # the names are between equal texts
        lines += [f"        m = {_between(text)}", "        out += [(k0 + g).join(m) for k0, in rules]"]
    else:
        put = f"out.append({name}.join(({_between(text)})))"
        lines += [f"        for {constants}in rules:", *(f"            {line}" for line in (*named, put))]
    write = make("quads", "\n".join([*lines, "    return out", ""]), names)
    for (member, _), own in zip(alike, zip(*columns, strict=True), strict=True):
        member.write, member.constants = write, own


def _between(parts: Sequence[str]) -> str:
    """Source of the texts before, between and after the names of an event."""
    texts: list[list[str]] = [[]]
    for part in parts:
        if part == "n":
            texts.append([])
        else:
            texts[-1].append(part)
    return ", ".join([text[0] if len(text) == 1 else f"f'{_fields(text)}'" for text in texts])


def _joined(
    parts: Sequence[str], together: Callable[[str], bool], prefix: str
) -> tuple[list[str], list[str]]:
    """Adjacent parts that can be assembled before the loop: (assignments, the remaining parts)."""
    lines: list[str] = []
    left: list[str] = []
    for joined, run in groupby(parts, key=together):
        found = list(run)
        if joined and len(found) > 1:
            local = f"{prefix}{len(lines)}"
            lines.append(f"{local} = f'{_fields(found)}'")
            found = [local]
        left += found
    return lines, left


def _fields(names: Iterable[str]) -> str:
    return "".join(f"{{{name}}}" for name in names)


def _may_repeat(template: tuple[TemplateTriple, ...]) -> bool:
    """Whether two triples of a template can become equal: no place holds two different constants.

    True for a long template: it has too many pairs; each event is checked instead.
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

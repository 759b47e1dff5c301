"""Templates of DEFINE, resolved once to nodes for triples and a generated function for N-Quads.

Place:   events.py fills them in; io/events.py has pieces of its own, of JSON lines.
Method:  rules whose texts differ in constants alone are written by one function (`shared_writer`): a loop
         over matches and rules, with everything that does not depend on the rule assembled outside.
Why not: a serializer over term objects: three times the cost of prepared parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import groupby, product
from typing import TypeAlias

from dotr.codegen import Names, make
from dotr.events import Fact
from dotr.program import Fresh, PatternTriple, Rule, TemplateNode, TemplateTriple, TemplateVar
from dotr.program.positions import Position
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, Term, Triple, members

_LONG = 64  # triples of a template
_MANY = 8  # rules

Build: TypeAlias = tuple[tuple[Term | int, ...], ...]
"""Triples of nodes: a constant, or a place in (name, stamp, bindings…, further fresh names…)."""

Row: TypeAlias = tuple[str, str, tuple[Fact, ...], tuple[Term, ...]]
"""(hash, text of the time, facts, values of WITH) of a match."""

Piece: TypeAlias = int | str
"""Part of an event's text: constant text, or a variable: the name of the event (`NAME`), the name without its
end (`PREFIX`), its time (`STAMP`), or the number of a local `s0`, `s1`… of the writer."""

NAME, PREFIX, STAMP = -1, -2, -3
_END = " .\n"

Constants: TypeAlias = tuple[str, ...]
"""The rule-specific parts of the text of its events: the start of its name, differing constants."""

Writer: TypeAlias = Callable[[Sequence[Constants], Sequence[Row]], list[str]]
"""(rules of one form, what they matched) → the text of each event: by match, then by rule."""


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
        return self.write((self.constants,), ((id_[len(self.prefix) :], stamp, (), bindings),))[0]

    def _write(self, rules: Sequence[Constants], rows: Sequence[Row]) -> list[str]:
        """For a template in which two triples can become one, or one several."""
        texts = []
        for name, stamp, _, bindings in rows:
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

    add(NAME, f" {PROV_GENERATED_AT_TIME} ", STAMP, _END)
    for triple in template.build:
        add(*template.pieces(triple), NAME, _END)
    return pieces


def _share_writer(alike: Sequence[tuple[RuleTemplate, tuple[Piece, ...]]]) -> None:
    """Give rules of one form a generated function."""
    template, _ = alike[0]
    values = "".join(f"s{i}, " for i in range(len(template.variables)))
    write, constants = shared_writer(
        [f"<{t.prefix}" for t, _ in alike],
        [pieces for _, pieces in alike],
        [f"{values}= b"] if values else [],
        Names(),
        end=">",
    )
    for (member, _), own in zip(alike, constants, strict=True):
        member.write, member.constants = write, own


def shared_writer(
    starts: Sequence[str],
    alike: Sequence[Sequence[Piece]],
    unpack: Sequence[str],
    names: Names,
    *,
    end: str = "",
) -> tuple[Writer, list[Constants]]:
    """What writes the events of rules of one form, and the constants of each rule: a generated loop over
    them. What does not depend on the rule is assembled before it.

    `starts`: how the name of an event of each rule begins, `end`: how each ends; between is the hash.
    `alike`: the pieces of each rule. `unpack`: lines that make the locals of pieces from the facts `f` and
    the values `b` of a match, over what `names` has.
    """
    columns: list[list[str]] = [list(starts)]
    parts: list[str] = []  # of the f-string; a part that is the same for all rules begins with `s`
    for place, piece in enumerate(alike[0]):
        if isinstance(piece, int):
            parts.append({NAME: "n", PREFIX: "i", STAMP: "st"}.get(piece, f"s{piece}"))
            continue
        column = [str(pieces[place]) for pieces in alike]
        if len(set(column)) == 1:
            parts.append(f"s{names.constant(column[0])}")
            names.namespace[parts[-1]] = column[0]
        else:
            parts.append(f"k{len(columns)}")
            columns.append(column)
    body = list(unpack)
    hashed = "h"
    if end and "i" not in parts:
        hashed = "g"
        body.append(f"g = h + {end!r}")
    named = ["i = k0 + h"] if "i" in parts else []
    name = f"(i + {end!r})" if "i" in parts else f"(k0 + {hashed})"
    constants = "".join(f"k{i}, " for i in range(len(columns)))
    # one rule: everything is assembled once
    put = f"out.append({name}.join(({_between(parts)})))"
    lines = ["def write(rules, rows):", "    out = []", "    if LEN(rules) == 1:"]
    lines += [f"        ({constants}), = rules", "        for h, st, f, b in rows:"]
    lines += [f"            {line}" for line in (*body, *named, put)]
    lines += ["        return out"]
    # several: their common parts first
    common, text = _joined(parts, "c")
    lines += ["    for h, st, f, b in rows:", *(f"        {line}" for line in (*body, *common))]
    if all(part[0] in "nsc" for part in text):  # the names are between equal texts
        lines += [
            f"        m = {_between(text)}",
            f"        out += [(k0 + {hashed}).join(m) for k0, in rules]",
        ]
    else:
        put = f"out.append({name}.join(({_between(text)})))"
        lines += [f"        for {constants}in rules:", *(f"            {line}" for line in (*named, put))]
    write = make("write", "\n".join([*lines, "    return out", ""]), names)
    return write, list(zip(*columns, strict=True))


def _between(parts: Sequence[str]) -> str:
    """Source of the texts before, between and after the names of an event."""
    texts: list[list[str]] = [[]]
    for part in parts:
        if part == "n":
            texts.append([])
        else:
            texts[-1].append(part)
    return ", ".join([text[0] if len(text) == 1 else f"f'{_fields(text)}'" for text in texts])


def _joined(parts: Sequence[str], prefix: str) -> tuple[list[str], list[str]]:
    """Adjacent parts that do not depend on the rule are assembled before the loop: (assignments, the
    remaining parts).
    """
    lines: list[str] = []
    left: list[str] = []
    for joined, run in groupby(parts, key=lambda part: part[0] == "s"):
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

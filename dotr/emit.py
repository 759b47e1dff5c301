"""Step 4: emit. A match becomes the composite event that leaves: its id, its bindings, its graph.

Place:   called by pipeline.py after detect.
Method:  paper, sec. 4, "output translation"; fresh names are content hashes (language.md, sec. 3), so that
         replay, restart and Spark agree, where the paper draws them at random. A template is resolved once,
         to nodes for its triples and a generated function for its N-Quads. Only what is asked for is made.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias, overload

from dotr.events import Clock, Composite, Fact, RawMatch, in_order
from dotr.ir import Every, Fresh, Program, Rule, TemplateNode, TemplateTriple, TemplateVar
from dotr.joins.emit import Names, make
from dotr.rdf.memo import Memo
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, Term, Triple
from dotr.tesla.identity import match_hash

_RULE = itemgetter(0)
_LONG = 64  # triples of a template

Build: TypeAlias = tuple[tuple[Term | int, ...], ...]
"""Triples of nodes: a constant, or a place in (name, stamp, bindings…, further fresh names…)."""

Writer: TypeAlias = Callable[[Iterable[int], str, tuple[Term, ...], str], list[str]]
"""(rules, hash of what they matched, values of WITH, stamp) → the N-Quads of each rule's event. Raises
KeyError for a rule whose template has another form."""


class Emission(Sequence[Composite]):
    """The events of one instant, in output order: a sequence whose items are made when they are asked for.

    `len` costs what the matches do; an event costs its object and, once for all rules that matched the same
    facts, its hash.
    """

    __slots__ = ("_emitter", "_events", "matches")

    def __init__(self, emitter: Emitter, matches: Sequence[RawMatch]) -> None:
        self.matches = matches
        self._emitter = emitter
        self._events: list[Composite] | None = None

    def __bool__(self) -> bool:
        return bool(self.matches)

    def __len__(self) -> int:
        return sum([len(match[0]) for match in self.matches])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # a sequence of values

    def rules(self) -> set[int]:
        """The places of the rules that have an event."""
        return {rule for match in self.matches for rule in match[0]}

    @overload
    def __getitem__(self, place: int) -> Composite: ...
    @overload
    def __getitem__(self, place: slice) -> list[Composite]: ...
    def __getitem__(self, place: int | slice) -> Composite | list[Composite]:
        return self._made()[place]

    def __iter__(self) -> Iterator[Composite]:
        return iter(self._made())

    def _made(self) -> list[Composite]:
        events = self._events
        if events is None:
            events = self._events = self._emitter.composites(self.matches)
        return events

    def nquads(self, clock: Clock) -> list[str]:
        """The N-Quads of each event, without making it. See RuleTemplate.quads."""
        return self._emitter.nquads(self.matches, clock)


class Emitter:
    """Turns the matches of a program's rules into composite events. Stateless."""

    def __init__(self, program: Program) -> None:
        self._templates = tuple(RuleTemplate(rule, index) for index, rule in enumerate(program.rules))
        _share_writers(self._templates)
        most = max(256, (1 << 21) // max(1, len(program.rules)))
        self._parts: Memo[tuple[int, ...], list[tuple[list[int], Writer]]] = Memo(self._parts_of, most)

    def emission(self, matches: Sequence[RawMatch]) -> Emission:
        """The events of one instant's matches."""
        return Emission(self, matches)

    def composites(self, matches: Sequence[RawMatch]) -> list[Composite]:
        """The events of one instant's matches, in output order. O(facts of a match), for its name, once for
        all rules that matched the same facts.
        """
        templates = self._templates
        if len(matches) == 1:
            match = matches[0]
            name = match_hash(match[1], match[2])
            return [
                Composite(template, template.prefix + name, match)
                for template in [templates[rule] for rule in sorted(match[0])]
            ]
        names = {facts: match_hash(time, facts) for facts, time in {m[2]: m[1] for m in matches}.items()}
        return [
            Composite(templates[rule], templates[rule].prefix + names[match[2]], match)
            for rule, match in in_order(matches)
        ]

    def nquads(self, matches: Sequence[RawMatch], clock: Clock) -> list[str]:
        """The N-Quads of each event of one instant's matches, in output order, without making the events."""
        stamp = clock.term(matches[0][1])
        if len(matches) == 1:
            rules, time, facts, values = matches[0]
            parts = self._parts[rules]
            if len(parts) == 1:
                own, write = parts[0]
                return write(own, match_hash(time, facts), values, stamp)
        texts: list[tuple[int, str]] = []
        names: dict[tuple[Fact, ...], str] = {}
        for rules, time, facts, values in matches:
            name = names.get(facts, "")
            if not name:
                name = names[facts] = match_hash(time, facts)
            for own, write in self._parts[rules]:
                texts += zip(own, write(own, name, values, stamp), strict=True)
        texts.sort(key=_RULE)
        return [text for _, text in texts]

    def _parts_of(self, rules: tuple[int, ...]) -> list[tuple[list[int], Writer]]:
        """Rules, in output order, by the function that writes their events."""
        parts: dict[int, tuple[list[int], Writer]] = {}
        for rule in sorted(rules):
            write = self._templates[rule].write
            parts.setdefault(id(write), ([], write))[0].append(rule)
        return list(parts.values())

    def composite(self, match: RawMatch) -> Composite:
        """The event of one match of one rule."""
        return self.composites((match,))[0]


class RuleTemplate:
    """What one rule makes of its matches: see events.Template."""

    __slots__ = (
        "_build",
        "_index",
        "build",
        "positions",
        "prefix",
        "rule",
        "suffixes",
        "variables",
        "write",
    )

    def __init__(self, rule: Rule, index: int) -> None:
        self._index = index
        self.write: Writer = self._write
        trigger = rule.trigger
        first = (trigger.name, ()) if isinstance(trigger, Every) else (trigger.name, trigger.variables)
        self.rule = rule.name
        self.prefix = f"urn:dotr:{rule.name}:"
        self.variables = rule.variables
        self.positions = (first, *((c.position.name, c.position.variables) for c in rule.chosen))
        fresh = _fresh_names(rule)
        self.suffixes = tuple(suffix for suffix in fresh.values() if suffix)
        may_repeat = _may_repeat(rule.template)
        slot = _slots(rule, fresh)
        self._build = tuple(
            tuple(slot(node) for node in (t.subject, t.predicate, t.object)) for t in rule.template
        )
        self.build = None if may_repeat else self._build

    def graph(self, id_: str, bindings: tuple[Term, ...]) -> tuple[Triple, ...]:
        values = (f"<{id_}>", "", *bindings, *[f"<{id_}{suffix}>" for suffix in self.suffixes])
        triples: dict[Triple, None] = {}
        for s, p, o in self._build:
            triple = (
                s if isinstance(s, str) else values[s],
                p if isinstance(p, str) else values[p],
                o if isinstance(o, str) else values[o],
            )
            triples[triple] = None
        return tuple(triples)

    def quads(self, id_: str, bindings: tuple[Term, ...], stamp: str) -> str:
        """An event as N-Quads: its stamp in the default graph, then its quads in template order."""
        return self.write((self._index,), id_[len(self.prefix) :], bindings, stamp)[0]

    def _write(self, rules: Iterable[int], name: str, bindings: tuple[Term, ...], stamp: str) -> list[str]:
        """For a template in which two triples can become one."""
        texts = []
        for _ in rules:
            id_ = self.prefix + name
            node = f"<{id_}>"
            lines = [f"{s} {p} {o} {node} .\n" for s, p, o in self.graph(id_, bindings)]
            texts.append(f"{node} {PROV_GENERATED_AT_TIME} {stamp} .\n{''.join(lines)}")
        return texts


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


def _share_writers(templates: Sequence[RuleTemplate]) -> None:
    """Give templates that differ in constants alone one function that writes their events."""
    forms: dict[Hashable, dict[int, tuple[RuleTemplate, list[_Piece]]]] = {}
    for index, template in enumerate(templates):
        if template.build is not None:
            pieces = _pieces(template.build, len(template.variables), template.suffixes)
            form = len(template.variables), tuple(p if isinstance(p, int) else "" for p in pieces)
            forms.setdefault(form, {})[index] = template, pieces
    for members in forms.values():
        writer = _quad_writer(members)
        for template, _ in members.values():
            template.write = writer


_Piece: TypeAlias = int | str
"""Of an event's text: constant text, or what differs: `_NAME`, `_PREFIX`, `_STAMP`, or a value's place."""

_NAME, _PREFIX, _STAMP = -1, -2, -3
_END = " .\n"


def _pieces(build: Build, values: int, suffixes: Sequence[str]) -> list[_Piece]:
    """The text of an event: constants and what comes in between, by turns as far as possible."""
    pieces: list[_Piece] = []

    def add(*more: _Piece) -> None:
        for piece in more:
            if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            else:
                pieces.append(piece)

    add(_NAME, f" {PROV_GENERATED_AT_TIME} ", _STAMP, _END)
    for triple in build:
        for node in triple:
            if not isinstance(node, int):
                add(f"{node} ")
            elif node < 2 + values:
                add((_NAME, _STAMP)[node] if node < 2 else node - 2, " ")
            else:
                add(_PREFIX, f"{suffixes[node - 2 - values]}> ")
        add(_NAME, _END)
    return pieces


def _quad_writer(members: Mapping[int, tuple[RuleTemplate, list[_Piece]]]) -> Writer:
    """One generated loop over rules of one form. What does not depend on the rule is put together before it;
    constants come in by name.
    """
    names = Names()
    template, pieces = next(iter(members.values()))
    columns: list[list[str]] = [[f"<{t.prefix}" for t, _ in members.values()]]
    parts: list[str] = []  # of the f-string; a part that is the same for all rules begins with `s`
    for place, piece in enumerate(pieces):
        if isinstance(piece, int):
            parts.append({_NAME: "n", _PREFIX: "i", _STAMP: "st"}.get(piece, f"s{piece}"))
            continue
        column = [str(other[place]) for _, other in members.values()]
        if len(set(column)) == 1:
            parts.append(f"s{names.constant(column[0])}")
            names.namespace[parts[-1]] = column[0]
        else:
            parts.append(f"k{len(columns)}")
            columns.append(column)
    names.namespace["OF"] = dict(zip(members, zip(*columns, strict=True), strict=True))
    names.namespace["END"] = _END
    lines = ["def quads(rules, h, b, st):"]
    if template.variables:
        lines.append(f"    {''.join(f's{i}, ' for i in range(len(template.variables)))}= b")
    text: list[str] = []
    for shared, run in groupby(parts, key=lambda part: part[0] == "s"):
        found = list(run)
        if shared and len(found) > 1:
            lines.append(f"    e{len(lines)} = f'{_fields(found)}'")
            found = [f"e{len(lines) - 1}"]
        text += found
    known = "".join(f"k{i}, " for i in range(len(columns)))
    whole = _fields(text).replace(f"{{n}}{{s{names.constant(_END)}}}{{n}}", "{m}")
    lines += ["    out = []", "    for r in rules:", f"        {known}= OF[r]", "        i = k0 + h"]
    lines += [
        "        n = i + '>'",
        "        m = f'{n}{END}{n}'",
        f"        out.append(f'{whole}')",
        "    return out",
        "",
    ]
    return make("quads", "\n".join(lines), names)


def _fields(names: Iterable[str]) -> str:
    return "".join(f"{{{name}}}" for name in names)


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

"""Identity of a rule's state across redeploys, and its facts moved into new columns.

Place:   digests are keys of the parts of a snapshot, so that after a redeploy unchanged rules keep their
         state. state.py fills the columns of a restored detector with the facts of a rule's position in a
         shared column, network.py those of a rule evaluated alone.
Method:  a digest identifies the rule's checked form, its queries, their Datalog, the rules it chains on, and
         all LARS rules if it reads what holds: BLAKE2b over the printed values of the checked program, which
         omit spans and so layout, comments and prefixes. Datalog is reached backwards from the predicates of
         a query (`rdf:type C` counts as a predicate).
Why not: the rule's text: moving a line would lose five minutes of readings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from dotr.detect.analysis import reachable
from dotr.detect.plan_step import ColumnSpec, RankedTotal
from dotr.detect.thresholds import CARRIED, Threshold, measured
from dotr.program.program import Program
from dotr.program.queries import (
    AggregateAtom,
    Atom,
    DatalogRule,
    NegatedSet,
    NotAtom,
    Select,
    TriplePattern,
    Var,
)
from dotr.rdf.terms import RDF_TYPE
from dotr.source import PLACES

ANY = "*"
"""Means every predicate: a variable predicate or class, or `!(…)` in a path."""


def rule_digests(program: Program) -> tuple[str, ...]:
    """32 hexadecimal digits per rule. Linear in the program's size times the length of chains."""
    queries = {name: _hash(repr(select)) for name, select in program.selects.items()}
    datalog = _DatalogReach(program.datalog)
    reached = {name: datalog.digest(select) for name, select in program.selects.items()}
    entailment = program.entailment.value
    holds = repr((program.lars.rules, program.lars.step, [queries.get(name) for name in program.lars.reads]))
    own = []
    for rule in program.rules:
        streams = [p.stream for p in rule.positions if not p.chained]
        parts = [repr(rule), entailment]
        parts += [text for s in streams if s in queries for text in (s, queries[s], reached[s])]
        parts += [program.standing[s].operator for s in streams if s in program.standing]
        parts += [holds for p in rule.positions if p.held]
        own.append(_hash("\n".join(parts)))
    return tuple(_hash("\n".join(sorted(own[i] for i in rules))) for rules in _own_twice(program))


def timeline_digest(program: Program) -> str:
    """What identifies the state of a timeline: all LARS rules, and what rules read of it."""
    lars = program.lars
    changes: dict[str, None] = {}
    heads: dict[str, None] = {}
    for rule in program.rules:
        for position in rule.positions:
            if position.held:
                word, _, name = position.stream.rpartition(" ")
                (changes if word else heads)[name] = None
    selects = [repr(program.selects.get(name)) for name in lars.reads]
    return _hash(repr((lars.rules, lars.step, lars.layers, (list(changes), list(heads)), selects)))


def _own_twice(program: Program) -> Iterable[list[int]]:
    """Per rule the indices it depends on; the rule itself twice, to distinguish members of a cycle."""
    for index, rules in enumerate(reachable(program)):
        yield [index, *rules]


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


class _DatalogReach:
    """Owns an index of Datalog rules by what their heads can derive."""

    def __init__(self, rules: Sequence[DatalogRule]) -> None:
        self._texts = [repr(rule) for rule in rules]
        self._heads: dict[str, list[int]] = {}
        self._needs: list[set[str]] = []
        for index, rule in enumerate(rules):
            for head in rule.heads:
                self._heads.setdefault(_predicate(head), []).append(index)
            self._needs.append({_predicate(atom) for atom in _atoms(rule.body)})

    def digest(self, select: Select) -> str:
        """A hash of the rules that can contribute to an answer of `select`, in program order."""
        wanted = {_predicate(p) for p in _patterns(select)}
        found: set[int] = set()
        todo = list(wanted)
        while todo:
            for index in self._asserting(todo.pop()):
                if index not in found:
                    found.add(index)
                    new = self._needs[index] - wanted
                    wanted |= new
                    todo += new
        return _hash("\n".join(self._texts[i] for i in sorted(found)))

    def _asserting(self, predicate: str) -> Iterable[int]:
        if predicate == ANY:
            return range(len(self._texts))
        found = [*self._heads.get(predicate, ()), *self._heads.get(ANY, ())]
        if predicate == RDF_TYPE:
            found += [i for head, rules in self._heads.items() if head.startswith(RDF_TYPE) for i in rules]
        elif predicate.startswith(RDF_TYPE):
            found += self._heads.get(RDF_TYPE, ())
        return found


def _predicate(pattern: Atom | TriplePattern) -> str:
    """A constant predicate, `rdf:type` with its constant class, or ANY."""
    predicate = pattern.predicate
    if not isinstance(predicate, str):
        return ANY
    if predicate == RDF_TYPE and isinstance(pattern.object, str):
        return f"{RDF_TYPE} {pattern.object}"
    return predicate


def _atoms(body: Iterable[Any]) -> Iterable[Atom]:
    for item in body:
        if isinstance(item, Atom):
            yield item
        elif isinstance(item, NotAtom):
            yield item.atom
        elif isinstance(item, AggregateAtom):
            yield from _atoms(item.body)


def _patterns(value: Any) -> Iterable[TriplePattern]:
    """Every triple pattern below a syntax node; a path counts as one pattern for each IRI in it."""
    if isinstance(value, TriplePattern):
        if isinstance(value.predicate, str | Var):
            yield value
        else:
            names = list(_path_names(value.predicate))
            yield from (TriplePattern(value.subject, name, Var("end")) for name in names)
    elif isinstance(value, tuple):
        for item in value:
            yield from _patterns(item)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            if name not in PLACES:
                yield from _patterns(getattr(value, name))


def _path_names(path: Any) -> Iterable[str | Var]:
    if isinstance(path, str):
        yield path
    elif isinstance(path, NegatedSet):
        yield Var(ANY)
    elif isinstance(path, tuple):
        for item in path:
            yield from _path_names(item)
    else:
        for name in path.__struct_fields__:
            inner = getattr(path, name)
            if isinstance(inner, tuple | Struct | str):
                yield from _path_names(inner)


BY_LEVEL = 3
"""Parts of an entry of a total by level."""


class FormerColumn(Struct, frozen=True):
    """The past of a rule's position: the number of its column, and which facts were its own (None: all).

    `wanted`: what the position now takes of facts that carry their size, or of a total by level. `by_level`:
    the column was a total by level.
    """

    column: int
    own: Threshold | None
    wanted: Threshold | None
    by_level: bool = False

    def facts(self, dump: Mapping[str, list[Any]], spec: ColumnSpec) -> dict[str, list[Any]]:
        """Its facts in the form that a column of this kind takes."""
        if "totals" in dump:
            totals = ((key, self._entries(entries, spec)) for key, entries in dump["totals"])
            return {"totals": [[key, entries] for key, entries in totals if entries]}
        if "facts" not in dump:
            return dict(dump)
        found: list[list[Any]] = []
        for fact in dump["facts"]:
            size = self._size(fact)
            if self.own is not None and size is not None and size < self.own.least:
                continue
            if spec.fed_by_base and self.wanted is not None:  # its own facts passed, with their former size
                found.append([*fact[:4], self.wanted.least if size is None else max(size, self.wanted.least)])
            else:
                found.append(fact[:4])
        return {"facts": found}

    def _entries(self, entries: Sequence[Sequence[Any]], spec: ColumnSpec) -> list[Sequence[Any]]:
        """What it may read of a running total (time, argument), or of one by level (time, argument, level):
        in the other form, if the column now has that.
        """
        content, own = spec.content, self.own
        if own is not None:
            entries = [entry for entry in entries if len(entry) != BY_LEVEL or entry[2] >= own.least]
        if not isinstance(content, RankedTotal):
            return [entry[:2] if len(entry) == BY_LEVEL else entry for entry in entries]
        if self.keeps_levels(spec):
            return list(entries)
        assert self.wanted is not None
        return [[*entry[:2], self.wanted.least] for entry in entries]

    @property
    def least(self) -> int:
        """The least size of its own facts."""
        assert self.own is not None
        return self.own.least

    def keeps_levels(self, spec: ColumnSpec) -> bool:
        """Whether it is the past of a total by level, and the column is one by the same measure."""
        content = spec.content
        return (
            self.by_level
            and isinstance(content, RankedTotal)
            and self.own is not None
            and self.own.measure == content.measure
        )

    def _size(self, fact: Sequence[Any]) -> int | None:
        """Its measure; None if all facts of its column passed (then a size is by a threshold in ON)."""
        if self.own is None:
            return None
        if len(fact) > 4:
            size: int = fact[4]
            return size
        if self.own.measure.place == CARRIED:
            return None
        return measured(self.own.measure)(fact)  # version 1


def without_repeats(pasts: Iterable[FormerColumn], spec: ColumnSpec) -> list[FormerColumn]:
    """The pasts of a column's rules, without those that another one includes, level by level."""
    found: list[FormerColumn] = []
    lowest: dict[int, FormerColumn] = {}
    for past in pasts:
        if not past.keeps_levels(spec):
            found.append(past)
        elif past.column not in lowest or past.least < lowest[past.column].least:
            lowest[past.column] = past
    return [*found, *lowest.values()]

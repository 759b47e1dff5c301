"""What identifies a rule's state: its checked form, its queries, their Datalog, the rules it chains on, and
all LARS rules if it reads what holds.

Place:   keys of the parts of a snapshot, so that after a redeploy unchanged rules keep their state.
Method:  BLAKE2b over the printed values of the checked program, which omit spans and so layout, comments and
         prefixes. Datalog is reached backwards from the predicates of a query (`rdf:type C` counts as a
         predicate).
Why not: the rule's text. Moving a line would lose five minutes of readings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from dotr.ir.datalog import AggregateAtom, Atom, DatalogRule, NotAtom
from dotr.ir.expressions import Var
from dotr.ir.program import Program
from dotr.ir.queries import NegatedSet, Select, TriplePattern
from dotr.rdf.terms import RDF_TYPE
from dotr.source import PLACES
from dotr.tesla.references import reachable

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
    bare: dict[str, None] = {}
    for rule in program.rules:
        for position in rule.positions:
            if position.held:
                word, _, name = position.stream.rpartition(" ")
                (changes if word else bare)[name] = None
    selects = [repr(program.selects.get(name)) for name in lars.reads]
    return _hash(repr((lars.rules, lars.step, lars.layers, (list(changes), list(bare)), selects)))


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

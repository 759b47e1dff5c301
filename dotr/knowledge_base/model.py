"""The state of a knowledge base: statements, rules, derived rows, and the answers of standing queries.

Place:   under knowledge_base.py, which reads, labels and locks; over enrich/maintenance.py, which derives.
Method:  a transaction is one change of the maintained index: opened, checked, asked for the differences of
         standing answers, committed. Where it changes the rules, or schema that rules were instantiated over,
         the new program continues on the same index (Volz, Staab, Motik 2003, sec. 4); where it changes about
         as much as holds, or removes more than it leaves, a new index is made beside the old one and the two
         are compared.
         Rules: the knowledge base's own, those of its entailment, and those that OWL lists stand for. A rule
         is its parsed form up to the names of variables: two that print alike when variables are numbered in
         order of appearance are one.
         Contradictions: rows that inconsistency rules find, in relations that belong to no state (enrich/),
         each with the proof of any triple. dt-not-type (OWL 2 Profiles, table 8) needs no rule: the literal
         of every triple that is added or removed is checked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from dotr.enrich.closing import MANY_FACTS, MUCH_DATALOG, under_other_rules
from dotr.enrich.maintenance import Maintained, NetChange
from dotr.enrich.materialiser import Limits, clash_found
from dotr.enrich.owl import LIST_PREDICATES, SAME_AS, is_list_triple, is_schema, list_rules
from dotr.errors import DataError, Diagnostic, ProgramError
from dotr.events import Clock
from dotr.explain.derivations import Derivations
from dotr.explain.formats import PlainProofs
from dotr.explain.proofs import InBackground, Missing, TripleProof
from dotr.explain.text import Renderer, drawn
from dotr.extract.compiled import MaintainedQuery, as_it_is, standing_query
from dotr.extract.operators import Change as RowChange
from dotr.extract.operators import Row
from dotr.io.rules_and_background import read_rules_text
from dotr.joins.plan import ALL, CLASH, Relation, relation_of
from dotr.joins.store import EVERYTHING, TripleIndex
from dotr.lang import parse_datalog
from dotr.lang.printer import datalog_rule_text
from dotr.program import DatalogRule, Entailment, Select
from dotr.rdf.terms import RDF_TYPE, Memo, Term, Triple
from dotr.rdf.values import is_well_typed

if TYPE_CHECKING:
    import rdflib

_TOKEN = re.compile(r'<[^<>\s]*>|"(?:[^"\\]|\\.)*"|[?$](\w+)')


class RuleSet(Struct, frozen=True):
    """`own`: the user's rules, each once. `datatypes`: whether literals are checked as well (dt-*)."""

    own: tuple[DatalogRule, ...] = ()
    entailment: Entailment = Entailment.NONE
    datatypes: bool = False

    def over(self, stated: Collection[Triple]) -> tuple[DatalogRule, ...]:
        """All rules that hold over what is stated. Raises DataError D3102 for a list that is malformed."""
        found = (*self.own, *shipped_rules(self.entailment.value))
        if self.entailment is Entailment.OWL2RL:
            found += list_rules(stated)
        return found + shipped_rules("owl2rl-datatypes") if self.datatypes else found

    def changed(self, add: Iterable[DatalogRule], remove: Iterable[DatalogRule]) -> tuple[RuleSet, int]:
        """First `remove`, then `add`; and how many were to be removed that were not there."""
        add, remove = tuple(add), tuple(remove)
        if not (add or remove):
            return self, 0
        known = {form(rule): rule for rule in self.own}
        useless = sum(known.pop(key, None) is None for key in dict.fromkeys(map(form, remove)))
        for rule in add:
            known.setdefault(form(rule), rule)
        return replace(self, own=tuple(known.values())), useless


def form(rule: DatalogRule) -> str:
    """What all rules have in common that differ in the names of variables alone."""
    names: dict[str, str] = {}

    def numbered(token: re.Match[str]) -> str:
        name = token[1]
        return token[0] if name is None else names.setdefault(name, f"?{len(names)}")

    return _TOKEN.sub(numbered, datalog_rule_text(rule, {}))


@cache
def shipped_rules(name: str) -> tuple[DatalogRule, ...]:
    """The rules of a file that dotr ships; `none` has none."""
    if name == Entailment.NONE.value:
        return ()
    path = f"dotr:rules/{name}.dlog"
    return parse_datalog(read_rules_text(path), path)


NOT_TYPE: Term = f"{CLASH}dt-not-type>"


class Contradiction(Struct, frozen=True):
    """What one inconsistency rule found, in canonical terms: `rule` is its name in OWL 2 Profiles.

    `proof`: why, down to what is stated. What is found about one node has it as subject and as object.
    """

    rule: str
    subject: Term
    object: Term
    proof: Proof

    def __str__(self) -> str:
        about = self.subject if self.subject == self.object else f"{self.subject} and {self.object}"
        return f"{self.rule}: {about}\n{self.proof}"


class ContradictionError(DataError):
    """What was to hold contradicts itself. Nothing has changed. `contradictions` has them with proofs."""

    def __init__(
        self, diagnostics: Sequence[Diagnostic], contradictions: Sequence[Contradiction] = ()
    ) -> None:
        super().__init__(diagnostics)
        self.contradictions = tuple(contradictions)

    def __reduce__(self) -> tuple[type[ContradictionError], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.diagnostics,)


def is_ill_typed(triple: Triple) -> bool:
    """Whether the object is a literal outside of its datatype."""
    return triple[2][0] == '"' and _ill_typed[triple[2]]


def rule_name(clash: Term) -> str:
    return clash[len(CLASH) : -1]


_ill_typed: Memo[Term, bool] = Memo(lambda term: not is_well_typed(term))


class Proof:
    """A proof of a triple that holds: the smallest derivation from what is stated; or, of one that does not,
    the rules that could give it and the first premise that each lacks. True if the triple holds.

    `str()` is a tree of lines; `found` is the proof itself (explain/proofs.py).
    """

    def __init__(self, found: TripleProof | Missing, prefixes: Mapping[str, str]) -> None:
        self.found = found
        self._prefixes = dict(prefixes)

    def __bool__(self) -> bool:
        return not isinstance(self.found, Missing)

    @property
    def triple(self) -> Triple:
        """What it is about, in canonical terms."""
        return self.found.triple

    def __str__(self) -> str:
        return drawn(self._renderer().node(self.found)).rstrip("\n")

    def __repr__(self) -> str:
        return f"<proof of {' '.join(self.triple)}>" if self else f"<no proof of {' '.join(self.triple)}>"

    def to_dict(self) -> dict[str, Any]:
        """The proof as plain values, which JSON can hold."""
        return PlainProofs(Clock(), lambda triple, time: "", self._renderer().rule_text).of(self.found)

    def to_rdf(self) -> rdflib.Graph:
        """The proof in PROV-O."""
        from dotr.explain.explanation import to_rdf  # noqa: PLC0415  # it imports rdflib

        return to_rdf([self.found], Clock())

    def _renderer(self) -> Renderer:
        return Renderer(self._prefixes, Clock(), background="stated")


_GROWTH = 8
"""Plans are remade when there are so many times the triples that they were made for."""
_LEAST = 1000
_TOLD = 10
"""Contradictions that are reported, with their proofs, where one is refused."""

_WORTH = 2
"""A change of so many times fewer statements than hold is maintained where rules or schema change, too."""

Differences = Mapping[Select, Sequence[RowChange]]


class Outcome(Struct, frozen=True):
    """What a transaction did: to what holds, and to the answers of each standing query where they changed.

    `useless`: deletions of what was not stated.
    """

    net: NetChange
    differences: Differences
    useless: int


class _BasicError(Exception):
    """A change is of what rules were instantiated over."""


class Model:
    """Owns the index, the rules and the standing queries. One caller at a time.

    `kept`: an index that is closed already. `strict`: what contradicts itself is refused. `prefixes`: for
    proofs. Raises ProgramError for rules that are unsafe, not stratifiable or explode, DataError for a list
    that is not one, ContradictionError.
    """

    def __init__(
        self,
        rules: RuleSet,
        stated: Iterable[Triple] = (),
        *,
        limits: Limits,
        strict: bool = True,
        prefixes: Mapping[str, str],
        kept: Maintained | None = None,
    ) -> None:
        self.rules = rules
        self._strict, self._limits, self._prefixes = strict, limits, prefixes
        self._standing: dict[Select, MaintainedQuery] = {}
        self._woken: dict[Relation, list[Select]] = {}
        self._unions: frozenset[Relation] = frozenset()
        self._adopt(self._closed(rules, stated) if kept is None else kept)
        self._ill_typed = self._look_for_ill_typed()
        if strict:
            self._refuse(self.kept, self._ill_typed)

    def _closed(self, rules: RuleSet, stated: Iterable[Triple]) -> Maintained:
        triples = list(dict.fromkeys(stated))
        return Maintained(rules.over(triples), triples, unions=self._unions, limits=self._limits)

    def _adopt(self, kept: Maintained) -> None:
        self.kept = kept
        self._planned = max(len(kept), _LEAST)

    # -- why

    def derivations(self) -> Derivations:
        """Finds proofs over what holds, beside other readers, which see no open change."""
        return _derivations(self.kept, self.reader())

    def reader(self) -> TripleIndex:
        """A store to read what holds, whatever becomes of it later; for one thread."""
        store = TripleIndex(self.kept.index, general=EVERYTHING, arities=self.kept.store.arities)
        store.tables = self.kept.tables
        return store

    def contradictions(self) -> list[Contradiction]:
        """What inconsistency rules find, in canonical order of rule and nodes."""
        return self._explained(self.kept.clashes(), self._ill_typed, self.derivations())

    def _explained(
        self, clashes: Collection[Triple], ill_typed: Iterable[Triple], why: Derivations
    ) -> list[Contradiction]:
        found = [
            Contradiction(rule_name(clash[1]), clash[0], clash[2], Proof(why.proof(clash), self._prefixes))
            for clash in clashes
        ]
        found += [
            Contradiction(rule_name(NOT_TYPE), triple[0], triple[2], Proof(why.proof(triple), self._prefixes))
            for triple in sorted(ill_typed)
        ]
        return sorted(found, key=lambda one: (one.rule, one.subject, one.object))

    def _refuse(self, kept: Maintained, ill_typed: Collection[Triple]) -> None:
        """Raise ContradictionError where `kept`, with the change that is open, contradicts itself."""
        if not (kept.clashing or ill_typed):
            return
        clashes = kept.clashes()
        if not (clashes or ill_typed):
            return
        why = _derivations(kept, kept.store)
        proofs = self._explained(clashes[:_TOLD], sorted(ill_typed)[: _TOLD - len(clashes[:_TOLD])], why)
        rows = [*clashes, *((s, NOT_TYPE, o) for s, _, o in sorted(ill_typed))]
        raise ContradictionError([clash_found(row) for row in rows], proofs)

    def _look_for_ill_typed(self) -> set[Triple]:
        return set(filter(is_ill_typed, self.kept)) if self.rules.datatypes else set()

    # -- standing queries

    def stand(self, select: Select) -> None:
        """Follow the answers of a query without NOW() from now on."""
        if select in self._standing:
            return
        query = standing_query(select, self.kept.store, shown=as_it_is)
        unions = query.relations & {ALL, RDF_TYPE}
        if not unions <= self._unions:
            self._unions |= unions
            self.kept.unite(unions)
            self._standing[select] = query
            self._stand_anew()
            return
        self._enter(select, query)

    def drop(self, select: Select) -> None:
        """Follow them no more."""
        self._standing.pop(select, None)
        for woken in self._woken.values():
            if select in woken:
                woken.remove(select)

    def answers(self, select: Select) -> list[Row]:
        """All answers of a standing query."""
        return self._standing[select].answers()

    def _enter(self, select: Select, query: MaintainedQuery) -> None:
        self._standing[select] = query
        for relation in query.relations:
            self._woken.setdefault(relation, []).append(select)

    def _stand_anew(self) -> None:
        """Standing queries over the store as it is now."""
        selects = list(self._standing)
        self._standing.clear()
        self._woken.clear()
        for select in selects:
            self._enter(select, standing_query(select, self.kept.store, shown=as_it_is))

    # -- transactions

    def change(
        self, insert: Sequence[Triple], delete: Sequence[Triple], rules: RuleSet | None = None
    ) -> Outcome:
        """First `delete`, then `insert`, by these rules from now on. Raises as the constructor does; nothing
        has changed then.
        """
        rules = self.rules if rules is None else rules
        if rules == self.rules and not self._is_basic(insert) and not self._is_basic(delete):
            if self._mostly_ends(insert, delete):
                return self._close_anew(insert, delete, rules)
            try:
                return self._maintain(insert, delete)
            except _BasicError:
                pass
        if _WORTH * (len(insert) + len(delete)) > len(self.kept):
            return self._close_anew(insert, delete, rules)
        try:
            outcome = self._change_rules(insert, delete, rules)
        except ProgramError as error:
            if not all(diagnostic.code in (MANY_FACTS, MUCH_DATALOG) for diagnostic in error.diagnostics):
                raise
            outcome = None  # recomputation has other limits, and the last word
        return self._close_anew(insert, delete, rules) if outcome is None else outcome

    def _mostly_ends(self, insert: Sequence[Triple], delete: Sequence[Triple]) -> bool:
        kept = self.kept
        if not kept.mostly_ends(len(delete)):
            return False
        return kept.mostly_ends(sum(map(kept.states, set(delete).difference(insert))))

    def _is_basic(self, triples: Iterable[Triple]) -> bool:
        """Whether rules may be others with or without these triples."""
        instantiated = self.kept.closed.instantiated
        if instantiated.over:
            waiting = bool(instantiated.dormant)
            for triple in triples:
                relation = relation_of(*triple)
                if is_schema(relation) or is_list_triple(triple) or (waiting and relation == SAME_AS):
                    return True
            return False
        return self.rules.entailment is Entailment.OWL2RL and any(map(is_list_triple, triples))

    def _maintain(self, insert: Sequence[Triple], delete: Sequence[Triple]) -> Outcome:
        kept = self.kept
        useless = kept.open(insert, delete)
        try:
            if kept.touches(kept.closed.instantiated.watched):
                raise _BasicError
            touched = [changes.relation for changes in kept.store.overlay.touched]
            woken = dict.fromkeys(select for r in touched for select in self._woken.get(r, ()))
            outcome, ill_typed = self._outcome(kept, {s: self._standing[s] for s in woken}, useless)
        except BaseException:
            for query in self._standing.values():
                query.forget()
            kept.abandon()
            raise
        kept.commit()
        self._ill_typed = ill_typed
        self._grow()
        return outcome

    def _outcome(
        self, kept: Maintained, standing: Mapping[Select, MaintainedQuery], useless: int
    ) -> tuple[Outcome, set[Triple]]:
        """What the open change does, and what is ill-typed then; standing answers are settled. Raises
        ContradictionError.
        """
        net = kept.changed()
        ill_typed = self._ill_typed_after(net)
        if self._strict:
            self._refuse(kept, ill_typed)
        moved = {select: query.moved() for select, query in standing.items()}
        for query in standing.values():
            query.settle()
        return Outcome(net, {select: rows for select, rows in moved.items() if rows}, useless), ill_typed

    def _change_rules(
        self, insert: Sequence[Triple], delete: Sequence[Triple], rules: RuleSet
    ) -> Outcome | None:
        """By other rules, or over other schema, and what follows from the difference; None where that takes
        more than the schema to know.
        """
        before = self.kept
        gone = set(delete)
        basic = [t for t in before.stated_of(_shapes_rules) if t not in gone]
        basic = list(dict.fromkeys([*basic, *(t for t in insert if _shapes_rules(relation_of(*t)))]))
        every = rules.over(list(filter(is_list_triple, basic)))
        missed: set[Triple] = set()
        while True:
            closed = under_other_rules(before.closed, every, basic, missed)
            if closed is None:
                return None
            kept = before.under(closed)
            standing = {s: standing_query(s, kept.store, shown=as_it_is) for s in self._standing}
            useless = kept.open(insert, delete, before)
            try:
                more = kept.missed()
                if more:
                    kept.abandon()
                    missed |= more
                    continue
                outcome, ill_typed = self._outcome(kept, standing, useless)
            except BaseException:
                kept.abandon()
                raise
            break
        kept.commit()
        self._follow(kept, rules, ill_typed, standing)
        return outcome

    def _follow(
        self,
        kept: Maintained,
        rules: RuleSet,
        ill_typed: set[Triple],
        standing: Mapping[Select, MaintainedQuery],
    ) -> None:
        """Go on with another index or program."""
        self.rules, self._ill_typed = rules, ill_typed
        self._adopt(kept)
        self._woken.clear()
        for select, query in standing.items():
            self._enter(select, query)

    def _ill_typed_after(self, net: NetChange) -> set[Triple]:
        if not self.rules.datatypes:
            return self._ill_typed
        return (self._ill_typed - set(net.removed)) | set(filter(is_ill_typed, net.added))

    def _grow(self) -> None:
        """Plan for what is there now, where that is much more than when it was planned."""
        if len(self.kept) > _GROWTH * self._planned:
            self._planned = len(self.kept)
            self.kept.plan_anew()
            self._stand_anew()

    def _close_anew(self, insert: Sequence[Triple], delete: Sequence[Triple], rules: RuleSet) -> Outcome:
        before = self.kept
        useless = sum(not before.states(triple) for triple in delete)
        gone = set(delete)
        stated = [triple for triple in before.statements() if triple not in gone]
        kept = self._closed(rules, [*stated, *insert])
        ill_typed = set(filter(is_ill_typed, kept)) if rules.datatypes else set()
        if self._strict:
            self._refuse(kept, ill_typed)
        standing = {select: standing_query(select, kept.store, shown=as_it_is) for select in self._standing}
        differences = {
            select: _difference(self._standing[select].answers, query.answers)
            for select, query in standing.items()
        }
        net = NetChange(
            tuple(sorted(triple for triple in kept if triple not in before.index)),
            tuple(sorted(triple for triple in before if triple not in kept.index)),
        )
        self._follow(kept, rules, ill_typed, standing)
        return Outcome(net, {select: moved for select, moved in differences.items() if moved}, useless)


def _shapes_rules(relation: Relation) -> bool:
    """Whether rules are made from triples of the relation."""
    return is_schema(relation) or relation in (SAME_AS, *LIST_PREDICATES)


def _difference(before: Callable[[], list[Row]], now: Callable[[], list[Row]]) -> list[RowChange]:
    changes = Counter(now())
    changes.subtract(Counter(before()))
    return [(row, n) for row, n in changes.items() if n]


def _derivations(kept: Maintained, store: TripleIndex) -> Derivations:
    def leaf(triple: Triple) -> TripleProof | None:
        return InBackground(triple) if kept.states_now(triple) else None

    return Derivations(store, kept.clauses, leaf)

"""What a knowledge base holds: statements, rules, what follows, and the answers that stand over it.

Place:   under knowledge_base.py, which reads, labels and locks; over datalog/maintenance.py, which derives.
Method:  a transaction is one change of the maintained index: opened, checked, asked for the differences of
         standing answers, committed. Where it changes the rules, or schema that rules were instantiated
         over, the new program goes on from the same index (Volz, Staab, Motik 2003, sec. 4); where it changes
         about as much as holds, or takes more than it leaves, a new index is made beside the old one and both
         are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from dotr.datalog.closing import MANY_FACTS, MUCH_DATALOG, under_other_rules
from dotr.datalog.maintenance import Maintained, NetChange
from dotr.datalog.materialiser import Limits, clash_found
from dotr.datalog.owl_lists import LIST_PREDICATES, is_list_triple
from dotr.datalog.schema import SAME_AS, is_schema
from dotr.errors import ProgramError
from dotr.explain.derivations import Derivations
from dotr.explain.proofs import InBackground, TripleProof
from dotr.ir import Entailment, Select
from dotr.joins.graph_relations import ALL, Relation, relation_of
from dotr.joins.store import EVERYTHING, TripleIndex
from dotr.knowledge_base.contradictions import (
    NOT_TYPE,
    Contradiction,
    ContradictionError,
    is_ill_typed,
    rule_name,
)
from dotr.knowledge_base.rule_sets import RuleSet
from dotr.knowledge_base.triple_proofs import Proof
from dotr.rdf.terms import RDF_TYPE, Triple
from dotr.sparql.solution_operators import Change as RowChange
from dotr.sparql.solution_operators import Row
from dotr.sparql.standing import MaintainedQuery, as_it_is, standing_query

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

"""The state of a knowledge base: statements, rules, derived rows, and the answers of standing queries.

Place:   under knowledge_base.py, which reads, labels and locks; over lasting/model.py, which maintains what
         follows and the answers.
Method:  a transaction is one change of the maintained model, checked while it is open. Where it changes the
         rules, or schema that rules were instantiated over, the new program continues on the same index
         (Volz, Staab, Motik 2003, sec. 4); where it changes about as much as holds, or removes more than it
         leaves, a new index is made beside the old one and the two are compared.
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
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from dotr.extract.operators import Change as RowChange
from dotr.extract.operators import Row
from dotr.extract.query import as_it_is
from dotr.io.rules_and_background import read_rules_text
from dotr.joins.plan import CLASH, Relation, relation_of
from dotr.joins.store import EVERYTHING, TripleIndex
from dotr.lang import parse_datalog
from dotr.lang.printer import datalog_rule_text
from dotr.lasting.model import MaintainedModel, Outcome, SchemaChange
from dotr.pictures.markup import fragment
from dotr.pictures.tree import tree
from dotr.program import DatalogRule, Entailment, Select
from dotr.rdf.terms import Memo, Term, Triple
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

    def _repr_html_(self) -> str:
        """The tree, for notebooks."""
        return fragment(tree([self._renderer().node(self.found)]))

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
_WATCHED = "watched"
"""What errors call a query that is followed."""
_TOLD = 10
"""Contradictions that are reported, with their proofs, where one is refused."""

_WORTH = 2
"""A change of so many times fewer statements than hold is maintained where rules or schema change, too."""


class _MissedSchema(Exception):  # noqa: N818  # not an error: rules are to be instantiated over more
    """Schema holds under other rules over which they were not instantiated."""

    def __init__(self, triples: set[Triple]) -> None:
        super().__init__(triples)
        self.triples = triples


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
        self._adopt(self._over(self._closed(rules, stated) if kept is None else kept))
        self._ill_typed = self._look_for_ill_typed()
        if strict:
            self._refuse(self.kept, self._ill_typed)

    @property
    def kept(self) -> Maintained:
        """The index of what holds."""
        return self._model.kept

    def _closed(
        self, rules: RuleSet, stated: Iterable[Triple], unions: frozenset[Relation] = frozenset()
    ) -> Maintained:
        triples = list(dict.fromkeys(stated))
        return Maintained(rules.over(triples), triples, unions=unions, limits=self._limits)

    def _over(
        self, kept: Maintained, standing: Collection[Select] = (), unions: frozenset[Relation] = frozenset()
    ) -> MaintainedModel:
        rules = self.rules
        return MaintainedModel(
            kept,
            dict.fromkeys(standing, _WATCHED),
            unions=unions,
            entailment=rules.entailment,
            checked=rules.datatypes or rules.entailment is not Entailment.NONE,
            limits=self._limits,
            shown=as_it_is,
            nets=True,
            where="over what holds",
        )

    def _adopt(self, model: MaintainedModel) -> None:
        self._model = model
        self._planned = max(len(model.kept), _LEAST)

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
        self._model.stand(select, _WATCHED)

    def drop(self, select: Select) -> None:
        """Follow them no more."""
        self._model.drop(select)

    def answers(self, select: Select) -> list[Row]:
        """All answers of a standing query. Raises ProgramError D4132."""
        return self._model.followed(select)

    # -- transactions

    def change(
        self, insert: Sequence[Triple], delete: Sequence[Triple], rules: RuleSet | None = None
    ) -> Outcome:
        """First `delete`, then `insert`, by these rules from now on. Raises as the constructor does; nothing
        has changed then.
        """
        rules = self.rules if rules is None else rules
        model = self._model
        if rules == self.rules:
            if not model.mostly_ends(set(delete).difference(insert) if insert and delete else delete):
                try:
                    return self._maintained(model, rules, insert, delete)
                except SchemaChange:
                    pass
            elif not (model.shapes_rules(insert) or model.shapes_rules(delete)):
                return self._close_anew(insert, delete, rules)
        if _WORTH * (len(insert) + len(delete)) > len(self.kept):
            return self._close_anew(insert, delete, rules)
        try:
            outcome = self._change_rules(insert, delete, rules)
        except ProgramError as error:
            if not all(diagnostic.code in (MANY_FACTS, MUCH_DATALOG) for diagnostic in error.diagnostics):
                raise
            outcome = None  # recomputation has other limits, and the last word
        return self._close_anew(insert, delete, rules) if outcome is None else outcome

    def _maintained(
        self,
        model: MaintainedModel,
        rules: RuleSet,
        insert: Sequence[Triple],
        delete: Sequence[Triple],
        before: Maintained | None = None,
    ) -> Outcome:
        """Go on with a changed model. `before`: the index that it continues under other rules. Raises
        SchemaChange, _MissedSchema, and as `change`.
        """
        ill_typed = self._ill_typed

        def check(net: NetChange) -> None:
            nonlocal ill_typed
            if before is not None and (missed := model.kept.missed()):
                raise _MissedSchema(missed)
            ill_typed = self._ill_typed_after(net)
            if self._strict:
                self._refuse(model.kept, ill_typed)

        outcome = model.change(insert, delete, check=check, before=before)
        self.rules, self._ill_typed = rules, ill_typed
        if model is not self._model:
            self._adopt(model)
        elif len(model.kept) > _GROWTH * self._planned:  # plan for what is there now
            self._planned = len(model.kept)
            model.kept.plan_anew()
            model.plan()
        return outcome

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
            model = self._over(before.under(closed), self._model.standing, self._model.unions)
            try:
                return self._maintained(model, rules, insert, delete, before)
            except _MissedSchema as more:
                missed |= more.triples

    def _ill_typed_after(self, net: NetChange) -> set[Triple]:
        if not self.rules.datatypes:
            return self._ill_typed
        return (self._ill_typed - set(net.removed)) | set(filter(is_ill_typed, net.added))

    def _close_anew(self, insert: Sequence[Triple], delete: Sequence[Triple], rules: RuleSet) -> Outcome:
        before = self.kept
        useless = sum(not before.states(triple) for triple in delete)
        gone = set(delete)
        stated = [triple for triple in before.statements() if triple not in gone]
        old, unions = self._model, self._model.unions
        kept = self._closed(rules, [*stated, *insert], unions)
        ill_typed = set(filter(is_ill_typed, kept)) if rules.datatypes else set()
        if self._strict:
            self._refuse(kept, ill_typed)
        model = self._over(kept, old.standing, unions)
        differences = {
            select: _difference(old.followed(select), model.followed(select)) for select in old.standing
        }
        net = NetChange(
            tuple(sorted(triple for triple in kept if triple not in before.index)),
            tuple(sorted(triple for triple in before if triple not in kept.index)),
        )
        self.rules, self._ill_typed = rules, ill_typed
        self._adopt(model)
        moved = {select: changes for select, changes in differences.items() if changes}
        return Outcome(moved, net=net, useless=useless)


def _shapes_rules(relation: Relation) -> bool:
    """Whether rules are made from triples of the relation."""
    return is_schema(relation) or relation in (SAME_AS, *LIST_PREDICATES)


def _difference(before: Iterable[Row], now: Iterable[Row]) -> list[RowChange]:
    changes = Counter(now)
    changes.subtract(Counter(before))
    return [(row, n) for row, n in changes.items() if n]


def _derivations(kept: Maintained, store: TripleIndex) -> Derivations:
    def leaf(triple: Triple) -> TripleProof | None:
        return InBackground(triple) if kept.states_now(triple) else None

    return Derivations(store, kept.clauses, leaf)

"""Whether proofs of triples follow: leaves from the graphs and what lasts, derivations by their rules.

Place:   under checker.py, which has the events.
Method:  a derivation is an instance of a rule of the program, under the bindings that it names; what was
         instantiated over a schema, or stands for an axiom, needs that schema among its premises. What NOT
         excludes is looked for, and what AGGREGATE counted is counted again, in the literal state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct, field

from dotr import ir
from dotr.datalog.equality import replaces, written_out
from dotr.datalog.owl_lists import list_rules
from dotr.datalog.schema import (
    INVERSE_OF,
    SAME_AS,
    ground,
    instance,
    instantiable,
    schema_atoms,
    solutions,
)
from dotr.datalog.triple_set import TripleSet
from dotr.errors import DataError
from dotr.events import Clock, Time
from dotr.explain.literal_history import EVER, LiteralHistory, moment_of
from dotr.explain.proofs import (
    Derived,
    Ending,
    InBackground,
    InStream,
    Lasting,
    Of,
    Totalled,
    TripleProof,
    Unopened,
)
from dotr.expressions.evaluate import compile_condition
from dotr.expressions.literal_operators import literally
from dotr.joins.graph_relations import holding
from dotr.rdf.terms import Term, Triple
from dotr.reference.datalog import compute, counted
from dotr.reference.lasting import FOREVER, TimedStatement

Claim = Callable[[bool, str], None]
"""(whether it is so, what is wrong otherwise)."""


class TripleChecker(Struct):
    """Owns what was checked: no step twice, since proofs share their parts."""

    history: LiteralHistory
    claim: Claim
    _done: dict[tuple[int, Time, Of], TripleProof] = field(default_factory=dict)
    _known: dict[ir.DatalogRule, bool] = field(default_factory=dict)

    def check(self, proof: TripleProof, time: Time, of: Of) -> None:
        """Check a proof and everything below it, however deep that is."""
        todo = [proof]
        while todo:
            one = todo.pop()
            if (id(one), time, of) in self._done:
                continue
            self._done[id(one), time, of] = one  # held, so that its id is not another's
            if isinstance(one, Derived):
                self._derived(one, time, of)
                todo += one.premises
                todo += [premise for total in one.totals for row in total.shown for premise in row]
            else:
                self._leaf(one, time, of)

    def _leaf(self, proof: InStream | InBackground | Lasting | Unopened, time: Time, of: Of) -> None:
        history, triple = self.history, proof.triple
        match proof:
            case InStream(time=at):
                self.claim(at == time and of is Of.INSTANT, f"{triple} is of another instant")
                self.claim(triple in history.stated.get(time, ()), f"{triple} is not stated at {time}")
            case InBackground(until=until):
                self.claim(triple in history.background, f"{triple} is not in the background")
                if history.statements is not None:
                    found = self.holding(triple, EVER, moment_of(time, of))
                    ends = until is None or any(s.until == until for s in found)
                    self.claim(bool(found) and ends, f"{triple} does not hold then, or until {until}")
            case Lasting(start=start):
                found = [s for s in self.holding(triple, start, moment_of(time, of)) if _agrees(proof, s)]
                self.claim(bool(found), f"{triple} is not such a statement from {start}")
            case Unopened():
                self.claim(triple in history.generalized(time, of), f"{triple} does not hold at {time}")

    def holding(self, triple: Triple, start: Time | None, moment: Time) -> list[TimedStatement]:
        """The statements of a triple from `start` that hold at a moment."""
        made = () if self.history.statements is None else self.history.statements.made
        return [s for s in made if s.triple == triple and s.start == start and s.holds(moment)]

    def moved(self, proof: Lasting | InBackground, time: Time, begins: bool) -> bool:
        """Whether a statement begins, or ends, at a time."""
        made = () if self.history.statements is None else self.history.statements.made
        start = EVER if isinstance(proof, InBackground) else proof.start
        return any(
            s.triple == proof.triple and s.start == start and (s.start if begins else s.until) == time
            for s in made
        )

    def _derived(self, proof: Derived, time: Time, of: Of) -> None:
        """One instance of a rule."""
        env, claim, triple = dict(proof.bindings), self.claim, proof.triple
        premises = {premise.triple for premise in proof.premises}
        claim(self._is_rule(proof.rule, premises, time, of), f"{triple}: its rule is not one of the program")
        known = self.history.state(time, of) if proof.inverses else ()
        for one, other in proof.inverses:
            stated = (one, INVERSE_OF, other) in known or (other, INVERSE_OF, one) in known
            claim(stated, f"{triple}: {one} is not the inverse of {other}")
        heads = [_instance(head, env) for head in proof.rule.heads]
        claim(triple in heads, f"{triple} is not a head of its rule")
        absent: list[tuple[Term | None, ...]] = []
        for item in proof.rule.body:
            match item:
                case ir.Atom():
                    claim(_instance(item, env) in premises, f"{triple} lacks a premise")
                case ir.NotAtom(atom=atom):
                    absent.append(_instance(atom, env))
                    free = isinstance(atom.predicate, ir.Var)  # stands for IRIs
                    known = (self.history.state if free else self.history.generalized)(time, of)
                    there = any(_matches(atom, env, other) for other in known)
                    claim(not there, f"{triple}: what NOT excludes is there")
                case ir.FilterAtom(condition=condition):
                    holds = compile_condition(condition, _getter, clock=Clock(), reading=literally)(env)
                    claim(holds, f"{triple}: a FILTER is not true")
                case ir.BindAtom(expression=expression, variable=variable):
                    value = compute(expression)(env)
                    claim(value == env.get(variable.name), f"{triple}: a BIND has another value")
                case ir.AggregateAtom():
                    self._totalled(proof, item, time, of)
        claim(sorted(map(repr, absent)) == sorted(map(repr, proof.absent)), f"{triple}: a NOT is left out")
        aggregates = [item for item in proof.rule.body if isinstance(item, ir.AggregateAtom)]
        opened = [one.atom for one in proof.totals]
        claim(opened == aggregates, f"{triple} does not have its rule's AGGREGATE")

    def _totalled(self, proof: Derived, item: ir.AggregateAtom, time: Time, of: Of) -> None:
        """One AGGREGATE: counted again, literally."""
        env, claim, triple = dict(proof.bindings), self.claim, proof.triple
        members, agrees = counted(item, env, self.history.state(time, of))
        claim(agrees, f"{triple}: an AGGREGATE has another value")
        atoms = [atom for atom in item.body if isinstance(atom, ir.Atom)]
        rows = [[_instance(atom, member) for atom in atoms] for member in members]
        for one in proof.totals:
            if one.atom == item:
                self._counted(one, rows, triple)

    def _counted(self, one: Totalled, rows: list[list[tuple[Term | None, ...]]], triple: Triple) -> None:
        self.claim(one.rows == len(rows), f"{triple}: {len(rows)} solutions are counted")
        self.claim(len(one.shown) == min(10, one.rows), f"{triple}: solutions are left out")
        for row in one.shown:
            self.claim([p.triple for p in row] in rows, f"{triple}: that is not counted")

    def _is_rule(self, rule: ir.DatalogRule, premises: Collection[Triple], time: Time, of: Of) -> bool:
        """Whether a rule is one of the program, of an axiom that is among the premises, or an instance of
        one over schema that is.
        """
        written = self.history.program_at(moment_of(time, of)).datalog
        if any(_has(other, rule) for other in written):
            return True
        try:
            lists = list_rules(sorted(premises))
        except DataError:  # a list lacks a cell
            lists = ()
        if any(_has(other, rule) for other in lists if other in self.history.rules(time, of)):
            return True
        known = TripleSet(premises)
        named = {(a.subject, a.predicate, a.object) for a in rule.body if isinstance(a, ir.Atom)}
        for other in filter(instantiable, written):
            atoms = schema_atoms(other)
            for values in solutions(atoms, known):
                kept = {triple for atom in atoms if (triple := ground(atom, values)) in named}
                made = instance(other, atoms, values, kept)
                if made is not None and _has(made, rule):
                    return True
        return self._is_exchange(rule, time, of)

    def _is_exchange(self, rule: ir.DatalogRule, time: Time, of: Of) -> bool:
        """Whether a rule is one that replaces equals, with constants for its variable predicates."""
        state = self.history.generalized(time, of)
        rules = [other for other in self.history.rules(time, of) if replaces(other)]
        if not rules:
            return False
        relations = {relation for triple in state for relation in holding(triple)}
        equalities = TripleSet(triple for triple in state if triple[1] == SAME_AS)
        return any(_has(other, rule) for other in written_out(rules, relations, equalities))


def _has(rule: ir.DatalogRule, part: ir.DatalogRule) -> bool:
    """Whether a rule gives at least what another one gives, from the same body."""
    return rule.body == part.body and set(part.heads) <= set(rule.heads)


def _agrees(proof: Lasting, statement: TimedStatement) -> bool:
    """Whether a statement is of the kind that is claimed, and ends so; an end that is to come is the latest
    one.
    """
    if proof.inserted == statement.held:
        return False
    match proof.ending:
        case Ending.REPLACED:
            return statement.latest and statement.until == proof.until
        case Ending.DELETED:
            return statement.until == proof.until
        case Ending.NEXT_VALUE:
            return statement.latest and (proof.until is None or statement.until <= proof.until)
        case Ending.TIME:
            return not statement.latest and proof.until is not None and statement.until <= proof.until
        case Ending.OPEN:
            return not statement.latest and proof.until is None and statement.until <= FOREVER


def _instance(atom: ir.Atom, env: Mapping[str, Term]) -> tuple[Term | None, ...]:
    return tuple(_node(node, env) for node in (atom.subject, atom.predicate, atom.object))


def _node(node: ir.Node, env: Mapping[str, Term]) -> Term | None:
    return env.get(node.name) if isinstance(node, ir.Var) else node


def _matches(atom: ir.Atom, env: Mapping[str, Term], triple: Triple) -> bool:
    local: dict[str, Term] = {}
    for node, term in zip((atom.subject, atom.predicate, atom.object), triple, strict=True):
        known = _node(node, env)
        if known is None and isinstance(node, ir.Var):
            known = local.setdefault(node.name, term)
        if known != term:
            return False
    return True


def _getter(node: ir.Var | ir.Attribute | ir.TimeOf) -> Callable[[Mapping[str, Term]], Term | None]:
    assert isinstance(node, ir.Var), "Datalog has variables only"
    name = node.name
    return lambda env: env.get(name)

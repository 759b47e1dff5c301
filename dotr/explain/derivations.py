"""The smallest proof of a triple at an instant, with the schema that its rules rest on.

Method:  the search goes backwards from the triple through the heads of the rules as they run, over the
         engine's own store, to stated triples: this is the cone of all derivations. In it Knuth's
         generalisation of Dijkstra's algorithm (1977) finds the derivation tree with the fewest steps, so
         that no triple occurs in its own proof; ties are broken by the order of rules and premises. The
         search has a budget of derivations; when it is used up, the best proof found so far stands.
         Rules with variable predicates or classes were instantiated over the schema, and OWL's axioms over
         lists were written out as rules (enrich/owl.py). `SchemaPremises` does both again and records from
         which triples, and the rule's name in an ontology profile; these triples are premises of the proof,
         stated ones preferred. Schema that follows from schema is proved from schema alone; schema that needs
         facts, from the whole background.
         `walk` runs a plan row by row, by the store's generic look-up; generated code must yield the same.
Why not: the engine's order of derivation: there is none across strata that were closed at deployment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import assert_never

from msgspec import Struct

from dotr import program
from dotr.enrich.closing import Closed, closing_program
from dotr.enrich.materialiser import Materialiser
from dotr.enrich.owl import (
    INVERSE_OF,
    TripleSet,
    instances_of,
    instantiable,
    is_list_triple,
    list_axioms,
    list_rules,
    schema_triples,
)
from dotr.enrich.rules import Clause, Head
from dotr.explain.proofs import (
    Attempt,
    Derived,
    Inverses,
    Missing,
    NotThen,
    Origin,
    Sharing,
    Totalled,
    TripleProof,
    Unopened,
    parts_of,
)
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.joins.filters import FilterRow as Row
from dotr.joins.filters import condition_of, value_of
from dotr.joins.plan import (
    ALL,
    AbsentPattern,
    AntiJoin,
    Assign,
    BodyPattern,
    Check,
    JoinPlan,
    Probe,
    Relation,
    RowFilter,
    Step,
    View,
    bound_by,
    holding,
    is_aggregate,
    is_anonymous,
    is_class,
    plan,
    triple_pattern,
)
from dotr.joins.store import Columns, TripleIndex
from dotr.program import Atom, DatalogRule, Node, Var
from dotr.rdf.terms import RDF_TYPE, Term, Triple, is_iri
from dotr.rdf.values import values_key

SHOWN = 10
"""Solutions that an AGGREGATE counted, of which the triples are given."""

BUDGETS = (20_000, 400_000)
"""Derivations that a search evaluates: the second number where the first ones hold no proof, as among many
terms that are all the same."""


class _ProofEdge(Struct, frozen=True):
    """One way to derive a triple."""

    head: Triple
    clause: Clause
    bindings: tuple[tuple[str, Term], ...]
    premises: tuple[Triple, ...]


class Derivations:
    """Owns the proofs of one open instant, by the clauses that ran over its store. `leaf`: why a triple is
    stated, None where it is not; `origin`: which schema a rule rests on; `inverse_of`: what an anonymous
    property is the inverse of, by default as the store has it. `not_then`: what graphs state that is held at
    other times.
    """

    def __init__(
        self,
        store: TripleIndex,
        clauses: Sequence[Clause],
        leaf: Callable[[Triple], TripleProof | None],
        origin: Callable[[program.DatalogRule], Origin] = lambda rule: Origin(),
        inverse_of: Callable[[Term], Term | None] | None = None,
        not_then: Callable[[], Sequence[NotThen]] = tuple,
    ) -> None:
        self.store = store
        self.not_then = not_then
        self._clauses = clauses
        self._leaf = leaf
        self._origin = origin
        self._inverse_of = inverse_of or self._inverse_in_store
        self.sharing = Sharing()
        self._proofs: dict[Triple, TripleProof] = {}
        self._plans: dict[tuple[int, tuple[str, ...]], tuple[JoinPlan, tuple[str, ...]]] = {}
        self._heads: dict[Relation, list[tuple[int, Head]]] = {}
        for number, clause in enumerate(self._clauses):
            for head in clause.heads:
                self._heads.setdefault(head.pattern.relation, []).append((number, head))

    def holds(self, triple: Triple) -> bool:
        """Whether it holds at the instant, as far as the store keeps it."""
        if self._leaf(triple) is not None:
            return True
        return any(
            self.store.find(relation, _row(relation, triple), View.NEW) for relation in holding(triple)
        )

    def proof(self, triple: Triple) -> TripleProof:
        """The smallest proof of a triple that holds."""
        for budget in BUDGETS:
            if triple not in self._proofs:
                self._prove(triple, budget)
        found = self._proofs.get(triple)
        return found or Unopened(triple, "no derivation was found within the search's budget")

    def proofs(self, triple: Triple) -> list[TripleProof]:
        """The smallest proof and, for every other way in which it is derived in one step, the one with the
        smallest proofs of its premises; none has the triple among its own premises. Smaller ones first.
        """
        best = self.proof(triple)
        found = {self.sharing.number(best): best}
        for edge in self._derivations(triple):
            premises = tuple(self.proof(premise) for premise in edge.premises)
            if not any(_uses(premise, triple) for premise in premises):
                made = self._derived(edge, premises)
                found.setdefault(self.sharing.number(made), made)
        others = [one for one in found.values() if one is not best]
        return [best, *sorted(others, key=self.sharing.size)]

    def _prove(self, goal: Triple, budget: int) -> None:
        """Knuth's algorithm over the cone below `goal`."""
        edges, leaves = self._cone(goal, budget)
        waiting: dict[int, int] = {}
        uses: dict[Triple, list[int]] = {}
        heap: list[tuple[int, Triple, int]] = [(self._size_of_leaf(leaf), leaf, -1) for leaf in leaves]
        for number, edge in enumerate(edges):
            distinct = set(edge.premises)
            waiting[number] = len(distinct)
            for premise in distinct:
                uses.setdefault(premise, []).append(number)
            if not distinct:
                heap.append((1, edge.head, number))
        heap.sort()
        cost: dict[Triple, int] = {}
        by: dict[Triple, int] = {}
        while heap:
            size, triple, number = heappop(heap)
            if triple in cost:
                continue
            cost[triple], by[triple] = size, number
            if triple == goal:
                break
            for use in uses.get(triple, ()):
                waiting[use] -= 1
                if not waiting[use]:
                    total = 1 + sum(cost[premise] for premise in edges[use].premises)
                    heappush(heap, (total, edges[use].head, use))
        if goal in cost:
            self._build(goal, edges, by)

    def _size_of_leaf(self, triple: Triple) -> int:
        found = self._leaf(triple)
        return 1 if found is None else self.sharing.size(found)

    def _build(self, goal: Triple, edges: list[_ProofEdge], by: dict[Triple, int]) -> None:
        """Make the proofs below a goal, premises first."""
        todo = [goal]
        while todo:
            triple = todo[-1]
            if triple in self._proofs:
                todo.pop()
                continue
            leaf = self._leaf(triple)
            if leaf is not None:
                self._proofs[triple] = leaf
                continue
            edge = edges[by[triple]]
            open_ = [premise for premise in edge.premises if premise not in self._proofs]
            if open_:
                todo += open_
                continue
            self._proofs[triple] = self._derived(edge, tuple(self._proofs[p] for p in edge.premises))

    def _cone(self, goal: Triple, budget: int) -> tuple[list[_ProofEdge], list[Triple]]:
        """All derivations below a triple, breadth first, and the stated triples among them."""
        edges: list[_ProofEdge] = []
        leaves: list[Triple] = []
        seen = {goal}
        todo = [goal]
        for triple in todo:
            if self._leaf(triple) is not None:
                leaves.append(triple)
                continue
            for edge in self._derivations(triple):
                if len(edges) >= budget:
                    return edges, leaves
                edges.append(edge)
                for premise in edge.premises:
                    if premise not in seen:
                        seen.add(premise)
                        todo.append(premise)
        return edges, leaves

    def _derivations(self, triple: Triple) -> Iterator[_ProofEdge]:
        for relation in holding(triple):
            for number, head in self._heads.get(relation, ()):
                given = _unified(head.pattern.columns, _row(relation, triple))
                if given is not None:
                    yield from self._of_clause(triple, number, given)

    def _of_clause(self, triple: Triple, number: int, given: dict[str, Term]) -> Iterator[_ProofEdge]:
        """The ways in which one rule gives a triple."""
        clause = self._clauses[number]
        names = tuple(sorted(given))
        if (number, names) not in self._plans:
            outputs = tuple(sorted(bound_by(clause.items)))
            nodes: list[program.Node] = [program.Var(name) for name in outputs]
            self._plans[number, names] = plan(clause.items, nodes, self.store, given=names), outputs
        made, outputs = self._plans[number, names]
        for row in walk(made, self.store, [given[name] for name in names]):
            bindings = {**given, **dict(zip(outputs, row, strict=True))}
            premises = tuple(
                _triple(item, bindings)
                for item in clause.items
                if isinstance(item, BodyPattern) and not is_aggregate(item.relation)
            )
            schema = self._origin(clause.rule).premises
            yield _ProofEdge(triple, clause, tuple(sorted(bindings.items())), premises + schema)

    def _derived(self, edge: _ProofEdge, premises: tuple[TripleProof, ...]) -> Derived:
        atoms = [atom for atom in edge.clause.rule.body if isinstance(atom, program.AggregateAtom)]
        totals = tuple(self._totalled(atom, dict(edge.bindings)) for atom in atoms)
        rule = edge.clause.rule
        name = self._origin(rule).name
        inverses = self._inverses(rule)
        return Derived(edge.head, rule, edge.bindings, premises, _absences(edge), totals, name, inverses)

    def _inverses(self, rule: program.DatalogRule) -> Inverses:
        """What the anonymous properties of a rule are the inverses of, down to a property with a name."""
        atoms = [item for item in (*rule.heads, *rule.body) if isinstance(item, program.Atom)]
        todo = [a.predicate for a in atoms if isinstance(a.predicate, str) and is_anonymous(a.predicate)]
        found: dict[Term, Term] = {}
        for one in todo:
            other = None if one in found else self._inverse_of(one)
            if other is not None:
                found[one] = other
                todo += [other] if is_anonymous(other) else []
        return tuple(found.items())

    def _inverse_in_store(self, property_: Term) -> Term | None:
        forward = [row[1] for row in self.store.find(INVERSE_OF, (property_, None), View.NEW)]
        backward = [row[0] for row in self.store.find(INVERSE_OF, (None, property_), View.NEW)]
        return plainest(forward, backward)

    def _totalled(self, atom: program.AggregateAtom, given: dict[str, Term]) -> Totalled:
        """The solutions that an AGGREGATE counted, over strata that are below."""
        rows = self._solutions(atom, {name: given[name] for name in (v.name for v in atom.group)})
        atoms = [item for item in atom.body if isinstance(item, program.Atom)]
        shown = [tuple(self.proof(_instance(item, row)) for item in atoms) for row in rows[:SHOWN]]
        return Totalled(atom, len(rows), tuple(shown))

    def _solutions(self, atom: program.AggregateAtom, group: dict[str, Term]) -> list[dict[str, Term]]:
        """The solutions of its body for one group, in canonical order."""
        items = [
            triple_pattern(i.subject, i.predicate, i.object) for i in atom.body if isinstance(i, program.Atom)
        ]
        names = tuple(dict.fromkeys(name for item in items for name in item.variables))
        given = tuple(sorted(name for name in names if name in group))
        made = plan(items, [program.Var(name) for name in names], self.store, given=given, as_set=True)
        found: dict[tuple[Term, ...], dict[str, Term]] = {}
        for values in walk(made, self.store, [group[name] for name in given]):
            row = self._bound(atom, dict(zip(names, values, strict=True)))
            if row is not None and all(row[name] == term for name, term in group.items()):
                found[tuple(row[name] for name in sorted(row))] = row
        return [found[key] for key in sorted(found, key=values_key)]

    def _bound(self, atom: program.AggregateAtom, row: dict[str, Term]) -> dict[str, Term] | None:
        """A match of the atoms with what BIND gives; None where a FILTER, a BIND or a NOT lets it go."""
        binds = [item for item in atom.body if isinstance(item, program.BindAtom)]
        for _ in range(len(binds)):  # one may use another that is written later
            for bind in binds:
                value = compile_expression(bind.expression, _leaf, clock=self.store.moment.clock)(row)
                if value is not None:
                    row = {**row, bind.variable.name: value}
        if any(bind.variable.name not in row for bind in binds):
            return None
        for item in atom.body:
            if isinstance(item, program.FilterAtom):
                if not compile_condition(item.condition, _leaf, clock=self.store.moment.clock)(row):
                    return None
            elif isinstance(item, program.NotAtom):
                nodes = (_bound(n, row) for n in (item.atom.subject, item.atom.predicate, item.atom.object))
                if walk(plan([triple_pattern(*nodes)], [], self.store, as_set=True), self.store, []):
                    return None
        return row

    def why_absent(self, triple: Triple) -> Missing:
        """The rules that could give a triple that does not hold, and the first premise that each lacks."""
        attempts: dict[tuple[program.DatalogRule, tuple[program.Node, ...]], None] = {}
        for relation in holding(triple):
            for number, head in self._heads.get(relation, ()):
                given = _unified(head.pattern.columns, _row(relation, triple))
                if given is not None:
                    clause = self._clauses[number]
                    attempts[clause.rule, self._lacking(clause, given)] = None
        tried = tuple(Attempt(r, lacks, self._inverses(r)) for r, lacks in attempts)
        return Missing(triple, tried, tuple(one for one in self.not_then() if one.triple == triple))

    def _lacking(self, clause: Clause, given: dict[str, Term]) -> tuple[program.Node, ...]:
        """The first pattern of a body that has no solution beside those before it, filters left aside."""
        patterns = [item for item in clause.items if isinstance(item, BodyPattern)]
        names = tuple(sorted(given))
        values = [given[name] for name in names]
        for length in range(1, len(patterns) + 1):
            made = plan(patterns[:length], [], self.store, given=names, as_set=True)
            if not walk(made, self.store, values):
                item = patterns[length - 1]
                return tuple(_bound(node, given) for node in _nodes(item))
        return ()


def plainest(*several: Collection[Term]) -> Term | None:
    """Of the first of several collections that is not empty the first IRI, else the first term."""
    terms = next(filter(None, several), ())
    return min(terms, key=lambda term: (not is_iri(term), term), default=None)


def _uses(proof: TripleProof, triple: Triple) -> bool:
    """Whether a triple is proved somewhere in a proof."""
    todo, seen = [proof], {id(proof)}
    while todo:
        one = todo.pop()
        if one.triple == triple:
            return True
        below = [part for part in parts_of(one) if id(part) not in seen]
        seen.update(map(id, below))
        todo += below
    return False


def _leaf(
    node: program.Var | program.Attribute | program.TimeOf,
) -> Callable[[Mapping[str, Term]], Term | None]:
    assert isinstance(node, program.Var), "Datalog has variables only"
    name = node.name
    return lambda env: env.get(name)


def _instance(atom: program.Atom, row: Mapping[str, Term]) -> Triple:
    terms = [
        row[n.name] if isinstance(n, program.Var) else n for n in (atom.subject, atom.predicate, atom.object)
    ]
    return terms[0], terms[1], terms[2]


def _bound(node: program.Node, given: dict[str, Term]) -> program.Node:
    return given.get(node.name, node) if isinstance(node, program.Var) else node


def _row(relation: Relation, triple: Triple) -> tuple[Term, ...]:
    """A triple as a row of one of its relations."""
    subject, predicate, object_ = triple
    if relation == ALL:
        return subject, predicate, object_
    return (subject,) if is_class(relation) else (subject, object_)


def _triple(item: BodyPattern, bindings: dict[str, Term]) -> Triple:
    terms = [bindings[node.name] if isinstance(node, program.Var) else node for node in item.columns]
    if item.relation == ALL:
        return terms[0], terms[1], terms[2]
    if is_class(item.relation):
        return terms[0], RDF_TYPE, item.relation[2:]
    return terms[0], item.relation, terms[1]


def _unified(columns: tuple[program.Node, ...], row: tuple[Term, ...]) -> dict[str, Term] | None:
    """The values of a head's variables that make it this row."""
    values: dict[str, Term] = {}
    for node, term in zip(columns, row, strict=True):
        if isinstance(node, program.Var):
            if values.setdefault(node.name, term) != term:
                return None
        elif node != term:
            return None
    return values


def _absences(edge: _ProofEdge) -> tuple[tuple[Term | None, ...], ...]:
    """What NOT looked for, as patterns."""
    bindings = dict(edge.bindings)
    return tuple(
        tuple(
            bindings.get(node.name) if isinstance(node, program.Var) else node
            for node in _nodes(item.pattern)
        )
        for item in edge.clause.items
        if isinstance(item, AbsentPattern)
    )


def _nodes(pattern: BodyPattern) -> tuple[program.Node, ...]:
    """A pattern's nodes as subject, predicate, object."""
    if pattern.relation == ALL:
        return pattern.columns
    if is_class(pattern.relation):
        return pattern.columns[0], RDF_TYPE, pattern.relation[2:]
    return pattern.columns[0], pattern.relation, pattern.columns[1]


PROFILES = "dotr:rules/"
"""How the names of shipped rule files begin."""


class SchemaPremises:
    """Owns the origins of the rules that run over one background. `rules`: as written; `lists`: whether
    axioms over lists are rules; `closed`: the background, closed.
    """

    def __init__(
        self,
        rules: Sequence[DatalogRule],
        background: Collection[Triple],
        closed: Closed,
        lists: bool,
    ) -> None:
        self._rules, self._background, self._lists = rules, background, lists
        self._closed = closed
        self._schema, self._firm = closed.instantiated.schema, closed.instantiated.firm
        self._written = set(rules)
        self._origins: dict[tuple[object, Atom], Origin] | None = None
        self._alone: Materialiser | None = None

    def of(self, rule: DatalogRule) -> Origin:
        """The origin of a rule as it runs."""
        if rule in self._written:
            return Origin(profile_name(rule))
        if self._origins is None:
            self._origins = self._found()
        found = (self._origins.get((rule.body, head)) for head in rule.heads)
        return next((one for one in found if one is not None), Origin(profile_name(rule)))

    def inverse_of(self, property_: Term) -> Term | None:
        """What an anonymous property is the inverse of."""
        pairs = [(s, o) for s, p, o in self._schema if p == INVERSE_OF and property_ in (s, o)]
        return plainest([o for s, o in pairs if s == property_], [s for s, o in pairs if o == property_])

    def leaves(self, leaf: Callable[[Triple], TripleProof | None]) -> Callable[[Triple], TripleProof | None]:
        """Why a triple is stated, or is schema that rules were instantiated over, which nothing keeps at an
        instant.
        """
        made: dict[bool, Derivations] = {}

        def of_schema(triple: Triple) -> TripleProof | None:
            stated = leaf(triple)
            if stated is not None or triple not in self._schema:
                return stated
            alone = self._over_schema()
            if triple not in alone.background:
                return None
            if True not in made:
                made[True] = Derivations(alone.store, alone.clauses.all, leaf, self.of)
            return made[True].proof(triple)

        def found(triple: Triple) -> TripleProof | None:
            known = of_schema(triple)
            if known is not None or triple not in self._schema:
                return known
            if False not in made:
                clauses, store = closing_program(self._closed)[1], TripleIndex(self._closed.index)
                made[False] = Derivations(store, clauses.all, of_schema, self.of)
            return made[False].proof(triple)

        return found

    def _over_schema(self) -> Materialiser:
        """The schema closed alone."""
        if self._alone is None:
            lists = list_rules(self._background) if self._lists else ()
            schema = set(schema_triples(self._background))
            schema.update(filter(is_list_triple, self._background))
            self._alone = Materialiser((*self._rules, *lists), sorted(schema))
        return self._alone

    def _found(self) -> dict[tuple[object, Atom], Origin]:
        found: dict[tuple[object, Atom], Origin] = {}
        if self._lists:
            for axiom in list_axioms(self._background):
                for name, rule in axiom.rules:
                    _keep(found, rule, Origin(name, axiom.stated))
        stated = set(schema_triples(self._background))
        first = sorted(stated & set(self._schema))
        known = TripleSet([*first, *sorted(set(self._schema) - stated)])
        for rule in self._rules:
            if not instantiable(rule):
                continue
            name = profile_name(rule)
            made = instances_of(rule, known, self._firm)
            for one, premises in sorted(made, key=lambda pair: sum(p not in stated for p in pair[1])):
                _keep(found, one, Origin(name, premises))
        return found


def profile_name(rule: DatalogRule) -> str:
    """`cax-sco`, of a rule of a shipped profile that has a name there."""
    if rule.span is None or not rule.span.source.name.startswith(PROFILES):
        return ""
    source = rule.span.source
    line = source.line(source.position(rule.span.end)[0])
    found = re.search(r"#\s*([a-z]+-\w+)\s*$", line)
    return found[1] if found else ""


def _keep(found: dict[tuple[object, Atom], Origin], rule: DatalogRule, origin: Origin) -> None:
    for head in rule.heads:
        found.setdefault((rule.body, head), origin)


def walk(plan: JoinPlan, store: TripleIndex, values: Sequence[Term] = ()) -> list[Columns]:
    """Solutions of a plan, with repeats, as values of its outputs.

    `values` are the columns of the triggering row, or the values of the `given` variables.
    """
    row: dict[str, Term] | None = dict(zip(plan.given, values, strict=plan.trigger is None))
    if plan.trigger is not None:
        row = _extend(plan.trigger, values, {})
    if row is None:
        return []
    return [
        tuple(solution[n.name] if isinstance(n, Var) else n for n in plan.outputs)
        for solution in _solutions(plan.steps, row, store)
    ]


def _solutions(steps: Sequence[Step], row: dict[str, Term], store: TripleIndex) -> Iterator[dict[str, Term]]:
    if not steps:
        yield row
        return
    step, rest = steps[0], steps[1:]
    match step:
        case Probe():
            for extended in _matches(step, row, store):
                yield from _solutions(rest, extended, store)
                if step.exists:
                    return
        case AntiJoin():
            if not _matches(step, row, store):
                yield from _solutions(rest, row, store)
        case RowFilter():
            if condition_of(step, store.moment)(row):
                yield from _solutions(rest, row, store)
        case Check():
            if step.function(*(row[name] for name in step.variables)):
                yield from _solutions(rest, row, store)
        case Assign():
            value = value_of(step, store.moment)(row)
            if value is not None and row.get(step.variable, value) == value:
                yield from _solutions(rest, {**row, step.variable: value}, store)
        case _:
            assert_never(step)


def _matches(step: Probe | AntiJoin, row: Row, store: TripleIndex) -> list[dict[str, Term]]:
    asked = [_value(node, row) for node in step.pattern.columns]
    found = []
    for columns in store.find(step.pattern.relation, asked, step.view):
        store.visits[0] += 1
        extended = _extend(step.pattern, columns, row)
        if extended is not None:
            found.append(extended)
    return found


def _value(node: Node, row: Row) -> Term | None:
    return row.get(node.name) if isinstance(node, Var) else node


def _extend(pattern: BodyPattern, columns: Sequence[Term], row: Row) -> dict[str, Term] | None:
    extended = dict(row)
    for node, term in zip(pattern.columns, columns, strict=True):
        if isinstance(node, Var):
            if extended.setdefault(node.name, term) != term:
                return None
        elif node != term:
            return None
    return extended

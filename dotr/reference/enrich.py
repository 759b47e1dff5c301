"""Step 1, literally: K(t) closed from nothing at every instant.

Place:   the reference for core/instant.py and enrich/materialiser.py, in tests, `--verify` and `dotr query`.
Method:  the naive, stratified closure over everything that holds at t, put into a pyoxigraph store: apply all
         rules of a stratum to everything until nothing is new (Ullman 1988; strata of Apt, Blair, Walker
         1988).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import pyoxigraph as ox

from dotr import program
from dotr.enrich.analysis import atom_relation
from dotr.enrich.owl import (
    SAME_AS,
    Binding,
    Instantiated,
    TripleSet,
    instantiable,
    instantiate,
    is_schema,
    replaces,
    schema_triples,
    written_out,
)
from dotr.enrich.rules import check_recursion, check_rules, strata
from dotr.errors import Diagnostic, ProgramError, Severity
from dotr.events import Clock
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.expressions.literal_numbers import literally, summarised
from dotr.joins.plan import expression_variables, holding, is_anonymous, is_clash
from dotr.program import DatalogRule
from dotr.rdf.terms import Term, Triple, is_iri, is_literal, to_oxigraph

Getter = Callable[[Binding], Term | None]


def closure(rules: Sequence[program.DatalogRule], triples: Collection[Triple]) -> set[Triple]:
    """The stratified least model of `rules` over `triples`, which it contains, as far as it is RDF.

    Raises ProgramError when rules are unsafe, recurse through NOT or AGGREGATE, or need not end.
    Cost: naive; rounds × rules × matches.
    """
    return in_rdf(generalized_closure(rules, triples))


def in_rdf(triples: Iterable[Triple]) -> set[Triple]:
    """Without the triples of anonymous properties."""
    return {triple for triple in triples if not is_anonymous(triple[1])}


def generalized_closure(rules: Sequence[program.DatalogRule], triples: Collection[Triple]) -> set[Triple]:
    """`closure`, with the triples of anonymous properties: blank nodes as predicates."""
    _refuse(check_rules(rules))
    if not any(
        isinstance(item, program.NotAtom | program.AggregateAtom | program.BindAtom)
        for r in rules
        for item in r.body
    ):
        return plain_closure(rules, triples)
    return _instantiated(rules, triples)[1]


class LiteralStates:
    """Owns what the background alone says; `at` is the state at an instant.

    That is the closure of background and instant, where an equality that only the instant has exchanges
    individuals, in triples that are not schema.
    """

    def __init__(self, rules: Sequence[program.DatalogRule], background: Collection[Triple]) -> None:
        self._rules = tuple(rules)
        self._explicit = frozenset(background)
        self.generalized = frozenset(generalized_closure(rules, background))
        """`closed`, with the triples of anonymous properties."""
        self.closed = frozenset(in_rdf(self.generalized))
        self._exchanges = any(map(replaces, rules)) and any(map(instantiable, rules))
        if self._exchanges:
            instantiated, closed = _instantiated(rules, background)
            self._equalities = TripleSet(triple for triple in closed if triple[1] == SAME_AS)
            self._schema = frozenset(schema_triples(closed))
            self._every = (*instantiated.rules, *instantiated.dormant)

    def at(self, instant: Collection[Triple]) -> set[Triple]:
        """Everything that holds at an instant with these triples."""
        return in_rdf(self.generalized_at(instant))

    def generalized_at(self, instant: Collection[Triple]) -> set[Triple]:
        """`at`, with the triples of anonymous properties."""
        stated = self._explicit.union(instant)
        if not self._exchanges:
            return generalized_closure(self._rules, stated)
        fixed = [rule for rule in self._every if not replaces(rule)]
        relations = {relation for triple in stated | self.closed for relation in holding(triple)}
        relations.update(atom_relation(head) for rule in fixed for head in rule.heads)
        while True:
            state = TripleSet(stated | self._schema)
            written = written_out(filter(replaces, self._every), relations, self._equalities)
            for stratum in strata([*fixed, *written]):
                _close(stratum, state)
            found = {relation for triple in state.all for relation in holding(triple)}
            if found <= relations:
                return state.all
            relations |= found


def _instantiated(
    rules: Sequence[program.DatalogRule], triples: Collection[Triple]
) -> tuple[Instantiated, set[Triple]]:
    """The rules without variable predicates as far as there is a schema, and the closure."""
    schema: set[Triple] = set()
    while True:
        instantiated = instantiate(rules, triples, plain_closure, schema)
        _refuse(check_recursion(instantiated.rules))
        state = TripleSet(triples)
        for stratum in strata(instantiated.rules):
            _close(stratum, state)
        missed = instantiated.missed(state.all)
        if not missed:
            return instantiated, state.all
        schema |= missed


def _refuse(found: Sequence[Diagnostic]) -> None:
    errors = [diagnostic for diagnostic in found if diagnostic.severity is Severity.ERROR]
    if errors:
        raise ProgramError(errors)


def contradictions(rules: Sequence[program.DatalogRule], state: Collection[Triple]) -> list[Triple]:
    """What the rules that report a clash find in a state that is a `generalized_closure`."""
    known = TripleSet(state)
    return [
        (_term(head.subject, binding), head.predicate, _term(head.object, binding))
        for rule in rules
        for head in rule.heads
        if isinstance(head.predicate, str) and is_clash(head.predicate)
        for binding in _solutions(_order(rule.body), known)
    ]


def plain_closure(rules: Sequence[program.DatalogRule], triples: Collection[Triple]) -> set[Triple]:
    """As `closure`, of rules without NOT, AGGREGATE and BIND."""
    state = TripleSet(triples)
    _close(rules, state)
    return state.all


def _close(rules: Sequence[program.DatalogRule], state: TripleSet) -> None:
    """Rules of one stratum to their fixpoint."""
    bodies = [(rule, _order(rule.body)) for rule in rules]
    while True:
        found = [
            triple
            for rule, body in bodies
            for binding in _solutions(body, state)
            for triple in _heads(rule, binding)
        ]
        if not sum(map(state.add, found)):
            return


def _order(body: Sequence[program.BodyAtom]) -> list[program.BodyAtom]:
    """Atoms over the schema, other atoms and aggregates as written, then each BIND after what it reads, then
    filters and NOT.
    """
    ordered: list[program.BodyAtom] = [
        item for item in body if isinstance(item, program.Atom | program.AggregateAtom)
    ]
    ordered.sort(key=lambda item: not (isinstance(item, program.Atom) and is_schema(atom_relation(item))))
    binds = [item for item in body if isinstance(item, program.BindAtom)]
    while binds:
        waiting = {bind.variable.name for bind in binds}
        ready = next(b for b in binds if not waiting & set(expression_variables(b.expression)))
        binds.remove(ready)
        ordered.append(ready)
    return ordered + [item for item in body if isinstance(item, program.FilterAtom | program.NotAtom)]


def _solutions(body: Sequence[program.BodyAtom], state: TripleSet) -> list[Binding]:
    rows: list[Binding] = [{}]
    for item in body:
        rows = [extended for row in rows for extended in _extend(item, row, state)]
    return rows


def _extend(item: program.BodyAtom, row: Binding, state: TripleSet) -> Iterable[Binding]:
    match item:
        case program.Atom():
            return state.matches(item, row)
        case program.NotAtom():
            return () if state.holds(item.atom, row) else (row,)
        case program.FilterAtom():
            holds = compile_condition(item.condition, _leaf, clock=Clock(), reading=literally)
            return (row,) if holds(row) else ()
        case program.BindAtom():
            value = compute(item.expression)(row)
            return () if value is None else ({**row, item.variable.name: value},)
        case program.AggregateAtom():
            return _aggregated(item, row, state)


def _aggregated(item: program.AggregateAtom, row: Binding, state: TripleSet) -> Iterator[Binding]:
    """One row a group, where every total has a value and the group agrees with `row`."""
    groups: dict[tuple[Term, ...], list[Binding]] = {}
    for inner in _solutions(_order(item.body), state):
        groups.setdefault(tuple(inner[v.name] for v in item.group), []).append(inner)
    for key, members in groups.items():
        values: dict[str, Term | None] = dict(zip((v.name for v in item.group), key, strict=True))
        for total in item.totals:
            star = total.argument is None  # counts solutions, which are distinct
            column: list[Term | None] = [None] * len(members)
            if total.argument is not None:
                column = list(map(compute(total.argument), members))
            distinct = total.distinct and not star
            values[total.variable.name] = summarised(total.function, distinct, column, star=star)
        extended = {**row, **{name: value for name, value in values.items() if value is not None}}
        if None not in values.values() and all(extended[n] == row[n] for n in row):
            yield extended


def counted(
    item: program.AggregateAtom, row: Binding, triples: Iterable[Triple]
) -> tuple[list[Binding], bool]:
    """(the solutions that an AGGREGATE counts for the group of `row`, whether `row` has its totals)."""
    state = TripleSet(triples)
    group = {variable.name: row.get(variable.name) for variable in item.group}
    inner = _solutions(_order(item.body), state)
    members = [one for one in inner if all(one[name] == term for name, term in group.items())]
    names = [total.variable.name for total in item.totals]
    agrees = any(all(found.get(n) == row.get(n) for n in names) for found in _aggregated(item, row, state))
    return members, agrees


def compute(expression: program.Expression) -> Getter:
    """A value from a binding; None where it is an error."""
    return compile_expression(expression, _leaf, clock=Clock(), reading=literally)


def _leaf(leaf: program.Var | program.Attribute | program.TimeOf) -> Getter:
    if not isinstance(leaf, program.Var):
        raise AssertionError("checked: Datalog has variables only")
    name = leaf.name
    return lambda row: row.get(name)


def _heads(rule: program.DatalogRule, binding: Binding) -> Iterator[Triple]:
    """The heads under a binding; what is not a triple, or reports a clash, is not derived."""
    for head in rule.heads:
        s, p, o = (_term(node, binding) for node in (head.subject, head.predicate, head.object))
        if is_anonymous(p) or (is_iri(p) and not is_literal(s) and not is_clash(p)):
            yield s, p, o


def _term(node: program.Node, binding: Binding) -> Term:
    return binding[node.name] if isinstance(node, program.Var) else node


def quad(triple: Triple) -> ox.Quad:
    """A triple of ours as a pyoxigraph quad of the default graph."""
    subject, predicate, object_ = (to_oxigraph(term) for term in triple)
    return ox.Quad(subject, predicate, object_)  # type: ignore[arg-type]  # subjects are never literals


class LiteralEnricher:
    """Owns one store that holds K(t) between `open` and `close`, and K of the empty instant otherwise.

    Without rules K(t) is a union; with rules the closure is computed from nothing at every instant. The store
    only sees the difference to the closed background, which is a matter of cost, not of meaning.
    """

    def __init__(self, rules: Sequence[DatalogRule], background: Collection[Triple]) -> None:
        self._states = LiteralStates(rules, background) if rules else None
        self._closed = frozenset(background) if self._states is None else self._states.closed
        self.store = ox.Store()
        self.store.bulk_extend(quad(triple) for triple in sorted(self._closed))
        self._added: list[ox.Quad] = []
        self._removed: list[ox.Quad] = []

    def state(self, triples: Iterable[Triple]) -> frozenset[Triple]:
        """K(t) as a set, for `dotr query` and for comparison. O(closure of everything)."""
        instant = frozenset(triples)
        return self._closed | instant if self._states is None else frozenset(self._states.at(instant))

    def open(self, triples: Iterable[Triple]) -> ox.Store:
        """Put the store into K(t). The caller calls `close` before the next instant."""
        instant = frozenset(triples)
        if instant:
            state = self.state(instant)
            self._removed = [quad(triple) for triple in self._closed if triple not in state]
            self._added = [quad(triple) for triple in state if triple not in self._closed]
        for old in self._removed:
            self.store.remove(old)
        self.store.extend(self._added)
        return self.store

    def close(self) -> None:
        """Forget the instant."""
        for new in self._added:
            self.store.remove(new)
        self.store.extend(self._removed)
        self._added, self._removed = [], []

"""Datalog as the contract reads, literally: the naive, stratified closure.

Place:   the measure of materialiser.py in tests and under --verify.
Method:  apply all rules of a stratum to everything until nothing is new (Ullman 1988; strata of Apt, Blair,
         Walker 1988).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from dotr import ir
from dotr.datalog.dependency import atom_relation
from dotr.datalog.equality import replaces, written_out
from dotr.datalog.schema import SAME_AS, Instantiated, instantiable, instantiate, is_schema, schema_triples
from dotr.datalog.strata import check_recursion, check_rules, strata
from dotr.datalog.triple_set import Binding, TripleSet
from dotr.errors import Diagnostic, ProgramError, Severity
from dotr.events import Clock
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.expressions.literal_numbers import summarised
from dotr.expressions.literal_operators import literally
from dotr.joins.graph_relations import holding, is_anonymous, is_clash
from dotr.joins.variables import expression_variables
from dotr.rdf.terms import Term, Triple, is_iri, is_literal

Getter = Callable[[Binding], Term | None]


def closure(rules: Sequence[ir.DatalogRule], triples: Collection[Triple]) -> set[Triple]:
    """The stratified least model of `rules` over `triples`, which it contains, as far as it is RDF.

    Raises ProgramError when rules are unsafe, recurse through NOT or AGGREGATE, or need not end.
    Cost: naive; rounds × rules × matches.
    """
    return in_rdf(generalized_closure(rules, triples))


def in_rdf(triples: Iterable[Triple]) -> set[Triple]:
    """Without the triples of anonymous properties."""
    return {triple for triple in triples if not is_anonymous(triple[1])}


def generalized_closure(rules: Sequence[ir.DatalogRule], triples: Collection[Triple]) -> set[Triple]:
    """`closure`, with the triples of anonymous properties: blank nodes as predicates."""
    _refuse(check_rules(rules))
    if not any(
        isinstance(item, ir.NotAtom | ir.AggregateAtom | ir.BindAtom) for r in rules for item in r.body
    ):
        return plain_closure(rules, triples)
    return _instantiated(rules, triples)[1]


class LiteralStates:
    """Owns what the background alone says; `at` is the state at an instant.

    That is the closure of background and instant, where an equality that only the instant has exchanges
    individuals, in triples that are not schema.
    """

    def __init__(self, rules: Sequence[ir.DatalogRule], background: Collection[Triple]) -> None:
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
    rules: Sequence[ir.DatalogRule], triples: Collection[Triple]
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


def contradictions(rules: Sequence[ir.DatalogRule], state: Collection[Triple]) -> list[Triple]:
    """What the rules that report a clash find in a state that is a `generalized_closure`."""
    known = TripleSet(state)
    return [
        (_term(head.subject, binding), head.predicate, _term(head.object, binding))
        for rule in rules
        for head in rule.heads
        if isinstance(head.predicate, str) and is_clash(head.predicate)
        for binding in _solutions(_order(rule.body), known)
    ]


def plain_closure(rules: Sequence[ir.DatalogRule], triples: Collection[Triple]) -> set[Triple]:
    """As `closure`, of rules without NOT, AGGREGATE and BIND."""
    state = TripleSet(triples)
    _close(rules, state)
    return state.all


def _close(rules: Sequence[ir.DatalogRule], state: TripleSet) -> None:
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


def _order(body: Sequence[ir.BodyAtom]) -> list[ir.BodyAtom]:
    """Atoms over the schema, other atoms and aggregates as written, then each BIND after what it reads, then
    filters and NOT.
    """
    ordered: list[ir.BodyAtom] = [item for item in body if isinstance(item, ir.Atom | ir.AggregateAtom)]
    ordered.sort(key=lambda item: not (isinstance(item, ir.Atom) and is_schema(atom_relation(item))))
    binds = [item for item in body if isinstance(item, ir.BindAtom)]
    while binds:
        waiting = {bind.variable.name for bind in binds}
        ready = next(b for b in binds if not waiting & set(expression_variables(b.expression)))
        binds.remove(ready)
        ordered.append(ready)
    return ordered + [item for item in body if isinstance(item, ir.FilterAtom | ir.NotAtom)]


def _solutions(body: Sequence[ir.BodyAtom], state: TripleSet) -> list[Binding]:
    rows: list[Binding] = [{}]
    for item in body:
        rows = [extended for row in rows for extended in _extend(item, row, state)]
    return rows


def _extend(item: ir.BodyAtom, row: Binding, state: TripleSet) -> Iterable[Binding]:
    match item:
        case ir.Atom():
            return state.matches(item, row)
        case ir.NotAtom():
            return () if state.holds(item.atom, row) else (row,)
        case ir.FilterAtom():
            holds = compile_condition(item.condition, _leaf, clock=Clock(), reading=literally)
            return (row,) if holds(row) else ()
        case ir.BindAtom():
            value = compute(item.expression)(row)
            return () if value is None else ({**row, item.variable.name: value},)
        case ir.AggregateAtom():
            return _aggregated(item, row, state)


def _aggregated(item: ir.AggregateAtom, row: Binding, state: TripleSet) -> Iterator[Binding]:
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


def counted(item: ir.AggregateAtom, row: Binding, triples: Iterable[Triple]) -> tuple[list[Binding], bool]:
    """(the solutions that an AGGREGATE counts for the group of `row`, whether `row` has its totals)."""
    state = TripleSet(triples)
    group = {variable.name: row.get(variable.name) for variable in item.group}
    inner = _solutions(_order(item.body), state)
    members = [one for one in inner if all(one[name] == term for name, term in group.items())]
    names = [total.variable.name for total in item.totals]
    agrees = any(all(found.get(n) == row.get(n) for n in names) for found in _aggregated(item, row, state))
    return members, agrees


def compute(expression: ir.Expression) -> Getter:
    """A value from a binding; None where it is an error."""
    return compile_expression(expression, _leaf, clock=Clock(), reading=literally)


def _leaf(leaf: ir.Var | ir.Attribute | ir.TimeOf) -> Getter:
    if not isinstance(leaf, ir.Var):
        raise AssertionError("checked: Datalog has variables only")
    name = leaf.name
    return lambda row: row.get(name)


def _heads(rule: ir.DatalogRule, binding: Binding) -> Iterator[Triple]:
    """The heads under a binding; what is not a triple, or reports a clash, is not derived."""
    for head in rule.heads:
        s, p, o = (_term(node, binding) for node in (head.subject, head.predicate, head.object))
        if is_anonymous(p) or (is_iri(p) and not is_literal(s) and not is_clash(p)):
            yield s, p, o


def _term(node: ir.Node, binding: Binding) -> Term:
    return binding[node.name] if isinstance(node, ir.Var) else node

"""Checked Datalog rules: strata, clauses, and the statements that a change begins and ends.

Place:   lang/ calls check_rules; the reference and the materialiser call strata; the two runs of a program,
         over the background and at an instant, run clauses; maintenance.py and, row by row, retraction.py
         read statements.
Method:  stratified negation (Apt, Blair, Walker 1988) over relations: predicates, and classes for rdf:type. A
         stratum is the greatest number of NOT and AGGREGATE on a path down from a head. In clauses, an
         AGGREGATE becomes a relation of its own, filled when the strata below it are complete; the rest of a
         body is patterns, absences, filters and assignments, for the join kernel. Statements keep per
         relation the rows of the index that are only derived, so that stated rows that no rule derives cost
         nothing; and the statements that the open change begins and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.enrich.analysis import (
    READ_ALL,
    READ_TYPE,
    WRITE_ALL,
    WRITE_TYPE,
    Edge,
    atom_relation,
    check_safety,
    check_termination,
    components,
    edges_of,
    path,
    read_node,
    write_node,
)
from dotr.enrich.owl import instantiable, reads_equality
from dotr.errors import Diagnostic, Diagnostics
from dotr.expressions.evaluate import own_calls
from dotr.joins.plan import (
    ALL,
    AbsentPattern,
    Assign,
    BodyPattern,
    Item,
    Relation,
    RowFilter,
    class_relation,
    expression_variables,
    from_atom,
    from_body,
    is_aggregate,
    is_anonymous,
    is_class,
    relation_name,
)
from dotr.program import AggregateAtom, AggregateTerm, DatalogRule, Node, NotAtom, Var
from dotr.program.own_functions import OWN
from dotr.rdf.index import Background, Row, many
from dotr.rdf.mapped import damaged
from dotr.rdf.terms import RDF_TYPE, Term, Triple, is_literal

if TYPE_CHECKING:
    from dotr.enrich.expiration import UndoBounds

_HUBS = {READ_ALL, READ_TYPE, WRITE_ALL, WRITE_TYPE}


def check_rules(rules: Sequence[DatalogRule]) -> list[Diagnostic]:
    """Every error of rules that can be found without data, in source order of the checks.

    Rules that are instantiated over a schema skip the checks of recursion here; they are checked with the
    background (`check_recursion`).
    """
    found = Diagnostics()
    for rule in rules:
        check_safety(rule, found)
    instantiated = any(map(instantiable, rules))
    plain = [r for r in rules if not instantiable(r) and not (instantiated and reads_equality(r))]
    found.found += check_recursion(plain)
    return found.found


def check_recursion(rules: Sequence[DatalogRule]) -> list[Diagnostic]:
    """Report recursion through NOT, AGGREGATE or BIND, in rules as they will run (instantiated)."""
    found = Diagnostics()
    if any(map(_strict, rules)):
        _levels(rules, found)
    check_termination(rules, found)
    return found.found


class Strata(Struct, frozen=True):
    """`layers`: rules by stratum from 0, in program order inside one; a stratum may be empty.

    A rule with heads of several strata is split.
    """

    layers: tuple[tuple[DatalogRule, ...], ...]
    levels: Mapping[str, int]

    def level(self, relation: Relation) -> int:
        """The stratum that completes a relation; 0 if no rule derives it."""
        node = write_node(relation)
        found = self.levels.get(node)
        if found is None:
            hub = WRITE_TYPE if is_class(relation) and WRITE_TYPE in self.levels else WRITE_ALL
            found = self.levels.get(hub, 0)
        return found

    def reads_at(self, relation: Relation) -> int:
        """The stratum that completes everything a body atom over `relation` ranges over."""
        return self.levels.get(read_node(relation), self.level(relation))


def strata(rules: Sequence[DatalogRule]) -> list[list[DatalogRule]]:
    """Rules by stratum, lowest first; none is empty. Raises ProgramError if there are no strata."""
    return [list(layer) for layer in stratify(rules).layers if layer]


def stratify(rules: Sequence[DatalogRule]) -> Strata:
    """The strata of rules. Raises ProgramError if there are none."""
    if not any(map(_strict, rules)):
        return Strata((tuple(rules),), {})
    found = Diagnostics()
    levels = _levels(rules, found)
    found.raise_errors()
    layers: list[list[DatalogRule]] = [[] for _ in range(max(levels.values(), default=0) + 1)]
    for rule in rules:
        by_level: dict[int, list[int]] = {}
        for index, head in enumerate(rule.heads):
            by_level.setdefault(levels.get(write_node(atom_relation(head)), 0), []).append(index)
        for level, indices in by_level.items():
            heads = tuple(rule.heads[i] for i in indices)
            layers[level].append(rule if heads == rule.heads else replace(rule, heads=heads))
    return Strata(tuple(map(tuple, layers)), levels)


def _strict(rule: DatalogRule) -> bool:
    """Whether the rule must wait for a stratum below it."""
    return any(isinstance(item, NotAtom | AggregateAtom) for item in rule.body)


def _levels(rules: Sequence[DatalogRule], found: Diagnostics) -> dict[str, int]:
    edges = edges_of(rules)
    graph: dict[str, list[str]] = {}
    by_head: dict[str, list[Edge]] = {}
    for edge in edges:
        graph.setdefault(edge.head, []).append(edge.body)
        graph.setdefault(edge.body, [])
        by_head.setdefault(edge.head, []).append(edge)
    levels: dict[str, int] = {}
    for component in components(graph):
        members = set(component)
        level = 0
        reported = False
        for node in component:
            for edge in by_head.get(node, ()):
                if edge.body in members:
                    if edge.strict and not reported:
                        reported = True
                        _report(edge, rules, graph, members, found)
                else:
                    level = max(level, levels[edge.body] + bool(edge.strict))
        levels.update(dict.fromkeys(component, level))
    return levels


def _report(
    edge: Edge,
    rules: Sequence[DatalogRule],
    graph: dict[str, list[str]],
    members: set[str],
    found: Diagnostics,
) -> None:
    rule = rules[edge.rule]
    span = rule.span
    for item in rule.body:
        if isinstance(item, NotAtom | AggregateAtom) and (
            isinstance(item, NotAtom) == (edge.strict == "NOT")
        ):
            span = item.span or span
            break
    steps = path(graph, edge.body, edge.head, members)
    if any(step in (WRITE_ALL, WRITE_TYPE) for step in [edge.head, *steps]):
        writers = [
            r for r in rules if any(write_node(atom_relation(h)) in (WRITE_ALL, WRITE_TYPE) for h in r.heads)
        ]
        where = ", ".join(str(r.span) for r in writers[:3] if r.span is not None)
        found.error(
            "D3005",
            f"a rule with a variable predicate or class in its head cannot be combined with {edge.strict}",
            span,
            notes=(
                "such a rule may derive anything, so it depends on everything"
                + (f": {where}" if where else ""),
                "bind the variable by schema triples (rdfs:subPropertyOf, …) in its body",
            ),
        )
        return
    shown = [relation_name(step) for step in [edge.head, *steps] if step not in _HUBS]
    head, *rest = shown
    cycle = f"{head} ← {edge.strict} {' ← '.join(rest)}"
    found.error(
        "D3002" if edge.strict == "NOT" else "D3003",
        f"recursion through {edge.strict}: {head} depends on itself",
        span,
        notes=(f"the cycle: {cycle}",),
        hint="derive what is negated or counted without it",
    )


class Head(Struct, frozen=True):
    """`checked_subject`: it might be a literal; `checked_predicate`: it might not be an IRI.

    In these cases nothing is derived.
    """

    pattern: BodyPattern
    checked_subject: bool
    checked_predicate: bool


class Clause(Struct, frozen=True):
    """One rule of one stratum."""

    rule: DatalogRule
    heads: tuple[Head, ...]
    items: tuple[Item, ...]
    stratum: int

    @property
    def outputs(self) -> tuple[Node, ...]:
        """The columns of all heads, concatenated."""
        return tuple(node for head in self.heads for node in head.pattern.columns)


class AggregateClause(Struct, frozen=True):
    """An AGGREGATE as a relation: a row is the group's values, then the totals'. `stratum` fills it."""

    relation: Relation
    items: tuple[Item, ...]
    group: tuple[str, ...]
    totals: tuple[AggregateTerm, ...]
    stratum: int

    @property
    def arity(self) -> int:
        return len(self.group) + len(self.totals)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The distinct variables that the totals read."""
        names = (n for t in self.totals if t.argument is not None for n in expression_variables(t.argument))
        return tuple(dict.fromkeys(names))


class Clauses(Struct, frozen=True):
    """`layers[k]` and `aggregations[k]` belong to stratum k."""

    layers: tuple[tuple[Clause, ...], ...]
    aggregations: tuple[tuple[AggregateClause, ...], ...]
    strata: Strata

    def level(self, relation: Relation) -> int:
        """The stratum that completes a relation, aggregates included."""
        if is_aggregate(relation):
            return next(a.stratum for a in self.all_aggregations if a.relation == relation)
        return self.strata.level(relation)

    @property
    def all(self) -> list[Clause]:
        return [clause for layer in self.layers for clause in layer]

    @property
    def calls(self) -> bool:
        """Whether one of them calls functions of one's own."""
        if not OWN:
            return False
        items = [item for clause in self.all for item in clause.items]
        items += [item for aggregation in self.all_aggregations for item in aggregation.items]
        tests = [item.condition for item in items if isinstance(item, RowFilter)]
        tests += [item.expression for item in items if isinstance(item, Assign)]
        totals = [total.argument for aggregation in self.all_aggregations for total in aggregation.totals]
        return any(map(own_calls, [*tests, *(argument for argument in totals if argument is not None)]))

    @property
    def all_aggregations(self) -> list[AggregateClause]:
        return [aggregation for layer in self.aggregations for aggregation in layer]


def without(clauses: Iterable[Clause], others: Iterable[Clause]) -> list[Clause]:
    """Clauses that are not among others, compared head by head, since strata may split a rule differently."""
    known = {(clause.rule.body, head) for clause in others for head in clause.rule.heads}
    return [c for c in clauses if any((c.rule.body, head) not in known for head in c.rule.heads)]


def translate(strata: Strata, before: Sequence[DatalogRule] = ()) -> Clauses:
    """All rules, aggregates extracted. Equal aggregates share a relation.

    Aggregates are numbered as they appear in `before`, then in the strata, so that added rules do not rename
    a program's aggregates.
    """
    rules = (*before, *(rule for layer in strata.layers for rule in layer))
    atoms = dict.fromkeys(i for rule in rules for i in rule.body if isinstance(i, AggregateAtom))
    numbers = {atom: number for number, atom in enumerate(atoms)}
    known: dict[AggregateAtom, AggregateClause] = {}
    layers = tuple(
        tuple(_clause(rule, stratum, known, numbers, strata) for rule in layer)
        for stratum, layer in enumerate(strata.layers)
    )
    found: list[list[AggregateClause]] = [[] for _ in layers]
    for aggregation in known.values():
        found[aggregation.stratum].append(aggregation)
    return Clauses(layers, tuple(map(tuple, found)), strata)


def _clause(
    rule: DatalogRule,
    stratum: int,
    known: dict[AggregateAtom, AggregateClause],
    numbers: Mapping[AggregateAtom, int],
    strata: Strata,
) -> Clause:
    items: list[Item] = []
    for item in rule.body:
        if isinstance(item, AggregateAtom):
            aggregation = known.get(item)
            if aggregation is None:
                aggregation = known[item] = _aggregation(item, numbers[item], strata)
            columns = (*item.group, *(total.variable for total in item.totals))
            items.append(BodyPattern(aggregation.relation, columns))
        else:
            items.append(from_body(item))
    subjects, predicates = _safe_variables(items)
    heads = []
    for atom in rule.heads:
        pattern = from_atom(atom)
        any_subject = is_anonymous(pattern.relation)
        if not isinstance(atom.subject, Var) and is_literal(atom.subject) and not any_subject:
            continue
        checked = isinstance(atom.subject, Var) and atom.subject.name not in subjects and not any_subject
        loose = pattern.relation == ALL and isinstance(atom.predicate, Var)
        heads.append(Head(pattern, checked, loose and _name(atom.predicate) not in predicates))
    return Clause(rule, tuple(heads), tuple(items), stratum)


def _name(node: Node) -> str:
    return node.name if isinstance(node, Var) else ""


def _aggregation(item: AggregateAtom, number: int, strata: Strata) -> AggregateClause:
    items = tuple(from_body(inner) for inner in item.body)
    patterns = [inner.pattern if isinstance(inner, AbsentPattern) else inner for inner in items]
    below = [strata.reads_at(p.relation) for p in patterns if isinstance(p, BodyPattern)]
    group = tuple(variable.name for variable in item.group)
    return AggregateClause(f"agg {number}", items, group, item.totals, max(below, default=-1) + 1)


def _safe_variables(items: Sequence[Item]) -> tuple[set[str], set[str]]:
    """Variables bound by a subject column (no literals), and by a predicate column (IRIs)."""
    subjects: set[str] = set()
    predicates: set[str] = set()
    for item in items:
        if isinstance(item, BodyPattern) and not (is_aggregate(item.relation) or is_anonymous(item.relation)):
            first = item.columns[0]
            if isinstance(first, Var):
                subjects.add(first.name)
            if item.relation == ALL and isinstance(item.columns[1], Var):
                predicates.add(item.columns[1].name)
    return subjects | predicates, predicates


class Statements(Struct, eq=False):
    """Owns the statements of one relation, by keys of rows.

    `derived`: rows of the index that are not stated; `begun` and `ended`: statements of the open change.
    """

    relation: Relation
    derived: set[Row] = field(default_factory=set)
    begun: dict[Row, None] = field(default_factory=dict)
    ended: dict[Row, None] = field(default_factory=dict)

    def test(self) -> Callable[[Row], bool]:
        """Whether a row of the index is stated, with the open change."""
        derived, begun, ended = self.derived, self.begun, self.ended
        return lambda key: (key not in derived and key not in ended) or key in begun


class Step(NamedTuple):
    """What a change did to one relation, by keys of rows: rows added and removed, and rows that are only
    derived since then (`marked`) or were before (`unmarked`).
    """

    relation: Relation
    added: Collection[Row]
    removed: Collection[Row]
    marked: Collection[Row] = ()
    unmarked: Collection[Row] = ()


class Undo(NamedTuple):
    """How to undo a change of the index, and the bounds of its rows."""

    steps: list[Step]
    bounds: UndoBounds | None = None


def place_of(triple: Triple) -> tuple[Relation, Row]:
    """The narrowest relation of a triple, and the key of its row."""
    subject, predicate, object_ = triple
    if predicate == RDF_TYPE:
        return class_relation(object_), subject
    return predicate, (subject, object_)


def row_of(key: Row) -> tuple[Term, ...]:
    """The columns of a row from its key."""
    return key if isinstance(key, tuple) else (key,)


def triples_in(index: Background, of: Callable[[Relation], bool]) -> Iterator[Triple]:
    """The triples of an index that are in some relations."""
    for predicate, column in list(index.forward.items()):
        if predicate == RDF_TYPE:
            for class_, members in list(index.backward.get(RDF_TYPE, {}).items()):
                if of(class_relation(class_)):
                    yield from ((member, RDF_TYPE, class_) for member in many(members))
        elif of(predicate):
            yield from ((s, predicate, o) for s, objects in column.items() for o in many(objects))


class Marks:
    """Owns the statements of every relation of an index; those saved are read on first use of a relation.

    `saved`: relation → a bit for each of its rows, in the order of `rows_in_order`: whether it is derived.
    """

    def __init__(self, index: Background, saved: Mapping[Relation, bytes] | None = None) -> None:
        self._index = index
        self._known: dict[Relation, Statements] = {}
        self._saved = dict(saved or {})

    def get(self, relation: Relation) -> Statements | None:
        """The statements of a relation, if any are known; before its rows change."""
        found = self._known.get(relation)
        if found is None and relation in self._saved:
            return self.of(relation)
        return found

    def of(self, relation: Relation) -> Statements:
        """The statements of a relation, always the same object; before its rows change. Raises EngineError
        D5101 where what was saved is of other rows.
        """
        found = self._known.get(relation)
        if found is None:
            found = self._known[relation] = Statements(relation)
            bits = self._saved.pop(relation, None)
            if bits is not None:
                rows = rows_in_order(self._index, relation)
                if len(bits) != len(rows) + 7 >> 3:
                    raise damaged()
                found.derived.update(row for i, row in enumerate(rows) if bits[i >> 3] >> (i & 7) & 1)
        return found

    def states(self, triple: Triple) -> bool:
        """Whether a triple of the index is stated, before its rows change."""
        relation, key = place_of(triple)
        known = self.get(relation)
        return known is None or key not in known.derived

    def derived(self) -> int:
        """The number of only derived rows of the index. O(relations)."""
        saved = sum(int.from_bytes(bits, "little").bit_count() for bits in self._saved.values())
        return saved + sum(len(statements.derived) for statements in self._known.values())

    def save(self, order: Background) -> dict[Relation, bytes]:
        """The value of `saved` for `order`: the same index as its next owner will have it."""
        if order is not self._index and not self._index.mapped:
            for relation in list(self._saved):
                self.of(relation)  # in another order
        found = dict(self._saved)
        for relation, statements in self._known.items():
            if statements.derived:
                derived = statements.derived
                found[relation] = _bits(row in derived for row in rows_in_order(order, relation))
        return found


def rows_in_order(index: Background, relation: Relation) -> list[Row]:
    """The keys of a relation's rows, in an order that saving and loading the index keeps: subjects with one
    value in order of insertion (in a file: of position), then those with several.
    """
    if is_class(relation):
        return sorted(many(index.backward.get(RDF_TYPE, {}).get(relation[2:])))
    column = index.forward.get(relation, {})
    found: list[Row] = [(key, value) for key, value in column.items() if value.__class__ is str]
    for key, values in column.items():
        if values.__class__ is not str:
            found += [(key, value) for value in sorted(values)]
    return found


def _bits(flags: Iterable[bool]) -> bytes:
    text = "".join("1" if flag else "0" for flag in flags)
    return int(text[::-1] or "0", 2).to_bytes((len(text) + 7) // 8, "little")

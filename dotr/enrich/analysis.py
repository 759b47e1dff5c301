"""Analysis of Datalog rules: safety, the dependency graph, termination, and what no query reaches.

Place:   rules.py runs the checks; materialiser.py prunes before anything is closed, and `dotr plan` prints
         what it dropped.
Method:  safety: is every variable bound by something? (language.md, section 4) Range restriction (Ullman
         1988): positive atoms and aggregates bind; a BIND binds once everything it reads is bound; heads and
         filters only read; a variable that only a NOT mentions is existential in it.
         Dependency graph, for strata and its strongly connected components: a node per relation (predicate,
         or class for rdf:type) and hubs for atoms with a variable predicate or class: reading hubs depend on
         every relation they range over; every relation depends on the writing hubs that may derive it.
         Components by Tarjan (1972), without recursion.
         Termination: whether a value computed by BIND flows back into what it is computed from. Weak
         acyclicity (Fagin, Kolaitis, Miller, Popa 2005) over columns of relations: a variable copies from the
         columns of its body atoms to its head column; BIND makes new values from the columns it reads. A
         cycle with such an edge may not terminate and is refused; without one the closure is finite.
         Pruning: rules and background that no query reaches are left out, backwards from the relations that
         queries read, through heads to bodies, to a fixpoint.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dotr import program
from dotr.errors import Diagnostics
from dotr.joins.paths import StrongComponents
from dotr.joins.plan import (
    ALL,
    Relation,
    atom_variables,
    class_relation,
    columns_of,
    expression_variables,
    is_anonymous,
    is_class,
    relation_name,
    relation_of,
)
from dotr.program import AggregateAtom, Atom, BindAtom, Const, DatalogRule, Expression, NotAtom, Var
from dotr.rdf.terms import RDF_TYPE, Triple, is_literal
from dotr.source import Span

# A closed background has no time, and K(t) must not depend on who computes it.
_REFUSED = frozenset({"NOW", "RAND", "UUID", "STRUUID", "BNODE"})


def check_safety(rule: program.DatalogRule, found: Diagnostics) -> None:
    """Report unsafe variables, variables bound twice, and terms in invalid places."""
    bound = _bound_by(rule.body, found)
    for head in rule.heads:
        for name in atom_variables(head):
            if name not in bound:
                _unsafe(name, "the head", head.span or rule.span, rule, bound, found)
        _check_terms(head, True, found)


def _bound_by(body: Sequence[program.BodyAtom], found: Diagnostics) -> set[str]:
    bound: set[str] = set()
    for item in body:
        if isinstance(item, program.Atom):
            bound.update(atom_variables(item))
            _check_terms(item, False, found)
        elif isinstance(item, program.NotAtom):
            _check_terms(item.atom, False, found)
        elif isinstance(item, program.AggregateAtom):
            _check_aggregate(item, found)
            bound.update(v.name for v in item.group)
            bound.update(t.variable.name for t in item.totals)
    _check_binds([item for item in body if isinstance(item, program.BindAtom)], body, bound, found)
    for item in body:
        if isinstance(item, program.FilterAtom):
            check_functions(item.condition, item.span, found)
            for name in expression_variables(item.condition):
                if name not in bound:
                    _unsafe(name, "FILTER", item.span, None, bound, found)
    return bound


def _check_binds(
    binds: list[program.BindAtom], body: Sequence[program.BodyAtom], bound: set[str], found: Diagnostics
) -> None:
    for bind in binds:
        check_functions(bind.expression, bind.span, found)
        if bind.variable.name in bound:
            bound_twice(bind.variable.name, bind.span, found)
    left = [bind for bind in binds if bind.variable.name not in bound]
    progress = True
    while progress:
        progress = False
        for bind in list(left):
            if all(name in bound for name in expression_variables(bind.expression)):
                left.remove(bind)
                progress = True
                if bind.variable.name in bound:
                    bound_twice(bind.variable.name, bind.span, found)
                bound.add(bind.variable.name)
    targets = {bind.variable.name for bind in left}
    for bind in left:
        missing = [name for name in expression_variables(bind.expression) if name not in bound]
        for name in missing:
            if name not in targets:
                _unsafe(name, "BIND", bind.span, None, bound, found)
        if all(name in targets for name in missing):
            found.error(
                "D3001",
                f"unsafe rule: `?{bind.variable.name}` is computed from itself",
                bind.span,
                notes=("each of these BINDs waits for another one: " + _names(targets),),
            )
    bound.update(targets)  # reported once


def _check_aggregate(item: program.AggregateAtom, found: Diagnostics) -> None:
    inner = _bound_by(item.body, found)
    for variable in item.group:
        if variable.name not in inner:
            _unsafe(variable.name, "ON", variable.span or item.span, None, inner, found)
    seen: set[str] = set()
    for total in item.totals:
        name = total.variable.name
        if name in inner or name in seen:
            bound_twice(name, total.variable.span or item.span, found)
        seen.add(name)
        if total.argument is not None:
            check_functions(total.argument, item.span, found)
            for used in expression_variables(total.argument):
                if used not in inner:
                    _unsafe(used, f"{total.function}", item.span, None, inner, found)


def _check_terms(atom: program.Atom, head: bool, found: Diagnostics) -> None:
    if not isinstance(atom.subject, program.Var) and is_literal(atom.subject):
        message = "a literal cannot be a subject"
        if head:
            found.error("D3009", message, atom.span, atom.subject, "swap subject and object")
        else:
            found.warning("D3009", message + ": this atom never holds", atom.span, atom.subject)
    if not isinstance(atom.predicate, program.Var) and is_literal(atom.predicate):
        found.error("D3009", "a predicate must be an IRI", atom.span, atom.predicate)


class Language(NamedTuple):
    """A language of rules without clock and chance: the code of an expression that it does not allow, its
    name, the reason, and what to write instead of EXISTS and of an aggregate.
    """

    code: str
    name: str
    why: str
    exists: str
    aggregate: str


_DATALOG: Final = Language(
    "D3008",
    "Datalog",
    "what the background entails must not depend on when or where it is computed",
    "write NOT atom, or AGGREGATE(…)",
    "write NOT atom, or AGGREGATE(…)",
)


def check_functions(
    expression: program.Expression, span: Span | None, found: Diagnostics, language: Language = _DATALOG
) -> None:
    """Report the parts of an expression that a language of rules does not allow."""
    todo: list[program.Expression] = [expression]
    while todo:
        part = todo.pop()
        if isinstance(part, program.Call):
            if part.function in _REFUSED:
                message = f"`{part.function}` is not allowed in {language.name}"
                found.error(language.code, message, part.span or span, notes=(language.why,))
            todo.extend(part.arguments)
        elif isinstance(part, program.Exists | program.Aggregate | program.Attribute | program.TimeOf):
            hint = language.exists if isinstance(part, program.Exists) else ""
            hint = language.aggregate if isinstance(part, program.Aggregate) else hint
            message = f"this expression is not allowed in {language.name}"
            found.error(language.code, message, part.span or span, hint=hint)


def _unsafe(
    name: str,
    where: str,
    span: Span | None,
    rule: program.DatalogRule | None,
    bound: Iterable[str],
    found: Diagnostics,
) -> None:
    notes = ["a variable must be bound by an atom that is not negated, by BIND, or by AGGREGATE"]
    if rule is not None and any(
        isinstance(i, program.NotAtom) and name in atom_variables(i.atom) for i in rule.body
    ):
        notes.append(f"`?{name}` occurs only in a NOT, which binds nothing")
    found.error(
        "D3001", f"unsafe rule: `?{name}` of {where} is not bound", span, "", near(name, bound), notes
    )


def bound_twice(name: str, span: Span | None, found: Diagnostics, code: str = "D3007") -> None:
    hint = f"use a new variable and compare: FILTER(?new = ?{name})"
    found.error(code, f"`?{name}` already has a value", span, hint=hint)


def near(name: str, known: Iterable[str]) -> str:
    """A hint that names the most similar variable; "" if none is similar."""
    close = get_close_matches(name, sorted(known), 1)
    return f"did you mean `?{close[0]}`?" if close else ""


def _names(names: Iterable[str]) -> str:
    return " ".join(f"?{name}" for name in sorted(names))


READ_ALL, READ_TYPE = "read " + ALL, "read a"
WRITE_ALL, WRITE_TYPE = "write " + ALL, "write a"

GraphNode = TypeVar("GraphNode", bound=Hashable)


class Edge(Struct, frozen=True):
    """The head relation depends on the body relation; `strict` is "NOT", "AGGREGATE" or ""."""

    head: str
    body: str
    strict: str
    rule: int


def atom_relation(atom: Atom) -> Relation:
    return relation_of(atom.subject, atom.predicate, atom.object)


def read_node(relation: Relation) -> str:
    """The node a body atom over `relation` depends on."""
    return READ_ALL if relation == ALL else READ_TYPE if relation == RDF_TYPE else relation


def write_node(relation: Relation) -> str:
    """The node a head over `relation` belongs to."""
    return WRITE_ALL if relation == ALL else WRITE_TYPE if relation == RDF_TYPE else relation


def reads(rule: DatalogRule) -> list[tuple[Relation, str]]:
    """(relation, "" | "NOT" | "AGGREGATE") of every atom in the body, aggregates' bodies included."""
    found: list[tuple[Relation, str]] = []
    for item in rule.body:
        if isinstance(item, Atom):
            found.append((atom_relation(item), ""))
        elif isinstance(item, NotAtom):
            found.append((atom_relation(item.atom), "NOT"))
        elif isinstance(item, AggregateAtom):
            for inner in item.body:
                if isinstance(inner, Atom):
                    found.append((atom_relation(inner), "AGGREGATE"))
                elif isinstance(inner, NotAtom):
                    found.append((atom_relation(inner.atom), "AGGREGATE"))
    return found


def edges_of(rules: Sequence[DatalogRule]) -> list[Edge]:
    """All edges, hubs included. O(atoms + relations)."""
    edges: dict[Edge, None] = {}
    relations: dict[Relation, None] = {}
    for index, rule in enumerate(rules):
        body = reads(rule)
        relations.update((relation, None) for relation, _ in body)
        for head in rule.heads:
            relation = atom_relation(head)
            relations[relation] = None
            for read, strict in body:
                edges[Edge(write_node(relation), read_node(read), strict, index)] = None
    derived = {atom_relation(head) for rule in rules for head in rule.heads}
    hubs: list[tuple[str, str]] = []
    for relation in relations:
        if relation in (ALL, RDF_TYPE) or is_anonymous(relation):
            continue
        if ALL in derived:
            hubs.append((relation, WRITE_ALL))
        if is_class(relation):
            hubs.append((READ_TYPE, relation))
            if RDF_TYPE in derived:
                hubs.append((relation, WRITE_TYPE))
        else:
            hubs.append((READ_ALL, relation))
    hubs.append((READ_ALL, READ_TYPE))
    if RDF_TYPE in derived:
        # A clause that keeps a variable class in its head depends on everything (language.md, section 4).
        hubs += [(READ_TYPE, WRITE_TYPE), (WRITE_TYPE, READ_ALL)]
    if ALL in derived:
        hubs += [(READ_TYPE, WRITE_ALL), (READ_ALL, WRITE_ALL), (WRITE_ALL, READ_ALL)]
    edges.update((Edge(head, body, "", -1), None) for head, body in hubs)
    return list(edges)


def components(graph: Mapping[GraphNode, Sequence[GraphNode]]) -> list[list[GraphNode]]:
    """Strongly connected components, successors first; otherwise in order of first appearance."""
    found = StrongComponents[GraphNode](lambda node: graph.get(node, ()))
    for node in graph:
        found.of(node)
    return [members[::-1] for members in found.members]


def path(
    graph: Mapping[GraphNode, Sequence[GraphNode]], start: GraphNode, end: GraphNode, within: set[GraphNode]
) -> list[GraphNode]:
    """A shortest path inside `within`, both ends included; `[start]` if they are one; [] if there is none."""
    came: dict[GraphNode, GraphNode | None] = {start: None}
    todo = [start]
    for node in todo:
        if node == end:
            steps = [node]
            while (before := came[steps[-1]]) is not None:
                steps.append(before)
            return steps[::-1]
        for target in graph.get(node, ()):
            if target in within and target not in came:
                came[target] = node
                todo.append(target)
    return []


_Place = tuple[str, str]  # (relation, column s|p|o)
_READ, _WRITE = "read ", "write "


def check_termination(rules: Sequence[DatalogRule], found: Diagnostics) -> None:
    """Report every rule whose BIND lies on a cycle. O(rules) without a BIND."""
    if not any(isinstance(item, BindAtom) for rule in rules for item in rule.body):
        return
    graph: dict[_Place, dict[_Place, None]] = {}
    made: list[tuple[_Place, _Place, int, BindAtom]] = []
    relations: dict[Relation, None] = {}
    for index, rule in enumerate(rules):
        _add_rule(rule, index, graph, made, relations)
    _add_unions(relations, graph)
    flow = {place: list(targets) for place, targets in graph.items()}
    component_of: dict[_Place, int] = {}
    for number, component in enumerate(components(flow)):
        component_of.update(dict.fromkeys(component, number))
    reported: set[int] = set()
    for source, target, index, bind in made:
        if component_of[source] == component_of[target] and index not in reported:
            reported.add(index)
            relation = relation_name(target[0].removeprefix(_WRITE))
            found.error(
                "D3004",
                f"BIND in a recursive rule: `?{bind.variable.name}` feeds the values it is computed from",
                bind.span or rules[index].span,
                notes=(f"new values for {relation} make further ones: this may not terminate",),
            )


def _add_rule(
    rule: DatalogRule,
    index: int,
    graph: dict[_Place, dict[_Place, None]],
    made: list[tuple[_Place, _Place, int, BindAtom]],
    relations: dict[Relation, None],
) -> None:
    places: dict[str, list[_Place]] = {}
    for item in rule.body:
        if isinstance(item, Atom):
            relations[atom_relation(item)] = None
            for name, place in _places(item, _READ):
                places.setdefault(name, []).append(place)
    binds = {item.variable.name: item for item in rule.body if isinstance(item, BindAtom)}
    for head in rule.heads:
        relations[atom_relation(head)] = None
        for name, target in _places(head, _WRITE):
            for source in places.get(name, ()):
                graph.setdefault(source, {})[target] = None
                graph.setdefault(target, {})
            if name in binds:
                bind = binds[name]
                for used, copied in _sources(bind.expression, binds):
                    for source in places.get(used, ()):
                        graph.setdefault(source, {})[target] = None
                        graph.setdefault(target, {})
                        if not copied:
                            made.append((source, target, index, bind))


def _sources(expression: Expression, binds: dict[str, BindAtom]) -> list[tuple[str, bool]]:
    """Variables a value is computed from, through other BINDs; True where it is only copied."""
    found: list[tuple[str, bool]] = []
    todo: list[tuple[Expression, bool]] = [(expression, True)]
    seen: set[str] = set()
    while todo:
        part, copied = todo.pop()
        if isinstance(part, Const):
            continue
        copied = copied and isinstance(part, Var)
        for name in expression_variables(part):
            found.append((name, copied))
            if name in binds and name not in seen:
                seen.add(name)
                todo.append((binds[name].expression, copied))
    return found


def _places(atom: Atom, side: str) -> list[tuple[str, _Place]]:
    relation = atom_relation(atom)
    columns = columns_of(atom.subject, atom.predicate, atom.object)
    names = ("s",) if len(columns) == 1 else ("s", "o") if len(columns) == 2 else ("s", "p", "o")
    union = side if relation in (ALL, RDF_TYPE) else ""
    return [
        (node.name, (union + relation, column))
        for node, column in zip(columns, names, strict=True)
        if isinstance(node, Var)
    ]


def _add_unions(relations: dict[Relation, None], graph: dict[_Place, dict[_Place, None]]) -> None:
    def copy(source: _Place, target: _Place) -> None:
        graph.setdefault(source, {})[target] = None
        graph.setdefault(target, {})

    for column in "so":
        copy((_READ + RDF_TYPE, column), (_READ + ALL, column))
        copy((_WRITE + RDF_TYPE, column), (_READ + RDF_TYPE, column))
        copy((_WRITE + ALL, column), (_READ + ALL, column))
        copy((_WRITE + ALL, column), (_READ + RDF_TYPE, column))
    copy((_WRITE + ALL, "p"), (_READ + ALL, "p"))
    for relation in relations:
        if relation in (ALL, RDF_TYPE) or is_anonymous(relation):
            continue
        if is_class(relation):
            copy((relation, "s"), (_READ + RDF_TYPE, "s"))
            copy((_WRITE + RDF_TYPE, "s"), (relation, "s"))
            copy((_WRITE + ALL, "s"), (relation, "s"))
        else:
            for column in "so":
                copy((relation, column), (_READ + ALL, column))
                copy((_WRITE + ALL, column), (relation, column))


class RelationsRead(Struct, frozen=True):
    """Rules that some query reaches, without unreached heads; relations that they and queries read."""

    rules: tuple[DatalogRule, ...]
    relations: frozenset[Relation]

    def keeps(self, triple: Triple) -> bool:
        """Whether the triple is in one of the relations."""
        _, predicate, object_ = triple
        relations = self.relations
        if ALL in relations or predicate in relations:
            return True
        return predicate == RDF_TYPE and class_relation(object_) in relations


def reach(rules: Sequence[DatalogRule], needed: Iterable[Relation]) -> RelationsRead:
    """The part of a program that `needed` depends on. O(atoms)."""
    by_head: dict[Relation, list[int]] = {}
    for index, rule in enumerate(rules):
        for head in rule.heads:
            by_head.setdefault(atom_relation(head), []).append(index)
    relations: dict[Relation, None] = {}
    alive: set[int] = set()
    todo = list(dict.fromkeys(needed))
    while todo:
        relation = todo.pop()
        if relation in relations:
            continue
        relations[relation] = None
        for answering in _answering(relation, by_head):
            for index in by_head.pop(answering, ()):
                if index not in alive:
                    alive.add(index)
                    todo += [read for read, _ in reads(rules[index])]
    kept = frozenset(relations)
    return RelationsRead(tuple(_with_heads(rules[i], kept) for i in sorted(alive)), kept)


def _with_heads(rule: DatalogRule, needed: frozenset[Relation]) -> DatalogRule:
    if ALL in needed:
        return rule
    heads = tuple(head for head in rule.heads if _answers(atom_relation(head), needed))
    return rule if heads == rule.heads else replace(rule, heads=heads)


def _answering(relation: Relation, by_head: dict[Relation, list[int]]) -> list[Relation]:
    """Relations of heads that may derive a row of `relation`."""
    if relation == ALL:
        return list(by_head)
    if relation == RDF_TYPE:
        return [head for head in by_head if head in (ALL, RDF_TYPE) or is_class(head)]
    if is_anonymous(relation):
        return [relation]
    return [relation, RDF_TYPE, ALL] if is_class(relation) else [relation, ALL]


def _answers(head: Relation, needed: frozenset[Relation]) -> bool:
    if head in needed or ALL in needed or (head == ALL and needed):
        return True
    if is_class(head):
        return RDF_TYPE in needed
    return head == RDF_TYPE and any(is_class(relation) for relation in needed)

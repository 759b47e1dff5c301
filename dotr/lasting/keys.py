"""Divides what lasts by key: which triples go to the part of their subject's or object's key, which to all.

Place:   pure; batch/stream.py asks it for the parts of a distributed stream. Each part then is a run of its
         own over its share of the graphs (LastingRun), with all of the background.
Method:  as queries over distributed RDF are local to a partition by subject or object if all patterns share
         a variable there. Rules have a key as elsewhere (detect/partitioning.py): an attribute per stream.
         In the query of a stream this is a variable; where a triple pattern has it, the relation of the
         pattern has its key, as far as all patterns of all queries agree; other relations are copied: each
         part has all of their triples. Demands go on through Datalog rules, from heads to bodies: of a head
         with a key every atom has the key or is copied; of a copied head all atoms are copied.
         A part then has the answers of its keys, since these depend on triples of these keys and copied ones.
         (By induction over a pattern: solutions with the key k, and those without the variable, are the same
         over the triples of k and the copied ones as over all. OPTIONAL, MINUS and EXISTS keep that only if
         what stands before them always binds the variable; otherwise what is inside is copied.) Answers of
         other keys, which the background or copied triples have there, are dropped by their keys.
         Instants: queries that rules read are evaluated when a graph comes, a change is reported, or an AFTER
         is due. With changes, or an AFTER, every other query must therefore need a triple that only a graph
         has: then it has no facts at instants that other keys make. Otherwise its parts get every instant
         with a graph. So they do where effects may lead to effects of the same rule: how many may follow each
         other is counted from graph to graph, of any key.
         Effects state and end triples of their events' keys only.
Why not: a closed model in one place with queries divided: every change of it would go to all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias, assert_never

from dotr.detect.partitioning import (
    KeyColumn,
    RelationKeys,
    RuleComponentGroup,
    connected,
    key_columns,
    no_key,
    unlinked,
)
from dotr.joins.plan import Relation, class_relation, is_class, relation_of
from dotr.program import (
    After,
    AggregateAtom,
    Atom,
    Attribute,
    Entailment,
    NotAtom,
    Program,
    RelationToStream,
    Rule,
    Select,
    StandingQuery,
    TemplateVar,
    Tick,
    Var,
)
from dotr.program.queries import (
    Aggregate,
    Alternative,
    Bind,
    Call,
    DatalogRule,
    Exists,
    Expression,
    Filter,
    GroupPattern,
    Inverse,
    Minus,
    Node,
    OptionalGroup,
    Path,
    Repeat,
    SubSelect,
    TriplePattern,
    Triples,
    Union,
    Values,
)
from dotr.program.queries import Sequence as PathSequence
from dotr.program.rules import PatternTriple, TemplateTriple
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import RDF_TYPE, Triple

SUBJECT, OBJECT = 0, 1

Places: TypeAlias = frozenset[int]
"""Where a key may be in the triples of a relation; empty: nowhere, so that all are copied."""

COPIED: Final[Places] = frozenset()
_ANYWHERE: Final = frozenset((SUBJECT, OBJECT))
_TRIED = 256
"""How many keys of a component are tried."""


class UndividedError(Exception):
    """Why something cannot be divided by a key."""


def divided(program: Program, background: Callable[[], Collection[Triple]]) -> RuleComponentGroup | str:
    """All rules as one group with a key, or why what lasts cannot be divided.

    `background` is read if the rules do not settle the question. Cost: that of the search of keys, and a look
    at every triple of the background.
    """
    try:
        return _divided(program, background)
    except UndividedError as found:
        return str(found)


def _divided(program: Program, background: Callable[[], Collection[Triple]]) -> RuleComponentGroup:
    _refuse_others(program)
    read = (position for rule in program.rules for position in rule.positions)
    streams = list(dict.fromkeys(position.stream for position in read if not position.within_instant))
    asked = {name: program.selects[name] for name in streams}
    demands: dict[str, dict[int, list[_Demand]]] = {}
    for name, select in asked.items():
        demands[name] = _keys_of_query(name, select)
    keys: dict[str, int] = {}
    relations = _Relations(program)
    for rules in connected(program):
        keys, relations = _with_component(program, rules, demands, keys, relations)
    late = any(isinstance(rule.trigger, After | RowPattern) for rule in program.rules)
    always = _answering_alone(program, asked, background())
    if always and (late or program.standing):
        why = "an AFTER or a SEQUENCE" if late else "ISTREAM or DSTREAM"
        raise UndividedError(
            f"what lasts alone answers `{always[0]}`, which is read at all instants, and {why} makes "
            "instants of its own for each key"
        )
    return RuleComponentGroup(
        0,
        tuple(range(len(program.rules))),
        frozenset(name for name in streams if name in program.queries),
        {stream: (place,) for stream, place in keys.items()},
        None,
        frozenset(),
        late=late,
        sees_all=late or bool(always) or _in_circles(program, demands),
        relations=relations.chosen(),
    )


def stated(program: Program) -> frozenset[Relation] | None:
    """The relations that graphs or events may change from instant to instant; None: all."""
    found: set[Relation] = set()
    for hold in program.holds:
        if hold.class_ is not None:
            found.add(class_relation(hold.class_))
        elif hold.predicate is not None:
            found.add(hold.predicate)
        else:
            return None
    return frozenset(found.union(*map(_changed, program.rules)))


def _changed(rule: Rule) -> set[Relation]:
    """The relations of what a rule's events state or end."""
    return {*map(_relation_stated, rule.inserts), *map(_relation_stated, rule.deletes)}


def _in_circles(program: Program, demands: Mapping[str, Mapping[int, Sequence[_Demand]]]) -> bool:
    """Whether events of a rule may have effects that lead to events of it."""
    leads: dict[str, set[str]] = {}  # relations, ends of theirs, streams, and rules → what depends on them
    for name, found in demands.items():
        ends = name in program.standing and _may_begin_with_an_end(program.standing[name])
        for relation in {_predicate(relation) for some in found.values() for relation, _ in some}:
            for node in (relation, f"end {relation}") if ends else (relation,):
                leads.setdefault(node, set()).add(f"of {name}")
    for one in program.datalog:
        atoms = [_predicate(relation_of(a.subject, a.predicate, a.object)) for a in _atoms_of(one)]
        heads = [node for head in atoms[: len(one.heads)] for node in (head, f"end {head}")]
        for relation in atoms:
            leads.setdefault(relation, set()).update(heads)
            leads.setdefault(f"end {relation}", set()).update(heads)
    effects = {
        rule.name: [_predicate(_relation_stated(one)) for one in rule.inserts]
        + [f"end {_predicate(_relation_stated(one))}" for one in rule.deletes]
        for rule in program.rules
    }
    for rule in program.rules:
        for position in rule.positions:
            leads.setdefault(f"of {position.stream}", set()).add(f"of {rule.name}")
        leads.setdefault(f"of {rule.name}", set()).update(effects[rule.name])
    for name, todo in effects.items():
        seen: set[str] = set()
        while todo:
            if (node := todo.pop()) not in seen:
                seen.add(node)
                todo += leads.get(node, ())
        if f"of {name}" in seen:
            return True
    return False


def _may_begin_with_an_end(standing: StandingQuery) -> bool:
    """Whether the end of a triple may be reported by a DSTREAM, or an ISTREAM."""
    select = standing.select
    return standing.operator is not RelationToStream.ISTREAM or bool(
        select.group_by or select.having or not _only_adds(select.where)
    )


def _only_adds(group: GroupPattern) -> bool:
    """Whether more triples never end a solution, as far as it shows."""
    for element in group.elements:
        match element:
            case Triples() | Values():
                continue
            case Filter(condition=expression) | Bind(expression=expression):
                added = not _has(expression, Exists)
            case Union(branches=branches):
                added = all(map(_only_adds, branches))
            case GroupPattern():
                added = _only_adds(element)
            case _:
                added = False
        if not added:
            return False
    return True


def _predicate(relation: Relation) -> Relation:
    """That of a class or of all classes: the predicate."""
    return RDF_TYPE if is_class(relation) else relation


def _relation_stated(template: TemplateTriple | PatternTriple) -> Relation:
    """The relation of what a template states or ends; "" if the values of an event decide."""
    predicate, object_ = template.predicate, template.object
    if not isinstance(predicate, str):
        return ""
    if predicate != RDF_TYPE:
        return predicate
    return class_relation(object_) if isinstance(object_, str) else ""


def _refuse_others(program: Program) -> None:
    """Raise UndividedError for what no key divides."""
    if not program.rules:
        raise UndividedError("there is no rule")
    if program.entailment is not Entailment.NONE:
        raise UndividedError("an ontology may relate triples of different keys, and refuses whole instants")
    if program.lars.rules:
        raise UndividedError("points of LARS rules see what lasts of all keys")
    for rule in program.rules:
        if isinstance(rule.trigger, Tick):
            raise UndividedError(f"the trigger of `{rule.name}` is EVERY, which has no attributes")
    for one in program.datalog:
        for atom in _atoms_of(one):
            if isinstance(atom.predicate, Var):
                raise UndividedError("a Datalog rule has a variable for a predicate")


def _with_component(
    program: Program,
    rules: Sequence[int],
    demands: Mapping[str, Mapping[int, Sequence[_Demand]]],
    keys: Mapping[str, int],
    relations: _Relations,
) -> tuple[dict[str, int], _Relations]:
    """The keys with those of a component: the first ones that copy the fewest relations. Raises
    UndividedError.
    """
    allowed: dict[str, Collection[int]] = {
        name: [keys[name]] if name in keys else list(found) for name, found in demands.items()
    }
    best: tuple[dict[str, int], _Relations] | None = None
    reason = ""
    for column in islice(key_columns(program, rules, allowed), _TRIED):
        places = {name: place for name, place in column.places.items() if place is not None}
        tried = relations.copy()
        try:
            for name, place in places.items():
                for demand in demands[name][place] if name in demands else ():
                    tried.demand(*demand)
            for rule in (program.rules[i] for i in rules):
                tried.effects_of(rule, _carried(rule, column))
            for name, place in places.items():
                if name in demands and not tried.divides(demands[name][place]):
                    raise UndividedError(f"every part needs all triples that `{name}` reads")
        except UndividedError as found:
            reason = reason or str(found)
            continue
        if best is None or tried.copied() < best[1].copied():
            best = {**keys, **places}, tried
    if best is not None:
        return best
    raise UndividedError(reason or _no_column(program, rules, demands))


def _no_column(
    program: Program, rules: Sequence[int], demands: Mapping[str, Mapping[int, Sequence[_Demand]]]
) -> str:
    """Why a component has no key: of its rules, or of its queries."""
    members = [program.rules[i] for i in rules]
    if not any(map(unlinked, members)):
        for name in (position.stream for rule in members for position in rule.positions):
            for place, variable in enumerate(program.selects[name].variables if name in demands else ()):
                if place not in demands[name]:
                    return _why_not(name, program.selects[name], variable)
    return no_key(program, rules).removeprefix("not by key: ")


def _carried(rule: Rule, column: KeyColumn) -> frozenset[str]:
    """The variables of WITH that always have the key."""
    optional = {choice.position.name for choice in rule.chosen if choice.optional}
    return frozenset(
        binding.variable
        for binding in rule.bindings
        if binding.variable in column.carrying[rule.name]
        and not (isinstance(binding.expression, Attribute) and binding.expression.position in optional)
    )


# -- relations


_Demand: TypeAlias = tuple[Relation, Places]
"""A relation is read by a pattern that has the key at these places."""


class _Relations:
    """Owns where the triples of relations may have their key, as far as demanded: places become fewer."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._places: dict[Relation, Places] = {}
        self._stated: set[Relation] = set()  # by effects, which must have a key
        for hold in program.holds:
            for predicate in (hold.start, hold.until):
                if predicate is not None:
                    self.demand(predicate, COPIED)

    def copy(self) -> _Relations:
        """One that shares nothing."""
        found = _Relations(self._program)
        found._places, found._stated = dict(self._places), set(self._stated)
        return found

    def demand(self, relation: Relation, places: Places) -> None:
        """A pattern reads a relation. Raises UndividedError if effects state one that is to be copied."""
        todo = [(relation, places)]
        while todo:
            relation, places = todo.pop()
            known = self._places.get(relation)
            allowed = self._first(relation) if known is None else known
            now = allowed & places
            if relation in self._stated and not now:
                raise UndividedError(f"events state or end {_shown(relation)}, of which each part needs all")
            if now == known:
                continue
            self._places[relation] = now
            if relation == RDF_TYPE:  # a pattern with a variable for the class
                todo += ((one, now) for one in self._places if is_class(one))
            todo += self._of_rules(relation, min(now, default=None))

    def effects_of(self, rule: Rule, carrying: Collection[str]) -> None:
        """A rule's events state and end triples; `carrying`: its variables that have the key. Raises
        UndividedError where a triple that is read has another key.
        """
        templates: list[TemplateTriple | PatternTriple] = [*rule.inserts, *rule.deletes]
        for template in templates:
            relation = _relation_stated(template)
            if not relation:
                raise UndividedError(f"`{rule.name}` states or ends triples of any predicate or class")
            places = frozenset(
                place
                for place, node in ((SUBJECT, template.subject), (OBJECT, template.object))
                if isinstance(node, TemplateVar) and node.name in carrying
            )
            if not places:
                raise UndividedError(
                    f"`{rule.name}` states or ends {_shown(relation)} of other keys than its own"
                )
            self._stated.add(relation)
            self.demand(relation, places)

    def divides(self, demands: Iterable[_Demand]) -> bool:
        """Whether a query reads a relation that is not copied."""
        return any(self._places.get(relation) for relation, _ in demands)

    def copied(self) -> int:
        """How many relations each part has all of."""
        return sum(not places for places in self._places.values())

    def chosen(self) -> RelationKeys:
        """Where each relation has its key."""
        return {relation: min(self._places[relation], default=None) for relation in sorted(self._places)}

    def _first(self, relation: Relation) -> Places:
        """Where a relation may have its key at first."""
        if is_class(relation) or relation == RDF_TYPE:
            return self._places.get(RDF_TYPE, frozenset((SUBJECT,)))
        holds = self._program.holds
        replaced = any(hold.latest and hold.predicate == relation for hold in holds)  # by the same subject's
        return frozenset((SUBJECT,)) if replaced else _ANYWHERE

    def _of_rules(self, relation: Relation, place: int | None) -> Iterator[_Demand]:
        """What the bodies of the Datalog rules for a relation read, if it has its key at a place."""
        for rule in self._program.datalog:
            for head in rule.heads:
                found = relation_of(head.subject, head.predicate, head.object)
                if found != relation and not (RDF_TYPE in (found, relation) and _is_type(found, relation)):
                    continue
                node = None if place is None else (head.subject, head.object)[place]
                yield from _body(rule, node.name if isinstance(node, Var) else None)


def _is_type(*relations: Relation) -> bool:
    return all(relation == RDF_TYPE or is_class(relation) for relation in relations)


def _body(rule: DatalogRule, key: str | None) -> Iterator[_Demand]:
    """What a rule's body reads, if its head has the variable `key` for its key; None: it is copied."""
    for item in rule.body:
        match item:
            case Atom():
                yield _read(item.subject, item.predicate, item.object, key)
            case NotAtom(atom=atom):
                yield _read(atom.subject, atom.predicate, atom.object, key)
            case AggregateAtom(body=body, group=group):
                inside = key if any(one.name == key for one in group) else None
                yield from _body(DatalogRule((), body), inside)
            case _:
                pass


def _atoms_of(rule: DatalogRule) -> Iterator[Atom]:
    yield from rule.heads
    for item in rule.body:
        if isinstance(item, Atom):
            yield item
        elif isinstance(item, NotAtom):
            yield item.atom
        elif isinstance(item, AggregateAtom):
            yield from _atoms_of(DatalogRule((), item.body))


def _read(subject: Node, predicate: Node, object_: Node, key: str | None) -> _Demand:
    """What a triple pattern with a constant predicate demands."""
    relation = relation_of(subject, predicate, object_)
    nodes = (subject,) if is_class(relation) or relation == RDF_TYPE else (subject, object_)
    places = [at for at, node in enumerate(nodes) if isinstance(node, Var) and node.name == key]
    return relation, frozenset(places)


def _shown(relation: Relation) -> str:
    return f"`{relation}`"


# -- queries


def _keys_of_query(name: str, select: Select) -> dict[int, list[_Demand]]:
    """The attributes of a query that can be its key → what it then reads."""
    found: dict[int, list[_Demand]] = {}
    for place, variable in enumerate(select.variables):
        try:
            found[place] = _reading(name, select, variable)
        except UndividedError:
            continue
    return found


def _why_not(name: str, select: Select, variable: str) -> str:
    """Why an attribute of a query cannot be its key."""
    try:
        _reading(name, select, variable)
    except UndividedError as found:
        return str(found)
    raise AssertionError("it can")


def _reading(name: str, select: Select, variable: str) -> list[_Demand]:
    walk = _Walk(name)
    if not walk.select(select, variable):
        raise UndividedError(f"`{name}` may leave ?{variable} unbound")
    return walk.demands


class _Walk:
    """Owns what a query reads. `key` of its methods: the variable of the key; None: everything is copied.

    The methods return whether every solution has the variable from a triple. They raise UndividedError.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.demands: list[_Demand] = []

    def select(self, select: Select, key: str | None) -> bool:
        """A query, or one inside another."""
        if key is not None and (select.limit is not None or select.offset):
            raise UndividedError(f"`{self._name}` has a LIMIT over all keys together")
        outside = _computed(select)
        grouped = bool(select.group_by) or any(map(_has_aggregate, outside))
        if (
            grouped
            and key is not None
            and not any(
                isinstance(g.expression, Var)
                and g.expression.name == key
                and g.variable in (None, g.expression)
                for g in select.group_by
            )
        ):
            raise UndividedError(f"`{self._name}` has an aggregate over all ?{key} together")
        if any(p.expression is not None and p.variable.name == key for p in select.projection):
            raise UndividedError(f"`{self._name}` computes ?{key}")
        for expression in (*outside, *(g.expression for g in select.group_by)):
            self._inside(expression, None)
        return self._group(select.where, key)

    def _group(self, group: GroupPattern, key: str | None) -> bool:
        bound = False
        for element in group.elements:
            match element:
                case Triples(patterns=patterns):
                    for pattern in patterns:
                        bound |= self._pattern(pattern.subject, pattern.predicate, pattern.object, key)
                case Filter() | Values():
                    pass
                case Bind(expression=expression, variable=variable):
                    if variable.name == key:
                        raise UndividedError(f"`{self._name}` computes ?{key}")
                    self._inside(expression, None)
                case Union(branches=branches):
                    found = [self._group(branch, key) for branch in branches]
                    bound |= all(found)
                case OptionalGroup(group=inner) | Minus(group=inner):
                    self._group(inner, key if bound else None)
                case SubSelect(select=select):
                    projected = key is not None and key in select.variables
                    bound |= self.select(select, key if projected else None)
                case GroupPattern():
                    bound |= self._group(element, key)
                case _:
                    assert_never(element)
        for element in group.elements:
            if isinstance(element, Filter):
                self._inside(element.condition, key if bound else None)
        return bound

    def _inside(self, expression: Expression, key: str | None) -> None:
        """What the EXISTS of an expression read."""
        match expression:
            case Exists(pattern=pattern):
                self._group(pattern, key)
            case Call(arguments=arguments):
                for argument in arguments:
                    self._inside(argument, key)
            case Aggregate(argument=argument) if argument is not None:
                self._inside(argument, None)
            case _:
                pass

    def _pattern(self, subject: Node, path: Node | Path, object_: Node, key: str | None) -> bool:
        match path:
            case Var():
                raise UndividedError(f"`{self._name}` has a variable for a predicate")
            case str():
                self.demands.append(_read(subject, path, object_, key))
            case Inverse(path=inner):
                return self._pattern(object_, inner, subject, key)
            case PathSequence(paths=paths):
                ends = [subject, *(Var(f".. {number}") for number in range(len(paths) - 1)), object_]
                for number, inner in enumerate(paths):
                    self._pattern(ends[number], inner, ends[number + 1], key)
            case Alternative(paths=paths):
                for inner in paths:
                    self._pattern(subject, inner, object_, key)
            case Repeat(path=inner, minimum=1):
                self._pattern(subject, inner, object_, None)
            case _:
                raise UndividedError(f"`{self._name}` has a path that all triples may belong to")
        return key is not None and any(isinstance(n, Var) and n.name == key for n in (subject, object_))


def _computed(select: Select) -> list[Expression]:
    """The expressions over a query's groups or solutions."""
    found = [p.expression for p in select.projection if p.expression is not None]
    return [*found, *select.having, *(order.expression for order in select.order_by)]


def _has_aggregate(expression: Expression) -> bool:
    return _has(expression, Aggregate)


def _has(expression: Expression, kind: type[Aggregate] | type[Exists]) -> bool:
    if isinstance(expression, Call):
        return any(_has(argument, kind) for argument in expression.arguments)
    return isinstance(expression, kind)


# -- what needs a graph


def _answering_alone(
    program: Program, asked: Mapping[str, Select], background: Collection[Triple]
) -> list[str]:
    """The queries evaluated at all instants that what lasts may answer without a graph."""
    plain = [name for name in asked if name in program.queries]
    if not plain:
        return []
    stays = _Staying(program, background)
    return [name for name in plain if stays.may_answer(asked[name].where)]


class _Staying:
    """Owns the relations that may have triples while no graph comes."""

    def __init__(self, program: Program, background: Collection[Triple]) -> None:
        self._held = {h.predicate for h in program.holds if h.class_ is None}
        self._classes = {h.class_ for h in program.holds if h.class_ is not None}
        self._known = {relation_of(*triple) for triple in background}
        for rule in program.rules:
            self._known.update(map(_relation_stated, rule.inserts))
        grown = True
        while grown:
            grown = False
            for one in program.datalog:
                body = [a for item in one.body for a in _positive(item)]
                if all(self.has(relation_of(a.subject, a.predicate, a.object)) for a in body):
                    new = {relation_of(h.subject, h.predicate, h.object) for h in one.heads} - self._known
                    self._known |= new
                    grown = grown or bool(new)

    def has(self, relation: Relation) -> bool:
        """Whether a relation may have triples without a graph."""
        if relation in self._known or None in self._held:
            return True
        if is_class(relation):
            held = any(class_relation(c) == relation for c in self._classes if c is not None)
            return held or RDF_TYPE in self._held or RDF_TYPE in self._known
        if relation == RDF_TYPE:
            return bool(self._classes) or RDF_TYPE in self._held or any(map(is_class, self._known))
        return relation in self._held

    def may_answer(self, group: GroupPattern) -> bool:
        """Whether a pattern may have a solution without a graph."""
        return all(map(self._may, group.elements))

    def _may(self, element: object) -> bool:
        match element:
            case Triples(patterns=patterns):
                return all(map(self._may_match, patterns))
            case Union(branches=branches):
                return any(map(self.may_answer, branches))
            case SubSelect(select=select):
                alone = not select.group_by and any(map(_has_aggregate, _computed(select)))
                return alone or self.may_answer(select.where)
            case GroupPattern():
                return self.may_answer(element)
            case _:
                return True

    def _may_match(self, pattern: TriplePattern) -> bool:
        if not isinstance(pattern.predicate, str):
            return True
        return self.has(relation_of(pattern.subject, pattern.predicate, pattern.object))


def _positive(item: object) -> Iterator[Atom]:
    match item:
        case Atom():
            yield item
        case AggregateAtom(body=body):
            for inner in body:
                yield from _positive(inner)
        case _:
            pass

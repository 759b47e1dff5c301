"""Close a background under a program: instantiate, prune, stratify, derive, index; save and load.

Place:   below materialiser.py. The bytes are stored under `fingerprint`, so that a restart or a Spark worker
         loads the index instead of closing again.
Method:  the strata run over an empty overlay (evaluation.py): each rule once over the data, then semi-naive;
         derived rows join the index. If rules with variable heads derive schema that instantiation did not
         know, it is repeated with that.
         Rules at run time are those that closed the background, except those that copy triples between equal
         terms: these are expanded for the relations that are read (owl.py), to a fixpoint, since an equality
         of two properties in the background makes one read for the other. This happens once the background is
         closed, and when a stream brings what dormant rules wait for.
         A saved background is its index, and further rows kept beside it: a line with the version, a hash,
         then five parts, each after a line with its size. The hash is of all that but the index, which has
         its own. Rows are lines; terms contain neither tabs nor line ends.
Bad input: D5101 damaged, or of another version.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import OVERLONG, UNLIMITED, Exhausted, Overlong
from dotr.enrich.analysis import RelationsRead, atom_relation, reach, reads
from dotr.enrich.evaluation import StratumEvaluator
from dotr.enrich.owl import (
    SAME_AS,
    Instantiated,
    TripleSet,
    instantiate,
    is_list_triple,
    is_schema,
    is_schema_predicate,
    may_join_anything,
    reads_equality,
    replaces,
    written_out,
)
from dotr.enrich.rules import (
    AggregateClause,
    Clause,
    Clauses,
    Marks,
    check_recursion,
    check_rules,
    stratify,
    translate,
    triples_in,
)
from dotr.errors import Diagnostic, ProgramError, Severity
from dotr.joins.plan import (
    ALL,
    AbsentPattern,
    BodyPattern,
    Relation,
    class_relation,
    is_anonymous,
    is_apart,
    is_clash,
    is_class,
    relation_name,
)
from dotr.joins.store import EVERYTHING, TripleIndex
from dotr.program import AggregateAtom, Atom, DatalogRule, NotAtom
from dotr.rdf.index import Background, Changes, Row, content_hash, many
from dotr.rdf.mapped import Content, refused, sized
from dotr.rdf.terms import RDF_TYPE, Term, Triple

_MAGIC = b"dotr closed 3\n"
_BEFORE = b"dotr closed 2\n"
"""The version without a hash."""

_DIGEST = 16
_PARTS = 5


def contents(index: Sequence[Any], *others: Iterable[Iterable[Term]]) -> list[Any]:
    """The parts to write, in order: the bytes of an index, and rows."""
    size = b"%d\n" % sum(memoryview(part).nbytes for part in index)
    rest = []
    for some in others:
        text = "\n".join("\t".join(row) for row in some).encode()
        rest += [b"%d\n" % len(text), text]
    return [_MAGIC, _hash([size, *rest]), size, *index, *rest]


def places(data: Content, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """The ranges of the parts in `data[start:end]`. Raises EngineError D5101."""
    at, end = start + len(_MAGIC), len(data) if end is None else end
    magic = data[start:at]
    if magic not in (_MAGIC, _BEFORE):
        raise refused(data)
    first = at + _DIGEST if magic == _MAGIC else at
    try:
        found = sized(data, first, end, _PARTS)
    except ValueError:
        raise refused(data) from None
    index = found[0]
    if magic == _MAGIC and _hash([data[first : index[0]], data[index[1] : end]]) != data[at:first]:
        raise refused(data)
    return found


def rows(data: Content, place: tuple[int, int], length: int | None = None) -> list[list[Term]]:
    """The rows of a part, of `length` terms where that is known. Raises EngineError D5101."""
    try:
        text = data[place[0] : place[1]].decode()
    except UnicodeDecodeError:
        raise refused(data) from None
    found = [line.split("\t") for line in text.split("\n")] if text else []
    if length is not None and any(len(row) != length for row in found):
        raise refused(data)
    return found


AggregateRows: TypeAlias = dict[Relation, list[Row]]
"""Aggregate → its rows."""


def _hash(parts: Iterable[bytes]) -> bytes:
    found = blake2b(digest_size=_DIGEST)
    for part in parts:
        found.update(part)
    return found.digest()


def fixed_rules(rules: Iterable[DatalogRule]) -> list[DatalogRule]:
    """Rules that do not copy between equal terms."""
    return [rule for rule in rules if not replaces(rule)]


def awake(
    instantiated: Instantiated,
    index: Background,
    wanted: Iterable[Relation],
    before: Sequence[DatalogRule],
    met: Collection[Relation] = (),
) -> tuple[RelationsRead, Clauses]:
    """All rules, dormant ones included; `met`: relations that only a stream has.

    Aggregates are named as in `before`. Raises ProgramError if there are no strata.
    """
    rules = [*instantiated.rules, *instantiated.dormant]
    found = _written(rules, index, [*wanted, SAME_AS], met)
    return found, translate(stratify(found.rules), before)


def _written(
    rules: Sequence[DatalogRule], index: Background, wanted: Sequence[Relation], met: Collection[Relation]
) -> RelationsRead:
    fixed, replacing = fixed_rules(rules), [rule for rule in rules if replaces(rule)]
    equalities = list(_equalities(index))
    known = TripleSet(equalities)
    found = reach(fixed, wanted)
    while True:
        relations = {*found.relations, *_equal_to(found.relations, equalities)}
        if relations & {ALL, RDF_TYPE}:
            relations |= {*met, *_of_rules(fixed), *_of_background(index, ALL in relations)}
        wider = reach([*fixed, *written_out(replacing, relations, known)], wanted)
        if wider.relations <= found.relations:
            return wider
        found = wider


def _equalities(index: Background) -> Iterator[Triple]:
    for subject, objects in index.forward.get(SAME_AS, {}).items():
        yield from ((subject, SAME_AS, object_) for object_ in many(objects))


def _equal_to(relations: Collection[Relation], equalities: Iterable[Triple]) -> Iterator[Relation]:
    """Predicates and classes that the background makes equal to those of the relations."""
    for subject, _, object_ in equalities:
        if object_ in relations:
            yield subject
        if class_relation(object_) in relations:
            yield class_relation(subject)


def _of_rules(rules: Iterable[DatalogRule]) -> Iterator[Relation]:
    for rule in rules:
        yield from (relation for relation, _ in reads(rule))
        yield from map(atom_relation, rule.heads)


def _of_background(index: Background, predicates: bool) -> Iterator[Relation]:
    yield from map(class_relation, index.backward.get(RDF_TYPE, ()))
    if predicates:
        yield from index.forward


BACKGROUND_LIMIT = 20_000_000

MANY_FACTS = "D4001"
MUCH_DATALOG = "D4003"

Tables = dict[Relation, list[tuple[Term, ...]]]


class Closed(Struct, frozen=True):
    """A closed background and the program it was closed under.

    `tables`: rows of aggregates and anonymous properties. `clashes`: what inconsistency rules found.
    `volatile`: relations that may lose rows at an instant, `explicit` their triples that the background
    states. `lists`: the triples of OWL list axioms, which `owl_lists.list_rules` turns into rules. `needed`:
    the relations that readers declared.
    """

    index: Background
    instantiated: Instantiated
    reach: RelationsRead
    clauses: Clauses
    tables: Tables
    clashes: tuple[Triple, ...]
    volatile: Container[Relation]
    explicit: frozenset[Triple]
    lists: tuple[Triple, ...]
    needed: tuple[Relation, ...] | None

    def save(self) -> bytes:
        """Everything but the program, as bytes."""
        return b"".join(self.contents())

    def contents(self) -> list[Any]:
        """The parts of `save`, in order."""
        rows = ((relation, *row) for relation, rows in self.tables.items() for row in rows)
        return contents(self.index.contents(), sorted(self.explicit), self.lists, self.clashes, rows)


def close_background(
    rules: Sequence[DatalogRule],
    background: Collection[Triple],
    needed: Iterable[Relation] | None = None,
    limit: int = BACKGROUND_LIMIT,
    budget: int = UNLIMITED,
    derived: dict[Relation, set[Row]] | None = None,
    known: Iterable[Triple] = (),
) -> Closed:
    """Close `background`; `needed` are the relations that queries read, None for all. `derived` is filled
    with the keys of rows that are not stated, by relation. `known`: schema and equalities that are to come
    beside `background`; rules are instantiated over them, too.

    Raises ProgramError for rules that are unsafe, not stratifiable, may not terminate, derive more than
    `limit` rows of a relation (D4001), or take more than `budget` units of work (D4003).
    """
    refuse(check_rules(rules))
    needed = None if needed is None else tuple(needed)
    schema = set(known)
    while True:
        instantiated = instantiate(rules, background, _close_plainly, schema)
        wanted = _wanted(instantiated, needed)
        found, clauses = _program(instantiated, wanted)
        index = Background(triple for triple in background if found.keeps(triple))
        if derived is not None:
            derived.clear()
        tables, clashes = _derive(clauses, index, limit, budget, derived)
        missed = instantiated.missed(triples_in(index, is_schema))
        if not missed:
            break
        schema |= missed
    found, clauses = _over_instants(instantiated, index, wanted, (found, clauses))
    falling = may_fall(instantiated, found, clauses, index)
    explicit = frozenset(t for t in background if _relation(t) in falling) if falling else frozenset()
    lists = tuple(triple for triple in background if is_list_triple(triple))
    return Closed(
        index, instantiated, found, clauses, tables, tuple(clashes), falling, explicit, lists, needed
    )


def saved_lists(data: Content, start: int = 0, end: int | None = None) -> tuple[Triple, ...]:
    """The OWL list axioms of a saved background: it must be loaded with rules for them."""
    return tuple((s, p, o) for s, p, o in rows(data, places(data, start, end)[2], 3))


def load_background(
    rules: Sequence[DatalogRule],
    data: Content,
    needed: Iterable[Relation] | None = None,
    start: int = 0,
    end: int | None = None,
    marks: Mapping[Relation, bytes] | None = None,
) -> Closed:
    """Load what `Closed.save` wrote from `data[start:end]`, under the same rules and needs (the caller
    compares `fingerprint`). A large index keeps reading `data`. `marks`: what is stated, if that is to change
    (maintenance.py).

    Raises EngineError D5101 for bytes that are damaged or of another version.
    """
    parts = places(data, start, end)
    index = Background.load(data, *parts[0])
    schema = tuple(_schema_of(index, rules))
    instantiated = instantiate(rules, schema, _as_it_is)
    if marks is not None and _needs_facts(instantiated, index):
        stated = Marks(index, marks)
        instantiated = instantiate(rules, tuple(filter(stated.states, schema)), _close_plainly, schema)
    needed = None if needed is None else tuple(needed)
    wanted = _wanted(instantiated, needed)
    found, clauses = _over_instants(instantiated, index, wanted, _program(instantiated, wanted))
    tables: Tables = {aggregation.relation: [] for aggregation in clauses.all_aggregations}
    for relation, *row in rows(data, parts[4]):
        if relation not in tables and not (is_anonymous(relation) and len(row) == 2):
            raise refused(data)
        tables.setdefault(relation, []).append(tuple(row))
    explicit = frozenset((s, p, o) for s, p, o in rows(data, parts[1], 3))
    clashes = tuple((s, p, o) for s, p, o in rows(data, parts[3], 3))
    return Closed(
        index,
        instantiated,
        found,
        clauses,
        tables,
        clashes,
        may_fall(instantiated, found, clauses, index),
        explicit,
        tuple((s, p, o) for s, p, o in rows(data, parts[2], 3)),
        needed,
    )


def narrowed(closed: Closed, needed: Iterable[Relation]) -> Closed:
    """The same background for readers of fewer relations: instants do not derive what they do not need."""
    needed = tuple(needed)
    rules, index = closed.instantiated, closed.index
    wanted = _wanted(rules, needed)
    found, clauses = _over_instants(rules, index, wanted, _program(rules, wanted))
    rows = {content(a): closed.tables[a.relation] for a in closed.clauses.all_aggregations}
    tables = {a.relation: rows[content(a)] for a in clauses.all_aggregations}
    tables.update((r, known) for r, known in closed.tables.items() if is_anonymous(r))
    volatile = may_fall(rules, found, clauses, index)
    return replace(closed, needed=needed, reach=found, clauses=clauses, tables=tables, volatile=volatile)


def content(aggregation: AggregateClause) -> AggregateClause:
    """An aggregate without its relation, which every program numbers anew."""
    return replace(aggregation, relation="", stratum=0)


def under_other_rules(
    closed: Closed, rules: Sequence[DatalogRule], stated: Collection[Triple], known: Iterable[Triple]
) -> Closed | None:
    """The same index with a program of other rules, or of another schema, under which it is not yet closed.

    `stated`: schema, equalities and list axioms that are stated then. `known`: schema that follows from more
    than schema, as `Instantiated.missed` found it. Returns None if rules derive schema from facts, which
    `stated` lacks. `tables` and `clashes` are empty. Raises as `close_background`.
    """
    refuse(check_rules(rules))
    from_facts = False

    def close(some: Sequence[DatalogRule], ground: Collection[Triple]) -> Collection[Triple]:
        nonlocal from_facts
        from_facts = from_facts or any(not is_schema(r) for rule in some for r, _ in reads(rule))
        return () if from_facts else _close_plainly(some, ground)

    instantiated = instantiate(rules, stated, close, known)
    if from_facts:
        return None
    wanted = _wanted(instantiated, closed.needed)
    found, clauses = _over_instants(instantiated, closed.index, wanted, _program(instantiated, wanted))
    lists = tuple(triple for triple in stated if is_list_triple(triple))
    return replace(
        closed,
        instantiated=instantiated,
        reach=found,
        clauses=clauses,
        tables={},
        clashes=(),
        lists=lists,
        explicit=frozenset(),
    )


def fingerprint(
    rules: Sequence[DatalogRule], background: Collection[Triple], needed: Iterable[Relation] | None
) -> str:
    """A name for the result of `close_background` with these arguments."""
    wanted = ["*"] if needed is None else sorted(needed)
    text = "\n".join([*map(repr, rules), content_hash(background), *wanted])
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _wanted(instantiated: Instantiated, needed: tuple[Relation, ...] | None) -> list[Relation]:
    """The goals: the needed relations, clashes, and the schema instantiated over."""
    if needed is None:
        return [ALL]
    rules = (*instantiated.rules, *instantiated.dormant)
    heads = {atom_relation(head) for rule in rules for head in rule.heads}
    clashes = sorted(relation for relation in heads if is_clash(relation))
    equality = [SAME_AS] if instantiated.dormant else []
    return [*needed, *clashes, *sorted(instantiated.watched), *equality]


def _program(instantiated: Instantiated, wanted: Sequence[Relation]) -> tuple[RelationsRead, Clauses]:
    """The program that closes the background. What dormant rules read is kept, but they do not run."""
    rules = [*instantiated.rules, *fixed_rules(instantiated.dormant)]
    refuse(check_recursion(rules))
    found = reach(rules, wanted)
    if instantiated.dormant:
        found = replace(found, rules=tuple(rule for rule in found.rules if not reads_equality(rule)))
    return found, translate(stratify(found.rules), found.rules)


def closing_program(closed: Closed) -> tuple[RelationsRead, Clauses]:
    """The program a background was closed under. More may run at its instants."""
    return _program(closed.instantiated, _wanted(closed.instantiated, closed.needed))


def _over_instants(
    instantiated: Instantiated,
    index: Background,
    wanted: Sequence[Relation],
    program: tuple[RelationsRead, Clauses],
) -> tuple[RelationsRead, Clauses]:
    """The program of an instant. Raises ProgramError for rules that could not run once dormant ones join."""
    found, clauses = program
    if may_join_anything(instantiated):
        awake(instantiated, index, wanted, found.rules)
    if any(map(replaces, instantiated.rules)):
        return awake(instantiated, index, wanted, found.rules)
    return found, clauses


def with_equality(closed: Closed, met: Collection[Relation]) -> Clauses:
    """The clauses of a closed program with its dormant rules; `met`: relations that only a stream has."""
    return awake(closed.instantiated, closed.index, closed.reach.relations, closed.reach.rules, met)[1]


def _schema_of(index: Background, rules: Sequence[DatalogRule]) -> Iterator[Triple]:
    """Schema triples that rules read, and sameAs, which rules may wait for. (rdfs:Resource types count as
    schema by name, and are irrelevant.)
    """
    bodies = (item.atom if isinstance(item, NotAtom) else item for rule in rules for item in rule.body)
    read = {atom_relation(item) for item in bodies if isinstance(item, Atom)}
    for predicate, column in index.forward.items():
        if predicate == RDF_TYPE:
            for class_, subjects in index.backward[RDF_TYPE].items():
                if class_.startswith("<http://www.w3.org/") and class_relation(class_) in read:
                    yield from ((subject, RDF_TYPE, class_) for subject in many(subjects))
        elif predicate == SAME_AS or is_schema_predicate(predicate):
            yield from ((s, predicate, o) for s, objects in column.items() for o in many(objects))


def _needs_facts(instantiated: Instantiated, index: Background) -> bool:
    """Whether some of the schema may follow from facts, or from an equality."""
    equal = bool(index.forward.get(SAME_AS))
    for rule in instantiated.rules:
        if (equal or not reads_equality(rule)) and not all(
            is_schema(relation) for relation, _ in reads(rule)
        ):
            heads = set(map(atom_relation, rule.heads))
            if heads & {ALL, RDF_TYPE} or not heads.isdisjoint(instantiated.watched):
                return True
    return False


def _as_it_is(_: Sequence[DatalogRule], triples: Collection[Triple]) -> Collection[Triple]:
    return triples  # a loaded background is closed


def refuse(found: Sequence[Diagnostic]) -> None:
    """Raise ProgramError with the errors among findings."""
    errors = [diagnostic for diagnostic in found if diagnostic.severity is Severity.ERROR]
    if errors:
        raise ProgramError(errors)


def _close_plainly(rules: Sequence[DatalogRule], triples: Collection[Triple]) -> list[Triple]:
    """The closure of positive rules over a schema."""
    index = Background(triples)
    _derive(translate(stratify(rules)), index, BACKGROUND_LIMIT, UNLIMITED)
    return list(index)


def _derive(
    clauses: Clauses,
    index: Background,
    limit: int,
    budget: int,
    derived: dict[Relation, set[Row]] | None = None,
) -> tuple[Tables, list[Triple]]:
    """Add what the clauses derive to an index of explicit triples; returns the rows of aggregates and
    anonymous properties, and clashes.
    """
    if not clauses.all:
        return {}, []
    arities = {a.relation: a.arity for a in clauses.all_aggregations}
    store = TripleIndex(index, arities=arities)
    read = {
        pattern.relation
        for items in ([c.items for c in clauses.all] + [a.items for a in clauses.all_aggregations])
        for item in items
        if isinstance(pattern := item.pattern if isinstance(item, AbsentPattern) else item, BodyPattern)
    }
    layers = StratumEvaluator(
        clauses,
        store,
        unions=frozenset(read & {ALL, RDF_TYPE}),
        known=None,
        limit=limit,
        overflow=overflow(clauses, limit),
        stated=lambda relation: lambda key: False,
    )

    def close() -> AggregateRows:
        store.meter.open(budget)
        return layers.close()

    try:
        tables = close() if not layers.calls else _in_rounds(close, layers.abandon)
    except Exhausted as exhausted:
        raise ProgramError(
            exceeded(exhausted, clauses, store, budget, "the rules over the background alone")
        ) from None
    touched = [changes for changes in store.overlay.touched if changes.relation not in (ALL, RDF_TYPE)]
    index.extend(triple for changes in touched for triple in triples_of(changes, changes.added))
    for changes in touched if derived is not None else ():
        if not is_apart(changes.relation):
            derived[changes.relation] = set(changes.added)  # type: ignore[index]  # it exists
    tables.update((c.relation, list(c.added)) for c in touched if is_anonymous(c.relation))
    clashes = [
        t for changes in touched if is_clash(changes.relation) for t in rows_of(changes, changes.added)
    ]
    return tables, clashes


def _in_rounds(attempt: Callable[[], AggregateRows], undo: Callable[[], None]) -> AggregateRows:
    """What closes the background when it has made the calls of functions of one's own in order."""
    from dotr.expressions.own_functions import in_rounds  # noqa: PLC0415  # start-up: few runs call one

    return in_rounds(attempt, undo)


def may_fall(
    instantiated: Instantiated,
    found: RelationsRead,
    clauses: Clauses,
    index: Background,
    general: Container[Relation] = frozenset(),
) -> Container[Relation]:
    """`_volatile` of all clauses that may run; those expanded for equality remove nothing."""
    dormant = fixed_rules(instantiated.dormant)
    if any(isinstance(item, NotAtom | AggregateAtom) for rule in dormant for item in rule.body):
        clauses = translate(stratify([*found.rules, *reach(dormant, found.relations).rules]))
    return _volatile(clauses, index, general)


def _volatile(clauses: Clauses, index: Background, general: Container[Relation]) -> Container[Relation]:
    """Relations that may lose background rows: they depend on a NOT or AGGREGATE.

    `general`: relations that may get rows at an instant.
    """
    store = TripleIndex(index, general=general)
    found: set[Relation] = {a.relation for a in clauses.all_aggregations}
    changed = True
    while changed:
        changed = False
        for clause in clauses.all:
            shaky = any(
                isinstance(item, AbsentPattern) or (isinstance(item, BodyPattern) and item.relation in found)
                for item in clause.items
            )
            if not shaky:
                continue
            for head in clause.heads:
                relation = head.pattern.relation
                if relation not in found and (is_anonymous(relation) or store.filled(relation)):
                    more = {relation, ALL} | ({RDF_TYPE} if is_class(relation) else set())
                    if relation in (ALL, RDF_TYPE):
                        return EVERYTHING
                    changed = changed or not more <= found
                    found |= more
    return frozenset(found)


def overflow(clauses: Clauses, limit: int) -> Callable[[Changes], None]:
    """Called when a relation has `limit` derived rows: raises ProgramError D4001."""

    def stop(changes: Changes) -> None:
        relation = changes.relation
        rules = [c.rule for c in clauses.all if any(h.pattern.relation in (relation, ALL) for h in c.heads)]
        raise ProgramError.of(
            MANY_FACTS,
            f"a rule derives more than {limit} facts of {relation_name(relation)}",
            rules[0].span if rules else None,
            notes=tuple(f"another rule that derives them: {rule.span}" for rule in rules[1:4]),
            hint="join the atoms of its body through shared variables",
        )

    return stop


def exceeded(
    exhausted: Exhausted, clauses: Clauses, store: TripleIndex, budget: int, what: str
) -> Diagnostic:
    """D4003, D4133: the rules of a program are over a budget. `what` names the work as a subject."""
    derived = {head.pattern.relation for clause in clauses.all for head in clause.heads}
    touched = [c for c in store.overlay.touched if c.relation in derived or derived & {ALL, RDF_TYPE}]
    most = max(touched, key=lambda changes: len(changes.added), default=None)
    rule = exhausted.source
    notes = list(exhausted.notes())
    if most is not None:
        if not isinstance(rule, DatalogRule):
            rule = next((c.rule for c in clauses.all if _derives(c, most.relation)), None)
        notes.append(f"it had derived {len(most.added)} facts of {relation_name(most.relation)}")
    where = rule.span if isinstance(rule, DatalogRule) else None
    if isinstance(exhausted, Overlong):
        message = f"{what} make {exhausted.made}"
        return Diagnostic(OVERLONG, message, where, notes=tuple(notes), hint=exhausted.hint)
    return Diagnostic(
        MUCH_DATALOG,
        f"{what} take more than {budget} units of work",
        where,
        notes=tuple(notes),
        hint="join the atoms of the rule's body through shared variables, or raise --budget",
    )


def _derives(clause: Clause, relation: Relation) -> bool:
    return any(head.pattern.relation in (relation, ALL) for head in clause.heads)


def _relation(triple: Triple) -> Relation:
    return class_relation(triple[2]) if triple[1] == RDF_TYPE else triple[1]


def triples_of(changes: Changes, rows: Iterable[object]) -> list[Triple]:
    """Rows of a relation as triples of the state."""
    return [] if is_apart(changes.relation) else rows_of(changes, rows)


def rows_of(changes: Changes, rows: Iterable[object]) -> list[Triple]:
    relation = changes.relation
    if relation == ALL:
        return list(rows)  # type: ignore[arg-type]  # rows of three columns
    if is_class(relation):
        return [(row, RDF_TYPE, relation[2:]) for row in rows]  # type: ignore[misc]  # bare terms
    return [(row[0], relation, row[1]) for row in rows]  # type: ignore[index]  # pairs

"""The materialiser: close the background once, then open and forget instants over it.

Place:   what enrich.py holds. Queries read `store`; `dotr query` and --verify enumerate K(t).
Method:  instantiate over the schema (schema.py), drop what no query reaches (pruning.py), stratify, close the
         background (layers.py over an empty overlay), index it, and give every instant an overlay of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dotr.datalog.clauses import Clauses, translate
from dotr.datalog.dependency import atom_relation
from dotr.datalog.layers import Layers
from dotr.datalog.pruning import Reach, reach
from dotr.datalog.schema import (
    Instantiated,
    instantiate,
    is_schema_class,
    is_schema_predicate,
    stream_schema,
)
from dotr.datalog.strata import check_recursion, check_rules, stratify
from dotr.errors import DataError, Diagnostic, ProgramError, Severity
from dotr.ir import DatalogRule
from dotr.joins.body import Absent, Pattern
from dotr.joins.describe import describe
from dotr.joins.planner import plan
from dotr.joins.relations import (
    ALL,
    CLASH,
    Relation,
    class_relation,
    is_aggregate,
    is_clash,
    is_class,
    relation_name,
)
from dotr.joins.store import Store, Table
from dotr.rdf.background import Background
from dotr.rdf.overlay import Changes
from dotr.rdf.terms import RDF_TYPE, Term, Triple

BACKGROUND_LIMIT = 20_000_000
INSTANT_LIMIT = 1_000_000

Tables = dict[Relation, list[tuple[Term, ...]]]
Told = Callable[[Term, Term], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """How many rows of one relation may be derived before a rule set is taken to explode."""

    background: int = BACKGROUND_LIMIT
    instant: int = INSTANT_LIMIT


class Materialiser:
    """Owns the closed background and the overlay of the open instant.

    `rules`: all rules, entailment included. `background`: canonical triples. `needed`: relations that queries
    read (joins/relations.py); None keeps everything (`--materialize all`). `closed`: a background that an
    earlier materialiser with the same arguments has closed (`save`), instead of closing again.

    Raises ProgramError for rules that are unsafe, not stratifiable, need not end, or derive too much (D4001).
    """

    def __init__(
        self,
        rules: Sequence[DatalogRule],
        background: Collection[Triple],
        *,
        needed: Iterable[Relation] | None = None,
        limits: Limits = Limits(),
        counting: bool = False,
    ) -> None:
        _refuse(check_rules(rules))
        wanted = None if needed is None else tuple(needed)
        index, tables, self._clashes = self._closed(rules, background, wanted, limits.background)
        self.background = index
        self.store = Store(
            index,
            volatile=_volatile(self._clauses, index),
            static=self.instantiated.watched,
            arities={a.relation: a.arity for a in self._clauses.all_aggregations},
            counting=counting,
        )
        self.store.tables.update((relation, Table(rows)) for relation, rows in tables.items())
        self._explicit = self._explicit_rows(background)
        self._layers = self._make_layers(limits.instant)
        self._tell: dict[Term, Told] = {RDF_TYPE: self._tell_type}
        self._tell_class: dict[Term, Callable[[Term], None]] = {}

    # -- instants

    def instant(self, triples: Iterable[Triple]) -> None:
        """Open an instant: K(t) is `store` until `forget`. Triples that nothing reads are dropped.

        Raises DataError D2601 for schema triples where rules were instantiated over a schema, ProgramError
        D4001 when a rule derives too much; the instant is forgotten then.
        """
        tell = self._tell
        try:
            for subject, predicate, object_ in triples:
                told = tell.get(predicate)
                if told is None:
                    told = self._teller(predicate)
                told(subject, object_)
            self._layers.run()
        except BaseException:
            self.forget()
            raise

    def forget(self) -> None:
        """Close the instant: K is that of the background again."""
        self._layers.forget()

    def state(self) -> Iterator[Triple]:
        """Everything that holds now, each triple once (pruned: of the relations that queries reach)."""
        overlay = self.store.overlay
        gone = {triple for changes in overlay.touched for triple in _triples(changes, changes.removed)}
        for triple in self.background:
            if triple not in gone:
                yield triple
        yield from dict.fromkeys(t for changes in overlay.touched for t in _triples(changes, changes.added))

    def clashes(self) -> list[Diagnostic]:
        """What inconsistency rules found, in the background and at the open instant; D3101 each."""
        found = dict.fromkeys(self._clashes)
        for changes in self.store.overlay.touched:
            if is_clash(changes.relation):
                found.update(dict.fromkeys(_rows(changes, changes.added)))
        return [_clash(triple) for triple in sorted(found)]

    # -- what is told

    def _teller(self, predicate: Term) -> Told:
        """The function for a predicate's triples, remembered where the program bounds their number."""
        layers = self._layers
        if self.instantiated.over and is_schema_predicate(predicate):
            return self._tell.setdefault(predicate, _refuser(predicate))
        if predicate in self.reach.relations or layers.writers.knows(predicate):
            return self._tell.setdefault(predicate, self._told(predicate))
        if ALL in self.reach.relations:
            return lambda subject, object_: layers.writers.add_other(subject, predicate, object_)
        if len(self._tell) < 10_000:
            self._tell[predicate] = _ignore
        return _ignore

    def _told(self, relation: Relation) -> Told:
        add = self._layers.writers.adder(relation)
        if relation not in self.store.volatile:
            return add
        told = self._layers.told

        def tell(*row: Term) -> None:
            told.add((relation, row))
            add(*row)

        return tell

    def _tell_type(self, subject: Term, class_: Term) -> None:
        told = self._tell_class.get(class_)
        if told is None:
            told = self._class_teller(class_)
        told(subject)

    def _class_teller(self, class_: Term) -> Callable[[Term], None]:
        relation = class_relation(class_)
        layers = self._layers
        if self.instantiated.over and is_schema_class(class_):
            refuse = _refuser(RDF_TYPE)
            return self._tell_class.setdefault(class_, lambda subject: refuse(subject, class_))
        if relation in self.reach.relations or layers.writers.knows(relation):
            return self._tell_class.setdefault(class_, self._told(relation))  # type: ignore[arg-type]  # one column
        if self.reach.relations & {ALL, RDF_TYPE}:
            return lambda subject: layers.writers.add_other(subject, RDF_TYPE, class_)
        if len(self._tell_class) < 10_000:
            self._tell_class[class_] = _ignore
        return _ignore

    # -- deployment

    def _closed(
        self,
        rules: Sequence[DatalogRule],
        background: Collection[Triple],
        needed: tuple[Relation, ...] | None,
        limit: int,
    ) -> tuple[Background, Tables, list[Triple]]:
        """Instantiate, prune, stratify and close; again where the closure has schema that was not known."""
        schema: set[Triple] = set()
        while True:
            self.instantiated: Instantiated = instantiate(rules, background, _close_plainly, schema)
            _refuse(check_recursion(self.instantiated.rules))
            self.reach: Reach = reach(self.instantiated.rules, self._wanted(needed))
            self._clauses: Clauses = translate(stratify(self.reach.rules))
            keeps = self.reach.keeps
            index = Background(triple for triple in background if keeps(triple))
            tables, clashes = _close(self._clauses, index, limit)
            missed = self.instantiated.missed(index)
            if not missed:
                return index, tables, clashes
            schema |= missed

    def _wanted(self, needed: tuple[Relation, ...] | None) -> list[Relation]:
        """What must be kept: what queries read, clashes, and the schema that instantiation rests on."""
        if needed is None:
            return [ALL]
        heads = {atom_relation(h) for rule in self.instantiated.rules for h in rule.heads}
        clashes = sorted(relation for relation in heads if is_clash(relation))
        return [*needed, *clashes, *sorted(self.instantiated.watched)]

    def _explicit_rows(self, background: Collection[Triple]) -> frozenset[Triple]:
        volatile = self.store.volatile
        if not volatile:
            return frozenset()
        return frozenset(t for t in background if _relation(t) in volatile)

    def _is_explicit(self, relation: Relation, row: tuple[Term, ...]) -> bool:
        if is_aggregate(relation):
            return False
        if is_class(relation):
            return (row[0], RDF_TYPE, relation[2:]) in self._explicit
        return (row[0], relation, row[1]) in self._explicit

    def _make_layers(self, limit: int) -> Layers:
        unions = frozenset(self.reach.relations & {ALL, RDF_TYPE})
        known = frozenset(
            self.reach.relations | {h.pattern.relation for c in self._clauses.all for h in c.heads}
        )
        refuse = {relation: _derived_schema(relation) for relation in self.instantiated.watched}
        return Layers(
            self._clauses,
            self.store,
            unions=unions,
            known=known,
            limit=limit,
            overflow=_overflow(self._clauses, limit),
            explicit=self._is_explicit,
            refuse=refuse,
        )

    def describe(self, shorten: Callable[[Term], str] = str) -> str:
        """Every rule as the plans its atoms start, for `dotr plan`."""
        parts = []
        for clause in self._clauses.all:
            for i, item in enumerate(clause.items):
                if isinstance(item, Pattern):
                    rest = clause.items[:i] + clause.items[i + 1 :]
                    found = plan(rest, clause.outputs, self.store, trigger=item, as_set=True)
                    parts.append(f"stratum {clause.stratum}: {describe(found, shorten)}")
        return "\n".join(parts)


def _refuse(found: Sequence[Diagnostic]) -> None:
    errors = [diagnostic for diagnostic in found if diagnostic.severity is Severity.ERROR]
    if errors:
        raise ProgramError(errors)


def _close_plainly(rules: Sequence[DatalogRule], triples: Collection[Triple]) -> list[Triple]:
    """The closure of positive rules over a schema."""
    index = Background(triples)
    _close(translate(stratify(rules)), index, BACKGROUND_LIMIT)
    return list(index)


def _close(clauses: Clauses, index: Background, limit: int) -> tuple[Tables, list[Triple]]:
    """Add to an index of explicit triples what the clauses derive; rows of aggregates, and clashes."""
    if not clauses.all:
        return {}, []
    arities = {a.relation: a.arity for a in clauses.all_aggregations}
    store = Store(index, arities=arities)
    read = {
        pattern.relation
        for items in ([c.items for c in clauses.all] + [a.items for a in clauses.all_aggregations])
        for item in items
        if isinstance(pattern := item.pattern if isinstance(item, Absent) else item, Pattern)
    }
    layers = Layers(
        clauses,
        store,
        unions=frozenset(read & {ALL, RDF_TYPE}),
        known=None,
        limit=limit,
        overflow=_overflow(clauses, limit),
        explicit=lambda relation, row: False,
    )
    tables = layers.close()
    touched = [changes for changes in store.overlay.touched if changes.relation not in (ALL, RDF_TYPE)]
    index.extend(triple for changes in touched for triple in _triples(changes, changes.added))
    clashes = [t for changes in touched if is_clash(changes.relation) for t in _rows(changes, changes.added)]
    return tables, clashes


def _volatile(clauses: Clauses, index: Background) -> set[Relation]:
    """Relations whose rows in the background may fall: somewhere below is a NOT or AGGREGATE."""
    store = Store(index)
    found: set[Relation] = {a.relation for a in clauses.all_aggregations}
    changed = True
    while changed:
        changed = False
        for clause in clauses.all:
            shaky = any(
                isinstance(item, Absent) or (isinstance(item, Pattern) and item.relation in found)
                for item in clause.items
            )
            if not shaky:
                continue
            for head in clause.heads:
                relation = head.pattern.relation
                if relation not in found and store.filled(relation):
                    more = {relation, ALL} | ({RDF_TYPE} if is_class(relation) else set())
                    changed = changed or not more <= found
                    found |= more
    return found


def _overflow(clauses: Clauses, limit: int) -> Callable[[Changes], None]:
    def overflow(changes: Changes) -> None:
        relation = changes.relation
        rules = [c.rule for c in clauses.all if any(h.pattern.relation in (relation, ALL) for h in c.heads)]
        raise ProgramError(
            Diagnostic(
                "D4001",
                f"a rule derives more than {limit} facts of {relation_name(relation)}",
                rules[0].span if rules else None,
                notes=tuple(f"another rule that derives them: {rule.span}" for rule in rules[1:4]),
                hint="join the atoms of its body through shared variables",
            )
        )

    return overflow


def _refuser(predicate: Term) -> Told:
    def refuse(subject: Term, object_: Term) -> None:
        raise DataError(stream_schema((subject, predicate, object_)))

    return refuse


def _derived_schema(relation: Relation) -> Callable[..., None]:
    def refuse(*row: Term) -> None:
        triple = (row[0], RDF_TYPE, relation[2:]) if is_class(relation) else (row[0], relation, row[1])
        raise DataError(stream_schema(triple, derived=True))

    return refuse


def _ignore(*_: Term) -> None:
    return None


def _relation(triple: Triple) -> Relation:
    return class_relation(triple[2]) if triple[1] == RDF_TYPE else triple[1]


def _triples(changes: Changes, rows: Iterable[object]) -> list[Triple]:
    """Rows of a relation as triples of the state: aggregates and clashes are none."""
    return [] if is_aggregate(changes.relation) or is_clash(changes.relation) else _rows(changes, rows)


def _rows(changes: Changes, rows: Iterable[object]) -> list[Triple]:
    relation = changes.relation
    if relation == ALL:
        return list(rows)  # type: ignore[arg-type]  # rows of three columns
    if is_class(relation):
        return [(row, RDF_TYPE, relation[2:]) for row in rows]  # type: ignore[misc]  # bare terms
    return [(row[0], relation, row[1]) for row in rows]  # type: ignore[index]  # pairs


def _clash(triple: Triple) -> Diagnostic:
    subject, predicate, object_ = triple
    return Diagnostic(
        "D3101",
        f"inconsistent: OWL 2 RL rule {predicate[len(CLASH) : -1]} finds a clash",
        label=subject if subject == object_ else f"{subject} and {object_}",
        notes=("an inconsistent ontology entails everything; what is derived here leaves the clash aside",),
    )

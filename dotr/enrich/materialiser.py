"""The materialiser: close the background once, then open and forget instants over it.

Place:   core/instant.py owns it. Queries read `store`; `dotr query` and --verify enumerate K(t).
Method:  closing.py closes and indexes the background; an instant is an overlay over it (evaluation.py), which
         the stream's triples enter through one function per predicate, or per class for rdf:type. The
         function of a predicate that nothing reads does nothing.
         Equalities of instants (owl.py has the rules): every owl:sameAs that an instant adds, stated or
         derived, is checked as it is added. Dormant rules join the program when the first is stated; they are
         expanded for known relations, and join again when a stream brings an unknown relation, if anything
         reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from functools import cached_property

from msgspec import Struct

from dotr.budget import BUDGET, Exhausted, at_deployment
from dotr.enrich.closing import (
    BACKGROUND_LIMIT,
    Closed,
    close_background,
    exceeded,
    may_fall,
    overflow,
    triples_of,
    with_equality,
)
from dotr.enrich.evaluation import StratumEvaluator
from dotr.enrich.owl import (
    SAME_AS,
    UNRESTRICTED,
    Restrictions,
    beside_schema,
    between_vocabulary,
    checked,
    is_data,
    is_schema_class,
    is_schema_predicate,
    is_vocabulary,
    mentioned,
    stream_schema,
    vocabulary,
)
from dotr.enrich.retraction import Stated
from dotr.enrich.rules import Clauses, place_of
from dotr.errors import DataError, Diagnostic, ProgramError
from dotr.joins.plan import (
    ALL,
    CLASH,
    AbsentPattern,
    BodyPattern,
    Relation,
    View,
    class_relation,
    describe,
    is_clash,
    is_class,
    plan,
)
from dotr.joins.store import Table, TripleIndex
from dotr.program import DatalogRule
from dotr.rdf.index import Row
from dotr.rdf.terms import RDF_TYPE, Term, Triple


class JoiningError(Exception):
    """The open instant has triples that dormant rules read: the rules must join the program first."""


class Equalities:
    """Owns what is known of possible equalities at instants, and whether the dormant rules run.

    Only for rules that were instantiated over a schema.
    """

    def __init__(self, closed: Closed, store: TripleIndex) -> None:
        self._closed = closed
        self._store = store
        self._added = store.changes(SAME_AS).added
        self._awake = not closed.instantiated.dormant
        self.joined = False
        self._met: set[Relation] = set()

    @cached_property
    def _vocabulary(self) -> frozenset[Term]:
        return vocabulary(self._closed.instantiated, self._closed.needed or ())

    @cached_property
    def _mentioned(self) -> frozenset[Term]:
        return mentioned(self._closed.instantiated)

    def state(self, subject: Term, object_: Term) -> None:
        """Handle an equality stated by a stream. Raises as `check`, JoiningError if dormant rules wait."""
        self.check(subject, object_)
        if not self._awake:
            raise JoiningError

    def check(self, subject: Term, object_: Term) -> None:
        """Raise DataError D2601 for an equality of a class or property that is not in the background."""
        known = self._vocabulary
        if not (is_vocabulary(subject, known) or is_vocabulary(object_, known)):
            return
        if subject != object_ and (subject, SAME_AS, object_) not in self._store.background:
            raise DataError(between_vocabulary(subject, object_))

    def meet(self, relation: Relation) -> None:
        """Handle the first row of an unknown relation. Raises JoiningError if rules need expanding."""
        if self._awake and relation not in self._met and is_data(relation):
            self._met.add(relation)
            raise JoiningError

    def widen(self, relations: Iterable[Relation]) -> bool:
        """The background has got rows of these relations. Returns whether the rules must join again."""
        if self._closed.reach.relations.isdisjoint((ALL, RDF_TYPE)):
            return False
        new = {relation for relation in relations if relation not in self._met and is_data(relation)}
        self._met |= new
        return self._awake and bool(new)

    def join(self) -> Clauses:
        """Set the program that runs from now on."""
        self._awake = self.joined = True
        clauses = with_equality(self._closed, self._met)
        self._store.arities.update({a.relation: a.arity for a in clauses.all_aggregations})
        return clauses

    def concerns(self, subject: Term, object_: Term) -> bool:
        """Whether an equality is one of a class or property, or of an individual that the schema mentions."""
        known, named = self._vocabulary, self._mentioned
        return any(is_vocabulary(term, known) or term in named for term in (subject, object_))

    def findings(self) -> list[Diagnostic]:
        """D2602 for the open instant's equalities of individuals that the schema mentions."""
        pairs = {(min(pair), max(pair)) for pair in self._added if not self._mentioned.isdisjoint(pair)}
        return [beside_schema(*pair) for pair in sorted(pairs)]


INSTANT_LIMIT = 1_000_000

Entry = Callable[[Term, Term], None]


class Limits(Struct, frozen=True):
    """Limits beyond which a rule set counts as exploding.

    `background`, `instant`: maximum of derived rows of one relation. `budget`: units of work at an instant;
    for the background see `at_deployment`, of `closing` in its place if passed.
    """

    background: int = BACKGROUND_LIMIT
    instant: int = INSTANT_LIMIT
    budget: int = BUDGET
    closing: int | None = None


_LIMITS = Limits()


class Ground(Struct, frozen=True):
    """A background that changes between instants; its owner (maintenance.py) supplies what may change
    (`general`), what is stated, and the rows of aggregates and clashes.
    """

    general: Container[Relation]
    stated: Stated
    tables: dict[Relation, Table]

    def may_fall(self, closed: Closed) -> Container[Relation]:
        """Relations that may lose rows at an instant."""
        rules = closed.instantiated
        return may_fall(rules, closed.reach, closed.clauses, closed.index, self.general)


class Materialiser:
    """Owns the closed background and the overlay of the open instant.

    `rules`: all rules, entailment included. `background`: canonical triples. `needed`: relations that queries
    read (joins/plan.py); None keeps everything (`--materialize all`). `closed`: use this
    background, closed under the same rules and needs (closing.py). `ground`: that background changes.

    Raises ProgramError for rules that are unsafe, not stratifiable, may not terminate, derive too much
    (D4001) or work too much (D4003).
    """

    def __init__(
        self,
        rules: Sequence[DatalogRule],
        background: Collection[Triple] = (),
        *,
        closed: Closed | None = None,
        ground: Ground | None = None,
        needed: Iterable[Relation] | None = None,
        limits: Limits = _LIMITS,
        counting: bool = False,
    ) -> None:
        if closed is None:
            budget = at_deployment(limits.budget, len(background))
            closed = close_background(rules, background, needed, limits.background, budget)
        self.closed = closed
        self.background = closed.index
        self.reach = closed.reach
        self.store = TripleIndex(
            closed.index,
            volatile=closed.volatile if ground is None else ground.may_fall(closed),
            static=closed.instantiated.watched,
            general=frozenset() if ground is None else ground.general,
            arities={a.relation: a.arity for a in closed.clauses.all_aggregations},
            counting=counting,
        )
        self._ground = ground
        if ground is None:
            self.store.tables.update((relation, Table(rows)) for relation, rows in closed.tables.items())
            for subject, predicate, object_ in closed.clashes:
                self.store.tables.setdefault(predicate, Table()).insert((subject, object_))
        else:
            self.store.tables = ground.tables
        self.store.meter.open(limits.budget)
        self._stated_rows: dict[Relation, set[Row]] = {}
        self._explicit: dict[Relation, set[Row]] = {}
        for triple in closed.explicit:
            relation, key = place_of(triple)
            self._explicit.setdefault(relation, set()).add(key)
        clauses = closed.clauses
        self._limit = limits.instant
        over = closed.instantiated.over
        self._equalities = Equalities(closed, self.store) if over else None
        self._begin(clauses)
        items = [item for clause in clauses.all for item in clause.items]
        items += [item for aggregation in clauses.all_aggregations for item in aggregation.items]
        self._reads = frozenset(
            item.relation if isinstance(item, BodyPattern) else item.pattern.relation
            for item in items
            if isinstance(item, BodyPattern | AbsentPattern)
        )

    @property
    def clauses(self) -> Clauses:
        """The clauses that run over the store now."""
        return self._clauses

    def _begin(self, clauses: Clauses) -> None:
        """Run these clauses from now on."""
        self._clauses = clauses
        self._evaluator = self._make_evaluator(clauses)
        self._waiting = self._evaluator.waiting
        self._several = self._evaluator.several
        self._late = self._evaluator.inserters.late
        self._touched = self.store.overlay.touched
        self._entries: dict[Term, Entry] = {RDF_TYPE: self._enter_type}
        self._class_entries: dict[Term, Callable[[Term], None]] = {}

    # -- instants

    def instant(self, triples: Collection[Triple]) -> None:
        """Open an instant: K(t) is `store` until `forget`. Triples that nothing reads are dropped.

        Raises DataError D2601 for schema triples if rules were instantiated over a schema, ProgramError
        D4001, D4003 when rules derive or work too much; then the instant is forgotten.
        """
        if not self._evaluator.calls:
            self._open(triples)
            return
        from dotr.expressions.own_functions import in_rounds  # noqa: PLC0415  # start-up: few runs call one

        in_rounds(lambda: self._open(triples), self._abandon)

    def _open(self, triples: Collection[Triple]) -> None:
        entries, meter = self._entries, self.store.meter
        meter.left[0] = meter.limit
        try:
            for subject, predicate, object_ in triples:
                enter = entries.get(predicate)
                if enter is None:
                    enter = self._entry(predicate)
                if enter is not _ignore:
                    enter(subject, object_)
            if self._waiting or self._several or self._late:
                self._evaluator.run()
        except Exhausted as exhausted:
            found = exceeded(exhausted, self._clauses, self.store, meter.limit, "the rules at an instant")
            self._abandon()
            raise ProgramError(found) from None
        except JoiningError:
            self._abandon()
            assert self._equalities is not None
            self._begin(self._equalities.join())
            self._open(triples)
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """Forget an instant that failed half-way."""
        self._evaluator.abandon()
        self.forget()

    def forget(self) -> None:
        """Forget the instant: K is that of the background again. O(what the instant touched)."""
        touched = self._touched
        for changes in touched:
            changes.forget()
        touched.clear()
        if self._several:
            self._evaluator.forget()
            for rows in self._stated_rows.values():
                rows.clear()

    def state(self) -> Iterator[Triple]:
        """Everything that holds now, each triple once (pruned: of the relations that queries reach)."""
        overlay = self.store.overlay
        gone = {triple for changes in overlay.touched for triple in triples_of(changes, changes.removed)}
        for triple in self.background:
            if triple not in gone:
                yield triple
        yield from self.added()

    def added(self) -> Iterator[Triple]:
        """What the open instant added to the background, stated or derived; each triple once."""
        touched = self.store.overlay.touched
        yield from dict.fromkeys(t for changes in touched for t in triples_of(changes, changes.added))

    def clashes(self) -> list[Diagnostic]:
        """What inconsistency rules found, in the background and at the open instant; D3101 each."""
        return [clash_found(triple) for triple in clashes_of(self.store)]

    @property
    def over_schema(self) -> bool:
        """Whether rules were instantiated over a schema: only then `findings` exist."""
        return self._equalities is not None

    @property
    def joined(self) -> bool:
        """Whether an instant brought what dormant rules wait for."""
        return self._equalities is not None and self._equalities.joined

    def findings(self) -> list[Diagnostic]:
        """Warnings about the open instant."""
        return [] if self._equalities is None else self._equalities.findings()

    def concerns_schema(self, equalities: Iterable[tuple[Term, Term]]) -> bool:
        """Whether one of these equalities is of a class, of a property, or of what the schema mentions: rules
        were written out under it, or would be.
        """
        known = self._equalities
        if known is None:
            return False
        return any(known.concerns(*pair) or any(map(self._is_relation, pair)) for pair in equalities)

    def _is_relation(self, term: Term) -> bool:
        """Whether a term is a predicate or class of the background, or of a rule."""
        of_background = term in self.background.forward or term in self.background.backward.get(RDF_TYPE, ())
        return of_background or term in self._heads or class_relation(term) in self._heads

    def meet(self, relations: Collection[Relation]) -> None:
        """The background has its first rows of these relations: rules copy them between equals, too."""
        equalities, new = self._equalities, [r for r in relations if r not in self._heads]
        if equalities is not None and new and equalities.widen(new):
            self._begin(equalities.join())

    def inert(self, predicate: Term) -> bool:
        """Whether a triple of this predicate only adds itself: no rule, schema or union reads it, and it is
        not in the background's relations.
        """
        if predicate == RDF_TYPE or self.closed.instantiated.over or self.reach.relations & {ALL, RDF_TYPE}:
            return False
        store = self.store
        if store.filled(predicate) or predicate in store.volatile or predicate in store.static:
            return False
        return predicate in self.reach.relations and not self._reads & {predicate, ALL}

    def alone(self, predicate: Term, object_: Term | int) -> bool:
        """Whether a triple only adds itself, as `inert`, or is never read; of a class, too. `object_`: a
        term, or the number of a column, which may have any.
        """
        reached = self.reach.relations
        if self.closed.instantiated.over or self._equalities is not None or reached & {ALL, RDF_TYPE}:
            return False
        relation: Relation = predicate
        if predicate == RDF_TYPE:
            if isinstance(object_, int):
                return not any(map(is_class, reached | self._reads))
            relation = class_relation(object_)
        store = self.store
        if store.filled(relation) or relation in store.volatile or relation in store.static:
            return False
        return not self._reads & {relation, predicate, ALL}

    def ignores(self, predicate: Term) -> bool:
        """Whether no triple of this predicate will ever be read."""
        if self._equalities is not None:  # what joins later may read it
            return False
        return (self._entries.get(predicate) or self._entry(predicate)) is _ignore

    # -- what an instant states

    def _entry(self, predicate: Term) -> Entry:
        """The function for a predicate's triples, cached if the program bounds their number."""
        equalities = self._equalities
        if equalities is not None and predicate == SAME_AS:
            self._entries[predicate] = checked(equalities.state, self._plain_entry(predicate))
            return self._entries[predicate]
        if equalities is not None and is_schema_predicate(predicate):
            return self._entries.setdefault(predicate, _refuser(predicate))
        return self._plain_entry(predicate)

    def _plain_entry(self, predicate: Term) -> Entry:
        inserters = self._evaluator.inserters
        if predicate in self.reach.relations or inserters.knows(predicate):
            return self._entries.setdefault(predicate, self._inserting(predicate))
        if ALL in self.reach.relations:
            return lambda subject, object_: inserters.add_other(subject, predicate, object_)
        if len(self._entries) < 10_000:
            self._entries[predicate] = _ignore
        return _ignore

    def _inserting(self, relation: Relation) -> Entry:
        add = self._evaluator.inserters.adder(relation)
        if relation not in self.store.volatile:
            return add
        rows = self._stated_rows.setdefault(relation, set())

        def enter(*row: Term) -> None:
            rows.add(row[0] if len(row) == 1 else row)
            add(*row)

        return enter

    def _enter_type(self, subject: Term, class_: Term) -> None:
        enter = self._class_entries.get(class_)
        if enter is None:
            enter = self._class_entry(class_)
        if enter is not _ignore:
            enter(subject)

    def _class_entry(self, class_: Term) -> Callable[[Term], None]:
        relation = class_relation(class_)
        layers = self._evaluator
        if self._equalities is not None and is_schema_class(class_):
            refuse = _refuser(RDF_TYPE)
            return self._class_entries.setdefault(class_, lambda subject: refuse(subject, class_))
        if relation in self.reach.relations or layers.inserters.knows(relation):
            return self._class_entries.setdefault(class_, self._inserting(relation))  # type: ignore[arg-type]  # one column
        if self.reach.relations & {ALL, RDF_TYPE}:
            return lambda subject: layers.inserters.add_other(subject, RDF_TYPE, class_)
        if len(self._class_entries) < 10_000:
            self._class_entries[class_] = _ignore
        return _ignore

    # -- deployment

    def _stated(self, relation: Relation) -> Callable[[Row], bool]:
        """Whether the background or the instant states a row."""
        rows = self._stated_rows.setdefault(relation, set())
        if self._ground is not None:
            stated = self._ground.stated(relation)
            return lambda key: key in rows or stated(key)
        explicit = self._explicit.get(relation, set())
        return lambda key: key in rows or key in explicit

    def _make_evaluator(self, clauses: Clauses) -> StratumEvaluator:
        heads = self._heads = {head.pattern.relation for clause in clauses.all for head in clause.heads}
        return StratumEvaluator(
            clauses,
            self.store,
            unions=frozenset(self.reach.relations & {ALL, RDF_TYPE}),
            known=frozenset(self.reach.relations | heads),
            limit=self._limit,
            overflow=overflow(clauses, self._limit),
            stated=self._stated,
            restrictions=self._restrictions(),
        )

    def _restrictions(self) -> Restrictions:
        if self._equalities is None:
            return UNRESTRICTED
        refuse = {relation: _derived_schema(relation) for relation in self.closed.instantiated.watched}
        return Restrictions(refuse, {SAME_AS: self._equalities.check}, self._equalities.meet)

    def describe(self, shorten: Callable[[Term], str] = str) -> str:
        """The plans that the atoms of each rule start, for `dotr plan`."""
        parts = []
        for clause in self.closed.clauses.all:
            for i, item in enumerate(clause.items):
                if isinstance(item, BodyPattern):
                    rest = clause.items[:i] + clause.items[i + 1 :]
                    found = plan(rest, clause.outputs, self.store, trigger=item, as_set=True)
                    parts.append(f"stratum {clause.stratum}: {describe(found, shorten)}")
        return "\n".join(parts)


def _refuser(predicate: Term) -> Entry:
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


def clashes_of(store: TripleIndex) -> list[Triple]:
    """What inconsistency rules find in the background and the overlay, sorted."""
    relations = dict.fromkeys(filter(is_clash, store.tables))
    relations |= dict.fromkeys(c.relation for c in store.overlay.touched if is_clash(c.relation))
    found = [
        (subject, relation, object_)
        for relation in relations
        for subject, object_ in store.find(relation, (None, None), View.NEW)
    ]
    return sorted(found)


def clash_found(triple: Triple) -> Diagnostic:
    subject, predicate, object_ = triple
    return Diagnostic(
        "D3101",
        f"inconsistent: OWL 2 RL rule {predicate[len(CLASH) : -1]} finds a clash",
        label=subject if subject == object_ else f"{subject} and {object_}",
        notes=("an inconsistent ontology entails everything; what is derived here ignores the clash",),
    )

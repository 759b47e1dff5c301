"""Which rows fall because they lost their last derivation, stratum by stratum.

Place:   called by evaluation.py after what a stratum reads has changed and before it derives anything new.
         Rows are removed in the overlay; the index stays unchanged.
Method:  delete and rederive (Gupta, Mumick, Subrahmanian 1993; Volz, Staab, Motik 2003, sec. 3.2), component
         by component in the order of derivation. A row of a non-recursive relation falls if nothing states or
         derives it now, which is exact; then what it supported is checked. In a recursive component a row
         falls that is neither stated nor derived from outside it, with everything it supported there, and is
         restored if what is left derives it.
         Each relation has generated functions, made on first use: `enqueue` queues a row of the background,
         once, in its component; `propagate` finds by joins over the background what a row supported, and
         enqueues it; `outer` and `inner` test whether a clause derives a row from what holds now, without or
         with rows of its own component; `again` restores what a restored row supports.
         Components are the strongly connected ones (Tarjan 1972) of "a row of this may derive a row of that",
         computed from a relation on demand, from the triggers of a program and without data, so that
         unchanged relations cost nothing. Height is the longest path down to a component that derives
         nothing: it does not depend on where the search begins, and greater heights come first.
Why not: counts of derivations: they break on recursion, cost memory for every row, and without recursion one
         search for another derivation decides the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, TypeAlias

from msgspec import Struct, field

from dotr.codegen import Names, make
from dotr.enrich.analysis import components
from dotr.enrich.insertion import DeltaAtom, Derive, Inserters, Triggers
from dotr.enrich.rules import Clause, Clauses
from dotr.events import FOREVER
from dotr.joins.code import AnySolution, CodeBlock, RowSink, compile_plan
from dotr.joins.plan import (
    ALL,
    AbsentPattern,
    BodyPattern,
    Item,
    Relation,
    View,
    class_relation,
    is_apart,
    is_class,
    plan,
)
from dotr.joins.store import EVERYTHING, TripleIndex
from dotr.program import Node
from dotr.rdf.index import Changes, Row
from dotr.rdf.terms import RDF_TYPE, Term


class Component(Struct, frozen=True, eq=False):
    """Relations of one stratum that derive each other; `cyclic`: or one that derives itself."""

    height: int
    cyclic: bool


class Components:
    """Owns the components found so far. `loose`: a head may be of any relation, so a stratum is one
    component.
    """

    def __init__(self, triggers: Triggers, level: Callable[[Relation], int], loose: bool) -> None:
        self._triggers = triggers
        self._level = level
        self._found: dict[Relation, Component] = {}
        self._loose = loose
        self._whole: dict[int, Component] = {}

    def of(self, relation: Relation) -> Component:
        """The component of a relation that is not a union."""
        if self._loose:
            return self._whole.setdefault(self._level(relation), Component(0, True))
        found = self._found.get(relation)
        if found is None:
            self._explore(relation)
            found = self._found[relation]
        return found

    def _explore(self, start: Relation) -> None:
        graph: dict[Relation, list[Relation]] = {}
        todo = [start]
        for relation in todo:
            if relation not in graph and relation not in self._found:
                graph[relation] = self._derived_from(relation)
                todo += graph[relation]
        for members in components(graph):
            if members[0] in self._found:
                continue
            inside = set(members)
            targets = {target for relation in members for target in graph[relation]}
            below = (self._found[target].height for target in targets - inside)
            component = Component(1 + max(below, default=0), len(members) > 1 or bool(targets & inside))
            self._found.update(dict.fromkeys(members, component))

    def _derived_from(self, relation: Relation) -> list[Relation]:
        """Relations of the same stratum with a head over an atom of this one."""
        level = self._level(relation)
        heads = (
            head.pattern.relation
            for over in unions_of(relation)
            for trigger in self._triggers.positive.get((over, level), ())
            for head in trigger.clause.heads
        )
        return list(dict.fromkeys(heads))


def unions_of(relation: Relation) -> tuple[Relation, ...]:
    """A relation and the unions through which an atom may read its rows."""
    if is_apart(relation):
        return (relation,)
    return (relation, RDF_TYPE, ALL) if is_class(relation) else (relation, ALL)


def affected(clauses: Clauses, changing: Iterable[Relation]) -> Container[Relation]:
    """The relations that may get or lose rows when these do, each with its unions."""
    found: set[Relation] = set()
    todo = list(changing)
    readers: dict[Relation, list[Relation]] = {}
    for clause in clauses.all:
        for read in relations_read(clause.items):
            readers.setdefault(read, []).extend(head.pattern.relation for head in clause.heads)
    for aggregate in clauses.all_aggregations:
        for read in relations_read(aggregate.items):
            readers.setdefault(read, []).append(aggregate.relation)
    while todo:
        relation = todo.pop()
        if relation in found:
            continue
        found.add(relation)
        if relation in (ALL, RDF_TYPE):
            return EVERYTHING
        for over in unions_of(relation):
            todo += readers.get(over, ())
    if found:
        found.add(ALL)
    if any(map(is_class, found)):
        found.add(RDF_TYPE)
    return frozenset(found)


def relations_read(items: Iterable[Item]) -> list[Relation]:
    """The relations of the patterns and absences of a body."""
    patterns = (item.pattern if isinstance(item, AbsentPattern) else item for item in items)
    return [pattern.relation for pattern in patterns if isinstance(pattern, BodyPattern)]


Test: TypeAlias = Callable[[Row], bool]
Stated: TypeAlias = Callable[[Relation], Test]
"""Relation → whether a row of it, passed by key, needs no derivation."""

HeadClauses: TypeAlias = Mapping[Relation, Sequence[tuple[Clause, int]]]
"""Relation → clauses with a head of it, and which head."""

_INLINE = 6  # plans written into one function


class DeletionCheck(Struct, eq=False):
    """Owns the tests of one relation. Rows are passed by key."""

    relation: Relation
    level: int
    component: Component
    changes: Changes
    stated: Test
    derivable: bool
    supports: bool
    propagate: Callable[[Row], None]
    again: Callable[[Row], None]
    tests: list[list[Test]] | None = None
    doubted: dict[Row, None] = field(default_factory=dict)


class _Latest(Struct, frozen=True):
    """The sink of a test: keep the latest bound of a derivation."""

    found_bound: list[Any]
    parameters: tuple[str, ...] = ()
    found: bool = False

    def lines(self, outputs: Sequence[Node], annotation: str, block: CodeBlock) -> list[str]:
        best = block.names.bind(self.found_bound, "BEST")
        return [f"if {annotation} > {best}[0]: {best}[0] = {annotation}"]

    def tail(self, names: Names) -> list[str]:
        return []


class DeletionChecks:
    """Owns the checks of one program over one store.

    `wake` is called with a check when its component gets its first row in doubt; `queues` has the rows.
    """

    def __init__(
        self,
        store: TripleIndex,
        triggers: Triggers,
        heads: HeadClauses,
        level: Callable[[Relation], int],
        inserters: Inserters,
        stated: Stated,
        wake: Callable[[DeletionCheck], None],
    ) -> None:
        self.components = Components(triggers, level, bool({ALL, RDF_TYPE} & heads.keys()))
        self.queues: dict[Component, list[tuple[DeletionCheck, Row]]] = {}
        self.back: list[tuple[DeletionCheck, Row]] = []
        """Rows restored while a component is decided."""
        self._store = store
        self._triggers = triggers
        self._heads = heads
        self._level = level
        self._inserters = inserters
        self._stated = stated
        self._wake = wake
        self._known: dict[Relation, DeletionCheck] = {}
        self._enqueuers: dict[Relation, Callable[..., None]] = {}
        self._returners: dict[Relation, Callable[..., None]] = {}
        self._best: list[Any] = [-FOREVER]

    def of(self, relation: Relation) -> DeletionCheck:
        """The check of a relation that is not a union."""
        found = self._known.get(relation)
        if found is None:
            component = self.components.of(relation)
            self.queues.setdefault(component, [])
            found = self._known[relation] = DeletionCheck(
                relation,
                self._level(relation),
                component,
                self._store.changes(relation),
                self._stated(relation),
                any(over in self._heads for over in unions_of(relation)),
                self._supports(relation),
                lambda key: self._make_spread(relation)(key),
                lambda key: self._make_again(relation)(key),
            )
        return found

    def _supports(self, relation: Relation) -> bool:
        """Whether a rule of its stratum reads the relation."""
        positive, level = self._triggers.positive, self._level(relation)
        return any((over, level) in positive for over in unions_of(relation))

    def forget(self) -> None:
        for check in self._known.values():
            check.doubted.clear()
        for queue in self.queues.values():
            queue.clear()
        self.back.clear()

    # -- doubting

    def enqueuer(self, relation: Relation) -> Callable[..., None]:
        """The function that doubts a row, passed by columns."""
        found = self._enqueuers.get(relation)
        if found is None:
            if relation == ALL:
                found = self._any(self.enqueuer)
            elif relation == RDF_TYPE:
                found = self._any_type(self.enqueuer)
            else:
                found = self._make_enqueuer(self.of(relation))
            self._enqueuers[relation] = found
        return found

    def _make_enqueuer(self, check: DeletionCheck) -> Callable[..., None]:
        """Rows that the background does not have cannot fall."""
        names = Names()
        relation, arity = check.relation, check.changes.arity
        present = self._inserters.rows.present(relation, names) if relation in self._store.volatile else []
        if not present:
            return _nothing
        columns = ["s", "o"][:arity]
        lines = [f"def enqueue({', '.join(columns)}):"]
        if arity > 1:
            lines.append("    k = (s, o)")
        key = "s" if arity == 1 else "k"
        doubted = names.bind(check.doubted, "D")
        queue = names.bind(self.queues[check.component], "Q")
        whole = names.bind(check, "X")
        lines += [f"    if {key} in {doubted}: return", *present[:-1]]
        lines += [f"    if not ({present[-1]}): return"]
        lines += [f"    {doubted}[{key}] = None"]
        lines += [f"    if not {queue}: {names.bind(self._wake, 'WAKE')}({whole})"]
        lines += [f"    {queue}.append(({whole}, {key}))"]
        return make("enqueue", "\n".join(lines) + "\n", names)

    def _make_spread(self, relation: Relation) -> Callable[[Row], None]:
        """Doubt what a row supported in its own stratum."""
        check = self.of(relation)
        check.propagate = self._follower(check, View.OLD, self.enqueuer)
        return check.propagate

    def lost(self, trigger: DeltaAtom) -> Callable[..., None]:
        """Doubt what a clause derived over the background with a row from below, passed by columns."""
        return self._start(trigger, View.OLD, self.enqueuer)

    def all_of(self, clause: Clause, store: TripleIndex) -> Callable[..., None]:
        """Doubt everything that a clause derives in a store over the same index."""
        found = plan(clause.items, clause.outputs, store, as_set=True)
        return compile_plan(found, store, Derive(clause, self.enqueuer))

    # -- restoring

    def returner(self, relation: Relation) -> Callable[..., None]:
        """The function that restores a fallen row, passed by columns."""
        found = self._returners.get(relation)
        if found is None:
            if relation == ALL:
                found = self._any(self.returner)
            elif relation == RDF_TYPE:
                found = self._any_type(self.returner)
            else:
                found = self._make_returner(self.of(relation))
            self._returners[relation] = found
        return found

    def _make_returner(self, check: DeletionCheck) -> Callable[..., None]:
        removed, back, one = check.changes.removed, self.back, check.changes.arity == 1
        bounds, relation = self._inserters.bounds, check.relation
        if bounds is not None:
            ends, kept = bounds.of(relation), bounds

            def have_back(*row: Any) -> None:
                *columns, until = row
                key = columns[0] if one else tuple(columns)
                if key in removed:
                    kept.set(relation, key, until)
                    self._inserters.put_back(relation, tuple(columns))
                    back.append((check, key))
                elif ends.get(key, FOREVER) < until:
                    kept.derive(relation, key, until)

            return have_back

        def put_back(*row: Term) -> None:
            key = row[0] if one else row
            if key in removed:
                self._inserters.put_back(check.relation, row)
                back.append((check, key))

        return put_back

    def _make_again(self, relation: Relation) -> Callable[[Row], None]:
        """Restore what a row supports in its own stratum."""
        check = self.of(relation)
        check.again = self._follower(check, View.NEW, self.returner)
        return check.again

    # -- following clauses

    def _follower(
        self, check: DeletionCheck, view: View, function: Callable[[Relation], Callable[..., None]]
    ) -> Callable[[Row], None]:
        """All clauses of the stratum that read the relation, from a row's key; heads go to `function`."""
        relation, arity = check.relation, check.changes.arity
        names = Names()
        columns = [f"r{i}" for i in range(arity)]
        lines = ["def follow(k):", f"    {', '.join(columns)} = k"]
        bounds = self._inserters.bounds if view is View.NEW else None
        if bounds is not None:
            lines.append(
                f"    e0 = {names.bind(bounds.of(relation), 'U')}.get(k, {names.bind(FOREVER, 'ONE')})"
            )
        annotation = None if bounds is None else bounds.annotation
        triggers = [
            (trigger, over)
            for over in unions_of(relation)
            for trigger in self._triggers.positive.get((over, check.level), ())
        ]
        for trigger, over in triggers:
            row = self._seen_as(relation, over, columns, names)
            if len(triggers) > _INLINE:
                start = names.bind(self._lazily(trigger, view, function), "START")
                lines.append(f"    {start}({', '.join(row if bounds is None else [*row, 'e0'])})")
                continue
            sink = Derive(trigger.clause, function)
            block = CodeBlock(self._store, names, sink, annotation, source=trigger.clause.rule)
            block.write(self._plan(trigger, view), row)
            lines += block.lines
        return make("follow", "\n".join(lines) + "\n", names)

    def _lazily(
        self, trigger: DeltaAtom, view: View, function: Callable[[Relation], Callable[..., None]]
    ) -> Callable[..., None]:
        made: list[Callable[..., None]] = []

        def start(*row: Term) -> None:
            if not made:
                made.append(self._start(trigger, view, function))
            made[0](*row)

        return start

    def _start(
        self, trigger: DeltaAtom, view: View, function: Callable[[Relation], Callable[..., None]]
    ) -> Callable[..., None]:
        annotation = self._inserters.annotation if view is View.NEW else None
        sink = Derive(trigger.clause, function)
        return compile_plan(self._plan(trigger, view), self._store, sink, annotation)

    def _plan(self, trigger: DeltaAtom, view: View) -> Any:
        found = plan(
            trigger.rest, trigger.clause.outputs, self._store, trigger=trigger.atom, view=view, as_set=True
        )
        self._store.prepare(found)
        return found

    @staticmethod
    def _seen_as(relation: Relation, over: Relation, columns: Sequence[str], names: Names) -> list[str]:
        """Source names of a row's columns as in an atom over a union."""
        if over == relation:
            return list(columns)
        if is_class(relation):
            class_ = names.bind(relation[2:], "K")
            return (
                [columns[0], class_] if over == RDF_TYPE else [columns[0], names.bind(RDF_TYPE, "K"), class_]
            )
        return [columns[0], names.bind(relation, "K"), columns[1]]

    @staticmethod
    def _any(function: Callable[[Relation], Callable[..., None]]) -> Callable[..., None]:
        def go(subject: Term, predicate: Term, object_: Term) -> None:
            if predicate == RDF_TYPE:
                function(class_relation(object_))(subject)
            else:
                function(predicate)(subject, object_)

        return go

    @staticmethod
    def _any_type(function: Callable[[Relation], Callable[..., None]]) -> Callable[..., None]:
        return lambda subject, class_: function(class_relation(class_))(subject)

    # -- derivations

    def derives(self, check: DeletionCheck, key: Row, inside: bool) -> bool:
        """Whether a clause derives the row from what holds now; `inside`: one that reads its component."""
        if check.tests is None:
            check.tests = self._tests(check)
        for test in check.tests[inside]:  # noqa: SIM110  # `any` of a generator takes twice as long
            if test(key):
                return True
        return False

    def latest(self, check: DeletionCheck, key: Row) -> Any:
        """Until when what holds now derives the row; -FOREVER if it does not."""
        if check.tests is None:
            check.tests = self._tests(check)
        self._best[0] = -FOREVER
        for tests in check.tests:
            for test in tests:
                test(key)
        return self._best[0]

    def _tests(self, check: DeletionCheck) -> list[list[Test]]:
        """Tests of a row, one per clause: those that read other components only, and the rest."""
        found: list[list[Test]] = [[], []]
        annotation = self._inserters.annotation
        sink: RowSink = AnySolution() if annotation is None else _Latest(self._best)
        relation, arity = check.relation, check.changes.arity
        for over in unions_of(relation):
            for clause, place in self._heads.get(over, ()):
                inside = any(self._within(item, check) for item in clause.items)
                head = clause.heads[place].pattern
                made = plan(clause.items, (), self._store, trigger=head, as_set=True)
                self._store.prepare(made)
                names = Names()
                columns = [f"r{i}" for i in range(arity)]
                block = CodeBlock(self._store, names, sink, annotation, source=clause.rule)
                block.write(made, self._seen_as(relation, over, columns, names))
                lines = ["def derived(k):", f"    {', '.join(columns)} = k"]
                if annotation is not None:
                    lines.append(f"    e0 = {names.bind(FOREVER, 'ONE')}")
                lines += [*block.lines, "    return False"]
                found[inside].append(make("derived", "\n".join(lines) + "\n", names))
        return found

    def _within(self, item: Item, check: DeletionCheck) -> bool:
        """Whether a pattern may range over rows of the component."""
        if not isinstance(item, BodyPattern):
            return False
        if item.relation in (ALL, RDF_TYPE):
            return check.component.cyclic
        same = self._level(item.relation) == check.level
        return same and self.components.of(item.relation) is check.component


def _nothing(*_: Term) -> None:
    return None


class Retraction:
    """Owns the order in which rows in doubt are decided.

    `stated`: whether a row needs no derivation. `heads`: relation → clauses and which head.
    """

    def __init__(
        self,
        store: TripleIndex,
        triggers: Triggers,
        heads: HeadClauses,
        level: Callable[[Relation], int],
        inserters: Inserters,
        stated: Stated,
    ) -> None:
        self.checks = DeletionChecks(store, triggers, heads, level, inserters, stated, self._wake)
        self._touch = store.overlay.touched.append
        self._unions = bool(inserters.unions)
        self._inserters = inserters
        self._waiting: dict[int, list[tuple[int, int, Component]]] = {}
        self._woken = 0
        self._lost: dict[int, Callable[..., None]] = {}

    def enqueuer(self, relation: Relation) -> Callable[..., None]:
        """Record that a row, passed by columns, may have lost its last derivation, or its statement."""
        return self.checks.enqueuer(relation)

    def doubt_derived(self, clause: Clause, store: TripleIndex) -> None:
        """Doubt all that a clause of another program derives in its `store`, over the same index."""
        self.checks.all_of(clause, store)()

    def lost(self, trigger: DeltaAtom, rows: Iterable[tuple[Term, ...]]) -> None:
        """Rows that the clause used changed: doubt what it derived over the background."""
        lost = self._lost.get(id(trigger))
        if lost is None:
            lost = self._lost[id(trigger)] = self.checks.lost(trigger)
        for row in rows:
            lost(*row)

    def derivable(self, relation: Relation) -> bool:
        """Whether a rule may derive rows of the relation."""
        return self.checks.of(relation).derivable

    def fall(self, relation: Relation, keys: Collection[Row]) -> None:
        """Statements end that no rule derives: remove their rows, doubt what they supported."""
        check = self.checks.of(relation)
        self.take_out(check, keys)
        if check.supports:
            for key in keys:
                check.propagate(key)

    def fell(self, relation: Relation, key: Row) -> None:
        """A row fell without doubt (of an aggregate): doubt what it supported."""
        self.checks.of(relation).propagate(key)

    def waits(self, stratum: int) -> bool:
        """Whether rows of the stratum are in doubt."""
        return bool(self._waiting.get(stratum))

    def forget(self) -> None:
        """The instant is over."""
        if self._woken:
            self.checks.forget()
            self._waiting.clear()
            self._woken = 0

    def _wake(self, check: DeletionCheck) -> None:
        self._woken += 1
        heap = self._waiting.setdefault(check.level, [])
        heappush(heap, (-check.component.height, self._woken, check.component))

    def run(self, stratum: int) -> None:
        """Decide about every row of a stratum that is in doubt. Lower strata are complete."""
        heap = self._waiting.get(stratum)
        while heap:
            component = heappop(heap)[2]
            queue = self.checks.queues[component]
            if component.cyclic:
                self._decide_together(queue)
            else:
                self._decide(queue)
            queue.clear()

    def _decide(self, queue: list[tuple[DeletionCheck, Row]]) -> None:
        """For rows that do not derive each other: one falls if nothing states or derives it."""
        derives, take_out = self.checks.derives, self.take_out
        for check, key in queue:
            if not (check.stated(key) or derives(check, key, False)):
                take_out(check, (key,))
                check.propagate(key)

    def _decide_together(self, queue: list[tuple[DeletionCheck, Row]]) -> None:
        """For rows that derive each other: overdelete, rederive."""
        derives, back, take_out = self.checks.derives, self.checks.back, self.take_out
        fallen: list[tuple[DeletionCheck, Row]] = []
        for check, key in queue:  # grows during the loop
            if not (check.stated(key) or derives(check, key, False)):
                take_out(check, (key,))
                fallen.append((check, key))
                check.propagate(key)
        back += [one for one in fallen if derives(*one, True)]
        for check, key in back:
            self.put_back(check, key)
        for check, key in back:  # grows during the loop
            check.again(key)
        back.clear()

    def put_back(self, check: DeletionCheck, key: Row) -> None:
        """Restore a row that was taken out."""
        self._inserters.put_back(check.relation, key if isinstance(key, tuple) else (key,))

    def take_out(self, check: DeletionCheck, keys: Collection[Row]) -> None:
        """Remove rows of the background from the open change."""
        if self._unions:
            for key in keys:
                self._inserters.remove(check.relation, key if isinstance(key, tuple) else (key,))
            return
        changes = check.changes
        if changes.idle:
            changes.idle = False
            self._touch(changes)
        changes.removed.update(dict.fromkeys(keys))

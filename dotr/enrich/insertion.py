"""Generated functions that add rows at an instant: dedupe, index, join with rules, keep lower bounds.

Place:   under evaluation.py. The stream, the heads of rules and the unions all write through these.
Method:  `add` drops rows that the background or the overlay has, records new ones and puts them onto the
         worklist of their stratum; `run`, called from there, enters a row into the indexes that plans probe
         and joins it with everything entered so far. So a pair of new rows is joined once, by the later one
         (semi-naive, one row at a time). Non-recursive relations of the lowest stratum need no worklist:
         `add` joins at once. Code is made on the first row of a relation: a hundred thousand rules that
         nothing wakes cost nothing. An index requested late is added to existing functions in place
         (`_rewrite`), since callers hold them.
           Inserters   the functions, per relation
           DeltaRules  rules as functions: joined with one new row, or as a whole, they add their heads;
                       inserters contain a few of them and call the others
           RowCode     source lines about one row (`s` or `s, o`): its presence, bound, indexes and unions;
                       retraction.py uses them, too
           Triggers    which clauses a row wakes, and whether its joins may run as soon as it is added; made
                       from the clauses of a program, without data
           Bounds      lower bounds of the times until which rows hold, and which rows are due; owned by
                       expiration.py, which decides what happens to due rows
         Bounds are the expiration times of IMaRS (Barbieri et al. 2010, sec. 3): the bound of a row is the
         maximum over its derivations of the minimum over their premises; rows that never end have none. If a
         premise is stated again, its consequences keep their bounds and are checked again when due.
         `looked_at` is the time up to which such rows may be due.
Why not: regenerate all functions and repeat the instant each time: 36 ms against 0.4 ms for a chain of thirty
         rules, thirty times at its first instant. Raise all consequences at once, as the paper does: in a
         repetitive stream that costs a derivation per statement instead of a check per window.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from types import FunctionType
from typing import Any, TypeAlias

from msgspec import Struct, field

from dotr.codegen import Names, make
from dotr.enrich.analysis import components
from dotr.enrich.owl import UNRESTRICTED, Adder, Restrictions, checked
from dotr.enrich.rules import Clause
from dotr.events import FOREVER, Time
from dotr.joins.code import Annotation, CodeBlock, compile_plan, lookup
from dotr.joins.plan import (
    ALL,
    AbsentPattern,
    BodyPattern,
    Item,
    JoinPlan,
    Relation,
    bound_by,
    class_relation,
    is_aggregate,
    is_apart,
    is_class,
    plan,
)
from dotr.joins.store import TripleIndex
from dotr.program import Node, Var
from dotr.rdf.index import Changes, Row, has
from dotr.rdf.terms import RDF_TYPE, Term

_DEEPEST = 40  # calls from one row of an instant to the next


class DeltaAtom(Struct, frozen=True):
    """A clause as seen from one of its atoms: a row of the atom starts it, `rest` is joined.

    An absence is tested again among `rest`: another row may replace the added or removed one.
    """

    clause: Clause
    atom: BodyPattern
    rest: tuple[Item, ...]


def outside(absent: AbsentPattern, items: Sequence[Item]) -> BodyPattern:
    """The pattern of an absence as a trigger: its existential variables are renamed."""
    bound = bound_by(items)
    columns = tuple(
        Var("not " + node.name) if isinstance(node, Var) and node.name not in bound else node
        for node in absent.pattern.columns
    )
    return BodyPattern(absent.pattern.relation, columns)


class Triggers(Struct):
    """Clauses by the relation of each atom and the clause's stratum; absences separately."""

    positive: dict[tuple[Relation, int], list[DeltaAtom]] = field(default_factory=dict)
    negative: dict[tuple[Relation, int], list[DeltaAtom]] = field(default_factory=dict)

    @classmethod
    def of(cls, clauses: Sequence[Clause]) -> Triggers:
        found = cls()
        for clause in clauses:
            for i, item in enumerate(clause.items):
                rest = clause.items[:i] + clause.items[i + 1 :]
                if isinstance(item, BodyPattern):
                    key = (item.relation, clause.stratum)
                    found.positive.setdefault(key, []).append(DeltaAtom(clause, item, rest))
                elif isinstance(item, AbsentPattern):
                    key = (item.pattern.relation, clause.stratum)
                    trigger = DeltaAtom(clause, outside(item, clause.items), clause.items)
                    found.negative.setdefault(key, []).append(trigger)
        return found


class DirectTrigger:
    """Owns which relations' rows may be joined as they are added.

    The loops around such a join never read what it derives, because the relation is in no cycle; and calls
    are not nested too deeply. Computed from a relation on, at its first row.
    """

    def __init__(self, triggers: Triggers, level: Callable[[Relation], int], loose: bool) -> None:
        self._triggers = triggers
        self._level = level
        self._loose = loose  # a head may be of any relation
        self._depth: dict[Relation, int] = {}

    def __contains__(self, relation: Relation) -> bool:
        if self._loose:
            return False
        if relation not in self._depth:
            self._explore(relation)
        return self._depth[relation] > 0

    def _explore(self, start: Relation) -> None:
        """Depths of everything a row of `start` can derive; 0 means a worklist."""
        graph: dict[Relation, list[Relation]] = {}
        todo = [start]
        for relation in todo:
            if relation not in graph and relation not in self._depth:
                graph[relation] = self._next(relation)
                todo += graph[relation]
        for component in components(graph):
            for relation in component:
                if relation not in self._depth:
                    alone = len(component) == 1 and relation not in graph[relation]
                    below = 1 + max((self._depth.get(target, 0) for target in graph[relation]), default=0)
                    direct = alone and below <= _DEEPEST and self._level(relation) == 0
                    self._depth[relation] = below if direct else 0

    def _next(self, relation: Relation) -> list[Relation]:
        over = [relation, ALL] + ([RDF_TYPE] if is_class(relation) else [])
        return list(
            dict.fromkeys(
                head.pattern.relation
                for union in over
                for trigger in self._triggers.positive.get((union, 0), ())
                for head in trigger.clause.heads
            )
        )


Ends: TypeAlias = dict[Row, Time]
Queue: TypeAlias = dict[Time, list[Row]]
Popped: TypeAlias = list[tuple[Relation, Time, list[Row]]]
Log: TypeAlias = list[tuple[Ends, Collection[Row], Time | None]]
"""The former bound of some rows; None: no bound."""


class Bounds:
    """Owns the bounds of all relations, and the queue of rows by their bounds.

    A row with a bound holds, with the open change. A queue may name rows whose bound has changed since.
    Changes of existing bounds are on `log`. `is_stated`: whether a row, old or new, is stated, with the open
    change.
    """

    def __init__(self, is_stated: Callable[[Relation, Row], bool]) -> None:
        self._is_stated = is_stated
        self.looked_at: Time = -FOREVER
        """Rows due before this may have a derivation that lasts longer."""
        self.log: Log = []
        self.annotation = Annotation(one=FOREVER, join=min, merge=max, rows=self.of)
        self._ends: dict[Relation, Ends] = {}
        self._own: dict[Relation, Ends] = {}
        self._queues: dict[Relation, Queue] = {}
        self._times: list[Time] = []  # heap
        self._waiting: dict[Time, list[Relation]] = {}

    def of(self, relation: Relation) -> Ends:
        """The bounds of a relation's rows that end, by key; always the same dict."""
        return self._ends.setdefault(relation, {})

    def own(self, relation: Relation) -> Ends:
        """Ends of the statements of a relation's rows that are derived for longer; always the same dict."""
        return self._own.setdefault(relation, {})

    def set_own(self, relation: Relation, key: Row, until: Time | None) -> None:
        """When the statement of a row ends; None: at its bound, or there is no statement."""
        own = self.own(relation)
        before = own.get(key)
        if before == until:
            return
        self.log.append((own, (key,), before))
        if until is None:
            del own[key]
        else:
            own[key] = until

    def queue(self, relation: Relation) -> Queue:
        """Time → rows of a relation that are due; always the same dict."""
        return self._queues.setdefault(relation, {})

    def opener(self, relation: Relation) -> Callable[[Time, Row], None]:
        """The function that puts the first row due at a time into the queue."""
        queue, times, waiting = self.queue(relation), self._times, self._waiting

        def begin(time: Time, key: Row) -> None:
            queue[time] = [key]
            known = waiting.get(time)
            if known is None:
                waiting[time] = [relation]
                heappush(times, time)
            else:
                known.append(relation)

        return begin

    def beginner(self, relation: Relation) -> Callable[[Mapping[Row, Time]], None]:
        """The function that records how long new rows hold."""
        queue, ends, opener = self.queue(relation), self.of(relation), self.opener(relation)

        def begin(rows: Mapping[Row, Time]) -> None:
            ends.update(rows)
            last: Time | None = None
            waiting: list[Row] | None = None
            for key, until in rows.items():  # many share an end
                if until != last:
                    last, waiting = until, queue.get(until)
                if until == FOREVER:
                    del ends[key]
                elif waiting is None:
                    opener(until, key)
                    waiting = queue[until]
                else:
                    waiting.append(key)

        return begin

    def set(self, relation: Relation, key: Row, until: Time) -> None:
        """Set or change the bound of a row."""
        ends = self.of(relation)
        self.log.append((ends, (key,), ends.get(key)))
        if until == FOREVER:
            ends.pop(key, None)
            return
        ends[key] = until
        queue = self.queue(relation)
        if until in queue:
            queue[until].append(key)
        else:
            self.opener(relation)(until, key)

    def derive(self, relation: Relation, key: Row, until: Time, *, read: bool = True) -> None:
        """A row is derived for longer. `read`: others may depend on it; they keep their bounds."""
        if key not in self.own(relation) and self._is_stated(relation, key):
            self.set_own(relation, key, self.of(relation).get(key, FOREVER))
        if read:
            self.extend(relation, key, until)
        else:
            self.set(relation, key, until)

    def extend(self, relation: Relation, key: Row, until: Time) -> None:
        """A row on which others may depend holds longer: they keep their bounds."""
        self.set(relation, key, until)
        self.looked_at = max(self.looked_at, until)

    def drop(self, relation: Relation, key: Row) -> Time:
        """A row no longer holds; returns its bound."""
        ends = self.of(relation)
        before = ends.pop(key, None)
        if before is None:
            return FOREVER
        self.log.append((ends, (key,), before))
        return before

    def drop_due(self, relation: Relation, due: Time, keys: Iterable[Row]) -> dict[Row, None]:
        """Remove and return those rows of a queue that are due at that time."""
        ends = self.of(relation)
        pop = ends.pop
        found: dict[Row, None] = {}
        for key in keys:
            until = pop(key, None)
            if until == due:
                found[key] = None
            elif until is not None:
                ends[key] = until
        self.log.append((ends, found, due))
        return found

    def pop_due(self, time: Time) -> Popped:
        """Remove and return the rows of the queue that are due by `time`."""
        found: Popped = []
        while self._times and self._times[0] <= time:
            due = heappop(self._times)
            for relation in self._waiting.pop(due):
                found.append((relation, due, self._queues[relation].pop(due)))
        return found

    def put_back(self, popped: Popped) -> None:
        """Put these rows into the queue again."""
        for relation, due, keys in popped:
            queue = self.queue(relation)
            if due in queue:
                queue[due] += keys
                continue
            queue[due] = keys
            if due not in self._waiting:
                self._waiting[due] = []
                self._times.append(due)
            self._waiting[due].append(relation)
        heapify(self._times)

    def undo(self, log: Log) -> None:
        for ends, keys, before in reversed(log):
            if before is None:
                for key in keys:
                    ends.pop(key, None)
            else:
                ends.update(dict.fromkeys(keys, before))


class Derive(Struct, frozen=True):
    """The sink of a clause: call the function of the relation of every head that is a triple."""

    clause: Clause
    function: Callable[[Relation], Callable[..., None]]
    parameters: tuple[str, ...] = ()
    found: bool = False

    def lines(self, outputs: Sequence[Node], annotation: str, block: CodeBlock) -> list[str]:
        lines = []
        for head in self.clause.heads:
            columns = [block.value(node) for node in head.pattern.columns]
            tests = []
            if head.checked_subject:
                tests.append(f"{columns[0]}[0] != '\"'")
            if head.checked_predicate:
                tests.append(f"{columns[1]}[0] == '<'")
            function = block.names.bind(self.function(head.pattern.relation), "ADD")
            call = f"{function}({', '.join([*columns, annotation] if annotation else columns)})"
            lines.append(f"if {' and '.join(tests)}: {call}" if tests else call)
        return lines

    def tail(self, names: Names) -> list[str]:
        return []


class DeltaRules:
    """Makes the functions of clauses over one store. `adder`: relation → a function that adds a row."""

    def __init__(self, store: TripleIndex, adder: Callable[[Relation], Adder], bounds: Bounds | None) -> None:
        self._store = store
        self._adder = adder
        self._annotation = None if bounds is None else bounds.annotation

    def plan_of(self, trigger: DeltaAtom) -> JoinPlan:
        """The plan of a clause triggered by a new row; the overlay gets the indexes it needs."""
        found = plan(trigger.rest, trigger.clause.outputs, self._store, trigger=trigger.atom, as_set=True)
        self._store.prepare(found)
        return found

    def delta_rule(self, trigger: DeltaAtom) -> Callable[..., None]:
        """One triggered clause as a function of the row's columns, made on its first call."""
        made: list[Callable[..., None]] = []

        def start(*row: Term) -> None:
            if not made:
                made.append(self.function_of(self.plan_of(trigger), trigger.clause))
            made[0](*row)

        return start

    def function_of(self, found: JoinPlan, clause: Clause) -> Callable[..., None]:
        """A plan as a function that adds the clause's heads."""
        sink = Derive(clause, self._adder)
        return compile_plan(found, self._store, sink, self._annotation, source=clause.rule, stable=False)


class RowCode:
    """What the lines depend on: the store, which of ALL and RDF_TYPE are kept, whether rows have bounds."""

    def __init__(self, store: TripleIndex, unions: frozenset[Relation], bounds: Bounds | None) -> None:
        self._store = store
        self._unions = unions
        self._bounds = bounds

    def present(self, relation: Relation, names: Names) -> list[str]:
        """Lines of a function of (s) or (s, o), the last one an expression: whether the background has the
        row. Empty if it never has.
        """
        store = self._store
        one = is_class(relation)
        predicate = RDF_TYPE if one else relation
        if is_apart(relation):
            table = store.tables.get(relation)
            return [] if table is None else [f"(s, o) in {names.bind(table.rows, 'B')}"]
        column = store.column(predicate, 0) if not one or store.filled(relation) else None
        if column is None or store.changes(relation).arity > 2:
            return []
        found = lookup(column, names.bind(column, "B"), "s")
        value = names.bind(relation[2:], "K") if one else "o"
        if store.single(predicate, 0):
            return [f"{found} == {value}"]
        names.namespace["HAS"] = has
        test = f"t is not None and (t == {value} if t.__class__ is STR else HAS(t, {value}))"
        return [f"    t = {found}", test]

    def index_lines(self, relation: Relation, names: Names) -> list[str]:
        """Enter a new row of (s) or (s, o) into the relation's indexes, and into the unions that are kept."""
        lines = _enter_lines(self._store.changes(relation), ["s", "o"], "", names)
        for union in self.unions_of(relation):
            changes = self._store.changes(union)
            subject, predicate, object_ = self.triple(relation, names)
            row = [subject, object_] if union == RDF_TYPE else [subject, predicate, object_]
            whole = names.bind(changes, "CH")
            touch = names.bind(self._store.overlay.touched.append, "TOUCH")
            lines += [
                f"    if {whole}.idle:",
                f"        {whole}.idle = False",
                f"        {touch}({whole})",
                f"    w = ({', '.join(row)})",
                f"    {names.bind(changes.added, 'A')}[w] = None",
                *_enter_lines(changes, row, "w", names),
            ]
        return lines

    def triple(self, relation: Relation, names: Names) -> tuple[str, str, str]:
        """Source names of subject, predicate, object in a function of (s) or (s, o)."""
        if is_class(relation):
            return "s", names.bind(RDF_TYPE, "K"), names.bind(relation[2:], "K")
        return "s", names.bind(relation, "K"), "o"

    def unions_of(self, relation: Relation) -> list[Relation]:
        if is_apart(relation):
            return []
        return [u for u in ((RDF_TYPE, ALL) if is_class(relation) else (ALL,)) if u in self._unions]

    def bound_lines(self, relation: Relation, key: str, names: Names) -> list[str]:
        """Record how long a new row holds."""
        if self._bounds is None:
            return []
        queue, ends = (
            names.bind(self._bounds.queue(relation), "DUE"),
            names.bind(self._bounds.of(relation), "U"),
        )
        return [
            f"    if e0 != {names.bind(FOREVER, 'ONE')}:",
            f"        {ends}[{key}] = e0",
            f"        x = {queue}.get(e0)",
            f"        if x is None: {names.bind(self._bounds.opener(relation), 'BEGIN')}(e0, {key})",
            f"        else: x.append({key})",
        ]

    def waiting(self, relation: Relation) -> str:
        """What a row puts onto a worklist after its function: its columns, or its key and its bound (possibly
        an older one: if the bound is raised before the row is joined, its consequences keep lower bounds).
        """
        one = self._store.arity(relation) == 1
        if self._bounds is None:
            return f"s, {'None' if one else 'o'}"
        return f"{'s' if one else 'k'}, e0"

    def header(self, relation: Relation) -> list[str]:
        """The first lines of a function `run` for entries of a worklist."""
        if self._bounds is None:
            return ["def run(s, o):"]
        return (
            ["def run(s, e0):"] if self._store.arity(relation) == 1 else ["def run(k, e0):", "    s, o = k"]
        )


def _enter_lines(changes: Changes, columns: Sequence[str], row: str, names: Names) -> list[str]:
    """Source that puts a row into every index; `row` names the whole row, for indexes that hold it."""
    lines = []
    for places, index in changes.indexes.items():
        bound = names.bind(index, "I")
        keys = [columns[place] for place in places]
        key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
        value = columns[1 - places[0]] if changes.arity == 2 else row
        lines += [
            f"    x = {bound}.get({key})",
            f"    if x is None: {bound}[{key}] = [{value}]",
            f"    else: x.append({value})",
        ]
    return lines


Work: TypeAlias = list[tuple[Callable[..., None], Any, Any]]

_INLINE = 6  # plans written into one function


class Inserters:
    """Owns the generated functions of one store.

    `level`: relation → the stratum whose worklist takes its rows. `unions`: which of ALL and RDF_TYPE are
    kept. `open_world`: predicates that are in no program and no background are kept too, in ALL only.
    `overflow` is called when a relation with `limit` added rows gets another. `bounds`: rows have the time
    until which they hold after their columns or key; it is recorded there.
    """

    def __init__(
        self,
        store: TripleIndex,
        triggers: Triggers,
        work: Sequence[Work],
        level: Callable[[Relation], int],
        *,
        unions: frozenset[Relation] = frozenset(),
        known: frozenset[Relation] | None = None,
        limit: int,
        overflow: Callable[[Changes], None],
        restrictions: Restrictions = UNRESTRICTED,
        bounds: Bounds | None = None,
    ) -> None:
        self.store = store
        self.bounds = bounds
        self.annotation = None if bounds is None else bounds.annotation
        self._triggers = triggers
        self._work = work
        self._level = level
        self.unions = unions
        self._known = known
        self._limit = limit
        self._overflow = overflow
        self._restrictions = restrictions
        self._adders: dict[Relation, Adder] = {}
        self._runners: dict[Relation, Callable[..., None]] = {}
        self._again: dict[Relation, Callable[..., None]] = {}
        self._enterers: dict[Relation, Callable[[Any], None]] = {}
        self._names: dict[
            Relation, list[tuple[Names, Callable[..., None], Callable[[Relation, Names], str], str]]
        ] = {}
        found = [*triggers.positive.values(), *triggers.negative.values()]
        self._derived = {h.pattern.relation for ts in found for t in ts for h in t.clause.heads}
        self._direct = DirectTrigger(triggers, level, bool(self._derived & {ALL, RDF_TYPE}))
        self.rows = RowCode(store, unions, bounds)
        self.rules = DeltaRules(store, self.adder, bounds)
        self.late: list[tuple[Changes, tuple[int, ...]]] = []

    # -- adding

    def adder(self, relation: Relation) -> Adder:
        """The function that adds a row, by columns. For ALL and RDF_TYPE: dispatch on predicate or class."""
        found = self._adders.get(relation)
        if found is None:
            refused = self._restrictions.refuse.get(relation)
            if refused is not None:
                found = refused
            elif relation == ALL:
                found = self._add_any
            elif relation == RDF_TYPE:
                found = self._add_type
            else:
                found = self._make_adder(relation)
                check = self._restrictions.check.get(relation)
                found = found if check is None else checked(check, found)
            self._adders[relation] = found
        return found

    def knows(self, relation: Relation) -> bool:
        """Whether rows of the relation are kept under its own name."""
        if self._known is None or relation in self._known or relation in self._adders:
            return True
        return bool(self.unions) and self.store.filled(relation)

    def _add_any(self, subject: Term, predicate: Term, object_: Term) -> None:
        if predicate == RDF_TYPE:
            self._add_type(subject, object_)
        elif predicate in self._adders or self.knows(predicate):
            self.adder(predicate)(subject, object_)
        else:
            self.add_other(subject, predicate, object_)

    def _add_type(self, subject: Term, class_: Term) -> None:
        relation = class_relation(class_)
        if relation in self._adders or self.knows(relation):
            self.adder(relation)(subject)
        else:
            self.add_other(subject, RDF_TYPE, class_)

    def add_other(self, subject: Term, predicate: Term, object_: Term) -> None:
        """Add a triple of an unknown predicate or class, where a union is kept."""
        self._restrictions.met(class_relation(object_) if predicate == RDF_TYPE else predicate)
        row = (subject, predicate, object_)
        if predicate == RDF_TYPE and RDF_TYPE in self.unions:
            pair = (subject, object_)
            kept = self.store.changes(RDF_TYPE)
            if pair in kept.added:
                return
            self._keep(kept, pair, pair)
        if ALL in self.unions:
            kept = self.store.changes(ALL)
            if row in kept.added:
                return
            self._keep(kept, row, row)
        elif not (predicate == RDF_TYPE and RDF_TYPE in self.unions):
            return
        level = self._level(class_relation(object_) if predicate == RDF_TYPE else predicate)
        if self._plans_other(predicate, level):
            self._work[level].append((self._run_other, row, None))

    def _keep(self, changes: Changes, key: object, row: tuple[Term, ...]) -> None:
        if changes.idle:
            changes.idle = False
            self.store.overlay.touched.append(changes)
        changes.added[key] = None
        changes.enter(row)

    def _make_adder(self, relation: Relation) -> Adder:
        if self._known is not None and relation not in self._known:
            self._restrictions.met(relation)
        names = Names()
        source = self._adder_source(relation, names)
        function = make("add", source, names)
        self._names.setdefault(relation, []).append((names, function, self._adder_source, "add"))
        self._watch(relation)
        return function

    def enterer(self, relation: Relation) -> Callable[[Any], None]:
        """The function that adds new rows, passed by key (with bounds: key → until when), to indexes and
        unions, and queues them to be joined: `again` goes onto the worklist.
        """
        found = self._enterers.get(relation)
        if found is None:
            names = Names()
            function = make("enter", self._enterer_source(relation, names), names)
            self._names.setdefault(relation, []).append((names, function, self._enterer_source, "enter"))
            self._watch(relation)
            found = self._enterers[relation] = function
        return found

    def _enterer_source(self, relation: Relation, names: Names) -> str:
        changes, bounds = self.store.changes(relation), self.bounds
        run = names.bind(self.again(relation), "RUN") if self._plans(relation) else ""  # may request an index
        added, whole = names.bind(changes.added, "A"), names.bind(changes, "CH")
        lines = [
            "def enter(rows):",
            f"    if {whole}.idle:",
            f"        {whole}.idle = False",
            f"        {names.bind(self.store.overlay.touched.append, 'TOUCH')}({whole})",
            f"    {added}.update({names.bind(dict.fromkeys, 'KEYS')}(rows))",
        ]
        if bounds is not None:
            lines.append(f"    {names.bind(bounds.beginner(relation), 'BEGIN')}(rows)")
        each = ["    s = k" if changes.arity == 1 else "    s, o = k"]
        each += self.rows.index_lines(relation, names)
        if run:
            push = names.bind(self._work[self._level(relation)].append, "PUSH")
            each.append(f"    {push}(({run}, {self.rows.waiting(relation)}))")
        if len(each) > 1:
            lines.append("    for k in rows:" if bounds is None else "    for k, e0 in rows.items():")
            lines += [f"    {line}" for line in each]
        return "\n".join(lines) + "\n"

    def _adder_source(self, relation: Relation, names: Names) -> str:
        store, changes = self.store, self.store.changes(relation)
        one = changes.arity == 1
        key = "s" if one else "k"
        timed = self.bounds is not None
        lines = [f"def add({'s' if one else 's, o'}{', e0' if timed else ''}):"]
        put = lines.append
        direct = relation in self._direct
        present = self.rows.present(relation, names)
        volatile = relation in store.volatile
        if present:
            lines += present[:-1]
            if timed:
                lines += self._meet_lines(relation, present[-1], names)
            elif volatile:
                back = names.bind(self._restorer(relation), "BACK")
                put(f"    if {present[-1]}:")
                put(f"        {back}({'s' if one else '(s, o)'})")
                put("        return")
            else:
                put(f"    if {present[-1]}: return")
        if not one:
            put("    k = (s, o)")
        added = names.bind(changes.added, "A")
        touch = names.bind(store.overlay.touched.append, "TOUCH")
        whole = names.bind(changes, "CH")
        if self.bounds is not None:
            ends, meet = names.bind(self.bounds.of(relation), "U"), names.bind(self._meeter(relation), "MEET")
            put(f"    if {key} in {added}:")
            put(f"        if {ends}.get({key}, {names.bind(FOREVER, 'ONE')}) < e0: {meet}({key}, e0)")
            put("        return")
        elif volatile:
            put(f"    if {key} in {added}: return")
        if volatile:
            put(f"    if {whole}.idle:")
            put(f"        {whole}.idle = False")
            put(f"        {touch}({whole})")
        else:
            put(f"    if not {added}: {touch}({whole})")
            put(f"    elif {key} in {added}: return")
        if relation in self._derived or self._derived & {ALL, RDF_TYPE}:
            many = names.bind(self._overflow, "MANY")
            limit = names.bind(self._limit, "LIMIT")
            names.namespace["LEN"] = len
            put(f"    {'if' if volatile else 'elif'} LEN({added}) >= {limit}: {many}({whole})")
        put(f"    {added}[{key}] = None")
        lines += self.rows.bound_lines(relation, key, names)
        if direct:
            body = self._trigger_lines(relation, names)  # first: its plans may request an index
            lines += self.rows.index_lines(relation, names) + body
        elif self._plans(relation):
            level = self._level(relation)
            push = names.bind(self._work[level].append, "PUSH")
            run = names.bind(self._lazy_runner(relation, names), "RUN")
            put(f"    {push}(({run}, {self.rows.waiting(relation)}))")
        else:
            lines += self.rows.index_lines(relation, names)
        return "\n".join(lines) + "\n"

    def _meet_lines(self, relation: Relation, present: str, names: Names) -> list[str]:
        """Called for an existing row that may hold longer, or again."""
        assert self.bounds is not None
        changes = self.store.changes(relation)
        key = "s" if changes.arity == 1 else "(s, o)"
        ends, removed = names.bind(self.bounds.of(relation), "U"), names.bind(changes.removed, "R")
        meet = names.bind(self._meeter(relation), "MEET")
        return [
            f"    if {present}:",
            f"        x = {key}",
            f"        t = {ends}.get(x)",
            f"        if x in {removed} if t is None else t < e0: {meet}(x, e0)",
            "        return",
        ]

    def _meeter(self, relation: Relation) -> Callable[[Any, Any], None]:
        """Called for an existing row that is derived with a later bound, or that was taken out."""
        bounds, removed = self.bounds, self.store.changes(relation).removed
        assert bounds is not None
        read = bool(self._plans(relation))

        def meet(key: Any, until: Any) -> None:
            if key in removed:
                bounds.set(relation, key, until)
                self.restore(relation, key)
            else:
                bounds.derive(relation, key, until, read=read)

        return meet

    # -- running

    def _plans(self, relation: Relation) -> list[tuple[DeltaAtom, Relation]]:
        """Triggers of the relation's own stratum, with the relation of their atom."""
        level = self._level(relation)
        over = [relation] if is_apart(relation) else [relation, ALL]
        if is_class(relation):
            over.insert(1, RDF_TYPE)
        return [(t, r) for r in over for t in self._triggers.positive.get((r, level), ())]

    def _lazy_runner(self, relation: Relation, names: Names) -> Callable[..., None]:
        """A stub for `run` that makes it on the first call and replaces itself in the namespace of `add`."""

        def first(*row: Any) -> None:
            found = self._runners.get(relation)
            if found is None:
                found = self._runners[relation] = self._make_runner(relation)
                for name, value in names.namespace.items():
                    if value is first:
                        names.namespace[name] = found
                        break
            found(*row)  # rows queued with this function come here too

        return self._runners.get(relation, first)

    def _make_runner(self, relation: Relation) -> Callable[..., None]:
        names = Names()
        function = make("run", self._runner_source(relation, names), names)
        self._names.setdefault(relation, []).append((names, function, self._runner_source, "run"))
        return function

    def _runner_source(self, relation: Relation, names: Names) -> str:
        body = self._trigger_lines(relation, names)  # first: its plans may request an index
        lines = [*self.rows.header(relation), *self.rows.index_lines(relation, names), *body]
        return "\n".join(lines) + "\n"

    def again(self, relation: Relation) -> Callable[..., None]:
        """Like `run`, for a row of the background that holds again: it is not in the overlay's indexes."""
        found = self._again.get(relation)
        if found is None:
            names = Names()
            body = self._trigger_lines(relation, names) or ["    pass"]
            lines = [*self.rows.header(relation), *body]
            found = self._again[relation] = make("run", "\n".join(lines) + "\n", names)
        return found

    def _trigger_lines(self, relation: Relation, names: Names) -> list[str]:
        """The plans of the relation's own stratum, inline if they are few."""
        found = self._plans(relation)
        if is_aggregate(relation):
            runs = names.bind([self.rules.delta_rule(t) for t, _ in found], "RUNS")
            return [f"    for f in {runs}: f(*s)"]
        s, p, o = self.rows.triple(relation, names)
        lines: list[str] = []
        for trigger, over in found:
            row = (s,) if is_class(over) else (s, p, o) if over == ALL else (s, o)
            if len(found) > _INLINE:
                start = names.bind(self.rules.delta_rule(trigger), "START")
                until = () if self.bounds is None else ("e0",)
                lines.append(f"    {start}({', '.join((*row, *until))})")
                continue
            sink = Derive(trigger.clause, self.adder)
            block = CodeBlock(self.store, names, sink, self.annotation, source=trigger.clause.rule)
            block.write(self.rules.plan_of(trigger), row)
            lines += block.lines
        return lines

    def _plans_other(self, predicate: Term, level: int) -> list[DeltaAtom]:
        over = [RDF_TYPE, ALL] if predicate == RDF_TYPE else [ALL]
        return [t for r in over for t in self._triggers.positive.get((r, level), ())]

    def _run_other(self, row: tuple[Term, Term, Term], _: None) -> None:
        subject, predicate, object_ = row
        level = self._level(class_relation(object_) if predicate == RDF_TYPE else predicate)
        for relation in (RDF_TYPE, ALL) if predicate == RDF_TYPE else (ALL,):
            key = f"other {relation} {level}"
            found = self._runners.get(key)
            if found is None:
                starts = [
                    self.rules.delta_rule(t) for t in self._triggers.positive.get((relation, level), ())
                ]

                def run_all(*columns: Term, starts: list[Callable[..., None]] = starts) -> None:
                    for start in starts:
                        start(*columns)

                found = self._runners[key] = run_all
            found(*(row if relation == ALL else (subject, object_)))

    # -- rows of the background that were taken out

    def _restorer(self, relation: Relation) -> Callable[[Any], None]:
        changes = self.store.changes(relation)

        def back(key: Any) -> None:
            if key in changes.removed:
                self.restore(relation, key)

        return back

    def restore(self, relation: Relation, key: Any) -> None:
        """Restore a row that was taken out; its consequences are checked again."""
        row = (key,) if is_class(relation) else key
        self.put_back(relation, row)
        if self._plans(relation):
            waits: tuple[Any, Any] = (key, None) if is_class(relation) else key
            if self.bounds is not None:
                waits = key, self.bounds.of(relation).get(key, FOREVER)
            self._work[self._level(relation)].append((self.again(relation), *waits))

    def put_back(self, relation: Relation, row: tuple[Term, ...]) -> None:
        """Restore a row that was taken out, also in the unions."""
        del self.store.changes(relation).removed[row[0] if is_class(relation) else row]
        subject, object_ = (row[0], None) if is_class(relation) else (row[0], row[1])
        for union, other in self._union_rows(relation, subject, object_):
            self.store.changes(union).removed.pop(other, None)

    def remove(self, relation: Relation, row: tuple[Term, ...]) -> None:
        """Remove a row of the background from the instant and from the unions."""
        self.store.overlay.remove(relation, row)
        subject, object_ = (row[0], None) if is_class(relation) else (row[0], row[1])
        for union, other in self._union_rows(relation, subject, object_):
            self.store.overlay.remove(union, other)

    def _union_rows(
        self, relation: Relation, subject: Term, object_: Term | None
    ) -> list[tuple[Relation, tuple[Term, ...]]]:
        if is_apart(relation):
            return []
        found: list[tuple[Relation, tuple[Term, ...]]] = []
        predicate, value = (RDF_TYPE, relation[2:]) if is_class(relation) else (relation, object_ or "")
        if is_class(relation) and RDF_TYPE in self.unions:
            found.append((RDF_TYPE, (subject, value)))
        if ALL in self.unions:
            found.append((ALL, (subject, predicate, value)))
        return found

    # -- indexes requested late

    def _watch(self, relation: Relation) -> None:
        for kept in (relation, *self.rows.unions_of(relation)):
            self.store.changes(kept).extended = self._extended

    def _extended(self, changes: Changes, columns: tuple[int, ...]) -> None:
        """Rewrite the functions of a relation in place, so that every holder has the new ones."""
        self.late.append((changes, columns))
        if changes.relation in self.unions:
            for relation in list(self._names):
                if changes.relation in self.rows.unions_of(relation):
                    self._rewrite(relation)
        else:
            self._rewrite(changes.relation)

    def _rewrite(self, relation: Relation) -> None:
        for names, function, source, name in self._names.get(relation, ()):
            made = make(name, source(relation, names), names)
            if isinstance(function, FunctionType) and isinstance(made, FunctionType):
                function.__code__ = made.__code__
                function.__dict__.update(made.__dict__)

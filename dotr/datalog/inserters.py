"""Functions that add rows at an instant, generated per relation: dedupe, index, queue for triggers.

Place:   under stratum_evaluation.py. The stream, the heads of rules and the unions all write through these.
Method:  `add` drops rows that the background or the overlay has, records new ones and puts them onto the
         worklist of their stratum; `run`, called from there, enters a row into the indexes that plans probe
         and joins it with everything entered so far. So a pair of new rows is joined once, by the later one
         (semi-naive, one row at a time). Non-recursive relations of the lowest stratum need no worklist:
         `add` joins at once. Code is made on the first row of a relation: a hundred thousand rules that
         nothing wakes cost nothing. An index requested late is added to existing functions in place
         (`_rewrite`), since callers hold them.
Why not: regenerating all functions and repeating the instant each time: 36 ms against 0.4 ms for a chain of
         thirty rules, thirty times at its first instant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TypeAlias

from dotr.codegen import Names, make
from dotr.datalog.bounds import Bounds
from dotr.datalog.delta_rules import DeltaRules, Derive
from dotr.datalog.restrictions import UNRESTRICTED, Adder, Restrictions, checked
from dotr.datalog.row_code import RowCode
from dotr.datalog.triggers import DirectTrigger, Trigger, Triggers
from dotr.events import FOREVER
from dotr.joins.graph_relations import ALL, Relation, class_relation, is_aggregate, is_apart, is_class
from dotr.joins.join_code import CodeBlock
from dotr.joins.store import TripleIndex
from dotr.rdf.overlay import Changes
from dotr.rdf.terms import RDF_TYPE, Term

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

    def _plans(self, relation: Relation) -> list[tuple[Trigger, Relation]]:
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

    def _plans_other(self, predicate: Term, level: int) -> list[Trigger]:
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

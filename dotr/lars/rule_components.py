"""Rules that are evaluated together: a component of names, lasting or standing.

Place:   table_building.py makes them, engine.py evaluates them in order at each point.
Method:  see engine.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from dotr.budget import Meter
from dotr.lars.differences import Differences
from dotr.lars.fact_windows import FactView
from dotr.lars.remembered_atoms import Relation
from dotr.lars.solution_sinks import Pile
from dotr.lars.totals import Totals
from dotr.lars.window_tables import Agenda, AtomTable, Row


class TableTrigger(Struct, eq=False):
    """A rule's join from what is new in one of its tables. `done`: how much of that it has seen."""

    table: AtomTable
    run: Callable[[list[Row]], None]
    sink: Pile
    done: int = 0


class LastingHeads:
    """Owns the triggers of a component whose heads only ever last longer.

    `recursive`: its joins may make something new for each other.
    """

    def __init__(
        self,
        heads: Sequence[Relation],
        triggers: Sequence[TableTrigger],
        recursive: bool,
        watched: Sequence[Relation],
    ) -> None:
        self.heads = heads
        self._triggers, self._recursive = triggers, recursive
        self.watched = watched
        self.evaluated = True

    def evaluate(self, now: int) -> None:
        if self._recursive:
            for trigger in self._triggers:
                trigger.done = 0
            run_all(self._triggers)
            return
        for trigger in self._triggers:
            delta = trigger.table.delta
            if delta:
                trigger.run(delta)
                trigger.sink.empty()


def run_all(triggers: Sequence[TableTrigger]) -> None:
    """Run triggers until none has anything new."""
    moved = True
    while moved:
        moved = False
        for trigger in triggers:
            delta = trigger.table.delta
            if len(delta) > trigger.done:
                new = delta[trigger.done :]
                trigger.done = len(delta)
                trigger.run(new)
                trigger.sink.empty()
                moved = True


class Reads(Struct, eq=False):
    """What the rules of a standing component read."""

    tables: dict[AtomTable, None] = field(default_factory=dict)
    fact_views: dict[FactView, None] = field(default_factory=dict)
    totals: dict[Totals, None] = field(default_factory=dict)

    def refresh(self, now: int) -> None:
        """Bring up to date what is computed from other tables."""
        for view in self.fact_views:
            view.refresh(now)
        for total in self.totals:
            total.refresh()

    @property
    def changed(self) -> bool:
        """Whether a row began or ended at this point."""
        return any(table.changed for table in self.tables)


class StandingHead(Struct, eq=False):
    """Owns the rules of one head that stands until something that they read changes.

    `whole`: every rule over all that holds, into `found`. `differences`: the same rules from what changed;
    None where they are derived as a whole each time.
    """

    relation: Relation
    reads: Reads
    whole: Sequence[tuple[Callable[[], None], Pile]]
    found: dict[Row, None]
    differences: Sequence[Differences] | None
    meter: Meter
    watched: Sequence[Relation] = ()
    evaluated: bool = field(default=False)

    def evaluate(self, now: int) -> None:
        self.reads.refresh(now)
        if self.evaluated and self.reads.changed and self.differences is not None:
            self._keep_up(self.differences)
        elif self.reads.changed or not self.evaluated:
            self._derive()
        self.evaluated = True
        self.relation.settle()

    @property
    def heads(self) -> Sequence[Relation]:
        return (self.relation,)

    def _derive(self) -> None:
        relation, found = self.relation, self.found
        found.clear()
        for run, sink in self.whole:
            run()
            sink.empty()
        for values in [values for values in relation.standing if values not in found]:
            relation.stop(values)
        relation.stand(found)

    def _keep_up(self, rules: Sequence[Differences]) -> None:
        relation, found = self.relation, self.found
        found.clear()
        for rule in rules:
            for gain in rule.gains:
                gain.find()
        standing = relation.standing
        doubtful: dict[Row, None] = {}
        for rule in rules:
            for loss in rule.losses:
                doubtful.update((row, None) for row in loss.candidates(standing) if row not in found)
        self.meter.charge(len(doubtful), f"{relation.name}() that may have ended")
        for row in doubtful:
            if row in standing and not any(rule.check is not None and rule.check(row) for rule in rules):
                relation.stop(row)
        relation.stand(found)


class Recursive(Struct, eq=False):
    """Owns the rules of heads that depend on each other and stand until something that they read changes.

    `whole`: every rule over all that holds. `triggers`: over the component's own tables. `carried`: what the
    last derivation cost is charged where it is not repeated, too, as it would be beside other keys.
    """

    heads: Sequence[Relation]
    reads: Reads
    whole: Sequence[tuple[Callable[[], None], Pile]]
    triggers: Sequence[TableTrigger]
    meter: Meter
    agenda: Agenda
    carried: bool = False
    watched: Sequence[Relation] = ()
    evaluated: bool = field(default=False)
    cost: int = 0

    def evaluate(self, now: int) -> None:
        self.reads.refresh(now)
        if not self.evaluated or self.reads.changed or self._goes_on():
            left = self.meter.left[0]
            self._derive()
            self.cost = left - self.meter.left[0]
            # what stands on atoms that are put at this point alone has to be found again at the next
            self.evaluated = not any(relation.put_now for relation in self.heads)
            if not self.evaluated:
                self.agenda.add(now + 1)
        elif self.carried:
            self.meter.charge(self.cost, "what stands")
        for relation in self.heads:
            relation.settle()

    def _goes_on(self) -> bool:
        """Whether a rule sees each point at which a head of its own stands."""
        return any(view.lasting for head in self.heads for view in head.each_point)

    def _derive(self) -> None:
        """What stood is stopped first, so that nothing supports itself."""
        for relation in self.heads:
            for values in list(relation.standing):
                relation.stop(values)
        for trigger in self.triggers:
            trigger.done = len(trigger.table.delta)
        for run, sink in self.whole:
            run()
            sink.empty()
        run_all(self.triggers)


Component = LastingHeads | StandingHead | Recursive

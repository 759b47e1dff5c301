"""Rules that are evaluated together: a component of names, lasting or standing.

Place:   building.py makes them, engine.py evaluates them in order at each point.
Method:  see engine.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dotr.lars.fact_windows import FactView
from dotr.lars.relations import Relation
from dotr.lars.sinks import Pile
from dotr.lars.tables import Row, Table
from dotr.lars.totals import Totals


@dataclass(slots=True, eq=False)
class Trigger:
    """A rule's join from what is new in one of its tables. `done`: how much of that it has seen."""

    table: Table
    run: Callable[[list[Row]], None]
    sink: Pile
    done: int = 0


class Lasting:
    """Owns the triggers of a component whose heads only ever last longer."""

    def __init__(self, triggers: Sequence[Trigger], watched: Sequence[Relation]) -> None:
        self._triggers = triggers
        self.watched = watched
        self.evaluated = True

    def begin(self) -> None:
        for trigger in self._triggers:
            trigger.done = 0

    def evaluate(self, now: int) -> None:
        run_all(self._triggers)


def run_all(triggers: Sequence[Trigger]) -> None:
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


@dataclass(slots=True, eq=False)
class Standing:
    """Owns the rules of a component whose heads stand until something that it reads changes.

    `whole`: every rule over all that holds. `triggers`: over its own tables, if it is recursive. `found`: by
    head, what the rules of a component that is not recursive derive.
    """

    heads: Sequence[Relation]
    tables: Sequence[Table]
    whole: Sequence[tuple[Callable[[], None], Pile]]
    triggers: Sequence[Trigger]
    found: Sequence[dict[Row, None]]
    recursive: bool
    fact_views: Sequence[FactView]
    totals: Sequence[Totals]
    watched: Sequence[Relation] = ()
    evaluated: bool = field(default=False)

    def begin(self) -> None:
        pass

    def evaluate(self, now: int) -> None:
        for view in self.fact_views:
            view.refresh(now)
        for total in self.totals:
            total.refresh()
        if self._may_change():
            self.evaluated = True
            if self.recursive:
                self._from_nothing()
            else:
                self._by_difference()
        for relation in self.heads:
            relation.settle()

    def _may_change(self) -> bool:
        if not self.evaluated or any(table.changed for table in self.tables):
            return True
        return self.recursive and any(view.lasting for head in self.heads for view in head.each_point)

    def _by_difference(self) -> None:
        for found in self.found:
            found.clear()
        self._run_whole()
        for relation, found in zip(self.heads, self.found, strict=True):
            for values in [values for values in relation.standing if values not in found]:
                relation.stop(values)
            relation.stand(found)

    def _from_nothing(self) -> None:
        """What stood is stopped first, so that nothing supports itself."""
        for relation in self.heads:
            for values in list(relation.standing):
                relation.stop(values)
        for trigger in self.triggers:
            trigger.done = len(trigger.table.delta)
        self._run_whole()
        run_all(self.triggers)

    def _run_whole(self) -> None:
        for run, sink in self.whole:
            run()
            sink.empty()

"""What lasts, seen from the pipeline: M(t) as it changes, K(t) over it, and the answers that begin and end.

Place:   between core/pipeline.py, which knows what is stated when (periods.py), and an engine that maintains
         what follows from it. `ENGINES` names the engines; all are tested against reference/lasting.py.
Method:  language.md, "What lasts". At an instant the pipeline calls `change` with the change of what is
         stated, `facts` if a rule sees the instant, and then `keep`; or `abandon` if one of them raised. Then
         `change` is called again with the ends of periods alone, as if the messages had never come; if that
         raises, too, `overlook` continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from dotr.core.maintained import Maintenance
from dotr.core.periods import Periods, StatedChange
from dotr.core.recomputation import Recomputation
from dotr.core.spending import Spending
from dotr.errors import Diagnostic
from dotr.events import Clock, Fact, Time
from dotr.ir import Program
from dotr.rdf.terms import Triple

Facts: TypeAlias = dict[str, list[Fact]]
"""Stream → its facts of one instant in canonical order; streams without facts are left out."""


class LastingKnowledge(Protocol):
    """Owns M, the least model of the rules over what is stated, and the standing answers over it.

    Times never decrease from call to call. At most one change is open.
    """

    def change(self, time: Time, stated: StatedChange, program: Program | None = None) -> Facts:
        """Open the change from M(t⁻) to M(t); returns the facts of all ISTREAM and DSTREAM streams that have
        any.

        They are the bag difference between a query's answers and those kept last, ordinals counted within it.
        With `stated` empty, an inconsistent M is still reported. `program`: its rules hold from `time` on,
        and its queries are evaluated, also over M(t⁻) under the earlier rules. Raises DataError or
        ProgramError when M(t) contradicts itself, explodes, or has a schema that makes the rules invalid;
        then nothing is open and the earlier program stays.
        """

    def facts(self, time: Time, graph: Sequence[Triple] | None) -> Facts:
        """The facts of all other streams over K(t), with the open change.

        `graph`: the triples of the instant's graphs, labelled, None if none came. K(t) is dropped afterwards.
        Raises DotrError as `change` does, and D2601; the change stays open.
        """

    def findings(self) -> Sequence[Diagnostic]:
        """Warnings about the open change and what `facts` took: D2602. Again for what was reported before."""

    def state(self, graph: Sequence[Triple]) -> set[Triple]:
        """K(t) with the open change, as far as it is materialised. Raises as `facts` does."""

    def keep(self) -> None:
        """Commit the open change: the next change is compared with its answers."""

    def abandon(self) -> None:
        """Undo the open change, if any."""

    def overlook(self, time: Time, stated: StatedChange, program: Program | None = None) -> None:
        """Commit a change without messages for which `change` raised.

        The answers kept last stay, to be compared with the next consistent M; `facts` is not called before
        then.
        """

    def snapshot(self) -> Any:
        """What a new engine over what is stated now cannot derive, as a JSON value, or None. Called between
        instants.
        """

    def restore(self, state: Any) -> None:
        """Restore a `snapshot` in a new engine."""


Open: TypeAlias = Callable[[Program, Periods, Clock, bool, int, Spending], LastingKnowledge]
"""(program, what is stated and until when, clock, whether everything is materialised, units of work, what
the run may spend) → the engine. What is stated is closed when the first change is opened; a contradiction in
it is not an error here. The periods advance before the engine gets a change, and are undone after the engine
undoes it."""

ENGINES: Mapping[str, Open] = {"maintenance": Maintenance, "recomputation": Recomputation}
"""Engines of what lasts by name."""

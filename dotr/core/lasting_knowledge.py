"""What lasts, seen from the pipeline: M(t) as it changes, K(t) over it, and the answers that come and go.

Place:   between core/pipeline.py, which says what is stated when (periods.py), and an engine that keeps what
         follows from it. `ENGINES` names the engines; all are held against reference/lasting.py.
Method:  language.md, "What lasts". At an instant the pipeline calls `change` with how what is stated
         changes, `facts` where some rule sees the instant, and then `keep`; or `abandon` when one of them
         raised. Then the messages never came, and `change` is called again with the ends of periods alone;
         where that raises, too, `overlook` goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from dotr.core.maintained import Maintenance
from dotr.core.periods import Periods, StatedChange
from dotr.core.recomputation import Recomputation
from dotr.events import Clock, Fact, Time
from dotr.ir import Program
from dotr.rdf.terms import Triple

Facts: TypeAlias = dict[str, list[Fact]]
"""Stream → its facts of one instant in canonical order; no stream without facts."""


class LastingKnowledge(Protocol):
    """Owns M, the least model of the rules over what is stated, and the standing answers over it.

    Times never decrease from call to call. At most one change is open.
    """

    def change(self, time: Time, stated: StatedChange, program: Program | None = None) -> Facts:
        """Open the change from M(t⁻) to M(t); the facts of all ISTREAM and DSTREAM streams that have some.

        They are the bag difference of a query's answers, ordinals counted within it, against the answers
        that were kept last. `stated` may be empty: that M contradicts itself is then reported all the same.
        `program`: its rules hold from `time` on, and its queries are the ones that are asked, of M(t⁻) under
        the rules before as well.
        Raises DataError or ProgramError when M(t) contradicts itself, explodes, or has a schema over which
        the rules are not a program; nothing is open then, and the program is the one before.
        """

    def facts(self, time: Time, graph: Sequence[Triple] | None) -> Facts:
        """The facts of all other streams over K(t), with the change that is open.

        `graph`: the triples of the instant's graphs, labelled, None where none came. K(t) is gone afterwards.
        Raises DotrError as `change` does, and D2601; the change is open still.
        """

    def state(self, graph: Sequence[Triple]) -> set[Triple]:
        """K(t) with the change that is open: as far as it is materialised. Raises as `facts` does."""

    def keep(self) -> None:
        """Settle the open change: its answers are the ones that the next change is compared with."""

    def abandon(self) -> None:
        """Take the open change back. Without one nothing happens."""

    def overlook(self, time: Time, stated: StatedChange, program: Program | None = None) -> None:
        """Take, and keep, a change over which `change` raised though no message is to blame.

        The answers that were kept last stay, for the next M that is consistent to be compared with; `facts`
        is not called before there is one.
        """

    def snapshot(self) -> Any:
        """What a new engine over what is stated now cannot know, as a value that JSON can hold; None where
        there is nothing. Called between instants.
        """

    def restore(self, state: Any) -> None:
        """Take what `snapshot` gave, in an engine that is new."""


Open: TypeAlias = Callable[[Program, Periods, Clock, bool, int], LastingKnowledge]
"""(program, what is stated and until when, clock, whether everything is materialised, units of work) → the
engine. What is stated is closed when the first change is opened; that it contradicts itself is not an
error here. The periods go on with every change, before the engine gets it, and are taken back after it is."""

ENGINES: Mapping[str, Open] = {"maintenance": Maintenance, "recomputation": Recomputation}
"""Engines of what lasts by name."""

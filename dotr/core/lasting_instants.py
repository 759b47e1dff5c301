"""Which instants occur where something lasts, and how those in error are handled.

Place:   between core/pipeline.py, which closes instants and detects, and hold.py, which advances to one.
Method:  language.md, "What lasts". Beside the instants of messages: ticks, ends of periods, and changes of
         rules, each once, in order. A refused instant is repeated without its messages; if that is in error,
         too, what is stated advances and the instant has no facts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from dotr.core.instant import REFUSABLE
from dotr.core.messages import Instant, Part, labelled
from dotr.core.periods import Entry
from dotr.errors import DataError, DotrError, ProgramError
from dotr.events import Time
from dotr.program import Program
from dotr.rdf.terms import Triple

if TYPE_CHECKING:
    from dotr.core.hold import LastingInstant, LastingRun
    from dotr.reference.oracle import Oracle

OnRefused: TypeAlias = Callable[[Time, Sequence[Part], DotrError], DotrError | None]
"""Handles an instant in error: returns what to raise after it, None to continue."""

Leap: TypeAlias = "tuple[Time, LastingInstant, DotrError | None]"
"""(time, what happened, what to raise after it)."""


class LastingInstants:
    """Owns what lasts in a run, and drives the literal reading beside it if verifying."""

    def __init__(self, jumps: LastingRun, on_refused: OnRefused, oracle: Oracle | None) -> None:
        self._jumps = jumps
        self._on_refused = on_refused
        self._oracle = oracle
        if oracle is not None:
            oracle.last_from_now()

    def stated(self) -> list[Triple]:
        """Every triple stated now."""
        return self._jumps.stated()

    @property
    def useless(self) -> int:
        """Deletions of triples that were not stated."""
        return self._jumps.useless

    def replace(self, time: Time, program: Program, background: Collection[Triple]) -> None:
        self._jumps.replace(time, program, background)
        if self._oracle is not None:
            self._oracle.replace(time, program, background)

    def program_from(self, time: Time) -> Program | None:
        return self._jumps.program_from(time)

    def programs_ahead(self) -> dict[Time, Program]:
        return self._jumps.programs_ahead()

    def instants(
        self,
        due: Sequence[Instant],
        bound: Time,
        next_tick: Callable[[Time], Time | None],
        is_tick: Callable[[Time], bool],
    ) -> Iterator[Leap]:
        """The instants `due`, and those between and after them that lie before `bound`.

        The caller finishes one instant before it takes the next, so that `next_tick` (the next tick that can
        matter before a time) knows of it.
        """
        for time, parts in due:
            yield from self._before(time, next_tick, is_tick)
            yield self._leap(time, parts or (), is_tick(time))
        yield from self._before(bound, next_tick, is_tick)

    def _before(
        self, bound: Time, next_tick: Callable[[Time], Time | None], is_tick: Callable[[Time], bool]
    ) -> Iterator[Leap]:
        while True:
            jump = self._jumps.next()
            until = bound if jump is None else min(bound, jump)
            time = next_tick(until)  # before the jump, if any
            time = until if time is None else time
            if time >= bound:
                return
            yield self._leap(time, (), is_tick(time))

    def _leap(self, time: Time, parts: Sequence[Part], tick: bool) -> Leap:
        try:
            return time, self._jumps.go(time, parts, tick), None
        except (DataError, ProgramError) as error:
            return time, *self._without(time, parts, tick, self._placed(error, time))

    def _without(
        self, time: Time, parts: Sequence[Part], tick: bool, error: DotrError
    ) -> tuple[LastingInstant, DotrError | None]:
        """The jump of an instant whose messages are refused."""
        jumps, oracle = self._jumps, self._oracle
        failed = self._on_refused(time, parts, error) if parts or jumps.consistent else None
        if oracle is not None:
            oracle.refuse(time, labelled(parts, time), error)
        if parts:
            try:
                return jumps.go(time, (), tick), failed
            except (DataError, ProgramError) as again:
                if jumps.consistent:
                    failed = failed or self._on_refused(time, (), self._placed(again, time))
        if oracle is not None:
            oracle.overlook(time)
        return jumps.overlook(time, tick), failed

    def _placed(self, error: DotrError, time: Time) -> DotrError:
        """An error of an instant, with its time for a place."""
        place = f"@ {self._jumps.clock.text(time)}"
        return type(error)([one if one.place else one._replace(place=place) for one in error.diagnostics])

    @property
    def spent_at_most(self) -> int:
        return self._jumps.spent_at_most

    def changed(self) -> dict[Triple, Entry | None]:
        return self._jumps.changed()

    def snapshot(self, stated: bool = True) -> dict[str, Any]:
        return self._jumps.snapshot(stated)

    def restore(self, state: Mapping[str, Any]) -> None:
        self._jumps.restore(state)


def is_refusable(error: DotrError) -> bool:
    """Whether an instant of what lasts is at fault, also if its schema makes the rules invalid (D30xx,
    D31xx).
    """
    code = error.diagnostics[0].code
    return code in REFUSABLE or code.startswith(("D30", "D31"))

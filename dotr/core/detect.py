"""Step 3: detect. Facts of this and earlier instants become matches of the rules.

Place:   called by pipeline.py between extract and emit; sees facts only, never a triple.
Method:  paper, sec. 3, TESLA; every case is spelled out in language.md, sec. 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

from dotr.budget import POINT
from dotr.events import Clock, Fact, RawMatch, Time
from dotr.ir import Program
from dotr.late import dataclass
from dotr.sparql.distribution import Shares
from dotr.tesla.detection_stages import Passed
from dotr.tesla.detector import Filtered, Restored, TeslaDetector
from dotr.tesla.plan import RulePlan
from dotr.tesla.refusals import RefusedTrigger
from dotr.tesla.thresholds import sizes
from dotr.tesla.timeline import opened


class Detector(Protocol):
    """What the pipeline asks of a temporal engine. Times strictly increase from call to call."""

    @property
    def dropped(self) -> int:
        """Matches whose template had a literal subject or a predicate that is not an IRI."""

    def detect(
        self, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool = True
    ) -> Sequence[RawMatch]:
        """The matches triggered at `time`, which `in_order` puts into output order; `graph` False marks an
        instant of ticks alone.
        """

    def detected(
        self,
        instants: Iterable[tuple[Time, object, Mapping[str, Sequence[Fact]], bool]],
        seen: dict[str, int],
        quiet: dict[str, int],
        *,
        every: bool = False,
    ) -> Iterator[tuple[int, Sequence[RawMatch]]]:
        """`detect` for instant after instant, (time, anything, facts, graph): the place and the matches of
        those that have some, or a trigger fact that took too much; with `every`, of all. `seen` and `quiet`
        count the facts of streams, where a graph came and where none did.
        """

    @property
    def now(self) -> Time | None:
        """The last instant that was detected; None before the first."""

    def due(self, bound: Time) -> Time | None:
        """The next time before `bound`, which is that of the next instant, that has to be detected at though
        no graph comes; None if there is none.
        """

    def pass_over(self, bound: Time) -> None:
        """There is no further instant before `bound`, nor is one due."""

    def covering(self, time: Time) -> Time:
        """Up to when detection has to go on for all that happened by `time` to be seen; not before it."""

    def sizes(self) -> dict[str, int]:
        """Rule → how many facts are remembered for it."""

    def passed(self) -> dict[str, Passed]:
        """Rule → how many partial matches each step of it left since this detector was made."""

    def forget_passed(self) -> None:
        """Count from 0 again."""

    def snapshot(self) -> dict[str, Any]:
        """State by rule digest, as a JSON-able value that shares nothing with the detector."""

    def restore(self, state: Mapping[str, Any]) -> Restored:
        """Take over the parts of unchanged rules; says which kept their state, start empty, are gone."""


Open: TypeAlias = Callable[
    [Program, Clock, Mapping[str, str], Mapping[str, Filtered], int, RefusedTrigger, tuple[int, int, int]],
    Detector,
]
"""(program, clock, stream → the one whose facts it has, stream → its base and the comparison it passes, units
of work of a rule at one trigger fact, who gets facts that take more, (units of work of what holds at
one point, among how many parts of keys they are shared))."""


@dataclass(frozen=True, slots=True)
class TemporalEngine:
    """What a deployment takes from a temporal engine.

    `shares`: which comparisons with constants it makes itself, so that queries need not be distinguished by
    them. `plans`: how a detector of this engine detects each rule.
    """

    open: Open
    shares: Shares
    plans: Callable[[Detector], Sequence[RulePlan]]


def _tesla(
    program: Program,
    clock: Clock,
    same: Mapping[str, str],
    filtered: Mapping[str, Filtered],
    budget: int,
    on_refused: RefusedTrigger,
    holding: tuple[int, int, int],
) -> TeslaDetector:
    timeline = None
    if program.lars.rules:
        from dotr.lars.engine import LarsEngine  # noqa: PLC0415  # start-up: most programs have no such rules

        units, parts, in_all = holding
        engine = partial(LarsEngine, budget=units, parts=parts, in_all=in_all)
        timeline = opened(program, clock, engine, most=units // parts // POINT)
    return TeslaDetector(
        program,
        clock,
        budget=budget,
        on_refused=on_refused,
        same=same,
        filtered=filtered,
        timeline=timeline,
    )


def _tesla_plans(detector: Detector) -> Sequence[RulePlan]:
    assert isinstance(detector, TeslaDetector)
    return detector.network.plans


ENGINES: Mapping[str, TemporalEngine] = {"tesla": TemporalEngine(_tesla, sizes, _tesla_plans)}
"""Temporal engines by the name that `--detector` takes."""

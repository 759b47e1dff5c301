"""What a deployment takes from a temporal engine, and what is asked of its detectors.

Place:   core/detect.py has the engines by name; a deployment (core/deployment.py) holds one, and runners
         ask the deployment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from dotr.events import Clock, Fact, Match, RawMatch, Time
from dotr.ir import Program
from dotr.late import dataclass
from dotr.rdf.terms import Term
from dotr.temporal.partitions import By, Partitioning
from dotr.temporal.refusals import RefusedTrigger
from dotr.temporal.silences import Silence
from dotr.temporal.stages import Passed


@dataclass(frozen=True, slots=True)
class RuleReach:
    """How far back a rule looks, and how far back what it finds can depend on.

    `kept`: how long any fact is remembered for it (its horizon): the deepest of its windows. `influence`: how
    far back what its events depend on can lie, through the rules that it reads; None: the whole past, `why`;
    `root`: because of the rule itself, not of one that it reads.
    """

    kept: Time
    influence: Time | None
    why: str = ""
    root: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """What a snapshot gave: rules that kept their state, rules that start empty, rules no longer there."""

    kept: tuple[str, ...]
    empty: tuple[str, ...]
    gone: tuple[str, ...]


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
    [
        Program,
        Clock,
        Mapping[str, str],
        Mapping[str, tuple[str, str, Term]],
        int,
        RefusedTrigger,
        tuple[int, int, int],
    ],
    Detector,
]
"""(program, clock, stream → the one whose facts it has, stream → its base, operator and constant, units
of work of a rule at one trigger fact, who gets facts that take more, (units of work of what holds at
one point, among how many parts of keys they are shared, of what holds at all points))."""


class LiteralDetector(Protocol):
    """The literal reading beside a detector: all that was ever seen, by enumeration."""

    def at(
        self,
        time: Time,
        facts: Mapping[str, Sequence[Fact]],
        graph: bool,
        left_out: Collection[tuple[int, Fact]] = (),
    ) -> list[Match]:
        """The matches at `time`, in output order."""


@dataclass(frozen=True, slots=True)
class TemporalEngine:
    """What a deployment takes from a temporal engine, by its name.

    `shares`: which comparisons with constants it makes itself, so that queries need not be distinguished by
    them. `plans`: how a detector of this engine detects each rule, as the engine shows it. `literal`: what
    `--verify` compares it with. `reaches`: horizons of rules. `partitioning`: (program, by, whether what
    holds is found out in one task) → how it can be cut. `silence`: (program, queries that may have facts
    without a graph) → which ticks matter. `digests`: what the state of each rule belongs to.
    """

    open: Open
    shares: Callable[[str, Sequence[Term]], Callable[[Term | None], int | None] | None]
    plans: Callable[[Detector], Sequence[Any]]
    literal: Callable[[Program, Clock], LiteralDetector]
    reaches: Callable[[Program], list[RuleReach]]
    partitioning: Callable[[Program, By, bool], Partitioning]
    silence: Callable[[Program, Collection[str]], Silence]
    digests: Callable[[Program], Sequence[str]]

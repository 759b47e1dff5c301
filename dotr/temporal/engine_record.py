"""What a deployment takes from a temporal engine, and the interface of its detectors.

Place:   core/detect.py has the engines by name; a deployment (core/deployment.py) holds one, and runners use
         the deployment.
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
from dotr.temporal.stages import Counts, Passed


@dataclass(frozen=True, slots=True)
class RuleReach:
    """How far back a rule looks, and how far back its events can depend on the past.

    `kept`: how long facts are stored for it (its horizon): the deepest of its windows. `influence`: how far
    back its events can depend on the past, through the rules that it reads; None: on all of it, `why`;
    `root`: because of the rule itself, not of one that it reads.
    """

    kept: Time
    influence: Time | None
    why: str = ""
    root: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore: rules that kept their state, that start empty, that no longer exist."""

    kept: tuple[str, ...]
    empty: tuple[str, ...]
    gone: tuple[str, ...]


class Detector(Protocol):
    """What the pipeline requires of a detector. Times strictly increase from call to call."""

    @property
    def dropped(self) -> int:
        """Matches whose template had a literal subject or a predicate that is not an IRI."""

    def detect(
        self, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool = True
    ) -> Sequence[RawMatch]:
        """The matches triggered at `time`, which `in_order` puts into output order; `graph` False marks an
        instant without a graph.
        """

    def detected(
        self,
        instants: Iterable[tuple[Time, object, Mapping[str, Sequence[Fact]], bool]],
        seen: Counts,
        quiet: Counts,
        *,
        every: bool = False,
    ) -> Iterator[tuple[int, Sequence[RawMatch]]]:
        """`detect` for a sequence of (time, anything, facts, graph): yields place and matches of those that
        have any, or a trigger fact that took too much; with `every`, of all. `seen` and `quiet` count the
        facts of streams with and without a graph.
        """

    @property
    def now(self) -> Time | None:
        """The last instant that was detected; None before the first."""

    @property
    def waking(self) -> frozenset[str] | None:
        """The streams whose facts trigger rules, if instants without any need not be detected by themselves:
        their facts come, in order, with the next instant that is. None if every one must be.
        """

    def due(self, bound: Time) -> Time | None:
        """The next time before `bound` (the next instant) at which to detect although no graph comes, or
        None.
        """

    def pass_over(self, bound: Time) -> None:
        """Called if there is no further instant before `bound` and none is due."""

    def covering(self, time: Time) -> Time:
        """The time (at least `time`) up to which to detect, so that all that happened by `time` is seen."""

    def sizes(self) -> dict[str, int]:
        """Rule → how many facts are stored for it."""

    def passed(self) -> dict[str, Passed]:
        """Rule → the number of partial matches after each of its steps, since this detector was made."""

    def forget_passed(self) -> None:
        """Count from 0 again."""

    def snapshot(self) -> dict[str, Any]:
        """State by rule digest, as a JSON value that shares nothing with the detector."""

    def restore(self, state: Mapping[str, Any]) -> Restored:
        """Restore the parts of unchanged rules; returns which kept their state, start empty, are gone."""


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
"""(program, clock, stream → the one whose facts it has, stream → its base, operator and constant, units of
work of a rule at one trigger fact, handler of facts that take more, (units of work of what holds at one
point, the number of parts of keys that share them, of what holds at all points))."""


class LiteralDetector(Protocol):
    """The literal reading beside a detector: by enumeration of the whole past."""

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

    `shares`: which comparisons with constants it makes itself, so that queries need not differ in them.
    `plans`: how a detector of this engine detects each rule, as text. `literal`: what `--verify` compares
    with. `reaches`: horizons of rules. `partitioning`: (program, by, whether one task computes what holds,
    a function that returns the queries that may have facts without a graph) → how it can be cut. `silence`:
    (program, those queries) → which ticks matter.
    `digests`: identify the state of each rule.
    """

    open: Open
    shares: Callable[[str, Sequence[Term]], Callable[[Term | None], int | None] | None]
    plans: Callable[[Detector], Sequence[Any]]
    literal: Callable[[Program, Clock], LiteralDetector]
    reaches: Callable[[Program], list[RuleReach]]
    partitioning: Callable[[Program, By, bool, Callable[[], Collection[str]]], Partitioning]
    silence: Callable[[Program, Collection[str]], Silence]
    digests: Callable[[Program], Sequence[str]]

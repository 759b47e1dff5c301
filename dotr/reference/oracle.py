"""The literal reading beside the engines: `--verify`.

Place:   driven by pipeline.py with the same instants; the tests' oracle is this one too.
Method:  K(t) closed naively, every query asked of the full SPARQL engine, TESLA by enumeration over the whole
         history. What comes out must be the engines' matches, one for one, in order. What lasts it finds by
         itself (lasting.py), the instants at which that changes included.
Why not: comparing printed events: a difference of two matches that print alike would be missed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NoReturn

from dotr.budget import UNLIMITED
from dotr.enrich.owl import rules_over
from dotr.errors import DataError, DotrError, EngineError, ProgramError
from dotr.events import Clock, Fact, Match, Message, RawMatch, Time, in_order
from dotr.program import Program
from dotr.rdf.terms import Triple
from dotr.reference.enrich import LiteralEnricher
from dotr.reference.extract import LiteralExtractor
from dotr.reference.lasting import LiteralLasting, ProgramChange
from dotr.reference.tesla import LiteralTesla

_UNSEEN = frozenset({"D4001", "D4003", "D4130", "D4132", "D4133"})
"""Errors of an instant that only an engine has: here nothing explodes, and work is not counted."""


class Oracle:
    """Owns a literal run: its memory is everything it ever saw. `budget`: see LiteralTesla."""

    def __init__(self, program: Program, background: Collection[Triple], budget: int = UNLIMITED) -> None:
        self.program, self._budget = program, budget
        self._background = frozenset(background)
        self._enrich = LiteralEnricher(rules_over(program, background), background)
        self._extract = LiteralExtractor(program.queries)
        self._detect: LiteralTesla | None = None
        self._clock = Clock()
        self._lasting: LiteralLasting | None = None

    def begin(self, clock: Clock) -> None:
        self._clock = clock
        self._detect = LiteralTesla(self.program, clock, self._budget)

    def matches(
        self, time: Time, triples: Sequence[Triple], graph: bool, left_out: Collection[tuple[int, Fact]] = ()
    ) -> list[Match]:
        """What the contract says happens at `time` where nothing lasts; `graph` False is a tick at which no
        graph came. `left_out`: (number of a rule, trigger fact) that take too much work.
        """
        assert self._detect is not None, "begin() comes first"
        store = self._enrich.open(triples)
        try:
            facts = self._extract.facts(store, time, self._clock.term(time))
        finally:
            self._enrich.close()
        return self._detect.at(time, facts, graph, left_out)

    def check(
        self,
        time: Time,
        came: Sequence[Triple] | Sequence[Message],
        graph: bool,
        found: Sequence[RawMatch],
        left_out: Collection[tuple[int, Fact]] = (),
        counted: Collection[int] = (),
    ) -> None:
        """Raise EngineError D4090 unless `found` is what the literal reading finds at `time`.

        `came`: the triples of the instant's graphs, or its messages where something lasts. `left_out`: what
        takes too much work, which is not for it to know. `counted`: rules whose matches are not in `found`.
        """
        if self._lasting is None:
            expected = self.matches(time, came, graph, left_out)  # type: ignore[arg-type]  # then these are triples
        else:
            expected = self._lasting_matches(time, came, graph, left_out)  # type: ignore[arg-type]  # and then messages
        expected = [match for match in expected if match[0] not in counted]
        engine = [(rule, *match[1:]) for rule, match in in_order(found)]
        for number, (right, ours) in enumerate(zip_longest(expected, engine)):
            if right != ours:
                rule = self.program.rules[(right or ours)[0]]
                self._differ(
                    f"{rule.kind} `{rule.name}` at {self._clock.text(time)}",
                    f"event {number + 1} of the instant, literally: {right}",
                    f"event {number + 1} of the instant, engine:    {ours}",
                )

    def _differ(self, where: str, *notes: str) -> NoReturn:
        raise EngineError.of(
            "D4090",
            f"{where}: engine and literal reading differ",
            notes=notes,
            hint="this is a bug of dotr: please report rules and input",
        )

    # -- what lasts

    def last_from_now(self) -> None:
        """From now on something lasts: `check` is called with messages."""
        self._lasting = LiteralLasting(self.program, self._background, self._clock)

    def replace(self, time: Time, program: Program, background: Collection[Triple]) -> None:
        """From `time` on, which lies ahead, another program holds, with another background."""
        assert self._lasting is not None, "rules change where something may last"
        self._lasting.replace(ProgramChange(time, program, frozenset(background)))

    def refuse(self, time: Time, messages: Sequence[Message], error: DotrError) -> None:
        """Raise EngineError D4090 unless an instant with these messages is in error, literally."""
        if error.diagnostics[0].code in _UNSEEN:
            return
        assert self._lasting is not None
        self._catch_up(time)
        state = self._lasting.snapshot()
        try:
            self._lasting.at(time, messages)
        except (DataError, ProgramError):
            return
        self._lasting.restore(state)
        self._differ(
            f"refused at {self._clock.text(time)}", f"the literal reading has no error; engine: {error}"
        )

    def leave_out(self, time: Time) -> None:
        """The engine leaves out the effects of events that contradict what lasts."""
        assert self._lasting is not None
        self._lasting.leave_out(time)

    def overlook(self, time: Time) -> None:
        """The engine goes on over an instant that is in error without a message."""
        assert self._lasting is not None
        self._catch_up(time)
        self._lasting.overlook(time)
        self._take(self._lasting.program)

    def _catch_up(self, before: Time) -> None:
        """Take the jumps before a time that the engine has not asked about: nothing may happen there."""
        assert self._lasting is not None
        assert self._detect is not None
        while jumps := self._lasting.jumps(before):
            facts = self._lasting.at(jumps[0], ())
            self._take(self._lasting.program)
            if found := self._detect.at(jumps[0], facts, graph=False):
                self._differ(f"at {self._clock.text(jumps[0])}", f"literally: {found[0]}", "engine: nothing")

    def _lasting_matches(
        self, time: Time, messages: Sequence[Message], graph: bool, left_out: Collection[tuple[int, Fact]]
    ) -> list[Match]:
        assert self._lasting is not None
        self._catch_up(time)
        facts: Mapping[str, Sequence[Fact]] = {}
        if time > self._lasting.last:
            facts = self._lasting.at(time, messages)
        self._take(self._lasting.program)
        assert self._detect is not None
        found = self._detect.at(time, facts, graph, left_out)
        self._lasting.happen(time, found)
        return found

    def _take(self, program: Program) -> None:
        """The program of the time; rules that are the same keep what they saw."""
        if program is not self.program:
            assert self._detect is not None
            state = self._detect.snapshot()
            self.program = program
            self._detect = LiteralTesla(program, self._clock, self._budget)
            self._detect.restore(state)

    def snapshot(self) -> Any:
        if self._detect is None:
            return None
        lasting = None if self._lasting is None else self._lasting.snapshot()
        return {**self._detect.snapshot(), "lasting": lasting}

    def restore(self, state: Mapping[str, Any]) -> None:
        assert self._detect is not None, "begin() comes first"
        self._detect.restore(state)
        if self._lasting is not None and state.get("lasting") is not None:
            self._lasting.restore(state["lasting"])

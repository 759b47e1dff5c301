"""K of a deployment, from its journal: what holds now, followed from commit to commit, and what held before.

Place:   beside history.py, which runs what was fed again; serve/answers.py and `dotr query --dir` ask here.
         Everything is read from the last commit, in one transaction: nothing is locked, a feed goes on.
Method:  K now is what the background and what lasts state at the watermark, and what follows; the graphs of
         single instants are over. What a commit changed of what is stated, and a deploy of the rules, is one
         change of a maintained index (knowledge_base/model.py), which also gives the differences of the
         answers that are watched. Where the feed is in the same process it tells of its commits, and one
         costs what it changed; else what is stated is read whole.
         K(t) of a time that is kept is that of the instant, with its graphs, as `dotr query --at` has it.
Bad input: D4112 NOW() before anything was fed · D4179 no query of that name · D4189, D4198 a time that is not
           kept · D4132, D4133, D4001, D4003 past the budget.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import BUDGET
from dotr.core.funnel import named_query
from dotr.enrich.materialiser import Limits
from dotr.errors import DotrError, ProgramError, UsageError
from dotr.events import Clock, Time
from dotr.extract.interpreter import asks_time
from dotr.extract.operators import Row
from dotr.knowledge_base.knowledge_base import ReadWriteLock
from dotr.knowledge_base.model import Model, RuleSet, form, shipped_rules
from dotr.knowledge_base.prepared_queries import PlannedQuery, as_select
from dotr.knowledge_base.text_queries import Now, Result, result_of
from dotr.lasting.model import Outcome
from dotr.lasting.periods import Periods, StatedChange
from dotr.program import Entailment, Program, Select
from dotr.rdf.terms import Triple
from dotr.rdf.values import values_key
from dotr.service.deployment import deployed_background, deployed_program
from dotr.service.history import FedDeployment
from dotr.service.journal import Commit, Journal, digest_of


class Committed(Struct, frozen=True):
    """What a commit says. `number`: 0 before the first; `digest`: of what is deployed; `time`: up to where
    everything has run, None before anything has.
    """

    number: int
    digest: str
    program: Program
    clock: Clock | None
    time: Time | None

    @property
    def now(self) -> Now:
        return None if self.time is None or self.clock is None else (self.time, self.clock)

    def after(self, status: Mapping[str, Any]) -> Committed:
        """The commit that says this of itself, of the same rules."""
        clock = None if status.get("clock") is None else Clock(*status["clock"])
        times = [time for time in (status.get("watermark"), status.get("settled")) if time is not None]
        return replace(self, number=status.get("commit", 0), clock=clock, time=min(times, default=None))


def committed(folder: str, known: Committed | None = None) -> tuple[Committed, Periods] | None:
    """The last commit of a deployment and its statements; None where it is `known`. Raises DataError,
    EngineError.
    """
    with Journal(folder, exclusive=False) as journal:
        deployed, status = journal.deployed(), journal.status()
        digest = digest_of(deployed)
        if known is not None and (known.number, known.digest) == (status.get("commit", 0), digest):
            return None
        same = known is not None and known.digest == digest
        program = known.program if known is not None and same else deployed_program(deployed)
        background, saved = frozenset(deployed_background(journal)), journal.stated()
    with journal.reading():
        found = Committed(0, digest, program, None, None).after(status)
        periods = Periods(background, program.holds, found.clock)
        periods.load(saved)
        if found.time is not None:
            periods.change(found.time)
    return found, periods


class Holding(Struct, frozen=True):
    """What holds at one time: now (`number` is that of the commit) or before. For one thread, inside of the
    block that gave it. `apart`: what is stated and what is derived, where the model takes all for stated.
    """

    model: Model
    program: Program
    now: Now
    number: int
    budget: int
    apart: tuple[list[Triple], list[Triple]] | None = None

    def result(self, query: str, name: str = "<query>") -> Result:
        """The answer to a query of any form. Raises ProgramError, UsageError."""
        return result_of(self.model, query, name, self.program.prefixes, self.now, self.budget)

    def answer(self, select: Select) -> list[Row]:
        """The rows of a query of the program; of an ASK one without columns where it is true."""
        return PlannedQuery(select, self.budget).rows(self.model, self.now)

    def triples(self) -> tuple[list[Triple], list[Triple]]:
        """(what is stated, what is derived), each sorted."""
        if self.apart is not None:
            return self.apart
        states = self.model.kept.states
        holds = sorted(self.model.kept)
        return [t for t in holds if states(t)], [t for t in holds if not states(t)]


def rules_of(program: Program) -> RuleSet:
    """The Datalog rules of a program, with those of its entailment by name."""
    shipped = set(map(form, shipped_rules(program.entailment.value)))
    own = tuple(rule for rule in program.datalog if form(rule) not in shipped) if shipped else program.datalog
    return RuleSet(own, Entailment(program.entailment))


_NOTED = 256
"""So many commits are remembered while nobody asks; past that the journal is read."""


def _lean(commit: Commit) -> Commit:
    """A commit without what it keeps for others: only what is stated, and its status."""
    return replace(commit, snapshot={}, positions={}, outputs=(), given=(), kept=None)


class Knowledge:
    """Owns what holds in a deployment now. Threads may share it: they read together, one follows."""

    def __init__(self, folder: str, budget: int = BUDGET) -> None:
        self.folder, self.budget = folder, budget
        self._lock = ReadWriteLock()
        self.turn = RLock()
        self._now: Committed | None = None
        self._model: Model | None = None
        self._periods = Periods()
        self._watches: list[Watch] = []
        self._noted: deque[Commit | None] | None = None

    def attach(self, journal: Journal) -> None:
        """Get every commit from now on from the journal that makes it, in this process: then what is
        stated is not read again. Called by whoever feeds, before the first commit.
        """
        noted: deque[Commit | None] = deque([None], _NOTED)
        self._noted = noted
        journal.follower = lambda commit: noted.append(None if commit is None else _lean(commit))

    @contextmanager
    def holding(self, at: Time | None = None) -> Iterator[Holding]:
        """What holds at the last commit, or at a time that is kept."""
        if at is not None:
            yield past(FedDeployment(self.folder), at, self.budget)
            return
        while True:
            self.follow()
            with self._lock.reading():
                if self._model is not None:  # no other thread failed meanwhile
                    yield self._holding()
                    return

    def _holding(self) -> Holding:
        assert self._now is not None, "it has followed"
        assert self._model is not None, "it has followed"
        return Holding(self._model, self._now.program, self._now.now, self._now.number, self.budget)

    def follow(self) -> Committed:
        """Be at the last commit. Raises ProgramError, DataError, EngineError; then it is where it was."""
        with self.turn:
            told = self._told()
            if told is None:
                self._read()
            for commit in told or ():
                self._take(commit)
            assert self._now is not None, "it has read"
            return self._now

    def _told(self) -> list[Commit] | None:
        """The commits after the one it is at; None where the journal is to be read."""
        noted, now = self._noted, self._now
        if noted is None or now is None or self._model is None:
            if noted is not None:
                noted.clear()
            return None
        found: list[Commit] = []
        number = now.number
        whole = True
        while noted:
            commit = noted.popleft()
            if commit is None:
                whole, found = False, []  # something else than a feed wrote
            elif commit.status["commit"] > number:
                whole = whole and commit.status["commit"] == number + 1
                number = commit.status["commit"]
                found.append(commit)
        return found if whole else None

    def _take(self, commit: Commit) -> None:
        """Be at the next commit."""
        assert self._now is not None, "it has read"
        periods = self._periods
        before = {triple for triple in commit.stated if triple in periods}
        now = self._now.after(commit.status)
        periods.take(commit.stated)
        later = StatedChange() if now.time is None else periods.change(now.time)
        began = sorted(t for t in {*commit.stated, *later.begun} if t not in before and t in periods)
        ended = sorted({*(t for t in before if t not in periods), *later.ended})
        self._change(now, began, ended)

    def _read(self) -> None:
        """Be at the last commit, whatever was before."""
        found = committed(self.folder, self._now if self._model is not None else None)
        if found is None:
            return
        now, periods = found
        if self._model is None:
            limits, rules = Limits(budget=self.budget), rules_of(now.program)
            prefixes = now.program.prefixes
            made = Model(rules, sorted(periods), limits=limits, strict=False, prefixes=prefixes)
            with self._lock.writing():
                self._model, self._now, self._periods = made, now, periods
            return
        self._periods = periods
        stated, before = set(periods), set(self._model.kept.statements())
        self._change(now, sorted(stated - before), sorted(before - stated))

    def _change(self, now: Committed, began: Sequence[Triple], ended: Sequence[Triple]) -> None:
        """What is stated changed, and perhaps the rules."""
        model, before = self._model, self._now
        assert model is not None, "it has read"
        same = before is not None and before.digest == now.digest
        with self._lock.writing():
            try:
                outcome = model.change(began, ended, None if same else rules_of(now.program))
            except BaseException:
                self._now, self._model = None, None  # it begins anew
                for watch in self._watches:
                    watch.lose()
                self._watches.clear()
                raise
            self._now = now
            for watch in self._watches:
                watch.take(outcome, self._holding())

    # -- watching

    def watch(self, name: str) -> Watch:
        """Watch the answers of a QUERY of the program. Raises UsageError D4179, ProgramError."""
        with self.turn:
            self.follow()
            with self._lock.writing():
                holding = self._holding()
                watch = Watch(self, name, named_query(holding.program, name))
                watch.begin(holding)
                self._watches.append(watch)
        return watch

    def unwatch(self, watch: Watch) -> None:
        with self.turn, self._lock.writing():
            if watch in self._watches:
                self._watches.remove(watch)
                others = any(one.plain == watch.plain and one.is_maintained for one in self._watches)
                if watch.is_maintained and self._model is not None and not others:
                    self._model.drop(watch.plain)


class Differences(Struct, frozen=True):
    """How answers changed up to a commit: those that ended (< 0), then those that began, each in canonical
    order; equal rows are one, with their number.
    """

    number: int
    now: Now
    rows: list[tuple[Row, int]]


class Watch:
    """Owns what one reader of a query's answers has not seen yet. `snapshot`: the answers at the beginning;
    `number`, `now`: of the commit that it is at; `first_now`: of that of the snapshot.
    """

    def __init__(self, owner: Knowledge, name: str, select: Select) -> None:
        self._owner, self.name, self.select = owner, name, select
        self.variables = () if select.ask else select.variables
        self.plain = as_select(select) if select.ask else select
        self.is_maintained = not asks_time(select)
        self.snapshot: list[tuple[Row, int]] = []
        self._pending: Counter[Row] = Counter()
        self._answers: Counter[Row] = Counter()  # where they are not maintained
        self._error: DotrError | None = None
        self.number = 0
        self.now: Now = None
        self.first_now: Now = None

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._owner.unwatch(self)

    def begin(self, holding: Holding) -> None:
        """The answers of now are the snapshot."""
        answers = Counter(holding.answer(self.select))  # counted, before they are maintained
        self.snapshot = sorted(answers.items(), key=lambda answer: values_key(answer[0]))
        self.number, self.now, self.first_now = holding.number, holding.now, holding.now
        if self.is_maintained:
            holding.model.stand(self.plain)
        else:
            self._answers = answers

    def take(self, outcome: Outcome, holding: Holding) -> None:
        """Another commit: what it changed waits for the reader."""
        self.number, self.now = holding.number, holding.now
        self._wait(outcome.differences.get(self.plain, ()))
        now = holding.program.written.get(self.name)
        try:
            if now != self.select:
                self._replace(now, holding)
            if not self.is_maintained:
                self._renew(holding)
        except (ProgramError, UsageError) as error:
            self._error = error

    def _renew(self, holding: Holding) -> None:
        now = Counter(holding.answer(self.select))
        self._pending.update(now)
        self._pending.subtract(self._answers)
        self._answers = now

    def lose(self) -> None:
        """What is watched is not maintained any more."""
        hint = "watch it anew"
        self._error = UsageError.of("D4197", f"the query `{self.name}` cannot be watched any more", hint=hint)

    def _wait(self, changes: Iterable[tuple[Row, int]]) -> None:
        for row, change in changes:
            self._pending[() if self.select.ask else row] += change

    def _replace(self, select: Select | None, holding: Holding) -> None:
        """The rules of now have another query of this name, or none."""
        if select is None or (select.ask, select.variables) != (self.select.ask, self.select.variables):
            raise UsageError.of(
                "D4197",
                f"the query `{self.name}` is not the one any more that is watched",
                notes=("another deploy took it away, or gave it other variables",),
                hint="watch it anew",
            )
        if asks_time(select) is self.is_maintained:
            raise UsageError.of(
                "D4197", f"the query `{self.name}` asks for NOW(), or no more", hint="watch it anew"
            )
        model, before = holding.model, self.plain
        after = as_select(select) if select.ask else select
        self.select, self.plain = select, after
        if not self.is_maintained:
            return
        holding.answer(select)  # counted, before it is maintained
        model.stand(after)
        self._wait((row, 1) for row in model.answers(after))
        self._wait((row, -1) for row in model.answers(before))

    def changes(self) -> Differences:
        """What happened since the last call, or the snapshot, up to the last commit. Raises UsageError D4197
        where the query is another one now, and as `Knowledge.follow`.
        """
        self._owner.follow()
        with self._owner.turn:
            if self._error is not None:
                raise self._error
            found = sorted(
                ((row, n) for row, n in self._pending.items() if n),
                key=lambda change: (change[1] > 0, values_key(change[0])),
            )
            self._pending.clear()
            return Differences(self.number, self.now, found)


def past(fed: FedDeployment, time: Time, budget: int) -> Holding:
    """What held at an instant of a deployment. Raises DataError D4189, UsageError D4198."""
    apart = fed.instant(time)
    triples, limits = [*apart[0], *apart[1]], Limits(budget=budget)
    model = Model(RuleSet(), triples, limits=limits, strict=False, prefixes=fed.program.prefixes)
    return Holding(model, fed.program, (time, fed.clock), 0, budget, apart)

"""What a deployment was fed, run again: why an event happened, why a rule did not fire, why a triple holds.

Place:   above explain/ and the journal; `dotr explain --dir` and `dotr serve` ask here. The command line adds
         sources that are named there, and reads the sources of a deployment that keeps no messages again.
Method:  a deployment that keeps its messages is run again from a state before them. It is a look at the last
         commit: nothing is locked, and a feed goes on meanwhile.
Bad state: D4189 not fed, or nothing is kept · D4198 a time that is not kept · D4111 not a time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from dotr.detect.analysis import horizons
from dotr.errors import DataError, UsageError
from dotr.events import Clock, Time, part_of
from dotr.explain import proofs
from dotr.explain.corrected import FOREVER, explainer_of, withdrawn
from dotr.explain.explanation import provenance
from dotr.explain.formats import Plain, PlainProofs, html, mermaid
from dotr.explain.proofs import Blocked, Missing, NoTrigger, TripleProof, Unopened, WhyNot
from dotr.explain.record import Graph, History, KeptEvent, KeptInstants, reach_of
from dotr.explain.text import LATE, LEVELS, Places, Renderer, drawn, pruned
from dotr.explain.verify import EVERYTHING, checker_of, refuse_wrong
from dotr.io.errors import place_in, places_of
from dotr.io.rules_and_background import with_declared
from dotr.io.sources import resolve
from dotr.io.time import TimeError, parse_text
from dotr.program import Program
from dotr.rdf.terms import Term, Triple
from dotr.service.deployment import deployed_background, deployed_program
from dotr.service.journal import Journal, KeptCorrection, KeptMessage, KeptRow, KeptRows
from dotr.service.outbox import OutboxReader

Place: TypeAlias = tuple[int, int]
"""(a row of what is kept, an entry in it)."""


class Changed(NamedTuple):
    """What a correction did with an event of a time; `place`: of the correction in what is kept."""

    change: proofs.EventChange
    time: Time
    place: Place


class Asked(Struct, frozen=True):
    """How far a run goes, and what it looks for. `nearby`: what is asked for is of `until`, and follows from
    what the rules can reach from there.
    """

    wanted: Callable[[KeptEvent, Program], bool]
    first: bool
    until: Time | None
    lateness: int
    everything: bool
    reads_on: bool
    verify: bool = False
    nearby: bool = False
    corrections: Place | None = None
    """Only the corrections before this place have been made; None: all."""


def new_history(
    program: Program, background: Collection[Triple], asked: Asked, until: Time | None, lateness: int
) -> History:
    """A run that looks for what is to be explained."""
    history: History = History(
        program,
        background,
        wanted=lambda event: (until is None or event.time <= until) and asked.wanted(event, history.program),
        first=asked.first,
        until=until,
        lateness=lateness,
        everything=asked.everything,
        reads_on=asked.reads_on,
    )
    if asked.verify:
        history.reach = EVERYTHING
    return history


class Subject(Protocol):
    """What is explained: `run` goes as far as a question needs; `files` are those of the background,
    `programs` all that hold at some time.
    """

    @property
    def program(self) -> Program: ...
    @property
    def programs(self) -> Sequence[Program]: ...
    @property
    def files(self) -> Sequence[str]: ...
    def when(self, event_id: str) -> Time | None:
        """The time of an event, where that is known without a run."""

    def run(self, asked: Asked) -> History: ...
    def changes(self, event_id: str) -> Sequence[Changed]:
        """What corrections did with an event, in order."""


class FedDeployment:
    """Owns a look at a deployment, as of its last commit. Raises DataError D4189 where it was not fed."""

    def __init__(self, folder: str) -> None:
        with Journal(folder, exclusive=False) as journal:
            self.program = deployed_program(journal.deployed())
            self.background = deployed_background(journal)
            self.kept = journal.kept()
            status = journal.status()
            self._take(journal)
        if status.get("clock") is None:
            hint = "dotr feed SOURCE"
            raise DataError.of("D4189", f"the deployment in `{folder}` was not fed", place=folder, hint=hint)
        with journal.reading():
            self.clock = Clock(*status["clock"])
        self._journal = journal
        self.corrected = "corrections" in status
        """Whether it is fed with corrections."""
        self.watermark: Time | None = status.get("watermark")
        self.commit: int = status.get("commit", 0)
        self.files: Sequence[str] = background_files(folder, self.program)
        self.programs: Sequence[Program] = [self.program]

    def _take(self, journal: Journal) -> None:
        """Read more of the same commit."""

    def run(self, asked: Asked) -> History:
        """Run what was fed, up to the watermark at most."""
        limits = [time for time in (asked.until, self.watermark) if time is not None]
        until = min(limits, default=None)
        if not self.kept:
            return self.read_again(asked, until)
        history = new_history(self.program, self.background, asked, until, FOREVER)
        near = until if asked.nearby else None
        if self.corrected:
            low = None if near is None or self._is_endless() else near - reach_of(self.program)
            return self._as_corrected(history, low, until, asked.corrections)
        return self._from(history, self.kept if near is None else self._around(near), until)

    def changes(self, event_id: str) -> Sequence[Changed]:
        """See `Subject`."""
        name, found = event_id.strip("<>"), list[Changed]()
        for number, row in enumerate(self.kept if self.corrected else ()):
            if row.state is not None or not self.kept.mentions(number, name):
                continue
            corrections = ((n, one) for n, one in enumerate(row.messages) if isinstance(one, KeptCorrection))
            for entry, one in corrections:
                for sign, id_, time in one.changed:
                    if id_ == name:
                        late = [(part.time, part.place) for part in one.late if part.time <= time]
                        change = proofs.EventChange(sign, one.at, tuple(late))
                        found.append(Changed(change, time, (number, entry)))
        return found

    def when(self, event_id: str) -> Time | None:
        """See `Subject`: of events that the deployment keeps."""
        if changes := self.changes(event_id):
            return changes[-1].time
        with OutboxReader(str(self._journal.folder)) as reader:
            row = reader.by_id(event_id.strip("<>"))
        return None if row is None else row.time

    def _is_endless(self) -> bool:
        """Whether what is asked for may follow from what is older than all that rules can reach."""
        program = self.program
        lasts = program.holds or program.standing
        return bool(lasts or program.lars.rules) or None in horizons(program)

    def accepted(self, since: Time | None = None, corrections: Place | None = None) -> list[KeptMessage]:
        """The messages later than a time that were taken, in order of time. `corrections`: see `Asked`."""
        found: list[KeptMessage] = []
        for number, row in enumerate(self.kept):
            for entry, one in enumerate(row.messages):
                if isinstance(one, KeptMessage):
                    found += [one] * (not one.left_out)
                elif corrections is None or (number, entry) < corrections:
                    found += one.late
        return sorted((one for one in found if since is None or one.time > since), key=attrgetter("time"))

    def _as_corrected(
        self, history: History, low: Time | None, until: Time | None, corrections: Place | None
    ) -> History:
        """Run the messages that were taken from a state on that no correction reached; `low`: which is older,
        where there is one.
        """
        place = None if low is None else self.kept.state_before(low)
        if place is None:
            place = next(number for number, row in enumerate(self.kept) if row.state is not None)
        first = self.kept[place]
        history.reach = FOREVER
        assert first.state is not None, "its place is that of a state"
        with self._journal.reading():
            history.go_on(first.state, self.clock, first.time)
        left_out = [
            one
            for row in self.kept
            for one in row.messages
            if isinstance(one, KeptMessage) and one.left_out and (first.time is None or one.time > first.time)
        ]
        taken = self.accepted(first.time, corrections)
        history.run(_graphs([*left_out, *taken], history, until), lambda: self.clock)
        return history

    def _around(self, time: Time) -> KeptRows:
        """What explains an event of a time: from the last state on that is older than all that the rules can
        reach from there, of messages that waited then, too: of these a state has no places. What lasts, or
        .lars rules say, may have begun at any time, and so may a chain of events without an end.
        """
        program, kept = self.program, self.kept
        if program.lars.rules or None in horizons(program):
            return kept
        low = time - reach_of(program)
        place = kept.state_before(low)
        while place:
            state = kept[place].state
            if state is None or all(waits < low for waits, _ in state["pending"]):
                break
            place = kept[:place].state_before(low)
        if not place:
            return kept
        if program.holds or program.standing or (state is not None and state.get("lasting") is not None):
            return kept
        return kept[place:].up_to(time)

    def read_again(self, _asked: Asked, _until: Time | None) -> History:
        """Run what was fed without what was kept. Raises DataError D4189."""
        hint = "dotr deploy --keep 7d, or `keep: {messages: 7d}` of a server, keeps what explanations need"
        raise DataError.of(
            "D4189", "this deployment keeps no messages", place=str(self._journal.folder), hint=hint
        )

    def instant(self, time: Time) -> tuple[list[Triple], list[Triple]]:
        """(what is stated, what is derived) at a time that is kept, its graphs included, each sorted. Raises
        DataError D4189, UsageError D4198.
        """
        self.refuse_ahead(time)
        if not self.kept:
            asked = Asked(lambda *_: False, False, time, 0, everything=True, reads_on=False)
            return KeptInstants(self.read_again(asked, time)).state(time)
        place = self.kept.state_before(time)
        if place is None:
            since = self.kept.since
            assert since is not None, "a state without a time is before all times"
            raise UsageError.of(
                "D4198",
                f"what was at {self.clock.text(time)} is not kept any more",
                notes=(f"it is kept after {self.clock.text(since)}",),
                hint="keep messages longer: dotr deploy --keep 7d",
            )
        history = History(self.program, self.background, until=time, lateness=FOREVER, everything=True)
        if self.corrected:
            return KeptInstants(self._as_corrected(history, time, time, None)).state(time)
        return KeptInstants(self._from(history, self.kept[place:], time)).state(time)

    def refuse_ahead(self, time: Time) -> None:
        """Raise UsageError D4198 for a time that is not closed."""
        reached = self.watermark
        if reached is None or time > reached:
            latest = (
                "nothing is closed yet" if reached is None else f"the watermark is {self.clock.text(reached)}"
            )
            raise UsageError.of(
                "D4198", f"{self.clock.text(time)} is not closed: {latest}", hint="ask for an earlier time"
            )

    def _from(self, history: History, kept: Sequence[KeptRow], until: Time | None) -> History:
        """Run a history from the state with which `kept` begins."""
        history.reach = FOREVER
        first = kept[0]
        assert first.state is not None, "what is kept begins with a state"
        with self._journal.reading():  # which is closed, and knows its folder
            history.go_on(first.state, self.clock, first.time)
        history.run(_messages(kept[1:], history, until), lambda: self.clock)
        return history


def time_of(text: str, clock: Clock | None, what: str = "at") -> Time:
    """A time as the deployment's data writes it. Raises UsageError D4111, DataError D4189."""
    if clock is None:
        raise DataError.of("D4189", "the deployment was not fed", hint="dotr feed SOURCE")
    try:
        time, integer = parse_text(text, clock.unit)
    except TimeError as error:
        raise UsageError.of("D4111", f"{what}: {error.message}", hint=error.hint) from None
    if integer is not clock.integer:
        kind = "integers" if clock.integer else "dateTimes"
        raise UsageError.of(
            "D4111", f"{what}: the times of this deployment are {kind}", hint="ask for such a time"
        )
    return time


def _messages(rows: Sequence[KeptRow], history: History, until: Time | None) -> Iterator[Graph]:
    """The messages that a feed took, in its order; those it did not take stand apart. Of what is later than
    `until` nothing depends.
    """
    messages = (one for row in rows for one in row.messages if isinstance(one, KeptMessage))
    return _graphs(messages, history, until)


def _graphs(messages: Iterable[KeptMessage], history: History, until: Time | None) -> Iterator[Graph]:
    for message in messages:
        if until is not None and message.time > until:
            continue
        graph = Graph(message.time, part_of(message.part), message.place)
        if message.left_out:
            history.come_too_late(graph)
        else:
            yield graph


def background_files(folder: str, program: Program) -> list[str]:
    """The files of a deployment's background that are still there: places and prefixes are looked for in
    them.
    """
    home = Path(folder).absolute().parent
    paths = [path if path.startswith("dotr:") else str(home / path) for path in program.background]
    there = [path for path in paths if path.startswith("dotr:") or os.path.exists(path)]
    return [os.path.relpath(file) for path in there for file in resolve([path])]


class Question(Struct, frozen=True):
    """One thing to be explained: an event (by its id, or the last of a rule, at a time, with these values),
    why a rule did not fire at a time, or a triple at a time. `at`: the time as it was written.
    """

    event_id: str | None = None
    rule: str | None = None
    why_not: str | None = None
    triple: Triple | None = None
    time: Time | None = None
    at: str | None = None
    values: Mapping[str, Term] = {}

    def wants(self, event: KeptEvent, program: Program) -> bool:
        own = program.rules[event.rule]
        if self.event_id is not None:
            return event.id == self.event_id.strip("<>")
        bindings = dict(zip(own.variables, event.bindings, strict=True))
        return (
            (self.rule is None or own.name == self.rule)
            and (self.rule is not None or not own.private)
            and (self.time is None or event.time == self.time)
            and all(bindings.get(name) == term for name, term in self.values.items())
        )

    def nothing(self) -> str:
        """That there is no such event."""
        if self.event_id is not None:
            return f"there is no event `{self.event_id}`"
        of = f" of rule `{self.rule}`" if self.rule is not None else ""
        return f"there is no event{of}" + (f" at {self.at}" if self.at is not None else "")


def refuse_unknown_rule(names: Iterable[str | None], programs: Sequence[Program]) -> None:
    """Raise UsageError D4172 for a rule that no program has."""
    known = dict.fromkeys(one.name for program in programs for one in program.rules)
    for name in names:
        if name is not None and name not in known:
            hint = f"its rules are {', '.join(known)}"
            raise UsageError.of("D4172", f"there is no rule `{name}`", hint=hint)


class Reasons(Struct, frozen=True):
    """What was found, with what it takes to write it. `files`: of the background."""

    found: Sequence[WhyNot | TripleProof | Missing]
    prefixes: Mapping[str, str]
    clock: Clock
    places: Places
    files: Sequence[str] = ()

    @property
    def happened(self) -> bool:
        """Whether what was asked for happened, or holds."""
        return not any(
            isinstance(one, Blocked | NoTrigger | Missing | Unopened)
            or (isinstance(one, proofs.Corrected) and one.now is not None)
            for one in self.found
        )

    def _renderer(self, depth: int | None = None, page: bool = False) -> Renderer:
        """A page has the prefixes of the background, too."""
        prefixes = with_declared(self.prefixes, self.files) if page else self.prefixes
        return Renderer(prefixes, self.clock, self.places, levels=max(LEVELS, depth or 0))

    def values(self) -> list[Plain]:
        """What was found, JSON-able."""
        values = PlainProofs(self.clock, self.places, self._renderer().rule_text)
        return [values.of(one) for one in self.found]

    def written(self, format_: str, depth: int | None = None) -> str:
        """As json (a line each), ttl, mermaid, html or text, in which `depth` cuts the trees."""
        renderer = self._renderer(depth, page=format_ == "html")
        if format_ == "json":
            return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in self.values())
        if format_ == "ttl":
            return provenance(self.found, self.clock)
        nodes = [renderer.node(one) for one in self.found]
        if depth is not None:
            nodes = [pruned(node, depth) for node in nodes]
        if format_ == "mermaid":
            return mermaid(nodes)
        if format_ == "html":
            return html(nodes)
        return "\n".join(map(drawn, nodes))


def explained(
    subject: Subject, question: Question, *, lateness: int = 0, every: bool = False, verify: bool = False
) -> Reasons:
    """The answer to a question. `every`: all solutions and derivations, not only the smallest. Raises
    UsageError D4172, DataError D4173, D4189, EngineError D4090 for a proof that is verified and wrong.
    """
    refuse_unknown_rule((question.rule, question.why_not), subject.programs)
    asked = Asked(
        question.wants,
        first=question.event_id is not None,
        until=question.time,
        lateness=lateness,
        everything=question.triple is not None,
        reads_on=question.why_not is not None,
        verify=verify,
    )
    changes = subject.changes(question.event_id) if question.event_id is not None else ()
    if changes and changes[-1].change.change < 0:
        return _withdrawn(subject, asked, changes, every)
    history = _found(subject, question, asked)
    program, explainer = history.program, explainer_of(history, every)
    found: Sequence[WhyNot | TripleProof | Missing]
    if question.triple is not None and question.time is not None:
        triples = explainer.triples(question.triple, question.time)
        found = [triples] if isinstance(triples, Missing) else triples
    elif question.why_not is not None and question.time is not None:
        found = explainer.why_not(question.why_not, question.time, question.values)
    else:
        if history.wanted_event is None:
            raise DataError.of("D4173", question.nothing(), hint="ask --why-not NAME --at TIME")
        proof = explainer.event(history.wanted_event)
        changes = subject.changes(proof.id)
        found = [proofs.Corrected(proof, _only(changes)) if changes else proof]
    if verify:
        checked = [one.event if isinstance(one, proofs.Corrected) else one for one in found]
        refuse_wrong(checker_of(history, explainer.instants), checked, question.time)
    places = _marked(places_of(history, subject.files), changes)
    return Reasons(found, program.prefixes, history.clock, places, subject.files)


def _found(subject: Subject, question: Question, asked: Asked) -> History:
    """A run that found what is asked for, if there is such a thing."""
    nearby = _nearby(subject, question, asked)
    history = subject.run(nearby)
    if history.wanted_event is None and nearby is not asked:
        history = subject.run(asked)
    if history.wanted_event is not None and history.wanted_program is not history.program:
        history = subject.run(replace(asked, until=history.wanted_event.time))  # by the rules of its time
    return history


def _withdrawn(subject: Subject, asked: Asked, changes: Sequence[Changed], every: bool) -> Reasons:
    """An event that was withdrawn: its proof before the last correction of it, and how far its rule came
    after that.
    """
    last = changes[-1]
    asked = replace(asked, until=last.time, nearby=True)
    before = subject.run(replace(asked, corrections=last.place))
    number, entry = last.place
    after = subject.run(replace(asked, corrections=(number, entry + 1)))
    event = before.wanted_event
    if event is None:
        hint = "keep messages longer: dotr deploy --keep 7d"
        raise DataError.of("D4173", "what this event followed from is not kept any more", hint=hint)
    earlier, later = explainer_of(before, every), explainer_of(after, every)
    found = withdrawn(earlier, later, event, _only(changes))
    if asked.verify and found.now is not None:
        refuse_wrong(checker_of(before, earlier.instants), [found.event], None)
        refuse_wrong(checker_of(after, later.instants), [found.now], event.time)
    places, others = places_of(after, subject.files), places_of(before, subject.files)
    program = before.program
    either = _marked(lambda triple, time: places(triple, time) or others(triple, time), changes)
    return Reasons([found], program.prefixes, before.clock, either, subject.files)


def _only(changes: Sequence[Changed]) -> tuple[proofs.EventChange, ...]:
    return tuple(one.change for one in changes)


def _marked(places: Places, changes: Sequence[Changed]) -> Places:
    """Places of triples, with a mark at those of late graphs."""
    late = {(time, place) for one in changes for time, place in one.change.late}
    if not late:
        return places

    def place(triple: Triple, time: Time | None) -> str:
        found = places(triple, time)
        marked = any(time == when and place_in(triple, where) == found for when, where in late)
        return f"{found}{LATE}" if found and marked else found

    return place


def _nearby(subject: Subject, question: Question, asked: Asked) -> Asked:
    """The question about an event whose time is known: no more is run than that needs."""
    if question.why_not is not None or question.triple is not None:
        return asked
    time = asked.until
    if time is None and question.event_id is not None:
        time = subject.when(question.event_id)
    return asked if time is None else replace(asked, until=time, nearby=True)

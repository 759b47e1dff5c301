"""`dotr explain RULES SOURCE…`: why an event happened, why a rule did not fire, why a triple holds.

Also `dotr state RULES SOURCE… --at TIME`, K(t) as RDF with what is stated and what is derived apart, and the
proofs of `dotr run --explain`.

Place:   reads sources as `dotr run` does, or a deployment; service/history.py and dotr/explain do the rest.
Method:  of a deployment that keeps no messages, the sources that its journal names are read again, as far as
         they were fed, and what became of those that are not what they were is said. With `dotr run
         --explain` a record of the run goes along (explain/record.py); an event is explained when it is
         written, while all that its horizon can reach is kept.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from dotr.cli import options, show
from dotr.cli.options import OutputOptions, RuleOptions, SourceOptions, defaulted, given_time, instant_of
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.errors import DataError, UsageError
from dotr.events import Clock, Composite, Time
from dotr.explain.explanation import Explaining, Explanation
from dotr.explain.proofs import Ending, EventLeaf, Lasting
from dotr.explain.record import History, KeptInstants, Record, RecordedPipeline, whole_reach_of
from dotr.explain.verify import EVERYTHING
from dotr.io.errors import places_of
from dotr.io.events import TermFormatter, format_jsonl
from dotr.io.feeds import FILES, FilePosition, is_as_fed
from dotr.io.rules_and_background import RuleTexts, with_declared
from dotr.io.show import read_term, read_triple
from dotr.io.sources import Sources, resolve
from dotr.program import Program
from dotr.rdf.terms import Term, Triple
from dotr.service.history import (
    Asked,
    Changed,
    FedDeployment,
    Question,
    Subject,
    explained,
    new_history,
    refuse_unknown_rule,
)
from dotr.service.journal import Journal


class Replacing(Struct, frozen=True):
    """Rules that hold from a time on, with how that time is written."""

    time: Time
    clock: Clock
    program: Program
    background: Collection[Triple]
    files: Sequence[str]


class NamedSources(Struct):
    """Rules and sources of the command line."""

    program: Program
    background: Collection[Triple]
    files: Sequence[str]
    sources: Sequence[str]
    source: SourceOptions
    then: Sequence[Replacing] = ()

    @property
    def programs(self) -> Sequence[Program]:
        return [self.program, *(one.program for one in self.then)]

    def when(self, _event_id: str) -> Time | None:
        """Only a run knows."""
        return None

    def changes(self, _event_id: str) -> Sequence[Changed]:
        """Nothing is corrected."""
        return ()

    def run(self, asked: Asked) -> History:
        with self.source.letters() as dead:
            reader = Sources(self.sources, self.source.options, dead.refusals())
            history = new_history(self.program, self.background, asked, asked.until, asked.lateness)
            for one in self.then:
                if reader.extractor.clock is not None and reader.extractor.clock != one.clock:
                    hint = "write all of them as integers, or as dateTimes"
                    raise DataError.of("D2102", "the times of --then are of two kinds", hint=hint)
                reader.extractor.clock = one.clock
                history.replace(one.time, one.clock, one.program, one.background)
            history.run(reader, lambda: reader.clock)
            return history


class DeploymentSubject(FedDeployment):
    """A look at a deployment, of which the sources are read again where it keeps no messages."""

    def __init__(self, folder: str, source: SourceOptions) -> None:
        self.source = source
        super().__init__(folder)

    def _take(self, journal: Journal) -> None:
        self._sources = {file: FilePosition.of(at) for file, at in journal.positions(FILES).items()}
        self._given = journal.given()

    def read_again(self, asked: Asked, until: Time | None) -> History:
        history = new_history(self.program, self.background, asked, until, asked.lateness)
        with ExitStack() as stack:
            dead = stack.enter_context(self.source.letters())
            files = [file for file, row in self._sources.items() if _is_as_fed(file, row)]
            if self._given:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                given = os.path.join(folder, "given.jsonl")
                Path(given).write_text("".join(f"{line}\n" for line in self._given), encoding="utf-8")
                files.append(given)
            if not files:
                hint = "dotr deploy --keep 7d keeps what explanations need"
                raise DataError.of("D4189", "none of the sources that were fed exists any more", hint=hint)
            reader = Sources([os.path.relpath(file) for file in files], self.source.options, dead.refusals())
            history.run(reader, lambda: reader.clock)
        return history


def _is_as_fed(file: str, row: FilePosition) -> bool:
    """Whether a file can be read again; says so where it is gone, or is not what was fed."""
    if not os.path.isfile(file):
        show.note(f"`{os.path.relpath(file)}`, which was fed, is gone")
        return False
    if not is_as_fed(file, row):
        show.note(f"`{os.path.relpath(file)}` changed since it was fed; its present content is explained")
    return True


@click.command()
@click.argument("path", metavar="[RULES]", required=False)
@click.argument("sources", metavar="[SOURCE...]", nargs=-1)
@click.option("--dir", "folder", metavar="FOLDER", help="A deployment (without RULES: .dotr).")
@click.option("--event", "event_id", metavar="IRI", help="The event with this id.")
@click.option("--rule", "rule", metavar="NAME", help="An event of this rule, with --at; else its last.")
@click.option("--why-not", "why_not", metavar="NAME", help="Show how far this rule came at --at.")
@click.option("--at", metavar="TIME", help="The time of the event, or of what did not happen.")
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=TERM",
    help="Only an event, or trigger, with this value: 'room=:room23'.",
)
@click.option("--triple", metavar="'S P O'", help="Why this triple holds, or does not, at --at.")
@click.option(
    "--all", "every", is_flag=True, help="Show every solution and derivation, not only the smallest."
)
@click.option("--depth", type=click.IntRange(0, 100), metavar="N", help="Number of levels of a tree to show.")
@options.written("text", "json", "ttl", "mermaid", "html")
@options.then
@options.rules
@options.source(late="drop")
def command(
    path: str | None,
    sources: tuple[str, ...],
    folder: str | None,
    event_id: str | None,
    rule: str | None,
    why_not: str | None,
    at: str | None,
    where: tuple[str, ...],
    triple: str | None,
    every: bool,
    depth: int | None,
    output: OutputOptions,
    then: tuple[tuple[str, str], ...],
    rules: RuleOptions,
    source: SourceOptions,
) -> int:
    """Explain an event of RULES over SOURCEs, or of a deployment: by default the last one.

    The proof goes down to triples of the stream and of the background, with their places. --why-not shows how
    far a rule came that did not fire; --triple shows why a triple holds, or which premise it lacks (without
    SOURCEs: from the background alone).
    """
    asked = [
        name for name, value in (("--event", event_id), ("--why-not", why_not), ("--triple", triple)) if value
    ]
    if len(asked) > 1:
        raise UsageError.of("D4171", f"{asked[0]} and {asked[1]} do not go together", hint="ask one question")
    subject: Subject
    if path is None:
        _refuse_with_deployment(sources, then, rules.more_rules, rules.background)
        if rules.verify:
            hint = "dotr explain RULES SOURCE… --verify"
            message = (
                "a proof is checked against everything that came, of which a deployment keeps only a part"
            )
            raise UsageError.of("D4171", message, hint=hint)
        subject = deployment = DeploymentSubject(folder or ".dotr", source)
        if deployment.clock.integer and defaulted("time_unit"):
            source = replace(source, options=replace(source.options, unit=deployment.clock.unit))
            deployment.source = source
    else:
        if folder is not None or not (sources or triple):
            hint = "dotr explain RULES SOURCE…, or dotr explain --dir FOLDER"
            message = "RULES are explained over SOURCEs, a deployment over what it was fed"
            raise UsageError.of("D4171", message, hint=hint)
        texts = RuleTexts()
        program = rules.load(path, texts)
        documents = rules.documents(program)
        triples = source.background(program, documents)
        later = [_replacing(at_, again, rules, source, texts) for at_, again in then]
        files = [file for document in documents for file in resolve([document])]
        files = list(dict.fromkeys([*files, *(file for one in later for file in one.files)]))
        subject = NamedSources(program, triples, files, sources, source, later)
    time = None if at is None else instant_of(at, source.options.unit)[0]
    if triple and path is not None and not sources:
        time = 0  # at no instant: by the background alone
    if (why_not or triple) and time is None:
        raise UsageError.of("D4171", f"{asked[0]} needs the time of an instant", hint="add --at TIME")
    refuse_unknown_rule((rule, why_not), subject.programs)
    question = Question(
        event_id=event_id,
        rule=rule,
        why_not=why_not,
        triple=None if triple is None else read_triple(triple, subject.program.prefixes, "--triple"),
        time=time,
        at=at,
        values=dict(_pair(text, subject.program) for text in where),
    )
    reasons = explained(subject, question, lateness=source.lateness, every=every, verify=rules.verify)
    out = output.open()
    assert output.format_ is not None, "it has a default"
    out.write(reasons.written(output.format_, depth))
    out.finish()
    return 0 if reasons.happened else 1


def _refuse_with_deployment(*given: Sequence[object]) -> None:
    """Raise UsageError D4171 for what only goes with rules that the command names."""
    if any(given):
        hint = "dotr explain RULES SOURCE…, or dotr explain --dir FOLDER"
        raise UsageError.of("D4171", "a deployment has its own rules and background", hint=hint)


def _replacing(at: str, path: str, rules: RuleOptions, source: SourceOptions, texts: RuleTexts) -> Replacing:
    """What --then names."""
    when, clock = given_time(at, source.options.unit, None, "--then")
    program = rules.load(path, texts)
    documents = rules.documents(program)
    files = [file for document in documents for file in resolve([document])]
    return Replacing(when, clock, program, source.background(program, documents), files)


def _pair(text: str, program: Program) -> tuple[str, Term]:
    name, _, term = text.partition("=")
    return name.strip().lstrip("?"), read_term(term, program.prefixes, "--where")


def refuse_format(format_: str) -> None:
    """Raise UsageError D4177 for a format of events without a place for a proof."""
    if format_ != "jsonl":
        raise UsageError.of(
            "D4177",
            f"--explain writes JSON lines, not {format_}",
            hint="add --format jsonl, or explain one event: dotr explain",
        )


class Recording:
    """Owns the record of a run. `documents`: of the background. `verify`: every proof is checked, which needs
    all that came.
    """

    def __init__(self, documents: Sequence[str], verify: bool = False) -> None:
        self.files: Sequence[str] = resolve(documents)
        self._verify = verify
        self._explaining: Explaining | None = None

    def pipeline(self, deployment: Deployment, observer: PipelineObserver, **more: Any) -> Pipeline:
        """A pipeline that keeps the record."""
        record = Record(deployment.program, deployment.background)
        record.reach = EVERYTHING if self._verify else whole_reach_of(deployment.program)
        prefixes = with_declared(deployment.program.prefixes, self.files)
        places = places_of(record, self.files)
        self._explaining = Explaining(record, places, self._verify, prefixes)
        return RecordedPipeline(deployment, record, observer, **more)

    def write(self, events: Sequence[Composite], clock: Clock) -> str:
        """Events as JSON lines, each with its proof."""
        return "".join(f"{self._line(event, clock)}\n" for event in events)

    def explanation(self, name: str) -> Explanation:
        """Why an event happened that is being written."""
        assert self._explaining is not None, "events come from the pipeline"
        return self._explaining.event(name)

    def _line(self, event: Composite, clock: Clock) -> str:
        assert self._explaining is not None, "events come from the pipeline"
        proof = self._explaining.because(event.id)
        because = json.dumps(proof, ensure_ascii=False, separators=(",", ":"))
        return f'{format_jsonl(event, clock)[:-1]},"because":{because}}}'


STATED, DERIVED = "<urn:dotr:stated>", "<urn:dotr:derived>"
ENDED, BEGUN = "<urn:dotr:ended>", "<urn:dotr:begun>"
_NO_NOTES: Mapping[Triple, str] = {}


@click.command()
@click.argument("path", metavar="RULES")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--at", metavar="TIME", required=True, help="The instant of the SOURCEs.")
@click.option("--derived", is_flag=True, help="Print only what the rules derive.")
@click.option("--changes-since", "since", metavar="TIME", help="What began and ended since that instant.")
@options.written("trig", "turtle", "nquads")
@options.rules
@options.source()
def state(
    path: str,
    sources: tuple[str, ...],
    at: str,
    derived: bool,
    since: str | None,
    output: OutputOptions,
    rules: RuleOptions,
    source: SourceOptions,
) -> None:
    """Print K(t): the background, the graphs of that instant, and what the rules derive from them.

    TriG and N-Quads have what is stated in the graph urn:dotr:stated and what is derived in urn:dotr:derived;
    Turtle has both as one graph. With --changes-since the graphs are urn:dotr:ended (what held then and has
    ended) and urn:dotr:begun (what has begun since); TriG names the events that ended something.
    """
    if rules.verify:
        raise UsageError.of("D4171", "--verify has nothing to compare here", hint="dotr query --verify")
    program = rules.load(path, RuleTexts())
    triples = source.background(program, rules.documents(program))
    time, format_ = instant_of(at, source.options.unit)[0], output.format_
    then = None
    if since is not None:
        then = _earlier(instant_of(since, source.options.unit)[0], time, format_)
    history = History(program, triples, until=time, also=then, everything=True)
    with source.letters() as dead:
        reader = Sources(sources, source.options, dead.refusals())
        history.run(reader, lambda: reader.clock)
    instants = KeptInstants(history)
    stated, follows = instants.state(time)
    out = output.open()
    graphs = [(DERIVED, follows)] if derived else [(STATED, stated), (DERIVED, follows)]
    if then is not None:
        before = instants.state(then)
        was, now = (
            set(parts[1] if derived else [*parts[0], *parts[1]]) for parts in (before, (stated, follows))
        )
        graphs = [(ENDED, sorted(was - now)), (BEGUN, sorted(now - was))]
    ends = dict(_who_ended(history, was - now, time)) if then is not None else {}
    terms = TermFormatter(program.prefixes)
    if format_ != "nquads":
        out.write(terms.header())
    for name, found in graphs:
        if format_ == "nquads":
            out.write("".join(f"{s} {p} {o} {name} .\n" for s, p, o in found))
        elif format_ == "turtle":
            out.write(_lines(found, terms, ""))
        else:
            out.write(f"{name} {{\n{_lines(found, terms, '    ', ends)}}}\n")
    out.finish()


def _who_ended(history: History, triples: Iterable[Triple], time: Time) -> Iterator[tuple[Triple, str]]:
    """Comments of TriG for triples that an event ended."""
    statements = history.statements
    if statements is None:
        return
    for triple in triples:
        for one in statements.gone(triple, time):
            if isinstance(one.ended_by, EventLeaf) and one.until is not None:
                how = "replaced" if isinstance(one, Lasting) and one.ending is Ending.REPLACED else "deleted"
                when = history.clock.text(one.until)
                yield triple, f"  # {how} @ {when} by {one.ended_by.rule} {one.ended_by.id}"


def _earlier(since: Time, at: Time, format_: str | None) -> Time:
    """The time of --changes-since. Raises UsageError D4171 where it asks for nothing."""
    if since > at:
        raise UsageError.of("D4171", "--changes-since is later than --at", hint="give the earlier time to it")
    if format_ == "turtle":
        raise UsageError.of("D4171", "Turtle cannot express what ended", hint="add --format trig, or nquads")
    return since


def _lines(
    triples: Iterable[Triple], terms: TermFormatter, indent: str, notes: Mapping[Triple, str] = _NO_NOTES
) -> str:
    return "".join(
        f"{indent}{terms.term(s)} {terms.predicate(p)} {terms.term(o)} .{notes.get((s, p, o), '')}\n"
        for s, p, o in triples
    )

"""`dotr show RULES SOURCE… -o page.html`: a run as one page, events along time with their proofs.

Also `dotr run --show page.html`, which writes the page beside its events.

Place:   a run as `dotr run` has it, whose record is kept as for `--explain` (cli/explain.py); what it brings
         is drawn by pictures/ when it ends.
Method:  the proof of an event is made when it is written, while all that it can reach is kept: of the first
         `EXPLAINED`. The page has the first `LISTED` events and counts the others; its timeline has all.
Why not: the modules of the console: a page without script is mailed, printed, and shown where none may run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import click

from dotr.cli import options, show
from dotr.cli.explain import Recording
from dotr.cli.options import OutputOptions, RuleOptions, SourceOptions, parsing
from dotr.cli.plan import plan_picture
from dotr.cli.run import Replay
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.events import Clock, Composite
from dotr.explain.text import Node
from dotr.io.event_pictures import DESCRIBED, events_along_time, funnel_bars, marks_of, plain
from dotr.io.events import EventSink, TermFormatter
from dotr.io.outputs import Output
from dotr.io.rules_and_background import RuleTexts, with_declared
from dotr.io.sources import Sources
from dotr.pictures.markup import Html, element, joined, page, section, text
from dotr.pictures.timeline import Mark
from dotr.pictures.tree import tree
from dotr.program import Program
from dotr.service.overview import overview

EXPLAINED: Final = 500
"""Events whose proofs are on a page."""

LISTED: Final = DESCRIBED
"""Events that a page lists, and that are kept whole."""


class RunPage:
    """Owns what a page of a run shows. `record`: of the run, which explains its events."""

    def __init__(self, title: str, program: Program, record: Recording) -> None:
        self._title, self._record = title, record
        self._terms = TermFormatter(with_declared(program.prefixes, record.files))
        self._events: list[Composite] = []
        self._others: list[Mark] = []
        """Events that are not listed."""
        self._proofs: list[Sequence[Node]] = []
        self._clock = Clock()

    def take(self, events: Sequence[Composite], clock: Clock) -> None:
        """Events that are written now."""
        self._clock = clock
        room = max(0, LISTED - len(self._events))
        self._events += events[:room]
        self._others += [Mark(event.rule, event.time, "") for event in events[room:]]
        for event in events[: max(0, EXPLAINED - len(self._proofs))]:
            self._proofs.append(self._record.explanation(event.id).trees())

    def run(
        self, replay: Replay, sink: EventSink | None, out: Output, texts: RuleTexts, sources: Sequence[str]
    ) -> None:
        """Replay everything, events to `sink`, and then write the page to `out`, whole or not."""
        try:
            replay.run(ShownSink(self, sink, out))
            out.write(self._written(replay.pipeline, texts, sources))
        except BaseException:
            out.abandon()
            raise
        out.finish()

    def _written(self, pipeline: Pipeline, texts: RuleTexts, sources: Sequence[str]) -> str:
        """The page, when the run is over."""
        counters, program, clock = pipeline.counters, pipeline.program, self._clock
        lanes = [rule.name for rule in program.rules if not rule.private]
        count = len(self._events) + len(self._others)
        about = f"{counters.graphs:,} graphs, {count:,} events"
        if counters.first is not None and counters.last is not None:
            about += f", {clock.text(counters.first)} – {clock.text(counters.last)}"
        about += f"; {', '.join(os.path.basename(source) or source for source in sources[:5])}"
        marks = [*marks_of(self._events, clock, self._terms.term, link=True), *self._others]
        rules_ = [rule.name for rule in program.rules]
        along = events_along_time(marks, clock, lanes, rules=rules_)
        funnels = joined(
            funnel_bars(
                rule.name, counters.events.get(rule.name, 0), counters.funnel.get(rule.name, []), lane
            )
            for lane, rule in enumerate(program.rules)
        )
        rules = [
            element("details", element("summary", text(path)), element("pre", text(source)))
            for path, source in texts.texts.items()
        ]
        return page(
            self._title,
            section("Events along time", along),
            section("Events", self._list(rules_), note="each opens to its proof"),
            section("How far each rule came", funnels),
            section("What runs", plan_picture(overview(pipeline.deployment))),
            section("Rules", *rules),
            about=[element("span", text(about), class_="note")],
        )

    def _list(self, rules: Sequence[str]) -> Html:
        shown = [self._event(place, one, rules) for place, one in enumerate(self._events)]
        more = len(self._others)
        left = element("p", text(f"and {more:,} more"), class_="note") if more else Html("")
        return element("div", *shown, left, class_="events")

    def _event(self, place: int, event: Composite, rules: Sequence[str]) -> Html:
        lane = rules.index(event.rule) % 8 if event.rule in rules else 0
        values = "  ".join(f"?{name} {plain(term, self._terms)}" for name, term in event.bindings)
        line = element(
            "summary",
            element("span", text(self._clock.text(event.time)), class_="time"),
            element("span", element("span", class_=f"dot lane{lane}"), element("strong", text(event.rule))),
            element("span", text(values)),
        )
        if place < len(self._proofs):
            below = tree(self._proofs[place], opened=2)
        else:
            below = element(
                "p", text(f"the proofs of the first {EXPLAINED:,} events are here"), class_="note"
            )
        return element("details", line, element("div", below, id=f"e{place}"))


class ShownSink:
    """A sink whose events are on a page, too; `sink` None: nowhere else."""

    def __init__(self, page_: RunPage, sink: EventSink | None, output: Output) -> None:
        self._page, self._sink = page_, sink
        self.output = output if sink is None else sink.output

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        """See `EventSink`."""
        self._page.take(events, clock)
        if self._sink is not None:
            self._sink.write(events, clock)

    def flush(self) -> None:
        """See `EventSink`."""
        if self._sink is not None:
            self._sink.flush()

    def finish(self) -> None:
        """See `EventSink`."""
        if self._sink is not None:
            self._sink.finish()

    def abandon(self) -> None:
        """See `EventSink`."""
        if self._sink is not None:
            self._sink.abandon()


@click.command()
@click.argument("path", metavar="RULES")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@options.rules
@options.materialize
@options.source(late="fail", jumps=True)
@options.budget
@options.here
@options.replacing
@options.quiet
@options.output_value
@options.jobs
def command(
    path: str,
    sources: tuple[str, ...],
    rules: RuleOptions,
    source: SourceOptions,
    output: OutputOptions,
    jobs: int,
) -> None:
    """Replay SOURCEs through RULES and write one page: events along time, each with its proof.

    The page needs nothing else: no server, no network, no script. It shows how far each rule came, what runs,
    and the rules.
    """
    texts = RuleTexts()
    program = rules.load(path, texts)
    documents = rules.documents(program)
    output.apart(source.policies, [*texts.read_files, *documents, *sources])
    program = rules.wanted(program)
    show.say_all(program.warnings)
    deployment = rules.deployment(program, source.background_files(program, documents))
    record = Recording(documents, rules.verify)
    shown = RunPage(os.path.basename(path), program, record)
    with (
        source.letters() as dead,
        source.delayed() as delayed,
        parsing(jobs, source.options.base) as workers,
    ):
        reader = Sources(sources, source.options, dead.refusals(), workers=workers)
        replay = Replay(reader, delayed, output, os.path.basename(path))
        observer = PipelineObserver(overworked=replay.overworked)
        replay.prepare(deployment, source, rules, record.pipeline, observer)
        shown.run(replay, None, output.open(), texts, sources)

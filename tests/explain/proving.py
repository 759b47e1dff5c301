"""Histories of golden cases and examples, and a checker over them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dotr.events import Clock
from dotr.explain import verify
from dotr.explain.checker import Checker
from dotr.explain.matches import Explainer
from dotr.explain.proofs import EventProof
from dotr.explain.record import Graph, History
from dotr.explain.solutions import Text
from dotr.extract.printing import Writer
from dotr.io.rules_and_background import RuleTexts, read_background
from dotr.io.sources import SourceOptions, Sources
from dotr.lang import load_program


def history_of(
    rules: Path,
    sources: Sequence[Path],
    options: SourceOptions | None = None,
    lateness: int = 0,
    advance: int | None = None,
    then: Sequence[tuple[int, Path]] = (),
) -> History:
    """A run in which nothing is forgotten. `then`: from which time on which other rules hold."""
    program = load_program([str(rules)], RuleTexts())
    history = History(program, read_background(program.background), lateness=lateness, until=advance)
    history.reach = verify.EVERYTHING
    reader = Sources([str(source) for source in sources], options or SourceOptions())
    for time, other in then:
        changed = load_program([str(other)], RuleTexts())
        clock = Clock(unit=reader.options.unit)
        history.replace(time, clock, changed, read_background(changed.background))
    history.run((Graph(g.time, g.triples, g.place) for g in reader), lambda: reader.clock)
    return history


def explainer_of(history: History) -> Explainer:
    writer = Writer(history.program.prefixes)
    return Explainer(history, Text(writer.term, writer.expression, writer.path))


def checker_of(history: History, explainer: Explainer) -> Checker:
    return verify.checker_of(history, explainer.instants)


class Checked(NamedTuple):
    """The events of a run, each as it was explained, and what does not follow."""

    proofs: list[EventProof]
    faults: list[str]


def faults_over_changes(
    rules: Path,
    sources: Sequence[Path],
    then: Sequence[tuple[int, Path]] = (),
    *,
    source: SourceOptions | None = None,
    lateness: int = 0,
    advance: int | None = None,
) -> Checked:
    """Every event, explained by the rules of its time as `dotr explain` does, and checked."""
    found = Checked([], [])
    since = -(2**62)
    for until in [*(time for time, _ in then), None]:
        ends = [time for time in (advance, None if until is None else until - 1) if time is not None]
        history = history_of(rules, sources, source, lateness, min(ends, default=None), then)
        explainer = explainer_of(history)
        checker = checker_of(history, explainer)
        for event in history.events:
            if since <= event.time:
                found.proofs.append(explainer.event(event))
                checker.event(found.proofs[-1])
        found.faults.extend(checker.found)
        since = until if until is not None else since
    return found

"""Slices and shuffles in plain Python: however a program is cut, the events are those of one process."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dotr.batch.detecting import Detecting
from dotr.batch.fact_rows import Cut, FactRow, Layout, Router, marks
from dotr.batch.time_slices import Even, Slices, Uneven
from dotr.core.deployment import Deployment, Settings
from dotr.core.emit import Emitter
from dotr.events import Composite
from dotr.reference.tesla import LiteralDetector
from dotr.tesla.partitioning import By, Partitioning, plan_batch
from tests.batch.programs import Story, stories
from tests.tesla.building import CLOCK


def in_one_process(story: Story) -> list[Composite]:
    """What the pipeline's second half makes of a story, ticks included."""
    detector, emitter = LiteralDetector(story.program, CLOCK), Emitter(story.program)
    found: list[Composite] = []
    last = None
    for time, facts in story.instants.items():
        tick = None if last is None else detector.next_tick(last)
        while tick is not None and tick < time:
            found += emitted(emitter, detector.at(tick, story.at_tick(tick), False))
            tick = detector.next_tick(tick)
        found += emitted(emitter, detector.at(time, facts, True))
        last = time
    return found


def emitted(emitter: Emitter, matches: Sequence[Any]) -> list[Composite]:
    """The events of what the oracle found: one rule a match."""
    return [event for rule, *rest in matches for event in emitter.composites([((rule,), *rest)])]


def in_parts(
    story: Story, plan: Partitioning, cuts: tuple[Cut, ...], tasks: int, random: Random
) -> list[Composite]:
    """The same by way of rows, shuffled into tasks."""
    layout = Layout(plan, cuts, max(story.instants))
    router = Router(story.program, layout)
    rows: list[FactRow] = []
    for time, facts in story.instants.items():
        rows += router.rows(time, facts)
    rows += marks(layout, min(story.instants))
    random.shuffle(rows)
    found: list[Composite] = []
    deployment = Deployment(story.program, settings=Settings(apart=True))
    for task in range(tasks):
        mine = sorted(row for row in rows if hash(row[0]) % tasks == task)
        assert len({row[:2] for row in mine}) == len(mine), "an instant is one row a part"
        found += Detecting(deployment, layout, CLOCK, story.at_tick).events(mine)
    return found


def slices() -> st.SearchStrategy[Slices]:
    starts = st.lists(st.integers(-5, 26), unique=True, max_size=6)
    return st.one_of(st.builds(Even, st.integers(1, 9)), starts.map(lambda s: Uneven(tuple(sorted(s)))))


@st.composite
def cut_stories(draw: st.DrawFn) -> tuple[Story, Partitioning, tuple[Cut, ...]]:
    story = draw(stories())
    plan = plan_batch(story.program, draw(st.sampled_from(By)))
    cuts = tuple(
        Cut(
            1 if group.keys is None else draw(st.integers(1, 4)),
            None if group.horizon is None else draw(slices()),
        )
        for group in plan.groups
    )
    return story, plan, cuts


@given(cut_stories(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_every_cut_finds_what_one_process_finds(
    case: tuple[Story, Partitioning, tuple[Cut, ...]], tasks: int, random: Random
) -> None:
    story, plan, cuts = case
    expected = sorted(map(repr, in_one_process(story)))
    assert sorted(map(repr, in_parts(story, plan, cuts, tasks, random))) == expected

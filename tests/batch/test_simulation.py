"""Slices and shuffles in plain Python: however a program is cut, the events are those of one process."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dotr.batch.facts import Cut, FactRow, Layout, Router, marks
from dotr.batch.time_cuts import Even, Slices, Spans, Uneven, gaps, slices_at_gaps
from dotr.batch.work import Detecting
from dotr.core.deployment import Deployment, Settings
from dotr.detect.partitioning import By, Partitioning, plan_batch
from dotr.emit.events import Emitter
from dotr.events import Composite
from dotr.reference.tesla import LiteralTesla
from tests.batch.programs import Story, stories
from tests.detect.building import CLOCK


def in_one_process(story: Story) -> list[Composite]:
    """What the pipeline's second half makes of a story, ticks included."""
    detector, emitter = LiteralTesla(story.program, CLOCK), Emitter(story.program)
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
        found += Detecting(deployment, layout, CLOCK, story.at_tick, story.without_graph).events(mine)
    return found


def slices() -> st.SearchStrategy[Slices]:
    starts = st.lists(st.integers(-5, 26), unique=True, max_size=6)
    return st.one_of(st.builds(Even, st.integers(1, 9)), starts.map(lambda s: Uneven(tuple(sorted(s)))))


@st.composite
def cut_stories(draw: st.DrawFn) -> tuple[Story, Partitioning, tuple[Cut, ...]]:
    story = draw(stories())
    known = draw(st.booleans())  # else any query may have facts at ticks of AFTER
    without_graph = (lambda: story.without_graph) if known else None
    plan = plan_batch(story.program, draw(st.sampled_from(By)), without_graph=without_graph)
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


@st.composite
def stories_with_gaps(draw: st.DrawFn, ticking: bool = False) -> tuple[Story, Partitioning, tuple[Cut, ...]]:
    """Stories whose times lie far apart here and there, and cuts at some of the gaps; `ticking`: also of
    rules with EVERY.
    """
    story = draw(stories(draw(st.integers(1, 20))))
    plan = plan_batch(story.program, without_graph=lambda: story.without_graph)
    assume(any(group.gap is not None and (group.ticks or not ticking) for group in plan.groups))
    cuts = []
    for group in plan.groups:
        slices = None
        if group.gap is not None:
            spans = Spans(draw(st.integers(0, group.gap)), draw(st.sampled_from([1, 3, None])))
            for time in draw(st.permutations(list(story.instants))):
                spans.add(time)
            quantiles = sorted(draw(st.lists(st.integers(-5, 60), max_size=5)))
            slices = slices_at_gaps(quantiles, list(gaps(spans.joined(), spans.stride)), group.gap)
        buckets = 1 if group.keys is None else draw(st.integers(1, 4))
        cuts.append(Cut(buckets, slices))
    assume(any(isinstance(cut.slices, Uneven) and cut.slices.starts for cut in cuts))
    return story, plan, tuple(cuts)


@given(
    st.one_of(stories_with_gaps(), stories_with_gaps(True)),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_what_nothing_else_cuts_is_cut_at_gaps(
    case: tuple[Story, Partitioning, tuple[Cut, ...]], tasks: int, random: Random
) -> None:
    """Rules that consume or read their own events, without a key."""
    story, plan, cuts = case
    times = sorted(story.instants)
    for group, cut in zip(plan.groups, cuts, strict=True):
        if group.gap is not None and cut.slices is not None:
            starts = {after for before, after in pairwise(times) if after - before > group.gap}
            assert starts.issuperset(cut.slices.starts)
    expected = sorted(map(repr, in_one_process(story)))
    assert sorted(map(repr, in_parts(story, plan, cuts, tasks, random))) == expected

"""The funnel of a batch is that of one process, however the program is cut. Spark's: test_spark.py."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from dotr.batch.facts import Cut, FactRow, Layout, Router, marks
from dotr.batch.work import Detecting
from dotr.core.deployment import Deployment, Settings
from dotr.detect.partitioning import Partitioning
from dotr.program.names import Passed, summed
from tests.batch.programs import Story
from tests.batch.test_simulation import cut_stories
from tests.detect.building import CLOCK


def in_one_process(story: Story, deployment: Deployment) -> tuple[dict[str, Passed], dict[str, int]]:
    """(how far trigger facts came, matches) by rule, of a run over all instants and ticks between them."""
    detector = deployment.detector(CLOCK)
    matches = {rule.name: 0 for rule in story.program.rules}
    last: int | None = None
    for time, facts in story.instants.items():
        tick = None if last is None else detector.next_tick(last)
        while tick is not None and tick < time:
            found = detector.detect(tick, story.at_tick(tick), False)
            for match in found:
                for rule in match[0]:
                    matches[story.program.rules[rule].name] += 1
            tick = detector.next_tick(tick)
        for match in detector.detect(time, facts, True):
            for rule in match[0]:
                matches[story.program.rules[rule].name] += 1
        last = time
    return detector.passed(), matches


def in_parts(
    story: Story, plan: Partitioning, cuts: tuple[Cut, ...], deployment: Deployment, tasks: int
) -> dict[str, Passed]:
    """The same, summed over tasks that each own some parts."""
    layout = Layout(plan, cuts, max(story.instants))
    router = Router(story.program, layout)
    rows: list[FactRow] = []
    for time, facts in story.instants.items():
        rows += router.rows(time, facts)
    rows += marks(layout, min(story.instants))
    Random(7).shuffle(rows)
    found: dict[str, Passed] = {}
    for task in range(tasks):
        mine = sorted(row for row in rows if row[0] % tasks == task)
        without_graph = ["A"] if story.always else []
        detecting = Detecting(deployment, layout, CLOCK, story.at_tick, without_graph)
        for _event in detecting.events(mine):
            pass
        found = summed(found, detecting.done.passed)
    return found


def counted(passed: dict[str, Passed]) -> dict[str, Passed]:
    """The steps that something was counted at: a rule that no part ever looked at has none."""
    return {rule: steps for rule, steps in passed.items() if any(count for _, count in steps)}


@given(cut_stories(), st.integers(1, 3))
def test_steps_summed_over_what_tasks_own_are_those_of_a_run(
    case: tuple[Story, Partitioning, tuple[Cut, ...]], tasks: int
) -> None:
    story, plan, cuts = case
    deployment = Deployment(story.program, settings=Settings(apart=True))
    one, matches = in_one_process(story, deployment)
    for rule, steps in one.items():
        if steps and steps[-1][1] is not None:
            assert steps[-1][1] >= matches[rule]  # more where a value of WITH is missing
    assert counted(in_parts(story, plan, cuts, deployment, tasks)) == counted(one)

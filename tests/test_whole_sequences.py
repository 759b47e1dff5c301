"""Whole programs with sequences: every way of running is the literal reading (tests/whole_sequences.py)."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings

from tests.whole_sequences import World, compare, worlds

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


@settings(max_examples=2_000 if DEEP else 40)
@given(worlds())
def test_runs_are_the_literal_reading(world: World) -> None:
    compare(world)


@settings(max_examples=200 if DEEP else 6)
@given(worlds())
def test_batch_and_deployments_are_the_literal_reading(
    tmp_path_factory: pytest.TempPathFactory, world: World
) -> None:
    compare(world, tmp_path_factory.mktemp("world"))

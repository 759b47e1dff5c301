"""Profiles of hypothesis: ci by default, the same examples every time; dev looks for new ones, deep long."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from dotr.program.own_functions import import_functions

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("dev", max_examples=100, deadline=None, suppress_health_check=_QUIET)
settings.register_profile(
    "ci", max_examples=100, deadline=None, derandomize=True, suppress_health_check=_QUIET, print_blob=True
)
settings.register_profile("deep", max_examples=5_000, deadline=None, suppress_health_check=_QUIET)
import_functions("tests.own_functions")  # golden cases call them

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of shared test data."""
    folder = os.environ.get("DOTR_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("DOTR_DATA does not name the folder of benchmark data")
    return Path(folder)

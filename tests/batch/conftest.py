"""One Spark session for all tests that need a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dotr.batch.spark.session import find_java
from dotr.errors import EngineError


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local session of two cores, small shuffles."""
    try:
        find_java()
    except EngineError as error:
        pytest.skip(str(error))
    import dotr.spark  # noqa: PLC0415  # needs Java, which may be missing

    session = dotr.spark.session(
        "local[2]",
        spark_sql_shuffle_partitions="2",
        spark_default_parallelism="2",
        spark_sql_adaptive_enabled="false",
    )
    yield session
    session.stop()

"""Paths of this machine, and URIs that only Spark can follow."""

from __future__ import annotations

import pytest

from dotr.batch.log import is_remote, plain_path


@pytest.mark.parametrize("place", ["hdfs:///log", "s3a://bucket/log", "viewfs://store/a b", "hdfs:/log"])
def test_a_uri_of_another_scheme_is_remote(place: str) -> None:
    assert is_remote(place)
    assert plain_path(place) == place


@pytest.mark.parametrize(
    "place", ["log", "/log", "C:/log", "a:b", "-", "file:///log", "file:/log", "log/*.nq"]
)
def test_a_path_is_no_uri(place: str) -> None:
    assert not is_remote(place)


def test_a_file_uri_is_the_path_it_encodes() -> None:
    assert plain_path("file:///a%20b/c") == "/a b/c"
    assert plain_path("file:/log") == "/log"
    assert plain_path("a%20b") == "a%20b"

"""The manual's page of the server names every route and every metric, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from dotr.cli.help import pages
from dotr.serve.app import ROUTES
from dotr.serve.configuration import Settings
from dotr.serve.security import SCOPES
from tests.serve.servers import Server, hot, serving, smoke

PAGE = pages()["serve"].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as one:
        yield one


def metrics(server: Server) -> set[str]:
    """The names that it prints, as Prometheus stores them."""
    server.post([hot(1), smoke(2), hot(3)], wait="committed")
    return set(re.findall(r"^# TYPE (\w+)", server.client.get("/metrics").text, re.MULTILINE))


def test_every_metric_is_in_the_table(server: Server) -> None:
    table = PAGE.partition("### Metrics\n")[2].partition("\n#")[0]
    named = {
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(dotr_\w+)`", line.split("|")[1])
    }
    assert named == metrics(server)


def test_every_route_has_an_example_or_a_row() -> None:
    for route in ROUTES:
        if route.path.startswith("/v1/ldes") or route.path == "/":
            continue
        path = re.sub(r"\\\{\w+(:\w+)?\\\}", r"[\\w:]+", re.escape(route.path))
        assert re.search(rf"{path}(?![\w/])", PAGE), route.path
        assert route.method == "GET" or route.method in PAGE


def test_every_key_of_the_configuration_is_in_the_table() -> None:
    table = PAGE.partition("| key | default |")[2].partition("\n\n")[0]
    named = {
        name.partition(".")[0]
        for name in re.findall(r"`([\w.-]+)`", re.sub(r"\|[^|]*\|[^|]*\|$", "|", table, flags=re.M))
    }
    assert set(Settings.__struct_encode_fields__) <= named


def test_every_scope_is_in_the_table() -> None:
    table = PAGE.partition("| scope | |")[2].partition("\n\n")[0]
    assert set(SCOPES) <= set(re.findall(r"`(\w+)`", table))


def test_a_document_without_a_type_is_refused_at_once(server: Server) -> None:
    answer = server.client.post("/v1/streams/input", content="<urn:a> <urn:b> <urn:c> .")
    assert (answer.status_code, answer.json()["code"]) == (415, "D4210")
    assert "Content-Type: text/turtle" in answer.json()["hint"]

"""A URI of a command line is the struct that the configuration would have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import dotr
from dotr.errors import DataError, DotrError, UsageError
from dotr.serve.configuration import Output, Override, Source, read_keys
from dotr.serve.uris import output_of_uri, source_of_uri
from dotr.service.schemes import scheme_of


def test_a_topic_is_the_path_of_its_broker() -> None:
    name, source = source_of_uri(
        "mqtt://broker:1883/home/+/temp/#?format=json&map=temp.map&password=env:X&user=ann&idle=5s"
    )
    assert name == "mqtt://broker:1883/home/+/temp/#"
    assert source == Source(
        mqtt="mqtt://broker:1883",
        topics=["home/+/temp/#"],
        format="json",
        map="temp.map",
        password="env:X",  # noqa: S106  # where it is
        user="ann",
        idle=5_000_000,
    )


def test_keys_with_lists_are_repeated_and_decoded() -> None:
    name, source = source_of_uri("mqtts://b/a%3Fb?topics=c/%26/+&topics=d&name=temps&time=arrival")
    assert (name, source.mqtt, source.topics) == ("mqtt:temps", "mqtts://b", ["a?b", "c/&/+", "d"])
    _, output = output_of_uri("mqtt://b/events/{rule}?retain=Fire&retain=Smoke&rules=Fire")
    assert output == Output(mqtt="mqtt://b", topic="events/{rule}", retain=["Fire", "Smoke"], rules=["Fire"])


def test_a_hook_is_called_by_its_host_alone() -> None:
    name, output = output_of_uri("webhook:https://host/T0/secret?secret=env:S&order=any")
    assert output == Output(webhook="https://host/T0/secret", secret="env:S", order="any")  # noqa: S106
    assert name.startswith("webhook:host#")
    assert "T0" not in name
    other, _ = output_of_uri("webhook:https://host/T1/secret")
    assert other != name
    _, with_query = output_of_uri("webhook:?webhook=https://host/hook%3Fa=1%26b=2")
    assert with_query.webhook == "https://host/hook?a=1&b=2"


def test_a_url_after_a_kind_has_the_scheme_of_the_kind() -> None:
    assert [scheme_of(uri) for uri in ("webhook:http://h/p", "webhook:?webhook=x", "ldes:https://h")] == [
        "webhook",
        "webhook",
        "ldes",
    ]
    assert [scheme_of(path) for path in ("a:b", "x?y", "c:/d")] == ["file"] * 3


@pytest.mark.parametrize(
    ("uri", "code", "hint"),
    [
        ("mqtt://b/t?formatt=json", "D4190", "did you mean `format`?"),
        ("mqtt://b/t?format=xls", "D4190", "one of "),
        ("mqtt://b/t?qos=2", "D4190", "write 1"),
        ("mqtt://b:99999/t", "D4190", "write mqtt://"),
        ("mqtt://b:0/t", "D4190", "write mqtt://"),
        ("kafka://b:0/t", "D4190", "write k1:9092"),
        ("ldes:http://b:0/t", "D4190", "write https://"),
        ("mqtt://b/t?http=x", "D4191", "one of "),
        ("mqtt://b/t?password=hush", "D4192", "write env:NAME or file:PATH"),
        ("mqtt://ann:hush@b/t", "D4192", "write env:NAME or file:PATH"),
        ("mqtt://b/t?format", "D4217", "write ?KEY=VALUE"),
        ("mqtt://b/t?user=a&user=b", "D4217", "take one of them out"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(uri: str, code: str, hint: str) -> None:
    with pytest.raises(DotrError) as raised:
        source_of_uri(uri)
    assert isinstance(raised.value, (DataError, UsageError))
    found = raised.value.diagnostics[-1]
    assert found.code == code
    assert found.hint.startswith(hint)
    assert not any("hush" in one.render() for one in raised.value.diagnostics)


def test_paths_are_relative_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, source = source_of_uri("mqtt://b/t?map=temp.map&password=file:pw")
    assert (source.map, source.password) == ("temp.map", "file:pw")


def test_a_topic_of_kafka_is_the_path_of_its_servers() -> None:
    name, source = source_of_uri("kafka://k1:9092,k2:9092/readings?format=jsonl&from=latest")
    assert name == "kafka://k1:9092,k2:9092/readings"
    assert (source.kafka, source.topics, source.from_) == ("k1:9092,k2:9092", ["readings"], "latest")
    _, output = output_of_uri("kafka://k1:9092/events?key={room}")
    assert (output.kafka, output.topic, output.key) == ("k1:9092", "events", "{room}")


def test_sources_whose_url_is_a_key_have_names_of_their_own() -> None:
    names = [source_of_uri(f"dotr:?dotr=http://{host}:8080")[0] for host in ("a", "b")]
    assert len(set(names)) == 2
    assert names[0].startswith("dotr:a:8080#")


def test_a_password_in_an_address_of_kafka_is_not_shown() -> None:
    with pytest.raises(DataError) as raised:
        output_of_uri("kafka://u:hunter2@localhost/t")
    assert "hunter2" not in raised.value.diagnostics[0].render()


def test_uris_of_the_manual_are_the_keys_beside_them() -> None:
    manual = (Path(dotr.__file__).parent / "docs" / "serve.md").read_text()
    table = manual.partition("| URI | the same as |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(-o )?'?([^`]*?)'?` \| `(\{.*\})`", table, re.MULTILINE)
    assert len(rows) == len(table.splitlines()) - 2 >= 8, rows
    for output, uri, keys in rows:
        overrides = [
            Override("row", (key,), [str(one) for one in value] if isinstance(value, list) else str(value))
            for key, value in yaml.safe_load(keys).items()
        ]
        if output:
            assert output_of_uri(uri)[1] == read_keys(Output, "row", overrides)
        else:
            assert source_of_uri(uri)[1] == read_keys(Source, "row", overrides)

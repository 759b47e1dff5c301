"""`dotr.yaml`: every key, every mistake at its place, and nothing that a file could do beyond being read."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from dotr.errors import DataError
from dotr.serve.configuration import (
    FILE,
    SCHEMA,
    Configuration,
    Override,
    Settings,
    age_and_bytes,
    read_configuration,
    read_secret,
    rows_and_bytes,
    schema,
    schema_text,
)

WHOLE = """
rules: [building.dotr, "dotr:rules/rdfs.dlog"]
background: [rooms.ttl]
dir: state
listen: "[::1]:0"
hosts: [Dotr.example.org]
commit: 1s
keep: {messages: 1h, events: 1GB}
inbox: {max: 5000}
outbox: {max: 2GB}
sources:
  kitchen: {http: {}, time: arrival}
  lines: {files: [in/, /var/lines], idle: 1min, lateness: 5s, format: csv, map: rows.map, time-zone: UTC}
outputs:
  log: {file: ../out.jsonl, rules: [Fire], format: jsonl}
tokens: tokens
tls: {cert: server.pem, key: server.key, password: "file:key"}
behind-proxy: true
cors: ["https://board.example.org"]
max-ahead: 1d
tick: 1s
time-unit: ms
base: "http://example.org/"
"""


def read(folder: Path, text: str, *overrides: Override) -> Configuration:
    path = folder / FILE
    path.write_text(text, "utf-8")
    return read_configuration(str(path), overrides)


def refused(folder: Path, text: str, *overrides: Override) -> str:
    with pytest.raises(DataError) as error:
        read(folder, text, *overrides)
    return str(error.value).replace(f"{folder}/", "")


def test_every_key_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, WHOLE)
    assert found.rules == [f"{tmp_path}/building.dotr", "dotr:rules/rdfs.dlog"]
    assert (found.host, found.port, found.loopback) == ("::1", 0, True)
    assert found.hosts == ["dotr.example.org"]
    assert (found.commit, found.keep.messages, found.max_ahead) == (1_000_000, 3_600_000_000, 86_400_000_000)
    assert age_and_bytes(found.keep.events) == (None, 1 << 30)
    assert rows_and_bytes(found.inbox.max, 1, 2) == (5000, 2)
    assert rows_and_bytes(found.outbox.max, 1, 2) == (1, 2 << 30)
    assert {name: source.kind for name, source in found.sources.items()} == {
        "kitchen": "http",
        "lines": "files",
    }
    lines = found.sources["lines"]
    assert lines.files == [f"{tmp_path}/in/", "/var/lines"]
    assert (lines.idle, lines.lateness, lines.map) == (60_000_000, 5_000_000, f"{tmp_path}/rows.map")
    assert found.outputs["log"].file == f"{tmp_path}/../out.jsonl"
    assert found.tls is not None
    assert found.tls.password == f"file:{tmp_path}/key"
    assert found.behind_proxy
    assert set(found.sources["kitchen"].__struct_fields__) >= {"http", "files", "time"}


def test_without_a_configuration_there_is_one_stream_on_this_machine() -> None:
    found = read_configuration()
    assert (found.listen, found.dir, found.loopback) == ("127.0.0.1:8080", ".dotr", True)
    assert {name: source.kind for name, source in found.sources.items()} == {"input": "http"}
    assert (found.commit, found.tokens, found.tls, found.cors) == (20_000, None, None, [])


def test_the_default_deployment_lies_beside_the_file(tmp_path: Path) -> None:
    assert read(tmp_path, "rules: []\n").dir == f"{tmp_path}/.dotr"
    assert read(tmp_path, "").dir == f"{tmp_path}/.dotr"
    assert read(tmp_path, "dir: x\n", Override("--dir", ("dir",), "here")).dir == "here"


def test_options_lie_over_the_file_and_are_read_again_with_it(tmp_path: Path) -> None:
    set_ = Override("--set", ("sources", "kitchen", "time"), "event", yaml=True)
    listen = Override("--listen", ("listen",), "127.0.0.1:9")
    found = read(tmp_path, WHOLE, set_, listen, Override("RULES", ("rules",), ["other.dotr"]))
    assert (found.sources["kitchen"].time, found.port, found.rules) == ("event", 9, ["other.dotr"])
    (tmp_path / FILE).write_text("commit: 2s\nsources: {kitchen: {http: {}}}\n")
    again = found.again()
    assert (again.commit, again.port, list(again.sources)) == (2_000_000, 9, ["kitchen"])


def test_all_of_a_configuration_can_be_options() -> None:
    given = ("sources", "a", "files"), ("outputs", "b", "file")
    found = read_configuration(
        None,
        [
            Override("--set", given[0], "[x.jsonl]", yaml=True),
            Override("--set", given[1], "y.csv", yaml=True),
        ],
    )
    assert (found.sources["a"].files, found.outputs["b"].file) == (["x.jsonl"], "y.csv")
    assert list(found.sources) == ["a"]


def test_all_mistakes_are_reported_at_their_places_with_what_was_meant(tmp_path: Path) -> None:
    text = (
        "listn: 127.0.0.1:8080\ncommit: 20 minx\nsources:\n  k: {http: {}, time: arival}\n"
        "  n: {htp: {}}\n  'a/b': {http: {}}\noutputs: {log: {file: a, format: xml}}\n"
        "behind-proxy: yes\nmax-ahead: 0s\ntls: {cert: a.pem}\nrules: one.dotr\nkeep: {events: ever}\n"
    )
    found = refused(tmp_path, text)
    for part in (
        "`listn` is not a key of the configuration\n --> dotr.yaml:1:1\n",
        "did you mean `listen`?",
        "`20 minx` is not a duration above 0",
        "dotr.yaml:4:23",
        "did you mean `arrival`?",
        "did you mean `http`?",
        "`a/b` is not a name",
        "`xml` is no value of `format`",
        "`yes` is no value of `behind-proxy`",
        "`0s` is not a duration above 0",
        "`tls` needs `key`",
        "`rules` is a list",
        "`ever` is not a duration or a size",
    ):
        assert part in found, part


def test_servers_of_kafka_are_hosts_with_ports(tmp_path: Path) -> None:
    for servers in ("kafka://k1:9092", "k1", "k1:9092,", "k1:99999"):
        found = refused(tmp_path, f"outputs: {{o: {{kafka: '{servers}'}}}}\n")
        assert f"error[D4190]: `{servers}` is not a list of Kafka's servers" in found


@pytest.mark.parametrize("keys", ["http: {}, files: [x]", "files: [x], kafka: y", "time: event"])
def test_a_source_is_exactly_one_thing(tmp_path: Path, keys: str) -> None:
    assert "D4191" in refused(tmp_path, f"sources: {{s: {{{keys}}}}}\n")


@pytest.mark.parametrize(
    "text",
    [
        "tls: {cert: a, key: b, password: hunter2}\n",
        "tls: {cert: a, key: b, password: 'env:hunter2 '}\n",
        "tls: {cert: a, key: b, password: 'file:'}\nx: hunter2\n",
        "sources: {s: {mqtt: 'mqtts://b', password: hunter2}}\n",
        "sources: {s: {mqtt: 'mqtts://me:hunter2@b'}}\n",
        "outputs: {o: {webhook: 'https://x', secret: hunter2, secrt: hunter2}}\n",
        "outputs: {o: {file: x, secret: hunter2}}\nlistn: 1\n",
        "cors: ['https://me:hunter2@x']\nbase: 'https://me:hunter2@x y'\nsources: {s: {time: event}}\n",
    ],
)
def test_a_secret_in_clear_is_refused_and_never_shown(tmp_path: Path, text: str) -> None:
    found = refused(tmp_path, text)
    assert "error[D4192]" in found
    assert "hunter2" not in found
    assert "--> dotr.yaml:1:" in found


def test_a_line_that_may_hold_a_secret_is_not_shown(tmp_path: Path) -> None:
    found = refused(tmp_path, "tls: {cert: a, key: b, password: 'env:X', pasword: hunter2}\n")
    assert "`pasword` is not a key" in found
    assert "hunter2" not in found
    assert "hunter2" not in refused(tmp_path, "tls: {password: 'hunter2\n")


def test_secrets_are_read_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("s3cret\n")
    monkeypatch.setenv("HOOK", "of the environment")
    assert read_secret(f"file:{tmp_path}/key") == "s3cret"
    assert read_secret("env:HOOK") == "of the environment"
    for where in ("env:NOT_THERE", f"file:{tmp_path}/none"):
        with pytest.raises(DataError, match="D4192"):
            read_secret(where)


def test_aliases_are_not_followed(tmp_path: Path) -> None:
    """Ten lines that stand for a billion values."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    begun = time.process_time()
    found = refused(tmp_path, "\n".join(lines))
    assert "the alias `*a` is not read in the configuration" in found
    assert time.process_time() - begun < 1
    assert "the alias" in refused(tmp_path, "a: &a {b: *a}\n")


def test_a_file_is_data_and_of_a_size_and_depth(tmp_path: Path) -> None:
    assert "the tag" in refused(tmp_path, "rules: !!python/object/apply:os.system ['true']\n")
    assert "nested more than 50 deep" in refused(tmp_path, "rules: " + "[" * 2000)
    assert "more than 1,048,576 bytes" in refused(tmp_path, "# " + "x" * (1 << 20))
    assert "this is not YAML" in refused(tmp_path, "rules: [\n")
    assert "is a mapping" in refused(tmp_path, "- rules\n")
    assert "is not UTF-8" in refused_bytes(tmp_path, b"rules: [\xff]\n")
    with pytest.raises(DataError, match="D2003"):
        read_configuration(str(tmp_path / "none.yaml"))


def refused_bytes(folder: Path, content: bytes) -> str:
    (folder / FILE).write_bytes(content)
    with pytest.raises(DataError) as error:
        read_configuration(str(folder / FILE))
    return str(error.value)


def test_a_key_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    assert "`listen` stands here twice" in refused(tmp_path, "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n")
    assert "`k` stands here twice" in refused(tmp_path, "sources: {k: {http: {}}, k: {files: [x]}}\n")


@pytest.mark.parametrize("path", ["~/out.jsonl", "$HOME/out.jsonl", "{rule}.jsonl", "../../out.jsonl"])
def test_a_path_stands_as_written(tmp_path: Path, path: str) -> None:
    """Only `..` and an absolute path lead out of the folder, and only where the file has them."""
    assert read(tmp_path, f"outputs: {{o: {{file: '{path}'}}}}\n").outputs["o"].file == f"{tmp_path}/{path}"


@pytest.mark.parametrize(
    "listen", ["8080", ":8080", "127.0.0.1", "127.0.0.1:99999", "[::1]", "[zz]:1", "http://a:1", "a b:1"]
)
def test_what_is_no_address_is_refused(tmp_path: Path, listen: str) -> None:
    assert "is not an address to listen on" in refused(tmp_path, f"listen: '{listen}'\n")


@pytest.mark.parametrize(
    ("listen", "own"),
    [
        ("127.0.0.1:1", True),
        ("127.8.8.8:1", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("[::ffff:10.0.0.1]:1", False),
        ("localhost.example.org:1", False),
        ("10.0.0.1:1", False),
    ],
)
def test_which_addresses_only_this_machine_reaches(listen: str, own: bool) -> None:
    assert read_configuration(None, [Override("--listen", ("listen",), listen)]).loopback is own


@pytest.mark.parametrize("origin", ["*", "null", "https://a/b", "ftp://a", "https://", "a.example"])
def test_what_is_no_origin_is_refused(tmp_path: Path, origin: str) -> None:
    assert "is not an origin" in refused(tmp_path, f"cors: ['{origin}']\n")


def test_the_schema_that_is_shipped_is_made_of_the_structs() -> None:
    assert SCHEMA.read_text("utf-8") == schema_text()
    Draft202012Validator.check_schema(schema())


def test_the_schema_accepts_what_is_read_and_refuses_unknown_keys() -> None:
    yaml = pytest.importorskip("yaml")
    validator = Draft202012Validator(json.loads(schema_text()))
    document = yaml.safe_load(WHOLE)
    assert [error.message for error in validator.iter_errors(document)] == []
    assert not validator.is_valid({**document, "listn": "x"})
    assert not validator.is_valid({"sources": {"k": {"http": {}, "files": ["x"]}}})
    assert not validator.is_valid({"sources": {"k": {}}})


def test_every_key_has_a_description() -> None:
    for name, found in schema()["properties"].items():
        assert "description" in found or "$ref" in found, name
    assert set(schema()["properties"]) == {name.replace("_", "-") for name in Settings.__struct_fields__}


def test_a_quality_of_service_that_loses_messages_is_refused_with_the_reason(tmp_path: Path) -> None:
    found = refused(tmp_path, "sources: {s: {mqtt: 'mqtt://b', topics: [a], qos: 2}}\n")
    assert "`2` is not a quality of service that loses nothing" in found
    assert "a message is acknowledged before it is on disk" in found


@pytest.mark.parametrize(
    "body",
    [
        '{"text": "{rule} in {room}"}',
        '{"at": {time}, "n": [{number}, null], "{rule}": "{id}"}',
        '"{room}"',
        "{number}",
    ],
)
def test_a_body_may_have_places_in_strings_and_for_numbers(tmp_path: Path, body: str) -> None:
    text = f"outputs: {{a: {{webhook: 'http://h/x', body: '{body}'}}}}"
    assert read(tmp_path, text).outputs["a"].body == body


@pytest.mark.parametrize(
    "body", ['{"text": "{rule}"', "{rule} in {room}", "{text: {rule}}", '{"a": "{rule}",}', "[" * 100_000]
)
def test_a_body_that_no_event_makes_json_is_refused(tmp_path: Path, body: str) -> None:
    text = f"outputs: {{a: {{webhook: 'http://h/x', body: '{body}'}}}}"
    with pytest.raises(DataError) as raised:
        read(tmp_path, text)
    message = raised.value.diagnostics[0].message
    assert "is not JSON when its places are filled" in message
    assert len(message) < 200

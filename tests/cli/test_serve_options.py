"""`dotr serve`: what options mean, what `--check` says, what is refused before it listens, and tokens."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dotr.cli import serve
from dotr.cli.main import run
from dotr.serve.configuration import Configuration, schema
from dotr.serve.security import Tokens
from tests.cli.conftest import Dotr


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Configuration, str]]:
    """What the server was run with, instead of running it."""
    found: list[tuple[Configuration, str]] = []
    module = ModuleType("dotr.serve.server")

    def run(configuration: Configuration, *, log_format: str, watcher: object) -> int:
        assert watcher is None, "standard error is no terminal"
        found.append((configuration, log_format))
        return 0

    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dotr.serve.server", module)
    return found


def test_rules_alone_are_served_on_this_machine(dotr: Dotr, folder: Path, ran: list) -> None:
    assert dotr("serve", "fire.dotr").code == 0
    ((configuration, log_format),) = ran
    assert (configuration.rules, configuration.listen, configuration.dir, log_format) == (
        ["fire.dotr"],
        "127.0.0.1:8080",
        ".dotr",
        "text",
    )
    assert list(configuration.sources) == ["input"]


def test_the_file_of_the_folder_is_read_and_options_stand_over_it(
    dotr: Dotr, folder: Path, ran: list
) -> None:
    (folder / "dotr.yaml").write_text("rules: [a.dotr]\ncommit: 1s\nhosts: [a.example]\n")
    done = dotr(
        *("serve", "fire.dotr", "--listen", "[::1]:0", "--host", "b.example", "--host", "c.example"),
        *("--set", "sources.kitchen={http: {}, time: arrival}", "--keep-events", "2GB"),
        *("--log-format", "json"),
    )
    assert done.code == 0
    assert "configured by dotr.yaml" in done.err
    ((configuration, log_format),) = ran
    assert (configuration.rules, configuration.commit, configuration.port) == (["fire.dotr"], 1_000_000, 0)
    assert (configuration.hosts, configuration.keep.events) == (["b.example", "c.example"], "2GB")
    assert configuration.sources["kitchen"].time == "arrival"
    assert log_format == "json"
    assert configuration.again().sources == configuration.sources


def test_every_key_with_an_option_has_its_help(dotr: Dotr) -> None:
    text = " ".join(dotr("serve", "--help").out.split())
    for option, path, *_ in serve._KEYS:
        assert option in text
        assert path[0] in schema()["properties"]


def test_check_says_what_would_be_done_and_does_nothing(dotr: Dotr, folder: Path) -> None:
    token = dotr("serve", "token", "new", "board", "--scopes", "read").out.strip()
    done = dotr("serve", "fire.dotr", "--check", "--tokens", "tokens", "--set", "outputs.log.file=x.jsonl")
    assert done.code == 0
    assert re.search(r"^listen +http://127.0.0.1:8080 +for this machine alone$", done.out, re.MULTILINE)
    assert re.search(r"^output log +file x.jsonl +events of all rules$", done.out, re.MULTILINE)
    assert re.search(r"^token board +read$", done.out, re.MULTILINE)
    assert "+ Fire  new" in done.out
    assert token not in done.out + done.err
    assert not (folder / ".dotr").exists()
    assert not (folder / "x.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nothing.dotr"], 3, "nothing.dotr"),
        (["wrong.dotr"], 3, "error[D1"),
        (["--config", "none.yaml"], 3, "D2003"),
        (["--set", "listn=1"], 3, "did you mean `listen`?"),
        (["--set", "listen"], 2, "is not KEY=VALUE"),
        (["--set", "a..b=1"], 2, "is not KEY=VALUE"),
        (["--set", "rules=[*a]"], 3, "D4190"),
        (["--listen", "8080"], 3, "D4190"),
        (["--dir", ""], 3, "D4190"),
        (["--listen", "0.0.0.0:1"], 5, "D4194"),
        (["--tokens", "none"], 3, "D2003"),
        (["--tokens", "fire.dotr"], 3, "D4193"),
        (["--tls-cert", "fire.dotr", "--tls-key", "fire.dotr"], 3, "D4196"),
        (["--tls-cert", "fire.dotr"], 3, "`tls` needs `key`"),
        (["--set", "outputs.o.file=tokens.x", "--set", "outputs.p.file=./tokens.x"], 2, "D4113"),
        (["fire.dotr", "--set", "outputs.o.file=fire.dotr"], 5, "D5002"),
        (["--set", "outputs.o.file=.dotr/deployment.db"], 5, "D5002"),
        (["--set", "sources.s={http: {}, map: none.map}"], 3, "none.map"),
        (["--set", "sources.s={kafka: k}"], 3, "D4190"),
        (["--set", "sources.s={ldes: 'http://127.0.0.1:9', time: arrival}"], 3, "D4222"),
        (["--set", "sources.s={dotr: 'http://127.0.0.1:9', time: header}"], 3, "D4222"),
        (["--set", "sources.s={dotr: 'http://127.0.0.1:9', token: 'env:DOTR_NO_SUCH'}"], 3, "D4192"),
        (["--set", "sources.s={ldes: 'ftp://127.0.0.1/'}"], 3, "is not a URL of HTTP"),
    ],
)
def test_what_cannot_be_served_is_refused_before_it_listens(
    dotr: Dotr, folder: Path, ran: list, arguments: list[str], code: int, said: str
) -> None:
    (folder / "wrong.dotr").write_text("RULE")
    dotr("deploy", "fire.dotr")
    done = dotr("serve", *arguments, "--check")
    assert (done.code, said in done.err) == (code, True), done.err
    assert done.out == ""
    assert ran == []


def test_an_output_of_an_unknown_rule_is_a_warning(dotr: Dotr, folder: Path) -> None:
    """The rule may come later."""
    done = dotr("serve", "fire.dotr", "--check", "--set", "outputs.o={file: x.jsonl, rules: [Fier]}")
    assert done.code == 0
    assert "did you mean `Fire`?" in done.err


def test_without_a_package_the_extra_is_named(
    dotr: Dotr, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None if name == "uvicorn" else object())
    done = dotr("serve", "fire.dotr")
    assert done.code == 4
    assert "error[D4205]: dotr serve needs uvicorn" in done.err
    assert "pip install 'dotr[serve]'" in done.err


def test_a_token_is_printed_once_and_opens_what_it_is_for(dotr: Dotr, folder: Path) -> None:
    done = dotr("serve", "token", "new", "sensor", "--scopes", "write:kitchen, read")
    assert done.code == 0
    found = Tokens.read("tokens").find(done.out.strip().encode())
    assert found is not None
    assert found.scopes == {"write:kitchen", "read"}
    assert done.out.strip() not in done.err + (folder / "tokens").read_text()
    assert dotr("serve", "token", "new", "sensor", "--scopes", "read").code == 5
    assert dotr("serve", "token", "new", "other", "--scopes", "reed").code == 2
    assert dotr("serve", "token", "new", "other").code == 2
    assert dotr("serve", "token", "new", "other", "--scopes", "admin", "--tokens", "more").code == 0
    assert dotr("serve", "token", "--help").code == 0


def test_the_schema_is_printed(dotr: Dotr) -> None:
    assert json.loads(dotr("serve", "--schema").out) == schema()


def test_check_loads_no_server() -> None:
    code = (
        "import sys; from dotr.cli.main import run; run(['serve', '--help']); "
        "print({'uvicorn', 'starlette', 'prometheus_client', 'pyspark'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("sources: {s: {mqtt: 'mqtt://127.0.0.1:1'}}", "D4215"),
        ("outputs: {o: {webhook: 'http://127.0.0.1:1', secret: 'file:none'}}", "D4192"),
        ("outputs: {o: {webhook: 'http://127.0.0.1:1', secret: 'env:DOTR_NO_SUCH'}}", "D4192"),
    ],
)
def test_a_check_refuses_what_a_start_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dotr.yaml").write_text(f"{text}\n")
    assert run(["serve", "--check"]) != 0
    assert code in capsys.readouterr().err

"""The extension for VS Code is packaged by a script, and what it starts is a language server."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dotr.lang.editor import __path__ as folders

EDITOR = Path(folders[0])
MANIFEST = json.loads((EDITOR / "package.json").read_text(encoding="utf-8"))

TALK = r"""
const path = require("path");
const { spawn } = require("child_process");
const [extension, dotr, text] = process.argv.slice(2);
const rpc = require(path.join(extension, "node_modules", "vscode-jsonrpc", "node"));
const { LANGUAGES, serverOptions } = require(path.join(extension, "server.js"));
const { command, args } = serverOptions({ get: (key) => (key === "path" ? dotr : undefined) });
const server = spawn(command, args);
const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(server.stdout), new rpc.StreamMessageWriter(server.stdin));
connection.onNotification("textDocument/publishDiagnostics", async (params) => {
  console.log(JSON.stringify(params.diagnostics.map((one) => one.code)));
  await connection.sendRequest("shutdown");
  await connection.sendNotification("exit");
});
server.on("exit", (code) => process.exit(code));
connection.listen();
(async () => {
  await connection.sendRequest("initialize", { processId: process.pid, rootUri: null, capabilities: {} });
  await connection.sendNotification("initialized", {});
  const textDocument = { uri: "file:///nowhere/a.dotr", languageId: LANGUAGES[0], version: 1, text };
  await connection.sendNotification("textDocument/didOpen", { textDocument });
})();
"""


def test_the_manifest_names_files_and_languages_that_are_there() -> None:
    contributed = MANIFEST["contributes"]
    named = [MANIFEST["main"], *(one["path"] for one in contributed["grammars"])]
    named += [one["configuration"] for one in contributed["languages"]]
    assert [name for name in named if not (EDITOR / name).is_file()] == []
    languages = [one["id"] for one in contributed["languages"]]
    assert MANIFEST["activationEvents"] == [f"onLanguage:{language}" for language in languages]
    assert f"LANGUAGES = {json.dumps(languages)}" in (EDITOR / "server.js").read_text(encoding="utf-8")


def test_settings_that_the_extension_reads_are_in_the_manifest() -> None:
    settings = set(MANIFEST["contributes"]["configuration"]["properties"])
    assert settings == {"dotr.path", "dotr.functions"}
    code = (EDITOR / "extension.js").read_text(encoding="utf-8")
    assert all(f'"{one["command"]}"' in code for one in MANIFEST["contributes"]["commands"])


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("npx") is None:
        pytest.skip("no node")
    file = tmp_path_factory.mktemp("vscode") / "dotr.vsix"
    ran = subprocess.run([EDITOR / "package.sh", file], capture_output=True, text=True, timeout=300)
    if ran.returncode and any(
        word in ran.stderr for word in ("ENOTFOUND", "EAI_AGAIN", "E40", "ECONN", "network")
    ):
        pytest.skip("no registry of node's packages can be reached")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return file


def test_the_package_has_what_the_manifest_names(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        names = set(archive.namelist())
        manifest = json.loads(archive.read("extension/package.json"))
    assert (manifest["name"], manifest["version"]) == ("dotr", MANIFEST["version"])
    assert {"extension/extension.js", "extension/server.js", "extension/dotr.tmLanguage.json"} <= names
    assert "extension/node_modules/vscode-languageclient/package.json" in names


def test_what_the_package_starts_is_a_server_that_finds_mistakes(package: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path)
    script = tmp_path / "talk.js"
    script.write_text(TALK, encoding="utf-8")
    dotr = Path(sys.executable).with_name("dotr")
    ran = subprocess.run(
        ["node", script, tmp_path / "extension", dotr, "RULE R DEFINE {} FROM Nothing"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[0]) != []

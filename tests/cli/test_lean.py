"""A lean installation, from the wheel and `lean.txt`, has every verb that needs no Spark, pandas or Arrow."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dotr.cli.main import VERBS

ROOT = Path(__file__).resolve().parents[2]
FIRE = ROOT / "examples" / "fire"
LEFT_OUT = ("numpy", "pandas", "pyarrow", "pyspark")
STREAM = ("--source", "files", "in", "--checkpoint", "state", "--out", "found")

HELP_WITHOUT = """
import contextlib, io, sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Without())
import click
from dotr.cli.main import VERBS, group, run

def helped(command, *path):
    page, errors, called = io.StringIO(), io.StringIO(), " ".join(path)
    with contextlib.redirect_stdout(page), contextlib.redirect_stderr(errors):
        status = run([*path, "--help"])
    print(called, status, page.getvalue().startswith("Usage: dotr " + called), errors.getvalue())
    for name in getattr(command, "commands", ()):
        helped(command.commands[name], *path, name)

for verb in VERBS:
    helped(group.get_command(click.Context(group), verb), verb)
"""
"""Prints each command, its exit code, whether it began with its usage, and its standard error."""


class Lean:
    """An environment of its own, with nothing but the wheel and what `lean.txt` lists."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dotr = folder / "venv" / "bin" / "dotr"
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        self._must([*pip, "wheel", "--no-deps", "--wheel-dir", str(folder / "dist"), str(ROOT)])
        (self.wheel,) = (folder / "dist").glob("dotr-*.whl")
        self._must([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")])
        python = str(folder / "venv" / "bin" / "python")
        self._must([*pip, "--python", python, "install", "-r", str(ROOT / "lean.txt")])
        self._must([*pip, "--python", python, "install", "--no-deps", str(self.wheel)])

    def _must(self, command: list[str]) -> None:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=240)
        if ran.returncode and re.search(
            r"No matching distribution|connection|resolve|Could not f", ran.stderr
        ):
            pytest.skip(f"no index of packages can be reached: {ran.stderr.strip().splitlines()[-1][:200]}")
        assert ran.returncode == 0, ran.stderr

    def __call__(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.dotr), *map(str, arguments)],
            cwd=self.folder, capture_output=True, text=True, timeout=120, env=self.environment,
        )  # fmt: skip

    @property
    def environment(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


@pytest.fixture(scope="module")
def lean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lean]:
    if os.name != "posix":
        pytest.skip("the paths of a venv are those of POSIX")
    folder = tmp_path_factory.mktemp("lean")
    yield Lean(folder)
    shutil.rmtree(folder, ignore_errors=True)


def test_the_versions_of_lean_txt_are_those_of_the_lock() -> None:
    with (ROOT / "uv.lock").open("rb") as file:
        locked = {(one["name"], one["version"]) for one in tomllib.load(file)["package"]}
    lines = [line for line in (ROOT / "lean.txt").read_text().splitlines() if not line.startswith("#")]
    pinned = {(name, version.split()[0]) for name, _, version in (line.partition("==") for line in lines)}
    assert pinned <= locked
    assert not {name for name, _ in pinned} & set(LEFT_OUT)


def test_lean_txt_lists_what_dotr_requires_but_what_is_left_out() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    wanted = {re.split(r"[^A-Za-z0-9-]", line)[0] for line in project["dependencies"]}
    wanted |= {re.split(r"[^A-Za-z0-9-]", line)[0] for line in project["optional-dependencies"]["serve"]}
    lines = {line.partition("==")[0] for line in (ROOT / "lean.txt").read_text().splitlines()}
    assert wanted - lines == set(LEFT_OUT) - {"numpy"}


def test_every_command_has_its_help_without_what_is_left_out() -> None:
    text = HELP_WITHOUT.format(packages=set(LEFT_OUT))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert [line for line in lines if not line.endswith(" 0 True")] == []
    assert {line.split()[0] for line in lines} == set(VERBS)
    assert "spark entry-point 0 True" in lines


def test_the_wheel_has_types_rules_patterns_and_the_manual(lean: Lean) -> None:
    names = set(zipfile.ZipFile(lean.wheel).namelist())
    assert {"dotr/py.typed", "dotr/docs/index.md", "dotr/_shipped/examples/fire/fire.dotr"} <= names


@pytest.mark.parametrize("package", LEFT_OUT)
def test_the_environment_has_none_of(lean: Lean, package: str) -> None:
    python = lean.dotr.with_name("python")
    ran = subprocess.run([python, "-c", f"import {package}"], capture_output=True, env=lean.environment)
    assert ran.returncode == 1


def test_check_plan_run_explain_and_convert_work(lean: Lean) -> None:
    rules, events = FIRE / "fire.dotr", FIRE / "events"
    assert lean("check", rules).returncode == 0
    assert "HighTemp" in lean("plan", rules).stdout
    ran = lean("run", rules, events)
    assert (ran.returncode, '"rule":"Fire"' in ran.stdout) == (0, True)
    assert "trigger Smoke" in lean("explain", rules, events).stdout
    assert lean("convert", events, "-o", "log.nq").returncode == 0
    assert lean("times", "log.nq").returncode == 0


def test_rules_are_tested(lean: Lean) -> None:
    assert lean("init", "house").returncode == 0
    ran = lean("test", "house")
    assert (ran.returncode, "passed" in ran.stdout + ran.stderr) == (0, True)


def test_a_deployment_is_fed(lean: Lean) -> None:
    assert lean("deploy", FIRE / "fire.dotr", "--dir", "deployed").returncode == 0
    ran = lean("feed", FIRE / "events", "--dir", "deployed")
    assert (ran.returncode, '"rule":"Fire"' in ran.stdout) == (0, True)
    assert lean("status", "--dir", "deployed").returncode == 0


def test_a_server_answers(lean: Lean) -> None:
    command = [str(lean.dotr), "serve", str(FIRE / "fire.dotr"), "--listen", "127.0.0.1:0", "--dir", "served"]
    log = lean.folder / "serve.log"
    with log.open("w") as out:
        server = subprocess.Popen(command, cwd=lean.folder, stdout=out, stderr=out, env=lean.environment)
    try:
        end = time.monotonic() + 30
        while (found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())) is None:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        with urllib.request.urlopen(f"{found[0]}/readyz", timeout=30) as answer:  # noqa: S310  # loopback
            assert answer.read().strip() == b"ready"
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.parametrize(
    ("arguments", "package"),
    [
        (("run", FIRE / "fire.dotr", FIRE / "events", "-o", "events.parquet"), "pyarrow"),
        (("convert", FIRE / "events", "-o", "log.parquet"), "pyarrow"),
        (("batch", FIRE / "fire.dotr", "--log", FIRE / "events", "--out", "out"), "pyarrow"),
        (("stream", FIRE / "fire.dotr", *STREAM), "pandas"),
    ],
)
def test_what_needs_more_says_what(lean: Lean, arguments: tuple[object, ...], package: str) -> None:
    ran = lean(*arguments)
    assert ran.returncode == 4
    assert f"error[D4205]: this needs {package}, which is not installed" in ran.stderr
    assert f"pip install {package}" in ran.stderr


def test_doctor_lists_what_is_missing_for_what(lean: Lean) -> None:
    ran = lean("doctor")
    assert ran.returncode == 0
    assert re.search(r"^no  pyarrow +not installed$", ran.stdout, re.MULTILINE)
    assert "pip install pyarrow, for Parquet and Arrow files, dotr batch" in ran.stdout

"""What a release is made of agrees with itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import yaml

from dotr import __version__

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


def test_every_file_has_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    extension = json.loads((ROOT / "dotr" / "lang" / "editor" / "package.json").read_text(encoding="utf-8"))
    section = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert section is not None
    assert {
        project["version"],
        next(one["version"] for one in locked if one["name"] == "dotr"),
        extension["version"],
        section[1],
    } == {__version__}


def test_actions_of_the_workflow_are_pinned_to_commits() -> None:
    lines = re.findall(r"^ *- uses: (.+)$", WORKFLOW.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) >= 8
    assert [one for one in lines if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", one)] == []


def test_jobs_have_the_permissions_that_they_use_and_no_more() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    assert {name: job["permissions"] for name, job in workflow["jobs"].items()} == {
        "build": {"contents": "read", "id-token": "write", "attestations": "write"},
        "publish": {"id-token": "write"},
        "page": {"contents": "write"},
    }


def test_scripts_that_the_workflow_runs_are_there() -> None:
    for name in set(re.findall(r"\.ci/\w+", WORKFLOW.read_text(encoding="utf-8"))):
        assert (ROOT / name).stat().st_mode & 0o100, name


def test_addresses_are_those_of_the_repository_that_releases(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "urls", tmp_path / ".ci")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    subprocess.run([tmp_path / ".ci" / "urls", "https://example.org/owner/dotr"], check=True)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Issues"] == "https://example.org/owner/dotr/issues"
    assert project["scripts"]["dotr"] == "dotr.cli.main:main"

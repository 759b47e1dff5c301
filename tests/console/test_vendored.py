"""What the console has of others is what it says: versions, licences, hashes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from dotr.serve.static import FOLDER

VENDOR = FOLDER / "vendor"
RECORD = json.loads((VENDOR / "VENDORED.json").read_text(encoding="utf-8"))
BUILD = Path(__file__).with_name("vendor") / "build.mjs"
LICENCES = {"MIT", "Apache-2.0", "BSD-3-Clause", "ISC"}


def test_every_file_has_the_hash_that_is_recorded() -> None:
    for name, one in RECORD["files"].items():
        content = (VENDOR / name).read_bytes()
        assert (len(content), sha256(content).hexdigest()) == (one["bytes"], one["sha256"]), name


def test_no_file_stands_there_that_is_not_recorded() -> None:
    assert {path.name for path in VENDOR.iterdir()} == {*RECORD["files"], "VENDORED.json"}


def test_every_package_has_a_licence_that_lets_it_be_shipped() -> None:
    texts = (VENDOR / "LICENSES.txt").read_text(encoding="utf-8")
    packages = [one for file in RECORD["files"].values() for one in file.get("packages", ())]
    assert len(packages) > 5
    for one in packages:
        assert one["licence"] in LICENCES, one
        assert f"{one['name']} {one['version']} ({one['licence']})" in texts


@pytest.mark.skipif(not os.environ.get("DOTR_VENDOR"), reason="DOTR_VENDOR=1 bundles them again, with npm")
def test_the_bundles_are_built_again_byte_by_byte() -> None:
    assert shutil.which("npm") is not None
    done = subprocess.run(
        ["node", BUILD, "--check"], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr

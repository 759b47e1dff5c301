"""The LDES client of npm, installed once into a cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

VERSION = "0.3.0"

_SCRIPT = """
import { replicateLDES, intoConfig } from "ldes-client";
const [url, order, more] = process.argv.slice(2);
const options = JSON.parse(more);
if (options.after) options.after = new Date(options.after);
const reading = (page, ...others) => {
  console.log(JSON.stringify({ page: page.url ?? page }));
  return fetch(page, ...others);
};
const client = replicateLDES(intoConfig({ url, fetch: reading, ...options }), order);
client.on("error", (error) => { console.error(error); process.exit(1); });
const place = (term) => term.termType === "BlankNode" ? "_:" + term.value : term.value;
for await (const member of client.stream({ highWaterMark: 10 })) {
  const quads = member.quads.map((q) => [q.subject, q.predicate, q.object, q.graph].map(place));
  console.log(JSON.stringify({ id: member.id.value, time: member.timestamp, quads }));
}
"""


def script() -> Path:
    """The script that prints members as JSON lines; skips the test where it cannot be had."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node or npm is not installed")
    folder = Path.home() / ".cache" / "dotr-tests" / f"ldes-client-{VERSION}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", f"ldes-client@{VERSION}"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"ldes-client cannot be installed: {error}")
        (folder / "complete").touch()
    made = folder / "members.mjs"
    if not made.exists() or made.read_text() != _SCRIPT:
        made.write_text(_SCRIPT)
    return made


def command(url: str, order: str = "none", **options: object) -> Sequence[str]:
    """What prints the members of a stream, a JSON object a line, and the pages that it read."""
    return ["node", str(script()), url, order, json.dumps(options)]


def members(url: str, order: str = "none", **options: object) -> list[dict[str, object]]:
    """The same, of a stream as it is now."""
    with TemporaryDirectory() as folder:  # where it keeps how far it is
        done = subprocess.run(
            command(url, order, **options),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "TMPDIR": folder},
        )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

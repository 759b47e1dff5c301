"""What the map says of a new format of events is all it takes: one row of a table, and every verb has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dotr.io.events import BINARY, ENDINGS, EVENT_FORMATS

FIRE = Path(__file__).resolve().parents[2] / "examples" / "fire"

WITH_NAMES = """
from dotr.io import events

events.EVENT_FORMATS["names"] = events.EventFormat(
    "names", lambda prefixes, rules: ("name\\n", lambda found, clock: "".join(f"{e.rule}\\n" for e in found))
)
events.ENDINGS["names"] = "names"

import sys

from dotr.cli.main import run

sys.exit(run(sys.argv[1:]))
"""


def _dotr(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITH_NAMES, *arguments], cwd=FIRE, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_row_is_a_format_of_every_verb(tmp_path: Path) -> None:
    run, fed, folder = str(tmp_path / "run.names"), str(tmp_path / "fed.names"), str(tmp_path / "deployed")
    _dotr("run", "fire.dotr", "events", "-o", run)
    _dotr("deploy", "fire.dotr", "--dir", folder)
    _dotr("feed", "events", "--dir", folder, "-o", fed)
    for path in (run, fed):
        assert Path(path).read_text(encoding="utf-8").startswith("name\nFire\n")


def test_a_format_is_text_or_binary() -> None:
    for name, format_ in EVENT_FORMATS.items():
        assert ENDINGS[name] == format_.ending
        binary = (format_.file is not None, format_.sink is not None)
        assert binary == ((name in BINARY),) * 2
        assert (format_.text is None) == (name in BINARY)


def test_nobody_else_asks_which_format_it_is() -> None:
    code = Path(__file__).resolve().parents[2] / "dotr"
    asked = [
        str(path.relative_to(code))
        for path in sorted(code.rglob("*.py"))
        for word in ('format_ == "parquet"', '== "jelly"', 'case "jelly"', 'case "parquet"')
        if word in path.read_text("utf-8") and path.name != "query.py"  # of solutions, not of events
    ]
    assert asked == []

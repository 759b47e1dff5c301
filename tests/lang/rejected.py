"""Rejected programs and their messages.

`python -m tests.lang.rejected` writes their expected.txt anew.

What it writes is then read by a human, line by line, before it is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dotr.io.rules_and_background import SCHEME, read_rules_text
from dotr.lang import check_program

FOLDER = Path(__file__).parent.parent / "golden" / "rejected"


def cases() -> list[Path]:
    return sorted(path.parent for path in FOLDER.glob("*/program.*"))


def findings(case: Path) -> Iterator[tuple[str, str]]:
    """(code, message) of every finding about the program of a case."""
    name = next(case.glob("program.*")).name

    def read(path: str) -> str:
        if path.startswith(SCHEME):
            return read_rules_text(path)
        return (case / path).read_text(encoding="utf-8")

    for diagnostic in check_program([name], read)[1]:
        yield diagnostic.code, diagnostic.render()


def text(case: Path) -> str:
    return "".join(f"{message}\n" for _, message in findings(case))


if __name__ == "__main__":
    for folder in cases():
        (folder / "expected.txt").write_text(text(folder), encoding="utf-8")

"""`dotr check --explain CODE`: what a code means, with a wrong and a right example.

Place:   read by cli/check.py and cli/help.py; the pages are text files in pages/, one a group of codes. A
         test holds the catalogue against the codes that occur in the source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent, fill
from typing import Final, NamedTuple

from dotr.lang.grammar.cursor import nearest

GROUPS: Final = (
    *(
        "syntax",
        "names",
        "queries",
        "doubtful",
        "windows",
        "sequences",
        "lasting",
        "lars",
        "datalog",
        "documents",
        "running",
    ),
    *("deployments", "local_times", "tables", "samples", "outputs", "budgets", "clusters", "explanations"),
    "rule_tests",
    "serving",
)
"""Names of files in pages/, in the order of the manual."""

_EXAMPLE: Final = r"((?:(?: {4}.*)?\n)+?)"
_PAGE: Final = re.compile(
    rf"^(D\d{{4}})(?: \.(dotr|dlog|lars))?: (.+)\n((?:.+\n)+?)wrong:\n{_EXAMPLE}right:\n{_EXAMPLE}(?=D|\Z)",
    re.MULTILINE,
)


class Page(NamedTuple):
    """What a code means, an example of the mistake, and the same done right. `language`: of the examples,
    which tests then run; "" where they are data, a command or Python.
    """

    code: str
    language: str
    title: str
    text: str
    wrong: str
    right: str

    def render(self) -> str:
        """The page as text, no newline at the end."""
        examples = [
            f"{side}:\n" + _indented(text) for side, text in (("wrong", self.wrong), ("right", self.right))
        ]
        return "\n\n".join((f"{self.code}: {self.title}", fill(self.text, 96), *examples))


def pages_of(group: str) -> list[Page]:
    """The pages of one file, in its order, which is that of the codes."""
    text = (Path(__file__).parent / "pages" / f"{group}.txt").read_text(encoding="utf-8")
    return [
        Page(code, language, title, " ".join(words.split()), _example(wrong), _example(right))
        for code, language, title, words, wrong, right in _PAGE.findall(text)
    ]


def _example(text: str) -> str:
    return dedent(text).strip("\n")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


PAGES: Final[Mapping[str, Page]] = {page.code: page for group in GROUPS for page in pages_of(group)}


def explain(code: str) -> str | None:
    """The page of a code, in any case; None for a code that does not exist."""
    page = PAGES.get(code.upper())
    return page.render() if page is not None else None


def similar(code: str) -> str:
    """A hint for a code that does not exist."""
    return nearest(code.upper(), PAGES) or "codes look like D1310; every message begins with one"

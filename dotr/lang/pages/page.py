"""One page of `dotr check --explain CODE`.

Place:   below the modules that hold the pages.
"""

from __future__ import annotations

from enum import Enum
from textwrap import fill

from dotr.late import dataclass


class PageKind(Enum):
    """What the examples of a page are. Tests run those but OTHER."""

    DOTR = "a .dotr file"
    DLOG = "a .dlog file"
    LARS = "a .lars file"
    OTHER = "data, a command or Python"


@dataclass(frozen=True, slots=True)
class Page:
    """What a code means, an example of the mistake, and the same done right."""

    code: str
    title: str
    text: str
    wrong: str
    right: str
    kind: PageKind = PageKind.DOTR

    def render(self) -> str:
        """The page as text, no newline at the end."""
        return "\n".join(
            (
                f"{self.code}: {self.title}",
                "",
                fill(" ".join(self.text.split()), 96),
                "",
                "wrong:",
                *(f"    {line}" for line in self.wrong.strip("\n").split("\n")),
                "",
                "right:",
                *(f"    {line}" for line in self.right.strip("\n").split("\n")),
            )
        )

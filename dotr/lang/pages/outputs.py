"""Pages of D415x: which events go out, and in which format.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind

PAGES: Final = (
    Page(
        "D4150",
        "no rule of this name has events to choose",
        "`--only` and `--except` name rules of the program, separated by commas. The events of a PRIVATE "
        "rule never leave, so there is nothing to choose.",
        "dotr run fire.dotr events/ --only Fier",
        "dotr run fire.dotr events/ --only Fire",
        PageKind.OTHER,
    ),
)

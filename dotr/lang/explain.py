"""`dotr check --explain CODE`: what a code means, with a wrong and a right example.

Place:   read by cli/check.py; the pages stand in pages/, by groups of codes. A test holds the catalogue
         against the codes that occur in the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dotr.lang.grammar.base import nearest
from dotr.lang.pages import GROUPS
from dotr.lang.pages.page import Page

PAGES: Final[Mapping[str, Page]] = {
    page.code: page for group in GROUPS for page in sorted(group.PAGES, key=lambda page: page.code)
}


def explain(code: str) -> str | None:
    """The page of a code, in any case; None for a code that does not exist."""
    page = PAGES.get(code.upper())
    return page.render() if page is not None else None


def similar(code: str) -> str:
    """A hint for a code that does not exist."""
    return nearest(code.upper(), PAGES) or "codes look like D1310; every message begins with one"

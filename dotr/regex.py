"""Regular expressions that are compiled on first use.

Place:   below everything; `regex` is `re.compile`, late.
Why not: compiled on import, those of a short `dotr run` take 0.03 s, and few of them are ever used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any


class _Regex:
    """A `re.Pattern`, compiled when one of its methods is first used; that method stays as an attribute."""

    def __init__(self, text: str, flags: int = 0) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    from re import compile as regex

    __all__ = ["regex"]
else:
    regex = _Regex

"""Places in texts: which file, which characters; and `Syntax`, nodes that point at them.

Place:   below everything; every syntax node and every diagnostic points at one of these. Equality, hashes and
         digests of nodes leave places out.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar, Final, NamedTuple

from msgspec import Struct


class Source(NamedTuple):
    """One text a user wrote. `name` is what messages call it (a path as the user gave it)."""

    name: str
    text: str

    def __repr__(self) -> str:
        return f"Source(name={self.name!r})"

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1. O(log lines) after one pass over the text."""
        starts = _line_starts(self.text)
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line (from 1) without its end."""
        starts = _line_starts(self.text)
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r")


class Span(NamedTuple):
    """The characters `[start, end)` of a source."""

    source: Source
    start: int
    end: int

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"


@lru_cache(maxsize=64)
def _line_starts(text: str) -> list[int]:
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts


PLACES: Final = frozenset({"span", "clauses", "named", "places", "prologue", "warnings"})
"""The fields of syntax nodes that say where, not what."""

_UNSHOWN: Final = PLACES | {"held", "private"}
_SHOWN_IF_SET: Final = frozenset({"optional", "selection", "k", "per", "version", "inserts", "deletes"})
"""Fields that came later: where they are not set a node's text, and so a rule's digest, is what it was."""


class Syntax(Struct, frozen=True, eq=False):
    """A syntax node: equal to another that says the same in another place; its text leaves places out."""

    _said: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        nodes = [base for base in reversed(cls.__mro__) if issubclass(base, Syntax) and base is not Syntax]
        names = [name for node in nodes for name in node.__annotations__ if name not in PLACES]
        cls._said = attrgetter(*names) if names else type

    def __eq__(self, other: object) -> bool:
        return self is other or (other.__class__ is self.__class__ and self._said(self) == self._said(other))

    __ne__ = object.__ne__  # Struct has one that does not ask __eq__

    def __hash__(self) -> int:
        return hash(self._said(self))

    def __repr__(self) -> str:
        fields = (name for name in self.__struct_fields__ if name not in _UNSHOWN)
        shown = (name for name in fields if name not in _SHOWN_IF_SET or getattr(self, name))
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

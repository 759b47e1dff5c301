"""What syntax nodes have in common: they point at places, which equality, hashes and digests leave out."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar, Final

from msgspec import Struct

PLACES: Final = frozenset({"span", "clauses", "named", "places", "prologue", "warnings"})
"""The fields of syntax nodes that say where, not what."""

_UNSHOWN: Final = PLACES | {"held", "private"}


class Syntax(Struct, frozen=True, eq=False):
    """A syntax node: equal to another that says the same in another place; its text leaves places out."""

    _said: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        names = [name for name in cls.__annotations__ if name not in PLACES]
        cls._said = attrgetter(*names) if names else type

    def __eq__(self, other: object) -> bool:
        return self is other or (other.__class__ is self.__class__ and self._said(self) == self._said(other))

    __ne__ = object.__ne__  # Struct has one that does not ask __eq__

    def __hash__(self) -> int:
        return hash(self._said(self))

    def __repr__(self) -> str:
        shown = (name for name in self.__struct_fields__ if name not in _UNSHOWN)
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

"""A bounded table of a pure function's results.

Place:   used by the modules of rdf/ and expressions/ that process the same terms repeatedly.
Method:  a self-filling dict (`__missing__`), so a hit is one C-level subscription (30 ns); when full it is
         emptied, which costs one recomputation per live key and no bookkeeping per hit.
Why not: functools.lru_cache costs twice as much per hit and keeps literals of any length alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """Owns at most `limit` results of `function`; `memo[key]` computes a missing one.

    Keys longer than `longest` characters (terms) or, for other keys, results of more bytes are recomputed
    each time and not kept, so that the table is also bounded in bytes.
    """

    __slots__ = ("__weakref__", "_function", "_limit", "_longest")

    def __init__(self, function: Callable[[K], V], limit: int = 1 << 15, longest: int = 256) -> None:
        super().__init__()
        self._function = function
        self._limit = limit
        self._longest = longest

    def __missing__(self, key: K) -> V:
        value = self._function(key)
        size = len(key) if isinstance(key, str) else len(value) if isinstance(value, bytes) else 0
        if size <= self._longest:
            if len(self) >= self._limit:
                self.clear()
            self[key] = value
        return value

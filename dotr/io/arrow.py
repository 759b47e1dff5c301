"""Arrow, loaded when something of it is first asked for: it takes a third of a second, and NumPy with it.

Place:   modules of which many runs use the part that needs no Arrow: `from dotr.io.arrow import pa, pc, pq`.
Bad input: ModuleNotFoundError where it is not installed, as the import would raise it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
else:

    class _Late:
        """A module that is imported for its first attribute."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            found = getattr(import_module(self._name), name)
            self.__dict__[name] = found
            return found

    pa, pc, pq = (_Late(name) for name in ("pyarrow", "pyarrow.compute", "pyarrow.parquet"))

__all__ = ["pa", "pc", "pq"]

"""Files that travel with dotr: rule sets, pattern libraries, examples.

Place:   `<dotr:rules/…>` and `<dotr:patterns/…>` of programs, and `dotr demo`, find them here.
Method:  an installed wheel has them in `dotr/_shipped`, a checkout at its top level.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]
SCHEME = "dotr:"
KINDS = ("rules", "patterns", "examples")


def shipped(path: str) -> Path:
    """The file or folder of `rules/rdfs.dlog`, `patterns/…`, `examples/…`. Raises FileNotFoundError.

    A path that leads out of these folders is not found.
    """
    for top in (_PACKAGE / "_shipped", _PACKAGE.parent):
        found = (top / path).resolve()
        if any(found.is_relative_to(top / kind) for kind in KINDS) and found.exists():
            return found
    raise FileNotFoundError(2, "dotr ships no such file", path)

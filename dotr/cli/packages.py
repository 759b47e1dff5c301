"""Packages that a lean installation leaves out, and what each is for.

Place:   `dotr doctor` lists them; `main.py` reports one that a command lacks, instead of a traceback.
Why not: a check at every import: a package is missed where it is first used, in whatever layer that is.
"""

from __future__ import annotations

from typing import Final

from dotr.errors import EngineError

OPTIONAL: Final = {
    "pyarrow": "Parquet and Arrow files, dotr batch, tables of Python",
    "numpy": "dotr batch, dotr stream",
    "pandas": "tables of pandas, dotr stream",
    "pyspark": "dotr stream, dotr spark, dotr batch --engine spark",
    "rich": "progress and live views on a terminal, dotr help",
}
"""Package → what needs it. `dotr run`, `feed`, `serve` and the like work without any of them."""


def missing(error: ModuleNotFoundError) -> EngineError | None:
    """The diagnostic D4205 for one of them; None for a module that is no package of these."""
    package = (error.name or "").partition(".")[0]
    if package not in OPTIONAL:
        return None
    return EngineError.of(
        "D4205",
        f"this needs {package}, which is not installed",
        notes=(f"{package} is for {OPTIONAL[package]}",),
        hint=f"pip install {package}; dotr doctor lists what else is missing",
    )

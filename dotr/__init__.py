"""dotr: a stream reasoner. Describe a situation once, in a rule file; get an event when it happens.

The Python surface: `Engine` takes rules and graphs and returns `Event`s; `dotr.spark` runs the same rules
over logs in Spark. See README.md; the data path starts in core/pipeline.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotr.errors import (
    DataError,
    Diagnostic,
    DotrError,
    EngineError,
    ProgramError,
    RefusedError,
    UnsupportedError,
    UsageError,
)
from dotr.version import __version__

if TYPE_CHECKING:
    from dotr.api import Engine, Event, Events, frame_of
    from dotr.async_engine import AsyncEngine
    from dotr.knowledge_base import KnowledgeBase

__all__ = [
    "AsyncEngine",
    "DataError",
    "Diagnostic",
    "DotrError",
    "Engine",
    "EngineError",
    "Event",
    "Events",
    "KnowledgeBase",
    "ProgramError",
    "RefusedError",
    "UnsupportedError",
    "UsageError",
    "__version__",
    "frame_of",
]


def __getattr__(name: str) -> object:
    """`Engine` and its events are loaded on first use: `dotr --help` needs neither."""
    if name in ("Engine", "Event", "Events", "frame_of"):
        from dotr import api as engine  # noqa: PLC0415  # start-up time

        return getattr(engine, name)
    if name == "AsyncEngine":
        from dotr.async_engine import AsyncEngine  # noqa: PLC0415  # start-up time

        return AsyncEngine
    if name == "KnowledgeBase":
        from dotr.knowledge_base import KnowledgeBase  # noqa: PLC0415  # start-up time

        return KnowledgeBase
    raise AttributeError(f"module 'dotr' has no attribute {name!r}")

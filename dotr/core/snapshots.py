"""Which snapshots this version reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dotr.errors import EngineError

VERSION = 2
"""The version of snapshots. Version 1, in which nothing lasts, is read; others are refused."""


def refuse_version(state: Mapping[str, Any]) -> None:
    """Raise EngineError D5101 for a snapshot of another version."""
    if state.get("version") not in (1, VERSION):
        raise EngineError.of(
            "D5101",
            f"this snapshot has version {state.get('version')!r}",
            notes=(f"this dotr reads version {VERSION}",),
            hint="restore it with the dotr that wrote it, or start again",
        )

"""Places whose rules are right: the factory, and the building of the examples."""

from __future__ import annotations

import shutil
from enum import Enum
from pathlib import Path

from tests.cli.conftest import dotr, folder
from tests.survey import factory

__all__ = ["EXAMPLES", "Place", "dotr", "folder"]

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


class Place(Enum):
    """Right rules with a stream."""

    FACTORY = "stream.jsonl"
    BUILDING = "morning.ttl"

    @property
    def stream(self) -> str:
        return self.value

    def copy_to(self, folder: Path) -> str:
        """Put background and stream into a folder; the text of the rules."""
        if self is Place.FACTORY:
            factory.write(folder)
            return factory.RIGHT
        for name in ("building.ttl", "places.dlog", "morning.ttl"):
            shutil.copy(EXAMPLES / "building" / name, folder / name)
        return (EXAMPLES / "building" / "building.dotr").read_text(encoding="utf-8")

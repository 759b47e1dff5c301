"""What a user can choose for a batch or a stream, by name.

Place:   the options of `dotr batch` and `dotr stream`, which a lean installation prints without Arrow.
"""

from typing import Final

from dotr.io.events import EVENT_FORMATS

TYPED: Final = "typed parquet"
"""Parquet with the columns of io/typed_events.py, in folders by rule and day."""

LOG_FORMATS: Final = tuple(format_ for format_ in EVENT_FORMATS if format_ != "text")
"""How a batch writes events."""

STREAM_FORMATS: Final = ("jsonl", "nquads")
"""How a stream writes them: formats whose files can be concatenated."""

AUTO: Final = "auto"
ORDERED: Final = "ordered"
DISTRIBUTED: Final = "distributed"
MODES: Final = (AUTO, ORDERED, DISTRIBUTED)
"""How a stream runs: in order in one engine, or by part on all workers."""

"""`dotr run --explain`: the proof of every event beside it, as "because" in its JSON line.

Place:   what `dotr run` makes instead of a plain pipeline and a plain sink.
Method:  a record of the run goes along (explain/record.py); an event is explained when it is written, while
         everything that its horizon can reach is kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.errors import UsageError
from dotr.events import Clock, Composite
from dotr.explain.explanation import Explaining
from dotr.explain.record import Record, RecordedPipeline
from dotr.explain.verify import EVERYTHING
from dotr.io.event_formats import format_jsonl
from dotr.io.files.sources import resolve
from dotr.io.places import places_of


def refuse_format(format_: str) -> None:
    """Raise UsageError D4177 for a format of events without a place for a proof."""
    if format_ != "jsonl":
        raise UsageError.of(
            "D4177",
            f"--explain writes JSON lines, not {format_}",
            hint="add --format jsonl, or explain one event: dotr explain",
        )


class Recording:
    """Owns the record of a run. `documents`: of the background. `verify`: every proof is checked, which needs
    all that came.
    """

    def __init__(self, documents: Sequence[str], verify: bool = False) -> None:
        self._files = resolve(documents)
        self._verify = verify
        self._explaining: Explaining | None = None

    def pipeline(self, deployment: Deployment, **options: Any) -> Pipeline:
        """A pipeline that keeps the record."""
        record = Record(deployment.program, deployment.background)
        if self._verify:
            record.reach = EVERYTHING
        self._explaining = Explaining(record, places_of(record, self._files), verify=self._verify)
        return RecordedPipeline(deployment, record, **options)

    def write(self, events: Sequence[Composite], clock: Clock) -> str:
        """Events as JSON lines, each with its proof."""
        return "".join(f"{self._line(event, clock)}\n" for event in events)

    def _line(self, event: Composite, clock: Clock) -> str:
        assert self._explaining is not None, "events come from the pipeline"
        proof = self._explaining.because(event.id)
        because = json.dumps(proof, ensure_ascii=False, separators=(",", ":"))
        return f'{format_jsonl(event, clock)[:-1]},"because":{because}}}'

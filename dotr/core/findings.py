"""Warnings about instants that are not in error: each once.

Place:   between instant.py, which meets findings instant by instant, and the caller that shows them.
Method:  a finding is identified by its message and label, not by its time. Where instants are unordered, as
         in the tasks of a batch, it is reported again for an earlier one, to find the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec.structs import replace

from dotr.errors import Diagnostic
from dotr.events import Clock, Time

Finding: TypeAlias = Callable[[Diagnostic], None]

MOST = 1_000
"""The limit of findings of one code that are reported and remembered."""


class Findings:
    """Owns what was reported; `say` is called with what was not."""

    def __init__(self, say: Finding) -> None:
        self._say = say
        self._said: dict[str, dict[tuple[str, str], Time]] = {}

    def found(self, findings: Iterable[Diagnostic], time: Time, clock: Clock) -> None:
        """Report new findings about an instant."""
        for finding in findings:
            said = self._said.setdefault(finding.code, {})
            about = (finding.message, finding.label)
            if said.get(about, time + 1) <= time or (len(said) > MOST and about not in said):
                continue
            said[about] = time
            if len(said) > MOST:
                last = (f"after {MOST} of them, further ones are not reported",)
                finding = replace(finding, label="", notes=last)
            self._say(replace(finding, place=f"@ {clock.text(time)}"))

"""The file of a policy `file=PATH`: what was refused or came late, each a line that can be fed again.

Place:   beside run.py; verbs that read sources open one for each policy.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from dotr.io.error_policy import ErrorPolicy
from dotr.io.files.outputs import Output, open_output


class DeadLetters(Struct):
    """Owns the file of a policy `file=PATH`: documents that were refused, or graphs that came late."""

    policy: str
    overwrite: bool = False
    _file: Output | None = None

    def __enter__(self) -> DeadLetters:
        if self.policy.startswith("file="):
            self._file = open_output(self.policy.removeprefix("file="), self.overwrite)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._file is not None:
            self._file.finish()  # what was refused was refused, however the run ended

    def write(self, line: str) -> None:
        assert self._file is not None
        self._file.write(f"{line}\n")
        self._file.flush()

    @property
    def fails(self) -> bool:
        return self.policy == "fail"

    def refusals(self) -> ErrorPolicy:
        """The policy as the sources want it."""
        return ErrorPolicy(self.fails, self.write if self._file is not None else None)

    def keep(self, line: Callable[[], str]) -> None:
        """Write a letter if the policy has a file."""
        if self._file is not None:
            self.write(line())

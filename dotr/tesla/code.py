"""Python source that is written line by line, and the values it names.

Place:   columns.py and compile.py write functions with it; nothing else in tesla/ makes code.
Method:  text holds names this package chose and small numbers only; whatever a user wrote (constants,
         durations, conditions) goes in through the namespace. Equal texts are compiled once, so rules of one
         shape share their code.
Why not: closures over closures: each hop costs a call, and a rule has a dozen.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any

from dotr.late import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Reserved:
    """A line that is kept free, to be filled later."""

    indent: str
    text: str = "pass"

    def __str__(self) -> str:
        return self.indent + self.text


class CodeSource:
    """Owns the lines of a function, of those it calls, and the namespace they will run in."""

    def __init__(self) -> None:
        self._main: list[str | Reserved] = []
        self._lines = self._main
        self._others: list[str | Reserved] = []
        self._depth = 1
        self._names: dict[str, Any] = {}
        self._known: dict[tuple[str, int], str] = {}

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def reserve(self) -> Reserved:
        """A line to be filled later."""
        kept = Reserved("    " * self._depth)
        self._lines.append(kept)
        return kept

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head:` and what is written meanwhile, one level deeper."""
        self.line(head + ":")
        self._depth += 1
        yield
        self._depth -= 1

    def open(self, head: str) -> None:
        """A block that stays open until `close`."""
        self.line(head + ":")
        self._depth += 1

    @property
    def depth(self) -> int:
        return self._depth

    def call(self, name: str, parameters: str) -> None:
        """Call a further function here; what is written from now on, up to `resume`, is its body."""
        self.line(f"{name}({parameters})")
        if self._lines is not self._main:
            self._others += self._lines
        self._lines = [f" def {name}({parameters}):"]
        self._depth = 1

    def resume(self, depth: int) -> None:
        """Back in the main function, at a depth that `depth` gave."""
        if self._lines is not self._main:
            self._others += self._lines
        self._lines, self._depth = self._main, depth

    def name(self, prefix: str, value: object) -> str:
        """A name for a value in the namespace; the same object gets one name."""
        known = self._known.get((prefix, id(value)))
        if known is None:
            known = f"{prefix}_{len(self._names)}"
            self._names[known] = value
            self._known[(prefix, id(value))] = known
        return known

    def function(self, parameters: str) -> Callable[..., Any]:
        """The finished function, its named values bound. Equal text is compiled once per process."""
        text = "\n".join(
            [
                f"def make({', '.join(self._names)}):",
                *map(str, self._others),
                f" def run({parameters}):",
                *map(str, self._main),
                " return run",
            ]
        )
        scope: dict[str, Any] = {}
        exec(_compiled(text), scope)  # noqa: S102  # text of this package alone, see Method
        made: Callable[..., Any] = scope["make"](**self._names)
        return made


@lru_cache(maxsize=4096)
def _compiled(text: str) -> CodeType:
    return compile(text, "<rule>", "exec")

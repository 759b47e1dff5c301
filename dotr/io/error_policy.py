"""What happens to documents that cannot be read: `--on-error fail|skip|file=PATH`.

Place:   beside sources.py, which hands every refused document here; the command line chooses the policy.
Method:  a dead letter has all that is needed to fix it and feed it again: the place, the diagnostic, and the
         original bytes, as one JSON line (bytes as text where they are UTF-8, else as base64).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from dotr.errors import DataError, DotrError
from dotr.io.graphs import Item, TimedGraph

DeadLetter: TypeAlias = Callable[[str], None]
"""Takes one JSON line without its end."""


class ErrorPolicy(Struct):
    """Owns the count of refused documents and the policy for them.

    `fail` raises the first; otherwise they are counted, and written to `sink` if there is one.
    """

    fail: bool = True
    sink: DeadLetter | None = None
    count: int = 0
    first: DataError | None = None

    def take(self, error: DataError, content: bytes) -> None:
        """A document whose original bytes are `content` was refused. Raises `error` under `fail`."""
        if self.fail:
            raise error
        self.count += 1
        if self.first is None:
            self.first = error
        if self.sink is not None:
            self.sink(dead_letter(error, content))

    def set_aside(self, letters: Iterable[str]) -> None:
        """Graphs were refused at their instant, where `fail` is not the policy; a dead letter each."""
        for letter in letters:
            self.count += 1
            if self.sink is not None:
                self.sink(letter)


def dead_letter(
    error: DotrError, content: bytes | None, place: str = "", more: Mapping[str, Any] | None = None
) -> str:
    """A refused document as one JSON line: place, code, diagnostic, document or (for other bytes) base64.

    `place` is used instead of the diagnostic's; `more` stands between the diagnostic and the document, which
    is left out where there is none any more.
    """
    first = error.diagnostics[0]
    line = {"place": place or first.place, "code": first.code, "diagnostic": str(error), **(more or {})}
    if content is not None:
        try:
            line["document"] = content.decode()
        except UnicodeDecodeError:
            line["base64"] = base64.b64encode(content).decode("ascii")
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def graphs_alone(items: Iterable[Item], refusals: ErrorPolicy) -> Iterator[TimedGraph]:
    """The graphs among items; what is refused goes to the refusals."""
    for item in items:
        if isinstance(item, TimedGraph):
            yield item
        elif item.error is not None:
            refusals.take(item.error, item.content)

"""(time, Turtle) pairs that a Python program has in hand, read many at once.

Place:   beside python_arguments.py; `Engine.push_all` asks it first, and reads pairs one by one where
         it gives None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dotr.events import Time
from dotr.io.decode.batch_parse import BatchParser, common_head
from dotr.io.python_arguments import fits
from dotr.rdf.terms import Triple


class PairReader:
    """Owns the parsing. `unit`: µs of one unit of integer time; `base`: of relative IRIs."""

    def __init__(self, unit: int, base: str | None) -> None:
        self._unit = unit
        self._together = BatchParser(base)

    def read(self, pairs: Sequence[Any]) -> tuple[list[Time], list[list[Triple]]] | None:
        """Times and triples of pairs of an integer and a text; None where one is something else, or the texts
        have to be read one by one.
        """
        if set(map(type, pairs)) != {tuple} or set(map(len, pairs)) != {2} or len(pairs) < 2:
            return None
        stamps, texts = zip(*pairs, strict=True)
        if set(map(type, stamps)) != {int} or set(map(type, texts)) != {str}:
            return None
        times = [stamp * self._unit for stamp in stamps]
        if not (fits(min(times)) and fits(max(times))):
            return None
        head = common_head(texts)
        graphs = self._together.parse([text[len(head) :] for text in texts] if head else texts, head)
        return None if graphs is None else (times, graphs)

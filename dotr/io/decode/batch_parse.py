"""Many small Turtle documents parsed as one, where that is the same as one by one.

Place:   used by the readers of JSON lines and of message logs on what they have in hand.
Method:  the documents are joined with a statement between them that parts the result again: starting a parser
         costs 1.2 µs, and prefixes at their heads as much once more. A document that breaks off cannot pass
         for whole by this: inside a statement at most two terms can follow one another, and the statement
         between has three. Strings of several lines could swallow it, declarations would reach the next
         document: such documents are left to be parsed one by one, as is all that has an error, which is
         then reported with its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyoxigraph as ox

from dotr.errors import DataError
from dotr.io.decode.documents import STREAM_BASE
from dotr.io.decode.limits import BoundedOutput, Overgrown, may_grow_to
from dotr.io.decode.plain import PlainGraphs
from dotr.io.decode.rdf import distinct_triples
from dotr.rdf.terms import Triple
from dotr.regex import regex

MANY = 64
"""Documents that are worth to be parsed at once; more save nothing."""

LONG = 1 << 16
"""Characters from which a document is parsed alone: there is nothing to save, and several copies to make."""

_WAIT = 8
_NEXT = "<dotr:> <dotr:> <dotr:> .\n"  # short: it is parsed and written, too
_IRI = r'<[^<>"{}|^`\\\s]*>'
DECLARED = regex(
    rf"(?:\s*(?:(?:prefix\s+(?:[a-z][\w-]*)?:|base)\s*{_IRI}"
    rf"|@(?:prefix\s+(?:[a-z][\w-]*)?:|base)\s*{_IRI}\s*\.))*",
    re.IGNORECASE | re.ASCII,
)
_WORDS = ("prefix", "base", "version")
_DECLARING = regex(r"(?<![\w:/#-])(?:prefix|base|version)(?![\w-])", re.IGNORECASE)
_TURTLE, _N_TRIPLES = ox.RdfFormat.TURTLE, ox.RdfFormat.N_TRIPLES


def common_head(texts: Sequence[str]) -> str:
    """The declarations that the first document begins with, if all others begin with them, too."""
    found = DECLARED.match(texts[0])
    head = found[0] if found is not None else ""
    return head if head and all(text.startswith(head) for text in texts) else ""


@dataclass(slots=True)
class BatchParser:
    """Owns the parsing of many documents, and whether to try: where errors are, others are likely."""

    base: str | None = STREAM_BASE
    _wait: int = field(default=0, init=False)
    _plain: PlainGraphs = field(init=False)

    def __post_init__(self) -> None:
        self._plain = PlainGraphs(self.base)

    def parse(self, texts: Sequence[str], head: str) -> list[list[Triple]] | None:
        """The triples of each document after `head`, as `parse_triples` gives them; None: one by one.

        `head` has all declarations that hold for them.
        """
        if max(map(len, texts)) > LONG:
            return None
        plain = self._plain.parse(texts, head)
        if plain is not None:
            return plain
        joined = f"\n{_NEXT}".join(texts)
        lower = joined.lower()
        if '"""' in joined or "'''" in joined:
            return None
        if any(word in lower for word in _WORDS) and _DECLARING.search(joined):
            return None
        if self._wait:
            self._wait -= 1
            return None
        try:
            parser = ox.parse(f"{head}\n{joined}", _TURTLE, base_iri=self.base)
            lines = BoundedOutput(may_grow_to(len(joined)))
            ox.serialize(parser, lines, _N_TRIPLES)
            parts = lines.getvalue().decode().split(_NEXT)
            if len(parts) == len(texts):
                return [distinct_triples(part, "") for part in parts]
        except (SyntaxError, AttributeError, MemoryError, Overgrown, DataError):
            pass  # reported when they are parsed one by one
        self._wait = _WAIT
        return None

"""What a run lets documents say beyond RDF 1.1 and beyond themselves.

Place:   options of the command line and arguments of Python make it; parsing.py reads by it.
Method:  `--rdf12 plain` takes what pyoxigraph has written, and leaves out the triples whose object is a
         triple term; what an annotation or a reifier says stays, since its triples are plain ones. A triple
         that is only spoken of (`<< :s :p :o >>`) is not said, and is not read as said. A string with a base
         direction loses the direction. Contexts of JSON-LD are json_contexts.py's.
Why not: take triple terms as said: RDF 1.2 tells speaking of a triple from saying it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dotr.regex import regex

RDF12: Final = ("refuse", "plain")
_DIRECTED = regex(r'("(?:[^"\\]|\\.)*"@[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)--(?:ltr|rtl)(?= |\Z)')


@dataclass(frozen=True, slots=True)
class ParseChoices:
    """The choices of one run. `rdf12`: terms of RDF 1.2 are "refuse"d, or read for what is "plain" RDF 1.1.
    `contexts`: the IRI of a context of JSON-LD → its text, before those that dotr knows.
    """

    rdf12: str = "refuse"
    contexts: Mapping[str, str] = field(default_factory=dict)
    _left: dict[str, int] = field(default_factory=dict, compare=False)

    def plain(self, lines: str) -> str:
        """N-Triples or N-Quads as pyoxigraph writes them, without what is RDF 1.2; it is counted."""
        if "<<(" not in lines and "--ltr" not in lines and "--rtl" not in lines:
            return lines
        rows = lines.split(" .\n")
        rows.pop()
        kept = []
        for row in rows:
            subject, predicate, rest = row.split(" ", 2)
            if rest.startswith("<<("):
                self._count("triple terms")
                continue
            directed = _DIRECTED.match(rest)
            if directed is not None:
                self._count("directions")
                rest = directed[1] + rest[directed.end() :]
            kept.append(f"{subject} {predicate} {rest} .\n")
        return "".join(kept)

    def _count(self, what: str) -> None:
        self._left[what] = self._left.get(what, 0) + 1

    def taken(self) -> dict[str, int]:
        """What was left out since this was asked."""
        found = dict(self._left)
        self._left.clear()
        return found


STRICT = ParseChoices()

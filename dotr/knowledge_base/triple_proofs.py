"""Why a triple holds, or does not, as a Python program holds it.

Place:   made by knowledge_base.py from what explain/derivations.py finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dotr.events import Clock
from dotr.explain.formats import PlainProofs
from dotr.explain.proofs import Missing, TripleProof
from dotr.explain.text import Renderer
from dotr.explain.tree import drawn
from dotr.rdf.terms import Triple

if TYPE_CHECKING:
    import rdflib


class Proof:
    """A proof of a triple that holds: the smallest derivation from what is stated; or, of one that does not,
    the rules that could give it and the first premise that each lacks. True if the triple holds.

    `str()` is a tree of lines; `found` is the proof itself (explain/proofs.py).
    """

    def __init__(self, found: TripleProof | Missing, prefixes: Mapping[str, str]) -> None:
        self.found = found
        self._prefixes = dict(prefixes)

    def __bool__(self) -> bool:
        return not isinstance(self.found, Missing)

    @property
    def triple(self) -> Triple:
        """What it is about, in canonical terms."""
        return self.found.triple

    def __str__(self) -> str:
        return drawn(self._renderer().node(self.found)).rstrip("\n")

    def __repr__(self) -> str:
        return f"<proof of {' '.join(self.triple)}>" if self else f"<no proof of {' '.join(self.triple)}>"

    def to_dict(self) -> dict[str, Any]:
        """The proof as plain values, which JSON can hold."""
        return PlainProofs(Clock(), lambda triple, time: "", self._renderer().rule_text).of(self.found)

    def to_rdf(self) -> rdflib.Graph:
        """The proof in PROV-O."""
        from dotr.explain.provenance import to_rdf  # noqa: PLC0415  # it imports rdflib

        return to_rdf([self.found], Clock())

    def _renderer(self) -> Renderer:
        return Renderer(self._prefixes, Clock(), background="stated")

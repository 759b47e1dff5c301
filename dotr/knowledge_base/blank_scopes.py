"""Blank nodes: one scope a call, and what was handed out may be handed back.

Place:   between what a caller gives (io/python_graphs.py) and the model.
Method:  a label that the knowledge base made, and gave away in answers, means that node; any other label is
         local to the call and gets one of its own, from the content of the call and its number
         (rdf/blanks.py), so that runs agree. In text every label is local.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dotr.io.message_parts import refuse_blank
from dotr.rdf.blanks import label_stream
from dotr.rdf.terms import Term, Triple


class Scopes:
    """Owns the labels of blank nodes that the knowledge base has, and the number of calls that made some.

    `exact`: labels mean themselves always (a store of rdflib, whose nodes have names).
    """

    def __init__(self, known: Iterable[Term] = (), calls: int = 0, exact: bool = False) -> None:
        self.known = set(known)
        self.calls = calls
        self.exact = exact

    def note(self, triples: Iterable[Triple]) -> None:
        """These labels are the knowledge base's own."""
        for subject, _, object_ in triples:
            if subject[0] == "_":
                self.known.add(subject)
            if object_[0] == "_":
                self.known.add(object_)

    def labelled(self, triples: Sequence[Triple], is_text: bool) -> list[Triple]:
        """The triples of one part of one call, blank nodes labelled. `keep` them once they are inserted."""
        if self.exact or not any(s[0] == "_" or o[0] == "_" for s, _, o in triples):
            return list(triples)
        masked = [(self._mask(s, is_text), p, self._mask(o, is_text)) for s, p, o in triples]
        (found,) = label_stream([masked], self.calls, "call ")
        return [(_unmask(s), p, _unmask(o)) for s, p, o in found]

    def keep(self, triples: Iterable[Triple]) -> None:
        """A call has come through: its labels are known, and the next one has another number."""
        before = len(self.known)
        if not self.exact:
            self.note(triples)
        if len(self.known) > before:
            self.calls += 1

    def named(self, triples: Sequence[Triple], is_text: bool) -> list[Triple]:
        """Triples to be deleted. Raises DataError D2202 for blank nodes that are not ours."""
        if not self.exact:
            ours = set() if is_text else self.known
            refuse_blank(
                [t for t in triples if any(term[0] == "_" and term not in ours for term in (t[0], t[2]))],
                "delete",
            )
        return list(triples)

    def _mask(self, term: Term, is_text: bool) -> Term:
        return f"<{term}>" if term[0] == "_" and not is_text and term in self.known else term


def _unmask(term: Term) -> Term:
    return term[1:-1] if term[:2] == "<_" else term

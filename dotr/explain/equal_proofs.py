"""Which proofs of triples are equal, and how large they are, however deep they go and whatever they share.

Place:   under the renderers, which print a sub-proof once, and the searches, which want the smallest.
Method:  hash consing: a proof's number is looked up by its own content and the numbers of its premises, from
         the leaves upwards, without recursion. A chain of ten thousand steps is one loop; a proof that uses
         each of its parts twice is not walked twice for each.
Why not: comparing or measuring proofs as trees: recursion as deep, work as large as the tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from dotr.explain.proofs import Derived, TripleProof


def parts_of(proof: TripleProof) -> Iterator[TripleProof]:
    """The proofs directly below one."""
    if isinstance(proof, Derived):
        yield from proof.premises
        for total in proof.totals:
            for row in total.shown:
                yield from row


class Sharing:
    """Owns the numbers of the proofs that were asked about, and holds them."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._by_id: dict[int, tuple[int, TripleProof]] = {}
        self._sizes: list[int] = []

    def number(self, proof: TripleProof) -> int:
        """The same for equal proofs, and for those alone."""
        todo = [proof]
        while todo:
            one = todo[-1]
            if id(one) in self._by_id:
                todo.pop()
                continue
            below = list(parts_of(one))
            open_ = [part for part in below if id(part) not in self._by_id]
            if open_:
                todo += open_
                continue
            todo.pop()
            self._by_id[id(one)] = self._of(one, below), one
        return self._by_id[id(proof)][0]

    def _of(self, proof: TripleProof, below: list[TripleProof]) -> int:
        numbers = tuple(self._by_id[id(part)][0] for part in below)
        key: object = proof
        if isinstance(proof, Derived):
            counted = tuple(total.rows for total in proof.totals)
            key = proof.triple, id(proof.rule), proof.bindings, proof.absent, counted, numbers
        if key not in self._numbers:
            self._numbers[key] = len(self._sizes)
            own = len(proof.premises) if isinstance(proof, Derived) else 0
            self._sizes.append(1 + sum(self._sizes[number] for number in numbers[:own]))
        return self._numbers[key]

    def size(self, proof: TripleProof) -> int:
        """The steps of a proof as a tree."""
        return self._sizes[self.number(proof)]

"""What an explanation of what holds is made of.

Place:   beside proofs.py, whose facts may be of heads of .lars files; made by holding.py.
Method:  an atom of a head opens into the rule that put it at its point and, literal by literal, into what the
         windows showed at the point at which the rule was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from dotr.events import Time, Values
from dotr.ir import BindAtom, FilterAtom, LarsLiteral, LarsRule, RelationToStream, WindowAggregate, WindowAtom
from dotr.rdf.terms import Term

if TYPE_CHECKING:
    from dotr.explain.proofs import FactProof


class PlacedAtom(Struct, frozen=True):
    """An atom at a point. `why`: the fact or the atom of a head that it is; None where it is not opened."""

    name: str
    values: Values
    point: Time
    why: FactProof | HeldAtom | None = None


class Supported(Struct, frozen=True):
    """A window atom that held. `atoms`: what supports it, of ALWAYS its points, the latest first, the first
    few; `points`: how many there are; `start`: the beginning of its window, None where it has none.
    """

    literal: WindowAtom
    atoms: tuple[PlacedAtom, ...]
    points: int
    start: Time | None


class NoneHeld(Struct, frozen=True):
    """A NOT: nothing of the kind in its window, which begins at `start` (None: it has none)."""

    literal: WindowAtom
    start: Time | None


class ProvedTotal(Struct, frozen=True):
    """An aggregate over so many pairs of an atom and a point."""

    literal: WindowAggregate
    value: Term
    pairs: int
    start: Time


class Computed(Struct, frozen=True):
    """A FILTER that is true, a BIND."""

    literal: FilterAtom | BindAtom


LarsStep: TypeAlias = Supported | NoneHeld | ProvedTotal | Computed


class HeldAtom(Struct, frozen=True):
    """`rule`, read at `considered`, put the atom at `point`. `bindings`: of its variables."""

    name: str
    variables: tuple[str, ...]
    values: Values
    point: Time
    rule: LarsRule
    considered: Time
    bindings: tuple[tuple[str, Term], ...]
    steps: tuple[LarsStep, ...]


class LarsFailure(Struct, frozen=True):
    """A rule that did not give an atom at a point: the first literal, those of NOT and FILTER last, that left
    nothing; None: its head is at another point. `start`: of its window.
    """

    rule: LarsRule
    literal: LarsLiteral | None
    point: Time
    start: Time | None = None


class Holding(Struct, frozen=True):
    """Why a head has a fact. `operator` None: it holds. For DSTREAM the atom is that of the point before, and
    `failed` says why it holds no more. `atom` None: it was not opened.
    """

    operator: RelationToStream | None
    atom: HeldAtom | None
    failed: tuple[LarsFailure, ...] = ()

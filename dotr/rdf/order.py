"""The canonical order: one total order on terms that breaks every tie.

Place:   MIN, MAX, ORDER BY, the order of facts and the selections LAST and FIRST all use it, in every engine.
Method:  a term's key is (class, what orders the class …, text); Python compares int, Decimal and float by
         exact value, so keys of numbers of mixed types need no conversion (language.md, sec. 1).
Why not: SPARQL's `<` completed by text, which is not an order: 9 < 10 < "5" < 9.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

from dotr.rdf.memo import Memo
from dotr.rdf.terms import Term
from dotr.rdf.values import DateTime, Duration, decode

TermKey: TypeAlias = tuple[Any, ...]

_UNBOUND: TermKey = (0,)


def term_key(term: Term | None) -> TermKey:
    """The place of a term in the canonical order; None is an unbound value. Compare keys with `<` and `==`.

    Unbound < blank nodes < IRIs by code points < numbers by exact value, NaN last < strings by code points <
    false < true < dateTimes by instant (no zone = UTC) < durations by where they end < all other literals;
    remaining ties, and the last class, by N-Triples text. Equal keys mean equal terms. Cost: one table
    look-up for a known term.
    """
    return _UNBOUND if term is None else _keys[term]


def values_key(row: tuple[Term | None, ...]) -> tuple[TermKey, ...]:
    """The key of a row among rows of the same width: by its values from left to right."""
    keys = _keys
    return tuple([_UNBOUND if term is None else keys[term] for term in row])


def _key(term: Term) -> TermKey:
    if term[0] == "_":
        return (1, term)
    if term[0] != '"':
        return (2, term[1:-1])
    value = decode(term)
    if isinstance(value, bool):
        return (5, value, term)
    if isinstance(value, (int, float, Decimal)):
        return (3, 1, 0, term) if value != value else (3, 0, value, term)
    if isinstance(value, str):
        return (4, value, term)
    if isinstance(value, DateTime):
        return (6, value.ticks, term)
    if isinstance(value, Duration):
        return (7, *value.ends, term)
    return (8, term)


_keys: Memo[Term, TermKey] = Memo(_key)

"""Names of composite events: equal matches get equal names, wherever and whenever they are found.

Place:   tesla/ names the composites that rules chain on, emit.py those that leave.
Method:  BLAKE2b over an injective text of what was matched; 15 bytes are 24 base32 letters without padding.
Why not: random names (the paper's). A replay, a restart and a Spark worker would each name the same event
         differently, and no sink could be idempotent.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from dotr.events import Fact, Match, Time
from dotr.ir.rules import Rule

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_TRIPLES = [a + b + c for a in _ALPHABET for b in _ALPHABET for c in _ALPHABET]
_lines: Callable[[tuple[Any, ...]], str] = "\n".join
_HALVES = (1 << 30) - 1  # small ints: two table look-ups of 15 bits each


def match_hash(time: Time, facts: tuple[Fact, ...]) -> str:
    """24 lower-case base32 letters (RFC 4648) for a trigger time and the facts of all positive positions.

    `facts` stand in match order, the trigger first (a tick is a fact without values). The rule takes no
    part: rules that match the same facts share the hash.
    Injective before hashing: one line a number pair or term; no N-Triples term holds a raw newline, starts
    with a digit or sign, or is empty (which stands for unbound).
    """
    try:
        text = f"{time}"
        for when, values, ordinal, _ in facts:
            text = f"{text}\n{when} {ordinal}\n{_lines(values)}" if values else f"{text}\n{when} {ordinal}"
    except TypeError:  # an unbound value
        text = _with_unbound(time, facts)
    bits = int.from_bytes(blake2b(text.encode(), digest_size=15).digest(), "big")
    a, b, c, d = bits >> 90, bits >> 60 & _HALVES, bits >> 30 & _HALVES, bits & _HALVES
    t = _TRIPLES
    return (
        f"{t[a >> 15]}{t[a & 32767]}{t[b >> 15]}{t[b & 32767]}"
        f"{t[c >> 15]}{t[c & 32767]}{t[d >> 15]}{t[d & 32767]}"
    )


def _with_unbound(time: Time, facts: tuple[Fact, ...]) -> str:
    lines = [str(time)]
    for when, values, ordinal, _ in facts:
        lines.append(f"{when} {ordinal}")
        lines += [value or "" for value in values]
    return "\n".join(lines)


def match_id(rule: Rule, match: Match) -> str:
    """The IRI (without brackets) of the composite event that `match` of `rule` is: `urn:dotr:Fire:…`."""
    return f"urn:dotr:{rule.name}:{match_hash(match.time, match.facts)}"

"""Names of composite events: equal matches get equal names, wherever and whenever they are found.

Place:   tesla/ names the composites that rules chain on, core/emit.py those that are emitted.
Method:  BLAKE2b over an injective text of the match; 15 bytes are 24 base32 letters without padding.
Why not: random names (the paper's). A replay, a restart and a Spark worker would each name the same event
         differently, and no sink could be idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

from dotr.events import Fact, Match, Time
from dotr.ir.rules import Rule
from dotr.rdf.memo import Memo

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_TRIPLES = [pair + c for pair in _PAIRS for c in _ALPHABET]
_lines: Callable[[tuple[Any, ...]], str] = "\n".join
_BYTES = _ALPHABET.encode().ljust(256, b"?")
_ROOM = bytes(9)
_MANY, _SOME = 64, 8
_HALVES = (1 << 30) - 1  # small ints: two table look-ups of 15 bits each


def match_hash(time: Time, facts: tuple[Fact, ...]) -> str:
    """24 lower-case base32 letters (RFC 4648) for a trigger time and the facts of all positive positions.

    `facts` are in match order, the trigger first (a tick is a fact without values). The rule is not hashed:
    rules that match the same facts share the hash. The text is injective: one line per number pair or term;
    no N-Triples term holds a raw newline, starts with a digit or sign, or is empty (which means unbound).
    """
    try:
        text = f"{time}"
        for when, values, ordinal, _ in facts:
            text = f"{text}\n{when} {ordinal}\n{_lines(values)}" if values else f"{text}\n{when} {ordinal}"
    except TypeError:  # an unbound value
        text = f"{time}{b''.join(map(_lines_of, facts)).decode()}"
    return _text(int.from_bytes(blake2b(text.encode(), digest_size=15).digest(), "big"))


def _text(bits: int) -> str:
    """120 bits as 24 letters."""
    a, b, c, d = bits >> 90, bits >> 60 & _HALVES, bits >> 30 & _HALVES, bits & _HALVES
    t = _TRIPLES
    return (
        f"{t[a >> 15]}{t[a & 32767]}{t[b >> 15]}{t[b & 32767]}"
        f"{t[c >> 15]}{t[c & 32767]}{t[d >> 15]}{t[d & 32767]}"
    )


def _lines_of(fact: Fact) -> bytes:
    when, values, ordinal, _ = fact
    try:
        text = f"\n{when} {ordinal}\n{_lines(values)}" if values else f"\n{when} {ordinal}"
    except TypeError:  # an unbound value
        text = "".join([f"\n{when} {ordinal}", *[f"\n{value or ''}" for value in values]])
    return text.encode()


_LINES: Memo[Fact, bytes] = Memo(_lines_of, limit=1 << 13, longest=1 << 11)


def match_hashes(time: Time, several: Sequence[tuple[Fact, ...]]) -> list[str]:
    """`match_hash` of each, cheaper for many: a trigger is hashed once, a fact's lines are kept, and the
    letters of sixty-four hashes, or of eight, are made by shifting all their bits at once.
    """
    head, lines, digests = str(time).encode(), _LINES, []
    trigger: Fact | None = None
    for facts in several:
        if facts[0] is not trigger:  # those of one trigger are adjacent
            trigger = facts[0]
            begun = blake2b(head + lines[trigger], digest_size=15).copy
        hash_ = begun()
        for fact in facts[1:]:
            hash_.update(lines[fact])
        digests.append(hash_.digest())
    if len(digests) <= _SOME:
        return _letters(digests)
    step = _MANY if len(digests) > 3 * _SOME else _SOME
    return [
        name for start in range(0, len(digests), step) for name in _letters(digests[start : start + step])
    ]


def _letters(digests: Sequence[bytes]) -> list[str]:
    """Base32 of each: five bits per byte, by halving groups of bits and moving the halves apart."""
    if len(digests) < 3:
        return [_text(int.from_bytes(digest, "big")) for digest in digests]
    if len(digests) <= _SOME:
        many, (halvings, (low_, middle, high_)) = _SOME, _SOME_MASKS
    else:
        many, (halvings, (low_, middle, high_)) = _MANY, _MANY_MASKS
    missing = [bytes(15)] * (many - len(digests))
    bits = int.from_bytes(_ROOM + _ROOM.join([*digests, *missing]), "big")
    for low, high, shift in halvings:
        bits = bits & low | (bits & high) << shift
    bits = bits & low_ | (bits & middle) << 3 | (bits & high_) << 6
    text = bits.to_bytes(24 * many, "big").translate(_BYTES).decode()
    return [text[place : place + 24] for place in range(0, 24 * len(digests), 24)]


def _masks(many: int) -> tuple[list[tuple[int, int, int]], tuple[int, int, int]]:
    """(low half, high half, how far the high one moves) of groups of 24, 12 and 6 letters, then thirds of 3.

    A letter takes five bits at first and eight at the end; a hash has room for 24 times eight.
    """
    every = sum(1 << 192 * place for place in range(many))
    halvings, groups = [], [(0, 24)]  # (where a group begins, its letters)
    while groups[0][1] > 3:
        half = groups[0][1] // 2
        low = sum((1 << 5 * half) - 1 << start for start, _ in groups)
        halvings.append((low * every, (low << 5 * half) * every, 3 * half))
        groups = [(begin, half) for start, _ in groups for begin in (start, start + 8 * half)]
    low = sum(31 << start for start, _ in groups)
    return halvings, (low * every, (low << 5) * every, (low << 10) * every)


_SOME_MASKS, _MANY_MASKS = _masks(_SOME), _masks(_MANY)


def match_id(rule: Rule, match: Match) -> str:
    """The IRI (without brackets) of the composite event that `match` of `rule` is: `urn:dotr:Fire:…`."""
    return f"urn:dotr:{rule.name}:{match_hash(match.time, match.facts)}"

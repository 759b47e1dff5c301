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
_BYTES = f"{_ALPHABET} ".encode().ljust(256, b"?")
_LANE = 25
_ROOM = bytes(_LANE - 15)
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
        if len(facts) == 2:  # most often
            hash_.update(lines[facts[1]])
        else:
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
    """The letters of at most sixty-four hashes."""
    if len(digests) < 3:
        return [_text(int.from_bytes(digest, "big")) for digest in digests]
    return (_write_some if len(digests) <= _SOME else _write_many)(digests)


def _writer(many: int) -> Callable[[Sequence[bytes]], list[str]]:
    """A function for the base32 letters of at most `many` hashes: five bits per byte, by halving groups of
    bits and moving the halves apart; groups of 24, 12 and 6 letters, then thirds of 3. Between hashes, which
    have room for 25 letters, comes a blank: text is parted there.
    """
    lanes = sum(1 << 8 * _LANE * place for place in range(many))
    masks, groups = [], [(0, 24)]  # (where a group begins, its letters)
    while groups[0][1] > 3:
        half = groups[0][1] // 2
        low = sum((1 << 5 * half) - 1 << start for start, _ in groups) * lanes
        masks.append((low, low << 5 * half))
        groups = [(begin, half) for start, _ in groups for begin in (start, start + 8 * half)]
    (low12, high12), (low6, high6), (low3, high3) = masks
    first = sum(31 << start for start, _ in groups) * lanes
    second, third = first << 5, first << 10
    blanks = (len(_ALPHABET) << 8 * (_LANE - 1)) * lanes

    def write(digests: Sequence[bytes]) -> list[str]:
        bits = int.from_bytes(_ROOM.join(digests), "big")
        bits = bits & low12 | (bits & high12) << 36
        bits = bits & low6 | (bits & high6) << 18
        bits = bits & low3 | (bits & high3) << 9
        bits = bits & first | (bits & second) << 3 | (bits & third) << 6 | blanks
        return bits.to_bytes(_LANE * many, "big").translate(_BYTES).decode().split()[-len(digests) :]

    return write


_write_some, _write_many = _writer(_SOME), _writer(_MANY)


def match_id(rule: Rule, match: Match) -> str:
    """The IRI (without brackets) of the composite event that `match` of `rule` is: `urn:dotr:Fire:…`."""
    return f"urn:dotr:{rule.name}:{match_hash(match.time, match.facts)}"

"""Names of composite events, durations, stages and refusals: small values that every room shares.

Place:   detect/ names the composites that rules chain on, emit/events.py those that are emitted; parsers,
         printers and options like `--lateness 5 min` read durations; detect/ and core/funnel.py use the
         stages; detect/network.py makes the errors of refusals, and the runner of the detector decides what
         follows.
Parts:   identity   equal matches get equal names, wherever and whenever they are found: BLAKE2b over an
                    injective string of the match; 15 bytes are 24 base32 letters without padding
         durations  a number and a unit (language.md, sec. 2). A day is 24 hours; a month has no fixed length,
                    so it is not a unit
         stages     how far the trigger facts of a rule got: what is left after each step, as counts that
                    engines keep, core/funnel.py shows and batch/ sums
         refusals   trigger facts that take a rule too much work, D4010, or make a string or number that is
                    too long, D4133
Why not: random names (the paper's): a replay, a restart and a Spark worker would each name the same event
         differently, and no sink could be idempotent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Final, NoReturn, TypeAlias

from dotr.budget import OVERLONG, Exhausted, Overlong
from dotr.errors import ProgramError
from dotr.events import Clock, Fact, Match, Time
from dotr.program.rules import Choose, Conjunct, Rhythm, Rule, Summarise
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import Memo, Term
from dotr.regex import regex

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_lines: Callable[[tuple[Any, ...]], str] = "\n".join
_BYTES = f"{_ALPHABET} ".encode().ljust(256, b"?")
_LANE = 25
_ROOM = bytes(_LANE - 15)
_MANY, _SOME = 64, 8
_THIRTY = (1 << 30) - 1  # small ints: three look-ups of 10 bits each, in a table that stays in the cache


def match_hash(time: Time, facts: tuple[Fact, ...]) -> str:
    """24 lower-case base32 letters (RFC 4648) for a trigger time and the facts of all positive positions.

    `facts` are in match order, the trigger first (a tick is a fact without values). The rule is not hashed:
    rules that match the same facts share the hash. The text is injective: one line per number pair or term;
    no N-Triples term holds a raw newline, starts with a digit or sign, or is empty (which means unbound).
    """
    return _text(int.from_bytes(_digest(time, facts), "big"))


def _digest(time: Time, facts: tuple[Fact, ...]) -> bytes:
    """The 15 bytes of a hash."""
    try:
        text = f"{time}"
        for when, values, ordinal, _ in facts:
            text = f"{text}\n{when} {ordinal}\n{_lines(values)}" if values else f"{text}\n{when} {ordinal}"
    except TypeError:  # an unbound value
        text = f"{time}{b''.join(map(_lines_of, facts)).decode()}"
    return blake2b(text.encode(), digest_size=15).digest()


def _text(bits: int) -> str:
    """120 bits as 24 letters."""
    a, b, c, d = bits >> 90, bits >> 60 & _THIRTY, bits >> 30 & _THIRTY, bits & _THIRTY
    t = _PAIRS
    return (
        f"{t[a >> 20]}{t[a >> 10 & 1023]}{t[a & 1023]}{t[b >> 20]}{t[b >> 10 & 1023]}{t[b & 1023]}"
        f"{t[c >> 20]}{t[c >> 10 & 1023]}{t[c & 1023]}{t[d >> 20]}{t[d >> 10 & 1023]}{t[d & 1023]}"
    )


def _lines_of(fact: Fact) -> bytes:
    when, values, ordinal, _ = fact
    try:
        text = f"\n{when} {ordinal}\n{_lines(values)}" if values else f"\n{when} {ordinal}"
    except TypeError:  # an unbound value
        text = "".join([f"\n{when} {ordinal}", *[f"\n{value or ''}" for value in values]])
    return text.encode()


_LINES: Memo[Fact, bytes] = Memo(_lines_of, limit=1 << 13, longest=1 << 11)


def hashes_of(instants: Iterable[tuple[Time, Sequence[tuple[Fact, ...]]]]) -> list[str]:
    """`match_hash` of each match of several instants, cheaper for many: a trigger is hashed once, a fact's
    lines are kept, and the letters of sixty-four hashes, or of eight, are made by shifting all their bits at
    once.
    """
    digests: list[bytes] = []
    for time, several in instants:
        if len(several) == 1:
            digests.append(_digest(time, several[0]))
        else:
            digests += _digests(time, several)
    if len(digests) <= _SOME:
        return _letters(digests)
    step = _MANY if len(digests) > 3 * _SOME else _SOME
    return [
        name for start in range(0, len(digests), step) for name in _letters(digests[start : start + step])
    ]


def _digests(time: Time, several: Sequence[tuple[Fact, ...]]) -> Iterator[bytes]:
    """The bytes of the hashes of one instant's matches."""
    head, lines = str(time).encode(), _LINES
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
        yield hash_.digest()


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


WEEKDAYS: Final[Mapping[str, int]] = {
    "MONDAY": 4,
    "TUESDAY": 5,
    "WEDNESDAY": 6,
    "THURSDAY": 7,
    "FRIDAY": 1,
    "SATURDAY": 2,
    "SUNDAY": 3,
}
"""Weekday → the number of one since 1970-01-01, which was a Thursday; none is 0, which is `EVERY 7 d`."""

UNITS: Final[Mapping[str, int]] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "sec": 1_000_000,
    "second": 1_000_000,
    "seconds": 1_000_000,
    "min": 60_000_000,
    "minute": 60_000_000,
    "minutes": 60_000_000,
    "h": 3_600_000_000,
    "hour": 3_600_000_000,
    "hours": 3_600_000_000,
    "d": 86_400_000_000,
    "day": 86_400_000_000,
    "days": 86_400_000_000,
}
"""Microseconds of each unit."""

LONGEST: Final = 366_000 * 86_400_000_000
"""A thousand years; longer ones are mistakes, and times must stay far below 64 bits."""

_TEXT: Final = regex(r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?|\.[0-9]{1,30})\s*([A-Za-z]+)\s*\Z")
_ISO: Final = regex(r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12}(?:\.\d{1,12})?)S)?)?\Z")


_NAMES: Final = ("d", "h", "min", "s", "ms", "us")


def duration_text(micros: int) -> str:
    """`5 min`: a duration in the largest unit with a whole number."""
    if micros == 0:
        return "0 s"
    unit = next(unit for unit in _NAMES if micros % UNITS[unit] == 0)
    return f"{micros // UNITS[unit]} {unit}"


def clock_text(at: int) -> str:
    """`08:00`, `23:59:30`: a time of day, from µs after midnight."""
    minutes, seconds = divmod(at // 1_000_000, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")


def rhythm_text(rhythm: Rhythm) -> str:
    """What stands behind EVERY: `5 min`, `MONDAY AT 08:00 IN "Europe/Brussels"`."""
    if isinstance(rhythm, int):
        return duration_text(rhythm)
    days, day = rhythm.days, rhythm.day
    if not days:
        which = "MONTH" if day == 1 else f"MONTH ON DAY {day}"
    elif days == 7 and day:
        which = next(word for word, first in WEEKDAYS.items() if first == day)
    else:
        which = f"{days} d"
    return f'{which} AT {clock_text(rhythm.at)} IN "{rhythm.zone}"'


def micros(number: str, unit: str) -> int | None:
    """`("1.5", "min")` in microseconds; None if that is not a whole number. `unit` is one of UNITS."""
    value = Decimal(number) * UNITS[unit.lower()]
    return int(value) if value == value.to_integral_value() else None


def duration(text: str) -> int:
    """`5 min`, `250ms` or `PT5M` in microseconds. Raises ValueError, whose text says how to fix it."""
    iso = _ISO.match(text)
    if iso is not None and any(iso.groups()):
        days, hours, minutes, seconds = (Decimal(part or 0) for part in iso.groups())
        value = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000_000
        if value == value.to_integral_value() and value <= LONGEST:
            return int(value)
        raise ValueError(f"{text!r} is not a whole number of microseconds, or too long")
    hit = _TEXT.match(text)
    if hit is None or hit.group(2).lower() not in UNITS:
        raise ValueError(
            f"{text!r} is not a duration: write a number and us, ms, s, min, h or d, as in '5 min'"
        )
    found = micros(hit.group(1), hit.group(2))
    if found is None or found > LONGEST:
        raise ValueError(f"{text!r} is not a whole number of microseconds, or too long")
    return found


RefusedTrigger: TypeAlias = Callable[[int, Fact, ProgramError], None]
"""(number of the rule, trigger fact, D4010 or D4133)."""


def fail(rule: int, fact: Fact, error: ProgramError) -> NoReturn:
    """The default handler: raise it."""
    raise error


def overlong_facts(overlong: Overlong) -> ProgramError:
    """D4133 of what a rule computes of facts as they come, whichever fact will trigger it."""
    return ProgramError.of(
        OVERLONG, f"a key, a condition or an aggregate of a rule makes {overlong.made}", hint=overlong.hint
    )


_SHOWN = 200


def _cut(term: Term) -> str:
    return term if len(term) <= _SHOWN else f"{term[:_SHOWN]}…"


def overworked(rule: Rule, fact: Fact, exhausted: Exhausted, clock: Clock, budget: int) -> ProgramError:
    """D4010 or D4133 for one trigger fact."""
    values = ", ".join("unbound" if value is None else _cut(value) for value in fact[1])
    code, much = "D4010", f"takes more than {budget} units of work"
    what, of = f"one fact of `{rule.triggering.name}`", f"the fact: {rule.triggering.name}"
    hint = "narrow a window, equate a variable in ON, use LAST, or raise --budget"
    if isinstance(rule.trigger, RowPattern):
        what, of = "one partition at an instant", "what was open there is dropped, at the row "
        hint = "shorten WITHIN, set a GAP, divide the rows by PER, or raise --budget"
    if isinstance(exhausted, Overlong):
        code, much, hint = OVERLONG, f"makes {exhausted.made}", exhausted.hint
    return ProgramError.of(
        code,
        f"{rule.kind} `{rule.name}` {much} for {what}",
        rule.span,
        notes=(f"{of}({values})", *exhausted.notes()),
        hint=hint,
        place=f"@ {clock.text(fact[0])}",
    )


TRIGGER: Final = ""
"""The name of the first step of a rule that is triggered by some of the facts passed to it."""

REFUSED: Final = "ON not true: "
"""Begins the name of a step that counts the rows that an element of a sequence refused, with its name."""

Passed: TypeAlias = list[tuple[str, int | None]]
"""(step, partial matches left after it) in order of evaluation. None: as many as before it."""

Counts: TypeAlias = defaultdict[str, list[int]]
"""Name → a list of one number, maybe 0, which a loop adds to without looking for the name each time."""


def counts() -> Counts:
    """Nothing counted."""
    return defaultdict(lambda: [0])


def label(conjunct: Conjunct) -> str:
    """The name of a conjunct in a funnel: `LAST Spike`, `NOT Later`, `AVG`."""
    name = conjunct.position.name
    if isinstance(conjunct, Choose):
        optional = "OPTIONAL " if conjunct.optional else ""
        return f"{optional}{conjunct.selection} {name}"
    return conjunct.function if isinstance(conjunct, Summarise) else f"NOT {name}"


def unreached(rule: Rule) -> Passed:
    """The text for a rule that was never evaluated: a stream it must choose from was empty."""
    chosen = [label(conjunct) for conjunct in rule.required]
    return [(", ".join(chosen), 0)] if chosen else []


def added(one: Passed, other: Passed) -> Passed:
    """The sum of two counts of one rule. If one has further steps at its end, the other passed them all, or
    slept: then it has none but TRIGGER.
    """
    if not one or not other:
        return one or other
    if one[0][0] == other[0][0] == TRIGGER and 1 in (len(one), len(other)) and len(one) != len(other):
        return [*added(one[:1], other[:1]), *one[1:], *other[1:]]
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    if any(a[0] != b[0] for a, b in zip(longer, shorter, strict=False)):
        return other  # other rules changed the order in which this one is evaluated
    found: Passed = []
    last: int | None = None
    for place, (name, count) in enumerate(longer):
        last = shorter[place][1] if place < len(shorter) else last
        found.append((name, None if count is None or last is None else count + last))
    return found


def subtracted(all_: Mapping[str, Passed], before: Mapping[str, Passed]) -> dict[str, Passed]:
    """What the same detector counted since `before`, per rule. Counts only grow."""
    return {rule: _since(passed, before.get(rule, [])) for rule, passed in all_.items()}


def _since(passed: Passed, before: Passed) -> Passed:
    """`passed` minus `before`, which may lack steps at its end: it passed them all or slept: see `added`."""
    if not before:
        return passed
    if before[0][0] == TRIGGER and len(before) == 1 < len(passed):
        return [*_since(passed[:1], before), *passed[1:]]
    found: Passed = []
    old: int | None = None
    for place, (name, count) in enumerate(passed):
        old = before[place][1] if place < len(before) else old
        found.append((name, None if count is None or old is None else count - old))
    return found


def summed(one: Mapping[str, Passed], other: Mapping[str, Passed]) -> dict[str, Passed]:
    """`added` for each rule."""
    return {**one, **{rule: added(one.get(rule, []), passed) for rule, passed in other.items()}}

"""Sequences as checked: order with repetition over the facts of streams (the contract, part four).

Place:   a sequence is a private rule whose trigger is a `RowPattern`: it has no template and no conjuncts,
         its bindings are those of WITH, and its events are the facts of the stream that has its name. So the
         order of evaluation, chaining, LARS and snapshots have it as they have rules.
Method:  SQL's row pattern recognition (ISO/IEC 19075-5) over rows in the order of time, source and canonical
         order.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from dotr.program.positions import Position
from dotr.program.queries import Aggregate, Attribute, Call, Expression, Var
from dotr.source import Span, Syntax


class Element(Struct, frozen=True):
    """One row, given to the element of this name."""

    name: str


class InOrder(Struct, frozen=True):
    """Parts one after another."""

    parts: tuple[Pattern, ...]


class Either(Struct, frozen=True):
    """Alternatives; an earlier one is preferred."""

    branches: tuple[Pattern, ...]


class Repeated(Struct, frozen=True):
    """`minimum` to `maximum` (None: any number of) times; more are preferred, with `reluctant` fewer.

    The empty word does not satisfy `part`. `?` is 0 to 1.
    """

    part: Pattern
    minimum: int
    maximum: int | None
    reluctant: bool = False


Pattern: TypeAlias = Element | InOrder | Either | Repeated


def elements_of(pattern: Pattern) -> Iterator[str]:
    """The names of its elements, in the order written, each once for each place."""
    match pattern:
        case Element(name):
            yield name
        case InOrder(parts) | Either(parts):
            for part in parts:
                yield from elements_of(part)
        case Repeated(part):
            yield from elements_of(part)


def satisfied_by_nothing(pattern: Pattern) -> bool:
    """Whether the empty word satisfies it."""
    match pattern:
        case Element():
            return False
        case InOrder(parts):
            return all(map(satisfied_by_nothing, parts))
        case Either(branches):
            return any(map(satisfied_by_nothing, branches))
        case Repeated(part, minimum):
            return minimum == 0 or satisfied_by_nothing(part)
        case _:
            assert_never(pattern)


def without_nothing(pattern: Pattern) -> Pattern:
    """The pattern without the empty word, which satisfies it; the order of preference stays. Quantifiers
    inside are on parts that it does not satisfy.
    """
    match pattern:
        case InOrder(parts) if satisfied_by_nothing(pattern):
            ways: list[Pattern] = []
            for n, part in enumerate(parts):  # the first part that takes a row, and what is behind it
                rest = (without_nothing(part), *parts[n + 1 :])
                ways.append(rest[0] if len(rest) == 1 else InOrder(rest))
            if all(isinstance(part, Repeated) and part.reluctant for part in parts):
                ways.reverse()
            return Either(tuple(ways))
        case Either(branches) if satisfied_by_nothing(pattern):
            return Either(tuple(without_nothing(b) if satisfied_by_nothing(b) else b for b in branches))
        case Repeated(part, 0, maximum, reluctant):
            return part if maximum == 1 else Repeated(part, 1, maximum, reluctant)
        case _:
            return pattern


def pattern_text(pattern: Pattern) -> str:
    """A pattern as it is written."""
    match pattern:
        case Element(name):
            return name
        case InOrder(parts):
            return " ".join(_bracketed(part, Either) for part in parts)
        case Either(branches):
            return " | ".join(_bracketed(branch, Either) for branch in branches)
        case Repeated(part, minimum, maximum, reluctant):
            counts = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((minimum, maximum))
            if counts is None:
                least, most = minimum or "", "" if maximum is None else maximum
                counts = f"{{{least}}}" if minimum == maximum else f"{{{least},{most}}}"
            return f"{_bracketed(part, Either, InOrder, Repeated)}{counts}{'?' if reluctant else ''}"
        case _:
            assert_never(pattern)


def _bracketed(part: Pattern, *kinds: type[Pattern]) -> str:
    text = pattern_text(part)
    return f"({text})" if isinstance(part, kinds) else text


class Place(StrEnum):
    """From where a row of a mapping is counted."""

    PREV = "PREV"
    FIRST = "FIRST"
    LAST = "LAST"


class RowName(Struct, frozen=True):
    """`PREV(n)`, n from 1: the n-th row before the tested one in its partition. `FIRST(element, n)`,
    `LAST(element, n)`, n from 0: the rows given to an element so far (`*`: to any), from the front or the
    back.

    `X.?v` is that of `LAST(X)`: the tested row in the condition of `X`, else the last row of `X`.
    """

    place: Place
    element: str
    n: int


class RowTotal(Syntax, frozen=True):
    """`function([DISTINCT] argument)` over the rows given to `element` (`*`: to any) so far, the tested one
    included.

    `argument` refers to no other row than `element`'s own; None counts rows.
    """

    function: str
    element: str
    argument: Expression | None
    distinct: bool = False
    span: Span | None = None


class RowElement(Syntax, frozen=True):
    """What a row given to the element satisfies: it is of one of `sources` (indices into those of the
    pattern, ascending), and `on` is true.
    """

    name: str
    sources: tuple[int, ...]
    on: Expression | None = None
    span: Span | None = None


class RowPattern(Syntax, frozen=True):
    """The trigger of a sequence: its matches, each at the instant at which it is certain.

    `name`: the sequence's. `sources`: in the order of OF. `per`: attributes of every source that cut the rows
    into partitions. `elements`: one for each name in `pattern`, in order of first use. `within`, `gap` in µs,
    closed; `gap` None: none. `overlapping`: a match at every row. `skip_to`: the next match may begin at the
    last row of this element. `skipping`: rows between those of elements may be skipped, the fewest first;
    they are neighbours as others are, but no rows of `*`.
    `rows`: what the positions of attributes and times in ON and WITH mean (`Attribute("LAST(Down,1)", "v")`),
    each by its canonical text; `X.?v` is `Attribute("X", "v")`, and "X" is `LAST(X)`. `totals`: what the
    variables of ON and WITH (`Var(".0")`) mean.
    """

    sources: tuple[Position, ...]
    pattern: Pattern
    elements: tuple[RowElement, ...]
    within: int
    per: tuple[str, ...] = ()
    gap: int | None = None
    overlapping: bool = False
    skip_to: str | None = None
    skipping: bool = False
    rows: tuple[tuple[str, RowName], ...] = ()
    totals: tuple[tuple[str, RowTotal], ...] = ()
    name: str = ""
    span: Span | None = None

    def written(self, expression: Expression) -> Expression:
        """An expression of ON or WITH with its aggregates, as it is written."""
        match expression:
            case Var(name, span) if (total := dict(self.totals).get(name)) is not None:
                argument = total.argument
                if argument is None and total.element != "*":
                    argument = Attribute(total.element, "")
                return Aggregate(total.function, argument, total.distinct, None, span)
            case Call(arguments=arguments):
                return replace(expression, arguments=tuple(map(self.written, arguments)))
            case _:
                return expression

    def only_source(self, row: str) -> Position | None:
        """The source of a row of ON and WITH, by its name there; None where it may be of several."""
        element = dict(self.rows)[row].element if row in dict(self.rows) else row
        places = {e.name: e.sources for e in self.elements}.get(element, range(len(self.sources)))
        return self.sources[places[0]] if len(places) == 1 else None
